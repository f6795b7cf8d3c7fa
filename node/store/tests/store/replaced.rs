//! States that records have replaced: kept for a while, counted, and told to peers.

use std::sync::Arc;

use mesh::{
    api::batch::{Change, ReplacedChange},
    limits::{REPLACED_STATES_MAX, WANT_REPLY_BYTES},
    name::key::KeySecret,
    wire::{
        message::Message,
        record::{Apart, CollectionNumber, Draft, Record, RecordId, RecordKey, Space, Stamp},
        replaced::{Ids, ReplacedState, WantedReplaced},
    },
};
use store::{Store, limits::REPLACED_BYTES_MAX, replaced::answer, testing::CrashingBackend};

use crate::rows::*;

const OTHER: CollectionNumber = CollectionNumber(60_000);
const LATER: u64 = 1_000_000;

/// The `nth` state of the record `id` of a key, with its bytes.
struct State {
    record: Record,
    bytes: Vec<u8>,
}

fn state(owner: &KeySecret, id: u8, nth: u64, bytes: Vec<u8>) -> State {
    let (collection, id) = (OTHER, RecordId([id; 16]));
    let draft = Draft { space: Space::Mesh, collection, id, body: Some(vec![7]) };
    let told = Some(Apart::of(&bytes));
    let record = draft.sign_with(told, owner, MESH, Stamp::at(nth)).unwrap();
    State { record, bytes }
}

fn owner(n: u8) -> KeySecret {
    KeySecret::of(&format!("{n:0>32}"))
}

fn key(of: &Record) -> RecordKey {
    RecordKey { id: of.id, owner: Some(of.owner()) }
}

fn says(of: &Record, change: ReplacedChange) -> Change {
    let (space, collection) = (Space::Mesh, OTHER);
    Change::Replaced { mesh: MESH, space, collection, key: key(of), change }
}

/// As the engine writes it.
fn written(of: &State, until_ms: Option<u64>) -> Vec<Change> {
    let (space, collection, key) = (Space::Mesh, OTHER, key(&of.record));
    let keep = until_ms.map(|until_ms| says(&of.record, ReplacedChange::Keep { until_ms }));
    let record = Some(Arc::new(of.record.clone()));
    let bytes = |bytes| Change::Content { mesh: MESH, space, collection, key, bytes };
    let there = Some(Arc::new(of.bytes.clone().into()));
    let row = Change::Record { mesh: MESH, space, collection, key, record };
    keep.into_iter().chain([row, bytes(None), bytes(there)]).collect()
}

fn wanted(ids: Ids, stamp: Option<Stamp>) -> WantedReplaced {
    WantedReplaced { nonce: 1, space: Space::Mesh, collection: OTHER, ids, stamp }
}

fn told(store: &Store, ids: Ids, stamp: Option<Stamp>, now_ms: u64) -> Vec<ReplacedState> {
    let said = answer(&store.reader(), MESH, &wanted(ids, stamp), now_ms).unwrap();
    assert!(said.encode().len() < 2 * WANT_REPLY_BYTES);
    let Message::Replaced(sent) = said else { panic!("{said:?}") };
    sent.states
}

/// The stamps that are kept of a record, the latest first.
fn stamps(store: &Store, id: u8, now_ms: u64) -> Vec<u64> {
    let states = told(store, Ids::Only([id; 16].into()), None, now_ms);
    states.iter().map(|state| state.record.stamp.0 / 256).collect()
}

fn is_sound(store: &Store) -> bool {
    store.reader().check().unwrap().findings.is_empty()
}

#[test]
fn the_last_states_of_a_record_are_kept_with_their_bytes_until_it_is_deleted() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let one = owner(1);
    let states: Vec<State> =
        (1..=20).map(|nth| state(&one, 1, nth, vec![u8::try_from(nth).unwrap(); 100])).collect();
    store.commit(&written(&states[0], None)).unwrap();
    assert_eq!(stamps(&store, 1, 0), []);
    for state in &states[1..10] {
        store.commit(&written(state, Some(LATER))).unwrap();
    }
    // Many at once, as turns that are committed together.
    let rest: Vec<Change> =
        states[10..].iter().flat_map(|state| written(state, Some(LATER))).collect();
    store.commit(&rest).unwrap();
    let last: Vec<u64> = (4..=19).rev().collect();
    assert_eq!((stamps(&store, 1, 0), last.len()), (last, REPLACED_STATES_MAX));
    assert!(is_sound(&store));
    for nth in [4, 12, 19] {
        let found = told(&store, Ids::Only([1; 16].into()), Some(Stamp::at(nth)), 5);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.is_whole() && found.bytes.as_ref().is_some_and(|bytes| bytes.len() == 100));
        assert_eq!(found.left_ms, LATER - 5);
    }
    assert!(told(&store, Ids::Of([1; 8].into()), None, 0).iter().all(|it| it.bytes.is_none()));
    drop(store);
    let mut store = Store::on(disk).unwrap();
    assert_eq!(stamps(&store, 1, 0).len(), REPLACED_STATES_MAX, "after a start");
    assert_eq!(stamps(&store, 1, LATER), [], "their time is over, and nobody has dropped them");
    store.commit(&[says(&states[0].record, ReplacedChange::Drop)]).unwrap();
    assert_eq!(stamps(&store, 1, 0), []);
    assert!(is_sound(&store));
}

#[test]
fn bytes_that_come_with_the_batch_that_replaces_their_state_are_kept() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let one = owner(1);
    let (earlier, now) =
        (state(&one, 1, 1, b"earlier".to_vec()), state(&one, 1, 2, b"now".to_vec()));
    let without_bytes = written(&earlier, None).into_iter().take(2).collect::<Vec<_>>();
    store.commit(&without_bytes).unwrap();
    let come = written(&earlier, None).pop();
    let batch: Vec<Change> = come.into_iter().chain(written(&now, Some(LATER))).collect();
    store.commit(&batch).unwrap();
    let found = told(&store, Ids::Only([1; 16].into()), Some(Stamp::at(1)), 0);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].bytes.as_ref().map(|bytes| bytes.to_vec()), Some(b"earlier".to_vec()));
    assert!(is_sound(&store));
}

#[test]
fn those_whose_time_is_over_go_and_the_others_stay() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    for n in 1..=3 {
        let of = owner(n);
        for (nth, until_ms) in [(1, None), (2, Some(10)), (3, Some(20))] {
            store.commit(&written(&state(&of, n, nth, vec![n; 10]), until_ms)).unwrap();
        }
    }
    store.commit(&[Change::ReplacedEnd { now_ms: 11 }]).unwrap();
    for n in 1..=3 {
        assert_eq!(stamps(&store, n, 0), [2]);
    }
    assert!(is_sound(&store));
    store.commit(&[Change::ReplacedEnd { now_ms: 21 }]).unwrap();
    assert_eq!(stamps(&store, 1, 0), []);
    assert!(is_sound(&store));
}

#[test]
fn a_state_that_another_node_tells_of_gets_its_bytes_later() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let one = owner(1);
    let (earlier, now) =
        (state(&one, 1, 1, b"earlier".to_vec()), state(&one, 1, 2, b"now".to_vec()));
    store.commit(&written(&now, None)).unwrap();
    let heard = |bytes: Option<&[u8]>, until_ms| {
        let (record, bytes) = (Box::new(earlier.record.clone()), bytes.map(<[u8]>::to_vec));
        says(&earlier.record, ReplacedChange::Heard { record, bytes, until_ms })
    };
    store.commit(&[heard(None, 10)]).unwrap();
    let bytes = |store: &Store| {
        let found = told(store, Ids::Only([1; 16].into()), Some(Stamp::at(1)), 0);
        found.into_iter().map(|it| (it.bytes.map(Vec::from), it.left_ms)).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&store), [(None, 10)]);
    store.commit(&[heard(Some(b"earlier"), 20)]).unwrap();
    assert_eq!(bytes(&store), [(Some(b"earlier".to_vec()), 20)]);
    store.commit(&[heard(None, 99)]).unwrap();
    assert_eq!(bytes(&store), [(Some(b"earlier".to_vec()), 20)], "nothing is prolonged");
    assert!(is_sound(&store));
}

#[test]
fn the_owner_that_has_most_loses_its_oldest_states_where_there_are_too_many() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let (much, little) = (owner(1), owner(2));
    let large = |n: u8| vec![n; 16 * 1024 * 1024];
    for nth in 1..=2 {
        store.commit(&written(&state(&little, 1, nth, vec![9; 10]), Some(1))).unwrap();
    }
    let mut kept = 0;
    for id in 10..=15 {
        for nth in 1..=2 {
            let until = LATER + u64::from(id);
            let change = written(&state(&much, id, nth, large(id)), (nth > 1).then_some(until));
            store.commit(&change).unwrap();
        }
        kept += 1;
    }
    let there = (10..=15).filter(|id| stamps(&store, *id, 2) == [1]).collect::<Vec<_>>();
    let most = usize::try_from(REPLACED_BYTES_MAX / (16 * 1024 * 1024)).unwrap();
    assert!(kept > most && there.len() == most - 1, "{there:?} of {kept}");
    assert_eq!(there.first(), Some(&(15 - u8::try_from(most).unwrap() + 2)), "the oldest went");
    assert_eq!(stamps(&store, 1, 0), [1], "another's is not touched");
    assert!(is_sound(&store));
}
