//! A run: words to an agent as the job's owner, its answer, and where that is said.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use mesh::{
    api::{
        command::{Refused, ScheduleAct, Speech},
        delivery::Stage,
    },
    name::{
        id::{AgentId, JobId, KeyPrint, MessageId, NodeId, RoomId},
        number::Number,
    },
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    Asked,
    book::{Open, millis},
    job::{Job, Run, Status, Target, cut},
    keeper, now_ms,
};
use crate::{
    limits::{RUN_LOOKED_AT_MAX, SCHEDULER_STAYS},
    read::{Desk, Visitor},
    seam::{
        call::{
            self, Attach, History, Identity, Look, OneMessage, OpenDirect, PostNotice, Say,
            StandOutside,
        },
        event::Message,
        refusal::{Refusal, WebhookRule},
    },
    secret::Secret,
};

/// How often it is looked whether a run is over, if nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Messages that are read at once.
const PAGE: u64 = 64;
/// A run that could not be noted is noted after these pauses, or never.
const NOTE_AGAIN: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// A job that is fired.
pub(super) struct Firing {
    pub(super) key: Secret,
    pub(super) print: KeyPrint,
    /// Of the schedule.
    pub(super) room: RoomId,
    pub(super) job: Job,
    /// Runs of it that were open.
    pub(super) open: Vec<((NodeId, u16), Open)>,
}

/// The end of a run.
struct End {
    status: Status,
    error: Option<String>,
    summary: Option<String>,
    tokens: Option<(u64, u64)>,
}

impl End {
    fn of(status: Status, error: Option<String>) -> End {
        End { status, error, summary: None, tokens: None }
    }

    fn failed(why: impl Into<String>) -> End {
        End::of(Status::Failed, Some(why.into()))
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> End {
        End::failed(text_of(&refusal))
    }
}

/// For people.
fn text_of(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Mesh(refused) => refused.to_string(),
        Refusal::Full { text, .. } => text.clone(),
        Refusal::Denied(denied) => denied.to_string(),
        Refusal::TooFast { per_minute } => {
            format!("over {per_minute} messages a minute for this key")
        }
        Refusal::TooManyReplays { per_minute } => {
            format!("over {per_minute} replays a minute for this key")
        }
        Refusal::ContentTooLarge { max } => format!("the message has more than {max} bytes"),
        Refusal::NoAgent => "agent not found".to_owned(),
        Refusal::ReadsOnly => "this key may only read".to_owned(),
        Refusal::Overloaded => "the node was overloaded".to_owned(),
        Refusal::Unknown => "the node was stopping".to_owned(),
        Refusal::Unreadable(_) => "the node could not read its store".to_owned(),
        Refusal::NotAttached | Refusal::AttachedAlready => {
            "another connection had the place of the job's user".to_owned()
        }
        Refusal::Field(broken) => format!("{:?} {}", broken.field, broken.rule),
        Refusal::MetadataTooLarge => "the message and what goes with it are too large".to_owned(),
        Refusal::Webhook(_, WebhookRule::Reachable(why)) => format!("the webhook: {why}"),
        Refusal::NoSubscription => {
            "the webhook is not at the node that fired, or was deleted".to_owned()
        }
        // Of calls that are not made here.
        Refusal::Webhook(_, WebhookRule::Text(_) | WebhookRule::Url(_))
        | Refusal::NotKept
        | Refusal::NotThere { .. }
        | Refusal::KeySubscriptionsFull { .. }
        | Refusal::SubscriptionsFull
        | Refusal::TooManyKeys { .. }
        | Refusal::NoSignup
        | Refusal::NotOperator => "the node refused it".to_owned(),
    }
}

/// Sees to a run that has just begun.
pub(super) fn begin(desk: &Desk, firing: Firing, run: Run) {
    let desk = desk.clone();
    drop(tokio::spawn(async move { see_to(&desk, firing, run, true).await }));
}

/// Goes on with a run of an earlier start. What it has said is not said again: it has the same id.
pub(super) fn resume(desk: &Desk, (print, room): (KeyPrint, RoomId), job: Job, run: Run) {
    let key = desk.schedules().lock().books.get(&print).map(|book| book.key.clone());
    let Some(key) = key else { return };
    let (desk, firing) = (desk.clone(), Firing { key, print, room, job, open: Vec::new() });
    drop(tokio::spawn(async move { see_to(&desk, firing, run, false).await }));
}

/// Slots up to this one were missed.
pub(super) fn note_missed(desk: &Desk, at: (KeyPrint, JobId), slot: String) {
    let Some((firing, run)) = keeper::begin(desk, at, slot, true) else { return };
    let why = "no node of the key was there in time";
    let desk = desk.clone();
    drop(tokio::spawn(async move {
        let run = Run { status: Status::Missed, error: Some(why.to_owned()), ..run };
        note(&desk, &firing, &run).await;
    }));
}

async fn see_to(desk: &Desk, firing: Firing, run: Run, is_new: bool) {
    let Ok(_place) = desk.schedules().running.clone().try_acquire_owned() else {
        let why = "this node waits for as many runs as it can";
        let run = Run { status: Status::Failed, error: Some(why.to_owned()), ..run };
        return note(desk, &firing, &run).await;
    };
    if is_new {
        if still_open(desk, &firing).await {
            let why = "the run before is still open";
            let run = Run { status: Status::Skipped, error: Some(why.to_owned()), ..run };
            return note(desk, &firing, &run).await;
        }
        note(desk, &firing, &run).await;
    }
    let began = Instant::now();
    let end = carry_out(desk, &firing, &run).await.unwrap_or_else(|end| end);
    let took_ms = if is_new { millis(began.elapsed()) } else { now_ms().saturating_sub(run.at_ms) };
    let End { status, error, summary, tokens } = end;
    let run = Run {
        status,
        error: error.map(|text| cut(&text)),
        summary: summary.map(|text| cut(&text)),
        took_ms: Some(took_ms),
        tokens,
        ..run
    };
    note(desk, &firing, &run).await;
    if firing.job.delete_after {
        let act = ScheduleAct::Remove(firing.job.id);
        if let Err(refusal) = keeper::note(desk, &firing.key, firing.room, act).await {
            tracing::debug!(job = %firing.job.id, ?refusal, "a job was not deleted after its run");
        }
    }
}

/// Writes down what became of a run. Clients hear of it when it is written.
async fn note(desk: &Desk, firing: &Firing, run: &Run) {
    let pauses = NOTE_AGAIN.into_iter().map(Some).chain([None]);
    for pause in pauses {
        let act = ScheduleAct::Ran(run.text());
        let Err(refusal) = keeper::note(desk, &firing.key, firing.room, act).await else { return };
        if refusal == Refusal::Mesh(Refused::NoKey) {
            return keeper::close(desk, firing.print).await;
        }
        match pause {
            Some(pause) => tokio::time::sleep(pause).await,
            None => tracing::warn!(
                event = "run_not_noted", job = %run.job, slot = run.slot, ?refusal,
                "what became of a run of a job could not be written down"
            ),
        }
    }
}

/// The job's owner, who acts.
async fn owner(desk: &Desk, firing: &Firing) -> Result<Visitor, Refusal> {
    let attach = Attach {
        key: firing.key.clone(),
        name: firing.job.user.clone(),
        identity: Identity::Named(firing.job.owner.to_string()),
        capabilities: Vec::new(),
        reconnect: false,
        linger: SCHEDULER_STAYS,
    };
    let hosted = desk.host(attach).await?;
    if hosted.came {
        desk.ask(&hosted.visitor, StandOutside).await?;
    }
    Ok(hosted.visitor)
}

async fn carry_out(desk: &Desk, firing: &Firing, run: &Run) -> Result<End, End> {
    let job = &firing.job;
    let Some(agent) = &job.agent else {
        deliver(desk, firing, run, &job.message).await?;
        return Ok(End::of(Status::Done, None));
    };
    let speaker = owner(desk, firing).await?;
    let room = desk.ask(&speaker, OpenDirect::with(agent.clone())).await?.room;
    let session = job.session(agent, &run.slot);
    let metadata = json!({
        "kind": "request", "expects_reply": true, "session": session, "from": job.user,
        "stream": false, "cron": {"job": job.id.to_string(), "slot": run.slot},
    });
    let say = Say {
        mentions: vec![agent.to_string()],
        metadata: Some(metadata.to_string()),
        dedup: Some(dedup(job, run, "")),
        expects_reply: Some(true),
        ..Say::chat(room, job.message.clone())
    };
    let said = desk.ask(&speaker, say).await?;
    // Nobody may hear it.
    drop(desk.schedules().asked.send(Arc::new(Asked {
        key: firing.key.clone(),
        job: job.clone(),
        agent: agent.clone(),
        session: session.clone(),
        room,
        request: (said.message, said.number),
    })));
    let waited = Waited { room, request: said.message, agent, owner: &job.owner };
    let limit = Instant::now() + desk.config().run_limit.saturating_sub(since(run.at_ms));
    let end = waited.until_end(desk, firing, (said.number, limit)).await?;
    let reply = match end {
        Heard::Reply(reply) => reply,
        Heard::Ended(end) => return Ok(end),
        Heard::TimedOut => {
            let secs = desk.config().run_limit.as_secs();
            let words = json!({
                "kind": "timeout", "expects_reply": false, "session": session, "from": job.user,
            });
            let say = Say {
                reply_to: Some(said.message.to_uuid()),
                metadata: Some(words.to_string()),
                expects_reply: Some(false),
                ..Say::chat(room, "timeout".to_owned())
            };
            let speaker = owner(desk, firing).await?;
            desk.ask(&speaker, say).await?;
            return Ok(End::of(Status::TimedOut, Some(format!("no answer within {secs} s"))));
        }
    };
    let told = metadata_of(&reply);
    let end = End {
        status: Status::Done,
        error: None,
        summary: Some(reply.said.content.clone()),
        tokens: tokens(&told),
    };
    if let Some(error) = told["error"].as_str() {
        return Ok(End { status: Status::Failed, error: Some(error.to_owned()), ..end });
    }
    match deliver(desk, firing, run, &reply.said.content).await {
        Ok(()) => Ok(end),
        Err(refusal) => {
            let error = Some(format!("not delivered: {}", text_of(&refusal)));
            Ok(End { status: Status::Failed, error, ..end })
        }
    }
}

fn since(at_ms: u64) -> Duration {
    Duration::from_millis(now_ms().saturating_sub(at_ms))
}

/// The id of what is said for a slot: the same at each node, and after a crash.
fn dedup(job: &Job, run: &Run, what: &str) -> String {
    format!("cron {} {}{what}", job.id, run.slot)
}

/// Says the outcome where the job wants it.
async fn deliver(desk: &Desk, firing: &Firing, run: &Run, text: &str) -> Result<(), Refusal> {
    let job = &firing.job;
    let Some(deliver) = &job.deliver else { return Ok(()) };
    let speaker = owner(desk, firing).await?;
    let room = match &deliver.target {
        Target::Room(room) => *room,
        Target::Agent(agent) => desk.ask(&speaker, OpenDirect::with(agent.clone())).await?.room,
        Target::Webhook { id, .. } => {
            let body = json!({
                "type": "clawmesh.cron.delivered", "subscription_id": id, "job_id": job.id.to_string(),
                "job_name": job.name, "slot": run.slot, "agent_id": job.agent.as_deref(),
                "user_id": job.user, "to": deliver.to, "content": text, "timestamp": run.at_ms,
            });
            let notice = PostNotice {
                subscription: id.clone(),
                id: format!("{}_{}", job.id, run.slot),
                body: Bytes::from(body.to_string()),
            };
            return desk.ask(&speaker, notice).await;
        }
    };
    let metadata = json!({
        "kind": "notice", "expects_reply": false, "from": job.user,
        "cron": {"job": job.id.to_string(), "slot": run.slot},
    });
    let say = Say {
        metadata: Some(metadata.to_string()),
        dedup: Some(dedup(job, run, " delivered")),
        expects_reply: Some(false),
        ..Say::chat(room, text.to_owned())
    };
    desk.ask(&speaker, say).await.map(drop)
}

/// What is heard of a run.
enum Heard {
    Reply(Box<Message>),
    Ended(End),
    TimedOut,
}

/// A run that is waited for.
struct Waited<'r> {
    room: RoomId,
    request: MessageId,
    agent: &'r AgentId,
    owner: &'r AgentId,
}

impl Waited<'_> {
    async fn until_end(
        &self,
        desk: &Desk,
        firing: &Firing,
        (mut after, limit): (Number, Instant),
    ) -> Result<Heard, Refusal> {
        let reader = desk.holder(firing.key.clone()).await?.named(Some(self.owner.clone()));
        // Before the first look: what comes between the two is not missed.
        let mut watch = desk.watch(&reader, self.room)?;
        loop {
            if let Some(heard) = self.look(desk, &reader, &mut after).await? {
                return Ok(heard);
            }
            if Instant::now() >= limit {
                return Ok(Heard::TimedOut);
            }
            let until = limit.min(Instant::now() + LOOK_EVERY);
            timeout_at(until, watch.news()).await.ok();
            // A key that was revoked waits for nothing.
            desk.holder(firing.key.clone()).await?;
        }
    }

    async fn look(
        &self,
        desk: &Desk,
        reader: &Visitor,
        after: &mut Number,
    ) -> Result<Option<Heard>, Refusal> {
        let room = self.room;
        loop {
            let from = call::From::Number(after.0);
            let call = History { room, from, limit: PAGE, before_ms: None };
            let page = desk.ask(reader, call).await?.messages;
            let is_all = (page.len() as u64) < PAGE;
            for message in page {
                *after = message.number;
                if let Some(heard) = self.heard(desk, reader, message).await? {
                    return Ok(Some(heard));
                }
            }
            if is_all {
                break;
            }
        }
        let request = desk.ask(reader, OneMessage { room, message: self.request }).await?;
        let fate = request.and_then(|request| request.fate);
        let failed = fate.filter(|fate| fate.stage == Stage::Failed);
        Ok(failed.map(|fate| {
            let why = fate.reason.map(|reason| reason.text()).unwrap_or_default();
            Heard::Ended(End::failed(format!("the agent was not given it: {why}")))
        }))
    }

    async fn heard(
        &self,
        desk: &Desk,
        reader: &Visitor,
        message: Message,
    ) -> Result<Option<Heard>, Refusal> {
        if message.said.agent == *self.owner && *self.owner != *self.agent {
            let is_its = message.said.reply_to.as_deref() == Some(&*self.request.to_uuid());
            let kind = metadata_of(&message)["kind"].as_str().map(str::to_owned);
            return Ok(match kind.as_deref().filter(|_| is_its) {
                Some("cancel") => Some(Heard::Ended(End::failed("cancelled"))),
                Some("timeout") => Some(Heard::Ended(End::of(Status::TimedOut, None))),
                Some(_) | None => None,
            });
        }
        if message.speech == Speech::Thinking || !answers(&message, self.request) {
            return Ok(None);
        }
        // The operator may not want that it is handed over.
        let facts = desk.ask(reader, Look(self.room)).await?;
        let is_withheld = facts.withheld(&message.said.agent).is_some();
        Ok((!is_withheld).then(|| Heard::Reply(Box::new(message))))
    }
}

fn answers(message: &Message, request: MessageId) -> bool {
    message.said.conversation.and_then(|place| place.answers) == Some(request)
}

fn metadata_of(message: &Message) -> Value {
    let json = message.said.metadata.as_deref();
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Tokens as the agent has reported them, in and out.
fn tokens(metadata: &Value) -> Option<(u64, u64)> {
    let count = |names: [&str; 2]| names.iter().find_map(|name| metadata["usage"][*name].as_u64());
    let input = count(["prompt_tokens", "input_tokens"]);
    let output = count(["completion_tokens", "output_tokens"]);
    (input.is_some() || output.is_some()).then(|| (input.unwrap_or(0), output.unwrap_or(0)))
}

/// Whether a run before this one is still open. One of another node, which may have died, is if its request has no answer.
async fn still_open(desk: &Desk, firing: &Firing) -> bool {
    let me = desk.config().here.node;
    let limit_ms = millis(desk.config().run_limit);
    let may_be = |open: &&((NodeId, u16), Open)| open.1.at_ms.saturating_add(limit_ms) > now_ms();
    for ((node, _), open) in firing.open.iter().filter(may_be) {
        if *node == me || is_waiting(desk, firing, open).await.unwrap_or(false) {
            return true;
        }
    }
    false
}

async fn is_waiting(desk: &Desk, firing: &Firing, open: &Open) -> Result<bool, Refusal> {
    let Some(agent) = &firing.job.agent else { return Ok(false) };
    let speaker = owner(desk, firing).await?;
    let room = desk.ask(&speaker, OpenDirect::with(agent.clone())).await?.room;
    let call =
        History { room, from: call::From::Newest, limit: RUN_LOOKED_AT_MAX, before_ms: None };
    let messages = desk.ask(&speaker, call).await?.messages;
    let of_slot = json!({"job": firing.job.id.to_string(), "slot": open.slot});
    let request = messages.iter().find(|message| {
        let told = metadata_of(message);
        told["kind"] == "request" && told["cron"] == of_slot
    });
    let Some(request) = request.map(|request| request.message) else { return Ok(false) };
    Ok(!messages.iter().any(|message| answers(message, request)))
}
