//! How cost grows: the same figures in meshes of several sizes, and at nodes with several numbers of rooms.
//! No figure here has a target of its own: the slope counts.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use tokio::time::sleep;

use super::{
    figure::Unit,
    keeping::{SETTLES, fill_rooms},
    load::{FanOut, Server, one_in_flight},
    nodes::{pid, reach},
    run::Run,
    setting::Setting,
    single,
};
use crate::{distribution::Distribution, proc, process::Mesh, table};

/// Nodes of the mesh in which rooms grow: with a second one a node does more than alone.
const NODES_WITH_ROOMS: usize = 2;
/// Messages a second, while their cost is measured.
const PER_SECOND: u32 = 100;

const MIB: f64 = (1 << 20) as f64;

/// The figures, for one size after the other.
#[derive(Debug, Default, Serialize)]
pub struct Growth {
    /// By nodes of the mesh.
    nodes: Vec<Step>,
    /// By rooms.
    rooms: Vec<Step>,
}

/// The figures of one size.
#[derive(Debug, Serialize)]
struct Step {
    size: u64,
    values: Vec<(&'static str, f64, Unit)>,
}

/// Measures at these sizes, one after the other. Of the setting's target only the program counts, and its rows
/// not at all.
///
/// # Errors
///
/// As [`super::measure()`].
pub async fn grow(setting: Setting, nodes: &[u64], rooms: &[u64]) -> Result<Growth> {
    let run = Run::start(setting).await?;
    let mut growth = Growth::default();
    for &size in nodes {
        run.tell(&format!("a mesh of {size}"));
        growth.nodes.push(Step { size, values: at_nodes(&run, usize::try_from(size)?).await? });
    }
    for &size in rooms {
        run.tell(&format!("{size} rooms"));
        growth.rooms.push(Step { size, values: at_rooms(&run, size).await? });
    }
    Ok(growth)
}

/// Agents at all nodes, in one room.
async fn at_nodes(run: &Run, nodes: usize) -> Result<Vec<(&'static str, f64, Unit)>> {
    let mesh = run.mesh(nodes).await?;
    sleep(SETTLES).await;
    let idle = processor(run, &mesh).await?;
    let memory = proc::resident(pid(&mesh.nodes[0])?)?;
    let mut speaker = Server::of(&mesh, 0).attach("speaker").await?;
    let room = speaker.make_room(&run.name(&format!("nodes{nodes}"))).await?;
    let mut members = Vec::new();
    for node in 0..nodes {
        members.push(reach(&Server::of(&mesh, node), &format!("member{node}"), &room).await?);
    }
    let (before, began) = (all_seconds(&mesh)?, Instant::now());
    let lasts = run.lasts(10);
    let fan_out = FanOut { room: &room, clock: run.clock, per_second: PER_SECOND, lasts };
    let (oks, heard) = fan_out.run(&mut speaker, &mut members).await?;
    let took = began.elapsed().as_secs_f64();
    let busy = all_seconds(&mesh)? - before - idle.all / 100.0 * took;
    let each = busy / oks.len().max(1) as f64 * 1_000.0;
    let (oks, heard) = (Distribution::new(oks), Distribution::new(heard));
    drop((speaker, members));
    let rooms = single::rooms(run, &Server::of(&mesh, 0)).await?;
    let mut values = vec![
        ("`ok` p50, 100 messages/s", oks.percentile(50.0), Unit::Ms),
        ("delivery to an agent of each node, p50", heard.percentile(50.0), Unit::Ms),
        ("… p99", heard.percentile(99.0), Unit::Ms),
        ("processor time of a message, all nodes together", each, Unit::Ms),
        ("processor of the busiest idle node", idle.most, Unit::Percent),
        ("memory of an idle node", memory as f64 / MIB, Unit::MiB),
    ];
    let what = "8 senders × 16 in flight at one node, a room each";
    values.extend(rooms.first().map(|figure| (what, figure.value, Unit::PerSecond)));
    Ok(values)
}

/// Rooms with a message each, that nobody is in any more.
async fn at_rooms(run: &Run, rooms: u64) -> Result<Vec<(&'static str, f64, Unit)>> {
    let mut mesh = run.mesh(NODES_WITH_ROOMS).await?;
    fill_rooms(run, &Server::of(&mesh, 0), rooms, rooms).await?;
    let mut sender = Server::of(&mesh, 0).attach("one").await?;
    let room = sender.make_room(&run.name("last")).await?;
    // Earlier rooms have come there, too: they come in the order in which they were made.
    drop(reach(&Server::of(&mesh, 1), "another", &room).await?);
    sleep(SETTLES).await;
    let idle = processor(run, &mesh).await?;
    let memory = proc::resident(pid(&mesh.nodes[0])?)?;
    one_in_flight(&mut sender, &room, run.clock, run.warm_up()).await?;
    let oks = one_in_flight(&mut sender, &room, run.clock, run.lasts(5)).await?;
    let busy = single::rooms(run, &Server::of(&mesh, 0)).await?;
    drop(sender);
    mesh.nodes[0].stop().await?;
    let disk = proc::on_disk(&mesh.nodes[0].ready().data_dir)?;
    let began = Instant::now();
    mesh.nodes[0].restart().await?;
    let ready = began.elapsed().as_secs_f64();
    let mut values = vec![
        ("`ok` p50, one in flight", Distribution::new(oks).percentile(50.0), Unit::Ms),
        ("processor of the busiest idle node", idle.most, Unit::Percent),
        ("memory of an idle node", memory as f64 / MIB, Unit::MiB),
        ("disk", disk as f64 / MIB, Unit::MiB),
        ("start until ready", ready, Unit::Seconds),
    ];
    let what = "8 senders × 16 in flight, a room each";
    values.extend(busy.first().map(|figure| (what, figure.value, Unit::PerSecond)));
    Ok(values)
}

/// Of one core, in a hundred.
struct Processor {
    most: f64,
    all: f64,
}

/// The processor time of nodes when nobody does anything.
async fn processor(run: &Run, mesh: &Mesh) -> Result<Processor> {
    let (before, began) = (seconds(mesh)?, Instant::now());
    sleep(run.lasts(10)).await;
    let (after, took) = (seconds(mesh)?, began.elapsed().as_secs_f64());
    let shares: Vec<f64> = before.iter().zip(&after).map(|(a, b)| (b - a) / took * 100.0).collect();
    Ok(Processor { most: shares.iter().copied().fold(0.0, f64::max), all: shares.iter().sum() })
}

fn seconds(mesh: &Mesh) -> Result<Vec<f64>> {
    mesh.nodes.iter().map(|node| proc::processor_seconds(pid(node)?)).collect()
}

fn all_seconds(mesh: &Mesh) -> Result<f64> {
    Ok(seconds(mesh)?.iter().sum())
}

impl Growth {
    /// As tables: a size in each column.
    #[must_use]
    pub fn table(&self) -> String {
        [("NODES", &self.nodes), ("ROOMS", &self.rooms)]
            .into_iter()
            .filter(|(_, steps)| !steps.is_empty())
            .map(|(head, steps)| columns(head, steps))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// As one line of JSON.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

fn columns(head: &str, steps: &[Step]) -> String {
    let mut rows = vec![vec![head.to_owned()]];
    rows[0].extend(steps.iter().map(|step| step.size.to_string()));
    let names = steps.first().map(|step| step.values.as_slice()).unwrap_or_default();
    for (nth, (what, _, unit)) in names.iter().enumerate() {
        let mut row = vec![(*what).to_owned()];
        // Every step measures the same.
        row.extend(steps.iter().filter_map(|step| Some(unit.show(step.values.get(nth)?.1))));
        rows.push(row);
    }
    table::columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_column() {
        let step = |size, value| Step {
            size,
            values: vec![("memory", value, Unit::MiB), ("start", 1.0, Unit::Seconds)],
        };
        let growth = Growth { nodes: vec![step(1, 9.5), step(10, 120.0)], rooms: Vec::new() };
        let table = [
            "NODES         1         10",
            "memory  9.5 MiB  120.0 MiB",
            "start    1.00 s     1.00 s",
        ]
        .join("\n")
            + "\n";
        assert_eq!(growth.table(), table);
    }
}
