//! The rooms of a world, as far as all of its parts have to know them.

use std::collections::{BTreeMap, BTreeSet};

use mesh::name::id::{KeyPrint, NodeId, RoomId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Rooms that are in memory only, and end with their last member.
    pub(super) ephemeral: BTreeSet<RoomId>,
    /// Rooms that ended at a node that is judged: a node that parted had made them, beyond what counts of it.
    pub(super) void: BTreeSet<RoomId>,
    /// The key that owns each sealed room.
    owners: BTreeMap<RoomId, KeyPrint>,
    /// Sealed rooms that list others.
    directories: BTreeSet<RoomId>,
    /// Nodes that follow the rooms of a key, since when. Unix milliseconds.
    followers: BTreeMap<(NodeId, KeyPrint), u64>,
}

impl Rooms {
    pub(super) fn is_ephemeral(&self, room: RoomId) -> bool {
        self.ephemeral.contains(&room)
    }

    /// A node has a sealed room from now on.
    pub(super) fn seal(&mut self, room: RoomId, owner: KeyPrint, follower: NodeId, wall_ms: u64) {
        self.owners.insert(room, owner);
        self.followers.entry((follower, owner)).or_insert(wall_ms);
    }

    /// A sealed room lists others.
    pub(super) fn list(&mut self, directory: RoomId) {
        self.directories.insert(directory);
    }

    pub(super) fn is_sealed(&self, room: RoomId) -> bool {
        self.owners.contains_key(&room)
    }

    pub(super) fn is_sealed_directory(&self, room: RoomId) -> bool {
        self.directories.contains(&room)
    }

    pub(super) fn follows(&self, node: NodeId, key: KeyPrint) -> bool {
        self.followers.contains_key(&(node, key))
    }

    /// Whether a node may have a room: all have those that are not sealed.
    pub(super) fn is_for(&self, room: RoomId, node: NodeId) -> bool {
        self.owners.get(&room).is_none_or(|owner| self.follows(node, *owner))
    }

    /// The moment from which a node has the room: a late follower of its key is given what others still have. Unix
    /// milliseconds; 0 if the room is for all nodes.
    pub(super) fn followed_since(&self, node: NodeId, room: RoomId) -> u64 {
        let owner = self.owners.get(&room);
        owner.and_then(|owner| self.followers.get(&(node, *owner))).copied().unwrap_or_default()
    }
}
