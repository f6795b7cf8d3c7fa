//! Everything that the network brings, in one bounded queue for the owner.

use std::sync::Arc;

use bytes::Bytes;
use libp2p::PeerId;
use libp2p::gossipsub::MessageId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::address::PeerAddress;
use crate::identity::NodeId;
use crate::limits::{INBOX_BYTES_MAX, INBOX_ITEMS_MAX, INBOX_RESERVED_ITEMS};

/// One thing that happened on the network.
///
/// For each node, `Up` and `Down` alternate, and its frames lie between them. Between an `Up` and
/// the next `Down`, frames of either side arrive in order and without gaps; frames sent shortly
/// before a `Down` may be lost.
#[derive(Debug)]
pub enum Incoming {
    /// Frames can be sent to and come from this node from now on.
    Up(NodeId),
    /// The node is gone, or at least frames were lost; frames that were queued for it are dropped.
    Down(NodeId),
    /// A gossip payload. May come from a node that is not up.
    Gossip {
        /// The peer that passed it on (not the author: gossip is anonymous).
        from: NodeId,
        /// Below the number of topics in the settings.
        topic: u16,
        /// At most [`crate::limits::GOSSIP_BYTES_MAX`] bytes.
        payload: Bytes,
        /// To be given back with a verdict; nothing is relayed before.
        ticket: Ticket,
        /// To be dropped when the owner has done what the payload asks for.
        share: Share,
    },
    /// A frame from a node that is up.
    Frame {
        /// The sender.
        from: NodeId,
        /// At most [`crate::limits::FRAME_BYTES_MAX`] bytes.
        payload: Bytes,
        /// To be dropped when the owner has done what the payload asks for.
        share: Share,
    },
    /// A node was met at an address, or said that it is to be met there: worth remembering over a
    /// restart.
    Learned(PeerAddress),
}

/// The right to one verdict on one gossip message. Dropped without a verdict, the message is not
/// relayed.
#[derive(Debug)]
pub struct Ticket {
    pub(crate) message: MessageId,
    pub(crate) source: PeerId,
    pub(crate) node: NodeId,
    pub(crate) bytes: usize,
}

/// The share of a frame or a gossip payload in the room for all peers, and in the room for its
/// peer, until it is dropped: a peer that sends faster than the owner works waits for itself, or
/// loses its own gossip.
#[derive(Debug)]
pub struct Share {
    _of_all: OwnedSemaphorePermit,
    _of_peer: OwnedSemaphorePermit,
}

/// How much of one peer the owner may have at once.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    units: Arc<Semaphore>,
    unit_bytes: usize,
    most: usize,
}

impl Allowance {
    /// So many things of up to so many bytes; a larger one counts as several.
    pub(crate) fn new(most: usize, unit_bytes: usize) -> Allowance {
        Allowance { units: Arc::new(Semaphore::new(most)), unit_bytes, most }
    }

    fn units_of(&self, payload: &Bytes) -> u32 {
        let units = payload.len().div_ceil(self.unit_bytes).clamp(1, self.most);
        u32::try_from(units).unwrap_or(u32::MAX)
    }
}

/// The owner's end. Dropping it stops the network.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Incoming>);

impl Inbox {
    /// The next thing that happened; `None` when the network has stopped. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Incoming> {
        self.0.recv().await
    }

    /// The next thing if there is one already, so that one turn can take many; `None` if not (or
    /// not any more).
    pub fn try_recv(&mut self) -> Option<Incoming> {
        self.0.try_recv().ok()
    }

    /// [`Inbox::recv`] for a thread outside the runtime.
    ///
    /// # Panics
    /// Within an asynchronous context (as all blocking calls of tokio).
    pub fn blocking_recv(&mut self) -> Option<Incoming> {
        self.0.blocking_recv()
    }
}

/// The owner has dropped its inbox: time to stop.
#[derive(Debug)]
pub(crate) struct Closed;

/// The network's end.
#[derive(Clone, Debug)]
pub(crate) struct InboxSender {
    items: mpsc::Sender<Incoming>,
    bytes: Arc<Semaphore>,
}

pub(crate) fn inbox() -> (InboxSender, Inbox) {
    let (items, receiver) = mpsc::channel(INBOX_ITEMS_MAX);
    (InboxSender { items, bytes: Arc::new(Semaphore::new(INBOX_BYTES_MAX)) }, Inbox(receiver))
}

impl InboxSender {
    /// `Up` and `Down`: waits for a slot, never lost.
    pub(crate) async fn put(&self, incoming: Incoming) -> Result<(), Closed> {
        self.items.send(incoming).await.map_err(|_| Closed)
    }

    /// A frame: waits for the peer's allowance, bytes and a slot. Meanwhile the peer's stream is
    /// not read.
    pub(crate) async fn put_frame(
        &self,
        from: NodeId,
        payload: Bytes,
        of: &Allowance,
    ) -> Result<(), Closed> {
        let units = of.units_of(&payload);
        // First its own: a task that waits for that holds nothing that others wait for.
        let of_peer = of.units.clone().acquire_many_owned(units).await.map_err(|_| Closed)?;
        let bytes = self.bytes.clone().acquire_many_owned(cost(&payload));
        let share = Share { _of_all: bytes.await.map_err(|_| Closed)?, _of_peer: of_peer };
        self.items.send(Incoming::Frame { from, payload, share }).await.map_err(|_| Closed)
    }

    /// Gossip: only if there is room beyond what is reserved, and its peer's allowance is not used
    /// up. `false`: dropped.
    pub(crate) fn try_put_gossip(
        &self,
        topic: u16,
        ticket: Ticket,
        payload: Bytes,
        of: &Allowance,
    ) -> bool {
        if self.items.capacity() <= INBOX_RESERVED_ITEMS {
            return false;
        }
        let units = of.units_of(&payload);
        let (Ok(of_peer), Ok(of_all)) = (
            of.units.clone().try_acquire_many_owned(units),
            self.bytes.clone().try_acquire_many_owned(cost(&payload)),
        ) else {
            return false;
        };
        let share = Share { _of_all: of_all, _of_peer: of_peer };
        let from = ticket.node;
        self.items.try_send(Incoming::Gossip { from, topic, payload, ticket, share }).is_ok()
    }

    /// An address, which can be told again later; gives it back if there is no room beyond the
    /// reserve.
    pub(crate) fn try_put_learned(&self, learned: PeerAddress) -> Result<(), PeerAddress> {
        if self.items.capacity() <= INBOX_RESERVED_ITEMS {
            return Err(learned);
        }
        self.items.try_send(Incoming::Learned(learned.clone())).map_err(|_| learned)
    }

    /// Resolves when the owner has dropped its end.
    pub(crate) async fn closed(&self) {
        self.items.closed().await;
    }
}

/// Permits for a payload; at most the whole budget, so that it can always be had.
fn cost(payload: &Bytes) -> u32 {
    u32::try_from(payload.len().min(INBOX_BYTES_MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let (message, source) = (MessageId::new(b"m"), PeerId::random());
        Ticket { message, source, node: [1; 32], bytes: 1 }
    }

    #[tokio::test]
    async fn gossip_leaves_room_for_the_rest() {
        let (sender, mut inbox) = inbox();
        let of = Allowance::new(INBOX_ITEMS_MAX, 8);
        let payload = Bytes::from_static(b"x");
        let put = |_: &usize| sender.try_put_gossip(0, ticket(), payload.clone(), &of);
        let taken = (0..INBOX_ITEMS_MAX).filter(put).count();
        assert_eq!(taken, INBOX_ITEMS_MAX - INBOX_RESERVED_ITEMS);
        sender.put(Incoming::Up([1; 32])).await.unwrap();
        assert!(matches!(inbox.recv().await, Some(Incoming::Gossip { .. })));
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_come_back() {
        let (sender, mut inbox) = inbox();
        let of = Allowance::new(usize::from(u16::MAX), INBOX_BYTES_MAX);
        let frame = Bytes::from(vec![0; INBOX_BYTES_MAX / 2]);
        sender.put_frame([1; 32], frame.clone(), &of).await.unwrap();
        sender.put_frame([1; 32], frame.clone(), &of).await.unwrap();
        let mut third = Box::pin(sender.put_frame([1; 32], frame, &of));
        assert!(futures::poll!(third.as_mut()).is_pending());
        let first = inbox.recv().await.unwrap();
        assert!(futures::poll!(third.as_mut()).is_pending(), "the owner still works at it");
        drop(first);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn a_peer_waits_for_itself_and_nobody_else() {
        let (sender, mut inbox) = inbox();
        let (greedy, modest) = (Allowance::new(4, 8), Allowance::new(4, 8));
        let payload = Bytes::from_static(b"x");
        for _ in 0..4 {
            sender.put_frame([1; 32], payload.clone(), &greedy).await.unwrap();
        }
        let mut fifth = Box::pin(sender.put_frame([1; 32], payload.clone(), &greedy));
        assert!(futures::poll!(fifth.as_mut()).is_pending());
        assert!(!sender.try_put_gossip(0, ticket(), payload.clone(), &greedy));
        // A large one counts as many.
        let large = Bytes::from_static(b"three times the unit");
        sender.put_frame([2; 32], large, &modest).await.unwrap();
        sender.put_frame([2; 32], payload.clone(), &modest).await.unwrap();
        assert!(!sender.try_put_gossip(0, ticket(), payload, &modest));
        drop(inbox.recv().await.unwrap());
        fifth.await.unwrap();
    }
}
