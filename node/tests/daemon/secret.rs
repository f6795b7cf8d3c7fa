//! The secret of a mesh's connections changes.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::harness::{Agent, Daemon, ask, temp, until, up};
use crate::members::{command, error, everybody_has, state, three};

/// Which secret a member has, as a node sees it.
pub(crate) fn secret(at: &Daemon, of: &str) -> Value {
    let output = ask(&["members", "--json", "--data-dir", at.text("data_dir")]);
    let members: Value = serde_json::from_slice(&output.stdout).unwrap();
    let member = members.as_array().unwrap().iter().find(|it| it["node_id"] == of).cloned();
    member.map_or(Value::Null, |it| it["secret"].clone())
}

fn ticket(node: &Daemon) -> String {
    let output = command(node, &["invite"]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a node knows that its secret is an old one.
fn is_refused(node: &Daemon) -> bool {
    let peers = node.status()["peers"].clone();
    peers.as_array().unwrap().iter().any(|it| it["trouble"] == "old_secret")
}

#[test]
fn after_a_rotation_an_old_ticket_admits_nobody_and_members_stay() {
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let old = first.text("ticket").to_owned();
    let ids = [&first, &second, &third].map(|it| it.text("node_id").to_owned());
    assert!(command(&second, &["rotate-secret"]).status.success());
    for node in [&first, &second, &third] {
        until("all have it", || ids.iter().all(|id| secret(node, id) == 1));
        for id in &ids {
            assert!(matches!(state(node, id).as_str(), "connected" | "here"), "nobody went");
        }
    }
    Agent::open(&third).say("under the new secret");
    everybody_has(&[&first, &second, &third], "under the new secret");
    let new = ticket(&first);
    assert_ne!(new, old);
    // Who has an old ticket gets no further than the door.
    let dir = temp();
    let late = up(dir.path(), &["--join", &old]);
    assert_eq!(late.text("mesh_id"), first.text("mesh_id"), "it is the same mesh");
    until("it is not let in", || is_refused(&late));
    assert_eq!(state(&first, late.text("node_id")), "unknown");
    assert!(Agent::open(&late).lobby().is_empty(), "it was told nothing");
    late.stop();
    // With a new one it is let in, with what it has written meanwhile.
    let late = up(dir.path(), &["--join", &new]);
    until("it is let in", || state(&first, late.text("node_id")) == "connected");
    everybody_has(&[&late], "under the new secret");
    // The files are their owner's alone, and nothing of a secret is in the output of anybody.
    for dir in &dirs {
        let file = dir.path().join("mesh.key");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 3, "its form, the newest, and the one before");
        let secrets = text.lines().skip(1).filter_map(|it| it.split(' ').nth(1));
        for one in secrets {
            let shown = command(&first, &["members", "--json"]).stdout;
            assert!(!String::from_utf8(shown).unwrap().contains(one));
        }
    }
}

#[test]
fn a_member_that_was_off_comes_back_after_several_rotations() {
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let id = third.text("node_id").to_owned();
    third.stop();
    until("it is away", || state(&first, &id) == "away" || state(&first, &id) == "heard");
    let away = error(&command(&first, &["rotate-secret"]));
    assert!(away.contains("--force") && away.contains("1 of the members"), "{away}");
    for _ in 0..4 {
        assert!(command(&first, &["rotate-secret", "--force"]).status.success());
    }
    until("the second has it", || secret(&first, second.text("node_id")) == 4);
    Agent::open(&first).say("while it was off");
    // It is where nobody knows it, and knows only the first secret.
    let third = up(dirs[2].path(), &[]);
    until("it has the newest", || secret(&first, &id) == 4 && secret(&third, &id) == 4);
    everybody_has(&[&third], "while it was off");
    // And so has everybody after a start.
    second.stop();
    let second = up(dirs[1].path(), &[]);
    until("it is back", || state(&second, first.text("node_id")) == "connected");
    assert_eq!(secret(&second, second.text("node_id")), 4);
}

#[test]
fn two_rotations_at_once_come_to_one() {
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let ids = [&first, &second, &third].map(|it| it.text("node_id").to_owned());
    std::thread::scope(|scope| {
        for node in [&first, &second] {
            scope.spawn(move || {
                assert!(command(node, &["rotate-secret", "--force"]).status.success());
            });
        }
    });
    let newest = |n: usize| {
        let text = fs::read_to_string(dirs[n].path().join("mesh.key")).unwrap();
        text.lines().nth(1).map(str::to_owned)
    };
    until("all have the same", || newest(0).is_some() && (1..3).all(|n| newest(n) == newest(0)));
    for node in [&first, &second, &third] {
        until("all say so", || {
            let all: Vec<Value> = ids.iter().map(|id| secret(node, id)).collect();
            all.iter().all(|it| it.is_number() && *it == all[0])
        });
    }
    // A ticket of any of them admits.
    let dir = temp();
    let late = up(dir.path(), &["--join", &ticket(&third)]);
    until("it is let in", || state(&first, late.text("node_id")) == "connected");
}

#[test]
fn nodes_that_all_changed_the_secret_while_they_were_apart_find_each_other() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let join = first.text("ticket").to_owned();
    let second = up(dirs[1].path(), &["--join", &join]);
    let ids = [first.text("node_id").to_owned(), second.text("node_id").to_owned()];
    until("they know each other", || state(&first, &ids[1]) == "connected");
    until("both ways", || state(&second, &ids[0]) == "connected");
    second.stop();
    assert!(command(&first, &["rotate-secret", "--force"]).status.success());
    first.stop();
    let second = up(dirs[1].path(), &[]);
    for _ in 0..2 {
        assert!(command(&second, &["rotate-secret", "--force"]).status.success());
    }
    let at = second.ready["listen"][0].as_str().unwrap().to_owned();
    second.stop();
    // The first learns nothing of where the second is but this.
    let _second = up(dirs[1].path(), &["--listen", &at]);
    let file = dirs[0].path().join("peers.json");
    fs::write(&file, format!("[\"{}@{at}\"]", ids[1])).unwrap();
    let first = up(dirs[0].path(), &[]);
    until("they meet, and the higher one counts", || {
        secret(&first, &ids[0]) == 2 && secret(&first, &ids[1]) == 2
    });
}
