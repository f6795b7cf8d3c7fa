//! What the network brings, checked before anybody else sees it.
//!
//! One thread takes it from the network; signatures are checked by a few others, all of one peer's by
//! the same one, so that its frames stay in order between its `Up` and its `Down`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use bytes::Bytes;
use mesh::{
    Input,
    id::{MeshId, NodeId},
    message::{BadMessage, Message},
    run::Verified,
};
use net::{Inbox, Incoming, Net, PeerAddress, Reason, Ticket, Verdict};
use tokio::sync::mpsc;

use crate::{
    beacon::Connected,
    limits::{VERIFIER_QUEUE, VERIFIERS},
    metrics::Meters,
    queue::{Closed, Queue},
};

/// What became of messages, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Not of this protocol, or with a bad signature.
    pub(crate) refused: AtomicU64,
    /// Of a kind that only a later version knows: passed over.
    pub(crate) newer: AtomicU64,
    /// Gossip that came faster than the engine took it. It is asked for.
    pub(crate) dropped: AtomicU64,
}

/// Where things go.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    pub(crate) mesh: MeshId,
    pub(crate) net: Net,
    pub(crate) queue: Arc<Queue>,
    pub(crate) connected: Arc<Connected>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) meters: Arc<Meters>,
    /// Addresses worth remembering.
    pub(crate) learned: mpsc::Sender<PeerAddress>,
}

/// For one peer, in order.
#[derive(Debug)]
enum Job {
    Up(NodeId),
    Down(NodeId),
    Frame { from: NodeId, payload: Bytes },
    Gossip { from: NodeId, payload: Bytes, ticket: Ticket },
}

impl Intake {
    /// Starts the threads. They end with the network, or with the queue.
    pub(crate) fn start(self, mut inbox: Inbox) -> std::io::Result<()> {
        let mut verifiers = Vec::new();
        for index in 0..VERIFIERS {
            let (jobs, queue) = sync_channel(VERIFIER_QUEUE);
            let verifier = self.clone();
            let name = format!("verifier-{index}");
            thread::Builder::new().name(name).spawn(move || verifier.verify_all(&queue))?;
            verifiers.push(jobs);
        }
        thread::Builder::new().name("intake".to_owned()).spawn(move || {
            while let Some(incoming) = inbox.blocking_recv() {
                if self.sort(incoming, &verifiers).is_err() {
                    break;
                }
            }
        })?;
        Ok(())
    }

    fn sort(&self, incoming: Incoming, verifiers: &[SyncSender<Job>]) -> Result<(), Closed> {
        let (from, job) = match incoming {
            Incoming::Up(peer) => (peer, Job::Up(NodeId(peer))),
            Incoming::Down(peer) => (peer, Job::Down(NodeId(peer))),
            Incoming::Frame { from, payload } => (from, Job::Frame { from: NodeId(from), payload }),
            Incoming::Gossip { from, topic: _, payload, ticket } => {
                (from, Job::Gossip { from: NodeId(from), payload, ticket })
            }
            Incoming::Learned(address) => {
                // Full: it is learned again with the next connection.
                drop(self.learned.try_send(address));
                return Ok(());
            }
        };
        // Waits when it is busy: the network's inbox knows what may be dropped then.
        verifiers[usize::from(from[0]) % verifiers.len()].send(job).map_err(|_| Closed)
    }

    fn verify_all(&self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            let done = match job {
                Job::Up(peer) => {
                    self.connected.set(peer, true);
                    tracing::info!("connected to node {}", peer.short());
                    self.queue.put(Input::PeerUp(peer), 0)
                }
                Job::Down(peer) => {
                    self.connected.set(peer, false);
                    tracing::info!("lost node {}", peer.short());
                    self.queue.put(Input::PeerDown(peer), 0)
                }
                Job::Frame { from, payload } => self.frame(from, &payload),
                Job::Gossip { from, payload, ticket } => {
                    self.gossip(from, &payload, ticket);
                    Ok(())
                }
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// What a later version says is not for us, and no fault.
    fn is_newer(&self, error: &BadMessage) -> bool {
        let newer = matches!(error, BadMessage::Newer);
        if newer {
            self.counters.newer.fetch_add(1, Ordering::Relaxed);
        }
        newer
    }

    fn frame(&self, from: NodeId, payload: &[u8]) -> Result<(), Closed> {
        self.meters.received.frames.fetch_add(payload.len() as u64, Ordering::Relaxed);
        match self.read(payload) {
            Ok(message) => self.queue.put(Input::Message { from, message }, payload.len()),
            Err(error) if self.is_newer(&error) => Ok(()),
            Err(error) => {
                self.refuse(from, &error);
                Ok(())
            }
        }
    }

    fn gossip(&self, from: NodeId, payload: &[u8], ticket: Ticket) {
        self.meters.received.gossip.fetch_add(payload.len() as u64, Ordering::Relaxed);
        match self.read(payload) {
            Ok(message) => {
                // Relayed at once: whether this node has time for it is not the others' concern.
                self.net.verdict(ticket, Verdict::Accept);
                if !self.queue.offer(Input::Message { from, message }, payload.len()) {
                    self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Not relayed, for nobody knows here whether it is well signed.
            Err(error) if self.is_newer(&error) => self.net.verdict(ticket, Verdict::Ignore),
            Err(error) => {
                // Counts against the peer, as `penalise` does for a frame.
                self.net.verdict(ticket, Verdict::Reject);
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(peer = %from.short(), %error, "gossip is refused");
            }
        }
    }

    fn read(&self, payload: &[u8]) -> Result<Message<Verified>, BadMessage> {
        Message::decode(payload)?.verify(self.mesh)
    }

    fn refuse(&self, from: NodeId, error: &BadMessage) {
        self.net.penalise(from.0, Reason::Invalid);
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(peer = %from.short(), %error, "a frame is refused");
    }
}
