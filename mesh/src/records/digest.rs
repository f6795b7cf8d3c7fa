//! Digests of sets: SHA-256 over sorted heads, by buckets. Nothing is folded by XOR or cut short: a member that
//! may write records chooses them, and could choose them so that two different sets look alike.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use crate::{
    limits::RECORD_BUCKETS,
    name::id::{Hash, sha256},
    wire::record::{RecordHead, RecordKey},
};

/// A part of a set, by the hash of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct Bucket(#[n(0)] pub u16);

impl Bucket {
    /// The bucket of a record.
    #[must_use]
    pub fn of(key: RecordKey) -> Bucket {
        let owner = key.owner.map(|owner| owner.0).unwrap_or_default();
        let hash = sha256(&[&key.id.0, &owner]);
        Bucket(u16::from_be_bytes([hash[0], hash[1]]) % RECORD_BUCKETS)
    }
}

/// A bucket that is not empty, and the digest of the heads in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BucketDigest {
    /// Which.
    #[n(0)]
    pub bucket: Bucket,
    /// Over its heads, in the order of their keys.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: Hash,
}

/// The digests of one set, as far as they were needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Digests {
    /// Of buckets that are not empty.
    buckets: BTreeMap<Bucket, Hash>,
    /// Buckets that have changed since.
    changed: BTreeSet<Bucket>,
    root: Option<Hash>,
}

impl Digests {
    pub(super) fn change(&mut self, bucket: Bucket) {
        self.changed.insert(bucket);
        self.root = None;
    }

    /// Makes them true again. `heads`: those of a bucket, in the order of their keys.
    pub(super) fn refresh<H: Iterator<Item = RecordHead>>(&mut self, heads: impl Fn(Bucket) -> H) {
        for bucket in std::mem::take(&mut self.changed) {
            match of_heads(heads(bucket)) {
                Some(digest) => self.buckets.insert(bucket, digest),
                None => self.buckets.remove(&bucket),
            };
        }
    }

    pub(super) fn buckets(&self) -> Vec<BucketDigest> {
        let digest =
            |(bucket, digest): (&Bucket, &Hash)| BucketDigest { bucket: *bucket, digest: *digest };
        self.buckets.iter().map(digest).collect()
    }

    /// Of the whole set, when it was refreshed.
    pub(super) fn root(&mut self) -> Hash {
        if let Some(root) = self.root {
            return root;
        }
        let text: Vec<u8> = self
            .buckets
            .iter()
            .flat_map(|(bucket, digest)| bucket.0.to_be_bytes().into_iter().chain(*digest))
            .collect();
        let root = sha256(&[b"clawmesh records", &text]);
        self.root = Some(root);
        root
    }
}

/// `None`: there are none.
fn of_heads(heads: impl Iterator<Item = RecordHead>) -> Option<Hash> {
    let mut text = Vec::new();
    for head in heads {
        // All of one length, so that no two lists give one text.
        text.extend(head.id.0);
        text.extend(head.owner.0);
        text.extend(head.stamp.0.to_be_bytes());
        text.extend(head.hash);
    }
    (!text.is_empty()).then(|| sha256(&[b"clawmesh bucket", &text]))
}

/// One digest of the roots of all sets of a space: each with the number of its collection.
#[must_use]
pub fn of_roots(roots: &[(u16, Hash)]) -> Hash {
    let text: Vec<u8> = roots
        .iter()
        .flat_map(|(number, root)| number.to_be_bytes().into_iter().chain(*root))
        .collect();
    sha256(&[b"clawmesh space", &text])
}
