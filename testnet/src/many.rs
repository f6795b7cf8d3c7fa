//! Many real nodes on one machine that do nothing: what each costs, and whether somebody is taken for dead meanwhile.
//!
//! [`measure`] starts them one after the other, each joining one that is there already (a node takes 128 connections that others
//! begin, so they cannot all join the first), waits until each knows that all live, and looks at their processor time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    proc,
    process::{Mesh, Plan},
};

/// So many nodes join one.
const JOIN_ONE: usize = 8;
/// How long all may take to know each other.
const KNOWN_WITHIN: Duration = Duration::from_secs(600);
/// Between two looks at a node that does not know all yet.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Then nodes find out that nothing happens.
const SETTLES: Duration = Duration::from_secs(15);
const MIB: f64 = (1 << 20) as f64;

/// Of one core, in a hundred; memory of a node.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    /// The nodes.
    pub nodes: usize,
    /// How long they were idle. Seconds.
    pub idle_s: f64,
    /// The processor time of the node that took least.
    pub least_percent: f64,
    /// Of each, on average.
    pub mean_percent: f64,
    /// Of the one that took most.
    pub most_percent: f64,
    /// Resident, on average.
    pub mean_mib: f64,
    /// From the last start until each knew that all live. Seconds.
    pub known_s: f64,
    /// Pairs of nodes of which one took the other for dead in the end.
    pub missed: usize,
}

/// Starts a plan's nodes and measures them while nobody does anything, for so long.
///
/// # Errors
///
/// A daemon fails, or they do not find each other.
pub async fn measure(plan: Plan, lasts: Duration, tell: &mut dyn FnMut(&str)) -> Result<Cost> {
    let nodes = plan.nodes.max(1);
    let mut mesh = Mesh::up(Plan { nodes: 1, ..plan }).await?;
    for nth in 1..nodes {
        let ticket = mesh.nodes[(nth - 1) / JOIN_ONE].ready().ticket.clone();
        let node = mesh.add(&format!("node{}", nth + 1), Some(ticket)).await?;
        mesh.nodes.push(node);
        if nth % 50 == 0 {
            tell(&format!("{nth} nodes are up"));
        }
    }
    tell("until all know that all live");
    let began = Instant::now();
    for node in 0..nodes {
        while missed(&mesh, node).await? > 0 {
            if began.elapsed() > KNOWN_WITHIN {
                bail!("node{} does not know all in {} s", node + 1, KNOWN_WITHIN.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }
    let known_s = began.elapsed().as_secs_f64();
    sleep(SETTLES).await;
    tell(&format!("they are idle for {} s", lasts.as_secs()));
    let (before, began) = (seconds(&mesh)?, Instant::now());
    sleep(lasts).await;
    let (after, idle_s) = (seconds(&mesh)?, began.elapsed().as_secs_f64());
    let shares: Vec<f64> =
        before.iter().zip(after).map(|(a, b)| (b - a) / idle_s * 100.0).collect();
    let mut memory = 0;
    for node in &mesh.nodes {
        memory += proc::resident(node.pid().context("a node has ended")?)?;
    }
    let mut unknown = 0;
    for node in 0..nodes {
        unknown += missed(&mesh, node).await?;
    }
    mesh.stop().await?;
    Ok(Cost {
        nodes,
        idle_s,
        least_percent: shares.iter().copied().fold(f64::INFINITY, f64::min),
        mean_percent: shares.iter().sum::<f64>() / nodes as f64,
        most_percent: shares.iter().copied().fold(0.0, f64::max),
        mean_mib: memory as f64 / MIB / nodes as f64,
        known_s,
        missed: unknown,
    })
}

/// How many of the others a node does not take to live.
async fn missed(mesh: &Mesh, node: usize) -> Result<usize> {
    let status = mesh.nodes[node].status().await?;
    let peers = status["peers"].as_array().context("a status without peers")?;
    let lives = |peer: &&Value| peer["alive"].as_bool() == Some(true);
    Ok((mesh.nodes.len() - 1).saturating_sub(peers.iter().filter(lives).count()))
}

fn seconds(mesh: &Mesh) -> Result<Vec<f64>> {
    let of = |node: &crate::process::Daemon| {
        proc::processor_seconds(node.pid().context("a node has ended")?)
    };
    mesh.nodes.iter().map(of).collect()
}
