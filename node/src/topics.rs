//! Gossip topics: one for each bucket of rooms, and one for all nodes.

use mesh::name::id::{MeshId, RoomId};

/// How many topics there are.
pub(crate) const TOPICS: u16 = mesh::limits::BUCKETS as u16 + 1;
/// The topic of all nodes.
pub(crate) const ALL_NODES: u16 = TOPICS - 1;

/// The topic of a room; `None`: a message to all nodes.
pub(crate) fn topic_of(room: Option<RoomId>) -> u16 {
    room.and_then(|room| u16::try_from(mesh::bucket(room)).ok()).unwrap_or(ALL_NODES)
}

/// Those that a relay listens to: it has one room.
pub(crate) fn of_relays(mesh: MeshId) -> Vec<u16> {
    vec![topic_of(Some(RoomId::directory(mesh))), ALL_NODES]
}
