//! What clients and operators see.

use super::{Engine, elections};
use std::collections::BTreeSet;

use crate::{
    api::{
        command::{AgentView, Command, Outcome, Refused, RoomInfo, RoomView},
        status::{NodeStatus, RoomStatus, Status},
    },
    name::id::{KeyPrint, NodeId, RoomId},
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
                let claims = it.stable && self.known.directory.owner(&it.agent).is_none();
                !claims && (it.own || !self.known.spans(it.key))
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

    pub(super) fn list_rooms(
        &self,
        key: KeyPrint,
        parent: Option<RoomId>,
    ) -> Result<Outcome, Refused> {
        if let Some(parent) = parent {
            self.known.may_read(key, parent)?;
        }
        let mut rooms: Vec<RoomView> = self
            .known
            .visible(key)
            .filter(|it| parent.is_none() || it.parent == parent)
            .map(|it| self.known.for_key(it, key))
            .collect();
        rooms.sort_by(|a, b| (&a.name, a.room).cmp(&(&b.name, b.room)));
        Ok(Outcome::Rooms(rooms))
    }

    pub(super) fn list_agents(
        &self,
        key: KeyPrint,
        room: Option<RoomId>,
    ) -> Result<Outcome, Refused> {
        let Some(room) = room else {
            let all = self.known.rosters.agents().filter(|agent| {
                self.known.rosters.record(agent).is_some_and(|(_, record)| record.key == key)
            });
            let mut agents: Vec<AgentView> =
                all.filter_map(|agent| self.known.rosters.view(agent)).collect();
            agents.sort_by(|a, b| (a.connected_ms, &a.agent).cmp(&(b.connected_ms, &b.agent)));
            return Ok(Outcome::Agents(agents));
        };
        self.known.may_read(key, room)?;
        Ok(Outcome::Agents(self.known.members_of(room)))
    }

    pub(super) fn room_info(&self, key: KeyPrint, room: RoomId) -> Result<Outcome, Refused> {
        self.known.may_read(key, room)?;
        let view = self.known.view(room).or_else(|| self.known.told.get(&room).cloned());
        let view = self.known.for_key(view.ok_or(Refused::NoRoom)?, key);
        let sub_rooms = self
            .known
            .visible(key)
            .filter(|it| it.parent == Some(room))
            .map(|it| self.known.for_key(it, key))
            .collect();
        let turn = self.turn_holder(room);
        let agents = self.known.members_of(room);
        let leader = elections::leader(&self.known, room);
        Ok(Outcome::RoomInfo(RoomInfo { room: view, agents, sub_rooms, turn, leader }))
    }

    /// What an operator asks.
    pub(super) fn status(&self) -> Status {
        let now = self.known.cx.now.mono;
        let known = self
            .known
            .live
            .heard()
            .map(|(node, _)| node)
            .chain(self.known.live.others.iter().copied());
        let mut nodes: Vec<_> = known.collect();
        nodes.sort_unstable();
        nodes.dedup();
        let nodes = nodes.into_iter().filter(|node| *node != self.known.cx.me).map(|node| {
            let heard = self.known.live.last(node).map(|it| now.saturating_sub(it.at).as_millis());
            NodeStatus {
                node,
                name: self.known.directory.node_names.get(&node).cloned(),
                connected: self.known.live.up.contains(&node),
                alive: self.known.live.is_alive(now, node),
                heard_ms_ago: heard.and_then(|age| u64::try_from(age).ok()),
                agents: self.known.rosters.count_at(node),
            }
        });
        Status {
            node: self.known.cx.me,
            mesh: self.known.cx.mesh,
            nodes: nodes.collect(),
            rooms: self.known.rooms.values().filter_map(|room| self.room_status(room)).collect(),
            agents: self.known.rosters.count_at(self.known.cx.me),
            agents_mesh: self.known.rosters.agents().count(),
            faults: self.known.cx.faults,
            blamed: self.known.cx.blamed.iter().map(|(node, it)| (*node, *it)).collect(),
            forked: self.forked(),
            parted: self.farewell(),
            lanes: self.known.directory.lanes().collect(),
        }
    }

    /// A room that lacks what a peer has is one in which something waits.
    pub(super) fn behind(&self) -> u64 {
        let rooms = self.known.busy.iter().filter_map(|id| self.known.rooms.get(id));
        let listed = rooms.filter(|room| self.known.told.contains_key(&room.id));
        listed.map(|room| room.entries_behind(&self.known.cx)).fold(0, u64::saturating_add)
    }

    /// Whoever forked a log, in whichever room.
    fn forked(&self) -> Vec<NodeId> {
        let all = self.known.cx.forked.iter().chain(self.known.cx.forked_for.values().flatten());
        let mut all: BTreeSet<NodeId> = all.copied().collect();
        for room in self.known.rooms.values() {
            let forked = room.logs.iter().filter(|(_, log)| log.fork.is_some());
            let authors = forked.map(|(_, log)| log.id.author);
            all.extend(authors.filter(|it| room.has_forked_in_memory(*it)));
        }
        all.into_iter().collect()
    }

    fn room_status(&self, room: &crate::room::Room) -> Option<RoomStatus> {
        let view = self.known.told.get(&room.id)?;
        let nobody = self.known.live.others.is_empty() || room.record.local;
        let only = self.known.cx.followers.have(room.record.seal.as_ref());
        let alone = nobody || only.is_some_and(|only| only.len() <= 1);
        Some(RoomStatus {
            room: room.id,
            name: view.name.to_string(),
            era: room.numbering.current(),
            sequencer: room.numbering.sequencer().author,
            tip: room.tip(),
            undelivered: room.numbering.undelivered.len(),
            behind: room.entries_behind(&self.known.cx),
            sent: if alone {
                0
            } else {
                room.logs.head_of(room.mine).saturating_sub(room.unsent())
            },
            unsent: if alone { 0 } else { room.unsent() },
            holes: room.holes,
        })
    }
}
