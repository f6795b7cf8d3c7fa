//! Nodes that leave, are retired or expelled.

use std::process::Output;

use serde_json::{Value, json};

use crate::harness::{Agent, Daemon, ask, clawmeshd, ended, refused, temp, until, up};
use crate::secret::secret;

/// What a command to a node's data directory says, and whether it went well.
pub(crate) fn command(node: &Daemon, arguments: &[&str]) -> Output {
    let all = [arguments, &["--data-dir", node.text("data_dir")]].concat();
    clawmeshd(&all).output().unwrap()
}

pub(crate) fn error(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The state of a member, as a node sees it.
pub(crate) fn state(at: &Daemon, of: &str) -> String {
    let output = ask(&["members", "--json", "--data-dir", at.text("data_dir")]);
    let members: Value = serde_json::from_slice(&output.stdout).unwrap();
    let member = members.as_array().unwrap().iter().find(|it| it["node_id"] == of);
    member.map_or("unknown", |it| it["state"].as_str().unwrap()).to_owned()
}

fn knows_of(at: &Daemon, of: &str) -> bool {
    let peers = at.status()["peers"].clone();
    peers.as_array().unwrap().iter().any(|it| it["node_id"] == of)
}

/// Three nodes that are connected to each other, the first with the name `first`, and so on.
pub(crate) fn three(dirs: &[tempfile::TempDir; 3]) -> [Daemon; 3] {
    let first = up(dirs[0].path(), &["--name", "first"]);
    let ticket = first.text("ticket").to_owned();
    let second = up(dirs[1].path(), &["--name", "second", "--join", &ticket]);
    let third = up(dirs[2].path(), &["--name", "third", "--join", &ticket]);
    let nodes = [first, second, third];
    for node in &nodes {
        for other in &nodes {
            let (here, there) = (node.text("node_id"), other.text("node_id"));
            if here != there {
                until("all are connected", || state(node, there) == "connected");
            }
        }
    }
    nodes
}

pub(crate) fn everybody_has(nodes: &[&Daemon], said: &str) {
    for node in nodes {
        let mut agent = Agent::open(node);
        until("the message is everywhere", || agent.lobby().iter().any(|(_, it)| it == said));
    }
}

/// A refusal says that another node is to be used, and why; and the node's operator is told the same.
fn apart(node: &Daemon, refusal: Value, reason: &str) {
    assert_eq!(
        (&refusal["code"], &refusal["mesh"]["reason"]),
        (&"access_denied".into(), &reason.into())
    );
    assert!(refusal["message"].as_str().unwrap().contains("use another node"), "{refusal}");
    let status = String::from_utf8(command(node, &["status"]).stdout).unwrap();
    assert!(status.contains("\nOUT: this node "), "{status}");
}

#[test]
fn an_expelled_node_is_out_everywhere_and_can_be_read() {
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let (two, three) = (second.text("node_id").to_owned(), third.text("node_id").to_owned());
    let mut out = Agent::open(&third);
    out.say("from the third");
    everybody_has(&[&first, &second, &third], "from the third");
    let unsure = error(&command(&first, &["expel", "third"]));
    assert!(unsure.contains("--yes"), "{unsure}");
    let nobody = error(&command(&first, &["expel", "fourth", "--yes"]));
    assert!(nobody.contains("clawmeshd members"), "{nobody}");
    assert!(command(&first, &["expel", "third", "--yes"]).status.success());
    for node in [&first, &second] {
        until("it is out", || state(node, &three) == "expelled");
        until("nobody counts on it", || !knows_of(node, &three));
    }
    // It knows, says so, can be read, and writes nothing.
    until("it knows", || third.status()["parted"]["how"] == "expelled");
    assert_eq!(out.lobby().len(), 1);
    let send = json!({"room_id": "lobby", "content": "still here?"});
    apart(&third, out.refused("send_message", send.clone()), "expelled");
    // The others go on, under another secret, and stay connected.
    Agent::open(&second).say("without the third");
    everybody_has(&[&first, &second], "without the third");
    assert_eq!(state(&first, &two), "connected");
    for node in [&first, &second] {
        until("the mesh has another secret", || secret(node, &two) == 1);
    }
    let kept = std::fs::read_to_string(dirs[2].path().join("mesh.key")).unwrap();
    assert_eq!(kept.lines().count(), 1, "it never got that");
    // After a start it is an archive, and no ticket helps.
    third.stop();
    let ticket = first.text("ticket");
    let text = refused(dirs[2].path(), &["--no-auth", "--join", ticket]);
    assert!(text.contains("--join: this node has no part"), "{text}");
    let third = up(dirs[2].path(), &[]);
    assert_eq!(third.status()["parted"]["how"], "expelled");
    assert!(third.text("apart").contains("was expelled"), "{}", third.ready);
    let mut again = Agent::open(&third);
    again.call("join_room", json!({"room_id": "lobby"})).unwrap();
    apart(&third, again.refused("send_message", send), "expelled");
    let room = json!({"name": "new", "public": true});
    apart(&third, again.refused("create_room", room), "expelled");
    let vote =
        json!({"room_id": "lobby", "title": "?", "options": ["a", "b"], "duration_secs": 60});
    apart(&third, again.refused("create_vote", vote), "expelled");
    apart(&third, again.refused("elect_leader", json!({"room_id": "lobby"})), "expelled");
    let task = json!({"room_id": "lobby", "title": "?"});
    apart(&third, again.refused("assign_task", task), "expelled");
    // What others said may have come before they hung up; what it said itself after that is
    // nowhere.
    let texts: Vec<String> = Agent::open(&third).lobby().into_iter().map(|(_, it)| it).collect();
    assert_eq!(texts[0], "from the third");
    assert!(!texts.contains(&"still here?".to_owned()), "{texts:?}");
    assert!(error(&command(&third, &["invite"])).contains("no part"));
    // The founder can go, too.
    assert!(command(&second, &["expel", first.text("node_id"), "--yes"]).status.success());
    until("the founder knows", || first.status()["parted"]["how"] == "expelled");
    Agent::open(&second).say("alone");
}

#[test]
fn a_node_leaves_and_what_it_said_stays() {
    let dirs = [temp(), temp(), temp()];
    let [mut first, second, third] = three(&dirs);
    let one = first.text("node_id").to_owned();
    Agent::open(&first).say("from the founder");
    everybody_has(&[&first, &second, &third], "from the founder");
    // It may take a moment until it is certain that another has all of it.
    until("it leaves", || command(&first, &["leave", "--yes"]).status.success());
    assert_eq!(ended(&mut first.child).code(), Some(0));
    for node in [&second, &third] {
        until("it has left", || state(node, &one) == "left");
        until("nobody counts on it", || !knows_of(node, &one));
        assert!(Agent::open(node).lobby().iter().any(|(_, it)| it == "from the founder"));
    }
    // Its rooms were handed over: the numbers go on.
    assert_eq!(Agent::open(&second).say("and on"), 2);
    everybody_has(&[&third], "and on");
    let archive = up(dirs[0].path(), &[]);
    assert_eq!(archive.status()["parted"]["how"], "left");
    assert!(archive.text("apart").contains("has left"), "{}", archive.ready);
    let mut agent = Agent::open(&archive);
    agent.call("join_room", json!({"room_id": "lobby"})).unwrap();
    let send = json!({"room_id": "lobby", "content": "still here?"});
    apart(&archive, agent.refused("send_message", send), "left");
    assert_eq!(Agent::open(&archive).lobby(), [(1, "from the founder".to_owned())]);
}

#[test]
fn who_is_alone_leaves_by_force_only() {
    let dir = temp();
    let mut node = up(dir.path(), &[]);
    Agent::open(&node).say("to nobody");
    let text = error(&command(&node, &["leave", "--yes"]));
    assert!(text.contains("no other member is connected") && text.contains("--force"), "{text}");
    assert!(command(&node, &["leave", "--yes", "--force"]).status.success());
    assert_eq!(ended(&mut node.child).code(), Some(0));
}

#[test]
fn a_node_that_is_gone_is_retired_and_told_when_it_comes_back() {
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let three = third.text("node_id").to_owned();
    Agent::open(&third).say("before it went");
    everybody_has(&[&first, &second, &third], "before it went");
    let here = error(&command(&first, &["retire", "third", "--yes"]));
    assert!(here.contains("is heard"), "{here}");
    third.kill();
    until("it is retired", || command(&first, &["retire", "third", "--yes"]).status.success());
    for node in [&first, &second] {
        until("all know", || state(node, &three) == "retired");
        until("nobody waits for it", || !knows_of(node, &three));
    }
    let third = up(dirs[2].path(), &[]);
    until("it is told", || third.status()["parted"]["how"] == "retired");
    assert_eq!(Agent::open(&third).lobby().len(), 1);
}
