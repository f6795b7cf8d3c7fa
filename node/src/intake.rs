//! Everything that the network brings, checked before anybody else sees it.
//!
//! One thread takes it from the network; signatures are checked by a few others. Peers take turns,
//! and of one peer one thing is checked at a time, so that its frames stay in order between its
//! `Up` and its `Down`. That it lives a peer says past all of that.

mod desk;
mod halves;
mod questions;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    thread,
    time::Instant,
};

use bytes::Bytes;
use mesh::{
    Input,
    name::id::{MeshId, NodeId},
    wire::{
        message::{BadMessage, Message, Signed, traits::Answer},
        run::Verified,
    },
};
use net::{Inbox, Incoming, Net, PeerAddress, Reason, Share, Ticket, Verdict};
use tokio::sync::mpsc;

use crate::{
    beacon::Connected,
    clock::Clock,
    clocks::Clocks,
    limits::{BEACON_BYTES_MAX, VERIFIERS},
    metrics::meters::Meters,
    queue::{Closed, Queue},
};
use desk::Desk;
pub(crate) use questions::Questions;

/// Where things go.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    pub(crate) mesh: MeshId,
    pub(crate) net: Net,
    pub(crate) queue: Arc<Queue>,
    pub(crate) connected: Arc<Connected>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) clock: Clock,
    /// Addresses worth remembering.
    pub(crate) learned: mpsc::Sender<PeerAddress>,
    /// How much each peer has asked.
    pub(crate) questions: Arc<Mutex<Questions>>,
}

/// For one peer, in order.
#[derive(Debug)]
enum Job {
    Up,
    Down,
    Frame { payload: Bytes, share: Share },
    Gossip { payload: Bytes, ticket: Ticket, share: Share },
}

impl Intake {
    /// `from`: the network, the queue to which its messages go, and the peers that are connected. `to`: the counts, and the
    /// clocks of peers.
    pub(crate) fn new(
        mesh: MeshId,
        from: (Net, Arc<Queue>, Arc<Connected>),
        to: (Arc<Meters>, Arc<Clocks>),
        learned: mpsc::Sender<PeerAddress>,
    ) -> Intake {
        let ((net, queue, connected), (meters, clocks)) = (from, to);
        let (clock, questions) = (Clock::start(), Arc::default());
        Intake { mesh, net, queue, connected, meters, clocks, clock, learned, questions }
    }

    /// Starts the threads. They end with the network, or with the queue.
    pub(crate) fn start(self, mut inbox: Inbox) -> std::io::Result<()> {
        let desk = Arc::new(Desk::default());
        for index in 0..VERIFIERS {
            let (desk, verifier) = (desk.clone(), self.clone());
            let name = format!("verifier-{index}");
            thread::Builder::new().name(name).spawn(move || verifier.verify_all(&desk))?;
        }
        thread::Builder::new().name("intake".to_owned()).spawn(move || {
            while let Some(incoming) = inbox.blocking_recv() {
                self.sort(incoming, &desk);
                if desk.is_closed() {
                    break;
                }
            }
            desk.close();
        })?;
        Ok(())
    }

    /// Shares bound what waits here.
    fn sort(&self, incoming: Incoming, desk: &Desk<Job>) {
        let (from, job) = match incoming {
            Incoming::Up(peer) => (peer, Job::Up),
            Incoming::Down(peer) => (peer, Job::Down),
            Incoming::Frame { from, payload, share } => {
                let Some(beacon) = sign_of_life(NodeId(from), &payload, self.mesh) else {
                    return desk.put(NodeId(from), Job::Frame { payload, share });
                };
                self.note_clock(&beacon);
                // There is nothing to check, and a beacon is not to wait behind other messages of
                // its peer.
                self.meters.received.frames.fetch_add(payload.len() as u64, Ordering::Relaxed);
                let input = Input::Message { from: NodeId(from), message: beacon };
                if self.queue.push_frame(NodeId(from), input, payload.len(), Some(share)).is_err() {
                    desk.close();
                }
                return;
            }
            Incoming::Gossip { from, topic: _, payload, ticket, share } => {
                (from, Job::Gossip { payload, ticket, share })
            }
            Incoming::Learned(address) => {
                // Full: it is learned again with the next connection.
                drop(self.learned.try_send(address));
                return;
            }
        };
        desk.put(NodeId(from), job);
    }

    fn note_clock(&self, beacon: &Message<Verified>) {
        let Message::Beacon(Signed { value, .. }) = beacon else { return };
        let ours = self.clock.now().wall_ms;
        self.clocks.hear(value.node, value.wall_ms, ours, Instant::now());
    }

    fn verify_all(&self, desk: &Desk<Job>) {
        while let Some((from, job)) = desk.next() {
            let done = match job {
                Job::Up => {
                    self.connected.set(from, true);
                    tracing::info!("connected to node {}", from.short());
                    self.queue.push_frame(from, Input::PeerUp(from), 0, None)
                }
                Job::Down => {
                    self.connected.set(from, false);
                    tracing::info!("lost node {}", from.short());
                    self.queue.push_frame(from, Input::PeerDown(from), 0, None)
                }
                Job::Frame { payload, share } => self.frame(from, &payload, share),
                Job::Gossip { payload, ticket, share } => {
                    self.gossip(from, &payload, ticket, share);
                    Ok(())
                }
            };
            desk.done(from);
            if done.is_err() {
                return desk.close();
            }
        }
    }

    /// A message of a later version is not for us, and no fault.
    fn is_newer(&self, error: &BadMessage) -> bool {
        let newer = matches!(error, BadMessage::Newer);
        if newer {
            self.meters.kept_back.newer.fetch_add(1, Ordering::Relaxed);
        }
        newer
    }

    fn frame(&self, from: NodeId, payload: &[u8], share: Share) -> Result<(), Closed> {
        self.meters.received.frames.fetch_add(payload.len() as u64, Ordering::Relaxed);
        match self.read(from, payload) {
            Ok(None) => Ok(()),
            Ok(Some(message)) if !self.may_ask(from, &message) => Ok(()),
            Ok(Some(message)) => {
                let input = Input::Message { from, message };
                self.queue.push_frame(from, input, payload.len(), Some(share))
            }
            Err(error) if self.is_newer(&error) => Ok(()),
            Err(error) => {
                self.refuse(from, &error);
                Ok(())
            }
        }
    }

    /// Whether it is no question, or the peer may ask another one.
    fn may_ask(&self, from: NodeId, message: &Message<Verified>) -> bool {
        if message.traits().answer == Answer::None {
            return true;
        }
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(over) = questions.ask(from, Instant::now()) else { return true };
        drop(questions);
        self.meters.kept_back.unheard.fetch_add(1, Ordering::Relaxed);
        if let Some(fault) = over {
            self.net.penalise(from.0, Reason::Invalid, fault);
        }
        false
    }

    fn gossip(&self, from: NodeId, payload: &[u8], ticket: Ticket, share: Share) {
        self.meters.received.gossip.fetch_add(payload.len() as u64, Ordering::Relaxed);
        match self.read(from, payload) {
            // Nor is it relayed: nobody is to have the work that this node spares itself.
            Ok(None) => self.net.verdict(ticket, Verdict::Ignore),
            // No correct node says or relays it so: the peer that passes it on would be taken for
            // its author.
            Ok(Some(message)) if !message.may_be_gossiped() => {
                self.reject(from, ticket, "it is of a kind that is not gossiped");
            }
            Ok(Some(message)) => {
                // Relayed at once: whether this node has time for it is not the others' concern.
                self.net.verdict(ticket, Verdict::Accept);
                let input = Input::Gossip { from, message };
                if !self.queue.push_gossip(from, input, payload.len(), Some(share)) {
                    self.meters.kept_back.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Not relayed, for nobody knows here whether it is well signed.
            Err(error) if self.is_newer(&error) => self.net.verdict(ticket, Verdict::Ignore),
            Err(error) => self.reject(from, ticket, &error.to_string()),
        }
    }

    /// Counts against the peer, as `penalise` does for a frame.
    fn reject(&self, from: NodeId, ticket: Ticket, why: &str) {
        self.net.verdict(ticket, Verdict::Reject);
        self.meters.kept_back.refused.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(peer = %from.short(), why, "gossip is refused");
    }

    /// `None`: it is noise, and passed over.
    fn read(&self, from: NodeId, payload: &[u8]) -> Result<Option<Message<Verified>>, BadMessage> {
        let message = Message::decode(payload)?;
        if let Message::Runs(runs) = &message
            && !self.queue.noise.hears(from, runs)
        {
            self.meters.kept_back.noise.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        halves::verify(message, self.mesh).map(Some)
    }

    fn refuse(&self, from: NodeId, error: &BadMessage) {
        self.net.penalise(from.0, Reason::Invalid, &format!("a frame is refused: {error}"));
        self.meters.kept_back.refused.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(peer = %from.short(), %error, "a frame is refused");
    }
}

/// A beacon of the peer itself, over its own connection.
fn sign_of_life(from: NodeId, payload: &[u8], mesh: MeshId) -> Option<Message<Verified>> {
    if payload.len() > BEACON_BYTES_MAX {
        return None;
    }
    let read = Message::decode(payload).ok()?;
    let own = matches!(&read, Message::Beacon(it) if it.value.node == from);
    if own { read.verify_from(from, mesh).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use mesh::{
        Identity,
        name::digest::Digest,
        wire::{message::Beacon, run::Run},
    };

    use super::*;

    #[test]
    fn only_what_a_node_says_of_itself_goes_before_all_else() {
        let (mesh, own) = (MeshId([1; 16]), Identity::from_seed(&[3; 32]));
        let (boot, tick, most) = (u64::MAX, u64::MAX, u64::MAX);
        let it = Beacon {
            node: own.node_id(),
            boot,
            tick,
            roster: most,
            digest: Digest([255; 16]),
            records: [0; 16],
            wall_ms: most,
        };
        let message: Message<Run> = Message::Beacon(Signed::new(mesh, &own, it));
        let beacon = message.encode();
        assert!(beacon.len() <= BEACON_BYTES_MAX, "{} bytes", beacon.len());
        assert!(sign_of_life(own.node_id(), &beacon, mesh).is_some());
        assert!(sign_of_life(NodeId([9; 32]), &beacon, mesh).is_none(), "of another");
        let probe = Message::<Run>::Probe { node: own.node_id() }.encode();
        assert!(
            sign_of_life(own.node_id(), &probe, mesh).is_none(),
            "it is to be answered in its turn"
        );
        assert!(sign_of_life(own.node_id(), b"hello", mesh).is_none(), "no message: a fault");
    }
}
