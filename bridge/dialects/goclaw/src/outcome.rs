//! Refusals, in the codes and words of this dialect.

use bridge::seam::refusal::{Broken, Refusal, WebhookField, WebhookRule};
use mesh::api::{budget::OverBudget, command::Refused};
use serde_json::{Value, json};

use crate::times;

/// What went wrong, as programs read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Unauthorized,
    InvalidRequest,
    NotFound,
    AlreadyExists,
    Unavailable,
    ResourceExhausted,
    AgentTimeout,
    NotImplemented,
    Internal,
}

impl Code {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Code::Unauthorized => "UNAUTHORIZED",
            Code::InvalidRequest => "INVALID_REQUEST",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::Unavailable => "UNAVAILABLE",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::AgentTimeout => "AGENT_TIMEOUT",
            Code::NotImplemented => "NOT_IMPLEMENTED",
            Code::Internal => "INTERNAL",
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct No {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// It may be tried again, after so long; zero: nobody knows when.
    pub(crate) retry_ms: Option<u64>,
    /// The key is not valid any more: the connection ends.
    pub(crate) ends: bool,
}

/// The end of a method.
pub(crate) type Outcome = Result<Value, No>;

/// Clients try something again after this, of which nobody knows when it will do.
const LATER_MS: u64 = 5_000;

impl No {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> No {
        No { code, message: message.into(), retry_ms: None, ends: false }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> No {
        No::new(Code::InvalidRequest, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> No {
        No::new(Code::Unauthorized, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> No {
        No::new(Code::NotFound, message)
    }

    pub(crate) fn exhausted(message: impl Into<String>, retry_ms: u64) -> No {
        No::new(Code::ResourceExhausted, message).after(retry_ms)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> No {
        No::new(Code::Unavailable, message).after(LATER_MS)
    }

    fn after(self, retry_ms: u64) -> No {
        No { retry_ms: Some(retry_ms), ..self }
    }

    /// A failure of the node. It is in the node's log under the id that the client is given.
    pub(crate) fn internal(why: &str) -> No {
        let id = error_id();
        tracing::warn!(event = "request_failed", error_id = %id, why, "a request could not be answered");
        No::new(Code::Internal, format!("the node could not do this (error {id} in its log)"))
    }

    /// As it is on the wire.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "code": self.code.name(),
            "message": self.message,
            "details": "",
            "retryable": self.retry_ms.is_some(),
            "retryAfterMs": self.retry_ms.unwrap_or(0),
        })
    }
}

fn error_id() -> String {
    let mut bytes = [0; 6];
    // Without random bytes it is a bad id, and still an error that is told.
    _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> No {
        match refusal {
            Refusal::Mesh(refused) => of_mesh(&refused),
            Refusal::Field(Broken { field, rule }) => {
                No::invalid(format!("{} {rule}", format!("{field:?}").to_lowercase()))
            }
            Refusal::ReadsOnly => No::unauthorized("permission denied: this key may only read"),
            Refusal::Denied(denied) => No::unauthorized(denied.to_string()),
            Refusal::ContentTooLarge { max } => {
                No::invalid(format!("message must have at most {max} bytes"))
            }
            Refusal::MetadataTooLarge => {
                No::invalid("the message and what goes with it are too large")
            }
            Refusal::TooFast { per_minute } => {
                let text = format!("over {per_minute} messages a minute for this key");
                No::exhausted(text, LATER_MS)
            }
            Refusal::TooManyReplays { per_minute } => {
                let text = format!("over {per_minute} replays a minute for this key");
                No::exhausted(text, LATER_MS)
            }
            Refusal::NoAgent => No::not_found("agent not found"),
            Refusal::NotKept => No::not_found("the message is no longer kept"),
            Refusal::NotThere { tip } => {
                No::invalid(format!("the newest number here is {}", tip.0))
            }
            Refusal::Full { text, .. } => No::exhausted(text, LATER_MS),
            Refusal::Overloaded => No::unavailable("the node is overloaded; try again"),
            Refusal::Unknown => No::unavailable(
                "the node is stopping, and it is not known whether this was done: look before you do it again",
            ),
            Refusal::NotAttached | Refusal::AttachedAlready => {
                No::unavailable("another connection has just taken this place; try again")
            }
            Refusal::Unreadable(error) => No::internal(&error.to_string()),
            Refusal::Webhook(field, rule) => No::invalid(webhook(field, &rule)),
            Refusal::NoSubscription => No::not_found("instance not found"),
            Refusal::KeySubscriptionsFull { max } => No::exhausted(
                format!("this key has {max} webhooks here, which is the most"),
                LATER_MS,
            ),
            Refusal::SubscriptionsFull => {
                No::exhausted("this node has as many webhooks as it takes", LATER_MS)
            }
            // Of calls that this dialect does not make.
            Refusal::TooManyKeys { .. } | Refusal::NoSignup | Refusal::NotOperator => {
                No::internal("a refusal of another call")
            }
        }
    }
}

/// Why a webhook cannot be made so.
fn webhook(field: WebhookField, rule: &WebhookRule) -> String {
    let name = match field {
        WebhookField::Url => "url",
        WebhookField::Secret => "secret",
        WebhookField::Kinds => "kinds",
        WebhookField::OnlyFrom => "only_from",
        WebhookField::NotFrom => "not_from",
    };
    match rule {
        WebhookRule::Text(rule) => format!("{name} {rule}"),
        WebhookRule::Url(bad) => format!("{name} must {bad}"),
        WebhookRule::Reachable(why) => format!("{name} cannot be used: {why}"),
    }
}

fn of_mesh(refused: &Refused) -> No {
    let text = refused.to_string();
    match refused {
        Refused::NoKey => {
            No { ends: true, ..No::unauthorized("permission denied: the key is not valid") }
        }
        // A room that must not be known is as one that is not there.
        Refused::NoRoom | Refused::NotYours => No::not_found("no such room"),
        Refused::NoVote | Refused::NoTask | Refused::NoFile | Refused::NoAgent(_) => {
            No::not_found(text)
        }
        Refused::NoApproval => No::not_found("approval not found or already resolved"),
        Refused::NameTaken(_) | Refused::AgentTaken(_) | Refused::AgentRetired(_) => {
            No::new(Code::AlreadyExists, text)
        }
        Refused::NotMember
        | Refused::Stopped { .. }
        | Refused::NotLeader
        | Refused::NotApprover
        | Refused::NotEligible
        | Refused::GuestsAlone
        | Refused::Closed
        | Refused::SessionClosed
        | Refused::NoMailbox(_)
        | Refused::TakesNone(_)
        | Refused::Apart(_) => No::unauthorized(text),
        Refused::Plaintext
        | Refused::TooLarge { .. }
        | Refused::Field(_)
        | Refused::Impossible(_)
        | Refused::TooManyCopies { .. }
        | Refused::NotDurable
        | Refused::VoteClosed
        | Refused::AlreadyVoted
        | Refused::NoOption { .. }
        | Refused::ElectionRuns
        | Refused::NoElection
        | Refused::Account(_)
        | Refused::Held { .. }
        | Refused::Stands { .. } => No::invalid(text),
        Refused::Budget(OverBudget::Pair { retry_after, .. }) => {
            No::exhausted(text, times::ms(*retry_after))
        }
        Refused::TooManyIds { .. }
        | Refused::Budget(_)
        | Refused::Full(_)
        | Refused::TooManyAgents { .. }
        | Refused::TooManyRooms { .. } => No::exhausted(text, LATER_MS),
        Refused::Superseded => {
            No::unavailable("another connection has just taken this place; try again")
        }
        Refused::DiskFull | Refused::Stopping => No::unavailable(text),
    }
}
