//! Rows of several nodes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    connection::Connection,
    figure::{Figure, Target, Unit},
    load::{FanOut, Pump, Pumped, Server, pump},
    run::Run,
    single::fill,
};
use crate::{
    distribution::Distribution,
    pipe::Pipe,
    proc,
    process::{Auth, Daemon, Mesh},
};

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long nodes may take to agree.
const AGREED_WITHIN: Duration = Duration::from_secs(120);
/// From one of two nodes to the other, where agents do more than talk.
const BETWEEN: Duration = Duration::from_millis(10);
/// After so long they have measured it.
const MEASURED_WITHIN: Duration = Duration::from_secs(4);
/// Rooms in which something is done, once each.
const ROOMS: u64 = 200;
/// Messages that two nodes hold, one after the other.
const HELD: u64 = 1_000;
/// Messages that each side of a split says.
const APART: u64 = 10_000;
/// Messages that a newcomer has to fetch.
const TO_FETCH: u64 = 100_000;
/// Nodes of the mesh in which one is idle.
const IDLE_NODES: usize = 5;

/// From one node to another.
pub(super) async fn hop(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(2).await?;
    let [here, there] = [Server::of(&mesh, 0), Server::of(&mesh, 1)];
    let mut sender = here.attach("here").await?;
    let room = sender.make_room(&run.name("hop")).await?;
    let mut member = reach(&there, "there", &room).await?;
    let lasts = run.lasts(10);
    let fan_out = FanOut { room: &room, clock: run.clock, per_second: 100, lasts };
    let (_, heard) = fan_out.run(&mut sender, std::slice::from_mut(&mut member)).await?;
    // The room's sequencer is where it was made.
    let (oks, _) = fan_out.run(&mut member, std::slice::from_mut(&mut sender)).await?;
    let (heard, oks) = (Distribution::new(heard), Distribution::new(oks));
    // A message is on the disk, goes there, and is on the disk there.
    let floor = 2.0 * run.floors.fsync.percentile(50.0) + run.floors.gossip.percentile(50.0);
    let figure = |name, what, of: &Distribution, percent, most| {
        let value = of.percentile(percent);
        Figure::new(name, what, Unit::Ms, value, Target::AtMost(most)).of(of)
    };
    let what = "node to node, 100 messages/s: delivery p50";
    Ok(vec![
        figure("hop_p50", what, &heard, 50.0, 4.0).above("2 fsyncs and a hop, p50", floor),
        figure("hop_p99", "… p99", &heard, 99.0, 20.0),
        figure("hop_ok_p50", "… `ok` where the sequencer is not: p50", &oks, 50.0, 8.0)
            .above("2 fsyncs and a hop, p50", floor),
    ])
}

/// Requests that wait for other nodes, and requests that do not: at the node that gives the numbers, so that none waits
/// for these.
pub(super) async fn acts(run: &Run) -> Result<Vec<Figure>> {
    let (mut mesh, pipe) = piped(run).await?;
    pipe.set(|state| (state.there.delay, state.back.delay) = (BETWEEN, BETWEEN));
    // Until both have seen how long it takes now.
    sleep(MEASURED_WITHIN).await;
    let mut agent = Server::of(&mesh, 0).attach("agent").await?;
    let mut took: [Vec<u64>; 4] = Default::default();
    for nth in 0..run.scaled(ROOMS) {
        let name = format!("{}-{nth}", run.name("acts"));
        let made = agent.call("create_room", &json!({ "name": name, "public": true })).await?;
        let room = json!({ "room_id": made["room_id"] });
        let options = json!(["this", "that"]);
        let vote = json!({ "room_id": made["room_id"], "title": "which?", "options": options });
        let acts = [
            ("join_room", &room),
            ("get_history", &room),
            ("create_vote", &vote),
            ("elect_leader", &room),
        ];
        for (took, (kind, payload)) in took.iter_mut().zip(acts) {
            let began = run.clock.now_us();
            agent.call(kind, payload).await?;
            took.push(run.clock.now_us() - began);
        }
    }
    mesh.stop().await?;
    let trip = 2.0 * BETWEEN.as_secs_f64() * 1_000.0;
    let names = [
        ("join_p50", "2 nodes, 10 ms each way: `join_room` of a room that is known, p50"),
        ("page_p50", "… `get_history` of it"),
        ("vote_p50", "… `create_vote`, a round trip included"),
        ("election_p50", "… `elect_leader`, a round trip included"),
    ];
    let waits = [0.0, 0.0, trip, trip];
    let figures = names.into_iter().zip(took).zip(waits).map(|(((name, what), took), waits)| {
        let took = Distribution::new(took);
        let most = Target::AtMost(waits + 10.0);
        Figure::new(name, what, Unit::Ms, took.percentile(50.0), most).of(&took)
    });
    Ok(figures.collect())
}

/// Sends that wait until two of three nodes hold the message.
pub(super) async fn copies(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(3).await?;
    let mut first = Server::of(&mesh, 0).attach("first").await?;
    let room = first.make_room(&run.name("copies")).await?;
    let second = reach(&Server::of(&mesh, 1), "second", &room).await?;
    let floor = 2.0 * run.floors.fsync.percentile(50.0);
    let rows = [
        ("copies_p50", "3 nodes, `durable: 2`, where the numbers are given: p50", first),
        ("copies_other_p50", "… at another node: p50", second),
    ];
    let mut figures = Vec::new();
    for (name, what, mut sender) in rows {
        let mut took = Vec::new();
        let said = json!({ "room_id": room, "content": "x".repeat(200), "mesh": { "durable": 2 } });
        for _ in 0..run.scaled(HELD) {
            let began = run.clock.now_us();
            let message = sender.call("send_message", &said).await?;
            took.push(run.clock.now_us() - began);
            ensure!(message["mesh"]["durable"].as_u64() >= Some(2), "too few hold {message}");
        }
        let took = Distribution::new(took);
        let figure = Figure::new(name, what, Unit::Ms, took.percentile(50.0), Target::AtMost(4.0));
        figures.push(figure.of(&took).above("2 fsyncs, p50", floor));
    }
    Ok(figures)
}

/// Writers on all nodes in one room.
pub(super) async fn writers(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(3).await?;
    let mut first = Server::of(&mesh, 0).attach("writer0").await?;
    let room = first.make_room(&run.name("writers")).await?;
    let mut pumps = vec![Pump::new(first, &room, 0, run.clock)];
    for sender in 1..6 {
        let name = format!("writer{sender}");
        let connection = reach(&Server::of(&mesh, sender % 3), &name, &room).await?;
        pumps.push(Pump::new(connection, &room, sender, run.clock));
    }
    pump(&mut pumps, 16, run.warm_up(), u64::MAX).await?;
    let Pumped { acknowledged, took } = pump(&mut pumps, 16, run.lasts(5), u64::MAX).await?;
    let value = acknowledged as f64 / took.as_secs_f64();
    let what = "3 nodes, writers on all, one room: delivered on all";
    Ok(vec![Figure::new("writers", what, Unit::PerSecond, value, Target::AtLeast(6_000.0))])
}

/// Two nodes go on alone, and are joined again.
pub(super) async fn heal(run: &Run) -> Result<Vec<Figure>> {
    let (mut mesh, pipe) = piped(run).await?;
    let [here, there] = [Server::of(&mesh, 0), Server::of(&mesh, 1)];
    let mut sender = here.attach("here").await?;
    let room = sender.make_room(&run.name("heal")).await?;
    let member = reach(&there, "there", &room).await?;
    pipe.set(|state| state.cut = true);
    let apart = run.scaled(APART);
    for (connection, sender) in [(sender, 0), (member, 1)] {
        let mut alone = [Pump::new(connection, &room, sender, run.clock)];
        pump(&mut alone, 64, AGREED_WITHIN, apart).await.context("while apart")?;
        // It hears nothing any more: the histories of both nodes are waited for.
    }
    let began = Instant::now();
    pipe.set(|state| state.cut = false);
    for server in [&here, &there] {
        holds(server, &room, 2 * apart).await?;
    }
    let took = began.elapsed().as_secs_f64();
    mesh.stop().await?;
    let what = "heal after 10,000 messages on each side of a split";
    Ok(vec![Figure::new("heal", what, Unit::Seconds, took, Target::AtMost(2.0))])
}

/// A new node fetches a long room.
pub(super) async fn catch_up(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let count = run.scaled(TO_FETCH);
    let room = fill(run, &Server::of(&mesh, 0), "long", count).await?;
    let ticket = mesh.nodes[0].ready().ticket.clone();
    let began = Instant::now();
    let newcomer = mesh.add("newcomer", Some(ticket)).await?;
    let there = Server { address: newcomer.tcp().to_owned(), key: None };
    holds(&there, &room, count).await?;
    let took = began.elapsed().as_secs_f64();
    let what = "a new node starts and catches up on 100,000 messages";
    Ok(vec![Figure::new("catch_up", what, Unit::Seconds, took, Target::AtMost(3.0))])
}

/// Bytes on a link.
pub(super) async fn wire(run: &Run) -> Result<Vec<Figure>> {
    let (mesh, pipe) = piped(run).await?;
    let [here, there] = [Server::of(&mesh, 0), Server::of(&mesh, 1)];
    let mut sender = here.attach("here").await?;
    let room = sender.make_room(&run.name("wire")).await?;
    let mut member = reach(&there, "there", &room).await?;
    let before = pipe.carried();
    let lasts = run.lasts(10);
    let fan_out = FanOut { room: &room, clock: run.clock, per_second: 100, lasts };
    let (_, heard) = fan_out.run(&mut sender, std::slice::from_mut(&mut member)).await?;
    let each = (pipe.carried() - before) as f64 / heard.len().max(1) as f64;
    let what = "between two nodes, 100 messages/s: bytes per message of 200";
    Ok(vec![Figure::new("wire", what, Unit::Bytes, each, Target::AtMost(700.0))])
}

/// A node when nobody does anything.
pub(super) async fn idle_processor(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(IDLE_NODES).await?;
    sleep(run.warm_up() * 2).await;
    let read = || -> Result<Vec<f64>> {
        mesh.nodes.iter().map(|node| proc::processor_seconds(pid(node)?)).collect()
    };
    let (before, began) = (read()?, Instant::now());
    sleep(run.lasts(20)).await;
    let took = began.elapsed().as_secs_f64();
    let after = read()?;
    let most = before.iter().zip(&after).map(|(a, b)| (b - a) / took * 100.0).fold(0.0, f64::max);
    let what = "an idle node in a mesh of 5: of one core";
    Ok(vec![Figure::new("idle_processor", what, Unit::Percent, most, Target::AtMost(0.5))])
}

/// The process of a node that runs.
pub(super) fn pid(node: &Daemon) -> Result<u32> {
    node.pid().context("a node has ended")
}

/// Attaches, and goes into a room as soon as the node knows it.
pub(super) async fn reach(server: &Server, name: &str, room: &str) -> Result<Connection> {
    let mut connection = server.attach(name).await?;
    let began = Instant::now();
    while let Err(error) = connection.join(room).await {
        ensure!(began.elapsed() < AGREED_WITHIN, "the room does not come: {error:#}");
        sleep(LOOK_EVERY).await;
    }
    Ok(connection)
}

/// Two nodes, the second of which reaches the first through a pipe only.
async fn piped(run: &Run) -> Result<(Mesh, Pipe)> {
    let mut plan = run.plan(1)?;
    plan.flags.push("--no-discovery".to_owned());
    plan.auth = Auth::Open;
    let mut mesh = Mesh::up(plan).await?;
    let first = &mesh.nodes[0];
    let listen = first.ready().listen.first().context("a node that listens nowhere")?.clone();
    let pipe = Pipe::to(listen).await?;
    let ticket = first.invite_at(&pipe.address().to_string()).await?;
    let second = mesh.add("node2", Some(ticket)).await?;
    mesh.nodes.push(second);
    mesh.know_each_other().await?;
    Ok((mesh, pipe))
}

/// Waits until a node has so many messages of a room.
async fn holds(server: &Server, room: &str, count: u64) -> Result<()> {
    let began = Instant::now();
    let mut reader = server.attach("looker").await?;
    let (mut since, mut seen) = (0, 0);
    while seen < count {
        let asked = json!({ "room_id": room, "limit": 500, "since_seq": since });
        let page = reader.call("get_history", &asked).await;
        let messages = page.as_ref().ok().and_then(|page| page["messages"].as_array());
        let messages: &[Value] = messages.map_or(&[], Vec::as_slice);
        seen += messages.len() as u64;
        since = messages.last().and_then(|message| message["seq"].as_u64()).unwrap_or(since);
        if messages.is_empty() {
            ensure!(began.elapsed() < AGREED_WITHIN, "{seen} of {count} messages came: {page:?}");
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// All of these at once.
pub(super) async fn attach_all(server: &Server, count: usize) -> Result<Vec<Connection>> {
    let names: Vec<String> = (0..count).map(|n| format!("idle{n}")).collect();
    try_join_all(names.iter().map(|name| server.attach(name))).await
}
