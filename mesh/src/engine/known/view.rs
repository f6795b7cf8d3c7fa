//! Views of rooms and their members, and telling clients of rooms.

use std::sync::Arc;

use super::Known;
use crate::{
    api::{
        batch::RoomRecord,
        command::{AgentView, Reader, RoomView},
        event::RoomEvent,
    },
    directory::{
        direct::{DirectRoom, Stage},
        naming::{Named, named_apart},
        shared::SharedRoom,
    },
    name::{
        group::{is_reserved, task_name},
        id::{AgentId, KeyPrint, LocalRef, MessageId, RoomId},
    },
    presence::rosters::{Ephemeral, Member},
    records::closing,
    room::Room,
    wire::{
        entry::RoomCreated,
        record::{RecordId, Space},
    },
};

impl Known {
    /// A room as it is known now; `None` if clients are not to know of it.
    pub(crate) fn view(&self, id: RoomId) -> Option<RoomView> {
        let room = self.rooms.get(&id)?;
        let is_hidden = self.is_withdrawn(id) || self.is_unread(id) || self.is_closed(id);
        if room.replica.is_directory || is_hidden {
            return None;
        }
        if let Some(direct) = self.directory.direct.get(id) {
            if direct.stage() == Stage::Dropped {
                return None;
            }
            let sides = direct.sides.with_keys(|key| self.directory.current(key));
            let members = self.rosters.members(id).len();
            let withheld = self.withheld_of(direct);
            let view = direct_view(room, direct);
            return Some(RoomView { members, sides: Some(sides), withheld, ..view });
        }
        if let Some(shared) = self.directory.shared.room(id) {
            return Some(self.shared_view(room, shared));
        }
        let is_lobby = id == RoomId::lobby(self.cx.mesh);
        let lobby = self.directory.lobby().filter(|_| is_lobby);
        let (created, name, created_ms) = if is_lobby {
            (None, "lobby".into(), lobby.map_or(0, |lobby| lobby.created_ms))
        } else if room.replica.record.ephemeral {
            let ephemeral = self.rosters.ephemeral(id)?;
            (Some(ephemeral.facts), self.ephemeral_name(ephemeral), ephemeral.created_ms)
        } else {
            let Named::Name(name) = self.directory.name(id) else { return None };
            let room = self.directory.room(id)?;
            (Some(&room.created), name, room.wall_ms)
        };
        let is_plain = |facts: &RoomCreated| {
            facts.parent.is_none()
                && !facts.public
                && !facts.encrypted
                && !room.replica.record.ephemeral
        };
        let name = shown(name, created.is_some_and(is_plain));
        Some(RoomView {
            room: id,
            name,
            description: created
                .and_then(|facts| facts.description.as_deref().map(Arc::from))
                .or_else(|| lobby.and_then(|lobby| lobby.description.clone())),
            parent: created.and_then(|created| created.parent),
            ephemeral: room.replica.record.ephemeral,
            public: created.is_none_or(|created| created.public),
            encrypted: created.is_some_and(|created| created.encrypted),
            owner: created.map(|created| self.directory.current(created.owner)),
            sealed: room.replica.record.seal.is_some(),
            created_by: created.map(|created| created.created_by.clone()),
            created_ms,
            last_activity_ms: room.replica.record.last_activity_ms,
            members: self.rosters.members(id).len(),
            tip: room.replica.record.tip,
            sides: None,
            task: false,
            closed: false,
            shared: None,
            on_record: self.on_record.shown.of(id),
            withheld: [None; 2],
        })
    }

    /// A shared room keeps the name that it was made with. Where a room that all see is called so, it has the beginning of
    /// its id besides: the same at all nodes.
    fn shared_view(&self, room: &Room, shared: &SharedRoom) -> RoomView {
        let SharedRoom { group, facts } = shared;
        let (id, record) = (room.replica.id, &room.replica.record);
        let name = shown(facts.name.as_str().into(), false);
        let is_others = self.directory.is_public_name(&name);
        let name = if is_others { format!("{name}~{:.4}", id.to_string()).into() } else { name };
        RoomView {
            name,
            description: facts.description.as_deref().map(Arc::from),
            encrypted: facts.encrypted,
            owner: Some(self.directory.current(group.maker)),
            created_by: Some(facts.created_by.clone()),
            created_ms: facts.created_ms,
            members: self.rosters.members(id).len(),
            shared: Some(Arc::new(self.shared_keys(*group))),
            on_record: self.on_record.shown.of(id),
            ..private_view(id, record)
        }
    }

    /// The name an ephemeral room asked for, unless a permanent room has it, or an ephemeral one that
    /// was made earlier, or is public where this one is not: nobody could be asked in time.
    fn ephemeral_name(&self, ephemeral: Ephemeral<'_>) -> Arc<str> {
        let name = &ephemeral.facts.name;
        let made = |room: &Ephemeral<'_>| (room.created_ms, room.facts.room);
        let owner = |room: &Ephemeral<'_>| self.directory.current(room.facts.owner);
        let rivals = self.rosters.ephemeral_rooms().filter(|rival| rival.facts.name == *name);
        // Only what everybody sees who sees it: it is called the same at all nodes. So a private one gives way to a
        // public one, whichever was first.
        let earlier = rivals.filter(|rival| match (rival.facts.public, ephemeral.facts.public) {
            (true, true) => made(rival) < made(&ephemeral),
            (false, false) => owner(rival) == owner(&ephemeral) && made(rival) < made(&ephemeral),
            (true, false) => owner(rival) == owner(&ephemeral),
            (false, true) => false,
        });
        let earlier: Vec<Ephemeral<'_>> = earlier.collect();
        let taken = self.directory.gives_way(ephemeral.facts);
        if earlier.is_empty() && !taken {
            return name.as_str().into();
        }
        let node = self.directory.node_name(ephemeral.home.author);
        let rank = |room: &Ephemeral<'_>| (!room.facts.public, made(room));
        let keeper = earlier.iter().map(rank).min().filter(|_| !taken);
        let apart = earlier.iter().filter(|other| Some(rank(other)) != keeper);
        let before =
            apart.filter(|other| self.directory.node_name(other.home.author) == node).count();
        named_apart(name, &node, before + self.directory.count_apart(ephemeral.facts, &node))
    }

    /// Tells clients of a room if there is something new to tell.
    pub(crate) fn tell_of_room(&mut self, id: RoomId, announce: bool) {
        if !self.told.contains_key(&id) {
            self.note_place_of_members(id);
            self.note_place_of_records(id);
        }
        let Some(view) = self.view(id) else {
            if let Some(told) = self.told.remove(&id) {
                let access = told.access();
                self.cx.notify(id, RoomEvent::Destroyed { access });
            }
            return;
        };
        let known = self.told.get(&id);
        let told = |view: &RoomView| (view.name.clone(), view.access(), view.withheld, view.closed);
        let same = known
            .is_some_and(|shown| told(shown) == told(&view) && shown.on_record == view.on_record);
        if !same {
            // Others that may see it from now on are told, too: those that saw it before are not told again.
            let is_others = known.is_some_and(|shown| shown.access() != view.access());
            let announce = announce && (is_others || known.is_none());
            if is_others {
                self.name_members_again(id);
            }
            self.told.insert(id, view.clone());
            self.cx.notify(id, RoomEvent::Opened { view, announce });
        }
    }

    /// Whether the key that the room belongs to has closed it. The word of a key that was replaced does not count: a thief of it
    /// could say it at any time, and nobody could take it back.
    fn is_closed(&self, id: RoomId) -> bool {
        if self.closings.is_empty() {
            return false;
        }
        let place = self.rooms.get(&id).and_then(|room| room.replica.record.place_of_records(id));
        let (Some(maker), Some(at)) = (self.maker_of(id), place) else { return false };
        self.closings.contains(&(at.space, closing::id(&at), maker))
    }

    /// Tells clients of the room that a record of this name closes, or does not any more, if it is here.
    pub(crate) fn tell_of_closed(&mut self, space: Space, name: RecordId) {
        let is_it = |(id, room): &(&RoomId, &Room)| {
            let place = room.replica.record.place_of_records(**id);
            place.is_some_and(|at| at.space == space && closing::id(&at) == name)
        };
        if let Some((id, _)) = self.rooms.iter().find(is_it) {
            self.tell_of_room(*id, false);
        }
    }

    /// At the start: everything that is here, without announcing it as new.
    pub(crate) fn tell_of_all_rooms(&mut self) {
        let ids: Vec<RoomId> = self.rooms.keys().copied().collect();
        for id in ids {
            self.tell_of_room(id, false);
        }
        self.tell_of_archive();
    }

    /// Rooms of an earlier mesh: those of a key whose successor is known belong to that one.
    fn tell_of_archive(&mut self) {
        for mut view in self.config.archive.clone() {
            let room = view.room;
            view.owner = view.owner.map(|owner| self.directory.current(owner));
            if self.told.get(&room) != Some(&view) {
                self.told.insert(room, view.clone());
                self.cx.notify(room, RoomEvent::Opened { view, announce: false });
            }
        }
    }

    /// Tells clients of rooms that belong to another key now.
    fn tell_of_owned_rooms(&mut self) {
        let rooms = self.told.iter().filter(|(_, view)| !view.public).map(|(id, _)| *id);
        for id in rooms.filter(|id| self.rooms.contains_key(id)).collect::<Vec<_>>() {
            self.tell_of_room(id, false);
        }
        self.tell_of_archive();
    }

    /// The owner of an agent id may be another one.
    pub(crate) fn note_owner(&mut self, agent: &AgentId) {
        let owner = self.directory.owner(agent).filter(|(_, settled)| *settled);
        self.rosters.set_owner(agent, owner.map(|(key, _)| key));
        self.doubted.insert(agent.clone());
    }

    /// Gives what was the own of keys that have other successors than before to these: once for many of them.
    pub(crate) fn settle_successors(&mut self) {
        if self.replaced.is_empty() {
            return;
        }
        let keys = std::mem::take(&mut self.replaced);
        let mut moved = keys.clone();
        for key in keys {
            let line = self.directory.keys().line(self.directory.current(key));
            moved.extend(line);
        }
        for key in &moved {
            self.rosters.set_current(*key, self.directory.current(*key));
        }
        for agent in self.directory.claimed_for(&moved) {
            self.note_owner(&agent);
        }
        self.doubt_members();
        self.tell_of_owned_rooms();
    }

    /// With the owner's fingerprint only for those who hold the key.
    pub(crate) fn for_key(&self, mut view: RoomView, key: KeyPrint) -> RoomView {
        view.owner = view.owner.filter(|owner| *owner == key);
        view
    }

    /// Rooms that this one may see, by name; now, not as they were told.
    pub(crate) fn visible<'k>(&'k self, by: &'k Reader) -> impl Iterator<Item = RoomView> + 'k {
        let ids = self.told.keys().filter(|id| self.may_read(by, **id).is_ok());
        ids.filter_map(|id| self.view(*id).or_else(|| self.told.get(id).cloned()))
    }

    pub(crate) fn agent(&self, agent: &AgentId) -> Option<AgentView> {
        let mut view = self.rosters.view(agent)?;
        let proof = self.directory.proofs().of_agent(view.node, view.key, agent);
        view.verified = proof.verified;
        Some(view)
    }

    pub(crate) fn members_of(&self, room: RoomId) -> Vec<AgentView> {
        let members = self.rosters.members(room).iter();
        let view =
            |member: &Member| Some(AgentView { guest: member.guest, ..self.agent(&member.agent)? });
        members.filter_map(view).collect()
    }

    pub(crate) fn message_id(&self, room: RoomId, at: LocalRef) -> Option<MessageId> {
        let log = self.rooms.get(&room)?.replica.logs.id(at.log);
        Some(MessageId::new(room, log, at.seq))
    }
}

fn direct_view(room: &Room, direct: &DirectRoom) -> RoomView {
    RoomView {
        name: if direct.task {
            task_name(room.replica.id).as_str().into()
        } else {
            direct.sides.name().as_str().into()
        },
        task: direct.task,
        closed: direct.stage() != Stage::Open,
        created_by: direct.opened_by().cloned(),
        created_ms: direct.opened_ms(),
        ..private_view(room.replica.id, &room.replica.record)
    }
}

/// Of a room of several keys, without that which only its kind says.
fn private_view(room: RoomId, record: &RoomRecord) -> RoomView {
    RoomView {
        room,
        name: "".into(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
        owner: None,
        sealed: true,
        created_by: None,
        created_ms: 0,
        last_activity_ms: record.last_activity_ms,
        members: 0,
        tip: record.tip,
        sides: None,
        task: false,
        closed: false,
        shared: None,
        on_record: Arc::default(),
        withheld: [None; 2],
    }
}

/// A name that somebody chose never looks like one that the node gives.
fn shown(name: Arc<str>, is_plain: bool) -> Arc<str> {
    if is_reserved(&name, is_plain) { format!("_{name}").as_str().into() } else { name }
}
