//! What a ClawChat server had, on nodes: under its ids and numbers, for its clients' cursors and
//! keys.

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
use tempfile::TempDir;

use crate::{
    harness::{Agent, Daemon, ask, clawmeshd, refused, temp, until, up, up_keyed},
    webhooks::Hook,
};

const LAYOUT: &str = include_str!("../../import/testdata/clawchat.sql");
const AT: &str = "2023-11-14T22:13:20.500Z";
const PLAN: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const SECRET: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";
const PRIVATE: &str = "2f0e0d0c-0b0a-4908-8706-050403020100";
const VOTE: &str = "3f0e0d0c-0b0a-4908-8706-050403020100";
const TASK: &str = "4f0e0d0c-0b0a-4908-8706-050403020100";
const HOOK: &str = "5f0e0d0c-0b0a-4908-8706-050403020100";
/// A key as they are made: 64 hex digits.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// The server's own.
const SERVER: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
/// What agents of the encrypted room share.
const SHARED: &str = "correct horse battery staple";

/// The id of the `n`th message, as the server drew it.
fn id(n: u8) -> String {
    format!("{n:02x}000000-0b0a-4908-8706-050403020100")
}

/// A server's file, its key file beside it, and the connection that the server has to it: rooms
/// with holes in their numbers, of which the last were deleted, an encrypted one and a private one.
struct Server {
    dir: TempDir,
    db: Connection,
}

impl Server {
    /// `hook`: where messages of the room are posted.
    fn new(hook: &str) -> Server {
        let dir = temp();
        fs::write(dir.path().join("auth.key"), format!("{SERVER}\n")).unwrap();
        let db = Connection::open(dir.path().join("clawchat.db")).unwrap();
        db.execute_batch(LAYOUT).unwrap();
        for (id, name, visibility, owner, encrypted) in [
            (PLAN, "plan", "public", Some(SERVER), 0),
            (SECRET, "secret", "public", None, 1),
            (PRIVATE, "private", "private", Some(KEY), 0),
        ] {
            db.execute(
                "INSERT INTO rooms VALUES (?1, ?2, 'what for', 'lobby', 'ann', ?3, ?4, ?5, ?6)",
                (id, name, AT, visibility, owner, encrypted),
            )
            .unwrap();
        }
        let blob = RoomKey::derive(SHARED, SECRET).seal([7; 12], "nobody else reads this").unwrap();
        let decision = r#"{"type":"decision","decided_by":"ann"}"#;
        for (n, room, seq, content, reply_to, metadata) in [
            (1, "lobby", 41, "hello", None, "{}"),
            (2, PLAN, 500, "one", None, r#"{"kind":"fyi","x":[1,2]}"#),
            (3, PLAN, 501, "two", Some(id(2)), "{}"),
            (4, PLAN, 700, "hm", None, r#"{"type":"thinking"}"#),
            (5, PLAN, 900_000, "we do it", None, decision),
            (6, PLAN, 900_010, "gone", None, "{}"),
            (7, SECRET, 1, blob.as_str(), None, "{}"),
            (8, PRIVATE, 3, "psst", None, "{}"),
        ] {
            db.execute(
                "INSERT INTO messages VALUES (?1, ?2, 'ann', 'Ann', ?3, ?4, ?5, ?6, ?7)",
                (id(n), room, content, reply_to, metadata, AT, seq),
            )
            .unwrap();
        }
        db.execute_batch(&format!(
            "DELETE FROM messages WHERE content = 'gone';
             INSERT INTO room_tasks VALUES ('{TASK}', '{PLAN}', 'paint it', 'all of it', 'in_progress', 'bob', 'ann',
                '{AT}', '2023-11-15T00:00:00Z', 'blue');
             INSERT INTO votes VALUES ('{VOTE}', '{PLAN}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', NULL,
                'closed', 4);
             INSERT INTO vote_ballots VALUES ('{VOTE}', 'ann', 'Ann', 0, '{AT}'), ('{VOTE}', 'bob', 'Bob', 0, '{AT}'),
                ('{VOTE}', 'cy', 'Cy', 1, '{AT}');
             INSERT INTO vote_eligible_agents VALUES ('{VOTE}', 'ann');
             INSERT INTO api_keys VALUES ('{KEY}', 'pro', 'bots', '{AT}');
             INSERT INTO agent_identities VALUES ('ada-stable', '{KEY}', '{AT}'), ('ann', '{SERVER}', '{AT}');
             INSERT INTO agent_sessions VALUES ('s', 'ann', 'Ann', '[]', '{AT}', NULL);
             INSERT INTO subscriptions VALUES ('{HOOK}', '{PLAN}', '{SERVER}', '{hook}', 'hush', NULL, NULL, 'bob', 1,
                500, 501, 'active', 2, '{AT}');
             INSERT INTO subscription_deliveries VALUES ('d', '{HOOK}', 700, '{}', '{AT}', 2, 'refused');",
            id(4)
        ))
        .unwrap();
        Server { dir, db }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("clawchat.db")
    }

    /// What a kill leaves: the files as they are while the server has them open.
    fn killed(&self) -> TempDir {
        let left = temp();
        for name in ["clawchat.db", "clawchat.db-wal", "clawchat.db-shm", "auth.key"] {
            fs::copy(self.dir.path().join(name), left.path().join(name)).unwrap();
        }
        left
    }

    fn stop(self) -> TempDir {
        self.db.close().unwrap();
        self.dir
    }
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
    names.sort();
    names
}

/// `clawmeshd import` into `dir`/data.
fn import(file: &Path, dir: &Path, more: &[&str]) -> Output {
    let (data, key) = (dir.join("data"), dir.join("auth.key"));
    let place = ["import", file.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let key = ["--key-file", key.to_str().unwrap()];
    // The home of whoever runs the tests may have a key, too.
    clawmeshd(&[&place[..], &key, more].concat()).env("HOME", dir).output().unwrap()
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
    // Ids that clients have seen: of messages, of what they answer, and to go on from.
    let ids: Vec<&str> = plan.iter().map(|it| it["message_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [id(2), id(3), id(4), id(5)]);
    assert_eq!(plan[1]["reply_to_message"], id(2));
    let mut since = |id: &str| {
        let page = agent.call("get_history", json!({"room_id": PLAN, "since": id})).unwrap();
        numbers(page["messages"].as_array().unwrap())
    };
    assert_eq!(since(&id(3)), [700, 900_000]);
    assert_eq!(since(&id(6)), [0; 0], "of one that nobody has any more, as in ClawChat");
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
    assert_eq!(vote["vote_id"], VOTE);
    let asked = agent.call("get_vote_status", json!({"vote_id": VOTE})).unwrap();
    assert_eq!(&asked, vote);
    assert_eq!((&vote["title"], &vote["status"]), (&json!("lunch?"), &json!("closed")));
    assert_eq!((&vote["votes_cast"], &vote["eligible_voters"]), (&json!(3), &json!(4)));
    assert_eq!(vote["tally"][0]["count"], 2);
    assert_eq!(vote["created_at"], "2023-11-14T22:13:20.500Z");
    let tasks = agent.call("list_tasks", json!({"room_id": PLAN})).unwrap();
    let task = &tasks["tasks"][0];
    for (field, value) in [
        ("task_id", TASK),
        ("title", "paint it"),
        ("status", "in_progress"),
        ("assignee", "bob"),
        ("note", "blue"),
        ("updated_at", "2023-11-15T00:00:00.000Z"),
    ] {
        assert_eq!(task[field], value, "{task}");
    }
    let rooms = agent.call("list_rooms", json!({})).unwrap();
    let room = |id: &str| {
        rooms["rooms"].as_array().unwrap().iter().find(|it| it["room_id"] == id).unwrap()
    };
    let (lobby, plan) = (room("lobby"), room(PLAN));
    assert_eq!(lobby["description"], "Default lobby for all agents");
    assert_eq!(lobby["created_at"], "2026-11-01T08:00:00.000Z");
    assert_eq!(plan["parent_id"], "lobby");
    assert_eq!((&plan["name"], &plan["created_by"]), (&json!("plan"), &json!("ann")));
    assert_eq!(plan["created_at"], "2023-11-14T22:13:20.500Z");
}

fn say(agent: &mut Agent, room: &str) -> u64 {
    agent.call("join_room", json!({"room_id": room})).unwrap();
    let said = agent.call("send_message", json!({"room_id": room, "content": "new"}));
    said.unwrap()["seq"].as_u64().unwrap()
}

/// Registers with a stable id.
fn stable(node: &Daemon, key: &str, agent: &str) -> Result<Value, String> {
    let wish = json!({"key": key, "name": "it", "agent_id": agent, "reconnect": true});
    Agent::connect(node.text("tcp")).call("register", wish)
}

#[test]
fn a_server_that_was_killed_becomes_a_node_and_a_list_says_what_came() {
    let dir = temp();
    let old = Server::new("http://127.0.0.1:9/hook").killed();
    let (file, before) = (old.path().join("clawchat.db"), names(old.path()));
    let output = import(&file, dir.path(), &["--name", "the first"]);
    let [said, notes] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(notes.ends_with("(100 %)\n"), "{notes}");
    // Everybody can read the server's file, which is not this node's to mend.
    assert!(!notes.contains("rotate"), "{notes}");
    let list = |name: &str| {
        let line = said.lines().find(|it| it.starts_with(name)).unwrap();
        let numbers = line[name.len()..].split_whitespace().map(|it| it.parse().unwrap());
        numbers.collect::<Vec<u64>>()
    };
    for (name, count) in [
        ("rooms", 4),
        ("messages", 7),
        ("votes", 1),
        ("tasks", 1),
        ("keys", 1),
        ("stable agent ids", 2),
        ("webhooks", 1),
    ] {
        assert_eq!(list(name), [count, count, 0], "{name}: {said}");
    }
    let (data, key) = (dir.path().join("data"), dir.path().join("auth.key"));
    let hint = format!(
        "agents that used the server's own key need this node's from now on: the one in {}\n\
         start the node: clawmeshd up --data-dir {} --key-file {} --name 'the first'\n",
        key.display(),
        data.display(),
        key.display()
    );
    assert!(said.ends_with(&hint), "{said}");
    assert!(!said.contains("revoke") && !said.contains(KEY) && !said.contains(SERVER), "{said}");
    assert_eq!(names(old.path()), before, "nothing was made beside it");
    let node = node(dir.path(), &[]);
    is_all_there(&mut own(&node, dir.path()));
    for (number, status) in [(501, "200"), (502, "404"), (900_005, "404"), (900_011, "404")] {
        let path = format!("/api/rooms/{PLAN}/messages/{number}");
        assert_eq!(status_of(node.text("http"), &path), status, "{path}");
    }
}

/// The node that was brought into, and one that joined it and has all.
fn two(old: &Path, dirs: &[TempDir; 2]) -> (Daemon, Daemon, Agent) {
    imported(&old.join("clawchat.db"), dirs[0].path(), &[]);
    let first = node(dirs[0].path(), &["--allow-private-webhooks"]);
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
    (first, second, there)
}

#[test]
fn others_join_it_and_it_goes_on_where_the_server_was() {
    let dirs = [temp(), temp()];
    let old = Server::new("http://127.0.0.1:9/hook").stop();
    let (first, second, mut there) = two(old.path(), &dirs);
    assert_eq!(say(&mut there, PLAN), 900_011, "the number after the last that was ever given");
    assert_eq!(say(&mut there, "lobby"), 42);
    let wish = json!({"task_id": TASK, "status": "completed"});
    assert_eq!(there.call("update_task", wish).unwrap()["status"], "completed");
    // A private room is where its key is presented, with what was in it.
    let mut bot = Agent::register(second.text("tcp"), KEY).unwrap();
    until("the private room is here", || {
        let history = bot.call("get_history", json!({"room_id": PRIVATE, "since_seq": 0}));
        history.is_ok_and(|it| numbers(it["messages"].as_array().unwrap()) == [3])
    });
    assert_eq!(history(&mut bot, PRIVATE, 0)[0]["message_id"], id(8));
    assert_eq!(say(&mut bot, PRIVATE), 4);
    let after = bot.call("get_history", json!({"room_id": PRIVATE, "since": id(8)})).unwrap();
    assert_eq!(numbers(after["messages"].as_array().unwrap()), [4]);
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
    let file = old.path().join("clawchat.db");
    assert!(refusal(&file, dirs[0].path()).contains("in use by another process"));
    first.stop();
    let said = imported(&file, dirs[0].path(), &[]);
    assert_eq!(said, "all of this file was imported before: nothing to do\n");
}

#[test]
fn stable_ids_stay_with_their_keys_at_every_node() {
    let dirs = [temp(), temp()];
    let old = Server::new("http://127.0.0.1:9/hook").stop();
    let (first, second, _) = two(old.path(), &dirs);
    let [key, other] =
        [&dirs[0], &dirs[1]].map(|it| fs::read_to_string(it.path().join("auth.key")).unwrap());
    for (at, key, agent) in [
        (&second, other.trim(), "ada-stable"),
        (&first, key.trim(), "ada-stable"),
        (&second, KEY, "ann"),
        (&second, other.trim(), "ann"),
    ] {
        assert_eq!(stable(at, key, agent).unwrap_err(), "agent_id_taken", "{agent}");
    }
    assert_eq!(stable(&second, KEY, "ada-stable").unwrap()["agent_id"], "ada-stable");
    assert_eq!(stable(&first, key.trim(), "ann").unwrap()["agent_id"], "ann", "the server's");
}

/// After the last that the server delivered, without thoughts.
#[test]
fn a_webhook_goes_on_where_the_server_got_to() {
    let (hook, dirs) = (Hook::start(), [temp(), temp()]);
    let old = Server::new(&hook.url).stop();
    let (first, _second, mut there) = two(old.path(), &dirs);
    let mut here = own(&first, dirs[0].path());
    let hooks = here.call("list_subscriptions", json!({})).unwrap();
    let listed = &hooks["subscriptions"][0];
    for (field, value) in [
        ("subscription_id", json!(HOOK)),
        ("webhook_url", json!(hook.url)),
        ("since_seq", json!(500)),
        ("not_from", json!("bob")),
        ("status", json!("active")),
    ] {
        assert_eq!(listed[field], value, "{listed}");
    }
    let post = hook.next(200);
    assert_eq!((post.content(), &post.body["message"]["message_id"]), ("we do it", &json!(id(5))));
    say(&mut there, PLAN);
    assert_eq!(hook.next(200).content(), "new", "from another node, too");
}

#[test]
fn what_cannot_be_imported_is_refused_and_nothing_is_written() {
    let (server, dir) = (Server::new("http://127.0.0.1:9/hook"), temp());
    let text = server.dir.path().join("notes.txt");
    fs::write(&text, "not a database").unwrap();
    assert!(refusal(&text, dir.path()).contains("notes.txt is not an SQLite file"));
    let text = refusal(&server.dir.path().join("missing.db"), dir.path());
    assert!(text.contains("missing.db: No such file"), "{text}");

    server.db.execute_batch("UPDATE votes SET status = 'open'").unwrap();
    let old = server.stop();
    let (file, before) = (old.path().join("clawchat.db"), names(old.path()));
    let text = refusal(&file, dir.path());
    assert!(text.contains("the vote \"lunch?\" is open"), "{text}");
    assert!(text.contains("nothing was written"), "{text}");
    let said = imported(&file, dir.path(), &["--check", "--skip-open-votes"]);
    assert!(said.contains("not brought: 1 votes: they are open: \"lunch?\""), "{said}");
    assert_eq!(names(dir.path()), [""; 0], "neither the node's directory nor its key");
    assert_eq!(names(old.path()), before);
    imported(&file, dir.path(), &["--skip-open-votes"]);
    assert_eq!(names(dir.path()), ["auth.key", "data"]);
    // It grows, and then it is another file.
    let db = Connection::open(&file).unwrap();
    db.execute_batch("UPDATE room_sequences SET high_water = high_water + 1").unwrap();
    db.close().unwrap();
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

/// Its key is in another place than beside the database, and the node has another one.
#[test]
fn the_servers_own_key_is_named_or_its_rooms_wait_for_a_decision() {
    let (server, dir) = (Server::new("http://127.0.0.1:9/hook"), temp());
    server
        .db
        .execute_batch(&format!("UPDATE rooms SET visibility = 'private' WHERE room_id = '{PLAN}'"))
        .unwrap();
    let old = server.stop();
    let (file, key) = (old.path().join("clawchat.db"), old.path().join("elsewhere.key"));
    fs::rename(old.path().join("auth.key"), &key).unwrap();
    let text = refusal(&file, dir.path());
    for of in ["no file of the server's own key", "make \"plan\" private to", "--server-key-file"] {
        assert!(text.contains(of), "{of}: {text}");
    }
    let said = imported(&file, dir.path(), &["--server-key-file", key.to_str().unwrap()]);
    assert!(!said.contains("keys that are not known"), "{said}");
    let first = node(dir.path(), &[]);
    let mut here = own(&first, dir.path());
    assert_eq!(numbers(&history(&mut here, PLAN, 0)), [500, 501, 700, 900_000]);
}

/// Clients have their keys where a server may have its own.
#[test]
fn a_key_of_the_table_is_let_in_also_if_it_is_where_the_servers_may_be() {
    let dir = temp();
    let old = Server::new("http://127.0.0.1:9/hook").stop();
    fs::remove_file(old.path().join("auth.key")).unwrap();
    let clients = dir.path().join(".clawchat");
    fs::create_dir(&clients).unwrap();
    fs::write(clients.join("auth.key"), KEY).unwrap();
    let (data, key) = (dir.path().join("data"), dir.path().join("auth.key"));
    let [file, data, key] = [old.path().join("clawchat.db"), data, key];
    let [file, data, key] = [&file, &data, &key].map(|it| it.to_str().unwrap());
    let command = ["import", file, "--data-dir", data, "--key-file", key, "--private-to-own-key"];
    let output = clawmeshd(&command).env("HOME", dir.path()).output().unwrap();
    let [said, notes] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(output.status.success(), "{notes}");
    assert!(notes.contains("auth.key is passed over: its key is in api_keys"), "{notes}");
    let keys = said.lines().find(|it| it.starts_with("keys")).unwrap();
    assert_eq!(keys.split_whitespace().collect::<Vec<_>>(), ["keys", "1", "1", "0"]);
    let node = node(dir.path(), &[]);
    assert_eq!(stable(&node, KEY, "ada-stable").unwrap()["agent_id"], "ada-stable");
    let mut bot = Agent::register(node.text("tcp"), KEY).unwrap();
    assert_eq!(numbers(&history(&mut bot, PRIVATE, 0)), [3]);
    assert!(bot.call("room_info", json!({"room_id": PRIVATE})).is_ok());
}

#[test]
fn what_fails_before_anything_is_written_leaves_nothing() {
    let dir = temp();
    let old = Server::new("http://127.0.0.1:9/hook").stop();
    let file = old.path().join("clawchat.db");
    let of = |data: &Path, key: &Path| {
        let [file, data, key] = [&*file, data, key].map(|it| it.to_str().unwrap());
        let command = clawmeshd(&["import", file, "--data-dir", data, "--key-file", key]).output();
        String::from_utf8(command.unwrap().stderr).unwrap()
    };
    let taken = dir.path().join("taken");
    fs::write(&taken, "").unwrap();
    let said = of(&dir.path().join("data"), Path::new("/proc/nowhere/key"));
    assert!(said.contains("--key-file /proc/nowhere/key"), "{said}");
    let said = of(&taken, &dir.path().join("new/key"));
    assert!(said.contains("--data-dir"), "{said}");
    assert_eq!(names(dir.path()), ["taken"]);
}

/// What was begun is finished before it is served: else its numbers would be given twice.
#[test]
fn a_node_whose_import_was_cut_does_not_start() {
    let (server, dir) = (Server::new("http://127.0.0.1:9/hook"), temp());
    let file = server.file();
    imported(&file, dir.path(), &[]);
    let data = dir.path().join("data");
    {
        let mut store = store::Store::open(&data).unwrap();
        let kept = store.reader().kept(b"import").unwrap().remove(0);
        let mut journal: Value = serde_json::from_slice(&kept.1).unwrap();
        journal["done"] = json!(false);
        let value = Some(mesh::api::command::Opaque(serde_json::to_vec(&journal).unwrap()));
        store.commit(&[mesh::api::batch::Change::Keep { name: kept.0, value }]).unwrap();
    }
    let text = refused(&data, &["--no-auth"]);
    assert!(text.contains("an import was begun here and not finished"), "{text}");
    imported(&file, dir.path(), &[]);
    let first = node(dir.path(), &[]);
    is_all_there(&mut own(&first, dir.path()));
}
