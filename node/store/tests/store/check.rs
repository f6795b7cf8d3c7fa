//! Damage of every kind is found; what is derived is made anew, and nothing else is touched.

use std::path::Path;

use mesh::{
    api::batch::{EraRecord, Fate, LogRecord},
    name::{id::RoomId, number::Era},
    wire::{
        entry::{Gone, Stored},
        run::BadRun,
    },
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use store::{
    FILE_NAME, OpenError, Store,
    check::{Derived, Place, Problem, Report, check, repair},
};

use crate::lone::{Lone, OF_OLD, busy, lobby, me, said};

type Place3 = (u32, u32, u64);

const ROOM_IDS: TableDefinition<'_, &[u8; 16], u32> = TableDefinition::new("room_ids/1");
const ROOMS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rooms/1");
const LOGS: TableDefinition<'_, (u32, u32), &[u8]> = TableDefinition::new("logs/1");
const ENTRIES: TableDefinition<'_, Place3, &[u8]> = TableDefinition::new("entries/1");
const ERAS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("eras/1");
const NUMBERS: TableDefinition<'_, (u32, u64), (u32, u64, u8)> = TableDefinition::new("numbers/1");
const PLACES: TableDefinition<'_, Place3, &[u8]> = TableDefinition::new("places/1");
const NUMBER_RANGES: TableDefinition<'_, Place3, (u64, u64)> = TableDefinition::new("foretold/1");
const DEDUPS: TableDefinition<'_, (u64, u32, u128), (u32, u64)> = TableDefinition::new("dedups/1");
const EVIDENCE: TableDefinition<'_, &[u8; 56], &[u8]> = TableDefinition::new("evidence/1");
const NODE: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("node/1");
const ACTS: TableDefinition<'_, Place3, ()> = TableDefinition::new("acts/1");
const NOTES: TableDefinition<'_, Place3, &[u8]> = TableDefinition::new("notes/1");
const CALLED: TableDefinition<'_, (u32, u128), (u32, u64)> = TableDefinition::new("called/1");
const PRUNED: TableDefinition<'_, u32, u64> = TableDefinition::new("pruned/1");

/// A store that is stopped, and the row of its lobby.
struct Stopped {
    dir: tempfile::TempDir,
    row: u32,
}

fn stopped() -> Stopped {
    let dir = tempfile::tempdir().unwrap();
    drop(busy(dir.path()));
    // Nothing can be read any more when it is closed.
    let open = database(dir.path());
    let row = open
        .begin_read()
        .unwrap()
        .open_table(ROOM_IDS)
        .unwrap()
        .get(&lobby().0)
        .unwrap()
        .unwrap()
        .value();
    Stopped { dir, row }
}

fn database(dir: &Path) -> Database {
    store::testing::database(&dir.join(FILE_NAME)).unwrap()
}

impl Stopped {
    fn check(&self) -> Report {
        check(self.dir.path(), &mut |_| ()).unwrap()
    }

    fn damage(&self, damage: impl FnOnce(&WriteTransaction, u32)) {
        let database = database(self.dir.path());
        let write = database.begin_write().unwrap();
        damage(&write, self.row);
        write.commit().unwrap();
    }

    /// Changes the first message of the lobby.
    fn change_entry(&self, change: impl FnOnce(&mut Stored)) {
        self.damage(|write, row| {
            let mut entries = write.open_table(ENTRIES).unwrap();
            let (seq, mut entry) = first_message(&entries, row);
            change(&mut entry);
            entries.insert((row, 0, seq), minicbor::to_vec(&entry).unwrap().as_slice()).unwrap();
        });
    }
}

fn first_message(entries: &impl ReadableTable<Place3, &'static [u8]>, row: u32) -> (u64, Stored) {
    let found = entries.range((row, 0, 0)..=(row, 0, u64::MAX)).unwrap().find_map(|it| {
        let (key, entry) = it.unwrap();
        let entry: Stored = minicbor::decode(entry.value()).unwrap();
        (entry.facts.kind == 1).then_some((key.value().2, entry))
    });
    found.unwrap()
}

fn problems(report: &Report) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for finding in &report.findings {
        if !problems.contains(&finding.problem) {
            problems.push(finding.problem.clone());
        }
    }
    problems
}

/// Damages a store, and expects this to be found first; and whether it can be repaired.
fn finds(problem: &Problem, damage: impl FnOnce(&WriteTransaction, u32)) {
    let stopped = stopped();
    stopped.damage(damage);
    expect(&stopped, problem);
}

fn expect(stopped: &Stopped, problem: &Problem) {
    let report = stopped.check();
    let found = problems(&report);
    assert!(found.contains(problem), "{problem}: {found:?}");
    assert!(!report.is_sound());
    let before = entries_and_numbers(stopped);
    repair(stopped.dir.path()).unwrap().unwrap();
    let after = stopped.check();
    if problem.is_repairable() {
        assert!(after.is_sound(), "{problem}: {:?}", after.findings);
        assert!(!report.is_beyond_repair());
        // And a node goes on with it.
        let mut node = Lone::open(stopped.dir.path(), 1);
        let ada = node.attach("ada");
        node.join(&ada, lobby());
        node.say(&ada, lobby(), "goes on");
        assert!(node.store.reader().check().unwrap().is_sound());
    } else {
        assert!(problems(&after).contains(problem), "{problem}: {:?}", after.findings);
        assert!(report.is_beyond_repair());
        assert_eq!(entries_and_numbers(stopped), before, "{problem}");
    }
}

/// What a repair must not touch.
fn entries_and_numbers(stopped: &Stopped) -> String {
    let open = database(stopped.dir.path());
    let read = open.begin_read().unwrap();
    let mut text = String::new();
    for row in read.open_table(ENTRIES).unwrap().iter().unwrap() {
        let (key, row) = row.unwrap();
        text += &format!("{:?} {:?}\n", key.value(), row.value());
    }
    for row in read.open_table(NUMBERS).unwrap().iter().unwrap() {
        let (key, row) = row.unwrap();
        text += &format!("{:?} {:?}\n", key.value(), row.value());
    }
    text
}

#[test]
fn a_store_that_a_node_wrote_is_sound_and_is_not_written_to() {
    let stopped = stopped();
    let file = stopped.dir.path().join(FILE_NAME);
    let before = std::fs::read(&file).unwrap();
    let report = stopped.check();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(!report.is_beyond_repair() && !report.repairable);
    assert!(report.rooms >= 4 && report.logs >= 4 && report.runs >= 8, "{report:?}");
    assert!(report.entries >= report.runs && report.numbers >= 8, "{report:?}");
    assert!(std::fs::read(&file).unwrap() == before, "not a byte");
    repair(stopped.dir.path()).unwrap().unwrap();
    assert_eq!(stopped.check(), report);
}

#[test]
fn what_is_none_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(check(dir.path(), &mut |_| ()), Err(OpenError::Io { .. })));
    assert!(matches!(repair(dir.path()), Err(OpenError::Io { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let store = Store::open(dir.path()).unwrap();
    assert!(matches!(check(dir.path(), &mut |_| ()), Err(OpenError::InUse { .. })));
    drop(store);
    assert!(check(dir.path(), &mut |_| ()).unwrap().is_sound());
}

#[test]
fn a_changed_entry_breaks_its_seal() {
    let broken = Problem::Run(BadRun::Seal);
    let stopped = stopped();
    stopped.change_entry(|it| it.facts.wall_ms += 1);
    expect(&stopped, &broken);
    let stopped = self::stopped();
    stopped.change_entry(|it| it.body = minicbor::bytes::ByteVec::from(vec![1]));
    expect(&stopped, &broken);
    let stopped = self::stopped();
    stopped.change_entry(|it| it.gone = Some(Gone { hash: [1; 32], len: 9 }));
    expect(&stopped, &Problem::Gone);
    let stopped = self::stopped();
    stopped.damage(|write, row| {
        let mut entries = write.open_table(ENTRIES).unwrap();
        let (key, mut last) = entries
            .range((row, 0, 0)..=(row, 0, u64::MAX))
            .unwrap()
            .next_back()
            .map(|it| it.unwrap())
            .map(|(key, it)| (key.value(), minicbor::decode::<Stored>(it.value()).unwrap()))
            .unwrap();
        assert!(last.seal.take().is_some(), "a log ends with a run");
        entries.insert(key, minicbor::to_vec(&last).unwrap().as_slice()).unwrap();
    });
    expect(&stopped, &Problem::HalfRun("end"));
    let stopped = self::stopped();
    stopped.change_entry(|it| it.backlink = None);
    expect(&stopped, &Problem::HalfRun("beginning"));
}

#[test]
fn a_chain_that_is_cut_is_found() {
    finds(&Problem::Missing, |write, row| {
        let mut entries = write.open_table(ENTRIES).unwrap();
        let (seq, _) = first_message(&entries, row);
        entries.remove((row, 0, seq)).unwrap();
    });
    // A run of the same author, sealed well, but of another place.
    finds(&Problem::Chain, |write, row| {
        let mut entries = write.open_table(ENTRIES).unwrap();
        let run: Vec<(Place3, Stored)> = entries
            .range((row, 0, 0)..=(row, 0, u64::MAX))
            .unwrap()
            .map(|it| it.unwrap())
            .map(|(key, it)| (key.value(), minicbor::decode::<Stored>(it.value()).unwrap()))
            .collect();
        let (key, mut second) =
            run.iter().filter(|it| it.1.backlink.is_some()).nth(1).unwrap().clone();
        second.backlink = Some([9; 32]);
        entries.insert(key, minicbor::to_vec(&second).unwrap().as_slice()).unwrap();
    });
    finds(&Problem::BeyondHead, |write, row| {
        let mut logs = write.open_table(LOGS).unwrap();
        let mut log: LogRecord =
            minicbor::decode(logs.get((row, 0)).unwrap().unwrap().value()).unwrap();
        log.head -= 1;
        log.settled = log.settled.min(log.head);
        logs.insert((row, 0), minicbor::to_vec(&log).unwrap().as_slice()).unwrap();
    });
    for change in [
        |log: &mut LogRecord| log.hash = [1; 32],
        |log: &mut LogRecord| log.clock += 1,
        |log: &mut LogRecord| log.seal = [1; 64],
        |log: &mut LogRecord| log.settled = log.head + 1,
    ] {
        finds(&Problem::Head, |write, row| {
            let mut logs = write.open_table(LOGS).unwrap();
            let mut log: LogRecord =
                minicbor::decode(logs.get((row, 0)).unwrap().unwrap().value()).unwrap();
            change(&mut log);
            logs.insert((row, 0), minicbor::to_vec(&log).unwrap().as_slice()).unwrap();
        });
    }
}

#[test]
fn records_that_cannot_be_read_are_found() {
    let garbage = [0xff; 3].as_slice();
    finds(&Problem::Record("record of the room"), |write, row| {
        let record = [lobby().0.as_slice(), garbage].concat();
        write.open_table(ROOMS).unwrap().insert(row, record.as_slice()).unwrap();
    });
    finds(&Problem::Record("record of a log"), |write, row| {
        write.open_table(LOGS).unwrap().insert((row, 0), garbage).unwrap();
    });
    finds(&Problem::Record("record of the era"), |write, row| {
        write.open_table(ERAS).unwrap().insert((row, 0), garbage).unwrap();
    });
    finds(&Problem::Record("entry"), |write, row| {
        write.open_table(ENTRIES).unwrap().insert((row, 0, 2), garbage).unwrap();
    });
    finds(&Problem::Record("node's record"), |write, _| {
        write.open_table(NODE).unwrap().insert(0, garbage).unwrap();
    });
    finds(&Problem::Record("note on a vote"), |write, row| {
        write.open_table(NOTES).unwrap().insert((row, 0, 1), garbage).unwrap();
    });
    finds(&Problem::Record("evidence"), |write, _| {
        write.open_table(EVIDENCE).unwrap().insert(&[1; 56], garbage).unwrap();
    });
    finds(&Problem::Record("fate"), |write, row| {
        write.open_table(NUMBERS).unwrap().insert((row, 1), (0, 1, 9)).unwrap();
    });
}

#[test]
fn rows_that_belong_to_nothing_are_found() {
    finds(&Problem::NoRoom("entries"), |write, _| {
        write.open_table(ENTRIES).unwrap().insert((77, 0, 1), [].as_slice()).unwrap();
    });
    finds(&Problem::NoRoom("a floor"), |write, _| {
        write.open_table(PRUNED).unwrap().insert(77, 1).unwrap();
    });
    finds(&Problem::NoLog("entries"), |write, row| {
        write.open_table(ENTRIES).unwrap().insert((row, 9, 1), [].as_slice()).unwrap();
    });
    finds(&Problem::NoLog("a number"), |write, row| {
        write.open_table(NUMBERS).unwrap().insert((row, 100), (9, 1, 0)).unwrap();
    });
    finds(&Problem::LogList, |write, row| {
        let mut logs = write.open_table(LOGS).unwrap();
        let log = logs.get((row, 0)).unwrap().unwrap().value().to_vec();
        logs.insert((row, 3), log.as_slice()).unwrap();
    });
}

#[test]
fn numbers_that_nobody_gave_are_found() {
    finds(&Problem::NoEra, |write, row| {
        write.open_table(NUMBERS).unwrap().insert((row, 100), (0, 1, 0)).unwrap();
    });
    // Two numbers of two entries, exchanged.
    finds(&Problem::NotGiven, |write, row| {
        let mut numbers = write.open_table(NUMBERS).unwrap();
        let first = numbers.get((row, 1)).unwrap().unwrap().value();
        let second = numbers.get((row, 2)).unwrap().unwrap().value();
        numbers.insert((row, 1), second).unwrap();
        numbers.insert((row, 2), first).unwrap();
    });
    finds(&Problem::NumberMissing, |write, row| {
        write.open_table(NUMBERS).unwrap().remove((row, 2)).unwrap();
    });
    finds(&Problem::DeliveredNothing, |write, row| {
        let mut numbers = write.open_table(NUMBERS).unwrap();
        let (log, _, fate) = numbers.get((row, 1)).unwrap().unwrap().value();
        assert_eq!(fate, 1);
        numbers.insert((row, 1), (log, 99, fate)).unwrap();
    });
    finds(&Problem::DeliveredTwice, |write, row| {
        let mut numbers = write.open_table(NUMBERS).unwrap();
        let first = numbers.get((row, 1)).unwrap().unwrap().value();
        numbers.insert((row, 2), first).unwrap();
        let mut both = Vec::new();
        for number in [1_u64, 2] {
            both.extend(number.to_be_bytes());
            both.push(1);
        }
        let place = (row, first.0, first.1);
        write.open_table(PLACES).unwrap().insert(place, both.as_slice()).unwrap();
    });
    finds(&Problem::Era, |write, row| {
        let mut eras = write.open_table(ERAS).unwrap();
        let mut era: EraRecord =
            minicbor::decode(eras.get((row, Era::HOME.0)).unwrap().unwrap().value()).unwrap();
        era.done = era.known + 1;
        eras.insert((row, 0), minicbor::to_vec(&era).unwrap().as_slice()).unwrap();
    });
}

#[test]
fn indexes_are_made_anew() {
    finds(&Derived::RoomIndex.into(), |write, _| {
        write.open_table(ROOM_IDS).unwrap().remove(&lobby().0).unwrap();
    });
    finds(&Derived::RoomIndex.into(), |write, row| {
        write.open_table(ROOM_IDS).unwrap().insert(&[9; 16], row).unwrap();
    });
    finds(&Derived::ActIndex.into(), |write, _| {
        write.open_table(ACTS).unwrap().retain(|_, ()| false).unwrap();
    });
    finds(&Derived::ActIndex.into(), |write, row| {
        write.open_table(ACTS).unwrap().insert((row, 0, 1), ()).unwrap();
    });
    finds(&Derived::CallIndex.into(), |write, row| {
        write.open_table(CALLED).unwrap().insert((row, 1), (0, 1)).unwrap();
    });
    finds(&Derived::NumberIndex.into(), |write, row| {
        let range = (row, 0, 0)..=(row, u32::MAX, u64::MAX);
        write.open_table(PLACES).unwrap().retain_in(range, |_, _| false).unwrap();
    });
    finds(&Derived::NumberIndex.into(), |write, row| {
        write.open_table(PLACES).unwrap().insert((row, 0, 99), [0; 9].as_slice()).unwrap();
    });
    // A fate that the delivery log does not have.
    finds(&Derived::NumberIndex.into(), |write, row| {
        let at = write.open_table(NUMBERS).unwrap().get((row, 1)).unwrap().unwrap().value();
        let mut other = 1_u64.to_be_bytes().to_vec();
        other.push(2);
        let place = (row, at.0, at.1);
        write.open_table(PLACES).unwrap().insert(place, other.as_slice()).unwrap();
    });
    finds(&Derived::NumberRangeIndex.into(), |write, row| {
        write.open_table(NUMBER_RANGES).unwrap().insert((row, 9, 1), (1, 1)).unwrap();
    });
    finds(&Derived::Dedup.into(), |write, row| {
        write.open_table(DEDUPS).unwrap().insert((1, row, 1), (0, 99)).unwrap();
    });
    finds(&Derived::Note.into(), |write, row| {
        let note = minicbor::to_vec(mesh::api::batch::VoteNote::default()).unwrap();
        write.open_table(NOTES).unwrap().insert((row, 0, 99), note.as_slice()).unwrap();
    });
    finds(&Derived::Tip.into(), |write, row| {
        let mut rooms = write.open_table(ROOMS).unwrap();
        let room = rooms.get(row).unwrap().unwrap().value().to_vec();
        let mut record: mesh::api::batch::RoomRecord = minicbor::decode(&room[16..]).unwrap();
        record.tip = mesh::name::number::Number(record.tip.0 - 1);
        let row_now = [&room[..16], &minicbor::to_vec(&record).unwrap()].concat();
        rooms.insert(row, row_now.as_slice()).unwrap();
    });
}

#[test]
fn ids_of_a_clawchat_server_lead_to_their_messages_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = busy(dir.path());
    node.bring(7, OF_OLD);
    drop(node);
    let stopped = Stopped { row: stopped().row, dir };
    let leads = |to: Option<u64>| {
        let row =
            Lone::open(stopped.dir.path(), 1).store.reader().by_message(lobby(), OF_OLD).unwrap();
        assert_eq!(row.map(|it| (it.number.0, it.message)), to.map(|it| (it, OF_OLD)));
    };
    leads(Some(7));
    assert!(stopped.check().is_sound());
    stopped.damage(|write, _| write.open_table(CALLED).unwrap().retain(|_, _| false).unwrap());
    leads(None);
    expect(&stopped, &Derived::CallIndex.into());
    leads(Some(7));
}

#[test]
fn evidence_has_to_prove_something() {
    use mesh::wire::run::{Certificate, Run};
    let log = mesh::name::id::LogId { author: me(1), incarnation: 0 };
    let certificate = Certificate { room: lobby(), log, seq: 1, hash: [1; 32], seal: [2; 64] };
    let run =
        Run { room: lobby(), log, first: 1, backlink: [0; 32], entries: vec![], seal: [3; 64] };
    let key: [u8; 56] = [&me(1).0[..], &lobby().0, &[0; 8]].concat().try_into().unwrap();
    finds(&Problem::Evidence, |write, _| {
        let row = minicbor::to_vec((certificate, run)).unwrap();
        write.open_table(EVIDENCE).unwrap().insert(&key, row.as_slice()).unwrap();
    });
}

#[test]
fn a_flipped_bit_on_the_disk_is_found_or_the_file_refused() {
    let stopped = stopped();
    let file = stopped.dir.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&file).unwrap();
    // In the middle of what was said: in a page that holds rows.
    let needle = b"lobby 3";
    let at = bytes.windows(needle.len()).rposition(|it| it == needle).unwrap();
    for (i, _) in bytes.clone().windows(needle.len()).enumerate().filter(|(_, it)| *it == needle) {
        bytes[i] ^= 1;
    }
    assert!(at > 0);
    std::fs::write(&file, &bytes).unwrap();
    match check(stopped.dir.path(), &mut |_| ()) {
        Ok(report) => {
            assert!(!report.is_sound() && report.is_beyond_repair());
            assert!(problems(&report).contains(&Problem::Pages), "{:?}", report.findings);
        }
        Err(OpenError::Damaged { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn findings_are_bounded_and_say_where() {
    let stopped = stopped();
    stopped.damage(|write, row| {
        let mut dedups = write.open_table(DEDUPS).unwrap();
        for n in 0..1_000 {
            dedups.insert((1, row, n), (0, 99)).unwrap();
        }
    });
    let report = stopped.check();
    assert_eq!((report.found, report.findings.len()), (1_000, store::limits::FINDINGS_MAX));
    assert_eq!(report.findings[0].place, Place::Room { room: lobby() });
    let text = report.findings[0].to_string();
    assert!(text.contains(&lobby().to_uuid()) && text.ends_with("(can be repaired)"), "{text}");
}

#[test]
fn a_repaired_store_has_lost_nothing() {
    let stopped = stopped();
    let before = said(&Store::open(stopped.dir.path()).unwrap(), lobby());
    stopped.damage(|write, row| {
        let range = (row, 0, 0)..=(row, u32::MAX, u64::MAX);
        write.open_table(PLACES).unwrap().retain_in(range, |_, _| false).unwrap();
        write.open_table(ROOM_IDS).unwrap().remove(&lobby().0).unwrap();
    });
    repair(stopped.dir.path()).unwrap().unwrap();
    let store = Store::open(stopped.dir.path()).unwrap();
    assert_eq!(said(&store, lobby()), before);
    assert_eq!(before.len(), 6);
    let numbers = store.reader().numbers_of(lobby(), store_at(&store, lobby())).unwrap();
    assert_eq!(numbers[0].1, Fate::Delivered);
}

fn store_at(store: &Store, room: RoomId) -> mesh::name::id::LocalRef {
    let rows = store.reader().page_since(room, mesh::name::number::Number(0), 1).unwrap();
    rows[0].at
}
