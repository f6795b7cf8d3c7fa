//! Nodes that start, live and stop.

use std::time::Duration;

use mesh::{
    order::pulse::{Beat, Rhythm},
    wire::message::{Message, Signed},
};

use super::World;
use crate::sim::{network::Way, promises::Broken, timeline::Event};

impl World {
    pub(crate) fn start(&mut self, node: usize) -> Result<(), Broken> {
        let cluster = &mut self.cluster;
        if cluster.nodes[node].running.is_some() || cluster.nodes[node].is_lost() {
            return Ok(());
        }
        cluster.say(|| format!("node{node}: starts"));
        let now = cluster.now();
        cluster.nodes[node].start(now);
        if !cluster.is_exempt(node) {
            let id = cluster.nodes[node].id;
            for (room, mut stored) in cluster.nodes[node].deliveries() {
                stored.extend(self.bodies().dropped_at(node, room));
                self.promises.restarted(id, room, &stored)?;
            }
        }
        self.holders.letters_are_there(&mut self.cluster, node)?;
        self.correspondents.node_is_back(&mut self.cluster, node)?;
        let cluster = &mut self.cluster;
        cluster.begin_life(node);
        cluster.connect(node);
        self.elections.node_up(cluster, node);
        self.agents.node_up(cluster, node);
        self.roamers.node_up(cluster, node)
    }

    /// A node is not there any more: its connections break at once.
    pub(crate) fn went_down(&mut self, node: usize) {
        let (cluster, parts) = self.parts_mut();
        parts.into_iter().for_each(|part| part.node_down(cluster, node));
        self.promises.node_down(self.cluster.nodes[node].id, &self.cluster.rooms.ephemeral);
        self.cluster.disconnect(node);
    }

    pub(super) fn stopped(&mut self, node: usize) {
        self.cluster.say(|| format!("node{node}: stopped in good order"));
        self.cluster.nodes[node].exit();
        self.roamers.keep(node);
        self.went_down(node);
        if self.operators.take_restarting(node) {
            let quiet = self.cluster.quiet;
            let wait = if quiet { 0 } else { self.cluster.dice.within(50, 3_000) };
            self.cluster.after(Duration::from_millis(wait), Event::Start { node });
        }
    }

    /// A node comes back with another disk. Its own promises are off from then on.
    pub(crate) fn replace_disk(&mut self, node: usize, image: Vec<u8>) {
        self.cluster.exempt.insert(self.cluster.nodes[node].id);
        self.cluster.nodes[node].restore(image);
        self.went_down(node);
        self.start(node).expect("a copy opens");
        // Its records may be older than those that it had.
        self.holders.records_are_restored(&self.cluster, node);
    }

    // Signs of life.

    pub(super) fn begin_beating(&mut self, node: usize) {
        let life = self.cluster.nodes[node].life;
        if let Some(running) = &mut self.cluster.nodes[node].running
            && running.rhythm.is_none()
        {
            running.rhythm = Some(Rhythm::default());
            self.cluster.after(Duration::ZERO, Event::Beat { node, life });
        }
    }

    pub(super) fn beat(&mut self, node: usize, life: u64) {
        let now = self.cluster.now();
        if self.cluster.nodes[node].life != life {
            return;
        }
        self.cluster.after(mesh::limits::BEACON_EVERY, Event::Beat { node, life });
        if self.cluster.nodes[node].paused_until > now {
            return;
        }
        let Some(Beat { beacon, gossiped, .. }) = self.cluster.nodes[node].beat() else { return };
        let mesh = self.cluster.secret.mesh_id();
        let signed = Signed::new(mesh, self.cluster.nodes[node].identity(), beacon);
        // By gossip and to each peer directly, as the daemon does.
        if gossiped {
            self.gossip(node, &Message::Beacon(signed.clone()));
        }
        let peers = self.cluster.peers(node);
        self.send(node, &peers, Way::Direct, &Message::Beacon(signed));
    }
}
