//! Copies of messages: one message as nodes ask each other for it, and say that they hold it.

use minicbor::{Decode, Encode};

use crate::{
    name::{
        id::{AgentId, EntryRef, sha256},
        number::Number,
    },
    wire::{cbor::encode, entry::Stored},
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

/// An agent that was given a message by the node that says so.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AgentState {
    /// The agent.
    #[cbor(n(0), with = "crate::wire::cbor::text")]
    pub agent: AgentId,
    /// It has confirmed it; else it was given it.
    #[n(1)]
    pub confirmed: bool,
    /// When, by the clock of its node. Unix milliseconds.
    #[n(2)]
    pub at_ms: u64,
}

impl Copied {
    /// Without its mark.
    #[must_use]
    pub fn name(&self) -> CopyOf {
        CopyOf { place: self.place, number: self.number }
    }
}

/// The start of the hash of an entry's facts and of the hash of its body. The author of a log that was restored from a
/// backup writes another entry in the same place: that one has another mark. A dropped body changes nothing.
#[must_use]
pub fn mark(entry: &Stored) -> [u8; 16] {
    let body = entry.gone.map_or_else(|| sha256(&[&entry.body]), |gone| gone.hash);
    let hash = sha256(&[b"clawmesh copy", &encode(&entry.facts), &body]);
    let mut mark = [0; 16];
    mark.copy_from_slice(&hash[..16]);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::entry::{Facts, Gone};

    #[test]
    fn a_mark_tells_two_entries_of_one_place_apart_and_outlives_the_body() {
        let facts = Facts { clock: 1, wall_ms: 2, kind: 1, visible: true };
        let entry = |facts, body: &[u8]| Stored {
            facts,
            body: body.to_vec().into(),
            backlink: None,
            seal: None,
            gone: None,
        };
        let first = mark(&entry(facts, b"one"));
        assert_eq!(first, mark(&entry(facts, b"one")));
        assert_ne!(first, mark(&entry(facts, b"two")));
        assert_ne!(first, mark(&entry(Facts { wall_ms: 3, ..facts }, b"one")));
        let gone = Some(Gone { hash: sha256(&[b"one"]), len: 3 });
        assert_eq!(mark(&Stored { gone, ..entry(facts, b"") }), first);
    }
}
