//! Keys out of the bytes that a terminal sends.

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// Changes the line.
    Edit(Edit),
    Enter,
    Tab,
    /// Ctrl-L: an empty screen.
    Clear,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D: the end where the line is empty, else as Delete.
    Eof,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-\.
    Quit,
}

/// A change of the line, or of the place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Char(char),
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    /// Ctrl-U.
    CutBefore,
    /// Ctrl-K.
    CutAfter,
    /// Ctrl-W.
    CutWord,
    /// Ctrl-Y: the text that was cut last.
    Paste,
}

/// Reads bytes into keys. A sequence may come in parts: there are no time-outs.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    state: State,
    /// The bytes of a character that is not whole yet; the parameters of a sequence.
    held: Vec<u8>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// After Esc.
    Escape,
    /// After `Esc [`.
    Sequence,
    /// After `Esc O`.
    Single,
}

/// Longer parameters are nothing that this program knows; no more of them is kept.
const HELD_MAX: usize = 16;

impl Keys {
    /// The key that ends with this byte.
    pub(crate) fn feed(&mut self, byte: u8) -> Option<Key> {
        match self.state {
            State::Plain => self.plain(byte),
            State::Escape => self.escape(byte),
            State::Sequence => self.sequence(byte),
            State::Single => {
                self.state = State::Plain;
                named(byte, false)
            }
        }
    }

    fn plain(&mut self, byte: u8) -> Option<Key> {
        if byte < 0x20 || byte == 0x7f {
            self.held.clear();
            if byte == 0x1b {
                self.state = State::Escape;
                return None;
            }
            return control(byte);
        }
        self.held.push(byte);
        match std::str::from_utf8(&self.held) {
            Ok(text) => {
                let key = text
                    .chars()
                    .next()
                    .filter(|c| !c.is_control())
                    .map(|c| Key::Edit(Edit::Char(c)));
                self.held.clear();
                key
            }
            // Bytes that are no text are dropped.
            Err(error) => {
                if error.error_len().is_some() {
                    self.held.clear();
                }
                None
            }
        }
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        self.state = State::Plain;
        match byte {
            b'[' => {
                self.state = State::Sequence;
                None
            }
            b'O' => {
                self.state = State::Single;
                None
            }
            0x1b => {
                self.state = State::Escape;
                None
            }
            b'b' => Some(Key::Edit(Edit::WordLeft)),
            b'f' => Some(Key::Edit(Edit::WordRight)),
            0x7f | 0x08 => Some(Key::Edit(Edit::CutWord)),
            // Esc alone says nothing, and the next key is itself.
            control @ 0..=0x1f => self.plain(control),
            _ => None,
        }
    }

    fn sequence(&mut self, byte: u8) -> Option<Key> {
        // Parameters and what stands between, then one final byte.
        if (0x20..0x40).contains(&byte) {
            if self.held.len() < HELD_MAX {
                self.held.push(byte);
            }
            return None;
        }
        self.state = State::Plain;
        let held = std::mem::take(&mut self.held);
        if !(0x40..0x7f).contains(&byte) {
            // A broken sequence: the byte begins anew.
            return self.plain(byte);
        }
        let parameters = String::from_utf8_lossy(&held);
        let mut parameters = parameters.split(';');
        let first = parameters.next().unwrap_or_default();
        // 3 is Alt, 5 Ctrl.
        let by_word = matches!(parameters.next(), Some("3" | "5"));
        match (byte, first) {
            (b'~', "1" | "7") => Some(Key::Edit(Edit::Home)),
            (b'~', "4" | "8") => Some(Key::Edit(Edit::End)),
            (b'~', "3") => Some(Key::Edit(Edit::Delete)),
            (b'~', _) => None,
            _ => named(byte, by_word),
        }
    }
}

/// The key of a sequence's last byte.
fn named(byte: u8, by_word: bool) -> Option<Key> {
    match byte {
        b'A' => Some(Key::Edit(Edit::Up)),
        b'B' => Some(Key::Edit(Edit::Down)),
        b'C' if by_word => Some(Key::Edit(Edit::WordRight)),
        b'C' => Some(Key::Edit(Edit::Right)),
        b'D' if by_word => Some(Key::Edit(Edit::WordLeft)),
        b'D' => Some(Key::Edit(Edit::Left)),
        b'F' => Some(Key::Edit(Edit::End)),
        b'H' => Some(Key::Edit(Edit::Home)),
        _ => None,
    }
}

fn control(byte: u8) -> Option<Key> {
    let ctrl = |letter: u8| letter & 0x1f;
    match byte {
        b'\r' | b'\n' => Some(Key::Enter),
        b'\t' => Some(Key::Tab),
        0x7f => Some(Key::Edit(Edit::Backspace)),
        0x1c => Some(Key::Quit),
        byte if byte == ctrl(b'H') => Some(Key::Edit(Edit::Backspace)),
        byte if byte == ctrl(b'A') => Some(Key::Edit(Edit::Home)),
        byte if byte == ctrl(b'B') => Some(Key::Edit(Edit::Left)),
        byte if byte == ctrl(b'C') => Some(Key::Interrupt),
        byte if byte == ctrl(b'D') => Some(Key::Eof),
        byte if byte == ctrl(b'E') => Some(Key::Edit(Edit::End)),
        byte if byte == ctrl(b'F') => Some(Key::Edit(Edit::Right)),
        byte if byte == ctrl(b'K') => Some(Key::Edit(Edit::CutAfter)),
        byte if byte == ctrl(b'L') => Some(Key::Clear),
        byte if byte == ctrl(b'N') => Some(Key::Edit(Edit::Down)),
        byte if byte == ctrl(b'P') => Some(Key::Edit(Edit::Up)),
        byte if byte == ctrl(b'U') => Some(Key::Edit(Edit::CutBefore)),
        byte if byte == ctrl(b'W') => Some(Key::Edit(Edit::CutWord)),
        byte if byte == ctrl(b'Y') => Some(Key::Edit(Edit::Paste)),
        byte if byte == ctrl(b'Z') => Some(Key::Suspend),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.feed(*byte)).collect()
    }

    fn edits(bytes: &[u8]) -> Vec<Edit> {
        let edit = |key| if let Key::Edit(edit) = key { edit } else { panic!("{key:?}") };
        keys(bytes).into_iter().map(edit).collect()
    }

    #[test]
    fn sequences_are_keys_and_unknown_ones_are_nothing() {
        use Edit::{Char, CutWord, Delete, Down, End, Home, Left, Right, Up, WordLeft};
        assert_eq!(edits(b"\x1b[A\x1b[B\x1b[C\x1b[D"), [Up, Down, Right, Left]);
        assert_eq!(
            edits(b"\x1bOA\x1bOH\x1b[H\x1b[F\x1b[1~\x1b[8~"),
            [Up, Home, Home, End, Home, End]
        );
        assert_eq!(edits(b"\x1b[3~\x1b[1;5D\x1bb\x1b\x7f"), [Delete, WordLeft, WordLeft, CutWord]);
        assert_eq!(edits(b"\x1b[200~\x1b[?1;2c\x1b[15~\x1bxa"), [Char('a')]);
        assert_eq!(keys(b"\x1b\r\x1b[1\rb"), [Key::Enter, Key::Enter, Key::Edit(Char('b'))]);
        assert_eq!(edits(&[b"\x1b[" as &[u8], &[b'1'; 99], b"Ab"].concat()), [Up, Char('b')]);
    }

    #[test]
    fn characters_may_come_in_parts_and_bytes_that_are_none_are_dropped() {
        assert_eq!(edits("aé日🦀".as_bytes()), ['a', 'é', '日', '🦀'].map(Edit::Char));
        assert_eq!(edits(b"\xff\xe6\x97a\xc2\x9bb"), [Edit::Char('b')]);
        assert_eq!(keys(b"\xe6\x97\x03b"), [Key::Interrupt, Key::Edit(Edit::Char('b'))]);
        assert_eq!(edits(b"\x00\x02\x12"), [Edit::Left]);
    }
}
