//! Refusals, as clients get them: one code and one text for each reason.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bridge::seam::refusal::{
    BadUrl, Bound, Broken, Field, Refusal, Rule, WebhookField, WebhookRule,
};
use mesh::{
    api::{
        budget::OverBudget,
        command::{Apart, Refused},
    },
    name::group::RESERVED,
};
use protocol::{
    code::Code,
    reply::{ErrorBody, ErrorNote, Reason, Reply},
};

/// A code and a text with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// A reason that no code says.
    pub(crate) reason: Option<Reason>,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), reason: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(Code::InvalidPayload, message)
    }

    pub(crate) fn into_reply(self) -> Reply {
        let mesh = self.reason.map(|reason| ErrorNote { reason });
        Reply::Error(ErrorBody { code: self.code, message: self.message, mesh })
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let internal = |text: &str| Problem::new(Code::InternalError, text);
        match refusal {
            Refusal::NotAttached => Problem::new(Code::NotRegistered, "register first"),
            Refusal::AttachedAlready => {
                Problem::invalid("this connection is registered; open another one")
            }
            Refusal::Field(at) => Problem::invalid(broken(at)),
            Refusal::Webhook(field, rule) => Problem::invalid(broken_webhook(field, rule)),
            Refusal::ContentTooLarge { max } => {
                let text = format!("`content` must have at most {max} bytes");
                Problem::new(Code::MessageTooLarge, text)
            }
            Refusal::MetadataTooLarge => {
                let text = "`metadata` is too large to be sent with this content";
                Problem::new(Code::MessageTooLarge, text)
            }
            Refusal::TooFast { per_minute } => {
                let text =
                    format!("the key may send {per_minute} messages a minute; wait a little");
                Problem::new(Code::RateLimitMessages, text)
            }
            Refusal::TooManyReplays { per_minute } => {
                let text = format!("over {per_minute} replays a minute for this key");
                Problem::new(Code::RateLimitMessages, text)
            }
            Refusal::NoAgent => Problem::invalid("nobody knows an agent of this id"),
            Refusal::NotKept => internal("the first message is no longer kept"),
            Refusal::NotThere { tip } => {
                Problem::invalid(format!("`seq` must be at most {}: the newest here", tip.0))
            }
            Refusal::NoSubscription => {
                let text = "this key has no such subscription at this node";
                Problem::new(Code::AccessDenied, text)
            }
            Refusal::KeySubscriptionsFull { max } => Problem::invalid(format!(
                "this key has {max} subscriptions here, which is the most: delete one"
            )),
            Refusal::SubscriptionsFull => {
                internal("the node has as many subscriptions as it takes; use another node")
            }
            Refusal::TooManyKeys { .. } => Problem::new(Code::RateLimitAgents, TOO_MANY_KEYS),
            Refusal::ReadsOnly => Problem::new(Code::AccessDenied, READS_ONLY),
            Refusal::Denied(denied) => Problem::new(Code::AccessDenied, denied.to_string()),
            Refusal::NoSignup => {
                let text = "this node makes no keys over HTTP; ask its operator for one";
                Problem::new(Code::AccessDenied, text)
            }
            Refusal::NotOperator => {
                let text = "show the operator's secret in the header X-ClawChat-Admin";
                Problem::new(Code::Unauthorized, text)
            }
            Refusal::Mesh(refused) => refused_by_mesh(refused),
            Refusal::Full { bound, text } => Problem::new(full(bound), text),
            Refusal::Overloaded => internal("the node is overloaded; try again"),
            // No code of the protocol says that.
            Refusal::Unknown => Problem {
                reason: Some(Reason::Unknown),
                ..internal(
                    "the node is stopping, and it is not known whether this was done: ask another node with the same \
                     id, which is safe",
                )
            },
            Refusal::Unreadable(_) => internal("the node's store cannot be read"),
        }
    }
}

/// Of a key with scopes.
const READS_ONLY: &str =
    "this key may only read: its scopes have no write (`clawmeshd keys list` shows them)";

const TOO_MANY_KEYS: &str = "this address has had its keys for the hour, or all together theirs for the day; try again later";

/// The code of a bound that is reached. There is none for the things of a room: the text names the full one.
fn full(bound: Bound) -> Code {
    match bound {
        Bound::Agents => Code::RateLimitAgents,
        Bound::Rooms => Code::RateLimitRooms,
        Bound::Messages => Code::RateLimitMessages,
        Bound::Room | Bound::Profile => Code::InvalidPayload,
        Bound::Node => Code::InternalError,
    }
}

fn over_budget(over: OverBudget) -> Problem {
    match over {
        OverBudget::Pair { .. } => Problem::new(Code::RateLimitMessages, over.to_string()),
        OverBudget::Turns { .. } | OverBudget::Hops { .. } | OverBudget::Outstanding { .. } => {
            Problem::new(Code::AccessDenied, over.to_string())
        }
    }
}

const SUPERSEDED: &str = "the agent registered again on a newer connection";

/// A refusal of the mesh. Texts are a part of this dialect, and stay when the core's change.
fn refused_by_mesh(refused: Refused) -> Problem {
    let denied = |text: &str| Problem::new(Code::AccessDenied, text);
    match refused {
        Refused::NoRoom => Problem::new(Code::RoomNotFound, "no such room"),
        Refused::NotYours => denied("the room belongs to another key"),
        Refused::Closed => {
            denied("the room is from before this node joined the mesh and can only be read")
        }
        Refused::SessionClosed => denied("this session is closed"),
        Refused::NotEligible => {
            denied("only those who were in the room when the vote was opened may vote")
        }
        Refused::GuestsAlone => denied("the room has guests alone, who neither vote nor lead"),
        Refused::NotMember => Problem::new(Code::NotInRoom, "join the room first"),
        Refused::NameTaken(name) => {
            Problem::new(Code::RoomNameTaken, format!("a room named {name:?} exists already"))
        }
        Refused::AgentTaken(agent) => {
            Problem::new(Code::AgentIdTaken, format!("agent id {agent:?} is taken"))
        }
        retired @ Refused::AgentRetired(_) => Problem::new(Code::AgentIdTaken, retired.to_string()),
        Refused::Plaintext => {
            let text = "the room is end-to-end encrypted: content must be a clw1: blob";
            Problem::new(Code::PlaintextInEncryptedRoom, text)
        }
        Refused::TooLarge { len, max } => too_large(len, max),
        Refused::Field(at) => Problem::invalid(broken(at)),
        Refused::TooManyIds { max } => Problem::invalid(too_many_ids(max)),
        Refused::Impossible(text) => Problem::invalid(text),
        Refused::Held { holder } => Problem::invalid(held(holder.as_deref())),
        Refused::TooManyCopies { max } => Problem::invalid(too_many_copies(max)),
        Refused::NotDurable => Problem::invalid(NOT_DURABLE),
        Refused::Superseded => Problem::new(Code::NotRegistered, SUPERSEDED),
        Refused::NoVote => Problem::new(Code::VoteNotFound, "no such vote"),
        Refused::VoteClosed => Problem::new(Code::VoteClosed, "the vote is closed"),
        Refused::AlreadyVoted => Problem::new(Code::AlreadyVoted, "you have voted already"),
        Refused::NoOption { max } => {
            Problem::new(Code::InvalidOption, format!("option_index must be within 0 to {max}"))
        }
        Refused::NotLeader => {
            let text = "only the room's leader may do this: hold an election";
            Problem::new(Code::NotLeader, text)
        }
        Refused::ElectionRuns => {
            Problem::new(Code::ElectionInProgress, "an election is under way in this room")
        }
        Refused::NoElection => {
            Problem::new(Code::NoElectionActive, "no election is under way in this room")
        }
        Refused::Stands { .. } => Problem::invalid(refused.to_string()),
        Refused::NoTask => Problem::new(Code::TaskNotFound, "no such task"),
        Refused::NoAgent(_) => Problem::from(Refusal::NoAgent),
        Refused::NoMailbox(text) => denied(&text),
        Refused::NoFile => Problem::invalid(NO_FILE),
        Refused::NoApproval => Problem::invalid("no such approval"),
        Refused::NotApprover => denied("this approval is for others to decide"),
        // Nothing here asks for accounts.
        Refused::Account(refused) => Problem::invalid(refused.to_string()),
        Refused::NoKey => Problem::new(Code::Unauthorized, "the key is not valid here"),
        Refused::TooManyAgents { max } => {
            let text =
                format!("the key has {max} agents connected here already, which is its limit");
            Problem::new(Code::RateLimitAgents, text)
        }
        Refused::TooManyRooms { max } => too_many_rooms(max),
        Refused::TakesNone(_) | Refused::Stopped { .. } => denied(&refused.to_string()),
        Refused::Budget(over) => over_budget(over),
        Refused::Full(text) => Problem::new(Code::InternalError, text),
        Refused::Apart(apart) => is_apart(apart),
        Refused::DiskFull => Problem::new(Code::InternalError, DISK_FULL),
        Refused::Stopping => Problem::new(Code::InternalError, STOPPING),
    }
}

fn too_many_rooms(max: usize) -> Problem {
    let text = format!("the key has made {max} rooms here, which is its limit");
    Problem::new(Code::RateLimitRooms, text)
}

fn too_large(len: usize, max: usize) -> Problem {
    let text = format!("message is too large: {len} bytes, allowed are {max}");
    Problem::new(Code::MessageTooLarge, text)
}

/// No code says that another node is to be used.
fn is_apart(apart: Apart) -> Problem {
    let reason = match apart {
        Apart::Expelled | Apart::Retired => Reason::Expelled,
        Apart::Left => Reason::Left,
        Apart::Forked => Reason::Forked,
    };
    let denied = Problem::new(Code::AccessDenied, apart.to_string());
    Problem { reason: Some(reason), ..denied }
}

/// No code of the protocol says that a file is not there.
pub(crate) const NO_FILE: &str = "the room has no such file";

fn held(holder: Option<&str>) -> String {
    format!("the task is held by {}", holder.unwrap_or("nobody"))
}

const NOT_DURABLE: &str = "`durable` and `once` are not for ephemeral rooms, which are on no disk";

const STOPPING: &str = "the node is stopping; use another one";

const DISK_FULL: &str = "the disk of this node is full: it takes nothing new, and what is there can be read; try again \
                         when its operator has made room, or use another node";

fn too_many_copies(max: usize) -> String {
    let nodes = if max == 1 { "1 node has" } else { &format!("{max} nodes have") };
    format!("`durable` must be at most {max}: {nodes} the room")
}

fn too_many_ids(max: usize) -> String {
    format!(
        "this key owns {max} stable agent ids of this node, which is the most: use one of them, or register without \
         `agent_id`"
    )
}

/// The rule that a field breaks, for people.
fn broken(Broken { field, rule }: Broken) -> String {
    let entries = if field == Field::Mentions { "ids" } else { "entries" };
    must(name(field), rule, entries)
}

fn must(name: &str, rule: Rule, entries: &str) -> String {
    match rule {
        Rule::NotBlank => format!("`{name}` must not be empty"),
        Rule::Plain => format!("`{name}` must not be blank, or have control characters"),
        Rule::NotReserved => format!(
            "`{name}` must not begin with {}: nodes give such names; `dm:AGENT_ID` with no other option opens the direct \
             room with that agent",
            RESERVED.map(|start| format!("`{start}`")).join(" or ")
        ),
        Rule::AtMost(max) => format!("`{name}` must have at most {max} bytes"),
        Rule::Within(max) => format!("`{name}` must have 1 to {max} bytes"),
        Rule::Count { min, max } => format!("`{name}` must have {min} to {max} entries"),
        Rule::Entries { count, bytes } => {
            format!("`{name}` must have at most {count} {entries} of at most {bytes} bytes")
        }
        Rule::EachWithin(max) => {
            format!("each of `{name}` must have 1 to {max} bytes and not be blank")
        }
        Rule::Distinct => format!("`{name}` must have {entries} of different names"),
        Rule::Path(_) | Rule::Keys(_) | Rule::Word(_) => format!("`{name}` {rule}"),
        Rule::Between { min, max } => format!("`{name}` must be within {min} to {max}"),
    }
}

/// The same of a subscription.
fn broken_webhook(field: WebhookField, rule: WebhookRule) -> String {
    let name = match field {
        WebhookField::Url => "webhook_url",
        WebhookField::Secret => "secret",
        WebhookField::Kinds => "kinds",
        WebhookField::OnlyFrom => "only_from",
        WebhookField::NotFrom => "not_from",
    };
    match rule {
        WebhookRule::Text(Rule::Entries { count, bytes }) => {
            format!("`{name}` must be at most {count}, each of at most {bytes} bytes")
        }
        WebhookRule::Text(rule) => must(name, rule, "entries"),
        WebhookRule::Url(BadUrl::UserInfo) => {
            format!(
                "`{name}` must carry no user name or password: sign deliveries with `secret` instead"
            )
        }
        WebhookRule::Url(bad) => format!("`{name}` must {bad}"),
        WebhookRule::Reachable(why) => format!("`{name}` cannot be used: {why}"),
    }
}

/// A field's name on the wire.
fn name(field: Field) -> &'static str {
    match field {
        Field::Name => "name",
        Field::AgentId => "agent_id",
        Field::Capabilities => "capabilities",
        Field::Description => "description",
        Field::PresenceDetail => "status_detail",
        Field::Progress => "progress",
        Field::Mentions => "mentions",
        Field::ReplyTo => "reply_to",
        Field::Title => "title",
        Field::Options => "options",
        Field::Duration => "duration_secs",
        Field::Assignee => "assignee",
        Field::Holder => "if_assignee",
        Field::Note => "note",
        Field::Priority => "mesh.priority",
        Field::Labels => "mesh.labels",
        Field::Step => "mesh.progress.step",
        Field::TaskResult => "mesh.result",
        Field::TaskKind => "mesh.kind",
        Field::Requirements => "mesh.requirements",
        Field::Acceptance => "mesh.acceptance",
        Field::Context => "mesh.context",
        Field::Effort => "mesh.effort",
        Field::Origin => "mesh.origin",
        Field::BlockedBy => "mesh.blocked_by",
        Field::Emoji => "emoji",
        Field::Avatar => "avatar",
        Field::Provider => "provider",
        Field::Model => "model",
        Field::Cards => "cards",
        Field::CardName => "cards[].name",
        Field::CardText => "cards[].text",
        Field::CardTags => "cards[].tags",
        Field::CardVisibility => "cards[].visibility",
        Field::SettingName => "names of settings",
        Field::Thread => "names of threads",
        Field::ThreadFactName => "names of facts",
        Field::ThreadFact => "facts",
        Field::ThreadFacts => "facts of a thread",
        Field::SettingValue => "values of settings",
        Field::Settings => "settings",
        Field::Writers => "settings.writers",
        Field::FileWriters => "settings.files",
        Field::Path => "path",
        Field::MediaType => "type",
        Field::File => "content",
        Field::Subject => "subject",
        Field::Lease => "lease_ms",
        Field::Approval => "metadata.approval.command",
        Field::Approvers => "metadata.approval.approvers",
        Field::ApprovalTime => "metadata.approval.timeout_secs (in milliseconds)",
        Field::Reason => "reason",
        Field::Stream => "stream_id",
        Field::Tool => "tool",
        Field::Piece => "content, tool, input and result together",
    }
}

/// How often each code was given to clients of connections.
#[derive(Debug)]
pub struct Refusals(Vec<AtomicU64>);

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals(Code::ALL.iter().map(|_| AtomicU64::new(0)).collect())
    }
}

impl Refusals {
    pub(crate) fn count(&self, code: Code) {
        if let Some(place) = Code::ALL.iter().position(|known| *known == code) {
            self.0[place].fetch_add(1, Relaxed);
        }
    }

    /// All codes.
    pub fn by_code(self: &Arc<Refusals>) -> impl Iterator<Item = (Code, u64)> {
        Code::ALL.iter().zip(&self.0).map(|(code, count)| (*code, count.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_that_clients_know() {
        for (refused, text) in [
            (Refused::Plaintext, "the room is end-to-end encrypted: content must be a clw1: blob"),
            (Refused::Held { holder: None }, "the task is held by nobody"),
            (Refused::Held { holder: Some("a".into()) }, "the task is held by a"),
            (Refused::NameTaken("r\"".into()), r#"a room named "r\"" exists already"#),
            (Refused::AgentTaken("a".into()), r#"agent id "a" is taken"#),
            (
                Refused::Stopped { by: "a".into(), all: true },
                "a has stopped all agents: nothing is sent until that is lifted",
            ),
            (
                Refused::AgentRetired("a".into()),
                r#"agent "a" was retired by its key, for ever: use another id"#,
            ),
            (Refused::NoOption { max: 3 }, "option_index must be within 0 to 3"),
            (Refused::TooLarge { len: 2, max: 1 }, "message is too large: 2 bytes, allowed are 1"),
            (
                Refused::DiskFull,
                "the disk of this node is full: it takes nothing new, and what is there can be read; \
                 try again when its operator has made room, or use another node",
            ),
            (Refused::Stopping, "the node is stopping; use another one"),
        ] {
            assert_eq!(Problem::from(Refusal::Mesh(refused)).message, text);
        }
    }

    #[test]
    fn a_node_that_is_apart_denies_with_a_reason_and_sends_to_another_one() {
        for (apart, reason) in [
            (Apart::Expelled, Reason::Expelled),
            (Apart::Retired, Reason::Expelled),
            (Apart::Left, Reason::Left),
            (Apart::Forked, Reason::Forked),
        ] {
            let problem = Problem::from(Refusal::Mesh(Refused::Apart(apart)));
            assert_eq!((problem.code, problem.reason), (Code::AccessDenied, Some(reason)));
            assert!(problem.message.contains("use another node"), "{}", problem.message);
            let Reply::Error(body) = problem.into_reply() else { panic!("it is an error") };
            assert_eq!(body.mesh.map(|note| note.reason), Some(reason));
        }
    }

    #[test]
    fn every_code_has_a_counter() {
        let refusals = Arc::new(Refusals::default());
        for code in Code::ALL {
            refusals.count(*code);
        }
        refusals.count(Code::ALL[3]);
        let all: Vec<(Code, u64)> = refusals.by_code().collect();
        assert_eq!(all.len(), Code::ALL.len());
        assert!(all.iter().all(|(code, count)| *count == 1 + u64::from(*code == Code::ALL[3])));
    }
}
