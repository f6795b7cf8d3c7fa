//! Refusals of the mesh, as models read them: a sentence that says what to do next, and the code that other clients know.

use bridge::{
    policy::DeniedBy,
    seam::refusal::{Bound, Denied, Refusal},
};
use mesh::api::{
    budget::OverBudget,
    command::Refused,
    rules::{Broken, Field},
};
use serde_json::{Map, json};

use crate::{
    keys,
    outcome::{No, NoAgent},
};

/// The id is not the host's to have.
fn taken(text: String) -> No {
    No::Agent { text, why: NoAgent::Taken }
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> No {
        let (code, text) = match refusal {
            Refusal::Mesh(Refused::AgentTaken(agent)) => {
                return taken(format!("agent id {agent:?} belongs to another key"));
            }
            Refusal::Mesh(refused @ Refused::AgentRetired(_)) => return taken(refused.to_string()),
            Refusal::Mesh(refused @ Refused::TooManyAgents { .. }) => {
                return No::Agent { text: refused.to_string(), why: NoAgent::TooMany };
            }
            Refusal::Mesh(refused @ Refused::NoKey) => {
                return No::Agent { text: refused.to_string(), why: NoAgent::NoKey };
            }
            Refusal::ReadsOnly => {
                return No::forbidden("scope.write", "this key may only read");
            }
            Refusal::TooFast { per_minute } => {
                let text = format!("over {per_minute} messages a minute for this key");
                return No::forbidden("rate", text);
            }
            Refusal::Field(broken) => return of_field(broken),
            Refusal::Denied(denied) => return of_policy(denied),
            Refusal::Mesh(Refused::TakesNone(none)) => {
                return No::forbidden("inbound", none.to_string());
            }
            Refusal::Mesh(Refused::Budget(over)) => return over_budget(&over),
            Refusal::Mesh(refused @ Refused::SessionClosed) => {
                return No::forbidden("closed", refused.to_string());
            }
            Refusal::Mesh(refused) if of_mesh(&refused).0 == "access_denied" => {
                return No::forbidden("room_access", of_mesh(&refused).1);
            }
            Refusal::Mesh(refused) => of_mesh(&refused),
            Refusal::ContentTooLarge { max } => {
                let text = format!("must have at most {max} bytes");
                return No::argument("message", &text);
            }
            Refusal::MetadataTooLarge => {
                ("message_too_large", "the message and its metadata are too large".to_owned())
            }
            Refusal::NotAttached | Refusal::AttachedAlready => {
                ("not_registered", "the agent was just replaced; try again".to_owned())
            }
            Refusal::NoAgent => ("invalid_payload", "nobody knows an agent of this id".to_owned()),
            Refusal::NotKept => ("internal_error", "the message is no longer kept".to_owned()),
            Refusal::NotThere { tip } => {
                ("invalid_payload", format!("the newest number here is {}", tip.0))
            }
            Refusal::Full { bound, text } => (full(bound), text),
            Refusal::Overloaded => {
                ("internal_error", "the node is overloaded; try again".to_owned())
            }
            Refusal::Unknown => (
                "internal_error",
                "the node is stopping, and it is not known whether this was done: look before you \
                 do it again"
                    .to_owned(),
            ),
            Refusal::Unreadable(_) => {
                ("internal_error", "the node's store cannot be read".to_owned())
            }
            // Of calls that no tool makes.
            Refusal::Webhook(..)
            | Refusal::TooManyReplays { .. }
            | Refusal::NoSubscription
            | Refusal::KeySubscriptionsFull { .. }
            | Refusal::SubscriptionsFull
            | Refusal::TooManyKeys { .. }
            | Refusal::NoSignup
            | Refusal::NotOperator => ("internal_error", "this cannot be done here".to_owned()),
        };
        No::error(text).with("code", json!(code))
    }
}

fn of_mesh(refused: &Refused) -> (&'static str, String) {
    let code = match refused {
        Refused::NoRoom => "room_not_found",
        Refused::SessionClosed => "closed",
        Refused::NotYours
        | Refused::Closed
        | Refused::NotEligible
        | Refused::GuestsAlone
        | Refused::NoMailbox(_) => "access_denied",
        Refused::Apart(_) | Refused::Stopped { .. } => "access_denied",
        Refused::NotMember => "not_in_room",
        Refused::NameTaken(_) => "room_name_taken",
        Refused::AgentTaken(_) | Refused::AgentRetired(_) => "agent_id_taken",
        Refused::Plaintext => "plaintext_in_encrypted_room",
        Refused::TooLarge { .. } => "message_too_large",
        Refused::Superseded => "not_registered",
        Refused::NoVote => "vote_not_found",
        Refused::VoteClosed => "vote_closed",
        Refused::AlreadyVoted => "already_voted",
        Refused::NoOption { .. } => "invalid_option",
        Refused::NotLeader => "not_leader",
        Refused::ElectionRuns => "election_in_progress",
        Refused::NoElection => "no_election_active",
        Refused::NoTask => "task_not_found",
        Refused::NoKey => "unauthorized",
        Refused::TooManyAgents { .. } => "rate_limit_agents",
        Refused::TooManyRooms { .. } => "rate_limit_rooms",
        Refused::Field(_)
        | Refused::TooManyIds { .. }
        | Refused::Impossible(_)
        | Refused::Held { .. }
        | Refused::Stands { .. }
        | Refused::TooManyCopies { .. }
        | Refused::NotDurable
        | Refused::NoFile
        | Refused::NoApproval
        | Refused::NotApprover
        | Refused::Account(_)
        | Refused::NoAgent(_) => "invalid_payload",
        Refused::Budget(_) | Refused::TakesNone(_) => "access_denied",
        Refused::Full(_) | Refused::DiskFull | Refused::Stopping => "internal_error",
    };
    let text = if *refused == Refused::NotMember {
        "call room_join first".to_owned()
    } else if *refused == Refused::Plaintext {
        "this room is end-to-end encrypted; a node cannot write into it".to_owned()
    } else {
        refused.to_string()
    };
    (code, text)
}

/// Sending that the operator does not allow.
fn of_policy(denied: Denied) -> No {
    let text = denied.to_string();
    let (rule, session) = match denied {
        Denied::AgentToAgent { other, .. } => ("agent_to_agent".to_owned(), keys::of_agent(&other)),
        Denied::Sending { key, by: DeniedBy::Override } => ("send_policy.override".to_owned(), key),
        Denied::Sending { key, by: DeniedBy::Rule(nth) } => {
            (format!("send_policy.rules[{nth}]"), key)
        }
        Denied::Sending { key, by: DeniedBy::Default } => ("send_policy.default".to_owned(), key),
    };
    No::Forbidden { rule, text, session: Some(session), more: Map::new() }
}

fn over_budget(over: &OverBudget) -> No {
    match over {
        OverBudget::Turns { .. } => No::forbidden("max_ping_pong_turns", over.to_string()),
        OverBudget::Hops { .. } => No::forbidden("max_hops", over.to_string()),
        OverBudget::Pair { retry_after, .. } => {
            let ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
            No::forbidden("pair_budget", over.to_string()).with("retryAfterMs", json!(ms))
        }
        OverBudget::Outstanding { unanswered } => {
            let text = format!("you have {unanswered} unanswered requests; read inbox_wait first");
            No::forbidden("outstanding", text)
        }
    }
}

/// The code of a bound that is reached.
fn full(bound: Bound) -> &'static str {
    match bound {
        Bound::Agents => "rate_limit_agents",
        Bound::Rooms => "rate_limit_rooms",
        Bound::Messages => "rate_limit_messages",
        Bound::Room | Bound::Profile => "invalid_payload",
        Bound::Node => "internal_error",
    }
}

/// A rule of the mesh that an argument breaks.
fn of_field(Broken { field, rule }: Broken) -> No {
    No::argument(name(field), &rule.to_string())
}

/// An argument's name. Of fields that no tool has: as they are known elsewhere.
fn name(field: Field) -> &'static str {
    match field {
        Field::Name => "name",
        Field::AgentId => "agentId",
        Field::Capabilities => "capabilities",
        Field::Description => "description",
        Field::Mentions => "mentions",
        Field::ReplyTo => "replyTo",
        Field::Stream => "stream",
        Field::Tool => "tool",
        Field::Piece => "piece",
        Field::Title => "title",
        Field::Options => "options",
        Field::Duration => "durationSeconds",
        Field::Assignee | Field::Holder => "assignee",
        Field::Note => "result",
        Field::PresenceDetail => "status_detail",
        Field::Progress => "progress",
        Field::Priority => "priority",
        Field::Labels => "labels",
        Field::Step => "step",
        Field::TaskResult => "result",
        Field::TaskKind => "kind",
        Field::Requirements => "requirements",
        Field::Acceptance => "acceptance",
        Field::Context => "context",
        Field::Effort => "effort",
        Field::Origin => "origin",
        Field::BlockedBy => "blockedBy",
        Field::Emoji => "emoji",
        Field::Avatar => "avatar",
        Field::Provider => "provider",
        Field::Model => "model",
        Field::Cards | Field::CardName | Field::CardText | Field::CardTags => "cards",
        Field::CardVisibility => "cards",
        Field::SettingName
        | Field::Thread
        | Field::ThreadFactName
        | Field::ThreadFact
        | Field::ThreadFacts
        | Field::SettingValue
        | Field::Settings
        | Field::Writers
        | Field::FileWriters => "settings",
        Field::Path => "path",
        Field::MediaType => "type",
        Field::File => "content",
        Field::Subject => "subject",
        Field::Lease => "lease_ms",
        Field::Approval => "approval",
        Field::Approvers => "approvers",
        Field::ApprovalTime => "timeout",
        Field::Reason => "reason",
    }
}
