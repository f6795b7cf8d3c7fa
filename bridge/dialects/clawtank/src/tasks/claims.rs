//! `task.claim`: of all that want a task one gets it, over all nodes and dialects.

use bridge::seam::{call::ListTasks, refusal::Refusal};
use bytes::Bytes;
use mesh::{
    api::{
        agenda::{TaskUpdate, TaskView},
        command::Refused,
    },
    records::details::RoomState,
    wire::tasks::{CommentKind, TaskStatus},
};
use serde_json::json;

use super::{change, comment, confirmed, is_me, named, news, waits_for};
use crate::{
    connect::Right,
    envelope::{Request, Told},
    limits::{ALTERNATIVES_MAX, CLAIMS_PER_MINUTE, QUESTIONS_MAX, TASKS_HELD_MAX},
    problem::Problem,
    rooms,
    shared::{Confirmed, Rate},
    state::Context,
};

/// Why a claim came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Claimed,
    NotOpen,
    TooMany,
    Waits,
    HostAssigns,
}

impl Why {
    fn name(self) -> &'static str {
        match self {
            Why::Claimed => "task_already_claimed",
            Why::NotOpen => "task_not_open",
            Why::TooMany => "too_many_tasks",
            Why::Waits => "dependencies_open",
            Why::HostAssigns => "host_assigns",
        }
    }

    /// The same claim may do later.
    fn may_change(self) -> bool {
        match self {
            Why::TooMany | Why::Waits => true,
            Why::Claimed | Why::NotOpen | Why::HostAssigns => false,
        }
    }
}

/// A claim, as its agent gives reasons for it.
struct Claim {
    reason: String,
    confidence: f64,
    questions: Vec<String>,
}

impl Claim {
    fn of(request: &Request) -> Result<Claim, Problem> {
        let data = request.data();
        data.get("estimated_completion").time()?;
        let (reason, approach) = (data.get("claim_reason"), data.get("proposed_approach"));
        let reason = reason.text(2_000)?.unwrap_or_default();
        let approach = approach.text(2_000)?.unwrap_or_default();
        let both = [reason, approach].into_iter().filter(|text| !text.trim().is_empty());
        let reason = both.collect::<Vec<_>>().join("\n\n");
        if reason.len() > mesh::limits::TASK_NOTE_BYTES_MAX {
            let max = mesh::limits::TASK_NOTE_BYTES_MAX;
            let at = data.get("proposed_approach");
            return Err(at.bad(format!("with claim_reason at most {max} bytes")));
        }
        Ok(Claim {
            reason,
            confidence: data.get("confidence_level").number(0.0, 1.0)?.unwrap_or(0.0),
            questions: data.get("questions").texts(QUESTIONS_MAX, 1_000)?,
        })
    }
}

pub(crate) async fn claim(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let data = request.data();
    let agent = cx.agent()?.clone();
    is_me(cx, &data.get("agent_id"))?;
    cx.member.rights.may(Right::ClaimTask, false)?;
    let claim = Claim::of(request)?;
    cx.shared.take(&agent, Rate::per_minute("claims", CLAIMS_PER_MINUTE))?;
    let task = named(cx, request, &data.get("task_id")).await?;
    if let Some((why, details)) = hindrance(cx, &task).await? {
        return rejected(cx, request, &task, (why, details)).await;
    }
    let note = Some(claim.reason.clone()).filter(|reason| !reason.is_empty());
    let update = TaskUpdate {
        assignee: Some(Some(agent.clone())),
        // Of several at the same moment the sequencer of the room grants one.
        if_assignee: Some(None),
        if_status: Some(TaskStatus::Pending),
        note,
        ..TaskUpdate::of(task.task)
    };
    let won = match change(cx, update).await {
        Ok(won) => won,
        Err(Refusal::Mesh(Refused::Held { holder })) => {
            let holder = holder.as_deref().unwrap_or("another agent");
            let details = format!("the task is held by {holder}");
            return rejected(cx, request, &task, (Why::Claimed, details)).await;
        }
        Err(Refusal::Mesh(Refused::Stands { .. })) => {
            let details = "the task is not open".to_owned();
            return rejected(cx, request, &task, (Why::NotOpen, details)).await;
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let name = cx.member.name();
    cx.shared.grace.claimed((&agent, &name), &cx.member.key, (won.room, won.task));
    let told = news::claimed(cx.style(), &won, &claim.reason, claim.confidence);
    let frames = confirmed(cx, request, (&won, Confirmed::Claimed), told)?;
    for question in claim.questions {
        // The task is the agent's now: a question that cannot be kept does not change that.
        if let Err(refusal) = comment(cx, won.task, (CommentKind::Note, question)).await {
            tracing::debug!(?refusal, "a question of a claim was not kept");
        }
    }
    Ok(frames)
}

/// What stands against a claim before anybody is asked for it.
async fn hindrance(cx: &Context, task: &TaskView) -> Result<Option<(Why, String)>, Problem> {
    let set = rooms::set(cx, task.room).await?;
    rooms::takes(&set)?;
    match set.state() {
        RoomState::Paused => return Err(Problem::conflict("the room is paused", "room_paused")),
        RoomState::Lobby | RoomState::Active | RoomState::Archived => {}
    }
    if let Some(holder) = &task.assignee {
        return Ok(Some((Why::Claimed, format!("the task is held by {holder}"))));
    }
    if task.status != TaskStatus::Pending {
        return Ok(Some((Why::NotOpen, format!("the task is {}", task.status.name()))));
    }
    if set.host_assigns() {
        let details = "the hosts of this room give tasks to agents".to_owned();
        return Ok(Some((Why::HostAssigns, details)));
    }
    let open = waits_for(cx, task).await?;
    if !open.is_empty() {
        return Ok(Some((Why::Waits, format!("{} tasks are to be done before", open.len()))));
    }
    let held = held(cx).await?;
    if held >= TASKS_HELD_MAX {
        let details = format!("the agent holds {held} tasks, and may hold {TASKS_HELD_MAX}");
        return Ok(Some((Why::TooMany, details)));
    }
    Ok(None)
}

/// How many tasks the agent holds in the rooms of its connection.
async fn held(cx: &Context) -> Result<usize, Problem> {
    let agent = cx.agent()?.clone();
    let mut held = 0;
    for room in cx.rooms() {
        let tasks = cx.ask(ListTasks { room, status: None }).await?;
        let is_held =
            |task: &&TaskView| task.assignee.as_ref() == Some(&agent) && !task.status.is_terminal();
        held += tasks.iter().filter(is_held).count();
    }
    Ok(held)
}

/// To the claimer alone, with others that it may take.
async fn rejected(
    cx: &Context,
    request: &Request,
    task: &TaskView,
    (why, details): (Why, String),
) -> Result<Vec<Bytes>, Problem> {
    let tasks = cx.ask(ListTasks { room: task.room, status: Some(TaskStatus::Pending) }).await?;
    let is_open = |other: &&TaskView| other.assignee.is_none() && other.task != task.task;
    let mut open: Vec<&TaskView> = tasks.iter().filter(is_open).collect();
    let is_alike = |other: &TaskView| other.labels.iter().any(|label| task.labels.contains(label));
    // Sorting keeps the order of those that are alike.
    open.sort_by_key(|other| !is_alike(other));
    let style = cx.style();
    let others: Vec<String> =
        open.into_iter().take(ALTERNATIVES_MAX).map(|other| style.task(other)).collect();
    let data = json!({
        "task_id": style.task(task),
        "agent_id": &**cx.agent()?,
        "rejection_reason": why.name(),
        "details": details,
        "suggested_alternatives": others,
        "retry_allowed": why.may_change(),
    });
    let told = Told::fresh("task.claim_rejected", data).answering(&request.related);
    Ok(vec![style.in_room(told, task.room)])
}
