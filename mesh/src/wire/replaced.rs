//! The messages by which nodes ask each other for states that records have replaced.

use minicbor::{
    Decode, Encode,
    bytes::{ByteArray, ByteVec},
};

use super::record::{CollectionNumber, Record, Space, Stamp};
use crate::name::id::sha256;

/// The beginning of the ids that are asked for: all of a room's, or one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Ids {
    /// Those of a room's records ([`crate::wire::record::RecordId::SUBJECT_BYTES`]).
    #[n(0)]
    Of(#[n(0)] ByteArray<8>),
    /// This one.
    #[n(1)]
    Only(#[n(0)] ByteArray<16>),
}

impl Ids {
    /// The bytes with which they begin.
    #[must_use]
    pub fn beginning(&self) -> &[u8] {
        match self {
            Ids::Of(first) => &**first,
            Ids::Only(id) => &**id,
        }
    }
}

/// States of records that others have replaced. Answered by [`SentReplaced`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WantedReplaced {
    /// Comes back with the answer.
    #[n(0)]
    pub nonce: u64,
    /// Where the records are.
    #[n(1)]
    pub space: Space,
    /// Their kind.
    #[n(2)]
    pub collection: CollectionNumber,
    /// Their names.
    #[n(3)]
    pub ids: Ids,
    /// The one state of this stamp, with the bytes that travel apart. `None`: all, without these.
    #[n(4)]
    pub stamp: Option<Stamp>,
}

/// As many of them as one message takes: by record, and of each record the latest first.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SentReplaced {
    /// From the question.
    #[n(0)]
    pub nonce: u64,
    /// The states.
    #[n(1)]
    pub states: Vec<ReplacedState>,
}

/// A state of a record that another one has replaced.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReplacedState {
    /// The state.
    #[n(0)]
    pub record: Record,
    /// Its bytes that travel apart. `None`: it has none, they were not asked for, or the sender lacks them.
    #[n(1)]
    pub bytes: Option<ByteVec>,
    /// The sender keeps it for so long. Milliseconds.
    #[n(2)]
    pub left_ms: u64,
}

impl ReplacedState {
    /// Whether the bytes are those that the record says. Costly: done off the engine's thread.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.as_ref().is_none_or(|bytes| {
            let told = self.record.apart;
            told.is_some_and(|apart| apart.hash == sha256(&[bytes]))
        })
    }
}

impl std::fmt::Debug for ReplacedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.bytes.as_ref().map(|bytes| bytes.len());
        write!(f, "ReplacedState({:?}, {bytes:?} bytes, {} ms)", self.record.id, self.left_ms)
    }
}
