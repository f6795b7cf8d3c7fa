//! Jobs, runs and news of both, as clients read them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use bridge::{
    schedules::{Asked, Fired, JobState, Run, Status, Target},
    seam::call::NameNodes,
};
use mesh::name::id::NodeId;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{sync::broadcast::error::RecvError, time::Instant};

use crate::{
    caller::{Caller, Speaker},
    connect::caller_of_job,
    names::uuid,
    outcome::No,
    runs,
    shared::Shared,
    times,
};

/// Names of nodes.
pub(super) type Names = BTreeMap<NodeId, String>;

impl Caller {
    /// Names of nodes; of one that nobody knows any more the beginning of its id.
    pub(super) async fn node_names(
        &self,
        nodes: impl IntoIterator<Item = NodeId> + Send,
    ) -> Result<Names, No> {
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let names = self.read(NameNodes(nodes.clone())).await?;
        Ok(nodes
            .into_iter()
            .zip(names)
            .map(|(node, name)| (node, name.unwrap_or_else(|| node.short())))
            .collect())
    }
}

fn name_of(names: &Names, node: NodeId) -> String {
    names.get(&node).cloned().unwrap_or_else(|| node.short())
}

/// A job. `own`: it is of the node's own key.
pub(super) fn row(state: &JobState, names: &Names, own: bool) -> Value {
    let JobState { job, next_ms, last } = state;
    let id = job.id.to_string();
    let schedule = job.plan.shown();
    let mut row = json!({
        "id": id,
        "name": job.name,
        "userId": job.user,
        "enabled": job.enabled,
        "cron_expression": expression(&schedule),
        "schedule": schedule,
        "payload": {"kind": "agent_turn", "message": job.message},
        "state": {},
        "createdAtMs": job.created_ms,
        "updatedAtMs": job.updated_ms,
        "deleteAfterRun": job.delete_after,
        "stateless": job.stateless,
        "deliver": job.deliver.is_some(),
        "wakeHeartbeat": false,
        "mesh": {"home": name_of(names, job.home), "scope": if own { "node" } else { "key" }},
    });
    if let Some(agent) = &job.agent {
        row["agentId"] = json!(&**agent);
        row["agent_id"] = json!(&**agent);
    }
    if let Some(deliver) = &job.deliver {
        let channel = match &deliver.target {
            Target::Room(_) => "room",
            Target::Agent(_) => "agent",
            Target::Webhook { name, .. } => name,
        };
        row["deliverChannel"] = json!(channel);
        row["deliverTo"] = json!(deliver.to);
    }
    if let Some(next_ms) = next_ms {
        row["state"]["nextRunAtMs"] = json!(next_ms);
    }
    if let Some(last) = last {
        row["state"]["lastRunAtMs"] = json!(last.at_ms);
        row["state"]["lastStatus"] = json!(last.status.name());
        if let Some(error) = &last.error {
            row["state"]["lastError"] = json!(error);
        }
    }
    row
}

/// A schedule in one text, which is one that clients can write.
fn expression(schedule: &Value) -> String {
    if let Some(expr) = schedule["expr"].as_str() {
        return expr.to_owned();
    }
    match (schedule["everyMs"].as_u64(), schedule["atMs"].as_u64()) {
        (Some(ms), _) => format!("every {}s", ms / 1_000),
        (None, at_ms) => times::text(at_ms.unwrap_or(0)).as_str().unwrap_or_default().to_owned(),
    }
}

/// The runs of a job, and of each whether an earlier one has fired its slot. One that nobody has said the end of for longer than
/// it may take has come to nothing.
pub(super) fn marked(runs: Vec<Run>, limit: Duration) -> Vec<(Run, bool)> {
    let place = |run: &Run| (run.at_ms, run.node.0);
    let mut first: BTreeMap<String, (u64, [u8; 32])> = BTreeMap::new();
    let is_slot = |run: &Run| run.status.fired() && run.slot_ms().is_some();
    for run in runs.iter().filter(|run| is_slot(run)) {
        let known = first.entry(run.slot.clone()).or_insert_with(|| place(run));
        if super::earlier(place(run), *known) {
            *known = place(run);
        }
    }
    let now_ms = times::now_ms();
    // Others have written it down until then.
    let over_ms = times::ms(limit) + 60_000;
    let mark = |mut run: Run| {
        let is_first = first.get(&run.slot).is_none_or(|known| *known == place(&run));
        let is_duplicate = is_slot(&run) && !is_first;
        if run.status == Status::Running && run.at_ms.saturating_add(over_ms) < now_ms {
            run.status = Status::Failed;
            run.error = Some("its node has not said what became of it".to_owned());
        }
        (run, is_duplicate)
    };
    runs.into_iter().map(mark).collect()
}

pub(super) fn entries(runs: &[(Run, bool)], names: &Names) -> Vec<Value> {
    runs.iter().map(|(run, duplicate)| entry(run, *duplicate, names)).collect()
}

fn entry(run: &Run, duplicate: bool, names: &Names) -> Value {
    let mut row = json!({
        "id": id_of(run),
        "ts": times::text(run.at_ms),
        "jobId": run.job.to_string(),
        "slot": run.slot,
        "status": run.status.name(),
        "node": name_of(names, run.node),
    });
    let (input, output) =
        run.tokens.map_or((None, None), |(input, output)| (Some(input), Some(output)));
    let optional = [
        ("error", run.error.as_ref().map(|text| json!(text))),
        ("summary", run.summary.as_ref().map(|text| json!(text))),
        ("durationMs", run.took_ms.map(|ms| json!(ms))),
        ("inputTokens", input.map(|count| json!(count))),
        ("outputTokens", output.map(|count| json!(count))),
        ("duplicate", duplicate.then_some(json!(true))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            row[name] = value;
        }
    }
    row
}

/// The id of a run: the same at every node.
fn id_of(run: &Run) -> String {
    let digest = Sha256::new()
        .chain_update(b"clawmesh run\0")
        .chain_update(run.job.0)
        .chain_update(run.node.0)
        .chain_update(run.slot.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid(bytes, 8)
}

/// Tells clients what becomes of jobs, at all nodes of their keys, as long as the dialect is there; and of the runs that this
/// node waits for all that they hear of others.
pub(crate) fn listen(shared: &Arc<Shared>) {
    follow(shared);
    let mut heard = shared.desk.hear_jobs();
    let shared: Weak<Shared> = Arc::downgrade(shared);
    drop(tokio::spawn(async move {
        loop {
            match heard.recv().await {
                Ok(fired) => {
                    let Some(shared) = shared.upgrade() else { return };
                    tell(&shared, &fired).await;
                }
                // More happened at once than is kept for those who hear it.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }));
}

fn follow(shared: &Arc<Shared>) {
    let mut heard = shared.desk.hear_asked();
    let shared: Weak<Shared> = Arc::downgrade(shared);
    drop(tokio::spawn(async move {
        loop {
            match heard.recv().await {
                Ok(asked) => {
                    let Some(shared) = shared.upgrade() else { return };
                    drop(tokio::spawn(async move { look_on(shared, &asked).await }));
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }));
}

async fn look_on(shared: Arc<Shared>, asked: &Asked) {
    let Asked { key, job, agent, session, room, request: (id, number) } = asked;
    let speaker = Speaker { agent: job.owner.clone(), user: job.user.clone() };
    let who = (job.user.clone(), job.owner.clone());
    // A key that is refused has no runs.
    let Ok(caller) = caller_of_job(shared, key.clone(), who).await else { return };
    let run = runs::Run {
        id: *id,
        number: *number,
        session: session.clone(),
        asked: runs::Asked::Peer(agent.clone()),
        room: *room,
        speaker,
        key: caller.print(),
        text: job.message.clone(),
        begun: Instant::now(),
    };
    runs::look_on(caller, run).await;
}

async fn tell(shared: &Shared, fired: &Fired) {
    let Fired { key, job, run, begins } = fired;
    let hears = |caller: &Caller| {
        caller.print() == *key && (caller.is_admin() || caller.principal == job.owner)
    };
    let Some(client) = shared.clients().into_iter().find(|client| hears(&client.caller)) else {
        return;
    };
    let names = client.caller.node_names([run.node]).await.unwrap_or_default();
    let status = if *begins { Status::Running } else { run.status };
    let action = match status {
        Status::Running => "running",
        Status::Done => "completed",
        Status::Failed | Status::TimedOut | Status::Skipped | Status::Missed => "error",
    };
    let mut payload = json!({
        "action": action, "jobId": job.id.to_string(), "jobName": job.name, "userId": job.user,
        "slot": run.slot, "node": name_of(&names, run.node),
    });
    if !begins {
        payload["status"] = json!(run.status.name());
        if let Some(error) = &run.error {
            payload["error"] = json!(error);
        }
    }
    for event in ["cron.fired", "cron"] {
        shared.tell(event, &payload, hears);
    }
}

#[cfg(test)]
mod tests {
    use mesh::name::id::JobId;

    use super::*;

    fn run(slot: &str, at_ms: u64, node: u8, status: Status) -> Run {
        Run {
            job: JobId([1; 16]),
            node: NodeId([node; 32]),
            place: 0,
            slot: slot.to_owned(),
            at_ms,
            status,
            error: None,
            summary: None,
            took_ms: None,
            tokens: None,
        }
    }

    #[test]
    fn of_runs_of_one_slot_the_first_counts_at_every_node() {
        let now_ms = times::now_ms();
        let asked = "00000000-0000-4000-8000-000000000000";
        let runs = vec![
            run("6", now_ms, 2, Status::Done),
            run("5", 20, 1, Status::Done),
            run("5", 10, 2, Status::Running),
            run("5", 10, 3, Status::Done),
            run("5", 5, 4, Status::Missed),
            run(asked, 8, 1, Status::Done),
            run(asked, 9, 2, Status::Done),
        ];
        let duplicates = |runs: &[Run]| {
            let marked = marked(runs.to_vec(), Duration::from_secs(600));
            marked.iter().map(|(run, duplicate)| (run.clone(), *duplicate)).collect::<Vec<_>>()
        };
        let shown = duplicates(&runs);
        let flags: Vec<bool> = shown.iter().map(|(_, duplicate)| *duplicate).collect();
        assert_eq!(flags, [false, true, false, true, false, false, false]);
        assert_eq!(shown[2].0.status, Status::Failed, "nobody has said its end for long");
        let mut turned = runs.clone();
        turned.reverse();
        let mut other = duplicates(&turned);
        other.reverse();
        assert_eq!(other, shown);
    }

    #[test]
    fn a_schedule_is_shown_as_a_text_that_can_be_written() {
        use bridge::schedules::{parse, plan::Plan};
        for plan in [
            Plan::every(90_000).unwrap(),
            Plan::at(4_000_000_000_000).unwrap(),
            Plan::cron("0 9 * * mon-fri", "UTC").unwrap(),
        ] {
            assert_eq!(parse(&expression(&plan.shown()), "UTC", 0), Ok(plan));
        }
    }
}
