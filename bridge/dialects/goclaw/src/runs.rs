//! Runs: a request to an agent, and what comes of it. Each is one task of the node, which goes on when its client has gone.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bridge::{
    read::{Pieces, Watch},
    seam::{
        call::{From, History, Look, OneMessage, Say},
        event::Message,
    },
};
use mesh::{
    api::{command::Speech, delivery::Stage},
    name::{
        id::{AgentId, KeyPrint, MessageId, RoomId},
        number::Number,
    },
    wire::piece::{Piece, PieceKind},
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use crate::{
    answer::Answer,
    caller::{Caller, Speaker},
    limits::{RUN_LOOK_EVERY, RUNS_MAX, RUNS_PER_KEY_MAX, STARTED_CHARS},
    outcome::{Code, No},
    pieces::{RunEvent, Streamed, is_of},
    settings::Events,
    threads::{answered, metadata, usage},
};

/// A run that is open, and was begun here.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: MessageId,
    pub(crate) number: Number,
    pub(crate) session: String,
    pub(crate) asked: Asked,
    pub(crate) room: RoomId,
    pub(crate) speaker: Speaker,
    pub(crate) key: KeyPrint,
    pub(crate) text: String,
    pub(crate) begun: Instant,
}

/// Those who were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The other side of a direct room. The node that has it says which of its words are the answer.
    Peer(AgentId),
    /// A member of a room, or any of them: an answer names the request.
    Member(Option<AgentId>),
}

impl Asked {
    /// The one who is meant, if it is one.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        match self {
            Asked::Peer(agent) => Some(agent),
            Asked::Member(agent) => agent.as_ref(),
        }
    }

    /// Whether its words can be the answer.
    fn may_answer(&self, agent: &AgentId) -> bool {
        self.agent().is_none_or(|asked| asked == agent)
    }

    /// The message that this one answers.
    fn answered_by(&self, message: &Message) -> Option<MessageId> {
        match self {
            Asked::Peer(_) => message.said.conversation.and_then(|place| place.answers),
            Asked::Member(_) => message.said.reply_to.as_deref().and_then(MessageId::from_uuid),
        }
    }
}

/// All runs that were begun here and are open.
#[derive(Default)]
pub(crate) struct Runs {
    open: Mutex<BTreeMap<MessageId, Arc<Run>>>,
    /// Held while a session is written to: of two requests at once the second finds the first one's run.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Runs {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<MessageId, Arc<Run>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more can be begun.
    pub(crate) fn has_place(&self, key: KeyPrint) -> Result<(), No> {
        let open = self.locked();
        let of_key = open.values().filter(|run| run.key == key).count();
        if open.len() >= RUNS_MAX || of_key >= RUNS_PER_KEY_MAX {
            return Err(No::exhausted("too many runs are open at this node", 5_000));
        }
        Ok(())
    }

    fn begin(&self, run: &Arc<Run>) {
        self.locked().insert(run.id, run.clone());
    }

    fn end(&self, run: &Run) {
        self.locked().remove(&run.id);
    }

    /// Whether an agent is at one.
    pub(crate) fn has(&self, agent: &AgentId) -> bool {
        self.locked().values().any(|run| run.asked.agent() == Some(agent))
    }

    /// Whether no other run is open in its room, and all that its agent writes there is for this one.
    fn is_only(&self, run: &Run) -> bool {
        let open = self.locked();
        matches!(run.asked, Asked::Peer(_))
            && !open.values().any(|other| other.room == run.room && other.id != run.id)
    }

    pub(crate) fn has_session(&self, session: &str) -> bool {
        self.locked().values().any(|run| run.session == *session)
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<Arc<Run>> {
        self.locked().get(&id).cloned()
    }

    /// The turn to write to a session.
    pub(crate) fn turn(&self, session: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds or waits for the others.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(session.to_owned()).or_default().clone()
    }
}

/// How the client is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) stream: bool,
    /// Without a stream: at the latest after this.
    pub(crate) wait: Duration,
}

/// The end of a run.
enum End {
    Reply(Box<Message>),
    /// Its message says that it came to nothing.
    Failed(String),
    NotDelivered(String),
    Cancelled,
    TimedOut,
    /// It cannot be waited for any longer.
    Lost(No),
}

/// Follows a run to its end. The answer to its client and the events of it are told from here, in their order.
pub(crate) async fn follow(
    caller: Arc<Caller>,
    (run, how): (Run, How),
    pieces: Pieces,
    answer: Answer,
) {
    until_over(&caller, (run, how), pieces, Some(answer)).await;
}

/// Follows the run of a job: nobody is answered. Its clients hear what they hear of runs that others of them have begun.
pub(crate) async fn look_on(caller: Arc<Caller>, run: Run) {
    let reader = caller.named(&run.speaker.agent);
    let Ok(pieces) = caller.shared.desk.hear_pieces(&reader, run.room) else { return };
    let how = How { stream: true, wait: Duration::ZERO };
    until_over(&caller, (run, how), pieces, None).await;
}

async fn until_over(
    caller: &Arc<Caller>,
    (run, how): (Run, How),
    pieces: Pieces,
    answer: Option<Answer>,
) {
    let run = Arc::new(run);
    caller.shared.runs.begin(&run);
    let began = false;
    let looks_on = answer.is_none();
    let streamed = Streamed::default();
    let mut told = Told { caller, run: &run, looks_on, answer, began, pieces, streamed };
    let end = told.until_end(how).await;
    while let Some(piece) = told.pieces.take() {
        told.piece(how, &piece);
    }
    caller.shared.runs.end(&run);
    told.end(how, end);
}

struct Told<'c> {
    caller: &'c Arc<Caller>,
    run: &'c Arc<Run>,
    /// Somebody else sees to the run.
    looks_on: bool,
    /// Until it is sent.
    answer: Option<Answer>,
    /// Clients know that the run has begun.
    began: bool,
    pieces: Pieces,
    streamed: Streamed,
}

impl Told<'_> {
    async fn until_end(&mut self, how: How) -> End {
        match self.watch_to_end(how).await {
            Ok(end) => end,
            Err(no) => End::Lost(no),
        }
    }

    async fn watch_to_end(&mut self, how: How) -> Result<End, No> {
        let (caller, run) = (self.caller, self.run);
        // Before the first look: what comes between the two is not missed.
        let reader = caller.named(&run.speaker.agent);
        let mut watch = caller.shared.desk.watch(&reader, run.room)?;
        let limit = run.begun + caller.shared.settings().run_limit;
        let wait = run.begun + how.wait;
        let mut after = run.number;
        if how.stream {
            self.begins();
        }
        loop {
            if let Some(end) = self.look(&mut after).await? {
                return Ok(end);
            }
            let now = Instant::now();
            if now >= limit {
                return if self.looks_on { Ok(End::TimedOut) } else { self.time_out().await };
            }
            if !how.stream && now >= wait && self.answer.is_some() {
                self.still_running();
            }
            let mut until = limit.min(now + RUN_LOOK_EVERY);
            if !how.stream && self.answer.is_some() {
                until = until.min(wait);
            }
            self.news(how, &mut watch, until).await;
            if Instant::now() >= now + RUN_LOOK_EVERY {
                caller.is_valid().await?;
            }
        }
    }

    /// Waits for news of the room, until a time at the latest. Pieces are told on the way.
    async fn news(&mut self, how: How, watch: &mut Watch, until: Instant) {
        loop {
            tokio::select! {
                biased;
                piece = self.pieces.next() => self.piece(how, &piece),
                () = watch.news() => return,
                () = sleep_until(until) => return,
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// The agent writes its answer.
    fn piece(&mut self, how: How, piece: &Piece) {
        let (caller, run) = (self.caller, self.run);
        if !run.asked.may_answer(&piece.agent)
            || !is_of(piece, run.id, caller.shared.runs.is_only(run))
        {
            return;
        }
        // Without a stream its text comes in one piece.
        let is_wanted =
            how.stream || matches!(piece.kind, PieceKind::ToolCall | PieceKind::ToolResult);
        let Some(event) = self.streamed.event(piece).filter(|_| is_wanted) else { return };
        if self.began {
            self.tell(event);
        } else {
            self.streamed.keep(event);
        }
    }

    fn tell(&self, (kind, inner, flat): RunEvent) {
        tell(self.caller, self.run, kind, &inner, flat);
    }

    /// What was said since. Thoughts of the agent are told on the way.
    async fn look(&mut self, after: &mut Number) -> Result<Option<End>, No> {
        let (caller, run) = (self.caller, self.run);
        let by = &run.speaker.agent;
        loop {
            let from = From::Number(after.0);
            let call = History { room: run.room, from, limit: PAGE, before_ms: None };
            let page = caller.read_as(by, call).await?.messages;
            let is_all = (page.len() as u64) < PAGE;
            for message in page {
                *after = message.number;
                if let Some(end) = self.heard(message).await? {
                    return Ok(Some(end));
                }
            }
            if is_all {
                break;
            }
        }
        let call = OneMessage { room: run.room, message: run.id };
        let fate = caller.read_as(by, call).await?.and_then(|request| request.fate);
        let failed = fate.filter(|fate| fate.stage == Stage::Failed);
        Ok(failed.map(|fate| {
            let reason = fate.reason.map(|reason| reason.text()).unwrap_or_default();
            End::NotDelivered(reason)
        }))
    }

    async fn heard(&mut self, message: Message) -> Result<Option<End>, No> {
        let (caller, run) = (self.caller, self.run);
        if message.said.agent == run.speaker.agent {
            let of_run = message.said.reply_to.as_deref().and_then(MessageId::from_uuid);
            let kind = metadata(&message)["kind"].as_str().map(str::to_owned);
            return Ok(match kind.as_deref() {
                Some("cancel") if of_run == Some(run.id) => Some(End::Cancelled),
                Some("timeout") if of_run == Some(run.id) => Some(End::TimedOut),
                Some(_) | None => None,
            });
        }
        // The operator may not want that it is handed over.
        let facts = caller.read_as(&run.speaker.agent, Look(run.room)).await?;
        if facts.withheld(&message.said.agent).is_some() {
            return Ok(None);
        }
        if message.speech == Speech::Thinking {
            if self.began && run.asked.agent() == Some(&message.said.agent) {
                tell(caller, run, "thinking", &json!({"content": message.said.content}), None);
            }
            return Ok(None);
        }
        let is_answer = run.asked.may_answer(&message.said.agent)
            && run.asked.answered_by(&message) == Some(run.id);
        if !is_answer {
            return Ok(None);
        }
        let failure = metadata(&message)["error"].as_str().map(str::to_owned);
        Ok(Some(match failure {
            Some(text) => End::Failed(text),
            None => End::Reply(Box::new(message)),
        }))
    }

    /// Its time is over, which its room is told: so other nodes know it, too.
    async fn time_out(&self) -> Result<End, No> {
        note(self.caller, self.run, "timeout").await?;
        Ok(End::TimedOut)
    }

    fn begins(&mut self) {
        self.began = true;
        let message: String = self.run.text.chars().take(STARTED_CHARS).collect();
        tell(self.caller, self.run, "run.started", &json!({"message": message}), Some(json!({})));
        for event in self.streamed.take_kept() {
            self.tell(event);
        }
    }

    /// The client is answered now, and hears the rest as events.
    fn still_running(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        let mut result = result_of(self.run, self.run.id, "");
        result["status"] = json!("running");
        result["usage"] = usage_of(&Value::Null);
        answer.send(Ok(result));
        self.begins();
    }

    fn end(mut self, how: How, end: End) {
        let answer = self.answer.take();
        // Of a stream the events come first, and else the answer.
        let (first, last) = if how.stream { (None, answer) } else { (answer, None) };
        let was_answered = first.is_none() && last.is_none();
        let send = |answer: Option<Answer>, outcome: Result<Value, No>| {
            if let Some(answer) = answer {
                answer.send(outcome);
            }
        };
        let (outcome, events) = self.outcome(how, end, was_answered);
        send(first, outcome.clone());
        if !self.began {
            self.begins();
        }
        for event in events {
            self.tell(event);
        }
        send(last, outcome);
    }

    /// What the client is answered, and the events of the end: each with the payload that it has under its own name, if it has
    /// one.
    fn outcome(
        &self,
        how: How,
        end: End,
        was_answered: bool,
    ) -> (Result<Value, No>, Vec<RunEvent>) {
        let run = self.run;
        let failed = |no: No| {
            let flat = was_answered.then(|| json!({"content": "", "error": no.message}));
            let event = ("run.failed", json!({"error": no.message}), flat);
            (Err(no), vec![event])
        };
        match end {
            End::Reply(reply) => {
                let metadata = metadata(&reply);
                let content = reply.said.content.clone();
                let mut result = result_of(run, reply.message, &content);
                result["status"] = json!("completed");
                let mut inner = json!({"content": content, "usage": usage_of(&metadata)});
                for name in ["thinking", "media"] {
                    if !metadata[name].is_null() {
                        inner[name] = metadata[name].clone();
                        result[name] = metadata[name].clone();
                    }
                }
                result["usage"] = usage_of(&metadata);
                let chunk = if how.stream { self.streamed.rest(&content) } else { Some(&*content) };
                let chunk = chunk.map(|text| json!({"content": text}));
                let mut events: Vec<RunEvent> =
                    chunk.into_iter().map(|chunk| ("chunk", chunk.clone(), Some(chunk))).collect();
                events.push(("run.completed", inner.clone(), Some(inner)));
                (Ok(result), events)
            }
            End::Failed(text) => failed(No::new(Code::Internal, text)),
            End::NotDelivered(reason) => {
                failed(No::unavailable(format!("the agent was not given it: {reason}")))
            }
            End::TimedOut => {
                let secs = self.caller.shared.settings().run_limit.as_secs();
                failed(No::new(Code::AgentTimeout, format!("no answer within {secs} s")))
            }
            End::Lost(no) => failed(no),
            End::Cancelled => {
                let result = json!({
                    "cancelled": true, "aborted": true,
                    "runId": run.id.to_uuid(), "sessionKey": run.session,
                });
                let reason = json!({"reason": "cancelled"});
                let flat = was_answered.then(|| json!({"content": "", "error": "cancelled"}));
                (Ok(result), vec![("run.cancelled", reason, flat)])
            }
        }
    }
}

/// Messages that are read at once.
const PAGE: u64 = 64;

/// Writes into the room of a run that it is over.
pub(crate) async fn note(caller: &Caller, run: &Run, kind: &'static str) -> Result<(), No> {
    let metadata = json!({
        "kind": kind, "expects_reply": false, "session": run.session, "from": run.speaker.user,
    });
    let say = Say {
        reply_to: Some(run.id.to_uuid()),
        metadata: Some(metadata.to_string()),
        expects_reply: Some(false),
        ..Say::chat(run.room, kind.to_owned())
    };
    caller.act(&run.speaker, say).await.map(drop)
}

fn result_of(run: &Run, message: MessageId, content: &str) -> Value {
    json!({
        "runId": run.id.to_uuid(),
        "sessionKey": run.session,
        "message_id": message.to_uuid(),
        "role": "assistant",
        "content": content,
    })
}

/// Tokens, as the agent has reported them.
fn usage_of(metadata: &Value) -> Value {
    let reported = usage(metadata);
    let (input, output) = reported.unwrap_or_default();
    let mut shown = json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input.saturating_add(output),
        "input_tokens": input,
        "output_tokens": output,
    });
    if reported.is_none() {
        shown["reported"] = json!(false);
    }
    shown
}

/// Tells the clients of a run of an event. `flat`: its payload under its own name, if it has one.
fn tell(caller: &Caller, run: &Run, kind: &str, inner: &Value, flat: Option<Value>) {
    let ids = json!({
        "runId": run.id.to_uuid(), "agentId": run.asked.agent().map_or("", |agent| &**agent),
        "sessionKey": run.session,
    });
    let with_ids = |payload: &Value| {
        let parts = [payload, &ids].into_iter().filter_map(Value::as_object).flatten();
        Value::Object(
            parts.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>(),
        )
    };
    let flat = flat.map(|flat| with_ids(&flat));
    let mut envelope = with_ids(&json!({
        "type": kind, "channel": "ws", "userId": run.speaker.user,
    }));
    envelope["payload"] = inner.clone();
    for client in caller.shared.clients() {
        if !client.caller.sees(&run.speaker, run.key) {
            continue;
        }
        let shape = client.caller.shape();
        if let Some(flat) = flat.as_ref().filter(|_| matches!(shape, Events::Flat | Events::Both)) {
            client.line.event(kind_of_flat(kind), flat);
        }
        if matches!(shape, Events::Envelope | Events::Both) {
            client.line.event("agent", &envelope);
        }
    }
}

/// The name of an event that stands by itself: runs end there in one way.
fn kind_of_flat(kind: &str) -> &str {
    match kind {
        "run.failed" | "run.cancelled" => "run.completed",
        other => other,
    }
}

/// The runs of a session that are open, as its room has them: at which node they were begun does not matter.
pub(crate) fn open_in(
    messages: &[(&Message, &str)],
    by: &AgentId,
    since_ms: u64,
) -> Vec<MessageId> {
    // Each with those that were asked: nobody by name is anybody.
    let mut open: Vec<(MessageId, &[AgentId])> = Vec::new();
    for (message, _) in messages {
        let told = metadata(message);
        let kind = told["kind"].as_str();
        if message.said.agent == *by {
            let is_request = kind == Some("request") && message.wall_ms >= since_ms;
            let has_failed = message.fate.as_ref().is_some_and(|fate| fate.stage == Stage::Failed);
            if is_request && !has_failed {
                open.push((message.message, &message.said.mentions));
            }
            if matches!(kind, Some("cancel" | "timeout")) {
                let over = message.said.reply_to.as_deref().and_then(MessageId::from_uuid);
                open.retain(|(run, _)| Some(*run) != over);
            }
        } else {
            let (over, author) = (answered(message), &message.said.agent);
            let is_answer = |asked: &[AgentId]| asked.is_empty() || asked.contains(author);
            open.retain(|(run, asked)| Some(*run) != over || !is_answer(asked));
        }
    }
    open.into_iter().map(|(run, _)| run).collect()
}
