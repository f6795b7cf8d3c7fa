//! The part of a connection that the engine's thread sees: its outbox, and how far it is from its end.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use mesh::name::{
    id::{AgentId, KeyPrint, RoomId},
    number::Number,
};

use super::{
    bell::Bell,
    ending::Ending,
    notice::Notice,
    outbox::{Content, Frame, Outbox, Page, Work},
};
use crate::{
    limits,
    seam::event::{Rendered, Told, Voice},
    session::job::arrival,
};

/// Names a connection of this start of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId(pub(crate) u64);

/// The agent that a connection is.
#[derive(Clone, Debug)]
pub(crate) struct Me {
    pub(crate) agent: AgentId,
    pub(crate) key: KeyPrint,
    /// It chose its id, and will have it again.
    pub(crate) stable: bool,
}

/// How far a connection is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not near.
    Open,
    /// The queue is written, nothing more is read.
    Draining,
    /// Nothing is written any more.
    Over,
}

/// The agent of a connection, and how its events are written.
#[derive(Debug)]
struct Registered {
    me: Me,
    voice: Arc<dyn Voice>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    /// Its client's network address, if it has one.
    pub(crate) client: Option<IpAddr>,
    /// When it began. Unix milliseconds.
    pub(crate) since_ms: u64,
    me: OnceLock<Registered>,
    /// It has come to some room with a cursor that may be of another node.
    has_come: AtomicBool,
    /// Its client has asked for pieces of answers.
    hears_pieces: AtomicBool,
    inner: Mutex<Inner>,
    to_session: Arc<Bell>,
    to_writer: Arc<Bell>,
}

#[derive(Debug)]
struct Inner {
    life: Life,
    /// The first reason that was given.
    ending: Option<Ending>,
    outbox: Outbox,
    /// Notices that were on their way when it ended, and that came then.
    unwritten: Vec<Notice>,
    late: Vec<Notice>,
}

impl Link {
    pub(crate) fn new(id: LinkId, client: Option<IpAddr>) -> Link {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Link {
            id,
            client,
            since_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            me: OnceLock::new(),
            has_come: AtomicBool::new(false),
            hears_pieces: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                life: Life::Open,
                ending: None,
                outbox: Outbox::new(),
                unwritten: Vec::new(),
                late: Vec::new(),
            }),
            to_session: Arc::default(),
            to_writer: Arc::default(),
        }
    }

    /// `None` until it is registered.
    pub(crate) fn me(&self) -> Option<&Me> {
        self.me.get().map(|registered| &registered.me)
    }

    /// How its events are written. `None` until it is registered.
    pub(crate) fn voice(&self) -> Option<&Arc<dyn Voice>> {
        self.me.get().map(|registered| &registered.voice)
    }

    /// A connection registers once.
    pub(crate) fn register(&self, me: Me, voice: Arc<dyn Voice>) {
        // Set already: then it is the same agent, the session asks once only.
        drop(self.me.set(Registered { me, voice }));
    }

    pub(crate) fn hear_pieces(&self) {
        self.hears_pieces.store(true, Ordering::Relaxed);
    }

    pub(crate) fn hears_pieces(&self) -> bool {
        self.hears_pieces.load(Ordering::Relaxed)
    }

    /// Whether it is this agent's.
    pub(crate) fn is(&self, agent: &AgentId) -> bool {
        self.me().is_some_and(|me| me.agent == *agent)
    }

    pub(crate) fn life(&self) -> Life {
        self.locked().life
    }

    /// Writes the queue, then ends.
    pub(crate) fn drain(&self, ending: Ending) {
        let mut inner = self.locked();
        if inner.life == Life::Open {
            inner.life = Life::Draining;
        }
        inner.ending.get_or_insert(ending);
        drop(inner);
        self.wake_both();
    }

    /// Ends at once.
    pub(crate) fn end(&self, ending: Ending) {
        let mut inner = self.locked();
        inner.life = Life::Over;
        inner.ending.get_or_insert(ending);
        drop(inner);
        self.wake_both();
    }

    /// Why it ends, once it does.
    pub(crate) fn ending(&self) -> Ending {
        self.locked().ending.unwrap_or(Ending::Done)
    }

    /// Until replies have been taken, the end has come nearer, or the session was woken.
    pub(crate) async fn session_woken(&self) {
        self.to_session.rung().await;
    }

    /// There is an answer for the session.
    pub(crate) fn wake_session(&self) {
        self.to_session.ring();
    }

    /// Until the outbox may have work again.
    pub(crate) async fn writer_woken(&self) {
        self.to_writer.rung().await;
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

    /// The client has come to a room with a cursor.
    pub(crate) fn came(&self, room: RoomId, cursor: Number) {
        self.arrives(room, arrival(cursor), true);
    }

    /// The same, as the mesh remembers it of the client's agent.
    pub(crate) fn resumes(&self, room: RoomId, cursor: Number) {
        self.arrives(room, arrival(cursor), false);
    }

    fn arrives(&self, room: RoomId, cursor: Number, stated: bool) {
        if cursor > Number::ZERO {
            self.has_come.store(true, Ordering::Relaxed);
        }
        if self.has_come.load(Ordering::Relaxed) {
            self.locked().outbox.came(room, cursor, stated);
        }
    }

    /// See [`Outbox::paged`].
    pub(crate) fn paged(&self, room: RoomId, upto: Number) {
        self.locked().outbox.paged(room, upto);
    }

    /// See [`Outbox::came_with`]. Zero for nearly all, at once.
    pub(crate) fn came_with(&self, room: RoomId) -> Number {
        let has_come = self.has_come.load(Ordering::Relaxed);
        if has_come { self.locked().outbox.came_with(room) } else { Number::ZERO }
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

    /// See [`Outbox::go_on_from`].
    pub(crate) fn go_on_from(&self, room: RoomId, cursor: Number, tip: Number) {
        self.post(|outbox| outbox.go_on_from(room, cursor, tip));
    }

    pub(crate) fn seen(&self) -> Vec<(RoomId, Number)> {
        self.locked().outbox.seen()
    }

    /// See [`Outbox::takes_entered`].
    pub(crate) fn takes_entered(&self) -> bool {
        self.locked().outbox.takes_entered()
    }

    /// See [`Outbox::given`].
    pub(crate) fn given(&self) -> Vec<(RoomId, Number, Number)> {
        self.locked().outbox.given()
    }

    /// A message that was passed over may have to be given to its client. See [`Outbox::owed`].
    pub(crate) fn owed(&self, room: RoomId, number: Number) {
        self.post(|outbox| outbox.owed(room, number));
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

    /// See [`Outbox::page_end`].
    pub(crate) fn page_end(&self, room: RoomId, numbers: Box<[Number]>) {
        self.post(|outbox| outbox.page_end(room, numbers));
    }

    pub(crate) fn replay(&self, message: Option<(RoomId, Number)>, rendered: Rendered) {
        self.post(|outbox| outbox.replay(message, rendered));
    }

    pub(crate) fn event(&self, rendered: Rendered) {
        self.post(|outbox| outbox.event(rendered));
    }

    /// Tells an agent, in its voice.
    pub(crate) fn tell(&self, told: &Arc<Told>) {
        if let Some(rendered) = self.voice().and_then(|voice| told.rendered(voice)) {
            self.event(rendered);
        }
    }

    /// An event that is told once: if it cannot be written any more, it is kept for the agent's next
    /// connection.
    pub(crate) fn notice(&self, notice: &Notice) {
        let rendered = self.voice().and_then(|voice| notice.told.rendered(voice));
        let Some(rendered) = rendered else { return };
        let mut inner = self.locked();
        match inner.life {
            Life::Open => inner.outbox.notice(notice.clone(), rendered),
            Life::Draining | Life::Over => {
                inner.late.push(notice.clone());
                let surplus = inner.late.len().saturating_sub(limits::MISSED_MAX);
                inner.late.drain(..surplus);
                return;
            }
        }
        drop(inner);
        self.to_writer.ring();
    }

    /// Frames that could not be written.
    pub(crate) fn give_back(&self, frames: &[Frame]) {
        let mut inner = self.locked();
        inner.unwritten.extend(frames.iter().filter_map(Frame::notice));
    }

    /// Notices that the client has not got, and is not going to get here.
    pub(crate) fn unwritten(&self) -> Vec<Notice> {
        let mut inner = self.locked();
        let mut all = std::mem::take(&mut inner.unwritten);
        all.extend(inner.outbox.unwritten());
        all.append(&mut inner.late);
        all
    }

    pub(crate) fn message(
        &self,
        room: RoomId,
        number: Number,
        content: Content,
        mention: Option<Rendered>,
    ) {
        self.post(|outbox| outbox.message(room, number, content, mention));
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
            self.to_session.ring();
        }
        match (life, work) {
            (Life::Over, _) | (Life::Draining, Work::Wait | Work::CatchUp(_)) => None,
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
        self.to_writer.ring();
    }

    fn wake_both(&self) {
        self.to_session.ring();
        self.to_writer.ring();
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        // A panic while it was held ends the process in the daemon; tests may go on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn held(&self) -> (usize, usize) {
        self.locked().outbox.held()
    }
}
