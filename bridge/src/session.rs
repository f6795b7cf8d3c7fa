//! What a connection's requests mean, without I/O: requests and answers in, steps out.
//!
//! A step is done in its order by the connection, which comes back with what it found. Handlers
//! return `Result<Steps, Refusal>`; one place makes frames of both.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bytes::Bytes;
use mesh::{
    api::{
        agenda::Standing,
        command::{Caller, Command, Speech},
    },
    name::{
        id::{KeyPrint, MessageId, RoomId},
        number::Number,
    },
};
use protocol::{
    code::Code,
    frame::{Incoming, RequestError, encode_reply},
    reply::{Empty, Reply as Frame},
    request::Request,
    value::Metadata,
};

use crate::{
    backend::ReadError,
    config::Config,
    hub::Hub,
    job::{Cursor, Found, History, Job},
    limits,
    link::{self, Ending},
    meter::Meter,
    refusal::Refusal,
    reply::{Given, Hook, Ticket},
    webhooks,
};

mod agenda;
mod answers;
mod commands;
mod register;
mod sought;
mod speech;

use register::Resuming;

/// What the connection is to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// Write a reply.
    Reply(Bytes),
    /// Write what was missed: a message with its number, or an event.
    Replay { message: Option<(RoomId, Number)>, bytes: Bytes },
    /// Ask the mesh; the answer comes to [`Session::on_answer`].
    Call { ticket: Ticket, command: Command, hook: Hook },
    /// Ask the webhooks; the answer comes to [`Session::on_answer`], too.
    Webhooks { ticket: Ticket, key: KeyPrint, ask: webhooks::Ask },
    /// Read; what was found comes to [`Session::on_found`].
    Read { ticket: Ticket, job: Job },
    /// The client has come to a room with a cursor that may be of another node; zero: it was here before.
    Came(RoomId, Number),
    /// It was given a page that ends there.
    Paged(RoomId, Number),
    /// Keep live messages of a room back.
    Hold(RoomId),
    /// No longer; everything up to the number was given to the client.
    Release(RoomId, Number),
    /// No longer; live messages begin with what is above this cursor of the client.
    GoOnFrom(RoomId, Number),
    /// Events may go out.
    Open,
    /// Write what is queued, then end.
    Close(Ending),
}

impl Step {
    /// Whether there is more to come for the same request.
    fn goes_on(&self) -> bool {
        match self {
            Step::Call { .. } | Step::Webhooks { .. } | Step::Read { .. } => true,
            Step::Reply(_)
            | Step::Replay { .. }
            | Step::Came(..)
            | Step::Paged(..)
            | Step::Hold(_)
            | Step::Release(..)
            | Step::GoOnFrom(..)
            | Step::Open
            | Step::Close(_) => false,
        }
    }
}

pub(crate) type Steps = Vec<Step>;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Session {
    config: Arc<Config>,
    hub: Arc<Hub>,
    meter: Arc<Meter>,
    /// When the request that is worked on came.
    now: Instant,
    state: State,
    waiting: BTreeMap<Ticket, Waiting>,
    /// Where the last page of the delivery log ended: its cursor needs no second look.
    paged: Option<Paged>,
    /// Pages that are on their way to the client, and where they end.
    given: Vec<(RoomId, Number)>,
    /// Contents of calls without an answer, in bytes.
    waiting_bytes: usize,
    /// Calls without an answer that wait for other nodes before they do anything: nothing that the client asks for
    /// after these is done before them.
    first: usize,
    tickets: u64,
}

/// The end of a page of the delivery log.
#[derive(Clone, Copy, Debug)]
struct Paged {
    room: RoomId,
    number: Number,
    /// What the client came to the log with.
    came: Number,
}

#[derive(Debug)]
enum State {
    Fresh,
    /// The mesh has been asked; later requests wait.
    Attaching,
    /// It is read what the agent missed; later requests wait.
    Resuming(Box<Resuming>),
    Registered(Me),
}

/// A registered agent.
#[derive(Clone, Debug)]
struct Me {
    caller: Caller,
    name: String,
    standing: Standing,
    stable: bool,
}

impl Me {
    /// As routing knows it.
    fn reader(&self) -> link::Me {
        let Caller { agent, key, .. } = &self.caller;
        link::Me { agent: agent.clone(), key: *key, stable: self.stable }
    }
}

/// A call or a read without an answer.
#[derive(Debug)]
struct Waiting {
    reply_to: Option<String>,
    bytes: usize,
    pending: Pending,
}

/// What the answer is needed for.
#[derive(Debug)]
enum Pending {
    Attach {
        name: String,
        me: link::Me,
    },
    /// A registration that is refused for this, if its key is valid.
    Key(Refusal),
    /// Rooms of an agent that comes back: read, and claimed.
    Missed,
    MissedClaim {
        room: RoomId,
        cursor: Cursor,
        tries: u8,
    },
    CreateRoom,
    /// `join_room`, `leave_room`, `set_typing`.
    InRoom(RoomId),
    Say(Box<Saying>),
    /// A repeated send: the first one is the answer.
    Repeated(RoomId),
    Presence(protocol::value::Status),
    Tip(RoomId),
    History(History),
    HistoryClaim(History),
    /// A cursor that could not be judged: the room's live messages wait until it can.
    Behind {
        room: RoomId,
        cursor: Number,
        tries: u8,
    },
    /// A request that names a room that is not known here: it is looked at again when others were asked.
    Again(Box<Request>),
    /// A page after a message that is not known here: the same.
    HistoryAgain(History),
    ListRooms,
    ListAgents,
    RoomInfo,
    /// `create_vote`, `get_vote_status`. What the command holds.
    Vote {
        bytes: usize,
        begins: bool,
    },
    Cast(MessageId),
    Votes(RoomId),
    Election(RoomId),
    Declined(RoomId),
    /// `assign_task`, `update_task`. What the command holds.
    Task {
        bytes: usize,
    },
    Tasks(RoomId),
    /// Everything about webhooks.
    Webhooks,
}

/// A message on its way, as the reply will show it.
#[derive(Debug)]
struct Saying {
    room: RoomId,
    speech: Speech,
    content: String,
    reply_to: Option<String>,
    metadata: Option<Metadata>,
}

impl Session {
    pub(crate) fn new(config: Arc<Config>, hub: Arc<Hub>, meter: Arc<Meter>) -> Session {
        Session {
            config,
            hub,
            meter,
            now: Instant::now(),
            state: State::Fresh,
            waiting: BTreeMap::new(),
            paged: None,
            given: Vec::new(),
            waiting_bytes: 0,
            first: 0,
            tickets: 0,
        }
    }

    /// Whether there are calls without an answer.
    pub(crate) fn awaits_answers(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether it can take another request now.
    pub(crate) fn takes_requests(&self) -> bool {
        match &self.state {
            State::Attaching | State::Resuming(_) => false,
            State::Fresh | State::Registered(_) => {
                self.first == 0
                    && self.waiting.len() < limits::CALLS_IN_FLIGHT_MAX
                    && self.waiting_bytes < limits::CALL_BYTES_MAX
            }
        }
    }

    /// Whether it is an agent, or is about to be one.
    pub(crate) fn is_fresh(&self) -> bool {
        match &self.state {
            State::Fresh => true,
            State::Attaching | State::Resuming(_) | State::Registered(_) => false,
        }
    }

    /// Whether the mesh has been asked to attach it and has not answered.
    pub(crate) fn is_attaching(&self) -> bool {
        match &self.state {
            State::Attaching => true,
            State::Fresh | State::Resuming(_) | State::Registered(_) => false,
        }
    }

    /// Who has to be detached when the connection ends.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match &self.state {
            State::Fresh | State::Attaching => None,
            State::Resuming(resuming) => Some(&resuming.me.caller),
            State::Registered(me) => Some(&me.caller),
        }
    }

    pub(crate) fn on_request(
        &mut self,
        now: Instant,
        request: Result<Incoming, RequestError>,
    ) -> Steps {
        self.now = now;
        let (reply_to, steps) = match request {
            Ok(Incoming { id, request }) => {
                let steps = self.request(request, id.clone());
                (id, steps)
            }
            Err(RequestError { reply_to, message, of_agents }) => {
                let refusal =
                    if of_agents { self.unsound(message) } else { Refusal::invalid(message) };
                (reply_to, Err(refusal))
            }
        };
        steps.unwrap_or_else(|refusal| self.refuse(refusal, reply_to.as_deref()))
    }

    /// Who was asked has answered.
    pub(crate) fn on_answer(&mut self, ticket: Ticket, given: Given) -> Steps {
        let Some(Waiting { reply_to, pending, .. }) = self.take(ticket) else { return Vec::new() };
        let steps = match given {
            Given::Mesh(answer) => self.answered(pending, answer, reply_to.clone()),
            Given::Webhooks(answered) => {
                answered.map(|frame| self.reply(&frame, reply_to.as_deref()))
            }
        };
        steps.unwrap_or_else(|refusal| self.refuse(refusal, reply_to.as_deref()))
    }

    /// A read is done.
    pub(crate) fn on_found(&mut self, ticket: Ticket, found: Result<Found, ReadError>) -> Steps {
        let Some(Waiting { reply_to, pending, .. }) = self.take(ticket) else { return Vec::new() };
        let held = pending.held_room();
        let found = match found {
            Err(error) if matches!(pending, Pending::Missed) => return self.give_up(error.into()),
            Err(_) if let Pending::Behind { room, cursor, .. } = pending => {
                return vec![Step::GoOnFrom(room, cursor)];
            }
            found => found.map_err(Refusal::from),
        };
        let steps = found.and_then(|found| self.found(pending, found, reply_to.clone()));
        let mut steps = steps.unwrap_or_else(|refusal| self.refuse(refusal, reply_to.as_deref()));
        let given = std::mem::take(&mut self.given).into_iter();
        steps.extend(given.map(|(room, upto)| Step::Paged(room, upto)));
        if !steps.iter().any(Step::goes_on) {
            steps.extend(held.map(|room| Step::Release(room, Number::ZERO)));
        }
        steps
    }

    fn request(&mut self, request: Request, reply_to: Option<String>) -> Result<Steps, Refusal> {
        match (&self.state, request) {
            (_, Request::Ping(_)) => Ok(self.reply(&Frame::Pong(Empty {}), reply_to.as_deref())),
            (_, Request::Pong(_)) => Ok(Vec::new()),
            (State::Fresh, Request::Register(it)) => self.register(it, reply_to),
            (State::Registered(_), Request::Register(_)) => {
                Err(Refusal::invalid("this connection is registered; open another one"))
            }
            (State::Registered(me), request) => {
                let me = me.clone();
                match self.unknown_room(&request) {
                    Some(room) => Ok(self.seek(&me, room, (request, reply_to))),
                    None => self.command(&me, request, reply_to),
                }
            }
            (State::Fresh | State::Attaching | State::Resuming(_), _) => Err(not_registered()),
        }
    }

    /// A command of agents whose payload is unsound. Who is none is not told of payloads (spec §2).
    fn unsound(&self, message: String) -> Refusal {
        match &self.state {
            State::Registered(_) => Refusal::invalid(message),
            State::Fresh | State::Attaching | State::Resuming(_) => not_registered(),
        }
    }

    fn call(
        &mut self,
        command: Command,
        hook: Hook,
        pending: Pending,
        reply_to: Option<String>,
    ) -> Step {
        Step::Call { ticket: self.wait(pending, reply_to), command, hook }
    }

    fn read(&mut self, job: Job, pending: Pending, reply_to: Option<String>) -> Step {
        Step::Read { ticket: self.wait(pending, reply_to), job }
    }

    fn wait(&mut self, pending: Pending, reply_to: Option<String>) -> Ticket {
        let bytes = pending.bytes() + reply_to.as_ref().map_or(0, String::len);
        self.tickets += 1;
        self.waiting_bytes += bytes;
        self.first += usize::from(pending.goes_first());
        let ticket = Ticket(self.tickets);
        self.waiting.insert(ticket, Waiting { reply_to, bytes, pending });
        ticket
    }

    fn take(&mut self, ticket: Ticket) -> Option<Waiting> {
        let waiting = self.waiting.remove(&ticket)?;
        self.waiting_bytes -= waiting.bytes;
        self.first -= usize::from(waiting.pending.goes_first());
        Some(waiting)
    }

    fn reply(&self, reply: &Frame, reply_to: Option<&str>) -> Steps {
        vec![self.frame(reply, reply_to)]
    }

    fn frame(&self, reply: &Frame, reply_to: Option<&str>) -> Step {
        Step::Reply(Bytes::from(encode_reply(reply, reply_to, &self.hub.frame_id())))
    }

    fn refuse(&self, refusal: Refusal, reply_to: Option<&str>) -> Steps {
        let close = self.is_fresh()
            && matches!(
                refusal.code,
                Code::UnsupportedProtocol | Code::Unauthorized | Code::RateLimitAgents
            );
        self.hub.counters().refuse(refusal.code);
        let mut steps = self.reply(&refusal.into_reply(), reply_to);
        if close {
            steps.push(Step::Close(Ending::Refused));
        }
        steps
    }

    fn room_name(&self, room: RoomId) -> String {
        crate::convert::room_text(self.config.lobby, room)
    }
}

fn not_registered() -> Refusal {
    Refusal::new(Code::NotRegistered, "register first")
}

impl Pending {
    /// The room whose live messages are held for a page of history, if they are.
    fn held_room(&self) -> Option<RoomId> {
        if let Pending::History(history) = self
            && history.held
        {
            return Some(history.room);
        }
        None
    }

    /// Whether what comes after it on the connection has to wait for it.
    fn goes_first(&self) -> bool {
        match self {
            Pending::Again(_) | Pending::Election(_) => true,
            Pending::Vote { begins, .. } => *begins,
            Pending::Attach { .. }
            | Pending::Key(_)
            | Pending::Missed
            | Pending::MissedClaim { .. }
            | Pending::CreateRoom
            | Pending::InRoom(_)
            | Pending::Say(_)
            | Pending::Repeated(_)
            | Pending::Presence(_)
            | Pending::Tip(_)
            | Pending::History(_)
            | Pending::HistoryClaim(_)
            | Pending::HistoryAgain(_)
            | Pending::Behind { .. }
            | Pending::ListRooms
            | Pending::ListAgents
            | Pending::RoomInfo
            | Pending::Cast(_)
            | Pending::Votes(_)
            | Pending::Declined(_)
            | Pending::Task { .. }
            | Pending::Tasks(_)
            | Pending::Webhooks => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Pending::Say(saying) => {
                let metadata = saying.metadata.as_ref().map_or(0, |it| it.get().len());
                // The command holds them a second time.
                2 * (saying.content.len() + metadata)
            }
            Pending::Vote { bytes, .. } | Pending::Task { bytes } => *bytes,
            Pending::Again(request) => sought::bytes(request),
            Pending::Attach { .. }
            | Pending::Key(_)
            | Pending::Missed
            | Pending::MissedClaim { .. }
            | Pending::CreateRoom
            | Pending::InRoom(_)
            | Pending::Repeated(_)
            | Pending::Presence(_)
            | Pending::Tip(_)
            | Pending::History(_)
            | Pending::HistoryClaim(_)
            | Pending::Behind { .. }
            | Pending::HistoryAgain(_)
            | Pending::ListRooms
            | Pending::ListAgents
            | Pending::RoomInfo
            | Pending::Cast(_)
            | Pending::Votes(_)
            | Pending::Election(_)
            | Pending::Declined(_)
            | Pending::Tasks(_)
            | Pending::Webhooks => 0,
        }
    }
}

#[cfg(test)]
#[path = "agenda_tests.rs"]
mod agenda_tests;
#[cfg(test)]
#[path = "away_tests.rs"]
mod away_tests;
#[cfg(test)]
#[path = "keys_tests.rs"]
mod keys_tests;
#[cfg(test)]
#[path = "sought_tests.rs"]
mod sought_tests;
#[cfg(test)]
#[path = "stranger_tests.rs"]
mod stranger_tests;
#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
