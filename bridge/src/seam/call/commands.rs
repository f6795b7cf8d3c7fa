//! Calls as commands of the mesh.

use mesh::{
    api::{
        command::{self, Caller, Command, Encryption},
        rules::check_references,
    },
    limits::{CONTENT_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::id::{AgentId, RoomId},
    wire::entry::DedupId,
};

use super::{
    AssignTask, CastVote, Changed, CreateRoom, CreateShared, CreateVote, DeclineElection,
    DescribeKey, DescribeRoom, ElectLeader, FindAgent, GetVote, Join, JoinAsGuest, Leave,
    ListAgents, ListAttached, ListDirect, ListNodes, ListOffering, ListRooms, ListSeats, ListTasks,
    ListVotes, MayBe, NameNodes, NotStopped, OnGiven, OpenDirect, Placed, Say, SetPresence,
    SetProfile, SetProfileOf, SetRoom, SetTyping, ShareRoom, StandOutside, Stream,
    to_mesh::{Row, Sends, ToMesh},
    writers,
};
use crate::{
    config::Quota,
    delivery::hook::Hook,
    limits::{self, BODY_OVERHEAD_BYTES},
    seam::{
        answer::RoomFacts,
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

impl CreateRoom {
    /// Whether name and description are sound: for dialects that say so before anything of the parent.
    ///
    /// # Errors
    /// The refusal names the field.
    pub fn fields(&self) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }
}

impl ToMesh for CreateRoom {
    const ROW: Row = Row::act(Bound::Rooms);

    fn room(&self) -> Option<RoomId> {
        self.0.parent
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        self.fields()
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CreateRoom { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for CreateShared {
    // All nodes hear of it.
    const ROW: Row = Row::counted(Bound::Rooms);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::CreateShared { caller, signer, room: self.0 })
    }
}

impl ToMesh for ShareRoom {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let ShareRoom { room, agent, act } = self;
        Ok(Command::Share(Box::new(command::Share { caller, signer, room, agent, act })))
    }
}

impl ToMesh for OpenDirect {
    // All nodes hear of the first room of two keys.
    const ROW: Row = Row::counted(Bound::Rooms);

    fn sends(&self) -> Option<Sends> {
        Some(Sends::ToAgent { agent: self.agent.clone(), task: self.task.is_some() })
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::OpenDirect { caller, signer, agent: self.agent, task: self.task })
    }
}

impl ToMesh for Join {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn hook(&self) -> Hook {
        Hook::Join { room: self.0, fresh: false }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Join { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for JoinAsGuest {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn hook(&self) -> Hook {
        Hook::Join { room: self.0, fresh: false }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::JoinAsGuest { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for Leave {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn hook(&self) -> Hook {
        Hook::Leave { room: self.0 }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let leave = command::LeaveOnRecord { caller, signer, room: self.0 };
        Ok(Command::LeaveOnRecord(Box::new(leave)))
    }
}

impl ToMesh for Placed {
    const ROW: Row = Row::counted(Bound::Messages);

    fn room(&self) -> Option<RoomId> {
        Some(self.say.room)
    }

    fn sends(&self) -> Option<Sends> {
        Some(Sends::InRoom { room: self.say.room, by_tool: self.say.by_tool })
    }

    fn check(&self, facts: Option<RoomFacts>, quota: Quota) -> Result<(), Refusal> {
        let Say { content, encryption, mentions, reply_to, metadata, .. } = &self.say;
        if facts.is_some_and(|facts| facts.encrypted) && *encryption == Encryption::None {
            return Err(Refusal::Mesh(command::Refused::Plaintext));
        }
        let max = quota.content_bytes_max.min(CONTENT_BYTES_MAX);
        if content.len() > max {
            return Err(Refusal::ContentTooLarge { max });
        }
        check_references(mentions, reply_to.as_deref())?;
        let metadata = metadata.as_ref().map_or(0, String::len);
        let mentions: usize = mentions.iter().map(|id| id.len() + 4).sum();
        let body = content.len() + metadata + mentions + BODY_OVERHEAD_BYTES;
        if body > PLAIN_BODY_BYTES_MAX { Err(Refusal::MetadataTooLarge) } else { Ok(()) }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let caller = party.caller()?.clone();
        let Placed { say, conversing } = self;
        let Say { room, speech, content, encryption, reply_to, metadata, durable, .. } = say;
        let (mut mentions, dedup) = (say.mentions, say.dedup);
        mentions.sort_unstable();
        mentions.dedup();
        let dedup = dedup.map(|id| DedupId::new(caller.key, &caller.agent, &id));
        let mentions = mentions.into_iter().map(AgentId::from).collect();
        let say = command::Say {
            room,
            speech,
            content,
            encryption,
            reply_to,
            mentions,
            metadata,
            dedup,
            durable,
            conversing: conversing.map(Box::new),
        };
        Ok(Command::Say { caller, say })
    }
}

impl ToMesh for ListRooms {
    fn room(&self) -> Option<RoomId> {
        self.parent
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListRooms { by: party.as_reader(), parent: self.parent })
    }
}

impl ToMesh for ListAgents {
    fn room(&self) -> Option<RoomId> {
        self.room
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListAgents { by: party.as_reader(), room: self.room })
    }
}

impl ToMesh for FindAgent {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::FindAgent { agent: self.0 })
    }
}

impl ToMesh for ListOffering {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListOffering { capability: self.capability, limit: self.limit })
    }
}

impl ToMesh for StandOutside {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::StandOutside { caller: party.caller()?.clone() })
    }
}

impl ToMesh for ListAttached {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListAttached { limit: self.limit })
    }
}

impl ToMesh for ListDirect {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListDirect { key: party.key() })
    }
}

impl ToMesh for ListNodes {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::Members)
    }
}

impl ToMesh for DescribeKey {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::KeyTerms { key: party.key() })
    }
}

impl ToMesh for MayBe {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CheckAgent { agent: self.0, key: party.key() })
    }
}

impl ToMesh for NotStopped {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let of = |caller: &Caller| (caller.key, caller.agent.clone());
        let (key, agent) = self.of.map_or_else(|| party.caller().map(of), Ok)?;
        Ok(Command::MaySend { key, agent })
    }
}

impl ToMesh for ListSeats {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListSeats { caller: party.caller()?.clone() })
    }
}

impl ToMesh for NameNodes {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::NameNodes { nodes: self.0 })
    }
}

impl ToMesh for DescribeRoom {
    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::RoomInfo { by: party.as_reader(), room: self.0 })
    }
}

impl ToMesh for SetRoom {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.update.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let SetRoom { room, update } = self;
        let update = writers::understood(update)?;
        update.check()?;
        Ok(Command::SetRoom(Box::new(command::RoomSet { caller, room, signer, update })))
    }
}

impl ToMesh for SetTyping {
    const ROW: Row = Row::act(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::SetTyping {
            caller: party.caller()?.clone(),
            room: self.room,
            typing: self.typing,
        })
    }
}

impl ToMesh for Stream {
    const ROW: Row = Row::act(Bound::Messages);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn sends(&self) -> Option<Sends> {
        Some(Sends::InRoom { room: self.0.room, by_tool: false })
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Stream { caller: party.caller()?.clone(), piece: Box::new(self.0) })
    }
}

impl ToMesh for SetPresence {
    const ROW: Row = Row::act(Bound::Node);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::SetPresence { caller: party.caller()?.clone(), presence: self.0 })
    }
}

impl ToMesh for SetProfile {
    const ROW: Row = Row::counted(Bound::Profile);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::SetProfile { caller, signer, update: Box::new(self.0) })
    }
}

impl ToMesh for SetProfileOf {
    const ROW: Row = Row::counted(Bound::Profile);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.update.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let SetProfileOf { agent, update } = self;
        let (key, signer) = (party.key(), party.signer().cloned());
        Ok(Command::SetProfileOf(Box::new(command::OwnedProfile { key, agent, signer, update })))
    }
}

impl ToMesh for CreateVote {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CreateVote { caller: party.caller()?.clone(), vote: self.0 })
    }
}

impl ToMesh for CastVote {
    const ROW: Row = Row::counted(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CastVote {
            caller: party.caller()?.clone(),
            vote: self.vote,
            option: self.option,
        })
    }
}

impl ToMesh for GetVote {
    const ROW: Row = Row::free(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::GetVote { by: party.as_reader(), vote: self.0 })
    }
}

impl ToMesh for ListVotes {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX).min(limits::VOTES_MAX);
        Ok(Command::ListVotes { by: party.as_reader(), room: self.room, limit })
    }
}

impl ToMesh for ElectLeader {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ElectLeader { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for DeclineElection {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Decline { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for AssignTask {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn sends(&self) -> Option<Sends> {
        Some(Sends::InRoom { room: self.0.room, by_tool: false })
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::AssignTask { caller: party.caller()?.clone(), task: self.0 })
    }
}

impl ToMesh for Changed {
    const ROW: Row = Row::counted(Bound::Room);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::UpdateTask { caller: party.caller()?.clone(), update: self.0 })
    }
}

impl ToMesh for OnGiven {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let OnGiven { room, act } = self;
        Ok(Command::Given { caller: party.caller()?.clone(), room, act })
    }
}

impl ToMesh for ListTasks {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListTasks { by: party.as_reader(), room: self.room, status: self.status })
    }
}
