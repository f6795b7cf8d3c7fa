//! Texts by small numbers: a message's id is kept once.

use std::{collections::HashMap, rc::Rc};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Rc<str>, u32>,
    texts: Vec<Rc<str>>,
}

impl Names {
    /// The number of this text: the next one, if it is new.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (next, text) = (u32::try_from(self.texts.len()).unwrap_or(u32::MAX), Rc::from(text));
        self.texts.push(Rc::clone(&text));
        self.numbers.insert(text, next);
        next
    }

    /// The text of a number.
    pub(crate) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("?", |text| text)
    }
}
