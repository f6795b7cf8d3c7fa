//! Inboxes: what an agent asks of its own, and what it is told.

use minicbor::{Decode, Encode};

use crate::name::{id::RoomId, number::Number};

/// What is to be done with an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxAct {
    /// It is made, if the agent has none at this node.
    Open,
    /// Messages that were there before it was made are put in, in this order; at most
    /// [`crate::limits::INBOX_FILED_MAX`]. Nothing more is to be filed then.
    File(Vec<(RoomId, Number)>),
    /// The agent has all items up to this one. Never back.
    Confirm(u64),
    /// The agent was given this item in another way: it is taken out.
    TakeOut(u64),
}

impl InboxAct {
    pub(super) fn bytes(&self) -> usize {
        match self {
            InboxAct::File(items) => items.len() * size_of::<(RoomId, Number)>(),
            InboxAct::Open | InboxAct::Confirm(_) | InboxAct::TakeOut(_) => 0,
        }
    }
}

/// An agent's inbox at this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbox {
    /// Mentions from before are not in it. Unix milliseconds.
    pub since_ms: u64,
    /// The agent has confirmed the items up to this one; 0: none.
    pub mark: u64,
    /// The newest item; 0: there was none yet.
    pub newest: u64,
    /// What is to be read and filed ([`InboxAct::File`]). `None`: that was done.
    pub unfiled: Option<Vec<Unfiled>>,
}

/// Messages from before an inbox was made: those of the other agent of a direct room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Unfiled {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// This agent's own last message, or [`Number::ZERO`].
    #[n(1)]
    pub after: Number,
    /// The newest message there.
    #[n(2)]
    pub upto: Number,
}
