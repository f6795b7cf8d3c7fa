//! Rows about the costs of a node: memory, disk, and the time to start.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::{
    connection::Connection,
    figure::{Figure, Target, Unit},
    load::{Pump, Server, pump},
    nodes::{attach_all, pid},
    run::Run,
};
use crate::proc;

/// Connections that do nothing.
const CONNECTIONS: usize = 1_000;
/// How long a node is left alone before its memory is looked at.
pub(super) const SETTLES: Duration = Duration::from_secs(3);
/// Rooms, and messages in all of them, of a node that has been used for long.
const ROOMS: u64 = 1_000;
const MESSAGES: u64 = 1_000_000;
/// Rooms between two words of how far it is.
const TOLD_EVERY: u64 = 200;
/// Agents that fill them.
const FILLERS: usize = 8;

const MIB: f64 = (1 << 20) as f64;
const KIB: f64 = (1 << 10) as f64;

/// An idle node, alone and with connections.
pub(super) async fn idle(run: &Run) -> Result<Vec<Figure>> {
    let mesh = run.mesh(1).await?;
    let pid = pid(&mesh.nodes[0])?;
    sleep(SETTLES).await;
    let alone = proc::resident(pid)?;
    let connections = attach_all(&Server::of(&mesh, 0), CONNECTIONS).await?;
    sleep(SETTLES).await;
    let with = proc::resident(pid)?;
    drop(connections);
    let each = with.saturating_sub(alone) as f64 / CONNECTIONS as f64 / KIB;
    Ok(vec![
        Figure::new(
            "idle_memory",
            "an idle node: resident",
            Unit::MiB,
            alone as f64 / MIB,
            Target::AtMost(30.0),
        ),
        Figure::new(
            "idle_connection",
            "… each of 1,000 idle connections",
            Unit::KiB,
            each,
            Target::AtMost(12.0),
        ),
    ])
}

/// A node with a million messages.
pub(super) async fn stored(run: &Run) -> Result<Vec<Figure>> {
    let mut mesh = run.mesh(1).await?;
    let messages = fill_rooms(run, &Server::of(&mesh, 0), ROOMS, run.scaled(MESSAGES)).await?;
    mesh.nodes[0].stop().await?;
    let disk = proc::on_disk(&mesh.nodes[0].ready().data_dir)?;
    let began = Instant::now();
    mesh.nodes[0].restart().await?;
    let took = began.elapsed().as_secs_f64();
    sleep(SETTLES).await;
    let resident = proc::resident(pid(&mesh.nodes[0])?)?;
    Ok(vec![
        Figure::new(
            "start",
            "start with 1,000,000 messages in 1,000 rooms, until ready",
            Unit::Seconds,
            took,
            Target::AtMost(1.0),
        ),
        Figure::new(
            "stored_memory",
            "… resident",
            Unit::MiB,
            resident as f64 / MIB,
            Target::AtMost(120.0),
        ),
        Figure::new(
            "disk",
            "… disk: bytes per message of 200",
            Unit::Bytes,
            disk as f64 / messages as f64,
            Target::AtMost(700.0),
        ),
    ])
}

/// Fills the rooms, some at a time. Returns how many messages there are.
pub(super) async fn fill_rooms(
    run: &Run,
    server: &Server,
    rooms: u64,
    messages: u64,
) -> Result<u64> {
    let each = messages / rooms;
    let mut left = rooms;
    let forever = Duration::from_secs(3_600);
    while left > 0 {
        let mut pumps = Vec::new();
        for filler in 0..FILLERS.min(usize::try_from(left).unwrap_or(FILLERS)) {
            left -= 1;
            let name = format!("room{left}");
            let mut connection: Connection = server.attach(&format!("filler{filler}")).await?;
            let room = connection.make_room(&run.name(&name)).await?;
            pumps.push(Pump::new(connection, &room, filler, run.clock));
        }
        pump(&mut pumps, 64, forever, each).await.context("while rooms are filled")?;
        if left.is_multiple_of(TOLD_EVERY) {
            run.tell(&format!("{} of {rooms} rooms are filled", rooms - left));
        }
    }
    Ok(each * rooms)
}
