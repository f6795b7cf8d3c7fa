//! Which of the contents that travel apart a node keeps, where it need not keep all: of each shelf the newest that fit.

use std::collections::BTreeMap;

use super::contents::Name;
use crate::{
    limits::{FINDER_LETTERS_BYTES_MAX, FINDER_RECEIVED_BYTES_MAX},
    name::id::KeyPrint,
    wire::record::Stamp,
};

/// The reason for which a node keeps a content, and a bound of such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shelf {
    /// This account has written it, and was presented here.
    Sent(KeyPrint),
    /// It is for this account, which was presented here.
    Received(KeyPrint),
    /// It is of others, and carried for them.
    Carried,
}

/// The place of a content on its shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shelved {
    pub(super) shelf: Shelf,
    /// Of its record.
    pub(super) stamp: Stamp,
}

/// By age: the oldest first.
type Row = BTreeMap<(Stamp, Name), u32>;

/// All of one shelf: those that fit are newer than all others.
#[derive(Clone, Debug, Default)]
struct Rows {
    kept: Row,
    /// Of those that are kept.
    bytes: u64,
    rest: Row,
}

impl Rows {
    /// Keeps the newest of the rest, as long as they fit.
    fn fill(&mut self, max: u64, moved: &mut Moved) {
        while let Some(newest) = self.rest.last_entry() {
            let length = u64::from(*newest.get());
            if self.bytes + length > max {
                break;
            }
            let (age, length) = newest.remove_entry();
            self.bytes += u64::from(length);
            self.kept.insert(age, length);
            moved.kept.push(age.1);
        }
    }
}

/// Contents whose fate has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// They fit from now on.
    pub(super) kept: Vec<Name>,
    /// They do not any more.
    pub(super) left: Vec<Name>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Shelves {
    rows: BTreeMap<Shelf, Rows>,
    /// Bytes that are carried for others.
    carry: u64,
}

impl Shelves {
    pub(super) fn new(carry: u64) -> Shelves {
        Shelves { rows: BTreeMap::new(), carry }
    }

    /// Bytes of a shelf.
    fn max(&self, shelf: Shelf) -> u64 {
        match shelf {
            // Two sides of a split, each within the bound.
            Shelf::Sent(_) => 2 * FINDER_LETTERS_BYTES_MAX,
            Shelf::Received(_) => FINDER_RECEIVED_BYTES_MAX,
            Shelf::Carried => self.carry,
        }
    }

    /// Puts a content on its shelf.
    pub(super) fn put(&mut self, name: Name, at: Shelved, length: u32) -> Moved {
        let max = self.max(at.shelf);
        let rows = self.rows.entry(at.shelf).or_default();
        let (age, mut moved) = ((at.stamp, name), Moved::default());
        if rows.rest.last_key_value().is_some_and(|(newest, _)| age < *newest) {
            rows.rest.insert(age, length);
            moved.left.push(name);
            return moved;
        }
        rows.kept.insert(age, length);
        rows.bytes += u64::from(length);
        moved.kept.push(name);
        while rows.bytes > max {
            let Some((oldest, length)) = rows.kept.pop_first() else { break };
            rows.bytes -= u64::from(length);
            rows.rest.insert(oldest, length);
            moved.kept.retain(|kept| *kept != oldest.1);
            moved.left.push(oldest.1);
        }
        moved
    }

    /// From now on so many bytes are carried for others.
    pub(super) fn set_carry(&mut self, carry: u64) -> Moved {
        let mut moved = Moved::default();
        let before = std::mem::replace(&mut self.carry, carry);
        let Some(rows) = self.rows.get_mut(&Shelf::Carried).filter(|_| before != carry) else {
            return moved;
        };
        while rows.bytes > carry {
            let Some((oldest, length)) = rows.kept.pop_first() else { break };
            rows.bytes -= u64::from(length);
            rows.rest.insert(oldest, length);
            moved.left.push(oldest.1);
        }
        rows.fill(carry, &mut moved);
        moved
    }

    /// Takes one off: others may fit for it.
    pub(super) fn take(&mut self, name: Name, at: Shelved) -> Moved {
        let max = self.max(at.shelf);
        let mut moved = Moved::default();
        let Some(rows) = self.rows.get_mut(&at.shelf) else { return moved };
        let age = (at.stamp, name);
        rows.rest.remove(&age);
        if let Some(length) = rows.kept.remove(&age) {
            rows.bytes -= u64::from(length);
            rows.fill(max, &mut moved);
        }
        if rows.kept.is_empty() && rows.rest.is_empty() {
            self.rows.remove(&at.shelf);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record::{CollectionNumber, RecordId, RecordKey, Space};

    fn name(n: u8) -> Name {
        let key = RecordKey { id: RecordId([n; 16]), owner: Some(KeyPrint([1; 16])) };
        Name { space: Space::Mesh, collection: CollectionNumber(36), key }
    }

    fn at(n: u8) -> Shelved {
        Shelved { shelf: Shelf::Carried, stamp: Stamp(n.into()) }
    }

    fn kept(shelves: &Shelves) -> Vec<Name> {
        shelves
            .rows
            .get(&Shelf::Carried)
            .map_or_else(Vec::new, |rows| rows.kept.keys().map(|(_, name)| *name).collect())
    }

    #[test]
    fn the_newest_that_fit_are_kept_in_whatever_order_they_come() {
        let lengths = [30, 50, 40, 20, 10];
        let mut orders = vec![[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 4, 0, 3, 2]];
        orders.push([3, 2, 1, 0, 4]);
        for order in orders {
            let mut shelves = Shelves::new(100);
            let mut held = std::collections::BTreeSet::new();
            let mut follow = |moved: Moved| {
                held.extend(moved.kept);
                held.retain(|name| !moved.left.contains(name));
                held.clone()
            };
            for n in order {
                let length = lengths[usize::from(n)];
                let now = follow(shelves.put(name(n), at(n), length));
                assert_eq!(now.into_iter().collect::<Vec<_>>(), kept(&shelves));
            }
            // 10 + 20 + 40 fit, 50 more do not; and nothing that is older than what does not.
            assert_eq!(kept(&shelves), [2, 3, 4].map(name));
            assert_eq!(shelves.take(name(2), at(2)).kept, [name(1)]);
            assert_eq!(kept(&shelves), [1, 3, 4].map(name));
            assert_eq!(shelves.take(name(1), at(1)).kept, [name(0)]);
            assert_eq!(kept(&shelves), [0, 3, 4].map(name));
            for n in [0, 3, 4] {
                shelves.take(name(n), at(n));
            }
            assert!(shelves.rows.is_empty());
        }
    }

    #[test]
    fn rooms_that_are_carried_take_of_the_same_bound() {
        let mut shelves = Shelves::new(100);
        for n in 0..5 {
            shelves.put(name(n), at(n), 20);
        }
        let moved = shelves.set_carry(70);
        assert_eq!((moved.left, moved.kept), (vec![name(0), name(1)], Vec::new()));
        assert_eq!(shelves.set_carry(70), Moved::default());
        assert_eq!(shelves.set_carry(90).kept, [name(1)]);
        assert_eq!(kept(&shelves), [1, 2, 3, 4].map(name));
    }

    #[test]
    fn a_node_that_carries_nothing_keeps_its_own() {
        let mut shelves = Shelves::new(0);
        assert_eq!(shelves.put(name(1), at(1), 1).left, [name(1)]);
        let own = Shelved { shelf: Shelf::Received(KeyPrint([1; 16])), stamp: Stamp(1) };
        assert_eq!(shelves.put(name(2), own, 1).kept, [name(2)]);
    }
}
