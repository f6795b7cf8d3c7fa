//! How agents of a node are told that something waits for them.

use serde::{Deserialize, Serialize};

/// An agent of the node, and how far it has got with its inbox. Times are RFC 3339, UTC; absent: not since the start of the
/// node. None of the three stands for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMail {
    /// Its id.
    pub agent_id: String,
    /// Whether it is there.
    pub here: Here,
    /// How it is woken.
    pub woken: WokenBy,
    /// So many items wait that it has not confirmed. Absent: it has no inbox here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// When it, or its host, was told last that something waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<String>,
    /// When items were returned to it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<String>,
    /// When it confirmed items last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<String>,
}

/// Whether an agent is at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Here {
    /// It has a connection.
    Connected,
    /// It acts by requests.
    ByRequests,
    /// Neither.
    Away,
}

/// How an agent is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WokenBy {
    /// Its host is posted to: `[[wake]]`.
    Post,
    /// A hook or command of its host asks.
    Hook,
    /// It has a connection, and is told by that.
    Connection,
    /// It is not, as far as the node knows.
    Not,
}
