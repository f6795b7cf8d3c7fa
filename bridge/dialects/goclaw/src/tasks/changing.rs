//! Making tasks, and changing them.

use bridge::seam::{
    call::{AssignTask, ChangeTask, DeleteTask, Say},
    refusal::Refusal,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{Refused, RoomView},
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::{TaskFacts, TaskFields, TaskOrigin, TaskProgress, TaskStatus},
};
use serde_json::{Value, json};

use super::{CHANNEL, CHAT, record, status_named, task_row};
use crate::{
    caller::Caller,
    limits::{DELETED_AT_ONCE_MAX, DESCRIPTION_CHARS_MAX, SUBJECT_CHARS_MAX},
    members::works_in,
    outcome::{No, Outcome},
    params::{ASSIGNEE, CONTENT, MEMBER, Params, SUBJECT, TEAM, must_be},
};

/// Says in a room that a task is an agent's, so that the agent hears of it.
async fn say_assigned(caller: &Caller, room: RoomId, task: &TaskView) -> Result<(), No> {
    let Some(agent) = &task.assignee else { return Ok(()) };
    let (id, n) = (task.task.to_uuid(), task.facts.n);
    let metadata = json!({
        "kind": "task_assigned", "task_id": id, "expects_reply": false, "from": caller.user,
    });
    let say = Say {
        mentions: vec![agent.to_string()],
        metadata: Some(metadata.to_string()),
        expects_reply: Some(false),
        ..Say::chat(room, format!("[Assigned task #{n} ({id})]: {}", task.title))
    };
    caller.act(&caller.speaker(), say).await.map(drop)
}

/// The answer to a change. `stands`: what is said if the task is not so far that it can be.
async fn change(caller: &Caller, update: TaskUpdate, stands: &str) -> Result<Box<TaskView>, No> {
    let changed = caller.try_act(&caller.speaker(), ChangeTask(update)).await;
    changed.map_err(|refusal| {
        if let Refusal::Mesh(Refused::Stands { .. }) = refusal {
            No::invalid(stands)
        } else if let Refusal::Mesh(Refused::Held { holder: Some(holder) }) = refusal {
            No::invalid(format!("task is held by {holder}"))
        } else {
            refusal.into()
        }
    })
}

/// 0 to 3: what is beyond is the nearest of these.
fn priority(params: &Params) -> Result<Option<u8>, No> {
    let Some(value) = params.get(&["priority"]) else { return Ok(None) };
    let number = value.as_i64().ok_or_else(|| must_be(&["priority"], "a whole number"))?;
    Ok(u8::try_from(number.clamp(0, 3)).ok())
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let (title, description) = (params.required(SUBJECT)?, params.filled(&["description"])?);
    let chars = |text: &str| text.chars().count();
    if chars(&title) > SUBJECT_CHARS_MAX {
        return Err(No::invalid(format!(
            "subject must have at most {SUBJECT_CHARS_MAX} characters"
        )));
    }
    if description.as_deref().is_some_and(|text| chars(text) > DESCRIPTION_CHARS_MAX) {
        let text = format!("description must have at most {DESCRIPTION_CHARS_MAX} characters");
        return Err(No::invalid(text));
    }
    let origin = TaskOrigin {
        dialect: "goclaw".to_owned(),
        channel: params.filled(CHANNEL)?,
        chat: params.filled(CHAT)?,
        user: Some(caller.user.clone()),
    };
    let kind = params.filled(&["taskType", "task_type"])?;
    let facts = Box::new(TaskFacts { origin: Some(origin), kind, ..TaskFacts::default() });
    let priority = priority(params)?;
    let fields = Box::new(TaskFields { priority, ..TaskFields::default() });
    let room = caller.team(params, TEAM).await?;
    // Nothing is made for an agent that nobody knows.
    let assignee = match params.filled(ASSIGNEE)? {
        Some(named) => Some(caller.agent(&named).await?.agent),
        None => None,
    };
    let new = NewTask { description, assignee, facts, fields, ..NewTask::of(room.room, title) };
    let task = caller.act(&caller.speaker(), AssignTask(new)).await?;
    say_assigned(caller, room.room, &task).await?;
    Ok(json!({"task": task_row(&task), "id": task.task.to_uuid()}))
}

pub(crate) async fn assign(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let task = record(caller, room.room, params).await?.view;
    let agent = caller.agent(&params.required(MEMBER)?).await?.agent;
    let update = TaskUpdate {
        assignee: Some(Some(agent)),
        // Of several at the same moment one gets it.
        if_assignee: Some(None),
        if_status: Some(TaskStatus::Pending),
        ..TaskUpdate::of(task.task)
    };
    let task = change(caller, update, "task is not pending").await?;
    say_assigned(caller, room.room, &task).await?;
    Ok(json!({"ok": true, "task": task_row(&task)}))
}

pub(crate) async fn approve(caller: &Caller, params: &Params) -> Outcome {
    let comment = params.filled(&["comment"])?;
    decide(caller, params, (TaskStatus::Completed, comment)).await
}

pub(crate) async fn reject(caller: &Caller, params: &Params) -> Outcome {
    let reason = params.filled(&["reason"])?;
    decide(caller, params, (TaskStatus::Cancelled, reason)).await
}

/// Of several that decide at once one does: the sequencer of the room says which.
async fn decide(
    caller: &Caller,
    params: &Params,
    (to, note): (TaskStatus, Option<String>),
) -> Outcome {
    const NOT_IN_REVIEW: &str = "task is not in review";
    let room = caller.team(params, TEAM).await?;
    let task = record(caller, room.room, params).await?.view;
    if task.status != TaskStatus::InReview {
        return Err(No::invalid(NOT_IN_REVIEW));
    }
    let update = TaskUpdate {
        status: Some(to),
        note,
        if_assignee: Some(task.assignee),
        if_status: Some(TaskStatus::InReview),
        ..TaskUpdate::of(task.task)
    };
    let task = change(caller, update, NOT_IN_REVIEW).await?;
    Ok(json!({"ok": true, "task": task_row(&task)}))
}

pub(crate) async fn comment(caller: &Caller, params: &Params) -> Outcome {
    let text = params.required(CONTENT)?;
    let room = caller.team(params, TEAM).await?;
    let task = record(caller, room.room, params).await?.view.task;
    let update = TaskUpdate { note: Some(text.clone()), ..TaskUpdate::of(task) };
    caller.act(&caller.speaker(), ChangeTask(update)).await?;
    let comments = record(caller, room.room, params).await?.comments;
    let is_it = |by: &AgentId, said: &str| *by == caller.principal && said == text;
    let own = comments.iter().rev().find(|comment| is_it(&comment.by, &comment.text));
    Ok(json!({"ok": true, "id": own.map(|comment| comment.id.to_uuid())}))
}

/// Deletes a task that has ended.
async fn remove(caller: &Caller, room: &RoomView, task: MessageId) -> Result<(), No> {
    let deleted = caller.try_act(&caller.speaker(), DeleteTask(task)).await;
    deleted.map_err(|refusal| {
        if let Refusal::Mesh(Refused::Stands { .. }) = refusal {
            No::invalid("task is not in a deletable state")
        } else if let Refusal::Mesh(Refused::NotYours) = refusal {
            No::unauthorized(format!(
                "permission denied: neither the maker of this task nor the owner of team {}",
                room.name
            ))
        } else {
            refusal.into()
        }
    })
}

pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let task = record(caller, room.room, params).await?.view.task;
    remove(caller, &room, task).await?;
    Ok(json!({"ok": true}))
}

/// Of several those that can be deleted: it says how many.
pub(crate) async fn delete_some(caller: &Caller, params: &Params) -> Outcome {
    const TASKS: &[&str] = &["taskIds", "task_ids"];
    let named = params.list(TASKS)?.ok_or_else(|| No::invalid("taskIds is required"))?;
    if named.len() > DELETED_AT_ONCE_MAX {
        return Err(No::invalid(format!("taskIds must have at most {DELETED_AT_ONCE_MAX} ids")));
    }
    let room = caller.team(params, TEAM).await?;
    let known = super::tasks_of(caller, room.room).await?;
    let mut deleted = 0;
    for named in named {
        let id = named.as_str().ok_or_else(|| must_be(TASKS, "an array of ids"))?;
        let id = MessageId::from_uuid(id);
        let task = known.iter().find(|task| Some(task.task) == id && task.status.is_terminal());
        if let Some(task) = task
            && remove(caller, &room, task.task).await.is_ok()
        {
            deleted += 1;
        }
    }
    Ok(json!({"deleted": deleted}))
}

/// For programs that have only this dialect: ClawChat's `update_task`, claims included.
pub(crate) async fn update(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    works_in(caller, &room).await?;
    let view = record(caller, room.room, params).await?.view;
    let status = match params.filled(&["status"])? {
        Some(name) => {
            Some(status_named(&name).ok_or_else(|| must_be(&["status"], "a state of a task"))?)
        }
        None => None,
    };
    let percent = params.whole(&["progress", "progress_percent"], 100)?;
    let before = view.progress.as_deref();
    let step = params.text(&["step", "progress_step"])?;
    let is_set = percent.is_some() || step.is_some();
    let progress = is_set.then(|| TaskProgress {
        percent: percent
            .and_then(|percent| u8::try_from(percent).ok())
            .or(before.map(|at| at.percent))
            .unwrap_or_default(),
        step: step.or(before.map(|at| at.step.clone())).unwrap_or_default(),
    });
    let result = params.get(&["result"]).map(Value::to_string);
    let update = TaskUpdate {
        status,
        by_steps: true,
        assignee: holder(caller, params, ASSIGNED).await?,
        if_assignee: holder(caller, params, EXPECTED).await?,
        note: params.filled(&["note"])?,
        fields: Box::new(TaskFields { progress, result, ..TaskFields::default() }),
        ..TaskUpdate::of(view.task)
    };
    let stands = format!("task is {}", view.status.name());
    let task = change(caller, update, &stands).await?;
    Ok(json!({"task": task_row(&task), "id": task.task.to_uuid()}))
}

const ASSIGNED: &[&str] = &["assignee"];
const EXPECTED: &[&str] = &["ifAssignee", "if_assignee"];

/// An agent, or nobody: the empty text.
async fn holder(
    caller: &Caller,
    params: &Params,
    names: &[&'static str],
) -> Result<Option<Option<AgentId>>, No> {
    match params.text(names)?.as_deref() {
        None => Ok(None),
        Some("") => Ok(Some(None)),
        Some(named) => Ok(Some(Some(caller.agent(named).await?.agent))),
    }
}
