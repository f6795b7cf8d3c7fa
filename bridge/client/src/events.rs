//! Events: pushed by the node, and of the connection itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::event::Event as Pushed;
use tokio::sync::Notify;

use crate::limits::{EVENTS_QUEUED_BYTES_MAX, EVENTS_QUEUED_MAX};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The node pushed an event. Heartbeats and types that are not known do not appear.
    Pushed(Pushed),
    /// The connection is lost; the client is connecting again.
    Disconnected {
        /// How it was lost.
        reason: String,
    },
    /// The client is registered again, and a member of its rooms again but for these.
    Reconnected {
        /// Rooms that the node would not let it back into.
        rooms_lost: Vec<String>,
    },
    /// The reader was too slow and events were dropped here: page, to see their messages.
    Missed {
        /// How many, the client's own ones included.
        count: u64,
    },
    /// The client has given up; nothing follows.
    Closed {
        /// Why.
        reason: String,
    },
}

impl Event {
    /// The node's event; `None` if the client itself has something to say.
    pub fn pushed(self) -> Option<Pushed> {
        if let Event::Pushed(pushed) = self { Some(pushed) } else { None }
    }
}

/// The events of one client, for one reader.
///
/// The connection is read whether or not anybody reads events, so that replies come and heartbeats
/// are answered. Events beyond the queue (`EVENTS_QUEUED_MAX`, `EVENTS_QUEUED_BYTES_MAX`) are
/// dropped, in one piece, and [`Event::Missed`] stands in its place. Dropping this switches
/// the queue off.
#[derive(Debug)]
pub struct Events {
    queue: Arc<Queue>,
}

impl Events {
    pub(crate) fn new() -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue::default());
        (Self { queue: Arc::clone(&queue) }, queue)
    }

    /// The next event; `None` after [`Event::Closed`], or when the last `Client` is dropped.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let changed = self.queue.changed.notified();
            if let Some(event) = self.queue.lock().pop() {
                return Some(event);
            }
            if self.queue.lock().closed {
                return None;
            }
            changed.await;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        *state = State { unread: true, ..State::default() };
    }
}

/// The driver's end.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    missed: u64,
    last: Option<Event>,
    closed: bool,
    unread: bool,
}

impl Queue {
    /// Adds an event that took `bytes` on the wire.
    pub(crate) fn push(&self, event: Event, bytes: usize) {
        let mut state = self.lock();
        if state.unread {
            return;
        }
        let full = state.events.len() >= EVENTS_QUEUED_MAX
            || state.bytes.saturating_add(bytes) > EVENTS_QUEUED_BYTES_MAX;
        // Once something is missing, nothing is kept until the reader has come to the gap.
        if full || state.missed > 0 {
            state.missed += 1;
        } else {
            state.bytes += bytes;
            state.events.push_back((event, bytes));
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Nothing follows but `last`.
    pub(crate) fn close(&self, last: Option<Event>) {
        let mut state = self.lock();
        state.last = last;
        state.closed = true;
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two of its statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pop(&mut self) -> Option<Event> {
        if let Some((event, bytes)) = self.events.pop_front() {
            self.bytes -= bytes;
            return Some(event);
        }
        if self.missed > 0 {
            return Some(Event::Missed { count: std::mem::take(&mut self.missed) });
        }
        self.last.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(reason: &str) -> Event {
        Event::Disconnected { reason: reason.into() }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_in_one_piece_and_told() {
        let (mut events, queue) = Events::new();
        for _ in 0..EVENTS_QUEUED_MAX + 5 {
            queue.push(event("x"), 1);
        }
        assert_eq!(events.next().await, Some(event("x")));
        queue.push(event("there is room, but it would hide the gap"), 1);
        for _ in 1..EVENTS_QUEUED_MAX {
            assert_eq!(events.next().await, Some(event("x")));
        }
        assert_eq!(events.next().await, Some(Event::Missed { count: 6 }));
        queue.push(event("y"), 1);
        queue.close(Some(Event::Closed { reason: "z".into() }));
        assert_eq!(events.next().await, Some(event("y")));
        assert_eq!(events.next().await, Some(Event::Closed { reason: "z".into() }));
        assert_eq!(events.next().await, None);
    }

    #[tokio::test]
    async fn large_events_are_bounded_by_their_bytes() {
        let (mut events, queue) = Events::new();
        queue.push(event("x"), EVENTS_QUEUED_BYTES_MAX);
        queue.push(event("y"), 1);
        assert_eq!(events.next().await, Some(event("x")));
        assert_eq!(events.next().await, Some(Event::Missed { count: 1 }));
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_costs_nothing() {
        let (events, queue) = Events::new();
        drop(events);
        queue.push(event("x"), 1);
        assert!(queue.lock().events.is_empty());
    }
}
