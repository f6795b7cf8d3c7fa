//! Which numbers are one message's.
//!
//! After a split a message may have several (docs/numbering.md). The lowest is the same at all nodes that
//! know them all, so messages are told apart and ordered by it; people are shown the one under
//! which their node delivered it.

use std::collections::HashMap;

use protocol::object::Message;

use crate::limits::NUMBERS_OF_MESSAGE_MAX;

/// See the module. A number that nothing is known of is the only one of its message.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Of a number that is not the lowest: a lower one of the same message.
    lower: HashMap<u64, u64>,
    /// By the lowest: the one that was given first here.
    shown: HashMap<u64, u64>,
}

impl Numbers {
    /// The lowest number of the message that has this one.
    pub fn lowest(&self, mut number: u64) -> u64 {
        // Each step goes down.
        while let Some(lower) = self.lower.get(&number) {
            number = *lower;
        }
        number
    }

    /// The number of the message that people here know it by.
    pub fn shown(&self, number: u64) -> u64 {
        let lowest = self.lowest(number);
        self.shown.get(&lowest).copied().unwrap_or(lowest)
    }

    /// How many numbers are not the lowest of their message.
    pub fn aliases(&self) -> usize {
        self.lower.len()
    }

    /// Takes note of a message's numbers. Returns numbers that were the lowest of this message as far as
    /// was known, and are not.
    pub fn learn(&mut self, message: &Message) -> Vec<u64> {
        let Some(note) = &message.mesh else { return Vec::new() };
        let named = note.canonical_seq.iter().chain(&note.numbers).copied();
        let all = named.take(NUMBERS_OF_MESSAGE_MAX).chain([message.seq]);
        let mut lowest: Vec<u64> = all.map(|number| self.lowest(number)).collect();
        lowest.sort_unstable();
        lowest.dedup();
        let others = lowest.split_off(1);
        let lowest = lowest[0];
        if others.is_empty() {
            return others;
        }
        let mut shown = self.shown.get(&lowest).copied();
        for other in &others {
            self.lower.insert(*other, lowest);
            shown = shown.or(self.shown.remove(other));
        }
        self.shown.insert(lowest, shown.unwrap_or(message.seq));
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lantern::samples::message;
    use protocol::object::MeshNote;

    fn with(seq: u64, canonical: Option<u64>, numbers: &[u64]) -> Message {
        let note =
            MeshNote { canonical_seq: canonical, numbers: numbers.to_vec(), ..MeshNote::default() };
        Message { mesh: Some(note), ..message(seq, "x") }
    }

    #[test]
    fn every_number_leads_to_the_lowest_and_to_the_one_that_is_shown() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.lowest(7), numbers.shown(7)), (7, 7), "nothing is known of it");
        numbers.learn(&message(7, "x"));
        numbers.learn(&with(7, None, &[7]));
        assert_eq!(numbers.aliases(), 0, "one number needs no note");
        numbers.learn(&with(900, Some(5), &[5, 700, 900]));
        for number in [5, 700, 900] {
            assert_eq!((numbers.lowest(number), numbers.shown(number)), (5, 900));
        }
        // The sender's node: delivered under the lowest, numbered again later.
        numbers.learn(&with(6, None, &[6, 800]));
        assert_eq!((numbers.lowest(800), numbers.shown(800)), (6, 6));
    }

    #[test]
    fn what_is_learned_later_joins_what_was_known() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.learn(&with(50, Some(40), &[])), [50]);
        assert_eq!(numbers.learn(&with(60, Some(30), &[])), [60]);
        assert_eq!(numbers.learn(&with(60, Some(30), &[])), [0; 0], "nothing new");
        // The two are one.
        assert_eq!(numbers.learn(&with(70, Some(50), &[20, 60, 70])), [30, 40, 70]);
        for number in [20, 30, 40, 50, 60, 70] {
            assert_eq!(numbers.lowest(number), 20);
            assert_eq!(numbers.shown(number), 60, "as it was given first, of the lowest known");
        }
    }

    #[test]
    fn a_node_cannot_make_it_grow_without_bound() {
        let mut numbers = Numbers::default();
        let many: Vec<u64> = (1..100_000).collect();
        numbers.learn(&with(7, Some(1), &many));
        assert!(numbers.aliases() <= NUMBERS_OF_MESSAGE_MAX);
    }
}
