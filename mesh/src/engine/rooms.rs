//! Rooms: creating them, writing in them, and the two that need special care: ephemeral ones, which
//! live as long as somebody lists them, and the lobby of a node that joined another mesh.

use super::{
    Engine,
    calls::Waiter,
    elections,
    known::{NO_MEMORY, NOT_WRITABLE, reach::Reach},
};
use crate::{
    api::{
        command::{CallId, Caller, NewRoom, Outcome, Refused, SaidOk, Say, Speech},
        event::RoomEvent,
    },
    limits::{
        CONTENT_BYTES_MAX, DESCRIPTION_BYTES_MAX, EPHEMERAL_BYTES_MAX, EPHEMERAL_EMPTY_FOR,
        EPHEMERAL_ROOMS_MAX, EPHEMERAL_ROOMS_PER_NODE_MAX, HELD_MAX, MENTIONS_MAX, NAME_BYTES_MAX,
        NUMBER_WITHIN, PLAIN_BODY_BYTES_MAX, ROOMS_MAX,
    },
    name::{id::RoomId, number::Number},
    presence::ephemeral::ephemeral_id,
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
        let directory = match self.known.directory_for(caller.key, room.public) {
            Ok(directory) => directory,
            Err(refused) => return self.reply(call, Err(refused)),
        };
        let Some(known) = self.known.rooms.get_mut(&directory) else {
            return self.reply(call, Err(Refused::NoRoom));
        };
        if !known.is_writable(&self.known.cx) {
            return self.reply(call, Err(Refused::Full(NOT_WRITABLE.to_owned())));
        }
        let seq = known.logs.head_of(known.mine) + 1;
        let id = crate::directory::room_id(self.known.cx.mesh, directory, known.mine, seq);
        let body = Body::RoomCreated(created(caller, room, id));
        let Some(at) = known.append(&mut self.known.cx, &body) else {
            return self.reply(call, Err(Refused::Closed));
        };
        let waiter = Waiter::Created { call, key: caller.key };
        self.calls.wait((directory, at), waiter);
        // Known at once: the next one that is asked for in this turn is counted with it.
        self.fold_facts();
    }

    fn may_create(&self, caller: &Caller, room: &NewRoom) -> Result<(), Refused> {
        self.known.caller(caller)?;
        if room.name.trim().is_empty() || room.name.len() > NAME_BYTES_MAX {
            return Err(Refused::Invalid(
                "name must have 1 to 256 bytes and not be blank".to_owned(),
            ));
        }
        if room.description.as_ref().is_some_and(|it| it.len() > DESCRIPTION_BYTES_MAX) {
            return Err(Refused::Invalid("description may have 4096 bytes".to_owned()));
        }
        if let Some(parent) = room.parent {
            self.known.may_read(caller.key, parent)?;
            self.known.may_write(parent)?;
        }
        let ephemeral = self.known.ephemeral.iter().filter_map(|id| self.known.told.get(id));
        let taken = room.name == "lobby"
            || self.known.directory.is_taken(&room.name, caller.key)
            || ephemeral
                .clone()
                .any(|it| *it.name == *room.name && (it.public || it.owner == Some(caller.key)));
        if taken {
            return Err(Refused::NameTaken(room.name.clone()));
        }
        self.may_have_room(caller.key)?;
        if self.known.directory.room_count() >= ROOMS_MAX {
            return Err(Refused::Full(format!("the mesh has {ROOMS_MAX} rooms")));
        }
        let all = ephemeral.count();
        let own = self
            .known
            .rosters
            .ephemeral_rooms()
            .filter(|it| it.home.author == self.known.cx.me)
            .count();
        if room.ephemeral && (all >= EPHEMERAL_ROOMS_MAX || own >= EPHEMERAL_ROOMS_PER_NODE_MAX) {
            return Err(Refused::Full("too many ephemeral rooms are alive".to_owned()));
        }
        Ok(())
    }

    fn create_ephemeral(&mut self, caller: &Caller, room: NewRoom) -> Result<Outcome, Refused> {
        let home = self.known.next_ephemeral_log();
        let reach = self.known.reach_of(self.known.directory_for(caller.key, room.public)?);
        let id = ephemeral_id(self.known.cx.mesh, home, matches!(reach, Reach::Followers(_)));
        self.known.ensure_ephemeral_room(id, (home, reach), true);
        let facts = self.announce_facts(home, created(caller, room, id), reach);
        let it = EphemeralRoom { facts, home, created_ms: self.known.cx.now.wall_ms };
        self.known.rosters.list(id, Some(it));
        self.settle_rosters();
        let view = self.known.view(id).ok_or(Refused::NoRoom)?;
        Ok(Outcome::Room(self.known.for_key(view, caller.key)))
    }

    // Ephemeral rooms.

    /// The last member here has left: for this node the room need not live on.
    pub(super) fn unlist_if_empty(&mut self, room: RoomId) {
        let me = self.known.cx.me;
        if self.known.rosters.lists_itself(room)
            && self.known.rosters.members(room).iter().all(|it| it.node != me)
        {
            self.known.rosters.list(room, None);
            self.settle_rosters();
        }
    }

    /// Rooms that this agent made and nobody has joined end with it.
    pub(super) fn unlist_rooms_made_by(&mut self, agent: &str) {
        let made = self
            .known
            .rosters
            .ephemeral_rooms()
            .filter(|it| it.home.author == self.known.cx.me && *it.facts.created_by == *agent);
        let made: Vec<RoomId> = made.map(|it| it.facts.room).collect();
        for room in made {
            if self.known.rosters.members(room).is_empty() {
                self.unlist_if_empty(room);
            }
        }
    }

    /// Rooms that were made here and that nobody has joined for long.
    pub(super) fn forget_empty_ephemeral_rooms(&mut self) {
        let now = self.known.cx.now.wall_ms;
        let empty_for = u64::try_from(EPHEMERAL_EMPTY_FOR.as_millis()).unwrap_or(u64::MAX);
        let is_old = |room: &RoomId| {
            let made = self.known.rosters.ephemeral(*room).map_or(now, |it| it.created_ms);
            now > made.saturating_add(empty_for) && self.known.rosters.members(*room).is_empty()
        };
        let old: Vec<RoomId> = self.known.ephemeral.iter().copied().filter(is_old).collect();
        for room in old {
            self.unlist_if_empty(room);
        }
    }

    pub(super) fn ephemeral_room_lives(&mut self, id: RoomId) {
        self.open_announcement(id);
        let Some(it) = self.known.rosters.ephemeral(id) else { return };
        let sealed = matches!(self.known.rosters.announced(id), Some(it) if it.facts.is_sealed());
        let reach = if sealed { Reach::Followers(it.facts.owner) } else { Reach::Mesh };
        let home = it.home;
        let others = self.known.ephemeral.iter().filter(|other| **other != id);
        if others.count() >= EPHEMERAL_ROOMS_MAX {
            self.known.cx.faults.overflow += 1;
            return;
        }
        self.known.ensure_ephemeral_room(id, (home, reach), false);
        self.known.tell_of_room(id, true);
    }

    pub(super) fn ephemeral_room_died(&mut self, id: RoomId) {
        let Some(mut room) = self.known.rooms.remove(&id) else { return };
        if !room.record.ephemeral {
            self.known.rooms.insert(id, room);
            return;
        }
        self.known.ephemeral.remove(&id);
        room.pending.clear(&mut self.known.cx);
        self.known.cx.memory.ephemeral -= room.bytes;
        for entry in room.numbering.undelivered.values() {
            self.known.cx.memory.warm -= entry.body_bytes;
        }
        self.calls.refuse_ended(&mut self.known, id);
        self.voting.forget_votes(&mut self.known, &room);
        self.claims.forget_tasks(&mut self.known, &room);
        self.leaders.forget(id);
        self.forget_digest(id, room.record.seal.as_ref());
        self.known.busy.remove(&id);
        self.unshared.remove(&id);
        self.turns.remove(&id);
        self.crowds.remove(&id);
        self.proofs.retain(|it| !matches!(it, Message::Fork(it, _) if it.room == id));
        self.known.cx.change(crate::api::batch::Change::Drop { room: id });
        if let Some(view) = self.known.told.remove(&id) {
            let access = view.access();
            self.known.cx.notify(id, RoomEvent::Destroyed { access });
        }
    }

    // Writing.

    pub(super) fn say(&mut self, call: CallId, caller: &Caller, say: Say) {
        let lobby = RoomId::lobby(self.known.cx.mesh);
        if say.room == lobby
            && self.known.node.lobby_floor > Number::ZERO
            && self.held.len() < HELD_MAX
        {
            // Numbered now, it would be behind the cursors that this node's clients hold.
            self.held.push((call, caller.clone(), say));
            return;
        }
        if let Err(refused) = self.try_say(call, caller, say) {
            self.reply(call, Err(refused));
        }
    }

    fn try_say(&mut self, call: CallId, caller: &Caller, say: Say) -> Result<(), Refused> {
        let record = self.known.caller(caller)?;
        self.known.may_read(caller.key, say.room)?;
        self.known.may_write(say.room)?;
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
                self.leaders.settle_elections(&mut self.known, room);
                let election = elections::led_by(&self.known, room, &caller.agent)
                    .ok_or(Refused::NotLeader)?;
                Body::Decision(Decision { said, election })
            }
        };
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::TooLarge { len, max: PLAIN_BODY_BYTES_MAX });
        }
        let state = self.known.rooms.get_mut(&room).ok_or(Refused::NoRoom)?;
        if state.record.ephemeral && self.known.cx.memory.ephemeral + len > EPHEMERAL_BYTES_MAX {
            return Err(Refused::Full(NO_MEMORY.to_owned()));
        }
        if !state.is_writable(&self.known.cx) {
            return Err(Refused::Full(NOT_WRITABLE.to_owned()));
        }
        let at = state.append(&mut self.known.cx, &body).ok_or(Refused::Closed)?;
        let wall_ms = self.known.cx.now.wall_ms;
        let waiter = Waiter::Said { call, name, wall_ms, repeated: false };
        self.calls.wait((room, at), waiter);
        Ok(())
    }

    fn may_contain(&self, say: &Say) -> Result<(), Refused> {
        if say.content.len() > CONTENT_BYTES_MAX {
            return Err(Refused::TooLarge { len: say.content.len(), max: CONTENT_BYTES_MAX });
        }
        if say.mentions.len() > MENTIONS_MAX {
            return Err(Refused::Invalid(format!("mentions: at most {MENTIONS_MAX}")));
        }
        let encrypted = self.known.told.get(&say.room).is_some_and(|it| it.encrypted);
        if encrypted && !say.content.starts_with("clw1:") {
            return Err(Refused::Plaintext);
        }
        Ok(())
    }

    /// A repeated send is answered with the first one's message. `false`: it is the first.
    fn repeats(&mut self, call: CallId, say: &Say, id: DedupId) -> bool {
        let wall_ms = self.known.cx.now.wall_ms;
        let Some(room) = self.known.rooms.get_mut(&say.room) else { return false };
        let Some((at, number)) = room.sequencing.sent.find(wall_ms, id) else { return false };
        let name = String::new();
        match number {
            Some(number) => {
                let Some(message) = self.known.message_id(say.room, at) else { return false };
                let said = SaidOk { message, number, wall_ms, name, repeated: true };
                self.reply(call, Ok(Outcome::Said(said)));
            }
            // Nobody takes what was written here, so nobody is to wait for it.
            None if !room.is_writable(&self.known.cx) => return false,
            None => {
                let waiter = Waiter::Said { call, name, wall_ms, repeated: true };
                self.calls.wait((say.room, at), waiter);
            }
        }
        true
    }

    // A lobby that was longer.

    /// This node's lobby was longer than the mesh's it joined: the lobby gets one new era, above the
    /// cursors that this node's clients hold.
    pub(super) fn raise_lobby(&mut self) {
        let floor = self.known.node.lobby_floor;
        if floor == Number::ZERO {
            return;
        }
        let lobby = RoomId::lobby(self.known.cx.mesh);
        let Some(room) = self.known.rooms.get_mut(&lobby) else { return };
        // First hear how long it is: only a node that is up to date with some peer can tell. Whoever
        // hears nobody goes on without: nobody is kept waiting for longer than for a number.
        let patient = self.known.cx.now.mono < self.known.started + NUMBER_WITHIN;
        if patient && (!room.sync.has_heard() || room.sync.is_behind()) {
            return room.ask_all(&mut self.known.cx);
        }
        let era = room.numbering.current();
        let highest = era.number(room.numbering.known(era));
        // Who may not write here raises nothing: those who wait are told so.
        let closed = !room.is_writable(&self.known.cx);
        if closed || highest >= floor || room.number_above(&mut self.known.cx, floor, Vec::new()) {
            self.known.change_node().lobby_floor = Number::ZERO;
            for (call, caller, say) in std::mem::take(&mut self.held) {
                self.say(call, &caller, say);
            }
        }
    }
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
