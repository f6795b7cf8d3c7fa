//! `task.created`: a client makes a task.

use bridge::seam::call::AssignTask;
use bytes::Bytes;
use mesh::{
    api::agenda::NewTask,
    limits::{
        TASK_BLOCKED_BY_MAX, TASK_CONTEXT_BYTES_MAX, TASK_LABELS_MAX, TASK_LINE_BYTES_MAX,
        TASK_LINES_MAX,
    },
    name::id::{MessageId, RoomId},
    wire::tasks::{TaskFacts, TaskFields, TaskOrigin},
};
use serde_json::{Map, Value, json};

use super::{changed, confirmed, in_room, news};
use crate::{
    connect::Right,
    envelope::Request,
    fields::At,
    ids,
    limits::{DESCRIPTION_CHARS_MAX, LINE_CHARS_MAX, TASKS_PER_MINUTE, TITLE_CHARS_MAX},
    problem::Problem,
    rooms,
    shared::{Confirmed, Rate},
    state::Context,
};

pub(crate) async fn create(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let agent = cx.agent()?.clone();
    cx.member.rights.may(Right::CreateTask, false)?;
    let data = request.data();
    let new = sound(cx, &data)?;
    let room = rooms::meant(cx, request).await?;
    rooms::takes(&rooms::set(cx, room).await?)?;
    let id = data.get("task_id");
    let alias = alias(cx, room, &id).await?;
    let blocked_by = dependencies(cx, room, &data).await?;
    cx.shared.take(&agent, Rate::per_minute("tasks", TASKS_PER_MINUTE))?;
    let facts = Box::new(TaskFacts { blocked_by, alias, ..*new.facts });
    let task = changed(cx, None, AssignTask(NewTask { room, facts, ..new })).await?;
    let told = news::created(cx.style(), &task);
    confirmed(cx, request, (&task, Confirmed::Created), told)
}

/// The id that the client chose: nothing else is called so in the room.
async fn alias(cx: &Context, room: RoomId, at: &At<'_>) -> Result<Option<MessageId>, Problem> {
    // One that is more than 128 bits names nothing of the mesh, and cannot be kept.
    let text = at.clone().required()?.id()?.unwrap_or_default();
    let alias = MessageId(ids::parse(text).ok_or_else(|| at.bad("is more than 128 bits"))?);
    if in_room(cx, room, alias).await?.is_some() {
        let text = "a task of this room is called so already";
        return Err(Problem::conflict(text, "id_taken").at(at.path()));
    }
    Ok(Some(alias))
}

/// Tasks that are to be done before.
async fn dependencies(
    cx: &Context,
    room: RoomId,
    data: &At<'_>,
) -> Result<Vec<MessageId>, Problem> {
    let mut all = Vec::new();
    for at in data.get("context").get("dependencies").list(TASK_BLOCKED_BY_MAX)? {
        let id = at.text(128)?.and_then(ids::parse_any).map(MessageId);
        let found = match id {
            Some(id) => in_room(cx, room, id).await?,
            None => None,
        };
        let unknown = || at.bad("no such task in the room");
        all.push(found.ok_or_else(unknown)?.task);
    }
    Ok(all)
}

/// A task without its room and what has to be looked for there.
fn sound(cx: &Context, data: &At<'_>) -> Result<NewTask, Problem> {
    let title = data.get("title").words(TITLE_CHARS_MAX)?;
    let description = data.get("description").required()?.text(DESCRIPTION_CHARS_MAX)?;
    // Who makes it is who is connected.
    data.get("creator").required()?.object()?;
    let priority = data.get("priority").required()?.one_of(&news::PRIORITIES)?;
    let priority = news::PRIORITIES.iter().position(|word| Some(*word) == priority);
    let status = data.get("status").required()?;
    if status.text(64)? != Some("open") {
        return Err(status.bad("a new task is open"));
    }
    let context = data.get("context");
    context.object()?;
    let constraints = data.get("constraints");
    constraints.object()?;
    let most = constraints.get("max_assignees");
    if most.whole(u64::MAX)?.is_some_and(|max| max != 1) {
        return Err(most.bad("one assignee"));
    }
    let facts = TaskFacts {
        origin: Some(TaskOrigin {
            dialect: "clawtank".to_owned(),
            channel: None,
            chat: None,
            user: Some(crate::envelope::cut(&cx.member.user, 100).0),
        }),
        requirements: lines(&data.get("requirements"))?,
        acceptance: lines(&data.get("acceptance_criteria"))?,
        context: files(&context.get("related_files"))?,
        effort: effort(&data.get("estimated_effort"))?,
        requires_approval: constraints.get("requires_approval").flag()?.unwrap_or(false),
        ..TaskFacts::default()
    };
    let fields = TaskFields {
        priority: priority.and_then(|place| u8::try_from(place).ok()),
        labels: Some(context.get("tags").texts(TASK_LABELS_MAX, 50)?),
        due_ms: constraints.get("deadline").time()?,
        ..TaskFields::default()
    };
    let new = NewTask::of(RoomId([0; 16]), title);
    Ok(NewTask {
        description: description.map(str::to_owned),
        facts: Box::new(facts),
        fields: Box::new(fields),
        ..new
    })
}

fn lines(at: &At<'_>) -> Result<Vec<String>, Problem> {
    let lines = at.texts(TASK_LINES_MAX, LINE_CHARS_MAX)?;
    if lines.iter().any(|line| line.len() > TASK_LINE_BYTES_MAX) {
        return Err(at.bad(format!("each line has at most {TASK_LINE_BYTES_MAX} bytes")));
    }
    Ok(lines)
}

fn files(at: &At<'_>) -> Result<Option<String>, Problem> {
    let files = at.texts(1_000, 1_000)?;
    if files.is_empty() {
        return Ok(None);
    }
    let json = json!({"related_files": files}).to_string();
    if json.len() > TASK_CONTEXT_BYTES_MAX {
        return Err(at.bad(format!("must have at most {TASK_CONTEXT_BYTES_MAX} bytes")));
    }
    Ok(Some(json))
}

fn effort(at: &At<'_>) -> Result<Option<String>, Problem> {
    at.object()?;
    let mut effort = Map::new();
    if let Some(size) = at.get("size").one_of(&news::SIZES)? {
        effort.insert("size".to_owned(), json!(size));
    }
    if let Some(hours) = at.get("hours").number(0.1, 100_000.0)? {
        let tenths = (hours * 10.0).round() / 10.0;
        effort.insert("hours".to_owned(), json!(tenths));
    }
    if let Some(complexity) = at.get("complexity").one_of(&news::COMPLEXITIES)? {
        effort.insert("complexity".to_owned(), json!(complexity));
    }
    Ok((!effort.is_empty()).then(|| Value::Object(effort).to_string()))
}
