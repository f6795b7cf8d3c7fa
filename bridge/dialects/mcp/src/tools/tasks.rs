//! Tasks.

use bridge::seam::{
    call::{AssignTask, ChangeTask, DescribeRoom, ListTasks},
    refusal::Refusal,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{Refused, RoomView},
    },
    name::id::MessageId,
    wire::acts::TaskStatus,
};
use serde_json::{Value, json};

use super::{rooms::Page, send};
use crate::{
    arguments::Arguments,
    asking::Asking,
    limits::{KEY_CHARS_MAX, NOTE_BYTES_MAX, ROWS_MAX},
    outcome::{No, Outcome, object},
};

pub(super) async fn list(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let status = arguments.text("status")?.map(|status| parse(&status)).transpose()?;
    let mine = arguments.flag("mine")?.unwrap_or(false);
    let limit = arguments.integer("limit", 1, ROWS_MAX)?.unwrap_or(50);
    let rooms = match arguments.text("room")? {
        Some(_) => vec![asking.room_inside(arguments).await?],
        None => rooms(asking).await?,
    };
    let mut rows = Vec::new();
    for room in rooms {
        let tasks = asking.read(ListTasks { room: room.room, status }).await?;
        let is_mine = |task: &&TaskView| !mine || task.assignee.as_deref() == Some(&*asking.agent);
        rows.extend(tasks.iter().filter(is_mine).map(|task| row(asking, &room, task)));
        // More would not be shown, and there may be very many.
        if rows.len() as u64 > limit {
            break;
        }
    }
    let page = Page::of(rows.len(), 0, limit);
    let shown = page.cut(&rows).to_vec();
    let mut fields = page.fields("tasks", shown);
    // There is no offset: a room, or a status, leaves less.
    fields.remove("nextOffset");
    Ok(fields)
}

/// The rooms that the agent is in, and is shown.
async fn rooms(asking: &Asking) -> Result<Vec<RoomView>, No> {
    let mut rooms = Vec::new();
    for seat in asking.seats().await? {
        match asking.shared.desk.ask(&asking.reader, DescribeRoom(seat)).await {
            Ok(info) if asking.may_see(&info.room) => rooms.push(info.room),
            Ok(_) => {}
            // It has just gone.
            Err(Refusal::Mesh(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(rooms)
}

fn row(asking: &Asking, room: &RoomView, task: &TaskView) -> Value {
    let mut row = asking.plain_reader().task(task);
    row["sessionKey"] = json!(asking.names().key(room));
    row
}

pub(super) async fn add(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let title = arguments.required("title", mesh::limits::TASK_TITLE_BYTES_MAX)?;
    let description = arguments.text("description")?;
    let assignee = arguments.text("assignee")?.map(Into::into);
    let room = asking.room(arguments).await?;
    let task = NewTask { description, assignee, ..NewTask::of(room.room, title) };
    let task = asking.act(AssignTask(task)).await?;
    Ok(object(json!({"status": "ok", "task": row(asking, &room, &task)})))
}

pub(super) async fn claim(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let task = id(arguments)?;
    if let Some((room, view)) = find(asking, task).await?
        && view.status.is_terminal()
    {
        let no = No::error(format!("the task is {} already", view.status.name()));
        return Err(no.with("task", row(asking, &room, &view)));
    }
    let begins = TaskUpdate {
        status: Some(TaskStatus::InProgress),
        assignee: Some(Some(asking.agent.clone())),
        if_assignee: Some(None),
        ..TaskUpdate::of(task)
    };
    let no = match change(asking, begins.clone()).await {
        Ok(task) => return Ok(done(asking, &task)),
        Err(no) => no,
    };
    let Some((room, held)) = find(asking, task).await? else { return Err(no) };
    if held.assignee.as_deref() == Some(&*asking.agent) {
        // As a second claim, so that nobody who was given it meanwhile loses it.
        let again = TaskUpdate { if_assignee: Some(Some(asking.agent.clone())), ..begins };
        let task = change(asking, again).await?;
        return Ok(done(asking, &task));
    }
    Err(no.with("task", row(asking, &room, &held)))
}

pub(super) async fn complete(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let task = id(arguments)?;
    let result = arguments.required("result", usize::MAX)?;
    let status = match arguments.text("status")?.as_deref() {
        None | Some("completed") => TaskStatus::Completed,
        Some("blocked") => TaskStatus::Blocked,
        Some(_) => return Err(No::argument("status", "must be completed or blocked")),
    };
    let mut end = result.len().min(NOTE_BYTES_MAX);
    while !result.is_char_boundary(end) {
        end -= 1;
    }
    let note = Some(result[..end].to_owned());
    if let Some((room, _)) = find(asking, task).await?.filter(|(room, _)| room.task)
        && end < result.len()
    {
        // A note has no place for all of it: the answer has, and the task's end follows from that.
        send::result(asking, &room, &result, status == TaskStatus::Blocked).await?;
    }
    let update = TaskUpdate { status: Some(status), note, ..TaskUpdate::of(task) };
    let task = change(asking, update).await?;
    Ok(done(asking, &task))
}

/// A task of a room of another key is as one that is not there.
async fn change(asking: &Asking, update: TaskUpdate) -> Result<Box<TaskView>, No> {
    if asking.is_confined() && find(asking, update.task).await?.is_none() {
        return Err(Refusal::Mesh(Refused::NoTask).into());
    }
    match asking.act(ChangeTask(update)).await {
        Err(No::Forbidden { rule, .. }) if rule == "room_access" => {
            Err(Refusal::Mesh(Refused::NoTask).into())
        }
        changed => changed,
    }
}

fn done(asking: &Asking, task: &TaskView) -> serde_json::Map<String, Value> {
    object(json!({"status": "ok", "task": asking.plain_reader().task(task)}))
}

/// A task, if it is one of a room that the agent is in.
async fn find(asking: &Asking, task: MessageId) -> Result<Option<(RoomView, TaskView)>, No> {
    for room in rooms(asking).await? {
        let tasks = asking.read(ListTasks { room: room.room, status: None }).await?;
        if let Some(found) = tasks.into_iter().find(|view| view.task == task) {
            return Ok(Some((room, found)));
        }
    }
    Ok(None)
}

fn id(arguments: &Arguments) -> Result<MessageId, No> {
    let text = arguments.required("taskId", KEY_CHARS_MAX)?;
    let id = MessageId::from_uuid(&text.trim().to_ascii_lowercase());
    id.ok_or_else(|| No::argument("taskId", "must be the id of a task"))
}

fn parse(status: &str) -> Result<TaskStatus, No> {
    match status {
        "pending" => Ok(TaskStatus::Pending),
        "in_progress" => Ok(TaskStatus::InProgress),
        "completed" => Ok(TaskStatus::Completed),
        "blocked" => Ok(TaskStatus::Blocked),
        _ => Err(No::argument("status", "must be pending, in_progress, completed or blocked")),
    }
}
