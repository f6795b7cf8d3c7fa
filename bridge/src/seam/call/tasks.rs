//! Tasks: reading all that is remembered of one, and deleting one.

use mesh::{
    api::{agenda::TaskRecord, command::Command},
    name::id::{MessageId, RoomId},
};

use super::{
    Call,
    to_mesh::{Row, ToMesh},
};
use crate::{
    seam::refusal::{Bound, Refusal},
    session::party::Party,
};

/// A task with its newest comments and changes.
#[derive(Clone, Copy, Debug)]
pub struct ReadTask {
    /// Its room.
    pub room: RoomId,
    /// The task.
    pub task: MessageId,
}

/// Delete a task that has ended: by the agent that made it, or in a room of the agent's key.
#[derive(Clone, Copy, Debug)]
pub struct DeleteTask(pub MessageId);

impl Call for ReadTask {
    type Answer = Box<TaskRecord>;
}

impl Call for DeleteTask {
    type Answer = ();
}

impl ToMesh for ReadTask {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ReadTask { by: party.as_reader(), room: self.room, task: self.task })
    }
}

impl ToMesh for DeleteTask {
    const ROW: Row = Row::counted(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::DeleteTask { caller: party.caller()?.clone(), task: self.0 })
    }
}
