//! Writing what was brought from a ClawChat server ([`crate::api::import`]).

use super::Engine;
use crate::{
    api::{
        command::{Refused, Speech},
        import::{Import, ImportedMessage, ImportedMessages, ImportedRoom, ImportedTask},
    },
    engine::context::Context,
    limits::{AGENT_ID_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::{
        id::{EntryRef, KeyPrint, LocalRef, RoomId},
        time::Now,
    },
    room::Room,
    wire::{
        acts::{TaskAct, TaskUpdated, VoteAct, VoteImported},
        entry::{AgentClaimed, Body, Decision, Imported, RoomCreated, Said},
    },
};

impl Engine {
    /// Writes something that a ClawChat server had. What follows from it is in the next turn, as with all
    /// inputs; a room is there to be written in once the turn with it was taken.
    ///
    /// # Errors
    ///
    /// It cannot be brought: this node did not found the mesh, numbers would not rise, or it is not of
    /// the form that all nodes take. Nothing of it is written then, but for what of a list comes before.
    pub fn import(&mut self, now: Now, it: Import) -> Result<(), Refused> {
        self.note_time(now);
        if self.config.founder != self.cx.me {
            return invalid("only the node that founded the mesh brings something into it");
        }
        match it {
            Import::Key(key, opener) => {
                let print = key.key;
                self.mint_key(key, 0)?;
                if let Some(opener) = opener {
                    self.follow(print, &opener);
                }
            }
            Import::Agent(agent, key) => self.import_agent(AgentClaimed { agent, key })?,
            Import::Lobby(description, created_ms) => self.import_lobby(description, created_ms)?,
            Import::Room(room) => self.import_room(room)?,
            Import::Messages(messages) => self.import_messages(messages)?,
            Import::Vote(room, wall_ms, vote) => self.import_vote(room, wall_ms, vote)?,
            Import::Task(task) => self.import_task(task)?,
        }
        Ok(())
    }

    /// In the ordinary form: as if an agent with that key had come with the id.
    fn import_agent(&mut self, it: AgentClaimed) -> Result<(), Refused> {
        let fits = (1..=AGENT_ID_BYTES_MAX).contains(&it.agent.len());
        if !fits || !self.directory.has_room_for(&it) || self.directory.owner(&it.agent).is_some() {
            return invalid("it cannot be a stable agent id here, or is one already");
        }
        let directory = RoomId::directory(self.cx.mesh);
        let wall_ms = self.cx.now.wall_ms;
        self.write_imported((directory, wall_ms), &Body::AgentClaimed(it))?;
        self.fold_facts();
        Ok(())
    }

    fn import_lobby(
        &mut self,
        description: Option<String>,
        created_ms: u64,
    ) -> Result<(), Refused> {
        let lobby = RoomCreated {
            room: RoomId::lobby(self.cx.mesh),
            name: "lobby".to_owned(),
            description,
            parent: None,
            public: true,
            encrypted: false,
            owner: KeyPrint::OPEN,
            created_by: "".into(),
            imported: Some(Imported { created_ms }),
        };
        let directory = RoomId::directory(self.cx.mesh);
        if self.directory.lobby().is_some() || !crate::directory::is_described(&lobby) {
            return invalid("its description cannot be that of the lobby here, or it has one");
        }
        let wall_ms = self.cx.now.wall_ms;
        self.write_imported((directory, wall_ms), &Body::RoomCreated(lobby))?;
        self.fold_facts();
        Ok(())
    }

    fn import_room(&mut self, it: ImportedRoom) -> Result<(), Refused> {
        let directory = self.directory_for(it.owner, it.public)?;
        let created = RoomCreated {
            room: it.room,
            name: it.name,
            description: it.description,
            parent: it.parent,
            public: it.public,
            encrypted: it.encrypted,
            owner: it.owner,
            created_by: it.created_by,
            imported: Some(Imported { created_ms: it.created_ms }),
        };
        if !crate::directory::fits(&created) || self.rooms.contains_key(&it.room) {
            return invalid("its id, name or description cannot be those of a room here");
        }
        let wall_ms = self.cx.now.wall_ms;
        self.write_imported((directory, wall_ms), &Body::RoomCreated(created))?;
        self.fold_facts();
        if self.rooms.contains_key(&it.room) { Ok(()) } else { invalid("it is not taken") }
    }

    fn import_messages(&mut self, it: ImportedMessages) -> Result<(), Refused> {
        let id = it.room;
        let room = self.rooms.get(&id).ok_or(Refused::NoRoom)?;
        let first = room.order.next_home_number();
        let numbers = it.messages.iter().map(|it| it.number);
        let rises = numbers.clone().zip(numbers.skip(1)).all(|(one, next)| one < next);
        let lowest = it.messages.first().map(|it| it.number).unwrap_or(it.next);
        let highest = it.messages.last().map_or(0, |it| it.number);
        let capacity = crate::name::number::Era::HOME.capacity();
        if !room.order.can_import(&room.replica)
            || !rises
            || lowest < first
            || it.next <= highest
            || it.next > capacity
        {
            return invalid("its numbers cannot be given any more");
        }
        let mut entries: Vec<(LocalRef, u64)> = Vec::new();
        for message in it.messages {
            let (number, wall_ms) = (message.number, message.wall_ms);
            let body = self.imported_body(id, message);
            let at = self.write_imported((id, wall_ms), &body)?;
            entries.push((at, number));
        }
        let (room, cx) = self.room_and_context(id)?;
        if !room.issue_imported(cx, &entries, it.next) {
            return Err(Refused::Closed);
        }
        Ok(())
    }

    fn imported_body(&self, room: RoomId, it: ImportedMessage) -> Body {
        let said = Said {
            agent: it.agent,
            name: it.name,
            content: it.content,
            reply_to: it.reply_to,
            mentions: it.mentions,
            metadata: it.metadata,
            dedup: None,
            turn: None,
            id: it.id,
        };
        match it.speech {
            Speech::Chat => Body::Chat(said),
            Speech::Thinking => Body::Thinking(said),
            Speech::Decision => {
                let log = self.rooms.get(&room).map(|it| it.replica.mine);
                let log = log.expect("looked up before it is written in");
                Body::Decision(Decision { said, election: EntryRef { log, seq: 0 } })
            }
        }
    }

    fn import_vote(&mut self, id: RoomId, wall_ms: u64, it: VoteImported) -> Result<(), Refused> {
        crate::fold::votes::check_imported(&it).map_err(Refused::Invalid)?;
        let room = self.rooms.get(&id).ok_or(Refused::NoRoom)?;
        if !room.order.can_import(&room.replica) {
            return invalid("the room is not of those that votes can be brought to");
        }
        self.write_imported((id, wall_ms), &Body::Vote(VoteAct::Imported(it)))?;
        Ok(())
    }

    /// In the ordinary forms: made then, and updated once since.
    fn import_task(&mut self, it: ImportedTask) -> Result<(), Refused> {
        let by = it.task.created_by.clone();
        let made = TaskAct::Assigned(it.task);
        let at = self.write_imported((it.room, it.created_ms), &Body::Task(made))?;
        let pending = it.status == crate::wire::acts::TaskStatus::Pending;
        if pending && it.note.is_none() && it.updated_ms.is_none() {
            return Ok(());
        }
        let log = self.rooms.get(&it.room).ok_or(Refused::NoRoom)?.replica.mine;
        let task = EntryRef { log, seq: at.seq };
        let over = vec![task];
        let (status, note) = (Some(it.status), it.note);
        let update = TaskUpdated { task, over, status, assignee: None, note, by };
        let wall_ms = it.updated_ms.unwrap_or(it.created_ms);
        self.write_imported((it.room, wall_ms), &Body::Task(TaskAct::Updated(update)))?;
        Ok(())
    }

    fn write_imported(
        &mut self,
        (id, wall_ms): (RoomId, u64),
        body: &Body,
    ) -> Result<LocalRef, Refused> {
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::TooLarge { len, max: PLAIN_BODY_BYTES_MAX });
        }
        let (room, cx) = self.room_and_context(id)?;
        room.fits(cx, body)?;
        room.append_dated(cx, body, wall_ms).ok_or(Refused::Closed)
    }

    fn room_and_context(&mut self, id: RoomId) -> Result<(&mut Room, &mut Context), Refused> {
        Ok((self.rooms.get_mut(&id).ok_or(Refused::NoRoom)?, &mut self.cx))
    }
}

fn invalid<T>(why: &str) -> Result<T, Refused> {
    Err(Refused::Invalid(why.to_owned()))
}
