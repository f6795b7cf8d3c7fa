use std::{fs, path::PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

const LAYOUT: &str = include_str!("../testdata/clawchat.sql");
const AT: &str = "2026-11-23T16:33:29.780Z";
const AT_MS: u64 = 1_795_451_609_780;

/// A server's file, and the connection that its server has to it.
struct Made {
    dir: TempDir,
    db: Connection,
}

impl Made {
    fn new() -> Made {
        Made::with(LAYOUT)
    }

    fn with(layout: &str) -> Made {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("clawchat.db")).unwrap();
        db.execute_batch(layout).unwrap();
        Made { dir, db }
    }

    fn add(&self, rows: &str) -> &Made {
        self.db.execute_batch(rows).unwrap();
        self
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("clawchat.db")
    }

    /// Its server stops in good order: SQLite takes the log in and removes it.
    fn stopped(self) -> TempDir {
        self.db.close().unwrap();
        self.dir
    }

    fn open(&self) -> ServerFile {
        ServerFile::open(&self.path()).unwrap()
    }

    fn refused(&self) -> String {
        ServerFile::open(&self.path()).unwrap_err().to_string()
    }
}

fn message(id: &str, seq: u64, reply_to: &str, metadata: &str) -> String {
    format!(
        "INSERT INTO messages VALUES ('{id}', 'lobby', 'ann', 'Ann', 'hello', {reply_to}, {metadata}, '{AT}', {seq});"
    )
}

fn messages(file: &ServerFile) -> Vec<Result<Message, BadRow>> {
    let mut all = Vec::new();
    let done: Result<(), ReadError> = file.messages(|it| {
        all.push(it);
        Ok(())
    });
    done.unwrap();
    all
}

fn names(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn rows_are_read_as_what_they_are() {
    let made = Made::new();
    made.add(
        &[
            message("a", 4, "'x'", "'{}'"),
            message("b", 9, "'a'", "'{\"type\":\"decision\",\"decided_by\":\"ann\"}'"),
            message("c", 10, "NULL", "'{\"type\":\"thinking\"}'"),
            message("d", 11, "NULL", "'{\"type\":\"thinking\",\"x\":1}'"),
            message("e", 12, "NULL", "NULL"),
        ]
        .concat(),
    );
    made.add(&format!(
        "DELETE FROM messages WHERE message_id = 'e';
         INSERT INTO rooms VALUES ('r', 'plan', '', 'lobby', 'ann', '{AT}', 'private', 'k', 1);
         INSERT INTO votes VALUES
            ('v', 'r', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', NULL, 'closed', 5),
            ('w', 'r', 'tea?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', '{AT}', 'open', 5);
         INSERT INTO vote_ballots VALUES ('v', 'ann', 'Ann', 1, '{AT}'), ('v', 'bob', 'Bob', 1, '{AT}'),
            ('v', 'cy', 'Cy', 0, '{AT}'), ('w', 'ann', 'Ann', 0, '{AT}');
         INSERT INTO room_tasks VALUES ('t', 'r', 'paint', NULL, 'pending', NULL, 'ann', '{AT}', NULL, NULL);
         INSERT INTO api_keys VALUES ('hush', 'pro', 'mine', '{AT}');
         INSERT INTO agent_identities VALUES ('ada', 'hush', '{AT}');
         INSERT INTO subscriptions VALUES ('s', 'r', 'hush', 'http://a.org/x', 'shh', '[\"fyi\"]', NULL, 'bob', 1,
            3, 7, 'failed', 5, '{AT}');"
    ));
    let file = made.open();
    let rooms: Vec<Room> = file.rooms().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!((rooms[0].public, rooms[0].owner.as_deref()), (true, None));
    let room = &rooms[1];
    assert_eq!((room.public, room.encrypted, room.description.clone()), (false, true, None));
    assert_eq!((room.created_ms, room.owner.as_deref()), (Some(AT_MS), Some("k")));
    assert_eq!(room.parent.as_deref(), Some("lobby"));
    let all: Vec<Message> = messages(&file).into_iter().map(Result::unwrap).collect();
    let seen: Vec<_> = all.iter().map(|it| (it.seq, it.kind, it.reply_to.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (4, Kind::Chat, Some("x")),
            (9, Kind::Decision, Some("a")),
            (10, Kind::Thinking, None),
            (11, Kind::Chat, None),
        ]
    );
    assert_eq!((all[0].metadata.as_deref(), all[2].metadata.as_deref()), (None, None));
    assert!(all[3].metadata.as_ref().unwrap().contains("thinking"));
    let sequence = file.sequences().unwrap().remove(0).unwrap();
    assert_eq!((&*sequence.room, sequence.high_water), ("lobby", 12), "of one that is gone");
    let votes: Vec<Vote> = file.votes().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!((votes[0].closed, votes[0].eligible, &votes[0].tally[..]), (true, 5, &[1, 2][..]));
    assert_eq!((votes[1].closed, votes[1].closes_ms), (false, Some(AT_MS)));
    assert_eq!(file.tasks().unwrap()[0].as_ref().unwrap().updated_ms, None);
    let hook = file.subscriptions().unwrap().remove(0).unwrap();
    assert_eq!((hook.since, hook.delivered, hook.status), (3, 7, Status::Failed));
    assert_eq!((hook.kinds.as_deref(), hook.failures), (Some(&["fyi".to_owned()][..]), 5));
    let key = file.keys().unwrap().remove(0).unwrap();
    let identity = file.identities().unwrap().remove(0).unwrap();
    assert_eq!((&*key.text, &*identity.owner, &*hook.secret), ("hush", "hush", "shh"));
    let shown = format!("{key:?} {identity:?} {hook:?}");
    assert!(!["hush", "shh", "a.org"].iter().any(|it| shown.contains(it)), "{shown}");
    assert_eq!(file.message_count().unwrap(), 4);
}

/// Its numbers are those that its messages have in their order.
#[test]
fn files_of_older_servers_lack_columns_and_tables() {
    let older = "
        CREATE TABLE rooms (room_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT, parent_id TEXT,
            created_by TEXT, created_at TEXT NOT NULL);
        CREATE TABLE messages (message_id TEXT PRIMARY KEY, room_id TEXT NOT NULL, agent_id TEXT NOT NULL,
            agent_name TEXT NOT NULL, content TEXT NOT NULL, reply_to_message TEXT, metadata TEXT DEFAULT '{}',
            created_at TEXT NOT NULL);
        INSERT INTO rooms VALUES ('lobby', 'lobby', NULL, NULL, NULL, '2025-01-01T00:00:00Z');
        INSERT INTO rooms VALUES ('r', 'plan', NULL, NULL, 'ann', '2025-01-01T00:00:00Z');
        INSERT INTO messages VALUES ('z', 'r', 'ann', 'Ann', 'one', NULL, '{}', '2025-01-02T00:00:00Z'),
            ('b', 'r', 'ann', 'Ann', 'three', NULL, '{}', '2025-01-03T00:00:00Z'),
            ('a', 'r', 'ann', 'Ann', 'two', NULL, '{}', '2025-01-02T00:00:00Z'),
            ('l', 'lobby', 'ann', 'Ann', 'hello', NULL, '{}', '2025-01-01T00:00:00Z');";
    let made = Made::with(older);
    let file = made.open();
    let room = file.rooms().unwrap().remove(1).unwrap();
    assert!(room.public && !room.encrypted && room.owner.is_none());
    let all: Vec<_> = messages(&file).into_iter().map(Result::unwrap).collect();
    let seen: Vec<_> = all.iter().map(|it| (&*it.room, it.seq, &*it.content)).collect();
    assert_eq!(seen, [("lobby", 1, "hello"), ("r", 1, "one"), ("r", 2, "two"), ("r", 3, "three")]);
    assert!(file.sequences().unwrap().is_empty() && file.votes().unwrap().is_empty());
    assert!(file.keys().unwrap().is_empty() && file.subscriptions().unwrap().is_empty());
}

#[test]
fn what_is_no_file_of_a_server_is_refused_and_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("it");
    let refused = |of: &str| {
        let error = ServerFile::open(&at).unwrap_err().to_string();
        assert!(error.contains(of), "{error}");
    };
    refused("it");
    fs::write(&at, "SQLite").unwrap();
    refused("not an SQLite file");
    let error = Made::with("CREATE TABLE x (y)").refused();
    assert!(error.contains("no table rooms, messages") && error.contains("it has x"), "{error}");
    let error = Made::with(&LAYOUT.replace("high_water", "top")).refused();
    assert!(error.contains("room_sequences has no column `high_water`"), "{error}");
    assert!(error.contains("it has room_id, top"), "{error}");
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let made = Made::new();
    made.add(
        &[
            message("a", 4, "NULL", "NULL").replace(AT, "yesterday"),
            message("b", 5, "NULL", "'{'"),
            message("c", 6, "NULL", "NULL").replace("'hello'", "x'ff00'"),
        ]
        .concat(),
    );
    made.add(&format!(
        "INSERT INTO votes VALUES
            ('v', 'lobby', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', '{AT}', NULL, 'closed', 5),
            ('w', 'lobby', 'tea?', NULL, 'yes', 'ann', '{AT}', NULL, 'closed', 5);
         INSERT INTO vote_ballots VALUES ('v', 'ann', 'Ann', 2, '{AT}');
         INSERT INTO api_keys VALUES ('hush', x'00', 'mine', '{AT}');"
    ));
    let file = made.open();
    let bad: Vec<String> =
        messages(&file).into_iter().map(|it| it.unwrap_err().to_string()).collect();
    for (error, of) in
        bad.iter().zip(["\"a\": `created_at`", "\"b\": `metadata`", "\"c\": `content`"])
    {
        assert!(error.starts_with("messages") && error.contains(of), "{error}");
    }
    let votes: Vec<String> =
        file.votes().unwrap().into_iter().map(|it| it.unwrap_err().to_string()).collect();
    assert!(votes[0].contains("\"v\": a ballot of it: ") && votes[0].contains("no option 2"));
    assert!(votes[1].contains("\"w\": `options`"), "{votes:?}");
    let key = file.keys().unwrap().remove(0).unwrap_err().to_string();
    assert!(key.contains("\"mine\": `tier`") && !key.contains("hush"), "{key}");
}

/// `datetime('now')` of SQLite is in UTC and says so nowhere.
#[test]
fn a_time_in_the_form_of_sqlite_is_one() {
    let made = Made::new();
    let forms = [
        ("2026-11-23 16:33:29", Some(AT_MS - 780)),
        ("2026-11-23 16:33:29.780", Some(AT_MS)),
        ("2026-11-23T18:33:29.780+02:00", Some(AT_MS)),
        ("2026-11-23 16:33", None),
        ("2026-11-23", None),
        ("2026-11-23T16:33:29", None),
        ("2026-11-23 16:33:29 noon", None),
    ];
    for (form, _) in forms {
        made.add(&format!(
            "INSERT INTO rooms VALUES ('{form}', '{form}', NULL, NULL, NULL, '{form}', 'public', NULL, 0)"
        ));
    }
    let read: Vec<_> = made.open().rooms().unwrap();
    for (form, ms) in forms {
        let room = read.iter().flatten().find(|it| it.id == form);
        assert_eq!(room.and_then(|it| it.created_ms), ms, "{form}");
    }
    // Both forms of one day are in the order in which they were.
    for (id, at) in [("b", "2026-11-23 16:33:30"), ("a", AT), ("c", "2026-11-23T16:33:31Z")] {
        made.add(&format!(
            "INSERT INTO room_tasks VALUES ('{id}', 'lobby', 'paint', NULL, 'pending', NULL, 'ann', '{at}', NULL, NULL)"
        ));
    }
    let tasks: Vec<Task> = made.open().tasks().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(tasks.iter().map(|it| &*it.id).collect::<String>(), "abc");
}

#[test]
fn a_lobby_is_one_without_its_time() {
    let made = Made::new();
    made.add("UPDATE rooms SET created_at = 'yesterday'");
    let lobby = made.open().rooms().unwrap().remove(0).unwrap();
    assert_eq!((&*lobby.id, lobby.created_ms), (LOBBY, None));
    assert_eq!(lobby.description.as_deref(), Some("Default lobby for all agents"));
}

#[test]
fn tables_may_be_without_row_ids() {
    let layout = LAYOUT
        .replacen("created_at TEXT NOT NULL\n);", "created_at TEXT NOT NULL\n) WITHOUT ROWID;", 1)
        .replace("    seq INTEGER NOT NULL DEFAULT 0\n);", ") WITHOUT ROWID;")
        .replace(
            "    created_at TEXT NOT NULL,\n) WITHOUT",
            "    created_at TEXT NOT NULL\n) WITHOUT",
        );
    let (layout, _) = layout.split_once("CREATE TRIGGER").unwrap();
    let made = Made::with(layout);
    made.add(&format!(
        "INSERT INTO rooms VALUES ('lobby', 'lobby', NULL, NULL, NULL, '{AT}', 'public', NULL, 0);
         INSERT INTO api_keys VALUES ('b', 'free', NULL, '{AT}'), ('a', 'free', NULL, '{AT}');
         INSERT INTO messages VALUES ('n', 'lobby', 'ann', 'Ann', 'two', NULL, NULL, '{AT}'),
            ('m', 'lobby', 'ann', 'Ann', 'one', NULL, NULL, '{AT}')"
    ));
    let file = made.open();
    let keys: Vec<String> = file.keys().unwrap().into_iter().map(|it| it.unwrap().text).collect();
    assert_eq!(keys, ["a", "b"]);
    let said: Vec<_> = messages(&file).into_iter().map(|it| it.unwrap()).collect();
    assert_eq!(
        said.iter().map(|it| (it.seq, &*it.content)).collect::<Vec<_>>(),
        [(1, "one"), (2, "two")]
    );
}

/// A server that was killed leaves its newest messages in the write-ahead log.
#[test]
fn the_write_ahead_log_counts_and_a_server_that_runs_is_noticed() {
    let made = Made::new();
    made.add(&message("a", 4, "NULL", "NULL"));
    // As a kill leaves it: the files as they are while the server has them open.
    let killed = tempfile::tempdir().unwrap();
    for name in ["clawchat.db", "clawchat.db-wal", "clawchat.db-shm"] {
        fs::copy(made.dir.path().join(name), killed.path().join(name)).unwrap();
    }
    let (before, read) = (names(&killed), |name: &str| fs::read(killed.path().join(name)).unwrap());
    let contents: Vec<Vec<u8>> = before.iter().map(|it| read(it)).collect();
    let file = ServerFile::open(&killed.path().join("clawchat.db")).unwrap();
    assert_eq!(file.log(), Some(&*killed.path().canonicalize().unwrap().join("clawchat.db-wal")));
    assert_eq!(messages(&file).len(), 1);
    assert!(!file.has_changed().unwrap());
    drop(file);
    assert_eq!(names(&killed), before);
    assert!(before.iter().map(|it| read(it)).eq(contents), "nothing of it was touched");

    let file = made.open();
    let digest = file.digest().unwrap();
    made.add(&message("b", 5, "NULL", "NULL"));
    assert!(file.has_changed().unwrap());
    assert_eq!(messages(&file).len(), 1, "it is as it was when it was opened");
    assert_eq!(file.digest().unwrap(), digest);
    assert_ne!(made.open().digest().unwrap(), digest);
}

#[test]
fn nothing_is_made_beside_a_file_that_is_whole() {
    let made = Made::new();
    made.add(&message("a", 4, "NULL", "NULL"));
    let dir = made.stopped();
    // A name that has to be written in another way in a URI.
    let odd = dir.path().join("cläw?chat #1%20.db");
    fs::rename(dir.path().join("clawchat.db"), &odd).unwrap();
    let before = (names(&dir), fs::read(&odd).unwrap());
    let file = ServerFile::open(&odd).unwrap();
    assert_eq!((messages(&file).len(), file.log()), (1, None));
    assert!(!file.has_changed().unwrap());
    assert_eq!((names(&dir), fs::read(&odd).unwrap()), before, "while it is open");
    drop(file);
    assert_eq!(names(&dir), before.0, "and afterwards");
    // A link leads to it, and so to its logs.
    let link = dir.path().join("link.db");
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    let db = Connection::open(&odd).unwrap();
    db.execute_batch(&message("b", 5, "NULL", "NULL")).unwrap();
    assert_eq!(messages(&ServerFile::open(&link).unwrap()).len(), 2);
}

#[test]
fn a_copy_with_its_rows_in_another_order_is_the_same_file() {
    let keys = ["('a', 'free', NULL, '')", "('b', 'free', NULL, '')"];
    let row = |key: &str| format!("INSERT INTO api_keys VALUES {key};");
    let (one, other) = (Made::new(), Made::new());
    one.add(&row(keys[0])).add(&row(keys[1]));
    other.add(&row(keys[1])).add(&row(keys[0]));
    let digest = |it: &Made| it.open().digest().unwrap();
    assert_eq!(digest(&one), digest(&other));
    other.add("UPDATE api_keys SET tier = 'pro' WHERE api_key = 'b'");
    assert_ne!(digest(&one), digest(&other));
}
