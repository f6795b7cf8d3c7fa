//! Backups of nodes that run and that are stopped, what is made of them, and the check of stopped
//! stores.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use serde_json::json;

use crate::harness::{Agent, ask, clawmeshd, temp, until, up, up_keyed};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A command that fails: what it says.
fn fails(arguments: &[&str]) -> String {
    let output = clawmeshd(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn contents(agent: &mut Agent) -> Vec<String> {
    agent.lobby().into_iter().map(|it| it.1).collect()
}

#[test]
fn a_backup_under_load_has_all_that_was_acknowledged_before_it() {
    let (dir, room) = (temp(), temp());
    let node = up(dir.path(), &[]);
    let mut agent = Agent::open(&node);
    agent.say("first");
    let (said, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let backup = room.path().join("backup");
    let before = thread::scope(|scope| {
        scope.spawn(|| {
            let mut agent = Agent::open(&node);
            while !stop.load(Ordering::SeqCst) {
                let n = said.load(Ordering::SeqCst) + 1;
                agent.say(&format!("load {n}"));
                said.store(n, Ordering::SeqCst);
            }
        });
        until("there is load", || said.load(Ordering::SeqCst) >= 20);
        let before = said.load(Ordering::SeqCst);
        let output = ask(&["backup", "--data-dir", text(dir.path()), text(&backup)]);
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), text(&backup));
        stop.store(true, Ordering::SeqCst);
        before
    });
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&backup).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
    assert!(!room.path().join("backup.partial").exists());
    let again = fails(&["backup", "--data-dir", text(dir.path()), text(&backup)]);
    assert!(again.contains("is there already"), "{again}");

    // Restored while the old one still runs: a new node, which meets the old one and gets the rest.
    let restored = room.path().join("restored");
    let output = ask(&["restore", text(&backup), "--data-dir", text(&restored)]);
    let name = String::from_utf8(output.stdout).unwrap();
    assert_ne!(name.trim(), node.text("node_id"));
    let said_so = String::from_utf8(output.stderr).unwrap();
    assert!(said_so.contains("this is a new node"), "{said_so}");
    let last = format!("load {}", said.load(Ordering::SeqCst));
    let new = up(&restored, &["--join", node.text("ticket")]);
    assert_eq!(new.text("node_id"), name.trim());
    assert_eq!(new.text("mesh_id"), node.text("mesh_id"));
    let mut agent = Agent::open(&new);
    let there = contents(&mut agent);
    for n in 1..=before {
        assert!(there.contains(&format!("load {n}")), "{n} of {before}");
    }
    until("the rest comes", || contents(&mut agent).contains(&last));
    until("and none twice", || {
        let all = contents(&mut agent);
        all.len() == said.load(Ordering::SeqCst) + 1
    });
    // Both go on, and nobody has forked.
    let here = agent.say("from the new one");
    let mut old = Agent::open(&node);
    until("it is there", || old.lobby().contains(&(here, "from the new one".to_owned())));
    let there = old.say("from the old one");
    until("it is here", || agent.lobby().contains(&(there, "from the old one".to_owned())));
    assert_eq!((&node.status()["forked"], &new.status()["forked"]), (&json!([]), &json!([])));
}

#[test]
fn a_stopped_node_is_backed_up_and_restored_with_its_private_rooms() {
    let (dir, room) = (temp(), temp());
    let key_file = room.path().join("auth.key");
    let node = up_keyed(dir.path(), &["--key-file", text(&key_file)]);
    let key = fs::read_to_string(&key_file).unwrap().trim().to_owned();
    let mut agent = Agent::register(node.text("tcp"), &key).unwrap();
    agent.say("in public");
    let den = json!({"name": "den", "public": false});
    let den = agent.call("create_room", den).unwrap()["room_id"].clone();
    agent.call("join_room", json!({"room_id": den})).unwrap();
    let secret = json!({"room_id": den, "content": "between us"});
    agent.call("send_message", secret).unwrap();
    // What the backup does not have: numbers that clients have seen.
    node.stop();
    let config = room.path().join("node.toml");
    fs::write(&config, format!("key-file = {:?}\n", text(&key_file))).unwrap();
    let backup = room.path().join("a/b/backup");
    let data = text(dir.path());
    ask(&["backup", "--data-dir", data, "--config", text(&config), text(&backup)]);
    let node = up_keyed(dir.path(), &["--key-file", text(&key_file)]);
    let lost = Agent::register(node.text("tcp"), &key).unwrap().say("after the backup");
    let before = node.text("node_id").to_owned();
    node.kill();

    let restored = room.path().join("restored");
    fs::create_dir(&restored).unwrap();
    ask(&["restore", text(&backup), "--data-dir", text(&restored)]);
    let not_empty = fails(&["restore", text(&backup), "--data-dir", text(&restored)]);
    assert!(not_empty.contains("is not empty"), "{not_empty}");
    let output = ask(&["check", "--data-dir", text(&restored)]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "all of it holds");
    let clients_key = restored.join("auth.key");
    let node = up_keyed(&restored, &["--key-file", text(&clients_key)]);
    assert_ne!(node.text("node_id"), before);
    let mut agent = Agent::register(node.text("tcp"), &key).unwrap();
    let now = agent.say("from now on");
    assert!(now > lost, "{now} after {lost}: no number means two messages");
    let page = json!({"room_id": den, "since_seq": 0, "limit": 10});
    let page = agent.call("get_history", page).unwrap();
    assert_eq!(page["messages"][0]["content"], "between us");
    agent.call("join_room", json!({"room_id": den})).unwrap();
    agent.call("send_message", json!({"room_id": den, "content": "still"})).unwrap();
    node.stop();
    ask(&["check", "--data-dir", text(&restored)]);
}

#[test]
fn the_same_name_is_for_who_moves() {
    let (dir, room) = (temp(), temp());
    let node = up(dir.path(), &[]);
    let name = node.text("node_id").to_owned();
    Agent::open(&node).say("one");
    node.stop();
    let backup = room.path().join("backup");
    ask(&["backup", "--data-dir", text(dir.path()), text(&backup)]);
    let moved = room.path().join("moved");
    let output = ask(&["restore", "--same-identity", text(&backup), "--data-dir", text(&moved)]);
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.contains("no node follows either of them"), "{warned}");
    let node = up(&moved, &[]);
    assert_eq!(node.text("node_id"), name);
    // It goes on where it was: in calm weather.
    assert_eq!(Agent::open(&node).say("two"), 2);
}

#[test]
fn what_is_no_backup_is_refused_and_leaves_nothing() {
    let (dir, room) = (temp(), temp());
    up(dir.path(), &[]).stop();
    let restored = room.path().join("restored");
    let refused = |from: &Path| {
        let why = fails(&["restore", text(from), "--data-dir", text(&restored)]);
        let left = fs::read_dir(&restored).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{why}");
        why
    };
    let why = refused(dir.path());
    assert!(why.contains("is no backup"), "{why}");
    let backup = room.path().join("backup");
    ask(&["backup", "--data-dir", text(dir.path()), text(&backup)]);
    let manifest = fs::read_to_string(backup.join("backup.json")).unwrap();
    fs::write(backup.join("backup.json"), manifest.replace("\"form\": 1", "\"form\": 9")).unwrap();
    let why = refused(&backup);
    assert!(why.contains("use that version"), "{why}");
    fs::write(backup.join("backup.json"), manifest).unwrap();
    // The key of another node.
    let key = fs::read(backup.join("node.key")).unwrap();
    fs::write(backup.join("node.key"), format!("{}\n", "11".repeat(32))).unwrap();
    let why = refused(&backup);
    assert!(why.contains("is not the key of node"), "{why}");
    fs::write(backup.join("node.key"), key).unwrap();
    // Damaged on its way.
    let store = backup.join("clawmesh.redb");
    let mut bytes = fs::read(&store).unwrap();
    for byte in bytes.iter_mut().skip(4_096).step_by(64) {
        *byte ^= 1;
    }
    fs::write(&store, bytes).unwrap();
    let why = refused(&backup);
    assert!(why.contains("the backup's store"), "{why}");
}

#[test]
fn a_check_is_of_a_stopped_node() {
    let (dir, none) = (temp(), temp());
    let nothing = fails(&["check", "--data-dir", text(none.path())]);
    assert!(nothing.contains("no node was ever started"), "{nothing}");
    let node = up(dir.path(), &[]);
    Agent::open(&node).say("one");
    let running = fails(&["check", "--data-dir", text(dir.path())]);
    assert!(running.contains("in use"), "{running}");
    node.stop();
    let output = ask(&["check", "--repair", "--data-dir", text(dir.path())]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("signatures"), "{told}");
    // Nothing was wrong, so nothing was copied or written.
    assert!(!dir.path().join("clawmesh.redb.before-repair").exists());
}

#[test]
fn a_check_of_a_damaged_store_says_so_and_does_not_panic() {
    let dir = temp();
    let node = up(dir.path(), &[]);
    Agent::open(&node).say("one");
    node.stop();
    let store = dir.path().join("clawmesh.redb");
    let sound = fs::read(&store).unwrap();
    // At many places behind the journal, one at a time: some are in pages that are not used.
    let start = usize::try_from(store::limits::JOURNAL_BYTES).unwrap();
    let places = (start + 4_096..sound.len()).step_by((sound.len() - start) / 24);
    let mut found = 0;
    for place in places {
        let mut bytes = sound.clone();
        bytes.iter_mut().skip(place).take(64).for_each(|byte| *byte ^= 0x5a);
        fs::write(&store, bytes).unwrap();
        let output = clawmeshd(&["check", "--data-dir", text(dir.path())]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!told.contains("panicked"), "at {place}: {told}");
        if !output.status.success() {
            found += 1;
            assert!(told.contains("error: "), "at {place}: {told}");
        }
    }
    assert!(found > 0, "no damage was found");
}
