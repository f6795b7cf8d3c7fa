//! Events, as nodes push them (§4).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::object::{Approval, Content, MeshNote, Message, Room, Tallied, Task, Vote, VoteNote};
use crate::value::{Metadata, PieceKind, Progress, Status};

/// By the place of an event's content.
macro_rules! content_of {
    (own $payload:ident) => {
        Some(Content { room_id: &$payload.room_id, text: &mut $payload.content })
    };
    (message $payload:ident) => {
        Some($payload.message.content_mut())
    };
    (none $payload:ident) => {
        None
    };
}

/// Each row: the event, its payload, its `type`, and the place of the content that a client may have to
/// decrypt: the payload's own, that of the message within, or none.
macro_rules! events {
    ($( $(#[$doc:meta])* $name:ident($payload:ty) = $type:literal, $content:ident; )*) => {
        /// Everything a node can push. Closed on purpose.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Event {
            $( $(#[$doc])* $name($payload), )*
        }

        impl Event {
            /// The `type` on the wire.
            pub fn type_name(&self) -> &'static str {
                match self { $( Self::$name(_) => $type, )* }
            }

            /// The content of a message in it.
            pub fn content_mut(&mut self) -> Option<Content<'_>> {
                match self { $( Self::$name(_payload) => content_of!($content _payload), )* }
            }

            /// Reads a payload by its type; `None` if this crate does not know the type.
            pub(crate) fn read(
                kind: &str,
                payload: &RawValue,
            ) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $( $type => Some(serde_json::from_str(payload.get()).map(Self::$name)), )*
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// Somebody else said something in a room of the agent.
    MessageReceived(Box<Message>) = "message_received", own;
    /// Somebody else thought out loud in a room of the agent.
    Thinking(Box<Message>) = "thinking", own;
    /// The agent was mentioned, perhaps in a room it is not in.
    Mention(Mention) = "mention", message;
    /// Somebody joined a room of the agent.
    AgentJoined(AgentJoined) = "agent_joined", none;
    /// Somebody left a room of the agent.
    AgentLeft(AgentLeft) = "agent_left", none;
    /// A room that the agent may see was created.
    RoomCreated(Box<Room>) = "room_created", none;
    /// An ephemeral room is gone.
    RoomDestroyed(RoomDestroyed) = "room_destroyed", none;
    /// Somebody is typing, or not any more.
    TypingIndicator(TypingIndicator) = "typing_indicator", none;
    /// An agent set its presence.
    PresenceUpdate(PresenceUpdate) = "presence_update", none;
    /// Somebody else should speak.
    TurnChanged(TurnChanged) = "turn_changed", none;
    /// A vote was opened in a room of the agent.
    VoteCreated(Box<Vote>) = "vote_created", none;
    /// It is over. Once for each vote.
    VoteResult(Box<VoteResult>) = "vote_result", none;
    /// An election has begun in a room of the agent.
    ElectionStarted(ElectionStarted) = "election_started", none;
    /// A room of the agent has a leader.
    LeaderElected(LeaderElected) = "leader_elected", none;
    /// It has none any more, or got none.
    LeaderCleared(LeaderCleared) = "leader_cleared", none;
    /// The leader has decided; told to itself, too.
    DecisionMade(Box<DecisionMade>) = "decision_made", own;
    /// A task was made in a room of the agent.
    TaskAssigned(Box<Task>) = "task_assigned", none;
    /// A task was changed.
    TaskUpdated(Box<Task>) = "task_updated", none;
    /// A request in a direct room of the agent has come further. Told to clients that have asked for it, of mesh nodes alone.
    Receipt(Receipt) = "receipt", none;
    /// The agent was granted something that it has no more. Told to that agent alone, of mesh nodes alone.
    OnceLost(Box<OnceLost>) = "once_lost", none;
    /// What the agent has asked to be allowed is decided; or it is decided otherwise, after a split. Told to that agent alone,
    /// of mesh nodes alone.
    ApprovalDecided(Box<Approval>) = "approval_decided", none;
    /// An agent in a room of the agent writes an answer. Told to clients that have asked for it, of mesh nodes alone; not kept
    /// anywhere, and not repeated.
    Stream(Box<Piece>) = "stream", none;
    /// The node's heartbeat: a client answers `pong` with `reply_to`.
    Ping(Heartbeat) = "ping", none;
}

/// The agent was mentioned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The room's id.
    pub room_id: String,
    /// The message that mentions the agent.
    pub message: Box<Message>,
}

/// Somebody joined a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentJoined {
    /// The room's id.
    pub room_id: String,
    /// The agent.
    pub agent: AgentName,
    /// It was away for less than 120 s and is back; left out when false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnected: bool,
}

/// An agent by id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentName {
    /// Its id.
    pub agent_id: String,
    /// Its name.
    pub name: String,
}

/// Somebody left a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLeft {
    /// The room's id.
    pub room_id: String,
    /// The agent.
    pub agent_id: String,
}

/// An ephemeral room is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomDestroyed {
    /// The room's id.
    pub room_id: String,
}

/// Somebody is typing, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypingIndicator {
    /// The room's id.
    pub room_id: String,
    /// The agent.
    pub agent_id: String,
    /// Its name.
    pub agent_name: String,
    /// Whether it is typing.
    pub typing: bool,
}

/// An agent set its presence. Unset fields are `null` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceUpdate {
    /// The agent.
    pub agent_id: String,
    /// Its name.
    pub agent_name: String,
    /// Its status.
    pub status: Status,
    /// In its own words.
    #[serde(default)]
    pub status_detail: Option<String>,
    /// How far it has come.
    #[serde(default)]
    pub progress: Option<Progress>,
}

/// The turn token of a room. Sent after every `send_message`, and when the holder changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnChanged {
    /// The room's id.
    pub room_id: String,
    /// The agent that should speak next; `null` if nobody is there.
    pub current_turn_holder: Option<String>,
    /// Ids of the members in join order.
    pub turn_order: Vec<String>,
    /// The reason why it moved.
    pub reason: TurnReason,
}

/// The reason why the turn moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnReason {
    /// The first member joined.
    Joined,
    /// The holder left.
    Left,
    /// The holder's connection is gone.
    Disconnected,
    /// Somebody spoke.
    MessageSent,
}

/// How a vote ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteResult {
    /// The vote's id.
    pub vote_id: String,
    /// The room's id.
    pub room_id: String,
    /// The question.
    pub title: String,
    /// The choices.
    pub options: Vec<String>,
    /// One for each option, in their order.
    pub tally: Vec<Tallied>,
    /// Every ballot that was opened.
    pub ballots: Vec<Ballot>,
    /// Ballots that count.
    pub total_votes: u64,
    /// Agents that could vote.
    pub eligible_voters: u64,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<VoteNote>,
}

/// An opened ballot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ballot {
    /// The agent.
    pub agent_id: String,
    /// Its name when the vote was opened.
    pub agent_name: String,
    /// The choice, from 0.
    pub option_index: u64,
}

/// An election has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionStarted {
    /// The room's id.
    pub room_id: String,
    /// Ids of the agents that can be elected: the members.
    pub candidates: Vec<String>,
    /// The agent that wanted it.
    pub started_by: String,
    /// How long candidates may decline.
    pub opt_out_seconds: u64,
}

/// A room has a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderElected {
    /// The room's id.
    pub room_id: String,
    /// The agent.
    pub leader_id: String,
    /// Its name.
    pub leader_name: String,
}

/// A room has no leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderCleared {
    /// The room's id.
    pub room_id: String,
    /// `leader left`, `all candidates declined`, or `superseded`.
    pub reason: String,
}

/// A leader's decision. The same as a message with `metadata.type` `decision` in history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionMade {
    /// The room's id.
    pub room_id: String,
    /// The message's id.
    pub message_id: String,
    /// The leader's id.
    pub leader_id: String,
    /// Its name.
    pub leader_name: String,
    /// The decision.
    pub content: String,
    /// The leader's metadata, with `type` and `decided_by`.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// RFC 3339 UTC.
    pub timestamp: String,
    /// The note of a mesh node: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

/// A request in a direct room has come further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The room.
    pub room_id: String,
    /// The request.
    pub message_id: String,
    /// The agent that is asked.
    pub agent_id: String,
    /// How far it has come.
    pub state: ReceiptState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The node that says so.
    pub node: String,
    /// When, by that node's clock. RFC 3339 UTC.
    pub at: String,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// It is at a node of the agent that is asked.
    Arrived,
    /// It was handed to the agent.
    Delivered,
    /// It was given up, or refused.
    Failed,
}

/// The agent does not have something any more that it was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceLost {
    /// The room.
    pub room_id: String,
    /// The thing.
    pub subject: String,
    /// The grant that is over.
    pub grant_id: String,
    /// Why.
    pub why: OnceWhy,
    /// The agent that has it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// Why an agent does not have something any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnceWhy {
    /// Its lease had run out, and another one asked.
    Lapsed,
    /// Another one was granted it earlier, on the other side of a split.
    Split,
}

/// A piece of an answer that is being written. The message that follows has the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The room.
    pub room_id: String,
    /// The agent that writes.
    pub agent_id: String,
    /// Its name.
    pub agent_name: String,
    /// Its own name of this stream.
    pub stream_id: String,
    /// The message that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The kind of the piece.
    pub kind: PieceKind,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Given to the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Metadata>,
    /// Given by the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Metadata>,
}

/// The node's heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Always true.
    #[serde(default)]
    pub heartbeat: bool,
}
