//! A peer whose clock is wrong is named.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh::{
    Identity,
    name::{digest::Digest, id::MeshId},
    wire::{
        message::{Beacon, Message, Signed},
        run::Run,
    },
};
use net::{Discovery, Incoming, Settings};
use node::ticket::Ticket;

use crate::harness::{Daemon, clawmeshd, temp, until, up, up_arguments};
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

/// A sign of life, by a clock that is an hour ahead.
fn beacon(mesh: MeshId, identity: &Identity, tick: u64) -> Bytes {
    let (boot, roster, digest, records) = (1, 0, Digest::default(), [0; 16]);
    let (node, wall_ms) = (identity.node_id(), now_ms() + 3_600_000);
    let beacon = Beacon { node, boot, tick, roster, digest, records, wall_ms };
    let message: Message<Run> = Message::Beacon(Signed::new(mesh, identity, beacon));
    message.encode().into()
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
        listens_to: None,
        web: net::Web::default(),
        discovery: Discovery::Configured,
        relaying: net::Relaying::Off,
        relay_rate: 0,
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
        net.send(&there, beacon(mesh, &identity, tick)).unwrap();
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
    assert_eq!(node.status()["peers"][0]["trouble"], "clock", "for programs");
}

/// The outcome of the start says so, on stdout and in the log, and the log names the peer.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_with_another_time_is_told_so_at_once() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let ticket: Ticket = first.text("ticket").parse().unwrap();
    first.stop();
    let identity = Identity::from_seed(&[9; 32]);
    let (net, mut inbox) = net::start(Settings {
        secret_key: [9; 32].into(),
        pre_shared_key: (*ticket.mesh().pre_shared_key()).into(),
        former_keys: Vec::new(),
        listen: vec![([127, 0, 0, 1], 0).into()],
        announce: Vec::new(),
        peers: Vec::new(),
        topics: 65,
        listens_to: None,
        web: net::Web::default(),
        discovery: Discovery::Configured,
        relaying: net::Relaying::Off,
        relay_rate: 0,
    })
    .await
    .unwrap();
    let at = net.listening()[0].to_string().parse().unwrap();
    let mesh = ticket.mesh().mesh_id();
    let join = Ticket::new(ticket.mesh().clone(), identity.node_id(), vec![at]).to_text();
    let speaking = tokio::spawn(async move {
        let mut often = tokio::time::interval(Duration::from_millis(100));
        let mut there = None;
        for tick in 1.. {
            tokio::select! {
                came = inbox.recv() => if let Some(Incoming::Up(node)) = came { there = Some(node) },
                _ = often.tick() => {}
            }
            if let Some(there) = &there {
                // The node ends before this does.
                let _ = net.send(there, beacon(mesh, &identity, tick));
            }
        }
    });
    let read = tokio::task::spawn_blocking(move || {
        let mut arguments = up_arguments(dirs[1].path().to_str().unwrap(), &["--no-auth"]);
        arguments.retain(|it| *it != "--json");
        arguments.extend(["--join", &join]);
        let mut node = clawmeshd(&arguments);
        let mut node = node.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(node.stdout.take().unwrap()).lines();
        let log = BufReader::new(node.stderr.take().unwrap()).lines();
        let told = out.map_while(Result::ok).find(|line| line.starts_with("connected to "));
        let told = told.expect("it is told");
        assert!(told.contains("CLOCK: "), "{told}");
        let (mut lines, mut logged) = (log.map_while(Result::ok), Vec::<String>::new());
        let is_there = |logged: &[String], part| logged.iter().any(|line| line.contains(part));
        while !(is_there(&logged, "CLOCK: ") && is_there(&logged, "the clock of")) {
            logged.push(lines.next().expect("the log goes on"));
        }
        node.kill().unwrap();
        node.wait().unwrap();
        (told, logged)
    });
    let (told, logged) = read.await.unwrap();
    let hour = ["this machine's is 3599.", "this machine's is 3600."];
    assert!(
        hour.iter().any(|part| told.contains(part)) && told.contains(" s behind that of "),
        "{told}"
    );
    let warned = |part: &str| logged.iter().filter(|line| line.contains(part)).count();
    assert_eq!((warned("CLOCK: this machine's"), warned("the clock of")), (1, 1), "{logged:?}");
    speaking.abort();
}
