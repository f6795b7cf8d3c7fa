//! Beacons: that this node lives, said by a thread that waits for nothing but the time.
//!
//! To each peer directly, which does not depend on gossip, and by gossip, which reaches everybody:
//! now and then only while all who live are peers and nothing waits for them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use bytes::Bytes;
use mesh::{
    Identity,
    limits::BEACON_EVERY,
    name::id::{MeshId, NodeId},
    order::pulse::{Beat, Pulse, Rhythm},
    wire::{
        message::{Message, Signed},
        run::Run,
    },
};
use net::Net;

use crate::{clock::Clock, topics::ALL_NODES};

/// The content of beacons; `None` until the engine has set it, and while the disk is full: a node
/// that cannot write anything does not live for others.
#[derive(Debug, Default)]
pub(crate) struct PulseCell(Mutex<Option<Pulse>>);

impl PulseCell {
    pub(crate) fn set(&self, pulse: Pulse) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(pulse);
    }

    /// No beacons until it is set again; returns what it was.
    pub(crate) fn stop(&self) -> Option<Pulse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn get(&self) -> Option<Pulse> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The peers that are up.
#[derive(Debug, Default)]
pub(crate) struct Connected(Mutex<BTreeSet<NodeId>>);

impl Connected {
    pub(crate) fn set(&self, peer: NodeId, up: bool) {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if up {
            peers.insert(peer);
        } else {
            peers.remove(&peer);
        }
    }

    fn all(&self) -> Vec<NodeId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Stops the beacons when it is dropped.
#[derive(Debug)]
pub(crate) struct Beacons {
    stop: Arc<AtomicBool>,
    thread: thread::Thread,
}

impl Drop for Beacons {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// The tools of the thread.
#[derive(Debug)]
pub(crate) struct Heart {
    pub(crate) mesh: MeshId,
    pub(crate) identity: Identity,
    pub(crate) pulse: Arc<PulseCell>,
    pub(crate) connected: Arc<Connected>,
    pub(crate) net: Net,
    pub(crate) clock: Clock,
}

impl Heart {
    pub(crate) fn start(self) -> std::io::Result<Beacons> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread =
            thread::Builder::new().name("beacons".to_owned()).spawn(move || self.run(&seen))?;
        Ok(Beacons { stop, thread: thread.thread().clone() })
    }

    fn run(&self, stop: &AtomicBool) {
        let mut rhythm = Rhythm::default();
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now < next {
                thread::park_timeout(next - now);
                continue;
            }
            // Not `next + BEACON_EVERY`: after a pause one beacon is enough.
            next = now + BEACON_EVERY;
            let pulse = self.pulse.get();
            let (me, wall_ms) = (self.identity.node_id(), self.clock.now().wall_ms);
            if let Some(beat) = pulse.and_then(|pulse| rhythm.beat(me, pulse, wall_ms)) {
                self.say(beat);
            }
        }
    }

    fn say(&self, Beat { beacon, gossiped, or_if_waiting }: Beat) {
        // One for links alone is not signed: they know its sender, and nobody is to be able to gossip it when that is gone.
        let signed = if gossiped || or_if_waiting {
            Signed::new(self.mesh, &self.identity, beacon)
        } else {
            Signed::unsigned(beacon)
        };
        let message: Message<Run> = Message::Beacon(signed);
        let bytes = Bytes::from(message.encode());
        let peers = self.connected.all();
        // Queued frames go before a peer's beacon; gossip takes another way.
        let waits = peers.iter().any(|peer| !self.net.has_sent(&peer.0));
        // The next beacon makes good for one that is lost.
        for peer in peers {
            let _ = self.net.send(&peer.0, bytes.clone());
        }
        if gossiped || waits && or_if_waiting {
            let _ = self.net.publish(ALL_NODES, bytes);
        }
    }
}
