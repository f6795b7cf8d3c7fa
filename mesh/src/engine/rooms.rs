//! Rooms: creating them, writing in them, and the two that need special care: ephemeral ones, which
//! live as long as somebody lists them, and the lobby of a node that joined another mesh.

use super::{Engine, Waiter, private::Reach};
use crate::{
    api::{
        command::{CallId, Caller, Encryption, NewRoom, Outcome, Refused, SaidOk, Say, Speech},
        event::RoomEvent,
    },
    limits::{
        CONTENT_BYTES_MAX, DESCRIPTION_BYTES_MAX, EPHEMERAL_BYTES_MAX, EPHEMERAL_EMPTY_FOR,
        EPHEMERAL_ROOMS_MAX, EPHEMERAL_ROOMS_PER_NODE_MAX, HELD_MAX, MENTIONS_MAX, NAME_BYTES_MAX,
        NUMBER_WITHIN, PLAIN_BODY_BYTES_MAX, ROOMS_MAX,
    },
    name::{
        id::{KeyPrint, LocalRef, LogId, MeshId, RoomId, sha256},
        number::Number,
    },
    wire::{
        entry::{Body, Decision, DedupId, RoomCreated, Said},
        message::Message,
        roster::EphemeralRoom,
    },
};

impl Engine {
    // Creating.

    pub(super) fn create_room(&mut self, call: CallId, caller: &Caller, room: NewRoom) {
        if let Err(refused) = self.may_create(caller, &room) {
            return self.reply(call, Err(refused));
        }
        if room.ephemeral {
            let result = self.create_ephemeral(caller, room);
            return self.reply(call, result);
        }
        let directory = match self.directory_for(caller.key, room.public) {
            Ok(directory) => directory,
            Err(refused) => return self.reply(call, Err(refused)),
        };
        let Some(known) = self.rooms.get_mut(&directory) else {
            return self.reply(call, Err(Refused::NoRoom));
        };
        if !known.is_writable(&self.cx) {
            return self.reply(call, Err(Refused::Full(NOT_WRITABLE.to_owned())));
        }
        let seq = known.replica.logs.head_of(known.replica.mine) + 1;
        let id = crate::directory::room_id(self.cx.mesh, directory, known.replica.mine, seq);
        let body = Body::RoomCreated(created(caller, room, id));
        let Some(at) = known.append(&mut self.cx, &body) else {
            return self.reply(call, Err(Refused::Closed));
        };
        let waiter = Waiter::Created { call, key: caller.key };
        self.waiters.entry((directory, at)).or_default().push(waiter);
        // Known at once: the next one that is asked for in this turn is counted with it.
        self.fold_facts();
    }

    fn may_create(&self, caller: &Caller, room: &NewRoom) -> Result<(), Refused> {
        self.caller(caller)?;
        if room.name.trim().is_empty() || room.name.len() > NAME_BYTES_MAX {
            return Err(Refused::Invalid(
                "name must have 1 to 256 bytes and not be blank".to_owned(),
            ));
        }
        if room.description.as_ref().is_some_and(|it| it.len() > DESCRIPTION_BYTES_MAX) {
            return Err(Refused::Invalid("description may have 4096 bytes".to_owned()));
        }
        if let Some(parent) = room.parent {
            self.may_read(caller.key, parent)?;
            self.may_write(parent)?;
        }
        let ephemeral = self.ephemeral.iter().filter_map(|id| self.told.get(id));
        let taken = room.name == "lobby"
            || self.directory.is_taken(&room.name, caller.key)
            || ephemeral
                .clone()
                .any(|it| *it.name == *room.name && (it.public || it.owner == Some(caller.key)));
        if taken {
            return Err(Refused::NameTaken(room.name.clone()));
        }
        self.may_have_room(caller.key)?;
        if self.directory.room_count() >= ROOMS_MAX {
            return Err(Refused::Full(format!("the mesh has {ROOMS_MAX} rooms")));
        }
        let all = ephemeral.count();
        let own = self.rosters.ephemeral_rooms().filter(|it| it.home.author == self.cx.me).count();
        if room.ephemeral && (all >= EPHEMERAL_ROOMS_MAX || own >= EPHEMERAL_ROOMS_PER_NODE_MAX) {
            return Err(Refused::Full("too many ephemeral rooms are alive".to_owned()));
        }
        Ok(())
    }

    fn create_ephemeral(&mut self, caller: &Caller, room: NewRoom) -> Result<Outcome, Refused> {
        let home = self.next_ephemeral_log();
        let reach = self.reach_of(self.directory_for(caller.key, room.public)?);
        let id = ephemeral_id(self.cx.mesh, home, matches!(reach, Reach::Followers(_)));
        self.ensure_ephemeral_room(id, (home, reach), true);
        let facts = self.announce_facts(home, created(caller, room, id), reach);
        let it = EphemeralRoom { facts, home, created_ms: self.cx.now.wall_ms };
        self.rosters.list(id, Some(it));
        self.settle_rosters();
        let view = self.view(id).ok_or(Refused::NoRoom)?;
        Ok(Outcome::Room(self.for_key(view, caller.key)))
    }

    // Ephemeral rooms.

    /// A member of this node keeps the room alive, whoever else leaves it.
    pub(super) fn list_if_ephemeral(&mut self, room: RoomId) {
        if !self.rosters.lists_itself(room)
            && let Some(it) = self.rosters.announced(room).cloned()
        {
            self.rosters.list(room, Some(it));
        }
    }

    /// The last member here has left: for this node the room need not live on.
    pub(super) fn unlist_if_empty(&mut self, room: RoomId) {
        let me = self.cx.me;
        if self.rosters.lists_itself(room)
            && self.rosters.members(room).iter().all(|it| it.node != me)
        {
            self.rosters.list(room, None);
            self.settle_rosters();
        }
    }

    /// Rooms that this agent made and nobody has joined end with it.
    pub(super) fn unlist_rooms_made_by(&mut self, agent: &str) {
        let made = self
            .rosters
            .ephemeral_rooms()
            .filter(|it| it.home.author == self.cx.me && *it.facts.created_by == *agent);
        let made: Vec<RoomId> = made.map(|it| it.facts.room).collect();
        for room in made {
            if self.rosters.members(room).is_empty() {
                self.unlist_if_empty(room);
            }
        }
    }

    /// Rooms that were made here and that nobody has joined for long.
    pub(super) fn forget_empty_ephemeral_rooms(&mut self) {
        let now = self.cx.now.wall_ms;
        let empty_for = u64::try_from(EPHEMERAL_EMPTY_FOR.as_millis()).unwrap_or(u64::MAX);
        let is_old = |room: &RoomId| {
            let made = self.rosters.ephemeral(*room).map_or(now, |it| it.created_ms);
            now > made.saturating_add(empty_for) && self.rosters.members(*room).is_empty()
        };
        let old: Vec<RoomId> = self.ephemeral.iter().copied().filter(is_old).collect();
        for room in old {
            self.unlist_if_empty(room);
        }
    }

    pub(super) fn ephemeral_room_lives(&mut self, id: RoomId) {
        self.open_announcement(id);
        let Some(it) = self.rosters.ephemeral(id) else { return };
        let sealed = matches!(self.rosters.announced(id), Some(it) if it.facts.is_sealed());
        let reach = if sealed { Reach::Followers(it.facts.owner) } else { Reach::Mesh };
        let home = it.home;
        let others = self.ephemeral.iter().filter(|other| **other != id);
        if others.count() >= EPHEMERAL_ROOMS_MAX {
            self.cx.faults.overflow += 1;
            return;
        }
        self.ensure_ephemeral_room(id, (home, reach), false);
        self.tell_of_room(id, true);
    }

    pub(super) fn ephemeral_room_died(&mut self, id: RoomId) {
        let Some(mut room) = self.rooms.remove(&id) else { return };
        if !room.replica.record.ephemeral {
            self.rooms.insert(id, room);
            return;
        }
        self.ephemeral.remove(&id);
        room.replica.pending.clear(&mut self.cx);
        self.cx.ephemeral_bytes -= room.replica.bytes;
        for entry in room.order.numbering.undelivered.values() {
            self.cx.warm_bytes -= entry.body_bytes;
        }
        let waiting: Vec<(RoomId, LocalRef)> =
            self.waiters.range((id, LocalRef { log: 0, seq: 0 })..).map(|(key, _)| *key).collect();
        for key in waiting.into_iter().take_while(|(room, _)| *room == id) {
            for waiter in self.waiters.remove(&key).unwrap_or_default() {
                if let Waiter::Said { call, .. } | Waiter::Created { call, .. } = waiter {
                    self.reply(call, Err(Refused::NoRoom));
                }
            }
        }
        self.forget_votes(&room);
        self.forget_tasks(&room);
        self.led.remove(&id);
        self.forget_digest(id, room.replica.record.seal.as_ref());
        self.busy.remove(&id);
        self.unshared.remove(&id);
        self.turns.remove(&id);
        self.crowds.remove(&id);
        self.proofs.retain(|it| !matches!(it, Message::Fork(it, _) if it.room == id));
        self.cx.change(crate::api::batch::Change::Drop { room: id });
        if let Some(view) = self.told.remove(&id) {
            let access = view.access();
            self.cx.notify(id, RoomEvent::Destroyed { access });
        }
    }

    // Writing.

    pub(super) fn say(&mut self, call: CallId, caller: &Caller, say: Say) {
        let lobby = RoomId::lobby(self.cx.mesh);
        if say.room == lobby && self.node.lobby_floor > Number::ZERO && self.held.len() < HELD_MAX {
            // Numbered now, it would be behind the cursors that this node's clients hold.
            self.held.push((call, caller.clone(), say));
            return;
        }
        if let Err(refused) = self.try_say(call, caller, say) {
            self.reply(call, Err(refused));
        }
    }

    fn try_say(&mut self, call: CallId, caller: &Caller, say: Say) -> Result<(), Refused> {
        let record = self.caller(caller)?;
        self.may_read(caller.key, say.room)?;
        self.may_write(say.room)?;
        if !record.rooms.contains_key(&say.room) {
            return Err(Refused::NotMember);
        }
        self.may_contain(&say)?;
        if let Some(id) = say.dedup
            && self.repeats(call, &say, id)
        {
            return Ok(());
        }
        let (room, name) = (say.room, record.name.to_string());
        let turn = match say.speech {
            Speech::Chat => self.next_turn(room, &caller.agent),
            Speech::Thinking | Speech::Decision => None,
        };
        let said = Said {
            agent: caller.agent.clone(),
            name: name.clone(),
            content: say.content,
            reply_to: say.reply_to,
            mentions: say.mentions,
            metadata: say.metadata,
            dedup: say.dedup,
            turn,
            id: None,
        };
        let body = match say.speech {
            Speech::Chat => Body::Chat(said),
            Speech::Thinking => Body::Thinking(said),
            Speech::Decision => {
                // Whoever is refused has been told before why.
                self.settle_elections(room);
                let election = self.led_by(room, &caller.agent).ok_or(Refused::NotLeader)?;
                Body::Decision(Decision { said, election })
            }
        };
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::TooLarge { len, max: PLAIN_BODY_BYTES_MAX });
        }
        let state = self.rooms.get_mut(&room).ok_or(Refused::NoRoom)?;
        if state.replica.record.ephemeral && self.cx.ephemeral_bytes + len > EPHEMERAL_BYTES_MAX {
            return Err(Refused::Full(NO_MEMORY.to_owned()));
        }
        if !state.is_writable(&self.cx) {
            return Err(Refused::Full(NOT_WRITABLE.to_owned()));
        }
        let at = state.append(&mut self.cx, &body).ok_or(Refused::Closed)?;
        let wall_ms = self.cx.now.wall_ms;
        let waiter = Waiter::Said { call, name, wall_ms, repeated: false };
        self.waiters.entry((room, at)).or_default().push(waiter);
        Ok(())
    }

    fn may_contain(&self, say: &Say) -> Result<(), Refused> {
        if say.content.len() > CONTENT_BYTES_MAX {
            return Err(Refused::TooLarge { len: say.content.len(), max: CONTENT_BYTES_MAX });
        }
        if say.mentions.len() > MENTIONS_MAX {
            return Err(Refused::Invalid(format!("mentions: at most {MENTIONS_MAX}")));
        }
        let encrypted = self.told.get(&say.room).is_some_and(|it| it.encrypted);
        if encrypted && say.encryption == Encryption::None {
            return Err(Refused::Plaintext);
        }
        Ok(())
    }

    /// A repeated send is answered with the first one's message. `false`: it is the first.
    fn repeats(&mut self, call: CallId, say: &Say, id: DedupId) -> bool {
        let wall_ms = self.cx.now.wall_ms;
        let Some(room) = self.rooms.get_mut(&say.room) else { return false };
        let Some((at, number)) = room.order.sent.find(wall_ms, id) else { return false };
        let name = String::new();
        match number {
            Some(number) => {
                let Some(message) = self.message_id(say.room, at) else { return false };
                let said = SaidOk { message, number, wall_ms, name, repeated: true };
                self.reply(call, Ok(Outcome::Said(said)));
            }
            // Nobody takes what was written here, so nobody is to wait for it.
            None if !room.is_writable(&self.cx) => return false,
            None => {
                let waiter = Waiter::Said { call, name, wall_ms, repeated: true };
                self.waiters.entry((say.room, at)).or_default().push(waiter);
            }
        }
        true
    }

    // Access.

    /// Whether agents of this key may know of the room and read it.
    pub(super) fn may_read(&self, key: KeyPrint, room: RoomId) -> Result<(), Refused> {
        let view = self.told.get(&room).ok_or(Refused::NoRoom)?;
        if view.access().includes(key) { Ok(()) } else { Err(Refused::NotYours) }
    }

    /// Whether anybody may write in the room.
    pub(super) fn may_write(&self, room: RoomId) -> Result<(), Refused> {
        if self.rooms.contains_key(&room) { Ok(()) } else { Err(Refused::Closed) }
    }

    // A lobby that was longer.

    /// This node's lobby was longer than the mesh's it joined: the lobby gets one new era, above the
    /// cursors that this node's clients hold.
    pub(super) fn raise_lobby(&mut self) {
        let floor = self.node.lobby_floor;
        if floor == Number::ZERO {
            return;
        }
        let lobby = RoomId::lobby(self.cx.mesh);
        let Some(room) = self.rooms.get_mut(&lobby) else { return };
        // First hear how long it is: only a node that is up to date with some peer can tell. Whoever
        // hears nobody goes on without: nobody is kept waiting for longer than for a number.
        let patient = self.cx.now.mono < self.started + NUMBER_WITHIN;
        if patient && (!room.replica.sync.has_heard() || room.replica.sync.is_behind()) {
            return room.replica.ask_all(&mut self.cx);
        }
        let era = room.order.numbering.current();
        let highest = era.number(room.order.numbering.known(era));
        // Who may not write here raises nothing: those who wait are told so.
        let closed = !room.is_writable(&self.cx);
        if closed || highest >= floor || room.number_above(&mut self.cx, floor, &[]) {
            self.change_node().lobby_floor = Number::ZERO;
            for (call, caller, say) in std::mem::take(&mut self.held) {
                self.say(call, &caller, say);
            }
        }
    }

    // Rooms that peers spoke of too early.

    /// A peer speaks of a room that is not known here: as soon as it is, that peer is asked.
    pub(super) fn note_unknown(&mut self, room: RoomId, from: crate::name::id::NodeId) {
        const UNKNOWN_ROOMS_MAX: usize = 1_024;
        if self.unknown.len() >= UNKNOWN_ROOMS_MAX && !self.unknown.contains_key(&room) {
            // Rooms that will never be known here must not stay in the way of those that will.
            self.unknown.pop_first();
        }
        self.unknown.insert(room, from);
    }

    pub(super) fn ask_who_spoke_of(&mut self, room: RoomId) {
        if let Some(peer) = self.unknown.remove(&room) {
            let heads = self.rooms.get(&room).map(|it| it.replica.logs.heads()).unwrap_or_default();
            self.cx.send(peer, Message::Have { room, heads, answer: true });
        }
    }
}

/// Why a room takes nothing from this node.
pub(super) const NOT_WRITABLE: &str = "the room takes nothing from this node: its numbers are used up, the node's log was forked, or the node has \
     no part in the mesh any more; use another room or node";

/// Why an ephemeral room takes nothing.
pub(super) const NO_MEMORY: &str =
    "this node's memory for ephemeral rooms is full: use a permanent room";

/// The id of the ephemeral room whose home is this log. A sealed one has another than an open one would
/// have: nobody can announce the one as the other, and be told what is meant for the one.
pub(crate) fn ephemeral_id(mesh: MeshId, home: LogId, sealed: bool) -> RoomId {
    let label: &[u8] =
        if sealed { b"clawmesh sealed ephemeral room" } else { b"clawmesh ephemeral room" };
    let hash = sha256(&[label, &mesh.0, &home.author.0, &home.incarnation.to_be_bytes()]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RoomId(id)
}

fn created(caller: &Caller, room: NewRoom, id: RoomId) -> RoomCreated {
    RoomCreated {
        room: id,
        name: room.name,
        description: room.description,
        parent: room.parent,
        public: room.public,
        encrypted: room.encrypted,
        owner: caller.key,
        created_by: caller.agent.clone(),
        imported: None,
    }
}
