//! The limits that hold whatever an attacker does.

use std::{fmt, time::Duration};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{insider::Insider, load::Percentiles};
use crate::{proc, process::Mesh};

/// How often memory is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A node that signs so much without effect in a short time is heard less: others have passed something over then. Less
/// of it may be a race that was lost.
const BLAMED_FROM: u64 = mesh::limits::NOISE_FROM as u64;

/// The most that a daemon may cost its honest agents and its machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Resident bytes of one daemon.
    pub rss_bytes: u64,
    /// So many times the 99th percentile before the attack may it be during it.
    pub p99_times: f64,
    /// Less than this is not told apart from the machine's own noise.
    pub p99_grain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            rss_bytes: 256 * 1024 * 1024,
            p99_times: 2.0,
            p99_grain: Duration::from_millis(25),
        }
    }
}

/// A limit that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn is_slower(before: Percentiles, during: Percentiles, limits: Limits) -> bool {
    let most = before.p99.mul_f64(limits.p99_times).max(before.p99 + limits.p99_grain);
    during.count == 0 || during.p99 > most
}

/// The largest resident set of each daemon that was seen.
#[derive(Debug, Default)]
pub(super) struct Resident {
    pub(super) most: Vec<u64>,
}

impl Resident {
    /// Looks once; all of them must be there.
    pub(super) fn look(&mut self, mesh: &mut Mesh) -> Result<()> {
        self.most.resize(mesh.nodes.len(), 0);
        for (node, most) in mesh.nodes.iter_mut().zip(&mut self.most) {
            anyhow::ensure!(node.is_running(), "{} died:\n{}", node.ready().name, node.log());
            *most = (*most).max(proc::resident(node.pid().context("it does not run")?)?);
        }
        Ok(())
    }
}

/// The words of any node's status against the insider: the longest ones.
pub(super) async fn named(mesh: &Mesh, insider: Option<&Insider>) -> Result<Option<String>> {
    let Some(insider) = insider else { return Ok(None) };
    let mut all = Vec::new();
    for node in &mesh.nodes {
        all.extend(blame(&node.status().await?, &insider.node().to_string()));
    }
    Ok(all.into_iter().max_by_key(String::len))
}

fn blame(status: &Value, node: &str) -> Option<String> {
    let mut said = Vec::new();
    if status["forked"].as_array().is_some_and(|all| all.iter().any(|id| id == node)) {
        said.push("forked".to_owned());
    }
    let blamed = status["blamed"].as_array().into_iter().flatten();
    for blamed in blamed.filter(|blamed| blamed["node_id"] == node) {
        let count = |what: &str| blamed[what].as_u64().unwrap_or_default();
        let (void, chain) = (count("void"), count("chain"));
        let noise = status["faults"]["noise"].as_u64().unwrap_or_default();
        if void + chain >= BLAMED_FROM && noise > 0 {
            said.push(format!("{void} void, {chain} off its log, {noise} passed over"));
        }
    }
    let peers = status["peers"].as_array().into_iter().flatten();
    for peer in peers.filter(|peer| peer["node_id"] == node) {
        if let Some(strikes) = peer["strikes_ever"].as_u64().filter(|strikes| *strikes > 0) {
            let fault = peer["fault"].as_str().unwrap_or_default();
            let refused = if peer["refused_ms"].is_null() { "" } else { ", refused" };
            said.push(format!("{strikes} strikes{refused}: {fault}"));
        }
    }
    (!said.is_empty()).then(|| said.join("; "))
}
