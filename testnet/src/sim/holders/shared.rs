//! Shared rooms of two keys, and how far it has come that one gives them to the other, or takes them back.

use std::collections::BTreeMap;

use mesh::{api::command::ShareAct, name::id::RoomId};

/// How far an act has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Come {
    /// Nobody wanted it.
    #[default]
    Nowhere,
    /// It may be done, or not.
    Asked,
    /// A node said that it is.
    Done,
}

/// A room, and the acts of its maker for the other key.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedRoom {
    pub(super) room: RoomId,
    /// The key that made it.
    pub(super) maker: usize,
    /// The key that it can be given to.
    pub(super) other: usize,
    pub(super) given: Come,
    pub(super) taken: Come,
}

/// Rooms by their ids.
#[derive(Debug, Default)]
pub(super) struct SharedRooms(BTreeMap<RoomId, SharedRoom>);

impl SharedRooms {
    pub(super) fn all(&self) -> Vec<SharedRoom> {
        self.0.values().copied().collect()
    }

    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.contains_key(&room)
    }

    /// Rooms that a key has, or may have.
    pub(super) fn of_key(&self, key: usize) -> impl Iterator<Item = RoomId> {
        let has = move |it: &&SharedRoom| it.maker == key || it.given != Come::Nowhere;
        self.0.values().filter(has).map(|it| it.room)
    }

    /// Those that a key has made.
    pub(super) fn made_by(&self, maker: usize) -> impl Iterator<Item = &SharedRoom> {
        self.0.values().filter(move |it| it.maker == maker)
    }

    pub(super) fn make(&mut self, room: RoomId, maker: usize, other: usize) {
        let (given, taken) = (Come::Nowhere, Come::Nowhere);
        self.0.insert(room, SharedRoom { room, maker, other, given, taken });
    }

    /// An act of a room's maker has come so far.
    pub(super) fn note(&mut self, room: RoomId, act: ShareAct, come: Come) {
        if let Some(shared) = self.0.get_mut(&room) {
            let known = match act {
                ShareAct::Give => &mut shared.given,
                ShareAct::Take => &mut shared.taken,
            };
            *known = come.max(*known);
        }
    }
}
