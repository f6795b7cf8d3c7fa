//! Accounts: keys that write records, and nothing else. They have no agents and no rooms.

use std::fmt;

use minicbor::{Decode, Encode};

use super::id::{sha256, write_hex};

/// A name that an account claims, as a hash: a dialect says of what. The directory keeps it for ever, so it is to say nothing
/// by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Label(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl Label {
    /// Of the parts, one after the other: the first one says which kind of name it is.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Label {
        let mut label = [0; 16];
        label.copy_from_slice(&sha256(parts)[..16]);
        Label(label)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}
