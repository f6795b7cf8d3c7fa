//! Texts by small numbers: a message's id is kept once.

use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Box<str>, u32>);

impl Names {
    /// The number of this text: the next one, if it is new.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.insert(text.into(), next);
        next
    }

    /// The text of a number. Slow: for findings alone.
    pub(crate) fn text(&self, number: u32) -> &str {
        self.0.iter().find(|(_, of)| **of == number).map_or("?", |(text, _)| text)
    }
}
