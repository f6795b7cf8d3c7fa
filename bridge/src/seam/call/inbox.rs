//! The inbox of an agent that comes and asks, instead of keeping a connection.

use mesh::{
    api::command::{Command, InboxAct},
    limits::INBOX_ITEMS_MAX,
    name::id::{EntryRef, RoomId},
};

use super::to_mesh::ToMesh;
use crate::{seam::refusal::Refusal, session::party::Party};

/// The agent's inbox at this node, made if there is none: then with messages that waited for the agent before. Items come into it from
/// then on, whether the agent is attached or not.
#[derive(Clone, Copy, Debug)]
pub struct OpenInbox;

/// Read the oldest items above a place. They stay.
#[derive(Clone, Copy, Debug)]
pub struct ReadInbox {
    /// A place that was read before; 0: from the beginning.
    pub after: u64,
    /// At most so many.
    pub limit: usize,
}

/// Read where the oldest items above a place are, and no messages.
#[derive(Clone, Copy, Debug)]
pub struct LookIntoInbox {
    /// As in [`ReadInbox`].
    pub after: u64,
    /// At most so many.
    pub limit: usize,
}

/// Say that all items up to this place were read. The rooms of tasks whose results are among them end.
#[derive(Clone, Copy, Debug)]
pub struct ConfirmInbox(pub u64);

/// Take an item out that the agent was given in another way.
#[derive(Clone, Copy, Debug)]
pub struct TakeFromInbox(pub u64);

/// Say that messages of a direct room were handed to the agent that asks. It counts for those that ask it for something.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// The room.
    pub room: RoomId,
    /// The messages.
    pub requests: Vec<EntryRef>,
}

impl ToMesh for HandOver {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let agent = party.as_reader().agent.ok_or(Refusal::NotAttached)?;
        Ok(Command::Handed { agent, room: self.room, requests: self.requests })
    }
}

impl ReadInbox {
    /// It, with bounds that a store can keep to.
    #[must_use]
    pub fn bounded(self) -> ReadInbox {
        let max = usize::try_from(INBOX_ITEMS_MAX).unwrap_or(usize::MAX);
        ReadInbox { limit: self.limit.min(max), ..self }
    }
}

impl ToMesh for TakeFromInbox {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(act(party.caller()?, InboxAct::TakeOut(self.0)))
    }
}

fn act(caller: &mesh::api::command::Caller, act: InboxAct) -> Command {
    Command::Inbox { caller: caller.clone(), act }
}
