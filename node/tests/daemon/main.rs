//! The daemon from the outside: real processes, real sockets, real signals.

#![allow(clippy::unwrap_used, reason = "a test says by panicking what went wrong")]

mod backup;
mod claims;
mod clawtank;
mod clocks;
mod direct;
mod finder;
mod finder_tools;
mod full;
mod goclaw;
mod group;
mod harness;
mod import;
mod invitations;
mod jobs;
mod joining;
mod keys;
mod log;
mod members;
mod metrics;
mod people;
mod reach;
mod reading;
mod relay;
mod search;
mod secret;
mod service;
mod stopping;
mod story;
mod teams;
mod tokens;
mod twins;
mod webhooks;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    time::Instant,
};

use harness::{Agent, DEADLINE, Daemon, ask, clawmeshd, refused, stops_soon, temp, until, up};
use serde_json::{Value, json};

#[test]
fn a_node_says_where_it_is_and_stops_when_told() {
    let dir = temp();
    let socket = dir.path().join("sockets/agents.sock");
    let arguments = ["up", "--data-dir", dir.path().to_str().unwrap(), "--json", "--no-auth"];
    let more = ["--socket", socket.to_str().unwrap(), "--no-http", "--name", "first"];
    let ports = ["--tcp", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let mut child = clawmeshd(&[&arguments[..], &more, &ports].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let node = Daemon { child, stdout, ready: serde_json::from_str(&line).unwrap() };
    assert_eq!(node.ready["ready"], true);
    assert_eq!(node.text("name"), "first");
    assert_eq!(node.text("node_id").len(), 64);
    assert_eq!(node.text("mesh_id").len(), 32);
    assert_eq!(node.text("socket"), socket.to_str().unwrap());
    assert_eq!(node.ready["http"], Value::Null);
    assert!(!node.text("tcp").ends_with(":0"));
    assert_eq!(node.ready["listen"].as_array().unwrap().len(), 1);
    assert!(node.text("ticket").starts_with("clawmesh1"));
    let keys: Vec<&String> = node.ready.as_object().unwrap().keys().collect();
    assert_eq!(node.ready["https"], false);
    assert_eq!(keys.len(), 12, "{keys:?}");
    let mut agent = Agent::open(&node);
    agent.say("hello");
    assert_eq!(node.status()["agents"], 1);
    assert!(node.status()["store_bytes"].as_u64().unwrap() > 0);
    let took = node.stop();
    assert!(!socket.exists());
    assert!(!dir.path().join("run.json").exists());
    assert!(stops_soon(took, || up(dir.path(), &[])), "{took:?}");
}

#[test]
fn one_data_directory_has_one_node() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let text = refused(dir.path(), &["--no-auth"]);
    assert!(text.contains("--data-dir") && text.contains(node.text("data_dir")), "{text}");
    Agent::open(&node).say("the first one is unharmed");
}

#[test]
fn what_is_busy_names_its_flag() {
    let (first, second) = (temp(), temp());
    let node = up(first.path(), &[]);
    for flag in ["--tcp", "--http"] {
        let text = refused(second.path(), &["--no-auth", flag, node.text(&flag[2..])]);
        assert!(text.starts_with(&format!("error: {flag} ")), "{text}");
    }
    let listen = node.ready["listen"][0].as_str().unwrap();
    let text = refused(second.path(), &["--no-auth", "--listen", listen]);
    assert!(text.starts_with("error: --listen "), "{text}");
    let text = refused(second.path(), &["--no-auth", "--join", &node.text("ticket")[..60]]);
    assert!(text.starts_with("error: --join: the ticket is damaged"), "{text}");
    assert_eq!(text.matches("the ticket is damaged").count(), 1, "{text}");
    let key = second.path().join("is-a-directory");
    fs::create_dir_all(&key).unwrap();
    let text = refused(second.path(), &["--key-file", key.to_str().unwrap()]);
    assert!(text.starts_with("error: --key-file "), "{text}");
}

#[test]
fn kill_and_restart_keep_what_was_acknowledged() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    let said: Vec<(u64, String)> = (0..20)
        .map(|i| {
            let content = format!("message {i}");
            (agent.say(&content), content)
        })
        .collect();
    let name = node.text("node_id").to_owned();
    node.kill();
    let invited = ask(&["invite", "--data-dir", dir.path().to_str().unwrap()]);
    assert!(invited.stdout.starts_with(b"clawmesh1"));
    assert!(String::from_utf8_lossy(&invited.stderr).contains("--listen 0.0.0.0:9231"));
    let node = up(dir.path(), &[]);
    assert_eq!(node.text("node_id"), name);
    let mut agent = Agent::open(&node);
    assert_eq!(agent.lobby(), said);
    let next = agent.say("and on");
    assert!(next > said[19].0, "{next}");
}

#[test]
fn a_ticket_joins_two_nodes_and_another_one_is_refused_then() {
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let second = up(dirs[1].path(), &["--join", first.text("ticket")]);
    assert_eq!(first.text("mesh_id"), second.text("mesh_id"));
    second.until_connected();
    let (mut one, mut two) = (Agent::open(&first), Agent::open(&second));
    let here = (one.say("from the first"), "from the first".to_owned());
    until("the message is at the second", || two.lobby() == [here.clone()]);
    let there = (two.say("from the second"), "from the second".to_owned());
    until("and back", || one.lobby() == [here.clone(), there.clone()]);
    assert_ne!(here.0, there.0);

    // The ticket is remembered, also when the node is killed.
    second.kill();
    let second = up(dirs[1].path(), &[]);
    second.until_connected();
    let took = second.stop();
    let again = || {
        let second = up(dirs[1].path(), &[]);
        second.until_connected();
        second
    };
    assert!(stops_soon(took, again), "{took:?}");
    let other = up(dirs[2].path(), &[]);
    let text = refused(dirs[1].path(), &["--no-auth", "--join", other.text("ticket")]);
    assert!(text.contains("already belongs to another mesh; use another --data-dir"), "{text}");
    let again = up(dirs[1].path(), &["--join", first.text("ticket")]);
    again.until_connected();
}

#[test]
fn a_node_that_joins_late_keeps_its_rooms_and_gets_the_others() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let mut one = Agent::open(&first);
    let mut meshes = vec![(one.say("of the mesh"), "of the mesh".to_owned())];
    let alone = up(dirs[1].path(), &["--name", "loner"]);
    let mut two = Agent::open(&alone);
    for i in 0..5 {
        two.say(&format!("own {i}"));
    }
    let own = two.lobby();
    alone.stop();

    let joined = up(dirs[1].path(), &["--name", "loner", "--join", first.text("ticket")]);
    joined.until_connected();
    let mut two = Agent::open(&joined);
    until("the mesh's lobby", || two.lobby() == meshes);
    let rooms = two.call("list_rooms", json!({})).unwrap();
    let rooms = rooms["rooms"].as_array().unwrap();
    let archived = rooms.iter().find(|it| it["name"] == "lobby (loner)").unwrap();
    let page = json!({"room_id": archived["room_id"], "limit": 100});
    let kept = two.call("get_history", page).unwrap();
    let kept: Vec<&str> = kept["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert_eq!(kept, own.iter().map(|(_, content)| content).collect::<Vec<_>>());
    let said = json!({"room_id": archived["room_id"], "content": "too late"});
    assert!(two.call("send_message", said).is_err());
    // Its clients' cursors go on working: what comes now has a number above all they saw.
    let next = two.say("with both");
    assert!(next > own.last().unwrap().0, "{next}");
    meshes.push((next, "with both".to_owned()));
    until("everywhere the same", || one.lobby() == meshes);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_can_be_started_within_a_program() {
    let dir = temp();
    let settings = node::Settings::isolated(dir.path());
    let first = node::start(settings.clone()).await.unwrap();
    let at = first.ready().tcp.clone().unwrap();
    let said = tokio::task::spawn_blocking(move || Agent::register(&at, "any").unwrap().say("hi"));
    let number = said.await.unwrap();
    first.stop().await.unwrap();
    // The directory is free as soon as the last read has ended.
    let end = Instant::now() + DEADLINE;
    let again = loop {
        match node::start(settings.clone()).await {
            Ok(again) => break again,
            Err(error) => assert!(Instant::now() < end, "{error:#}"),
        }
        tokio::task::yield_now().await;
    };
    let at = again.ready().tcp.clone().unwrap();
    let read = tokio::task::spawn_blocking(move || Agent::register(&at, "any").unwrap().lobby());
    assert_eq!(read.await.unwrap(), [(number, "hi".to_owned())]);
    again.stop().await.unwrap();
}

#[test]
fn status_of_nobody_says_what_to_do() {
    let dir = temp();
    let check = |arguments: &[&str], expect: &str| {
        let output = clawmeshd(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expect) && text.lines().count() == 1, "{text}");
    };
    let here = dir.path().to_str().unwrap();
    check(&["status", "--data-dir", here], "no node runs on");
    check(&["invite", "--data-dir", here], "no node was ever started");
    check(&["status", "--data-dir", "/no/such"], "there is no node at");
}
