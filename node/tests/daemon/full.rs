//! A disk that is full, by a limit of what files may be: `prlimit` needs no other user's rights.

use std::{fs, io::Write as _, process::Command, thread};

use serde_json::json;

use crate::{
    goclaw::Recorder,
    harness::{
        Agent, Daemon, ask, clawmeshd, refused_without_room, temp, until, up, up_logging_to,
        up_without_room,
    },
};

/// No file may be written past so many bytes.
fn limit(node: &Daemon, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let id = node.child.id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &id, &limit]).status().unwrap().success());
}

fn is_full(node: &Daemon) -> bool {
    node.status()["disk_full"] == true
}

#[test]
fn a_node_whose_disk_is_full_can_be_read_and_goes_on_when_there_is_room() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let mut reader = Agent::open(&node);
    reader.say("before");
    let mut writer = Agent::open(&node);
    let mut program = Recorder::connect(&node);
    program.gets("connect", &json!({"protocol": 3}));
    let mut health = || {
        let health = program.gets("health", &json!({}));
        (health["status"].clone(), health["database"].clone())
    };
    assert_eq!(health(), (json!("ok"), json!("ok")));
    limit(&node, "4096");
    // Who finds the disk full waits; who comes after it is told.
    let waiting = thread::spawn(move || writer.say("meanwhile"));
    until("the disk is full", || is_full(&node));
    let said = reader.call("send_message", json!({"room_id": "lobby", "content": "refused"}));
    assert_eq!(said.unwrap_err(), "internal_error");
    assert_eq!(reader.lobby(), [(1, "before".to_owned())]);
    let mut newcomer = Agent::open(&node);
    assert_eq!(newcomer.lobby(), [(1, "before".to_owned())]);
    assert_eq!(newcomer.call("list_rooms", json!({})).unwrap()["rooms"][0]["name"], "lobby");
    assert!(crate::metrics::scrape(&node)["clawmesh_disk_full"] == 1.0);
    assert!(!waiting.is_finished(), "answered without room for it");
    assert_eq!(health(), (json!("degraded"), json!("full")));

    limit(&node, "unlimited");
    assert_eq!(waiting.join().unwrap(), 2);
    until("there is room", || !is_full(&node));
    assert_eq!(newcomer.say("after"), 3);
    assert_eq!(health(), (json!("ok"), json!("ok")));
    assert!(crate::metrics::scrape(&node)["clawmesh_disk_full"] == 0.0);
    let all = reader.lobby();
    let contents: Vec<&str> = all.iter().map(|(_, content)| content.as_str()).collect();
    assert_eq!(contents, ["before", "meanwhile", "after"]);

    node.kill();
    let node = up(dir.path(), &[]);
    assert_eq!(Agent::open(&node).lobby(), all, "lost what was answered");
}

#[test]
fn a_secret_that_the_full_disk_has_no_room_for_is_taken_when_there_is_some() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let key = || fs::read_to_string(dir.path().join("mesh.key")).unwrap();
    let before = key();
    limit(&node, "10");
    let rotating = thread::spawn({
        let dir = dir.path().to_str().unwrap().to_owned();
        move || ask(&["rotate-secret", "--data-dir", &dir])
    });
    until("the disk is full", || is_full(&node));
    assert!(!rotating.is_finished(), "answered without room for it");
    assert_eq!(key(), before);
    limit(&node, "unlimited");
    let done = rotating.join().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(key().contains("\n1 "), "the next one is there, under its number");
    until("there is room", || !is_full(&node));
    node.kill();
    let node = up(dir.path(), &[]);
    assert_eq!(Agent::open(&node).say("goes on"), 1);
}

#[test]
fn a_new_node_that_has_no_room_says_what_to_do() {
    let dir = temp();
    let refused = |bytes: u64, file: &str| {
        let said = refused_without_room(dir.path(), bytes, &["--no-auth"]);
        assert!(said.contains(file) && said.contains("make room"), "{said}");
        assert!(!said.contains("redb::") && !said.contains("damaged"), "{said}");
    };
    refused(10, "clawmesh.redb");
    refused(4_096, "clawmesh.redb");
    let node = up(dir.path(), &[]);
    assert_eq!(Agent::open(&node).say("now there is some"), 1);
}

/// Whether the node was stopped or killed before: it starts without room for a byte, is read, says
/// so, and goes on when there is room.
#[test]
fn a_node_starts_on_a_full_disk_to_be_read_and_goes_on_when_there_is_room() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let id = node.text("node_id").to_owned();
    assert_eq!(Agent::open(&node).say("before"), 1);
    node.stop();
    for (last, stopped) in [(1, true), (2, false)] {
        let node = up_without_room(dir.path(), 10);
        assert_eq!((node.text("node_id"), &node.ready["disk_full"]), (&*id, &true.into()));
        assert!(is_full(&node), "it says so, though there is no file that says where");
        let mut agent = Agent::open(&node);
        assert_eq!(agent.lobby().len(), last);
        assert_eq!(agent.call("list_rooms", json!({})).unwrap()["rooms"][0]["name"], "lobby");
        let said = agent.call("send_message", json!({"room_id": "lobby", "content": "refused"}));
        assert!(said.is_err());
        limit(&node, "unlimited");
        until("there is room", || !is_full(&node));
        assert_eq!(agent.say("again"), last as u64 + 1);
        if stopped {
            node.stop();
        } else {
            node.kill();
        }
    }
    assert_eq!(Agent::open(&up(dir.path(), &[])).lobby().len(), 3);
}

#[test]
fn a_file_that_the_full_disk_has_no_room_for_is_as_it_was_and_leaves_nothing() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let invite = || {
        let dir = dir.path().to_str().unwrap();
        clawmeshd(&["invite", "--uses", "1", "--data-dir", dir]).output().unwrap()
    };
    assert!(invite().status.success());
    let file = dir.path().join("invitations.json");
    let before = fs::read_to_string(&file).unwrap();
    limit(&node, "10");
    let refused = invite();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(said.contains("invitations.json") && said.contains("make room"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert!(!fs::exists(dir.path().join("invitations.json.new")).unwrap());
    limit(&node, "unlimited");
    assert!(invite().status.success());
    assert_ne!(fs::read_to_string(&file).unwrap(), before);
}

/// The log is often on the disk that is full.
#[test]
fn a_node_whose_log_cannot_be_written_goes_on() {
    let dir = temp();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let node = up_logging_to(full.into(), dir.path(), &["--no-auth", "--log", "debug"]);
    let mut agent = Agent::open(&node);
    assert_eq!(agent.say("unseen in the log"), 1);
    assert_eq!(agent.lobby(), [(1, "unseen in the log".to_owned())]);
    node.stop();
}

#[test]
fn a_node_whose_disk_is_full_stops_when_told_and_keeps_what_it_answered() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    let mut reader = Agent::open(&node);
    reader.say("before");
    limit(&node, "4096");
    let payload = json!({"room_id": "lobby", "content": "lost"});
    let line = json!({"id": "x", "type": "send_message", "payload": payload});
    writeln!(reader.read.get_mut(), "{line}").unwrap();
    until("the disk is full", || is_full(&node));
    node.stop();
    assert!(!fs::exists(dir.path().join("run.json")).unwrap(), "it stopped in order");
    let node = up(dir.path(), &[]);
    assert_eq!(Agent::open(&node).lobby(), [(1, "before".to_owned())]);
}
