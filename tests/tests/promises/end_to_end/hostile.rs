//! Attacks on three nodes with honest agents: these lose nothing, nobody dies, and `status` says who it was. How long
//! anything takes is not asked here: `clawmesh-testnet attack` measures it.

use std::time::Duration;

use anyhow::{Result, ensure};
use testnet::{
    attack::{self, Limits, Setting, Until, kind::Kind},
    process::{Auth, Mesh},
};

use super::on;

/// One of each way to be noticed, and the agents' doors.
const KINDS: [Kind; 11] = [
    Kind::Forged,
    Kind::Clocks,
    Kind::Ballots,
    Kind::Leaders,
    Kind::Promises,
    Kind::Garbage,
    Kind::Oversized,
    Kind::GossipFlood,
    Kind::Topics,
    Kind::ClientLarge,
    Kind::Forks,
];
/// Long: an attack ends as soon as it is seen.
const SECONDS: f64 = 60.0;

#[test]
fn whoever_attacks_is_named_and_harms_no_other() {
    on(3, Auth::Key, async |mesh| {
        for kind in KINDS {
            attacked(mesh, kind).await?;
        }
        Ok(())
    });
}

async fn attacked(mesh: &mut Mesh, kind: Kind) -> Result<()> {
    let setting =
        Setting { seconds: SECONDS, rate: 10.0, threads: 1, many: 50, until: Until::Seen };
    let outcome = attack::play(mesh, kind, setting).await?;
    let forever = Duration::from_secs(24 * 3_600);
    let limits = Limits { rss_bytes: 1 << 30, p99_times: 1.0, p99_grain: forever };
    let broken = outcome.judge(limits);
    ensure!(broken.is_empty(), "{broken:?}: {outcome:?}");
    let Some(offender) = outcome.offender else { return Ok(()) };
    let mut said = false;
    for node in &mesh.nodes {
        let text = node.status_text().await?;
        let strikes = text.lines().zip(text.lines().skip(1)).any(|(peer, blame)| {
            peer.trim_start().starts_with(&offender[..8]) && blame.contains("strikes")
        });
        let blamed = text.lines().any(|line| {
            let line = line.trim_start();
            (line.starts_with("FORKED") || line.starts_with("BLAMED")) && line.contains(&offender)
        });
        said |= strikes || blamed;
    }
    ensure!(said, "{kind}: no status says it to people: {}", mesh.nodes[0].status_text().await?);
    Ok(())
}
