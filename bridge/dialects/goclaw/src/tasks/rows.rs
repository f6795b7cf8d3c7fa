//! Tasks as clients read them.

use mesh::{
    api::agenda::{TaskComment, TaskField, TaskRecord, TaskView, TaskWrite},
    name::id::MessageId,
    wire::tasks::TaskStatus,
};
use serde_json::{Map, Value, json};

use crate::{
    names::{is_principal, user_of, uuid_of},
    times,
};

/// The state of a task, in this dialect's words: whoever holds it is at it.
pub(super) fn status_of(task: &TaskView) -> &'static str {
    let is_taken = task.status == TaskStatus::Pending && task.assignee.is_some();
    if is_taken { TaskStatus::InProgress.name() } else { task.status.name() }
}

pub(super) fn task_row(task: &TaskView) -> Value {
    let owner = task.assignee.as_deref().unwrap_or_default();
    let owner_uuid = if owner.is_empty() { String::new() } else { uuid_of(owner) };
    let facts = &task.facts;
    let origin = facts.origin.as_ref();
    let user = origin.and_then(|origin| origin.user.as_deref());
    let user = user.or_else(|| user_of(&task.created_by)).unwrap_or_default();
    let channel = origin.and_then(|origin| origin.channel.as_deref()).unwrap_or_default();
    let chat = origin.and_then(|origin| origin.chat.as_deref()).unwrap_or_default();
    let progress = task.progress.as_deref();
    let blocked_by = facts.blocked_by.iter().map(|id| id.to_uuid()).collect::<Vec<_>>();
    let mut row = json!({
        "id": task.task.to_uuid(),
        "team_id": task.room.to_uuid(),
        "subject": &*task.title,
        "description": task.description.as_deref().unwrap_or_default(),
        "status": status_of(task),
        "owner_agent_id": owner_uuid,
        "owner_agent_key": owner,
        "priority": task.priority,
        "task_number": facts.n,
        "identifier": task.identifier(),
        "progress_percent": progress.map_or(0, |at| at.percent),
        "progress_step": progress.map_or("", |at| &at.step),
        "result": task.result.as_deref().map_or(String::new(), plain),
        "blocked_by": blocked_by,
        "created_by_agent_id": uuid_of(&task.created_by),
        "user_id": user,
        "channel": channel,
        "chat_id": chat,
        "task_type": facts.kind.as_deref().unwrap_or("general"),
        "metadata": metadata(task),
        "comment_count": task.comments,
        "attachment_count": 0,
        "created_at": times::text(task.created_ms),
        "updated_at": times::text(task.updated_ms.unwrap_or(task.created_ms)),
        "note": task.note.as_deref().unwrap_or_default(),
    });
    if let Some(parent) = facts.parent {
        row["parent_id"] = json!(parent.to_uuid());
    }
    if !task.contested.is_empty() {
        row["mesh"] = json!({"contested": task.contested});
    }
    row
}

/// A result that is a text is that text.
pub(crate) fn plain(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

fn metadata(task: &TaskView) -> Value {
    let facts = &task.facts;
    let context = facts
        .context
        .as_deref()
        .map_or(Value::Null, |json| serde_json::from_str(json).unwrap_or_else(|_| json.into()));
    let all = [
        ("labels", json!(&*task.labels)),
        ("due", task.due_ms.map_or(Value::Null, times::text)),
        ("requirements", json!(facts.requirements)),
        ("acceptance", json!(facts.acceptance)),
        ("context", context),
        ("effort", json!(facts.effort)),
    ];
    let is_there = |value: &Value| !value.is_null() && *value != json!([]);
    let there = all.into_iter().filter(|(_, value)| is_there(value));
    Value::Object(there.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// A person, or a program.
pub(super) fn actor_type(agent: &str) -> &'static str {
    if is_principal(agent) { "human" } else { "agent" }
}

pub(super) fn comment_row(task: MessageId, comment: &TaskComment) -> Value {
    let mut row = json!({
        "id": comment.id.to_uuid(),
        "task_id": task.to_uuid(),
        "agent_id": uuid_of(&comment.by),
        "agent_key": &*comment.by,
        "content": &*comment.text,
        "comment_type": comment.kind.name(),
        "created_at": times::text(comment.wall_ms),
    });
    if let Some(user) = user_of(&comment.by) {
        row["user_id"] = json!(user);
    }
    row
}

/// Its making and its changes, as far as they are remembered.
pub(super) fn event_rows(record: &TaskRecord) -> Vec<Value> {
    let task = record.view.task;
    let row = |(nth, write): (usize, &TaskWrite)| {
        let mut data = Map::new();
        if let Some(status) = write.status {
            data.insert("status".to_owned(), json!(status.name()));
        }
        if let Some(assignee) = &write.assignee {
            data.insert("owner_agent_key".to_owned(), json!(assignee.as_deref().unwrap_or("")));
        }
        let fields = write.fields.iter().map(|field| field.name()).collect::<Vec<_>>();
        data.insert("changes".to_owned(), json!(fields));
        json!({
            "id": write.id.to_uuid(),
            "task_id": task.to_uuid(),
            "event_type": if nth == 0 { "created" } else { event_of(write) },
            "actor_type": actor_type(&write.by),
            "actor_id": &*write.by,
            "data": data,
            "created_at": times::text(write.wall_ms),
        })
    };
    record.writes.iter().enumerate().map(row).collect()
}

/// The one word for an update: what clients look at first.
fn event_of(write: &TaskWrite) -> &'static str {
    match (&write.assignee, write.status) {
        (Some(Some(agent)), _) if *agent == write.by => "claimed",
        (Some(Some(_)), _) => "assigned",
        (_, Some(TaskStatus::Completed)) => "completed",
        (_, Some(TaskStatus::Failed)) => "failed",
        (_, Some(TaskStatus::Cancelled)) => "cancelled",
        (_, Some(TaskStatus::InReview)) => "reviewed",
        (_, Some(TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked)) => "updated",
        (_, None) if write.fields.contains(&TaskField::Progress) => "progress",
        (_, None) if write.fields == [TaskField::Note] => "commented",
        (_, None) => "updated",
    }
}
