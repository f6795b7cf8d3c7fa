//! ClawTank: tasks that are claimed at another node, and a busy room at which thousands look.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::{Builder, Runtime},
    sync::mpsc,
    time::{Duration, Instant, sleep, timeout},
};

use super::{
    connection::Connection,
    figure::{Figure, Target, Unit},
    load::{FanOut, Server},
    run::Run,
    single::fill,
};
use crate::{
    distribution::Distribution,
    proc,
    process::{Auth, Mesh, Plan},
    tank::Client,
};

/// Claims, one after the other.
const CLAIMS: u64 = 500;
/// Agents that claim in turn: one may claim 60 a minute.
const AGENTS: usize = 10;
/// Those who look on: as many as a node has places for.
const SPECTATORS: u64 = 2_000;
/// Members of the room at which they look, and messages a second.
const MEMBERS: usize = 50;
const PER_SECOND: u32 = 100;
/// A thousand come in some seconds.
const COME_WITHIN: Duration = Duration::from_secs(120);
/// Messages of a room that is played.
const PLAYED: u64 = 100_000;
/// Memory is looked at for so long, and so often; and before, when nothing more is under way.
const LOOKED_AT: Duration = Duration::from_secs(10);
/// See [`LOOKED_AT`].
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// See [`LOOKED_AT`].
const SETTLES: Duration = Duration::from_secs(2);
const KIB: f64 = 1024.0;
/// They come one after the other, so many at once.
const AT_ONCE: u64 = 16;

/// An agent at one node claims a task that was made at the other one: until it has it, and until a person at the other node is told.
pub(super) async fn claims(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = Mesh::up(run.plan(2)?).await?;
    let (first, second) = (mesh.nodes[0].http().to_owned(), mesh.nodes[1].http().to_owned());
    let mut maker = Connection::attach(mesh.nodes[0].tcp(), None, "makes").await?;
    maker.join("lobby").await?;
    let mut person = Client::member(&first, ("human", "ada"), None, "lobby").await?;
    let mut agents = Vec::new();
    for nth in 0..AGENTS {
        agents.push(Client::agent(&second, &format!("claims{nth}"), None, "lobby").await?);
    }
    let (mut granted, mut told) = (Vec::new(), Vec::new());
    for nth in 0..run.scaled(CLAIMS) {
        let place = usize::try_from(nth)? % AGENTS;
        let agent = &mut agents[place];
        let wanted = json!({ "room_id": "lobby", "title": format!("task {nth}") });
        let made = maker.call("assign_task", &wanted).await?;
        let made = made["task_id"].as_str().context("a task without an id")?.to_owned();
        let known = of_task(agent, "task.created", &made).await?;
        let name = format!("claims{place}");
        let claim = json!({ "task_id": known["data"]["task_id"], "agent_id": name });
        let began = run.clock.now_us();
        let (answer, heard) = tokio::join!(
            async {
                let answer = agent.ask("task.claim", &claim).await;
                (answer, run.clock.now_us() - began)
            },
            async {
                let heard = of_task(&mut person, "task.claim_accepted", &made).await;
                (heard, run.clock.now_us() - began)
            }
        );
        let accepted = answer.0?;
        ensure!(accepted["type"] == "task.claim_accepted", "the claim is answered {accepted}");
        ensure!(heard.0?["data"]["agent_id"] == *name, "it is somebody else's");
        granted.push(answer.1);
        told.push(heard.1);
        // Else its agent would soon hold as many as it may.
        let done = json!({ "task_id": made, "status": "completed" });
        maker.call("update_task", &done).await?;
        of_task(agent, "task.completed", &made).await?;
    }
    drop((maker, person, agents));
    mesh.stop().await.context("the mesh stops")?;
    let figure = |name, what, took: Vec<u64>| {
        let took = Distribution::new(took);
        let value = took.percentile(50.0);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(8.0)).of(&took)
    };
    let what = "ClawTank: `task.claim` of a task of another node → `task.claim_accepted`: p50";
    Ok(vec![
        figure("clawtank_claim_p50", what, granted),
        figure("clawtank_told_p50", "… until a person at that node is told: p50", told),
    ])
}

/// The next event of this kind and task.
async fn of_task(client: &mut Client, kind: &str, task: &str) -> Result<Value> {
    loop {
        let frame = client.hears(kind).await?;
        if frame["data"]["mesh"]["id"] == *task {
            return Ok(frame);
        }
    }
}

/// One speaks and 50 hear it; then the same, while 2,000 look on.
pub(super) async fn spectators(run: &Run) -> Result<Vec<Figure>> {
    // Rooms have settings where keys are checked.
    let mut mesh = Mesh::up(Plan { auth: Auth::Key, ..run.plan(1)? }).await?;
    let server = Server::of(&mesh, 0);
    let mut sender = server.attach("speaker").await?;
    let room = sender.make_room(&run.name("spectators")).await?;
    let mut members = Vec::new();
    for nth in 0..MEMBERS {
        let mut member = server.attach(&format!("member{nth}")).await?;
        member.join(&room).await?;
        members.push(member);
    }
    let (http, count) = (mesh.nodes[0].http().to_owned(), run.scaled(SPECTATORS));
    open_to(&http, mesh.key(), &room, count).await?;
    let (clock, per_second) = (run.clock, PER_SECOND);
    let warm_up = FanOut { room: &room, clock, per_second, lasts: run.warm_up() };
    warm_up.run(&mut sender, &mut members).await?;
    let fan_out = FanOut { lasts: run.lasts(20), ..warm_up };
    let (_, alone) = fan_out.run(&mut sender, &mut members).await?;
    let crowd = Crowd::comes(&http, &room, count).await?;
    warm_up.run(&mut sender, &mut members).await?;
    let before = crowd.frames.load(Relaxed);
    let (_, with) = fan_out.run(&mut sender, &mut members).await?;
    let shown = crowd.frames.load(Relaxed) - before;
    crowd.goes();
    // Two a second, of which a slow one may miss some.
    let due = count * fan_out.lasts.as_secs();
    ensure!(shown >= due, "{shown} frames were shown to {count}: {due} are the least");
    mesh.stop().await.context("the mesh stops")?;
    let (alone, with) = (Distribution::new(alone), Distribution::new(with));
    let figure = |name, what, percent, most| {
        let value = with.percentile(percent);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most))
            .of(&with)
            .above("without them", alone.percentile(percent))
    };
    let what = "2,000 look on at a room of 50, 100 messages/s: delivery to members p50";
    let twice = |percent| 2.0 * alone.percentile(percent) + 2.0;
    Ok(vec![
        figure("spectators_p50", what, 50.0, twice(50.0)),
        figure("spectators_p99", "… p99", 99.0, twice(99.0)),
    ])
}

/// A long room as one file: how long it takes, and what it costs in memory.
pub(super) async fn replay(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let pid = mesh.nodes[0].pid().context("a node that runs has a process")?;
    let stored = run.scaled(PLAYED);
    let room = fill(run, &Server::of(&mesh, 0), "replay", stored).await?;
    sleep(SETTLES).await;
    let before = proc::resident(pid)?;
    let began = Instant::now();
    let reading = read_file(mesh.nodes[0].http().to_owned(), room);
    let (file, most) = tokio::join!(tokio::spawn(reading), async {
        let mut most = before;
        while began.elapsed() < LOOKED_AT {
            most = most.max(proc::resident(pid)?);
            sleep(LOOK_EVERY).await;
        }
        anyhow::Ok(most)
    });
    let (file, took) = file??;
    mesh.stop().await.context("the mesh stops")?;
    let file: Value = serde_json::from_slice(&file).context("the file is not whole")?;
    let events = file["events"].as_array().context("a file without events")?;
    let said = events.iter().filter(|event| event["type"] == "agent.message").count();
    ensure!(said as u64 == stored, "{said} messages were played");
    let grows = most?.saturating_sub(before) as f64 / (KIB * KIB);
    let what = "a room of 100,000 messages as one file: GET …/replay";
    Ok(vec![
        Figure::new("replay", what, Unit::Seconds, took.as_secs_f64(), Target::AtMost(10.0)),
        Figure::new("replay_memory", "… memory", Unit::MiB, grows, Target::AtMost(32.0)),
    ])
}

async fn read_file(address: String, room: String) -> Result<(Vec<u8>, Duration)> {
    let began = Instant::now();
    let mut socket = TcpStream::connect(&address).await?;
    // An answer of HTTP/1.0 has no chunks.
    let ask = format!("GET /api/rooms/{room}/replay HTTP/1.0\r\nhost: {address}\r\n\r\n");
    socket.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    let took = began.elapsed();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no answer")?;
    ensure!(answer.starts_with(b"HTTP/1.0 200"), "it is refused");
    Ok((answer.split_off(head + 4), took))
}

/// As many may look at the room as are to.
async fn open_to(http: &str, key: Option<&str>, room: &str, count: u64) -> Result<()> {
    let mut host = Client::member(http, ("human", "host"), key, room).await?;
    let payload = json!({ "room_id": room, "settings": { "spectator_limit": count } });
    let data = json!({
        "namespace": "clawmesh.room", "extension_version": "1.0.0", "payload": payload,
    });
    host.gets("extension.room_update", &data).await?;
    Ok(())
}

/// Those who look on, on a thread of their own that gives way: elsewhere they would take nothing from the node.
struct Crowd {
    runtime: Runtime,
    frames: Arc<AtomicU64>,
}

impl Crowd {
    async fn comes(http: &str, room: &str, count: u64) -> Result<Crowd> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("crowd")
            .on_thread_start(|| {
                // Without the right to, it takes what it gets.
                let _ = rustix::process::nice(10);
            })
            .enable_all()
            .build()
            .context("cannot start those who look on")?;
        let frames = Arc::new(AtomicU64::new(0));
        let (came, mut coming) = mpsc::unbounded_channel();
        for share in 0..AT_ONCE {
            let (http, room) = (http.to_owned(), room.to_owned());
            let (came, frames) = (came.clone(), frames.clone());
            runtime.spawn(async move {
                for _ in (share..count).step_by(AT_ONCE as usize) {
                    let one = Client::spectator(&http, &room, None).await;
                    let one = one.and_then(|(client, first)| {
                        ensure!(first["type"] == "spectator.welcome", "one is told {first}");
                        Ok(client)
                    });
                    let is_lost = one.is_err();
                    let told = one.map(|mut client| {
                        let frames = frames.clone();
                        tokio::spawn(async move { client.counts(&frames).await });
                    });
                    // Nobody waits any more after the first that was turned away.
                    drop(came.send(told));
                    if is_lost {
                        break;
                    }
                }
            });
        }
        drop(came);
        let all = async {
            let mut here = 0;
            while here < count {
                coming.recv().await.context("some do not come")??;
                here += 1;
            }
            anyhow::Ok(())
        };
        timeout(COME_WITHIN, all).await.context("not all come")??;
        Ok(Crowd { runtime, frames })
    }

    fn goes(self) {
        // Threads of a runtime are not waited for in another one.
        self.runtime.shutdown_background();
    }
}
