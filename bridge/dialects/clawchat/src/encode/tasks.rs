//! Tasks, as the wire has them: the fields of every client, and those of a mesh beside them.

use mesh::{
    api::agenda::{TaskComment, TaskRecord, TaskView},
    name::id::{MessageId, RoomId},
    wire::tasks::{self as core, TaskStatus as CoreStatus},
};
use protocol::{
    object::Task,
    task::{
        Comment, CommentKind, TaskFacts, TaskNote, TaskOrigin, TaskProgress,
        TaskRecord as WireRecord, TaskState,
    },
    value::{Metadata, TaskStatus},
};
use serde_json::Value;

use super::{room_text, timestamp};

pub(crate) fn task(lobby: RoomId, view: &TaskView) -> Task {
    Task {
        task_id: view.task.to_uuid(),
        room_id: room_text(lobby, view.room),
        title: view.title.to_string(),
        description: view.description.as_deref().map(String::from),
        status: task_status(view.status),
        assignee: view.assignee.as_deref().map(String::from),
        created_by: view.created_by.to_string(),
        created_at: timestamp(view.created_ms),
        updated_at: view.updated_ms.map(timestamp),
        note: view.note.as_deref().map(String::from),
        mesh: Some(note(view)),
    }
}

/// Priority of a task whose maker says nothing else: not shown.
const MEDIUM: u8 = 1;

fn note(view: &TaskView) -> TaskNote {
    let is_basic = view.status == view.status.basic();
    TaskNote {
        n: view.facts.n,
        identifier: view.identifier(),
        state: (!is_basic).then(|| state(view.status)),
        priority: Some(view.priority).filter(|priority| *priority != MEDIUM),
        labels: view.labels.to_vec(),
        due: view.due_ms.map(timestamp),
        progress: view.progress.as_deref().map(|at| {
            let core::TaskProgress { percent, step } = at.clone();
            TaskProgress { percent, step }
        }),
        result: view.result.as_deref().and_then(json),
        comments: view.comments as u64,
        facts: facts(&view.facts),
        contested: view.contested.iter().map(|field| String::from(*field)).collect(),
    }
}

fn facts(facts: &core::TaskFacts) -> TaskFacts {
    let ids = |ids: &[MessageId]| ids.iter().map(|id| id.to_uuid()).collect();
    let origin = facts.origin.clone().map(|origin| {
        let core::TaskOrigin { dialect, channel, chat, user } = origin;
        TaskOrigin { dialect, channel, chat, user }
    });
    TaskFacts {
        origin,
        parent: facts.parent.map(|id| id.to_uuid()),
        blocked_by: ids(&facts.blocked_by),
        kind: facts.kind.clone(),
        requirements: facts.requirements.clone(),
        acceptance: facts.acceptance.clone(),
        context: facts.context.as_deref().and_then(json),
        effort: facts.effort.clone(),
        requires_approval: facts.requires_approval,
    }
}

/// Whoever wrote it said that it is JSON. What is none is not shown.
fn json(text: &str) -> Option<Value> {
    serde_json::from_str(Metadata::parse(text).ok()?.get()).ok()
}

pub(crate) fn record(lobby: RoomId, record: &TaskRecord) -> WireRecord {
    let comment = |comment: &TaskComment| Comment {
        comment_id: comment.id.to_uuid(),
        agent_id: comment.by.to_string(),
        kind: match comment.kind {
            core::CommentKind::Note => CommentKind::Note,
            core::CommentKind::Status => CommentKind::Status,
            core::CommentKind::Blocker => CommentKind::Blocker,
        },
        text: comment.text.to_string(),
        created_at: timestamp(comment.wall_ms),
    };
    WireRecord {
        task: task(lobby, &record.view),
        comments: record.comments.iter().map(comment).collect(),
    }
}

/// Of the seven the four that every client knows.
fn task_status(status: CoreStatus) -> TaskStatus {
    match status {
        CoreStatus::Pending => TaskStatus::Pending,
        CoreStatus::InProgress | CoreStatus::InReview => TaskStatus::InProgress,
        CoreStatus::Completed | CoreStatus::Cancelled => TaskStatus::Completed,
        CoreStatus::Blocked | CoreStatus::Failed => TaskStatus::Blocked,
    }
}

fn state(status: CoreStatus) -> TaskState {
    match status {
        CoreStatus::Pending => TaskState::Pending,
        CoreStatus::InProgress => TaskState::InProgress,
        CoreStatus::Blocked => TaskState::Blocked,
        CoreStatus::InReview => TaskState::InReview,
        CoreStatus::Completed => TaskState::Completed,
        CoreStatus::Cancelled => TaskState::Cancelled,
        CoreStatus::Failed => TaskState::Failed,
    }
}

pub(crate) fn core_task_status(status: TaskStatus) -> CoreStatus {
    match status {
        TaskStatus::Pending => CoreStatus::Pending,
        TaskStatus::InProgress => CoreStatus::InProgress,
        TaskStatus::Completed => CoreStatus::Completed,
        TaskStatus::Blocked => CoreStatus::Blocked,
    }
}

pub(crate) fn core_state(state: TaskState) -> CoreStatus {
    match state {
        TaskState::Pending => CoreStatus::Pending,
        TaskState::InProgress => CoreStatus::InProgress,
        TaskState::Blocked => CoreStatus::Blocked,
        TaskState::InReview => CoreStatus::InReview,
        TaskState::Completed => CoreStatus::Completed,
        TaskState::Cancelled => CoreStatus::Cancelled,
        TaskState::Failed => CoreStatus::Failed,
    }
}
