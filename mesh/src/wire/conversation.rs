//! Conversations: agents that answer each other, and how far that has gone. A part of a message, sealed with it.

use minicbor::{Decode, Encode};

use crate::name::id::MessageId;

/// A message's place in a conversation. Its author's node says so, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Conversation {
    /// The message that began it. `None`: this one.
    #[n(0)]
    pub begun_by: Option<MessageId>,
    /// 0: a request that begins it; each answer is one more.
    #[n(1)]
    pub turn: u32,
    /// So many turns after the first answer: the lowest that any node has said on the way.
    #[n(2)]
    pub max_turns: u32,
    /// How many conversations led to this one: an agent that was told something asked another one.
    #[n(3)]
    pub hops: u32,
    /// Its author waits for an answer.
    #[n(4)]
    pub expects_reply: bool,
    /// The request that it answers.
    #[n(5)]
    pub answers: Option<MessageId>,
    /// Of a request: its author wants the outcome of the conversation to be announced. Of an answer: its author's node sees to
    /// that.
    #[cbor(n(6), default)]
    pub announces: bool,
    /// A person began it, or a program that speaks for one: how often they write is theirs to decide, so that no
    /// [pace](crate::api::budget::Pace) holds.
    #[cbor(n(7), default)]
    pub of_person: bool,
}

impl Conversation {
    /// The message that began the conversation of `message`, which has this place in it.
    #[must_use]
    pub fn id(&self, message: MessageId) -> MessageId {
        self.begun_by.unwrap_or(message)
    }

    /// The highest turn that it may have.
    #[must_use]
    pub fn last_turn(&self) -> u32 {
        self.max_turns.saturating_add(1)
    }
}
