//! The order of directory entries: by their numbers, then by position. And the names of rooms, by those of their
//! numbers that count.
//!
//! A node that forked its log or was removed may have given numbers in entries that do not count, and others may know
//! nothing of these numbers. So such a number decides nothing where there is one that counts.

use std::collections::BTreeMap;

use crate::{
    limits::NAME_ERAS_MAX,
    name::{
        id::{LogId, RoomId},
        number::{Era, Number},
    },
};

/// Where a fact stands among others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    pub(super) numbered: Numbered,
    pub(super) clock: u64,
    pub(super) log: LogId,
    pub(super) seq: u64,
}

impl Standing {
    pub(super) fn is_numbered(self) -> bool {
        self.numbered != Numbered::Not
    }
}

/// The lowest number of an entry: first those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Numbered {
    Counting(Number),
    /// It has no other yet.
    Lost(Number),
    Not,
}

/// The lowest number that an entry has in each era that numbered it: all of them, or the lowest eras.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Firsts {
    /// Rising, at most one of each era.
    counting: Vec<Number>,
    lost: Vec<Number>,
}

impl Firsts {
    pub(super) fn add(&mut self, number: Number, counts: bool) {
        let list = if counts { &mut self.counting } else { &mut self.lost };
        match list.binary_search_by_key(&number.era(), |known| known.era()) {
            Ok(place) => list[place] = number.min(list[place]),
            Err(place) => {
                list.insert(place, number);
                list.truncate(NAME_ERAS_MAX);
            }
        }
    }

    /// Numbers that did count until now do not.
    pub(super) fn lose(&mut self, lost: impl Fn(Number) -> bool) {
        let lost: Vec<Number> = self.counting.extract_if(.., |number| lost(*number)).collect();
        lost.into_iter().for_each(|number| self.add(number, false));
    }

    pub(super) fn has_lost_any(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(super) fn numbered(&self) -> Numbered {
        let counting = self.counting.first().map(|number| Numbered::Counting(*number));
        let lost = || self.lost.first().map(|number| Numbered::Lost(*number));
        counting.or_else(lost).unwrap_or(Numbered::Not)
    }

    /// Whether each era that numbered this entry had numbered one of these before.
    pub(super) fn are_later_everywhere(&self, rivals: &[&Firsts]) -> bool {
        let shown = if self.counting.is_empty() { &self.lost } else { &self.counting };
        are_later(shown, rivals)
    }

    /// It was first in an era, and is not by the numbers that count: other nodes have it for later, or not
    /// numbered at all.
    pub(super) fn lost_their_lead(&self, rivals: &[&Firsts]) -> bool {
        !are_later(&self.lost, rivals) && are_later(&self.counting, rivals)
    }

    fn in_era(&self, era: Era) -> Option<Number> {
        let find = |list: &[Number]| list.iter().find(|number| number.era() == era).copied();
        find(&self.counting).or_else(|| find(&self.lost))
    }
}

fn are_later(numbers: &[Number], rivals: &[&Firsts]) -> bool {
    let is_later = |number: &Number| {
        rivals.iter().any(|rival| rival.in_era(number.era()).is_some_and(|first| first < *number))
    };
    numbers.iter().all(is_later)
}

/// From which number on none of an era counts, by directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Lost(BTreeMap<(RoomId, Era), Number>);

impl Lost {
    pub(super) fn add(&mut self, directory: RoomId, from: Number) {
        let first = self.0.entry((directory, from.era())).or_insert(from);
        *first = from.min(*first);
    }

    pub(super) fn counts(&self, directory: RoomId, number: Number) -> bool {
        self.0.get(&(directory, number.era())).is_none_or(|from| number < *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_eras_that_numbered_an_entry_the_lowest_are_known() {
        let max = u32::try_from(NAME_ERAS_MAX).expect("few");
        let number = |n: u32| Era::new(1 + n, 5).expect("an era").number(3);
        let mut firsts = Firsts::default();
        for n in (0..max + 9).rev() {
            firsts.add(number(n), true);
        }
        assert!(firsts.counting.iter().copied().eq((0..max).map(number)));
        firsts.lose(|lost| lost == number(0));
        assert_eq!((firsts.counting.len(), &*firsts.lost), (NAME_ERAS_MAX - 1, &[number(0)][..]));
    }
}
