//! Frames to peers. Most go straight to the network; answers from the store are read on a thread of
//! their own, and later frames to the same peer wait behind them.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    thread,
};

use mesh::{
    name::id::{NodeId, RoomId},
    wire::{
        message::{Head, Span},
        record::RecordKey,
    },
};
use net::Net;
use store::{
    ReadError, Reader,
    records::{self, Shelf},
};

use crate::{
    ending::{End, Ending},
    fair::Fair,
    limits::{ANSWER_BYTES_MAX, ANSWERS_MAX, ANSWERS_PER_PEER_MAX},
    metrics::meters::Meters,
};

/// The driver's end.
#[derive(Debug)]
pub(crate) struct Outgoing {
    net: Sender,
    waiting: Arc<Waiting>,
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.waiting.locked().closed = true;
        self.waiting.work.notify_all();
    }
}

/// A question of a peer.
#[derive(Debug)]
pub(crate) enum Question {
    Spans(RoomId, Vec<Span>),
    Bodies(RoomId, Vec<Head>),
    Records(Shelf, Vec<RecordKey>),
}

#[derive(Debug)]
enum Outbound {
    Load(Question),
    Frame(Vec<u8>),
}

/// Jobs that wait for the thread or are in its hands, by peer; they take turns.
#[derive(Debug, Default)]
struct Waiting {
    held: Mutex<Backlog>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct Backlog {
    jobs: Fair<Outbound>,
    /// Whose job the thread has in its hands.
    serving: Option<NodeId>,
    bytes: usize,
    closed: bool,
}

impl Backlog {
    fn has(&self, peer: NodeId) -> bool {
        self.serving == Some(peer) || self.jobs.len_of(peer) > 0
    }
}

impl Outgoing {
    /// Starts the thread. It ends when this is dropped.
    pub(crate) fn start(
        net: Net,
        reader: Reader,
        meters: Arc<Meters>,
        ending: &Ending,
    ) -> std::io::Result<Outgoing> {
        let net = Sender { net, meters };
        let waiting = Arc::new(Waiting::default());
        let ending = ending.clone();
        let worker = Worker { net: net.clone(), reader, waiting: waiting.clone() };
        thread::Builder::new().name("answers".to_owned()).spawn(move || {
            if let Err(error) = worker.run() {
                ending.say(End::Failed(anyhow::Error::new(error).context("read the store")));
            }
        })?;
        Ok(Outgoing { net, waiting })
    }

    /// Sends a frame, if the peer is there and keeps up. Never waits.
    pub(crate) fn send(&self, to: NodeId, frame: Vec<u8>) {
        let held = self.waiting.locked();
        if held.has(to) {
            if held.bytes + frame.len() <= ANSWER_BYTES_MAX {
                self.push(held, to, Outbound::Frame(frame));
            }
            return;
        }
        drop(held);
        self.net.send(to, frame);
    }

    /// Answers a peer from the store. Never waits.
    pub(crate) fn answer(&self, to: NodeId, asked: Question) {
        self.push(self.waiting.locked(), to, Outbound::Load(asked));
    }

    fn push(&self, mut held: MutexGuard<'_, Backlog>, to: NodeId, job: Outbound) {
        if held.jobs.len() >= ANSWERS_MAX || held.jobs.len_of(to) >= ANSWERS_PER_PEER_MAX {
            tracing::debug!(peer = %to.short(), "too many answers wait; one is dropped");
            return;
        }
        held.bytes += job.bytes();
        held.jobs.push(to, job);
        drop(held);
        self.waiting.work.notify_one();
    }
}

impl Outbound {
    /// As far as they count.
    fn bytes(&self) -> usize {
        match self {
            Outbound::Load(_) => 0,
            Outbound::Frame(frame) => frame.len(),
        }
    }
}

impl Waiting {
    fn locked(&self) -> MutexGuard<'_, Backlog> {
        // Nothing that is done under the lock can leave it half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job. `None`: there will be none.
    fn next(&self) -> Option<(NodeId, Outbound)> {
        let idle = |held: &mut Backlog| !held.jobs.has_next() && !held.closed;
        let mut held =
            self.work.wait_while(self.locked(), idle).unwrap_or_else(PoisonError::into_inner);
        let next = held.jobs.next()?;
        held.serving = Some(next.0);
        Some(next)
    }

    fn done(&self, to: NodeId, bytes: usize) {
        let mut held = self.locked();
        held.bytes -= bytes;
        held.serving = None;
        held.jobs.served(to);
    }
}

struct Worker {
    net: Sender,
    reader: Reader,
    waiting: Arc<Waiting>,
}

impl Worker {
    fn run(&self) -> Result<(), ReadError> {
        while let Some((to, job)) = self.waiting.next() {
            let bytes = job.bytes();
            match job {
                Outbound::Frame(frame) => self.net.send(to, frame),
                Outbound::Load(asked) => {
                    let message = match asked {
                        Question::Spans(room, spans) => self.reader.answer_spans(room, &spans)?,
                        Question::Bodies(room, at) => self.reader.answer_bodies(room, &at)?,
                        Question::Records(shelf, keys) => {
                            records::answer(&self.reader, &shelf, &keys)?
                        }
                    };
                    self.net.send(to, message.encode());
                }
            }
            self.waiting.done(to, bytes);
        }
        Ok(())
    }
}

/// The network, and counters of the bytes that it takes.
#[derive(Clone, Debug)]
struct Sender {
    net: Net,
    meters: Arc<Meters>,
}

impl Sender {
    /// If the network does not take it the peer is gone or slow, and asks again.
    fn send(&self, to: NodeId, frame: Vec<u8>) {
        let bytes = frame.len() as u64;
        match self.net.send(&to.0, frame.into()) {
            Ok(()) => {
                self.meters.sent.frames.fetch_add(bytes, Relaxed);
            }
            Err(error) => tracing::trace!(peer = %to.short(), %error, "a frame is not sent"),
        }
    }
}
