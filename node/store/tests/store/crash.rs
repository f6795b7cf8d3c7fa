//! Each crash point of a commit yields before or after.

use mesh::{
    api::{
        batch::{Change, VoteNote},
        command::Opaque,
    },
    name::id::RoomId,
    wire::message::Span,
};
use store::{
    Store,
    testing::{CrashingBackend, Unsynced},
};

use crate::{records, rows::*};

fn batch(seq: u64) -> Vec<Change> {
    let mut batch = message(ROOM, seq);
    batch.extend(message(RoomId(u128::from(seq).to_be_bytes()), 1));
    batch.push(Change::Node(node(seq)));
    batch.push(entry(ROOM, at(1, seq), act(seq)));
    batch.push(log(ROOM, 1, seq));
    let note = VoteNote { choices: vec![(seq, 1)], told: None };
    batch.push(Change::Note { room: ROOM, vote: at(1, seq), note: Some(note) });
    // The one before the last goes: a commit writes over what is there, too.
    batch.push(Change::Prune { room: ROOM, before_ms: (seq - 1) * 1_000 });
    // Of the first the latest state counts; one goes when the next one comes.
    batch.push(records::change(&records::named(1, &format!("name {seq}"), seq)));
    batch.push(records::change(&records::named(seq + 1, "Scout", seq)));
    batch.push(records::forget(&records::named(seq, "Scout", seq - 1)));
    batch.push(Change::Keep { name: seq.to_be_bytes().to_vec(), value: Some(Opaque(vec![7])) });
    batch
}

fn state(store: &Store) -> String {
    let reader = store.reader();
    let rows = reader.page_since(ROOM, mesh::name::number::Number(0), 500).unwrap();
    let kept = reader.kept(&[]).unwrap();
    let span = Span { log: log_id(3), after: 0, upto: u64::MAX };
    let runs = reader.runs(ROOM, span, 1 << 20).unwrap();
    format!("{:?} {rows:?} {kept:?} {runs:?}", store.summary(ME, Some(MESH)).unwrap())
}

/// A disk with `commits` batches on it, and how it reads after each.
fn written(commits: u64, seed: u64) -> (CrashingBackend, Store, Vec<String>) {
    let disk = CrashingBackend::new(seed);
    let mut store = Store::on(disk.clone()).unwrap();
    let mut states = vec![state(&store)];
    for seq in 1..=commits {
        store.commit(&batch(seq)).unwrap();
        states.push(state(&store));
    }
    (disk, store, states)
}

#[test]
fn each_crash_point_of_a_commit_yields_before_or_after() {
    let (befores, afters) = before_or_after(batch);
    assert!(befores > 4 && afters >= 9, "{befores} before, {afters} after");
    // More than the journal takes.
    let (befores, afters) = before_or_after(|seq| {
        let value = Some(Opaque(vec![7; 200_000]));
        [batch(seq), vec![Change::Keep { name: vec![9], value }]].concat()
    });
    assert!(befores > 20 && afters >= 9, "{befores} before, {afters} after");
}

/// How often the second commit did not count after a crash at each of its moments, and how often it did.
fn before_or_after(next: fn(u64) -> Vec<Change>) -> (u32, u32) {
    let (after_first, _, mut states) = written(1, 0);
    let image = after_first.image();
    let before = states.pop().unwrap();
    let after = {
        let mut store = Store::on(CrashingBackend::of(image.clone(), 0)).unwrap();
        store.commit(&next(2)).unwrap();
        state(&store)
    };
    let (mut befores, mut afters) = (0, 0);
    for unsynced in [Unsynced::Dropped, Unsynced::Torn] {
        for seed in 0..if unsynced == Unsynced::Torn { 8 } else { 1 } {
            for operations in 0.. {
                let disk = CrashingBackend::of(image.clone(), seed);
                let mut store = Store::on(disk.clone()).unwrap();
                disk.fail_after(operations);
                let committed = store.commit(&next(2)).is_ok();
                let disk = disk.crash(unsynced);
                drop(store);
                let found = state(&Store::on(disk).unwrap());
                if found == before {
                    befores += 1;
                } else {
                    assert!(found == after, "neither before nor after");
                    afters += 1;
                }
                if committed {
                    assert!(found == after, "lost what was said to be durable");
                    break;
                }
            }
        }
    }
    (befores, afters)
}

#[test]
fn a_store_that_lost_power_while_it_was_made_is_made_again() {
    for unsynced in [Unsynced::Dropped, Unsynced::Torn] {
        for operations in 0.. {
            let disk = CrashingBackend::new(operations);
            disk.fail_after(operations);
            let made = Store::on(disk.clone()).is_ok();
            let disk = disk.crash(unsynced);
            let mut store = Store::on(disk).unwrap_or_else(|error| panic!("{operations}: {error}"));
            store.commit(&batch(1)).unwrap();
            if made {
                break;
            }
        }
    }
}

#[test]
fn many_crashes_in_a_row_lose_nothing() {
    for seed in 0..8 {
        let (mut disk, mut store, mut states) = written(1, seed);
        let mut last = states.pop().unwrap();
        let mut seq = 2;
        for round in 0..40 {
            disk.fail_after((round * 7 + seed * 3) % 23);
            while store.commit(&batch(seq)).is_ok() {
                last = state(&store);
                seq += 1;
                if seq > 250 {
                    return;
                }
            }
            disk = disk.crash(if round % 2 == 0 { Unsynced::Torn } else { Unsynced::Dropped });
            store = Store::on(disk.clone()).unwrap();
            let found = state(&store);
            if found != last {
                // The one that was under way may have made it.
                store.commit(&batch(seq)).unwrap();
                assert!(state(&store) == found, "neither before nor after");
                seq += 1;
                last = found;
            }
        }
    }
}

#[test]
fn the_disk_keeps_what_was_synced() {
    use redb::StorageBackend as _;
    let disk = CrashingBackend::new(1);
    disk.set_len(2_048).unwrap();
    disk.write(0, &[1; 2_048]).unwrap();
    disk.sync_data().unwrap();
    disk.write(100, &[2; 1_000]).unwrap();
    disk.set_len(1_024).unwrap();
    disk.set_len(4_096).unwrap();
    disk.write(2_000, &[3; 100]).unwrap();
    let old = disk;
    let disk = old.crash(Unsynced::Dropped);
    assert!(disk.image() == [1; 2_048]);
    assert!(old.read(0, &mut [0]).is_err() && old.write(0, &[9]).is_err());
    disk.write(0, &[4; 2_048]).unwrap();
    let disk = disk.crash(Unsynced::Torn);
    let image = disk.image();
    let sectors: Vec<u8> = image.chunks(512).map(|it| it[0]).collect();
    assert!(image.chunks(512).all(|it| it.iter().all(|byte| *byte == it[0])));
    assert!(sectors.contains(&1) && sectors.contains(&4), "{sectors:?}");
    disk.fail_after(1);
    disk.write(0, &[5; 10]).unwrap();
    assert!(disk.write(0, &[6; 10]).is_err() && disk.sync_data().is_err());
}

#[test]
fn each_crash_point_of_settling_changes_nothing() {
    let (disk, store, mut states) = written(2, 0);
    let (image, before) = (disk.image(), states.pop().unwrap());
    drop(store);
    for operations in 0.. {
        let disk = CrashingBackend::of(image.clone(), operations);
        let mut store = Store::on(disk.clone()).unwrap();
        disk.fail_after(operations);
        let settled = store.settle().is_ok();
        let disk = disk.crash(Unsynced::Torn);
        drop(store);
        let again = Store::on(disk).unwrap();
        assert!(state(&again) == before);
        if settled {
            assert!(operations > 2, "it writes");
            break;
        }
    }
}

#[test]
fn what_is_settled_is_not_read_again_after_a_crash() {
    let (disk, mut store, states) = written(2, 0);
    assert!(store.is_unsettled());
    store.settle().unwrap();
    assert!(!store.is_unsettled());
    let before = disk.operations();
    store.settle().unwrap();
    assert_eq!(disk.operations(), before, "once is enough");
    let disk = disk.crash(Unsynced::Torn);
    drop(store);
    let mut store = Store::on(disk.clone()).unwrap();
    assert!(!store.was_repaired() && state(&store) == states[2]);
    store.commit(&batch(3)).unwrap();
    let disk = disk.crash(Unsynced::Torn);
    drop(store);
    let store = Store::on(disk).unwrap();
    assert!(store.was_repaired() && store.is_unsettled());
}
