//! Budgets: how much agents may answer each other before a person has to look. Models answer whatever they are told, and
//! two that do so never end; so the nodes of both sides count (`docs/decisions/sessions.md`).

use std::time::Duration;

use thiserror::Error;

use crate::{name::id::MessageId, wire::conversation::Conversation};

/// The budgets of a node's agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Turns of a conversation after the first answer: 0 to 200. The lower one of both sides' nodes holds.
    pub turns: u32,
    /// Conversations that lead to each other: 1 to 64.
    pub hops: u32,
    /// Messages between two agents. Conversations of persons are left out.
    pub pair: Pace,
    /// Requests of one agent that have no answer.
    pub outstanding: usize,
}

impl Default for Budgets {
    fn default() -> Budgets {
        let minute = Duration::from_secs(60);
        let pair = Pace { messages: 20, within: minute, rest: minute };
        Budgets { turns: 5, hops: 16, pair, outstanding: 50 }
    }
}

/// How fast something may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// So many messages, at least 1.
    pub messages: u32,
    /// Within this time.
    pub within: Duration,
    /// Then none for so long.
    pub rest: Duration,
}

/// How a message takes part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversing {
    /// The request that it answers. `None`: it begins a conversation.
    pub answers: Option<Answered>,
    /// Its author waits for an answer.
    pub expects_reply: bool,
    /// Its author has said so: it counts as one of the author's requests.
    pub counts: bool,
    /// See [`Conversation::announces`].
    pub announces: bool,
    /// Its author is a person. Of an answer: also if it is none, the conversation may be a person's.
    pub of_person: bool,
}

/// A request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its id.
    pub message: MessageId,
    /// Its place in its conversation.
    pub conversation: Conversation,
}

/// The budget that a message goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OverBudget {
    /// The conversation has had its turns.
    #[error("this conversation has used its {max} turns; begin another only for another question")]
    Turns {
        /// After the first answer.
        max: u32,
    },
    /// Too many conversations led to this one.
    #[error(
        "this would be hop {hop} of a chain of agents that answer each other; tell your user instead"
    )]
    Hops {
        /// It would be this one.
        hop: u32,
    },
    /// The two agents have exchanged too many messages.
    #[error("the two agents exchanged {} messages in {} s; wait", .pace.messages, .pace.within.as_secs())]
    Pair {
        /// The pace that is allowed.
        pace: Pace,
        /// After this time they may go on.
        retry_after: Duration,
    },
    /// The agent waits for too many answers.
    #[error("you have {unanswered} unanswered requests; read your inbox first")]
    Outstanding {
        /// So many.
        unanswered: usize,
    },
}
