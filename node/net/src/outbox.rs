//! Frames on their way to one peer: bounded, ordered, filled without waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::identity::NodeId;
use crate::limits::{COALESCE_BYTES, FRAME_BYTES_MAX, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX};

/// Why a frame was not queued. Nothing of it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There was no `Up` for this node since its last `Down`.
    #[error("the peer is not connected")]
    NotConnected,
    /// The peer does not take frames as fast as they come.
    #[error("the peer's queue is full")]
    Full,
    /// More than [`FRAME_BYTES_MAX`] bytes.
    #[error("the frame is larger than {FRAME_BYTES_MAX} bytes")]
    TooLarge,
}

/// How much waits for one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueLength {
    /// Frames, at most [`OUTBOX_FRAMES_MAX`].
    pub frames: usize,
    /// Bytes, at most [`OUTBOX_BYTES_MAX`].
    pub bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    open: bool,
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// A batch is being written: taken out of `frames`, but not yet on its way.
    writing: bool,
}

/// The queue of one peer. Lives as long as its link.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
}

impl Outbox {
    pub(crate) fn open(&self) {
        *self.queue() = Queue { open: true, ..Queue::default() };
    }

    /// Forgets what is queued: nothing of one session may appear in the next.
    pub(crate) fn close(&self) {
        *self.queue() = Queue::default();
    }

    /// Whether there is a session: from before its `Up` is told.
    pub(crate) fn is_open(&self) -> bool {
        self.queue().open
    }

    pub(crate) fn length(&self) -> QueueLength {
        let queue = self.queue();
        QueueLength { frames: queue.frames.len(), bytes: queue.bytes }
    }

    /// Nothing queued and nothing in the writer's hands.
    pub(crate) fn is_drained(&self) -> bool {
        let queue = self.queue();
        queue.frames.is_empty() && !queue.writing
    }

    pub(crate) fn push(&self, frame: Bytes) -> Result<(), SendError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(SendError::TooLarge);
        }
        let mut queue = self.queue();
        if !queue.open {
            return Err(SendError::NotConnected);
        }
        let bytes = queue.bytes + frame.len();
        if queue.frames.len() >= OUTBOX_FRAMES_MAX || bytes > OUTBOX_BYTES_MAX {
            return Err(SendError::Full);
        }
        queue.bytes = bytes;
        queue.frames.push_back(frame);
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for frames and takes as many as make one write of about [`COALESCE_BYTES`]. Taking
    /// again means that the batch before has been written. For one caller at a time.
    pub(crate) async fn take(&self) -> Vec<Bytes> {
        loop {
            let batch = self.take_now();
            if !batch.is_empty() {
                return batch;
            }
            // A push between the look and here has left its permit.
            self.filled.notified().await;
        }
    }

    fn take_now(&self) -> Vec<Bytes> {
        let mut queue = self.queue();
        let (mut batch, mut taken) = (Vec::new(), 0);
        while taken < COALESCE_BYTES
            && let Some(frame) = queue.frames.pop_front()
        {
            taken += frame.len();
            batch.push(frame);
        }
        queue.bytes -= taken;
        queue.writing = !batch.is_empty();
        batch
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All outboxes, shared by the handle (which fills them) and the links (which empty them).
#[derive(Debug, Default)]
pub(crate) struct Outboxes(RwLock<HashMap<NodeId, Arc<Outbox>>>);

impl Outboxes {
    pub(crate) fn get(&self, node: &NodeId) -> Option<Arc<Outbox>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(node).cloned()
    }

    pub(crate) fn insert(&self, node: NodeId, outbox: Arc<Outbox>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(node, outbox);
    }

    pub(crate) fn remove(&self, node: &NodeId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(node);
    }

    pub(crate) fn are_drained(&self) -> bool {
        let outboxes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        outboxes.values().all(|outbox| outbox.is_drained())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_bytes_are_bounded_and_only_open_boxes_take_any() {
        let outbox = Outbox::default();
        assert_eq!(outbox.push(Bytes::new()), Err(SendError::NotConnected));
        outbox.open();
        assert_eq!(outbox.push(vec![0; FRAME_BYTES_MAX + 1].into()), Err(SendError::TooLarge));
        for _ in 0..OUTBOX_FRAMES_MAX {
            outbox.push(Bytes::from_static(b"x")).unwrap();
        }
        assert_eq!(outbox.push(Bytes::new()), Err(SendError::Full));
        outbox.open();
        let big = Bytes::from(vec![0; FRAME_BYTES_MAX]);
        for _ in 0..OUTBOX_BYTES_MAX / FRAME_BYTES_MAX {
            outbox.push(big.clone()).unwrap();
        }
        assert_eq!(outbox.push(big), Err(SendError::Full));
        outbox.close();
        assert_eq!(outbox.length(), QueueLength::default());
    }

    #[tokio::test]
    async fn small_frames_are_taken_together_in_order() {
        let outbox = Outbox::default();
        outbox.open();
        for i in 0..100u8 {
            outbox.push(vec![i; 1000].into()).unwrap();
        }
        let first = outbox.take().await;
        assert!(first.len() > 50 && first.len() < 100);
        let second = outbox.take().await;
        let order: Vec<u8> = first.iter().chain(&second).map(|frame| frame[0]).collect();
        assert_eq!(order, (0..100).collect::<Vec<u8>>());
        assert!(!outbox.is_drained());
        assert!(outbox.take_now().is_empty());
        assert!(outbox.is_drained());
    }
}
