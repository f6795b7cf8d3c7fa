//! Approvals: agents ask whether they may do something, and people decide.
//!
//! A request is a message, of whichever dialect, and is told as one. A decision is told as the mesh has it, not as a message
//! says that it was made: anybody can say so.

use std::time::Duration;

use bridge::seam::{
    call::{
        Decide, From, History, ListApprovals, Look, OneMessage, ReadApproval, RequestApproval,
        Requested, Say,
    },
    event::Message,
    refusal::Refusal,
};
use bytes::Bytes;
use mesh::{
    api::{
        agenda::TaskView,
        approval::{ApprovalTerms, ApprovalView, Choice, DecidedNow, Verdict},
        command::{Refused, SaidOk, Speech},
    },
    limits::{
        APPROVAL_FOR_MAX, APPROVAL_FOR_MIN, APPROVAL_REASON_BYTES_MAX, APPROVAL_TEXT_BYTES_MAX,
        APPROVERS_MAX,
    },
    name::id::{AgentId, MessageId, RoomId},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    chat,
    connect::{Kind, Right},
    envelope::{Request, Told, cut},
    fields::At,
    ids,
    limits::{
        APPROVAL_DETAILS_BYTES_MAX, APPROVAL_FOR, APPROVAL_LOOK_AFTER, APPROVAL_LOOKS,
        APPROVALS_PER_MINUTE, COMMAND_SHOWN_CHARS_MAX, GIT_ROWS_MAX, STATUS_PER_MINUTE,
    },
    names,
    problem::Problem,
    rooms,
    said::Saying,
    shared::{Done, Place, Rate, Shared},
    state::Context,
    style::Style,
    tasks, times,
};

/// Kinds of messages, the same in all dialects.
const ASKS: &str = "approval_request";
const DECIDES: &str = "approval_decision";
/// Somebody wants to talk about it first.
const TALKS: &str = "approval_discussion";

/// What the metadata of a message says of an approval, if it does.
fn part(metadata: Option<&str>, kind: &str) -> Option<Value> {
    let text = metadata.filter(|json| json.contains(kind))?;
    let mut value: Value = serde_json::from_str(text).ok()?;
    let part = (value["kind"] == kind).then(|| value["approval"].take())?;
    part.is_object().then_some(part)
}

/// Whether an agent asks with a message.
pub(crate) fn is_request(metadata: Option<&str>) -> bool {
    part(metadata, ASKS).is_some()
}

/// Whether a message says that something was decided: the mesh knows whether that is so.
pub(crate) fn is_decision(metadata: Option<&str>) -> bool {
    part(metadata, DECIDES).is_some()
}

/// Whether a message is about an approval: it is for members.
pub(crate) fn is_of_one(metadata: Option<&str>) -> bool {
    [ASKS, DECIDES, TALKS].into_iter().any(|kind| part(metadata, kind).is_some())
}

/// A message that asks for something, or talks about it, as an event.
pub(crate) fn told(saying: &Saying<'_>, style: Style) -> Option<Told> {
    if saying.private || saying.speech != Speech::Chat {
        return None;
    }
    if let Some(asked) = part(saying.metadata, ASKS) {
        return requested(saying, &asked, style);
    }
    let talk = part(saying.metadata, TALKS)?;
    let id = named(&talk).or_else(|| ids::parse_any(talk["id"].as_str()?))?;
    let data = json!({
        "request_id": style.form.id("approval", id),
        "decision": "needs_discussion",
        "feedback": talk["reason"].as_str().unwrap_or_default(),
        "approver": style.user(saying.agent, Some(saying.name)),
        "decided_at": times::text(saying.wall_ms),
    });
    let id = names::event_id(&[b"approval.response", &saying.message.0]);
    let told = Told::of(id, "approval.response", saying.wall_ms, data);
    Some(told.with("room_id", style.room(saying.room)))
}

/// The id that the one who asked calls it by.
fn named(asked: &Value) -> Option<[u8; 16]> {
    asked["request_id"].as_str().and_then(ids::parse)
}

fn requested(saying: &Saying<'_>, asked: &Value, style: Style) -> Option<Told> {
    let command = asked["command"].as_str()?;
    let secs = asked["timeout_secs"].as_u64().unwrap_or(mesh::limits::APPROVAL_FOR.as_secs());
    let (details, is_cut) = match &asked["details"] {
        details if !details.is_object() => (json!({"command": command}), false),
        details if details.to_string().len() <= APPROVAL_DETAILS_BYTES_MAX => {
            (details.clone(), false)
        }
        _ => (json!({"command": command}), true),
    };
    let approvers = asked["approvers"].as_array().map_or(&[][..], Vec::as_slice);
    let approvers: Vec<&str> =
        approvers.iter().take(APPROVERS_MAX).filter_map(Value::as_str).collect();
    let until_ms = saying.wall_ms.saturating_add(secs.saturating_mul(1_000));
    let mut data = json!({
        "request_id": style.form.id("approval", named(asked).unwrap_or(saying.message.0)),
        "agent_id": saying.agent,
        "approval_type": asked["type"].as_str().unwrap_or("exec"),
        "command": command,
        "details": details,
        "approvers": approvers,
        "timeout": format!("{secs} seconds"),
        "expires_at": times::text(until_ms),
        "urgency": asked["urgency"].as_str().unwrap_or("normal"),
        "room_id": style.room(saying.room),
    });
    let task = asked["task_alias"].as_str().or(asked["task_id"].as_str());
    if let Some(task) = task.and_then(ids::parse_any) {
        data["task_id"] = json!(style.task_id(MessageId(task)));
    }
    let id = names::event_id(&[b"approval.request", &saying.message.0]);
    let told = Told::of(id, "approval.request", saying.wall_ms, data).noting("truncated", is_cut);
    let told = told.with("room_id", style.room(saying.room));
    Some(told.with("message_id", style.message(saying.message)))
}

/// What an agent wants.
struct Wish {
    kind: String,
    command: String,
    details: Value,
    within: Duration,
    urgency: Option<&'static str>,
}

impl Wish {
    fn of(data: &At<'_>) -> Result<Wish, Problem> {
        let kind = data.get("approval_type").words(64)?;
        let at = data.get("details");
        let details = at.object()?.map_or(json!({}), |details| json!(details));
        if details.to_string().len() > APPROVAL_DETAILS_BYTES_MAX {
            return Err(at.bad(format!("at most {APPROVAL_DETAILS_BYTES_MAX} bytes")));
        }
        let is_said = |at: &At<'_>| {
            at.value().and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
        };
        let named = ["command", "changes_summary"].map(|name| at.get(name));
        let named = named.into_iter().find(is_said).unwrap_or_else(|| data.get("approval_type"));
        let command = named.words(APPROVAL_TEXT_BYTES_MAX)?;
        if command.len() > APPROVAL_TEXT_BYTES_MAX {
            return Err(named.bad(format!("at most {APPROVAL_TEXT_BYTES_MAX} bytes")));
        }
        let timeout = data.get("timeout");
        let within = match timeout.text(64)? {
            None => APPROVAL_FOR,
            Some(text) => {
                let form = "must be such as `30 minutes` or PT30M, from a second to 7 days";
                let within = times::duration(text).ok_or_else(|| timeout.bad(form))?;
                let fits = (APPROVAL_FOR_MIN..=APPROVAL_FOR_MAX).contains(&within);
                if fits { within } else { return Err(timeout.bad(form)) }
            }
        };
        let urgency = data
            .get("urgency")
            .one_of(&["low", "normal", "medium", "high", "urgent", "critical"])?;
        let (kind, command) = (kind.to_owned(), command.to_owned());
        Ok(Wish { kind, command, details, within, urgency })
    }

    fn metadata(&self, request_id: &str, approvers: &[AgentId], task: Option<&TaskView>) -> String {
        let mut asked = json!({
            "command": self.command,
            "timeout_secs": self.within.as_secs(),
            "approvers": approvers.iter().map(|agent| &**agent).collect::<Vec<_>>(),
            "type": self.kind,
            "details": self.details,
            "request_id": request_id,
        });
        if let Some(urgency) = self.urgency {
            asked["urgency"] = json!(urgency);
        }
        if let Some(task) = task {
            asked["task_id"] = json!(task.task.to_uuid());
            if let Some(alias) = task.facts.alias {
                asked["task_alias"] = json!(ids::text(alias.0));
            }
        }
        json!({"kind": ASKS, "approval": asked}).to_string()
    }

    fn line(&self, name: &str) -> String {
        let first = self.command.trim().lines().next().unwrap_or_default();
        let (command, _) = cut(first, COMMAND_SHOWN_CHARS_MAX);
        format!("[approval] {}: {command} (by {name})", self.kind)
    }
}

/// An agent asks, and is told as everybody.
pub(crate) async fn ask(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let data = request.data();
    let agent = cx.agent()?.clone();
    match cx.member.kind {
        Kind::Agent => {}
        Kind::Human => return Err(Problem::denied("agents ask for approvals, people decide")),
    }
    tasks::is_me(cx, &data.get("agent_id"))?;
    cx.member.rights.may(Right::Chat, false)?;
    let wish = Wish::of(&data)?;
    let room = rooms::meant(cx, request).await?;
    takes(cx, room).await?;
    let task = task(cx, room, &data.get("task_id")).await?;
    let approvers = approvers(cx, room, &data.get("approvers")).await?;
    let alias = alias(cx, room, &data.get("request_id")).await?;
    cx.shared.take(&agent, Rate::per_minute("requests for approval", APPROVALS_PER_MINUTE))?;
    let metadata = wish.metadata(&ids::text(alias.0), &approvers, task.as_ref());
    let line = wish.line(&cx.member.name());
    let say = Say {
        metadata: Some(metadata.clone()),
        mentions: approvers.iter().map(|agent| agent.to_string()).collect(),
        dedup: request.related.id.clone(),
        ..Say::chat(room, line.clone())
    };
    let terms =
        ApprovalTerms { text: wish.command, approvers: approvers.clone(), within: wish.within };
    let Requested { said, .. } = cx.ask(RequestApproval { say, terms }).await?;
    let SaidOk { message, fresh, .. } = said;
    if let Some(id) = &request.related.id {
        cx.shared.done(&agent, id, Done::Message(room, message));
    }
    // Two that came at the same moment: the first has it.
    let _: bool = cx.shared.alias(room, alias, Place { room, message });
    let Some(fresh) = fresh else {
        return chat::again(cx, room, message, request).await.map(|frame| vec![frame]);
    };
    chat::tell_others(cx, &agent, Place { room, message }).await;
    let saying = Saying {
        room,
        message,
        wall_ms: fresh.wall_ms,
        speech: Speech::Chat,
        agent: &agent,
        name: &fresh.name,
        content: &line,
        reply_to: None,
        mentions: &approvers,
        metadata: Some(&metadata),
        key: Some(cx.member.holder.key()),
        private: false,
    };
    Ok(vec![cx.frame(saying.told(cx.style()).answering(&request.related))])
}

/// Whether there may be approvals in a room.
async fn takes(cx: &Context, room: RoomId) -> Result<(), Problem> {
    let facts = cx.ask(Look(room)).await?;
    let no = |why: &str| Err(Problem::field("metadata.room_id", why));
    if facts.encrypted {
        return no("encrypted room");
    }
    if facts.ephemeral {
        return no("ephemeral room");
    }
    if facts.access.sides.is_some() {
        return no("a room of two alone");
    }
    rooms::takes(&rooms::set(cx, room).await?)
}

async fn task(cx: &Context, room: RoomId, at: &At<'_>) -> Result<Option<TaskView>, Problem> {
    let Some(text) = at.text(128)? else { return Ok(None) };
    let found = match ids::parse_any(text).map(MessageId) {
        Some(id) => tasks::in_room(cx, room, id).await?,
        None => None,
    };
    let missing = || Problem::missing("no such task in the room").at(at.path());
    found.map(Some).ok_or_else(missing)
}

async fn approvers(cx: &Context, room: RoomId, at: &At<'_>) -> Result<Vec<AgentId>, Problem> {
    let listed = at.list(APPROVERS_MAX)?;
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let members = cx.shared.census(&cx.me()?, room).await?;
    let mut all = Vec::with_capacity(listed.len());
    for at in &listed {
        all.push(chat::called(cx, &members, (at, at.words(256)?)).await?);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The id that the agent chose: nothing else is called so in the room.
async fn alias(cx: &Context, room: RoomId, at: &At<'_>) -> Result<MessageId, Problem> {
    let large = || at.bad("is more than 128 bits");
    chat::alias(cx, room, at).await?.ok_or_else(large)
}

/// The approval that somebody names, by its own id or the one that was chosen for it.
async fn find(cx: &Context, request: &Request) -> Result<(RoomId, MessageId), Problem> {
    let at = request.data().get("request_id");
    let missing =
        || Problem::missing("no such approval in a room of this connection").at(at.path());
    let id = MessageId(ids::parse_any(at.words(128)?).ok_or_else(missing)?);
    let (beside, inside) = (request.metadata().get("room_id"), request.data().get("room_id"));
    let named = if beside.is_there() { beside } else { inside };
    let rooms = match named.text(256)? {
        Some(room) => vec![rooms::named(cx, room).await?],
        None => cx.rooms(),
    };
    for room in rooms {
        let Some(approval) = called_so(cx, room, id).await? else { continue };
        if is_there(cx, room, approval).await? {
            return Ok((room, approval));
        }
    }
    Err(missing())
}

/// The approval of a room that is called so.
async fn called_so(
    cx: &Context,
    room: RoomId,
    id: MessageId,
) -> Result<Option<MessageId>, Problem> {
    if let Some(place) = cx.shared.aliased(room, id) {
        return Ok(Some(place.message));
    }
    if asked(cx, room, id).await.is_some() {
        return Ok(Some(id));
    }
    // Of before this node was started: one that is open, or was said not long ago.
    for open in cx.read(ListApprovals { room: Some(room) }).await? {
        if called(cx, room, open.id).await == Some(id.0) {
            return Ok(Some(open.id));
        }
    }
    let newest = History { room, from: From::Newest, limit: GIT_ROWS_MAX, before_ms: None };
    let newest = cx.read(newest).await?.messages;
    let is_it = |message: &&Message| {
        part(message.said.metadata.as_deref(), ASKS).as_ref().and_then(named) == Some(id.0)
    };
    Ok(newest.iter().find(is_it).map(|message| message.message))
}

/// Whether the mesh has an approval. Its message may be here a moment before it.
async fn is_there(cx: &Context, room: RoomId, approval: MessageId) -> Result<bool, Problem> {
    for look in 0..APPROVAL_LOOKS {
        if look > 0 {
            sleep(APPROVAL_LOOK_AFTER).await;
        }
        match cx.try_read(ReadApproval { room, approval }).await {
            Ok(_) => return Ok(true),
            Err(Refusal::Mesh(Refused::NoApproval)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(false)
}

/// Notes the id that an agent chose for what it asks, of a message that clients are told of.
pub(crate) fn note(cx: &Shared, message: &Message) {
    let asked = part(message.said.metadata.as_deref(), ASKS);
    if let Some(id) = asked.as_ref().and_then(named) {
        let place = Place { room: message.room, message: message.message };
        // Of two that are called so the first has it.
        let _: bool = cx.alias(message.room, MessageId(id), place);
    }
}

/// What an approval says in its message.
async fn asked(cx: &Context, room: RoomId, approval: MessageId) -> Option<Value> {
    let message: Option<Message> = cx.read(OneMessage { room, message: approval }).await.ok()?;
    part(message?.said.metadata.as_deref(), ASKS)
}

/// The id that the agent chose for an approval.
async fn called(cx: &Context, room: RoomId, approval: MessageId) -> Option<[u8; 16]> {
    asked(cx, room, approval).await.as_ref().and_then(named)
}

/// Somebody decides, and is told as everybody.
pub(crate) async fn respond(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let data = request.data();
    let agent = cx.agent()?.clone();
    cx.member.rights.may(Right::Approve, false)?;
    let words = ["approved", "request_changes", "needs_discussion", "denied"];
    let decision = data.get("decision").required()?.one_of(&words)?.unwrap_or_default();
    let at = data.get("feedback");
    let feedback = at.text(APPROVAL_REASON_BYTES_MAX)?.filter(|text| !text.trim().is_empty());
    if feedback.is_some_and(|text| text.len() > APPROVAL_REASON_BYTES_MAX) {
        return Err(at.bad(format!("at most {APPROVAL_REASON_BYTES_MAX} bytes")));
    }
    cx.shared.take(&agent, Rate::per_minute("decisions", STATUS_PER_MINUTE))?;
    let (room, approval) = find(cx, request).await?;
    rooms::takes(&rooms::set(cx, room).await?)?;
    let view = cx.ask(ReadApproval { room, approval }).await?;
    let is_named = view.approvers.contains(&agent);
    if cx.member.kind == Kind::Agent && !is_named {
        return Err(Problem::denied("people decide, and agents that are named").because("approver"));
    }
    let asked = asked(cx, room, approval).await;
    if asked.as_ref().is_none_or(|asked| asked["command"] != *view.text) {
        // Nobody approves what he was not shown.
        let text = "the message does not say what is asked for";
        return Err(Problem::conflict(text, "not as shown"));
    }
    if view.decided.is_some() {
        return Err(too_late(&view));
    }
    let feedback = feedback.map(str::to_owned);
    let choice = match decision {
        "approved" => Choice::Approve,
        "request_changes" => Choice::Change,
        "denied" => Choice::Deny,
        _ => return discuss(cx, request, &view, feedback).await,
    };
    cx.state().awaited.expect(Some(approval));
    let answer = cx.ask(Decide { room, approval, choice, reason: feedback }).await;
    let now = match answer {
        Ok(now) if now.granted => now,
        other => {
            cx.state().awaited.take(Some(approval));
            return Err(other.map(|now: Box<DecidedNow>| too_late(&now.approval))?);
        }
    };
    if let Some(id) = &request.related.id {
        cx.shared.done(&agent, id, Done::Decided(room, approval));
    }
    let told = decided(cx, &now.approval).await;
    Ok(vec![cx.frame(told.answering(&request.related))])
}

/// Somebody, or the time, was first.
fn too_late(view: &ApprovalView) -> Problem {
    match &view.decided {
        Some(decided) => {
            let by = decided.by.as_deref().map_or(String::new(), |by| format!(" by {by}"));
            let word = word(decided.verdict);
            Problem::conflict(format!("it is decided: {word}{by}"), word)
        }
        None => Problem::conflict("the time is up: nobody has decided", "expired"),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approved | Verdict::Always | Verdict::ByRule => "approved",
        Verdict::Denied => "denied",
        Verdict::Changes => "request_changes",
        Verdict::Expired => "expired",
    }
}

/// It stays open, and the one who asked is told why.
async fn discuss(
    cx: &Context,
    request: &Request,
    view: &ApprovalView,
    feedback: Option<String>,
) -> Result<Vec<Bytes>, Problem> {
    let (room, agent) = (view.room, cx.agent()?.clone());
    let mut talk = json!({"id": view.id.to_uuid()});
    if let Some(id) = called(cx, room, view.id).await {
        talk["request_id"] = json!(ids::text(id));
    }
    let (command, _) = cut(&view.text, COMMAND_SHOWN_CHARS_MAX);
    let mut line = format!("[approval] needs discussion: {command}");
    if let Some(feedback) = feedback {
        line = format!("{line} ({feedback})");
        talk["reason"] = json!(feedback);
    }
    let metadata = json!({"kind": TALKS, "approval": talk}).to_string();
    let say = Say {
        reply_to: Some(view.id.to_uuid()),
        mentions: vec![view.by.to_string()],
        metadata: Some(metadata),
        dedup: request.related.id.clone(),
        ..Say::chat(room, line)
    };
    let SaidOk { message, .. } = cx.ask(say).await?;
    if let Some(id) = &request.related.id {
        cx.shared.done(&agent, id, Done::Message(room, message));
    }
    chat::tell_others(cx, &agent, Place { room, message }).await;
    chat::again(cx, room, message, request).await.map(|frame| vec![frame])
}

/// Confirms a decision that was made before.
pub(crate) async fn again(
    cx: &Context,
    (room, approval): (RoomId, MessageId),
    request: &Request,
) -> Result<Vec<Bytes>, Problem> {
    let view = cx.ask(ReadApproval { room, approval }).await?;
    Ok(vec![cx.frame(decided(cx, &view).await.answering(&request.related))])
}

/// A decision that stands, under the id that the one who asked knows.
pub(crate) async fn decided(cx: &Context, view: &ApprovalView) -> Told {
    let id = called(cx, view.room, view.id).await;
    decision(cx.style(), view, id)
}

/// The same, without a look at what was asked.
pub(crate) fn decision(style: Style, view: &ApprovalView, id: Option<[u8; 16]>) -> Told {
    let decided = view.decided.as_ref();
    let (word, by) = decided.map_or(("pending", None), |it| (word(it.verdict), it.by.as_deref()));
    let at_ms = decided.map_or(view.asked_ms, |it| it.at_ms);
    let reason = decided.and_then(|it| it.reason.as_deref());
    let mut data = json!({
        "request_id": style.form.id("approval", id.unwrap_or(view.id.0)),
        "agent_id": &*view.by,
        "decision": word,
        "feedback": reason.unwrap_or_default(),
        "decided_at": times::text(at_ms),
    });
    if let Some(by) = by {
        data["approver"] = style.user(by, None);
    }
    let by = by.unwrap_or_default().as_bytes();
    let parts = [&b"approval.response"[..], &view.id.0, word.as_bytes(), by, &at_ms.to_be_bytes()];
    let told = Told::of(names::event_id(&parts), "approval.response", at_ms, data);
    told.with("room_id", style.room(view.room))
}

/// A message that says how something was decided: the decision itself, if it is so.
pub(crate) async fn checked(cx: &Context, message: &Message) -> Option<Told> {
    let said = part(message.said.metadata.as_deref(), DECIDES)?;
    let approval = said["id"].as_str().and_then(MessageId::from_uuid)?;
    let view = cx.read(ReadApproval { room: message.room, approval }).await.ok()?;
    let stands = view.decided.as_ref().is_some_and(|decided| {
        decided.by.as_deref() == Some(&*message.said.agent)
            && said["decision"] == decided.verdict.word()
    });
    if stands { Some(decided(cx, &view).await) } else { None }
}
