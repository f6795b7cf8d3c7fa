//! Tasks: those of the rooms, which all dialects share.

mod claims;
mod extended;
mod making;
pub(crate) mod news;
mod reports;

use bridge::{
    seam::{
        call::{ChangeTask, ListTasks, ReadTask},
        refusal::Refusal,
    },
    session::ask::Ask,
};
use bytes::Bytes;
use mesh::{
    api::{
        agenda::{TaskUpdate, TaskView},
        command::Refused,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::{CommentKind, TaskStatus},
};

pub(crate) use claims::claim;
pub(crate) use extended::{CHANGES, NAMESPACE, extension, list_of, rows};
pub(crate) use making::create;
pub(crate) use reports::{complete, report};

use crate::{
    envelope::{Request, Told},
    fields::At,
    ids,
    problem::Problem,
    rooms,
    shared::{Confirmed, Done},
    state::Context,
};

/// A task by its id or the one that its maker chose, in a room.
pub(crate) async fn in_room(
    cx: &Context,
    room: RoomId,
    id: MessageId,
) -> Result<Option<TaskView>, Problem> {
    // Its own id first: nobody takes a task away from others by calling his own so.
    match cx.try_read(ReadTask { room, task: id }).await {
        Ok(record) => return Ok(Some(record.view)),
        Err(Refusal::Mesh(Refused::NoTask)) => {}
        Err(refusal) => return Err(refusal.into()),
    }
    let all: Vec<TaskView> = cx.read(ListTasks { room, status: None }).await?;
    // Of two that were called so at the same moment the older one is meant.
    Ok(all.into_iter().find(|task| task.facts.alias == Some(id)))
}

/// The task that a frame names, in its room or in any of the connection's.
async fn named(cx: &Context, request: &Request, at: &At<'_>) -> Result<TaskView, Problem> {
    let missing = || Problem::missing("no such task in a room of this connection").at(at.path());
    let text = at.words(128)?;
    let id = MessageId(ids::parse_any(text).ok_or_else(missing)?);
    let beside = request.metadata().get("room_id");
    let rooms = match beside.text(256)? {
        Some(room) => vec![rooms::named(cx, room).await?],
        None => cx.rooms(),
    };
    for room in rooms {
        if let Some(task) = in_room(cx, room, id).await? {
            return Ok(task);
        }
    }
    Err(missing())
}

/// Changes a task. The client is told by the answer, and not by the event of it once more.
async fn change(cx: &Context, update: TaskUpdate) -> Result<TaskView, Refusal> {
    let task = update.task;
    changed(cx, Some(task), ChangeTask(update)).await
}

async fn changed<C>(cx: &Context, task: Option<MessageId>, call: C) -> Result<TaskView, Refusal>
where
    C: Ask<Answer = Box<TaskView>>,
{
    let Ok(me) = cx.me() else { return Err(Refusal::NotAttached) };
    cx.state().awaited.expect(task);
    let answer = cx.shared.desk.ask(&me, call).await;
    if answer.is_err() {
        cx.state().awaited.take(task);
    }
    answer.map(|task| *task)
}

/// Adds a comment.
async fn comment(
    cx: &Context,
    task: MessageId,
    (kind, text): (CommentKind, String),
) -> Result<TaskView, Refusal> {
    change(cx, TaskUpdate { note: Some(text), kind, ..TaskUpdate::of(task) }).await
}

/// Tells the client of its own change as everybody, and remembers that for repeats.
fn confirmed(
    cx: &Context,
    request: &Request,
    (task, how): (&TaskView, Confirmed),
    told: Told,
) -> Result<Vec<Bytes>, Problem> {
    let agent = cx.agent()?;
    if let Some(id) = &request.related.id {
        cx.shared.done(agent, id, Done::Task(task.room, task.task, how));
    }
    let told = told.answering(&request.related);
    Ok(vec![cx.style().in_room(told, task.room)])
}

/// Confirms a change that was made before, with the task as it is now.
pub(crate) async fn again(
    cx: &Context,
    (room, task): (RoomId, MessageId),
    how: Confirmed,
    request: &Request,
) -> Result<Vec<Bytes>, Problem> {
    let task = cx.ask(ReadTask { room, task }).await?.view;
    let style = cx.style();
    let told = match how {
        Confirmed::Created => news::created(style, &task),
        Confirmed::Claimed => news::claimed(style, &task, "", 0.0),
        Confirmed::Status => news::status(style, &task, None),
        Confirmed::Completed => news::completed(style, &task),
    };
    Ok(vec![style.in_room(told.answering(&request.related), room)])
}

/// The task is the client's own: what it says of it counts.
fn holds(cx: &Context, task: &TaskView) -> Result<(), Problem> {
    let agent = cx.agent()?;
    if task.assignee.as_ref() == Some(agent) {
        return Ok(());
    }
    Err(not_held(task.assignee.as_ref()))
}

fn not_held(holder: Option<&AgentId>) -> Problem {
    let text = match holder {
        Some(holder) => format!("the task is held by {holder}"),
        None => "the task is held by nobody: claim it first".to_owned(),
    };
    Problem::denied(text).because("not_held")
}

/// The agent that a frame names as the one that acts is the connection's.
pub(crate) fn is_me(cx: &Context, at: &At<'_>) -> Result<(), Problem> {
    let said = at.words(256)?;
    if **cx.agent()? == *said {
        return Ok(());
    }
    Err(Problem::denied("the agent is not this connection's").because("agent_id").at(at.path()))
}

/// What a change was refused for, of a task that is so far.
fn stands(refusal: Refusal) -> Problem {
    Problem::from(refusal)
}

/// Whether a task that waits for others may be begun.
async fn waits_for(cx: &Context, task: &TaskView) -> Result<Vec<MessageId>, Problem> {
    let mut open = Vec::new();
    for id in &task.facts.blocked_by {
        let found = in_room(cx, task.room, *id).await?;
        if found.is_some_and(|other| other.status != TaskStatus::Completed) {
            open.push(*id);
        }
    }
    Ok(open)
}
