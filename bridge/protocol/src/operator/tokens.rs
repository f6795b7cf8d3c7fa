//! Tokens: what stands for a key at one node, for the host of one agent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A secret on its way. It is in no log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HiddenText")
    }
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedToken {
    /// The key that it is to stand for: its text.
    pub key: HiddenText,
    /// See [`TokenTerms`].
    #[serde(flatten)]
    pub terms: TokenTerms,
}

/// The terms of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTerms {
    /// The agent that its holder acts as.
    pub agent: String,
    /// Its name, if it gives itself none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The only things that it may do: list, history, send, spawn, rooms, votes, tasks, finder. Absent: all that its key may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The only groups of tools that it may be offered, with commas between them. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// The sessions that it is shown: self, spawned, joined or all.
    pub visibility: String,
    /// The operator's setting for sandboxes holds, too.
    pub sandboxed: bool,
    /// When it expires. Unix milliseconds. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// A token that was just made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewToken {
    /// 16 hex digits.
    pub id: String,
    /// Its text, which is not shown again.
    pub token: HiddenText,
}

/// A token of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownToken {
    /// 16 hex digits.
    pub id: String,
    /// See there.
    #[serde(flatten)]
    pub terms: TokenTerms,
    /// The fingerprint of its key: 32 hex digits.
    pub key: String,
    /// When it was made: RFC 3339, UTC.
    pub made_at: String,
    /// From then on it is not valid: RFC 3339, UTC. Absent: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Whether it opens anything.
    pub state: TokenState,
}

/// Whether a token opens anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// It does.
    Valid,
    /// Its time is over.
    Expired,
    /// Its key is not valid any more.
    KeyInvalid,
}
