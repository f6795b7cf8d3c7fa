//! The node's account of itself for the page: the checks of `clawmesh doctor`, and the facts of links.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Weak},
};

use bridge::checkup::{Check, Checkup, Examine, Finding, Making, PeerFacts};
use mesh::name::id::{AgentId, NodeId, parse_hex};
use protocol::operator::{Status, checkup};

use crate::control::Control;

/// See the module. The control ends with the node, whoever may still look.
pub(crate) struct Examiner(Weak<Control>);

impl Examiner {
    pub(crate) fn of(control: &Arc<Control>) -> Examiner {
        Examiner(Arc::downgrade(control))
    }
}

impl Examine for Examiner {
    fn examine(&self) -> Making {
        let control = self.0.clone();
        Box::pin(async move {
            let control = control.upgrade()?;
            // An error: the node is stopping, or too busy to answer.
            let status = control.report().await.ok()?;
            let disk = free_at(control.data_dir()).await;
            Some(checkup_of(&status, disk, control.bridge.woken()))
        })
    }
}

/// The room on the disk of a directory. Asking for it can wait for that disk.
async fn free_at(dir: PathBuf) -> Option<checkup::Check> {
    let asked = tokio::task::spawn_blocking(move || {
        let disk = rustix::fs::statvfs(&dir).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        Some(checkup::of_disk(free, &dir.display().to_string()))
    });
    asked.await.ok()?
}

fn checkup_of(
    status: &Status,
    disk: Option<checkup::Check>,
    woken: Vec<(AgentId, bridge::Woken)>,
) -> Checkup {
    let mut nodes: BTreeMap<NodeId, PeerFacts> = BTreeMap::new();
    for peer in &status.peers {
        let Some(node) = peer.node_id.as_deref().and_then(parse_hex).map(NodeId) else { continue };
        let obstacle = peer.last_error.clone().filter(|_| !peer.connected);
        nodes.insert(
            node,
            PeerFacts {
                up_ms: peer.up_ms.filter(|_| peer.connected),
                rtt_ms: peer.rtt_ms,
                clock_ahead_ms: peer.clock_ahead_ms,
                obstacle: obstacle.map(|error| (error, checkup::advice(peer.trouble))),
                sequences: 0,
            },
        );
    }
    for room in &status.rooms {
        if let Some(node) = parse_hex(&room.sequencer).map(NodeId) {
            nodes.entry(node).or_default().sequences += 1;
        }
    }
    let checks = checkup::of_status(status).into_iter().chain(disk).map(shown).collect();
    Checkup { checks, nodes, woken }
}

fn shown(check: checkup::Check) -> Check {
    let finding = match check.state {
        checkup::Finding::Ok => Finding::Well,
        checkup::Finding::Note => Finding::Note,
        checkup::Finding::Bad => Finding::Bad,
    };
    Check { subject: check.subject, finding, found: check.found, advice: check.advice }
}
