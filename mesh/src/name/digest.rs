//! Digests of content that members choose.

use std::fmt;

use minicbor::{Decode, Encode};

use super::id::{sha256, write_hex};

/// The first 16 bytes of SHA-256 over a sorted list. Two lists of one digest cost 2^64 hashes. So nothing is folded by XOR
/// or by a sum: there, two lists of one digest follow from linear algebra. The default, 16 zero bytes, stands for a list
/// that is empty.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl Digest {
    /// Of a text under a label: a label for each kind of list, so that none can be taken for another.
    pub(crate) fn of(label: &[u8], text: &[u8]) -> Digest {
        let mut out = [0; 16];
        out.copy_from_slice(&sha256(&[label, text])[..16]);
        Digest(out)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}
