//! The fate of a message, as other nodes say it.

use crate::name::id::{AgentId, NodeId};

/// The words of other nodes about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageReceipts {
    /// As many nodes have the room, this one included.
    pub of: usize,
    /// This node, now.
    pub here: StoredAt,
    /// Others that hold the message durably.
    pub stored: Vec<StoredAt>,
    /// Others that did not answer.
    pub unknown: Vec<NodeId>,
    /// Agents at other nodes that were given it.
    pub agents: Vec<AgentReceipt>,
}

/// A node that holds a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAt {
    /// The node.
    pub node: NodeId,
    /// When it said so, by the clock of the node that asked. Unix milliseconds.
    pub at_ms: u64,
}

/// An agent that was given a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReceipt {
    /// The agent.
    pub agent: AgentId,
    /// It has confirmed the message; else it was given it.
    pub confirmed: bool,
    /// The node that says so: it was attached there.
    pub node: NodeId,
    /// When, by that node's clock. Unix milliseconds.
    pub at_ms: u64,
}
