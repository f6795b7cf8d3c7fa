//! A peer whose clock is wrong is named.

use std::time::{SystemTime, UNIX_EPOCH};

use mesh::{
    Identity,
    name::digest::Digest,
    wire::{
        message::{Beacon, Message, Signed},
        run::Run,
    },
};
use net::{Discovery, Incoming, Settings};
use node::ticket::Ticket;
use serde_json::Value;

use crate::harness::{Daemon, temp, until, up};
use crate::members::command;

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// What a node knows of the clock of its only peer.
fn ahead(node: &Daemon) -> Option<i64> {
    node.status()["peers"][0]["clock_ahead_ms"].as_i64()
}

#[test]
fn nodes_of_one_machine_have_one_time() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let second = up(dirs[1].path(), &["--join", first.text("ticket")]);
    for node in [&first, &second] {
        until("it compares", || ahead(node).is_some());
        assert!(ahead(node).unwrap().abs() < 2_000, "{:?}", ahead(node));
        assert_eq!(crate::metrics::scrape(node)["clawmesh_clocks_differ"], 0.0);
    }
}

/// A peer that says beacons and nothing else, by a clock that is an hour ahead.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_clock_is_wrong_is_named_in_status_and_metrics() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let ticket: Ticket = node.text("ticket").parse().unwrap();
    let identity = Identity::from_seed(&[9; 32]);
    let (net, mut inbox) = net::start(Settings {
        secret_key: [9; 32].into(),
        pre_shared_key: (*ticket.mesh().pre_shared_key()).into(),
        former_keys: Vec::new(),
        listen: Vec::new(),
        announce: Vec::new(),
        peers: ticket.peers().collect(),
        topics: 65,
        discovery: Discovery::Configured,
    })
    .await
    .unwrap();
    let there = loop {
        if let Some(Incoming::Up(node)) = inbox.recv().await {
            break node;
        }
    };
    let mesh = ticket.mesh().mesh_id();
    let mut tick = 0;
    let mut say = || {
        tick += 1;
        let (boot, roster, digest, records) = (1, 0, Digest::default(), [0; 16]);
        let (node, wall_ms) = (identity.node_id(), now_ms() + 3_600_000);
        let beacon = Beacon { node, boot, tick, roster, digest, records, wall_ms };
        let message: Message<Run> = Message::Beacon(Signed::new(mesh, &identity, beacon));
        net.send(&there, message.encode().into()).unwrap();
    };
    until("it is named", || {
        say();
        ahead(&node).is_some()
    });
    let off = ahead(&node).unwrap();
    assert!((off - 3_600_000).abs() < 60_000, "{off}");
    assert_eq!(crate::metrics::scrape(&node)["clawmesh_clocks_differ"], 1.0);
    let status = String::from_utf8(command(&node, &["status"]).stdout).unwrap();
    assert!(
        status.contains("CLOCK: it is 3600") || status.contains("CLOCK: it is 3599"),
        "{status}"
    );
    assert!(status.contains("ahead of this node's"), "{status}");
    assert_ne!(node.status()["peers"][0], Value::Null);
}
