//! Private rooms in rosters: agents that may have a seat there, keys that nodes show to follow, and ephemeral rooms
//! that are announced sealed.

use std::collections::BTreeSet;

use super::Rosters;
use crate::{
    name::{
        group::{Group, Sides},
        id::{AgentId, KeyPrint, NodeId, RoomId},
    },
    wire::{
        entry::RoomCreated,
        roster::{EphemeralRoom, RoomFacts, RosterChange},
        seal::Token,
    },
};

/// A room of which only followers have members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    /// Its group.
    group: Group,
    admitted: Admitted,
}

/// The agents that may have a seat in a private room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// None: it is not listed.
    Nobody,
    /// All of this key.
    Key(KeyPrint),
    /// All of these keys.
    Keys(BTreeSet<KeyPrint>),
    /// These two.
    Sides(Sides),
}

/// An agent that would have a seat, as its node tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seating<'a> {
    pub(crate) agent: &'a str,
    pub(crate) node: NodeId,
    pub(crate) key: KeyPrint,
}

impl Rosters {
    /// This node shows a group that it follows.
    pub(crate) fn follow(&mut self, token: Token) {
        if self.mine().follows.insert(token) {
            self.news.push(RosterChange::Follows(token));
        }
    }

    /// A private room has members where its group is followed, and of that group alone.
    pub(crate) fn may_sit(&self, room: RoomId, seat: &Seating<'_>) -> bool {
        let Seating { agent, node, key } = *seat;
        self.sealed_rooms.get(&room).is_none_or(|sealed| {
            let followers = self.followers.get(&sealed.group);
            let follows = || followers.is_some_and(|nodes| nodes.contains(&node));
            self.admits(sealed, agent, key) && (node == self.me || follows())
        })
    }

    fn admits(&self, sealed: &Sealed, agent: &str, key: KeyPrint) -> bool {
        match &sealed.admitted {
            Admitted::Nobody => false,
            Admitted::Key(own) => self.are_one(*own, key),
            Admitted::Keys(keys) => keys.iter().any(|own| self.are_one(*own, key)),
            Admitted::Sides(sides) => {
                sides.iter().any(|(side, of)| **side == *agent && self.are_one(of, key))
            }
        }
    }

    /// Whether what belongs to one of two keys belongs to the other: they are the same, or one has replaced the other.
    fn are_one(&self, one: KeyPrint, other: KeyPrint) -> bool {
        self.current(one) == self.current(other)
    }

    /// A room turns out to be private to those who follow this group.
    pub(crate) fn set_sealed(&mut self, room: RoomId, group: Group, admitted: Admitted) {
        let sealed = Sealed { group, admitted };
        let before = self.sealed_rooms.insert(room, sealed.clone());
        if before.as_ref() == Some(&sealed) {
            return;
        }
        let seated = self.members(room).iter().map(|member| member.agent.clone());
        let mut changed: BTreeSet<AgentId> = seated.collect();
        if before.is_some() {
            // Nodes may have told of agents that were not admitted then.
            let agents = self.nodes.values().flat_map(|roster| &roster.agents);
            let there = agents.filter(|(_, record)| record.rooms.contains_key(&room));
            changed.extend(there.map(|(agent, _)| agent.clone()));
        }
        for agent in changed {
            self.settle(&agent, None);
        }
    }

    /// The nodes that follow a group's rooms, as far as known now.
    pub(crate) fn set_followers(&mut self, group: Group, nodes: &BTreeSet<NodeId>) {
        let before = self.followers.insert(group, nodes.clone()).unwrap_or_default();
        let changed: Vec<AgentId> = before
            .symmetric_difference(nodes)
            .filter_map(|node| self.nodes.get(node))
            .flat_map(|roster| &roster.agents)
            .filter(|(_, record)| {
                let of_any = matches!(group, Group::Shared(_));
                of_any || group.keys().any(|key| self.are_one(key, record.key))
            })
            .map(|(agent, _)| agent.clone())
            .collect();
        for agent in changed {
            self.settle(&agent, None);
        }
    }

    /// The groups that a node's roster shows.
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
