//! Replies, as nodes send them (§3).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::object::{
    Agent, Approval, MeshNote, Message, Profile, Room, Subscription, SubscriptionStatus, Task, Vote,
};
use crate::task::{TaskGone, TaskRecord};
use crate::value::{Metadata, Status};

/// Each row: the reply, its payload, its `type`.
macro_rules! replies {
    ($( $(#[$doc:meta])* $name:ident($payload:ty) = $type:literal, )*) => {
        /// Everything that can answer a request. Closed on purpose.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Reply {
            $( $(#[$doc])* $name($payload), )*
        }

        impl Reply {
            /// The `type` on the wire.
            pub fn type_name(&self) -> &'static str {
                match self { $( Self::$name(_) => $type, )* }
            }
        }
    };
}

replies! {
    /// To `register`.
    Registered(Registered) = "ok",
    /// To `create_room`.
    Room(Box<Room>) = "ok",
    /// To `join_room`, `leave_room` and `set_typing`.
    InRoom(InRoom) = "ok",
    /// To `share_room`, `unshare_room`, `add_member`, `remove_member` and `retire_agent`.
    Shared(Empty) = "ok",
    /// To `send_message` and `thinking`.
    Message(Box<Message>) = "ok",
    /// To `set_presence`.
    PresenceSet(PresenceSet) = "ok",
    /// To `get_history`.
    History(HistoryResult) = "history_result",
    /// To `search`.
    Found(SearchResult) = "search_result",
    /// To `replay`.
    Replay(ReplayResult) = "ok",
    /// To `room_tip`.
    RoomTip(RoomTipResult) = "room_tip_result",
    /// To `get_receipts`.
    Receipts(Receipts) = "ok",
    /// To `stream`.
    Streamed(Empty) = "ok",
    /// To `ack`.
    Acked(Acked) = "ok",
    /// To `list_rooms`.
    RoomList(RoomList) = "room_list",
    /// To `list_agents`.
    AgentList(AgentList) = "agent_list",
    /// To `room_info`.
    RoomInfo(Box<RoomInfoResult>) = "room_info_result",
    /// To `set_profile` and `get_profile`.
    Profile(Box<Profile>) = "ok",
    /// To `create_vote` and `get_vote_status`.
    Vote(Box<Vote>) = "ok",
    /// To `cast_vote`.
    BallotCast(BallotCast) = "ok",
    /// To `list_votes`.
    Votes(Votes) = "ok",
    /// To `elect_leader`.
    Election(Election) = "ok",
    /// To `decline_election`.
    Declined(Declined) = "ok",
    /// To `decision`.
    Decided(Decided) = "ok",
    /// To `assign_task` and `update_task`.
    Task(Box<Task>) = "ok",
    /// To `list_tasks`.
    TaskList(TaskList) = "task_list",
    /// To `once`.
    Once(Box<OnceResult>) = "ok",
    /// To `decide_approval`.
    ApprovalDecision(Box<ApprovalDecision>) = "ok",
    /// To `list_approvals`.
    Approvals(ApprovalList) = "ok",
    /// To `get_approval`.
    Approval(Box<Approval>) = "ok",
    /// To `get_task`.
    TaskRecord(Box<TaskRecord>) = "ok",
    /// To `delete_task`.
    TaskGone(TaskGone) = "ok",
    /// To `subscribe`.
    Subscription(Box<Subscription>) = "ok",
    /// To `unsubscribe`.
    Unsubscribed(Unsubscribed) = "ok",
    /// To `list_subscriptions`.
    Subscriptions(Subscriptions) = "ok",
    /// To `enable_subscription`.
    Enabled(Enabled) = "ok",
    /// To `ping`.
    Pong(Empty) = "pong",
    /// To anything that is refused, and to a line that cannot be read.
    Error(ErrorBody) = "error",
}

/// The payload of a reply that is not an error.
pub trait Answer: DeserializeOwned {
    /// The messages in it.
    fn messages(&mut self) -> &mut [Message];
}

impl Answer for Message {
    fn messages(&mut self) -> &mut [Message] {
        std::slice::from_mut(self)
    }
}

impl Answer for SearchResult {
    fn messages(&mut self) -> &mut [Message] {
        &mut self.messages
    }
}

impl Answer for HistoryResult {
    fn messages(&mut self) -> &mut [Message] {
        &mut self.messages
    }
}

macro_rules! answers_without_messages {
    ($( $answer:ident, )*) => {
        $(impl Answer for $answer {
            fn messages(&mut self) -> &mut [Message] {
                &mut []
            }
        })*
    };
}

answers_without_messages! {
    Registered,
    Room,
    InRoom,
    PresenceSet,
    Profile,
    ReplayResult,
    RoomTipResult,
    Receipts,
    OnceResult,
    ApprovalDecision,
    ApprovalList,
    Approval,
    Acked,
    RoomList,
    AgentList,
    RoomInfoResult,
    Vote,
    BallotCast,
    Votes,
    Election,
    Declined,
    Decided,
    Task,
    TaskList,
    TaskRecord,
    TaskGone,
    Subscription,
    Unsubscribed,
    Subscriptions,
    Enabled,
    Empty,
}

impl Reply {
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
    /// The resumption, if the identity was resumed; its fields stand beside the others.
    #[serde(flatten)]
    pub resumed: Option<Resumed>,
}

fn version_one() -> u64 {
    crate::limits::PROTOCOL_VERSION
}

/// The state that an agent gets back within 120 s.
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
    /// The agent's status now.
    pub status: Status,
}

/// To `get_history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryResult {
    /// The room's id.
    pub room_id: String,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<HistoryNote>,
}

/// To `search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The newest first.
    pub messages: Vec<Message>,
    /// There may be more: `after` of the next request. A page may be short, or empty, and have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Some messages cannot be found yet: the node has just started, or there was much at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behind: bool,
}

/// The note of a mesh node on a page of history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryNote {
    /// The page is empty because the node cannot judge the cursor yet: it has just started, or has not heard of
    /// something that the cursor names. There may be messages: ask again.
    pub behind: bool,
}

/// To `replay`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// The room's id.
    pub room_id: String,
    /// What is known of the room and of those who took part: with the first part alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Metadata>,
    /// The oldest first.
    pub events: Vec<Metadata>,
    /// Where the next part begins. Absent: this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
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

/// To `get_receipts`: nothing that no node has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// Nodes that hold the message durably.
    pub stored: Vec<StoredAt>,
    /// As many nodes have the room.
    pub of: u64,
    /// Ids of nodes that did not answer.
    pub unknown: Vec<String>,
    /// Agents that are known to have it. Of others nothing is known.
    pub agents: Vec<Reached>,
}

/// A node that holds a message durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAt {
    /// Its id.
    pub node: String,
    /// When it said so, RFC 3339 UTC.
    pub at: String,
}

/// An agent that has a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Its id.
    pub agent_id: String,
    /// How that is known.
    pub state: ReachedState,
    /// Id of the node that says so: the agent was attached there.
    pub node: String,
    /// When, RFC 3339 UTC.
    pub at: String,
}

/// How it is known that an agent has a message. Each says more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReachedState {
    /// It was given to the agent.
    Delivered,
    /// The agent says so (`ack`).
    Confirmed,
    /// The agent has answered it.
    Answered,
}

/// To `ack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// The room's id.
    pub room_id: String,
    /// The number.
    pub seq: u64,
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
    /// Agents that may vote.
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
    /// Ids of the agents that can be elected: the members.
    pub candidates: Vec<String>,
    /// The next step, for people.
    pub message: String,
}

/// To `decline_election`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    /// The room's id.
    pub room_id: String,
    /// The consequence, for people.
    pub message: String,
}

/// To `decision`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision is a message of this id.
    pub message_id: String,
    /// The room's id.
    pub room_id: String,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

/// To `list_tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskList {
    /// The room's id.
    pub room_id: String,
    /// The oldest first.
    pub tasks: Vec<Task>,
}

/// To `decide_approval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    /// It is as was asked for. `false`: somebody else was first, or it was too late.
    pub granted: bool,
    /// The approval now.
    pub approval: Approval,
}

/// To `list_approvals`: the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalList {
    /// They.
    pub approvals: Vec<Approval>,
}

/// To `once`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceResult {
    /// The room's id.
    pub room_id: String,
    /// The thing.
    pub subject: String,
    /// It was done as asked: the agent has it, keeps it, or has given it back.
    pub granted: bool,
    /// The agent that has it now. Absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its grant: for `renew` and `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<String>,
    /// Its lease. Absent: it has it without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How many nodes hold the grant durably: 2, or 1 if no other node has said so in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<u64>,
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
    /// The way to mend it, for people.
    pub message: String,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<ErrorNote>,
}

/// The note of a mesh node on a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorNote {
    /// A reason beyond the codes.
    pub reason: Reason,
}

/// See [`ErrorNote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is not known whether it was done: the node stopped before it knew. A repeat with the same id is safe.
    Unknown,
    /// The node was expelled, or retired: it can be read, and another node is to be used.
    Expelled,
    /// The node has left the mesh: as above.
    Left,
    /// The node has signed two histories, and nobody takes what it writes: as above.
    Forked,
    /// One that this version does not know.
    #[serde(other)]
    Other,
}
