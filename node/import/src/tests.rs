use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

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

struct Made {
    dir: TempDir,
    db: Connection,
}

impl Made {
    fn with(schema: &str) -> Made {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("clawchat.db")).unwrap();
        db.execute_batch(schema).unwrap();
        Made { dir, db }
    }

    fn add(&self, rows: &str) -> &Made {
        self.db.execute_batch(rows).unwrap();
        self
    }

    fn open(&self) -> Result<ServerFile, OpenError> {
        ServerFile::open(&self.dir.path().join("clawchat.db"))
    }
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

#[test]
fn rows_are_read_as_what_they_are() {
    let made = Made::with(SCHEMA);
    made.add(
        "INSERT INTO rooms VALUES ('r', 'plan', '', NULL, 0, '2023-11-14T22:13:20Z', 'ann', 'private', 'k', 1);
         INSERT INTO messages VALUES
            ('b', 'r', 'ann', 'Ann', 'two', 'a', '[\"bob\"]', '{\"type\":\"decision\"}', '2023-11-14T22:13:21Z', 9),
            ('a', 'r', 'bob', NULL, 'one', 'x', NULL, NULL, '2023-11-14T22:13:20Z', 4),
            ('c', 'r', 'ann', 'Ann', 'hm', NULL, '', '{\"type\":\"thinking\"}', 1700000000, 10),
            ('d', 'r', 'ann', 'Ann', 'hm', NULL, '', '{\"type\":\"thinking\",\"x\":1}', 1700000000, 11);
         INSERT INTO room_sequences VALUES ('r', 12);
         INSERT INTO votes VALUES
            ('v', 'r', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', 1700000000, NULL, 'closed', 5),
            ('w', 'r', 'tea?', NULL, '[\"yes\",\"no\"]', 'ann', 1700000001, NULL, 'open', 5);
         INSERT INTO vote_ballots VALUES ('v', 'ann', 1), ('v', 'bob', 1), ('v', 'cy', 0), ('w', 'ann', 0);
         INSERT INTO api_keys VALUES ('secret', 'mine', 'pro', NULL);",
    );
    let file = made.open().unwrap();
    let room = file.rooms().unwrap().remove(0).unwrap();
    assert_eq!((room.public, room.encrypted, room.description), (false, true, None));
    assert_eq!((room.created_ms, room.owner.as_deref()), (1_700_000_000_000, Some("k")));
    let all: Vec<Message> = messages(&file).into_iter().map(Result::unwrap).collect();
    let seen: Vec<_> = all.iter().map(|it| (it.seq, it.kind, it.reply_to_seq)).collect();
    assert_eq!(
        seen,
        [
            (4, Kind::Chat, None),
            (9, Kind::Decision, Some(4)),
            (10, Kind::Thinking, None),
            (11, Kind::Chat, None),
        ]
    );
    assert_eq!((&*all[0].name, all[0].reply_to.as_deref()), ("bob", Some("x")));
    assert_eq!(all[1].mentions, ["bob"]);
    assert_eq!(all[2].metadata, None);
    assert!(all[3].metadata.as_ref().unwrap().contains("thinking"));
    assert_eq!(file.sequences().unwrap()[0].clone().unwrap().next, 13);
    let votes: Vec<Vote> = file.votes().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!((votes[0].closed, votes[0].eligible, &votes[0].tally[..]), (true, 5, &[1, 2][..]));
    assert!(!votes[1].closed);
    let key = file.keys().unwrap().remove(0).unwrap();
    assert!(!format!("{key:?}").contains("secret"));
    assert_eq!(key.text.as_deref(), Some("secret"));
    assert_eq!(file.counts().unwrap(), Counts { rooms: 1, messages: 4, tasks: 0, votes: 2 });
}

#[test]
fn columns_may_have_other_names() {
    let schema = SCHEMA
        .replace("message_id", "id")
        .replace("timestamp TEXT", "created_at TEXT, kind TEXT")
        .replace("last_seq", "next_seq")
        .replace("key TEXT, label", "key_hash TEXT, active INTEGER, name");
    let made = Made::with(&schema);
    made.add(
        "INSERT INTO messages VALUES ('a', 'r', 'bob', 'Bob', 'one', NULL, NULL, NULL, '2023-11-14T22:13:20Z', 'thinking', 4);
         INSERT INTO room_sequences VALUES ('r', 12);
         INSERT INTO api_keys VALUES ('abc', 0, 'mine', 'pro', NULL);",
    );
    let file = made.open().unwrap();
    assert_eq!(messages(&file)[0].as_ref().unwrap().kind, Kind::Thinking);
    assert_eq!(file.sequences().unwrap()[0].clone().unwrap().next, 12);
    let key = file.keys().unwrap().remove(0).unwrap();
    assert_eq!((key.text, key.hash.as_deref(), key.revoked), (None, Some("abc"), true));
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
    std::fs::write(&at, "SQLite").unwrap();
    refused("not an SQLite file");
    drop(Connection::open(dir.path().join("other")).unwrap().execute_batch("CREATE TABLE x (y)"));
    let error = ServerFile::open(&dir.path().join("other")).unwrap_err().to_string();
    assert!(error.contains("no table rooms, messages") && error.contains("it has x"), "{error}");
    let made = Made::with(&SCHEMA.replace("seq INTEGER);", "number INTEGER);"));
    let error = made.open().unwrap_err().to_string();
    assert!(error.contains("messages has no column `seq`"), "{error}");
    assert!(error.contains("timestamp, number"), "{error}");
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let made = Made::with(SCHEMA);
    made.add(
        "INSERT INTO messages VALUES
            ('a', 'r', 'bob', 'Bob', 'one', NULL, NULL, NULL, 'yesterday', 4),
            ('b', 'r', 'bob', 'Bob', 'two', NULL, 'bob', NULL, '2023-11-14T22:13:20Z', 5),
            ('c', 'r', 'bob', 'Bob', 'two', NULL, NULL, '{', '2023-11-14T22:13:20Z', 6),
            ('d', 'r', 'bob', 'Bob', 'two', NULL, NULL, NULL, '2023-11-14T22:13:20Z', -1),
            ('e', 'r', 'bob', 'Bob', x'ff00', NULL, NULL, NULL, '2023-11-14T22:13:20Z', 7);
         INSERT INTO votes VALUES
            ('v', 'r', 'lunch?', NULL, '[\"yes\",\"no\"]', 'ann', 1700000000, NULL, 'closed', 5);
         INSERT INTO vote_ballots VALUES ('v', 'ann', 2);",
    );
    let file = made.open().unwrap();
    let bad: Vec<String> =
        messages(&file).into_iter().map(|it| it.unwrap_err().to_string()).collect();
    for (error, of) in bad.iter().zip(["\"d\": `seq`", "\"a\": `timestamp`", "\"b\": `mentions`"]) {
        assert!(error.starts_with("messages") && error.contains(of), "{error}");
    }
    assert!(bad[3].contains("`metadata`") && bad[4].contains("`content`"), "{bad:?}");
    let vote = file.votes().unwrap().remove(0).unwrap_err().to_string();
    assert!(vote.contains("of vote \"v\"") && vote.contains("no option 2"), "{vote}");
}

/// A server that was killed leaves its newest messages in the write-ahead log.
#[test]
fn the_write_ahead_log_counts_and_a_server_that_runs_is_noticed() {
    let made = Made::with("PRAGMA journal_mode = WAL");
    made.add(SCHEMA).add(
        "INSERT INTO messages VALUES ('a', 'r', 'bob', 'Bob', 'one', NULL, NULL, NULL, '2023-11-14T22:13:20Z', 4)",
    );
    let file = made.open().unwrap();
    assert!(file.log().is_some());
    assert_eq!(messages(&file).len(), 1);
    let before = file.digest().unwrap();
    assert!(!file.has_changed().unwrap());
    made.add("INSERT INTO messages SELECT 'b', room_id, agent_id, agent_name, content, reply_to, mentions, metadata, timestamp, 5 FROM messages");
    assert!(file.has_changed().unwrap());
    assert_eq!(messages(&file).len(), 1, "it is as it was when it was opened");
    assert_eq!(file.digest().unwrap(), before);
    assert_ne!(made.open().unwrap().digest().unwrap(), before);
}

#[test]
fn a_copy_with_its_rows_in_another_order_is_the_same_file() {
    let rows = [
        "INSERT INTO room_sequences VALUES ('r', 12)",
        "INSERT INTO room_sequences VALUES ('s', 3)",
    ];
    let (one, other) = (Made::with(SCHEMA), Made::with(SCHEMA));
    one.add(rows[0]).add(rows[1]);
    other.add(rows[1]).add(rows[0]);
    let digest = |it: &Made| it.open().unwrap().digest().unwrap();
    assert_eq!(digest(&one), digest(&other));
    other.add("UPDATE room_sequences SET last_seq = 4 WHERE room_id = 's'");
    assert_ne!(digest(&one), digest(&other));
}
