//! What a connection shares with the engine's thread: its outbox, and answers that wait for its
//! session.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use mesh::{
    id::{AgentId, KeyPrint, RoomId},
    number::Number,
};
use tokio::sync::Notify;

use crate::{
    outbox::{Frame, Outbox, Page, Work},
    reply::{Answer, Ticket},
};

/// Names a connection of this start of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId(pub(crate) u64);

/// The agent that a connection is.
#[derive(Clone, Debug)]
pub(crate) struct Me {
    pub(crate) agent: AgentId,
    pub(crate) key: KeyPrint,
}

/// How far a connection is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not near.
    Open,
    /// What is queued is written, nothing more is read.
    Draining,
    /// Nothing is written any more.
    Over,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    me: OnceLock<Me>,
    inner: Mutex<Inner>,
    to_session: Notify,
    to_writer: Notify,
}

#[derive(Debug)]
struct Inner {
    life: Life,
    outbox: Outbox,
    answers: VecDeque<(Ticket, Answer)>,
}

impl Link {
    pub(crate) fn new(id: LinkId) -> Link {
        Link {
            id,
            me: OnceLock::new(),
            inner: Mutex::new(Inner {
                life: Life::Open,
                outbox: Outbox::new(),
                answers: VecDeque::new(),
            }),
            to_session: Notify::new(),
            to_writer: Notify::new(),
        }
    }

    /// `None` until it is registered.
    pub(crate) fn me(&self) -> Option<&Me> {
        self.me.get()
    }

    /// A connection registers once.
    pub(crate) fn register(&self, me: Me) {
        // Set already: then it is the same agent, the session asks once only.
        drop(self.me.set(me));
    }

    /// Whether it is this agent's.
    pub(crate) fn is(&self, agent: &AgentId) -> bool {
        self.me().is_some_and(|me| me.agent == *agent)
    }

    pub(crate) fn life(&self) -> Life {
        self.locked().life
    }

    /// Writes what is queued, then ends.
    pub(crate) fn drain(&self) {
        let mut inner = self.locked();
        if inner.life == Life::Open {
            inner.life = Life::Draining;
        }
        drop(inner);
        self.wake_both();
    }

    /// Ends at once.
    pub(crate) fn end(&self) {
        self.locked().life = Life::Over;
        self.wake_both();
    }

    /// Hands an answer to the session.
    pub(crate) fn answer(&self, ticket: Ticket, answer: Answer) {
        self.locked().answers.push_back((ticket, answer));
        self.to_session.notify_one();
    }

    pub(crate) fn take_answers(&self) -> VecDeque<(Ticket, Answer)> {
        std::mem::take(&mut self.locked().answers)
    }

    /// Until there is an answer, replies have been taken, or the end has come nearer.
    pub(crate) async fn session_woken(&self) {
        self.to_session.notified().await;
    }

    /// Until the outbox may have work again.
    pub(crate) async fn writer_woken(&self) {
        self.to_writer.notified().await;
    }

    pub(crate) fn takes_replies(&self) -> bool {
        self.locked().outbox.takes_replies()
    }

    pub(crate) fn seat(&self, room: RoomId, held: bool) -> bool {
        self.locked().outbox.seat(room, held)
    }

    pub(crate) fn unseat(&self, room: RoomId) {
        self.locked().outbox.unseat(room);
    }

    pub(crate) fn rooms(&self) -> Vec<RoomId> {
        self.locked().outbox.rooms()
    }

    pub(crate) fn hold(&self, room: RoomId) {
        self.locked().outbox.hold(room);
    }

    pub(crate) fn release(&self, room: RoomId, seen: Number) {
        self.post(|outbox| outbox.release(room, seen));
    }

    pub(crate) fn seen(&self) -> Vec<(RoomId, Number)> {
        self.locked().outbox.seen()
    }

    pub(crate) fn resume_points(&self) -> Vec<(RoomId, Number)> {
        self.locked().outbox.resume_points()
    }

    pub(crate) fn open(&self) {
        self.post(Outbox::open);
    }

    pub(crate) fn reply(&self, bytes: Bytes) {
        self.post(|outbox| outbox.reply(bytes));
    }

    pub(crate) fn replay(&self, room: RoomId, number: Number, bytes: Bytes) {
        self.post(|outbox| outbox.replay(room, number, bytes));
    }

    pub(crate) fn event(&self, bytes: Bytes) {
        self.post(|outbox| outbox.event(bytes));
    }

    pub(crate) fn message(
        &self,
        room: RoomId,
        number: Number,
        bytes: Option<&Bytes>,
        mention: Option<&Bytes>,
    ) {
        self.post(|outbox| outbox.message(room, number, bytes, mention));
    }

    pub(crate) fn caught_up(&self, room: RoomId, page: Page) -> bool {
        self.locked().outbox.caught_up(room, page)
    }

    /// See [`Outbox::next`]. `None`: the connection ends here.
    pub(crate) fn next(&self, batch: &mut Vec<Frame>) -> Option<Work> {
        let mut inner = self.locked();
        let waited = !inner.outbox.takes_replies();
        let work = inner.outbox.next(batch);
        let life = inner.life;
        let wake = waited && inner.outbox.takes_replies();
        drop(inner);
        if wake {
            self.to_session.notify_one();
        }
        match (life, work) {
            (Life::Over, _) | (Life::Draining, Work::Wait | Work::CatchUp { .. }) => None,
            (Life::Open | Life::Draining, work) => Some(work),
        }
    }

    fn post(&self, change: impl FnOnce(&mut Outbox)) {
        let mut inner = self.locked();
        match inner.life {
            Life::Open => change(&mut inner.outbox),
            // Nobody will read it; a queue that nobody drains must not grow.
            Life::Draining | Life::Over => return,
        }
        drop(inner);
        self.to_writer.notify_one();
    }

    fn wake_both(&self) {
        self.to_session.notify_one();
        self.to_writer.notify_one();
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        // A panic while it was held ends the process in the daemon; tests may go on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        self.locked().outbox.held()
    }
}
