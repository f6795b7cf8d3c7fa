//! Programs of people: a question to an agent at another node, and connections that wait.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Duration, sleep},
};

use super::{
    connection::{Connection, Speaker as _},
    figure::{Figure, Target, Unit},
    run::Run,
};
use crate::{
    distribution::Distribution,
    goclaw::Program,
    proc,
    process::{Auth, Mesh, Plan},
};

/// Questions, one after the other.
const QUESTIONS: u64 = 1_000;
/// Connections that wait.
const CONNECTIONS: usize = 1_000;
/// Jobs that are not due, and keys whose jobs they are: a key has at most 1,000.
const JOBS: u64 = 10_000;
/// See [`JOBS`].
const KEYS: u64 = 10;
/// Processor time is looked at for so long.
const WATCHED: Duration = Duration::from_secs(20);
/// Memory is looked at when nothing more is under way.
const SETTLES: Duration = Duration::from_secs(2);
const KIB: f64 = 1024.0;

/// A mesh in which people and agents may go on and on.
async fn mesh(run: &Run, nodes: usize) -> Result<(Mesh, String, tempfile::TempDir)> {
    let temp = tempfile::tempdir()?;
    // As many questions as are measured.
    let config = temp.path().join("clawmesh.toml");
    std::fs::write(&config, "[session]\npair = { messages = 1000000000 }\n")?;
    let none = "free.messages-per-minute=none".to_owned();
    let flags =
        vec!["--config".to_owned(), config.display().to_string(), "--limit".to_owned(), none];
    let mesh = Mesh::up(Plan { auth: Auth::Key, flags, ..run.plan(nodes)? }).await?;
    let key = mesh.key().context("a key")?.to_owned();
    Ok((mesh, key, temp))
}

/// A person at one node asks an agent at another one, which answers at once.
pub(super) async fn send(run: &Run) -> Result<Vec<Figure>> {
    let (mut mesh, key, _config) = mesh(run, 2).await?;
    let mut answers = Connection::attach(mesh.nodes[1].tcp(), Some(&key), "answers").await?;
    let agent = answers.agent.clone();
    let answering = tokio::spawn(async move {
        while let Ok(told) = answers.event("message_received").await {
            let answer = json!({ "room_id": told["room_id"], "reply_to": told["message_id"], "content": "so it is" });
            answers.push("send_message", &answer);
            answers.flush().await?;
        }
        anyhow::Ok(())
    });
    let mut program = Program::at(mesh.nodes[0].http(), &key, "bench").await?;
    program.knows(&agent).await?;
    let (mut took, mut session) = (Vec::new(), Value::Null);
    for nth in 0..run.scaled(QUESTIONS) {
        let params = json!({ "agentId": agent, "sessionKey": session, "message": format!("question {nth}") });
        let began = run.clock.now_us();
        let answer = program.ask("chat.send", &params).await?;
        took.push(run.clock.now_us() - began);
        ensure!(answer["content"] == "so it is", "the answer is {answer}");
        session = answer["sessionKey"].clone();
    }
    mesh.stop().await.context("the mesh stops")?;
    answering.abort();
    let took = Distribution::new(took);
    let what = "GoClaw: `chat.send` to an agent at another node that answers at once: p50";
    let value = took.percentile(50.0);
    let figure = Figure::new("goclaw_send_p50", what, Unit::Ms, value, Target::AtMost(8.0));
    Ok(vec![figure.of(&took)])
}

/// Connections that wait for something.
pub(super) async fn idle(run: &Run) -> Result<Vec<Figure>> {
    let (mut mesh, key, _config) = mesh(run, 1).await?;
    let pid = mesh.nodes[0].pid().context("a node that runs has a process")?;
    // The first one brings all that is there once.
    let first = Program::at(mesh.nodes[0].http(), &key, "bench").await?;
    sleep(SETTLES).await;
    let alone = proc::resident(pid)?;
    let mut programs = vec![first];
    for _ in 0..CONNECTIONS {
        programs.push(Program::at(mesh.nodes[0].http(), &key, "bench").await?);
    }
    sleep(SETTLES).await;
    let with = proc::resident(pid)?;
    drop(programs);
    mesh.stop().await.context("the mesh stops")?;
    let each = with.saturating_sub(alone) as f64 / CONNECTIONS as f64 / KIB;
    let what = "GoClaw: each of 1,000 idle connections";
    Ok(vec![Figure::new("goclaw_connection", what, Unit::KiB, each, Target::AtMost(16.0))])
}

/// Jobs that wait for their time.
pub(super) async fn cron(run: &Run) -> Result<Vec<Figure>> {
    let (mut mesh, key, _config) = mesh(run, 1).await?;
    let pid = mesh.nodes[0].pid().context("a node that runs has a process")?;
    let mut owner = Program::at(mesh.nodes[0].http(), &key, "bench").await?;
    let (mut agents, mut programs) = (Vec::new(), Vec::new());
    for nth in 0..KEYS {
        let wanted = json!({ "name": format!("bench {nth}"), "scopes": ["admin"] });
        let minted = owner.ask("api_keys.create", &wanted).await?;
        let minted = minted["key"].as_str().context("a key")?.to_owned();
        let name = format!("works {nth}");
        agents.push(Connection::attach(mesh.nodes[0].tcp(), Some(&minted), &name).await?);
        programs.push(Program::at(mesh.nodes[0].http(), &minted, "bench").await?);
    }
    let without = processor_percent(pid).await?;
    let each = run.scaled(JOBS).div_ceil(KEYS);
    let mut making = JoinSet::new();
    for (mut program, agent) in programs.into_iter().zip(&agents) {
        let agent = agent.agent.clone();
        making.spawn(async move {
            for nth in 0..each {
                // Each at a minute of its own, and none within the run.
                let line = format!("{} 3 1 1 *", nth % 60);
                let job = json!({
                    "name": format!("job {nth}"), "agentId": agent, "message": "sweep", "schedule": line,
                });
                program.ask("cron.create", &job).await?;
            }
            anyhow::Ok(program)
        });
    }
    let mut programs = Vec::new();
    while let Some(program) = making.join_next().await {
        programs.push(program??);
    }
    sleep(SETTLES).await;
    let with = processor_percent(pid).await?;
    drop((programs, agents));
    mesh.stop().await.context("the mesh stops")?;
    let what = "GoClaw: 10,000 cron jobs that are not due, of a core";
    let cost = (with - without).max(0.0);
    Ok(vec![Figure::new("goclaw_cron", what, Unit::Percent, cost, Target::AtMost(0.5))])
}

/// The part of a core that a process takes, in a hundred.
async fn processor_percent(pid: u32) -> Result<f64> {
    let before = proc::processor_seconds(pid)?;
    sleep(WATCHED).await;
    Ok((proc::processor_seconds(pid)? - before) / WATCHED.as_secs_f64() * 100.0)
}
