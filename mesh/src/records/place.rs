//! The place of a room's records. They are where the room is: with all nodes, with the followers of a key, or on one node. The records
//! of all rooms of one space are in its sets, and each names its room: a room without records costs nothing.

use crate::{
    name::id::RoomId,
    wire::{
        cover::Cover,
        record::{CollectionNumber, RecordId, Space},
    },
};

/// Where a room's records are, and how they are written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPlace {
    /// The room.
    pub room: RoomId,
    /// The nodes that have it.
    pub space: Space,
    /// How its records are written.
    pub cover: Cover,
}

impl RoomPlace {
    /// The beginning of the ids of a collection's records about the room.
    #[must_use]
    pub fn subject(&self, collection: CollectionNumber) -> [u8; RecordId::SUBJECT_BYTES] {
        self.cover.subject(collection, &self.room.0)
    }
}
