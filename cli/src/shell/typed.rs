//! Lines that a person types at a terminal, while others speak.
//!
//! One task paints and prints, so that nothing comes between: the line is taken away before anything is
//! printed ([`Typed::hide`]), and it is painted again when the next key is waited for.

use std::collections::VecDeque;
use std::io;

use crate::output::Output;
use crate::shell::keys::{Edit, Key, Keys};
use crate::shell::line::Line;
use crate::shell::picture::{Picture, Size};
use crate::shell::terminal::{Input, Terminal};

/// A line that is being typed.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    output: &'a Output,
    terminal: Terminal,
    keys: Keys,
    line: Line,
    /// Bytes behind the end of the last line.
    ahead: VecDeque<u8>,
    /// The line as it stands on the terminal.
    picture: Option<Picture>,
    /// Keys have changed it since.
    is_stale: bool,
    /// The commands that Tab completes.
    commands: Vec<String>,
}

/// The outcome of a key.
enum Pressed {
    /// The line is edited.
    Edited,
    Line(String),
    End,
}

impl<'a> Typed<'a> {
    pub(crate) fn new(output: &'a Output, commands: Vec<String>) -> io::Result<Self> {
        let (keys, line, ahead) = (Keys::default(), Line::default(), VecDeque::new());
        let terminal = Terminal::open()?;
        let (picture, is_stale) = (None, false);
        Ok(Self { output, terminal, keys, line, ahead, picture, is_stale, commands })
    }

    /// The next line; `None` at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        self.terminal.edit()?;
        loop {
            while let Some(byte) = self.ahead.pop_front() {
                let Some(key) = self.keys.feed(byte) else { continue };
                match self.press(key)? {
                    Pressed::Edited => {}
                    Pressed::Line(line) => return Ok(Some(line)),
                    Pressed::End => return Ok(None),
                }
            }
            self.paint()?;
            match self.terminal.next().await {
                Input::Bytes(bytes) => self.ahead.extend(bytes),
                Input::Continued => self.resume()?,
                Input::End => return Ok(None),
            }
        }
    }

    /// Takes the line away: something is about to be printed.
    pub(crate) fn hide(&mut self) -> io::Result<()> {
        let Some(picture) = self.picture.take() else { return Ok(()) };
        self.output.steer(&picture.erased(self.size().columns))
    }

    fn press(&mut self, key: Key) -> io::Result<Pressed> {
        self.is_stale = true;
        match key {
            Key::Enter => {
                self.leave()?;
                self.terminal.run()?;
                return Ok(Pressed::Line(self.line.take()));
            }
            Key::Eof if self.line.text().is_empty() => return Ok(Pressed::End),
            Key::Interrupt if self.line.text().is_empty() => {
                self.leave()?;
                self.terminal.interrupt();
            }
            Key::Interrupt => {
                self.line.edit(Edit::End);
                self.paint()?;
                self.output.steer("^C")?;
                self.leave()?;
                self.line.clear();
            }
            Key::Quit => {
                self.leave()?;
                self.terminal.quit();
            }
            Key::Suspend => {
                self.leave()?;
                self.terminal.suspend()?;
                self.terminal.edit()?;
            }
            Key::Clear => {
                self.hide()?;
                self.output.steer("\u{1b}[H\u{1b}[J")?;
            }
            Key::Tab if self.line.text().starts_with('/') => self.complete(),
            Key::Tab => self.line.insert("\t"),
            Key::Eof => self.line.edit(Edit::Delete),
            Key::Edit(edit) => self.line.edit(edit),
        }
        Ok(Pressed::Edited)
    }

    /// Types the rest of a command that begins like this, as far as there is no choice.
    fn complete(&mut self) {
        let Some(begun) = self.line.text().get(1..self.line.at()) else { return };
        let mut rests = self.commands.iter().filter_map(|command| command.strip_prefix(begun));
        let Some(first) = rests.next() else { return };
        let mut rest = format!("{first} ");
        for other in rests {
            let same = rest.chars().zip(other.chars()).take_while(|(a, b)| a == b);
            rest.truncate(same.map(|(a, _)| a.len_utf8()).sum());
        }
        self.line.insert(&rest);
    }

    /// Paints the line, where it does not stand as it is.
    fn paint(&mut self) -> io::Result<()> {
        if self.picture.is_some() && !self.is_stale {
            return Ok(());
        }
        let size = self.size();
        let before = self.picture.take().map(|before| before.erased(size.columns));
        let picture = Picture::of(self.line.text(), self.line.at(), size);
        // In one piece, so that nobody sees it gone.
        self.output.steer(&(before.unwrap_or_default() + &picture.written))?;
        (self.picture, self.is_stale) = (Some(picture), false);
        Ok(())
    }

    /// Leaves the whole line on the terminal, and goes below it.
    fn leave(&mut self) -> io::Result<()> {
        self.paint()?;
        let Some(picture) = self.picture.take() else { return Ok(()) };
        self.output.steer(&picture.left())
    }

    /// The program was stopped: others have used the terminal, and the cursor is somewhere.
    fn resume(&mut self) -> io::Result<()> {
        self.terminal.resume()?;
        self.picture = None;
        self.output.steer("\r\u{1b}[J")
    }

    fn size(&self) -> Size {
        let (columns, rows) = self.output.size();
        Size { columns: usize::from(columns.max(1)), rows: usize::from(rows.max(1)) }
    }
}

impl Drop for Typed<'_> {
    fn drop(&mut self) {
        if self.picture.is_some() {
            // There is nothing to do about a terminal that is gone.
            let _ = self.leave();
        }
    }
}
