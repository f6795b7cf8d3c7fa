//! Runs leave as they came.

use mesh::{
    limits::{BODY_BYTES_MAX, WANT_REPLY_BYTES},
    name::id::LocalRef,
    wire::{
        message::{ApartBody, Head, Message, Span},
        run::{Carried, Run},
    },
};
use store::{Store, testing::CrashingBackend};

use crate::rows::*;

/// A log of runs of these lengths, each body of so many bytes.
fn store_with(runs: &[usize], body_bytes: usize) -> Store {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let mut batch = vec![room(ROOM)];
    let mut seq = 0;
    for &length in runs {
        for i in 0..length {
            seq += 1;
            let mut it = stored(seq, "");
            it.body = vec![u8::try_from(seq % 256).unwrap(); body_bytes].into();
            it.backlink = (i == 0).then_some([u8::try_from(seq % 256).unwrap(); 32]);
            it.seal = (i + 1 == length).then_some([u8::try_from(seq % 256).unwrap(); 64]);
            batch.push(entry(ROOM, LocalRef { log: 0, seq }, it));
        }
    }
    batch.push(log(ROOM, 0, seq));
    store.commit(&batch).unwrap();
    store
}

fn span(after: u64, upto: u64) -> Span {
    Span { log: log_id(3), after, upto }
}

fn shape(runs: &[Run]) -> Vec<(u64, u64)> {
    runs.iter().map(|run| (run.first, run.last())).collect()
}

#[test]
fn whole_runs_are_served() {
    let store = store_with(&[1, 3, 2, 4], 10);
    let reader = store.reader();
    let check = |after, upto, expect: &[(u64, u64)]| {
        let spans = reader.runs(ROOM, span(after, upto), 1 << 20).unwrap();
        assert_eq!(shape(&spans.runs), expect, "after {after} up to {upto}");
        assert!(spans.complete && spans.bodies.is_empty());
    };
    check(0, 10, &[(1, 1), (2, 4), (5, 6), (7, 10)]);
    check(0, 1, &[(1, 1)]);
    check(2, 3, &[(2, 4)]);
    check(3, 5, &[(2, 4), (5, 6)]);
    check(6, u64::MAX, &[(7, 10)]);
    check(10, 20, &[]);
    check(u64::MAX, u64::MAX, &[]);
    let run = &reader.runs(ROOM, span(1, 2), 1 << 20).unwrap().runs[0];
    assert_eq!((run.backlink, run.seal, run.log, run.room), ([2; 32], [4; 64], log_id(3), ROOM));
    assert_eq!(run.entries[1].body, Carried::Here(vec![3; 10].into()));
    let stranger = Span { log: log_id(9), ..span(0, 9) };
    assert!(reader.runs(ROOM, stranger, 1 << 20).unwrap().runs.is_empty());
}

#[test]
fn a_budget_stops_after_at_least_one_run() {
    let store = store_with(&[2, 2, 2], 1_000);
    let reader = store.reader();
    let some = reader.runs(ROOM, span(0, 6), 1).unwrap();
    assert_eq!((shape(&some.runs), some.complete), (vec![(1, 2)], false));
    let some = reader.runs(ROOM, span(0, 6), 5_500).unwrap();
    assert_eq!((shape(&some.runs), some.complete), (vec![(1, 2), (3, 4)], false));
    let last = reader.runs(ROOM, span(4, 6), 1).unwrap();
    assert_eq!((shape(&last.runs), last.complete), (vec![(5, 6)], true));
}

#[test]
fn large_bodies_travel_apart() {
    let store = store_with(&[2], 8 * 1024 + 1);
    let reader = store.reader();
    let spans = reader.runs(ROOM, span(0, 2), 1 << 20).unwrap();
    let hash = {
        use sha2::Digest as _;
        sha2::Sha256::digest(vec![1; 8 * 1024 + 1]).into()
    };
    assert_eq!(spans.runs[0].entries[0].body, Carried::Apart { hash, len: 8 * 1024 + 1 });
    let body = |seq: u8| ApartBody {
        log: log_id(3),
        seq: seq.into(),
        body: vec![seq; 8 * 1024 + 1].into(),
    };
    assert_eq!(spans.bodies, [body(1), body(2)]);
    let head = |seq| Head { log: log_id(3), seq };
    let none = |seq| ApartBody { body: Vec::new().into(), ..body(seq) };
    let both = reader.bodies(ROOM, &[head(2), head(3)], 1 << 20).unwrap();
    assert_eq!(both, [body(2), none(3)], "what is not here is said not to be");
    let elsewhere = Head { log: log_id(9), seq: 1 };
    assert!(reader.bodies(ROOM, &[elsewhere], 1 << 20).unwrap()[0].body.is_empty());
    let nowhere = mesh::name::id::RoomId([9; 16]);
    assert_eq!(reader.bodies(nowhere, &[head(2)], 1 << 20).unwrap(), [none(2)]);
    assert_eq!(reader.bodies(ROOM, &[head(1), head(2)], 1).unwrap(), [body(1)]);
}

/// Its size.
fn check_frame(message: &Message) -> usize {
    let bytes = message.encode();
    assert!(matches!(message, Message::Spans { last: true, .. }));
    Message::decode(&bytes).unwrap();
    bytes.len()
}

#[test]
fn an_answer_fits_its_frame_and_its_budget() {
    let small = store_with(&[100; 50], 300);
    let answer = small.reader().answer_spans(ROOM, &[span(0, 5_000), span(0, 5_000)]).unwrap();
    let bytes = check_frame(&answer);
    assert!(bytes > WANT_REPLY_BYTES / 2 && bytes <= WANT_REPLY_BYTES, "{bytes}");
    let large = store_with(&[10], BODY_BYTES_MAX);
    let bytes = check_frame(&large.reader().answer_spans(ROOM, &[span(0, 10)]).unwrap());
    assert!(bytes > BODY_BYTES_MAX && bytes <= WANT_REPLY_BYTES, "{bytes}");
    let all: Vec<Head> = (1..=10).map(|seq| Head { log: log_id(3), seq }).collect();
    let bytes = check_frame(&large.reader().answer_bodies(ROOM, &all).unwrap());
    assert!(bytes > BODY_BYTES_MAX && bytes <= WANT_REPLY_BYTES, "{bytes}");
    // Nothing to say is said too: somebody waits for it.
    let nowhere = mesh::name::id::RoomId([9; 16]);
    check_frame(&large.reader().answer_spans(nowhere, &[span(0, 9)]).unwrap());
}
