//! The records of one collection in one space, as far as they are kept in memory: their heads.
//!
//! Which records are kept is a function of all records that anybody holds and of the directory, and of nothing else:
//! not of the order in which they came, nor of how often. Of one key the merge says which one counts. Of one owner so many
//! are kept, and then of all owners for whom one node answers so many, those with the highest stamps (with [`Merge::End`]
//! the lowest, for there the lowest of a key counts). That is why bounds count records and not bytes: a record that
//! replaces another one never takes the place of a third, but it may be smaller, and a set that is bounded by bytes
//! would depend on which of the two it had met.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    collection::{Collection, Merge, Writer},
    digest::{Bucket, BucketDigest, Digests},
};
use crate::{
    name::id::{Hash, KeyPrint, NodeId},
    wire::record::{RecordHead, RecordId, RecordKey, Stamp},
};

/// Where a head stands: buckets one after the other, and by key within them.
type Slot = (Bucket, RecordKey);

/// How early a record falls out: the first in this order is the first to go.
type Age = (Rank, RecordKey);

/// A record that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    owner: KeyPrint,
    stamp: Stamp,
    hash: Hash,
    deleted: bool,
}

/// An owner's records, by age, and the node that answers for it.
#[derive(Debug)]
struct Owned {
    answers: NodeId,
    by_age: BTreeSet<Age>,
}

/// A record as it is offered to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its head.
    pub head: RecordHead,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// The node that answers for its owner, as the directory says.
    pub answers: NodeId,
}

/// The fate of a record that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is kept from now on; and another one, if it is named, is not any more.
    Kept(Option<RecordKey>),
    /// It is not: it is known, or replaced, or has fallen out.
    Passed,
}

/// The order in which records of one owner, or of one node, fall out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u64);

/// See the module.
#[derive(Debug)]
pub struct Set {
    collection: &'static Collection,
    kept: BTreeMap<Slot, Kept>,
    owners: BTreeMap<KeyPrint, Owned>,
    /// By the node that answers for the owner; where all write the same records, all in one.
    groups: BTreeMap<Option<NodeId>, BTreeSet<Age>>,
    digests: Digests,
}

impl Set {
    /// An empty one.
    #[must_use]
    pub fn new(collection: &'static Collection) -> Set {
        Set {
            collection,
            kept: BTreeMap::new(),
            owners: BTreeMap::new(),
            groups: BTreeMap::new(),
            digests: Digests::default(),
        }
    }

    /// The collection that it is of.
    #[must_use]
    pub fn collection(&self) -> &'static Collection {
        self.collection
    }

    /// How many are kept, deletions included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// How many of one owner are kept, deletions included.
    #[must_use]
    pub fn count_of(&self, owner: KeyPrint) -> usize {
        self.owners.get(&owner).map_or(0, |owned| owned.by_age.len())
    }

    /// How many are kept of all owners for whom this node answers; where all write the same, all there are.
    #[must_use]
    pub fn count_at(&self, answers: NodeId) -> usize {
        self.groups.get(&self.group(answers)).map_or(0, BTreeSet::len)
    }

    /// The key of a record of this collection.
    #[must_use]
    pub fn key(&self, id: RecordId, owner: KeyPrint) -> RecordKey {
        let owner = match self.collection.writer {
            Writer::Owner => Some(owner),
            Writer::Participants => None,
        };
        RecordKey { id, owner }
    }

    /// The head that is kept of a key.
    #[must_use]
    pub fn head(&self, key: RecordKey) -> Option<RecordHead> {
        self.kept.get(&(Bucket::of(key), key)).map(|kept| kept.head(key.id))
    }

    /// Whether a key has a record here that is no deletion.
    #[must_use]
    pub fn is_live(&self, key: RecordKey) -> bool {
        self.kept.get(&(Bucket::of(key), key)).is_some_and(|kept| !kept.deleted)
    }

    /// Ids of an owner's records that are no deletions and begin so.
    pub fn live_of(&self, owner: KeyPrint, first: &[u8]) -> impl Iterator<Item = RecordId> {
        let keys = self.owners.get(&owner).into_iter().flat_map(|owned| &owned.by_age);
        keys.map(|(_, key)| *key)
            .filter(move |key| key.id.0.starts_with(first) && self.is_live(*key))
            .map(|key| key.id)
    }

    /// Whether a record with this head would be kept, as things are now.
    #[must_use]
    pub fn wants(&self, head: &RecordHead, answers: NodeId) -> bool {
        let key = self.key(head.id, head.owner);
        if let Some(known) = self.head(key) {
            return self.wins(head, &known);
        }
        let answers = self.answers(head.owner, answers);
        let age = (self.rank(head.stamp), key);
        let full = |ages: Option<&BTreeSet<Age>>, max| {
            ages.is_some_and(|ages| {
                ages.len() >= max && ages.first().is_some_and(|first| age < *first)
            })
        };
        let owned = self.owners.get(&head.owner).map(|owned| &owned.by_age);
        let group = self.groups.get(&self.group(answers));
        !(full(owned, self.owner_kept()) || full(group, self.collection.node_kept()))
    }

    /// Takes a record in, if it is one of those that are kept.
    pub fn offer(&mut self, offer: Offer) -> Fate {
        let Offer { head, deleted, answers } = offer;
        if !self.wants(&head, answers) {
            return Fate::Passed;
        }
        let key = self.key(head.id, head.owner);
        let answers = self.answers(head.owner, answers);
        self.remove(key);
        self.insert(
            key,
            Kept { owner: head.owner, stamp: head.stamp, hash: head.hash, deleted },
            answers,
        );
        // The one that falls out is not the one that has come: that was looked at. One at most does: if the owner has
        // too many, the node had as many before.
        let of_owner = self.owners.get(&head.owner).map(|owned| &owned.by_age);
        let too_old = oldest_over(of_owner, self.owner_kept()).or_else(|| {
            oldest_over(self.groups.get(&self.group(answers)), self.collection.node_kept())
        });
        if let Some(old) = too_old {
            self.remove(old);
        }
        Fate::Kept(too_old)
    }

    /// The directory says something else of an owner: another node answers for it, or (`None`) it does not know it any
    /// more. Returns the keys of records that are not kept any more.
    pub fn answered_by(&mut self, owner: KeyPrint, answers: Option<NodeId>) -> Vec<RecordKey> {
        let Some(owned) = self.owners.get_mut(&owner) else { return Vec::new() };
        if answers == Some(owned.answers) {
            return Vec::new();
        }
        let (before, ages) = (owned.answers, owned.by_age.clone());
        let Some(answers) = answers else {
            let keys: Vec<RecordKey> = ages.iter().map(|(_, key)| *key).collect();
            keys.iter().for_each(|key| self.remove(*key));
            return keys;
        };
        owned.answers = answers;
        let (from, to) = (self.group(before), self.group(answers));
        if let Some(group) = self.groups.get_mut(&from) {
            group.retain(|age| !ages.contains(age));
        }
        self.groups.entry(to).or_default().extend(ages);
        let mut gone = Vec::new();
        while let Some(old) = oldest_over(self.groups.get(&to), self.collection.node_kept()) {
            self.remove(old);
            gone.push(old);
        }
        gone
    }

    /// The owners of its records.
    pub fn owners(&self) -> impl Iterator<Item = KeyPrint> {
        self.owners.keys().copied()
    }

    // Comparing.

    /// The digest of all heads.
    pub fn root(&mut self) -> Hash {
        self.refresh();
        self.digests.root()
    }

    /// The digests of all buckets that are not empty.
    pub fn buckets(&mut self) -> Vec<BucketDigest> {
        self.refresh();
        self.digests.buckets()
    }

    fn refresh(&mut self) {
        let kept = &self.kept;
        self.digests.refresh(|bucket| heads_in(kept, bucket));
    }

    /// The heads of a bucket, in the order of their keys.
    pub fn heads(&self, bucket: Bucket) -> impl Iterator<Item = RecordHead> {
        heads_in(&self.kept, bucket)
    }

    // Inside.

    /// Whether a head counts, and not one of the same key that is known.
    pub(super) fn wins(&self, new: &RecordHead, known: &RecordHead) -> bool {
        let [new, known] = [new, known].map(|head| (head.stamp, head.hash));
        match self.collection.merge {
            Merge::Latest | Merge::Add => new > known,
            Merge::End => new < known,
        }
    }

    fn rank(&self, stamp: Stamp) -> Rank {
        match self.collection.merge {
            Merge::Latest | Merge::Add => Rank(stamp.0),
            Merge::End => Rank(!stamp.0),
        }
    }

    /// Where all write the same records, an owner is bounded as all are.
    fn owner_kept(&self) -> usize {
        match self.collection.writer {
            Writer::Owner => self.collection.owner_kept(),
            Writer::Participants => self.collection.node_kept(),
        }
    }

    /// The node that answers for an owner, as the set was told with its first record or since.
    fn answers(&self, owner: KeyPrint, told: NodeId) -> NodeId {
        self.owners.get(&owner).map_or(told, |owned| owned.answers)
    }

    fn group(&self, answers: NodeId) -> Option<NodeId> {
        match self.collection.writer {
            Writer::Owner => Some(answers),
            Writer::Participants => None,
        }
    }

    fn insert(&mut self, key: RecordKey, kept: Kept, answers: NodeId) {
        let bucket = Bucket::of(key);
        let age = (self.rank(kept.stamp), key);
        let owned = self.owners.entry(kept.owner);
        let owned = owned.or_insert_with(|| Owned { answers, by_age: BTreeSet::new() });
        owned.by_age.insert(age);
        self.groups.entry(self.group(answers)).or_default().insert(age);
        self.kept.insert((bucket, key), kept);
        self.digests.change(bucket);
    }

    fn remove(&mut self, key: RecordKey) {
        let bucket = Bucket::of(key);
        let Some(kept) = self.kept.remove(&(bucket, key)) else { return };
        self.digests.change(bucket);
        let age = (self.rank(kept.stamp), key);
        let Some(owned) = self.owners.get_mut(&kept.owner) else { return };
        owned.by_age.remove(&age);
        let (answers, is_last) = (owned.answers, owned.by_age.is_empty());
        if is_last {
            self.owners.remove(&kept.owner);
        }
        let group = self.group(answers);
        if let Some(ages) = self.groups.get_mut(&group) {
            ages.remove(&age);
            if ages.is_empty() {
                self.groups.remove(&group);
            }
        }
    }
}

impl Kept {
    fn head(&self, id: RecordId) -> RecordHead {
        RecordHead { id, owner: self.owner, stamp: self.stamp, hash: self.hash }
    }
}

fn heads_in(kept: &BTreeMap<Slot, Kept>, bucket: Bucket) -> impl Iterator<Item = RecordHead> {
    let first = (bucket, RecordKey::FIRST);
    let from = kept.range(first..).take_while(move |((of, _), _)| *of == bucket);
    from.map(|((_, key), kept)| kept.head(key.id))
}

fn oldest_over(ages: Option<&BTreeSet<Age>>, max: usize) -> Option<RecordKey> {
    ages.filter(|ages| ages.len() > max)?.first().map(|(_, key)| *key)
}

#[cfg(test)]
mod tests;
