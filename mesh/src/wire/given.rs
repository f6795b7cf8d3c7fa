//! Tasks that one agent gives to another: the terms, and what is true of a task beside its fields.

use minicbor::{Decode, Encode};

use crate::name::{
    group::TaskSeed,
    id::{EntryRef, MessageId, RoomId},
};

/// See [`super::acts::TaskAct::Marked`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskMarked {
    /// The [`super::acts::TaskAssigned`].
    #[n(0)]
    pub task: EntryRef,
    /// What is true of it from now on.
    #[n(1)]
    pub mark: TaskMark,
}

/// Something that is true of a task from some time on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TaskMark {
    /// It was given on these terms. The first ones count.
    #[n(0)]
    Terms(#[n(0)] TaskTerms),
    /// Its time was up before there was a result.
    #[n(1)]
    RanOut,
    /// The agent that was chosen did not begin: another one is asked, in another room.
    #[n(2)]
    Dismissed,
    /// No agent that was chosen began.
    #[n(3)]
    Untaken,
    /// The agent that gave it knows that its time was up, or a call has returned the result to it.
    #[n(4)]
    Read,
}

/// The terms on which one agent gives a task to another.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskTerms {
    /// So long after it was given its time is up. Milliseconds.
    #[n(0)]
    pub run_ms: Option<u64>,
    /// Its room is kept when the result was read.
    #[n(1)]
    pub keeps: bool,
    /// How many tasks lead to it: 1 if the agent that gave it was given none.
    #[n(2)]
    pub depth: u32,
    /// The agent was not named, but chosen.
    #[n(3)]
    pub chosen: Option<Chosen>,
    /// The name that the agent which gave it has for it, as a digest: so that it is not given twice.
    #[n(4)]
    pub name: Option<TaskSeed>,
}

/// How an agent was chosen for a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Chosen {
    /// By this capability.
    #[n(0)]
    pub capability: String,
    /// After others that did not begin: the room of the first one, and the message that gave it the task.
    #[n(1)]
    pub first: Option<FirstAsked>,
}

/// See [`Chosen::first`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FirstAsked {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// The message.
    #[n(1)]
    pub run: MessageId,
}
