//! The digests of some rooms, and of all of them: by buckets, of which only those that have changed are hashed again.

use std::collections::{BTreeMap, BTreeSet};

use super::bucket;
use crate::{
    limits::BUCKETS,
    name::{digest::Digest, id::RoomId},
    wire::message::RoomDigest,
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Digested {
    /// Buckets one after the other.
    rooms: BTreeMap<(usize, RoomId), Digest>,
    /// Of buckets that are not empty.
    buckets: BTreeMap<usize, Digest>,
    /// Buckets that have changed since.
    changed: BTreeSet<usize>,
    /// Over all buckets, if none has changed.
    all: Digest,
}

impl Digested {
    /// A room's digest, new or not.
    pub(super) fn insert(&mut self, room: RoomId, digest: Digest) {
        if self.rooms.insert((bucket(room), room), digest) != Some(digest) {
            self.changed.insert(bucket(room));
        }
    }

    pub(super) fn remove(&mut self, room: RoomId) {
        if self.rooms.remove(&(bucket(room), room)).is_some() {
            self.changed.insert(bucket(room));
        }
    }

    #[cfg(test)]
    pub(super) fn contains(&self, room: RoomId) -> bool {
        self.rooms.contains_key(&(bucket(room), room))
    }

    pub(super) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.rooms.keys().map(|(_, room)| *room)
    }

    pub(super) fn digests(&self) -> impl Iterator<Item = RoomDigest> {
        self.rooms.iter().map(|((_, room), digest)| RoomDigest { room: *room, digest: *digest })
    }

    /// Those in buckets of which a peer has another digest.
    pub(super) fn in_other_buckets(&mut self, theirs: &[Digest]) -> Vec<RoomDigest> {
        let mine = self.buckets();
        let differs =
            |digest: &RoomDigest| theirs.get(bucket(digest.room)) != mine.get(bucket(digest.room));
        self.digests().filter(differs).collect()
    }

    /// One for each of [`BUCKETS`].
    pub(super) fn buckets(&mut self) -> Vec<Digest> {
        self.refresh();
        (0..BUCKETS).map(|of| self.buckets.get(&of).copied().unwrap_or_default()).collect()
    }

    /// Over all.
    pub(super) fn all(&mut self) -> Digest {
        self.refresh();
        self.all
    }

    fn refresh(&mut self) {
        if self.changed.is_empty() {
            return;
        }
        for of in std::mem::take(&mut self.changed) {
            let from = self.rooms.range((of, RoomId([0; 16]))..);
            let rooms = from.take_while(|((bucket, _), _)| *bucket == of);
            // All of one length, so that no two lists give one text.
            let text: Vec<u8> =
                rooms.flat_map(|((_, room), digest)| room.0.into_iter().chain(digest.0)).collect();
            if text.is_empty() {
                self.buckets.remove(&of);
            } else {
                self.buckets.insert(of, Digest::of(b"clawmesh room bucket", &text));
            }
        }
        self.all = if self.buckets.is_empty() {
            Digest::default()
        } else {
            let digest = |of| self.buckets.get(&of).copied().unwrap_or_default().0;
            let text: Vec<u8> = (0..BUCKETS).flat_map(digest).collect();
            Digest::of(b"clawmesh rooms", &text)
        };
    }
}
