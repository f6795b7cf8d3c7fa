//! What requests, replies and events speak about: rooms, messages, agents (§5).

use serde::{Deserialize, Serialize};

use crate::value::{Metadata, Progress, Status};

/// Who may see a room.
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
    /// What the room is for.
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
    /// Who may see it.
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
    /// What only mesh nodes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
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
    /// What the sender attached; `null` on the wire if nothing.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// RFC 3339 UTC.
    pub timestamp: String,
    /// The number under which this node delivered it: in `[1, 2^53)`, rising.
    pub seq: u64,
    /// What only mesh nodes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

/// An agent that is connected somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Stable if the agent chose it.
    pub agent_id: String,
    /// What it calls itself.
    pub name: String,
    /// What it says it can do.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// RFC 3339 UTC.
    pub connected_at: String,
    /// RFC 3339 UTC.
    pub last_active: String,
    /// What it says it is doing.
    #[serde(default)]
    pub status: Status,
    /// In its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_detail: Option<String>,
    /// How far it says it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What only mesh nodes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshNote>,
}

/// What a mesh node adds to an object under its one key `mesh`; standard clients ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MeshNote {
    /// The lowest number the message ever had, where that is not its `seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_seq: Option<u64>,
    /// The message was delivered here under a later number than elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// The node the object comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The node's seal over the object was checked here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}
