//! Frames to peers. Most go straight to the network; answers from the store are read on a thread of
//! their own, and later frames to the same peer wait behind them.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    thread,
};

use bridge::Hub;
use mesh::{
    name::id::{MeshId, NodeId, RoomId},
    wire::{
        carry::CarriedAt,
        copies::{Copied, CopyOf},
        message::{Head, Message, Span},
        record::RecordKey,
        replaced::WantedReplaced,
    },
};
use net::Net;
use store::{
    ReadError, Reader, carried,
    copies::{self, Holding},
    records::{self, Shelf},
    replaced,
};

use crate::{
    clock::wall_ms,
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
    /// For bytes apart: those that are here, and those that are known not to be.
    Contents(Shelf, Vec<RecordKey>, Vec<RecordKey>),
    /// For states that records have replaced.
    Replaced(MeshId, WantedReplaced),
    /// For copies of messages.
    Copies(RoomId, Vec<Copied>),
    /// The fate of a message: the nonce of the question, and the message.
    Receipt(RoomId, u64, Copied),
    /// For things that are carried for the peer.
    Carried(Vec<CarriedAt>),
    /// Entries that the peer is to carry.
    HandOver(RoomId, Vec<Span>),
    /// Records that the peer is to carry, or (`true`) records with their bytes apart.
    HandOverRecords(RoomId, (Shelf, Vec<RecordKey>), bool),
}

/// A message that begins with a read of the store.
#[derive(Debug)]
enum Read {
    Answer(Question),
    /// This node asks for copies of these.
    AskCopies(RoomId, Vec<CopyOf>),
    /// This node asks, with this nonce, for the fate of this message.
    AskReceipt(RoomId, u64, CopyOf),
}

#[derive(Debug)]
enum Outbound {
    Load(Read),
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
        (reader, hub): (Reader, Arc<Hub>),
        meters: Arc<Meters>,
        ending: &Ending,
    ) -> std::io::Result<Outgoing> {
        let net = Sender { net, meters };
        let waiting = Arc::new(Waiting::default());
        let ending = ending.clone();
        let worker = Worker { net: net.clone(), reader, hub, waiting: waiting.clone() };
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
        self.push(self.waiting.locked(), to, Outbound::Load(Read::Answer(asked)));
    }

    /// Asks a peer for copies of messages, as they are in the store. Never waits.
    pub(crate) fn ask_copies(&self, to: NodeId, room: RoomId, copies: Vec<CopyOf>) {
        self.push(self.waiting.locked(), to, Outbound::Load(Read::AskCopies(room, copies)));
    }

    /// Asks a peer the fate of a message. Never waits.
    pub(crate) fn ask_receipt(&self, to: NodeId, room: RoomId, (nonce, copy): (u64, CopyOf)) {
        self.push(self.waiting.locked(), to, Outbound::Load(Read::AskReceipt(room, nonce, copy)));
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
    /// It knows what clients were given.
    hub: Arc<Hub>,
    waiting: Arc<Waiting>,
}

impl Worker {
    fn run(&self) -> Result<(), ReadError> {
        while let Some((to, job)) = self.waiting.next() {
            let bytes = job.bytes();
            match job {
                Outbound::Frame(frame) => self.net.send(to, frame),
                Outbound::Load(read) => {
                    if let Some(message) = self.load(read)? {
                        self.net.send(to, message.encode());
                    }
                }
            }
            self.waiting.done(to, bytes);
        }
        Ok(())
    }

    /// `None`: there is nothing to be said.
    fn load(&self, read: Read) -> Result<Option<Message>, ReadError> {
        let reader = &self.reader;
        match read {
            Read::Answer(Question::Spans(room, spans)) => {
                reader.answer_spans(room, &spans).map(Some)
            }
            Read::Answer(Question::Bodies(room, at)) => reader.answer_bodies(room, &at).map(Some),
            Read::Answer(Question::Records(shelf, keys)) => {
                records::answer(reader, &shelf, &keys).map(Some)
            }
            Read::Answer(Question::Contents(shelf, keys, lacking)) => {
                records::contents(reader, &shelf, &keys, lacking).map(Some)
            }
            Read::Answer(Question::Replaced(mesh, wanted)) => {
                replaced::answer(reader, mesh, &wanted, wall_ms()).map(Some)
            }
            Read::Answer(Question::Carried(at)) => carried::give_on(reader, &at),
            Read::Answer(Question::HandOver(room, spans)) => {
                carried::hand_over(reader, room, &spans)
            }
            Read::Answer(Question::HandOverRecords(room, (shelf, keys), false)) => {
                carried::hand_over_records(reader, room, (&shelf, &keys))
            }
            Read::Answer(Question::HandOverRecords(room, (shelf, keys), true)) => {
                carried::hand_over_whole(reader, room, (&shelf, &keys))
            }
            Read::Answer(Question::Copies(room, asked)) => copies::answer(reader, room, &asked),
            Read::AskCopies(room, wanted) => copies::ask(reader, room, &wanted),
            Read::AskReceipt(room, nonce, copy) => copies::ask_receipt(reader, nonce, room, copy),
            Read::Answer(Question::Receipt(room, nonce, copied)) => {
                let Holding { held, delivered } = copies::holding(reader, room, &copied)?;
                let agents = delivered.map(|number| self.hub.given(room, number));
                let agents = agents.unwrap_or_default();
                Ok(Some(Message::Receipt { nonce, held, agents }))
            }
        }
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
