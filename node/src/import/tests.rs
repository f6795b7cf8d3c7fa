//! Files that are refused, and the plans of those that are not.

use std::path::PathBuf;

use import::ServerFile;
use mesh::name::id::{KeyPrint, MessageId};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{
    Brought, Choices, OpenVotes, OwnKeys, Plan,
    plan::{
        Place, PlannedId,
        findings::Refusals,
        ledger::{Counts, Ledger, Thing},
    },
    plan_of,
};
use writing::import;

mod writing;

const LAYOUT: &str = include_str!("../../import/testdata/clawchat.sql");
const AT: &str = "2023-11-14T22:13:20.000Z";
const ROOM: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const OTHER: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";
/// The node's own key, and the server's.
const OWN: &str = "the key of the node, for tests of import";
const SERVER: &str = "the key of the server, for tests of import";
/// Keys of the table, and one that is nowhere.
const KEY: &str = "a key of the table, for tests of import";
const ANOTHER: &str = "another of the table, for tests of import";
const UNKNOWN: &str = "a key of nobody, for tests of import";

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
        plan_of(&self.file(), choices, keys, &mut |_, _| {}).unwrap()
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
             UPDATE room_sequences SET high_water = 12;
             INSERT INTO votes VALUES ('one', '{ROOM}', 'lunch?', NULL, '[\"yes\"]', 'ann', '{AT}', NULL, 'closed', 3);
             INSERT INTO api_keys VALUES ('{KEY}', 'pro', 'rich', '{AT}'), ('short', 'free', 'brief', '{AT}');
             INSERT INTO agent_identities VALUES ('{}', '{KEY}', '{AT}'), ('ann', 'short', '{AT}'),
                ('a3bb189e-8bf9-8c4a-9b3e-0f2f3c1d4e5f', '{KEY}', '{AT}');",
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
            "it is private to a key that is neither in api_keys nor the server's",
            "make \"secret\" private to this node's own key with --private-to-own-key",
            "messages \"twice\": the number 4 is another message's, too",
            "messages \"zero\": its number is 0",
            "messages \"far\": the number 34359738368 is beyond",
            "messages \"large\": its content has 262146 bytes; it may have 262144",
            "messages \"nameless\": its agent's id must have 1 to 128 bytes",
            "votes \"running\": the vote \"running?\" is open",
            "--skip-open-votes",
            "votes \"one\": it must have 2 to 64 options",
            "room_tasks \"odd\": its status \"begun\" is none of a task",
            "api_keys \"brief\": the key has fewer than 32 characters",
            "agent_identities \"xxx",
            "agent_identities \"ann\": the key has fewer than 32 characters",
            "agent_identities \"a3bb189e-8bf9-8c4a-9b3e-0f2f3c1d4e5f\": by its form it is an id that nodes draw",
            "subscriptions \"elsewhere\": its URL must begin with http",
            "subscriptions \"stranger\": its key is neither in api_keys nor the server's",
        ],
    );
    assert_eq!(said.lines().count(), 15, "{said}");
    assert!(!said.contains("--server-key-file"), "its key is known: {said}");
    let unknown = made.refused(Choices { server: None, ..choices() });
    contains(&unknown, &["--server-key-file if it is of that", "--server-key-file, or --private"]);
    let more: String = (100..200).map(|n| task(&n.to_string(), ROOM, "begun")).collect();
    made.add(&more);
    let said = made.refused(choices());
    assert_eq!(said.lines().count(), 51, "{said}");
    assert!(said.contains("… and 65 more"), "{said}");
    // Or all that is left out, and the rest comes.
    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    let counts = |counts: Counts| Thing::ALL.map(|thing| counts.of(thing));
    assert_eq!(counts(plan.ledger.brought), [2, 1, 0, 0, 1, 0, 0]);
    assert_eq!(counts(plan.ledger.left()), [1, 5, 2, 101, 1, 3, 2]);
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
    assert!(plan.rooms.iter().all(|(it, _)| mesh::api::import::is_foreign_id(it.room)));
    let lounge = Place::Room(plan.rooms[6].0.room);
    assert_eq!((plan.rooms[3].1, plan.rooms[0].1), (Some(lounge), Some(Place::Lobby)));
    assert_eq!(plan.rooms[3].0.description.as_ref().unwrap().len(), 4_096);
    let (votes, tasks, hooks) = (&plan.votes[0].0, &plan.tasks[0].0, &plan.webhooks[0].0);
    assert_eq!([*votes, *tasks, *hooks], [lounge; 3]);
    assert_eq!(plan.next[&lounge], 4);
    contains(
        &plan.ledger.to_string(),
        &[
            "6 rooms are called, described or identified in another way: ",
            &format!("\"lounge\" (lounge) -> \"lounge\" ({})", plan.rooms[6].0.room.to_uuid()),
            "\" \" (3f0e0d0c-0b0a-4908-8706-050403020100) -> \"room (2)\" (3f0e0d0c-",
            "éééééé (2)\" (4f0e0d0c-",
        ],
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
            room(ROOM, "of a key", &format!("'private', '{KEY}'")),
            room(OTHER, "of nobody", &format!("'private', '{UNKNOWN}'")),
            room("2f0e0d0c-0b0a-4908-8706-050403020100", "of the server", &format!("'private', '{SERVER}'")),
            room("3f0e0d0c-0b0a-4908-8706-050403020100", "without", "'private', NULL"),
            vote("running", ROOM, "open"),
            format!(
                "INSERT INTO vote_ballots VALUES ('running', 'ann', 'Ann', 1, '{AT}');
                 INSERT INTO api_keys VALUES ('{KEY}', 'pro', 'mine', '{AT}'), ('{ANOTHER}', 'free', NULL, '{AT}');
                 INSERT INTO agent_identities VALUES ('ada', '{KEY}', '{AT}'), ('bob', '{SERVER}', '{AT}'),
                    ('cy', '{UNKNOWN}', '{AT}');"
            ),
            webhook("of-key", ROOM, KEY, "https://example.org/x"),
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
    let (key, own) = (KeyPrint::of(KEY), KeyPrint::of(OWN));
    assert_eq!(owners, [key, own, own, own]);
    let keys: Vec<_> =
        plan.keys.iter().map(|it| (it.secret.print(), it.opener.is_some())).collect();
    assert_eq!(keys, [(key, true), (KeyPrint::of(ANOTHER), false)]);
    let owner = |plan: &Plan, agent: &str| {
        let id = plan.agents.iter().find(|it| &*it.agent == agent).unwrap();
        owner_of(id)
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
    // Its rooms are private to nobody whom this node knows: without a flag only what has no room is
    // taken.
    made.add(&format!(
        "DELETE FROM rooms WHERE visibility = 'private' AND coalesce(owner_key, '{UNKNOWN}') = '{UNKNOWN}'"
    ));
    let plan = made.taken(Choices { private_to_own_key: false, ..close });
    assert_eq!(owner(&plan, "cy"), KeyPrint::of(UNKNOWN), "only that key may ever have it");
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
            vote("odd", "lobby", "closed"),
            task(&id(5), "lobby", "pending"),
            task("odd", "lobby", "pending"),
        ]
        .concat(),
    );
    let plan = made.taken(choices());
    let votes: Vec<_> = plan.votes.iter().map(|it| it.2.id.unwrap()).collect();
    let tasks: Vec<_> = plan.tasks.iter().map(|it| it.1.task.id.unwrap()).collect();
    assert_eq!(Some(votes[0]), MessageId::from_uuid(&id(4)));
    assert_eq!(Some(tasks[0]), MessageId::from_uuid(&id(5)));
    let other = plan.answered("odd".to_owned());
    let all = [votes[1].to_uuid(), tasks[1].to_uuid(), other.clone()];
    assert!(all[0] != all[1] && all[1] != all[2], "{all:?}");
    assert!(MessageId::from_uuid(&other).unwrap().is_foreign(), "{other}");
    contains(
        &plan.ledger.to_string(),
        &[
            &format!(
                "2 messages get other ids: theirs are no UUIDs that ClawChat draws: \"odd\" -> {other}, "
            ),
            &format!(
                "1 votes get other ids: theirs are no UUIDs that ClawChat draws: \"odd\" -> {}",
                all[0]
            ),
            &format!(
                "1 tasks get other ids: theirs are no UUIDs that ClawChat draws: \"odd\" -> {}",
                all[1]
            ),
        ],
    );
    for same in [&id(1), "of one that does not come"] {
        assert_eq!(plan.answered(same.to_owned()), same);
    }
    assert_eq!(plan.lobby.unwrap().0.as_deref(), Some("Default lobby for all agents"));
}

fn owner_of(id: &PlannedId) -> KeyPrint {
    id.secret.as_ref().map_or(KeyPrint::OPEN, |secret| secret.print())
}

/// How many rows of each kind the file has, by the list, and how many it has.
fn adds_up(made: &Made, plan: &Plan) {
    let db = Connection::open(made.path()).unwrap();
    let tables = [
        "rooms",
        "messages",
        "votes",
        "room_tasks",
        "api_keys",
        "agent_identities",
        "subscriptions",
    ];
    for (thing, table) in Thing::ALL.into_iter().zip(tables) {
        let count = format!("SELECT count(*) FROM {table}");
        let has = db.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs();
        let Ledger { brought, refused, .. } = &plan.ledger;
        let said: u64 =
            [*brought, *refused, plan.ledger.left()].into_iter().map(|it| it.of(thing)).sum();
        assert_eq!(said, has, "{table}\n{}", plan.ledger);
    }
}

/// A private room of a key that is in the table and the server's, or the node's, as well.
#[test]
fn a_key_of_the_table_is_brought_whoever_else_has_it() {
    let made = Made::new(&format!(
        "{}INSERT INTO api_keys VALUES ('{OWN}', 'pro', 'own', '{AT}'), ('{SERVER}', 'free', 'other', '{AT}'),
            ('', 'free', 'blank', '{AT}');
         INSERT INTO agent_identities VALUES ('ada', '{SERVER}', '{AT}');",
        room(ROOM, "plan", &format!("'private', '{OWN}'"))
    ));
    let plan = made.taken(choices());
    let [own, server] = [OWN, SERVER].map(KeyPrint::of);
    let keys: Vec<_> =
        plan.keys.iter().map(|it| (it.secret.print(), it.opener.is_some())).collect();
    assert_eq!(keys, [(own, true), (server, false)]);
    assert_eq!((plan.rooms[0].0.owner, owner_of(&plan.agents[0])), (own, server));
    adds_up(&made, &plan);
    contains(
        &plan.ledger.to_string(),
        &[
            "not brought: 1 keys: nobody can name an empty one: \"blank\"",
            "1 keys are this node's own and become keys of the mesh, too: \"own\"",
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(import(&made, &dir, None), Brought::All);
}

#[test]
fn a_key_comes_whatever_its_label_and_tier_are() {
    let long = "é".repeat(100);
    let made = Made::new(&format!(
        "INSERT INTO api_keys VALUES ('{KEY}', 'platinum', 'rich', '{AT}'), ('{ANOTHER}', 'pro', '{long}', '{AT}');"
    ));
    let plan = made.taken(choices());
    let keys: Vec<_> = plan.keys.iter().map(|it| (it.tier, it.label.clone().unwrap())).collect();
    let cut = "é".repeat(64);
    assert_eq!(
        keys,
        [(mesh::wire::acts::Tier::Low, "rich".to_owned()), (mesh::wire::acts::Tier::High, cut)]
    );
    contains(
        &plan.ledger.to_string(),
        &[
            "1 keys have a tier that is none, and get another: \"rich\" (\"platinum\") -> free",
            "1 keys have a label of more than 128 bytes, which is cut: \"éééé",
        ],
    );
}

#[test]
fn a_room_whose_numbers_cannot_go_on_is_refused_or_left_out() {
    let far = 1_i64 << 62;
    for (high_water, why) in [
        ("-1".to_owned(), "`high_water`: below 0".to_owned()),
        (far.to_string(), format!("the number {far} is beyond 34359738366, the last that a room")),
        ("34359738367".to_owned(), "the number 34359738367 is beyond 34359738366".to_owned()),
        ("'many'".to_owned(), "`high_water`: not a whole number".to_owned()),
    ] {
        for at in [ROOM, "lobby"] {
            let made = Made::new(
                &[
                    room(ROOM, "plan", "'public', NULL"),
                    room(OTHER, "other", "'public', NULL"),
                    message("m", at, 1),
                    message("n", OTHER, 1),
                    task("t", at, "pending"),
                    format!("UPDATE room_sequences SET high_water = {high_water} WHERE room_id = '{at}';"),
                    format!("UPDATE rooms SET parent_id = 'lobby' WHERE room_id = '{OTHER}';"),
                ]
                .concat(),
            );
            let (plan, refusals) = made.plan(choices());
            assert_eq!(refusals.to_string().lines().count(), 1, "{refusals}");
            contains(&refusals.to_string(), &[&format!("room_sequences \"{at}\": {why}")]);
            adds_up(&made, &plan);
            let plan = made.taken(Choices { skip_refused: true, ..choices() });
            adds_up(&made, &plan);
            assert_eq!((plan.ledger.brought.of(Thing::Room), plan.tasks.len()), (2, 0));
            assert_eq!(plan.ledger.brought.of(Thing::Message), 1);
            assert_eq!(plan.rooms.last().unwrap().1, Some(Place::Lobby));
            let list = plan.ledger.to_string();
            contains(&list, &["not brought: 1 rooms: ", &why, &format!("{at:?}")]);
        }
    }
    let made = Made::new(&room(ROOM, "plan", "'public', NULL"));
    made.add(&format!("INSERT INTO room_sequences VALUES ('{ROOM}', 34359738366)"));
    assert_eq!(made.taken(choices()).next.values().max(), Some(&34_359_738_367));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(import(&made, &dir, None), Brought::All);
}

#[test]
fn of_more_tasks_than_a_room_can_have_the_oldest_are_refused_or_left_out() {
    let made = Made::new(&format!(
        "INSERT INTO room_tasks
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4100)
         SELECT printf('%08x-0000-4000-8000-000000000000', i), 'lobby', 'task ' || i, NULL, 'pending', NULL, 'ann',
            '{AT}', NULL, NULL FROM n;"
    ));
    let (plan, refusals) = made.plan(choices());
    assert_eq!(refusals.to_string().lines().count(), 4, "{refusals}");
    contains(&refusals.to_string(), &["more than 4096 that are not completed"]);
    adds_up(&made, &plan);
    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    assert_eq!((plan.tasks.len(), &*plan.tasks[0].1.task.title), (4_096, "task 5"));
    adds_up(&made, &plan);
}

#[test]
fn of_more_keys_with_private_rooms_than_a_node_follows_the_rest_is_refused_or_left_out() {
    let count = mesh::limits::KEYS_FOLLOWED_MAX + 2;
    let made = Made::new(&format!(
        "INSERT INTO api_keys
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT printf('a key of the table, number %9d', i), 'free', NULL, '{AT}' FROM n;
         INSERT INTO rooms
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT printf('%08x-0000-4000-8000-000000000000', i), 'room ' || i, NULL, NULL, 'ann', '{AT}', 'private',
            printf('a key of the table, number %9d', i), 0 FROM n;"
    ));
    let (plan, refusals) = made.plan(choices());
    assert_eq!(refusals.to_string().lines().count(), 2, "{refusals}");
    adds_up(&made, &plan);
    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    assert_eq!((plan.rooms.len(), plan.keys.len()), (count - 2, count));
    adds_up(&made, &plan);
}

#[test]
fn what_is_more_than_a_mesh_can_have_is_refused_or_left_out() {
    let (keys, ids) = (mesh::limits::KEYS_MAX, mesh::limits::AGENT_IDS_MAX);
    let rows = |count: usize, row: &str| {
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {row} FROM n;"
        )
    };
    let made = Made::new(&format!(
        "INSERT INTO api_keys {} INSERT INTO agent_identities {}",
        rows(
            keys + 1,
            &format!("printf('a key of the table, number %9d', i), 'free', 'number ' || i, '{AT}'")
        ),
        rows(
            ids + 1,
            &format!("'agent ' || i, printf('a key of the table, number %9d', 1), '{AT}'")
        ),
    ));
    let (plan, refusals) = made.plan(choices());
    assert_eq!(refusals.to_string().lines().count(), 2, "{refusals}");
    let last = format!("api_keys \"number {}\": a mesh has at most {keys} keys", keys + 1);
    contains(&refusals.to_string(), &[&last, &format!("at most {ids} stable agent ids")]);
    adds_up(&made, &plan);
    let plan = made.taken(Choices { skip_refused: true, ..choices() });
    assert_eq!((plan.keys.len(), plan.agents.len()), (keys, ids));
}

/// The node has one, whatever the file says of the server's.
#[test]
fn an_odd_lobby_is_the_lobby() {
    let note = |change: &str, notes: &[&str]| {
        let made =
            Made::new(&[message("m", "lobby", 1), format!("UPDATE rooms SET {change}")].concat());
        let plan = made.taken(choices());
        assert_eq!(plan.ledger.brought.of(Thing::Message), 1, "{change}");
        adds_up(&made, &plan);
        contains(&plan.ledger.to_string(), notes);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(import(&made, &dir, None), Brought::All);
        plan.lobby.unwrap()
    };
    let (description, time) = note("created_at = 'yesterday'", &["comes without its time"]);
    assert_eq!((description.as_deref(), time), (Some("Default lobby for all agents"), None));
    let (_, time) = note("created_at = '2025-03-04 05:06:07'", &[]);
    assert_eq!(time, Some(1_741_064_767_000));
    let lobby =
        note("visibility = 'unlisted'", &["without its description and time: `visibility`"]);
    assert_eq!(lobby, (None, None));
    note("name = 'Main Hall'", &["the lobby, which was called \"Main Hall\", is \"lobby\""]);
    note("visibility = 'private'", &["the lobby was private, and is open to every key"]);
}

#[test]
fn the_list_of_a_file_that_is_refused_adds_up() {
    for made in [bad(), odd()] {
        for (rename_rooms, skip_refused) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let (plan, refusals) = made.plan(Choices { rename_rooms, skip_refused, ..choices() });
            assert_eq!(refusals.is_empty(), plan.ledger.refused.all() == 0);
            adds_up(&made, &plan);
        }
    }
    let (plan, _) = bad().plan(choices());
    let list = plan.ledger.to_string();
    assert!(list.lines().next().unwrap().ends_with("not brought     refused"), "{list}");
    let rooms: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(rooms, ["rooms", "3", "2", "0", "1"]);
}

#[test]
fn what_is_left_out_is_not_explained_by_the_flag_that_left_it_out() {
    for made in [bad(), odd()] {
        let skip = Choices { skip_refused: true, ..choices() };
        let list = made.taken(skip).ledger.to_string();
        assert!(!list.contains("--skip-refused"), "{list}");
        let list = made.taken(Choices { rename_rooms: true, ..skip }).ledger.to_string();
        assert!(!list.contains("--rename-rooms"), "{list}");
    }
    let list = odd().taken(Choices { skip_refused: true, ..choices() }).ledger.to_string();
    assert!(list.contains(": --rename-rooms gives it another one"), "{list}");
}

#[test]
fn a_webhook_goes_on_no_later_than_its_room_ends() {
    let made = Made::new(
        &[
            message("m", "lobby", 7),
            room(ROOM, "plan", "'public', NULL"),
            webhook("ahead", "lobby", SERVER, "https://example.org"),
            webhook("in an empty room", ROOM, SERVER, "https://example.org"),
            webhook("within", "lobby", SERVER, "https://example.org"),
            "UPDATE subscriptions SET last_delivered_seq = 1000000000 WHERE subscription_id = 'ahead';
             UPDATE subscriptions SET kinds = '[]' WHERE subscription_id = 'within';"
                .to_owned(),
        ]
        .concat(),
    );
    let plan = made.taken(choices());
    let at: Vec<_> = plan.webhooks.iter().map(|(_, it)| (&*it.id, it.delivered)).collect();
    assert_eq!(at, [("ahead", 7), ("in an empty room", 0), ("within", 2)]);
    contains(
        &plan.ledger.to_string(),
        &[
            "2 webhooks are beyond the last number of their room, and go on from there: \"ahead\", \"in",
            "1 webhooks have a list of kinds that is empty, which is taken for all kinds: \"within\"",
        ],
    );
}
