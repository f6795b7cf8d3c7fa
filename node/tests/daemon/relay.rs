//! `clawmeshd relay`: a member that carries links, and keeps the directory alone.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Agent, Daemon, clawmeshd, refusal, refused, start, temp, until, up};
use crate::members::{command, state};

/// A relay that listens on loopback.
fn relay(dir: &Path, more: &[&str]) -> Daemon {
    start(&mut clawmeshd(&arguments(dir, more)), std::process::Stdio::inherit())
}

fn arguments<'a>(dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let own = ["relay", "--json", "--listen", "127.0.0.1:0", "--name", "carrier", "--data-dir"];
    [&own[..], &[dir.to_str().unwrap()], more].concat()
}

fn text(node: &Daemon, arguments: &[&str]) -> String {
    String::from_utf8(command(node, arguments).stdout).unwrap()
}

/// Which of its nodes are relays, as a node's `status` and `members` have it.
fn relays(node: &Daemon) -> [Vec<String>; 2] {
    let members: Value = serde_json::from_str(&text(node, &["members", "--json"])).unwrap();
    [node.status()["peers"].clone(), members].map(|all| {
        let all = all.as_array().unwrap();
        let relays = all.iter().filter(|it| it["relay"] == true);
        relays.map(|it| it["node_id"].as_str().unwrap().to_owned()).collect()
    })
}

fn copies(agent: &mut Agent) -> Value {
    let mesh = json!({ "durable": 2, "durable_wait_ms": 500 });
    let say = json!({ "room_id": "lobby", "content": "hello", "mesh": mesh });
    agent.call("send_message", say).unwrap()["mesh"]["durable"].clone()
}

#[test]
fn a_relay_has_no_agents_and_counts_for_nothing_but_links() {
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &["--name", "first"]);
    let ticket = first.text("ticket").to_owned();
    let carrier = relay(dirs[2].path(), &[&ticket]);
    let id = carrier.text("node_id").to_owned();
    assert_eq!(carrier.ready["relay"], true);
    for door in ["socket", "tcp", "http"] {
        assert_eq!(carrier.ready[door], Value::Null, "nobody attaches");
    }
    until("they meet", || state(&first, &id) == "connected");
    until("all know that it is one", || relays(&first) == [vec![id.clone()], vec![id.clone()]]);
    // It is there, and holds nothing.
    let mut agent = Agent::open(&first);
    agent.say("alone");
    let many = json!({ "room_id": "lobby", "content": "x", "mesh": { "durable": 2 } });
    assert_eq!(agent.call("send_message", many).unwrap_err(), "invalid_payload");
    // Others come by its ticket, and what is said is at them, not at it.
    let second = up(dirs[1].path(), &["--name", "second", "--join", carrier.text("ticket")]);
    let ids = [first.text("node_id").to_owned(), second.text("node_id").to_owned()];
    until("the nodes meet", || state(&first, &ids[1]) == "connected");
    until("both ways", || state(&second, &ids[0]) == "connected");
    until("the second knows it, too", || relays(&second)[1] == [id.clone()]);
    until("the other node holds it", || copies(&mut agent) == json!(2));
    let status = text(&carrier, &["status"]);
    assert!(status.starts_with("Relay carrier ("), "{status}");
    assert!(status.contains("no rooms and no agents") && !status.contains("\nRooms"), "{status}");
    assert!(text(&first, &["status"]).contains(", a relay, "), "{}", text(&first, &["status"]));
    assert!(text(&second, &["members"]).contains("connected, a relay"));
    // When the node that gives numbers dies the other one goes on, and the relay does not.
    first.kill();
    let mut other = Agent::open(&second);
    other.say("and on");
    assert_eq!(copies(&mut other), json!(1), "the relay is left");
    let rooms = second.status()["rooms"].clone();
    let sequencers = rooms.as_array().unwrap().iter().map(|room| room["sequencer"].clone());
    assert!(sequencers.clone().all(|it| it == json!(ids[1]) || it == json!(ids[0])));
    // After a start it is what it was, without a ticket; and its end changes nothing.
    carrier.stop();
    let carrier = relay(dirs[2].path(), &[]);
    assert_eq!(carrier.text("node_id"), id);
    until("it is back", || state(&second, &id) == "connected");
    carrier.kill();
    let before = other.say("one");
    assert_eq!(other.say("two"), before + 1);
    let rooms = second.status()["rooms"].clone();
    assert!(rooms.as_array().unwrap().iter().all(|room| room["holes"] == 0));
}

#[test]
fn a_node_is_a_relay_from_its_first_start_on_or_never() {
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let ticket = first.text("ticket").to_owned();
    let other = up(dirs[1].path(), &[]);
    other.stop();
    let refuses = |dir: &Path, more: &[&str]| refusal(&mut clawmeshd(&arguments(dir, more)));
    assert!(refuses(dirs[1].path(), &[&ticket]).contains("of a node with rooms"));
    assert!(refuses(dirs[2].path(), &[]).contains("give it a ticket"));
    relay(dirs[2].path(), &[&ticket]).stop();
    let error = refused(dirs[2].path(), &["--no-auth"]);
    assert!(error.contains("it is a relay's: run `clawmeshd relay`"), "{error}");
    let mut off = clawmeshd(&arguments(dirs[2].path(), &[]));
    assert!(refusal(off.env("CLAWMESH_RELAY", "off")).contains("--relay"));
}
