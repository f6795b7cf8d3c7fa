//! Agents that are stopped.

use serde::{Deserialize, Serialize};

/// A word that an agent, or all agents, send nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedAgents {
    /// Its id; absent = all.
    pub agent_id: Option<String>,
    /// The person who says so.
    pub by: String,
    /// Of the key that says so: 32 hex digits.
    pub fingerprint: String,
    /// Since when. Unix milliseconds.
    pub since_ms: u64,
}
