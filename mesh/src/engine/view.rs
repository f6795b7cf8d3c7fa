//! What clients and operators see.

use std::{collections::BTreeSet, sync::Arc};

use super::Engine;
use crate::{
    api::{
        command::{AgentView, Command, Outcome, Refused, RoomInfo, RoomView},
        event::RoomEvent,
        status::{NodeStatus, RoomStatus, Status},
    },
    directory::naming::{Named, named_apart},
    name::id::{KeyPrint, NodeId, RoomId},
    presence::rosters::Ephemeral,
};

impl Engine {
    /// Whether a command has its answer in the next turn and asks for nothing to be made durable before it,
    /// other than who is there: all that a node whose disk is full takes. The time that goes with it is to be
    /// that of the turn that could not be written, so that nothing else becomes due.
    #[must_use]
    pub fn answers_unwritten(&self, command: &Command) -> bool {
        match command {
            // An id that nobody has claimed is claimed first, and where the private rooms of a minted key are
            // others are asked.
            Command::Attach(it) => {
                let claims = it.stable && self.directory.owner(&it.agent).is_none();
                !claims && (it.own || !self.spans(it.key))
            }
            Command::Detach { .. }
            | Command::ListRooms { .. }
            | Command::ListAgents { .. }
            | Command::RoomInfo { .. }
            | Command::GetVote { .. }
            | Command::ListVotes { .. }
            | Command::ListTasks { .. }
            | Command::ListKeys
            | Command::CheckKey { .. }
            | Command::Status
            | Command::Behind
            | Command::Members => true,
            Command::CreateRoom { .. }
            | Command::Join { .. }
            | Command::Leave { .. }
            | Command::Say { .. }
            | Command::SetTyping { .. }
            | Command::SetPresence { .. }
            | Command::CreateVote { .. }
            | Command::CastVote { .. }
            | Command::ElectLeader { .. }
            | Command::Decline { .. }
            | Command::AssignTask { .. }
            | Command::UpdateTask { .. }
            | Command::MintKey(_)
            | Command::SignUp(_)
            | Command::RevokeKey { .. }
            | Command::Keep { .. }
            | Command::Roam { .. }
            | Command::Seek { .. }
            | Command::Part { .. }
            | Command::RotateSecret { .. }
            | Command::LeaveMesh { .. }
            | Command::Stop => false,
        }
    }

    /// A room as it is known now; `None` if clients are not to know of it.
    pub(super) fn view(&self, id: RoomId) -> Option<RoomView> {
        let room = self.rooms.get(&id)?;
        if room.replica.is_directory || self.is_withdrawn(id) || self.is_unread(id) {
            return None;
        }
        let is_lobby = id == RoomId::lobby(self.cx.mesh);
        let lobby = self.directory.lobby().filter(|_| is_lobby);
        let (created, name, created_ms) = if is_lobby {
            (None, "lobby".into(), lobby.map_or(0, |it| it.created_ms))
        } else if room.replica.record.ephemeral {
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
            ephemeral: room.replica.record.ephemeral,
            public: created.is_none_or(|it| it.public),
            encrypted: created.is_some_and(|it| it.encrypted),
            owner: created.map(|it| it.owner),
            sealed: room.replica.record.seal.is_some(),
            created_by: created.map(|it| it.created_by.clone()),
            created_ms,
            last_activity_ms: room.replica.record.last_activity_ms,
            members: self.rosters.members(id).len(),
            tip: room.replica.record.tip,
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
    pub(super) fn tell_of_room(&mut self, id: RoomId, announce: bool) {
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
    pub(super) fn tell_of_all_rooms(&mut self) {
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
    pub(super) fn for_key(&self, mut view: RoomView, key: KeyPrint) -> RoomView {
        view.owner = view.owner.filter(|owner| *owner == key);
        view
    }

    /// Rooms that agents of this key may see, by name; now, not as they were told.
    fn visible(&self, key: KeyPrint) -> impl Iterator<Item = RoomView> + '_ {
        let ids = self.told.keys().filter(move |id| self.may_read(key, **id).is_ok());
        ids.filter_map(|id| self.view(*id).or_else(|| self.told.get(id).cloned()))
    }

    pub(super) fn list_rooms(
        &self,
        key: KeyPrint,
        parent: Option<RoomId>,
    ) -> Result<Outcome, Refused> {
        if let Some(parent) = parent {
            self.may_read(key, parent)?;
        }
        let mut rooms: Vec<RoomView> = self
            .visible(key)
            .filter(|it| parent.is_none() || it.parent == parent)
            .map(|it| self.for_key(it, key))
            .collect();
        rooms.sort_by(|a, b| (&a.name, a.room).cmp(&(&b.name, b.room)));
        Ok(Outcome::Rooms(rooms))
    }

    fn members_of(&self, room: RoomId) -> Vec<AgentView> {
        let members = self.rosters.members(room).iter();
        members.filter_map(|it| self.rosters.view(&it.agent)).collect()
    }

    pub(super) fn list_agents(
        &self,
        key: KeyPrint,
        room: Option<RoomId>,
    ) -> Result<Outcome, Refused> {
        let Some(room) = room else {
            let all = self.rosters.agents().filter(|agent| {
                self.rosters.record(agent).is_some_and(|(_, record)| record.key == key)
            });
            let mut agents: Vec<AgentView> =
                all.filter_map(|agent| self.rosters.view(agent)).collect();
            agents.sort_by(|a, b| (a.connected_ms, &a.agent).cmp(&(b.connected_ms, &b.agent)));
            return Ok(Outcome::Agents(agents));
        };
        self.may_read(key, room)?;
        Ok(Outcome::Agents(self.members_of(room)))
    }

    pub(super) fn room_info(&self, key: KeyPrint, room: RoomId) -> Result<Outcome, Refused> {
        self.may_read(key, room)?;
        let view = self.view(room).or_else(|| self.told.get(&room).cloned());
        let view = self.for_key(view.ok_or(Refused::NoRoom)?, key);
        let sub_rooms = self
            .visible(key)
            .filter(|it| it.parent == Some(room))
            .map(|it| self.for_key(it, key))
            .collect();
        let turn = self.turn_holder(room);
        let agents = self.members_of(room);
        let leader = self.leader(room);
        Ok(Outcome::RoomInfo(RoomInfo { room: view, agents, sub_rooms, turn, leader }))
    }

    /// What an operator asks.
    pub(super) fn status(&self) -> Status {
        let now = self.cx.now.mono;
        let known = self.live.heard().map(|(node, _)| node).chain(self.live.others.iter().copied());
        let mut nodes: Vec<_> = known.collect();
        nodes.sort_unstable();
        nodes.dedup();
        let nodes = nodes.into_iter().filter(|node| *node != self.cx.me).map(|node| {
            let heard = self.live.last(node).map(|it| now.saturating_sub(it.at).as_millis());
            NodeStatus {
                node,
                name: self.directory.nodes.names.get(&node).cloned(),
                connected: self.live.up.contains(&node),
                alive: self.live.is_alive(now, node),
                heard_ms_ago: heard.and_then(|age| u64::try_from(age).ok()),
                agents: self.rosters.count_at(node),
            }
        });
        Status {
            node: self.cx.me,
            mesh: self.cx.mesh,
            nodes: nodes.collect(),
            rooms: self.rooms.values().filter_map(|room| self.room_status(room)).collect(),
            agents: self.rosters.count_at(self.cx.me),
            agents_mesh: self.rosters.agents().count(),
            faults: self.cx.faults,
            blamed: self.cx.blamed.iter().map(|(node, it)| (*node, *it)).collect(),
            forked: self.forked(),
            parted: self.farewell(),
            lanes: self.directory.nodes.lanes().collect(),
        }
    }

    /// A room that lacks what a peer has is one in which something waits.
    pub(super) fn behind(&self) -> u64 {
        let rooms = self.busy.iter().filter_map(|id| self.rooms.get(id));
        let listed = rooms.filter(|room| self.told.contains_key(&room.replica.id));
        listed.map(|room| room.replica.entries_behind(&self.cx)).fold(0, u64::saturating_add)
    }

    /// Whoever forked a log, in whichever room.
    fn forked(&self) -> Vec<NodeId> {
        let all = self.cx.forked.iter().chain(self.cx.forked_for.values().flatten());
        let mut all: BTreeSet<NodeId> = all.copied().collect();
        for room in self.rooms.values() {
            let forked = room.replica.logs.iter().filter(|(_, log)| log.fork.is_some());
            let authors = forked.map(|(_, log)| log.id.author);
            all.extend(authors.filter(|it| room.replica.has_forked_in_memory(*it)));
        }
        all.into_iter().collect()
    }

    fn room_status(&self, room: &crate::room::Room) -> Option<RoomStatus> {
        let view = self.told.get(&room.replica.id)?;
        let nobody = self.live.others.is_empty() || room.replica.record.local;
        let only = self.cx.followers.have(room.replica.record.seal.as_ref());
        let alone = nobody || only.is_some_and(|only| only.len() <= 1);
        Some(RoomStatus {
            room: room.replica.id,
            name: view.name.to_string(),
            era: room.order.numbering.current(),
            sequencer: room.order.numbering.sequencer().author,
            tip: room.tip(),
            undelivered: room.order.numbering.undelivered.len(),
            behind: room.replica.entries_behind(&self.cx),
            sent: if alone {
                0
            } else {
                room.replica.logs.head_of(room.replica.mine).saturating_sub(room.replica.unsent())
            },
            unsent: if alone { 0 } else { room.replica.unsent() },
            holes: room.order.holes,
        })
    }
}
