//! Copies of messages: one message as nodes ask each other for it, and say that they hold it.

use minicbor::{Decode, Encode};

use crate::{
    name::{
        id::{EntryRef, sha256},
        number::Number,
    },
    wire::{
        cbor::encode,
        entry::{Facts, Stored},
    },
};

/// A message of which copies are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyOf {
    /// Its entry.
    pub place: EntryRef,
    /// A number that it has. `None`: none is known to the asker yet, any will do.
    pub number: Option<Number>,
}

/// The same between nodes. In an answer *number* is the one that the sender knows for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Copied {
    /// Its entry.
    #[n(0)]
    pub place: EntryRef,
    /// Tells its content: see [`mark`].
    #[cbor(n(1), with = "minicbor::bytes")]
    pub mark: [u8; 16],
    /// Its number.
    #[n(2)]
    pub number: Option<Number>,
}

impl Copied {
    /// Without its mark.
    #[must_use]
    pub fn name(&self) -> CopyOf {
        CopyOf { place: self.place, number: self.number }
    }
}

/// The start of the hash of an entry's facts and its whole body. The author of a log that was restored from a backup
/// writes another entry in the same place: that one has another mark. `None`: the body is not kept.
#[must_use]
pub fn mark(entry: &Stored) -> Option<[u8; 16]> {
    let Stored { facts, body, gone, .. } = entry;
    gone.is_none().then(|| of(*facts, body))
}

fn of(facts: Facts, body: &[u8]) -> [u8; 16] {
    let hash = sha256(&[b"clawmesh copy", &encode(&facts), body]);
    let mut mark = [0; 16];
    mark.copy_from_slice(&hash[..16]);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_two_entries_of_one_place_apart_and_a_dropped_body_has_none() {
        let facts = Facts { clock: 1, wall_ms: 2, kind: 1, visible: true };
        let entry = |facts, body: &[u8]| Stored {
            facts,
            body: body.to_vec().into(),
            backlink: None,
            seal: None,
            gone: None,
        };
        let first = mark(&entry(facts, b"one"));
        assert!(first.is_some() && first == mark(&entry(facts, b"one")));
        assert_ne!(first, mark(&entry(facts, b"two")));
        assert_ne!(first, mark(&entry(Facts { wall_ms: 3, ..facts }, b"one")));
        let gone = Some(crate::wire::entry::Gone { hash: [0; 32], len: 3 });
        assert_eq!(mark(&Stored { gone, ..entry(facts, b"") }), None);
    }
}
