//! The rooms of a world, as far as all of its parts have to know them.

use std::collections::{BTreeMap, BTreeSet};

use mesh::name::{
    group::Group,
    id::{NodeId, RoomId},
    number::Era,
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Rooms that are in memory only, and end with their last member.
    pub(super) ephemeral: BTreeSet<RoomId>,
    /// Rooms that ended at a node that is judged: a node that parted had made them, beyond what counts of it.
    pub(super) void: BTreeSet<RoomId>,
    /// The nodes that have given numbers in an era.
    sequencers: BTreeMap<(RoomId, Era), BTreeSet<NodeId>>,
    /// The group whose each sealed room is.
    groups: BTreeMap<RoomId, Group>,
    /// Sealed rooms that list others.
    directories: BTreeSet<RoomId>,
    /// Nodes that follow the rooms of a group, since when. Unix milliseconds.
    followers: BTreeMap<(NodeId, Group), u64>,
}

impl Rooms {
    pub(super) fn is_ephemeral(&self, room: RoomId) -> bool {
        self.ephemeral.contains(&room)
    }

    /// A node gives the numbers of an era.
    pub(super) fn numbers(&mut self, room: RoomId, era: Era, node: NodeId) {
        self.sequencers.entry((room, era)).or_default().insert(node);
    }

    /// The nodes that have given numbers in an era.
    pub(super) fn sequencers(&self, room: RoomId, era: Era) -> impl Iterator<Item = NodeId> {
        self.sequencers.get(&(room, era)).into_iter().flatten().copied()
    }

    /// A node has a sealed room from now on.
    pub(super) fn seal(&mut self, room: RoomId, group: Group, follower: NodeId, wall_ms: u64) {
        self.groups.insert(room, group);
        self.followers.entry((follower, group)).or_insert(wall_ms);
    }

    /// A sealed room lists others.
    pub(super) fn list(&mut self, directory: RoomId) {
        self.directories.insert(directory);
    }

    pub(super) fn is_sealed(&self, room: RoomId) -> bool {
        self.groups.contains_key(&room)
    }

    pub(super) fn is_sealed_directory(&self, room: RoomId) -> bool {
        self.directories.contains(&room)
    }

    /// Whether its home era is nobody's.
    pub(super) fn is_nobodys(&self, room: RoomId) -> bool {
        let group = self.groups.get(&room);
        let of_several = matches!(group, Some(Group::Pair(_) | Group::Shared(_)));
        of_several || self.is_sealed_directory(room)
    }

    pub(super) fn follows(&self, node: NodeId, group: Group) -> bool {
        self.followers.contains_key(&(node, group))
    }

    /// Whether a node has a private room.
    pub(super) fn has_follower(&self, room: RoomId, node: NodeId) -> bool {
        self.groups.get(&room).is_some_and(|group| self.follows(node, *group))
    }

    /// Whether a node may have a room: all have those that are not sealed.
    pub(super) fn is_for(&self, room: RoomId, node: NodeId) -> bool {
        self.groups.get(&room).is_none_or(|group| self.follows(node, *group))
    }

    /// The moment from which a node has the room: a late follower of its group is given what others still have. Unix
    /// milliseconds; 0 if the room is for all nodes.
    pub(super) fn followed_since(&self, node: NodeId, room: RoomId) -> u64 {
        let group = self.groups.get(&room);
        group.and_then(|group| self.followers.get(&(node, *group))).copied().unwrap_or_default()
    }
}
