//! Digests of rooms, and comparing them with those of peers.
//!
//! Rooms that everybody has are digested by bucket, and all buckets into one digest; private rooms by group
//! (`docs/decisions/private-rooms.md`). A room that is written is only noted: it is hashed when a digest is read, and
//! for beacons ten times a second at most. So what a beacon says can be a tick old: older than the truth, never ahead.

mod digested;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use self::digested::Digested;
pub(super) use self::steps::Steps;
use super::known::Known;
use crate::{
    limits::{BUCKETS, DIGEST_ROOMS_MAX, FOLLOWERS_COMPARE_EVERY, OFFERED_AGAIN_FOR, TICK},
    name::{
        digest::Digest,
        group::Group,
        id::{NodeId, RoomId},
    },
    room::Room,
    wire::{
        message::{Beacon, Followed, Message, RoomDigest},
        seal::Seal,
    },
};

/// How long a peer's digest may differ before it is looked into: news under way explain it first.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// Rooms that were written are hashed for beacons so often: a tick always finds it due, if nothing was written just before.
const REFRESH_EVERY: Duration = TICK.checked_div(2).expect("not zero");
/// Rooms whose frontiers are asked for at once; the next comparison brings the rest.
const HAVES_AT_ONCE_MAX: usize = 1_024;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Digests {
    public: Digested,
    /// Of these the one that relays have: the directory.
    of_relays: Digested,
    private: BTreeMap<Group, Digested>,
    /// Rooms that were written since their digests were read.
    changed: BTreeSet<RoomId>,
    /// When all were read.
    refreshed: Option<Duration>,
    /// Over public rooms, then.
    said: Digest,
    /// Rooms with entries of this node that no other one is known to have: looked at when a peer turns out
    /// to have everything.
    pub(super) unshared: BTreeSet<RoomId>,
    /// When digests were last compared with a peer.
    compared: BTreeMap<NodeId, Duration>,
    private_compared: Duration,
    /// The digest at which a peer was last known to have everything.
    in_step: Option<Digest>,
    steps: Steps,
}

impl Digests {
    pub(super) fn new() -> Digests {
        Digests {
            public: Digested::default(),
            of_relays: Digested::default(),
            private: BTreeMap::new(),
            changed: BTreeSet::new(),
            refreshed: None,
            said: Digest::default(),
            unshared: BTreeSet::new(),
            compared: BTreeMap::new(),
            private_compared: Duration::ZERO,
            in_step: None,
            steps: Steps::default(),
        }
    }

    /// How far other nodes are, for people.
    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// A message was delivered here.
    pub(super) fn note_said(&mut self, known: &Known, room: RoomId) {
        let room = known.rooms.get(&room);
        if room.is_some_and(|room| room.replica.record.seal.is_none() && !room.replica.record.local)
        {
            self.steps.said += 1;
        }
    }

    /// A room was written: it is hashed when a digest is read, and noted if nobody else is known to have all of it.
    pub(super) fn note(&mut self, known: &Known, id: RoomId) {
        let Some(room) = known.rooms.get(&id) else { return };
        if room.replica.is_shared() {
            self.unshared.remove(&id);
        } else {
            self.unshared.insert(id);
        }
        self.changed.insert(id);
    }

    /// An ephemeral room has ended.
    pub(super) fn forget_room(&mut self, room: &Room) {
        self.changed.remove(&room.replica.id);
        self.forget(room.replica.id, room.replica.record.seal.as_ref());
        self.unshared.remove(&room.replica.id);
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.compared.remove(&peer);
    }

    /// The private rooms of a group.
    pub(super) fn rooms_of(&mut self, known: &mut Known, group: Group) -> Vec<RoomId> {
        self.refresh(known);
        self.private.get(&group).into_iter().flat_map(Digested::rooms).collect()
    }

    // Hashing.

    /// Over the rooms that everybody has.
    pub(super) fn all(&mut self, known: &mut Known) -> Digest {
        self.refresh(known);
        self.said
    }

    /// The same for beacons: as it is, or was a moment ago.
    pub(super) fn said(&mut self, known: &mut Known) -> Digest {
        if self.is_due(known) { self.all(known) } else { self.said }
    }

    fn is_due(&self, known: &Known) -> bool {
        let due = |at: Duration| known.cx.now.mono >= at + REFRESH_EVERY;
        !self.changed.is_empty() && self.refreshed.is_none_or(due)
    }

    fn refresh(&mut self, known: &mut Known) {
        for id in std::mem::take(&mut self.changed) {
            self.refresh_room(known, id);
        }
        self.said = self.public.all();
        self.refreshed = Some(known.cx.now.mono);
        self.steps.note_own(known.cx.now.mono, self.said);
    }

    fn refresh_room(&mut self, known: &mut Known, id: RoomId) {
        let Some(room) = known.rooms.get(&id) else { return };
        let seal = room.replica.record.seal.clone();
        let (local, listed) = (room.replica.record.local, is_listed(known, room));
        if local {
            return;
        }
        if !listed {
            return self.forget(id, seal.as_ref());
        }
        let Some(room) = known.rooms.get_mut(&id) else { return };
        let digest = room.replica.logs.digest();
        if id == RoomId::directory(known.cx.mesh) {
            self.of_relays.insert(id, digest);
        }
        match seal {
            Some(seal) => self.private.entry(seal.group).or_default().insert(id, digest),
            None => self.public.insert(id, digest),
        }
    }

    fn forget(&mut self, id: RoomId, seal: Option<&Seal>) {
        match seal {
            Some(seal) => {
                if let Some(of_group) = self.private.get_mut(&seal.group) {
                    of_group.remove(id);
                }
            }
            None => self.public.remove(id),
        }
    }

    /// Whether a room that everybody has is in the digest.
    #[cfg(test)]
    pub(super) fn has(&mut self, known: &mut Known, room: RoomId) -> bool {
        self.refresh(known);
        self.public.contains(room)
    }

    #[cfg(test)]
    pub(super) fn buckets(&mut self, known: &mut Known) -> Vec<Digest> {
        self.refresh(known);
        self.public.buckets()
    }

    // Comparing.

    /// A beacon says how far a node is.
    pub(super) fn on_beacon(&mut self, known: &mut Known, from: NodeId, beacon: &Beacon) {
        let now = known.cx.now.mono;
        self.steps.note_own(now, self.said);
        if known.cx.is_relay() || known.cx.relays.contains(&beacon.node) {
            return self.on_beacon_about_directory(known, from, beacon);
        }
        self.steps.on_beacon(now, from, beacon);
        // Only a peer that is connected can be compared with; of others the digest is hearsay.
        let due = self.compared.get(&from).is_none_or(|at| now >= *at + COMPARE_EVERY);
        let may_compare = beacon.node == from && due;
        if may_compare || self.is_due(known) {
            self.refresh(known);
        }
        if !self.changed.is_empty() {
            // Beacons come from all nodes, time and again: the next one finds this node at rest, or the time come.
            return;
        }
        if may_compare && beacon.digest != self.said {
            self.compare_with(known, from);
        }
        if beacon.digest == self.said && self.in_step != Some(self.said) {
            self.in_step = Some(self.said);
            // The digest is of the rooms that everybody has.
            self.note_in_step_with(known, None);
        }
    }

    /// One of the two keeps the directory alone: its digest is of that. It is compared where it is known, by the other one.
    fn on_beacon_about_directory(&mut self, known: &mut Known, from: NodeId, beacon: &Beacon) {
        let (now, node) = (known.cx.now.mono, beacon.node);
        if !known.cx.relays.contains(&node) {
            return self.steps.on_beacon(now, from, beacon);
        }
        if self.is_due(known) {
            self.refresh(known);
        }
        if !self.changed.is_empty() {
            return;
        }
        let is_even = beacon.digest == self.of_relays.all();
        self.steps.on_beacon_of_relay(now, (node, from), is_even);
        let due = self.compared.get(&from).is_none_or(|at| now >= *at + COMPARE_EVERY);
        if node == from && due && !is_even {
            self.compare_with(known, from);
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

    /// A peer says how far it is with the private rooms of a group. Whether it has all that is here.
    pub(super) fn compare_private(
        &mut self,
        known: &mut Known,
        peer: NodeId,
        group: Group,
        theirs: Digest,
    ) -> bool {
        self.refresh(known);
        let Some(mine) = self.private.get_mut(&group) else { return false };
        if mine.all() == theirs {
            self.note_in_step_with(known, Some(group));
            return true;
        }
        tell(known, peer, &mine.digests().collect::<Vec<_>>());
        false
    }

    /// Tells a peer the digests of all buckets; it answers where they differ.
    pub(super) fn compare_with(&mut self, known: &mut Known, peer: NodeId) {
        self.refresh(known);
        self.compared.insert(peer, known.cx.now.mono);
        if known.cx.is_relay() || known.cx.relays.contains(&peer) {
            return tell(known, peer, &self.of_relays.digests().collect::<Vec<_>>());
        }
        known.cx.send(peer, Message::Buckets(self.public.buckets()));
    }

    pub(super) fn on_buckets(&mut self, known: &mut Known, from: NodeId, theirs: &[Digest]) {
        self.refresh(known);
        tell(known, from, &self.public.in_other_buckets(theirs));
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

    pub(super) fn tell_how_far(&mut self, known: &mut Known, peer: NodeId, groups: &[Group]) {
        self.refresh(known);
        let mut followed = |group: &Group| {
            let digest = self.private.get_mut(group).map(Digested::all).unwrap_or_default();
            let (followers, records) = (&known.cx.followers, known.cx.followers.records(*group));
            Some(Followed { token: followers.token(*group)?, digest, records })
        };
        let followed = groups.iter().filter_map(&mut followed).collect();
        known.cx.send(peer, Message::Follows(followed));
    }

    /// A peer has all that is in the rooms of this group, or in those that everybody has.
    pub(super) fn note_in_step_with(&mut self, known: &mut Known, group: Option<Group>) {
        let (rooms, unshared) = (&mut known.rooms, &mut self.unshared);
        if let Some(group) = group {
            // Peers say so of many groups at once: only the rooms of each are looked at.
            for id in self.private.get(&group).into_iter().flat_map(Digested::rooms) {
                if unshared.remove(&id)
                    && let Some(room) = rooms.get_mut(&id)
                {
                    room.replica.note_in_step();
                }
            }
            return;
        }
        unshared.retain(|id| {
            let Some(room) = rooms.get_mut(id) else { return false };
            let is_public = room.replica.record.seal.is_none();
            if is_public {
                room.replica.note_in_step();
            }
            !is_public
        });
    }
}

/// In parts.
fn tell(known: &mut Known, peer: NodeId, rooms: &[RoomDigest]) {
    for part in rooms.chunks(DIGEST_ROOMS_MAX) {
        known.cx.send(peer, Message::Digests(part.to_vec()));
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
        || matches!(known.sealed_for(room.replica.id), Some(Group::Shared(_)))
}

pub(super) fn on_digests(known: &mut Known, from: NodeId, theirs: Vec<RoomDigest>) {
    // Each room once: an answer is much larger than a question.
    let theirs: BTreeMap<RoomId, Digest> =
        theirs.into_iter().map(|digest| (digest.room, digest.digest)).collect();
    let mut asked = 0;
    for (id, digest) in theirs {
        let Some(room) = known.rooms.get_mut(&id) else {
            known.note_unknown(id, from);
            continue;
        };
        let other = room.replica.record.local || !room.replica.is_kept_by(&known.cx, from);
        if other || room.replica.logs.digest() == digest || asked >= HAVES_AT_ONCE_MAX {
            continue;
        }
        asked += 1;
        let heads = room.replica.logs.heads();
        known.cx.send(from, Message::Have { room: id, heads, answer: true });
    }
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
    }
}
