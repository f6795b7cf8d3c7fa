//! What is written can be read.

use mesh::{
    api::{
        batch::{Change, Fate, NumberRange, RoomRecord, ToldResult, VoteNote},
        command::Opaque,
    },
    limits::DEDUP_FOR,
    name::{
        id::{MeshId, MessageId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::{Body, DedupId, Said, Stored},
        run::{Certificate, Run},
    },
};
use store::{CommitError, Store, limits::ROW_NUMBERS_MAX, testing::CrashingBackend};

use crate::rows::*;

fn store() -> Store {
    Store::on(CrashingBackend::new(0)).unwrap()
}

fn numbers(rows: &[store::Row]) -> Vec<u64> {
    rows.iter().map(|row| row.number.0).collect()
}

#[test]
fn an_empty_batch_does_nothing() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let before = disk.operations();
    store.commit(&[]).unwrap();
    assert_eq!(disk.operations(), before);
}

#[test]
fn history_is_the_delivery_log() {
    let mut store = store();
    for seq in 1..=10 {
        store.commit(&message(ROOM, seq)).unwrap();
    }
    // Known and numbered, but not delivered under these.
    store.commit(&[number(ROOM, Number(11), at(0, 3), Fate::Assigned)]).unwrap();
    store.commit(&[number(ROOM, Number(12), at(7, 1), Fate::Hole)]).unwrap();
    let reader = store.reader();
    let since = |after, limit| numbers(&reader.page_since(ROOM, Number(after), limit).unwrap());
    assert_eq!(since(0, 3), [1, 2, 3]);
    assert_eq!(since(3, 100), [4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(since(10, 100), []);
    assert_eq!(since(u64::MAX, 100), []);
    assert_eq!(since(0, 0), []);
    let newest = |limit, before| numbers(&reader.page_newest(ROOM, limit, before).unwrap());
    assert_eq!(newest(3, None), [8, 9, 10]);
    assert_eq!(newest(2, Some(5_000)), [3, 4], "written at 3 s and 4 s");
    assert_eq!(newest(100, None).len(), 10);
    assert_eq!(newest(0, None), []);
    let below = |number, limit| numbers(&reader.page_below(ROOM, limit, Number(number)).unwrap());
    assert_eq!(below(8, 3), [5, 6, 7]);
    assert_eq!(below(3, 100), [1, 2]);
    assert_eq!((below(1, 9), below(0, 9), below(99, 2)), (vec![], vec![], vec![9, 10]));
    assert_eq!(reader.tip(ROOM).unwrap(), Number(10));
    assert_eq!(reader.tip(RoomId([9; 16])).unwrap(), Number::ZERO);
    let row = &reader.page_since(ROOM, Number(2), 1).unwrap()[0];
    assert_eq!(row.said, Some(said("message 3")));
    assert_eq!((row.at, row.log, row.canonical), (at(0, 3), log_id(3), Number(3)));
}

#[test]
fn long_scans_go_on_over_several_snapshots() {
    let mut store = store();
    store.commit(&message(ROOM, 1)).unwrap();
    let passed: Vec<Change> =
        (2..10_000).map(|n| number(ROOM, Number(n), at(0, 1), Fate::Assigned)).collect();
    store.commit(&passed).unwrap();
    store.commit(&[number(ROOM, Number(10_000), at(0, 1), Fate::Delivered)]).unwrap();
    let reader = store.reader();
    assert_eq!(numbers(&reader.page_since(ROOM, Number(1), 9).unwrap()), [10_000]);
    let newest = reader.page_newest(ROOM, 2, None).unwrap();
    assert_eq!(numbers(&newest), [1, 10_000]);
    let lowest: Vec<Number> = (1..=ROW_NUMBERS_MAX as u64).map(Number).collect();
    assert_eq!(newest[1].numbers, lowest, "a row stays small");
}

#[test]
fn every_number_and_id_leads_to_its_message() {
    let mut store = store();
    let fresh = Era::new(1, 5).unwrap().number(1);
    store.commit(&message(ROOM, 1)).unwrap();
    store.commit(&message(ROOM, 2)).unwrap();
    store.commit(&[number(ROOM, fresh, at(0, 1), Fate::Assigned)]).unwrap();
    store.commit(&[number(ROOM, Number(9), at(4, 4), Fate::Hole)]).unwrap();
    let reader = store.reader();
    let row = reader.by_number(ROOM, fresh).unwrap().unwrap();
    assert_eq!((row.number, row.canonical, row.at), (fresh, Number(1), at(0, 1)));
    assert_eq!(row.numbers, [Number(1), fresh]);
    assert_eq!(reader.by_number(ROOM, Number(2)).unwrap().unwrap().numbers, [], "it has one");
    assert_eq!(reader.by_number(ROOM, Number(9)).unwrap(), None, "not held");
    assert_eq!(reader.by_number(ROOM, Number(99)).unwrap(), None, "not known");
    let row = reader.by_message(ROOM, row.message).unwrap().unwrap();
    assert_eq!((row.number, row.at), (Number(1), at(0, 1)), "as delivered here");
    assert_eq!(reader.row_at(ROOM, at(0, 1)).unwrap().unwrap(), row);
    let stranger = MessageId::new(ROOM, log_id(9), 1);
    assert_eq!(reader.by_message(ROOM, stranger).unwrap(), None);
    assert_eq!(
        reader.numbers_of(ROOM, at(0, 1)).unwrap(),
        [(Number(1), Fate::Delivered), (fresh, Fate::Assigned)]
    );
}

/// Clients know it by that of its ClawChat server; its place leads to it all the same.
#[test]
fn a_message_that_was_brought_is_found_by_its_id_of_old_also_without_its_body() {
    let mut store = store();
    let of_old = |n: u8| MessageId([n, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);
    let called = |room, n, seq| Change::Called { room, id: of_old(n), at: at(0, seq) };
    let said_as = |room, n: u8, seq: u64| {
        let said = Said { id: Some(of_old(n)), ..said("of old") };
        let entry = Stored { body: Body::Chat(said).encode().into(), ..stored(seq, "") };
        Change::Entry { room, at: at(0, seq), entry: entry.into() }
    };
    let (brought, own) = (ROOM, RoomId([8; 16]));
    let record = |imported| RoomRecord { imported, tip: Number(2), ..room_record() };
    for (room, imported) in [(brought, true), (own, false)] {
        store
            .commit(&[
                Change::Room { room, record: record(imported) },
                log_settled(room, 0, 2, 2),
                said_as(room, 1, 1),
                said_as(room, 2, 2),
                era(room, Era::HOME, 2, 2, &[]),
                number(room, Number(1), at(0, 1), Fate::Delivered),
                number(room, Number(2), at(0, 2), Fate::Delivered),
            ])
            .unwrap();
    }
    store.commit(&[called(brought, 1, 1), called(brought, 2, 2)]).unwrap();
    store.commit(&[called(brought, 1, 2)]).unwrap();
    let reader = store.reader();
    for seq in 1..=2 {
        let place = MessageId::new(brought, log_id(3), seq);
        let old = of_old(u8::try_from(seq).unwrap());
        let row = reader.by_message(brought, old).unwrap().unwrap();
        assert_eq!((row.number, row.message), (Number(seq), old), "the first of two counts");
        assert_eq!(reader.by_message(brought, place).unwrap().unwrap(), row);
        // Nobody but who brought the room can say so.
        let place = MessageId::new(own, log_id(3), seq);
        assert_eq!(reader.by_message(own, place).unwrap().unwrap().message, place);
    }
    assert_eq!(reader.by_message(brought, of_old(3)).unwrap(), None);
    assert_eq!(reader.by_message(own, of_old(1)).unwrap(), None, "of another room");
    store.commit(&[Change::Prune { room: brought, before_ms: u64::MAX }]).unwrap();
    let row = reader.by_message(brought, of_old(1)).unwrap().unwrap();
    assert_eq!((row.number, row.said), (Number(1), None));
}

#[test]
fn delivered_is_final_and_a_number_names_one_entry() {
    let mut store = store();
    store.commit(&message(ROOM, 1)).unwrap();
    store.commit(&[number(ROOM, Number(1), at(0, 1), Fate::Assigned)]).unwrap();
    let of = |store: &Store, seq| store.reader().numbers_of(ROOM, at(0, seq)).unwrap();
    assert_eq!(of(&store, 1), [(Number(1), Fate::Delivered)]);
    let twice = [
        number(ROOM, Number(5), at(0, 2), Fate::Delivered),
        number(ROOM, Number(5), at(0, 2), Fate::Hole),
        number(ROOM, Number(6), at(0, 2), Fate::Assigned),
        number(ROOM, Number(6), at(0, 3), Fate::Hole),
    ];
    store.commit(&twice).unwrap();
    assert_eq!(of(&store, 2), [(Number(5), Fate::Delivered)]);
    assert_eq!(of(&store, 3), [(Number(6), Fate::Hole)]);
    store.commit(&[number(ROOM, Number(6), at(0, 4), Fate::Assigned)]).unwrap();
    assert_eq!(of(&store, 3), []);
    assert_eq!(of(&store, 4), [(Number(6), Fate::Assigned)]);
}

#[test]
fn a_batch_with_an_error_applies_nothing() {
    let mut store = store();
    store.commit(&message(ROOM, 1)).unwrap();
    let other = RoomId([8; 16]);
    let before = format!("{:?}", store.summary(ME, Some(MESH)).unwrap());
    let mut check = |bad: Change, expect: fn(&CommitError) -> bool| {
        let mut batch = vec![room(other), ephemeral(RoomId([7; 16])), Change::Node(node(1))];
        batch.push(Change::Keep { name: vec![1], value: Some(Opaque(vec![1])) });
        batch.extend(message(ROOM, 2));
        batch.push(bad);
        let error = store.commit(&batch).unwrap_err();
        assert!(expect(&error), "{error}");
        assert_eq!(format!("{:?}", store.summary(ME, Some(MESH)).unwrap()), before);
        assert_eq!(store.reader().rooms().unwrap().len(), 1);
        assert_eq!(store.reader().kept(&[]).unwrap(), []);
    };
    check(entry(RoomId([9; 16]), at(0, 1), stored(1, "x")), |error| {
        matches!(error, CommitError::UnknownRoom(_))
    });
    check(entry(ROOM, at(0, 1), stored(1, "other")), |error| {
        matches!(error, CommitError::EntryReplaced { .. })
    });
    check(entry(ROOM, at(0, 2), stored(2, "other")), |error| {
        matches!(error, CommitError::EntryReplaced { .. })
    });
    check(ephemeral(ROOM), |error| matches!(error, CommitError::Moved(_)));
    check(Change::Drop { room: ROOM }, |error| matches!(error, CommitError::Permanent(_)));
    // And the store goes on.
    store.commit(&message(ROOM, 2)).unwrap();
    assert_eq!(store.reader().tip(ROOM).unwrap(), Number(2));
}

#[test]
fn ephemeral_rooms_are_read_alike_and_never_reach_the_disk() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let secret = "a secret that is nowhere on the disk";
    let batch = |seq| {
        vec![
            ephemeral(ROOM),
            log(ROOM, 0, seq),
            entry(ROOM, at(0, seq), stored(seq, secret)),
            number(ROOM, Number(seq), at(0, seq), Fate::Delivered),
        ]
    };
    let operations = disk.operations();
    store.commit(&batch(1)).unwrap();
    let run = Run {
        room: ROOM,
        log: log_id(3),
        first: 1,
        backlink: [0; 32],
        entries: Vec::new(),
        seal: [0; 64],
    };
    let certificate =
        Certificate { room: ROOM, log: log_id(3), seq: 1, hash: [0; 32], seal: [0; 64] };
    store.commit(&[Change::Evidence { certificate, run: Box::new(run) }]).unwrap();
    assert_eq!(disk.operations(), operations);
    store.commit(&[batch(2), message(RoomId([5; 16]), 1)].concat()).unwrap();
    let reader = store.reader();
    assert_eq!(reader.page_since(ROOM, Number(0), 9).unwrap().len(), 2);
    assert_eq!(reader.rooms().unwrap().len(), 2);
    assert_eq!(reader.evidence().unwrap().len(), 1);
    let image = disk.image();
    assert!(!image.windows(secret.len()).any(|it| it == secret.as_bytes()));

    store.commit(&[Change::Drop { room: ROOM }]).unwrap();
    assert_eq!(reader.rooms().unwrap().len(), 1);
    assert_eq!(reader.by_number(ROOM, Number(1)).unwrap(), None);
    assert_eq!(reader.evidence().unwrap().len(), 0);
    // It may come back, with none of its rows, and go again within one batch.
    store.commit(&[batch(1), vec![Change::Drop { room: ROOM }], batch(3)].concat()).unwrap();
    assert_eq!(numbers(&reader.page_since(ROOM, Number(0), 9).unwrap()), [3]);
    store.commit(&[Change::Drop { room: ROOM }, Change::Drop { room: ROOM }]).unwrap();
    assert!(store.summary(ME, Some(MESH)).unwrap().rooms.iter().all(|it| it.room != ROOM));
}

/// A store with something in every table.
fn full() -> (Store, CrashingBackend) {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let old = RoomRecord { mesh: MeshId([9; 16]), ..room_record() };
    let directory = RoomId::directory(MESH);
    let private = RoomId::private_directory(MESH, ME);
    let kind = |kind, seq| {
        let mut it = stored(seq, "directory");
        it.facts.kind = kind;
        it.facts.visible = kind > 32;
        it
    };
    let mut batch = message(ROOM, 1);
    batch.extend([
        Change::Room { room: RoomId([9; 16]), record: old },
        log_settled(ROOM, 0, 4, 1),
        entry(ROOM, at(0, 2), stored(2, "has numbers")),
        entry(ROOM, at(0, 3), kind(16, 3)),
        entry(ROOM, at(0, 4), stored(4, "has none")),
        era(ROOM, Era::HOME, 4, 1, &[]),
        number(ROOM, Number(2), at(0, 2), Fate::Assigned),
        number(ROOM, Number(3), at(1, 1), Fate::Assigned),
        number(ROOM, Number(4), at(0, 2), Fate::Assigned),
        Change::NumberRange {
            room: ROOM,
            at: at(1, 1),
            numbers: Some(NumberRange { best: Number(3), canonical: Number(3) }),
        },
        Change::NumberRange {
            room: ROOM,
            at: at(1, 2),
            numbers: Some(NumberRange { best: Number(3), canonical: Number(3) }),
        },
        Change::NumberRange { room: ROOM, at: at(1, 2), numbers: None },
        Change::Dedup { room: ROOM, id: DedupId([4; 16]), at: at(0, 1), wall_ms: 5 },
        Change::Dedup { room: ROOM, id: DedupId([5; 16]), at: at(0, 4), wall_ms: 6 },
        room(private),
        log(private, 0, 1),
        entry(private, at(0, 1), kind(33, 1)),
        room(directory),
        log(directory, 0, 3),
        entry(directory, at(0, 1), kind(32, 1)),
        entry(directory, at(0, 2), kind(17, 2)),
        entry(directory, at(0, 3), kind(33, 3)),
        number(directory, Number(1), at(0, 3), Fate::Delivered),
        Change::Node(node(7)),
    ]);
    store.commit(&batch).unwrap();
    (store, disk)
}

#[test]
fn a_summary_is_what_an_engine_starts_from() {
    let (store, _) = full();
    let summary = store.summary(ME, None).unwrap();
    assert_eq!(summary.node, Some(node(7)));
    assert_eq!(summary.rooms.len(), 3, "those of the node's mesh");
    let room = summary.rooms.iter().find(|it| it.room == ROOM).unwrap();
    assert_eq!(room.waiting, [(Number(2), at(0, 2)), (Number(3), at(1, 1)), (Number(4), at(0, 2))]);
    let unsettled: Vec<_> = room.unsettled.iter().map(|it| (it.at, it.numbers)).collect();
    let numbers = NumberRange { best: Number(4), canonical: Number(2) };
    assert_eq!(unsettled, [(at(0, 2), Some(numbers)), (at(0, 4), None)]);
    assert_eq!(room.unsettled[1].entry, stored(4, "has none"));
    assert_eq!(room.foretold, [(at(1, 1), NumberRange { best: Number(3), canonical: Number(3) })]);
    assert_eq!(
        room.dedups,
        [(DedupId([4; 16]), at(0, 1), 5, Some(Number(1))), (DedupId([5; 16]), at(0, 4), 6, None)]
    );
    assert_eq!((room.logs.len(), room.eras.len()), (1, 1));
    let directory: Vec<_> =
        summary.directory.iter().map(|(id, at, _, all)| (*id, *at, all.clone())).collect();
    let (public, private) = (RoomId::directory(MESH), RoomId::private_directory(MESH, ME));
    assert_eq!(
        directory,
        [
            (public, at(0, 1), vec![]),
            (public, at(0, 3), vec![Number(1)]),
            (private, at(0, 1), vec![])
        ]
    );
    let elsewhere = store.summary(ME, Some(MeshId([9; 16]))).unwrap();
    assert_eq!((elsewhere.rooms.len(), elsewhere.directory.len()), (1, 0));
    assert_eq!(store.reader().rooms().unwrap().len(), 4);
}

#[test]
fn what_is_settled_is_not_looked_at_again() {
    let (mut store, _) = full();
    store.commit(&[log_settled(ROOM, 0, 4, 2)]).unwrap();
    let summary = store.summary(ME, None).unwrap();
    let room = summary.rooms.iter().find(|it| it.room == ROOM).unwrap();
    assert_eq!(room.unsettled.iter().map(|it| it.at).collect::<Vec<_>>(), [at(0, 4)]);
}

#[test]
fn reopening_gives_the_same_summary() {
    let (store, disk) = full();
    let before = format!("{:?}", store.summary(ME, None).unwrap());
    drop(store);
    let mut store = Store::on(disk.clone()).unwrap();
    assert_eq!(format!("{:?}", store.summary(ME, None).unwrap()), before);
    // New rooms do not get the integers of old ones.
    store.commit(&message(RoomId([6; 16]), 1)).unwrap();
    assert_eq!(store.reader().rooms().unwrap().len(), 5);
    assert_eq!(store.reader().page_since(ROOM, Number(0), 9).unwrap().len(), 1);
    let first = Store::on(CrashingBackend::new(0)).unwrap().summary(ME, None).unwrap();
    assert!(first.node.is_none() && first.rooms.is_empty());
}

fn acts(store: &Store) -> Vec<(RoomId, mesh::name::id::LocalRef)> {
    let acts = store.summary(ME, Some(MESH)).unwrap().acts;
    assert!(acts.iter().all(|(_, at, it)| *it == act(at.seq)));
    acts.into_iter().map(|(room, at, _)| (room, at)).collect()
}

#[test]
fn acts_come_back_in_the_order_of_their_logs() {
    let (mut store, other, secret) = (store(), RoomId([1; 16]), RoomId([3; 16]));
    let archived = RoomRecord { mesh: MeshId([9; 16]), ..room_record() };
    let mut batch = message(ROOM, 1);
    batch.extend([
        log_settled(ROOM, 0, 3, 3),
        log_settled(ROOM, 1, 3, 3),
        room(other),
        log(other, 0, 1),
        entry(other, at(0, 1), act(1)),
        entry(ROOM, at(1, 2), act(2)),
        entry(ROOM, at(0, 3), act(3)),
        entry(ROOM, at(0, 2), act(2)),
        ephemeral(secret),
        entry(secret, at(0, 1), act(1)),
        Change::Room { room: RoomId([4; 16]), record: archived },
        entry(RoomId([4; 16]), at(0, 1), act(1)),
    ]);
    store.commit(&batch).unwrap();
    let expect = [(ROOM, at(0, 2)), (ROOM, at(0, 3)), (ROOM, at(1, 2)), (other, at(0, 1))];
    assert_eq!(acts(&store), expect, "of rooms on the disk, of this mesh");
    store.commit(&[entry(ROOM, at(1, 3), act(3)), entry(ROOM, at(0, 3), act(3))]).unwrap();
    assert_eq!(acts(&store)[3..], [(ROOM, at(1, 3)), (other, at(0, 1))]);
}

#[test]
fn notes_and_kept_values_are_replaced_and_forgotten() {
    let (mut store, secret) = (store(), RoomId([3; 16]));
    let note = |room, seq, note| Change::Note { room, vote: at(0, seq), note: Some(note) };
    let keep = |name: &[u8], value: Option<&[u8]>| Change::Keep {
        name: name.to_vec(),
        value: value.map(|value| Opaque(value.to_vec())),
    };
    let chosen = VoteNote { choices: vec![(4, 1)], told: None };
    let told = VoteNote {
        choices: Vec::new(),
        told: Some(ToldResult { close: None, missing: Vec::new() }),
    };
    store
        .commit(&[
            room(ROOM),
            ephemeral(secret),
            note(ROOM, 1, chosen.clone()),
            note(ROOM, 2, chosen.clone()),
            note(ROOM, 2, told.clone()),
            note(secret, 1, told.clone()),
            keep(b"hook/a", Some(b"1")),
            keep(b"hook/b", Some(b"2")),
            keep(b"hook", Some(b"3")),
            keep(b"hool", Some(b"4")),
            keep(b"hook/c", Some(b"5")),
            keep(b"hook/c", None),
        ])
        .unwrap();
    let notes = |store: &Store| store.summary(ME, Some(MESH)).unwrap().notes;
    assert_eq!(notes(&store), [(ROOM, at(0, 1), chosen.clone()), (ROOM, at(0, 2), told)]);
    let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
    let kept = |store: &Store, prefix: &[u8]| store.reader().kept(prefix).unwrap();
    assert_eq!(kept(&store, b"hook/"), [pair(b"hook/a", b"1"), pair(b"hook/b", b"2")]);
    assert_eq!(kept(&store, b"").len(), 4);
    assert_eq!(kept(&store, b"i"), []);
    let none = Change::Note { room: ROOM, vote: at(0, 2), note: None };
    store.commit(&[none, keep(b"hook/a", None), keep(b"hook/b", Some(b""))]).unwrap();
    assert_eq!(notes(&store), [(ROOM, at(0, 1), chosen)]);
    assert_eq!(kept(&store, b"hook/"), [pair(b"hook/b", b"")]);
}

#[test]
fn dedups_are_forgotten_in_time() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let late = u64::try_from(DEDUP_FOR.as_millis()).unwrap() + 10;
    let dedup =
        |id, wall_ms| Change::Dedup { room: ROOM, id: DedupId([id; 16]), at: at(0, 1), wall_ms };
    store.commit(&[room(ROOM), dedup(1, 1), dedup(2, late - 5)]).unwrap();
    drop(store);
    let mut store = Store::on(disk.clone()).unwrap();
    store.set_wall_ms(late);
    store.commit(&[room(ROOM)]).unwrap();
    let summary = store.summary(ME, Some(MESH)).unwrap();
    assert_eq!(summary.rooms[0].dedups, [(DedupId([2; 16]), at(0, 1), late - 5, None)]);
}

#[test]
fn the_lowest_proof_of_a_fork_stays() {
    let mut store = store();
    let proof = |seq| {
        let certificate =
            Certificate { room: ROOM, log: log_id(8), seq, hash: [0; 32], seal: [0; 64] };
        let run = Run {
            room: ROOM,
            log: log_id(8),
            first: 1,
            backlink: [0; 32],
            entries: Vec::new(),
            seal: [0; 64],
        };
        Change::Evidence { certificate, run: Box::new(run) }
    };
    for seq in [5, 3, 9] {
        store.commit(&[room(ROOM), proof(seq)]).unwrap();
    }
    let evidence = store.reader().evidence().unwrap();
    assert_eq!((evidence.len(), evidence[0].0.seq), (1, 3));
    let summary = store.summary(ME, Some(MESH)).unwrap();
    assert_eq!(summary.forked, [log_id(8).author]);
    let places: Vec<u64> = summary.proofs.iter().map(|(it, _)| it.seq).collect();
    assert_eq!(places, [3], "an engine that starts can tell others");
    assert!(
        store.summary(ME, Some(MeshId([77; 16]))).unwrap().proofs.is_empty(),
        "of another mesh"
    );
}

#[test]
fn a_reader_is_for_any_thread_and_sees_what_was_committed() {
    fn any_thread<T: Clone + Send + Sync + 'static>(_: &T) {}
    let mut store = store();
    let reader = store.reader();
    any_thread(&reader);
    assert_eq!(reader.page_since(ROOM, Number(0), 9).unwrap().len(), 0);
    let from_another = std::thread::spawn({
        let reader = reader.clone();
        store.commit(&message(ROOM, 1)).unwrap();
        move || reader.page_since(ROOM, Number(0), 9).unwrap().len()
    });
    assert_eq!(from_another.join().unwrap(), 1);
    assert!(reader.size_bytes() > 0);
}
