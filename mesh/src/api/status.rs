//! The status of a node, for its operator.

use std::time::Duration;

use crate::{
    name::{
        id::{MeshId, NodeId, RoomId},
        number::{Era, Number},
    },
    wire::entry::Parted,
};

/// The node and its mesh.
#[derive(Clone, Debug)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// Its mesh.
    pub mesh: MeshId,
    /// It is a relay: it keeps the directory and no other room.
    pub relay: bool,
    /// Nodes heard of, this one left out.
    pub nodes: Vec<NodeStatus>,
    /// Rooms, the directory left out.
    pub rooms: Vec<RoomStatus>,
    /// Agents attached to this node.
    pub agents: usize,
    /// Agents attached to all nodes heard.
    pub agents_mesh: usize,
    /// Things peers did that they should not have: see each counter.
    pub faults: Faults,
    /// The same by author, of those who wrote what is counted.
    pub blamed: Vec<(NodeId, Faults)>,
    /// Authors whose logs were found forked.
    pub forked: Vec<NodeId>,
    /// How this node was removed from the mesh, if it was.
    pub parted: Option<Parted>,
    /// Whose lanes are known: in these each gives numbers above the home era.
    pub lanes: Vec<(u32, NodeId)>,
    /// Records that this node has.
    pub records: RecordStatus,
}

/// Records that a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordStatus {
    /// How many, of each kind of records of accounts, deleted ones included.
    pub of_accounts: Vec<(&'static str, usize)>,
    /// Bytes of texts of accounts whose key was shown here.
    pub own_bytes: u64,
    /// Bytes of texts that are carried for others.
    pub carried_bytes: u64,
    /// Texts that are to be here, and are not yet.
    pub missing: usize,
    /// Texts that are here, and of which no other node has said that it has them.
    pub alone: usize,
    /// Bytes of sealed rooms that are carried for nodes that are away.
    pub rooms_carried_bytes: u64,
    /// Sealed rooms here of which other nodes are not known to have all: each counts once for each node.
    pub rooms_owed: usize,
    /// Files of such rooms, here, that no member that was asked has room to carry.
    pub files_left_out: usize,
}

/// A node that was admitted to the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Which.
    pub node: NodeId,
    /// The name its operator gave it.
    pub name: String,
    /// When it was admitted, by its own clock. Unix milliseconds.
    pub since_ms: u64,
    /// Where it gives numbers above the home era.
    pub lane: Option<u32>,
    /// It is this node.
    pub me: bool,
    /// Directly connected.
    pub connected: bool,
    /// Heard by any path within the lease.
    pub alive: bool,
    /// The node that founded the mesh.
    pub founder: bool,
    /// It is a relay: it keeps the directory and no other room.
    pub relay: bool,
    /// Its word about itself; `None` if it has said nothing since our start.
    pub about: Option<crate::wire::message::About>,
    /// Since its last beacon; `None` if it was never heard since our start.
    pub heard_ago: Option<Duration>,
    /// The peer that has passed its last beacon on. `None`: it said it itself, or was not heard since our start.
    pub through: Option<NodeId>,
    /// How far it is with the rooms that everybody has, against this node; of this node: against its peers. `None`: it was not
    /// heard since our start.
    pub step: Option<Step>,
    /// How it was removed, if it was.
    pub parted: Option<Parted>,
}

/// How far a node is, as its beacons and this node's own entries say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// It has what this node has, or had within the last moments.
    pub is_even: bool,
    /// How long ago it had all that this node had then. `None`: never since our start.
    pub even_ago: Option<Duration>,
    /// As many messages have come here since then; of this node: entries that its peers have and it lacks.
    pub behind: u64,
}

/// Another node.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// Which.
    pub node: NodeId,
    /// The name its operator gave it.
    pub name: Option<String>,
    /// It is a relay: it keeps the directory and no other room.
    pub relay: bool,
    /// Directly connected.
    pub connected: bool,
    /// Heard by any path within the lease.
    pub alive: bool,
    /// Milliseconds since its last beacon; `None` if it was never heard since our start.
    pub heard_ms_ago: Option<u64>,
    /// Agents attached to it.
    pub agents: usize,
}

/// A room.
#[derive(Clone, Debug)]
pub struct RoomStatus {
    /// Which.
    pub room: RoomId,
    /// Its name.
    pub name: String,
    /// Visible to every key.
    pub public: bool,
    /// The era it is in.
    pub era: Era,
    /// The node that issues numbers there.
    pub sequencer: NodeId,
    /// Highest number delivered here.
    pub tip: Number,
    /// Entries of this node or others held here and not yet delivered.
    pub undelivered: usize,
    /// Entries known to exist at connected peers and not yet here.
    pub behind: u64,
    /// Entries of this node that another is known to have: the first ones of its log.
    pub sent: u64,
    /// Entries of this node that no connected peer is known to have.
    pub unsent: u64,
    /// Numbers left as holes since the start.
    pub holes: u64,
}

/// Counters of faults of peers, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Runs that did not continue a log as they claimed.
    pub chain: u64,
    /// Entries whose meaning is void: numbers of an era not theirs, claims in foreign lanes.
    pub void: u64,
    /// Logs found forked.
    pub forks: u64,
    /// Runs dropped because too many were waiting.
    pub overflow: u64,
    /// Messages that made no sense where they came.
    pub stray: u64,
}

impl Faults {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.chain + self.void + self.forks + self.overflow + self.stray
    }
}
