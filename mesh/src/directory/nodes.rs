//! Nodes that were admitted: their names, and the lanes in which each may claim eras.

use std::collections::BTreeMap;

use super::{learned::Learned, standing::Standing};
use crate::{
    limits::{LANES_PER_NODE_MAX, NAME_BYTES_MAX},
    name::id::NodeId,
    wire::entry::NodeAdmitted,
};

/// The first entry that admits a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Admission {
    seq: u64,
    /// By its own clock. Unix milliseconds.
    pub(crate) wall_ms: u64,
    /// It is a relay, for ever.
    is_relay: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) lanes: BTreeMap<NodeId, Vec<(Standing, u32)>>,
    pub(crate) names: BTreeMap<NodeId, String>,
    pub(crate) admitted: BTreeMap<NodeId, Admission>,
}

impl Nodes {
    pub(super) fn learn(
        &mut self,
        admitted: NodeAdmitted,
        standing: Standing,
        wall_ms: u64,
    ) -> Learned {
        let node = standing.log.author;
        let name = admitted.name.chars().take(NAME_BYTES_MAX / 4).collect();
        self.names.insert(node, name);
        let admission =
            Admission { seq: standing.seq, wall_ms, is_relay: admitted.relay == Some(true) };
        let first = self.admitted.entry(node).or_insert(admission);
        *first = admission.min(*first);
        let lanes = self.lanes.entry(node).or_default();
        lanes.push((standing, admitted.lane));
        lanes.sort();
        lanes.dedup();
        // The first ones count: which these are, its log says.
        lanes.truncate(LANES_PER_NODE_MAX);
        Learned::Lane(node)
    }

    /// The newest lane of a node.
    pub(crate) fn lane_of(&self, node: NodeId) -> Option<u32> {
        self.lanes.get(&node)?.last().map(|(_, lane)| *lane)
    }

    /// Whether a node keeps this directory alone.
    pub(crate) fn is_relay(&self, node: NodeId) -> bool {
        self.admitted.get(&node).is_some_and(|first| first.is_relay)
    }

    /// All lanes that were entered, and the nodes that did.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (u32, NodeId)> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|(node, lanes)| lanes.iter().map(|(_, lane)| (*lane, *node)))
    }

    /// Whether `node` has to draw another lane: an earlier entry has its newest one too.
    pub(crate) fn lane_clashes(&self, node: NodeId) -> bool {
        let Some((mine, lane)) = self.lanes.get(&node).and_then(|lanes| lanes.last()) else {
            return false;
        };
        let mut others = self.lanes.iter().filter(|(other, _)| **other != node);
        others.any(|(_, lanes)| lanes.iter().any(|(theirs, other)| other == lane && theirs < mine))
    }
}
