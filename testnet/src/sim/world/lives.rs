//! Connections that come and go, and nodes that do.

use std::time::Duration;

use mesh::{Input, name::id::NodeId};

use super::{Event, World, pair};
use crate::sim::promises::Broken;

/// How long a lost connection takes to be noticed, at most.
const NOTICE_MS_MAX: u64 = 1_500;
/// How many ways a connection takes to be made: TCP, the pre-shared key, Noise, multiplexing, streams, and the frames
/// that say who is there.
const SETUP_WAYS: u64 = 12;
/// What is under way to whoever is shut out still gets there: it is told that it is out.
const SHUT_OUT_AFTER: Duration = Duration::from_millis(500);

impl World {
    // Connections.

    /// One link breaks, or is there again.
    pub(in crate::sim) fn link(&mut self, (a, b): (usize, usize), broken: bool) {
        self.network.link(a, b, broken);
        self.notice_all();
    }

    pub(in crate::sim) fn notice_all(&mut self) {
        for a in 0..self.nodes.len() {
            for b in a + 1..self.nodes.len() {
                let wait = self.dice.within(1, NOTICE_MS_MAX);
                self.after(Duration::from_millis(wait), Event::Notice { a, b });
            }
        }
    }

    /// Engines take nothing from whom they shut out, whatever the network does: it closes the connection where a parting
    /// was planned. Otherwise all can connect here, whichever secret they have.
    pub(super) fn shut_out(&mut self, node: usize, out: NodeId) {
        if self.plan.parting.is_some()
            && let Some(out) = self.index(out)
        {
            self.after(SHUT_OUT_AFTER, Event::Shut { a: node, b: out });
        }
    }

    pub(super) fn shut(&mut self, a: usize, b: usize) {
        self.network.shut(a, b);
        self.notice(a.min(b), a.max(b));
    }

    pub(super) fn notice(&mut self, a: usize, b: usize) {
        let up = self.nodes[a].running.is_some() && self.nodes[b].running.is_some();
        let connects = up && self.network.connects(a, b);
        if connects == self.connected.contains(&(a, b)) {
            return;
        }
        let (id_a, id_b) = (self.nodes[a].id, self.nodes[b].id);
        if connects {
            self.connected.insert((a, b));
            self.give(a, Input::PeerUp(id_b));
            self.give(b, Input::PeerUp(id_a));
        } else {
            self.connected.remove(&(a, b));
            self.give(a, Input::PeerDown(id_b));
            self.give(b, Input::PeerDown(id_a));
        }
    }

    // Lives.

    pub(in crate::sim) fn start(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].running.is_some() {
            return Ok(());
        }
        self.say(|| format!("node{node}: starts"));
        self.nodes[node].start(self.now);
        let judged = !self.exempt.contains(&self.nodes[node].id);
        for (room, mut stored) in self.nodes[node].deliveries().into_iter().filter(|_| judged) {
            stored.extend(self.deliveries_dropped(node, room));
            self.promises.restarted(self.nodes[node].id, room, &stored)?;
        }
        self.wakes[node] = None;
        self.wake(node, self.now);
        for other in 0..self.nodes.len() {
            if other != node {
                let (a, b) = pair(node, other);
                // A connection is some round trips.
                let far = SETUP_WAYS * self.network.weather.delay_ms;
                let wait = self.dice.within(1, 300) + far;
                self.after(Duration::from_millis(wait), Event::Notice { a, b });
            }
        }
        self.ask_who_leads(node);
        self.attach_agents(node);
        self.roam_back(node)
    }

    /// A node is not there any more: its connections break at once.
    pub(super) fn went_down(&mut self, node: usize) {
        self.agents.node_down(node);
        self.votes.node_down(node);
        for room in self.promises.ephemeral.clone() {
            self.votes.forgot(node, room);
        }
        self.elections.node_down(node);
        self.tasks.node_down(node);
        self.holders.node_down(node);
        self.script.node_down(node);
        self.promises.node_down(self.nodes[node].id);
        let now = self.now;
        self.roamers.iter_mut().for_each(|it| it.node_down(node, now));
        for other in 0..self.nodes.len() {
            let (a, b) = pair(node, other);
            if other != node && self.connected.remove(&(a, b)) {
                let gone = self.nodes[node].id;
                self.give(other, Input::PeerDown(gone));
            }
        }
    }

    pub(super) fn stopped(&mut self, node: usize) {
        self.say(|| format!("node{node}: stopped in good order"));
        self.nodes[node].exit();
        self.roamers.iter_mut().for_each(|it| it.keep(node));
        self.went_down(node);
        if self.restarting.remove(&node) {
            let wait = if self.quiet { 0 } else { self.dice.within(50, 3_000) };
            self.after(Duration::from_millis(wait), Event::Start { node });
        }
    }

    /// A node comes back with another disk. Its own promises are off from then on.
    pub(in crate::sim) fn replace_disk(&mut self, node: usize, image: Vec<u8>) {
        self.exempt.insert(self.nodes[node].id);
        self.nodes[node].restore(image);
        self.went_down(node);
        self.start(node).expect("a copy opens");
    }
}
