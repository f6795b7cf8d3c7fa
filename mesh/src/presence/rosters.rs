//! Agents and their rooms, over all nodes: the rosters that each announced, merged into one view.
//!
//! Of two registrations of one id the later one counts. A node that is not heard takes its agents with
//! it; their records are kept for a while, so that they can come back anywhere.

pub(crate) mod bounds;
mod own;
mod private;
mod roster;
mod seats;
mod stamps;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub(crate) use self::private::{Admitted, Seating};
pub(crate) use self::seats::Member;
use self::{
    bounds::within_limits,
    roster::NodeRoster,
    seats::{Effective, Place, Seats},
    stamps::{Stamps, is_near},
};
use crate::{
    api::command::AgentView,
    limits::{NODES_MAX, RECONNECT_WITHIN},
    name::{
        group::Group,
        id::{AgentId, KeyPrint, LogId, MeshId, NodeId, RoomId},
        time::Now,
    },
    wire::{
        entry::RoomCreated,
        roster::{AgentRecord, EphemeralRoom, RoomFacts, RosterChange, RosterNews, What},
    },
};

/// A consequence of a change of rosters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RosterEvent {
    Joined {
        room: RoomId,
        agent: AgentId,
        reconnected: bool,
    },
    Left {
        room: RoomId,
        agent: AgentId,
        disconnected: bool,
    },
    Presence {
        agent: AgentId,
    },
    /// A member is a guest now, or no guest any more.
    Reseated {
        room: RoomId,
    },
    /// An agent attached here is attached elsewhere now.
    Superseded {
        agent: AgentId,
    },
    /// An ephemeral room lives somewhere.
    RoomLives {
        room: RoomId,
    },
    /// It lives nowhere any more.
    RoomDied {
        room: RoomId,
    },
    /// A node's roster shows, perhaps for the first time, the keys that it follows.
    Shows {
        node: NodeId,
    },
}

/// Whether news could be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Known already.
    Old,
    /// Applied.
    Now,
    /// Something before it is missing: the whole roster is needed.
    Missing,
    /// Over a limit.
    Refused,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Rosters {
    me: NodeId,
    mesh: MeshId,
    nodes: BTreeMap<NodeId, NodeRoster>,
    /// Keys that stable ids belong to: records of another key do not count.
    owners: BTreeMap<AgentId, KeyPrint>,
    /// Keys that were replaced, and the ones to which all belongs that was theirs.
    current: BTreeMap<KeyPrint, KeyPrint>,
    seats: Seats,
    /// Living nodes that list an ephemeral room.
    listed: BTreeMap<RoomId, BTreeSet<NodeId>>,
    /// Rooms whose members are nobody else's business.
    pub(crate) local_rooms: BTreeSet<RoomId>,
    /// Rooms of which only followers have members, and whose these rooms are.
    sealed_rooms: BTreeMap<RoomId, private::Sealed>,
    /// Nodes that follow the rooms of each of these groups.
    followers: BTreeMap<Group, BTreeSet<NodeId>>,
    /// Sealed announcements of ephemeral rooms, as far as they could be opened here.
    opened: BTreeMap<RoomId, RoomCreated>,
    /// Own changes that were not announced yet.
    news: Vec<RosterChange>,
    happened: Vec<RosterEvent>,
    stamps: Stamps,
}

/// An ephemeral room, as this node knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ephemeral<'a> {
    pub(crate) facts: &'a RoomCreated,
    pub(crate) home: LogId,
    pub(crate) created_ms: u64,
}

impl Rosters {
    pub(crate) fn new(me: NodeId, mesh: MeshId, boot: u64) -> Rosters {
        let mine = NodeRoster { boot, alive: true, ..NodeRoster::default() };
        Rosters {
            me,
            mesh,
            nodes: BTreeMap::from([(me, mine)]),
            owners: BTreeMap::new(),
            current: BTreeMap::new(),
            seats: Seats::default(),
            listed: BTreeMap::new(),
            local_rooms: BTreeSet::new(),
            sealed_rooms: BTreeMap::new(),
            followers: BTreeMap::new(),
            opened: BTreeMap::new(),
            news: Vec::new(),
            happened: Vec::new(),
            stamps: Stamps::new(me),
        }
    }

    /// A stamp above all that were seen (see [`Stamps::draw`]).
    pub(crate) fn stamp(&mut self, now: Now) -> u64 {
        self.stamps.draw(now)
    }

    /// A stable id belongs to this key, for all that is known now.
    pub(crate) fn set_owner(&mut self, agent: &AgentId, owner: Option<KeyPrint>) {
        let before = match owner {
            Some(key) => self.owners.insert(agent.clone(), key),
            None => self.owners.remove(agent),
        };
        if before != owner {
            self.settle(agent, None);
        }
    }

    /// All that was a key's own belongs to another one now, or to itself again.
    pub(crate) fn set_current(&mut self, key: KeyPrint, current: KeyPrint) {
        if key == current {
            self.current.remove(&key);
        } else {
            self.current.insert(key, current);
        }
    }

    /// Keys that were replaced.
    pub(crate) fn replaced(&self) -> Vec<KeyPrint> {
        self.current.keys().copied().collect()
    }

    fn current(&self, key: KeyPrint) -> KeyPrint {
        self.current.get(&key).copied().unwrap_or(key)
    }

    /// Boot and version of a node's roster, as known here.
    pub(crate) fn version(&self, node: NodeId) -> (u64, u64) {
        self.nodes.get(&node).map_or((0, 0), |roster| (roster.boot, roster.version))
    }

    // Other nodes.

    /// News of a node, which was heard saying it.
    pub(crate) fn apply(&mut self, now: Now, news: RosterNews) -> Taken {
        let node = news.node;
        if node == self.me {
            return Taken::Old;
        }
        let full = self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node);
        let (version, changes, whole) = match news.what {
            What::Changes { version, changes } => (version, changes, false),
            What::Whole { version, changes } => (version, changes, true),
            What::Typing { .. } => return Taken::Old,
        };
        if full || !changes.iter().all(|change| within_limits(self.mesh, change)) {
            return Taken::Refused;
        }
        let known = self.version(node);
        if (news.boot, version) <= known {
            return Taken::Old;
        }
        if !whole && (news.boot, version) != (known.0, known.1.saturating_add(1)) {
            let roster = self.nodes.get_mut(&node).filter(|roster| roster.boot == news.boot);
            if let Some(roster) = roster {
                roster.keep_early(version, changes);
            }
            return Taken::Missing;
        }
        if whole {
            self.forget_unnamed(now, node, news.boot > known.0, &changes);
        }
        let roster = self.nodes.entry(node).or_default();
        roster.enter(news.boot, version);
        let before =
            if whole { std::mem::take(&mut roster.follows) } else { roster.follows.clone() };
        self.apply_changes(now, node, changes);
        while let Some(changes) = self.nodes.get_mut(&node).and_then(NodeRoster::next_early) {
            self.apply_changes(now, node, changes);
        }
        if whole || self.nodes.entry(node).or_default().follows != before {
            self.happened.push(RosterEvent::Shows { node });
        }
        Taken::Now
    }

    /// Forgets agents and rooms that a node no longer names. If it started anew it knows nothing of agents that were
    /// attached before: they vanished, and may come back.
    fn forget_unnamed(
        &mut self,
        now: Now,
        node: NodeId,
        restarted: bool,
        changes: &[RosterChange],
    ) {
        let Some(roster) = self.nodes.get(&node) else { return };
        let (mut agents, mut rooms) = (BTreeSet::new(), BTreeSet::new());
        for change in changes {
            if let RosterChange::Agent(agent, _) = change {
                agents.insert(agent);
            } else if let RosterChange::Room(room, _) = change {
                rooms.insert(room);
            }
        }
        let no_agents = roster.agents.keys().filter(|agent| !agents.contains(agent));
        let no_agents: Vec<AgentId> = no_agents.cloned().collect();
        let no_rooms = roster.rooms.keys().filter(|room| !rooms.contains(room));
        let no_rooms: Vec<RoomId> = no_rooms.copied().collect();
        for agent in no_agents {
            if restarted {
                self.vanish(now, node, &agent);
            } else {
                self.remove(node, &agent);
            }
        }
        for room in no_rooms {
            self.apply_change(now, node, RosterChange::NoRoom(room));
        }
    }

    /// Its node does not have it any more, but it may come back anywhere.
    fn vanish(&mut self, now: Now, node: NodeId, agent: &AgentId) {
        let Some(roster) = self.nodes.get_mut(&node) else { return };
        let Some(record) = roster.agents.get_mut(agent) else { return };
        record.gone.get_or_insert(record.registered);
        roster.gone_at.entry(agent.clone()).or_insert(now.mono);
        self.settle(agent, None);
    }

    fn apply_changes(&mut self, now: Now, node: NodeId, changes: Vec<RosterChange>) {
        for change in changes {
            self.apply_change(now, node, change);
        }
    }

    fn apply_change(&mut self, now: Now, node: NodeId, change: RosterChange) {
        match change {
            RosterChange::Agent(agent, record) => self.apply_agent(now, node, agent, record),
            RosterChange::NoAgent(agent) => self.remove(node, &agent),
            RosterChange::Room(room, ephemeral) => {
                self.nodes.entry(node).or_default().list(room, ephemeral);
                self.settle_room(node, room);
            }
            RosterChange::NoRoom(room) => {
                self.nodes.entry(node).or_default().rooms.remove(&room);
                self.settle_room(node, room);
            }
            RosterChange::Follows(token) => self.nodes.entry(node).or_default().follow(token),
        }
    }

    fn apply_agent(&mut self, now: Now, node: NodeId, agent: AgentId, mut record: AgentRecord) {
        // Private rooms have no members elsewhere; and a stamp from the far future would win
        // over everybody for ever.
        record.rooms.retain(|room, _| !self.local_rooms.contains(room));
        if !is_near(now, record.registered) {
            return;
        }
        let seats = record.rooms.values().map(|seat| seat.joined);
        let newest = seats.chain([record.registered]).max().unwrap_or(0);
        self.stamps.observe(now, newest);
        let roster = self.nodes.entry(node).or_default();
        if roster.has_place_for(&agent) {
            let before = roster.put(now.mono, &agent, record);
            self.settle(&agent, before.as_ref());
        }
    }

    fn remove(&mut self, node: NodeId, agent: &AgentId) {
        if let Some(roster) = self.nodes.get_mut(&node) {
            let before = roster.remove(agent);
            self.settle(agent, before.as_ref());
        }
    }

    fn settle_room(&mut self, node: NodeId, room: RoomId) {
        let roster = self.nodes.get(&node);
        let lists = roster.is_some_and(|roster| roster.alive && roster.rooms.contains_key(&room));
        let by = self.listed.entry(room).or_default();
        let lived = !by.is_empty();
        let is_new = if lists {
            by.insert(node)
        } else {
            by.remove(&node);
            false
        };
        let lives = !by.is_empty();
        if !lives {
            self.listed.remove(&room);
            self.opened.remove(&room);
        }
        match (lived, lives) {
            (false, true) => self.happened.push(RosterEvent::RoomLives { room }),
            (true, false) => self.happened.push(RosterEvent::RoomDied { room }),
            // None of the announcements so far may be any good.
            (true, true) if is_new && !self.unopened(room).is_empty() => {
                self.happened.push(RosterEvent::RoomLives { room });
            }
            (true, true) | (false, false) => {}
        }
    }

    /// A node is heard, or no longer.
    pub(crate) fn set_alive(&mut self, now: Duration, node: NodeId, alive: bool) {
        let Some(roster) = self.nodes.get_mut(&node) else { return };
        if roster.alive == alive || node == self.me {
            return;
        }
        roster.alive = alive;
        roster.silent_since = (!alive).then_some(now);
        let agents: Vec<AgentId> = roster.agents.keys().cloned().collect();
        let rooms: Vec<RoomId> = roster.rooms.keys().copied().collect();
        // Members come before their room lives for others, and leave before it dies.
        for agent in agents {
            self.settle(&agent, None);
        }
        for room in rooms {
            self.settle_room(node, room);
        }
    }

    /// Forgets agents that have been gone for too long to come back.
    pub(crate) fn expire(&mut self, now: Duration) {
        let old = |since: Duration| now >= since + RECONNECT_WITHIN;
        let mut gone: Vec<(NodeId, AgentId)> = Vec::new();
        for (node, roster) in &mut self.nodes {
            let vanished = roster.gone_at.iter().filter(|(_, at)| old(**at));
            gone.extend(vanished.map(|(agent, _)| (*node, agent.clone())));
            if roster.silent_since.is_some_and(old) {
                gone.extend(roster.agents.keys().map(|agent| (*node, agent.clone())));
                roster.forget_version();
            }
        }
        for (node, agent) in gone {
            if node == self.me {
                self.forget_own(&agent);
            } else {
                self.remove(node, &agent);
            }
        }
    }

    // The merged view.

    /// Finds the registration of an agent that counts now, and notes the changes.
    fn settle(&mut self, agent: &AgentId, before: Option<&AgentRecord>) {
        let best = self.best_of(agent);
        let new = best.map(|(node, record)| self.effective(agent, node, record));
        let (reconnected, presence) = best.map_or((false, None), |(_, record)| {
            (record.reconnected, Some(record.presence.clone()))
        });
        let registered = new.as_ref().map_or(0, |new| new.registered);
        let moves = self.seats.set(agent, new.as_ref());
        for room in moves.left {
            let (agent, disconnected) = (agent.clone(), new.is_none());
            self.happened.push(RosterEvent::Left { room, agent, disconnected });
        }
        for (room, joined) in moves.joined {
            let (agent, reconnected) = (agent.clone(), reconnected && joined < registered);
            self.happened.push(RosterEvent::Joined { room, agent, reconnected });
        }
        for room in moves.changed {
            self.happened.push(RosterEvent::Reseated { room });
        }
        let before = before.filter(|record| record.gone.is_none()).map(|record| &record.presence);
        if let (Some(before), Some(presence)) = (before, presence)
            && *before != presence
        {
            self.happened.push(RosterEvent::Presence { agent: agent.clone() });
        }
        self.give_way(agent, new.as_ref());
        self.give_up_if_not_owner(agent);
    }

    /// The latest registration of an agent at a node that lives, by the key that owns the id.
    fn best_of(&self, agent: &AgentId) -> Option<(NodeId, &AgentRecord)> {
        self.nodes
            .iter()
            .filter(|(_, roster)| roster.alive)
            .filter_map(|(node, roster)| Some((*node, roster.agents.get(agent)?)))
            .filter(|(_, record)| record.gone.is_none())
            .filter(|(_, record)| {
                self.owners.get(agent).is_none_or(|key| *key == self.current(record.key))
            })
            .max_by_key(|(node, record)| (record.registered, *node))
    }

    fn effective(&self, agent: &str, node: NodeId, record: &AgentRecord) -> Effective {
        let seat = Seating { agent, node, key: record.key };
        let rooms = record.rooms.iter().filter(|(room, _)| self.may_sit(**room, &seat));
        Effective {
            node,
            registered: record.registered,
            rooms: rooms
                .map(|(room, seat)| (*room, Place { joined: seat.joined, guest: seat.guest }))
                .collect(),
        }
    }

    /// Of two registrations the later counts: if this node's is the earlier one it is given up.
    fn give_way(&mut self, agent: &AgentId, winner: Option<&Effective>) {
        let Some(winner) = winner.filter(|winner| winner.node != self.me) else { return };
        let own = self.nodes.get(&self.me).and_then(|mine| mine.agents.get(agent));
        if let Some(own) = own.filter(|own| own.registered <= winner.registered) {
            let connected = own.gone.is_none();
            self.supersede(agent, connected);
        }
    }

    /// The id turned out to belong to another key: an agent that has it here loses it.
    fn give_up_if_not_owner(&mut self, agent: &AgentId) {
        let own = self.nodes.get(&self.me).and_then(|mine| mine.agents.get(agent));
        let Some((own, owner)) = own.zip(self.owners.get(agent)) else { return };
        if self.current(own.key) != *owner {
            let connected = own.gone.is_none();
            self.supersede(agent, connected);
        }
    }

    fn supersede(&mut self, agent: &AgentId, connected: bool) {
        if connected {
            self.happened.push(RosterEvent::Superseded { agent: agent.clone() });
        }
        self.forget_own(agent);
    }

    pub(crate) fn take_happened(&mut self) -> Vec<RosterEvent> {
        std::mem::take(&mut self.happened)
    }

    /// Members of a room in join order.
    pub(crate) fn members(&self, room: RoomId) -> &[Member] {
        self.seats.members(room)
    }

    /// The same, without guests.
    pub(crate) fn regulars(&self, room: RoomId) -> impl Iterator<Item = &Member> {
        self.members(room).iter().filter(|member| !member.guest)
    }

    /// Where an agent is attached now.
    pub(crate) fn node_of(&self, agent: &str) -> Option<NodeId> {
        self.seats.node_of(agent)
    }

    /// The record that counts of a connected agent.
    pub(crate) fn record(&self, agent: &str) -> Option<(NodeId, &AgentRecord)> {
        let node = self.seats.node_of(agent)?;
        Some((node, self.nodes.get(&node)?.agents.get(agent)?))
    }

    /// The latest record of an agent, connected or vanished within the time it may come back in.
    pub(crate) fn latest(&self, agent: &str) -> Option<(NodeId, &AgentRecord)> {
        let records = self.nodes.iter();
        records
            .filter_map(|(node, roster)| Some((*node, roster.agents.get(agent)?)))
            .max_by_key(|(node, record)| (record.registered, *node))
    }

    /// All connected agents, by id.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.seats.agents()
    }

    pub(crate) fn count_at(&self, node: NodeId) -> usize {
        self.seats.count_at(node)
    }

    /// An ephemeral room that lives, as one of the nodes that list it announces it.
    pub(crate) fn announced(&self, room: RoomId) -> Option<&EphemeralRoom> {
        let node = self.listed.get(&room)?.first()?;
        self.nodes.get(node)?.rooms.get(&room)
    }

    /// An ephemeral room that lives and that this node may know of.
    pub(crate) fn ephemeral(&self, room: RoomId) -> Option<Ephemeral<'_>> {
        let announced = self.announced(room)?;
        let facts = match &announced.facts {
            RoomFacts::Open(facts) => facts,
            RoomFacts::Sealed { .. } => self.opened.get(&room)?,
        };
        Some(Ephemeral { facts, home: announced.home, created_ms: announced.created_ms })
    }

    /// All ephemeral rooms that live and that this node may know of.
    pub(crate) fn ephemeral_rooms(&self) -> impl Iterator<Item = Ephemeral<'_>> {
        self.listed.keys().filter_map(|room| self.ephemeral(*room))
    }

    /// Not verified: that is for the directory to say.
    pub(crate) fn view(&self, agent: &AgentId) -> Option<AgentView> {
        let (node, record) = self.record(agent)?;
        Some(AgentView {
            agent: agent.clone(),
            name: Arc::clone(&record.name),
            node,
            key: record.key,
            verified: false,
            capabilities: record.capabilities.clone(),
            connected_ms: record.connected_ms,
            last_active_ms: record.last_active_ms,
            presence: record.presence.clone(),
            lingers: record.lingers,
            hosted: record.hosted,
            guest: false,
        })
    }

    /// An agent was just seen to do something. Not announced: everybody sees it themselves.
    pub(crate) fn touch(&mut self, agent: &str, wall_ms: u64) {
        let Some(node) = self.node_of(agent) else { return };
        let roster = self.nodes.get_mut(&node);
        if let Some(record) = roster.and_then(|roster| roster.agents.get_mut(agent)) {
            record.last_active_ms = record.last_active_ms.max(wall_ms);
        }
    }
}
