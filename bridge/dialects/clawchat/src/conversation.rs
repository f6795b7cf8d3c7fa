//! Requests of a connection: registration, rooms and messages (spec §2, §3). From requests to calls, from answers to
//! replies.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bridge::{
    delivery::ending::Ending,
    dialect::{Conversation, Heard, Manners},
    read::Desk,
    seam::{
        answer::{Page, Welcome},
        call::{
            Attach, CreateRoom, CreateShared, From, HandOver, History, Identity, Join, Leave,
            ListAgents, Look, OneMessage, OpenDirect, Say, SetPresence, SetTyping, Tip,
        },
        event::{Event, Recipient},
        refusal::Refusal,
    },
    secret::Secret,
    session::{ask::Ask, seat::Seat},
};
use mesh::{
    api::command::{Durable, Encryption, Fresh, NewRoom, RoomView, SaidOk, Speech},
    limits::COPIES_WITHIN,
    name::{
        group::DIRECT,
        id::{EntryRef, MessageId, RoomId},
        number::Number,
    },
    wire::roster::Presence,
};
use protocol::{
    code::Code,
    frame::{Incoming, RequestError, parse_request},
    limits::PROTOCOL_VERSION,
    object::{MeshNote, Message},
    reply::{
        AgentList, Decided, Empty, HistoryNote, HistoryResult, InRoom, PresenceSet, Registered,
        Reply as Frame, Resumed, RoomTipResult,
    },
    request::{self, GetHistory, Register, Request},
    value::{Metadata, Progress, RECEIPT, STREAM, SendOptions},
};

use crate::{
    approvals,
    codes::Problem,
    encode::{self, Viewer},
    encrypted,
    voice::Voice,
};

/// A connection's agent, as one that is shown rooms.
pub(crate) fn viewer(seat: &Seat) -> Viewer {
    Viewer { key: seat.key(), agent: seat.agent().cloned() }
}

/// Whether the author of a message waits for an answer, if its metadata says so. An ended conversation needs none.
fn expects_reply(metadata: &Metadata) -> Option<bool> {
    #[derive(serde::Deserialize)]
    struct Asks {
        expects_reply: Option<bool>,
        kind: Option<String>,
    }
    let json = metadata.get();
    // Most say neither, and are not read again.
    if !json.contains("expects_reply") && !json.contains(CONVERSATION_END) {
        return None;
    }
    let asks: Asks = serde_json::from_str(json).ok()?;
    let ends = asks.kind.is_some_and(|kind| kind == CONVERSATION_END);
    if ends { Some(false) } else { asks.expects_reply }
}

/// The kind of a message after which nobody is to say anything.
const CONVERSATION_END: &str = "conversation_end";

/// The agent of whose direct room a client speaks: it names that, and nothing else.
fn direct_with(room: &request::CreateRoom) -> Option<&str> {
    let request::CreateRoom { name, description, parent_id, ephemeral, public, encrypted, mesh } =
        room;
    let alone = description.is_none() && parent_id.is_none() && mesh.is_none();
    let plain = alone && !ephemeral && !public && !encrypted;
    name.strip_prefix(DIRECT).filter(|agent| plain && !agent.is_empty())
}

const SHARED_ALONE: &str = "a shared room is under no other room, which those it is shared with might not see: leave `parent_id` out";

/// One connection.
#[derive(Debug)]
pub(crate) struct Talk {
    voice: Arc<Voice>,
    desk: Arc<OnceLock<Desk>>,
    manners: Manners,
    /// The client wants to hear what becomes of requests.
    hears_receipts: bool,
}

impl Talk {
    pub(crate) fn new(voice: Arc<Voice>, desk: Arc<OnceLock<Desk>>, manners: Manners) -> Talk {
        Talk { voice, desk, manners, hears_receipts: false }
    }
}

impl Recipient for Talk {
    fn admits(&self, event: &Event) -> bool {
        self.hears_receipts || !matches!(event, Event::Fate { .. })
    }
}

impl Conversation for Talk {
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>) {
        let incoming = match frame {
            Heard::Text(line) => parse_request(line),
            Heard::Binary => {
                let message = String::from("frames are text messages, not binary ones");
                Err(RequestError { reply_to: None, message, of_agents: false })
            }
        };
        let turn = |reply_to| Turn { voice: self.voice.clone(), desk: self.desk.clone(), reply_to };
        match incoming {
            Ok(Incoming { id, request }) => {
                if let Request::Register(register) = &request {
                    let wishes = register.mesh.as_ref();
                    self.hears_receipts = wishes.is_some_and(|wishes| wishes.wants(RECEIPT));
                    if wishes.is_some_and(|wishes| wishes.wants(STREAM)) {
                        seat.hear_pieces();
                    }
                }
                turn(id).take(seat, request);
            }
            // Payloads are no matter of a client that is no agent (spec §2).
            Err(RequestError { reply_to, of_agents: true, .. }) if seat.agent().is_none() => {
                turn(reply_to).refuse(seat, Refusal::NotAttached);
            }
            Err(RequestError { reply_to, message, .. }) => {
                turn(reply_to).refuse(seat, Problem::invalid(message));
            }
        }
    }

    fn manners(&self) -> Manners {
        self.manners
    }
}

/// A request until it is answered.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) voice: Arc<Voice>,
    pub(crate) desk: Arc<OnceLock<Desk>>,
    reply_to: Option<String>,
}

impl Turn {
    /// Asks, and replies with the answer.
    pub(crate) fn ask<C: Ask>(
        self,
        seat: &mut Seat,
        call: C,
        reply: impl FnOnce(&Voice, C::Answer) -> Frame + Send + 'static,
    ) {
        seat.ask(call, self.answered(reply));
    }

    /// The same, before the next request is looked at.
    pub(crate) fn ask_in_turn<C: Ask>(
        self,
        seat: &mut Seat,
        call: C,
        reply: impl FnOnce(&Voice, C::Answer) -> Frame + Send + 'static,
    ) {
        seat.ask_in_turn(call, self.answered(reply));
    }

    fn answered<A>(
        self,
        reply: impl FnOnce(&Voice, A) -> Frame + Send + 'static,
    ) -> impl FnOnce(&mut Seat, Result<A, Refusal>) + Send + 'static {
        move |seat, answer| match answer {
            Ok(answer) => {
                let frame = reply(&self.voice, answer);
                self.reply(seat, &frame);
            }
            Err(refusal) => self.refuse(seat, refusal),
        }
    }

    pub(crate) fn reply(&self, seat: &mut Seat, frame: &Frame) {
        seat.reply(self.voice.reply(frame, self.reply_to.as_deref()));
    }

    pub(crate) fn refuse(&self, seat: &mut Seat, problem: impl Into<Problem>) {
        let problem = problem.into();
        let code = problem.code;
        self.voice.refusals.count(code);
        self.reply(seat, &problem.into_reply());
        let ends =
            matches!(code, Code::UnsupportedProtocol | Code::Unauthorized | Code::RateLimitAgents);
        if ends && seat.is_fresh() {
            seat.close(Ending::Refused);
        }
    }

    /// Goes on with the room that a client names.
    pub(crate) fn at(
        self,
        seat: &mut Seat,
        room: &str,
        go_on: impl FnOnce(Turn, &mut Seat, RoomId),
    ) {
        match self.voice.room(room) {
            Ok(room) => go_on(self, seat, room),
            Err(refusal) => self.refuse(seat, refusal),
        }
    }

    /// The same, if it names one.
    pub(crate) fn at_any(
        self,
        seat: &mut Seat,
        room: Option<&str>,
        go_on: impl FnOnce(Turn, &mut Seat, Option<RoomId>),
    ) {
        match room.map(|room| self.voice.room(room)).transpose() {
            Ok(room) => go_on(self, seat, room),
            Err(refusal) => self.refuse(seat, refusal),
        }
    }

    fn take(self, seat: &mut Seat, request: Request) {
        let is_open_to_all =
            matches!(request, Request::Register(_) | Request::Ping(_) | Request::Pong(_));
        if seat.agent().is_none() && !is_open_to_all {
            return self.refuse(seat, Refusal::NotAttached);
        }
        match request {
            Request::Ping(_) => self.reply(seat, &Frame::Pong(Empty {})),
            Request::Pong(_) => {}
            Request::Register(register) => self.register(seat, register),
            Request::CreateRoom(room) => self.create_room(seat, room),
            Request::ShareRoom(share) => self.share_room(seat, share),
            Request::UnshareRoom(share) => self.unshare_room(seat, share),
            Request::AddMember(add) => self.add_member(seat, add),
            Request::RemoveMember(remove) => self.remove_member(seat, remove),
            Request::RetireAgent(retire) => self.retire_agent(seat, retire),
            Request::JoinRoom(join) => {
                self.at(seat, &join.room_id, |turn, seat, room| {
                    turn.in_room(seat, Join(room), room)
                });
            }
            Request::LeaveRoom(leave) => {
                let leave = leave.room_id;
                self.at(seat, &leave, |turn, seat, room| turn.in_room(seat, Leave(room), room));
            }
            Request::SendMessage(send) => self.say(seat, send.into()),
            Request::Thinking(thinking) => self.say(seat, thinking.into()),
            Request::Decision(decision) => self.decide(seat, decision),
            Request::GetHistory(page) => {
                let room = page.room_id.clone();
                self.at(seat, &room, |turn, seat, room| turn.history(seat, room, &page));
            }
            Request::RoomTip(tip) => self.at(seat, &tip.room_id, Turn::room_tip),
            Request::Search(search) => self.search(seat, search),
            Request::Replay(replay) => self.replay(seat, &replay),
            Request::GetReceipts(ask) => self.get_receipts(seat, &ask),
            Request::Stream(piece) => self.stream(seat, piece),
            Request::Ack(ack) => self.ack(seat, &ack),
            Request::ListRooms(list) => self.list_rooms(seat, &list),
            Request::ListAgents(list) => self.list_agents(seat, &list),
            Request::RoomInfo(info) => self.at(seat, &info.room_id, Turn::describe_room),
            Request::SetRoom(set) => self.set_room(seat, set),
            Request::SetTyping(set) => self.at(seat, &set.room_id, |turn, seat, room| {
                turn.in_room(seat, SetTyping { room, typing: set.typing }, room);
            }),
            Request::SetPresence(set) => self.set_presence(seat, set),
            Request::SetProfile(set) => self.set_profile(seat, set),
            Request::GetProfile(get) => self.get_profile(seat, get.agent_id.into()),
            Request::CreateVote(vote) => self.create_vote(seat, vote),
            Request::CastVote(ballot) => self.cast_vote(seat, &ballot),
            Request::GetVoteStatus(vote) => self.get_vote(seat, &vote),
            Request::ListVotes(list) => self.list_votes(seat, &list),
            Request::ElectLeader(elect) => self.at(seat, &elect.room_id, Turn::elect_leader),
            Request::DeclineElection(it) => self.at(seat, &it.room_id, Turn::decline_election),
            Request::AssignTask(task) => self.assign_task(seat, task),
            Request::UpdateTask(update) => self.update_task(seat, update),
            Request::ListTasks(list) => self.list_tasks(seat, &list),
            Request::Once(once) => self.once(seat, once),
            Request::DecideApproval(decide) => self.decide_approval(seat, decide),
            Request::ListApprovals(list) => self.list_approvals(seat, &list),
            Request::GetApproval(get) => self.get_approval(seat, &get),
            Request::GetTask(get) => self.get_task(seat, &get),
            Request::DeleteTask(delete) => self.delete_task(seat, &delete),
            Request::Subscribe(wish) => self.subscribe(seat, wish),
            Request::Unsubscribe(wish) => self.unsubscribe(seat, wish.subscription_id),
            Request::ListSubscriptions(list) => self.list_subscriptions(seat, &list),
            Request::EnableSubscription(wish) => self.enable(seat, wish.subscription_id),
        }
    }

    fn room_tip(self, seat: &mut Seat, room: RoomId) {
        self.ask(seat, Tip(room), move |voice, tip| {
            Frame::RoomTip(RoomTipResult { room_id: voice.name(room), seq: tip.0 })
        });
    }

    fn register(self, seat: &mut Seat, register: Register) {
        if seat.agent().is_some() {
            return self.refuse(seat, Refusal::AttachedAlready);
        }
        if register.protocol_version != PROTOCOL_VERSION {
            let text = format!("this node speaks protocol version {PROTOCOL_VERSION} only");
            return self.refuse(seat, Problem::new(Code::UnsupportedProtocol, text));
        }
        let wishes = register.mesh.unwrap_or_default();
        let identity = match (register.agent_id, wishes.draw) {
            (Some(agent), _) => Identity::Named(agent),
            (None, Some(random)) => Identity::Drawn(random),
            (None, None) => Identity::Fresh,
        };
        let attach = Attach {
            key: Secret::new(register.key.expose()),
            name: register.name,
            identity,
            capabilities: register.capabilities,
            // Its other connection may be the one that begins at this moment.
            reconnect: register.reconnect || wishes.draw.is_some(),
            linger: Duration::from_secs(wishes.linger_secs.unwrap_or(0)),
        };
        self.ask(seat, attach, registered);
    }

    fn create_room(self, seat: &mut Seat, room: request::CreateRoom) {
        if let Some(agent) = direct_with(&room) {
            return self.make(seat, OpenDirect::with(agent));
        }
        let parent_id = room.parent_id;
        let mut create = CreateRoom(NewRoom {
            name: room.name,
            description: room.description,
            parent: None,
            ephemeral: room.ephemeral,
            public: room.public,
            encrypted: room.encrypted,
        });
        if let Err(refusal) = create.fields() {
            return self.refuse(seat, refusal);
        }
        if room.mesh.is_some_and(|options| options.shared) {
            if parent_id.is_some() {
                return self.refuse(seat, Problem::invalid(SHARED_ALONE));
            }
            return self.make(seat, CreateShared(create.0));
        }
        self.at_any(seat, parent_id.as_deref(), |turn, seat, parent| {
            create.0.parent = parent;
            turn.make(seat, create);
        });
    }

    /// A call that makes a room, or finds one.
    fn make<C: Ask<Answer = RoomView>>(self, seat: &mut Seat, call: C) {
        let to = viewer(seat);
        self.ask(seat, call, move |voice, room| {
            Frame::Room(Box::new(encode::room(voice.lobby(), &room, &to)))
        });
    }

    /// Something whose reply names its room.
    fn in_room<C: Ask<Answer = ()>>(self, seat: &mut Seat, call: C, room: RoomId) {
        self.ask(seat, call, move |voice, ()| Frame::InRoom(InRoom { room_id: voice.name(room) }));
    }

    fn history(self, seat: &mut Seat, room: RoomId, page: &GetHistory) {
        let before_ms = match page.before.as_deref().map(encode::unix_ms) {
            Some(None) => return self.no_time(seat, room),
            Some(before_ms) => before_ms,
            None => None,
        };
        let from = match (page.since_seq, &page.since) {
            (Some(number), _) => From::Number(number),
            (None, Some(id)) => match MessageId::from_uuid(id) {
                Some(message) => From::Message(message),
                // Nothing is after a message that cannot be.
                None => {
                    return self.ask(seat, Look(room), move |voice, _| {
                        history(voice, Page { room, messages: Vec::new(), behind: false })
                    });
                }
            },
            (None, None) => From::Newest,
        };
        let call = History { room, from, limit: page.limit, before_ms };
        let reply = self.answered(history);
        seat.ask(call, move |seat, page| {
            let requests = page.as_ref().map_or(Vec::new(), |page| asked_for(seat, page));
            reply(seat, page);
            if !requests.is_empty() {
                // Requests that nobody hears were handed over are said to be when they are answered.
                seat.ask(HandOver { room, requests }, |_, _| {});
            }
        });
    }

    /// A time that is none, in a room that may not be there or not be read: this is said first.
    fn no_time(self, seat: &mut Seat, room: RoomId) {
        seat.ask(Look(room), move |seat, facts| match facts {
            Ok(_) => {
                let text = "`before` must be an RFC 3339 time, such as 2026-01-31T12:00:00Z";
                self.refuse(seat, Problem::invalid(text));
            }
            Err(refusal) => self.refuse(seat, refusal),
        });
    }

    fn list_agents(self, seat: &mut Seat, list: &request::ListAgents) {
        self.at_any(seat, list.room_id.as_deref(), |turn, seat, room| {
            turn.ask(seat, ListAgents { room }, |_, agents| {
                Frame::AgentList(AgentList { agents: agents.iter().map(encode::agent).collect() })
            });
        });
    }

    fn set_presence(self, seat: &mut Seat, set: request::SetPresence) {
        let status = set.status;
        let presence = Presence {
            status: encode::core_status(status),
            detail: set.status_detail,
            progress: set.progress.map(Progress::percent),
        };
        self.ask(seat, SetPresence(presence), move |_, ()| {
            Frame::PresenceSet(PresenceSet { status })
        });
    }

    fn decide(self, seat: &mut Seat, decision: request::Decision) {
        if decision.metadata.as_ref().is_some_and(|metadata| !metadata.is_object()) {
            let text = "`metadata` of a decision must be an object";
            return self.refuse(seat, Problem::invalid(text));
        }
        self.say(seat, decision.into());
    }

    /// `send_message`, `thinking` and `decision`: one path, the data differs.
    fn say(self, seat: &mut Seat, utterance: Utterance) {
        let room = utterance.room_id.clone();
        self.at(seat, &room, |turn, seat, room| turn.say_in(seat, room, utterance));
    }

    fn say_in(self, seat: &mut Seat, room: RoomId, utterance: Utterance) {
        let Utterance { speech, content, reply_to, mentions, metadata, options, .. } = utterance;
        let asked = match metadata.as_ref().map(approvals::asked).transpose() {
            Ok(asked) => asked.flatten().filter(|_| speech == Speech::Chat),
            Err(problem) => return self.refuse(seat, problem),
        };
        let agent = seat.agent().map(|agent| agent.to_string()).unwrap_or_default();
        let echo = Echo {
            room,
            metadata: encode::metadata(speech, &agent, metadata.as_ref()),
            agent,
            content: content.clone(),
            reply_to: reply_to.clone(),
        };
        let is_blob = encrypted::is_blob(&content);
        let options = options.unwrap_or_default();
        let durable = options.durable.map(|copies| Durable {
            copies: usize::try_from(copies).unwrap_or(usize::MAX),
            within: options.durable_wait_ms.map_or(COPIES_WITHIN, Duration::from_millis),
        });
        let expects_reply = metadata.as_ref().and_then(expects_reply);
        let say = Say {
            room,
            speech,
            content,
            encryption: if is_blob { Encryption::EndToEnd } else { Encryption::None },
            reply_to,
            mentions,
            expects_reply,
            by_tool: false,
            announce: false,
            counted: expects_reply == Some(true),
            metadata: metadata.map(|json| String::from(json.get())),
            dedup: options.dedup.map(|id| String::from(id.as_str())),
            durable,
        };
        approvals::say(seat, say, asked, move |seat, said| match said {
            // Of a decision the reply shows nothing but its id.
            Ok(said) if speech == Speech::Decision => {
                let (message_id, room_id) = (said.message.to_uuid(), self.voice.name(room));
                let mesh = encode::with_copies(None, said.copies);
                self.reply(seat, &Frame::Decided(Decided { message_id, room_id, mesh }));
            }
            Ok(SaidOk { message, number, fresh: Some(fresh), copies }) => {
                let mesh = encode::with_copies(encode::fresh(message, &fresh), copies);
                let frame = echo.into_reply(&self.voice, (message, number), fresh, mesh);
                self.reply(seat, &frame);
            }
            // The first one is the answer.
            Ok(SaidOk { message, fresh: None, copies, .. }) => {
                self.repeat(seat, OneMessage { room, message }, copies);
            }
            Err(refusal) => self.refuse(seat, refusal),
        });
    }

    fn repeat(self, seat: &mut Seat, first: OneMessage, copies: Option<usize>) {
        seat.ask(first, move |seat, message| match message {
            Ok(Some(message)) => {
                let mut message = encode::message(self.voice.lobby(), &message);
                message.mesh = encode::with_copies(message.mesh, copies);
                self.reply(seat, &Frame::Message(Box::new(message)));
            }
            Ok(None) => self.refuse(seat, Refusal::NotKept),
            Err(refusal) => self.refuse(seat, refusal),
        });
    }
}

fn registered(voice: &Voice, welcome: Welcome) -> Frame {
    let resumed = welcome.resumed.map(|resumed| Resumed {
        reconnected: true,
        rooms: resumed.rooms.iter().map(|room| voice.name(*room)).collect(),
        missed_messages: resumed.missed as u64,
    });
    Frame::Registered(Registered {
        agent_id: welcome.agent.to_string(),
        name: welcome.name,
        protocol_version: PROTOCOL_VERSION,
        resumed,
    })
}

/// The messages of a page that ask the agent for something.
fn asked_for(seat: &Seat, page: &Page) -> Vec<EntryRef> {
    let Some(agent) = seat.agent() else { return Vec::new() };
    let asked = page.messages.iter().filter(|message| message.is_to_be_handed_to(agent));
    asked.map(|message| message.entry).collect()
}

fn history(voice: &Voice, page: Page) -> Frame {
    let messages = page.messages.iter();
    Frame::History(HistoryResult {
        room_id: voice.name(page.room),
        messages: messages.map(|message| encode::message(voice.lobby(), message)).collect(),
        mesh: page.behind.then_some(HistoryNote { behind: true }),
    })
}

/// A message that an agent wants to send.
struct Utterance {
    room_id: String,
    speech: Speech,
    content: String,
    reply_to: Option<String>,
    mentions: Vec<String>,
    metadata: Option<Metadata>,
    options: Option<SendOptions>,
}

impl std::convert::From<request::SendMessage> for Utterance {
    fn from(send: request::SendMessage) -> Utterance {
        Utterance {
            room_id: send.room_id,
            speech: Speech::Chat,
            content: send.content,
            reply_to: send.reply_to,
            mentions: send.mentions,
            metadata: send.metadata,
            options: send.mesh,
        }
    }
}

impl std::convert::From<request::Thinking> for Utterance {
    fn from(thinking: request::Thinking) -> Utterance {
        Utterance {
            room_id: thinking.room_id,
            speech: Speech::Thinking,
            content: thinking.content,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            options: thinking.mesh,
        }
    }
}

impl std::convert::From<request::Decision> for Utterance {
    fn from(decision: request::Decision) -> Utterance {
        Utterance {
            room_id: decision.room_id,
            speech: Speech::Decision,
            content: decision.content,
            reply_to: None,
            mentions: Vec::new(),
            metadata: decision.metadata,
            options: decision.mesh,
        }
    }
}

/// A message on its way, as the reply will show it.
struct Echo {
    room: RoomId,
    agent: String,
    content: String,
    reply_to: Option<String>,
    metadata: Option<Metadata>,
}

impl Echo {
    fn into_reply(
        self,
        voice: &Voice,
        (id, number): (MessageId, Number),
        fresh: Fresh,
        mesh: Option<MeshNote>,
    ) -> Frame {
        Frame::Message(Box::new(Message {
            message_id: id.to_uuid(),
            room_id: voice.name(self.room),
            agent_id: self.agent,
            agent_name: fresh.name,
            content: self.content,
            reply_to_message: self.reply_to,
            metadata: self.metadata,
            timestamp: encode::timestamp(fresh.wall_ms),
            seq: number.0,
            mesh,
        }))
    }
}
