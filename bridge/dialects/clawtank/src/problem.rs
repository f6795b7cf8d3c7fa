//! Refusals, in the codes and words of this dialect.

use std::time::Duration;

use bridge::seam::refusal::{Broken, Field, Refusal};
use mesh::{
    api::{budget::OverBudget, command::Refused},
    wire::roster::Status,
};
use serde_json::{Map, Value, json};

use crate::{envelope::Related, ids};

/// What went wrong, as programs read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    AuthenticationFailed,
    AuthorizationDenied,
    ValidationFailed,
    RateLimitExceeded,
    ResourceNotFound,
    ResourceConflict,
    ServerError,
    NetworkError,
}

impl Code {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.traits().0
    }

    /// Its name, whose fault it is, and whether the same may be tried again.
    fn traits(self) -> (&'static str, &'static str, bool) {
        match self {
            Code::AuthenticationFailed => ("AUTHENTICATION_FAILED", "client_error", false),
            Code::AuthorizationDenied => ("AUTHORIZATION_DENIED", "client_error", false),
            Code::ValidationFailed => ("VALIDATION_FAILED", "client_error", false),
            Code::RateLimitExceeded => ("RATE_LIMIT_EXCEEDED", "client_error", true),
            Code::ResourceNotFound => ("RESOURCE_NOT_FOUND", "client_error", false),
            Code::ResourceConflict => ("RESOURCE_CONFLICT", "client_error", false),
            Code::ServerError => ("SERVER_ERROR", "server_error", true),
            Code::NetworkError => ("NETWORK_ERROR", "network_error", true),
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The JSON path of the field that is meant.
    field: Option<String>,
    /// The rule, in a word or a few.
    reason: Option<String>,
    /// What to do instead.
    suggestion: Option<String>,
    retry_secs: u64,
    /// A failure of the node, which its operator is told of.
    is_fault: bool,
}

/// A client tries something again after this, of which nobody knows when it will do.
const LATER_SECS: u64 = 5;

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Problem {
        let later = matches!(code, Code::ServerError | Code::NetworkError);
        let retry_secs = if later { LATER_SECS } else { 0 };
        let message = message.into();
        Problem {
            code,
            message,
            field: None,
            reason: None,
            suggestion: None,
            retry_secs,
            is_fault: false,
        }
    }

    fn fault(message: &str) -> Problem {
        Problem { is_fault: true, ..Problem::new(Code::ServerError, message) }
    }

    /// A field breaks a rule.
    pub(crate) fn field(path: impl Into<String>, reason: impl Into<String>) -> Problem {
        let (path, reason) = (path.into(), reason.into());
        let message = format!("{path}: {reason}");
        let problem = Problem::new(Code::ValidationFailed, message).because(reason);
        Problem { field: Some(path), ..problem }
    }

    pub(crate) fn denied(message: impl Into<String>) -> Problem {
        Problem::new(Code::AuthorizationDenied, message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> Problem {
        Problem::new(Code::ResourceNotFound, message)
    }

    pub(crate) fn conflict(message: impl Into<String>, reason: impl Into<String>) -> Problem {
        Problem::new(Code::ResourceConflict, message).because(reason)
    }

    pub(crate) fn too_fast(message: impl Into<String>, wait: Duration) -> Problem {
        let retry_secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Problem { retry_secs: retry_secs.max(1), ..Problem::new(Code::RateLimitExceeded, message) }
    }

    /// Its connection is not an agent's any more: a newer one has the place.
    pub(crate) fn replaced() -> Problem {
        let text = "another connection has just taken this place; connect again";
        Problem::new(Code::ServerError, text)
    }

    pub(crate) fn because(self, reason: impl Into<String>) -> Problem {
        Problem { reason: Some(reason.into()), ..self }
    }

    pub(crate) fn at(self, path: impl Into<String>) -> Problem {
        Problem { field: Some(path.into()), ..self }
    }

    pub(crate) fn instead(self, suggestion: impl Into<String>) -> Problem {
        Problem { suggestion: Some(suggestion.into()), ..self }
    }

    /// In how many seconds the same may be tried again, if it may.
    pub(crate) fn retry_secs(&self) -> Option<u64> {
        Some(self.retry_secs).filter(|secs| *secs > 0)
    }

    /// The data of the frame that says so. The id of the error is in the node's log where it is a failure of the node.
    pub(crate) fn data(&self, error_id: &str, related: &Related) -> Value {
        let (code, kind, retryable) = self.code.traits();
        if self.is_fault {
            let why = &*self.message;
            tracing::warn!(
                event = "request_failed",
                error_id,
                why,
                "a request could not be answered"
            );
        }
        let all =
            [("field", &self.field), ("reason", &self.reason), ("suggestion", &self.suggestion)];
        let details: Map<String, Value> = all
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?))))
            .collect();
        let mut data = json!({
            "error_code": code,
            "error_type": kind,
            "message": self.message,
            "details": details,
            "retry_info": {
                "retryable": retryable,
                "retry_after_seconds": self.retry_secs,
                "max_retries": 3,
            },
            "support_info": {"error_id": error_id, "debug_info": {}},
        });
        if let Some(id) = &related.id {
            data["related_message_id"] = json!(id);
        }
        if let Some(correlation) = related.correlation() {
            data["support_info"]["correlation_id"] = json!(correlation);
        }
        data
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let new = Problem::new;
        match refusal {
            Refusal::Mesh(refused) => of_mesh(&refused),
            Refusal::Field(broken) => of_field(&broken),
            Refusal::ReadsOnly => Problem::denied("the key may only read"),
            Refusal::Denied(denied) => Problem::denied(denied.to_string()),
            Refusal::ContentTooLarge { max } => {
                Problem::field("data.content.text", format!("at most {max} bytes for this key"))
            }
            Refusal::MetadataTooLarge => {
                Problem::field("data", "too large to be kept with its text")
            }
            Refusal::TooFast { per_minute } => {
                let text = format!("over {per_minute} messages a minute for this key");
                Problem::too_fast(text, Duration::from_secs(LATER_SECS))
            }
            Refusal::TooManyReplays { per_minute } => {
                let text = format!("over {per_minute} replays a minute for this key");
                Problem::too_fast(text, Duration::from_secs(LATER_SECS))
            }
            Refusal::NoAgent => Problem::missing("nobody knows such an agent"),
            Refusal::NotKept => Problem::missing("the message is no longer kept"),
            Refusal::NotThere { tip } => {
                Problem::field("data", format!("the newest number here is {}", tip.0))
            }
            Refusal::Full { text, .. } => Problem::conflict(text, "full"),
            Refusal::Overloaded => new(Code::ServerError, "the node is overloaded; try again"),
            Refusal::Unknown => new(
                Code::NetworkError,
                "it is not known whether this was done: send the same frame again, which does it once",
            ),
            Refusal::NotAttached | Refusal::AttachedAlready => Problem::replaced(),
            Refusal::Unreadable(_) => Problem::fault("the node's store cannot be read"),
            // Of calls that this dialect does not make.
            Refusal::Webhook(..)
            | Refusal::NoSubscription
            | Refusal::KeySubscriptionsFull { .. }
            | Refusal::SubscriptionsFull
            | Refusal::TooManyKeys { .. }
            | Refusal::NoSignup
            | Refusal::NotOperator => Problem::fault("a refusal of another call"),
        }
    }
}

/// The path of a field that breaks a rule of the mesh. Rules of the schemas are looked at before, and are narrower.
fn of_field(broken: &Broken) -> Problem {
    let path = match broken.field {
        Field::Name => "data.agent_name",
        Field::AgentId => "data.agent_id",
        Field::Capabilities => "data.agent_capabilities",
        Field::Description => "data.description",
        Field::PresenceDetail | Field::Progress => "data.progress",
        Field::Mentions => "data.content.mentions",
        Field::ReplyTo => "data.thread_info.reply_to",
        Field::Title => "data.title",
        Field::Note => "data.notes",
        Field::Priority => "data.priority",
        Field::Labels => "data.context.tags",
        Field::Step => "data.progress.current_step",
        Field::TaskResult => "data.deliverables",
        Field::Requirements => "data.requirements",
        Field::Acceptance => "data.acceptance_criteria",
        Field::Context => "data.context.related_files",
        Field::Effort => "data.estimated_effort",
        Field::BlockedBy => "data.context.dependencies",
        Field::Provider => "data.model_info.provider",
        Field::Model => "data.model_info.model_name",
        Field::Assignee | Field::Holder => "data.agent_id",
        Field::Options
        | Field::Duration
        | Field::TaskKind
        | Field::Origin
        | Field::Emoji
        | Field::Avatar
        | Field::Cards
        | Field::CardName
        | Field::CardText
        | Field::CardTags
        | Field::CardVisibility
        | Field::SettingName
        | Field::SettingValue
        | Field::Settings
        | Field::Writers
        | Field::FileWriters
        | Field::Path
        | Field::MediaType
        | Field::File
        | Field::Subject
        | Field::Lease
        | Field::Stream
        | Field::Tool
        | Field::Piece
        | Field::Thread
        | Field::ThreadFactName
        | Field::ThreadFact
        | Field::ThreadFacts
        | Field::Approval
        | Field::Approvers
        | Field::ApprovalTime
        | Field::Reason => "data",
    };
    Problem::field(path, broken.rule.to_string())
}

fn of_mesh(refused: &Refused) -> Problem {
    let text = refused.to_string();
    match refused {
        Refused::NoKey => Problem::new(Code::AuthenticationFailed, "the key is not valid here"),
        // A room that must not be known is as one that is not there.
        Refused::NoRoom | Refused::NotYours => Problem::missing("no such room"),
        Refused::NoVote
        | Refused::NoApproval
        | Refused::NoTask
        | Refused::NoFile
        | Refused::NoAgent(_) => Problem::missing(text),
        Refused::NameTaken(_) => Problem::conflict(text, "name_taken"),
        Refused::AgentTaken(_) | Refused::AgentRetired(_) => {
            Problem::conflict(text, "agent_id_taken")
        }
        Refused::NotMember
        | Refused::NotLeader
        | Refused::NotEligible
        | Refused::GuestsAlone
        | Refused::NotApprover
        | Refused::NoMailbox(_)
        | Refused::TakesNone(_)
        | Refused::Stopped { .. }
        | Refused::Apart(_) => Problem::denied(text),
        Refused::Plaintext => Problem::field("data.content.text", "must be a clw1: blob")
            .instead("encrypt the text with the room's secret: the room is encrypted end to end"),
        Refused::TooLarge { .. } => Problem::field("data", text),
        Refused::Field(broken) => of_field(broken),
        Refused::Impossible(_)
        | Refused::TooManyCopies { .. }
        | Refused::NotDurable
        | Refused::VoteClosed
        | Refused::AlreadyVoted
        | Refused::NoOption { .. }
        | Refused::Account(_) => Problem::field("data", text),
        Refused::Closed
        | Refused::SessionClosed
        | Refused::ElectionRuns
        | Refused::NoElection
        | Refused::Held { .. }
        | Refused::Stands { .. } => Problem::conflict(text, "state"),
        Refused::Budget(OverBudget::Pair { retry_after, .. }) => {
            Problem::too_fast(text, *retry_after)
        }
        Refused::Budget(
            OverBudget::Turns { .. } | OverBudget::Hops { .. } | OverBudget::Outstanding { .. },
        ) => Problem::denied(text),
        Refused::TooManyIds { .. }
        | Refused::Full(_)
        | Refused::TooManyAgents { .. }
        | Refused::TooManyRooms { .. } => Problem::conflict(text, "full"),
        Refused::Superseded => Problem::replaced(),
        Refused::DiskFull | Refused::Stopping => Problem::new(Code::ServerError, text),
    }
}

/// A fresh id of an error.
pub(crate) fn error_id(form: ids::Form) -> String {
    form.id("err", bridge::ids::random())
}

/// The status that a word of `current_activity` stands for.
pub(crate) fn status_of(word: &str) -> Status {
    let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    if has(&["execut", "test", "commit"]) {
        Status::Working
    } else if has(&["think", "analysis"]) {
        Status::Thinking
    } else if has(&["wait"]) {
        Status::Waiting
    } else {
        Status::Idle
    }
}
