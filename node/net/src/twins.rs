//! Nodes that run twice with one identity, as a copy of a data directory does. Each start of a node has
//! a number of its own, drawn at random, which it tells its peers when they connect (identify's agent
//! version). A start that is heard again after another one was heard shows that both run.
//!
//! Their peer closes their connections now and then: when they are connected again they are told at the
//! door ([`crate::door`]).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use libp2p::swarm::ConnectionId;

use crate::identity::NodeId;
use crate::limits::{PEERS_MAX, STARTS_MAX, TWIN_FOR, TWIN_SAID_EVERY, TWIN_SIGNS};

/// Begins the agent version of identify, before the start's number in hexadecimal.
const AGENT: &str = "clawmesh ";

/// See the module. Shared by transport and task.
#[derive(Debug)]
pub(crate) struct Twins {
    /// The number of this start.
    start: u64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// A peer said last then that this node has a twin.
    told: Option<Instant>,
    nodes: HashMap<NodeId, Starts>,
}

/// The starts of one node.
#[derive(Debug, Default)]
struct Starts {
    /// The last few, by when they were first heard, or heard again; the newest last.
    order: VecDeque<u64>,
    connections: HashMap<ConnectionId, u64>,
    /// Signs of life of a start that is not the newest, since that was heard.
    signs: u32,
    /// Both were seen to run.
    twins: Option<Instant>,
    /// When that was last said.
    said: Option<Instant>,
}

impl Twins {
    pub(crate) fn new(start: u64) -> Twins {
        Twins { start, seen: Mutex::default() }
    }

    /// The agent version by which this node names itself.
    pub(crate) fn agent(&self) -> String {
        format!("{AGENT}{:016x}", self.start)
    }

    /// A peer has said what it is. `true`: it runs twice, and it is time to say so, to both.
    pub(crate) fn identified(
        &self,
        node: NodeId,
        connection: ConnectionId,
        agent: &str,
        now: Instant,
    ) -> bool {
        let start = agent.strip_prefix(AGENT).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let Some(start) = start else { return false };
        let mut seen = self.locked();
        if seen.nodes.len() >= PEERS_MAX && !seen.nodes.contains_key(&node) {
            seen.nodes.retain(|_, starts| !starts.connections.is_empty());
        }
        let starts = seen.nodes.entry(node).or_default();
        starts.connections.insert(connection, start);
        if starts.order.back() == Some(&start) {
            return false;
        }
        starts.signs = 0;
        let again = starts.order.iter().position(|known| *known == start);
        if let Some(at) = again {
            starts.order.remove(at);
        }
        starts.order.push_back(start);
        if starts.order.len() > STARTS_MAX {
            starts.order.pop_front();
        }
        again.is_some() && starts.are_twins(now)
    }

    /// A peer has shown a sign of life over this connection. `true`: as of [`Self::identified`].
    pub(crate) fn alive(&self, node: NodeId, connection: ConnectionId, now: Instant) -> bool {
        let mut seen = self.locked();
        let Some(starts) = seen.nodes.get_mut(&node) else { return false };
        let start = starts.connections.get(&connection);
        if start.is_none_or(|start| starts.order.back() == Some(start)) {
            return false;
        }
        // One may have been under way while the older start ended.
        starts.signs = starts.signs.saturating_add(1);
        starts.signs >= TWIN_SIGNS && starts.are_twins(now)
    }

    pub(crate) fn closed(&self, node: NodeId, connection: ConnectionId) {
        if let Some(starts) = self.locked().nodes.get_mut(&node) {
            starts.connections.remove(&connection);
        }
    }

    /// Whether two nodes were seen to run with this identity lately.
    pub(crate) fn run_twice(&self, node: &NodeId, now: Instant) -> bool {
        self.locked().nodes.get(node).is_some_and(|starts| is_recent(starts.twins, now))
    }

    /// A peer says that another node runs with our identity. `true`: that is news.
    pub(crate) fn told(&self, now: Instant) -> bool {
        let before = self.locked().told.replace(now);
        !is_recent(before, now)
    }

    /// Whether a peer has said lately that another node runs with our identity.
    pub(crate) fn runs_twice_here(&self, now: Instant) -> bool {
        is_recent(self.locked().told, now)
    }

    fn locked(&self) -> MutexGuard<'_, Seen> {
        // Nothing that is done under the lock can leave it half changed.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Starts {
    /// `true`: it is time to say so.
    fn are_twins(&mut self, now: Instant) -> bool {
        self.twins = Some(now);
        let due =
            self.said.is_none_or(|said| now.saturating_duration_since(said) >= TWIN_SAID_EVERY);
        if due {
            self.said = Some(now);
        }
        due
    }
}

fn is_recent(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < TWIN_FOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = [7; 32];

    fn agent(start: u64) -> String {
        Twins::new(start).agent()
    }

    fn at(n: usize) -> ConnectionId {
        ConnectionId::new_unchecked(n)
    }

    #[test]
    fn a_start_that_is_heard_again_after_another_shows_twins_and_a_restart_does_not() {
        let (twins, now) = (Twins::new(1), Instant::now());
        for (n, start) in [(1, 10), (2, 10), (3, 11), (4, 12), (5, 12)] {
            assert!(!twins.identified(NODE, at(n), &agent(start), now), "{start}");
        }
        assert!(!twins.run_twice(&NODE, now));
        assert!(twins.identified(NODE, at(6), &agent(11), now));
        assert!(twins.run_twice(&NODE, now));
        assert!(!twins.identified(NODE, at(7), &agent(12), now), "it is no news any more");
        assert!(!twins.run_twice(&NODE, now + TWIN_FOR), "one of them was stopped");
        assert!(!twins.identified(NODE, at(8), "rust-libp2p/1", now), "another program");
    }

    #[test]
    fn an_older_start_that_goes_on_to_live_beside_a_newer_one_shows_twins() {
        let (twins, now) = (Twins::new(1), Instant::now());
        twins.identified(NODE, at(1), &agent(10), now);
        assert!(!twins.alive(NODE, at(1), now));
        twins.identified(NODE, at(2), &agent(11), now);
        assert!(!twins.alive(NODE, at(2), now));
        assert!(!twins.alive(NODE, at(1), now), "it may have been under way");
        assert!(twins.alive(NODE, at(1), now));
        twins.closed(NODE, at(1));
        assert!(!twins.alive(NODE, at(1), now));
    }

    #[test]
    fn memory_is_bounded() {
        let (twins, now) = (Twins::new(1), Instant::now());
        for n in 0..=PEERS_MAX {
            let mut node = NODE;
            node[..8].copy_from_slice(&(n as u64).to_be_bytes());
            twins.identified(node, at(n), &agent(1), now);
            twins.closed(node, at(n));
        }
        assert!(twins.locked().nodes.len() <= PEERS_MAX);
        for start in 0..100 {
            twins.identified(NODE, at(1), &agent(start), now);
        }
        assert_eq!(twins.locked().nodes[&NODE].order.len(), STARTS_MAX);
    }
}
