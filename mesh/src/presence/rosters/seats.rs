//! Members of rooms: the seats of agents, by the latest live registration of each.

use std::collections::BTreeMap;

use crate::name::id::{AgentId, NodeId, RoomId};

/// The latest live registration of an agent, which counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effective {
    pub(super) node: NodeId,
    pub(super) registered: u64,
    /// Its places in rooms.
    pub(super) rooms: BTreeMap<RoomId, Place>,
}

/// A place in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Join stamp.
    pub(super) joined: u64,
    pub(super) guest: bool,
}

/// A member of a room, in the order in which members stand: by stamp, node, agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) joined: u64,
    pub(crate) node: NodeId,
    pub(crate) agent: AgentId,
    pub(crate) guest: bool,
}

/// Rooms that an agent came to or left, in the order in which that is told.
#[derive(Debug, Default)]
pub(super) struct Moves {
    pub(super) left: Vec<RoomId>,
    /// With join stamps.
    pub(super) joined: Vec<(RoomId, u64)>,
    /// It is a guest there now, or no guest any more.
    pub(super) changed: Vec<RoomId>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats {
    effective: BTreeMap<AgentId, Effective>,
    members: BTreeMap<RoomId, Vec<Member>>,
}

impl Seats {
    /// Another registration of an agent counts, or none any more.
    pub(super) fn set(&mut self, agent: &AgentId, new: Option<&Effective>) -> Moves {
        let old = match new {
            Some(new) => self.effective.insert(agent.clone(), new.clone()),
            None => self.effective.remove(agent),
        };
        let mut moves = Moves::default();
        let none = BTreeMap::new();
        let before = old.as_ref().map_or(&none, |old| &old.rooms);
        let after = new.map_or(&none, |new| &new.rooms);
        let stays_at_node = old.as_ref().map(|old| old.node) == new.map(|new| new.node);
        for (room, place) in before {
            if stays_at_node && after.get(room) == Some(place) {
                continue;
            }
            self.leave(*room, agent);
            if !after.contains_key(room) {
                moves.left.push(*room);
            }
        }
        let Some(node) = new.map(|new| new.node) else { return moves };
        for (room, Place { joined, guest }) in after {
            let (joined, guest) = (*joined, *guest);
            self.join(*room, Member { joined, node, agent: agent.clone(), guest });
            match before.get(room) {
                None => moves.joined.push((*room, joined)),
                Some(was) if was.guest != guest => moves.changed.push(*room),
                Some(_) => {}
            }
        }
        moves
    }

    fn leave(&mut self, room: RoomId, agent: &AgentId) {
        let Some(members) = self.members.get_mut(&room) else { return };
        members.retain(|member| member.agent != *agent);
        if members.is_empty() {
            self.members.remove(&room);
        }
    }

    fn join(&mut self, room: RoomId, member: Member) {
        let members = self.members.entry(room).or_default();
        if let Err(place) = members.binary_search(&member) {
            members.insert(place, member);
        }
    }

    /// Members of a room in join order.
    pub(super) fn members(&self, room: RoomId) -> &[Member] {
        self.members.get(&room).map_or(&[], Vec::as_slice)
    }

    pub(super) fn node_of(&self, agent: &str) -> Option<NodeId> {
        self.effective.get(agent).map(|counts| counts.node)
    }

    pub(super) fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.effective.keys()
    }

    pub(super) fn count_at(&self, node: NodeId) -> usize {
        self.effective.values().filter(|counts| counts.node == node).count()
    }
}
