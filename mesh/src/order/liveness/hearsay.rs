//! Life by hearsay, in a mesh in which not all nodes are linked: nodes tell their links which nodes they have news of.
//!
//! News are that a node's count of beacons has gone on. A count that stands still is no news, wherever it is told: so hearsay
//! cannot keep itself alive, however long it is on its way. It is believed for a while after the last beacon
//! with a signature, never further ahead than time itself, and not of a node that does not answer when it is called.

use std::time::Duration;

use super::Liveness;
use crate::{
    limits::{
        BEACON_EVERY, CALL_AGAIN, COUNTS, COUNTS_AHEAD_MAX, GOSSIPED_WHILE_STILL, HEARSAY_FRESH,
        HEARSAY_SLACK, HEARSAY_TICKS_AHEAD_MAX, NODES_MAX, NODES_PER_GOSSIPED_TICK, PAUSED_AFTER,
        ROSTER_LEASE, TICKS_PER_COUNT,
    },
    name::id::{NodeId, sha256},
    replica::log::first_8,
    turn::context::Context,
    wire::message::{Beacon, Life, Message, Signed},
};

/// A call of a node: does it live?
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    /// The first one since it was heard.
    first: Duration,
    last: Duration,
    /// How often this node has called it since.
    times: u64,
}

/// All nodes in an order that those who know the same nodes share, and the digest of the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roll {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) digest: u64,
}

impl Roll {
    /// At most [`NODES_MAX`]: no more are heard.
    fn of(nodes: impl Iterator<Item = NodeId>) -> Roll {
        let mut nodes: Vec<NodeId> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.truncate(NODES_MAX);
        let bytes: Vec<u8> = nodes.iter().flat_map(|node| node.0).collect();
        Roll { digest: first_8(sha256(&[b"clawmesh roll", &bytes])), nodes }
    }
}

/// What became of hearsay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heeded {
    /// It is news, or was known.
    Yes,
    /// It cannot be judged: nothing with a signature was heard of the node, or not for long, or too much was missed.
    Unsure,
    /// The node does not answer, and is to be called again, with this nonce.
    Called(u64),
}

/// The tick that a node is to have reached by now, if it had a certain one at a certain time.
pub(super) fn reckoned((tick, at): (u64, Duration), now: Duration) -> u64 {
    let passed = now.saturating_sub(at).as_millis() / BEACON_EVERY.as_millis();
    tick.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
}

/// How many ticks apart a node gossips its beacons, in a large mesh of so many living nodes.
pub(crate) fn gossiped_every(nodes: usize) -> u64 {
    // In steps, so that not each newcomer changes the rhythm of all.
    let steps = (nodes / NODES_PER_GOSSIPED_TICK) as u64 / GOSSIPED_WHILE_STILL;
    steps.max(1) * GOSSIPED_WHILE_STILL
}

fn times(ticks: u64) -> Duration {
    BEACON_EVERY * u32::try_from(ticks).unwrap_or(u32::MAX)
}

fn count_of(tick: u64) -> u64 {
    1 + tick / TICKS_PER_COUNT % COUNTS
}

impl Liveness {
    /// Counts the members that live: beacons of strangers are none.
    pub(crate) fn count_alive(&mut self, now: Duration) {
        let members = self.heard.keys().filter(|node| self.others.contains(node));
        self.alive = 1 + members.filter(|node| self.is_alive(now, **node)).count();
        // One fewer with each tick: of a node that was cut off for a while, the others gossip as seldom as before.
        self.lately = self.alive.max(self.lately.saturating_sub(1));
    }

    /// Whether so many live that not all are linked.
    pub(crate) fn is_large(&self) -> bool {
        self.alive > self.linked_max
    }

    /// Whether hearsay counts: so many nodes there are that not all can be linked, though few may live.
    fn heeds(&self) -> bool {
        self.is_large() || self.others.len() >= self.linked_max
    }

    /// All nodes of the mesh, in their order.
    pub(crate) fn roll(&mut self) -> &Roll {
        if std::mem::take(&mut self.roll_is_old) {
            self.roll = Roll::of(self.others.iter().copied().chain([self.me]));
        }
        &self.roll
    }

    /// The node of the roll with this beginning of an id.
    pub(crate) fn named(&mut self, name: u64) -> Option<NodeId> {
        let nodes = &self.roll().nodes;
        let at = nodes.partition_point(|node| node.beginning() < name);
        nodes.get(at).copied().filter(|node| node.beginning() == name)
    }

    /// The count of each node of the roll of which there are news, 0 of the others.
    pub(crate) fn counts(&mut self, now: Duration) -> Vec<u8> {
        self.roll();
        let count = |node: &NodeId| match self.heard.get(node) {
            Some(heard) if now < heard.evidence + HEARSAY_FRESH => count_of(heard.tick),
            Some(_) | None => 0,
        };
        let counts: Vec<u64> = self.roll.nodes.iter().map(count).collect();
        let pair = |pair: &[u64]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
        counts.chunks(2).map(|two| u8::try_from(pair(two)).unwrap_or(0)).collect()
    }

    /// How far a node is that there are news of.
    pub(crate) fn life(&self, now: Duration, node: NodeId) -> Option<Life> {
        let heard = self.heard.get(&node).filter(|it| now < it.evidence + HEARSAY_FRESH)?;
        Some(Life { name: node.beginning(), boot: heard.beacon.boot, tick: heard.tick })
    }

    /// A link has news of a node, which has got to this count.
    pub(crate) fn hint(&mut self, now: Duration, node: NodeId, count: u64) -> Heeded {
        let Some(heard) = self.heard.get(&node) else { return Heeded::Unsure };
        let own = count_of(heard.tick);
        let ahead = (count + COUNTS - own) % COUNTS;
        if (1..=COUNTS_AHEAD_MAX).contains(&ahead) {
            let counts = (heard.tick / TICKS_PER_COUNT).saturating_add(ahead);
            let tick = counts.saturating_mul(TICKS_PER_COUNT);
            return self.reach(now, node, tick);
        }
        if self.is_alive(now, node) { Heeded::Yes } else { Heeded::Unsure }
    }

    /// The same of a node that is said to have got to this tick.
    pub(crate) fn reached(&mut self, now: Duration, node: NodeId, life: Life) -> Heeded {
        let further = |it: &super::Heard| it.beacon.boot == life.boot && life.tick > it.tick;
        let is_further = self.heard.get(&node).is_some_and(further);
        if is_further { self.reach(now, node, life.tick) } else { Heeded::Yes }
    }

    fn reach(&mut self, now: Duration, node: NodeId, tick: u64) -> Heeded {
        // What was said while this node was paused may be old.
        let paused = now < self.awake_since + PAUSED_AFTER;
        let every = times(gossiped_every(self.lately));
        let believed = every * 2 + HEARSAY_SLACK;
        if self.unanswered(node).is_some_and(|at| now >= at) {
            return self.call(now, node).map_or(Heeded::Yes, Heeded::Called);
        }
        if !self.heeds() {
            return Heeded::Unsure;
        }
        let after = self.takeover_after.max(ROSTER_LEASE);
        let Some(heard) = self.heard.get_mut(&node) else { return Heeded::Unsure };
        let since = now.saturating_sub(heard.at);
        // One that a link has kept is old.
        let until = if heard.kept { now + believed } else { now };
        let most = reckoned(heard.anchor, until).saturating_add(HEARSAY_TICKS_AHEAD_MAX);
        if paused || tick > most {
            return Heeded::Yes;
        }
        if since >= believed {
            return Heeded::Unsure;
        }
        if now >= heard.sign() + after {
            heard.back = Some(now);
        }
        heard.tick = tick;
        heard.evidence = now;
        heard.silent_since = heard.silent_since.max(now);
        // A beacon that is gossiped was missed.
        if since >= every + every / 4 { Heeded::Unsure } else { Heeded::Yes }
    }

    /// Whether a node lives by hearsay alone.
    pub(crate) fn is_hearsay(&self, now: Duration, node: NodeId) -> bool {
        let by_hearsay = |heard: &super::Heard| heard.evidence > heard.at;
        self.heard.get(&node).is_some_and(by_hearsay) && self.is_alive(now, node)
    }

    /// The last beacon of a node whose signature was checked, for links that have not heard of it.
    pub(crate) fn signed(&self, node: NodeId) -> Option<&Signed<Beacon>> {
        self.signed.get(&node)
    }

    /// A beacon whose signature was checked.
    pub(crate) fn keep_signed(&mut self, signed: Signed<Beacon>) {
        let node = signed.value.node;
        let newness = |it: &Signed<Beacon>| (it.value.boot, it.value.tick);
        let is_newer = self.signed.get(&node).is_none_or(|kept| newness(kept) < newness(&signed));
        if is_newer && self.heard.contains_key(&node) {
            self.signed.insert(node, signed);
        }
    }

    // Calls.

    /// Somebody calls a node. It counts as called until it is heard.
    pub(crate) fn note_called(&mut self, now: Duration, node: NodeId) {
        if !self.heard.contains_key(&node) {
            return;
        }
        // Again and again: that does not keep this node from calling it, too.
        self.called.entry(node).or_insert(Called { first: now, last: now, times: 0 });
    }

    /// This node calls another one, if it has not done so a moment ago: the nonce.
    pub(crate) fn call(&mut self, now: Duration, node: NodeId) -> Option<u64> {
        let beacon = self.heard.get(&node)?.beacon;
        if self.called.get(&node).is_some_and(|called| now < called.last + CALL_AGAIN) {
            return None;
        }
        self.note_called(now, node);
        let called = self.called.get_mut(&node)?;
        (called.last, called.times) = (now, called.times + 1);
        let heard = [beacon.boot, beacon.tick, called.times].map(u64::to_be_bytes).concat();
        Some(first_8(sha256(&[b"clawmesh call", &node.0, &heard])))
    }

    /// When a node that was called counts as gone. `None`: it was not called.
    pub(super) fn unanswered(&self, node: NodeId) -> Option<Duration> {
        self.called.get(&node).map(|called| called.first + self.takeover_after)
    }

    /// Nodes that were heard directly, and now live by hearsay alone: they do not reach this node any more, or somebody lies.
    pub(crate) fn missed(&self, now: Duration) -> Vec<NodeId> {
        let missed = |(node, heard): (&NodeId, &super::Heard)| {
            let late = now >= heard.at + self.takeover_after;
            (heard.direct && late && self.is_hearsay(now, *node)).then_some(*node)
        };
        self.heard.iter().filter_map(missed).collect()
    }
}

/// Asks a node whether it lives.
pub(crate) fn call(cx: &mut Context, node: NodeId, nonce: u64) {
    cx.broadcast(None, Message::Call { node, nonce });
}
