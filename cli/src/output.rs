//! The one place that writes: results to stdout, everything else to stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Standard output and error.
#[derive(Debug)]
pub struct Output {
    out_is_terminal: bool,
    err_is_terminal: bool,
}

impl Output {
    /// Looks once where the streams lead.
    pub fn new() -> Self {
        Self {
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
        }
    }

    /// One line of the result, flushed.
    ///
    /// # Errors
    /// If stdout is closed.
    pub fn line(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", shown(text, self.out_is_terminal))?;
        out.flush()
    }

    /// One line of whatever is not the result.
    ///
    /// # Errors
    /// If stderr is closed.
    pub fn note(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr().lock(), "{}", shown(text, self.err_is_terminal))
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

/// Contents and names come from others: on a terminal they must not be able to steer it. Scripts get
/// them as they are.
fn shown(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if is_terminal && text.contains(steers) {
        Cow::Owned(text.replace(steers, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_are_protected() {
        let text = "a\x1b[2Jb\tc\nd\u{9b}e";
        assert_eq!(shown(text, true), "a\u{fffd}[2Jb\tc\nd\u{fffd}e");
        assert_eq!(shown(text, false), text);
    }
}
