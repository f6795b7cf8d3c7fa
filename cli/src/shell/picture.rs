//! The prompt and the line that is being typed, as they stand on a terminal.
//!
//! The terminal breaks long lines itself. Of a line that would take more than half of the screen only the rows around the
//! cursor are shown: what arrives has to be seen above it, and rows that have left the screen cannot be written again.

use std::fmt::Write;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const PROMPT: &str = "> ";

/// Columns and rows of a terminal, neither of them 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// A line as it was written, and how to get off it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// All that is to be written, from the begin of an empty row.
    pub(crate) written: String,
    /// The cursor's cell, counted from the first one that was written.
    cells: usize,
    /// Rows of it below the cursor.
    below: usize,
}

impl Picture {
    pub(crate) fn of(text: &str, at: usize, size: Size) -> Picture {
        let layout = Layout::of(text, at, size.columns);
        let count = layout.rows.len();
        let shown = count.min(size.rows.div_ceil(2));
        // As much before the cursor as fits, for one types at the end.
        let first = (layout.cursor.0 + 1).saturating_sub(shown);
        let last = first + shown - 1;
        let from = layout.rows[first];
        let to = layout.rows.get(last + 1).copied().unwrap_or(text.len());
        let mut written = if first == 0 { PROMPT.to_owned() } else { String::new() };
        written.extend(text[from..to].chars().map(drawn));
        // A full row leaves the cursor on it until something follows.
        if layout.ends_full && last + 1 == count && first < last {
            written.push_str("\r\n");
        }
        let (row, column) = layout.cursor;
        let below = last - row;
        written.push('\r');
        // Writing into a string does not fail.
        if below > 0 {
            let _ = write!(written, "\u{1b}[{below}A");
        }
        if column > 0 {
            let _ = write!(written, "\u{1b}[{column}C");
        }
        let cells = (row - first) * size.columns + column;
        Picture { written, cells, below }
    }

    /// Sequences that take it away, on a terminal of so many columns now.
    pub(crate) fn erased(&self, columns: usize) -> String {
        // A terminal that has become narrower or wider has broken the line anew.
        match self.cells / columns {
            0 => "\r\u{1b}[J".to_owned(),
            rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
        }
    }

    /// Sequences that leave it as it is and go below it.
    pub(crate) fn left(&self) -> String {
        match self.below {
            0 => "\r\n".to_owned(),
            rows => format!("\u{1b}[{rows}B\r\n"),
        }
    }
}

/// The character that stands for one on the screen: never one that steers it.
fn drawn(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// Where a text breaks.
struct Layout {
    /// Where each row begins, in bytes.
    rows: Vec<usize>,
    /// Row and column.
    cursor: (usize, usize),
    /// The last row is empty, and the one before is full.
    ends_full: bool,
}

impl Layout {
    fn of(text: &str, at: usize, columns: usize) -> Layout {
        let mut rows = vec![0];
        let mut column = PROMPT.len();
        let mut cursor = None;
        for (place, grapheme) in text.grapheme_indices(true) {
            let width = if grapheme.chars().any(char::is_control) { 1 } else { grapheme.width() };
            if column + width > columns {
                rows.push(place);
                column = 0;
            }
            if place >= at && cursor.is_none() {
                cursor = Some((rows.len() - 1, column));
            }
            column += width;
        }
        let ends_full = column >= columns;
        if ends_full {
            rows.push(text.len());
            column = 0;
        }
        let cursor = cursor.unwrap_or((rows.len() - 1, column));
        Layout { rows, cursor, ends_full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text: &str, at: usize, columns: usize, half: usize) -> Picture {
        Picture::of(text, at, Size { columns, rows: 2 * half })
    }

    #[test]
    fn lines_break_where_terminals_break_them() {
        let written = |text: &str, at| picture(text, at, 10, 5).written;
        assert_eq!(written("", 0), "> \r\u{1b}[2C");
        assert_eq!(written("abc", 1), "> abc\r\u{1b}[3C");
        assert_eq!(written("abcdefg", 7), "> abcdefg\r\u{1b}[9C");
        // A full row.
        assert_eq!(written("abcdefgh", 8), "> abcdefgh\r\n\r");
        assert_eq!(written("abcdefgh", 7), "> abcdefgh\r\n\r\u{1b}[1A\u{1b}[9C");
        assert_eq!(written("abcdefghij", 0), "> abcdefghij\r\u{1b}[1A\u{1b}[2C");
        // A wide character is not broken.
        assert_eq!(written("abcdefg日", 7), "> abcdefg日\r");
        assert_eq!(written("a\tb\u{9b}", 2), "> a b\u{fffd}\r\u{1b}[4C");
    }

    #[test]
    fn it_is_taken_away_whole_or_left() {
        let long = "x".repeat(28);
        let at_end = picture(&long, 28, 10, 5);
        assert_eq!(
            (at_end.erased(10), at_end.left()),
            ("\r\u{1b}[3A\u{1b}[J".into(), "\r\n".into())
        );
        assert_eq!(at_end.erased(15), "\r\u{1b}[2A\u{1b}[J");
        let at_begin = picture(&long, 0, 10, 5);
        assert_eq!(at_begin.erased(10), "\r\u{1b}[J");
        assert_eq!(at_begin.left(), "\u{1b}[3B\r\n");
    }

    #[test]
    fn of_a_line_beyond_half_of_the_screen_the_rows_at_the_cursor_are_shown() {
        let text: String = ('a'..='z').chain('0'..='9').collect();
        let end = picture(&text, text.len(), 10, 2);
        assert_eq!(end.written, "stuvwxyz0123456789\r\u{1b}[8C");
        assert_eq!((end.erased(10), end.left()), ("\r\u{1b}[1A\u{1b}[J".into(), "\r\n".into()));
        let begin = picture(&text, 0, 10, 2);
        assert_eq!(begin.written, "> abcdefghijklmnopqr\r\u{1b}[1A\u{1b}[2C");
        let middle = picture(&text, 12, 10, 1);
        assert_eq!(middle.written, "ijklmnopqr\r\u{1b}[4C");
        assert_eq!(picture("", 0, 1, 1).written, "\r");
    }
}
