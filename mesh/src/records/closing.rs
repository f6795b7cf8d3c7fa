//! Rooms that the key which made them has closed, for ever: nobody sees them any more, and their names stay taken. The record is
//! where the room is, so of a private room nobody else learns. What other keys say closes nothing.

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{CLOSED_RECORDS_PER_KEY_MAX, CLOSED_RECORDS_PER_NODE_MAX},
    name::id::RoomId,
    wire::{
        cbor::encode,
        cover::Cover,
        record::{CollectionNumber, Draft, RecordId},
    },
};

/// One record for each room that is closed.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(50),
    name: "room.closed",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::End,
    body_bytes_max: 32,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: true,
    owner_max: CLOSED_RECORDS_PER_KEY_MAX,
    node_max: CLOSED_RECORDS_PER_NODE_MAX,
    names: |body, _| {
        let Closed { room } = minicbor::decode(body).ok()?;
        Some(Cover::Open.id(COLLECTION.number, &room.0, &[]))
    },
};

/// The content of a record.
#[derive(Encode, Decode)]
struct Closed {
    #[n(0)]
    room: RoomId,
}

/// The name of the record that closes a room. Nobody but those who have the room can tell which one it is of, if it is sealed.
#[must_use]
pub fn id(at: &RoomPlace) -> RecordId {
    at.cover.id(COLLECTION.number, &at.room.0, &[])
}

/// The record to write.
#[must_use]
pub fn draft(at: &RoomPlace) -> Draft {
    let body = Some(encode(&Closed { room: at.room }));
    Draft { space: at.space, collection: COLLECTION.number, id: id(at), body }
}
