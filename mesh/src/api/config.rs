//! The settings of an engine.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    api::{
        agenda::{Retention, Tiers},
        budget::Budgets,
        command::RoomView,
        policy::Policies,
    },
    limits::{ARCHIVE_AFTER, CARRY_BYTES, LINKED_MAX, REQUEST_TTL, RETENTION_MIN, TAKEOVER_AFTER},
    name::{
        id::{KeyPrint, MeshId, NodeId},
        identity::LinkSecret,
    },
};

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// The mesh's name; it follows from its founder.
    pub mesh: MeshId,
    /// The home sequencer of lobby and directory.
    pub founder: NodeId,
    /// The secret of connections at the start.
    pub secret: LinkSecret,
    /// Of the program, for people: members tell it each other.
    pub version: String,
    /// The name the operator gave this node.
    pub name: String,
    /// It is a relay: it keeps the directory of the mesh and no other room, and has no agents (`docs/decisions/reach.md`). A
    /// node is one from its first start on, or never.
    pub relay: bool,
    /// A sequencer counts as gone when not heard for this long.
    pub takeover_after: Duration,
    /// In a mesh of so many living nodes, this one included, all are linked; in a larger one life is known by hearsay. Simulations
    /// use fewer.
    pub linked_max: usize,
    /// For the one thing that is drawn: the node's lane.
    pub seed: u64,
    /// Numbers of an era that are used. `None`: all of them. Simulations use fewer.
    pub era_capacity: Option<u64>,
    /// Rooms of a mesh this node was in before: readable, closed. See [`crate::archive`].
    pub archive: Vec<RoomView>,
    /// The limits of keys here.
    pub tiers: Tiers,
    /// For how long bodies are kept here.
    pub retention: Retention,
    /// How much agents may answer each other.
    pub budgets: Budgets,
    /// Which agents may write to each other, and whose messages this node's agents take.
    pub policies: Policies,
    /// Keys of operators: what they say of stopping holds for all agents here ([`crate::records::stopped`]).
    pub operators: BTreeSet<KeyPrint>,
    /// For how long requests are kept for agents that are away.
    pub request_ttl: Duration,
    /// The room of a task that one agent gave to another is closed so long after its end, if it is kept.
    pub archive_after: Duration,
    /// Bytes that are carried for others: sealed rooms for nodes that are away, at most half of it, and contents that travel apart for
    /// accounts that were never presented here.
    pub carry: u64,
    /// Younger bodies are never dropped. Simulations use less.
    pub retention_min: Duration,
}

impl Config {
    /// The defaults, in the mesh `mesh` founded by `founder`.
    #[must_use]
    pub fn new(mesh: MeshId, founder: NodeId) -> Config {
        Config {
            mesh,
            founder,
            secret: LinkSecret::new(0, [0; 32]),
            version: String::new(),
            name: String::new(),
            relay: false,
            takeover_after: TAKEOVER_AFTER,
            linked_max: LINKED_MAX,
            seed: 0,
            era_capacity: None,
            archive: Vec::new(),
            tiers: Tiers::default(),
            retention: Retention::default(),
            budgets: Budgets::default(),
            policies: Policies::default(),
            operators: BTreeSet::new(),
            request_ttl: REQUEST_TTL,
            archive_after: ARCHIVE_AFTER,
            carry: CARRY_BYTES,
            retention_min: RETENTION_MIN,
        }
    }
}
