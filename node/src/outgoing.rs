//! Frames to peers. Most go straight to the network; what has to be read from the store first is read
//! on a thread of its own, and whatever follows to the same peer waits behind it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use mesh::{
    id::{NodeId, RoomId},
    message::{Head, Span},
};
use net::Net;
use store::{ReadError, Reader};

use crate::{
    driver::{End, Ending},
    limits::{ANSWER_BYTES_MAX, ANSWERS_MAX},
    metrics::Meters,
};

/// The driver's end.
#[derive(Debug)]
pub(crate) struct Outgoing {
    net: Sender,
    jobs: SyncSender<(NodeId, Job)>,
    waiting: Arc<Waiting>,
}

/// What one peer asked for.
#[derive(Debug)]
pub(crate) enum Asked {
    Spans(Vec<Span>),
    Bodies(Vec<Head>),
}

#[derive(Debug)]
enum Job {
    Load(RoomId, Asked),
    Frame(Vec<u8>),
}

/// What is on its way to the thread or in its hands, by peer.
#[derive(Debug, Default)]
struct Waiting(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    jobs: HashMap<NodeId, usize>,
    bytes: usize,
}

impl Outgoing {
    /// Starts the thread. It ends when this is dropped.
    pub(crate) fn start(
        net: Net,
        (reader, meters): (Reader, Arc<Meters>),
        ending: &Ending,
    ) -> std::io::Result<Outgoing> {
        let net = Sender { net, meters };
        let (jobs, queue) = sync_channel(ANSWERS_MAX);
        let waiting = Arc::new(Waiting::default());
        let ending = ending.clone();
        let worker = Worker { net: net.clone(), reader, waiting: waiting.clone() };
        thread::Builder::new().name("answers".to_owned()).spawn(move || {
            if let Err(error) = worker.run(&queue) {
                ending.say(End::Failed(anyhow::Error::new(error).context("read the store")));
            }
        })?;
        Ok(Outgoing { net, jobs, waiting })
    }

    /// Sends a frame, if the peer is there and keeps up. Never waits.
    pub(crate) fn send(&self, to: NodeId, frame: Vec<u8>) {
        let mut held = self.waiting.locked();
        if held.jobs.contains_key(&to) {
            if held.bytes + frame.len() <= ANSWER_BYTES_MAX {
                held.bytes += frame.len();
                self.push(held, to, Job::Frame(frame));
            }
            return;
        }
        drop(held);
        self.net.send(to, frame);
    }

    /// Answers a peer from the store. Never waits.
    pub(crate) fn answer(&self, to: NodeId, room: RoomId, asked: Asked) {
        self.push(self.waiting.locked(), to, Job::Load(room, asked));
    }

    fn push(&self, mut held: MutexGuard<'_, Held>, to: NodeId, job: Job) {
        let bytes = job.bytes();
        // Counted first: the thread may be done with it before this returns.
        *held.jobs.entry(to).or_default() += 1;
        drop(held);
        if self.jobs.try_send((to, job)).is_err() {
            tracing::debug!(peer = %to.short(), "too many answers wait; one is dropped");
            self.waiting.done(to, bytes);
        }
    }
}

impl Job {
    /// As far as they count.
    fn bytes(&self) -> usize {
        match self {
            Job::Load(..) => 0,
            Job::Frame(frame) => frame.len(),
        }
    }
}

impl Waiting {
    fn locked(&self) -> MutexGuard<'_, Held> {
        // Nothing that is done under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, to: NodeId, bytes: usize) {
        let mut held = self.locked();
        held.bytes -= bytes;
        if let Some(jobs) = held.jobs.get_mut(&to) {
            *jobs -= 1;
            if *jobs == 0 {
                held.jobs.remove(&to);
            }
        }
    }
}

struct Worker {
    net: Sender,
    reader: Reader,
    waiting: Arc<Waiting>,
}

impl Worker {
    fn run(&self, queue: &Receiver<(NodeId, Job)>) -> Result<(), ReadError> {
        while let Ok((to, job)) = queue.recv() {
            let bytes = job.bytes();
            match job {
                Job::Frame(frame) => self.net.send(to, frame),
                Job::Load(room, asked) => {
                    let message = match asked {
                        Asked::Spans(spans) => self.reader.answer_spans(room, &spans)?,
                        Asked::Bodies(at) => self.reader.answer_bodies(room, &at)?,
                    };
                    self.net.send(to, message.encode());
                }
            }
            self.waiting.done(to, bytes);
        }
        Ok(())
    }
}

/// The network, and who counts what it takes.
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
