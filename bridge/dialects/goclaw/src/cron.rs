//! `cron.*`: jobs that are fired at times. Whose turn it is, and which node's, is the bridge's affair
//! ([schedules](bridge::schedules)); here are the names that clients have for it.

mod asked;
mod rows;

use std::{cmp::Ordering, sync::Arc};

use bridge::schedules::{Job, JobState, NotChanged, new_job};
use mesh::name::id::JobId;
use serde_json::{Value, json};

pub(crate) use self::rows::listen;
use self::{
    asked::{Change, JOB},
    rows::{entries, marked, row},
};
use crate::{
    caller::Caller,
    outcome::{Code, No, Outcome},
    params::{Params, is_required},
    times,
};

/// Entries of an answer.
const ENTRIES_MAX: u64 = 200;

impl From<NotChanged> for No {
    fn from(not: NotChanged) -> No {
        match not {
            NotChanged::NoJob => No::not_found("job not found"),
            NotChanged::NameTaken => {
                No::new(Code::AlreadyExists, "another job of the key has this name")
            }
            NotChanged::NoKeys => No::new(
                Code::NotImplemented,
                "this node checks no keys, so nobody has jobs: start it without --no-auth",
            ),
            NotChanged::SwitchedOff => No::unavailable(
                "this node fires no jobs: its operator sets cron.enabled".to_owned(),
            ),
            NotChanged::Refused(refusal) => refusal.into(),
        }
    }
}

impl Caller {
    /// The jobs that it may see, by name: its own; an administrator's all of the key.
    fn jobs(&self) -> Vec<JobState> {
        let mut jobs = self.shared.desk.jobs(self.print());
        jobs.retain(|state| self.is_admin() || state.job.owner == self.principal);
        jobs.sort_by(|one, other| one.job.name.cmp(&other.job.name));
        jobs
    }

    fn job(&self, params: &Params) -> Result<JobState, No> {
        let id = params.required(JOB)?;
        let job = JobId::from_uuid(&id.to_lowercase());
        let found = self.jobs().into_iter().find(|state| Some(state.job.id) == job);
        found.ok_or_else(|| No::not_found(format!("job not found: {id}")))
    }

    /// Writes a job, as the node at which it is edited.
    async fn put(&self, job: Job, is_new: bool) -> Result<JobState, No> {
        let now_ms = times::now_ms();
        let home = self.shared.desk.config().here.node;
        let job = Job { home, updated_ms: now_ms, ..job };
        Ok(self.shared.desk.put_job(&self.key, job, is_new).await?)
    }

    async fn shown(&self, state: &JobState) -> Outcome {
        let names = self.node_names([state.job.home]).await?;
        let job = row(state, &names, self.owner);
        Ok(json!({"id": job["id"], "job": job}))
    }
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let disabled = params.flag(&["includeDisabled"])?.unwrap_or(true);
    let mut jobs = caller.jobs();
    jobs.retain(|state| disabled || state.job.enabled);
    let names = caller.node_names(jobs.iter().map(|state| state.job.home)).await?;
    let rows: Vec<Value> = jobs.iter().map(|state| row(state, &names, caller.owner)).collect();
    let status = json!({"enabled": caller.shared.desk.fires_jobs(), "jobs": rows.len()});
    Ok(json!({"jobs": rows, "status": status}))
}

pub(crate) async fn create(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let change = Change::read(caller, params, None).await?;
    let name = change.name.ok_or_else(|| is_required(&["name"]))?;
    let plan = change.plan.ok_or_else(|| is_required(asked::SCHEDULE))?;
    let message = change.message.ok_or_else(|| is_required(&["message"]))?;
    let (agent, deliver) = (change.agent.flatten(), change.deliver.flatten());
    let now_ms = times::now_ms();
    let job = Job {
        id: new_job(),
        name,
        plan,
        message,
        agent,
        user: caller.user.clone(),
        owner: caller.principal.clone(),
        deliver,
        enabled: change.enabled.unwrap_or(true),
        stateless: change.stateless.unwrap_or(false),
        delete_after: change.delete_after.unwrap_or(false),
        home: caller.shared.desk.config().here.node,
        from_ms: now_ms,
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    asked::goes_somewhere(&job)?;
    let state = caller.put(job, true).await?;
    caller.shown(&state).await
}

pub(crate) async fn update(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let JobState { job, .. } = caller.job(params)?;
    let patch = params.object(&["patch", "updates"])?.cloned().map(Params::new);
    let change = Change::read(caller, patch.as_ref().unwrap_or(params), Some(&job)).await?;
    let job = change.of(job, times::now_ms());
    asked::goes_somewhere(&job)?;
    let state = caller.put(job, false).await?;
    caller.shown(&state).await
}

pub(crate) async fn toggle(caller: &Caller, params: &Params) -> Outcome {
    let JobState { job, .. } = caller.job(params)?;
    let enabled = params.flag(&["enabled"])?.unwrap_or(!job.enabled);
    let id = job.id.to_string();
    if enabled != job.enabled {
        // Slots of the time when it was off are not missed.
        let job = Job { enabled, from_ms: times::now_ms().max(job.from_ms), ..job };
        caller.put(job, false).await?;
    }
    Ok(json!({"jobId": id, "id": id, "enabled": enabled}))
}

pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let JobState { job, .. } = caller.job(params)?;
    caller.shared.desk.delete_job(&caller.key, job.id).await?;
    Ok(json!({"deleted": true, "id": job.id.to_string()}))
}

pub(crate) async fn status(caller: &Caller, params: &Params) -> Outcome {
    let jobs = caller.jobs();
    let mut status = json!({"enabled": caller.shared.desk.fires_jobs(), "jobs": jobs.len()});
    let next_ms = if params.get(JOB).is_some() {
        let state = caller.job(params)?;
        let shown = caller.shown(&state).await?;
        (status["job"], status["id"]) = (shown["job"].clone(), shown["id"].clone());
        state.next_ms
    } else {
        jobs.iter().filter_map(|state| state.next_ms).min()
    };
    if let Some(next_ms) = next_ms {
        status["nextRunAtMs"] = json!(next_ms);
    }
    Ok(status)
}

pub(crate) fn run(caller: &Caller, params: &Params) -> Outcome {
    let state = caller.job(params)?;
    let is_due = state.next_ms.is_some_and(|next_ms| next_ms <= times::now_ms());
    match params.filled(&["mode"])?.as_deref() {
        None | Some("force") => {}
        Some("due") if is_due => {}
        Some("due") => return Ok(json!({"ok": true, "ran": false, "reason": "not due"})),
        Some(_) => return Err(No::invalid("mode must be force or due")),
    }
    caller.count_write()?;
    let slot = caller.shared.desk.fire_job(caller.print(), state.job.id)?;
    Ok(json!({"ok": true, "ran": true, "runSlot": slot}))
}

pub(crate) async fn runs(caller: &Caller, params: &Params) -> Outcome {
    let JobState { job, .. } = caller.job(params)?;
    let (limit, offset) = (params.limit(20, ENTRIES_MAX)?, params.offset()?);
    let desk = &caller.shared.desk;
    let mut runs = desk.runs(caller.print(), job.id).await?;
    // Those of each node are kept, and the newest of all are shown.
    runs.truncate(usize::try_from(ENTRIES_MAX).unwrap_or(usize::MAX));
    let runs = marked(runs, desk.config().run_limit);
    let total = runs.len();
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let shown: Vec<_> =
        runs.into_iter().skip(skipped).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
    let names = caller.node_names(shown.iter().map(|(run, _)| run.node)).await?;
    Ok(json!({"entries": entries(&shown, &names), "total": total}))
}

/// The order of runs of one slot: the first one counts.
fn earlier(one: (u64, [u8; 32]), other: (u64, [u8; 32])) -> bool {
    one.cmp(&other) == Ordering::Less
}
