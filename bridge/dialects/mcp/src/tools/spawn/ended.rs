//! The end of a task, as the agent that gave it reads it.

use bridge::seam::{call::ListTasks, event::Message};
use mesh::{
    api::{agenda::TaskView, command::RoomView},
    wire::acts::TaskStatus,
};
use serde_json::{Value, json};

use super::super::send;
use crate::{asking::Asking, outcome::No};

/// The text of a task that nobody has begun.
const UNTAKEN: &str = "no worker took the task";

/// What an item says of a task beside its text: of a result, or of the message that gave the task, which stands for its end
/// without one.
pub(in crate::tools) async fn describe(
    asking: &Asking,
    room: &RoomView,
    message: &Message,
) -> Result<Value, No> {
    let tasks = asking.read(ListTasks { room: room.room, status: None }).await?;
    let task = tasks.first();
    let is_notice = message.said.agent == asking.agent;
    let ran_out = task.is_some_and(|task| task.marks.ran_out);
    let failure = send::failure(message);
    let status = match (is_notice, ran_out) {
        (true, true) => "timeout",
        (true, false) => "error",
        (false, _) if failure.is_some() => "error",
        (false, _) => "ok",
    };
    let notes = if is_notice && !ran_out { Some(UNTAKEN.to_owned()) } else { failure };
    let answered = message.said.conversation.and_then(|place| place.answers);
    let run = if is_notice { Some(message.message) } else { answered };
    let chosen = task.and_then(|task| task.marks.terms.as_ref()?.chosen.as_ref());
    let first = chosen.and_then(|chosen| chosen.first);
    let key = match first {
        Some(first) => asking.names().of_task(first.room),
        None => asking.names().key(room),
    };
    let worker = if is_notice {
        task.and_then(|task| task.assignee.clone())
    } else {
        Some(message.said.agent.clone())
    };
    let mut ended = json!({
        "status": status,
        "childSessionKey": key,
        "runId": first.map(|first| first.run).or(run).map(|run| run.to_uuid()),
        "worker": worker,
    });
    if let Some(notes) = notes {
        ended["notes"] = json!(notes);
    }
    if ran_out && !is_notice {
        ended["late"] = json!(true);
    }
    if let Some(task) = task {
        ended["label"] = json!(task.title);
        ended["taskId"] = json!(task.task.to_uuid());
        let at_ms = if is_notice { task.updated_ms } else { Some(message.wall_ms) };
        let took_ms = at_ms.unwrap_or(task.created_ms).saturating_sub(task.created_ms);
        ended["runtimeMs"] = json!(took_ms);
    }
    Ok(ended)
}

/// The same of a task that its worker was not given: the message that gave it has failed.
pub(in crate::tools) async fn undelivered(
    asking: &Asking,
    room: &RoomView,
    message: &Message,
) -> Result<Value, No> {
    let mut ended = describe(asking, room, message).await?;
    let reason = message.fate.as_ref().and_then(|fate| fate.reason.as_ref());
    let reason =
        reason.map_or_else(|| "nobody says why".to_owned(), |reason| reason.text().to_string());
    ended["status"] = json!("error");
    ended["notes"] = json!(format!("not delivered: {reason}"));
    Ok(ended)
}

/// A row of the message that gave a task, as the notice that it has ended without a result.
pub(in crate::tools) fn as_notice(row: &mut Value, ended: &Value) {
    let text = match ended["status"].as_str() {
        Some("timeout") => "the time for the task was up before there was a result",
        Some(_) | None => ended["notes"].as_str().unwrap_or(UNTAKEN),
    };
    row["content"] = json!(text);
    row["role"] = json!("user");
    if let Some(row) = row.as_object_mut() {
        for name in ["from", "provenance", "metadata", "expectsReply", "truncated"] {
            row.remove(name);
        }
    }
}

/// How far a task is, in a list of sessions.
pub(in crate::tools) fn status_of(task: &TaskView) -> &'static str {
    match task.status {
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::InReview => "running",
        TaskStatus::Completed | TaskStatus::Cancelled => "done",
        TaskStatus::Blocked if task.marks.ran_out => "timeout",
        TaskStatus::Blocked | TaskStatus::Failed => "failed",
    }
}
