//! Real daemons, real sockets, signals: the wiring of it all.
//!
//! In reading order: [`calm`] (nobody fails), [`killed`] (kill -9 under load), [`returned`] (agents of a
//! killed node), [`joined`] (a node with a past joins), [`private`] (rooms that are not for all nodes), [`hostile`] (members and clients that attack). The agents are [`testnet::wire`]'s: they repair nothing.

mod calm;
mod hostile;
mod joined;
mod killed;
mod load;
mod private;
mod returned;

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use testnet::{
    binary,
    process::{Auth, Daemon, Mesh, Plan, Terminal},
    wire::{Agent, Event, get, text},
};
use tokio::{runtime::Runtime, task::JoinSet, time};

/// For steps that should take a moment: machines that run tests are busy.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// For one test.
const TEST_WITHIN: Duration = Duration::from_secs(300);
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for one test alone: no more than three daemons run at a time, and a promise in seconds is
/// not measured beside a simulation.
pub(crate) fn machine() -> RwLockWriteGuard<'static, ()> {
    // A test that failed leaves nothing behind.
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// A part of the machine, for a test that promises nothing in seconds and mostly waits: others like it run beside it.
pub(crate) fn part_of_the_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test on a mesh of its own; its failure shows the newest logs of the nodes.
pub(crate) fn on(nodes: usize, auth: Auth, test: impl AsyncFnOnce(&mut Mesh) -> Result<()>) {
    on_with(&[], nodes, auth, test);
}

/// With further flags for its nodes.
fn on_with(
    flags: &[&str],
    nodes: usize,
    auth: Auth,
    test: impl AsyncFnOnce(&mut Mesh) -> Result<()>,
) {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let terminal = Terminal::Shared;
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let plan = Plan { binary, nodes, auth, keep: None, flags, terminal };
    let runtime = Runtime::new().expect("the system gives threads");
    runtime.block_on(async {
        let mut mesh = Mesh::up(plan).await.unwrap_or_else(|error| panic!("{error}"));
        let done = time::timeout(TEST_WITHIN, test(&mut mesh)).await;
        let done = done.unwrap_or_else(|_| bail!("not done after {TEST_WITHIN:?}"));
        if let Err(error) = done {
            let log = |node: &Daemon| format!("{}:\n{}\n", node.ready().name, node.log());
            let logs: String = mesh.nodes.iter().map(log).collect();
            panic!("{error:#}\n\n{logs}");
        }
    });
}

/// Waits until it is so.
async fn until(what: &str, mut so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + SOON;
    while !so().await? {
        ensure!(Instant::now() < deadline, "{what}: not within {SOON:?}");
        time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

async fn agent(mesh: &Mesh, node: usize, name: &str) -> Result<Agent> {
    Ok(Agent::attach(mesh.nodes[node].tcp(), mesh.key(), name).await?)
}

async fn expect(agent: &mut Agent, kind: &str, fields: Value) -> Result<Event> {
    let what = format!("{kind} {fields} at {}", agent.name);
    Ok(agent.event(&what, SOON, |event| event.is(kind, &fields)).await?)
}

async fn new_room(by: &mut Agent, name: &str) -> Result<String> {
    let room = by.call("create_room", json!({ "name": name, "public": true })).await?;
    Ok(text(&room, "room_id"))
}

/// Joins a room, which may have been made on another node a moment ago.
async fn join(agent: &mut Agent, room: &str) -> Result<()> {
    until("the room is known", async || {
        match agent.call("join_room", json!({ "room_id": room })).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("room_not_found") => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// Waits until the room has so many members here.
async fn listed(agent: &mut Agent, room: &str, count: usize) -> Result<()> {
    until("all members are listed", async || {
        let listed = agent.call("list_agents", json!({ "room_id": room })).await?;
        Ok(listed["agents"].as_array().map(Vec::len) == Some(count))
    })
    .await
}

/// Waits until everybody lists everybody.
async fn all_listed(room: &str, agents: &mut [Agent]) -> Result<()> {
    let count = agents.len();
    for agent in agents {
        listed(agent, room, count).await?;
    }
    Ok(())
}

async fn say(agent: &mut Agent, room: &str, content: &str) -> Result<Said> {
    let payload = json!({ "room_id": room, "content": content });
    Ok(Said::of(&agent.call("send_message", payload).await?))
}

/// A message, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    seq: u64,
    id: String,
    content: String,
}

impl Said {
    fn of(message: &Value) -> Said {
        let seq = message["seq"].as_u64().unwrap_or(0);
        Said { seq, id: text(message, "message_id"), content: text(message, "content") }
    }

    /// Those of a room among events.
    fn among(events: &[Event], room: &str) -> Vec<Said> {
        let of_room = json!({ "room_id": room });
        let messages = events.iter().filter(|event| event.is("message_received", &of_room));
        messages.map(|event| Said::of(&event.body)).collect()
    }
}

/// A room's whole history as a client pages through it.
async fn history(agent: &mut Agent, room: &str) -> Result<Vec<Said>> {
    let mut all: Vec<Said> = Vec::new();
    loop {
        let since = all.last().map_or(0, |last| last.seq);
        let page = json!({ "room_id": room, "since_seq": since, "limit": 500 });
        let page = agent.call("get_history", page).await?;
        let page = page["messages"].as_array().cloned().unwrap_or_default();
        if page.is_empty() {
            rises(&all)?;
            return Ok(all);
        }
        all.extend(page.iter().map(Said::of));
    }
}

/// The histories of a room at all nodes, once all have the same messages, at least those of `least`.
async fn histories(mesh: &Mesh, room: &str, least: &[Said]) -> Result<Vec<Vec<Said>>> {
    let deadline = Instant::now() + SOON;
    loop {
        let mut all = Vec::new();
        for node in 0..mesh.nodes.len() {
            all.push(history(&mut agent(mesh, node, "reader").await?, room).await?);
        }
        let contents: Vec<BTreeMap<&str, &str>> = all
            .iter()
            .map(|rows| rows.iter().map(|row| (row.id.as_str(), row.content.as_str())).collect())
            .collect();
        let missing = |at: &BTreeMap<&str, &str>| -> Vec<Said> {
            let has = |said: &Said| at.get(said.id.as_str()) == Some(&said.content.as_str());
            least.iter().filter(|said| !has(said)).cloned().collect()
        };
        let same = contents.iter().all(|content| *content == contents[0]);
        if same && missing(&contents[0]).is_empty() {
            return Ok(all);
        }
        if Instant::now() > deadline {
            let counts: Vec<usize> = all.iter().map(Vec::len).collect();
            let missing: Vec<Vec<Said>> = contents.iter().map(missing).collect();
            bail!("histories of {counts:?} messages differ, or lack these: {missing:?}");
        }
        time::sleep(LOOK_EVERY).await;
    }
}

fn rises(messages: &[Said]) -> Result<()> {
    for pair in messages.windows(2) {
        ensure!(pair[0].seq < pair[1].seq, "{:?} comes before {:?}", pair[0], pair[1]);
    }
    Ok(())
}

/// Numbers 1, 2, 3 … without a gap.
fn is_dense(messages: &[Said]) -> Result<()> {
    for (at, message) in (1..).zip(messages) {
        ensure!(message.seq == at, "number {at} is not there, but {message:?}");
    }
    Ok(())
}

/// Every number that anybody was told is the name of one message, and every node knows it.
async fn names_resolve(mesh: &Mesh, room: &str, told: &[Said]) -> Result<()> {
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    for said in told {
        let id = names.entry(said.seq).or_insert(&said.id);
        ensure!(*id == said.id, "{} is the name of {id} and of {}", said.seq, said.id);
    }
    let mut nodes = JoinSet::new();
    for node in &mesh.nodes {
        let (http, room) = (node.http().to_owned(), room.to_owned());
        let names: Vec<(u64, String)> =
            names.iter().map(|(seq, id)| (*seq, (*id).to_owned())).collect();
        nodes.spawn(async move {
            for (seq, id) in names {
                let answer = get(&http, &format!("/api/rooms/{room}/messages/{seq}")).await?;
                let found = (answer.0, text(&answer.1, "message_id"));
                ensure!(found == (200, id.clone()), "{http}: {seq} of {id} is {answer:?}");
            }
            Ok(())
        });
    }
    nodes.join_all().await.into_iter().collect()
}
