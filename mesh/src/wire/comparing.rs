//! The messages by which two nodes find out which records one of them lacks (`records::comparison`).

use minicbor::{Decode, Encode};

use super::record::{CollectionNumber, RecordKey, Root, Space};
use crate::records::{comparison::Part, digest::BucketDigest};

/// A step of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Comparing {
    /// Whose sets are compared.
    #[n(0)]
    pub space: Space,
    /// How far the two are.
    #[n(1)]
    pub step: Step,
}

/// See [`Comparing`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Step {
    /// Digests of all collections that the sender knows. Answered by `Buckets` of each that differs.
    #[n(0)]
    Roots(#[n(0)] Vec<Root>),
    /// Digests of a set's buckets, empty ones left out. Answered by `Heads` of those that differ.
    #[n(1)]
    Buckets {
        /// The collection.
        #[n(0)]
        collection: CollectionNumber,
        /// The buckets.
        #[n(1)]
        buckets: Vec<BucketDigest>,
    },
    /// Heads in buckets that differed. Answered by records that the sender lacks, and by `Want`.
    #[n(2)]
    Heads {
        /// The collection.
        #[n(0)]
        collection: CollectionNumber,
        /// Parts of buckets.
        #[n(1)]
        parts: Vec<Part>,
    },
    /// Records that the sender lacks. Answered by records.
    #[n(3)]
    Want {
        /// The collection.
        #[n(0)]
        collection: CollectionNumber,
        /// Their keys.
        #[n(1)]
        keys: Vec<RecordKey>,
    },
}
