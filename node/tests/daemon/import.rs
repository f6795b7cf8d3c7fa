//! What a ClawChat server had, on nodes: under its ids and numbers, for its clients' cursors and keys.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Output,
};

use client::sealing::RoomKey;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Agent, Daemon, ask, clawmeshd, refused, temp, until, up, up_keyed};

const SCHEMA: &str = "
    CREATE TABLE rooms (room_id TEXT PRIMARY KEY, name TEXT, description TEXT, parent_id TEXT,
        ephemeral INTEGER, created_at TEXT, created_by TEXT, visibility TEXT, owner_key TEXT,
        encrypted INTEGER);
    CREATE TABLE messages (message_id TEXT PRIMARY KEY, room_id TEXT, agent_id TEXT, agent_name TEXT,
        content TEXT, reply_to TEXT, mentions TEXT, metadata TEXT, timestamp TEXT, seq INTEGER);
    CREATE TABLE room_sequences (room_id TEXT PRIMARY KEY, last_seq INTEGER);
    CREATE TABLE room_tasks (task_id TEXT, room_id TEXT, title TEXT, description TEXT, status TEXT,
        assignee TEXT, created_by TEXT, created_at TEXT, updated_at TEXT, note TEXT);
    CREATE TABLE votes (vote_id TEXT, room_id TEXT, title TEXT, description TEXT, options TEXT,
        created_by TEXT, created_at TEXT, closes_at TEXT, status TEXT, eligible_voters INTEGER);
    CREATE TABLE vote_ballots (vote_id TEXT, agent_id TEXT, option_index INTEGER);
    CREATE TABLE api_keys (key TEXT, label TEXT, tier TEXT, created_at TEXT);
";
const LOBBY: &str = "5f0e0d0c-0b0a-4908-8706-050403020100";
const PLAN: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const SECRET: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";
const PRIVATE: &str = "2f0e0d0c-0b0a-4908-8706-050403020100";
const KEY: &str = "ck_a_key_of_the_old_server";
/// What agents of the encrypted room share.
const SHARED: &str = "correct horse battery staple";

/// A server's file: a lobby, a room with holes in its numbers, an encrypted one and a private one.
fn server(dir: &Path) -> PathBuf {
    let file = dir.join("clawchat.db");
    let db = Connection::open(&file).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    db.execute_batch(SCHEMA).unwrap();
    let at = "2023-11-14T22:13:20.500Z";
    for (id, name, visibility, owner, encrypted) in [
        (LOBBY, "lobby", "public", None, 0),
        (PLAN, "plan", "public", Some("another key"), 0),
        (SECRET, "secret", "public", None, 1),
        (PRIVATE, "private", "private", Some(KEY), 0),
    ] {
        db.execute(
            "INSERT INTO rooms VALUES (?1, ?2, 'what for', NULL, 0, ?3, 'ann', ?4, ?5, ?6)",
            (id, name, at, visibility, owner, encrypted),
        )
        .unwrap();
    }
    let blob = RoomKey::derive(SHARED, SECRET).seal([7; 12], "nobody else reads this").unwrap();
    let decision = r#"{"type":"decision","decided_by":"ann"}"#;
    for (id, room, seq, content, reply_to, metadata) in [
        ("l1", LOBBY, 41, "hello", None, None),
        ("p1", PLAN, 500, "one", None, Some(r#"{"kind":"fyi","x":[1,2]}"#)),
        ("p2", PLAN, 501, "two", Some("p1"), None),
        ("p3", PLAN, 700, "hm", None, Some(r#"{"type":"thinking"}"#)),
        ("p4", PLAN, 900_000, "we do it", None, Some(decision)),
        ("s1", SECRET, 1, blob.as_str(), None, None),
        ("q1", PRIVATE, 3, "psst", None, None),
    ] {
        db.execute(
            "INSERT INTO messages VALUES (?1, ?2, 'ann', 'Ann', ?3, ?4, '[\"bob\"]', ?5, ?6, ?7)",
            (id, room, content, reply_to, metadata, at, seq),
        )
        .unwrap();
    }
    db.execute_batch(&format!(
        "INSERT INTO room_sequences VALUES ('{PLAN}', 900010), ('{SECRET}', 1);
         INSERT INTO room_tasks VALUES ('t', '{PLAN}', 'paint it', 'all of it', 'in_progress', 'bob', 'ann',
            '{at}', '2023-11-15T00:00:00Z', 'blue');
         INSERT INTO votes VALUES ('v', '{PLAN}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', '{at}', NULL,
            'closed', 4);
         INSERT INTO vote_ballots VALUES ('v', 'ann', 0), ('v', 'bob', 0), ('v', 'cy', 1);
         INSERT INTO api_keys VALUES ('{KEY}', 'bots', 'pro', NULL);"
    ))
    .unwrap();
    file
}

/// `clawmeshd import` into `dir`/data.
fn import(file: &Path, dir: &Path, more: &[&str]) -> Output {
    let (data, key) = (dir.join("data"), dir.join("auth.key"));
    let place = ["import", file.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let key = ["--key-file", key.to_str().unwrap()];
    clawmeshd(&[&place[..], &key, more].concat()).output().unwrap()
}

fn imported(file: &Path, dir: &Path, more: &[&str]) -> String {
    let output = import(file, dir, more);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(file: &Path, dir: &Path) -> String {
    let output = import(file, dir, &[]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

fn node(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

fn own(node: &Daemon, dir: &Path) -> Agent {
    let key = fs::read_to_string(dir.join("auth.key")).unwrap();
    Agent::register(node.text("tcp"), key.trim()).unwrap()
}

fn history(agent: &mut Agent, room: &str, since: u64) -> Vec<Value> {
    let page = json!({"room_id": room, "since_seq": since, "limit": 500});
    match agent.call("get_history", page) {
        Ok(page) => page["messages"].as_array().unwrap().clone(),
        Err(code) => panic!("{room}: {code}"),
    }
}

fn numbers(messages: &[Value]) -> Vec<u64> {
    messages.iter().map(|it| it["seq"].as_u64().unwrap()).collect()
}

/// The status that a page is answered with.
fn status_of(http: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(http).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

/// What the old server had, at a node.
fn is_all_there(agent: &mut Agent) {
    let plan = history(agent, PLAN, 0);
    assert_eq!(numbers(&plan), [500, 501, 700, 900_000]);
    let first = &plan[0];
    assert_eq!(first["agent_id"], "ann");
    assert_eq!(first["agent_name"], "Ann");
    assert_eq!(first["timestamp"], "2023-11-14T22:13:20.500Z");
    assert_eq!(first["metadata"], json!({"kind": "fyi", "x": [1, 2]}));
    assert_eq!(plan[1]["reply_to_message"], first["message_id"]);
    assert_eq!(plan[2]["metadata"], json!({"type": "thinking"}));
    assert_eq!(plan[3]["metadata"], json!({"type": "decision", "decided_by": "ann"}));
    // Whatever number a client had last: of messages, or of none.
    for (cursor, count) in [(499, 4), (500, 3), (650, 2), (700, 1), (899_999, 1), (900_005, 0)] {
        assert_eq!(history(agent, PLAN, cursor).len(), count, "since {cursor}");
    }
    assert_eq!(numbers(&history(agent, "lobby", 0)), [41]);
    let secret = history(agent, SECRET, 0);
    let opened = RoomKey::derive(SHARED, SECRET).open(secret[0]["content"].as_str().unwrap());
    assert_eq!(opened.unwrap(), "nobody else reads this");
    let votes = agent.call("list_votes", json!({"room_id": PLAN})).unwrap();
    let vote = &votes["votes"][0];
    assert_eq!((&vote["title"], &vote["status"]), (&json!("lunch?"), &json!("closed")));
    assert_eq!((&vote["votes_cast"], &vote["eligible_voters"]), (&json!(3), &json!(4)));
    assert_eq!(vote["tally"][0]["count"], 2);
    assert_eq!(vote["created_at"], "2023-11-14T22:13:20.500Z");
    let tasks = agent.call("list_tasks", json!({"room_id": PLAN})).unwrap();
    let task = &tasks["tasks"][0];
    for (field, value) in [
        ("title", "paint it"),
        ("status", "in_progress"),
        ("assignee", "bob"),
        ("note", "blue"),
        ("updated_at", "2023-11-15T00:00:00.000Z"),
    ] {
        assert_eq!(task[field], value, "{task}");
    }
    let rooms = agent.call("list_rooms", json!({})).unwrap();
    let plan = rooms["rooms"].as_array().unwrap().iter().find(|it| it["room_id"] == PLAN).unwrap();
    assert_eq!((&plan["name"], &plan["created_by"]), (&json!("plan"), &json!("ann")));
    assert_eq!(plan["created_at"], "2023-11-14T22:13:20.500Z");
}

fn say(agent: &mut Agent, room: &str) -> u64 {
    agent.call("join_room", json!({"room_id": room})).unwrap();
    let said = agent.call("send_message", json!({"room_id": room, "content": "new"}));
    said.unwrap()["seq"].as_u64().unwrap()
}

#[test]
fn a_server_becomes_a_node_and_others_join_it() {
    let (old, dirs) = (temp(), [temp(), temp()]);
    let file = server(old.path());
    let said = imported(&file, dirs[0].path(), &["--name", "first"]);
    assert!(said.starts_with("imported 7 messages, 3 rooms besides the lobby, 1 votes"), "{said}");
    let first = node(dirs[0].path(), &["--name", "first"]);
    is_all_there(&mut own(&first, dirs[0].path()));
    for (number, status) in [(501, "200"), (502, "404"), (900_005, "404"), (900_011, "404")] {
        let path = format!("/api/rooms/{PLAN}/messages/{number}");
        assert_eq!(status_of(first.text("http"), &path), status, "{path}");
    }
    let second = node(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let mut there = own(&second, dirs[1].path());
    until("the second has all", || {
        let history = there.call("get_history", json!({"room_id": PLAN, "since_seq": 0}));
        let votes = there.call("list_votes", json!({"room_id": PLAN}));
        let secret = there.call("get_history", json!({"room_id": SECRET, "since_seq": 0}));
        let lobby = there.lobby();
        history.is_ok_and(|it| it["messages"].as_array().unwrap().len() == 4)
            && votes.is_ok_and(|it| it["votes"].as_array().unwrap().len() == 1)
            && secret.is_ok_and(|it| it["messages"].as_array().unwrap().len() == 1)
            && lobby.len() == 1
    });
    is_all_there(&mut there);
    assert_eq!(say(&mut there, PLAN), 900_011, "the number after the last that was ever given");
    assert_eq!(say(&mut there, "lobby"), 42);
    // A private room is where its key is presented, with what was in it.
    let mut bot = Agent::register(second.text("tcp"), KEY).unwrap();
    until("the private room is here", || {
        let history = bot.call("get_history", json!({"room_id": PRIVATE, "since_seq": 0}));
        history.is_ok_and(|it| numbers(it["messages"].as_array().unwrap()) == [3])
    });
    assert_eq!(say(&mut bot, PRIVATE), 4);
    assert_eq!(there.call("room_info", json!({"room_id": PRIVATE})).unwrap_err(), "access_denied");

    first.stop();
    let first = node(dirs[0].path(), &[]);
    first.until_connected();
    let mut here = own(&first, dirs[0].path());
    until("what was said last is there after a start", || {
        numbers(&history(&mut here, PLAN, 900_000)) == [900_011]
    });
    let data = dirs[1].path().join("data");
    second.stop();
    let checked = ask(&["check", "--data-dir", data.to_str().unwrap()]);
    assert!(checked.status.success(), "numbers that were left out are no damage");
    // The same file again changes nothing, while the node runs it is refused.
    assert!(refusal(&file, dirs[0].path()).contains("in use by another process"));
    first.stop();
    let said = imported(&file, dirs[0].path(), &[]);
    assert_eq!(said, "all of this file was imported before: nothing to do\n");
}

#[test]
fn what_cannot_be_imported_is_refused_and_nothing_is_written() {
    let (old, dir) = (temp(), temp());
    let file = server(old.path());
    let text = old.path().join("notes.txt");
    fs::write(&text, "not a database").unwrap();
    assert!(refusal(&text, dir.path()).contains("notes.txt is not an SQLite file"));
    let text = refusal(&old.path().join("missing.db"), dir.path());
    assert!(text.contains("missing.db: No such file"), "{text}");
    assert!(!dir.path().join("data").exists(), "nothing was made");

    let db = Connection::open(&file).unwrap();
    db.execute_batch("UPDATE votes SET status = 'open'").unwrap();
    let text = refusal(&file, dir.path());
    assert!(text.contains("the vote \"lunch?\" is open"), "{text}");
    assert!(text.contains("nothing was written"), "{text}");
    let said = imported(&file, dir.path(), &["--check", "--skip-open-votes"]);
    assert!(said.starts_with("all of it can be brought: 7 messages"), "{said}");
    imported(&file, dir.path(), &["--skip-open-votes"]);
    // It grows, and then it is another file.
    db.execute_batch("UPDATE room_sequences SET last_seq = last_seq + 1").unwrap();
    let text = refusal(&file, dir.path());
    assert!(text.contains("another file was imported here"), "{text}");

    let other = temp();
    let data = other.path().join("data");
    fs::create_dir(&data).unwrap();
    let lived = up(&data, &[]);
    Agent::open(&lived).say("here first");
    lived.stop();
    let text = refusal(&file, other.path());
    assert!(text.contains("this node's lobby has messages"), "{text}");
}

/// What was begun is finished before it is served: else its numbers would be given twice.
#[test]
fn a_node_whose_import_was_cut_does_not_start() {
    let (old, dir) = (temp(), temp());
    let file = server(old.path());
    imported(&file, dir.path(), &[]);
    let data = dir.path().join("data");
    {
        let mut store = store::Store::open(&data).unwrap();
        let kept = store.reader().kept(b"import").unwrap().remove(0);
        let mut journal: Value = serde_json::from_slice(&kept.1).unwrap();
        journal["done"] = json!(false);
        let value = Some(mesh::command::Opaque(serde_json::to_vec(&journal).unwrap()));
        store.commit(&[mesh::batch::Change::Keep { name: kept.0, value }]).unwrap();
    }
    let text = refused(&data, &["--no-auth"]);
    assert!(text.contains("an import was begun here and not finished"), "{text}");
    imported(&file, dir.path(), &[]);
    let first = node(dir.path(), &[]);
    is_all_there(&mut own(&first, dir.path()));
}
