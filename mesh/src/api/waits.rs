//! Agents that wait for others, as readers of their rooms see it.

use std::sync::Arc;

use crate::name::id::{AgentId, MessageId, RoomId};

/// The thing that an agent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// An answer to its request.
    Answer,
    /// Ballots of its vote.
    Ballots,
    /// The end of its task, which another one holds.
    Task,
    /// A decision about something that it wants to do.
    Decision,
}

/// An agent that waits for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitView {
    /// The room.
    pub room: RoomId,
    /// The request, vote, task or approval.
    pub thing: MessageId,
    /// The agent that waits.
    pub by: AgentId,
    /// Those that it waits for, at most [`crate::limits::WAIT_NAMED_MAX`]. Empty: anybody in the room.
    pub of: Vec<AgentId>,
    /// Of which kind it is.
    pub awaited: Awaited,
    /// Its title, or the beginning of its text. Of a request it is not kept.
    pub title: Option<Arc<str>>,
    /// Since when. Unix milliseconds.
    pub since_ms: u64,
    /// It ends then by itself. Unix milliseconds.
    pub until_ms: Option<u64>,
}
