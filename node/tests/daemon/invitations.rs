//! Tickets that admit so many nodes, for so long.

use std::{fs, os::unix::fs::PermissionsExt as _};

use mesh::name::id::{MeshId, NodeId, parse_hex};
use node::invitation::{Invitation, Join};
use serde_json::Value;

use crate::harness::{Agent, Daemon, refused, temp, until, up};
use crate::members::{command, error, everybody_has, state};

/// A ticket, by these flags.
fn invite(node: &Daemon, flags: &[&str]) -> String {
    let output = command(node, &[&["invite"], flags].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What the node says of the tickets that it made.
fn listed(node: &Daemon) -> Vec<Value> {
    let text = invite(node, &["--list", "--json"]);
    serde_json::from_str(&text).unwrap()
}

/// What keeps a new node from joining.
fn not_let_in(ticket: &str) -> String {
    let dir = temp();
    let text = refused(dir.path(), &["--no-auth", "--join", ticket]);
    assert!(text.contains("--join: "), "{text}");
    assert!(!dir.path().join("mesh.key").exists(), "it has learned nothing of the mesh");
    text
}

/// How one node came, as another one says as soon as it knows of it.
fn joined(at: &Daemon, of: &Daemon) -> Value {
    let mut joined = None;
    until("it is a member there, too", || {
        let output = command(at, &["members", "--json"]);
        let members: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut all = members.as_array().unwrap().iter();
        joined = all.find(|it| it["node_id"] == of.text("node_id")).map(|it| it["joined"].clone());
        joined.is_some()
    });
    joined.unwrap()
}

#[test]
fn a_ticket_admits_as_many_nodes_as_it_says_also_after_a_restart() {
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    Agent::open(&first).say("before");
    let ticket = invite(&first, &["--uses", "2"]);
    let at = first.ready["listen"][0].as_str().unwrap().to_owned();
    let second = up(dirs[1].path(), &["--join", &ticket]);
    until("it is let in", || state(&first, second.text("node_id")) == "connected");
    everybody_has(&[&second], "before");
    // The same node again, and a restart of the one that counts, use nothing up.
    second.stop();
    first.stop();
    let file = dirs[0].path().join("invitations.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = up(dirs[0].path(), &["--listen", &at]);
    let second = up(dirs[1].path(), &["--join", &ticket]);
    until("it is back", || state(&first, second.text("node_id")) == "connected");
    assert_eq!(
        (&listed(&first)[0]["used"], &listed(&first)[0]["state"]),
        (&1.into(), &"open".into())
    );
    let third = up(dirs[2].path(), &["--join", &ticket]);
    until("it is let in", || state(&first, third.text("node_id")) == "connected");
    let text = not_let_in(&ticket);
    assert!(text.contains("used up"), "{text}");
    assert_eq!(listed(&first)[0]["state"], "used_up");
    // Who came how.
    let id = listed(&first)[0]["id"].clone();
    assert_eq!(joined(&first, &first), "founded");
    assert_eq!(joined(&first, &third)["invited"], id);
    assert_eq!(joined(&second, &third), Value::Null, "it is known where the ticket was made");
    // Those that it admitted are members like all others.
    assert!(!invite(&third, &[]).is_empty());
}

#[test]
fn a_ticket_that_has_expired_was_revoked_or_is_from_before_a_rotation_admits_nobody() {
    let dir = temp();
    let first = up(dir.path(), &[]);
    let short = invite(&first, &["--expires", "1s"]);
    until("it has expired", || listed(&first)[0]["state"] == "expired");
    let text = not_let_in(&short);
    assert!(text.contains("has expired"), "{text}");
    let revoked = invite(&first, &["--expires", "2h", "--uses", "3"]);
    let id = listed(&first)[1]["id"].as_str().unwrap().to_owned();
    assert!(command(&first, &["invite", "--revoke", &id]).status.success());
    let text = not_let_in(&revoked);
    assert!(text.contains("was revoked"), "{text}");
    let void = invite(&first, &["--uses", "3"]);
    assert!(command(&first, &["rotate-secret"]).status.success());
    let text = not_let_in(&void);
    assert!(text.contains("secret has changed"), "{text}");
    let states: Vec<Value> = listed(&first).iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["secret_changed", "revoked", "secret_changed"]);
    // What cannot be is named.
    for (flags, part) in [
        (["--uses", "0"], "--uses: choose 1 to"),
        (["--expires", "0s"], "--expires: choose 1s"),
        (["--expires", "soon"], "write a time such as"),
        (["--revoke", "1234"], "--list"),
    ] {
        let text = error(&command(&first, &[&["invite"], flags.as_slice()].concat()));
        assert!(text.contains(part), "{text}");
    }
    first.stop();
    let dir = dir.path().to_str().unwrap();
    let stopped = crate::harness::clawmeshd(&["invite", "--uses", "1", "--data-dir", dir]).output();
    let text = error(&stopped.unwrap());
    assert!(text.contains("no node runs") && text.contains("counts"), "{text}");
}

#[test]
fn a_forged_ticket_and_one_whose_maker_is_away_admit_nobody() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let good = invite(&first, &["--uses", "1"]);
    let Join::Invitation(good) = good.parse().unwrap() else { panic!("it is limited") };
    assert_eq!(good.mesh, MeshId(parse_hex(first.text("mesh_id")).unwrap()));
    // It carries nothing of the mesh's secret.
    let secret = fs::read_to_string(dirs[0].path().join("mesh.key")).unwrap();
    let (secret, _) = secret.split_once(' ').unwrap();
    assert_ne!(*good.key, parse_hex::<32>(secret).unwrap());
    let mut forged = good.clone();
    forged.key[0] ^= 1;
    let text = not_let_in(&forged.to_text());
    assert!(text.contains("does not know this invitation"), "{text}");
    // Another node at that place cannot answer for the one that made it.
    let other = Invitation { inviter: NodeId([7; 32]), ..good.clone() };
    let text = not_let_in(&other.to_text());
    assert!(text.contains("another node answered"), "{text}");
    assert_eq!(listed(&first)[0]["used"], 1, "whoever shows the key and proves an id is counted");
    first.stop();
    let text = not_let_in(&good.to_text());
    assert!(text.contains("connection refused") && text.contains("has to run"), "{text}");
    // A node that is in another mesh says so, and uses nothing up.
    let third = temp();
    let member = up(dirs[1].path(), &[]);
    let peer = up(third.path(), &["--join", member.text("ticket")]);
    until("they have met", || state(&member, peer.text("node_id")) == "connected");
    peer.stop();
    let text = refused(third.path(), &["--no-auth", "--join", &good.to_text()]);
    assert!(text.contains("already belongs to another mesh"), "{text}");
}
