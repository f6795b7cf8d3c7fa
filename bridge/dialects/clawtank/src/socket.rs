//! One connection: its frames, until it is let in and after.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use bridge::{
    delivery::ending::Ending,
    dialect::{Conversation, Heard, Manners},
    seam::{
        call::{Attach, Identity, JoinAsGuest, Leave},
        event::{Event, Message, Recipient},
    },
    session::seat::Seat,
};
use bytes::Bytes;
use mesh::{api::command::RoomInfo, name::id::RoomId};
use serde_json::json;
use tokio::{sync::mpsc, time::sleep};

use crate::{
    agents,
    agents::Introduction,
    approvals, arrivals,
    bad_frames::BadFrames,
    chat,
    connect::{Kind, Member, Wish, let_in},
    envelope::{Bad, CAPABILITIES, Related, Request, Told},
    extensions, git,
    limits::{
        CONNECT_WITHIN, KEY_LOOK_EVERY, MESSAGE_BYTES_END, NEWS_MAX, PACE, PING_EVERY,
        REGISTER_WITHIN, ROOMS_MAX, SILENT_FOR_MAX,
    },
    problem::{Code, Problem},
    rooms, runs,
    said::Saying,
    shared::{Done, News, Place, Shared},
    spectators,
    state::{Context, State, locked},
    style::Style,
    tasks,
    voice::Voices,
};

/// How clients are treated.
pub(crate) const MANNERS: Manners = Manners {
    frame_bytes_max: MESSAGE_BYTES_END,
    attach_within: CONNECT_WITHIN,
    silence: SILENT_FOR_MAX,
    heartbeat: PING_EVERY,
    pace: Some(PACE),
    too_large: Ending::TooLarge,
    not_text: Ending::NotText,
};

/// See the module.
pub(crate) struct Talk {
    shared: Arc<OnceLock<Arc<Shared>>>,
    voices: Voices,
    state: Arc<Mutex<State>>,
    news: News,
    /// Their other end, until the client is let in.
    heard: Option<mpsc::Receiver<Event>>,
    bad: BadFrames,
}

impl Talk {
    pub(crate) fn new(shared: Arc<OnceLock<Arc<Shared>>>, voices: Voices) -> Talk {
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let bad = BadFrames::default();
        Talk { shared, voices, state: Arc::default(), news, heard: Some(heard), bad }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// How the client is told of things, by now.
    fn style(&self) -> Style {
        let state = self.state();
        match (&state.member, state.form) {
            (Some(member), _) => member.style,
            (None, Some(form)) => self.voices.of(form).0,
            (None, None) => self.voices.usual().0,
        }
    }

    /// A frame that is none is answered all the same; one that sends many has to go.
    fn refuse(&mut self, seat: &mut Seat, related: &Related, problem: &Problem) {
        seat.reply(self.style().error(problem, related));
        if self.bad.one_more() {
            seat.close(Ending::BadFrame);
        }
    }

    /// A client that has not been let in.
    fn stranger(&mut self, seat: &mut Seat, shared: Arc<Shared>, request: Request) {
        if request.kind == CAPABILITIES {
            let style = self.style();
            let agreed = extensions::agree(&mut self.state(), style, &request);
            return seat.reply(agreed.unwrap_or_else(|no| style.error(&no, &request.related)));
        }
        if request.kind != "connection.request" {
            let text = "the first message is connection.request";
            let problem = Problem::new(Code::AuthenticationFailed, text);
            return self.refuse(seat, &request.related, &problem);
        }
        if spectators::seat::is_meant(&request) {
            let (whose, related) = ((self.state.clone(), self.style()), request.related.clone());
            let begun = spectators::seat::begin(seat, shared, whose, request);
            return begun.unwrap_or_else(|problem| self.refuse(seat, &related, &problem));
        }
        let wish = match Wish::of(&request) {
            Ok(wish) => wish,
            Err(problem) => {
                self.refuse(seat, &request.related, &problem);
                if problem.code != Code::ValidationFailed {
                    seat.close(Ending::Refused);
                }
                return;
            }
        };
        let style = self.style();
        let Some(heard) = self.heard.take() else { return seat.close(Ending::Failed) };
        let entry = Entry {
            state: self.state.clone(),
            shared: shared.clone(),
            voices: self.voices.clone(),
            news: self.news.clone(),
            heard,
            request,
        };
        let work = async move {
            let member = let_in(&shared, &wish, style).await;
            (member, wish)
        };
        seat.owe_in_turn(work, move |seat, (member, wish)| match member {
            Ok(member) => entry.goes_on(seat, member, wish),
            Err(problem) => {
                seat.reply(style.error(&problem, &entry.request.related));
                seat.close(Ending::Refused);
            }
        });
    }
}

/// A client that shows a key, until it is let in.
struct Entry {
    state: Arc<Mutex<State>>,
    shared: Arc<Shared>,
    voices: Voices,
    news: News,
    heard: mpsc::Receiver<Event>,
    request: Request,
}

impl Entry {
    fn goes_on(self, seat: &mut Seat, member: Member, wish: Wish) {
        let Entry { state, shared, voices, news, heard, request } = self;
        seat.shows(member.holder.key());
        seat.speak(voices.of(member.style.form).clone());
        let member = Arc::new(member);
        let cx = Context { shared, member: member.clone(), state, news };
        cx.state().member = Some(member.clone());
        match member.kind {
            Kind::Agent => {
                // Nobody is told of its key being revoked until it is in the mesh.
                look_after(seat, cx.clone());
                enter(seat, cx.clone(), request, wish.room);
                listen(seat, cx, heard);
            }
            Kind::Human => {
                let attach = Attach {
                    key: member.key.clone(),
                    name: member.user.clone(),
                    // A person has as many windows as it likes.
                    identity: Identity::Shared(member.principal().to_string()),
                    capabilities: Vec::new(),
                    reconnect: true,
                    linger: std::time::Duration::ZERO,
                };
                seat.ask_in_turn(attach, move |seat, welcome| match welcome {
                    Ok(welcome) => {
                        let news = cx.news.clone();
                        cx.shared.connects(&welcome.agent, member.connection, news);
                        // Set once: the connection attaches once.
                        let _: Result<(), _> = cx.member.agent.set(welcome.agent);
                        let back = welcome.resumed.map(|resumed| resumed.rooms);
                        cx.state().rooms.extend(back.into_iter().flatten());
                        enter(seat, cx.clone(), request, wish.room);
                        listen(seat, cx, heard);
                    }
                    Err(refusal) => {
                        let problem = Problem::from(refusal);
                        seat.reply(cx.style().error(&problem, &request.related));
                        seat.close(Ending::Refused);
                    }
                });
            }
        }
    }
}

/// Acknowledges a request to connect, and has the client in the room that it names, if it names one.
fn enter(seat: &mut Seat, cx: Context, request: Request, room: Option<String>) {
    let Some(room) = room else { return acknowledge(seat, &cx, &request, false) };
    let work = async move {
        let found = find(&cx, &room).await;
        (cx, request, found)
    };
    seat.owe_in_turn(work, |seat, (cx, request, found)| match found {
        Ok(info) => {
            acknowledge(seat, &cx, &request, rooms::hosts(&cx, &info.room));
            if cx.member.agent.get().is_some() {
                join(seat, cx, request.related, info.room.room);
            } else {
                // An agent takes its seat with its registration.
                let mut state = cx.state();
                if !state.wanted.contains(&info.room.room) {
                    state.wanted.push(info.room.room);
                }
            }
        }
        Err(problem) => {
            acknowledge(seat, &cx, &request, false);
            seat.reply(cx.style().error(&problem, &request.related));
        }
    });
}

fn acknowledge(seat: &mut Seat, cx: &Context, request: &Request, hosts: bool) {
    let told = Told::fresh("connection.ack", cx.member.ack(hosts)).answering(&request.related);
    seat.reply(cx.frame(told));
}

/// A room in which there is a place for the client.
async fn find(cx: &Context, text: &str) -> Result<RoomInfo, Problem> {
    let room = rooms::named(cx, text).await?;
    {
        let state = cx.state();
        let others = state.rooms.iter().chain(&state.wanted).filter(|known| **known != room);
        if others.count() >= ROOMS_MAX {
            let text = format!("a connection is in {ROOMS_MAX} rooms at most");
            return Err(Problem::conflict(text, "full"));
        }
    }
    let info = rooms::look(cx, room).await?;
    if cx.agent().is_ok() {
        rooms::has_place(cx, &info).await?;
    }
    Ok(info)
}

/// Takes a seat, and tells the client what was said before.
fn join(seat: &mut Seat, cx: Context, related: Related, room: RoomId) {
    seat.ask_in_turn(JoinAsGuest(room), move |seat, joined| match joined {
        Ok(()) => {
            cx.state().rooms.insert(room);
            let work = async move {
                let events = rooms::replay(&cx, room).await;
                (cx, events)
            };
            seat.owe_in_turn(work, move |seat, (cx, events)| answer(seat, &cx, &related, events));
        }
        Err(refusal) => seat.reply(cx.style().error(&Problem::from(refusal), &related)),
    });
}

fn answer(seat: &mut Seat, cx: &Context, related: &Related, outcome: Result<Vec<Bytes>, Problem>) {
    match outcome {
        Ok(frames) => frames.into_iter().for_each(|frame| seat.reply(frame)),
        Err(problem) => seat.reply(cx.style().error(&problem, related)),
    }
}

/// Tells the client of events that need a look at the mesh.
fn listen(seat: &mut Seat, cx: Context, mut heard: mpsc::Receiver<Event>) {
    let next = async move {
        let event = heard.recv().await;
        let frames = match event {
            Some(event) => Some(arrivals::told(&cx, event).await),
            None => None,
        };
        (frames, cx, heard)
    };
    seat.later(next, |seat, (frames, cx, heard)| {
        // Without events the connection is over.
        let Some(frames) = frames else { return };
        frames.into_iter().for_each(|frame| seat.reply(frame));
        listen(seat, cx, heard);
    });
}

/// Looks whether the key of a client is valid that is nobody in the mesh yet.
fn look_after(seat: &mut Seat, cx: Context) {
    let look = async move {
        sleep(KEY_LOOK_EVERY).await;
        let holder = cx.shared.desk.holder(cx.member.key.clone()).await;
        let problem = holder.err().map(Problem::from);
        (problem.filter(|problem| problem.code == Code::AuthenticationFailed), cx)
    };
    seat.later(look, |seat, (problem, cx)| match problem {
        Some(_) => {
            seat.reply(disconnected(&cx.member, "error", false));
            seat.close(Ending::Revoked);
        }
        None if cx.member.agent.get().is_none() => look_after(seat, cx),
        None => {}
    });
}

/// The last frame of a connection.
fn disconnected(member: &Member, reason: &str, may_return: bool) -> Bytes {
    let message = match reason {
        "error" => "the key is not valid any more",
        "timeout" => "nothing was heard for 90 seconds",
        "server_shutdown" => "the node stops",
        _ => "connection closed by user request",
    };
    let data = json!({
        "connection_id": member.connection_id(),
        "reason": reason,
        "message": message,
        "reconnect_allowed": may_return,
        "reconnect_delay_seconds": 5,
    });
    member.style.frame(Told::fresh("connection.disconnect", data))
}

/// A frame of a client that was let in.
fn take(seat: &mut Seat, cx: Context, request: Request) {
    match &*request.kind {
        "connection.request" => again(seat, cx, request),
        CAPABILITIES => {
            let style = cx.style();
            let agreed = extensions::agree(&mut cx.state(), style, &request);
            seat.reply(agreed.unwrap_or_else(|no| style.error(&no, &request.related)));
        }
        "connection.disconnect" => {
            seat.reply(disconnected(&cx.member, "user_requested", true));
            seat.close(Ending::Done);
        }
        "agent.register" => register(seat, cx, request),
        "extension.room_join" | "extension.room_leave" => move_to(seat, cx, request),
        _ => {
            let work = async move {
                let outcome = once(&cx, &request).await;
                (cx, request, outcome)
            };
            seat.owe_in_turn(work, |seat, (cx, request, outcome)| {
                answer(seat, &cx, &request.related, outcome);
            });
        }
    }
}

/// A later request to connect: into one more room.
fn again(seat: &mut Seat, cx: Context, request: Request) {
    match Wish::of(&request) {
        Ok(wish) if wish.kind == cx.member.kind => enter(seat, cx, request, wish.room),
        Ok(_) => {
            let problem = Problem::field("data.client_type", "cannot change");
            seat.reply(cx.style().error(&problem, &request.related));
        }
        Err(problem) => seat.reply(cx.style().error(&problem, &request.related)),
    }
}

fn register(seat: &mut Seat, cx: Context, request: Request) {
    let own = match Introduction::of(&cx, &request) {
        Ok(own) => own,
        Err(problem) => return seat.reply(cx.style().error(&problem, &request.related)),
    };
    if cx.member.agent.get().is_some() {
        return note(seat, cx, (own, request), Vec::new());
    }
    seat.ask_in_turn(own.attach(&cx), move |seat, welcome| match welcome {
        Ok(welcome) => {
            cx.shared.connects(&welcome.agent, cx.member.connection, cx.news.clone());
            // Set once: a second attach of a connection is refused.
            let _: Result<(), _> = cx.member.agent.set(welcome.agent);
            let _: Result<(), _> = cx.member.agent_name.set(own.name.clone());
            let back = welcome.resumed.map(|resumed| resumed.rooms);
            let wanted = {
                let mut state = cx.state();
                state.rooms.extend(back.into_iter().flatten());
                std::mem::take(&mut state.wanted)
            };
            note(seat, cx, (own, request), wanted);
        }
        Err(refusal) => {
            let problem = Problem::from(refusal);
            seat.reply(cx.style().error(&problem, &request.related));
        }
    });
}

/// Notes what an agent says of itself before others see it come.
fn note(
    seat: &mut Seat,
    cx: Context,
    (own, request): (Introduction, Request),
    wanted: Vec<RoomId>,
) {
    let work = async move {
        let noted = agents::note_model(&cx, &own).await;
        (cx, own, request, noted)
    };
    seat.owe_in_turn(work, |seat, (cx, own, request, noted)| {
        if let Err(problem) = noted {
            // It is registered all the same: others see no model.
            tracing::debug!(why = %problem.message, "the model of an agent is not noted");
        }
        take_seats(seat, cx, (own, request), wanted);
    });
}

/// Has an agent in the rooms that it named before it registered, one after the other.
fn take_seats(
    seat: &mut Seat,
    cx: Context,
    (own, request): (Introduction, Request),
    mut wanted: Vec<RoomId>,
) {
    let Some(room) = wanted.pop() else { return introduce(seat, cx, own, request) };
    seat.ask_in_turn(JoinAsGuest(room), move |seat, joined| {
        match joined {
            Ok(()) => drop(cx.state().rooms.insert(room)),
            Err(refusal) => {
                let problem = Problem::from(refusal);
                seat.reply(cx.style().error(&problem, &request.related));
            }
        }
        take_seats(seat, cx, (own, request), wanted);
    });
}

/// Tells an agent where it is, and what was said there before.
fn introduce(seat: &mut Seat, cx: Context, own: Introduction, request: Request) {
    let work = async move {
        let mut outcome = agents::registered(&cx, &own, &request).await;
        if let Ok(frames) = &mut outcome {
            for room in cx.rooms() {
                frames.extend(rooms::replay(&cx, room).await.unwrap_or_default());
            }
        }
        (cx, request, outcome)
    };
    seat.owe_in_turn(work, |seat, (cx, request, outcome)| {
        answer(seat, &cx, &request.related, outcome);
    });
}

/// Joins a room, or leaves one.
fn move_to(seat: &mut Seat, cx: Context, request: Request) {
    let named = extensions::room_of(&request).and_then(|room| cx.agent().map(|_| room));
    let room = match named {
        Ok(room) => room.as_str().unwrap_or_default().to_owned(),
        Err(problem) => return seat.reply(cx.style().error(&problem, &request.related)),
    };
    cx.state().namespaces.insert(rooms::NAMESPACE);
    if request.kind == "extension.room_join" {
        return enter(seat, cx, request, Some(room));
    }
    let work = async move {
        let found = rooms::named(&cx, &room).await;
        (cx, request, found)
    };
    seat.owe_in_turn(work, |seat, (cx, request, found)| match found {
        Ok(room) => seat.ask_in_turn(Leave(room), move |seat, left| {
            let outcome = left.map_err(Problem::from).map(|()| {
                cx.state().rooms.remove(&room);
                let payload = json!({"room_id": cx.style().room(room)});
                let told = rooms::answer("extension.room_left", rooms::NAMESPACE, payload);
                vec![cx.frame(told.answering(&request.related))]
            });
            answer(seat, &cx, &request.related, outcome);
        }),
        Err(problem) => seat.reply(cx.style().error(&problem, &request.related)),
    });
}

/// Does what a frame says, unless that was done before: then it is confirmed once more.
async fn once(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let acts = ["chat.", "task.", "git.", "approval.", "extension.task_"];
    let acts = acts.into_iter().any(|start| request.kind.starts_with(start));
    let (true, Ok(agent), Some(id)) = (acts, cx.agent(), &request.related.id) else {
        return dispatch(cx, request).await;
    };
    match cx.shared.begin(agent, id) {
        None => {}
        Some(Done::Nothing) => return Ok(Vec::new()),
        Some(Done::Message(room, message)) => {
            return chat::again(cx, room, message, request).await.map(|frame| vec![frame]);
        }
        Some(Done::Decided(room, approval)) => {
            return approvals::again(cx, (room, approval), request).await;
        }
        Some(Done::Task(room, task, how)) => {
            return tasks::again(cx, (room, task), how, request).await;
        }
    }
    let outcome = dispatch(cx, request).await;
    cx.shared.forget(agent, id);
    outcome
}

async fn dispatch(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    match &*request.kind {
        "connection.heartbeat" | "agent.heartbeat" => agents::beat(cx, request).await,
        "agent.status" if !request.data().get("task_id").is_there() => {
            agents::status(cx, request).await
        }
        "chat.human_message" | "chat.agent_message" => chat::say(cx, request).await,
        "task.created" => tasks::create(cx, request).await,
        "task.claim" => tasks::claim(cx, request).await,
        "task.status" | "agent.status" => tasks::report(cx, request).await,
        "task.completed" => tasks::complete(cx, request).await,
        kind if kind.starts_with("extension.") => extensions::carry_out(cx, request).await,
        kind if git::is_git(kind) => git::report(cx, request).await,
        "approval.request" => approvals::ask(cx, request).await,
        "approval.response" => approvals::respond(cx, request).await,
        kind @ ("spectator.connect" | "spectator.chat_message" | "chat.spectator_message") => {
            let text = format!("{kind} is for those who look on");
            let instead = "say chat.human_message or chat.agent_message";
            Err(Problem::denied(text).because("member").instead(instead))
        }
        kind => {
            let text = format!("{kind} is no message of a client");
            let problem = Problem::new(Code::ValidationFailed, text);
            Err(problem.at("type").because("unknown type"))
        }
    }
}

/// What a client is told of a message in the direct room of its agent and another one.
fn between_two(shared: &Shared, state: &mut State, member: &Member, message: &Message) -> Bytes {
    if runs::is_request(message, member.agent.get().map(|own| &**own)) {
        state.requests.note(message.message, message.room);
    }
    let knows = state.namespaces.contains(runs::NAMESPACE);
    if let Some(frame) = runs::cancelled(member.style, message).filter(|_| knows) {
        return frame;
    }
    let saying = Saying::of(message, true);
    let shown = saying.shown_in();
    if shown != message.room {
        let place = Place { room: message.room, message: message.message };
        let _: bool = shared.alias(shown, message.message, place);
    }
    member.style.frame(saying.told(member.style))
}

impl Drop for Talk {
    fn drop(&mut self) {
        let member = self.state().member.take();
        if let (Some(member), Some(shared)) = (member, self.shared.get())
            && let Some(agent) = member.agent.get()
        {
            shared.disconnects(agent, member.connection);
        }
    }
}

impl Recipient for Talk {
    fn admits(&self, event: &Event) -> bool {
        let Some(shared) = self.shared.get() else { return false };
        let mut state = self.state();
        let Some(member) = state.member.clone() else { return false };
        let is_own = |by: Option<&str>| by.is_some() && by == member.agent.get().map(|own| &**own);
        // A full channel: presence may be left out.
        let later = |event: &Event| drop(self.news.try_send(event.clone()));
        if let Event::Said(message) = event {
            if shared.desk.is_direct(message.room) {
                state.own = Some(between_two(shared, &mut state, &member, message));
            } else if git::may_be_commit(message.said.metadata.as_deref()) {
                // Conflicts that it brings up.
                later(event);
            } else if approvals::is_request(message.said.metadata.as_deref()) {
                approvals::note(shared, message);
            } else if approvals::is_decision(message.said.metadata.as_deref()) {
                // Whether it is so the mesh knows, and tells.
                return self.news.try_send(event.clone()).is_err();
            }
            true
        } else if let Event::Mentioned(message) = event {
            // In its rooms it hears the message itself.
            !state.rooms.contains(&message.room) && !shared.desk.is_direct(message.room)
        } else if let Event::ApprovalDecided(view) | Event::MayOrMayNot(view) = event {
            let alone = matches!(event, Event::MayOrMayNot(_));
            let by = view.decided.as_ref().and_then(|decided| decided.by.as_deref());
            // In its rooms the one who asked hears it as everybody.
            let heard = alone && state.rooms.contains(&view.room);
            if heard || is_own(by) && state.awaited.take(Some(view.id)) {
                return false;
            }
            if self.news.try_send(event.clone()).is_ok() {
                return false;
            }
            let told = approvals::decision(member.style, view, None);
            state.own = Some(member.style.frame(told));
            true
        } else if let Event::TaskMade(task) = event {
            !(is_own(Some(&task.created_by)) && state.awaited.take(None))
        } else if let Event::TaskChanged(task, change) = event {
            !(is_own(change.by.as_deref()) && state.awaited.take(Some(task.task)))
        } else if let Event::Joined { .. } | Event::Left { .. } = event {
            later(event);
            false
        } else if let Event::RoomOpened { room, .. } = event {
            let wants = state.namespaces.contains(rooms::NAMESPACE);
            if wants && room.sides.is_none() && !is_own(room.created_by.as_deref()) {
                later(event);
            }
            false
        } else if let Event::RoomClosed { room } = event {
            state.rooms.remove(room);
            if state.namespaces.contains(rooms::NAMESPACE) {
                later(event);
            }
            false
        } else if let Event::KeyRevoked = event {
            state.own = Some(disconnected(&member, "error", false));
            true
        } else {
            true
        }
    }

    fn stamp(&mut self, frame: Bytes) -> Bytes {
        self.state().own.take().unwrap_or(frame)
    }
}

impl Conversation for Talk {
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>) {
        let Some(shared) = self.shared.get().cloned() else { return seat.close(Ending::Failed) };
        let Heard::Text(text) = frame else { return seat.close(Ending::NotText) };
        if !shared.settings.on {
            let related = match Request::parse(text) {
                Ok(request) => request.related,
                Err(bad) => bad.related,
            };
            let why = "ClawTank is switched off on this node";
            let instead = "its operator starts clawmeshd without --no-clawtank";
            let problem = Problem::denied(why).because("off").instead(instead);
            seat.reply(self.style().error(&problem, &related));
            return seat.close(Ending::Refused);
        }
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err(Bad { related, problem }) => return self.refuse(seat, &related, &problem),
        };
        let (member, spectator) = {
            let state = self.state();
            (state.member.clone(), state.spectator.clone())
        };
        if let Some(spectator) = spectator {
            return spectators::seat::hear(seat, &spectator, &request);
        }
        match member {
            Some(member) => {
                let (state, news) = (self.state.clone(), self.news.clone());
                take(seat, Context { shared, member, state, news }, request);
            }
            None => self.stranger(seat, shared, request),
        }
    }

    fn farewell(&mut self, ending: Ending) -> Option<Bytes> {
        let reason = match ending {
            Ending::Silent => "timeout",
            Ending::GoingAway => "server_shutdown",
            // Of these the client has been told, or the code of the end says it.
            Ending::Done
            | Ending::Refused
            | Ending::BadFrame
            | Ending::TooLarge
            | Ending::NotText
            | Ending::Replaced
            | Ending::Revoked
            | Ending::Failed => return None,
        };
        let member = self.state().member.clone()?;
        Some(disconnected(&member, reason, true))
    }

    fn manners(&self) -> Manners {
        let waits = self.state().member.is_some();
        let attach_within = if waits { REGISTER_WITHIN } else { CONNECT_WITHIN };
        Manners { attach_within, ..MANNERS }
    }
}
