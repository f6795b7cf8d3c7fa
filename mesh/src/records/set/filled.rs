//! A set that is filled from the store: many records at once, each of another key. The kept ones are a function of all that
//! were offered, so they are put where they belong and sorted once, and the bounds are looked at when all are there.

use std::collections::BTreeSet;

use super::{
    Answered, Fate, Offer, Owned, OwnerIx, Rank, RecordIx, Set,
    compact::{Heads, Kept},
};
use crate::{
    limits::RECORD_BUCKETS,
    name::id::{KeyPrint, NodeId},
    records::digest::Bucket,
    wire::record::RecordKey,
};

/// Records of an owner, as they come.
type ByAge = Vec<(Rank, RecordIx)>;

impl Set {
    /// Takes in many: as if each had been offered. Returns the keys of those that are not kept, each once.
    pub fn fill(&mut self, offers: &[Offer]) -> Vec<RecordKey> {
        if !self.is_empty() || !self.place_all(offers) {
            return self.offer_all(offers);
        }
        let mut gone = Vec::new();
        let owners: Vec<KeyPrint> = self.owners().collect();
        for owner in owners {
            while let Some(old) = self.too_old_of(owner) {
                self.remove(old);
                gone.push(old);
            }
        }
        let groups: Vec<Option<NodeId>> = self.answered.keys().copied().collect();
        for group in groups {
            while let Some(old) = self.too_old_at(group) {
                self.remove(old);
                gone.push(old);
            }
        }
        gone
    }

    /// One after the other.
    fn offer_all(&mut self, offers: &[Offer]) -> Vec<RecordKey> {
        let mut gone = BTreeSet::new();
        for offer in offers {
            gone.extend(match self.offer(*offer) {
                Fate::Kept(old) => old,
                Fate::Passed => Some(self.key(offer.head.id, offer.head.owner)),
            });
        }
        gone.into_iter().filter(|key| self.find(*key).is_none()).collect()
    }

    /// Puts all of them into an empty set, beyond its bounds, too. Whether it has done so: not, if two are of one key.
    fn place_all(&mut self, offers: &[Offer]) -> bool {
        self.heads = Heads::with_room(offers.len());
        let mut buckets = vec![Vec::new(); usize::from(RECORD_BUCKETS)];
        let mut by_age: Vec<ByAge> = Vec::new();
        for Offer { head, deleted, answers } in offers {
            let owner = self.owner_of(head.owner, *answers);
            let ix = self.heads.insert(Kept::of(head, owner, *deleted));
            let bucket = Bucket::of(self.key(head.id, head.owner));
            buckets[usize::from(bucket.0)].push(ix);
            by_age.resize_with(by_age.len().max(owner as usize + 1), Vec::new);
            by_age[owner as usize].push((self.rank(head.stamp), ix));
        }
        for (bucket, mut heads) in (0..).map(Bucket).zip(buckets) {
            // The store has them in this order.
            if !heads.is_sorted_by_key(|ix| self.key_at(*ix)) {
                heads.sort_unstable_by_key(|ix| self.key_at(*ix));
            }
            if heads.windows(2).any(|two| self.key_at(two[0]) == self.key_at(two[1])) {
                *self = Set::new(self.collection);
                return false;
            }
            if !heads.is_empty() {
                heads.shrink_to_fit();
                self.buckets.insert(bucket, heads);
                self.digests.change(bucket);
            }
        }
        (0..).zip(by_age).for_each(|(owner, by_age)| self.place_owner(owner, by_age));
        true
    }

    fn place_owner(&mut self, owner: OwnerIx, mut by_age: ByAge) {
        let age = |(rank, ix): &(Rank, RecordIx)| (*rank, self.key_at(*ix));
        by_age.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| age(one).cmp(&age(other)))
        });
        let count = by_age.len();
        // Not collected: that would keep the longer list's memory.
        let mut in_order = Vec::with_capacity(count);
        in_order.extend(by_age.iter().map(|(_, ix)| *ix));
        self.owners.get_mut(owner).by_age = in_order;
        let owned = self.owners.get(owner);
        let (standing, group) = (self.standing_of(owned), self.group(owned.answers));
        let group: &mut Answered = self.answered.entry(group).or_default();
        group.count += count;
        group.owners.extend(standing.map(|standing| (standing, owner)));
    }

    /// The index of an owner, which is there from now on.
    pub(super) fn owner_of(&mut self, print: KeyPrint, answers: NodeId) -> OwnerIx {
        if let Some(owner) = self.by_print.get(&print) {
            return *owner;
        }
        let owner = self.owners.insert(Owned { print, answers, by_age: Vec::new() });
        self.by_print.insert(print, owner);
        owner
    }
}
