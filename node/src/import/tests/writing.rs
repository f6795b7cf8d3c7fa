//! Writing what was planned, and what a node says to that.

use std::ops::ControlFlow;

use mesh::name::{
    id::{MessageId, RoomId},
    number::Number,
};
use store::Store;
use tempfile::TempDir;

use super::{AT, Made, OTHER, ROOM, SERVER, choices, message, room, webhook};
use crate::{
    files::DataDir,
    import::{Brought, Journal, Watch, bring, open, run::THINGS_PER_COMMIT},
};

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
pub(super) fn import(made: &Made, dir: &TempDir, commits: Option<u32>) -> Brought {
    let file = made.file();
    let mut target = open(dir.path()).unwrap();
    let plan = made.taken(choices());
    let digest = file.digest().unwrap().to_text();
    let fresh = Journal { file: digest, choices: String::new(), written: 0, done: false };
    let journal = target.journal.clone().unwrap_or(fresh);
    let mut left = commits;
    let progress = &mut |_| {
        left = left.map(|it| it - 1);
        if left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let watch = Watch { progress, sound: &|| Ok(()) };
    bring(&file, &plan, &mut target, journal, watch).unwrap()
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
    assert_eq!(runs, 5, "rooms, two full ones, the rest, and that this is all");
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

/// Somebody wrote to the file, which is noticed when all is there.
#[test]
fn an_import_whose_file_was_not_sound_is_not_finished() {
    let (made, dir) = (much(), tempfile::tempdir().unwrap());
    let (file, plan) = (made.file(), made.taken(choices()));
    let mut target = open(dir.path()).unwrap();
    let digest = file.digest().unwrap().to_text();
    let journal = Journal { file: digest, choices: String::new(), written: 0, done: false };
    let progress = &mut |_| ControlFlow::Continue(());
    let watch = Watch { progress, sound: &|| anyhow::bail!("it has changed") };
    let error = bring(&file, &plan, &mut target, journal, watch).unwrap_err();
    assert!(error.to_string().contains("it has changed"), "{error}");
    drop(target);
    let store = Store::open(dir.path()).unwrap();
    assert!(Journal::check_finished(&store.reader()).is_err());
    drop(store);
    // If it was not changed after all, the next run has nothing more to write.
    assert_eq!(import(&made, &dir, None), Brought::All);
    assert_eq!(history(&dir).len() as u64, 2 * THINGS_PER_COMMIT + 100);
}

#[test]
fn a_node_that_has_something_is_refused_and_one_that_has_nothing_is_not() {
    let made = Made::new(&room(ROOM, "plan", "'public', NULL"));
    // Started once, and stopped.
    let dir = tempfile::tempdir().unwrap();
    {
        let mut target = open(dir.path()).unwrap();
        let clock = crate::clock::Clock::start();
        let (mut engine, _) = target.enter(clock).unwrap();
        target.store.commit(&engine.take_turn().batch).unwrap();
        let in_use = open(dir.path()).unwrap_err();
        assert!(format!("{in_use:#}").contains("is in use by another process"), "{in_use:#}");
    }
    assert_eq!(import(&made, &dir, None), Brought::All);
    // With rooms, though not by an import.
    let store = Store::open(dir.path()).unwrap();
    let forget = mesh::api::batch::Change::Keep { name: b"import".to_vec(), value: None };
    let mut store = store;
    store.commit(&[forget]).unwrap();
    drop(store);
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("this node has rooms already"), "{error}");
}

/// One that is nobody's id here, though it comes, is found under what the list says.
#[test]
fn an_answer_leads_to_a_message_that_got_another_id() {
    let made = Made::new(
        &[
            room(ROOM, "plan", "'public', NULL"),
            message("odd", ROOM, 1),
            message("also odd", ROOM, 2),
            "UPDATE messages SET reply_to_message = 'odd' WHERE message_id = 'also odd'".to_owned(),
        ]
        .concat(),
    );
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(import(&made, &dir, None), Brought::All);
    let answered: Vec<_> = history(&dir).into_iter().map(|(_, _, answered)| answered).collect();
    assert_eq!(answered, [None, Some(1)]);
}
