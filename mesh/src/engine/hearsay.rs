//! Life by hearsay, in a mesh in which not all nodes are linked: links are told of which nodes there are news, and asked for
//! beacons of those that were not heard here.

use std::{collections::BTreeSet, time::Duration};

use super::known::Known;
use crate::{
    limits::{BEACON_EVERY, HEARSAY_LINKS, LIVES_ASKED_MAX},
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
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Hearsay {
    /// When links were told last, and the last of them.
    told: Duration,
    last: Option<NodeId>,
    /// When a link was asked last.
    asked: Duration,
}

impl Hearsay {
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        if !known.live.is_large() || now < self.told + BEACON_EVERY {
            return;
        }
        self.told = now;
        let (roll, counts) = (known.live.roll().digest, known.live.counts(now));
        for peer in self.next(&known.cx.up) {
            let (counts, named) = (counts.clone(), Vec::new());
            known.cx.send(peer, Message::Lives { roll, counts, named });
        }
        for node in known.live.missed(now) {
            if known.live.call(now, node) {
                call(&mut known.cx, node);
            }
        }
    }

    /// The links whose turn it is.
    fn next(&mut self, up: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let later = up.iter().filter(|peer| self.last.is_none_or(|last| **peer > last));
        let again = up.iter().filter(|peer| self.last.is_some_and(|last| **peer <= last));
        let next: Vec<NodeId> = later.chain(again).take(HEARSAY_LINKS).copied().collect();
        self.last = next.last().copied();
        next
    }

    /// A link has news.
    pub(super) fn on_told(&mut self, known: &mut Known, from: NodeId, told: &Told) {
        let now = known.cx.now.mono;
        for life in &told.named {
            if let Some(node) = known.live.named(life.name) {
                known.live.reached(now, node, life.boot, life.tick);
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
                Heeded::Called => call(&mut known.cx, node),
            }
        }
        if !unsure.is_empty() {
            unsure.truncate(LIVES_ASKED_MAX);
            self.ask(known, from, unsure);
        }
    }

    fn ask(&mut self, known: &mut Known, from: NodeId, nodes: Vec<u64>) {
        let now = known.cx.now.mono;
        // Each link tells it again.
        if now >= self.asked + BEACON_EVERY / 2 {
            self.asked = now;
            known.cx.send(from, Message::WantLives(nodes));
        }
    }
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
        let (roll, counts) = (known.live.roll().digest, Vec::new());
        known.cx.send(from, Message::Lives { roll, counts, named });
    }
}
