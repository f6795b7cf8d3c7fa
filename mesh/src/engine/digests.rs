//! Digests of rooms, and comparing them with those of peers.
//!
//! Rooms that everybody has are folded by bucket, and all buckets into one digest; private rooms are folded
//! by group (`docs/decisions/private-rooms.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::known::Known;
use crate::{
    limits::{BUCKETS, DIGEST_ROOMS_MAX, FOLLOWERS_COMPARE_EVERY, OFFERED_AGAIN_FOR},
    name::{
        group::Group,
        id::{NodeId, RoomId, sha256},
    },
    replica::log::first_8,
    room::Room,
    wire::{
        message::{Beacon, Followed, Message, RoomDigest},
        seal::Seal,
    },
};

/// How long a peer's digest may differ before it is looked into: news under way explain it first.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// Rooms whose frontiers are asked for at once; the next comparison brings the rest.
const HAVES_AT_ONCE_MAX: usize = 1_024;

/// The private rooms of one group: each room's digest, and all folded.
#[derive(Debug, Default)]
struct OfGroup {
    rooms: BTreeMap<RoomId, u64>,
    folded: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Digests {
    pub(super) rooms: BTreeMap<RoomId, u64>,
    pub(super) buckets: [u64; BUCKETS],
    /// Over all buckets: every beacon is compared with it.
    pub(super) all: u64,
    private: BTreeMap<Group, OfGroup>,
    /// Rooms with entries of this node that no other one is known to have: looked at when a peer turns out
    /// to have everything.
    pub(super) unshared: BTreeSet<RoomId>,
    /// When digests were last compared with a peer.
    compared: BTreeMap<NodeId, Duration>,
    private_compared: Duration,
    /// The digest at which a peer was last known to have everything.
    in_step: u64,
}

impl Digests {
    pub(super) fn new() -> Digests {
        Digests {
            rooms: BTreeMap::new(),
            buckets: [0; BUCKETS],
            all: fold(&[0; BUCKETS]),
            private: BTreeMap::new(),
            unshared: BTreeSet::new(),
            compared: BTreeMap::new(),
            private_compared: Duration::ZERO,
            in_step: 0,
        }
    }

    /// A room was written: it is looked at again, and noted if nobody else is known to have all of it.
    pub(super) fn note(&mut self, known: &Known, id: RoomId) {
        let Some(room) = known.rooms.get(&id) else { return };
        if room.replica.is_shared() {
            self.unshared.remove(&id);
        } else {
            self.unshared.insert(id);
        }
        self.mix(known, id);
    }

    /// An ephemeral room has ended.
    pub(super) fn forget_room(&mut self, room: &Room) {
        self.forget(room.replica.id, room.replica.record.seal.as_ref());
        self.unshared.remove(&room.replica.id);
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.compared.remove(&peer);
    }

    /// The private rooms of a group.
    pub(super) fn rooms_of(&self, group: Group) -> impl Iterator<Item = &RoomId> {
        self.private.get(&group).into_iter().flat_map(|record| record.rooms.keys())
    }

    /// A beacon says how far a node is.
    pub(super) fn on_beacon(&mut self, known: &mut Known, from: NodeId, beacon: &Beacon) {
        let now = known.cx.now.mono;
        // Only a peer that is connected can be compared with; of others the digest is hearsay.
        let due = self.compared.get(&from).is_none_or(|at| now >= *at + COMPARE_EVERY);
        if beacon.node == from && due && beacon.digest != self.all {
            self.compare_with(known, from);
        }
        if beacon.digest == self.all && beacon.digest != self.in_step {
            self.in_step = beacon.digest;
            // The digest is of the rooms that everybody has.
            self.note_in_step_with(known, None);
        }
    }

    /// A peer has what this node has not heard of, and will not be there for long. Whether it was compared with.
    pub(super) fn catch_up_with(&mut self, known: &mut Known, peer: NodeId) -> bool {
        let now = known.cx.now.mono;
        if self.compared.get(&peer).is_some_and(|at| now < *at + OFFERED_AGAIN_FOR / 2) {
            return false;
        }
        self.compare_with(known, peer);
        true
    }

    /// A peer says how far it is with the private rooms of a group.
    pub(super) fn compare_private(
        &mut self,
        known: &mut Known,
        peer: NodeId,
        group: Group,
        theirs: u64,
    ) {
        let Some(mine) = self.private.get(&group) else { return };
        if mine.folded == theirs {
            return self.note_in_step_with(known, Some(group));
        }
        let rooms: Vec<RoomDigest> = mine
            .rooms
            .iter()
            .map(|(room, digest)| RoomDigest { room: *room, digest: *digest })
            .collect();
        for part in rooms.chunks(DIGEST_ROOMS_MAX) {
            known.cx.send(peer, Message::Digests(part.to_vec()));
        }
    }

    pub(super) fn mix(&mut self, known: &Known, id: RoomId) {
        let Some(room) = known.rooms.get(&id) else { return };
        if room.replica.record.local {
            return;
        }
        if !is_listed(known, room) {
            let seal = room.replica.record.seal.clone();
            return self.forget(id, seal.as_ref());
        }
        if let Some(seal) = &room.replica.record.seal {
            let (group, digest) = (seal.group, room.replica.logs.digest());
            return self.mix_private(group, id, Some(digest));
        }
        let now = first_8(sha256(&[&id.0, &room.replica.logs.digest().to_be_bytes()]));
        let before = self.rooms.insert(id, room.replica.logs.digest());
        let before = before.map_or(0, |old| first_8(sha256(&[&id.0, &old.to_be_bytes()])));
        self.change_bucket(id, now ^ before);
    }

    fn change_bucket(&mut self, id: RoomId, by: u64) {
        if by != 0 {
            self.buckets[bucket(id)] ^= by;
            self.all = fold(&self.buckets);
        }
    }

    pub(super) fn forget(&mut self, id: RoomId, seal: Option<&Seal>) {
        if let Some(seal) = seal {
            return self.mix_private(seal.group, id, None);
        }
        if let Some(before) = self.rooms.remove(&id) {
            self.change_bucket(id, first_8(sha256(&[&id.0, &before.to_be_bytes()])));
        }
    }

    /// Tells a peer the folded digests of all rooms; it answers where they differ.
    pub(super) fn compare_with(&mut self, known: &mut Known, peer: NodeId) {
        self.compared.insert(peer, known.cx.now.mono);
        known.cx.send(peer, Message::Buckets(self.buckets.to_vec()));
    }

    pub(super) fn on_buckets(&self, known: &mut Known, from: NodeId, theirs: &[u64]) {
        let differs = |room: &RoomId| theirs.get(bucket(*room)) != self.buckets.get(bucket(*room));
        let rooms: Vec<RoomDigest> = self
            .rooms
            .iter()
            .filter(|(room, _)| differs(room))
            .map(|(room, digest)| RoomDigest { room: *room, digest: *digest })
            .collect();
        for part in rooms.chunks(DIGEST_ROOMS_MAX) {
            known.cx.send(from, Message::Digests(part.to_vec()));
        }
    }

    /// The digest of a private room is another.
    pub(super) fn mix_private(&mut self, group: Group, id: RoomId, digest: Option<u64>) {
        let all = self.private.entry(group).or_default();
        let before = match digest {
            Some(digest) => all.rooms.insert(id, digest),
            None => all.rooms.remove(&id),
        };
        for each in [before, digest].into_iter().flatten() {
            all.folded ^= first_8(crate::name::id::sha256(&[&id.0, &each.to_be_bytes()]));
        }
    }

    /// Every so often: nothing else would tell followers of runs that gossip lost.
    pub(super) fn compare_private_rooms(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        if now < self.private_compared + FOLLOWERS_COMPARE_EVERY {
            return;
        }
        self.private_compared = now;
        for peer in known.cx.up.clone() {
            let shared = known.cx.followers.shared_with(peer);
            if !shared.is_empty() {
                self.tell_how_far(known, peer, &shared);
            }
        }
    }

    pub(super) fn tell_how_far(&self, known: &mut Known, peer: NodeId, groups: &[Group]) {
        let followed = |group: &Group| {
            let digest = self.private.get(group).map_or(0, |of_group| of_group.folded);
            Some(Followed { token: known.cx.followers.token(*group)?, digest })
        };
        let followed = groups.iter().filter_map(followed).collect();
        known.cx.send(peer, Message::Follows(followed));
    }

    /// A peer has all that is in the rooms of this group, or in those that everybody has.
    pub(super) fn note_in_step_with(&mut self, known: &mut Known, group: Option<Group>) {
        let (rooms, unshared) = (&mut known.rooms, &mut self.unshared);
        let digests = group.and_then(|group| self.private.get(&group));
        unshared.retain(|id| {
            let Some(room) = rooms.get_mut(id) else { return false };
            let meant = match group {
                Some(_) => digests.is_some_and(|record| record.rooms.contains_key(id)),
                None => room.replica.record.seal.is_none(),
            };
            if meant {
                room.replica.note_in_step();
            }
            !meant
        });
    }
}

/// The maker of a room may have lost its part since, and with it the entry that lists the room: nodes
/// that had not heard of the room by then never will, and would differ for ever from those that had.
fn is_listed(known: &Known, room: &Room) -> bool {
    room.replica.record.ephemeral
        || room.replica.is_directory
        || room.replica.id == RoomId::lobby(known.cx.mesh)
        || known.directory.room(room.replica.id).is_some()
        || known.directory.direct.get(room.replica.id).is_some()
}

pub(super) fn on_digests(known: &mut Known, from: NodeId, theirs: Vec<RoomDigest>) {
    // Each room once: an answer is much larger than a question.
    let theirs: BTreeMap<RoomId, u64> =
        theirs.into_iter().map(|digest| (digest.room, digest.digest)).collect();
    let mut asked = 0;
    for (id, digest) in theirs {
        let Some(room) = known.rooms.get(&id) else {
            known.note_unknown(id, from);
            continue;
        };
        let other = room.replica.record.local || !room.replica.eligible(&known.cx).has(from);
        if other || room.replica.logs.digest() == digest || asked >= HAVES_AT_ONCE_MAX {
            continue;
        }
        asked += 1;
        let heads = room.replica.logs.heads();
        known.cx.send(from, Message::Have { room: id, heads, answer: true });
    }
}

/// One digest of all.
fn fold(buckets: &[u64; BUCKETS]) -> u64 {
    let parts: Vec<u8> = buckets.iter().flat_map(|bucket| bucket.to_be_bytes()).collect();
    first_8(sha256(&[&parts]))
}

/// The bucket of a room: for digests, and for gossip topics.
#[must_use]
pub fn bucket(room: RoomId) -> usize {
    usize::from(room.0[15]) % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_in_all_buckets_alike() {
        let buckets: Vec<usize> = (0..=255).map(|byte| bucket(RoomId([byte; 16]))).collect();
        for nth in 0..BUCKETS {
            assert_eq!(buckets.iter().filter(|it| **it == nth).count(), 256 / BUCKETS, "{nth}");
        }
        let (mut one, mut other) = ([0; BUCKETS], [0; BUCKETS]);
        (one[3], other[4]) = (7, 7);
        assert_ne!(fold(&one), fold(&other));
    }
}
