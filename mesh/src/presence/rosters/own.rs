//! This node's own roster: its agents, the ephemeral rooms that it lists, and their announcement.

use super::{Rosters, roster::NodeRoster};
use crate::{
    limits::ROSTER_BYTES_MAX,
    name::{
        id::{AgentId, RoomId},
        time::Now,
    },
    wire::{
        cbor::encode,
        roster::{AgentRecord, EphemeralRoom, RosterChange, What},
    },
};

/// An encoded [`RosterChange::Follows`].
const TOKEN_CHANGE_BYTES: usize = 20;

impl Rosters {
    pub(super) fn mine(&mut self) -> &mut NodeRoster {
        self.nodes.entry(self.me).or_default()
    }

    /// One of this node's agents is now this.
    pub(crate) fn put(&mut self, now: Now, agent: AgentId, record: AgentRecord) {
        self.news.push(RosterChange::Agent(agent.clone(), self.told(&record)));
        let mine = self.mine();
        // It vanishes now, whenever it did before.
        mine.gone_at.remove(&agent);
        let before = mine.put(now.mono, &agent, record);
        self.settle(&agent, before.as_ref());
    }

    /// A record as others are told of it: without rooms that are private to this node.
    fn told(&self, record: &AgentRecord) -> AgentRecord {
        let mut told = record.clone();
        told.rooms.retain(|room, _| !self.local_rooms.contains(room));
        told
    }

    pub(super) fn forget_own(&mut self, agent: &AgentId) {
        if self.mine().remove(agent).is_some() {
            self.news.push(RosterChange::NoAgent(agent.clone()));
        }
    }

    /// This node lists an ephemeral room, or no longer.
    pub(crate) fn list(&mut self, room: RoomId, ephemeral: Option<EphemeralRoom>) {
        let change = match ephemeral {
            Some(ephemeral) => {
                self.mine().list(room, ephemeral.clone());
                RosterChange::Room(room, ephemeral)
            }
            None => {
                self.mine().rooms.remove(&room);
                RosterChange::NoRoom(room)
            }
        };
        self.settle_room(self.me, room);
        if !self.local_rooms.contains(&room) {
            self.news.push(change);
        }
    }

    pub(crate) fn own(&self, agent: &str) -> Option<&AgentRecord> {
        self.nodes.get(&self.me)?.agents.get(agent).filter(|record| record.gone.is_none())
    }

    pub(crate) fn own_agents(&self) -> impl Iterator<Item = (&AgentId, &AgentRecord)> {
        let mine = self.nodes.get(&self.me).into_iter();
        mine.flat_map(|mine| &mine.agents).filter(|(_, record)| record.gone.is_none())
    }

    pub(crate) fn lists_itself(&self, room: RoomId) -> bool {
        self.nodes.get(&self.me).is_some_and(|mine| mine.rooms.contains_key(&room))
    }

    /// The next announcement: the new version, and the changes that lead to it.
    pub(crate) fn take_news(&mut self) -> Option<What> {
        if self.news.is_empty() {
            return None;
        }
        let changes = std::mem::take(&mut self.news);
        let mine = self.mine();
        mine.version += 1;
        Some(What::Changes { version: mine.version, changes })
    }

    /// This node's whole roster.
    pub(crate) fn whole(&self) -> What {
        let Some(mine) = self.nodes.get(&self.me) else {
            return What::Whole { version: 0, changes: Vec::new() };
        };
        let follows = mine.follows.iter().map(|token| RosterChange::Follows(*token));
        let mut left = ROSTER_BYTES_MAX.saturating_sub(mine.follows.len() * TOKEN_CHANGE_BYTES);
        let agents = mine.agents.iter();
        let agents =
            agents.map(|(agent, record)| RosterChange::Agent(agent.clone(), self.told(record)));
        let shared = mine.rooms.iter().filter(|(id, _)| !self.local_rooms.contains(id));
        let rooms = shared.map(|(id, room)| RosterChange::Room(*id, room.clone()));
        // Changes beyond a frame are not seen elsewhere: that takes thousands of agents, or rooms of which much is said.
        let fits = |change: &RosterChange| {
            let rest = left.checked_sub(encode(change).len());
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let changes = follows.chain(agents.chain(rooms).filter(fits)).collect();
        What::Whole { version: mine.version, changes }
    }

    /// The same as a version of its own: by gossip, which carries nothing twice within a minute.
    pub(crate) fn whole_anew(&mut self) -> What {
        self.mine().version += 1;
        self.whole()
    }

    /// This node's agents with their seats in rooms that outlive it.
    pub(crate) fn own_permanent_seats(&self) -> Vec<RosterChange> {
        let mine = self.nodes.get(&self.me).into_iter().flat_map(|mine| &mine.agents);
        mine.map(|(agent, record)| RosterChange::Agent(agent.clone(), record.clone())).collect()
    }
}
