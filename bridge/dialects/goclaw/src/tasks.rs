//! Tasks of teams: those of their rooms.

mod changing;
mod news;
mod rows;

use bridge::seam::call::{ListTasks, ReadTask};
use mesh::{
    api::agenda::{TaskRecord, TaskView},
    name::id::{MessageId, RoomId},
    wire::tasks::TaskStatus,
};
use serde_json::{Value, json};

pub(crate) use changing::{approve, assign, comment, create, delete, delete_some, reject, update};
pub(crate) use news::listen;
pub(crate) use rows::plain;
use rows::{comment_row, event_rows, status_of, task_row};

use crate::{
    caller::Caller,
    limits::TEAMS_LOOKED_AT_MAX,
    outcome::{No, Outcome},
    params::{Params, SESSION, TASK, TEAM},
};

const CHANNEL: &[&str] = &["channel"];
const CHAT: &[&str] = &["chatId", "chat_id"];

/// Names that other versions have for a state.
const ALIASES: [(&str, &str); 4] = [
    ("open", "active"),
    ("assigned", "in_progress"),
    ("approved", "completed"),
    ("rejected", "cancelled"),
];
const STATES: [&str; 9] = [
    "all",
    "active",
    "pending",
    "in_progress",
    "blocked",
    "in_review",
    "completed",
    "cancelled",
    "failed",
];

pub(crate) async fn tasks_of(caller: &Caller, room: RoomId) -> Result<Vec<TaskView>, No> {
    caller.read(ListTasks { room, status: None }).await
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let limit = params.limit(200, 1_000)?;
    let wanted = params.filled(&["status"])?.unwrap_or_else(|| "all".to_owned());
    let alias = ALIASES.iter().find(|(name, _)| *name == wanted).map(|(_, of)| *of);
    let wanted = alias.map_or(wanted, str::to_owned);
    if !STATES.contains(&&*wanted) {
        return Err(No::invalid(format!("status must be one of {}", STATES.join(", "))));
    }
    let (channel, chat) = (params.filled(CHANNEL)?, params.filled(CHAT)?);
    let room = caller.team(params, TEAM).await?;
    let tasks = tasks_of(caller, room.room).await?;
    let is_wanted = |task: &&TaskView| match &*wanted {
        "all" => true,
        "active" => !task.status.is_terminal(),
        state => status_of(task) == state,
    };
    let came = |task: &&TaskView| {
        let origin = task.facts.origin.as_ref();
        let is = |wanted: &Option<String>, given: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == given
        };
        is(&channel, origin.and_then(|of| of.channel.as_ref()))
            && is(&chat, origin.and_then(|of| of.chat.as_ref()))
    };
    let shown = tasks.iter().rev().filter(is_wanted).filter(came);
    let taken = usize::try_from(limit).unwrap_or(usize::MAX);
    let rows: Vec<Value> = shown.take(taken).map(task_row).collect();
    Ok(json!({"count": rows.len(), "tasks": rows}))
}

/// A task of a team, by its id, with all that is remembered of it.
async fn record(caller: &Caller, room: RoomId, params: &Params) -> Result<TaskRecord, No> {
    let named = params.required(TASK)?;
    let missing = || No::not_found(format!("task not found: {named}"));
    let task = MessageId::from_uuid(&named).ok_or_else(missing)?;
    match caller.read(ReadTask { room, task }).await {
        Ok(record) => Ok(*record),
        Err(no) if no.code == crate::outcome::Code::NotFound => Err(missing()),
        Err(no) => Err(no),
    }
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let record = record(caller, room.room, params).await?;
    Ok(json!({
        "task": task_row(&record.view), "id": record.view.task.to_uuid(),
        "comments": comments_of(&record), "events": event_rows(&record), "attachments": [],
    }))
}

/// The task alone.
pub(crate) async fn get_light(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let record = record(caller, room.room, params).await?;
    Ok(json!({"task": task_row(&record.view)}))
}

fn comments_of(record: &TaskRecord) -> Vec<Value> {
    record.comments.iter().map(|comment| comment_row(record.view.task, comment)).collect()
}

pub(crate) async fn comments(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let record = record(caller, room.room, params).await?;
    Ok(json!({"comments": comments_of(&record)}))
}

pub(crate) async fn events(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let record = record(caller, room.room, params).await?;
    Ok(json!({"events": event_rows(&record)}))
}

/// Those that came from a session and have not ended: of the team that is named, or of all.
pub(crate) async fn active_by_session(caller: &Caller, params: &Params) -> Outcome {
    let session = params.required(SESSION)?;
    let rooms = match params.get(TEAM) {
        Some(_) => vec![caller.team(params, TEAM).await?],
        None => caller.teams().await?,
    };
    let mut rows = Vec::new();
    for room in rooms.iter().take(TEAMS_LOOKED_AT_MAX) {
        let tasks = tasks_of(caller, room.room).await?;
        let is_of = |task: &&TaskView| {
            let origin = task.facts.origin.as_ref();
            origin.and_then(|origin| origin.chat.as_ref()) == Some(&session)
                && !task.status.is_terminal()
        };
        rows.extend(tasks.iter().filter(is_of).map(task_row));
    }
    Ok(json!({"tasks": rows}))
}

/// Where the tasks of a team came from.
pub(crate) async fn scopes(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let tasks = tasks_of(caller, room.room).await?;
    let mut scopes: Vec<(String, String)> = tasks
        .iter()
        .filter_map(|task| task.facts.origin.as_ref())
        .filter(|origin| origin.channel.is_some() || origin.chat.is_some())
        .map(|origin| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            (text(&origin.channel), text(&origin.chat))
        })
        .collect();
    scopes.sort();
    scopes.dedup();
    let row = |(channel, chat): (String, String)| json!({"channel": channel, "chat_id": chat});
    Ok(json!({"scopes": scopes.into_iter().map(row).collect::<Vec<Value>>()}))
}

/// The state of this name.
fn status_named(name: &str) -> Option<TaskStatus> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, of)| of);
    TaskStatus::named(alias)
}
