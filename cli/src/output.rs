//! The one place that writes: results to stdout (or the file of `-o`), everything else to stderr.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;

use crate::outcome::Failure;

/// Where results go, and in which form.
#[derive(Debug)]
pub struct Output {
    json: bool,
    /// Instead of stdout.
    file: Option<Mutex<File>>,
    out_is_terminal: bool,
    err_is_terminal: bool,
    colour: bool,
}

impl Output {
    /// Looks once where the streams lead.
    pub fn new(json: bool) -> Self {
        let out_is_terminal = io::stdout().is_terminal();
        // https://no-color.org: set and not empty.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            json,
            file: None,
            out_is_terminal,
            err_is_terminal: io::stderr().is_terminal(),
            colour: out_is_terminal && !no_color,
        }
    }

    /// From now on results go into this file, which is made anew.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub fn redirect(&mut self, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let file = File::create(path);
        let failure = |source| Failure::File { path: path.to_owned(), source };
        self.file = Some(Mutex::new(file.map_err(failure)?));
        (self.out_is_terminal, self.colour) = (false, false);
        Ok(())
    }

    /// Whether results are wanted as JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person looks at results: then numbers are short and tables fit.
    pub fn is_for_people(&self) -> bool {
        self.out_is_terminal && !self.json
    }

    /// Whether somebody sees what happens on stderr.
    pub fn shows_progress(&self) -> bool {
        self.err_is_terminal
    }

    /// How many columns there are; `None` = as many as it takes.
    pub fn columns(&self) -> Option<u16> {
        if !self.out_is_terminal {
            return None;
        }
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns)
    }

    /// How many columns and rows the screen has.
    pub fn size(&self) -> (u16, u16) {
        let size = terminal_size::terminal_size();
        size.map_or((80, 24), |(columns, rows)| (columns.0, rows.0))
    }

    /// Whether a line can be edited: keys come from a terminal, and it can be steered.
    pub fn has_screen(&self) -> bool {
        let steered =
            std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        steered && self.out_is_terminal && io::stdin().is_terminal()
    }

    /// Sequences that steer the terminal, and text that cannot: as they are, flushed.
    ///
    /// # Errors
    /// If stdout is closed.
    pub fn steer(&self, sequences: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(sequences.as_bytes())?;
        out.flush()
    }

    /// A result: as JSON on one line, or as the lines that people get.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show<T: Serialize>(
        &self,
        result: &T,
        lines: impl FnOnce() -> Vec<String>,
    ) -> Result<(), Failure> {
        if self.json {
            return self.object(result);
        }
        for line in lines() {
            self.line(&line)?;
        }
        Ok(())
    }

    /// A list: as JSON on one line, or as lines; where there are none, people are told so, beside the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn list<T: Serialize>(
        &self,
        result: &T,
        empty: &str,
        lines: impl FnOnce() -> Vec<String>,
    ) -> Result<(), Failure> {
        if self.json {
            return self.object(result);
        }
        let lines = lines();
        if lines.is_empty() {
            self.note_empty(empty)?;
        }
        lines.iter().try_for_each(|line| Ok(self.line(line)?))
    }

    /// There is nothing to show, says a line beside the result: that stays empty, for scripts.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note_empty(&self, empty: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { self.note(&format!("({empty})")) }
    }

    /// One object as JSON on one line, with and without `--json`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn object<T: Serialize>(&self, result: &T) -> Result<(), Failure> {
        Ok(self.line(&serde_json::to_string(result)?)?)
    }

    /// One line of the result, flushed.
    ///
    /// # Errors
    /// If stdout is closed.
    pub fn line(&self, text: &str) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            return file.write_all(format!("{text}\n").as_bytes());
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{}", shown(text, self.out_is_terminal, self.colour))?;
        out.flush()
    }

    /// A part of a line of the result, flushed.
    ///
    /// # Errors
    /// If stdout is closed.
    pub fn part(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        write!(out, "{}", shown(text, self.out_is_terminal, false))?;
        out.flush()
    }

    /// Whether results go where somebody may see them as they come, in words.
    pub fn is_live(&self) -> bool {
        !self.json && self.file.is_none()
    }

    /// One line beside the result.
    ///
    /// # Errors
    /// If stderr is closed.
    pub fn note(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr().lock(), "{}", shown(text, self.err_is_terminal, false))
    }

    /// Text that stands out, where there is colour.
    pub fn strong(&self, text: &str) -> String {
        if self.colour { format!("{STRONG}{text}{PLAIN}") } else { text.to_owned() }
    }
}

/// The two sequences that this program writes itself.
const STRONG: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Contents and names come from others: on a terminal they must not be able to steer it. Scripts get
/// them as they are.
fn shown(text: &str, is_terminal: bool, colour: bool) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !is_terminal || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let tame = |text: &str| text.replace(steers, "\u{fffd}");
    if !colour {
        return Cow::Owned(tame(text));
    }
    let parts: Vec<String> = text
        .split(STRONG)
        .map(|part| part.split(PLAIN).map(tame).collect::<Vec<_>>().join(PLAIN))
        .collect();
    Cow::Owned(parts.join(STRONG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_are_protected() {
        let text = "a\x1b[2Jb\tc\nd\u{9b}e";
        assert_eq!(shown(text, true, false), "a\u{fffd}[2Jb\tc\nd\u{fffd}e");
        assert_eq!(shown(text, false, false), text);
        assert_eq!(shown("\x1b[1ma\x1b[0m\x1b[2J", true, true), "\x1b[1ma\x1b[0m\u{fffd}[2J");
    }
}
