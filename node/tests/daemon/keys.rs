//! Minted keys: shown once, valid on all nodes, revoked on all nodes.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::harness::{Agent, Daemon, ask, clawmeshd, temp, until, up_keyed};

/// A node that checks keys; its own is in `dir`.
fn keyed(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

fn mint(node: &Daemon, more: &[&str]) -> String {
    let place = ["keys", "mint", "--data-dir", node.text("data_dir")];
    let output = ask(&[&place, more].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "the key alone");
    text.trim().to_owned()
}

fn list(node: &Daemon) -> Vec<Value> {
    let output = ask(&["keys", "list", "--json", "--data-dir", node.text("data_dir")]);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Why a command failed, in one line.
fn refusal(arguments: &[&str]) -> String {
    let output = clawmeshd(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Whether any file under `dir` has these bytes.
fn is_written(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_written(&path, bytes);
        }
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|it| it == bytes)
    })
}

#[test]
fn a_minted_key_opens_all_nodes_until_it_is_revoked_at_one() {
    let dirs = [temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();

    let key = mint(&first, &["--label", "build bots", "--tier", "pro"]);
    let local = mint(&first, &["--local"]);
    assert_ne!(key, local);
    let register = |node: &Daemon, key: &str| Agent::register(node.text("tcp"), key);
    drop(register(&first, &key).unwrap());
    drop(register(&first, &local).unwrap());
    until("the key is known at the other node", || register(&second, &key).is_ok());
    assert_eq!(register(&second, &local).err().as_deref(), Some("unauthorized"));

    let keys = list(&second);
    assert_eq!(keys.len(), 1, "the other one is the first node's own affair: {keys:?}");
    assert_eq!(list(&first).len(), 2);
    let shown = &keys[0];
    assert_eq!(shown["label"], "build bots");
    assert_eq!(shown["tier"], "pro");
    assert_eq!(shown["node_id"], first.text("node_id"));
    assert_eq!((&shown["revoked"], &shown["local"]), (&json!(false), &json!(false)));
    assert!(shown["minted_at"].as_str().unwrap().ends_with('Z'));
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    let table = ask(&["keys", "list", "--data-dir", first.text("data_dir")]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains(fingerprint) && table.contains("build bots"), "{table}");
    for (dir, text) in [(&dirs[0], &key), (&dirs[0], &local), (&dirs[1], &key)] {
        assert!(!is_written(dir.path(), text.as_bytes()), "the key's text is kept");
    }

    let mut attached = register(&first, &key).unwrap();
    let place = ["--data-dir", second.text("data_dir")];
    ask(&[&["keys", "revoke", &fingerprint[..8]][..], &place].concat());
    assert!(register(&second, &key).is_err(), "at once where it was revoked");
    let kept_out = || Agent::is_kept_out(first.text("tcp"), &key);
    until("it is known at the other node", kept_out);
    until("its agents are gone", || attached.is_hung_up());
    assert_eq!(list(&first).iter().filter(|it| it["revoked"] == true).count(), 1);
    drop(register(&first, &local).unwrap());
}

#[test]
fn a_key_has_the_terms_that_it_was_minted_with() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    mint(&node, &["--scopes", "read,operator.approvals", "--expires", "90d", "--owner", "ann"]);
    let listed = &list(&node)[0];
    assert_eq!(listed["scopes"], json!(["read", "approvals"]));
    assert_eq!((&listed["owner"], &listed["expired"]), (&json!("ann"), &json!(false)));
    assert!(listed["expires_at"].as_str() > listed["minted_at"].as_str());
    let output = ask(&["keys", "list", "--data-dir", node.text("data_dir")]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("read,approvals") && table.contains("(ann)"), "{table}");
}

#[test]
fn what_cannot_be_done_with_keys_is_said_in_one_line() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let data = node.text("data_dir").to_owned();
    let place = ["--data-dir", &data];
    let check = |arguments: &[&str], expect: &str| {
        let text = refusal(&[arguments, &place].concat());
        assert!(text.contains(expect), "{text}");
    };
    check(&["keys", "revoke", "abcdef"], "no key with the fingerprint \"abcdef\" was minted");
    check(&["keys", "mint", "--label", &"l".repeat(200)], "--label");
    check(&["keys", "mint", "--label", "two\nlines"], "--label two\\nlines");
    check(&["keys", "mint", "--owner", &"l".repeat(200)], "--owner");
    let output = clawmeshd(&["keys", "mint", "--scopes", "read,root"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("\"root\" is no scope") && text.contains("pairing"), "{text}");
    mint(&node, &[]);
    let fingerprint = list(&node)[0]["fingerprint"].as_str().unwrap().to_owned();
    check(&["keys", "revoke", &fingerprint[..2]], "give at least 6 digits");
    drop(node);
    for command in ["mint", "list"] {
        check(&["keys", command], "no node runs on");
    }
}

/// Registered under an id of its own.
fn known(node: &Daemon, key: &str) -> Result<Agent, String> {
    let mut agent = Agent::connect(node.text("tcp"));
    let payload = json!({"key": key, "name": "ann", "agent_id": "ann", "reconnect": true});
    agent.call("register", payload).map(|_| agent)
}

fn rooms(agent: &mut Agent) -> Vec<String> {
    let rooms = agent.call("list_rooms", json!({})).unwrap();
    let rooms = rooms["rooms"].as_array().expect("a list").iter();
    rooms.map(|room| room["name"].as_str().expect("a name").to_owned()).collect()
}

fn makes_a_plan(agent: &mut Agent) {
    let room = json!({"name": "plan", "visibility": "private"});
    let room = agent.call("create_room", room).unwrap()["room_id"].clone();
    agent.call("join_room", json!({"room_id": room})).unwrap();
    agent.call("send_message", json!({"room_id": room, "content": "step one"})).unwrap();
    agent.call("set_room", json!({"room_id": room, "title": "The plan"})).unwrap();
    agent.call("set_profile", json!({"emoji": "🦞"})).unwrap();
}

/// Whether what the earlier key said of its agent and its room is this one's word now.
fn has_its_word(agent: &mut Agent) -> bool {
    let rooms = agent.call("list_rooms", json!({})).unwrap();
    let plan = rooms["rooms"].as_array().unwrap().iter().find(|room| room["name"] == "plan");
    let title = plan.map(|room| room["mesh"]["title"].clone());
    let known = agent.call("get_profile", json!({"agent_id": "ann"})).unwrap();
    title == Some("The plan".into()) && known["emoji"] == "🦞"
}

/// Disconnected, and nobody with the key comes in.
fn is_out(agent: &mut Agent, node: &Daemon, key: &str) {
    until("it is disconnected", || agent.is_hung_up());
    assert!(Agent::is_kept_out(node.text("tcp"), key));
}

#[test]
fn a_rotated_key_is_in_force_at_once_and_has_all_that_was_the_old_ones() {
    let dir = temp();
    let file = dir.path().join("keys/auth.key");
    let data = dir.path().join("data");
    let place = ["--data-dir", data.to_str().unwrap()];
    let key_file = ["--key-file", file.to_str().unwrap()];
    let text = || fs::read_to_string(&file).unwrap().trim().to_owned();
    let node = up_keyed(&data, &key_file);
    let old = text();
    let shown = ask(&[&["key", "show"][..], &place].concat());
    assert_eq!(String::from_utf8(shown.stdout).unwrap().trim(), old);
    let mut agent = known(&node, &old).unwrap();
    makes_a_plan(&mut agent);
    assert!(Agent::register(node.text("tcp"), "wrong").is_err());

    let refused = refusal(&[&["key", "rotate"][..], &place].concat());
    assert!(refused.contains("--yes"), "nobody can be asked here: {refused}");
    assert_eq!(text(), old);

    ask(&[&["key", "rotate", "--yes"][..], &place].concat());
    let second = text();
    assert_ne!(second, old);
    is_out(&mut agent, &node, &old);
    let mut agent = known(&node, &second).unwrap();
    assert_eq!(rooms(&mut agent), ["lobby", "plan"]);
    assert!(has_its_word(&mut agent));

    // While no node runs, the file changes, and the rest follows later.
    drop(node);
    let rotated = ask(&[&["key", "rotate", "--yes"][..], &place, &key_file].concat());
    let notes = String::from_utf8(rotated.stderr).unwrap();
    let third = text();
    let node = up_keyed(&data, &key_file);
    let mut stranger = Agent::register(node.text("tcp"), &third).unwrap();
    assert_eq!(rooms(&mut stranger), ["lobby"]);
    let kept = notes.split('`').nth(1).and_then(|command| command.split(' ').next_back());
    let kept = kept.expect("the notes name the file");
    assert_eq!(fs::read_to_string(kept).unwrap().trim(), second);
    ask(&[&["key", "inherit", kept][..], &place].concat());
    let mut agent = known(&node, &third).unwrap();
    assert_eq!(rooms(&mut agent), ["lobby", "plan"]);
    assert!(has_its_word(&mut agent));
}

#[test]
fn a_minted_key_is_replaced_where_it_was_minted_by_its_holder() {
    let dirs = [temp(), temp(), temp()];
    let one = keyed(dirs[0].path(), &[]);
    let two = keyed(dirs[1].path(), &["--join", one.text("ticket")]);
    two.until_connected();
    let old = mint(&one, &["--tier", "pro", "--label", "ci"]);
    let mut agent = known(&one, &old).unwrap();
    makes_a_plan(&mut agent);
    let mut there = None;
    until("the key is known at the other node", || {
        there = Agent::register(two.text("tcp"), &old).ok();
        there.is_some()
    });
    let mut there = there.expect("it came in");

    let print = list(&one)[0]["fingerprint"].as_str().unwrap().to_owned();
    let key_in = |name: &str, key: &str| {
        let file = dirs[0].path().join(name);
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (old_file, wrong_file) = (key_in("old.key", &old), key_in("wrong.key", &mint(&one, &[])));
    let replace = |node: &Daemon, more: &[&str]| {
        let place = ["keys", "replace", &print, "--data-dir", node.text("data_dir")];
        [&place, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = |node: &Daemon, more: &[&str]| {
        let arguments = replace(node, more);
        refusal(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let text = refused(&two, &["--old-key-file", &old_file]);
    assert!(text.contains("run this there"), "{text}");
    let text = refused(&one, &[]);
    assert!(text.contains("--old-key-file"), "{text}");
    let text = refused(&one, &["--old-key-file", &wrong_file]);
    assert!(text.contains("has the fingerprint"), "{text}");

    let arguments = replace(&one, &["--old-key-file", &old_file]);
    let replaced = ask(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let new = String::from_utf8(replaced.stdout).unwrap().trim().to_owned();
    is_out(&mut agent, &one, &old);
    until("the other node knows", || there.is_hung_up());
    let mut agent = known(&one, &new).unwrap();
    assert_eq!(rooms(&mut agent), ["lobby", "plan"]);
    assert!(has_its_word(&mut agent));
    drop(agent);
    until("its id is its own there, too", || known(&two, &new).is_ok());
    // A node that was never shown the old key opens its rooms for the new one.
    let third = keyed(dirs[2].path(), &["--join", one.text("ticket")]);
    third.until_connected();
    until("its rooms are there", || {
        known(&third, &new).is_ok_and(|mut agent| {
            rooms(&mut agent) == ["lobby", "plan"] && has_its_word(&mut agent)
        })
    });
    let output = ask(&["keys", "list", "--data-dir", two.text("data_dir")]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("replaced") && table.matches(" ci").count() == 2, "{table}");
    let text = refused(&one, &["--old-key-file", &old_file]);
    assert!(text.contains("replaced before"), "{text}");
}
