//! Comparing records with peers: with all of them those of the mesh, and with those that follow the same group the group's.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compared, Records, answers_now, shares};
use crate::{
    api::boundary::Effect,
    engine::known::Known,
    limits::{RECORDS_COMPARE_EVERY, RECORDS_COMPARE_EVERY_MAX},
    name::id::{Hash, NodeId},
    records::{
        comparison::{self, Difference, Part},
        digest::{Bucket, BucketDigest},
        space::Brief,
    },
    wire::{
        comparing::{Comparing, Step},
        message::{Beacon, Followed, Message},
        record::{CollectionNumber, RecordHead, RecordKey, Root, Space},
    },
};

impl Records {
    /// A peer is there. One of the two begins.
    pub(crate) fn on_peer_up(&mut self, known: &mut Known, peer: NodeId) {
        self.contents.on_peer_up(known);
        if known.cx.me < peer && shares(known, peer, Space::Mesh) {
            self.tell_roots(known, peer, Space::Mesh);
        }
    }

    pub(crate) fn forget_peer(&mut self, known: &mut Known, peer: NodeId) {
        self.compared.retain(|(of, _), _| *of != peer);
        self.rest.retain(|(of, ..), _| *of != peer);
        self.filling.forget(peer);
        self.contents.forget_peer(peer);
        self.forget_asked(known, peer);
    }

    /// A beacon says whether a peer has the same records.
    pub(crate) fn on_beacon(&mut self, known: &mut Known, from: NodeId, beacon: &Beacon) {
        // Only a peer that is connected can be compared with; of others the digest is hearsay.
        let is_near = beacon.node == from && known.cx.up.contains(&from);
        if is_near && shares(known, from, Space::Mesh) {
            self.on_digest(known, from, Space::Mesh, beacon.records);
        }
    }

    /// A peer that follows the same keys tells the digests of their records. That it follows them was proven before.
    pub(crate) fn on_follows(&mut self, known: &mut Known, from: NodeId, theirs: &[Followed]) {
        for Followed { token, records, .. } in theirs {
            if let Some(group) = known.cx.followers.shown_by(from, *token) {
                self.on_digest(known, from, Space::Followers(group), *records);
            }
        }
    }

    fn on_digest(&mut self, known: &mut Known, from: NodeId, space: Space, theirs: Brief) {
        let digests = (theirs, self.digest_of(space));
        let place = (from, space);
        if digests.0 == digests.1 {
            self.compared.remove(&place);
            return;
        }
        let now = known.cx.now.mono;
        // The other one begins as a rule, so that the two do not do the same work at the same time.
        let first = if known.cx.me < from { 1 } else { 2 };
        let every = RECORDS_COMPARE_EVERY * first;
        let new = Compared { at: now, every, digests };
        let first = !self.compared.contains_key(&place);
        let compared = self.compared.entry(place).or_insert(new);
        // Nothing is under way to a node that begins to follow a key, and its clients wait for it.
        if first && space != Space::Mesh && digests.1 == Brief::default() {
            return self.tell_roots(known, from, space);
        }
        if now < compared.at + compared.every || self.filling.is_under_way(now, place) {
            return;
        }
        compared.every = if compared.digests == digests {
            (compared.every * 2).min(RECORDS_COMPARE_EVERY_MAX)
        } else {
            every
        };
        (compared.at, compared.digests) = (now, digests);
        self.tell_roots(known, from, space);
    }

    fn digest_of(&mut self, space: Space) -> Brief {
        self.spaces.get_mut(&space).map_or(Brief::default(), |sets| sets.digest())
    }

    pub(super) fn tell_roots(&mut self, known: &mut Known, peer: NodeId, space: Space) {
        self.filling.begin((peer, space));
        let roots = self.sets(space).roots();
        say(known, peer, space, Step::Roots(roots));
    }

    /// A peer's step of a comparison.
    pub(crate) fn on_comparing(&mut self, known: &mut Known, from: NodeId, comparing: Comparing) {
        let Comparing { space, step } = comparing;
        if !shares(known, from, space) {
            return;
        }
        match step {
            Step::Roots(roots) => self.on_roots(known, from, space, roots),
            Step::Buckets { collection, buckets } => {
                self.on_buckets(known, from, (space, collection), &buckets);
            }
            Step::Heads { collection, parts } => {
                self.on_heads(known, from, (space, collection), &parts);
            }
            Step::Want { collection, keys } => {
                self.on_want(known, from, (space, collection), keys);
            }
        }
    }

    /// A peer's digests: it is told those of the buckets of each set that differs.
    fn on_roots(&mut self, known: &mut Known, from: NodeId, space: Space, roots: Vec<Root>) {
        // Each set once: an answer is much larger than a question.
        let roots: BTreeMap<CollectionNumber, Hash> =
            roots.into_iter().map(|root| (root.collection, root.digest)).collect();
        for (collection, theirs) in roots {
            let Some(set) = self.sets(space).get_mut(collection) else { continue };
            if set.root() != theirs {
                let buckets = set.buckets();
                say(known, from, space, Step::Buckets { collection, buckets });
            }
        }
    }

    /// The digests of a peer's buckets: it is told the heads in those that differ.
    fn on_buckets(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (space, collection): (Space, CollectionNumber),
        theirs: &[BucketDigest],
    ) {
        let place = (from, space, collection);
        let begin = self.rest.get(&place).copied().unwrap_or(Bucket(0));
        let Some(set) = self.sets(space).get_mut(collection) else { return };
        let buckets = comparison::differing(&set.buckets(), theirs);
        let told = comparison::pages(set, &buckets, begin);
        match told.rest {
            Some(rest) => self.rest.insert(place, rest),
            None => self.rest.remove(&place),
        };
        let pages = told.pages.into_iter().filter(|parts| !parts.is_empty());
        for parts in pages {
            self.filling.ask((from, space), 1);
            say(known, from, space, Step::Heads { collection, parts });
        }
    }

    /// A peer's heads: each of the two is sent what it lacks.
    fn on_heads(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (space, collection): (Space, CollectionNumber),
        parts: &[Part],
    ) {
        let Some(set) = self.sets(space).get(collection) else { return };
        let mut found = Difference::default();
        let at = (space, set.collection());
        let answers = |head: &RecordHead| answers_now(known, at, head.owner, head.stamp);
        for part in parts {
            comparison::compare(set, part, answers, &mut found);
        }
        let Difference { wanted: keys, given } = found;
        if !keys.is_empty() {
            self.filling.ask((from, space), 1);
            say(known, from, space, Step::Want { collection, keys });
        }
        self.give(known, from, (space, collection), given);
    }

    /// A peer wants records.
    fn on_want(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (space, collection): (Space, CollectionNumber),
        keys: Vec<RecordKey>,
    ) {
        let Some(set) = self.set(space, collection) else { return };
        let keys: BTreeSet<RecordKey> = keys.into_iter().collect();
        let held = keys.into_iter().filter(|key| set.head(*key).is_some()).collect();
        self.give(known, from, (space, collection), held);
    }

    fn give(
        &mut self,
        known: &mut Known,
        to: NodeId,
        (space, collection): (Space, CollectionNumber),
        keys: Vec<RecordKey>,
    ) {
        if !keys.is_empty() {
            self.filling.give(known.cx.now.mono, (to, space), keys.len());
            known.cx.effects.push(Effect::SendRecords { to, space, collection, keys });
        }
    }
}

impl Compared {
    /// Something has changed that may be why the two differed.
    pub(super) fn begin_anew(&mut self) {
        self.every = RECORDS_COMPARE_EVERY;
    }
}

fn say(known: &mut Known, to: NodeId, space: Space, step: Step) {
    known.cx.send(to, Message::Comparing(Comparing { space, step }));
}
