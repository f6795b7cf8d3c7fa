//! Requests of correspondents to nodes, until they are answered.

use std::time::Duration;

use mesh::{
    api::command::Say,
    name::{id::RoomId, number::Number},
};

use super::giving::Step;

#[derive(Clone, Debug)]
pub(super) enum Asked {
    Mint(usize),
    Attach(usize),
    Detach,
    /// Its bridge says that it was given requests.
    Handed,
    Join(usize, RoomId),
    /// The private room of a key.
    Create(usize),
    /// The agent that opens a direct room, and the other one.
    Open(usize, usize),
    Inbox(usize, Act),
    Task(Step),
    Say(Box<Saying>),
}

/// What an agent does with its inbox.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Open,
    File,
    Confirm(u64),
    TakeOut(u64),
}

/// A message that is said.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) by: usize,
    pub(super) room: RoomId,
    pub(super) say: Say,
    pub(super) why: Why,
}

/// Why it is said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// As it likes.
    Chat,
    /// It answers an item of its inbox.
    Answer { item: Item },
    /// It was told something, so it asks somebody else.
    Ask { item: Item },
    /// A modest agent has a question.
    Question,
    /// It is answered.
    Help { item: Item },
    /// It says anything.
    Brag,
}

/// A message in an inbox that has led to another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) place: u64,
    pub(super) at: (RoomId, Number),
    /// When the agent was told it.
    pub(super) told: Duration,
    /// How many conversations led to it, if the next one is further.
    pub(super) hops: Option<u32>,
}
