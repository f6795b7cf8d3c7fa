//! Agents: registering, reconnecting, joining, leaving; and telling members what rosters came to.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Engine, Waiter};
use crate::{
    api::{
        agenda::Standing,
        boundary::Effect,
        command::{Attach, Attached, CallId, Caller, Outcome, Refused, Registration},
        event::{AgentEvent, RoomEvent, TurnReason},
    },
    limits::{
        AGENT_ID_BYTES_MAX, AGENTS_PER_NODE_MAX, CAPABILITIES_MAX, DESCRIPTION_BYTES_MAX,
        MEMBERS_PER_ROOM_MAX, NAME_BYTES_MAX, ROOMS_PER_AGENT_MAX, ROSTER_KEPT_AT_ONCE_BYTES_MAX,
        ROSTER_KEPT_BYTES_MAX, ROSTER_KEPT_EVERY,
    },
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
    presence::rosters::Happened,
    wire::{
        entry::{AgentClaimed, Body},
        roster::{AgentRecord, Presence, RosterChange, RosterNews, Seat, What},
    },
};

/// The roster as it was last written down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RosterKept {
    at: Duration,
    version: u64,
    bytes: usize,
    /// Agents have come, or have taken or left seats, since.
    moved: bool,
}

impl RosterKept {
    /// Nothing was, since the start.
    pub(super) fn none(started: Duration) -> RosterKept {
        RosterKept { at: started, ..RosterKept::default() }
    }
}

impl Engine {
    // Registering.

    pub(super) fn attach(&mut self, call: CallId, attach: Attach) {
        if attach.own {
            self.own_keys.insert(attach.key);
        }
        let standing = self.standing(attach.key, attach.own);
        let may = |_: &_| self.may_have_agent(&attach).and_then(|()| self.may_attach(&attach));
        let standing = standing.and_then(|it| may(&it).map(|()| it));
        let standing = match standing {
            Ok(standing) => standing,
            Err(refused) => return self.reply(call, Err(refused)),
        };
        let Some(attach) = self.present_key(call, attach) else { return };
        if attach.stable && self.directory.owner(&attach.agent).is_none() {
            return self.claim_id(call, attach);
        }
        let attached = self.register(attach, standing);
        self.reply(call, Ok(Outcome::Attached(attached)));
    }

    fn may_attach(&self, attach: &Attach) -> Result<(), Refused> {
        let agent = &attach.agent;
        let invalid = |text: &str| Err(Refused::Invalid(text.to_owned()));
        if !(1..=AGENT_ID_BYTES_MAX).contains(&agent.len()) {
            return invalid("agent_id must have 1 to 128 bytes");
        }
        if attach.name.is_empty() || attach.name.len() > NAME_BYTES_MAX {
            return invalid("name must have 1 to 256 bytes");
        }
        let capabilities = &attach.capabilities;
        if capabilities.len() > CAPABILITIES_MAX
            || capabilities.iter().any(|it| it.len() > NAME_BYTES_MAX)
        {
            return invalid("capabilities: at most 64, of at most 256 bytes each");
        }
        if self.rosters.count_at(self.cx.me) >= AGENTS_PER_NODE_MAX {
            return Err(Refused::Full("too many agents are attached to this node".to_owned()));
        }
        let owner = self.directory.owner(agent).map(|(key, _)| key);
        if attach.stable && owner.is_some_and(|key| key != attach.key) {
            return Err(Refused::AgentTaken(agent.clone()));
        }
        let connected = self.rosters.record(agent);
        match connected {
            Some((_, record)) if !attach.reconnect || record.key != attach.key => {
                Err(Refused::AgentTaken(agent.clone()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A stable id that nobody claimed: it is claimed for its key first, and the registration goes
    /// on when the claim has its number.
    fn claim_id(&mut self, call: CallId, attach: Attach) {
        let claim = AgentClaimed { agent: attach.agent.clone(), key: attach.key };
        if !self.directory.has_room_for(&claim) {
            let full = "the mesh has no room for more stable agent ids".to_owned();
            return self.reply(call, Err(Refused::Full(full)));
        }
        if let Err(refused) = self.may_claim(attach.key) {
            return self.reply(call, Err(refused));
        }
        let directory = RoomId::directory(self.cx.mesh);
        if !self.rooms.get(&directory).is_some_and(|it| it.is_writable(&self.cx)) {
            let full = super::rooms::NOT_WRITABLE.to_owned();
            return self.reply(call, Err(Refused::Full(full)));
        }
        let body = Body::AgentClaimed(claim);
        let room = self.rooms.get_mut(&directory);
        match room.and_then(|room| room.append(&mut self.cx, &body)) {
            Some(at) => {
                let waiter = Waiter::Claimed { call, attach: Box::new(attach) };
                self.waiters.entry((directory, at)).or_default().push(waiter);
                // Known at once, as rooms are.
                self.fold_facts();
            }
            None => self.reply(call, Err(Refused::Closed)),
        }
    }

    fn register(&mut self, attach: Attach, standing: Standing) -> Attached {
        let now = self.cx.now;
        let me = self.cx.me;
        let earlier = self.rosters.latest(&attach.agent).map(|(node, it)| (node, it.clone()));
        let earlier = earlier.filter(|(_, it)| attach.reconnect && it.key == attach.key);
        let was_here = earlier.as_ref().is_some_and(|(node, it)| *node == me && it.gone.is_none());
        let restored = earlier.as_ref().map(|(_, record)| self.restore_seats(record, was_here));
        let record = AgentRecord {
            name: attach.name.into(),
            key: attach.key,
            capabilities: attach.capabilities,
            registered: self.rosters.stamp(now),
            connected_ms: now.wall_ms,
            last_active_ms: now.wall_ms,
            presence: Presence::default(),
            rooms: restored.clone().unwrap_or_default(),
            reconnected: restored.is_some(),
            gone: None,
        };
        for room in record.rooms.keys() {
            self.list_if_ephemeral(*room);
        }
        self.roster_kept.moved = true;
        self.next_registration += 1;
        let registration = Registration(self.next_registration);
        let displaced = self.registrations.insert(attach.agent.clone(), registration);
        self.rosters.put(now, attach.agent, record);
        let seats = |it: BTreeMap<RoomId, Seat>| {
            it.into_iter().map(|(room, seat)| (room, seat.seen)).collect()
        };
        Attached {
            registration,
            restored: restored.map(seats),
            displaced: displaced.filter(|_| was_here),
            connected_ms: now.wall_ms,
            standing,
        }
    }

    // Over a restart.

    /// Agents that were attached when the node last wrote its roster: gone, and free to come back.
    pub(super) fn restore_agents(&mut self) {
        // It stays until another one is written: the next crash may come before that.
        let Some(kept) = self.node.roster.clone() else { return };
        let agents = minicbor::decode::<Vec<RosterChange>>(&kept).unwrap_or_default();
        for change in agents {
            if let RosterChange::Agent(agent, mut record) = change {
                record.gone = Some(self.rosters.stamp(self.cx.now));
                self.rosters.put(self.cx.now, agent, record);
            }
        }
    }

    /// Writes the roster down when it has changed: who is there and where, with the turn that says so, as
    /// long as that is little to write; else now and then. What is newer than that is lost with the
    /// node, and with it an agent or a seat, but no message.
    pub(super) fn keep_roster(&mut self) {
        let now = self.cx.now.mono;
        let kept = self.roster_kept;
        let version = self.rosters.version(self.cx.me).1;
        let at_once = kept.moved && kept.bytes <= ROSTER_KEPT_AT_ONCE_BYTES_MAX;
        let due = at_once || now >= kept.at + ROSTER_KEPT_EVERY || self.stopping.is_some();
        if version == kept.version || !due {
            return;
        }
        let bytes = crate::wire::cbor::encode(&self.rosters.own_permanent_seats());
        self.roster_kept = RosterKept { at: now, version, bytes: bytes.len(), moved: false };
        if bytes.len() <= ROSTER_KEPT_BYTES_MAX {
            self.change_node().roster = Some(bytes.into());
        }
    }

    /// The seats of an earlier registration, in the rooms that are still there. A connection that is
    /// taken over here was told of everything up to the tip.
    fn restore_seats(&self, record: &AgentRecord, was_here: bool) -> BTreeMap<RoomId, Seat> {
        let seats =
            record.rooms.iter().filter(|(room, _)| self.may_read(record.key, **room).is_ok());
        seats
            .map(|(room, seat)| {
                let tip = self.rooms.get(room).map_or(Number::ZERO, |it| it.tip());
                (*room, Seat { seen: if was_here { tip } else { seat.seen }, ..*seat })
            })
            .collect()
    }

    /// The caller's own record, if its registration is the one that counts.
    pub(super) fn caller(&self, caller: &Caller) -> Result<AgentRecord, Refused> {
        if self.registrations.get(&caller.agent) != Some(&caller.registration) {
            return Err(Refused::Superseded);
        }
        self.rosters.own(&caller.agent).cloned().ok_or(Refused::Superseded)
    }

    pub(super) fn detach(
        &mut self,
        caller: &Caller,
        seen: &[(RoomId, Number)],
    ) -> Result<Outcome, Refused> {
        let Ok(mut record) = self.caller(caller) else { return Ok(Outcome::Done) };
        for (room, number) in seen {
            if let Some(seat) = record.rooms.get_mut(room) {
                seat.seen = *number;
            }
        }
        self.send_off(&caller.agent, record);
        Ok(Outcome::Done)
    }

    /// An agent of this node is gone, and may come back.
    pub(super) fn send_off(&mut self, agent: &AgentId, mut record: AgentRecord) {
        self.registrations.remove(agent);
        record.gone = Some(self.rosters.stamp(self.cx.now));
        self.rosters.put(self.cx.now, agent.clone(), record);
        self.settle_rosters();
        self.unlist_rooms_made_by(agent);
    }

    /// All of this node's agents are gone: it stops.
    pub(super) fn detach_all(&mut self) {
        let agents: Vec<(AgentId, AgentRecord)> = self
            .rosters
            .own_agents()
            .map(|(agent, record)| (agent.clone(), record.clone()))
            .collect();
        for (agent, mut record) in agents {
            record.gone = Some(self.rosters.stamp(self.cx.now));
            self.rosters.put(self.cx.now, agent, record);
        }
        self.registrations.clear();
    }

    // In rooms.

    pub(super) fn join(&mut self, caller: &Caller, room: RoomId) -> Result<Outcome, Refused> {
        let mut record = self.caller(caller)?;
        self.may_read(caller.key, room)?;
        self.may_write(room)?;
        if record.rooms.contains_key(&room) {
            return Ok(Outcome::Joined(false));
        }
        if self.rosters.members(room).len() >= MEMBERS_PER_ROOM_MAX {
            return Err(Refused::Full(format!("the room has {MEMBERS_PER_ROOM_MAX} members")));
        }
        if record.rooms.len() >= ROOMS_PER_AGENT_MAX {
            return Err(Refused::Full(format!("an agent may be in {ROOMS_PER_AGENT_MAX} rooms")));
        }
        let seen = self.rooms.get(&room).map_or(Number::ZERO, |it| it.tip());
        let seat = Seat { joined: self.rosters.stamp(self.cx.now), seen };
        record.rooms.insert(room, seat);
        self.list_if_ephemeral(room);
        self.roster_kept.moved = true;
        self.put(caller, record);
        Ok(Outcome::Joined(true))
    }

    pub(super) fn leave(&mut self, caller: &Caller, room: RoomId) -> Result<Outcome, Refused> {
        let mut record = self.caller(caller)?;
        self.may_read(caller.key, room)?;
        if record.rooms.remove(&room).is_none() {
            return Err(Refused::NotMember);
        }
        self.roster_kept.moved = true;
        self.put(caller, record);
        Ok(Outcome::Done)
    }

    fn put(&mut self, caller: &Caller, mut record: AgentRecord) {
        record.last_active_ms = self.cx.now.wall_ms;
        self.rosters.put(self.cx.now, caller.agent.clone(), record);
    }

    pub(super) fn set_presence(
        &mut self,
        caller: &Caller,
        presence: Presence,
    ) -> Result<Outcome, Refused> {
        let mut record = self.caller(caller)?;
        if presence.detail.as_ref().is_some_and(|it| it.len() > DESCRIPTION_BYTES_MAX) {
            return Err(Refused::Invalid("status_detail may have 4096 bytes".to_owned()));
        }
        if presence.progress.is_some_and(|it| it > 100) {
            return Err(Refused::Invalid("progress must be within 0 to 100".to_owned()));
        }
        record.presence = presence;
        self.put(caller, record);
        Ok(Outcome::Done)
    }

    pub(super) fn set_typing(
        &mut self,
        caller: &Caller,
        room: RoomId,
        typing: bool,
    ) -> Result<Outcome, Refused> {
        let record = self.caller(caller)?;
        self.may_read(caller.key, room)?;
        if !record.rooms.contains_key(&room) {
            return Err(Refused::NotMember);
        }
        let agent = caller.agent.clone();
        self.cx.notify(room, RoomEvent::Typing { agent: agent.clone(), name: record.name, typing });
        if !self.rosters.local_rooms.contains(&room) {
            self.typing_nonce += 1;
            let what = What::Typing { agent, room, typing, nonce: self.typing_nonce };
            self.tell_roster(RosterNews { node: self.cx.me, boot: self.cx.boot, what });
        }
        Ok(Outcome::Done)
    }

    // What rosters came to.

    pub(super) fn settle_rosters(&mut self) {
        let mut left = std::collections::VecDeque::from(self.rosters.take_happened());
        while let Some(happened) = left.pop_front() {
            match happened {
                Happened::Joined { room, agent, reconnected } => {
                    let Some((_, record)) = self.rosters.record(&agent) else { continue };
                    let name = Arc::clone(&record.name);
                    self.cx.notify(room, RoomEvent::Joined { agent, name, reconnected });
                    self.tell_turn(room, TurnReason::Joined, false);
                }
                Happened::Left { room, agent, disconnected } => {
                    self.cx.notify(room, RoomEvent::Left { agent });
                    let reason =
                        if disconnected { TurnReason::Disconnected } else { TurnReason::Left };
                    self.tell_turn(room, reason, false);
                    self.clear_leader_if_gone(room);
                    self.unlist_if_empty(room);
                }
                Happened::Presence { agent } => self.tell_presence(&agent),
                Happened::Superseded { agent } => {
                    if let Some(registration) = self.registrations.remove(&agent) {
                        let event = AgentEvent::Displaced { agent, registration };
                        self.cx.effects.push(Effect::Tell(event));
                    }
                }
                Happened::RoomLives { room } => self.ephemeral_room_lives(room),
                Happened::RoomDied { room } => self.ephemeral_room_died(room),
                Happened::Shows { node } => self.on_shown(node),
            }
            // One thing leads to another.
            left.extend(self.rosters.take_happened());
        }
    }

    fn tell_presence(&mut self, agent: &AgentId) {
        let Some(view) = self.rosters.view(agent) else { return };
        let view = Arc::new(view);
        let rooms: Vec<RoomId> = self
            .rosters
            .record(agent)
            .map(|(_, record)| record.rooms.keys().copied().collect())
            .unwrap_or_default();
        for room in rooms {
            self.cx.notify(room, RoomEvent::Presence(Arc::clone(&view)));
        }
    }

    /// Whose turn it is: a function of the roster and of the last message by position, which names its
    /// successor by join stamp. Is that one gone, or was nothing said, it is the first's in join order.
    pub(super) fn turn_holder(&self, room: RoomId) -> Option<AgentId> {
        let members = self.rosters.members(room);
        let turn = self.rooms.get(&room).and_then(|it| it.replica.record.spoke?.turn);
        let next = members.iter().find(|it| Some(it.joined) == turn).or_else(|| members.first());
        next.map(|it| it.agent.clone())
    }

    /// The join stamp of the member after `agent`, round robin: who is next once it has spoken.
    pub(super) fn next_turn(&self, room: RoomId, agent: &AgentId) -> Option<u64> {
        let members = self.rosters.members(room);
        let place = members.iter().position(|it| it.agent == *agent)?;
        members.get((place + 1) % members.len()).map(|it| it.joined)
    }
}
