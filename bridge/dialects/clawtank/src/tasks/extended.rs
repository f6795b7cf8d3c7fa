//! `extension.task_*`: what the dialect has no type for.

use bridge::seam::call::{FindAgent, ListTasks};
use bytes::Bytes;
use mesh::{
    api::agenda::{TaskUpdate, TaskView},
    limits::{TASK_LABELS_MAX, TASK_NOTE_BYTES_MAX},
    name::id::{AgentId, RoomId},
    wire::tasks::{CommentKind, TaskFields, TaskStatus},
};
use serde_json::{Value, json};

use super::{change, confirmed, named, news, not_held, stands};
use crate::{
    connect::Right,
    envelope::{Request, Told},
    fields::At,
    limits::{DESCRIPTION_CHARS_MAX, STATUS_PER_MINUTE, TASKS_LISTED_MAX, TITLE_CHARS_MAX},
    problem::Problem,
    rooms,
    shared::{Confirmed, Rate},
    state::Context,
};

/// The namespace of these messages.
pub(crate) const NAMESPACE: &str = "clawmesh.task";

/// Lists the tasks of a room.
pub(crate) async fn list_of(cx: &Context, payload: &At<'_>) -> Result<Told, Problem> {
    let room = rooms::named(cx, payload.get("room_id").words(256)?).await?;
    let rows = rows(cx, room, payload.get("status").text(64)?).await?;
    Ok(rooms::answer("extension.task_list", NAMESPACE, json!({"tasks": rows})))
}

/// The newest tasks of a room that are so far, in the words of the dialect or the mesh.
pub(crate) async fn rows(
    cx: &Context,
    room: RoomId,
    wanted: Option<&str>,
) -> Result<Vec<Value>, Problem> {
    let tasks = cx.read(ListTasks { room, status: None }).await?;
    let is_wanted = |task: &&TaskView| {
        wanted.is_none_or(|word| news::word(task) == word || task.status.name() == word)
    };
    let newest = tasks.iter().rev().filter(is_wanted).take(TASKS_LISTED_MAX);
    Ok(newest.map(|task| news::row(cx.style(), task).0).collect())
}

/// A change, by the name of its message.
pub(crate) async fn extension(
    cx: &Context,
    name: &str,
    request: &Request,
) -> Result<Vec<Bytes>, Problem> {
    let payload = request.data().get("payload");
    let agent = cx.agent()?.clone();
    cx.member.rights.may(Right::Chat, false)?;
    cx.shared.take(&agent, Rate::per_minute("reports", STATUS_PER_MINUTE))?;
    let task = named(cx, request, &payload.get("task_id")).await?;
    rooms::takes(&rooms::set(cx, task.room).await?)?;
    let hosts = hosts(cx, task.room).await?;
    let by = By { agent, hosts };
    let update = match name {
        "extension.task_assign" => assign(cx, &by, &task, &payload).await?,
        "extension.task_release" => release(cx, &by, &task)?,
        "extension.task_cancel" => cancel(cx, &by, &task, &payload)?,
        "extension.task_review" => review(cx, &by, &task, &payload)?,
        "extension.task_update" => edit(cx, &by, &task, &payload)?,
        _ => note(&task, &payload)?,
    };
    let (comment, assigns) = (update.note.clone(), matches!(update.assignee, Some(Some(_))));
    let now = change(cx, update).await.map_err(stands)?;
    let told = if assigns {
        news::claimed(cx.style(), &now, comment.as_deref().unwrap_or_default(), 0.0)
    } else {
        news::status(cx.style(), &now, comment.as_deref())
    };
    let how = if assigns { Confirmed::Claimed } else { Confirmed::Status };
    confirmed(cx, request, (&now, how), told)
}

/// All changes there are.
pub(crate) const CHANGES: [&str; 6] = [
    "extension.task_assign",
    "extension.task_release",
    "extension.task_cancel",
    "extension.task_review",
    "extension.task_update",
    "extension.task_comment",
];

/// Who changes a task.
struct By {
    agent: AgentId,
    /// Its key has made the room.
    hosts: bool,
}

impl By {
    fn may(&self, cx: &Context, right: Right) -> Result<(), Problem> {
        cx.member.rights.may(right, self.hosts)
    }

    /// The maker of a task, its holder, or somebody who gives tasks to others.
    fn is_concerned(&self, cx: &Context, task: &TaskView) -> Result<(), Problem> {
        let own = task.created_by == self.agent || task.assignee.as_ref() == Some(&self.agent);
        if own { Ok(()) } else { self.may(cx, Right::AssignTask) }
    }
}

async fn hosts(cx: &Context, room: RoomId) -> Result<bool, Problem> {
    Ok(rooms::hosts(cx, &rooms::look(cx, room).await?.room))
}

async fn assign(
    cx: &Context,
    by: &By,
    task: &TaskView,
    payload: &At<'_>,
) -> Result<TaskUpdate, Problem> {
    by.may(cx, Right::AssignTask)?;
    let at = payload.get("agent_id");
    let named: AgentId = at.words(256)?.into();
    let found = cx.ask(FindAgent(named)).await?;
    let agent = found.into_iter().next().ok_or_else(|| at.bad("no such agent is there"))?.agent;
    Ok(TaskUpdate {
        assignee: Some(Some(agent)),
        // Nobody loses it by the way.
        if_assignee: Some(None),
        if_status: Some(TaskStatus::Pending),
        ..TaskUpdate::of(task.task)
    })
}

fn release(cx: &Context, by: &By, task: &TaskView) -> Result<TaskUpdate, Problem> {
    let Some(holder) = &task.assignee else { return Err(not_held(None)) };
    if *holder != by.agent {
        by.may(cx, Right::AssignTask)?;
    }
    Ok(TaskUpdate {
        status: Some(TaskStatus::Pending),
        by_steps: true,
        assignee: Some(None),
        if_assignee: Some(task.assignee.clone()),
        ..TaskUpdate::of(task.task)
    })
}

fn cancel(cx: &Context, by: &By, task: &TaskView, payload: &At<'_>) -> Result<TaskUpdate, Problem> {
    if task.created_by != by.agent {
        by.may(cx, Right::AssignTask)?;
    }
    Ok(TaskUpdate {
        status: Some(TaskStatus::Cancelled),
        by_steps: true,
        note: words(payload, "reason")?,
        kind: CommentKind::Status,
        ..TaskUpdate::of(task.task)
    })
}

fn review(cx: &Context, by: &By, task: &TaskView, payload: &At<'_>) -> Result<TaskUpdate, Problem> {
    by.may(cx, Right::Approve).or_else(|_| by.may(cx, Right::AssignTask))?;
    if task.assignee.as_ref() == Some(&by.agent) {
        return Err(Problem::denied("nobody reviews what is his own").because("own task"));
    }
    let decision = payload.get("decision").required()?.one_of(&["approved", "rejected"])?;
    let approved = decision == Some("approved");
    Ok(TaskUpdate {
        status: Some(if approved { TaskStatus::Completed } else { TaskStatus::Pending }),
        assignee: (!approved).then_some(None),
        // Of several that decide at once one does.
        if_assignee: Some(task.assignee.clone()),
        if_status: Some(TaskStatus::InReview),
        note: words(payload, "feedback")?,
        kind: CommentKind::Status,
        ..TaskUpdate::of(task.task)
    })
}

fn edit(cx: &Context, by: &By, task: &TaskView, payload: &At<'_>) -> Result<TaskUpdate, Problem> {
    by.is_concerned(cx, task)?;
    let priority = payload.get("priority").one_of(&news::PRIORITIES)?;
    let priority = news::PRIORITIES.iter().position(|word| Some(*word) == priority);
    let tags = payload.get("tags");
    let labels = tags.is_there().then(|| tags.texts(TASK_LABELS_MAX, 50)).transpose()?;
    let title = payload.get("title");
    let title = title.is_there().then(|| title.words(TITLE_CHARS_MAX)).transpose()?;
    let fields = TaskFields {
        title: title.map(str::to_owned),
        description: payload.get("description").text(DESCRIPTION_CHARS_MAX)?.map(str::to_owned),
        priority: priority.and_then(|place| u8::try_from(place).ok()),
        labels,
        due_ms: payload.get("deadline").time()?,
        ..TaskFields::default()
    };
    if fields.is_empty() {
        return Err(payload.bad("changes nothing"));
    }
    Ok(TaskUpdate { fields: Box::new(fields), ..TaskUpdate::of(task.task) })
}

fn note(task: &TaskView, payload: &At<'_>) -> Result<TaskUpdate, Problem> {
    let text = payload.get("text").words(TASK_NOTE_BYTES_MAX)?.to_owned();
    Ok(TaskUpdate { note: Some(text), ..TaskUpdate::of(task.task) })
}

fn words(payload: &At<'_>, name: &str) -> Result<Option<String>, Problem> {
    let text = payload.get(name).text(TASK_NOTE_BYTES_MAX)?;
    Ok(text.filter(|text| !text.trim().is_empty()).map(str::to_owned))
}
