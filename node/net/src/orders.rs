//! Orders of the handle to the swarm task, and the state that both share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::address::{Address, PeerAddress, best_first};
use crate::book::Book;
use crate::identity::NodeId;
use crate::inbox::Ticket;
use crate::keys::Keys;
use crate::limits::STRIKES_MAX;
use crate::link::ControlHandle;
use crate::outbox::Outboxes;
use crate::twins::Twins;

/// The owner's verdict on a gossip message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Relay it, unless much is passed on already.
    Accept,
    /// Do not relay it; nobody is to blame (already known, not for us, too busy).
    Ignore,
    /// Do not relay it; the peer that passed it on should not have. Counts as a strike.
    Reject,
}

/// Why a peer is penalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One bad thing: [`crate::limits::STRIKES_MAX`] of them within
    /// [`crate::limits::STRIKES_WINDOW`] are too many.
    Invalid,
    /// No correct node does this: disconnected and refused at once.
    Hostile,
}

impl Reason {
    pub(crate) fn strikes(self) -> u32 {
        match self {
            Reason::Invalid => 1,
            Reason::Hostile => STRIKES_MAX,
        }
    }
}

/// State that handle and swarm task share.
#[derive(Debug)]
pub(crate) struct Shared {
    book: Mutex<Book>,
    pub(crate) outboxes: Outboxes,
    pub(crate) keys: Arc<Keys>,
    pub(crate) twins: Arc<Twins>,
    /// Opens streams.
    pub(crate) control: ControlHandle,
    listening: Mutex<Vec<SocketAddr>>,
    /// Where the owner says that others reach this node, besides where it listens.
    named: Vec<Address>,
    /// The task is to look at what the owner has changed here.
    pub(crate) changed: Notify,
    /// How often this machine was in another network than before.
    pub(crate) moved: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new(
        book: Book,
        keys: Arc<Keys>,
        (twins, control): (Arc<Twins>, ControlHandle),
        (listening, named): (Vec<SocketAddr>, Vec<Address>),
    ) -> Shared {
        Shared {
            book: Mutex::new(book),
            outboxes: Outboxes::default(),
            keys,
            twins,
            control,
            listening: Mutex::new(listening),
            named,
            changed: Notify::new(),
            moved: watch::Sender::new(0),
        }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where others reach this node, those that lead farthest first.
    pub(crate) fn own_addresses(&self) -> Vec<Address> {
        let mut own = self.named.clone();
        let listening = self.listening().clone();
        own.extend(listening.into_iter().filter_map(|socket| Address::try_from(socket).ok()));
        best_first(own)
    }

    pub(crate) fn listening(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A payload on its way to gossipsub, and its share of the bytes.
#[derive(Debug)]
pub(crate) struct Publish {
    pub(crate) topic: u16,
    pub(crate) payload: Bytes,
    pub(crate) _share: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(crate) enum Command {
    AddPeers(Vec<PeerAddress>),
    Listen(Vec<SocketAddr>),
    Penalise(NodeId, Reason, String),
    Shutdown(oneshot::Sender<()>),
}

/// An order to the swarm task.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) publish: mpsc::Receiver<Publish>,
    pub(crate) verdicts: mpsc::Receiver<(Ticket, Verdict)>,
    pub(crate) commands: mpsc::Receiver<Command>,
}
