//! The records of one collection in one space, as far as they are kept in memory: their heads.
//!
//! Which records are kept is a function of all records that anybody holds and of the directory, and of nothing else:
//! not of the order in which they came, nor of how often.
//!
//! - Of one key the merge says which one counts.
//! - Of one owner so many are kept, those with the highest stamps (with [`Merge::End`] the lowest, for there the lowest
//!   of a key counts).
//! - Of all owners for whom one node answers so many are kept. While there are more, the owner that has most loses its
//!   oldest one; of several that have as many, the one whose oldest is older. So an owner that has no more than its
//!   *fair share* loses nothing to others, however many they have. Where all write the same records, owners are one in
//!   this, and the oldest goes.
//!
//! # Why a record can be dropped when it comes
//!
//! Say that a record stands at *place* p if its owner has p newer ones. The last rule keeps the first so many in the order
//! of places, and of one place the newer first. In a set that was offered more, all of this is so:
//!
//! - A record that counts stands at the same place or a later one. For a newer record stays, or another one of its key takes its
//!   place that is newer still: so the merge, and the order by age, go the same way.
//! - Of each owner as many records stand before any place, or more; and those that stand at one place are as new, or newer.
//!
//! So a record that has enough before it has enough before it for ever: *one that is dropped would be dropped later, too*. And
//! *one that is not there changes nothing for others*. It stands before none but older ones of its owner; each of these steps up
//! one place at most, to where the dropped one or one that was older than it stood, and as that one did not stay, nor
//! does it. The same goes for a state of its key that comes later, and is older: it stands no better than the one that was dropped.
//! One that is newer is judged as if the other had never been.
//!
//! Bounds count records and not bytes for the same reason: a record that replaces another one never takes the place of
//! a third, but it may be smaller, and a set that is bounded by bytes would depend on which of the two it had met.

mod compact;
mod filled;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use self::compact::{Heads, Kept, OwnerIx, RecordIx, Slab, insert_tightly};
use super::{
    collection::{Collection, Merge, Writer},
    digest::{Bucket, BucketDigest, Digests},
};
use crate::{
    name::id::{Hash, KeyPrint, NodeId},
    wire::record::{RecordHead, RecordId, RecordKey, Stamp},
};

/// How early a record falls out, of those of one owner: the first in this order is the first to go.
type Age = (Rank, RecordKey);

/// How many records an owner has, and its oldest one: of all owners for whom one node answers, the last in this order loses
/// that one next.
type Standing = (usize, Reverse<Age>);

/// An owner's records, and the node that answers for it.
#[derive(Clone, Debug)]
struct Owned {
    print: KeyPrint,
    answers: NodeId,
    by_age: Vec<RecordIx>,
}

/// The records of all owners for whom one node answers.
#[derive(Clone, Debug, Default)]
struct Answered {
    count: usize,
    /// These owners.
    owners: BTreeSet<(Standing, OwnerIx)>,
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

/// The order in which records of one owner fall out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u64);

/// See the module. A record takes some 70 bytes: 60 of the head, and two indices.
#[derive(Clone, Debug)]
pub struct Set {
    collection: &'static Collection,
    heads: Heads,
    /// Each bucket's heads, in the order of their keys.
    buckets: BTreeMap<Bucket, Vec<RecordIx>>,
    owners: Slab<Owned>,
    by_print: BTreeMap<KeyPrint, OwnerIx>,
    /// By the node that answers for the owner; where all write the same records, all in one.
    answered: BTreeMap<Option<NodeId>, Answered>,
    digests: Digests,
}

impl Set {
    /// An empty one.
    #[must_use]
    pub fn new(collection: &'static Collection) -> Set {
        Set {
            collection,
            heads: Heads::default(),
            buckets: BTreeMap::new(),
            owners: Slab::default(),
            by_print: BTreeMap::new(),
            answered: BTreeMap::new(),
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
        self.heads.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.len() == 0
    }

    /// How many of one owner are kept, deletions included.
    #[must_use]
    pub fn count_of(&self, owner: KeyPrint) -> usize {
        self.owned(owner).map_or(0, |owned| owned.by_age.len())
    }

    /// How many are kept of all owners for whom this node answers; where all write the same, all there are.
    #[must_use]
    pub fn count_at(&self, answers: NodeId) -> usize {
        self.answered.get(&self.group(answers)).map_or(0, |group| group.count)
    }

    /// Whether clients may write so many more of an owner's records. The places of the node that answers for it are full when
    /// there are as many as clients may write, but never for an owner that would have no more than its fair share of these.
    #[must_use]
    pub fn has_room_at(&self, answers: NodeId, owner: KeyPrint, more: usize) -> bool {
        let (answers, max) = (self.answers(owner, answers), self.collection.node_max);
        let Some(group) = self.answered.get(&self.group(answers)) else { return more <= max };
        match self.collection.writer {
            _ if group.count + more <= max => true,
            Writer::Participants => false,
            Writer::Owner => {
                let (then, own) = (self.count_of(owner) + more, self.by_print.get(&owner));
                let others = group.owners.iter().filter(|(_, other)| Some(other) != own);
                let taken: usize = others.map(|((count, _), _)| (*count).min(then)).sum();
                taken + then <= max
            }
        }
    }

    /// The key of a record of this collection.
    #[must_use]
    pub fn key(&self, id: RecordId, owner: KeyPrint) -> RecordKey {
        self.collection.key(id, owner)
    }

    /// The head that is kept of a key.
    #[must_use]
    pub fn head(&self, key: RecordKey) -> Option<RecordHead> {
        self.find(key).map(|ix| self.head_at(ix))
    }

    /// Whether a key has a record here that is no deletion.
    #[must_use]
    pub fn is_live(&self, key: RecordKey) -> bool {
        self.find(key).is_some_and(|ix| !self.heads.get(ix).is_deletion())
    }

    /// Ids of an owner's records that are no deletions and begin so.
    pub fn live_of(&self, owner: KeyPrint, first: &[u8]) -> impl Iterator<Item = RecordId> {
        let records = self.owned(owner).into_iter().flat_map(|owned| &owned.by_age);
        records
            .map(|ix| self.heads.get(*ix))
            .filter(move |kept| kept.id.0.starts_with(first) && !kept.is_deletion())
            .map(|kept| kept.id)
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
        let owned = self.owned(head.owner);
        if owned.and_then(|owned| self.oldest_of(owned)).is_some_and(|oldest| oldest < age) {
            // If one falls out, it is another one.
            return true;
        }
        let count = owned.map_or(0, |owned| owned.by_age.len());
        let next = (self.share(count + 1), Reverse(age));
        let group = self.answered.get(&self.group(answers));
        let is_full = group.is_some_and(|group| {
            group.count >= self.collection.node_kept()
                && group.owners.last().is_some_and(|(last, _)| next > *last)
        });
        count < self.owner_kept() && !is_full
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
        self.insert(key, &head, deleted, answers);
        // The one that falls out is not the one that has come: that was looked at. One at most does: if the owner has
        // too many, the node had as many before.
        let too_old = self.too_old_of(head.owner).or_else(|| self.too_old_at(self.group(answers)));
        if let Some(old) = too_old {
            self.remove(old);
        }
        Fate::Kept(too_old)
    }

    /// The directory says something else of an owner: another node answers for it, or (`None`) it does not know it any
    /// more. Returns the keys of records that are not kept any more.
    pub fn answered_by(&mut self, owner: KeyPrint, answers: Option<NodeId>) -> Vec<RecordKey> {
        let Some(ix) = self.by_print.get(&owner).copied() else { return Vec::new() };
        let owned = self.owners.get(ix);
        if answers == Some(owned.answers) {
            return Vec::new();
        }
        let Some(answers) = answers else {
            let keys: Vec<RecordKey> = owned.by_age.iter().map(|ix| self.key_at(*ix)).collect();
            keys.iter().for_each(|key| self.remove(*key));
            return keys;
        };
        let (from, to) = (self.group(owned.answers), self.group(answers));
        let (count, standing) = (owned.by_age.len(), self.standing_of(owned));
        self.owners.get_mut(ix).answers = answers;
        self.regroup(from, (standing, None), ix);
        self.recount(from, |before| before.saturating_sub(count));
        self.regroup(to, (None, standing), ix);
        self.recount(to, |before| before + count);
        let mut gone = Vec::new();
        while let Some(old) = self.too_old_at(to) {
            self.remove(old);
            gone.push(old);
        }
        gone
    }

    /// A record is not kept any more, for a reason that is not in this set.
    pub fn take_out(&mut self, key: RecordKey) {
        self.remove(key);
    }

    /// Keys of records whose time is over.
    pub fn ended(&self, now: Stamp) -> impl Iterator<Item = RecordKey> {
        let all = self.buckets.values().flatten();
        let has_ended = move |ix: &&RecordIx| {
            let stamp = self.heads.get(**ix).stamp();
            self.collection.ends(stamp).is_some_and(|end| end <= now)
        };
        all.filter(has_ended).map(|ix| self.key_at(*ix))
    }

    /// The owners of its records.
    pub fn owners(&self) -> impl Iterator<Item = KeyPrint> {
        self.by_print.keys().copied()
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
        let mut digests = std::mem::take(&mut self.digests);
        digests.refresh(|bucket| self.heads(bucket));
        self.digests = digests;
    }

    /// The heads of a bucket, in the order of their keys.
    pub fn heads(&self, bucket: Bucket) -> impl Iterator<Item = RecordHead> {
        self.buckets.get(&bucket).into_iter().flatten().map(|ix| self.head_at(*ix))
    }

    // Inside.

    /// Whether a head counts, and not one of the same key that is known.
    pub(super) fn wins(&self, new: &RecordHead, known: &RecordHead) -> bool {
        let [new, known] = [new, known].map(|head| (head.stamp, head.hash));
        match self.collection.merge {
            Merge::Latest | Merge::Final | Merge::Add => new > known,
            Merge::End => new < known,
        }
    }

    fn rank(&self, stamp: Stamp) -> Rank {
        match self.collection.merge {
            Merge::Latest | Merge::Final | Merge::Add => Rank(stamp.0),
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
        self.owned(owner).map_or(told, |owned| owned.answers)
    }

    fn group(&self, answers: NodeId) -> Option<NodeId> {
        match self.collection.writer {
            Writer::Owner => Some(answers),
            Writer::Participants => None,
        }
    }

    fn owned(&self, owner: KeyPrint) -> Option<&Owned> {
        self.by_print.get(&owner).map(|ix| self.owners.get(*ix))
    }

    fn head_at(&self, ix: RecordIx) -> RecordHead {
        let kept = self.heads.get(ix);
        kept.head(self.owners.get(kept.owner()).print)
    }

    fn key_at(&self, ix: RecordIx) -> RecordKey {
        let head = self.head_at(ix);
        self.key(head.id, head.owner)
    }

    fn age_at(&self, ix: RecordIx) -> Age {
        let head = self.head_at(ix);
        (self.rank(head.stamp), self.key(head.id, head.owner))
    }

    fn oldest_of(&self, owned: &Owned) -> Option<Age> {
        owned.by_age.first().map(|ix| self.age_at(*ix))
    }

    /// Where all write the same records, no owner counts for more than another.
    fn share(&self, count: usize) -> usize {
        match self.collection.writer {
            Writer::Owner => count,
            Writer::Participants => 0,
        }
    }

    /// `None`: it has no records.
    fn standing_of(&self, owned: &Owned) -> Option<Standing> {
        let oldest = self.oldest_of(owned)?;
        Some((self.share(owned.by_age.len()), Reverse(oldest)))
    }

    /// Where a key stands in its bucket, or would.
    fn place(&self, key: RecordKey) -> Result<usize, usize> {
        let bucket = self.buckets.get(&Bucket::of(key));
        bucket.map_or(Err(0), |heads| heads.binary_search_by_key(&key, |ix| self.key_at(*ix)))
    }

    fn find(&self, key: RecordKey) -> Option<RecordIx> {
        let at = self.place(key).ok()?;
        self.buckets.get(&Bucket::of(key))?.get(at).copied()
    }

    fn too_old_of(&self, owner: KeyPrint) -> Option<RecordKey> {
        let owned = self.owned(owner).filter(|owned| owned.by_age.len() > self.owner_kept())?;
        self.oldest_of(owned).map(|(_, key)| key)
    }

    fn too_old_at(&self, group: Option<NodeId>) -> Option<RecordKey> {
        let group = self.answered.get(&group)?;
        let last = group.owners.last().filter(|_| group.count > self.collection.node_kept());
        last.map(|((_, Reverse((_, key))), _)| *key)
    }

    fn insert(&mut self, key: RecordKey, head: &RecordHead, deleted: bool, answers: NodeId) {
        let owner = self.owner_of(head.owner, answers);
        let ix = self.heads.insert(Kept::of(head, owner, deleted));
        if let Err(at) = self.place(key) {
            insert_tightly(self.buckets.entry(Bucket::of(key)).or_default(), at, ix);
        }
        self.digests.change(Bucket::of(key));
        let owned = self.owners.get(owner);
        let (before, age) = (self.standing_of(owned), self.age_at(ix));
        if let Err(at) = owned.by_age.binary_search_by_key(&age, |ix| self.age_at(*ix)) {
            insert_tightly(&mut self.owners.get_mut(owner).by_age, at, ix);
        }
        let after = self.standing_of(self.owners.get(owner));
        let group = self.group(answers);
        self.regroup(group, (before, after), owner);
        self.recount(group, |before| before + 1);
    }

    fn remove(&mut self, key: RecordKey) {
        let Ok(at) = self.place(key) else { return };
        let Some(heads) = self.buckets.get_mut(&Bucket::of(key)) else { return };
        let ix = heads.remove(at);
        if heads.is_empty() {
            self.buckets.remove(&Bucket::of(key));
        }
        self.digests.change(Bucket::of(key));
        let (owner, age) = (self.heads.get(ix).owner(), self.age_at(ix));
        let owned = self.owners.get(owner);
        let before = self.standing_of(owned);
        if let Ok(at) = owned.by_age.binary_search_by_key(&age, |ix| self.age_at(*ix)) {
            self.owners.get_mut(owner).by_age.remove(at);
        }
        self.heads.remove(ix);
        let owned = self.owners.get(owner);
        let after = self.standing_of(owned);
        let (group, print) = (self.group(owned.answers), owned.print);
        self.regroup(group, (before, after), owner);
        self.recount(group, |before| before.saturating_sub(1));
        if after.is_none() {
            self.by_print.remove(&print);
            self.owners.get_mut(owner).by_age = Vec::new();
            self.owners.remove(owner);
        }
    }

    /// An owner stands elsewhere.
    fn regroup(
        &mut self,
        group: Option<NodeId>,
        (before, after): (Option<Standing>, Option<Standing>),
        owner: OwnerIx,
    ) {
        if before == after {
            return;
        }
        let group = self.answered.entry(group).or_default();
        if let Some(before) = before {
            group.owners.remove(&(before, owner));
        }
        group.owners.extend(after.map(|after| (after, owner)));
    }

    fn recount(&mut self, of: Option<NodeId>, count: impl Fn(usize) -> usize) {
        let group = self.answered.entry(of).or_default();
        group.count = count(group.count);
        if group.count == 0 {
            self.answered.remove(&of);
        }
    }
}

#[cfg(test)]
mod tests;
