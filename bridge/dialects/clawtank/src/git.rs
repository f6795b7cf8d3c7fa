//! Git: what agents and people say of repositories. Each is a message of its room, which agents of all dialects read; this one
//! tells of it in its own types. The node has no repository: it believes what it is told.

mod conflicts;
mod record;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use bridge::seam::{
    call::{ChangeTask, From, History, ListTasks, Look, MayBe, Say},
    event::Message,
};
use bytes::Bytes;
use mesh::{
    api::{
        agenda::{TaskUpdate, TaskView},
        command::{SaidOk, Speech},
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::{CommentKind, TaskStatus},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    chat,
    connect::{Kind as Client, Right},
    envelope::{Request, Told},
    fields::At,
    limits::{
        GIT_PER_MINUTE, GIT_ROOMS_MAX, GIT_ROWS_MAX, PAGE_MAX, REPLAYED_MAX, ROOM_CHAT_PER_MINUTE,
        WARNED_COMMITS_MAX,
    },
    names,
    newest::Newest,
    problem::Problem,
    rooms,
    said::Saying,
    shared::{Done, Place, Rate},
    state::Context,
    style::Style,
    tasks,
};
use conflicts::{Commits, Seen, Warning};
use record::{Kind, Record, repository};

/// Whether a type is one of these.
pub(crate) fn is_git(kind: &str) -> bool {
    Kind::named(kind).is_some()
}

/// Whether the metadata of a message may say that it is a commit: it is read where that counts.
pub(crate) fn may_be_commit(metadata: Option<&str>) -> bool {
    metadata.is_some_and(|json| json.contains(Kind::Commit.name()))
}

/// A message as an event of a repository, if it is one.
pub(crate) fn told(saying: &Saying<'_>, style: Style) -> Option<Told> {
    if saying.private || saying.speech != Speech::Chat {
        return None;
    }
    let record = Record::kept(saying.metadata, saying.agent, Some(style.form))?;
    let kind = record.kind.name();
    let id = names::event_id(&[kind.as_bytes(), &saying.message.0]);
    let told = Told::of(id, kind, saying.wall_ms, record.data)
        .with("room_id", style.room(saying.room))
        .with("message_id", style.message(saying.message))
        .with("reported_by", style.user(saying.agent, Some(saying.name)));
    Some(told)
}

/// The commits of rooms, those that were asked for last.
pub(crate) struct Watch(Mutex<Newest<RoomId, Arc<tokio::sync::Mutex<Read>>>>);

/// The log of a room, as far as it was read.
struct Read {
    commits: Commits,
    upto: Option<u64>,
    /// What commits were warned of, those that were read last.
    warnings: Newest<MessageId, Vec<Warning>>,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch(Mutex::new(Newest::new(GIT_ROOMS_MAX)))
    }

    fn of(&self, room: RoomId) -> Arc<tokio::sync::Mutex<Read>> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Read {
            commits: Commits::new(room),
            upto: None,
            warnings: Newest::new(WARNED_COMMITS_MAX),
        };
        rooms.at(&room, || Arc::new(tokio::sync::Mutex::new(new()))).clone()
    }
}

impl Read {
    /// Reads on, up to the newest message.
    async fn go_on(&mut self, cx: &Context, room: RoomId) -> Result<(), Problem> {
        let mut finished: Option<HashSet<MessageId>> = None;
        loop {
            let from = self.upto.map_or(From::Newest, From::Number);
            let page = History { room, from, limit: GIT_ROWS_MAX, before_ms: None };
            let page = cx.read(page).await?;
            let Some(last) = page.messages.last() else { return Ok(()) };
            let is_last = self.upto.is_none();
            self.upto = Some(last.number.0);
            for message in &page.messages {
                let said = &message.said;
                let record = Record::kept(said.metadata.as_deref(), &said.agent, None);
                let Some(record) = record.filter(|_| message.speech == Speech::Chat) else {
                    continue;
                };
                if finished.is_none() {
                    finished = Some(over(cx, room).await?);
                }
                let seen = Seen {
                    message: message.message,
                    at_ms: message.wall_ms,
                    by: &said.agent,
                    record: &record,
                };
                let warnings = self.commits.take(&seen, finished.get_or_insert_default());
                if record.kind == Kind::Commit {
                    self.warnings.put(&message.message, warnings);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The tasks of a room that are over, by all their ids.
async fn over(cx: &Context, room: RoomId) -> Result<HashSet<MessageId>, Problem> {
    let tasks: Vec<TaskView> = cx.read(ListTasks { room, status: None }).await?;
    let over = tasks.iter().filter(|task| task.status.is_terminal());
    Ok(over.flat_map(|task| [Some(task.task), task.facts.alias]).flatten().collect())
}

/// Conflicts that a commit has brought up.
pub(crate) async fn warnings(cx: &Context, room: RoomId, commit: MessageId) -> Vec<Told> {
    let read = cx.shared.git.of(room);
    let mut read = read.lock().await;
    if read.warnings.get(&commit).is_none()
        && let Err(problem) = read.go_on(cx, room).await
    {
        tracing::debug!(why = %problem.message, "the commits of a room cannot be read");
    }
    let found = read.warnings.get(&commit).map_or(&[][..], Vec::as_slice);
    found.iter().map(|warning| warning.told(cx.style(), room)).collect()
}

/// Says what happened in a repository, and tells the client as everybody.
pub(crate) async fn report(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let unknown = || Problem::field("type", "unknown type");
    let kind = Kind::named(&request.kind).ok_or_else(unknown)?;
    let agent = cx.agent()?.clone();
    cx.member.rights.may(Right::Git, false)?;
    let mut record = Record::of(kind, &request.data())?;
    let room = rooms::meant(cx, request).await?;
    takes(cx, room).await?;
    is_own(cx, &mut record, &request.data()).await?;
    // It says how many files there were, of however many the names are kept.
    let line = record.line();
    let record = record.fitting()?;
    cx.shared.take(&agent, Rate::per_minute("git records", GIT_PER_MINUTE))?;
    cx.shared.take_in(room, Rate::per_minute("chat messages in the room", ROOM_CHAT_PER_MINUTE))?;
    if kind == Kind::Commit
        && let Some(message) = known(cx, room, &record).await?
    {
        note(cx, &agent, request, Place { room, message });
        return chat::again(cx, room, message, request).await.map(|frame| vec![frame]);
    }
    let frames = say(cx, (room, line), &record, request).await?;
    follow(cx, room, &record).await?;
    Ok(frames)
}

/// Whether records may be said in a room.
async fn takes(cx: &Context, room: RoomId) -> Result<(), Problem> {
    let facts = cx.ask(Look(room)).await?;
    if facts.encrypted {
        return Err(Problem::field("metadata.room_id", "encrypted room"));
    }
    if facts.access.sides.is_some() {
        return Err(Problem::field("metadata.room_id", "a room of two alone"));
    }
    let set = rooms::set(cx, room).await?;
    rooms::takes(&set)?;
    if set.takes_git() {
        return Ok(());
    }
    let text = "the hosts of the room have switched git_integration_enabled off";
    Err(Problem::conflict(text, "git_off"))
}

/// Agents say what they have done themselves; people may say it for agents of their key.
async fn is_own(cx: &Context, record: &mut Record, data: &At<'_>) -> Result<(), Problem> {
    let agent = cx.agent()?.clone();
    match record.kind {
        Kind::Commit | Kind::Opened => {}
        // There another one's work was looked at.
        Kind::Reviewed | Kind::Merged => return Ok(()),
    }
    for place in ["context", "author"] {
        let at = data.get(place).get("agent_id");
        let Some(named) = at.text(128)?.filter(|named| **named != *agent) else { continue };
        let denied = || {
            let text = "the agent is not this connection's, nor one of its key";
            Problem::denied(text).because("agent_id").at(at.path())
        };
        match cx.member.kind {
            Client::Agent => return Err(denied()),
            Client::Human => {
                let named: AgentId = named.into();
                cx.read(MayBe(named)).await.map_err(|_| denied())?;
            }
        }
    }
    if cx.member.kind == Client::Agent {
        record.is_by(&agent);
    }
    Ok(())
}

/// The message of a commit that was said here before, by whomever.
async fn known(cx: &Context, room: RoomId, record: &Record) -> Result<Option<MessageId>, Problem> {
    let read = cx.shared.git.of(room);
    let mut read = read.lock().await;
    read.go_on(cx, room).await?;
    Ok(read.commits.message(record))
}

fn note(cx: &Context, agent: &AgentId, request: &Request, at: Place) {
    if let Some(id) = &request.related.id {
        cx.shared.done(agent, id, Done::Message(at.room, at.message));
    }
}

async fn say(
    cx: &Context,
    (room, line): (RoomId, String),
    record: &Record,
    request: &Request,
) -> Result<Vec<Bytes>, Problem> {
    let agent = cx.agent()?.clone();
    let metadata = record.metadata();
    let say = Say {
        metadata: Some(metadata.clone()),
        dedup: match record.kind {
            Kind::Commit => Some(repeat_id(record)),
            Kind::Opened | Kind::Reviewed | Kind::Merged => request.related.id.clone(),
        },
        ..Say::chat(room, line.clone())
    };
    let SaidOk { message, fresh, .. } = cx.ask(say).await?;
    note(cx, &agent, request, Place { room, message });
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
        mentions: &[],
        metadata: Some(&metadata),
        key: Some(cx.member.holder.key()),
        private: false,
    };
    let told = saying.told(cx.style()).answering(&request.related);
    let mut frames = vec![cx.frame(told)];
    if record.kind == Kind::Commit {
        let warnings = warnings(cx, room, message).await;
        frames.extend(warnings.into_iter().map(|told| cx.frame(told)));
    }
    Ok(frames)
}

/// The same commit at several nodes at once is one message, of the same agent.
fn repeat_id(record: &Record) -> String {
    let url = repository(record.text("/repository/url"));
    let digest = Sha256::new()
        .chain_update(b"clawmesh git commit\0")
        .chain_update(url)
        .chain_update(b"\0")
        .chain_update(record.text("/commit_info/sha"))
        .finalize();
    let id = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("git-{}", id.collect::<String>())
}

/// What becomes of the task of a request to merge.
async fn follow(cx: &Context, room: RoomId, record: &Record) -> Result<(), Problem> {
    let Some(id) = record.task() else { return Ok(()) };
    let state = record.text("/review/state");
    let confirms = record.data.pointer("/context/completion_confirmed") == Some(&json!(true));
    let status = match record.kind {
        Kind::Reviewed if state == "changes_requested" => TaskStatus::InProgress,
        Kind::Merged if confirms => TaskStatus::Completed,
        Kind::Commit | Kind::Opened | Kind::Reviewed | Kind::Merged => return Ok(()),
    };
    let Some(task) = tasks::in_room(cx, room, id).await? else { return Ok(()) };
    if !may_follow(cx, &task, record, status).await? {
        return Ok(());
    }
    let update = TaskUpdate {
        status: Some(status),
        by_steps: true,
        if_assignee: Some(task.assignee.clone()),
        note: Some(record.line()),
        kind: CommentKind::Status,
        ..TaskUpdate::of(task.task)
    };
    // All are told of it by the event of the change, the client as well.
    if let Err(refusal) = cx.ask(ChangeTask(update)).await {
        tracing::debug!(why = %refusal.message, "the task of a request to merge stays as it is");
    }
    Ok(())
}

/// Whether the one who reports may have the task changed so. Nobody looks at what is his own.
async fn may_follow(
    cx: &Context,
    task: &TaskView,
    record: &Record,
    status: TaskStatus,
) -> Result<bool, Problem> {
    let own = task.assignee.as_ref() == Some(cx.agent()?);
    let reviews = || cx.member.rights.may(Right::Approve, false).is_ok();
    if status == TaskStatus::InProgress {
        return Ok(task.status == TaskStatus::InReview && !own && reviews());
    }
    let held = task.assignee.as_deref().is_some_and(|holder| record.agent() == Some(holder));
    if !held || task.status.is_terminal() {
        return Ok(false);
    }
    if !own {
        return Ok(reviews());
    }
    let set = rooms::set(cx, task.room).await?;
    let looked_at = task.facts.requires_approval || set.requires_approval();
    Ok(!looked_at && task.status != TaskStatus::InReview)
}

/// The page of a room's records: of the newest messages before a time, the oldest first.
pub(crate) async fn page(cx: &Context, room: RoomId, wish: &At<'_>) -> Result<Value, Problem> {
    let limit = wish.get("limit").whole(PAGE_MAX)?.unwrap_or(REPLAYED_MAX).max(1);
    let before_ms = wish.get("before").time()?;
    let page = History { room, from: From::Newest, limit: GIT_ROWS_MAX, before_ms };
    let page = cx.read(page).await?;
    let (style, direct) = (cx.style(), cx.shared.desk.is_direct(room));
    let frame = |message: &Message| {
        let saying = Saying::of(message, direct);
        if !cx.member.shows_key && saying.is_for_members() {
            return None;
        }
        let told = told(&saying, style)?;
        let mut frame: Value = serde_json::from_slice(&told.frame(style.form)).ok()?;
        style.eyes.reads_record(&mut frame["data"]);
        Some(frame)
    };
    let mut all: Vec<Value> = page.messages.iter().filter_map(frame).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = all.len() > limit || page.messages.len() as u64 >= GIT_ROWS_MAX;
    all.drain(..all.len().saturating_sub(limit));
    Ok(json!({"git": all, "more": more}))
}
