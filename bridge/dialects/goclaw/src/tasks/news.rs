//! News of rooms, from all nodes and dialects, in this dialect's events.

use std::sync::{Arc, Weak};

use bridge::{read::Overheard, seam::event::Event};
use mesh::{
    api::agenda::{TaskChange, TaskField, TaskView},
    name::id::AgentId,
    wire::tasks::TaskStatus,
};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::rows::{actor_type, status_of};
use crate::{
    approvals,
    caller::Caller,
    delegations,
    members::{self, is_told},
    names::user_of,
    records, said,
    shared::Shared,
    times,
};

/// Hears all that happens to tasks and approvals at this node, as long as the dialect is there.
pub(crate) fn listen(shared: &Arc<Shared>) {
    let mut heard = shared.desk.overhear();
    let records = records::listen(shared);
    let shared: Weak<Shared> = Arc::downgrade(shared);
    drop(tokio::spawn(async move {
        loop {
            match heard.recv().await {
                Ok(news) => {
                    let Some(shared) = shared.upgrade() else { return };
                    if matches!(news.event, Event::Recorded { .. }) {
                        // More has changed at once than is read: those who are told look again some time.
                        drop(records.try_send(news));
                    } else {
                        tell(&shared, &news);
                    }
                }
                // More happened at once than is kept for those who hear it.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }));
}

fn tell(shared: &Shared, news: &Overheard) {
    approvals::tell(shared, news);
    said::tell(shared, news);
    let events: Vec<(&str, Value)> = if let Event::TaskMade(task) = &news.event {
        made(task)
    } else if let Event::TaskChanged(task, change) = &news.event {
        changed(task, change)
    } else if let Event::TaskDeleted(task, by) = &news.event {
        vec![("deleted", payload(task, Some(by)))]
    } else {
        return members::tell(shared, news);
    };
    // Of the other key's room nothing is said, and of a direct room nobody is told here.
    let hears = |client: &Caller| {
        is_told(client, |key| news.facts.readable_by(key, None), &news.facts.on_record)
    };
    for (what, payload) in events {
        shared.tell(&format!("team.task.{what}"), &payload, hears);
    }
    if let Some((name, payload)) = delegations::event(&news.event) {
        shared.tell(name, &payload, hears);
    }
}

fn made(task: &TaskView) -> Vec<(&'static str, Value)> {
    let told = payload(task, Some(&task.created_by));
    let mut events = vec![("created", told.clone())];
    if task.assignee.is_some() {
        events.push(("assigned", told));
    }
    events
}

/// In the order of the specification: the holder, the state, the progress, the comment.
fn changed(task: &TaskView, change: &TaskChange) -> Vec<(&'static str, Value)> {
    let told = payload(task, change.by.as_ref());
    let has = |field| change.fields.contains(&field);
    let mut events = Vec::new();
    if has(TaskField::Assignee)
        && let Some(holder) = &task.assignee
    {
        let is_claim = change.by.as_ref() == Some(holder);
        events.push((if is_claim { "claimed" } else { "assigned" }, told.clone()));
    }
    if let Some(was) = change.was {
        let decided = was == TaskStatus::InReview;
        let mut told = told.clone();
        if let (true, Some(text)) = (decided, &change.comment) {
            told["reason"] = json!(&**text);
        }
        for what in states(decided, task.status) {
            events.push((what, told.clone()));
        }
    }
    if has(TaskField::Progress) {
        let mut told = told.clone();
        if let Some(at) = &task.progress {
            told["progress_percent"] = json!(at.percent);
            told["progress_step"] = json!(at.step);
        }
        events.push(("progress", told));
    }
    if let Some(text) = &change.comment {
        let mut told = told.clone();
        told["comment_text"] = json!(&**text);
        events.push(("commented", told));
    }
    let is_other = |field: &TaskField| match field {
        TaskField::Status | TaskField::Progress | TaskField::Note => false,
        TaskField::Assignee => task.assignee.is_none() && change.was.is_none(),
        TaskField::Title
        | TaskField::Description
        | TaskField::Priority
        | TaskField::Labels
        | TaskField::Due
        | TaskField::Result => true,
    };
    if change.fields.iter().any(is_other) {
        events.push(("updated", told));
    }
    events
}

/// The events of a new state. A task that was in review was decided about.
fn states(decided: bool, now: TaskStatus) -> &'static [&'static str] {
    match now {
        TaskStatus::Completed if decided => &["approved", "completed"],
        TaskStatus::Cancelled if decided => &["rejected", "cancelled"],
        TaskStatus::Completed => &["completed"],
        TaskStatus::Cancelled => &["cancelled"],
        TaskStatus::Failed => &["failed"],
        TaskStatus::InReview => &["reviewed"],
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked => &["updated"],
    }
}

fn payload(task: &TaskView, by: Option<&AgentId>) -> Value {
    let mut told = json!({
        "team_id": task.room.to_uuid(),
        "task_id": task.task.to_uuid(),
        "task_number": task.facts.n,
        "subject": &*task.title,
        "status": status_of(task),
        "timestamp": times::text(times::now_ms()),
        "actor_type": by.map_or("system", |by| actor_type(by)),
        "actor_id": by.map_or("", |by| &**by),
    });
    if let Some(owner) = &task.assignee {
        told["owner_agent_key"] = json!(&**owner);
        told["owner_display_name"] = json!(&**owner);
    }
    if let Some(user) = by.and_then(|by| user_of(by)) {
        told["user_id"] = json!(user);
    }
    if let Some(origin) = &task.facts.origin {
        for (name, text) in [("channel", &origin.channel), ("chat_id", &origin.chat)] {
            if let Some(text) = text {
                told[name] = json!(text);
            }
        }
    }
    told
}
