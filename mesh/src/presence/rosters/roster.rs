//! One node's roster, as far as it is known here.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    limits::{
        AGENTS_PER_NODE_MAX, EPHEMERAL_ROOMS_MAX, GROUPS_FOLLOWED_MAX, ROSTER_CHANGES_EARLY_MAX,
    },
    name::id::{AgentId, RoomId},
    wire::{
        roster::{AgentRecord, EphemeralRoom, RosterChange},
        seal::Token,
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRoster {
    pub(super) boot: u64,
    pub(super) version: u64,
    /// Changes to versions after the next one, which came first: of two ways through the mesh, one may be slower.
    /// At most [`ROSTER_CHANGES_EARLY_MAX`].
    pub(super) early: BTreeMap<u64, Vec<RosterChange>>,
    pub(super) agents: BTreeMap<AgentId, AgentRecord>,
    pub(super) rooms: BTreeMap<RoomId, EphemeralRoom>,
    /// They show whose private rooms it follows; at most [`GROUPS_FOLLOWED_MAX`].
    pub(super) follows: BTreeSet<Token>,
    pub(super) alive: bool,
    /// Since when it is silent.
    pub(super) silent_since: Option<Duration>,
    /// When each vanished agent was seen to vanish, by this node's clock.
    pub(super) gone_at: BTreeMap<AgentId, Duration>,
}

impl NodeRoster {
    /// Enters a version of a boot.
    pub(super) fn enter(&mut self, boot: u64, version: u64) {
        if boot > self.boot {
            self.early.clear();
        }
        (self.boot, self.version) = (boot, version);
    }

    /// Any version of it is news from now on, also the one that it had before.
    pub(super) fn forget_version(&mut self) {
        self.version = 0;
        self.early.clear();
    }

    /// Keeps changes until those before them come. Of too many the last are dropped, and asked for.
    pub(super) fn keep_early(&mut self, version: u64, changes: Vec<RosterChange>) {
        self.early.entry(version).or_insert(changes);
        if self.early.len() > ROSTER_CHANGES_EARLY_MAX {
            self.early.pop_last();
        }
    }

    /// The early changes whose turn it is: the roster is of their version now.
    pub(super) fn next_early(&mut self) -> Option<Vec<RosterChange>> {
        let next = self.version.checked_add(1)?;
        // A whole roster may have brought earlier ones already.
        self.early = self.early.split_off(&next);
        let changes = self.early.remove(&next)?;
        self.version = next;
        Some(changes)
    }

    /// Whether one more agent may be in it, or this one is already.
    pub(super) fn has_place_for(&self, agent: &AgentId) -> bool {
        self.agents.len() < AGENTS_PER_NODE_MAX || self.agents.contains_key(agent)
    }

    /// Sets an agent's record. Returns the one before.
    pub(super) fn put(
        &mut self,
        now: Duration,
        agent: &AgentId,
        record: AgentRecord,
    ) -> Option<AgentRecord> {
        if record.gone.is_some() {
            self.gone_at.entry(agent.clone()).or_insert(now);
        } else {
            self.gone_at.remove(agent);
        }
        self.agents.insert(agent.clone(), record)
    }

    pub(super) fn remove(&mut self, agent: &AgentId) -> Option<AgentRecord> {
        self.gone_at.remove(agent);
        self.agents.remove(agent)
    }

    pub(super) fn list(&mut self, room: RoomId, ephemeral: EphemeralRoom) {
        if self.rooms.len() < EPHEMERAL_ROOMS_MAX {
            self.rooms.insert(room, ephemeral);
        }
    }

    pub(super) fn follow(&mut self, token: Token) {
        if self.follows.len() < GROUPS_FOLLOWED_MAX {
            self.follows.insert(token);
        }
    }
}
