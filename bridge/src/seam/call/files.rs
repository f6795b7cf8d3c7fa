//! Calls about the files of rooms.

use mesh::{
    api::command::{Command, Encryption, FileAct, FileChange},
    name::id::{AgentId, RoomId},
    records::files::NewFile,
};

use super::to_mesh::{Row, ToMesh};
use crate::{
    config::Quota,
    seam::{
        answer::RoomFacts,
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

/// The files of a room, by path.
#[derive(Clone, Copy, Debug)]
pub struct ListFiles(pub RoomId);

/// A file of a room.
#[derive(Clone, Debug)]
pub struct GetFile {
    /// The room.
    pub room: RoomId,
    /// Its path.
    pub path: String,
}

/// States of the files of a room that newer ones have replaced within a day, by path, the latest first. Other nodes are asked
/// for theirs before it is answered, for a second at most: on both sides of a split a file may have been written.
#[derive(Clone, Copy, Debug)]
pub struct ListReplaced(pub RoomId);

/// One of them.
#[derive(Clone, Debug)]
pub struct GetReplaced {
    /// The room.
    pub room: RoomId,
    /// The path of the file.
    pub path: String,
    /// Which one: the latest is 1.
    pub nth: usize,
}

/// Write a file of a room that the caller's key has made. Answered when it is durable.
#[derive(Clone, Debug)]
pub struct PutFile {
    /// The room.
    pub room: RoomId,
    /// The agent in whose name it is written: one of the key's. `None`: the agent that asks, if it is one.
    pub agent: Option<AgentId>,
    /// The file.
    pub file: NewFile,
    /// How the client sealed its bytes: its dialect says so.
    pub encryption: Encryption,
}

/// Delete a file of a room that the caller's key has made.
#[derive(Clone, Debug)]
pub struct RemoveFile {
    /// The room.
    pub room: RoomId,
    /// As in [`PutFile`].
    pub agent: Option<AgentId>,
    /// Its path.
    pub path: String,
}

fn change_file(party: &Party, room: RoomId, by: Option<AgentId>, act: FileAct) -> Command {
    let agent = by.or_else(|| party.agent().cloned());
    let (key, signer) = (party.key(), party.signer().cloned());
    Command::ChangeFile(Box::new(FileChange { room, key, agent, signer, act }))
}

impl ToMesh for PutFile {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.file.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let PutFile { room, agent, file, encryption } = self;
        Ok(change_file(party, room, agent, FileAct::Put(file, encryption)))
    }
}

impl ToMesh for RemoveFile {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let RemoveFile { room, agent, path } = self;
        Ok(change_file(party, room, agent, FileAct::Remove(path)))
    }
}
