//! The way of frames to one client: answers are never dropped, events are where there are too many.
//!
//! Both wait in one queue, so that they leave in the order in which they were said. Nothing is taken out of it while the client
//! does not take what was written.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bridge::delivery::ending::Ending;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::{
    frame,
    limits::{EVENTS_WAITING_MAX, REQUESTS_AT_ONCE, WAITING_BYTES_MAX, WRITE_BYTES},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    waiting: Mutex<Waiting>,
    news: Notify,
    /// Something has left.
    left: Notify,
    /// For requests that are worked on.
    turns: Semaphore,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            waiting: Mutex::default(),
            news: Notify::new(),
            left: Notify::new(),
            turns: Semaphore::new(REQUESTS_AT_ONCE),
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    frames: VecDeque<Frame>,
    events: usize,
    bytes: usize,
    /// Events so far, those included that were dropped.
    seq: u64,
    dropped: u64,
    ending: Option<Ending>,
    /// The connection is gone: nobody is told anything.
    over: bool,
}

#[derive(Debug)]
struct Frame {
    bytes: Bytes,
    is_event: bool,
}

/// The next thing to do.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) frames: Vec<Bytes>,
    /// And then the connection ends.
    pub(crate) ending: Option<Ending>,
}

impl Line {
    pub(crate) fn answer(&self, bytes: Bytes) {
        let mut waiting = self.waiting();
        if waiting.over {
            return;
        }
        waiting.bytes += bytes.len();
        waiting.frames.push_back(Frame { bytes, is_event: false });
        drop(waiting);
        self.news.notify_one();
    }

    pub(crate) fn event(&self, name: &str, payload: &Value) {
        self.droppable(name, payload, None);
    }

    /// An event that tells which version of a state it is of.
    pub(crate) fn state(&self, name: &str, payload: &Value, state: &Value) {
        self.droppable(name, payload, Some(state));
    }

    fn droppable(&self, name: &str, payload: &Value, state: Option<&Value>) {
        let mut waiting = self.waiting();
        if waiting.over {
            return;
        }
        waiting.seq += 1;
        if waiting.events >= EVENTS_WAITING_MAX {
            waiting.dropped += 1;
            return;
        }
        let bytes = frame::event(name, payload, waiting.seq, state);
        waiting.events += 1;
        waiting.bytes += bytes.len();
        waiting.frames.push_back(Frame { bytes, is_event: true });
        drop(waiting);
        self.news.notify_one();
    }

    /// An event that is never dropped: its sender waits for a [turn](Line::turn) before.
    pub(crate) fn certain(&self, name: &str, payload: &Value) {
        let mut waiting = self.waiting();
        if waiting.over {
            return;
        }
        waiting.seq += 1;
        let bytes = frame::event(name, payload, waiting.seq, None);
        waiting.bytes += bytes.len();
        waiting.frames.push_back(Frame { bytes, is_event: false });
        drop(waiting);
        self.news.notify_one();
    }

    /// The event after which nothing follows.
    pub(crate) fn last(&self, name: &str) -> Bytes {
        let mut waiting = self.waiting();
        waiting.seq += 1;
        frame::event(name, &Value::Object(Map::new()), waiting.seq, None)
    }

    /// The connection ends when everything before has left.
    pub(crate) fn end(&self, ending: Ending) {
        self.waiting().ending.get_or_insert(ending);
        self.news.notify_one();
    }

    /// The connection is gone.
    pub(crate) fn is_over(&self) {
        let mut waiting = self.waiting();
        waiting.over = true;
        waiting.frames.clear();
        (waiting.events, waiting.bytes) = (0, 0);
    }

    /// Events that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.waiting().dropped
    }

    /// The turn of a request that is worked on: when its client takes what is said to it, and only some have one.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let turn = self.turns.acquire().await.ok();
        loop {
            let left = self.left.notified();
            if self.waiting().bytes < WAITING_BYTES_MAX {
                return turn;
            }
            left.await;
        }
    }

    /// Waits for something to do.
    pub(crate) async fn next(&self) -> Next {
        loop {
            let news = self.news.notified();
            if let Some(next) = self.take() {
                self.left.notify_waiters();
                return next;
            }
            news.await;
        }
    }

    fn take(&self) -> Option<Next> {
        let mut waiting = self.waiting();
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while bytes < WRITE_BYTES
            && let Some(frame) = waiting.frames.pop_front()
        {
            bytes += frame.bytes.len();
            waiting.events -= usize::from(frame.is_event);
            waiting.bytes -= frame.bytes.len();
            frames.push(frame.bytes);
        }
        let ending = if waiting.frames.is_empty() { waiting.ending } else { None };
        (!frames.is_empty() || ending.is_some()).then_some(Next { frames, ending })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn answers_are_kept_and_of_too_many_events_the_newest_are_dropped_which_shows_in_their_numbers()
     {
        let line = Line::default();
        for nth in 0..EVENTS_WAITING_MAX + 3 {
            line.event("chunk", &json!({"nth": nth}));
            line.answer(Bytes::from_static(b"{}"));
        }
        assert_eq!(line.dropped(), 3);
        let (mut events, mut answers, mut last) = (0, 0, 0);
        while answers < EVENTS_WAITING_MAX + 3 {
            for frame in line.next().await.frames {
                let frame: Value = serde_json::from_slice(&frame).unwrap();
                match frame["seq"].as_u64() {
                    Some(seq) => (events, last) = (events + 1, seq),
                    None => answers += 1,
                }
            }
        }
        assert_eq!((events, last), (EVENTS_WAITING_MAX, EVENTS_WAITING_MAX as u64));
        line.event("chunk", &json!({}));
        let next = line.next().await;
        let frame: Value = serde_json::from_slice(&next.frames[0]).unwrap();
        assert_eq!(frame["seq"], EVENTS_WAITING_MAX as u64 + 4, "the gap shows what is lost");
    }

    #[tokio::test]
    async fn requests_of_a_client_that_takes_nothing_are_not_begun() {
        use futures::FutureExt as _;
        let line = Line::default();
        let turns: Vec<_> = (0..REQUESTS_AT_ONCE).map(|_| line.turn().now_or_never()).collect();
        assert!(turns.iter().all(Option::is_some));
        assert!(line.turn().now_or_never().is_none(), "only some at once");
        drop(turns);
        line.answer(Bytes::from(vec![b'x'; WAITING_BYTES_MAX]));
        let mut turn = Box::pin(line.turn());
        assert!((&mut turn).now_or_never().is_none(), "it does not take what it was answered");
        line.next().await;
        assert!(turn.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_line_ends_when_everything_before_has_left() {
        let line = Line::default();
        line.answer(Bytes::from(vec![b'x'; WRITE_BYTES]));
        line.answer(Bytes::from_static(b"last"));
        line.end(Ending::Refused);
        assert!(line.next().await.ending.is_none());
        let next = line.next().await;
        assert_eq!((&next.frames[0][..], next.ending), (&b"last"[..], Some(Ending::Refused)));
    }
}
