//! What nodes answer (§3).

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::object::{Agent, Message, Room, Subscription, SubscriptionStatus, Task, Vote};
use crate::value::Status;

/// Everything that can answer a request. Closed on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// To `register`.
    Registered(Registered),
    /// To `create_room`.
    Room(Box<Room>),
    /// To `join_room`, `leave_room` and `set_typing`.
    InRoom(InRoom),
    /// To `send_message` and `thinking`.
    Message(Box<Message>),
    /// To `set_presence`.
    PresenceSet(PresenceSet),
    /// To `get_history`.
    History(HistoryResult),
    /// To `room_tip`.
    RoomTip(RoomTipResult),
    /// To `list_rooms`.
    RoomList(RoomList),
    /// To `list_agents`.
    AgentList(AgentList),
    /// To `room_info`.
    RoomInfo(Box<RoomInfoResult>),
    /// To `create_vote` and `get_vote_status`.
    Vote(Box<Vote>),
    /// To `cast_vote`.
    BallotCast(BallotCast),
    /// To `list_votes`.
    Votes(Votes),
    /// To `elect_leader`.
    Election(Election),
    /// To `decline_election`.
    Declined(Declined),
    /// To `decision`.
    Decided(Decided),
    /// To `assign_task` and `update_task`.
    Task(Box<Task>),
    /// To `list_tasks`.
    TaskList(TaskList),
    /// To `subscribe`.
    Subscription(Box<Subscription>),
    /// To `unsubscribe`.
    Unsubscribed(Unsubscribed),
    /// To `list_subscriptions`.
    Subscriptions(Subscriptions),
    /// To `enable_subscription`.
    Enabled(Enabled),
    /// To `ping`.
    Pong(Empty),
    /// To anything that is refused, and to a line that cannot be read.
    Error(ErrorBody),
}

impl Reply {
    /// The `type` on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            Reply::Registered(_)
            | Reply::Room(_)
            | Reply::InRoom(_)
            | Reply::Message(_)
            | Reply::PresenceSet(_)
            | Reply::Vote(_)
            | Reply::BallotCast(_)
            | Reply::Votes(_)
            | Reply::Election(_)
            | Reply::Declined(_)
            | Reply::Decided(_)
            | Reply::Task(_)
            | Reply::Subscription(_)
            | Reply::Unsubscribed(_)
            | Reply::Subscriptions(_)
            | Reply::Enabled(_) => "ok",
            Reply::TaskList(_) => "task_list",
            Reply::History(_) => "history_result",
            Reply::RoomTip(_) => "room_tip_result",
            Reply::RoomList(_) => "room_list",
            Reply::AgentList(_) => "agent_list",
            Reply::RoomInfo(_) => "room_info_result",
            Reply::Pong(_) => "pong",
            Reply::Error(_) => "error",
        }
    }

    /// A refusal.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::Error(ErrorBody { code, message: message.into(), mesh: None })
    }
}

/// To `register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The agent's id: the one it gave, or a fresh one.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// The version the node speaks.
    #[serde(default = "version_one")]
    pub protocol_version: u64,
    /// What a resumed identity got back; its fields stand beside the others.
    #[serde(flatten)]
    pub resumed: Option<Resumed>,
}

fn version_one() -> u64 {
    crate::limits::PROTOCOL_VERSION
}

/// What an agent that came back within 120 s got back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Always true.
    pub reconnected: bool,
    /// Ids of the rooms it is a member of again.
    pub rooms: Vec<String>,
    /// How many missed frames follow this reply.
    pub missed_messages: u64,
}

/// To `join_room`, `leave_room` and `set_typing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InRoom {
    /// The room's id.
    pub room_id: String,
}

/// To `set_presence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceSet {
    /// What the agent is doing now.
    pub status: Status,
}

/// To `get_history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryResult {
    /// The room's id.
    pub room_id: String,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// What only mesh nodes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<HistoryNote>,
}

/// What a mesh node adds to a page of history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryNote {
    /// The page is empty because the node cannot judge the cursor yet: it has just started, or has not heard of
    /// something that the cursor names. There may be messages: ask again.
    pub behind: bool,
}

/// To `room_tip`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomTipResult {
    /// The room's id.
    pub room_id: String,
    /// The highest number in the room; 0 if it is empty.
    pub seq: u64,
}

/// To `list_rooms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomList {
    /// With `member_count` and, if they have messages, `last_activity`.
    pub rooms: Vec<Room>,
}

/// To `list_agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentList {
    /// Of a room: in join order.
    pub agents: Vec<Agent>,
}

/// To `room_info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomInfoResult {
    /// The room.
    pub room: Room,
    /// Its members in join order.
    pub agents: Vec<Agent>,
    /// Its parts.
    #[serde(default)]
    pub sub_rooms: Vec<Room>,
    /// The agent that should speak next; `null` if nobody is there.
    #[serde(default)]
    pub current_turn_holder: Option<String>,
    /// Ids of the members in join order.
    #[serde(default)]
    pub turn_order: Vec<String>,
}

/// To `cast_vote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BallotCast {
    /// The vote's id.
    pub vote_id: String,
    /// Ballots so far, this one included.
    pub votes_cast: u64,
    /// Who may vote.
    pub eligible_voters: u64,
}

/// To `list_votes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Votes {
    /// The room's id.
    pub room_id: String,
    /// The newest first.
    pub votes: Vec<Vote>,
}

/// To `elect_leader`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Election {
    /// The room's id.
    pub room_id: String,
    /// Ids of those who can be elected: the members.
    pub candidates: Vec<String>,
    /// What comes next, for people.
    pub message: String,
}

/// To `decline_election`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    /// The room's id.
    pub room_id: String,
    /// What that means, for people.
    pub message: String,
}

/// To `decision`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision is a message of this id.
    pub message_id: String,
    /// The room's id.
    pub room_id: String,
}

/// To `list_tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskList {
    /// The room's id.
    pub room_id: String,
    /// The oldest first.
    pub tasks: Vec<Task>,
}

/// To `unsubscribe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsubscribed {
    /// Always true.
    pub deleted: bool,
}

/// To `list_subscriptions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriptions {
    /// Those of the caller's key at this node.
    pub subscriptions: Vec<Subscription>,
}

/// To `enable_subscription`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enabled {
    /// The subscription's id.
    pub subscription_id: String,
    /// Always active.
    pub status: SubscriptionStatus,
}

/// To `ping`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Empty {}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Why.
    pub code: Code,
    /// What to change, for people.
    pub message: String,
    /// What only mesh nodes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<ErrorNote>,
}

/// What a mesh node adds to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorNote {
    /// What no code says.
    pub reason: Reason,
}

/// See [`ErrorNote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is not known whether it was done: the node stopped before it knew. A repeat with the same id is safe.
    Unknown,
    /// One that this version does not know.
    #[serde(other)]
    Other,
}
