//! What is refused, and that an import that was killed at any commit comes to the same.

use std::{ops::ControlFlow, path::PathBuf};

use import::{Counts, ServerFile};
use mesh::{
    id::{KeyPrint, RoomId},
    number::Number,
};
use rusqlite::Connection;
use store::Store;
use tempfile::TempDir;

use super::{
    Brought, Choices, Journal, Plan, bring, open,
    plan::{Place, Refusals},
    run::THINGS_PER_COMMIT,
};
use crate::files::DataDir;

const SCHEMA: &str = "
    CREATE TABLE rooms (room_id TEXT PRIMARY KEY, name TEXT, description TEXT, parent_id TEXT,
        ephemeral INTEGER, created_at TEXT, created_by TEXT, public INTEGER, owner_key TEXT,
        encrypted INTEGER);
    CREATE TABLE messages (message_id TEXT PRIMARY KEY, room_id TEXT, agent_id TEXT, agent_name TEXT,
        content TEXT, reply_to TEXT, mentions TEXT, metadata TEXT, timestamp TEXT, seq INTEGER);
    CREATE TABLE room_sequences (room_id TEXT PRIMARY KEY, last_seq INTEGER);
    CREATE TABLE room_tasks (task_id TEXT, room_id TEXT, title TEXT, description TEXT, status TEXT,
        assignee TEXT, created_by TEXT, created_at TEXT, updated_at TEXT, note TEXT);
    CREATE TABLE votes (vote_id TEXT, room_id TEXT, title TEXT, description TEXT, options TEXT,
        created_by TEXT, created_at TEXT, closes_at TEXT, status TEXT, eligible_voters INTEGER);
    CREATE TABLE vote_ballots (vote_id TEXT, agent_id TEXT, option_index INTEGER);
    CREATE TABLE api_keys (key TEXT, key_hash TEXT, label TEXT, tier TEXT, revoked INTEGER);
";
const ROOM: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const OTHER: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";
const OWN: &str = "the key of the server";

struct Made(TempDir);

impl Made {
    fn new(rows: &str) -> Made {
        let made = Made(tempfile::tempdir().unwrap());
        made.add(SCHEMA);
        made.add(rows);
        made
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("clawchat.db")
    }

    fn add(&self, rows: &str) {
        Connection::open(self.path()).unwrap().execute_batch(rows).unwrap();
    }

    fn file(&self) -> ServerFile {
        ServerFile::open(&self.path()).unwrap()
    }

    fn plan(&self, choices: Choices) -> (Plan, Refusals) {
        Plan::of(&self.file(), choices, Some(OWN), &mut |_, _: Counts| {}).unwrap()
    }

    /// What is said against it.
    fn refused(&self, choices: Choices) -> String {
        self.plan(choices).1.to_string()
    }
}

fn choices() -> Choices {
    Choices { skip_open_votes: false, private_to_own_key: false, own: KeyPrint::of(OWN) }
}

fn room(id: &str, name: &str, more: &str) -> String {
    format!(
        "INSERT INTO rooms VALUES ('{id}', '{name}', NULL, NULL, 0, '2023-11-14T22:13:20Z', 'ann', {more}, 0);"
    )
}

fn message(id: &str, room: &str, seq: i64) -> String {
    format!(
        "INSERT INTO messages VALUES ('{id}', '{room}', 'ann', 'Ann', 'hello', NULL, NULL, NULL, \
         '2023-11-14T22:13:20Z', {seq});"
    )
}

#[test]
fn all_that_cannot_be_brought_is_said_at_once() {
    let rows = [
        room(ROOM, "plan", "1, NULL"),
        room(OTHER, "plan", "1, NULL"),
        room("2f0e0d0c-0b0a-4908-8706-050403020100", "secret", "0, 'nobody knows'"),
        room("2F0E0D0C-0B0A-4908-8706-05040302010A", "capitals", "1, NULL"),
        room("2f0e0d0c-0b0a-8908-8706-050403020100", "ours", "1, NULL"),
        room("lounge", "lounge", "1, NULL"),
        room("3f0e0d0c-0b0a-4908-8706-050403020100", " ", "1, NULL"),
        message("twice", ROOM, 4),
        message("again", ROOM, 4),
        message("zero", ROOM, 0),
        message("far", ROOM, 1 << 35),
        message("lost", "no such room", 1),
        format!(
            "INSERT INTO messages SELECT 'large', room_id, agent_id, agent_name, \
             replace(hex(zeroblob(131073)), '0', 'x'), NULL, NULL, NULL, timestamp, 9 FROM messages \
             WHERE message_id = 'twice';
             INSERT INTO messages SELECT 'nameless', room_id, '', agent_name, 'x', NULL, NULL, NULL, \
             timestamp, 10 FROM messages WHERE message_id = 'twice';
             INSERT INTO room_sequences VALUES ('{ROOM}', 40000000000);
             INSERT INTO votes VALUES ('running', '{ROOM}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', \
             '2023-11-14T22:13:20Z', NULL, 'open', 3);
             INSERT INTO votes VALUES ('one', '{ROOM}', 'lunch?', NULL, '[\"yes\"]', 'ann', \
             '2023-11-14T22:13:20Z', NULL, 'closed', 3);
             INSERT INTO room_tasks VALUES ('odd', '{ROOM}', 'paint', NULL, 'begun', NULL, 'ann', \
             '2023-11-14T22:13:20Z', NULL, NULL);
             INSERT INTO api_keys VALUES ('a key', NULL, 'rich', 'platinum', 0);"
        ),
    ];
    let made = Made::new(&rows.concat());
    let said = made.refused(choices());
    for of in [
        "is called \"plan\", as the room",
        "\"secret\" is private to a key",
        "--private-to-own-key",
        "\"2F0E0D0C-0B0A-4908-8706-05040302010A\": its id is not a UUID in lower case",
        "\"2f0e0d0c-0b0a-8908-8706-050403020100\": its id is of a form that rooms of a mesh have",
        "\"lounge\": its id is not a UUID",
        "its name must have 1 to 256 bytes and not be blank",
        "messages \"twice\": the number 4 is another message's, too",
        "messages \"zero\": its number is 0",
        "messages \"far\": the number 34359738368 is beyond",
        "messages \"lost\": its room \"no such room\" is not brought, or not there",
        "messages \"large\": its content has 262146 bytes; it may have 262144",
        "messages \"nameless\": its agent's id must have 1 to 128 bytes",
        "the number 40000000001 is beyond",
        "votes \"running\": the vote \"lunch?\" is open",
        "--skip-open-votes",
        "votes \"one\": it must have 2 to 64 options",
        "room_tasks \"odd\": its status \"begun\" is none of a task",
        "api_keys rich: its tier \"platinum\"",
    ] {
        assert!(said.contains(of), "{of}\nis not in\n{said}");
    }
    assert_eq!(said.lines().count(), 17, "{said}");
    let more: String = (100..200).map(|n| message(&n.to_string(), "nowhere", n)).collect();
    made.add(&more);
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 51, "{said}");
    assert!(said.contains("… and 67 more"), "{said}");
}

#[test]
fn what_a_flag_chooses_is_brought_so() {
    let made = Made::new(
        &[
            room(ROOM, "of a key", "0, 'a key'"),
            room(OTHER, "of nobody", "0, 'a hash'"),
            room("2f0e0d0c-0b0a-4908-8706-050403020100", "of the server", "0, 'the key of the server'"),
            format!(
                "INSERT INTO votes VALUES ('running', '{ROOM}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', \
                 '2023-11-14T22:13:20Z', NULL, 'open', 3);
                 INSERT INTO rooms VALUES ('short', 'short', NULL, NULL, 1, '2023-11-14T22:13:20Z', 'ann', 1, \
                 NULL, 0);
                 INSERT INTO api_keys VALUES ('a key', NULL, 'mine', 'pro', 0);
                 INSERT INTO api_keys VALUES ('another key', NULL, NULL, NULL, 0);
                 INSERT INTO api_keys VALUES (NULL, 'a hash', NULL, NULL, 0);
                 INSERT INTO api_keys VALUES ('old key', NULL, NULL, NULL, 1);"
            ),
            message("m", "short", 1),
            message("n", "lobby", 7),
        ]
        .concat(),
    );
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 2, "{said}");
    let choices = Choices { skip_open_votes: true, private_to_own_key: true, ..choices() };
    let (plan, refusals) = made.plan(choices);
    assert!(refusals.is_empty(), "{refusals}");
    let owners: Vec<KeyPrint> = plan.rooms.iter().map(|it| it.owner).collect();
    let (key, own) = (KeyPrint::of("a key"), KeyPrint::of(OWN));
    assert_eq!(owners, [key, own, own]);
    let keys: Vec<_> = plan.keys.iter().map(|(it, opener)| (it.key, opener.is_some())).collect();
    assert_eq!(keys, [(key, true), (KeyPrint::of("another key"), false)]);
    assert_eq!((plan.messages, plan.next[&Place::Lobby]), (1, 8));
    let notes = plan.notes.join("\n");
    for of in [
        "1 API keys are not brought: the file has only their hashes",
        "1 API keys that were revoked",
        "1 ephemeral rooms are not brought",
        "1 messages of ephemeral rooms",
        "1 open votes are not brought",
        "room \"of nobody\" becomes private to this node's own key",
    ] {
        assert!(notes.contains(of), "{of}\nis not in\n{notes}");
    }
}

/// Its numbers would be in each other's way.
#[test]
fn a_file_has_one_lobby() {
    let made = Made::new(&[room(ROOM, "lobby", "1, NULL"), message("m", ROOM, 5)].concat());
    let (plan, refusals) = made.plan(choices());
    assert!(refusals.is_empty(), "{refusals}");
    assert_eq!((plan.rooms.len(), plan.next[&Place::Lobby]), (0, 6));
    made.add(&message("n", "lobby", 3));
    let said = made.refused(choices());
    assert!(said.contains("messages \"n\": its room \"lobby\" is not"), "{said}");
    made.add(&room("lobby", "lobby", "1, NULL"));
    let said = made.refused(choices());
    assert!(said.contains("\"lobby\" is the name of the lobby"), "{said}");
}

/// Some commits' worth: chat that answers what is just before it and what is far back, with holes.
fn much() -> Made {
    let count = 2 * THINGS_PER_COMMIT + 100;
    let made =
        Made::new(&[room(ROOM, "plan", "1, NULL"), room(OTHER, "quiet", "1, NULL")].concat());
    made.add(&format!(
        "INSERT INTO room_sequences VALUES ('{ROOM}', 100000), ('{OTHER}', 77);
         INSERT INTO messages
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT 'm' || i, '{ROOM}', 'ann', 'Ann', 'number ' || i,
            CASE i % 10 WHEN 0 THEN 'm' || (i - 1) WHEN 5 THEN 'm' || ((i + 1) / 2) END,
            NULL, NULL, 1700000000 + i, 500 + i + i / 100 FROM n;
         INSERT INTO votes VALUES ('v', '{ROOM}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', \
         '2023-11-14T22:13:20Z', NULL, 'closed', 3);
         INSERT INTO room_tasks VALUES ('t', 'lobby', 'paint', NULL, 'completed', 'bob', 'ann', \
         '2023-11-14T22:13:20Z', NULL, 'blue');"
    ));
    made
}

/// Imports until so many commits were made (`None`: all).
fn import(made: &Made, dir: &TempDir, commits: Option<u32>) -> Brought {
    let file = made.file();
    let mut target = open(dir.path()).unwrap();
    let (plan, refusals) = made.plan(choices());
    assert!(refusals.is_empty(), "{refusals}");
    let digest = file.digest().unwrap().to_text();
    let fresh = Journal { file: digest, choices: String::new(), written: 0, done: false };
    let journal = target.journal.clone().unwrap_or(fresh);
    let mut left = commits;
    bring((&file, &plan), (&mut target, None), journal, &mut |_| {
        left = left.map(|it| it - 1);
        if left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap()
}

/// Numbers, contents, and the numbers that are answered.
fn history(dir: &TempDir) -> Vec<(u64, String, Option<u64>)> {
    let store = Store::open(dir.path()).unwrap();
    let (reader, room) = (store.reader(), RoomId::from_uuid(ROOM).unwrap());
    let mut all = Vec::new();
    let mut after = Number::ZERO;
    loop {
        let page = reader.page_since(room, after, 500).unwrap();
        let Some(last) = page.last() else { return all };
        after = last.number;
        for row in page {
            let said = row.said.unwrap();
            let answered = said.reply_to.map(|id| {
                let id = mesh::id::MessageId::from_uuid(&id).expect("one of ours");
                reader.by_message(room, id).unwrap().expect("it is here").number.0
            });
            all.push((row.number.0, said.content, answered));
        }
    }
}

#[test]
fn an_import_that_was_killed_after_any_commit_goes_on_and_brings_nothing_twice() {
    let made = much();
    let count = 2 * THINGS_PER_COMMIT + 100;
    let seq = |i: u64| 500 + i + i / 100;
    let expected: Vec<_> = (1..=count)
        .map(|i| {
            let answered = match i % 10 {
                0 => Some(seq(i - 1)),
                5 => Some(seq(i.div_ceil(2))),
                _ => None,
            };
            (seq(i), format!("number {i}"), answered)
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let mut runs = 0;
    loop {
        runs += 1;
        // Each run makes one commit, and is gone.
        let brought = import(&made, &dir, Some(1));
        let store = Store::open(dir.path()).unwrap();
        let finished = Journal::check_finished(&store.reader());
        if brought == Brought::All {
            finished.unwrap();
            break;
        }
        let error = finished.unwrap_err().to_string();
        assert!(error.contains("an import was begun here and not finished"), "{error}");
    }
    assert_eq!(runs, 4, "rooms, two full ones, and the rest");
    assert_eq!(history(&dir), expected);
    let store = Store::open(dir.path()).unwrap();
    let tip = |room: &str| store.reader().tip(RoomId::from_uuid(room).unwrap()).unwrap().0;
    assert_eq!((tip(ROOM), tip(OTHER)), (100_000, 77));
    let id = DataDir::existing(dir.path()).unwrap().mesh().unwrap().unwrap();
    let summary = store.summary(id.founder(), None).unwrap();
    assert_eq!(summary.acts.len(), 3, "a vote, and a task that was updated");
    assert!(summary.node.unwrap().clean, "stopped in good order");
    drop(store);
    let at_once = tempfile::tempdir().unwrap();
    assert_eq!(import(&made, &at_once, None), Brought::All);
    assert_eq!(history(&at_once), expected);
}

#[test]
fn a_node_that_has_something_is_refused_and_one_that_has_nothing_is_not() {
    let made = Made::new(&room(ROOM, "plan", "1, NULL"));
    // Started once, and stopped.
    let dir = tempfile::tempdir().unwrap();
    {
        let mut target = open(dir.path()).unwrap();
        let clock = crate::clock::Clock::start();
        let mut engine = target.enter(None, clock).unwrap();
        target.store.commit(&engine.take_turn().batch).unwrap();
        let in_use = open(dir.path()).unwrap_err();
        assert!(format!("{in_use:#}").contains("is in use by another process"), "{in_use:#}");
    }
    assert_eq!(import(&made, &dir, None), Brought::All);
    // With rooms, though not by an import.
    let store = Store::open(dir.path()).unwrap();
    let forget = mesh::batch::Change::Keep { name: b"import".to_vec(), value: None };
    let mut store = store;
    store.commit(&[forget]).unwrap();
    drop(store);
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("this node has rooms already"), "{error}");
}
