//! Views of rooms and their members, and telling clients of rooms.

use std::sync::Arc;

use super::Known;
use crate::{
    api::{
        command::{AgentView, RoomView},
        event::RoomEvent,
    },
    directory::{Named, named_apart},
    name::id::{KeyPrint, LocalRef, MessageId, RoomId},
    presence::rosters::Ephemeral,
};

impl Known {
    /// A room as it is known now; `None` if clients are not to know of it.
    pub(in crate::engine) fn view(&self, id: RoomId) -> Option<RoomView> {
        let room = self.rooms.get(&id)?;
        if room.is_directory || self.is_withdrawn(id) || self.is_unread(id) {
            return None;
        }
        let is_lobby = id == RoomId::lobby(self.cx.mesh);
        let lobby = self.directory.lobby().filter(|_| is_lobby);
        let (created, name, created_ms) = if is_lobby {
            (None, "lobby".into(), lobby.map_or(0, |it| it.created_ms))
        } else if room.record.ephemeral {
            let it = self.rosters.ephemeral(id)?;
            (Some(it.facts), self.ephemeral_name(it), it.created_ms)
        } else {
            let Named::Name(name) = self.directory.name(id) else { return None };
            let it = self.directory.room(id)?;
            (Some(&it.created), name, it.wall_ms)
        };
        Some(RoomView {
            room: id,
            name,
            description: created
                .and_then(|it| it.description.as_deref().map(Arc::from))
                .or_else(|| lobby.and_then(|it| it.description.clone())),
            parent: created.and_then(|it| it.parent),
            ephemeral: room.record.ephemeral,
            public: created.is_none_or(|it| it.public),
            encrypted: created.is_some_and(|it| it.encrypted),
            owner: created.map(|it| it.owner),
            sealed: room.record.seal.is_some(),
            created_by: created.map(|it| it.created_by.clone()),
            created_ms,
            last_activity_ms: room.record.last_activity_ms,
            members: self.rosters.members(id).len(),
            tip: room.record.tip,
        })
    }

    /// The name an ephemeral room asked for, unless a permanent room has it, or an ephemeral one that
    /// was made earlier, or is public where this one is not: nobody could be asked in time.
    fn ephemeral_name(&self, it: Ephemeral<'_>) -> Arc<str> {
        let name = &it.facts.name;
        let made = |it: &Ephemeral<'_>| (it.created_ms, it.facts.room);
        let rivals = self.rosters.ephemeral_rooms().filter(|rival| rival.facts.name == *name);
        // Only what everybody sees who sees it: it is called the same at all nodes. So a private one gives way to a
        // public one, whichever was first.
        let earlier = rivals.filter(|rival| match (rival.facts.public, it.facts.public) {
            (true, true) => made(rival) < made(&it),
            (false, false) => rival.facts.owner == it.facts.owner && made(rival) < made(&it),
            (true, false) => rival.facts.owner == it.facts.owner,
            (false, true) => false,
        });
        let earlier: Vec<Ephemeral<'_>> = earlier.collect();
        let taken = self.directory.gives_way(it.facts);
        if earlier.is_empty() && !taken {
            return name.as_str().into();
        }
        let node = self.directory.node_name(it.home.author);
        let rank = |it: &Ephemeral<'_>| (!it.facts.public, made(it));
        let keeper = earlier.iter().map(rank).min().filter(|_| !taken);
        let apart = earlier.iter().filter(|it| Some(rank(it)) != keeper);
        let before = apart.filter(|it| self.directory.node_name(it.home.author) == node).count();
        named_apart(name, &node, before + self.directory.count_apart(it.facts, &node))
    }

    /// Tells clients of a room if there is something new to tell.
    pub(in crate::engine) fn tell_of_room(&mut self, id: RoomId, announce: bool) {
        let Some(view) = self.view(id) else {
            if let Some(told) = self.told.remove(&id) {
                let access = told.access();
                self.cx.notify(id, RoomEvent::Destroyed { access });
            }
            return;
        };
        let known = self.told.get(&id);
        let same = known.is_some_and(|it| it.name == view.name && it.public == view.public);
        if !same {
            let announce = announce && known.is_none();
            self.told.insert(id, view.clone());
            self.cx.notify(id, RoomEvent::Opened { view, announce });
        }
    }

    /// LocalRef the start: everything that is here, without announcing it as new.
    pub(in crate::engine) fn tell_of_all_rooms(&mut self) {
        let ids: Vec<RoomId> = self.rooms.keys().copied().collect();
        for id in ids {
            self.tell_of_room(id, false);
        }
        for view in self.config.archive.clone() {
            let room = view.room;
            self.told.insert(room, view.clone());
            self.cx.notify(room, RoomEvent::Opened { view, announce: false });
        }
    }

    /// With the owner's fingerprint only for those who hold the key.
    pub(in crate::engine) fn for_key(&self, mut view: RoomView, key: KeyPrint) -> RoomView {
        view.owner = view.owner.filter(|owner| *owner == key);
        view
    }

    /// Rooms that agents of this key may see, by name; now, not as they were told.
    pub(in crate::engine) fn visible(&self, key: KeyPrint) -> impl Iterator<Item = RoomView> + '_ {
        let ids = self.told.keys().filter(move |id| self.may_read(key, **id).is_ok());
        ids.filter_map(|id| self.view(*id).or_else(|| self.told.get(id).cloned()))
    }

    pub(in crate::engine) fn members_of(&self, room: RoomId) -> Vec<AgentView> {
        let members = self.rosters.members(room).iter();
        members.filter_map(|it| self.rosters.view(&it.agent)).collect()
    }

    pub(in crate::engine) fn message_id(&self, room: RoomId, at: LocalRef) -> Option<MessageId> {
        let log = self.rooms.get(&room)?.logs.id(at.log);
        Some(MessageId::new(room, log, at.seq))
    }
}
