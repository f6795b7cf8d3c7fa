//! Bodies that are old go, and nothing else does.

use mesh::{
    api::batch::{Change, Fate, RoomRecord},
    name::{
        id::{LocalRef, MessageId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::{Gone, Stored},
        message::{Head, Span},
        run::Carried,
    },
};
use sha2::{Digest as _, Sha256};
use store::{CommitError, Cursor, Reader, Store, limits::PRUNE_ROWS, testing::CrashingBackend};

use crate::rows::*;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

fn before(ms: u64) -> Change {
    Change::Prune { room: ROOM, before_ms: ms }
}

/// Messages 1 … `count` of one log, message `n` delivered under number `n`, written at `stamp(n)`.
fn stamped(count: u64, stamp: impl Fn(u64) -> u64) -> (Store, CrashingBackend) {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let mut batch = vec![tip(ROOM, Number(count)), log_settled(ROOM, 0, count, count)];
    batch.push(era(ROOM, Era::HOME, count, count, &[]));
    for seq in 1..=count {
        let mut it = stored(seq, &format!("message {seq}"));
        it.facts.wall_ms = stamp(seq);
        batch.push(entry(ROOM, at(0, seq), it));
        batch.push(number(ROOM, Number(seq), at(0, seq), Fate::Delivered));
    }
    store.commit(&batch).unwrap();
    (store, disk)
}

fn written_each_second(count: u64) -> (Store, CrashingBackend) {
    stamped(count, |seq| seq * 1_000)
}

/// Numbers of the messages whose contents are left.
fn left(reader: &Reader) -> Vec<u64> {
    let since = reader.page_since(ROOM, Number(0), 1_000).unwrap();
    let newest = reader.page_newest(ROOM, 1_000, None).unwrap();
    assert_eq!(since, newest);
    assert!(since.iter().all(|row| row.said.is_some()));
    since.iter().map(|row| row.number.0).collect()
}

fn head(seq: u64) -> Head {
    Head { log: log_id(3), seq }
}

#[test]
fn old_bodies_go_and_numbers_stay() {
    let (mut store, _) = written_each_second(10);
    store.commit(&[before(5_000)]).unwrap();
    let reader = store.reader();
    assert_eq!(left(&reader), [5, 6, 7, 8, 9, 10]);
    assert_eq!(reader.tip(ROOM).unwrap(), Number(10));
    for seq in 1..=10 {
        let row = reader.by_number(ROOM, Number(seq)).unwrap().unwrap();
        assert_eq!((row.at, row.facts.wall_ms), (at(0, seq), seq * 1_000));
        assert_eq!(row.said.is_some(), seq > 4);
        let message = MessageId::new(ROOM, log_id(3), seq);
        assert_eq!(reader.by_message(ROOM, message).unwrap().unwrap(), row);
        assert_eq!(reader.row_at(ROOM, at(0, seq)).unwrap().unwrap(), row);
        let delivered = [(Number(seq), Fate::Delivered)];
        assert_eq!(reader.numbers_of(ROOM, at(0, seq)).unwrap(), delivered);
        assert_eq!(reader.serves(ROOM, Number(seq)).unwrap(), Cursor::Here);
        assert_eq!(reader.serves_roamer(ROOM, Number(seq)).unwrap(), Cursor::Here);
    }
    let numbers = |rows: Vec<store::Row>| rows.iter().map(|it| it.number.0).collect::<Vec<_>>();
    assert_eq!(numbers(reader.page_since(ROOM, Number(2), 2).unwrap()), [5, 6]);
    assert_eq!(numbers(reader.page_newest(ROOM, 9, Some(7_000)).unwrap()), [5, 6]);
    assert_eq!(numbers(reader.roam(ROOM, Number(2), 2).unwrap().rows), [5, 6]);
    assert!(reader.roam(ROOM, Number(2), 2).unwrap().more);
}

#[test]
fn what_is_left_of_a_body_is_what_its_header_needs() {
    let (mut store, _) = written_each_second(3);
    let body = stored(1, "message 1").body;
    store.commit(&[before(3_000)]).unwrap();
    let reader = store.reader();
    let span = Span { log: log_id(3), after: 0, upto: 3 };
    let runs = reader.runs(ROOM, span, 1 << 20).unwrap().runs;
    let gone = Gone { hash: Sha256::digest(&*body).into(), len: body.len() as u64 };
    assert_eq!(runs[0].entries[0].body, Carried::Gone(gone));
    assert_eq!((runs[0].backlink, runs[0].seal), ([0; 32], [7; 64]));
    assert!(matches!(runs[2].entries[0].body, Carried::Here(_)));
    let bodies = reader.bodies(ROOM, &[head(1), head(3)], 1 << 20).unwrap();
    assert!(bodies[0].body.is_empty() && !bodies[1].body.is_empty(), "said not to be here");
    // An engine that starts again does not take it for something to be delivered.
    store.commit(&[log_settled(ROOM, 0, 3, 0)]).unwrap();
    assert!(store.summary(ME, Some(MESH)).unwrap().rooms[0].unsettled.is_empty());
}

#[test]
fn nothing_but_what_was_said_loses_its_body() {
    let (mut store, _) = written_each_second(3);
    let mut later = stored(4, "of a later version");
    (later.facts.wall_ms, later.facts.kind) = (4_000, 60);
    let four = number(ROOM, Number(4), at(0, 4), Fate::Delivered);
    store
        .commit(&[
            log_settled(ROOM, 0, 4, 4),
            era(ROOM, Era::HOME, 4, 4, &[]),
            entry(ROOM, at(0, 4), later),
            four,
            tip(ROOM, Number(4)),
        ])
        .unwrap();
    store.commit(&[before(5_000)]).unwrap();
    let bodies = store.reader().bodies(ROOM, &[head(3), head(4)], 1 << 20).unwrap();
    assert!(bodies[0].body.is_empty() && !bodies[1].body.is_empty());
}

#[test]
fn what_came_without_its_body_waits_for_nobody() {
    let (mut store, _) = written_each_second(1);
    let gone = Some(Gone { hash: [1; 32], len: 9 });
    let bare = Stored { body: Vec::new().into(), gone, ..stored(2, "") };
    store
        .commit(&[
            log_settled(ROOM, 0, 2, 1),
            entry(ROOM, at(0, 2), bare),
            number(ROOM, Number(2), at(0, 2), Fate::Assigned),
        ])
        .unwrap();
    assert!(store.summary(ME, Some(MESH)).unwrap().rooms[0].unsettled.is_empty());
    assert_eq!(left(&store.reader()), [1]);
}

#[test]
fn it_is_the_beginning_of_the_delivery_log_that_goes() {
    let check = |stamps: &[u64], now_ms: u64, expect: &[u64]| {
        let (mut store, _) = stamped(stamps.len() as u64, |seq| stamps[seq as usize - 1]);
        store.set_wall_ms(now_ms);
        store.commit(&[before(100)]).unwrap();
        assert_eq!(left(&store.reader()), expect, "{stamps:?}");
    };
    let (now, young) = (10_000, 5_000);
    let future = now + DAY_MS + 1;
    check(&[50, 60, 70], now, &[]);
    check(&[50, 60, young, 70, young], now, &[3, 4, 5]);
    check(&[young, 50, 60], now, &[1, 2, 3]);
    // Stamps from the future say nothing.
    check(&[50, future, 60, young, 70], now, &[4, 5]);
    check(&[future, future, 60], now, &[]);
    check(&[50, future, young, 60], now, &[2, 3, 4]);
    check(&[future], now, &[1]);
    check(&[now + DAY_MS, 50], now, &[1, 2]);
}

#[test]
fn only_so_much_goes_at_once_and_the_next_time_more() {
    let rows = PRUNE_ROWS as u64;
    let (mut store, disk) = written_each_second(2 * rows + 10);
    for expect in [rows + 10, 10, 5] {
        store.commit(&[before((2 * rows + 6) * 1_000)]).unwrap();
        assert_eq!(left(&store.reader()).len() as u64, expect);
    }
    let operations = disk.operations();
    store.commit(&[before((2 * rows + 6) * 1_000)]).unwrap();
    assert_eq!(disk.operations(), operations, "there is nothing to write");
    // What came without its body does not stand in the way.
    store.commit(&[before(u64::MAX)]).unwrap();
    assert_eq!(left(&store.reader()), []);
}

#[test]
fn readers_pass_over_any_number_of_dropped_rows() {
    let (mut store, _) = written_each_second(1);
    let gone = Some(Gone { hash: [1; 32], len: 9 });
    let mut batch = vec![tip(ROOM, Number(9_002)), log_settled(ROOM, 0, 9_002, 9_002)];
    for seq in 2..=9_001 {
        let bare = Stored { body: Vec::new().into(), gone, ..stored(seq, "") };
        batch.push(entry(ROOM, at(0, seq), bare));
        batch.push(number(ROOM, Number(seq), at(0, seq), Fate::Delivered));
    }
    batch.push(entry(ROOM, at(0, 9_002), stored(9_002, "the last one")));
    batch.push(number(ROOM, Number(9_002), at(0, 9_002), Fate::Delivered));
    store.commit(&batch).unwrap();
    let reader = store.reader();
    assert_eq!(left(&reader), [1, 9_002]);
    assert_eq!(reader.page_newest(ROOM, 2, None).unwrap()[0].number, Number(1));
    assert_eq!(reader.page_since(ROOM, Number(1), 1).unwrap()[0].number, Number(9_002));
    assert_eq!(reader.roam(ROOM, Number(1), 1).unwrap().rows[0].number, Number(9_002));
}

#[test]
fn a_number_that_was_passed_over_leads_to_what_is_left() {
    // Entry 2 had number 2, which was passed over here, and was delivered under 9.
    let (mut store, _) = written_each_second(3);
    let young = |seq: u64, wall_ms| {
        let mut it = stored(seq, "late");
        it.facts.wall_ms = wall_ms;
        it
    };
    store
        .commit(&[
            tip(ROOM, Number(9)),
            log_settled(ROOM, 0, 4, 4),
            era(ROOM, Era::HOME, 9, 9, &[]),
            entry(ROOM, at(0, 4), young(4, 9_000)),
            number(ROOM, Number(4), at(0, 4), Fate::Assigned),
            number(ROOM, Number(5), at(0, 4), Fate::Hole),
            number(ROOM, Number(9), at(0, 4), Fate::Delivered),
            log(ROOM, 1, 1),
            entry(ROOM, LocalRef { log: 1, seq: 1 }, young(1, 4_000)),
            number(ROOM, Number(6), LocalRef { log: 1, seq: 1 }, Fate::Delivered),
            before(5_000),
        ])
        .unwrap();
    store.commit(&[before(5_000)]).unwrap();
    let reader = store.reader();
    assert_eq!(left(&reader), [9]);
    let served: Vec<_> =
        reader.roam(ROOM, Number(1), 9).unwrap().rows.iter().map(|it| (it.number, it.at)).collect();
    assert_eq!(served, [(Number(9), at(0, 4))]);
}

#[test]
fn ephemeral_rooms_keep_what_they_have_and_unknown_ones_are_refused() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let secret = RoomId([8; 16]);
    store
        .commit(&[
            ephemeral(secret),
            log(secret, 0, 1),
            entry(secret, at(0, 1), stored(1, "here")),
            number(secret, Number(1), at(0, 1), Fate::Delivered),
            Change::Prune { room: secret, before_ms: u64::MAX },
        ])
        .unwrap();
    store.commit(&[Change::Prune { room: secret, before_ms: u64::MAX }]).unwrap();
    assert_eq!(store.reader().page_since(secret, Number(0), 9).unwrap().len(), 1);
    let error = store.commit(&[before(9)]).unwrap_err();
    assert!(matches!(error, CommitError::UnknownRoom(ROOM)), "{error}");
}

#[test]
fn rooms_of_an_earlier_mesh_are_pruned_like_others() {
    let (mut store, _) = written_each_second(3);
    let archived = RoomRecord { mesh: mesh::name::id::MeshId([9; 16]), ..room_record() };
    store.commit(&[Change::Room { room: ROOM, record: archived }, before(3_000)]).unwrap();
    assert_eq!(left(&store.reader()), [3]);
}
