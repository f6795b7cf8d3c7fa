//! The difference of two sets: roots, then the digests of buckets, then the heads of buckets that differ, and at last the
//! records. Each step says no more than is needed for the next one.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use super::{
    digest::{Bucket, BucketDigest},
    set::Set,
};
use crate::{
    limits::{
        RECORD_BUCKET_COUNTS, RECORD_BUCKET_COUNTS_MAX, RECORD_HEADS_MAX, RECORD_PAGES_MAX,
        RECORDS_GIVEN_MAX,
    },
    name::id::{Hash, NodeId},
    wire::record::{RecordHead, RecordKey},
};

/// All heads that a node has in a part of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Part {
    /// The bucket.
    #[n(0)]
    pub bucket: Bucket,
    /// The part begins after this key; `None`: with the bucket.
    #[n(1)]
    pub after: Option<RecordKey>,
    /// It ends with this key; `None`: with the bucket.
    #[n(2)]
    pub upto: Option<RecordKey>,
    /// The heads, in the order of their keys.
    #[n(3)]
    pub heads: Vec<RecordHead>,
}

/// The records that one of two nodes lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// To be asked for.
    pub wanted: Vec<RecordKey>,
    /// To be sent.
    pub given: Vec<RecordKey>,
}

/// The heads for a peer, and the bucket to go on from the next time.
#[derive(Debug, Default)]
pub struct Pages {
    /// One for each message.
    pub pages: Vec<Vec<Part>>,
    /// Buckets from here on were not reached. `None`: all were.
    pub rest: Option<Bucket>,
}

/// Buckets that differ, in their order.
#[must_use]
pub fn differing(mine: &[BucketDigest], theirs: &[BucketDigest]) -> BTreeSet<Bucket> {
    let by_bucket = |digests: &[BucketDigest]| -> BTreeMap<Bucket, Hash> {
        digests.iter().map(|digest| (digest.bucket, digest.digest)).collect()
    };
    let (mine, theirs) = (by_bucket(mine), by_bucket(theirs));
    let all = mine.keys().chain(theirs.keys()).copied();
    all.filter(|bucket| mine.get(bucket) != theirs.get(bucket)).collect()
}

/// The heads of these buckets, beginning with `from`, as many as are told at once.
#[must_use]
pub fn pages(set: &Set, buckets: &BTreeSet<Bucket>, from: Bucket) -> Pages {
    let mut writing = Pages { pages: vec![Vec::new()], rest: None };
    let mut room = RECORD_HEADS_MAX;
    // Buckets with hardly a head fill all messages, too, if they are not few.
    let counts = (RECORD_PAGES_MAX * RECORD_HEADS_MAX / buckets.len().max(1))
        .clamp(RECORD_BUCKET_COUNTS, RECORD_BUCKET_COUNTS_MAX);
    let in_order = buckets.range(from..).chain(buckets.range(..from));
    for bucket in in_order {
        let heads: Vec<RecordHead> = set.heads(*bucket).collect();
        let mut rest = heads.as_slice();
        let mut after = None;
        loop {
            // A bucket with hardly a head takes some places, too.
            if room == 0 {
                if writing.pages.len() >= RECORD_PAGES_MAX {
                    // A bucket that was begun is told anew: what differed in its first part does not any more.
                    writing.rest = Some(*bucket);
                    return writing;
                }
                writing.pages.push(Vec::new());
                room = RECORD_HEADS_MAX;
            }
            let (now, later) = rest.split_at(rest.len().min(room));
            room = room.saturating_sub(now.len().max(counts));
            let last = now.last().map(|head| set.key(head.id, head.owner));
            let upto = last.filter(|_| !later.is_empty());
            let part = Part { bucket: *bucket, after, upto, heads: now.to_vec() };
            writing.pages.last_mut().into_iter().for_each(|page| page.push(part.clone()));
            (rest, after) = (later, upto);
            if rest.is_empty() {
                break;
            }
        }
    }
    writing
}

/// The records that each side lacks in the part that a peer has told. `answers`: the node that answers for an owner; none for records that
/// are not taken now.
pub fn compare(
    set: &Set,
    part: &Part,
    answers: impl Fn(&RecordHead) -> Option<NodeId>,
    found: &mut Difference,
) {
    let is_within = |key: &RecordKey| {
        part.after.is_none_or(|after| *key > after) && part.upto.is_none_or(|upto| *key <= upto)
    };
    let theirs: BTreeMap<RecordKey, &RecordHead> = part
        .heads
        .iter()
        .map(|head| (set.key(head.id, head.owner), head))
        .filter(|(key, _)| is_within(key) && Bucket::of(*key) == part.bucket)
        .collect();
    for (key, head) in &theirs {
        let wants = answers(head).is_some_and(|answers| set.wants(head, answers));
        if wants && found.wanted.len() < RECORDS_GIVEN_MAX {
            found.wanted.push(*key);
        }
    }
    for mine in set.heads(part.bucket) {
        if found.given.len() >= RECORDS_GIVEN_MAX {
            break;
        }
        let key = set.key(mine.id, mine.owner);
        let lacks = theirs.get(&key).is_none_or(|head| set.wins(&mine, head));
        if lacks && is_within(&key) {
            found.given.push(key);
        }
    }
}
