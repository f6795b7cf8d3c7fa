//! What the network brings, in one bounded queue for the owner.

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
/// For each node, `Up` and `Down` alternate, and its frames lie between them. Between an `Up` and the next `Down`, what
/// either side sent arrives in order and without gaps; frames sent shortly before a `Down` may be lost.
#[derive(Debug)]
pub enum Incoming {
    /// Frames can be sent to and come from this node from now on.
    Up(NodeId),
    /// The node is gone, or at least frames were lost; what was queued for it is dropped.
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
    },
    /// A frame from a node that is up.
    Frame {
        /// The sender.
        from: NodeId,
        /// At most [`crate::limits::FRAME_BYTES_MAX`] bytes.
        payload: Bytes,
    },
    /// A node was met at an address, or said that it is to be met there: worth remembering over a restart.
    Learned(PeerAddress),
}

/// The right to one verdict on one gossip message. Dropped without a verdict, the message is not relayed.
#[derive(Debug)]
pub struct Ticket {
    pub(crate) message: MessageId,
    pub(crate) source: PeerId,
    pub(crate) node: NodeId,
}

/// The owner's end. Dropping it stops the network.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Item>);

/// The permit keeps its share of the bytes until the owner takes the item.
type Item = (Incoming, Option<OwnedSemaphorePermit>);

impl Inbox {
    /// The next thing that happened; `None` when the network has stopped. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Incoming> {
        self.0.recv().await.map(|(incoming, _permit)| incoming)
    }

    /// The next thing if there is one already, so that one turn can take many; `None` if not (or not any more).
    pub fn try_recv(&mut self) -> Option<Incoming> {
        self.0.try_recv().ok().map(|(incoming, _permit)| incoming)
    }

    /// [`Inbox::recv`] for a thread outside the runtime.
    ///
    /// # Panics
    /// Within an asynchronous context (as all blocking calls of tokio).
    pub fn blocking_recv(&mut self) -> Option<Incoming> {
        self.0.blocking_recv().map(|(incoming, _permit)| incoming)
    }
}

/// The owner has dropped its inbox: time to stop.
#[derive(Debug)]
pub(crate) struct Closed;

/// The network's end.
#[derive(Clone, Debug)]
pub(crate) struct InboxSender {
    items: mpsc::Sender<Item>,
    bytes: Arc<Semaphore>,
}

pub(crate) fn inbox() -> (InboxSender, Inbox) {
    let (items, receiver) = mpsc::channel(INBOX_ITEMS_MAX);
    (InboxSender { items, bytes: Arc::new(Semaphore::new(INBOX_BYTES_MAX)) }, Inbox(receiver))
}

impl InboxSender {
    /// `Up` and `Down`: waits for a slot, never lost.
    pub(crate) async fn put(&self, incoming: Incoming) -> Result<(), Closed> {
        self.items.send((incoming, None)).await.map_err(|_| Closed)
    }

    /// A frame: waits for bytes and a slot, which is what stops the reading of the peer's stream.
    pub(crate) async fn put_frame(&self, from: NodeId, payload: Bytes) -> Result<(), Closed> {
        let permit =
            self.bytes.clone().acquire_many_owned(cost(&payload)).await.map_err(|_| Closed)?;
        let item = (Incoming::Frame { from, payload }, Some(permit));
        self.items.send(item).await.map_err(|_| Closed)
    }

    /// Gossip: only if there is room beyond what is reserved. `false`: dropped.
    pub(crate) fn try_put_gossip(&self, incoming: Incoming, payload: &Bytes) -> bool {
        if self.items.capacity() <= INBOX_RESERVED_ITEMS {
            return false;
        }
        let Ok(permit) = self.bytes.clone().try_acquire_many_owned(cost(payload)) else {
            return false;
        };
        self.items.try_send((incoming, Some(permit))).is_ok()
    }

    /// What can be said again later; gives it back if there is no room beyond what is reserved.
    pub(crate) fn try_put_learned(&self, learned: PeerAddress) -> Result<(), PeerAddress> {
        if self.items.capacity() <= INBOX_RESERVED_ITEMS {
            return Err(learned);
        }
        let item = (Incoming::Learned(learned.clone()), None);
        self.items.try_send(item).map_err(|_| learned)
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

    #[tokio::test]
    async fn gossip_leaves_room_for_the_rest() {
        let (sender, mut inbox) = inbox();
        let gossip = || Incoming::Gossip {
            from: [1; 32],
            topic: 0,
            payload: Bytes::from_static(b"x"),
            ticket: Ticket {
                message: MessageId::new(b"m"),
                source: PeerId::random(),
                node: [1; 32],
            },
        };
        let payload = Bytes::from_static(b"x");
        let taken =
            (0..INBOX_ITEMS_MAX).filter(|_| sender.try_put_gossip(gossip(), &payload)).count();
        assert_eq!(taken, INBOX_ITEMS_MAX - INBOX_RESERVED_ITEMS);
        sender.put(Incoming::Up([1; 32])).await.unwrap();
        assert!(matches!(inbox.recv().await, Some(Incoming::Gossip { .. })));
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_come_back() {
        let (sender, mut inbox) = inbox();
        let frame = Bytes::from(vec![0; INBOX_BYTES_MAX / 2]);
        sender.put_frame([1; 32], frame.clone()).await.unwrap();
        sender.put_frame([1; 32], frame.clone()).await.unwrap();
        let mut third = Box::pin(sender.put_frame([1; 32], frame));
        assert!(futures::poll!(third.as_mut()).is_pending());
        inbox.recv().await.unwrap();
        third.await.unwrap();
    }
}
