//! The messages by which nodes get bytes that travel apart from their records.

use std::fmt;

use minicbor::{Decode, Encode, bytes::ByteVec};

use super::record::{CollectionNumber, RecordKey, Space};
use crate::name::id::{Hash, sha256};

/// Bytes that the sender lacks. Answered by [`SentContents`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WantedContents {
    /// Where the records are.
    #[n(0)]
    pub space: Space,
    /// Their kind.
    #[n(1)]
    pub collection: CollectionNumber,
    /// Their records.
    #[n(2)]
    pub keys: Vec<RecordKey>,
}

/// As many of the wanted bytes as one message takes, in the order in which they were wanted.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SentContents {
    /// Where the records are.
    #[n(0)]
    pub space: Space,
    /// Their kind.
    #[n(1)]
    pub collection: CollectionNumber,
    /// The bytes.
    #[n(2)]
    pub contents: Vec<Content>,
    /// Those that the sender has not. Bytes that neither list names are to be asked for again.
    #[n(3)]
    pub lacking: Vec<RecordKey>,
}

/// Bytes that travel apart from a record.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Content {
    /// The record.
    #[n(0)]
    pub key: RecordKey,
    /// Of the bytes: the record says it, too.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub hash: Hash,
    /// The bytes.
    #[n(2)]
    pub bytes: ByteVec,
}

impl Content {
    /// Of these bytes.
    #[must_use]
    pub fn of(key: RecordKey, bytes: &[u8]) -> Content {
        Content { key, hash: sha256(&[bytes]), bytes: bytes.to_vec().into() }
    }

    /// Whether the hash is that of the bytes. Costly: done off the engine's thread.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        sha256(&[&self.bytes]) == self.hash
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({:?}, {} bytes)", self.key, self.bytes.len())
    }
}
