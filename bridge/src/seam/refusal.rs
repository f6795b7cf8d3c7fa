//! Why a client does not get its answer, in no dialect's words. A dialect has a code and a text for each.

use std::time::Duration;

pub use mesh::api::rules::{Broken, Field, Rule};
use mesh::{
    api::command::Refused,
    name::{id::AgentId, number::Number},
};

use crate::{backend::ReadError, limits::WEBHOOK_URL_BYTES_MAX, policy::DeniedBy};

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No agent is attached on this connection.
    NotAttached,
    /// An agent is attached on this connection already.
    AttachedAlready,
    /// A field breaks a rule.
    Field(Broken),
    /// A field of a subscription breaks a rule.
    Webhook(WebhookField, WebhookRule),
    /// The content of a message is larger than its key may send.
    ContentTooLarge {
        /// Bytes that are allowed.
        max: usize,
    },
    /// The content fits, and its metadata beside it does not.
    MetadataTooLarge,
    /// The key has sent as many messages as it may in a minute.
    TooFast {
        /// As many as it may.
        per_minute: u32,
    },
    /// The key, or all strangers together, have begun as many replays as they may in a minute.
    TooManyReplays {
        /// As many as they may.
        per_minute: u32,
    },
    /// Nobody knows such an agent: it has no profile, is not attached, and its id was never claimed.
    NoAgent,
    /// The message is no longer kept.
    NotKept,
    /// A number is confirmed that no message of the room has here.
    NotThere {
        /// The highest number.
        tip: Number,
    },
    /// The key has no such subscription at this node.
    NoSubscription,
    /// The key has as many subscriptions at this node as it may.
    KeySubscriptionsFull {
        /// As many as it may.
        max: usize,
    },
    /// All keys together have as many subscriptions as the node takes.
    SubscriptionsFull,
    /// The address, or all addresses together, had as many keys made as they may.
    TooManyKeys {
        /// Until the next one.
        wait: Duration,
    },
    /// The key has scopes, and may only read.
    ReadsOnly,
    /// The operator does not let it be sent.
    Denied(Denied),
    /// The node makes no keys over HTTP.
    NoSignup,
    /// Keys are made for clients that show the operator's secret.
    NotOperator,
    /// The mesh says no.
    Mesh(Refused),
    /// A bound of the node is reached.
    Full {
        /// Which.
        bound: Bound,
        /// Names the thing that is full, for people.
        text: String,
    },
    /// The mesh has not taken the call: its queue was full.
    Overloaded,
    /// The mesh took the call and the node stops: nobody knows whether it was done.
    Unknown,
    /// The store cannot be read. The error is for the node's log: it is no matter of clients.
    Unreadable(ReadError),
}

/// What the operator does not let be sent. The texts are for clients of all dialects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The two agents may not write to each other.
    #[error("agent-to-agent messages between {one} and {other} are not allowed on this node")]
    AgentToAgent {
        /// The author.
        one: AgentId,
        /// The other one.
        other: AgentId,
    },
    /// Nothing may be sent into the session.
    #[error("sending to {key} is denied by policy")]
    Sending {
        /// The session's key.
        key: String,
        /// The rule.
        by: DeniedBy,
    },
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Refusal {
        Refusal::Denied(denied)
    }
}

/// The kind of thing that a call wants more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Agents.
    Agents,
    /// Rooms.
    Rooms,
    /// Messages.
    Messages,
    /// Things in a room: members, votes, tasks.
    Room,
    /// Records of agents' profiles.
    Profile,
    /// Something else.
    Node,
}

/// A field of a subscription. Dialects have names of their own for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookField {
    /// Where messages are posted.
    Url,
    /// The secret that signs them.
    Secret,
    /// Only messages of these kinds.
    Kinds,
    /// Only those of agents of this name.
    OnlyFrom,
    /// None of agents of this name.
    NotFrom,
}

/// Why a URL cannot be posted to. The texts follow "must".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It is too long.
    #[error("have at most {WEBHOOK_URL_BYTES_MAX} bytes")]
    TooLong,
    /// It is no URL.
    #[error("be a URL such as https://example.org/hook")]
    NotAUrl,
    /// It begins otherwise.
    #[error("begin with http:// or https://")]
    Scheme,
    /// It names no host, or port 0.
    #[error("name a host after http:// or https://, and no port 0")]
    Nowhere,
    /// It carries a user name or a password.
    #[error("carry no user name or password: deliveries are signed with the secret instead")]
    UserInfo,
}

/// A rule that a field of a subscription breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookRule {
    /// One that holds for texts and lists.
    Text(Rule),
    /// A URL that can be posted to.
    Url(BadUrl),
    /// A host that can be reached. The text says why it cannot, for people.
    Reachable(String),
}

impl Refusal {
    pub(crate) fn no_room() -> Refusal {
        Refusal::Mesh(Refused::NoRoom)
    }

    pub(crate) fn not_yours() -> Refusal {
        Refusal::Mesh(Refused::NotYours)
    }

    /// A failure of the node is logged, where its refusal leaves the bridge: each once.
    pub(crate) fn log(&self) {
        if let Refusal::Unreadable(error) = self {
            tracing::error!(
                event = "read_failed",
                error = error as &dyn std::error::Error,
                "a client could not be answered"
            );
        }
    }

    /// The mesh's no. `bound`: the kind of thing that the call wants more of.
    pub(crate) fn of(refused: Refused, bound: Bound) -> Refusal {
        if let Refused::Full(text) = refused {
            return Refusal::Full { bound, text };
        }
        if let Refused::Field(broken) = refused {
            return Refusal::Field(broken);
        }
        Refusal::Mesh(refused)
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        Refusal::Unreadable(error)
    }
}

impl From<Broken> for Refusal {
    fn from(broken: Broken) -> Refusal {
        Refusal::Field(broken)
    }
}
