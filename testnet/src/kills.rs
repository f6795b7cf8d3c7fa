//! Disks that are lost: daemons of this machine are killed while they answer sends, and their data is deleted. A message
//! that was answered with two copies or more has to be at all others, under its number. In [`hosts`] disks stay, and agents
//! that ask each other go on.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    process::{Daemon, Mesh},
    sim::dice::Dice,
    wire::{Agent, get, text},
};

pub mod hosts;

/// Agents that write at the node that is killed.
const WRITERS: usize = 3;
/// For things that take a moment: machines that run this are busy.
const SOON: Duration = Duration::from_secs(60);
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The results of the kills so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nodes that were killed, and their disks.
    pub kills: usize,
    /// Messages that they had answered with two copies or more: all of them are there.
    pub kept: usize,
    /// Messages that they had answered with one.
    pub alone: usize,
}

/// A message that a node had said two nodes hold.
#[derive(Debug)]
struct Promised {
    seq: u64,
    id: String,
}

/// The answers that one writer got.
#[derive(Debug, Default)]
struct Answered {
    promised: Vec<Promised>,
    alone: usize,
}

/// Kills so many nodes of a mesh of three, each while agents send there, and puts a new one in the place of each. `told`
/// hears of each kill.
///
/// # Errors
///
/// The first message that is lost, or a daemon that fails.
pub async fn play(
    mesh: &mut Mesh,
    (kills, seed): (usize, u64),
    mut told: impl FnMut(&Tally),
) -> Result<Tally> {
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    for nth in 0..kills {
        let victim = dice.index(mesh.nodes.len());
        kill(mesh, &mut dice, (nth, victim), &mut tally).await?;
        tally.kills += 1;
        told(&tally);
        let other = (victim + 1) % mesh.nodes.len();
        let ticket = mesh.nodes[other].ready().ticket.clone();
        mesh.nodes[victim] = mesh.add(&format!("after kill {nth}"), Some(ticket)).await?;
        mesh.know_each_other().await?;
    }
    Ok(tally)
}

/// Kills one node at some moment of its work, and looks for the messages at all others.
async fn kill(
    mesh: &mut Mesh,
    dice: &mut Dice,
    (nth, victim): (usize, usize),
    tally: &mut Tally,
) -> Result<()> {
    // The numbers come from the node that is killed, or from another one.
    let maker = dice.index(mesh.nodes.len());
    let key = mesh.key().map(str::to_owned);
    let mut founder = Agent::attach(mesh.nodes[maker].tcp(), key.as_deref(), "founder").await?;
    let made = json!({ "name": format!("kill {nth}"), "public": true });
    let room = text(&founder.call("create_room", made).await?, "room_id");
    let answers = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let agent = writer_in(&mesh.nodes[victim], key.as_deref(), &room).await;
        let agent = agent.with_context(|| format!("writer {writer} of kill {nth}"))?;
        writers.spawn(write(agent, room.clone(), answers.clone()));
    }
    let enough = dice.index(40) + 3;
    wait("the node answers", async || Ok(answers.load(Relaxed) >= enough)).await?;
    // At any step of its next messages.
    sleep(Duration::from_micros(dice.within(0, 8_000))).await;
    let data = mesh.nodes[victim].ready().data_dir.clone();
    mesh.nodes[victim].kill9().await?;
    fs::remove_dir_all(&data).with_context(|| format!("delete {}", data.display()))?;
    for answered in writers.join_all().await {
        tally.alone += answered.alone;
        for promised in &answered.promised {
            for (node, daemon) in mesh.nodes.iter().enumerate().filter(|(node, _)| *node != victim)
            {
                is_there(daemon, &room, promised)
                    .await
                    .with_context(|| format!("kill {nth}, of node {victim}, at node {node}"))?;
            }
        }
        tally.kept += answered.promised.len();
    }
    Ok(())
}

/// An agent of a node that is in the room.
async fn writer_in(node: &Daemon, key: Option<&str>, room: &str) -> Result<Agent> {
    let mut agent = Agent::attach(node.tcp(), key, "writer").await?;
    wait("the room is known", async || {
        match agent.call("join_room", json!({ "room_id": room })).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("room_not_found") => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
    .await?;
    Ok(agent)
}

/// Sends until the node is gone.
async fn write(mut agent: Agent, room: String, answers: Arc<AtomicUsize>) -> Answered {
    let mut answered = Answered::default();
    let said = json!({
        "room_id": room, "content": "held twice",
        "mesh": { "durable": 2, "durable_wait_ms": 500 },
    });
    while let Ok(message) = agent.call("send_message", said.clone()).await {
        answers.fetch_add(1, Relaxed);
        let copies = message["mesh"]["durable"].as_u64().unwrap_or(0);
        match (copies, message["seq"].as_u64()) {
            (2.., Some(seq)) => {
                answered.promised.push(Promised { seq, id: text(&message, "message_id") });
            }
            (_, _) => answered.alone += 1,
        }
    }
    answered
}

/// Waits until a node shows a message under its number.
async fn is_there(node: &Daemon, room: &str, promised: &Promised) -> Result<()> {
    let Promised { seq, id } = promised;
    let path = format!("/api/rooms/{room}/messages/{seq}");
    let mut last = (0, Value::Null);
    let found = wait("it is there", async || {
        last = get(node.http(), &path).await?;
        ensure!(
            last.0 != 200 || text(&last.1, "message_id") == *id,
            "{seq} was {id}, and is {}",
            last.1
        );
        Ok(last.0 == 200)
    });
    found.await.with_context(|| format!("{id}, number {seq}, was held twice"))
}

/// Waits until it is so.
async fn wait(what: &str, mut so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + SOON;
    while !so().await? {
        if Instant::now() > deadline {
            bail!(io::Error::new(io::ErrorKind::TimedOut, format!("{what}: not within {SOON:?}")));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}
