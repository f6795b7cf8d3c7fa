//! Sending to a session, and waiting for the answer.

use std::time::Duration;

use bridge::{
    policy::is_skip,
    seam::{
        answer::How,
        call::{
            DescribeRoom, FindAgent, From, GetReceipts, History, Join, Look, MaySend, OneMessage,
            OpenDirect, Say,
        },
        event::Message,
    },
};
use mesh::{
    api::command::{RoomView, SaidOk},
    limits::DEDUP_FOR,
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
    wire::conversation::Conversation,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use super::{history::NOTE, inbox::Mail};
use crate::{
    arguments::Arguments,
    asking::{Asking, Wait},
    encode::cut_at,
    limits::{
        IDEMPOTENCY_CHARS_MAX, PAGE_MIN, REPEATS_LOOKED_AT, REPLY_BYTES_MAX, SAME_AFTER_ANSWER,
    },
    outcome::{No, Outcome, object},
    sessions::Session,
    settings::SoftTimeout,
};

/// Arguments of other programs' tools of this name. To ignore one would send to somebody else.
const WRONG_TARGETS: [&str; 5] = ["target", "to", "channel", "threadId", "accountId"];

pub(super) fn refuse_wrong_targets(arguments: &Arguments) -> Result<(), No> {
    let Some(name) = WRONG_TARGETS.into_iter().find(|name| arguments.has(name)) else {
        return Ok(());
    };
    let text =
        format!("`{name}` is not an argument here: name the target with sessionKey or agentId");
    Err(No::Argument { text, field: name })
}

/// What is to be sent.
struct Wanted {
    text: String,
    reply_to: Option<String>,
    expects_reply: Option<bool>,
    /// As it was asked for.
    wait: Option<Duration>,
    idempotency: Option<String>,
    announce: bool,
}

impl Wanted {
    fn of(arguments: &mut Arguments) -> Result<Wanted, No> {
        refuse_wrong_targets(arguments)?;
        let wait = arguments.wait_if_given()?;
        let idempotency = arguments.filled("idempotencyKey", IDEMPOTENCY_CHARS_MAX)?;
        Ok(Wanted {
            text: super::rooms::message(arguments)?,
            reply_to: arguments.text("replyTo")?,
            expects_reply: arguments.flag("expectsReply")?,
            wait,
            idempotency,
            announce: arguments.flag("announce")?.unwrap_or(false),
        })
    }

    /// Whether its author asks for something, as far as the author says.
    fn asks(&self) -> bool {
        self.expects_reply.unwrap_or(self.reply_to.is_none())
    }
}

/// A message that was sent, now or before.
struct Sent {
    message: MessageId,
    number: Number,
    place: Option<Conversation>,
    is_repeat: bool,
}

/// The session that something is sent to.
pub(super) struct Target {
    pub(super) room: RoomView,
    /// The other agent, if it is one.
    pub(super) peer: Option<AgentId>,
    pub(super) key: String,
    joined: bool,
}

pub(super) async fn send(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let begun = begin(asking, arguments).await?;
    if !begun.waits() {
        return Ok(begun.accepted());
    }
    let Begun { target, request, ending, held } = begun;
    let ended = wait_for_answer(asking, &target, request, ending).await;
    drop(held);
    ended
}

/// A message that was sent, and the wait for its answer.
pub(super) struct Begun {
    pub(super) target: Target,
    pub(super) request: Request,
    pub(super) ending: Ending,
    held: Option<Wait>,
}

impl Begun {
    /// Whether there is an answer to be waited for.
    pub(super) fn waits(&self) -> bool {
        self.ending.wait > Duration::ZERO
    }

    /// The result without one.
    pub(super) fn accepted(self) -> Map<String, Value> {
        let mut fields = self.ending.fields;
        fields.insert("status".to_owned(), json!("accepted"));
        fields.insert("delivery".to_owned(), pending());
        fields
    }
}

/// Sends.
pub(super) async fn begin(asking: &Asking, arguments: &mut Arguments) -> Result<Begun, No> {
    let wanted = Wanted::of(arguments)?;
    let session = asking.session(arguments).await?;
    let is_own = matches!(session, Session::Main);
    if is_own && wanted.wait.is_some_and(|wait| wait > Duration::ZERO) {
        let text = "you cannot wait for your own reply: use timeoutSeconds 0";
        return Err(No::Argument { text: text.to_owned(), field: "timeoutSeconds" });
    }
    let target = target(asking, &session).await?;
    let direct = target.peer.is_some();
    let wanted = match (is_own, direct, wanted.wait) {
        (true, ..) => Wanted { expects_reply: Some(false), ..wanted },
        // It asks for nothing, also where there was nothing to answer.
        (false, true, _) if is_skip(&wanted.text) => {
            Wanted { expects_reply: Some(false), ..wanted }
        }
        // Whoever waits asks; in a room nobody else does.
        (false, false, wait) if wanted.expects_reply.is_none() => {
            let asks = wait.is_some_and(|wait| wait > Duration::ZERO);
            Wanted { expects_reply: Some(asks), ..wanted }
        }
        (false, ..) => wanted,
    };
    if let Some(reply_to) = &wanted.reply_to {
        is_message(asking, &target, reply_to).await?;
    }
    // Nothing is sent by a call that could not wait.
    let may_wait = wanted.wait.map_or(direct, |wait| wait > Duration::ZERO);
    let held = if may_wait { Some(asking.wait()?) } else { None };
    let sent = said(asking, &target, &wanted).await?;
    let asks = sent.place.is_some_and(|place| place.expects_reply);
    let by_itself = if direct && wanted.asks() && asks { 30 } else { 0 };
    let wait = wanted.wait.unwrap_or(Duration::from_secs(by_itself));
    let mut fields = object(json!({
        "runId": sent.message.to_uuid(),
        "sessionKey": target.key,
    }));
    if target.joined {
        fields.insert("joined".to_owned(), json!(true));
    }
    if sent.is_repeat {
        fields.insert("duplicate".to_owned(), json!(true));
    }
    let request = Request { message: sent.message, number: sent.number };
    Ok(Begun { target, request, ending: Ending { wait, fields }, held })
}

/// Whether there is such a message to be answered.
async fn is_message(asking: &Asking, target: &Target, id: &str) -> Result<(), No> {
    let none = || No::argument("replyTo", "must be the id of a message of this session");
    let message = MessageId::from_uuid(id.trim()).ok_or_else(none)?;
    let found = asking.read(OneMessage { room: target.room.room, message }).await?;
    found.map(drop).ok_or_else(none)
}

/// A message that waits for an answer, and its number.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) message: MessageId,
    pub(super) number: Number,
}

/// How a call ends that waits for an answer.
pub(super) struct Ending {
    pub(super) wait: Duration,
    /// What its result has in any case.
    pub(super) fields: Map<String, Value>,
}

/// Waits for the answer to a request, and gives it.
pub(super) async fn wait_for_answer(
    asking: &Asking,
    target: &Target,
    request: Request,
    Ending { wait, fields }: Ending,
) -> Outcome {
    let until = Instant::now() + wait;
    let awaiting = asking.awaits(request.message);
    let reply = match answer_until(asking, target, request, until).await? {
        Came::Reply(reply) => reply,
        Came::Failed(failed) => return Ok(not_delivered(&failed, fields)),
        Came::Nothing => {
            drop(awaiting);
            return Ok(timed_out(asking, target, request.message, Ending { wait, fields }).await);
        }
    };
    asking.goes_on().await?;
    // It is given now, and does not come again.
    is_given(asking, &reply).await;
    drop(awaiting);
    answered(asking, target, &reply, fields).await
}

/// The end of a wait for an answer.
enum Came {
    Reply(Box<Message>),
    /// The request is not handed over any more. As a result has it.
    Failed(Value),
    Nothing,
}

/// The answer to a request, if it comes in time.
async fn answer_until(
    asking: &Asking,
    target: &Target,
    Request { message, number }: Request,
    until: Instant,
) -> Result<Came, No> {
    // Before the first look: what comes between the two is not missed.
    let mut watch = asking.shared.desk.watch(&asking.reader, target.room.room)?;
    let mut after = number;
    loop {
        let (found, upto) = answer_after(asking, target, message, after).await?;
        after = upto;
        if let Some(reply) = found {
            return Ok(Came::Reply(Box::new(reply)));
        }
        if Instant::now() >= until {
            return Ok(Came::Nothing);
        }
        if let Some(failed) = failure_of(asking, target, message).await? {
            return Ok(Came::Failed(failed));
        }
        asking.until(&mut watch, until).await?;
    }
}

/// An answer is given: it does not come again. If that fails it does, which is the lesser evil.
pub(super) async fn is_given(asking: &Asking, reply: &Message) {
    if let Ok(mail) = Mail::open(asking).await {
        mail.take_out(reply).await.ok();
    }
}

/// A request whose answer is waited for by a task, as it is kept.
pub(super) fn kept(begun: &Begun) -> Value {
    json!({
        "room": begun.target.room.room.to_uuid(),
        "message": begun.request.message.to_uuid(),
        "number": begun.request.number.0,
        "fields": begun.ending.fields,
    })
}

/// The request of what was kept.
pub(super) fn request_of_kept(kept: &Value) -> Option<MessageId> {
    kept["message"].as_str().and_then(MessageId::from_uuid)
}

/// The answer to a request that was kept, or that there was none; and the message that it is.
pub(super) async fn answer_of_kept(
    asking: &Asking,
    kept: &Value,
    wait: Duration,
) -> Result<(Map<String, Value>, Option<Message>), No> {
    let lost = || No::error("the message that was sent is not known any more");
    let room = kept["room"].as_str().and_then(RoomId::from_uuid).ok_or_else(lost)?;
    let message = request_of_kept(kept).ok_or_else(lost)?;
    let number = Number(kept["number"].as_u64().ok_or_else(lost)?);
    let fields = object(kept["fields"].clone());
    let room = asking.read(DescribeRoom(room)).await?.room;
    let peer = room.sides.as_ref().map(|sides| sides.peer_of(&asking.agent).clone());
    let key = asking.names().key(&room);
    let target = Target { room, peer, key, joined: false };
    let request = Request { message, number };
    match answer_until(asking, &target, request, Instant::now() + wait).await? {
        Came::Reply(reply) => Ok((answered(asking, &target, &reply, fields).await?, Some(*reply))),
        Came::Failed(failed) => Ok((not_delivered(&failed, fields), None)),
        Came::Nothing => {
            Ok((timed_out(asking, &target, message, Ending { wait, fields }).await, None))
        }
    }
}

impl Target {
    /// The room of a task, and the agent that is to do it.
    pub(super) fn of_task(asking: &Asking, room: RoomView, worker: AgentId) -> Target {
        let key = asking.names().key(&room);
        Target { room, peer: Some(worker), key, joined: false }
    }
}

/// The direct room with an agent, made if there is none. To make one counts as a message, and to find one does not.
async fn direct_with(asking: &Asking, agent: &AgentId) -> Result<RoomView, No> {
    if let Some(room) = asking.found_direct(agent) {
        let found = asking.shared.desk.ask(&asking.reader, DescribeRoom(room)).await;
        if let Ok(info) = found {
            return Ok(info.room);
        }
    }
    let room = match asking.direct_room(agent).await? {
        Some(room) => room,
        None => asking.act(OpenDirect::with(agent.clone())).await?,
    };
    asking.finds_direct(agent, room.room);
    Ok(room)
}

/// The room of a session. One that the agent may enter, and is not in, it enters.
async fn target(asking: &Asking, session: &Session) -> Result<Target, No> {
    let key = session.key(asking);
    match session {
        Session::Main => {
            let room = direct_with(asking, &asking.agent).await?;
            Ok(Target { room, peer: None, key, joined: false })
        }
        Session::Agent(agent) => {
            let room = direct_with(asking, agent).await?;
            Ok(Target { room, peer: Some(agent.clone()), key, joined: false })
        }
        Session::Room(room) => {
            let room = RoomView::clone(room);
            if let Some(sides) = &room.sides {
                let peer = sides.peer_of(&asking.agent).clone();
                return Ok(Target { room, peer: Some(peer), key, joined: false });
            }
            let joined = !asking.seats().await?.contains(&room.room);
            if joined {
                // What is refused leaves nothing behind.
                asking.read(MaySend { room: room.room, by_tool: true }).await?;
                asking.act(Join(room.room)).await?;
                asking.remembers(room.room, true);
            }
            Ok(Target { room, peer: None, key, joined })
        }
        Session::Thread(of, _) => {
            let key = of.key(asking);
            let text = format!("threads can be read, not sent to; use {key}");
            Err(No::Forbidden {
                rule: "thread".to_owned(),
                text,
                session: Some(key),
                more: Map::new(),
            })
        }
    }
}

/// Says it, unless it was said before.
async fn said(asking: &Asking, target: &Target, wanted: &Wanted) -> Result<Sent, No> {
    let room = target.room.room;
    if let Some(name) = &wanted.idempotency {
        asking.named_send(name, room, &wanted.text)?;
    }
    if wanted.idempotency.is_none()
        && wanted.asks()
        && target.peer.is_some()
        && let Some(same) = said_before(asking, target, wanted).await?
    {
        return Ok(same);
    }
    let kind = match (&wanted.reply_to, wanted.asks()) {
        (Some(_), _) => "reply",
        (None, true) => "request",
        (None, false) => "notice",
    };
    let say = Say {
        reply_to: wanted.reply_to.clone(),
        mentions: target.peer.iter().map(|peer| peer.to_string()).collect(),
        metadata: Some(json!({"kind": kind, "expects_reply": wanted.asks()}).to_string()),
        dedup: wanted.idempotency.as_deref().map(dedup_id),
        expects_reply: wanted.expects_reply,
        counted: true,
        by_tool: true,
        announce: wanted.announce,
        ..Say::chat(room, wanted.text.clone())
    };
    let said = asking.act(say).await.map_err(|no| of_session(no, asking, target))?;
    let SaidOk { message, number, fresh, .. } = said;
    if let Some(fresh) = fresh {
        return Ok(Sent { message, number, place: fresh.conversation, is_repeat: false });
    }
    let first = asking.read(OneMessage { room, message }).await?;
    match first.filter(|first| first.said.content == wanted.text) {
        Some(first) => {
            Ok(Sent { message, number, place: first.said.conversation, is_repeat: true })
        }
        None => Err(No::error("idempotencyKey was used for another message")),
    }
}

/// A refusal, with the session and the agents that it is about.
fn of_session(no: No, asking: &Asking, target: &Target) -> No {
    match no {
        No::Forbidden { rule, text, session: None, more } => {
            let text = match &target.peer {
                Some(peer) => {
                    text.replace("the two agents", &format!("{} and {peer}", asking.agent))
                }
                None => text,
            };
            No::Forbidden { rule, text, session: Some(target.key.clone()), more }
        }
        no @ (No::Forbidden { .. } | No::Argument { .. } | No::Error { .. } | No::Agent { .. }) => {
            no
        }
    }
}

/// A name of any length as one that the mesh takes, and that other clients do not use.
fn dedup_id(key: &str) -> String {
    let hash = Sha256::digest(key.as_bytes());
    let digits = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
    ["mcp ".to_owned()].into_iter().chain(digits).collect()
}

/// The same request, if it was made a short while ago: a model that repeats itself does not ask twice.
async fn said_before(
    asking: &Asking,
    target: &Target,
    wanted: &Wanted,
) -> Result<Option<Sent>, No> {
    let room = target.room.room;
    let call = History { room, from: From::Newest, limit: REPEATS_LOOKED_AT, before_ms: None };
    let newest = asking.read(call).await?.messages;
    let now_ms = newest.iter().map(|message| message.wall_ms).max().unwrap_or(0).max(now_ms());
    let is_young = |message: &Message, within: Duration| {
        u128::from(now_ms.saturating_sub(message.wall_ms)) < within.as_millis()
    };
    let is_same = |message: &&Message| {
        let said = &message.said;
        let place = said.conversation.filter(|place| place.expects_reply);
        *said.agent == *asking.agent
            && place.is_some()
            && said.content == wanted.text
            && said.reply_to == wanted.reply_to
    };
    let Some(same) = newest.iter().rev().find(is_same) else { return Ok(None) };
    let answer = newest.iter().find(|message| answers(message, same.message));
    let counts = match answer {
        Some(answer) => is_young(answer, SAME_AFTER_ANSWER),
        None => is_young(same, DEDUP_FOR),
    };
    let sent = Sent {
        message: same.message,
        number: same.number,
        place: same.said.conversation,
        is_repeat: true,
    };
    Ok(counts.then_some(sent))
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn answers(message: &Message, request: MessageId) -> bool {
    message.said.conversation.is_some_and(|place| place.answers == Some(request))
}

/// The first answer to a request among the messages after a number, and how far it was looked.
async fn answer_after(
    asking: &Asking,
    target: &Target,
    request: MessageId,
    mut after: Number,
) -> Result<(Option<Message>, Number), No> {
    loop {
        let from = From::Number(after.0);
        let call = History { room: target.room.room, from, limit: PAGE_MIN, before_ms: None };
        let page = asking.read(call).await?.messages;
        let is_all = (page.len() as u64) < PAGE_MIN;
        for message in page {
            after = message.number;
            let by_other = *message.said.agent != *asking.agent;
            if by_other
                && answers(&message, request)
                && is_handed_over(asking, target, &message).await?
            {
                return Ok((Some(message), after));
            }
        }
        if is_all {
            return Ok((None, after));
        }
    }
}

/// Whether the node hands a message over: its operator may not want that.
async fn is_handed_over(asking: &Asking, target: &Target, message: &Message) -> Result<bool, No> {
    let facts = asking.read(Look(target.room.room)).await?;
    Ok(facts.withheld(&message.said.agent).is_none())
}

pub(super) fn pending() -> Value {
    json!({"status": "pending", "mode": "none"})
}

/// Says the whole result of a task to the agent that gave it.
pub(super) async fn result(
    asking: &Asking,
    room: &RoomView,
    text: &str,
    failed: bool,
) -> Result<(), No> {
    let mut metadata = json!({"kind": "result", "expects_reply": false});
    if failed {
        metadata["error"] = json!(text.chars().take(200).collect::<String>());
    }
    let metadata = Some(metadata.to_string());
    let (expects_reply, by_tool) = (Some(false), true);
    let say = Say { metadata, expects_reply, by_tool, ..Say::chat(room.room, text.to_owned()) };
    asking.act(say).await.map(drop)
}

/// The fate of a request, if it was given up or refused.
async fn failure_of(
    asking: &Asking,
    target: &Target,
    message: MessageId,
) -> Result<Option<Value>, No> {
    if target.peer.is_none() {
        return Ok(None);
    }
    let known = fate(asking, target, message).await?;
    Ok(known.filter(|known| known["status"] == "failed"))
}

/// The fate of a request, as nodes have said it in its room.
async fn fate(asking: &Asking, target: &Target, message: MessageId) -> Result<Option<Value>, No> {
    let found = asking.read(OneMessage { room: target.room.room, message }).await?;
    let Some(fate) = found.and_then(|found| found.fate) else { return Ok(None) };
    let reader = asking.reader_of([fate.node]).await?;
    let mut known = reader.fate(&fate);
    known["mode"] = json!("none");
    Ok(Some(known))
}

fn not_delivered(failed: &Value, mut fields: Map<String, Value>) -> Map<String, Value> {
    let reason = failed["reason"].as_str().unwrap_or("nobody says why");
    fields.extend(object(json!({
        "status": "error",
        "error": format!("not delivered: {reason}"),
        "sentBeforeError": true,
        "delivery": failed,
    })));
    fields
}

/// What nodes say of a message that has no answer: no more than they say.
async fn delivery(asking: &Asking, target: &Target, message: MessageId) -> Result<Value, No> {
    let Some(peer) = &target.peer else { return Ok(pending()) };
    let found = asking.read(FindAgent(peer.clone())).await?;
    let there = found.first();
    let presence = match there {
        Some(view) if view.lingers => "idle",
        Some(_) => "online",
        None => "away",
    };
    let mut delivery = pending();
    delivery["presence"] = json!(presence);
    if let Some(mut known) = fate(asking, target, message).await? {
        known["presence"] = json!(presence);
        return Ok(known);
    }
    let room = target.room.room;
    let Some(receipts) = asking.read(GetReceipts { room, message }).await? else {
        return Ok(delivery);
    };
    let given = receipts.agents.iter().find(|reached| reached.agent == *peer);
    let arrived =
        there.and_then(|view| receipts.stored.iter().find(|stored| stored.node == view.node));
    let (status, node, at_ms) = match (given, arrived) {
        (Some(given), _) => {
            let status = match given.how {
                How::Delivered | How::Confirmed | How::Answered => "delivered",
            };
            (status, given.node, given.at_ms)
        }
        (None, Some(stored)) => ("arrived", stored.node, stored.at_ms),
        (None, None) => return Ok(delivery),
    };
    let reader = asking.reader_of([node]).await?;
    delivery["status"] = json!(status);
    delivery["node"] = reader.node(node);
    delivery["at"] = json!(at_ms);
    Ok(delivery)
}

async fn timed_out(
    asking: &Asking,
    target: &Target,
    message: MessageId,
    Ending { wait, mut fields }: Ending,
) -> Map<String, Value> {
    // What is known is told; that something is not known does not make a failure of it.
    let within = Instant::now() + Duration::from_secs(2);
    let known = timeout_at(within, delivery(asking, target, message)).await;
    let known = known.ok().and_then(Result::ok).unwrap_or_else(pending);
    let secs = wait.as_secs();
    let text = format!(
        "no reply within {secs} s; the message was kept and must not be sent again: call inbox_wait, \
         or the same sessions_send again to go on waiting"
    );
    fields.insert("delivery".to_owned(), known);
    fields.extend(object(match asking.shared.settings.soft_timeout {
        SoftTimeout::Timeout => {
            json!({"status": "timeout", "error": text, "sentBeforeError": true})
        }
        SoftTimeout::Accepted => json!({"status": "accepted", "note": text}),
    }));
    fields
}

async fn answered(
    asking: &Asking,
    target: &Target,
    reply: &Message,
    mut fields: Map<String, Value>,
) -> Outcome {
    let reader = asking.reader_of([reply.by]).await?;
    let (row, _) = reader.message(&target.room, reply);
    let place = reply.said.conversation;
    let mode = if place.is_some_and(|place| place.announces) { "announce" } else { "none" };
    fields.insert(
        "delivery".to_owned(),
        json!({"status": "delivered", "mode": mode, "node": reader.node(reply.by), "at": reply.wall_ms}),
    );
    if is_skip(&reply.said.content) {
        fields.insert("status".to_owned(), json!("no_reply"));
        fields.insert("message".to_owned(), json!("the agent chose not to reply"));
        return Ok(fields);
    }
    fields.insert("replyId".to_owned(), json!(reply.message.to_uuid()));
    fields.insert("from".to_owned(), row["from"].clone());
    if let Some(error) = failure(reply) {
        fields.insert("status".to_owned(), json!("error"));
        fields.insert("error".to_owned(), json!(cut_at(&error, REPLY_BYTES_MAX).0));
        return Ok(fields);
    }
    let (text, was_cut) = cut_at(&reply.said.content, REPLY_BYTES_MAX);
    fields.insert("status".to_owned(), json!("ok"));
    fields.insert("reply".to_owned(), json!(text));
    if was_cut {
        fields.insert("replyTruncated".to_owned(), json!(true));
    }
    fields.insert("conversation".to_owned(), row["conversation"].clone());
    fields.insert("expectsReply".to_owned(), row["expectsReply"].clone());
    fields.retain(|_, value| !value.is_null());
    fields.insert("note".to_owned(), json!(NOTE));
    Ok(fields)
}

/// The failure that an answer tells of.
pub(super) fn failure(reply: &Message) -> Option<String> {
    let metadata: Value = serde_json::from_str(reply.said.metadata.as_deref()?).ok()?;
    metadata["error"].as_str().map(str::to_owned)
}
