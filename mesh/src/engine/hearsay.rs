//! Life by hearsay, in a mesh in which not all nodes are linked: links are told of which nodes there are news, and asked for
//! beacons of those that were not heard here.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::known::Known;
use crate::{
    limits::{
        BEACON_EVERY, FEW_LINKS, FEW_TOLD_EVERY, HEARSAY_LINKS, LINK_ASKED_EVERY, LIVES_ASKED_MAX,
    },
    name::id::NodeId,
    order::liveness::{Heeded, call},
    wire::message::{Life, Message},
};

/// What a link tells.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) roll: u64,
    pub(super) counts: Vec<u8>,
    pub(super) named: Vec<Life>,
    pub(super) links: u16,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Hearsay {
    /// When links were told last, and the last of them.
    told: Duration,
    last: Option<NodeId>,
    /// Links that have few links themselves, and when they were told last.
    few: BTreeMap<NodeId, Duration>,
    /// When some link was asked last, and each: at most the links that there are.
    asked: Duration,
    links_asked: BTreeMap<NodeId, Duration>,
    /// How many nodes were asked for: the next question goes on behind them.
    wanted: usize,
}

impl Hearsay {
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        if !known.live.is_large() || now < self.told + BEACON_EVERY {
            return;
        }
        self.told = now;
        self.few.retain(|peer, _| known.cx.up.contains(peer));
        self.links_asked.retain(|peer, _| known.cx.up.contains(peer));
        let (roll, counts) = (known.live.roll().digest, known.live.counts(now));
        let mut told: BTreeSet<NodeId> = self.next(known.cx.me, &known.cx.up).into_iter().collect();
        told.extend(self.due(now));
        for peer in told {
            let (counts, named, links) = (counts.clone(), Vec::new(), links_of(known));
            known.cx.send(peer, Message::Lives { roll, counts, named, links });
        }
        for node in known.live.missed(now) {
            if let Some(nonce) = known.live.call(now, node) {
                call(&mut known.cx, node, nonce);
            }
        }
    }

    /// Links that hear of others by few, and are to hear again.
    fn due(&mut self, now: Duration) -> Vec<NodeId> {
        let due = self.few.iter_mut().filter(|(_, told)| now >= **told + FEW_TOLD_EVERY);
        due.map(|(peer, told)| {
            *told = now;
            *peer
        })
        .collect()
    }

    /// The links whose turn it is. Each node begins with another one: if all began with the first, each link would be told by
    /// all in one moment, and then by nobody for as long as a round takes.
    fn next(&mut self, me: NodeId, up: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let last = self.last.unwrap_or(me);
        let (again, later): (Vec<NodeId>, Vec<NodeId>) = up.iter().partition(|peer| **peer <= last);
        let next: Vec<NodeId> = later.into_iter().chain(again).take(HEARSAY_LINKS).collect();
        self.last = next.last().copied();
        next
    }

    /// A link has news.
    pub(super) fn on_told(&mut self, known: &mut Known, from: NodeId, told: &Told) {
        let now = known.cx.now.mono;
        if told.links >= FEW_LINKS {
            self.few.remove(&from);
        } else if known.cx.up.contains(&from) {
            self.few.entry(from).or_default();
        }
        for life in &told.named {
            if let Some(node) = known.live.named(life.name)
                && let Heeded::Called(nonce) = known.live.reached(now, node, *life)
            {
                call(&mut known.cx, node, nonce);
            }
        }
        if told.counts.is_empty() {
            return;
        }
        if told.roll != known.live.roll().digest {
            // One of the two has not heard yet of some node.
            return self.ask(known, from, Vec::new());
        }
        let nodes = known.live.roll().nodes.clone();
        let counts = told.counts.iter().flat_map(|two| [two >> 4, two & 0xf]);
        let mut unsure = Vec::new();
        for (node, count) in nodes.into_iter().zip(counts) {
            if count == 0 || node == known.cx.me || known.cx.parted.has(node) {
                continue;
            }
            match known.live.hint(now, node, u64::from(count)) {
                Heeded::Yes => {}
                Heeded::Unsure => unsure.push(node.beginning()),
                Heeded::Called(nonce) => call(&mut known.cx, node, nonce),
            }
        }
        if !unsure.is_empty() {
            // Of those of which no link has news the first are not to be in the way of the others.
            let first = self.wanted % unsure.len();
            unsure.rotate_left(first);
            unsure.truncate(LIVES_ASKED_MAX);
            self.ask(known, from, unsure);
        }
    }

    fn ask(&mut self, known: &mut Known, from: NodeId, nodes: Vec<u64>) {
        let now = known.cx.now.mono;
        let lately = self.links_asked.get(&from).is_some_and(|at| now < *at + LINK_ASKED_EVERY);
        // Each link tells it again.
        if !lately && now >= self.asked + BEACON_EVERY / 2 && known.cx.up.contains(&from) {
            self.asked = now;
            self.links_asked.insert(from, now);
            self.wanted = self.wanted.wrapping_add(nodes.len());
            known.cx.send(from, Message::WantLives(nodes));
        }
    }
}

fn links_of(known: &Known) -> u16 {
    u16::try_from(known.cx.up.len()).unwrap_or(u16::MAX)
}

/// A link has not heard of these nodes, or of none of the mesh as this node knows it.
pub(super) fn on_asked(known: &mut Known, from: NodeId, asked: &[u64]) {
    let now = known.cx.now.mono;
    let nodes: Vec<NodeId> = if asked.is_empty() {
        known.live.roll().nodes.clone()
    } else {
        // Each once: an answer is longer than a question.
        let asked: BTreeSet<u64> = asked.iter().copied().collect();
        asked.into_iter().filter_map(|name| known.live.named(name)).collect()
    };
    let named: Vec<Life> = nodes.iter().filter_map(|node| known.live.life(now, *node)).collect();
    for node in nodes.iter().filter(|_| !asked.is_empty()) {
        let lives = known.live.life(now, *node).is_some();
        if let Some(signed) = known.live.signed(*node).cloned().filter(|_| lives) {
            known.cx.send(from, Message::Beacon(signed));
        }
    }
    if !named.is_empty() {
        let (roll, counts, links) = (known.live.roll().digest, Vec::new(), links_of(known));
        known.cx.send(from, Message::Lives { roll, counts, named, links });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_link_is_told_all_the_time_and_not_by_all_at_once() {
        let all: BTreeSet<NodeId> = (0..60).map(|nth| NodeId([nth; 32])).collect();
        let mut turns: BTreeMap<NodeId, Hearsay> =
            all.iter().map(|node| (*node, Hearsay::default())).collect();
        // More than a round.
        for _ in 0..2 * all.len() / HEARSAY_LINKS {
            let mut told: BTreeMap<NodeId, usize> = BTreeMap::new();
            for (me, hearsay) in &mut turns {
                let mut up = all.clone();
                up.remove(me);
                for link in hearsay.next(*me, &up) {
                    *told.entry(link).or_default() += 1;
                }
            }
            assert_eq!(told.len(), all.len());
            assert!(told.values().all(|times| *times <= 2 * HEARSAY_LINKS), "{told:?}");
        }
    }
}
