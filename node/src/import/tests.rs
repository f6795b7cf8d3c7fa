//! What is refused, and that an import that was killed at any commit comes to the same.

use std::{ops::ControlFlow, path::PathBuf};

use import::ServerFile;
use mesh::{
    id::{KeyPrint, MessageId, RoomId},
    number::Number,
};
use rusqlite::Connection;
use store::Store;
use tempfile::TempDir;

use super::{
    Brought, Choices, Journal, OpenVotes, OwnKeys, Plan, bring, open,
    plan::{Place, Refusals, Thing},
    run::THINGS_PER_COMMIT,
};
use crate::files::DataDir;

const LAYOUT: &str = include_str!("../../import/testdata/clawchat.sql");
const AT: &str = "2023-11-14T22:13:20.000Z";
const ROOM: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const OTHER: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";
/// The node's own key, and the server's.
const OWN: &str = "the key of the node";
const SERVER: &str = "the key of the server";

struct Made(TempDir);

impl Made {
    fn new(rows: &str) -> Made {
        let made = Made(tempfile::tempdir().unwrap());
        made.add(LAYOUT);
        made.add(rows);
        made
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("clawchat.db")
    }

    fn add(&self, rows: &str) {
        let db = Connection::open(self.path()).unwrap();
        db.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        db.execute_batch(rows).unwrap();
    }

    fn file(&self) -> ServerFile {
        ServerFile::open(&self.path()).unwrap()
    }

    fn plan(&self, choices: Choices) -> (Plan, Refusals) {
        let keys = OwnKeys { node: Some(OWN), server: Some(SERVER) };
        Plan::of(&self.file(), choices, keys, &mut |_, _| {}).unwrap()
    }

    /// What is said against it.
    fn refused(&self, choices: Choices) -> String {
        self.plan(choices).1.to_string()
    }

    /// What comes of it, which is all.
    fn taken(&self, choices: Choices) -> Plan {
        let (plan, refusals) = self.plan(choices);
        assert!(refusals.is_empty(), "{refusals}");
        plan
    }
}

fn choices() -> Choices {
    Choices {
        open_votes: OpenVotes::Refuse,
        private_to_own_key: false,
        rename_rooms: false,
        skip_refused: false,
        own: KeyPrint::of(OWN),
        server: Some(KeyPrint::of(SERVER)),
    }
}

fn room(id: &str, name: &str, more: &str) -> String {
    format!("INSERT INTO rooms VALUES ('{id}', '{name}', NULL, NULL, 'ann', '{AT}', {more}, 0);")
}

fn message(id: &str, room: &str, seq: i64) -> String {
    format!(
        "INSERT INTO messages VALUES ('{id}', '{room}', 'ann', 'Ann', 'hello', NULL, '{{}}', '{AT}', {seq});"
    )
}

fn vote(id: &str, room: &str, status: &str) -> String {
    format!(
        "INSERT INTO votes VALUES ('{id}', '{room}', '{id}?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', NULL, \
         '{status}', 3);"
    )
}

fn task(id: &str, room: &str, status: &str) -> String {
    format!(
        "INSERT INTO room_tasks VALUES ('{id}', '{room}', 'paint', NULL, '{status}', NULL, 'ann', '{AT}', NULL, NULL);"
    )
}

fn webhook(id: &str, room: &str, owner: &str, url: &str) -> String {
    format!(
        "INSERT INTO subscriptions VALUES ('{id}', '{room}', '{owner}', '{url}', 'hush', NULL, NULL, NULL, 0, 1, 2, \
         'active', 0, '{AT}');"
    )
}

fn contains(said: &str, all: &[&str]) {
    for of in all {
        assert!(said.contains(of), "{of}\nis not in\n{said}");
    }
}

/// A file with much that cannot be brought.
fn bad() -> Made {
    let rows = [
        room(ROOM, "plan", "'public', NULL"),
        room("2f0e0d0c-0b0a-4908-8706-050403020100", "secret", "'private', 'nobody knows'"),
        message("far", ROOM, 1 << 35),
        format!(
            "DROP TRIGGER messages_rise;
             INSERT INTO messages SELECT 'twice', room_id, agent_id, agent_name, content, NULL, NULL, created_at, 4
                FROM messages WHERE message_id = 'far';
             INSERT INTO messages SELECT 'again', room_id, agent_id, agent_name, content, NULL, NULL, created_at, 4
                FROM messages WHERE message_id = 'far';
             INSERT INTO messages SELECT 'zero', room_id, agent_id, agent_name, content, NULL, NULL, created_at, 0
                FROM messages WHERE message_id = 'far';
             INSERT INTO messages SELECT 'large', room_id, agent_id, agent_name,
                replace(hex(zeroblob(131073)), '0', 'x'), NULL, NULL, created_at, 9
                FROM messages WHERE message_id = 'far';
             INSERT INTO messages SELECT 'nameless', room_id, '', agent_name, content, NULL, NULL, created_at, 10
                FROM messages WHERE message_id = 'far';
             UPDATE room_sequences SET high_water = 40000000000;
             INSERT INTO votes VALUES ('one', '{ROOM}', 'lunch?', NULL, '[\"yes\"]', 'ann', '{AT}', NULL, 'closed', 3);
             INSERT INTO api_keys VALUES ('a key', 'platinum', 'rich', '{AT}');
             INSERT INTO agent_identities VALUES ('{}', 'a key', '{AT}');",
            "x".repeat(129)
        ),
        vote("running", ROOM, "open"),
        task("odd", ROOM, "begun"),
        webhook("elsewhere", ROOM, SERVER, "ftp://example.org"),
        webhook("stranger", ROOM, "nobody knows", "https://example.org"),
    ];
    Made::new(&rows.concat())
}

#[test]
fn all_that_cannot_be_brought_is_said_at_once_or_left_out() {
    let made = bad();
    let said = made.refused(choices());
    contains(
        &said,
        &[
            "\"secret\" is private to a key that is neither in api_keys nor the server's",
            "--private-to-own-key",
            "messages \"twice\": the number 4 is another message's, too",
            "messages \"zero\": its number is 0",
            "messages \"far\": the number 34359738368 is beyond",
            "messages \"large\": its content has 262146 bytes; it may have 262144",
            "messages \"nameless\": its agent's id must have 1 to 128 bytes",
            "the number 40000000000 is beyond",
            "votes \"running\": the vote \"running?\" is open",
            "--skip-open-votes",
            "votes \"one\": it must have 2 to 64 options",
            "room_tasks \"odd\": its status \"begun\" is none of a task",
            "api_keys rich: its tier \"platinum\"",
            "agent_identities \"xxx",
            "subscriptions \"elsewhere\": its URL must begin with http",
            "subscriptions \"stranger\": its key is neither in api_keys nor the server's",
        ],
    );
    assert_eq!(said.lines().count(), 14, "{said}");
    let more: String = (100..200).map(|n| task(&n.to_string(), ROOM, "begun")).collect();
    made.add(&more);
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 51, "{said}");
    assert!(said.contains("… and 64 more"), "{said}");
    // Or all that is left out, and the rest comes. Numbers that no room can have stay in the way.
    made.add("UPDATE room_sequences SET high_water = 12");
    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    let counts = |it: super::plan::Counts| Thing::ALL.map(|thing| it.of(thing));
    assert_eq!(counts(plan.ledger.brought), [2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(counts(plan.ledger.left()), [1, 5, 2, 101, 1, 1, 2]);
    let list = plan.ledger.to_string();
    contains(
        &list,
        &[
            "not brought: 1 messages: its number is 0: start the server with the file once: \"zero\"",
            "not brought: 101 tasks: its status \"begun\" is none of a task: \"100\", ",
            ", and 81 more",
        ],
    );
    let row = |name: &str| {
        let line = list.lines().find(|it| it.starts_with(name)).unwrap();
        line.split_whitespace().rev().take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("messages"), ["5", "1", "6"], "not brought, brought, in the file");
}

/// Rooms that could not be made here, with something in one of them.
fn odd() -> Made {
    let long = "é".repeat(200);
    let rows = [
        room(ROOM, "plan", "'public', NULL"),
        room("2F0E0D0C-0B0A-4908-8706-05040302010A", "capitals", "'public', NULL"),
        room("2f0e0d0c-0b0a-8908-8706-050403020100", "ours", "'public', NULL"),
        room("lounge", "lounge", "'public', NULL"),
        room("3f0e0d0c-0b0a-4908-8706-050403020100", " ", "'public', NULL"),
        room("4f0e0d0c-0b0a-4908-8706-050403020100", &long, "'public', NULL"),
        room("5f0e0d0c-0b0a-4908-8706-050403020100", &format!("{long}x"), "'public', NULL"),
        message("m", "lounge", 3),
        message("n", ROOM, 4),
        vote("v", "lounge", "closed"),
        task("t", "lounge", "pending"),
        webhook("w", "lounge", SERVER, "https://example.org"),
        format!(
            "UPDATE rooms SET parent_id = 'lounge', description = replace(hex(zeroblob(2049)), '0', 'x')
                WHERE room_id = '3f0e0d0c-0b0a-4908-8706-050403020100';
             UPDATE rooms SET parent_id = 'lobby' WHERE room_id = '{ROOM}';"
        ),
    ];
    Made::new(&rows.concat())
}

/// Of a room that does not come nothing does, and everything else comes.
#[test]
fn an_odd_room_gets_another_name_or_id_or_is_left_out_and_blocks_nothing_else() {
    let made = odd();
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 6, "a line for each room, and none for what is in it: {said}");
    contains(
        &said,
        &[
            "\"lounge\": its id is no UUID in lower case",
            "its description may have 4096 bytes",
            "--rename-rooms",
            "--skip-refused",
        ],
    );
    let plan = made.taken(Choices { rename_rooms: true, ..choices() });
    let names: Vec<&str> = plan.rooms.iter().map(|(it, _)| &*it.name).collect();
    let cut = "é".repeat(120);
    assert_eq!(
        names,
        [
            "plan",
            "capitals",
            "ours",
            "room (2)",
            &format!("{cut} (2)"),
            &format!("{cut} (3)"),
            "lounge"
        ]
    );
    let ids: Vec<String> = plan.rooms.iter().map(|(it, _)| it.room.to_uuid()).collect();
    assert_eq!((&*ids[0], &*ids[3]), (ROOM, "3f0e0d0c-0b0a-4908-8706-050403020100"));
    assert!(plan.rooms.iter().all(|(it, _)| mesh::import::is_foreign_id(it.room)));
    let lounge = Place::Room(plan.rooms[6].0.room);
    assert_eq!((plan.rooms[3].1, plan.rooms[0].1), (Some(lounge), Some(Place::Lobby)));
    assert_eq!(plan.rooms[3].0.description.as_ref().unwrap().len(), 4_096);
    let (votes, tasks, hooks) = (&plan.votes[0].0, &plan.tasks[0].0, &plan.webhooks[0].0);
    assert_eq!([*votes, *tasks, *hooks], [lounge; 3]);
    assert_eq!(plan.next[&lounge], 4);
    contains(
        &plan.ledger.to_string(),
        &["6 rooms are called, described or identified in another way"],
    );

    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    assert_eq!(plan.rooms.len(), 1);
    assert_eq!((plan.votes.len(), plan.tasks.len(), plan.webhooks.len()), (0, 0, 0));
    contains(
        &plan.ledger.to_string(),
        &[
            "not brought: 1 messages: their rooms are not brought",
            "not brought: 1 votes: their rooms are not brought: \"v?\"",
            "not brought: 1 webhooks: their rooms are not brought: \"w\"",
        ],
    );
    // The content of an encrypted room opens under its own id alone.
    made.add("UPDATE rooms SET encrypted = 1 WHERE room_id = 'lounge'");
    let said = made.refused(Choices { rename_rooms: true, ..choices() });
    assert_eq!(said.lines().count(), 1, "{said}");
    contains(&said, &["\"lounge\"", "its content is encrypted for that id"]);
}

#[test]
fn what_a_flag_chooses_is_brought_so() {
    let made = Made::new(
        &[
            room(ROOM, "of a key", "'private', 'a key'"),
            room(OTHER, "of nobody", "'private', 'unknown'"),
            room("2f0e0d0c-0b0a-4908-8706-050403020100", "of the server", &format!("'private', '{SERVER}'")),
            room("3f0e0d0c-0b0a-4908-8706-050403020100", "without", "'private', NULL"),
            vote("running", ROOM, "open"),
            format!(
                "INSERT INTO vote_ballots VALUES ('running', 'ann', 'Ann', 1, '{AT}');
                 INSERT INTO api_keys VALUES ('a key', 'pro', 'mine', '{AT}'), ('another key', 'free', NULL, '{AT}');
                 INSERT INTO agent_identities VALUES ('ada', 'a key', '{AT}'), ('bob', '{SERVER}', '{AT}'),
                    ('cy', 'unknown', '{AT}');"
            ),
            webhook("of-key", ROOM, "a key", "https://example.org/x"),
            webhook("of-server", "lobby", SERVER, "http://127.0.0.1:9/x"),
            message("n", "lobby", 7),
        ]
        .concat(),
    );
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 3, "{said}");
    let skip = Choices { open_votes: OpenVotes::Skip, private_to_own_key: true, ..choices() };
    let plan = made.taken(skip);
    let owners: Vec<KeyPrint> = plan.rooms.iter().map(|(it, _)| it.owner).collect();
    let (key, own) = (KeyPrint::of("a key"), KeyPrint::of(OWN));
    assert_eq!(owners, [key, own, own, own]);
    let keys: Vec<_> = plan.keys.iter().map(|(it, opener)| (it.key, opener.is_some())).collect();
    assert_eq!(keys, [(key, true), (KeyPrint::of("another key"), false)]);
    let owner = |plan: &Plan, agent: &str| {
        plan.agents.iter().find(|(it, _)| &**it == agent).map(|(_, owner)| *owner).unwrap()
    };
    assert_eq!((owner(&plan, "ada"), owner(&plan, "bob"), owner(&plan, "cy")), (key, own, own));
    let hooks: Vec<_> = plan.webhooks.iter().map(|(_, it)| (&*it.id, it.owner)).collect();
    assert_eq!(hooks, [("of-key", key), ("of-server", own)]);
    assert_eq!((plan.ledger.brought.of(Thing::Message), plan.next[&Place::Lobby]), (1, 8));
    contains(
        &plan.ledger.to_string(),
        &[
            "not brought: 1 votes: they are open: \"running?\"",
            "the room \"of nobody\" becomes private to this node's own key",
            "1 stable agent ids of keys that are not known become those of the node's own key: \"cy\"",
            "1 webhooks go to addresses that are not public",
            "--allow-private-webhooks: \"of-server\"",
        ],
    );
    assert!(!plan.ledger.to_string().contains("hash"), "no advice to revoke keys");
    let close = Choices { open_votes: OpenVotes::Close, ..skip };
    let ended = &made.taken(close).votes[0].2;
    assert_eq!((ended.eligible, &ended.tally[..]), (3, &[0, 1][..]));
    // Its rooms are private to nobody whom this node knows: without a flag only what has no room is taken.
    made.add("DELETE FROM rooms WHERE visibility = 'private' AND coalesce(owner_key, 'unknown') = 'unknown'");
    let plan = made.taken(Choices { private_to_own_key: false, ..close });
    assert_eq!(owner(&plan, "cy"), KeyPrint::of("unknown"), "only that key may ever have it");
    contains(
        &plan.ledger.to_string(),
        &["1 stable agent ids stay those of keys that are not known"],
    );
}

#[test]
fn messages_votes_and_tasks_keep_ids_that_clawchat_draws() {
    let id = |n: u8| format!("{n:02x}0e0d0c-0b0a-4908-8706-050403020100");
    let made = Made::new(
        &[
            message(&id(1), "lobby", 1),
            message("odd", "lobby", 2),
            message(&id(3).to_uppercase(), "lobby", 3),
            vote(&id(4), "lobby", "closed"),
            task(&id(5), "lobby", "pending"),
        ]
        .concat(),
    );
    let plan = made.taken(choices());
    assert_eq!(plan.votes[0].2.id, MessageId::from_uuid(&id(4)));
    assert_eq!(plan.tasks[0].1.task.id, MessageId::from_uuid(&id(5)));
    contains(&plan.ledger.to_string(), &["2 messages get other ids"]);
    assert_eq!(plan.lobby.unwrap().0.as_deref(), Some("Default lobby for all agents"));
}

/// Some commits' worth: chat that answers what is just before it, with holes.
fn much() -> Made {
    let count = 2 * THINGS_PER_COMMIT + 100;
    let made = Made::new(
        &[room(ROOM, "plan", "'public', NULL"), room(OTHER, "quiet", "'public', NULL")].concat(),
    );
    made.add(&format!(
        "INSERT INTO messages
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT printf('%08x-0000-4000-8000-000000000000', i), '{ROOM}', 'ann', 'Ann', 'number ' || i,
            CASE i % 10 WHEN 0 THEN printf('%08x-0000-4000-8000-000000000000', i - 1) END,
            NULL, '{AT}', 500 + i + i / 100 FROM n;
         UPDATE room_sequences SET high_water = 100000;
         INSERT INTO room_sequences VALUES ('{OTHER}', 77);
         INSERT INTO votes VALUES ('v', '{ROOM}', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', NULL, 'closed', 3);
         INSERT INTO room_tasks VALUES ('t', 'lobby', 'paint', NULL, 'completed', 'bob', 'ann', '{AT}', NULL, 'blue');
         INSERT INTO agent_identities VALUES ('ada', '{SERVER}', '{AT}');"
    ));
    made.add(&webhook("w", OTHER, SERVER, "https://example.org"));
    made
}

/// Imports until so many commits were made (`None`: all).
fn import(made: &Made, dir: &TempDir, commits: Option<u32>) -> Brought {
    let file = made.file();
    let mut target = open(dir.path()).unwrap();
    let plan = made.taken(choices());
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
            let by_id = reader.by_message(room, row.message).unwrap().expect("by its id of old");
            assert_eq!((by_id.number, row.message.is_foreign()), (row.number, true));
            let said = row.said.unwrap();
            let answered = said.reply_to.map(|id| {
                let id = MessageId::from_uuid(&id).expect("a UUID");
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
    assert_eq!(store.reader().kept(b"webhook/").unwrap().len(), 1);
    assert!(summary.node.unwrap().clean, "stopped in good order");
    drop(store);
    let at_once = tempfile::tempdir().unwrap();
    assert_eq!(import(&made, &at_once, None), Brought::All);
    assert_eq!(history(&at_once), expected);
}

#[test]
fn a_node_that_has_something_is_refused_and_one_that_has_nothing_is_not() {
    let made = Made::new(&room(ROOM, "plan", "'public', NULL"));
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
