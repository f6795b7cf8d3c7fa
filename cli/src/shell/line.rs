//! A line that is being typed, and those before it.

use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation;

use crate::limits::{TYPED_BYTES_MAX, TYPED_LINES_MAX};
use crate::shell::keys::Edit;

/// The text, the place where the next character goes, and the lines that the arrows bring back: in memory alone.
#[derive(Debug, Default)]
pub(crate) struct Line {
    text: String,
    at: usize,
    /// The text that was cut last.
    cut: String,
    /// The latest at the end.
    before: VecDeque<String>,
    /// Which of them is shown.
    shown: Option<usize>,
    /// The new line, while one of them is shown.
    new: String,
}

impl Line {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The cursor's place, in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The whole line, which the arrows bring back from now on.
    pub(crate) fn take(&mut self) -> String {
        let line = std::mem::take(&mut self.text);
        self.clear();
        if !line.trim().is_empty() && self.before.back() != Some(&line) {
            if self.before.len() == TYPED_LINES_MAX {
                self.before.pop_front();
            }
            self.before.push_back(line.clone());
        }
        line
    }

    /// Nothing is typed.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        (self.at, self.shown) = (0, None);
        self.new.clear();
    }

    pub(crate) fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() <= TYPED_BYTES_MAX {
            self.text.insert_str(self.at, text);
            self.at += text.len();
        }
    }

    /// Changes the text, or the place in it.
    pub(crate) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Edit::Backspace => drop(self.remove(self.left(), self.at)),
            Edit::Delete => drop(self.remove(self.at, self.right())),
            Edit::Left => self.at = self.left(),
            Edit::Right => self.at = self.right(),
            Edit::WordLeft => self.at = self.word_left(),
            Edit::WordRight => self.at = self.word_right(),
            Edit::Home => self.at = 0,
            Edit::End => self.at = self.text.len(),
            Edit::Up => self.bring(self.shown.unwrap_or(self.before.len()).checked_sub(1)),
            Edit::Down => self.bring(self.shown.map(|at| at + 1)),
            Edit::CutBefore => self.cut(0, self.at),
            Edit::CutAfter => self.cut(self.at, self.text.len()),
            Edit::CutWord => self.cut(self.word_left(), self.at),
            Edit::Paste => self.insert(&self.cut.clone()),
        }
    }

    /// Shows the line at this place of those before, or after the last the new one; nothing for `None`.
    fn bring(&mut self, place: Option<usize>) {
        let Some(place) = place else { return };
        let text = match self.before.get(place) {
            Some(line) => line.clone(),
            None => std::mem::take(&mut self.new),
        };
        let left = std::mem::replace(&mut self.text, text);
        if self.shown.is_none() {
            self.new = left;
        }
        self.shown = Some(place).filter(|place| *place < self.before.len());
        self.at = self.text.len();
    }

    fn cut(&mut self, from: usize, to: usize) {
        let cut = self.remove(from, to);
        if !cut.is_empty() {
            self.cut = cut;
        }
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        self.at = from;
        self.text.drain(from..to).collect()
    }

    fn left(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.at + self.text[self.at..].graphemes(true).next().map_or(0, str::len)
    }

    /// The begin of the word before: words stand between blanks.
    fn word_left(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    /// The end of the word after.
    fn word_right(&self) -> usize {
        let after = &self.text[self.at..];
        let word = after.trim_start();
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        self.at + (after.len() - word.len()) + end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut Line, text: &str) {
        text.chars().for_each(|c| line.edit(Edit::Char(c)));
    }

    fn pressed(line: &mut Line, edits: &[Edit]) -> (String, usize) {
        edits.iter().for_each(|edit| line.edit(*edit));
        (line.text.clone(), line.at)
    }

    #[test]
    fn keys_edit_whole_characters_and_words() {
        use Edit::{
            Backspace, CutAfter, CutBefore, CutWord, Delete, End, Home, Left, Paste, Right,
        };
        let mut line = Line::default();
        // An e with an accent of its own, and a family of three.
        typed(&mut line, "e\u{301} 👨\u{200d}👩\u{200d}👧");
        assert_eq!(pressed(&mut line, &[Left, Left]).1, 3);
        assert_eq!(pressed(&mut line, &[Right, Delete, Left, Backspace]), (" ".to_owned(), 0));
        line.clear();
        typed(&mut line, "one two  three");
        assert_eq!(pressed(&mut line, &[CutWord]), ("one two  ".to_owned(), 9));
        assert_eq!(pressed(&mut line, &[CutWord, CutWord, CutWord]), (String::new(), 0));
        assert_eq!(pressed(&mut line, &[Paste, End]), ("one ".to_owned(), 4));
        assert_eq!(pressed(&mut line, &[Home, Right, CutAfter]), ("o".to_owned(), 1));
        assert_eq!(pressed(&mut line, &[CutBefore, Paste, Paste]), ("oo".to_owned(), 2));
        typed(&mut line, " zwei 日本");
        assert_eq!(pressed(&mut line, &[Edit::WordLeft, Edit::WordLeft]).1, 3);
        assert_eq!(pressed(&mut line, &[Edit::WordRight, Edit::WordRight]).1, line.text.len());
        let all = pressed(&mut line, &[Left, Delete, Delete, Right, Home, Left, Backspace]);
        assert_eq!(all, ("oo zwei 日".to_owned(), 0));
    }

    #[test]
    fn arrows_bring_lines_back_and_the_new_one_too() {
        use Edit::{Down, Up};
        let mut line = Line::default();
        assert_eq!(pressed(&mut line, &[Up, Down]), (String::new(), 0));
        for text in ["one", "two", "two", "  "] {
            typed(&mut line, text);
            assert_eq!(line.take(), text);
        }
        typed(&mut line, "new");
        assert_eq!(pressed(&mut line, &[Up]).0, "two");
        assert_eq!(pressed(&mut line, &[Up, Up, Up]).0, "one");
        assert_eq!(pressed(&mut line, &[Down, Down]), ("new".to_owned(), 3));
        assert_eq!(pressed(&mut line, &[Down]).0, "new");
        assert_eq!(pressed(&mut line, &[Up, Up]).0, "one");
        assert_eq!(line.take(), "one");
        assert_eq!(pressed(&mut line, &[Up, Up]).0, "two");
    }

    #[test]
    fn lines_have_a_bound() {
        let mut line = Line::default();
        line.insert(&"x".repeat(TYPED_BYTES_MAX));
        typed(&mut line, "yé");
        assert_eq!(line.text.len(), TYPED_BYTES_MAX);
        for number in 0..2 * TYPED_LINES_MAX {
            line.clear();
            line.insert(&number.to_string());
            line.take();
        }
        assert_eq!(line.before.len(), TYPED_LINES_MAX);
    }
}
