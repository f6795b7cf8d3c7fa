//! How far other nodes are with the rooms that everybody has, for people: the digest of a beacon is one that this node had itself
//! a moment ago, or it is not.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::Known;
use crate::{
    api::status::Step,
    limits::{DIGESTS_KEPT, NODES_MAX},
    name::{digest::Digest, id::NodeId},
    wire::message::Beacon,
};

/// A digest that this node had, and how many messages had come by then.
#[derive(Clone, Copy, Debug)]
struct Had {
    digest: Digest,
    said: u64,
    /// It had another one from then on.
    until: Option<Duration>,
}

/// The last word of another node.
#[derive(Clone, Copy, Debug)]
struct Last {
    through: NodeId,
    /// The newest digest of this node that it named: until when it was that, and how many messages had come here by then.
    even: Option<(Duration, u64)>,
}

/// While messages come without a break, beacons seldom name the very state that this node has: nobody is behind for that.
const EVEN_FOR: Duration = Duration::from_secs(3);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// Messages that came here since the start.
    pub(super) said: u64,
    /// The newest last; at most [`DIGESTS_KEPT`].
    own: VecDeque<Had>,
    /// At most [`NODES_MAX`].
    nodes: BTreeMap<NodeId, Last>,
}

impl Steps {
    /// This node's digest is this one from now on.
    pub(super) fn note_own(&mut self, now: Duration, digest: Digest) {
        if let Some(had) = self.own.back_mut() {
            if had.digest == digest {
                // Messages have a number after they are in the digest.
                had.said = self.said;
                return;
            }
            had.until = Some(now);
        }
        if self.own.len() >= DIGESTS_KEPT {
            self.own.pop_front();
        }
        self.own.push_back(Had { digest, said: self.said, until: None });
    }

    pub(super) fn on_beacon(&mut self, now: Duration, from: NodeId, beacon: &Beacon) {
        let node = beacon.node;
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node) {
            return;
        }
        let had = self.own.iter().rev().find(|had| had.digest == beacon.digest);
        let last = self.nodes.get(&node).and_then(|last| last.even);
        let even = had.map(|had| match had.until {
            Some(until) => (until, had.said),
            None => (now, self.said),
        });
        self.nodes.insert(node, Last { through: from, even: even.or(last) });
    }

    /// A beacon of a relay, which has the directory alone: it has all of it, or not.
    pub(super) fn on_beacon_of_relay(
        &mut self,
        now: Duration,
        (node, through): (NodeId, NodeId),
        is_even: bool,
    ) {
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node) {
            return;
        }
        let last = self.nodes.get(&node).and_then(|last| last.even);
        let even = if is_even { Some((now, self.said)) } else { last };
        self.nodes.insert(node, Last { through, even });
    }

    /// The peer that has passed its last beacon on, if it did not come from itself.
    pub(crate) fn through(&self, node: NodeId) -> Option<NodeId> {
        self.nodes.get(&node).map(|last| last.through).filter(|through| *through != node)
    }

    /// How far it is. `None`: it was not heard.
    pub(crate) fn view(&self, known: &Known, node: NodeId) -> Option<Step> {
        let last = self.nodes.get(&node)?;
        let now = known.cx.now.mono;
        let even_ago = last.even.map(|(at, _)| now.saturating_sub(at));
        let lives = known.live.is_alive(now, node);
        // Nodes that are not linked are seldom heard: they are as they were.
        let silent = match known.live.last(node) {
            Some(heard) if known.live.is_hearsay(now, node) => now.saturating_sub(heard.at),
            Some(_) | None => Duration::ZERO,
        };
        let is_even = lives && even_ago.is_some_and(|ago| ago < EVEN_FOR + silent);
        let behind = self.said.saturating_sub(last.even.map_or(0, |(_, said)| said));
        Some(Step { is_even, even_ago, behind: if is_even { 0 } else { behind } })
    }
}
