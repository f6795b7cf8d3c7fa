//! Tasks as clients are told of them.

use mesh::{
    api::agenda::{TaskChange, TaskField, TaskView},
    name::id::AgentId,
    wire::tasks::TaskStatus,
};
use serde_json::{Map, Value, json};

use crate::{
    envelope::{Told, cut},
    limits::{DESCRIPTION_CHARS_MAX, LINE_CHARS_MAX, TITLE_CHARS_MAX},
    names,
    style::Style,
    times,
};

/// The words of priorities, by their numbers.
pub(crate) const PRIORITIES: [&str; 4] = ["low", "medium", "high", "urgent"];
/// Sizes of an effort, and how hard it is.
pub(crate) const SIZES: [&str; 4] = ["small", "medium", "large", "xl"];
/// See [`SIZES`].
pub(crate) const COMPLEXITIES: [&str; 3] = ["low", "medium", "high"];

/// How far a task is, in the words that a schema has.
pub(crate) fn word(task: &TaskView) -> &'static str {
    match task.status {
        TaskStatus::Pending if task.assignee.is_none() => "open",
        TaskStatus::Pending => "claimed",
        TaskStatus::InProgress | TaskStatus::Blocked | TaskStatus::InReview => "in_progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Cancelled | TaskStatus::Failed => "cancelled",
    }
}

fn mesh_note(task: &TaskView) -> Value {
    let mut note = json!({
        "state": task.status.name(),
        "number": task.facts.n,
        "id": task.task.to_uuid(),
    });
    if let Some(holder) = &task.assignee {
        note["assignee"] = json!(&**holder);
    }
    if !task.contested.is_empty() {
        note["contested"] = json!(task.contested);
    }
    note
}

/// What its maker said of its effort, if that is of this dialect.
fn effort(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let (size, complexity) = (value["size"].as_str(), value["complexity"].as_str());
    let mut effort = Map::new();
    if let Some(size) = size.filter(|size| SIZES.contains(size)) {
        effort.insert("size".to_owned(), json!(size));
    }
    if let Some(hours) = value["hours"].as_f64().filter(|hours| *hours >= 0.1) {
        effort.insert("hours".to_owned(), json!(hours));
    }
    if let Some(complexity) = complexity.filter(|word| COMPLEXITIES.contains(word)) {
        effort.insert("complexity".to_owned(), json!(complexity));
    }
    (!effort.is_empty()).then_some(Value::Object(effort))
}

fn lines(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| cut(line, LINE_CHARS_MAX).0).collect()
}

/// The files that its maker named, if it did so in this dialect.
fn files(context: Option<&str>) -> Value {
    let context = context.and_then(|json| serde_json::from_str::<Value>(json).ok());
    let files = context.and_then(|mut context| context.get_mut("related_files").map(Value::take));
    let texts =
        |files: &Value| files.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    files.filter(texts).unwrap_or_else(|| json!([]))
}

/// All of a task as it is now.
pub(crate) fn row(style: Style, task: &TaskView) -> (Value, bool) {
    let (title, short) = cut(&task.title, TITLE_CHARS_MAX);
    let description = task.description.as_deref().unwrap_or_default();
    let (description, brief) = cut(description, DESCRIPTION_CHARS_MAX);
    let facts = &task.facts;
    let dependencies = facts.blocked_by.iter().map(|id| style.task_id(*id)).collect::<Vec<_>>();
    let mut constraints = json!({"requires_approval": facts.requires_approval, "max_assignees": 1});
    if let Some(due) = task.due_ms {
        constraints["deadline"] = json!(times::text(due));
    }
    let tags = task.labels.iter().map(|label| cut(label, 50).0).collect::<Vec<_>>();
    let mut data = json!({
        "task_id": style.task(task),
        "title": title,
        "description": description,
        "creator": style.user(&task.created_by, None),
        "priority": PRIORITIES[usize::from(task.priority).min(PRIORITIES.len() - 1)],
        "requirements": lines(&facts.requirements),
        "acceptance_criteria": lines(&facts.acceptance),
        "context": {
            "related_files": files(facts.context.as_deref()),
            "dependencies": dependencies,
            "tags": tags,
        },
        "constraints": constraints,
        "status": word(task),
        "mesh": mesh_note(task),
    });
    if let Some(effort) = facts.effort.as_deref().and_then(effort) {
        data["estimated_effort"] = effort;
    }
    (data, short || brief)
}

pub(crate) fn created(style: Style, task: &TaskView) -> Told {
    let (data, is_cut) = row(style, task);
    let id = names::event_id(&[b"task.created", &task.task.0]);
    Told::of(id, "task.created", task.created_ms, data).noting("truncated", is_cut)
}

/// An event of a change, the same at every node that shows the task so.
fn event(kind: &'static str, task: &TaskView, data: Value) -> Told {
    let at_ms = task.updated_ms.unwrap_or(task.created_ms);
    let holder = task.assignee.as_deref().unwrap_or_default().as_bytes();
    let state = task.status.name().as_bytes();
    let parts = [kind.as_bytes(), &task.task.0, &at_ms.to_be_bytes(), holder, state];
    let comments = u64::try_from(task.comments).unwrap_or(u64::MAX).to_be_bytes();
    let parts: Vec<&[u8]> = parts.into_iter().chain([&comments[..]]).collect();
    Told::of(names::event_id(&parts), kind, at_ms, data)
}

fn holder(task: &TaskView) -> &str {
    task.assignee.as_deref().unwrap_or_default()
}

/// Somebody has it now.
pub(crate) fn claimed(style: Style, task: &TaskView, reason: &str, score: f64) -> Told {
    let at_ms = task.updated_ms.unwrap_or(task.created_ms);
    let data = json!({
        "task_id": style.task(task),
        "agent_id": holder(task),
        "assigned_at": times::text(at_ms),
        "task_status": word(task),
        "assignment_details": {
            "claim_reason": reason,
            "priority_score": score,
            "competing_claims": 0,
        },
        "mesh": mesh_note(task),
    });
    event("task.claim_accepted", task, data)
}

/// `notes`: the comment of the change.
pub(crate) fn status(style: Style, task: &TaskView, notes: Option<&str>) -> Told {
    let mut data = json!({
        "task_id": style.task(task),
        "agent_id": holder(task),
        "status": task.status.name(),
        "blockers": [],
        "notes": notes.unwrap_or_default(),
        "mesh": mesh_note(task),
    });
    if let Some(at) = task.progress.as_deref() {
        data["progress"] = json!({
            "percentage": f64::from(at.percent) / 100.0,
            "completed_steps": [],
            "current_step": at.step,
            "remaining_steps": [],
        });
    }
    event("task.status", task, data)
}

/// Its holder says that it is done.
pub(crate) fn completed(style: Style, task: &TaskView) -> Told {
    let result = task.result.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let part = |name: &str| {
        let part = result.as_ref().and_then(|result| result.get(name));
        part.filter(|part| part.is_object()).cloned()
    };
    let deliverables = || json!({"files_created": [], "files_modified": [], "git_commits": []});
    let summary = || {
        json!({
            "requirements_met": 0, "requirements_total": 0,
            "acceptance_criteria_met": 0, "acceptance_criteria_total": 0,
        })
    };
    let at_ms = task.updated_ms.unwrap_or(task.created_ms);
    let data = json!({
        "task_id": style.task(task),
        "agent_id": holder(task),
        "completed_at": times::text(at_ms),
        "deliverables": part("deliverables").unwrap_or_else(deliverables),
        "completion_summary": part("completion_summary").unwrap_or_else(summary),
        "review_requested": task.status == TaskStatus::InReview,
        "deployment_ready": false,
        "mesh": mesh_note(task),
    });
    event("task.completed", task, data)
}

/// A change that somebody made: a new holder, an end, or anything else. Mostly one event.
pub(crate) fn changed(style: Style, task: &TaskView, change: &TaskChange) -> Vec<Told> {
    let has = |field: TaskField| change.fields.contains(&field);
    let comment = change.comment.as_deref();
    let mut events = Vec::new();
    let is_taken = has(TaskField::Assignee) && task.assignee.is_some();
    if is_taken {
        events.push(claimed(style, task, comment.unwrap_or_default(), 0.0));
    }
    let by_holder = |by: &AgentId| task.assignee.as_ref() == Some(by);
    // The holder says once that it is done, and then somebody may look at it.
    let handed_in = task.status == TaskStatus::InReview
        && task.result.is_some()
        && change.by.as_ref().is_some_and(by_holder);
    let ended = task.status == TaskStatus::Completed && change.was != Some(TaskStatus::InReview);
    if change.was.is_some() && (handed_in || ended) {
        events.push(completed(style, task));
    } else if !is_taken {
        events.push(status(style, task, comment));
    }
    events
}
