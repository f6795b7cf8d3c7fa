//! Why a client does not get its answer, in no dialect's words. A dialect has a code and a text for each.

use std::time::Duration;

use mesh::api::{command::Refused, rules};

use crate::backend::ReadError;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No agent is attached on this connection.
    NotAttached,
    /// An agent is attached on this connection already.
    AttachedAlready,
    /// A field breaks a rule.
    Field(Field, Rule),
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
    /// The message is no longer kept.
    NotKept,
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
    /// Something else.
    Node,
}

/// A field of a call. Dialects have names of their own for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for what they are")]
pub enum Field {
    Name,
    AgentId,
    Capabilities,
    Description,
    StatusDetail,
    Progress,
    Mentions,
    ReplyTo,
    Title,
    Options,
    Duration,
    Assignee,
    IfAssignee,
    Note,
    WebhookUrl,
    Secret,
    Kinds,
    OnlyFrom,
    NotFrom,
}

/// A rule that a field breaks. Lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It has more than white space.
    NotBlank,
    /// At most so long.
    AtMost(usize),
    /// Not empty, and at most so long.
    Within(usize),
    /// So many entries.
    Count {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// At most so many entries, none longer than this.
    Entries {
        /// How many.
        count: usize,
        /// How long each.
        bytes: usize,
    },
    /// Each entry has more than white space, and is at most so long.
    EachWithin(usize),
    /// A whole number.
    Between {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
    },
    /// A URL that can be posted to. The text follows "must".
    Url(String),
    /// A URL whose host can be reached. The text says why it cannot.
    Reachable(String),
}

impl From<rules::Field> for Field {
    fn from(field: rules::Field) -> Field {
        match field {
            rules::Field::Name => Field::Name,
            rules::Field::AgentId => Field::AgentId,
            rules::Field::Capabilities => Field::Capabilities,
            rules::Field::Description => Field::Description,
            rules::Field::PresenceDetail => Field::StatusDetail,
            rules::Field::Progress => Field::Progress,
            rules::Field::Mentions => Field::Mentions,
            rules::Field::Title => Field::Title,
            rules::Field::Options => Field::Options,
            rules::Field::Duration => Field::Duration,
            rules::Field::Assignee => Field::Assignee,
            rules::Field::Holder => Field::IfAssignee,
            rules::Field::Note => Field::Note,
        }
    }
}

impl From<rules::Rule> for Rule {
    fn from(rule: rules::Rule) -> Rule {
        match rule {
            rules::Rule::NotBlank => Rule::NotBlank,
            rules::Rule::AtMost(max) => Rule::AtMost(max),
            rules::Rule::Within(max) => Rule::Within(max),
            rules::Rule::Count { min, max } => Rule::Count { min, max },
            rules::Rule::Entries { count, bytes } => Rule::Entries { count, bytes },
            rules::Rule::EachWithin(max) => Rule::EachWithin(max),
            rules::Rule::Between { min, max } => Rule::Between { min, max },
        }
    }
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
        Refusal::Mesh(refused)
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        Refusal::Unreadable(error)
    }
}

/// At most so many bytes.
pub(crate) fn at_most(field: Field, text: &str, max: usize) -> Result<(), Refusal> {
    if text.len() > max { Err(Refusal::Field(field, Rule::AtMost(max))) } else { Ok(()) }
}

/// More than white space.
pub(crate) fn not_blank(field: Field, text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() { Err(Refusal::Field(field, Rule::NotBlank)) } else { Ok(()) }
}

/// 1 to so many bytes.
pub(crate) fn within(field: Field, text: &str, max: usize) -> Result<(), Refusal> {
    if (1..=max).contains(&text.len()) {
        Ok(())
    } else {
        Err(Refusal::Field(field, Rule::Within(max)))
    }
}
