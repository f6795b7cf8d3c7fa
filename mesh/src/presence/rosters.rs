//! Who is where, over all nodes: what each announced, merged into one view.
//!
//! Of two registrations of one id the later one counts. A node that is not heard takes its agents with
//! it; their records are kept for a while, so that they can come back anywhere.

mod private;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    api::command::AgentView,
    engine::ephemeral_id,
    limits::{
        AGENT_ID_BYTES_MAX, AGENTS_PER_NODE_MAX, CAPABILITIES_MAX, DESCRIPTION_BYTES_MAX,
        EPHEMERAL_ROOMS_MAX, KEYS_FOLLOWED_MAX, NAME_BYTES_MAX, NODES_MAX, RECONNECT_WITHIN,
        ROOMS_PER_AGENT_MAX, ROSTER_BYTES_MAX, ROSTER_CHANGES_EARLY_MAX, SEALED_FACTS_BYTES_MAX,
        STAMP_AHEAD_MAX,
    },
    name::{
        id::{AgentId, KeyPrint, LogId, MeshId, NodeId, RoomId},
        time::Now,
    },
    wire::{
        entry::RoomCreated,
        roster::{AgentRecord, EphemeralRoom, RoomFacts, RosterChange, RosterNews, What},
        seal::Token,
    },
};

/// One node's roster, as far as it is known here.
#[derive(Debug, Default)]
struct NodeRoster {
    boot: u64,
    version: u64,
    /// Changes to versions after the next one, which came first: by two ways through the mesh, the later
    /// of two may. LocalRef most [`ROSTER_CHANGES_EARLY_MAX`].
    early: BTreeMap<u64, Vec<RosterChange>>,
    agents: BTreeMap<AgentId, AgentRecord>,
    rooms: BTreeMap<RoomId, EphemeralRoom>,
    /// Shows whose private rooms it follows; at most [`KEYS_FOLLOWED_MAX`].
    follows: BTreeSet<Token>,
    alive: bool,
    /// Since when it is silent.
    silent_since: Option<Duration>,
    /// When each vanished agent was seen to vanish, by this node's clock.
    gone_at: BTreeMap<AgentId, Duration>,
}

/// What counts of an agent: its latest live registration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Effective {
    node: NodeId,
    registered: u64,
    /// Room and join stamp.
    rooms: BTreeMap<RoomId, u64>,
}

/// A member of a room, in the order in which members stand: by stamp, node, agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) joined: u64,
    pub(crate) node: NodeId,
    pub(crate) agent: AgentId,
}

/// What a change of rosters came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
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
    /// A node's roster shows, perhaps for the first time, what it follows.
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
#[derive(Debug)]
pub(crate) struct Rosters {
    me: NodeId,
    mesh: MeshId,
    nodes: BTreeMap<NodeId, NodeRoster>,
    /// Keys that stable ids belong to: records of another key do not count.
    owners: BTreeMap<AgentId, KeyPrint>,
    effective: BTreeMap<AgentId, Effective>,
    members: BTreeMap<RoomId, Vec<Member>>,
    /// Which living nodes list an ephemeral room.
    listed: BTreeMap<RoomId, BTreeSet<NodeId>>,
    /// Rooms whose members are nobody else's business.
    pub(crate) local_rooms: BTreeSet<RoomId>,
    /// Rooms of which only followers have members, and whose they are.
    sealed_rooms: BTreeMap<RoomId, KeyPrint>,
    /// Who follows the rooms of each of these keys.
    followers: BTreeMap<KeyPrint, BTreeSet<NodeId>>,
    /// What the sealed announcements of ephemeral rooms say that could be opened here.
    opened: BTreeMap<RoomId, RoomCreated>,
    /// Own changes that were not announced yet.
    news: Vec<RosterChange>,
    happened: Vec<Happened>,
    last_stamp: u64,
}

/// An ephemeral room, as this node knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ephemeral<'a> {
    pub(crate) facts: &'a RoomCreated,
    pub(crate) home: LogId,
    pub(crate) created_ms: u64,
}

/// What a [`RosterChange::Follows`] takes encoded.
const TOKEN_CHANGE_BYTES: usize = 20;

/// Bits of a stamp that count within one microsecond.
const STAMP_COUNT_BITS: u32 = 8;

impl Rosters {
    pub(crate) fn new(me: NodeId, mesh: MeshId, boot: u64) -> Rosters {
        let mine = NodeRoster { boot, alive: true, ..NodeRoster::default() };
        Rosters {
            me,
            mesh,
            nodes: BTreeMap::from([(me, mine)]),
            owners: BTreeMap::new(),
            effective: BTreeMap::new(),
            members: BTreeMap::new(),
            listed: BTreeMap::new(),
            local_rooms: BTreeSet::new(),
            sealed_rooms: BTreeMap::new(),
            followers: BTreeMap::new(),
            opened: BTreeMap::new(),
            news: Vec::new(),
            happened: Vec::new(),
            last_stamp: 0,
        }
    }

    /// A stamp above all that were seen: wall-clock microseconds where clocks agree, so that the
    /// order of stamps is the order in which things happened, and in any case one order everywhere.
    pub(crate) fn stamp(&mut self, now: Now) -> u64 {
        // What two nodes do in one microsecond gets two stamps: each begins to count elsewhere.
        let own = u64::from(self.me.0[0]) >> 2;
        self.last_stamp = (self.last_stamp + 1).max(now.wall_us << STAMP_COUNT_BITS | own);
        self.last_stamp
    }

    /// Not further ahead of this node's clock than clocks may differ.
    fn is_near(&self, now: Now, stamp: u64) -> bool {
        let ahead = u64::try_from(STAMP_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX);
        stamp >> STAMP_COUNT_BITS <= now.wall_us.saturating_add(ahead)
    }

    fn observe(&mut self, now: Now, stamp: u64) {
        if self.is_near(now, stamp) {
            self.last_stamp = self.last_stamp.max(stamp);
        }
    }

    // This node's own agents.

    fn mine(&mut self) -> &mut NodeRoster {
        self.nodes.entry(self.me).or_default()
    }

    /// One of this node's agents is now this.
    pub(crate) fn put(&mut self, now: Now, agent: AgentId, record: AgentRecord) {
        let gone = record.gone.is_some();
        let mut told = record.clone();
        told.rooms.retain(|room, _| !self.local_rooms.contains(room));
        self.news.push(RosterChange::Agent(agent.clone(), told));
        let mine = self.mine();
        if gone {
            mine.gone_at.insert(agent.clone(), now.mono);
        } else {
            mine.gone_at.remove(&agent);
        }
        let before = mine.agents.insert(agent.clone(), record);
        self.settle(&agent, before.as_ref());
    }

    fn forget_own(&mut self, agent: &AgentId) {
        let mine = self.mine();
        mine.gone_at.remove(agent);
        if mine.agents.remove(agent).is_some() {
            self.news.push(RosterChange::NoAgent(agent.clone()));
        }
    }

    /// This node lists an ephemeral room, or no longer.
    pub(crate) fn list(&mut self, room: RoomId, it: Option<EphemeralRoom>) {
        let change = match it {
            Some(it) => RosterChange::Room(room, it),
            None => RosterChange::NoRoom(room),
        };
        self.change_room(self.me, &change);
        if !self.local_rooms.contains(&room) {
            self.news.push(change);
        }
    }

    pub(crate) fn own(&self, agent: &str) -> Option<&AgentRecord> {
        self.nodes.get(&self.me)?.agents.get(agent).filter(|it| it.gone.is_none())
    }

    pub(crate) fn own_agents(&self) -> impl Iterator<Item = (&AgentId, &AgentRecord)> {
        let mine = self.nodes.get(&self.me).into_iter();
        mine.flat_map(|it| &it.agents).filter(|(_, record)| record.gone.is_none())
    }

    pub(crate) fn lists_itself(&self, room: RoomId) -> bool {
        self.nodes.get(&self.me).is_some_and(|mine| mine.rooms.contains_key(&room))
    }

    /// What has to be announced now: the new version, and the changes that lead to it.
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
        let agents = mine.agents.iter().map(|(agent, record)| {
            let mut told = record.clone();
            told.rooms.retain(|room, _| !self.local_rooms.contains(room));
            RosterChange::Agent(agent.clone(), told)
        });
        let shared = mine.rooms.iter().filter(|(id, _)| !self.local_rooms.contains(id));
        let rooms = shared.map(|(id, it)| RosterChange::Room(*id, it.clone()));
        // What does not fit a frame is not seen elsewhere: that takes thousands of agents, or rooms of which much is said.
        let fits = |it: &RosterChange| {
            let rest = left.checked_sub(crate::wire::cbor::encode(it).len());
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
        let mine = self.nodes.get(&self.me).into_iter().flat_map(|it| &it.agents);
        mine.map(|(agent, record)| RosterChange::Agent(agent.clone(), record.clone())).collect()
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

    /// What is known of a node's roster: boot and version.
    pub(crate) fn version(&self, node: NodeId) -> (u64, u64) {
        self.nodes.get(&node).map_or((0, 0), |it| (it.boot, it.version))
    }

    // Other nodes.

    /// News of a node, which was heard saying it.
    pub(crate) fn apply(&mut self, now: Now, news: RosterNews) -> Taken {
        if news.node == self.me {
            return Taken::Old;
        }
        let full = self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&news.node);
        let (version, changes, whole) = match news.what {
            What::Changes { version, changes } => (version, changes, false),
            What::Whole { version, changes } => (version, changes, true),
            What::Typing { .. } => return Taken::Old,
        };
        if full || !changes.iter().all(|it| within_limits(self.mesh, it)) {
            return Taken::Refused;
        }
        let known = self.version(news.node);
        if (news.boot, version) <= known {
            return Taken::Old;
        }
        if !whole && (news.boot, version) != (known.0, known.1.saturating_add(1)) {
            self.keep_early(news.node, (news.boot, version), changes);
            return Taken::Missing;
        }
        if whole {
            self.forget_what_is_not_in(now, (news.node, news.boot > known.0), &changes);
        }
        let roster = self.nodes.entry(news.node).or_default();
        if news.boot > roster.boot {
            roster.early.clear();
        }
        (roster.boot, roster.version) = (news.boot, version);
        let before =
            if whole { std::mem::take(&mut roster.follows) } else { roster.follows.clone() };
        for change in changes {
            self.apply_change(now, news.node, change);
        }
        while let Some(changes) = self.next_early(news.node) {
            for change in changes {
                self.apply_change(now, news.node, change);
            }
        }
        let roster = self.nodes.entry(news.node).or_default();
        if whole || roster.follows != before {
            self.happened.push(Happened::Shows { node: news.node });
        }
        Taken::Now
    }

    /// Keeps changes until those before them come. Of too many the last are dropped, and asked for.
    fn keep_early(
        &mut self,
        node: NodeId,
        (boot, version): (u64, u64),
        changes: Vec<RosterChange>,
    ) {
        let Some(roster) = self.nodes.get_mut(&node).filter(|it| it.boot == boot) else { return };
        roster.early.entry(version).or_insert(changes);
        if roster.early.len() > ROSTER_CHANGES_EARLY_MAX {
            roster.early.pop_last();
        }
    }

    /// The early changes whose turn it is: the roster is of their version now.
    fn next_early(&mut self, node: NodeId) -> Option<Vec<RosterChange>> {
        let roster = self.nodes.get_mut(&node)?;
        let next = roster.version.checked_add(1)?;
        // What a whole roster had already is of no use any more.
        roster.early = roster.early.split_off(&next);
        let changes = roster.early.remove(&next)?;
        roster.version = next;
        Some(changes)
    }

    /// Agents that a node no longer names. If it started anew it knows nothing of those that were
    /// attached before: they vanished, and may come back.
    fn forget_what_is_not_in(
        &mut self,
        now: Now,
        (node, restarted): (NodeId, bool),
        changes: &[RosterChange],
    ) {
        let Some(roster) = self.nodes.get(&node) else { return };
        let agents: BTreeSet<&AgentId> = changes
            .iter()
            .filter_map(
                |it| if let RosterChange::Agent(agent, _) = it { Some(agent) } else { None },
            )
            .collect();
        let rooms: BTreeSet<RoomId> = changes
            .iter()
            .filter_map(|it| if let RosterChange::Room(room, _) = it { Some(*room) } else { None })
            .collect();
        let no_agents: Vec<AgentId> =
            roster.agents.keys().filter(|it| !agents.contains(it)).cloned().collect();
        let no_rooms: Vec<RoomId> =
            roster.rooms.keys().filter(|it| !rooms.contains(it)).copied().collect();
        for agent in no_agents {
            if restarted {
                self.vanish(now, node, &agent);
            } else {
                self.remove(node, &agent);
            }
        }
        for room in no_rooms {
            self.change_room(node, &RosterChange::NoRoom(room));
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

    fn apply_change(&mut self, now: Now, node: NodeId, change: RosterChange) {
        match change {
            RosterChange::Agent(agent, mut record) => {
                // Private rooms have no members elsewhere; and a stamp from the far future would win
                // over everybody for ever.
                record.rooms.retain(|room, _| !self.local_rooms.contains(room));
                if !self.is_near(now, record.registered) {
                    return;
                }
                let seats = record.rooms.values().map(|seat| seat.joined);
                let newest = seats.chain([record.registered]).max().unwrap_or(0);
                self.observe(now, newest);
                let roster = self.nodes.entry(node).or_default();
                if roster.agents.len() >= AGENTS_PER_NODE_MAX && !roster.agents.contains_key(&agent)
                {
                    return;
                }
                if record.gone.is_some() {
                    roster.gone_at.entry(agent.clone()).or_insert(now.mono);
                } else {
                    roster.gone_at.remove(&agent);
                }
                let before = roster.agents.insert(agent.clone(), record);
                self.settle(&agent, before.as_ref());
            }
            RosterChange::NoAgent(agent) => self.remove(node, &agent),
            RosterChange::Room(..) | RosterChange::NoRoom(_) => self.change_room(node, &change),
            RosterChange::Follows(token) => {
                let follows = &mut self.nodes.entry(node).or_default().follows;
                if follows.len() < KEYS_FOLLOWED_MAX {
                    follows.insert(token);
                }
            }
        }
    }

    fn remove(&mut self, node: NodeId, agent: &AgentId) {
        if let Some(roster) = self.nodes.get_mut(&node) {
            roster.gone_at.remove(agent);
            let before = roster.agents.remove(agent);
            self.settle(agent, before.as_ref());
        }
    }

    fn change_room(&mut self, node: NodeId, change: &RosterChange) {
        let roster = self.nodes.entry(node).or_default();
        let room = match change {
            RosterChange::Room(room, it) => {
                if roster.rooms.len() < EPHEMERAL_ROOMS_MAX {
                    roster.rooms.insert(*room, it.clone());
                }
                *room
            }
            RosterChange::NoRoom(room) => {
                roster.rooms.remove(room);
                *room
            }
            RosterChange::Agent(..) | RosterChange::NoAgent(_) | RosterChange::Follows(_) => return,
        };
        self.settle_room(node, room);
    }

    fn settle_room(&mut self, node: NodeId, room: RoomId) {
        let lists =
            self.nodes.get(&node).is_some_and(|it| it.alive && it.rooms.contains_key(&room));
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
            (false, true) => self.happened.push(Happened::RoomLives { room }),
            (true, false) => self.happened.push(Happened::RoomDied { room }),
            // What was announced so far may be no good.
            (true, true) if is_new && !self.unopened(room).is_empty() => {
                self.happened.push(Happened::RoomLives { room });
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
                // Whatever it has then is news, also if it is what it had before.
                roster.version = 0;
                roster.early.clear();
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

    /// Recomputes what counts of an agent, and notes what that changes.
    fn settle(&mut self, agent: &AgentId, before: Option<&AgentRecord>) {
        let best = self
            .nodes
            .iter()
            .filter(|(_, roster)| roster.alive)
            .filter_map(|(node, roster)| Some((*node, roster.agents.get(agent)?)))
            .filter(|(_, record)| record.gone.is_none())
            .filter(|(_, record)| self.owners.get(agent).is_none_or(|key| *key == record.key))
            .max_by_key(|(node, record)| (record.registered, *node));
        let new = best.map(|(node, record)| Effective {
            node,
            registered: record.registered,
            rooms: record
                .rooms
                .iter()
                .filter(|(room, _)| self.may_sit(**room, (node, record.key)))
                .map(|(room, seat)| (*room, seat.joined))
                .collect(),
        });
        let (reconnected, presence) = best.map_or((false, None), |(_, record)| {
            (record.reconnected, Some(record.presence.clone()))
        });
        let registered = new.as_ref().map_or(0, |it| it.registered);
        let old = match &new {
            Some(new) => self.effective.insert(agent.clone(), new.clone()),
            None => self.effective.remove(agent),
        };
        self.move_seats(agent, (old.as_ref(), new.as_ref()), |joined| {
            reconnected && joined < registered
        });
        let before = before.filter(|it| it.gone.is_none()).map(|it| &it.presence);
        if let (Some(before), Some(presence)) = (before, presence)
            && *before != presence
        {
            self.happened.push(Happened::Presence { agent: agent.clone() });
        }
        self.give_way(agent, new.as_ref());
        self.give_up_if_not_owner(agent);
    }

    fn move_seats(
        &mut self,
        agent: &AgentId,
        (old, new): (Option<&Effective>, Option<&Effective>),
        is_restored: impl Fn(u64) -> bool,
    ) {
        let none = BTreeMap::new();
        let before = old.map_or(&none, |it| &it.rooms);
        let after = new.map_or(&none, |it| &it.rooms);
        for (room, joined) in before {
            let stays =
                after.get(room) == Some(joined) && old.map(|it| it.node) == new.map(|it| it.node);
            if stays {
                continue;
            }
            if let Some(members) = self.members.get_mut(room) {
                members.retain(|it| it.agent != *agent);
                if members.is_empty() {
                    self.members.remove(room);
                }
            }
            if !after.contains_key(room) {
                let (room, agent) = (*room, agent.clone());
                self.happened.push(Happened::Left { room, agent, disconnected: new.is_none() });
            }
        }
        let Some(node) = new.map(|it| it.node) else { return };
        for (room, joined) in after {
            let members = self.members.entry(*room).or_default();
            let member = Member { joined: *joined, node, agent: agent.clone() };
            if let Err(place) = members.binary_search(&member) {
                members.insert(place, member);
            }
            if !before.contains_key(room) {
                let (room, agent) = (*room, agent.clone());
                let reconnected = is_restored(*joined);
                self.happened.push(Happened::Joined { room, agent, reconnected });
            }
        }
    }

    /// Of two registrations the later counts: if this node's is the earlier one it is given up.
    fn give_way(&mut self, agent: &AgentId, winner: Option<&Effective>) {
        let Some(winner) = winner.filter(|it| it.node != self.me) else { return };
        let Some(own) = self.nodes.get(&self.me).and_then(|mine| mine.agents.get(agent)) else {
            return;
        };
        if own.registered <= winner.registered {
            if own.gone.is_none() {
                self.happened.push(Happened::Superseded { agent: agent.clone() });
            }
            self.forget_own(agent);
        }
    }

    /// The id turned out to belong to another key: whoever has it here loses it.
    fn give_up_if_not_owner(&mut self, agent: &AgentId) {
        let own = self.nodes.get(&self.me).and_then(|mine| mine.agents.get(agent));
        let Some((own, owner)) = own.zip(self.owners.get(agent)) else { return };
        if own.key != *owner {
            if own.gone.is_none() {
                self.happened.push(Happened::Superseded { agent: agent.clone() });
            }
            self.forget_own(agent);
        }
    }

    pub(crate) fn take_happened(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.happened)
    }

    /// Members of a room in join order.
    pub(crate) fn members(&self, room: RoomId) -> &[Member] {
        self.members.get(&room).map_or(&[], Vec::as_slice)
    }

    /// Where an agent is attached now.
    pub(crate) fn node_of(&self, agent: &str) -> Option<NodeId> {
        self.effective.get(agent).map(|it| it.node)
    }

    /// The record that counts of a connected agent.
    pub(crate) fn record(&self, agent: &str) -> Option<(NodeId, &AgentRecord)> {
        let node = self.effective.get(agent)?.node;
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
        self.effective.keys()
    }

    pub(crate) fn count_at(&self, node: NodeId) -> usize {
        self.effective.values().filter(|it| it.node == node).count()
    }

    /// An ephemeral room that lives, as one of the nodes that list it announces it.
    pub(crate) fn announced(&self, room: RoomId) -> Option<&EphemeralRoom> {
        let node = self.listed.get(&room)?.first()?;
        self.nodes.get(node)?.rooms.get(&room)
    }

    /// An ephemeral room that lives and that this node may know of.
    pub(crate) fn ephemeral(&self, room: RoomId) -> Option<Ephemeral<'_>> {
        let it = self.announced(room)?;
        let facts = match &it.facts {
            RoomFacts::Open(facts) => facts,
            RoomFacts::Sealed { .. } => self.opened.get(&room)?,
        };
        Some(Ephemeral { facts, home: it.home, created_ms: it.created_ms })
    }

    /// All ephemeral rooms that live and that this node may know of.
    pub(crate) fn ephemeral_rooms(&self) -> impl Iterator<Item = Ephemeral<'_>> {
        self.listed.keys().filter_map(|room| self.ephemeral(*room))
    }

    pub(crate) fn view(&self, agent: &AgentId) -> Option<AgentView> {
        let (node, record) = self.record(agent)?;
        Some(AgentView {
            agent: agent.clone(),
            name: Arc::clone(&record.name),
            node,
            capabilities: record.capabilities.clone(),
            connected_ms: record.connected_ms,
            last_active_ms: record.last_active_ms,
            presence: record.presence.clone(),
        })
    }

    /// An agent was just seen to do something. Not announced: everybody sees it themselves.
    pub(crate) fn touch(&mut self, agent: &str, wall_ms: u64) {
        let Some(node) = self.node_of(agent) else { return };
        let roster = self.nodes.get_mut(&node);
        if let Some(record) = roster.and_then(|it| it.agents.get_mut(agent)) {
            record.last_active_ms = record.last_active_ms.max(wall_ms);
        }
    }
}

/// Name and description are of a length that this node would give them.
pub(crate) fn facts_fit(facts: &RoomCreated) -> bool {
    facts.name.len() <= NAME_BYTES_MAX
        && facts.description.as_ref().is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX)
}

fn within_limits(mesh: MeshId, change: &RosterChange) -> bool {
    let id = |agent: &AgentId| (1..=AGENT_ID_BYTES_MAX).contains(&agent.len());
    match change {
        RosterChange::Agent(agent, record) => {
            id(agent)
                && record.name.len() <= NAME_BYTES_MAX
                && record.capabilities.len() <= CAPABILITIES_MAX
                && record.capabilities.iter().all(|it| it.len() <= NAME_BYTES_MAX)
                && record.rooms.len() <= ROOMS_PER_AGENT_MAX
                && record.presence.progress.is_none_or(|it| it <= 100)
                && record
                    .presence
                    .detail
                    .as_ref()
                    .is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX)
        }
        RosterChange::NoAgent(agent) => id(agent),
        RosterChange::Room(room, it) => {
            let facts = match &it.facts {
                RoomFacts::Open(facts) => facts.room == *room && facts_fit(facts),
                RoomFacts::Sealed { sealed, .. } => sealed.len() <= SEALED_FACTS_BYTES_MAX,
            };
            // The id follows from whose log is its home: nobody passes one room off as another.
            facts
                && it.home.incarnation != 0
                && *room == ephemeral_id(mesh, it.home, it.facts.is_sealed())
        }
        RosterChange::NoRoom(_) | RosterChange::Follows(_) => true,
    }
}
