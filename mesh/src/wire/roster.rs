//! Agents and their rooms: soft state, announced by each node with a lease, never logged.

use std::{collections::BTreeMap, sync::Arc};

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    name::{
        id::{AgentId, KeyPrint, LogId, NodeId, RoomId},
        number::Number,
    },
    wire::{cbor::text, entry::RoomCreated, seal::Token},
};

/// The presence of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Presence {
    /// Idle unless said otherwise.
    #[n(0)]
    pub status: Status,
    /// In its own words.
    #[n(1)]
    pub detail: Option<String>,
    /// Percent, 0 to 100.
    #[n(2)]
    pub progress: Option<u8>,
}

/// The activity of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum Status {
    /// Nothing.
    #[default]
    #[n(0)]
    Idle,
    /// For somebody.
    #[n(1)]
    Waiting,
    /// On something.
    #[n(2)]
    Working,
    /// About something.
    #[n(3)]
    Thinking,
}

/// A place of an agent in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Seat {
    /// Join stamp: the join order everywhere is by (stamp, node, agent).
    #[n(0)]
    pub joined: u64,
    /// The last number the agent is known to have seen: at its join, or when it disconnected.
    #[n(1)]
    pub seen: Number,
    /// A guest hears and writes as all do; no turn passes to it, and it is neither asked to vote nor to lead.
    #[cbor(n(2), default)]
    pub guest: bool,
}

/// An agent, as its node announces it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AgentRecord {
    /// Its name.
    #[cbor(n(0), with = "text")]
    pub name: Arc<str>,
    /// Its key.
    #[n(1)]
    pub key: KeyPrint,
    /// Its capabilities, in its own words.
    #[n(2)]
    pub capabilities: Vec<String>,
    /// Stamp of its registration: of two of one id the later one counts, mesh-wide.
    #[n(3)]
    pub registered: u64,
    /// Unix milliseconds.
    #[n(4)]
    pub connected_ms: u64,
    /// Unix milliseconds.
    #[n(5)]
    pub last_active_ms: u64,
    /// Its presence.
    #[n(6)]
    pub presence: Presence,
    /// The rooms it is in.
    #[n(7)]
    pub rooms: BTreeMap<RoomId, Seat>,
    /// Whether this registration took up an earlier one.
    #[n(8)]
    pub reconnected: bool,
    /// Disconnected, at this stamp: kept so that it can come back anywhere.
    #[n(9)]
    pub gone: Option<u64>,
    /// Without a connection, and still in its rooms: its node lets it go when it does not come back in time.
    #[cbor(n(10), default)]
    pub lingers: bool,
    /// While it lingers it acts by requests, as hosts of models do.
    #[cbor(n(11), default)]
    pub hosted: bool,
}

/// The announcement of an ephemeral room.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum RoomFacts {
    /// To everybody.
    #[n(0)]
    Open(#[n(0)] RoomCreated),
    /// To those who follow the private rooms of a key.
    #[n(1)]
    Sealed {
        /// Whose it is.
        #[n(0)]
        owner: KeyPrint,
        /// A [`RoomCreated`], sealed as entry 0 of the home log: no log has one.
        #[n(1)]
        sealed: ByteVec,
    },
}

impl RoomFacts {
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self, RoomFacts::Sealed { .. })
    }
}

/// An ephemeral room, as the nodes that have members in it announce it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EphemeralRoom {
    /// Name, owner and so on.
    #[n(0)]
    pub facts: RoomFacts,
    /// The log whose author issues its home era.
    #[n(1)]
    pub home: LogId,
    /// Unix milliseconds.
    #[n(2)]
    pub created_ms: u64,
}

/// One change of a node's roster.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum RosterChange {
    /// An agent is now this.
    #[n(0)]
    Agent(#[cbor(n(0), with = "text")] AgentId, #[n(1)] AgentRecord),
    /// An agent is forgotten.
    #[n(1)]
    NoAgent(#[cbor(n(0), with = "text")] AgentId),
    /// An ephemeral room lives.
    #[n(2)]
    Room(#[n(0)] RoomId, #[n(1)] EphemeralRoom),
    /// For this node it no longer does.
    #[n(3)]
    NoRoom(#[n(0)] RoomId),
    /// The node follows the private rooms of the key that this token of it is of.
    #[n(4)]
    Follows(#[n(0)] Token),
}

/// News of a node's agents.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RosterNews {
    /// The node.
    #[n(0)]
    pub node: NodeId,
    /// Which start of it.
    #[n(1)]
    pub boot: u64,
    /// The news.
    #[n(2)]
    pub what: What,
}

/// The content of a [`RosterNews`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum What {
    /// The roster of `version` is the one before plus these. Rooms private to a node are left out.
    #[n(0)]
    Changes {
        /// The new version.
        #[n(0)]
        version: u64,
        /// Applied in order.
        #[n(1)]
        changes: Vec<RosterChange>,
    },
    /// The roster of `version`, whole.
    #[n(1)]
    Whole {
        /// The version.
        #[n(0)]
        version: u64,
        /// From nothing.
        #[n(1)]
        changes: Vec<RosterChange>,
    },
    /// An agent types, or stopped.
    #[n(2)]
    Typing {
        /// The agent.
        #[cbor(n(0), with = "text")]
        agent: AgentId,
        /// Where.
        #[n(1)]
        room: RoomId,
        /// Types.
        #[n(2)]
        typing: bool,
        /// Rises, so that a repeated one is told from a new one.
        #[n(3)]
        nonce: u64,
    },
}
