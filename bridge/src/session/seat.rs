//! The seat of a party: its state, its calls without an answer, and the steps that are to be done.
//!
//! A step is done in its order by the connection, or by the desk for a visitor without one, which resumes the seat with the
//! answer or the rows.

use std::{
    fmt,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mesh::{
    api::command::{Caller, Command},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        number::Number,
    },
};

use super::{
    ask::Ask,
    job::{Cursor, Job, Missed},
    party::Party,
    reading::{Read, Reading},
    rules::Rules,
};
use crate::{
    backend::ReadError,
    delivery::{ending::Ending, link},
    delivery::{hook::Hook, hub::Beside},
    limits,
    read::{NOBODY, Visitor},
    reply::Ended,
    seam::{
        answer::{self, Answer, Welcome},
        event::{Rendered, Voice},
        refusal::{Bound, Refusal},
    },
    webhooks::Webhooks,
};

/// The continuation of a call.
pub(crate) type Then<A> = Box<dyn FnOnce(&mut Seat, Result<A, Refusal>) + Send>;

/// The continuation of a command.
pub(crate) type OnEnd = Box<dyn FnOnce(&mut Seat, Ended) + Send>;

/// The continuation of a look for other connections of the agent.
pub(crate) type OnBeside = Box<dyn FnOnce(&mut Seat, Beside) + Send>;

/// The session goes on.
pub(crate) type Resume = Box<dyn FnOnce(&mut Seat) + Send>;

/// Something that takes its time.
pub(crate) type Later = Pin<Box<dyn Future<Output = Resume> + Send>>;

/// Asks the webhooks. Known refusals are found before it returns.
pub(crate) type AskWebhooks =
    Box<dyn FnOnce(&Arc<Webhooks>) -> Pin<Box<dyn Future<Output = Resume> + Send>> + Send>;

/// A step for the connection.
pub(crate) enum Step {
    /// Write a reply.
    Reply(Bytes),
    /// Write a missed event: a message with its number, or another one.
    Replay { message: Option<(RoomId, Number)>, rendered: Rendered },
    /// Ask the mesh.
    Call { command: Command, hook: Hook, then: OnEnd },
    /// Ask the webhooks.
    Webhooks(AskWebhooks),
    /// Be one more connection of an agent that is attached here.
    Beside { me: link::Me, voice: Arc<dyn Voice>, then: OnBeside },
    /// Do something that takes its time, beside all else. It ends with the connection.
    Later(Later),
    /// Read.
    Read(Box<dyn Reading>),
    /// The client has come to a room with a cursor that may be of another node; zero: it was here before.
    Came(RoomId, Number),
    /// It was given a page that ends there.
    Paged(RoomId, Number),
    /// The reply before it has given it these messages.
    PageEnd(RoomId, Box<[Number]>),
    /// Keep live messages of a room back.
    Hold(RoomId),
    /// No longer; everything up to the number was given to the client.
    Release(RoomId, Number),
    /// No longer; live messages begin with the first above this cursor of the client.
    GoOnFrom(RoomId, Number),
    /// Its client is to be told of pieces of answers.
    HearPieces,
    /// Events may go out.
    Open,
    /// Write the queue, then end.
    Close(Ending),
}

/// See the module's text.
pub struct Seat {
    pub(super) rules: Arc<Rules>,
    pub(super) voice: Arc<dyn Voice>,
    /// See [`Seat::client`].
    client: Option<IpAddr>,
    /// When the frame that is worked on came.
    pub(super) now: Instant,
    /// Bytes of that frame.
    frame: usize,
    /// See [`Seat::shows`].
    shown: Option<KeyPrint>,
    pub(super) state: State,
    waiting: Waiting,
    /// For how long the agent stays when its connection has ended, if it wishes to.
    pub(crate) linger: Option<Duration>,
    /// Where the last page of the delivery log ended: its cursor needs no second look.
    pub(super) paged: Option<Paged>,
    pub(super) steps: Vec<Step>,
}

/// Calls and reads without an answer.
#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    /// Bytes that they hold.
    bytes: usize,
    /// Those that the client's next frame waits for.
    first: usize,
}

/// One of them.
#[derive(Debug)]
struct Unanswered {
    frame: usize,
    place: Place,
}

/// Whether the client's next request waits for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It does not.
    Any,
    /// Nothing that the client asks for later is done before it.
    First,
}

/// The end of a page of the delivery log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paged {
    pub(super) room: RoomId,
    pub(super) number: Number,
    /// The cursor that the client came to the log with.
    pub(super) came: Number,
}

pub(super) enum State {
    Fresh,
    /// The mesh has been asked; later requests wait.
    Attaching,
    /// Missed messages are read; later requests wait.
    Resuming(Box<Resuming>),
    /// The party is known: an agent until its connection ends, or a visitor of the desk.
    Attached(Arc<Party>),
}

/// An agent that comes back, until it has been told of missed events.
pub(super) struct Resuming {
    pub(super) me: Arc<Party>,
    pub(super) reader: link::Me,
    pub(super) name: String,
    pub(super) then: Then<Welcome>,
    /// The rooms that it has back. `None`: it has not come back.
    pub(super) rooms: Option<Vec<RoomId>>,
    /// These, and direct rooms in which something waits for it.
    pub(super) seats: Vec<RoomId>,
    pub(super) missed: Missed,
    /// Claims without an answer.
    pub(super) claims: usize,
    /// Rooms to be read again, when all claims are answered.
    pub(super) again: Vec<(RoomId, Cursor)>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("agent", &self.agent())
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

/// For dialects.
impl Seat {
    /// Asks. `then` is called once, when the answer is there; it may ask again. Of a connection that has ended nobody is
    /// told.
    pub fn ask<C: Ask>(
        &mut self,
        call: C,
        then: impl FnOnce(&mut Seat, Result<C::Answer, Refusal>) + Send + 'static,
    ) {
        call.begin(
            self,
            Box::new(move |seat, answer| {
                if let Err(refusal) = &answer {
                    refusal.log();
                }
                then(seat, answer);
            }),
        );
    }

    /// The same, for an answer that the client's next frame waits for: none is heard before `then` was called.
    pub fn ask_in_turn<C: Ask>(
        &mut self,
        call: C,
        then: impl FnOnce(&mut Seat, Result<C::Answer, Refusal>) + Send + 'static,
    ) {
        self.waiting.first += 1;
        self.ask(call, move |seat, answer| {
            seat.waiting.first -= 1;
            then(seat, answer);
        });
    }

    /// Does something that takes its time; `then` is called with what it came to. It counts as no call, and ends with the
    /// connection.
    pub fn later<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Seat, T) + Send + 'static,
    ) {
        self.steps.push(Step::Later(Box::pin(async move {
            let came = work.await;
            let resume: Resume = Box::new(move |seat| then(seat, came));
            resume
        })));
    }

    /// The same, for something that the client is to be answered: it counts as a call without an answer until then.
    pub fn owe<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Seat, T) + Send + 'static,
    ) {
        let unanswered = self.wait(Place::Any);
        self.later(work, move |seat, came| {
            seat.goes_on(&unanswered);
            then(seat, came);
        });
    }

    /// The same, for an answer that the client's next frame waits for.
    pub fn owe_in_turn<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Seat, T) + Send + 'static,
    ) {
        let unanswered = self.wait(Place::First);
        self.later(work, move |seat, came| {
            seat.goes_on(&unanswered);
            then(seat, came);
        });
    }

    /// The client has shown that it holds a key, and asks elsewhere: at the [desk](crate::read::Desk). It is no stranger any
    /// more, and hears no events.
    pub fn admit(&mut self, holder: &Visitor) {
        if self.is_fresh() {
            self.state = State::Attached(holder.party());
        }
    }

    /// The client has shown that it holds a key, though its agent comes later, or never: what it says counts among all that is said
    /// with this key.
    pub fn shows(&mut self, key: KeyPrint) {
        self.shown = Some(key);
    }

    /// The client's network, if its connection says that: of one that comes by way of a proxy of the operator's, as that says.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// Writes a frame that is no event: one line, without its newline; or [`PING`](crate::seam::event::PING).
    pub fn reply(&mut self, frame: Bytes) {
        self.steps.push(Step::Reply(frame));
    }

    /// Ends the connection when everything before is written.
    pub fn close(&mut self, ending: Ending) {
        self.steps.push(Step::Close(ending));
    }

    /// The client is told of pieces of answers as they are written, in its agent's rooms.
    pub fn hear_pieces(&mut self) {
        self.steps.push(Step::HearPieces);
    }

    /// Events come in this voice from now on. To be called before an agent is attached.
    pub fn speak(&mut self, voice: Arc<dyn Voice>) {
        self.voice = voice;
    }

    /// The agent that is attached.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        self.me().and_then(|me| me.agent())
    }

    /// The key that the client has shown.
    pub(crate) fn shown(&self) -> Option<KeyPrint> {
        self.shown.or_else(|| self.key().filter(|key| *key != NOBODY))
    }

    /// The key of the agent that is attached.
    #[must_use]
    pub fn key(&self) -> Option<KeyPrint> {
        self.me().map(|me| me.key())
    }

    /// Whether nobody is attached, or about to be.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        match &self.state {
            State::Fresh => true,
            State::Attaching | State::Resuming(_) | State::Attached(_) => false,
        }
    }
}

/// For the connection.
impl Seat {
    pub(crate) fn new(rules: Arc<Rules>, voice: Arc<dyn Voice>) -> Seat {
        Seat {
            rules,
            voice,
            client: None,
            now: Instant::now(),
            frame: 0,
            shown: None,
            state: State::Fresh,
            waiting: Waiting::default(),
            linger: None,
            paged: None,
            steps: Vec::new(),
        }
    }

    /// Of a client in this network.
    pub(crate) fn of(self, client: Option<IpAddr>) -> Seat {
        Seat { client, ..self }
    }

    /// At the desk: a party that is known from the beginning.
    pub(crate) fn visited(rules: Arc<Rules>, voice: Arc<dyn Voice>, party: Arc<Party>) -> Seat {
        Seat { state: State::Attached(party), ..Seat::new(rules, voice) }
    }

    /// A frame of so many bytes is worked on.
    pub(crate) fn begin(&mut self, now: Instant, bytes: usize) {
        self.now = now;
        self.frame = bytes;
    }

    /// Steps that are to be done now.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    pub(crate) fn voice(&self) -> &Arc<dyn Voice> {
        &self.voice
    }

    /// Whether there are calls without an answer.
    pub(crate) fn awaits_answers(&self) -> bool {
        self.waiting.count > 0
    }

    /// Whether it can take another request now.
    pub(crate) fn takes_requests(&self) -> bool {
        match &self.state {
            State::Attaching | State::Resuming(_) => false,
            State::Fresh | State::Attached(_) => {
                self.waiting.first == 0
                    && self.waiting.count < limits::CALLS_IN_FLIGHT_MAX
                    && self.waiting.bytes < limits::CALL_BYTES_MAX
            }
        }
    }

    /// Whether the mesh has been asked to attach an agent and has not answered.
    pub(crate) fn is_attaching(&self) -> bool {
        match &self.state {
            State::Attaching => true,
            State::Fresh | State::Resuming(_) | State::Attached(_) => false,
        }
    }

    /// The agent that has to be detached when the connection ends.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match &self.state {
            State::Fresh | State::Attaching => None,
            State::Resuming(resuming) => resuming.me.caller().ok(),
            State::Attached(me) => me.caller().ok(),
        }
    }
}

/// For calls.
impl Seat {
    pub(crate) fn me(&self) -> Option<&Arc<Party>> {
        match &self.state {
            State::Attached(me) => Some(me),
            State::Fresh | State::Attaching | State::Resuming(_) => None,
        }
    }

    /// Takes one of the messages and acts that the key may send in a minute, for a request that comes to no call.
    ///
    /// # Errors
    /// There is none left, or the connection is no agent yet.
    pub fn count_act(&self) -> Result<(), Refusal> {
        self.rules.count(self.me().ok_or(Refusal::NotAttached)?, self.now)
    }

    /// Asks the mesh for an answer of a type.
    pub(crate) fn call<A: Answer>(
        &mut self,
        command: Command,
        bound: Bound,
        then: impl FnOnce(&mut Seat, Result<A, Refusal>) + Send + 'static,
    ) {
        self.send(command, Hook::None, Place::Any, move |seat, ended| {
            then(seat, answer::read(ended, bound));
        });
    }

    pub(super) fn send(
        &mut self,
        command: Command,
        hook: Hook,
        place: Place,
        then: impl FnOnce(&mut Seat, Ended) + Send + 'static,
    ) {
        let unanswered = self.wait(place);
        let then = Box::new(move |seat: &mut Seat, ended| {
            seat.goes_on(&unanswered);
            then(seat, ended);
        });
        self.steps.push(Step::Call { command, hook, then });
    }

    pub(super) fn read<J: Job>(
        &mut self,
        job: J,
        then: impl FnOnce(&mut Seat, Result<J::Found, ReadError>) + Send + 'static,
    ) {
        let unanswered = self.wait(Place::Any);
        let then = move |seat: &mut Seat, found| {
            seat.goes_on(&unanswered);
            then(seat, found);
        };
        self.steps.push(Step::Read(Box::new(Read::new(job, then))));
    }

    /// Asks the webhooks.
    pub(super) fn ask_webhooks<A, F>(
        &mut self,
        ask: impl FnOnce(&Arc<Webhooks>) -> F + Send + 'static,
        then: Then<A>,
    ) where
        A: Send + 'static,
        F: Future<Output = Result<A, Refusal>> + Send + 'static,
    {
        let unanswered = self.wait(Place::Any);
        self.steps.push(Step::Webhooks(Box::new(move |webhooks| {
            let answering = ask(webhooks);
            Box::pin(async move {
                let answer = answering.await;
                let resume: Resume = Box::new(move |seat| {
                    seat.goes_on(&unanswered);
                    then(seat, answer);
                });
                resume
            })
        })));
    }

    fn wait(&mut self, place: Place) -> Unanswered {
        let unanswered = Unanswered { frame: self.frame, place };
        self.waiting.count += 1;
        self.waiting.bytes += unanswered.bytes();
        self.waiting.first += unanswered.first();
        unanswered
    }

    fn goes_on(&mut self, unanswered: &Unanswered) {
        self.frame = unanswered.frame;
        self.waiting.count -= 1;
        self.waiting.bytes -= unanswered.bytes();
        self.waiting.first -= unanswered.first();
    }
}

impl Unanswered {
    /// The command holds the frame's texts, and the dialect holds them a second time for its reply.
    fn bytes(&self) -> usize {
        2 * self.frame
    }

    fn first(&self) -> usize {
        match self.place {
            Place::First => 1,
            Place::Any => 0,
        }
    }
}
