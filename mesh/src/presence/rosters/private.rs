//! Private rooms in rosters: agents that may have a seat there, keys that nodes show to follow, and ephemeral rooms
//! that are announced sealed.

use std::collections::BTreeSet;

use super::Rosters;
use crate::{
    name::id::{AgentId, KeyPrint, NodeId, RoomId},
    wire::{
        entry::RoomCreated,
        roster::{EphemeralRoom, RoomFacts, RosterChange},
        seal::Token,
    },
};

impl Rosters {
    /// This node shows a key that it follows.
    pub(crate) fn follow(&mut self, token: Token) {
        if self.mine().follows.insert(token) {
            self.news.push(RosterChange::Follows(token));
        }
    }

    /// A private room has members where its key was presented, and of that key alone.
    pub(crate) fn may_sit(&self, room: RoomId, node: NodeId, key: KeyPrint) -> bool {
        self.sealed_rooms.get(&room).is_none_or(|owner| {
            let follows = || self.followers.get(owner).is_some_and(|nodes| nodes.contains(&node));
            self.current(*owner) == self.current(key) && (node == self.me || follows())
        })
    }

    /// A room turns out to be private to those who follow this key.
    pub(crate) fn set_sealed(&mut self, room: RoomId, owner: KeyPrint) {
        self.sealed_rooms.insert(room, owner);
        let seated: Vec<AgentId> =
            self.members(room).iter().map(|member| member.agent.clone()).collect();
        for agent in seated {
            self.settle(&agent, None);
        }
    }

    /// The nodes that follow a key's rooms, as far as known now.
    pub(crate) fn set_followers(&mut self, key: KeyPrint, nodes: &BTreeSet<NodeId>) {
        let before = self.followers.insert(key, nodes.clone()).unwrap_or_default();
        let changed: Vec<AgentId> = before
            .symmetric_difference(nodes)
            .filter_map(|node| self.nodes.get(node))
            .flat_map(|roster| &roster.agents)
            .filter(|(_, record)| self.current(record.key) == self.current(key))
            .map(|(agent, _)| agent.clone())
            .collect();
        for agent in changed {
            self.settle(&agent, None);
        }
    }

    /// The keys that a node's roster shows.
    pub(crate) fn follows(&self, node: NodeId) -> BTreeSet<Token> {
        self.nodes.get(&node).map(|roster| roster.follows.clone()).unwrap_or_default()
    }

    /// Announcements of an ephemeral room that nobody has opened here.
    pub(crate) fn unopened(&self, room: RoomId) -> Vec<EphemeralRoom> {
        let by = self.listed.get(&room).into_iter().flatten();
        let announced = by.filter_map(|node| self.nodes.get(node)?.rooms.get(&room));
        let sealed = announced.filter(|room| matches!(room.facts, RoomFacts::Sealed { .. }));
        sealed.filter(|_| !self.opened.contains_key(&room)).cloned().collect()
    }

    /// Ephemeral rooms of this key that live, and have not been opened here.
    pub(crate) fn unopened_of(&self, key: KeyPrint) -> Vec<RoomId> {
        let of_key = |room: &RoomId| {
            self.unopened(*room)
                .iter()
                .any(|announced| matches!(announced.facts, RoomFacts::Sealed { owner, .. } if owner == key))
        };
        self.listed.keys().copied().filter(of_key).collect()
    }

    /// The announcements of a room say this.
    pub(crate) fn open_room(&mut self, room: RoomId, facts: RoomCreated) {
        self.opened.insert(room, facts);
    }
}
