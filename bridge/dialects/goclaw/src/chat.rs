//! `chat.*`: what is said to agents, and read of it.

use std::{sync::Arc, time::Duration};

use bridge::{
    read::Pieces,
    seam::{
        call::{From, HandOver, History, ListAgents, ListDirect, OneMessage, OpenDirect, Say},
        event::Message,
    },
};
use mesh::{
    api::command::{RoomView, SaidOk, Speech},
    name::id::{AgentId, EntryRef, MessageId, RoomId},
};
use serde_json::{Value, json};
use tokio::time::Instant;

mod open;

use crate::{
    agents::{addressed, new_session},
    answer::Answer,
    caller::{Caller, Speaker},
    limits::{
        HISTORY_BYTES_MAX, INJECT_LABEL_CHARS_MAX, MEDIA_BYTES_MAX, MEDIA_MAX, SESSION_BYTES_MAX,
        SESSION_ROOMS_MAX, WAIT_MS,
    },
    names::{self, Session, room_session},
    outcome::{Code, No, Outcome},
    params::{AGENT, MESSAGE, Params, SESSION, is_required, must_be},
    runs::{self, Asked, How, Run, note},
    threads::{Direct, is_control, keys, metadata},
    times,
};

/// A session that a client means.
pub(crate) enum Found {
    /// It has messages, in this room.
    Thread(Direct),
    /// Nothing was said in it yet.
    New,
    /// It is another user's.
    Others,
}

impl Caller {
    /// The session of this key with this agent.
    pub(crate) async fn find(&self, agent: &str, key: &str) -> Result<Found, No> {
        for direct in
            self.direct_rooms().await?.into_iter().filter(|direct| *direct.agent == *agent)
        {
            // A room of a thousand messages is not read for each that is added.
            let is_there = self.shared.remembered.had(direct.room, key)
                || self.threads(&direct).await?.iter().any(|thread| thread.key == key);
            if is_there {
                return Ok(Found::Thread(direct));
            }
        }
        if !self.is_admin() && self.is_others(agent, key).await? {
            return Ok(Found::Others);
        }
        Ok(Found::New)
    }

    /// Whether another user of the key has such a session.
    async fn is_others(&self, agent: &str, key: &str) -> Result<bool, No> {
        let begins = names::principals_of(self.print());
        let rooms = self.read(ListDirect).await?;
        let is_others = |view: &&RoomView| {
            view.sides.as_ref().is_some_and(|sides| {
                let mut sides = sides.iter();
                sides.any(|(side, _)| side.starts_with(&*begins) && *side != self.principal)
            })
        };
        for view in rooms.iter().filter(is_others).take(SESSION_ROOMS_MAX) {
            let Some(direct) = Direct::of(view, &begins).filter(|direct| *direct.agent == *agent)
            else {
                continue;
            };
            if self.threads(&direct).await?.iter().any(|thread| thread.key == key) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Its own direct room with an agent, made if there is none.
    async fn own_direct(&self, agent: &AgentId) -> Result<RoomId, No> {
        let rooms = self.direct_rooms().await?;
        let own = rooms
            .iter()
            .find(|direct| direct.principal == self.principal && direct.agent == *agent);
        if let Some(own) = own {
            return Ok(own.room);
        }
        let opened = self.act(&self.speaker(), OpenDirect::with(agent.clone())).await;
        match opened {
            Ok(view) => Ok(view.room),
            Err(no) if no.code == Code::Unauthorized && no.message.contains("mailbox") => {
                let text = format!("the key of {agent} has no mailbox: mint a new one");
                Err(No::unauthorized(text))
            }
            Err(no) => Err(no),
        }
    }
}

impl Caller {
    /// Messages are shown to their user: agents that ask the user for something are told so.
    fn gave(&self, direct: &Direct, messages: &[Message]) {
        if direct.principal != self.principal {
            return;
        }
        let asks = messages.iter().filter(|message| message.is_to_be_handed_to(&self.principal));
        let requests: Vec<EntryRef> = asks.map(|message| message.entry).collect();
        if requests.is_empty() {
            return;
        }
        let (desk, reader) = (self.shared.desk.clone(), self.named(&self.principal));
        let call = HandOver { room: direct.room, requests };
        // The answer does not wait for it.
        drop(tokio::spawn(async move { desk.ask(&reader, call).await }));
    }
}

pub(crate) fn no_session(key: &str) -> No {
    No::not_found(format!("session not found: {key}"))
}

/// The key that a client names, if it keeps to its bounds.
pub(crate) fn session_key(
    params: &Params,
    names: &crate::params::Names,
) -> Result<Option<String>, No> {
    let key = params.filled(names)?;
    if key.as_ref().is_some_and(|key| key.len() > SESSION_BYTES_MAX) {
        return Err(No::invalid(format!("a session's key has at most {SESSION_BYTES_MAX} bytes")));
    }
    Ok(key)
}

/// Where something is to be written.
struct Target {
    asked: Asked,
    session: String,
    room: RoomId,
    who: Speaker,
}

/// The session that is meant, or a new one. Its agent is seen to before anything is written.
async fn target(caller: &Arc<Caller>, params: &Params, must_be_there: bool) -> Result<Target, No> {
    let (named, key) = (params.filled(AGENT)?, session_key(params, SESSION)?);
    let of_key = match key.as_deref().map(Session::parse) {
        None => None,
        Some(Some(Session::Thread { agent, .. })) => Some(agent),
        Some(Some(Session::Room(room))) => {
            return room_target(caller, params, room, must_be_there).await;
        }
        Some(None) => return Err(no_session(key.as_deref().unwrap_or_default())),
    };
    let known = addressed(caller, named.or(of_key.clone()).as_deref()).await?;
    let agent = known.agent.clone();
    if of_key.is_some_and(|of_key| *of_key != *agent) {
        return Err(No::invalid("agentId and sessionKey name different agents"));
    }
    if must_be_there && !known.online() {
        return Err(No::unavailable(format!("agent {agent} is offline")));
    }
    let session = match key {
        Some(key) => key,
        None => new_session(&agent)?,
    };
    match caller.find(&agent, &session).await? {
        Found::Others => Err(No::unauthorized("permission denied: the session is another user's")),
        Found::Thread(direct) => {
            let who = caller.speaker_of(&direct).await?;
            Ok(Target { asked: Asked::Peer(agent), session, room: direct.room, who })
        }
        Found::New => {
            let room = caller.own_direct(&agent).await?;
            Ok(Target { asked: Asked::Peer(agent), session, room, who: caller.speaker() })
        }
    }
}

/// A room as a session: all its members hear what is said. An agent that is named is asked, and nobody else.
async fn room_target(
    caller: &Caller,
    params: &Params,
    room: RoomId,
    must_be_there: bool,
) -> Result<Target, No> {
    let session = room_session(room);
    if !caller.teams().await?.iter().any(|view| view.room == room) {
        return Err(no_session(&session));
    }
    let agent = match params.filled(AGENT)? {
        None => None,
        Some(named) => {
            let known = caller.agent(&named).await?;
            let agent = &known.agent;
            let members = caller.read(ListAgents { room: Some(room) }).await?;
            if !members.iter().any(|member| member.agent == *agent) {
                return Err(No::invalid(format!("agent {agent} is not in this room")));
            }
            if must_be_there && !known.online() {
                return Err(No::unavailable(format!("agent {agent} is offline")));
            }
            Some(known.agent)
        }
    };
    Ok(Target { asked: Asked::Member(agent), session, room, who: caller.speaker() })
}

/// Media of a request, in one form: the node fetches nothing.
fn media(params: &Params) -> Result<Option<Value>, No> {
    let names = &["media"];
    let Some(given) = params.list(names)?.filter(|given| !given.is_empty()) else {
        return Ok(None);
    };
    let what = "an array of {type, url}, {path, filename} or paths";
    let item = |item: &Value| match item {
        Value::String(path) => Ok(json!({"path": path})),
        Value::Object(_) if item["url"].is_string() || item["path"].is_string() => Ok(item.clone()),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(must_be(names, what))
        }
    };
    let items = given.iter().map(item).collect::<Result<Vec<Value>, No>>()?;
    let media = Value::Array(items);
    if given.len() > MEDIA_MAX || media.to_string().len() > MEDIA_BYTES_MAX {
        let text =
            format!("media has at most {MEDIA_MAX} entries of {MEDIA_BYTES_MAX} bytes together");
        return Err(No::invalid(text));
    }
    Ok(Some(media))
}

/// A request to an agent, or words for the one that is at a request.
pub(crate) async fn send(caller: Arc<Caller>, params: Params, answer: Answer) {
    match begin(&caller, &params).await {
        Err(no) => answer.send(Err(no)),
        Ok(Begun::Injected(result)) => answer.send(Ok(result)),
        Ok(Begun::Run(run, how, pieces)) => runs::follow(caller, (*run, how), pieces, answer).await,
    }
}

enum Begun {
    Run(Box<Run>, How, Pieces),
    Injected(Value),
}

async fn begin(caller: &Arc<Caller>, params: &Params) -> Result<Begun, No> {
    let (text, media) = (params.text(MESSAGE)?.unwrap_or_default(), media(params)?);
    if text.is_empty() && media.is_none() {
        return Err(is_required(MESSAGE));
    }
    let stream = params.flag(&["stream"])?.unwrap_or(false);
    let wait = match params.whole(&["timeoutMs"], *WAIT_MS.end())? {
        Some(ms) => Duration::from_millis(ms.max(*WAIT_MS.start())),
        None => caller.shared.settings.reply_wait,
    };
    caller.count_write()?;
    caller.shared.runs.has_place(caller.print())?;
    let target = target(caller, params, true).await?;
    // Of two requests at once the second finds the run of the first one.
    let turn = caller.shared.runs.turn(&target.session);
    let turn = turn.lock().await;
    if let Some(run) = open::of_target(caller, &target).await? {
        let words = Words { kind: "injected", run: Some(run), media, text, ask: false, stream };
        let said = say(caller, &target, words).await?;
        return Ok(Begun::Injected(json!({
            "injected": true,
            "runId": run.to_uuid(),
            "sessionKey": target.session,
            "message_id": said.message.to_uuid(),
        })));
    }
    // Before the agent can answer.
    let reader = caller.named(&target.who.agent);
    let pieces = caller.shared.desk.hear_pieces(&reader, target.room)?;
    let words = Words { kind: "request", run: None, media, text: text.clone(), ask: true, stream };
    let said = say(caller, &target, words).await?;
    drop(turn);
    let run = Run {
        id: said.message,
        number: said.number,
        session: target.session,
        asked: target.asked,
        room: target.room,
        speaker: target.who,
        key: caller.print(),
        text,
        begun: Instant::now(),
    };
    Ok(Begun::Run(Box::new(run), How { stream, wait }, pieces))
}

/// Something that is to be said in a session.
struct Words {
    kind: &'static str,
    /// The run that they belong to.
    run: Option<MessageId>,
    media: Option<Value>,
    text: String,
    /// Whether they ask the agent for an answer.
    ask: bool,
    stream: bool,
}

async fn say(caller: &Caller, target: &Target, words: Words) -> Result<SaidOk, No> {
    let Words { kind, run, media, text, ask, stream } = words;
    let mut metadata = json!({
        "kind": kind,
        "expects_reply": ask,
        "session": target.session,
        "from": target.who.user,
    });
    if ask {
        metadata["stream"] = json!(stream);
    }
    if let Some(run) = run {
        metadata["run"] = json!(run.to_uuid());
    }
    if let Some(media) = media {
        metadata["media"] = media;
    }
    let say = Say {
        reply_to: run.map(MessageId::to_uuid),
        mentions: target
            .asked
            .agent()
            .filter(|_| ask)
            .map(ToString::to_string)
            .into_iter()
            .collect(),
        metadata: Some(metadata.to_string()),
        expects_reply: Some(ask),
        ..Say::chat(target.room, text)
    };
    caller.act(&target.who, say).await
}

/// Words in a session that wake nobody and begin no run.
pub(crate) async fn inject(caller: &Arc<Caller>, params: &Params) -> Outcome {
    if session_key(params, SESSION)?.is_none() {
        return Err(is_required(SESSION));
    }
    let text = params.required(MESSAGE)?;
    let label = params.filled(&["label"])?;
    if label.as_ref().is_some_and(|label| label.chars().count() > INJECT_LABEL_CHARS_MAX) {
        return Err(No::invalid(format!(
            "label must have at most {INJECT_LABEL_CHARS_MAX} characters"
        )));
    }
    caller.count_write()?;
    let target = target(caller, params, false).await?;
    let text = label.map_or(text.clone(), |label| format!("[{label}]\n\n{text}"));
    let words = Words { kind: "injected", run: None, media: None, text, ask: false, stream: false };
    let said = say(caller, &target, words).await?;
    Ok(json!({"ok": true, "messageId": said.message.to_uuid()}))
}

/// Something for an agent, which finds it when it comes. No answer is waited for.
pub(crate) async fn leave(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let channel = params.required(&["channel"])?;
    let (to, text) = (params.required(&["to"])?, params.required(MESSAGE)?);
    match &*channel {
        "agent" => {}
        "room" => return say_in_room(caller, params, &to, text).await,
        _ => return Err(No::not_found(format!("channel not found: {channel}"))),
    }
    caller.count_write()?;
    let agent = caller.agent(&to).await?.agent;
    let room = caller.own_direct(&agent).await?;
    let session = names::bare_session(&agent);
    let target = Target { session, asked: Asked::Peer(agent), room, who: caller.speaker() };
    let words = Words { kind: "notice", run: None, media: None, text, ask: false, stream: false };
    let said = say(caller, &target, words).await?;
    Ok(json!({"ok": true, "channel": channel, "to": to, "messageId": said.message.to_uuid()}))
}

/// Something for all members of a room.
async fn say_in_room(caller: &Arc<Caller>, params: &Params, to: &str, text: String) -> Outcome {
    let room = caller.team(params, &["to"]).await?;
    caller.count_write()?;
    let metadata = json!({"kind": "notice", "expects_reply": false, "from": caller.user});
    let (metadata, expects_reply) = (Some(metadata.to_string()), Some(false));
    let say = Say { metadata, expects_reply, ..Say::chat(room.room, text) };
    let said = caller.act(&caller.speaker(), say).await?;
    Ok(json!({"ok": true, "channel": "room", "to": to, "messageId": said.message.to_uuid()}))
}

/// A message as it is shown.
pub(crate) fn row(message: &Message, agent: &str) -> Value {
    let (said, told) = (&message.said, metadata(message));
    let is_injected = told["kind"] == "injected" && told["run"].is_null();
    let role = if *said.agent == *agent || is_injected { "assistant" } else { "user" };
    let mut row = json!({
        "id": message.message.to_uuid(),
        "role": role,
        "content": said.content,
        "sender_id": &*said.agent,
        "sender_name": &*said.name,
        "created_at": times::text(message.wall_ms),
    });
    if told["kind"] == "request" {
        row["run_id"] = json!(message.message.to_uuid());
    } else if let Some(run) = said.conversation.and_then(|place| place.answers) {
        row["run_id"] = json!(run.to_uuid());
    }
    if told["thinking"].is_string() {
        row["thinking"] = told["thinking"].clone();
    }
    if told["media"].is_array() {
        row["media_refs"] = told["media"].clone();
    }
    row
}

/// As many of the newest rows as fit, the oldest first, and whether some did not.
pub(crate) fn fitting(rows: Vec<Value>, limit: usize) -> (Vec<Value>, bool) {
    let (mut left, mut kept, all) = (HISTORY_BYTES_MAX, Vec::new(), rows.len());
    for row in rows.into_iter().rev().take(limit) {
        let bytes = row.to_string().len();
        if bytes > left {
            break;
        }
        left -= bytes;
        kept.push(row);
    }
    kept.reverse();
    let cut = kept.len() < all.min(limit);
    (kept, cut)
}

/// The messages of a thread that are read.
pub(crate) async fn thread_rows(
    caller: &Caller,
    direct: &Direct,
    key: &str,
) -> Result<Vec<Value>, No> {
    let facts = caller.facts(direct, key).await?;
    let messages = caller.messages(direct).await?;
    caller.gave(direct, &messages);
    let keys = keys(&messages, &direct.agent);
    let of_thread = messages.iter().zip(keys).filter(|(message, of)| {
        of == key && message.number.0 > facts.epoch && !is_control(&metadata(message))
    });
    Ok(of_thread.map(|(message, _)| row(message, &direct.agent)).collect())
}

/// The messages of a room that its key may read.
pub(crate) async fn room_rows(caller: &Caller, room: RoomId, limit: u64) -> Result<Vec<Value>, No> {
    let slot = caller.shared.reading.acquire().await;
    let call = History { room, from: From::Newest, limit, before_ms: None };
    let page = caller.read(call).await?;
    drop(slot);
    let chat = page.messages.iter().filter(|message| message.speech != Speech::Thinking);
    Ok(chat.map(|message| row(message, "")).collect())
}

pub(crate) async fn history(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let limit = params.limit(200, 1_000)?;
    let rows = match session_key(params, SESSION)? {
        Some(key) => match Session::parse(&key) {
            Some(Session::Room(room)) => room_rows(caller, room, limit).await?,
            Some(Session::Thread { agent, .. }) => match caller.find(&agent, &key).await? {
                Found::Thread(direct) => thread_rows(caller, &direct, &key).await?,
                Found::New => Vec::new(),
                Found::Others => {
                    let text = "permission denied: the session is another user's";
                    return Err(No::unauthorized(text));
                }
            },
            None => Vec::new(),
        },
        None => match newest(caller, params).await? {
            Some((direct, key)) => thread_rows(caller, &direct, &key).await?,
            None => Vec::new(),
        },
    };
    let (messages, cut) = fitting(rows, usize::try_from(limit).unwrap_or(usize::MAX));
    let mut result = json!({"messages": messages});
    if cut {
        result["truncated"] = json!(true);
    }
    Ok(result)
}

/// The newest session of an agent.
async fn newest(caller: &Arc<Caller>, params: &Params) -> Result<Option<(Direct, String)>, No> {
    let named = params.filled(AGENT)?.ok_or_else(|| is_required(SESSION))?;
    let agent = caller.agent(&named).await?.agent;
    let mut newest: Option<(u64, Direct, String)> = None;
    for direct in caller.direct_rooms().await?.into_iter().filter(|direct| direct.agent == agent) {
        for thread in caller.threads(&direct).await?.iter() {
            if newest.as_ref().is_none_or(|(at_ms, ..)| *at_ms <= thread.last_ms) {
                newest = Some((thread.last_ms, direct.clone(), thread.key.clone()));
            }
        }
    }
    Ok(newest.map(|(_, direct, key)| (direct, key)))
}

pub(crate) async fn abort(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let mut ended = Vec::new();
    for run in open::meant(caller, params).await? {
        note(caller, &run, "cancel").await?;
        ended.push(run.id.to_uuid());
    }
    let aborted = !ended.is_empty();
    Ok(json!({
        "ok": true, "aborted": aborted, "stopped": aborted, "forced": false,
        "alreadyAborting": false, "notFound": !aborted, "unauthorized": false, "runIds": ended,
    }))
}

pub(crate) async fn status(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let (run, agent) = match session_key(params, SESSION)? {
        Some(key) => match Session::parse(&key) {
            Some(Session::Room(room)) => {
                let open = open::in_room(caller, room).await?;
                let own = open.into_iter().rfind(|run| run.speaker.agent == caller.principal);
                let agent = own.as_ref().and_then(|run| run.asked.agent().cloned());
                (own.map(|run| run.id), agent)
            }
            Some(Session::Thread { agent, .. }) => match caller.find(&agent, &key).await? {
                Found::Thread(direct) => open_in_thread(caller, (direct, key)).await?,
                Found::New => (None, None),
                Found::Others => {
                    let text = "permission denied: the session is another user's";
                    return Err(No::unauthorized(text));
                }
            },
            None => (None, None),
        },
        None => match newest(caller, params).await? {
            Some(found) => open_in_thread(caller, found).await?,
            None => (None, None),
        },
    };
    let activity = match agent.filter(|_| run.is_some()) {
        Some(agent) => caller.activity(&agent).await?,
        None => Value::Null,
    };
    let run = run.map_or(String::new(), MessageId::to_uuid);
    Ok(json!({"isRunning": !run.is_empty(), "runId": run, "activity": activity}))
}

/// The newest run of a session that is open, and the agent that is at it.
async fn open_in_thread(
    caller: &Caller,
    (direct, key): (Direct, String),
) -> Result<(Option<MessageId>, Option<AgentId>), No> {
    let newest = open::in_direct(caller, &direct, Some(&key)).await?.into_iter().next_back();
    Ok((newest.map(|(run, _)| run), Some(direct.agent)))
}

impl Caller {
    /// What an agent says that it is at.
    async fn activity(&self, agent: &str) -> Result<Value, No> {
        let view = self.known(agent).await?.and_then(|known| known.view);
        let Some(view) = view else { return Ok(Value::Null) };
        let phase = format!("{:?}", view.presence.status).to_lowercase();
        Ok(json!({"phase": phase, "tool": "", "iteration": 0}))
    }
}

/// A run from its beginning to where it is now.
pub(crate) async fn timeline(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let named = params.required(&["runId", "run_id"])?;
    let missing = || No::not_found(format!("run not found: {named}"));
    let run = MessageId::from_uuid(&named).ok_or_else(missing)?;
    let (limit, offset) = (params.limit(100, 1_000)?, params.offset()?);
    for direct in caller.direct_rooms().await?.into_iter().take(SESSION_ROOMS_MAX) {
        let call = OneMessage { room: direct.room, message: run };
        if caller.read_as(&direct.principal, call).await?.is_none() {
            continue;
        }
        let messages = caller.messages(&direct).await?;
        let items = messages.iter().filter_map(|message| item(message, run));
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let taken = usize::try_from(limit).unwrap_or(usize::MAX);
        let items: Vec<Value> = items.skip(skipped).take(taken).collect();
        return Ok(json!({"items": items}));
    }
    Err(missing())
}

/// A message as a step of a run.
fn item(message: &Message, run: MessageId) -> Option<Value> {
    let told = metadata(message);
    let at = times::text(message.wall_ms);
    if message.message == run {
        return Some(json!({"at": at, "type": "run.started", "content": message.said.content}));
    }
    let of = crate::threads::answered(message).filter(|of| *of == run);
    of?;
    Some(match told["kind"].as_str() {
        Some("cancel") => json!({"at": at, "type": "run.cancelled"}),
        Some("timeout") => json!({"at": at, "type": "run.failed", "content": "no answer in time"}),
        Some("injected") => json!({"at": at, "type": "injected", "content": message.said.content}),
        Some(_) | None if told["error"].is_string() => {
            json!({"at": at, "type": "run.failed", "content": told["error"]})
        }
        Some(_) | None => {
            json!({"at": at, "type": "run.completed", "content": message.said.content})
        }
    })
}
