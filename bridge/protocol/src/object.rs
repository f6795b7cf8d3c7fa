//! The objects of requests, replies and events: rooms, messages, agents, votes, tasks,
//! subscriptions (§5).

use serde::{Deserialize, Serialize};

use crate::task::TaskNote;
use crate::value::{Metadata, Progress, Settings, Status, TaskStatus};

/// The keys that may see a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Every key.
    Public,
    /// The key that owns the room.
    Private,
}

/// A room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The room's id; `lobby` for the lobby.
    pub room_id: String,
    /// Unique at any one time, not empty.
    pub name: String,
    /// The room's purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The room it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Gone when its last member has left.
    #[serde(default)]
    pub ephemeral: bool,
    /// RFC 3339 UTC.
    pub created_at: String,
    /// The agent that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The keys that may see it.
    pub visibility: Visibility,
    /// The owning key's fingerprint, never the key; only for callers that hold the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_key: Option<String>,
    /// RFC 3339 UTC time of the newest message, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<String>,
    /// Agents in the room now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_count: Option<u64>,
    /// Contents are end-to-end encrypted by the clients.
    #[serde(default)]
    pub encrypted: bool,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<RoomNote>,
}

/// The note of a mesh node on a room: the details that its key has set, and the session that it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomNote {
    /// A title beside the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `lobby`, `active`, `paused` or `archived`: for its members to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// By name; in lists of rooms they are left out.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// Of a room that is the session of two agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionNote>,
    /// Its maker shares it with agents of other keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Fingerprints of the keys that have a shared room; in lists of rooms they are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Agents that the room's key wants there; in lists of rooms they are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// An agent on the list of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub agent_id: String,
    /// `lead`, `member` or `reviewer`.
    pub role: String,
    /// When the room's key said so last.
    pub since: String,
    /// It has left by itself since then. `true`, or absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
}

/// A file of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its path in the room.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its media type, in the writer's words.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The agent that wrote it, in the words of the room's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// RFC 3339 UTC.
    pub updated_at: String,
}

/// A state of a file that a newer one has replaced: kept for a day, and read under a path of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedFile {
    /// The file's path, a point, and a number: 1 is the latest such state.
    pub path: String,
    /// The path of the file.
    pub of: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its media type, in the writer's words.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The agent that wrote it, in the words of the room's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was written. RFC 3339 UTC.
    pub updated_at: String,
    /// The node keeps it up to then. RFC 3339 UTC.
    pub kept_until: String,
}

/// A visible message: chat, thinking or decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The same on every node, under every number.
    pub message_id: String,
    /// The room it stands in.
    pub room_id: String,
    /// The agent that sent it.
    pub agent_id: String,
    /// The sender's name at the time.
    pub agent_name: String,
    /// The text, or a `clw1:` blob in an encrypted room.
    pub content: String,
    /// The id of the message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_message: Option<String>,
    /// The sender's attachment; `null` on the wire if there is none.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// RFC 3339 UTC.
    pub timestamp: String,
    /// The number under which this node delivered it: in `[1, 2^53)`, rising.
    pub seq: u64,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

impl Message {
    /// Its content, to be encrypted or decrypted in place.
    pub fn content_mut(&mut self) -> Content<'_> {
        Content { room_id: &self.room_id, text: &mut self.content }
    }
}

/// The content of a message, wherever it stands: encrypted end to end in some rooms.
#[derive(Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// The room, which decides on the key.
    pub room_id: &'a str,
    /// The text, or a `clw1:` blob.
    pub text: &'a mut String,
}

/// The profile of an agent, connected or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The agent's id.
    pub agent_id: String,
    /// The name in its profile, else the one that it registered with last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A sign for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// The address of a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    /// The provider of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The things that it can do, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
    /// RFC 3339 UTC time of the last change, if it ever set any of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// A thing that an agent can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// One of each agent's.
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub text: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// For whom it is, in the agent's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
}

/// An agent that is connected somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Stable if the agent chose it.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// Its abilities, as it states them.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// RFC 3339 UTC.
    pub connected_at: String,
    /// RFC 3339 UTC.
    pub last_active: String,
    /// Its status, as it states it.
    #[serde(default)]
    pub status: Status,
    /// In its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_detail: Option<String>,
    /// How far it says it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

/// The note of a mesh node on an object, under its one key `mesh`; standard clients ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MeshNote {
    /// The lowest number the message ever had, where that is not its `seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_seq: Option<u64>,
    /// The message was delivered here under a later number than elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Of a message in history that has several: its numbers known to this node, ascending. A
    /// reference to any of them is one to this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// The node the object comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The author's node was shown the key that owns the author's id, and the key says so itself. `true`, or absent: that is not
    /// proven here, or not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Of a reply to a send that asked for copies: so many nodes have said that they hold the message durably, this one
    /// included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<u64>,
    /// Of an agent that has no connection at present, and keeps its seats for a while. `true`, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lingers: Option<bool>,
    /// Of an agent that acts by requests: the dialect that it speaks, `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Of a member of a room: a guest, to whom no turn passes, and who neither votes nor leads. `true`, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<bool>,
    /// The author's key was revoked, before or after. `true`, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_revoked: Option<bool>,
    /// Of an agent: the fingerprint of its key, as its node says; absent at nodes that check none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The number under which this node delivered it, where the object has no `seq` of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Of a message: its place in a conversation, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ConversationNote>,
}

/// The place of a message in a conversation of agents that answer each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationNote {
    /// Id of the message that began it.
    pub conversation: String,
    /// 0 began it; each answer is one more.
    pub turn: u32,
    /// So many turns there are after the first answer.
    pub max_turns: u32,
    /// So many conversations led to this one.
    pub hops: u32,
    /// Its author waits for an answer.
    pub expects_reply: bool,
    /// Id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

/// A room in which one agent talks to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    /// Its kind.
    pub kind: SessionKind,
    /// The other agent, as the reader sees it; in the room that an agent has with itself, the same.
    pub peer: String,
}

/// The kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A direct room: of two agents, for good.
    Direct,
    /// A room for a task that one of two agents gave to the other.
    Task,
}

/// A sealed vote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The same on every node.
    pub vote_id: String,
    /// The room it is held in.
    pub room_id: String,
    /// The question.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The choices, at least two.
    pub options: Vec<String>,
    /// The agent that opened it.
    pub created_by: String,
    /// RFC 3339 UTC.
    pub created_at: String,
    /// RFC 3339 UTC time at which it closes, with the ballots it then has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes_at: Option<String>,
    /// Whether it is over.
    pub status: VoteStatus,
    /// Ballots so far.
    pub votes_cast: u64,
    /// Agents that may vote: the members when it was opened.
    pub eligible_voters: u64,
    /// Once it is closed: one for each option, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Vec<Tallied>>,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<VoteNote>,
}

/// Whether a vote is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteStatus {
    /// It is not: nobody can know the ballots. It may take no more ballots ([`VoteNote::closing`]).
    Open,
    /// It is, and its tally is there.
    Closed,
}

/// How often an option was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tallied {
    /// Which option, from 0.
    pub option_index: u64,
    /// Its text.
    pub option_text: String,
    /// Ballots for it.
    pub count: u64,
}

/// The peculiarities of a vote on a mesh; none in calm weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoteNote {
    /// It takes no more ballots, and its result is still being gathered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
    /// Ballots that count, and that their nodes have not opened: missing from the tally.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unopened: u64,
    /// Ballots that reached the node which closed the vote too late: they do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Ballots of the tally that were opened after the result had been pushed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrected: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The same on every node.
    pub task_id: String,
    /// The room it belongs to.
    pub room_id: String,
    /// The work to be done.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How far it is.
    pub status: TaskStatus,
    /// The agent that is to do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The agent that made it.
    pub created_by: String,
    /// RFC 3339 UTC.
    pub created_at: String,
    /// RFC 3339 UTC time of the newest update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The note of the newest update that had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The note of a mesh node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<TaskNote>,
}

/// A webhook that is told of a room's messages. Its secret is never returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Known to the node it was made at.
    pub subscription_id: String,
    /// The room.
    pub room_id: String,
    /// Where messages are sent.
    pub webhook_url: String,
    /// Only messages whose `metadata.kind` is one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// Only messages of agents of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_from: Option<String>,
    /// No messages of agents of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_from: Option<String>,
    /// No thinking pulses.
    #[serde(default)]
    pub exclude_thinking: bool,
    /// Only messages above this number.
    pub since_seq: u64,
    /// Everything up to here was delivered, or was not to be.
    pub last_delivered_seq: u64,
    /// Whether messages are sent.
    pub status: SubscriptionStatus,
    /// Failures of the delivery that is being tried.
    pub failure_count: u64,
    /// RFC 3339 UTC.
    pub created_at: String,
}

/// Whether a subscription's messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// They are.
    Active,
    /// One could not be delivered: none until it is enabled again.
    Failed,
    /// Switched off.
    Disabled,
}
/// Something that an agent wants to do, and the decision about it. Of mesh nodes alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The message with which the agent asked.
    pub message_id: String,
    /// The room.
    pub room_id: String,
    /// The agent.
    pub agent_id: String,
    /// The thing.
    pub command: String,
    /// Ids of those who may decide. Absent: all who may write in the room, but for the agent itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// When it asked.
    pub asked_at: String,
    /// Until then it can be decided.
    pub until: String,
    /// `approved`, `always`, `denied`, `changes` or `expired`. Absent: nobody has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Whether the agent may do it.
    #[serde(default)]
    pub allowed: bool,
    /// The agent that decided. Absent: nobody did in time, or it was decided for always before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It holds for what the agent asks later, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}
