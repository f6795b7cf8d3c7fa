//! `task.status` and `task.completed`: the holder of a task says how it goes.

use bytes::Bytes;
use mesh::{
    api::agenda::{TaskUpdate, TaskView},
    limits::{TASK_NOTE_BYTES_MAX, TASK_RESULT_BYTES_MAX, TASK_STEP_BYTES_MAX},
    wire::tasks::{CommentKind, TaskFields, TaskProgress, TaskStatus},
};
use serde_json::{Value, json};

use super::{change, comment, confirmed, holds, is_me, named, news, stands};
use crate::{
    agents::percent,
    connect::Right,
    envelope::Request,
    fields::At,
    limits::{BLOCKERS_MAX, STATUS_PER_MINUTE},
    problem::Problem,
    rooms,
    shared::{Confirmed, Rate},
    state::Context,
};

/// How a task goes, as its holder says.
struct Report {
    status: Option<TaskStatus>,
    /// It is nobody's any more.
    releases: bool,
    progress: Option<TaskProgress>,
    notes: Option<String>,
    blockers: Vec<String>,
}

impl Report {
    fn of(data: &At<'_>, task: &TaskView) -> Result<Report, Problem> {
        let at = data.get("status");
        let word = at.words(64)?;
        let blockers = data.get("blockers").texts(BLOCKERS_MAX, 1_000)?;
        let notes = data.get("notes").text(TASK_NOTE_BYTES_MAX)?;
        if notes.is_some_and(|notes| notes.len() > TASK_NOTE_BYTES_MAX) {
            let text = format!("must have at most {TASK_NOTE_BYTES_MAX} bytes");
            return Err(data.get("notes").bad(text));
        }
        data.get("time_tracking").object()?;
        let (status, step) = match word {
            _ if !blockers.is_empty() => (TaskStatus::Blocked, None),
            "blocked" => (TaskStatus::Blocked, None),
            "waiting_approval" => (TaskStatus::InReview, None),
            "failed" => (TaskStatus::Failed, None),
            "open" => (TaskStatus::Pending, None),
            "completed" => return Err(at.bad("say task.completed")),
            "in_progress" => (TaskStatus::InProgress, None),
            other => (TaskStatus::InProgress, Some(other)),
        };
        Ok(Report {
            status: Some(status),
            releases: status == TaskStatus::Pending,
            progress: progress(data, step, task)?,
            notes: notes.filter(|notes| !notes.trim().is_empty()).map(str::to_owned),
            blockers,
        })
    }

    fn update(&self, cx: &Context, task: &TaskView) -> Result<TaskUpdate, Problem> {
        let fields = TaskFields { progress: self.progress.clone(), ..TaskFields::default() };
        let own = Some(Some(cx.agent()?.clone()));
        Ok(TaskUpdate {
            status: self.status,
            by_steps: true,
            assignee: self.releases.then_some(None),
            // Nobody gives back what is another one's by now.
            if_assignee: own.filter(|_| self.releases),
            note: self.notes.clone(),
            kind: CommentKind::Status,
            fields: Box::new(fields),
            ..TaskUpdate::of(task.task)
        })
    }
}

/// How far the work is. A part that is not said stays as it was.
fn progress(
    data: &At<'_>,
    step: Option<&str>,
    task: &TaskView,
) -> Result<Option<TaskProgress>, Problem> {
    let at = data.get("progress");
    at.object()?;
    let part = at.get("percentage").number(0.0, 1.0)?;
    let named = at.get("current_step");
    let said = named.text(TASK_STEP_BYTES_MAX)?;
    if said.is_some_and(|step| step.len() > TASK_STEP_BYTES_MAX) {
        return Err(named.bad(format!("must have at most {TASK_STEP_BYTES_MAX} bytes")));
    }
    let step = said.or(step);
    if part.is_none() && step.is_none() {
        return Ok(None);
    }
    let before = task.progress.as_deref();
    let percent = part.map(percent).or(before.map(|at| at.percent)).unwrap_or_default();
    let step = step.or(before.map(|at| &*at.step)).unwrap_or_default().to_owned();
    Ok(Some(TaskProgress { percent, step }))
}

pub(crate) async fn report(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let data = request.data();
    let task = own(cx, request).await?;
    let report = Report::of(&data, &task)?;
    let update = report.update(cx, &task)?;
    let mut now = change(cx, update).await.map_err(stands)?;
    for blocker in &report.blockers {
        let said = (CommentKind::Blocker, blocker.clone());
        now = comment(cx, task.task, said).await.map_err(stands)?;
    }
    let told = news::status(cx.style(), &now, report.notes.as_deref());
    confirmed(cx, request, (&now, Confirmed::Status), told)
}

/// The task of a report, which is the client's own.
async fn own(cx: &Context, request: &Request) -> Result<TaskView, Problem> {
    let data = request.data();
    let agent = cx.agent()?.clone();
    is_me(cx, &data.get("agent_id"))?;
    cx.member.rights.may(Right::ClaimTask, false)?;
    cx.shared.take(&agent, Rate::per_minute("reports", STATUS_PER_MINUTE))?;
    let task = named(cx, request, &data.get("task_id")).await?;
    holds(cx, &task)?;
    rooms::takes(&rooms::set(cx, task.room).await?)?;
    Ok(task)
}

/// What has come of a task, as its holder says.
fn result(data: &At<'_>) -> Result<String, Problem> {
    let (made, met) = (data.get("deliverables"), data.get("completion_summary"));
    made.object()?;
    for name in ["files_created", "files_modified"] {
        made.get(name).texts(1_000, 1_000)?;
    }
    for commit in made.get("git_commits").list(1_000)? {
        let sha = commit.get("sha");
        let text = sha.words(40)?;
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !is_hex || !(7..=40).contains(&text.len()) {
            return Err(sha.bad("must be 7 to 40 hex digits"));
        }
    }
    made.get("pull_request").object()?;
    met.object()?;
    let result = json!({
        "deliverables": made.value().unwrap_or(&Value::Null),
        "completion_summary": met.value().unwrap_or(&Value::Null),
    })
    .to_string();
    if result.len() > TASK_RESULT_BYTES_MAX {
        let text = format!("with completion_summary at most {TASK_RESULT_BYTES_MAX} bytes");
        return Err(made.bad(text));
    }
    Ok(result)
}

pub(crate) async fn complete(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let data = request.data();
    let result = result(&data)?;
    let wants_review = data.get("review_requested").flag()?.unwrap_or(false);
    let task = own(cx, request).await?;
    let set = rooms::set(cx, task.room).await?;
    let reviewed = wants_review || task.facts.requires_approval || set.requires_approval();
    let status = if reviewed { TaskStatus::InReview } else { TaskStatus::Completed };
    if task.status.is_terminal() || task.status == TaskStatus::InReview {
        let text = format!("the task is {}", task.status.name());
        return Err(Problem::conflict(text, "state"));
    }
    let update = TaskUpdate {
        status: Some(status),
        by_steps: true,
        fields: Box::new(TaskFields { result: Some(result), ..TaskFields::default() }),
        ..TaskUpdate::of(task.task)
    };
    let now = change(cx, update).await.map_err(stands)?;
    let told = news::completed(cx.style(), &now);
    confirmed(cx, request, (&now, Confirmed::Completed), told)
}
