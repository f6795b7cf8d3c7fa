//! A mesh of one node, in memory, for tests: rooms, members, numbers, nothing else. Answers and
//! events come on the thread that asks, in one order.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use mesh::{
    command::{
        AgentView, Attach, Attached, Caller, Command, NewRoom, Outcome, Presence, Refused,
        Registration, RoomInfo, RoomView, SaidOk, Say, Speech,
    },
    entry::{DedupId, Facts, Said},
    event::{AgentEvent, Delivered, RoomEvent, TurnReason},
    id::{AgentId, At, KeyPrint, LogId, MessageId, NodeId, RoomId},
    number::Number,
};

use crate::{
    Hub, Reply,
    backend::{Mesh, ReadError, Reads, Roam, Row, Serves},
};

mod local;

pub(crate) use local::{Local, keyed, room};

pub(crate) const LOBBY: RoomId = RoomId([1; 16]);
const NODE: NodeId = NodeId([9; 32]);
const LOG: LogId = LogId { author: NODE, incarnation: 0 };

#[derive(Default)]
pub(crate) struct Fake {
    hub: OnceLock<Arc<Hub>>,
    state: Mutex<State>,
    rows: RwLock<BTreeMap<RoomId, Vec<Row>>>,
    /// Commands are not taken.
    pub(crate) full: AtomicBool,
    /// Nothing can be read.
    pub(crate) broken: AtomicBool,
    /// Answers to sends and registrations are kept back while this is set.
    pub(crate) stalls: AtomicBool,
    stalled: Mutex<Vec<(Reply, Outcome)>>,
    /// What a cursor above every number finds, before and after it was claimed for.
    pub(crate) roam: Mutex<Option<Roam>>,
    pub(crate) roamed: Mutex<Vec<(RoomId, Number)>>,
    /// What [`Command::Roam`] is answered.
    pub(crate) claims: AtomicBool,
    /// Somebody speaks while the mesh is asked to claim.
    pub(crate) speaks_while_claiming: AtomicBool,
    /// Messages are announced without their content.
    pub(crate) cold: AtomicBool,
}

#[derive(Default)]
struct State {
    rooms: BTreeMap<RoomId, Room>,
    agents: BTreeMap<AgentId, Agent>,
    dedups: BTreeMap<DedupId, MessageId>,
    ticks: u64,
}

struct Room {
    view: RoomView,
    members: Vec<AgentId>,
    turn: Option<AgentId>,
}

struct Agent {
    view: AgentView,
    key: KeyPrint,
    registration: Option<Registration>,
    seen: BTreeMap<RoomId, Number>,
}

/// A message with nothing but a text.
pub(crate) fn chat(room: RoomId, content: &str) -> Say {
    Say {
        room,
        speech: Speech::Chat,
        content: content.into(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    }
}

type Ended = Result<Outcome, Refused>;

impl Fake {
    pub(crate) fn new() -> (Arc<Fake>, Arc<Hub>) {
        let fake = Arc::new(Fake::default());
        let hub = Arc::new(Hub::new(LOBBY, fake.clone()));
        assert!(fake.hub.set(hub.clone()).is_ok());
        let lobby = NewRoom {
            name: "lobby".into(),
            description: None,
            parent: None,
            ephemeral: false,
            public: true,
            encrypted: false,
        };
        fake.open(LOBBY, lobby, None, false);
        (fake, hub)
    }

    /// Somebody says something, from outside of any connection.
    pub(crate) fn say(&self, room: RoomId, agent: &str, content: &str) -> Number {
        self.deliver(&agent.into(), agent, chat(room, content)).1.number
    }

    /// Answers to sends go out.
    pub(crate) fn flow(&self) {
        self.stalls.store(false, Ordering::Relaxed);
        for (reply, outcome) in std::mem::take(&mut *self.stalled.lock().unwrap()) {
            reply.send(Ok(outcome));
        }
    }

    pub(crate) fn members(&self, room: RoomId) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.rooms[&room].members.iter().map(|agent| agent.to_string()).collect()
    }

    pub(crate) fn attached(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.agents.values().filter(|agent| agent.registration.is_some()).count()
    }

    /// The mesh knows that an agent has seen this much.
    pub(crate) fn set_seen(&self, agent: &str, room: RoomId, number: Number) {
        let mut state = self.state.lock().unwrap();
        state.agents.get_mut(agent).unwrap().seen.insert(room, number);
    }

    /// The agent's node is gone, and has said nothing.
    pub(crate) fn forget_registration(&self, agent: &str) {
        self.state.lock().unwrap().agents.get_mut(agent).unwrap().registration = None;
    }

    pub(crate) fn displace(&self, agent: &str) {
        let agent = AgentId::from(agent);
        let registration = self.state.lock().unwrap().agents[&agent].registration.unwrap();
        self.hub().tell(AgentEvent::Displaced { agent, registration });
    }

    fn hub(&self) -> &Arc<Hub> {
        self.hub.get().unwrap()
    }

    fn tick(&self) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.ticks += 1;
        state.ticks
    }

    fn open(&self, id: RoomId, room: NewRoom, by: Option<&Caller>, announce: bool) -> RoomView {
        let view = RoomView {
            room: id,
            name: room.name.into(),
            description: room.description.map(Into::into),
            parent: room.parent,
            ephemeral: room.ephemeral,
            public: room.public,
            encrypted: room.encrypted,
            owner: by.map(|by| by.key),
            created_by: by.map(|by| by.agent.clone()),
            created_ms: 1_000,
            last_activity_ms: None,
            members: 0,
            tip: Number::ZERO,
        };
        let room = Room { view: view.clone(), members: Vec::new(), turn: None };
        self.state.lock().unwrap().rooms.insert(id, room);
        self.hub().notify(id, RoomEvent::Opened { view: view.clone(), announce });
        view
    }

    fn attach(&self, attach: Attach) -> Ended {
        let registration = Registration(self.tick());
        let mut state = self.state.lock().unwrap();
        let before = state.agents.get(&attach.agent);
        let live = before.and_then(|agent| agent.registration);
        let other = before.is_some_and(|agent| agent.key != attach.key);
        if other || (live.is_some() && !attach.reconnect) {
            return Err(Refused::AgentTaken(attach.agent));
        }
        let mut seen = before.filter(|_| attach.reconnect).map(|agent| agent.seen.clone());
        for (room, seen) in seen.iter_mut().flatten().filter(|_| live.is_some()) {
            // As the engine has it: a connection that is taken over here was told of everything.
            *seen = self.tip(*room).unwrap();
        }
        let view = AgentView {
            agent: attach.agent.clone(),
            name: attach.name.into(),
            node: NODE,
            capabilities: attach.capabilities,
            connected_ms: 2_000,
            last_active_ms: 2_000,
            presence: Presence::default(),
        };
        let agent = Agent {
            view,
            key: attach.key,
            registration: Some(registration),
            seen: seen.clone().unwrap_or_default(),
        };
        state.agents.insert(attach.agent.clone(), agent);
        for room in seen.iter().flatten().map(|(room, _)| room) {
            let room = state.rooms.get_mut(room).unwrap();
            if !room.members.contains(&attach.agent) {
                room.members.push(attach.agent.clone());
            }
        }
        Ok(Outcome::Attached(Attached {
            registration,
            restored: seen.map(|seen| seen.into_iter().collect()),
            displaced: live,
            connected_ms: 2_000,
        }))
    }

    fn is_current(&self, caller: &Caller) -> bool {
        let state = self.state.lock().unwrap();
        state.agents.get(&caller.agent).and_then(|it| it.registration) == Some(caller.registration)
    }

    fn join(&self, caller: &Caller, id: RoomId) -> Result<bool, Refused> {
        let mut state = self.state.lock().unwrap();
        let State { rooms, agents, .. } = &mut *state;
        let room = rooms.get_mut(&id).ok_or(Refused::NoRoom)?;
        if room.members.contains(&caller.agent) {
            return Ok(false);
        }
        room.members.push(caller.agent.clone());
        let tip = self.tip(id).unwrap();
        agents.get_mut(&caller.agent).unwrap().seen.insert(id, tip);
        Ok(true)
    }

    fn leave(&self, agent: &AgentId, id: RoomId, reason: TurnReason) -> Result<(), Refused> {
        let mut state = self.state.lock().unwrap();
        let room = state.rooms.get_mut(&id).ok_or(Refused::NoRoom)?;
        let place = room.members.iter().position(|member| member == agent);
        room.members.remove(place.ok_or(Refused::NotMember)?);
        let (public, owner) = (room.view.public, room.view.owner);
        let over = room.view.ephemeral && room.members.is_empty();
        if over {
            state.rooms.remove(&id);
        }
        drop(state);
        self.hub().notify(id, RoomEvent::Left { agent: agent.clone() });
        if over {
            self.hub().notify(id, RoomEvent::Destroyed { public, owner });
        } else {
            self.turn(id, None, reason);
        }
        Ok(())
    }

    /// The turn goes to the one after `after`; is it still somebody's, it stays.
    fn turn(&self, id: RoomId, after: Option<&AgentId>, reason: TurnReason) {
        let mut state = self.state.lock().unwrap();
        let room = state.rooms.get_mut(&id).unwrap();
        let before = room.turn.clone();
        let place = |of: &AgentId| room.members.iter().position(|member| member == of);
        room.turn = match after {
            Some(after) => {
                let next = place(after).map_or(0, |place| (place + 1) % room.members.len());
                room.members.get(next).cloned()
            }
            None => {
                let holder = before.clone().filter(|holder| place(holder).is_some());
                holder.or_else(|| room.members.first().cloned())
            }
        };
        let (holder, order) = (room.turn.clone(), room.members.clone().into());
        drop(state);
        if after.is_some() || holder != before {
            self.hub().notify(id, RoomEvent::Turn { holder, order, reason });
        }
    }

    fn deliver(&self, agent: &AgentId, name: &str, say: Say) -> (RoomEvent, SaidOk) {
        let wall_ms = 10_000 + self.tick();
        let room = say.room;
        let kind = if say.speech == Speech::Chat { 1 } else { 2 };
        let said = Said {
            agent: agent.clone(),
            name: name.into(),
            content: say.content,
            reply_to: say.reply_to,
            mentions: say.mentions,
            metadata: say.metadata,
            dedup: say.dedup,
            turn: None,
        };
        let mut rows = self.rows.write().unwrap();
        let rows = rows.entry(room).or_default();
        let seq = rows.len() as u64 + 1;
        let row = Row {
            number: Number(seq),
            canonical: Number(seq),
            at: At { log: 0, seq },
            log: LOG,
            message: MessageId::new(room, LOG, seq),
            facts: Facts { clock: seq, wall_ms, kind, visible: true },
            said: Some(said.clone()),
        };
        rows.push(row.clone());
        let cold = self.cold.load(Ordering::Relaxed);
        let delivered = Delivered {
            number: row.number,
            canonical: None,
            at: row.at,
            log: LOG,
            message: row.message,
            facts: row.facts,
            said: (!cold).then(|| Arc::new(said)),
        };
        let ok = SaidOk {
            message: row.message,
            number: row.number,
            wall_ms,
            name: name.into(),
            repeated: false,
        };
        (RoomEvent::Message(delivered), ok)
    }

    /// As [`Fake::say`], and tells members.
    pub(crate) fn tell(&self, room: RoomId, agent: &str, say: Say) {
        let (event, _) = self.deliver(&agent.into(), agent, say);
        self.hub().notify(room, event);
    }

    fn send(&self, caller: &Caller, say: Say, reply: Reply) {
        let (room, speech, dedup) = (say.room, say.speech, say.dedup);
        let state = self.state.lock().unwrap();
        let Some(known) = state.rooms.get(&room) else { return reply.send(Err(Refused::NoRoom)) };
        if !known.members.contains(&caller.agent) {
            return reply.send(Err(Refused::NotMember));
        }
        let name = state.agents[&caller.agent].view.name.to_string();
        let first = dedup.and_then(|id| state.dedups.get(&id)).copied();
        drop(state);
        if let Some(message) = first {
            let row = self.by_message(room, message).unwrap().unwrap();
            let (number, wall_ms) = (row.number, row.facts.wall_ms);
            let said = SaidOk { message, number, wall_ms, name, repeated: true };
            return reply.send(Ok(Outcome::Said(said)));
        }
        let (event, said) = self.deliver(&caller.agent, &name, say);
        if let Some(id) = dedup {
            self.state.lock().unwrap().dedups.insert(id, said.message);
        }
        self.hub().notify(room, event);
        if self.stalls.load(Ordering::Relaxed) {
            self.stalled.lock().unwrap().push((reply, Outcome::Said(said)));
        } else {
            reply.send(Ok(Outcome::Said(said)));
        }
        if speech == Speech::Chat {
            self.turn(room, Some(&caller.agent), TurnReason::MessageSent);
        }
    }

    fn detach(&self, caller: &Caller, seen: Vec<(RoomId, Number)>) {
        if !self.is_current(caller) {
            return;
        }
        let rooms: Vec<RoomId> = {
            let mut state = self.state.lock().unwrap();
            let agent = state.agents.get_mut(&caller.agent).unwrap();
            agent.registration = None;
            agent.seen.extend(seen);
            agent.seen.keys().copied().collect()
        };
        for room in rooms {
            // Left before.
            drop(self.leave(&caller.agent, room, TurnReason::Disconnected));
        }
    }

    fn view(&self, state: &State, id: RoomId) -> RoomView {
        let room = &state.rooms[&id];
        let rows = self.rows.read().unwrap();
        let last = rows.get(&id).and_then(|rows| rows.last());
        RoomView {
            members: room.members.len(),
            last_activity_ms: last.map(|row| row.facts.wall_ms),
            tip: last.map_or(Number::ZERO, |row| row.number),
            ..room.view.clone()
        }
    }

    fn views(&self, key: KeyPrint, parent: Option<RoomId>) -> Vec<RoomView> {
        let state = self.state.lock().unwrap();
        let all = state.rooms.keys().map(|id| self.view(&state, *id));
        all.filter(|view| view.public || view.owner == Some(key))
            .filter(|view| parent.is_none() || view.parent == parent)
            .collect()
    }

    fn agents(&self, of: impl Fn(&State, &Agent) -> bool) -> Vec<AgentView> {
        let state = self.state.lock().unwrap();
        let agents = state.agents.values().filter(|agent| of(&state, agent));
        agents.map(|agent| agent.view.clone()).collect()
    }

    fn rooms_of(&self, agent: &AgentId) -> Vec<RoomId> {
        let state = self.state.lock().unwrap();
        let rooms = state.rooms.iter().filter(|(_, room)| room.members.contains(agent));
        rooms.map(|(id, _)| *id).collect()
    }
}

impl Fake {
    fn attach_and_tell(&self, attach: Attach, reply: Reply) {
        let agent = attach.agent.clone();
        let result = self.attach(attach);
        let back = match &result {
            Ok(Outcome::Attached(it)) if it.displaced.is_none() => it.restored.clone(),
            _ => None,
        };
        match result {
            Ok(outcome) if self.stalls.load(Ordering::Relaxed) => {
                self.stalled.lock().unwrap().push((reply, outcome));
            }
            result => reply.send(result),
        }
        for (room, _) in back.into_iter().flatten() {
            let (agent, name) = (agent.clone(), "x".into());
            self.hub().notify(room, RoomEvent::Joined { agent, name, reconnected: true });
        }
    }

    fn create(&self, caller: &Caller, room: NewRoom) -> Ended {
        if self.views(caller.key, None).iter().any(|it| *it.name == room.name) {
            return Err(Refused::NameTaken(room.name));
        }
        let mut id = [2; 16];
        id[8..].copy_from_slice(&self.tick().to_be_bytes());
        let id = RoomId(id);
        Ok(Outcome::Room(self.open(id, room, Some(caller), true)))
    }

    fn join_and_tell(&self, caller: Caller, room: RoomId, reply: Reply) {
        let joined = self.join(&caller, room);
        let tells = joined == Ok(true);
        reply.send(joined.map(Outcome::Joined));
        if tells {
            let name = self.state.lock().unwrap().agents[&caller.agent].view.name.clone();
            let (agent, reconnected) = (caller.agent, false);
            self.hub().notify(room, RoomEvent::Joined { agent, name, reconnected });
            self.turn(room, None, TurnReason::Joined);
        }
    }

    fn set_typing(&self, caller: Caller, room: RoomId, typing: bool) -> Ended {
        if !self.rooms_of(&caller.agent).contains(&room) {
            return Err(Refused::NotMember);
        }
        let (agent, name) = (caller.agent, "x".into());
        self.hub().notify(room, RoomEvent::Typing { agent, name, typing });
        Ok(Outcome::Done)
    }

    fn set_presence(&self, caller: &Caller, presence: Presence) -> Ended {
        let view = {
            let mut state = self.state.lock().unwrap();
            let agent = state.agents.get_mut(&caller.agent).unwrap();
            agent.view.presence = presence;
            Arc::new(agent.view.clone())
        };
        for room in self.rooms_of(&caller.agent) {
            self.hub().notify(room, RoomEvent::Presence(view.clone()));
        }
        Ok(Outcome::Done)
    }

    fn members_of(&self, room: RoomId) -> Vec<AgentView> {
        self.agents(|state, it| state.rooms[&room].members.contains(&it.view.agent))
    }

    fn info(&self, key: KeyPrint, room: RoomId) -> RoomInfo {
        let (agents, sub_rooms) = (self.members_of(room), self.views(key, Some(room)));
        let state = self.state.lock().unwrap();
        let turn = state.rooms[&room].turn.clone();
        RoomInfo { room: self.view(&state, room), agents, sub_rooms, turn }
    }

    fn roam_for(&self, room: RoomId, cursor: Number) -> Ended {
        self.roamed.lock().unwrap().push((room, cursor));
        if self.speaks_while_claiming.load(Ordering::Relaxed) {
            self.tell(room, "z", chat(room, "meanwhile"));
        }
        self.roam.lock().unwrap().iter_mut().for_each(|script| script.needs_claim = false);
        Ok(Outcome::Roamed(self.claims.load(Ordering::Relaxed)))
    }
}

impl Mesh for Fake {
    fn call(&self, command: Command, reply: Reply) {
        if self.full.load(Ordering::Relaxed) {
            return;
        }
        let result = match command {
            Command::Attach(attach) => return self.attach_and_tell(attach, reply),
            Command::Join { caller, room } => return self.join_and_tell(caller, room, reply),
            Command::Say { caller, say } => return self.send(&caller, say, reply),
            Command::Detach { caller, seen } => {
                self.detach(&caller, seen);
                Ok(Outcome::Done)
            }
            Command::CreateRoom { caller, room } => self.create(&caller, room),
            Command::Leave { caller, room } => {
                let left = self.leave(&caller.agent, room, TurnReason::Left);
                let mut state = self.state.lock().unwrap();
                state.agents.get_mut(&caller.agent).unwrap().seen.remove(&room);
                left.map(|()| Outcome::Done)
            }
            Command::SetTyping { caller, room, typing } => self.set_typing(caller, room, typing),
            Command::SetPresence { caller, presence } => self.set_presence(&caller, presence),
            Command::ListRooms { key, parent } => Ok(Outcome::Rooms(self.views(key, parent))),
            Command::ListAgents { key, room: None } => {
                let attached = |_: &State, it: &Agent| it.key == key && it.registration.is_some();
                Ok(Outcome::Agents(self.agents(attached)))
            }
            Command::ListAgents { room: Some(room), .. } => {
                Ok(Outcome::Agents(self.members_of(room)))
            }
            Command::RoomInfo { key, room } => Ok(Outcome::RoomInfo(self.info(key, room))),
            Command::Roam { room, cursor, .. } => self.roam_for(room, cursor),
            Command::Status | Command::Stop => Err(Refused::Stopping),
        };
        reply.send(result);
    }
}

impl Fake {
    fn all(&self, room: RoomId) -> Result<Vec<Row>, ReadError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(ReadError::new("broken on purpose"));
        }
        Ok(self.rows.read().unwrap().get(&room).cloned().unwrap_or_default())
    }
}

impl Reads for Fake {
    fn page_since(&self, room: RoomId, after: Number, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.all(room)?;
        let rows = self.rows.read().unwrap();
        let rows = rows.get(&room).map(Vec::as_slice).unwrap_or_default();
        let start = rows.partition_point(|row| row.number <= after);
        Ok(rows[start..].iter().take(limit).cloned().collect())
    }

    fn page_newest(
        &self,
        room: RoomId,
        limit: usize,
        before_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.all(room)?;
        rows.retain(|row| before_ms.is_none_or(|before| row.facts.wall_ms < before));
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn by_message(&self, room: RoomId, message: MessageId) -> Result<Option<Row>, ReadError> {
        Ok(self.all(room)?.into_iter().find(|row| row.message == message))
    }

    fn by_number(&self, room: RoomId, number: Number) -> Result<Option<Row>, ReadError> {
        Ok(self.all(room)?.into_iter().find(|row| row.number == number))
    }

    fn row_at(&self, room: RoomId, at: At) -> Result<Option<Row>, ReadError> {
        Ok(self.all(room)?.into_iter().find(|row| row.at == at))
    }

    fn tip(&self, room: RoomId) -> Result<Number, ReadError> {
        let rows = self.rows.read().unwrap();
        Ok(rows.get(&room).and_then(|rows| rows.last()).map_or(Number::ZERO, |row| row.number))
    }

    fn roam(&self, _: RoomId, _: Number, limit: usize) -> Result<Roam, ReadError> {
        let mut script = self.roam.lock().unwrap();
        let mut roam = script.clone().unwrap_or_default();
        // Passed, when it is read once more.
        for script in script.iter_mut().filter(|script| !script.needs_claim) {
            script.later = false;
        }
        roam.rows.truncate(limit);
        Ok(roam)
    }

    fn serves(&self, room: RoomId, cursor: Number) -> Result<Serves, ReadError> {
        Ok(if cursor <= self.tip(room)? { Serves::Here } else { Serves::Foreign })
    }
}
