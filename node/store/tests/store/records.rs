//! Records: kept by name, found by the thing that they are about, sent to peers in messages of one size.

use std::sync::{Arc, LazyLock};

use mesh::{
    api::batch::{Change, RoomRecord},
    limits::{FILE_BYTES_MAX, RECORD_BODY_BYTES_MAX, WANT_REPLY_BYTES},
    name::{
        group::Group,
        id::{MeshId, NodeId, RoomKey},
        key::KeySecret,
    },
    records::{agent_files, place::RoomPlace, profile},
    wire::{
        carry::{Carriage, CarriedAt, Load, Whole},
        message::Message,
        record::{Apart, CollectionNumber, Draft, Record, RecordId, RecordKey, Space, Stamp},
        seal::{Seal, directory},
    },
};
use store::{
    Store, carried,
    check::Problem,
    owned,
    records::{Shelf, answer, contents, find},
    testing::CrashingBackend,
};

use crate::rows::*;

static KEYS: LazyLock<Vec<KeySecret>> =
    LazyLock::new(|| (0..3).map(|n| KeySecret::of(&format!("{n:0>32}"))).collect());

/// Of a collection that no version knows, so that contents can be anything.
const OTHER: CollectionNumber = CollectionNumber(60_000);
const SHELF: Shelf = Shelf { mesh: MESH, space: Space::Mesh, collection: OTHER };

fn record(id: [u8; 16], body: Option<Vec<u8>>, by: usize) -> Record {
    let draft = Draft { space: Space::Mesh, collection: OTHER, id: RecordId(id), body };
    draft.sign(&KEYS[by], MESH, Stamp::at(1)).unwrap()
}

fn named_id(nth: u64) -> RecordId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&nth.to_be_bytes());
    RecordId(id)
}

/// A record of the `nth` thing.
pub(crate) fn named(nth: u64, text: &str, at: u64) -> Record {
    let body = Some(text.as_bytes().to_vec());
    let draft = Draft { space: Space::Mesh, collection: OTHER, id: named_id(nth), body };
    draft.sign(&KEYS[0], MESH, Stamp::at(at)).unwrap()
}

fn key(record: &Record) -> RecordKey {
    RecordKey { id: record.id, owner: Some(record.owner()) }
}

fn changed(mesh: MeshId, of: &Record, record: Option<Arc<Record>>) -> Change {
    let Record { space, collection, .. } = *of;
    Change::Record { mesh, space, collection, key: key(of), record }
}

pub(crate) fn change(record: &Record) -> Change {
    changed(MESH, record, Some(Arc::new(record.clone())))
}

pub(crate) fn forget(record: &Record) -> Change {
    changed(MESH, record, None)
}

#[test]
fn records_are_found_by_the_beginning_of_their_ids() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let (one, other) = (record([1; 16], None, 0), record([1; 16], Some(vec![7]), 1));
    let last = record([0xff; 16], Some(vec![8]), 0);
    let all = [&one, &other, &last];
    store.commit(&all.map(change)).unwrap();
    let reader = store.reader();
    let found = |first: &[u8]| find(&reader, &SHELF, first, |_| true).unwrap();
    let mut both = found(&[1; 8]);
    both.sort_by_key(|record| record.body.is_some());
    assert_eq!(both, [one.clone(), other.clone()], "of both owners, a deletion too");
    assert_eq!(found(&[0xff; 16]), std::slice::from_ref(&last));
    assert_eq!(found(&[]).len(), 3);
    assert_eq!(found(&[2]), []);
    let live = find(&reader, &SHELF, &[1], |record| record.body.is_some()).unwrap();
    assert_eq!(live, [other]);
    let elsewhere = Shelf { mesh: MeshId([9; 16]), ..SHELF };
    assert_eq!(find(&reader, &elsewhere, &[], |_| true).unwrap(), []);
    let next = Shelf { collection: CollectionNumber(OTHER.0 + 1), ..SHELF };
    assert_eq!(find(&reader, &next, &[], |_| true).unwrap(), []);
    store.commit(&[forget(&one), forget(&one)]).unwrap();
    assert_eq!(found(&[]).len(), 2);
}

#[test]
fn a_start_knows_the_heads_of_its_own_mesh_and_no_others() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let (ours, deleted) = (record([1; 16], Some(vec![7]), 0), record([2; 16], None, 0));
    store
        .commit(&[
            change(&ours),
            change(&deleted),
            changed(MeshId([9; 16]), &ours, Some(Arc::new(ours.clone()))),
        ])
        .unwrap();
    let heads = store.summary(ME, Some(MESH)).unwrap().records;
    let told: Vec<_> = heads.iter().map(|stored| (stored.head, stored.deleted)).collect();
    assert_eq!(told, [(ours.head(MESH), false), (deleted.head(MESH), true)]);
}

/// More than one thread reads; and one alone, where some rows are of another mesh.
#[test]
fn a_start_knows_the_heads_of_many_records_each_once_and_in_their_order() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let one = named(0, "text", 1);
    let nth = |n: u64| Record { id: named_id(n), ..one.clone() };
    let all: Vec<Record> = (0..1_501).map(nth).collect();
    store.commit(&all.iter().map(change).collect::<Vec<_>>()).unwrap();
    let expected: Vec<_> = all.iter().map(|record| record.head(MESH)).collect();
    let heads = |store: &Store| -> Vec<_> {
        let records = store.summary(ME, Some(MESH)).unwrap().records;
        records.iter().map(|stored| stored.head).collect()
    };
    assert!(heads(&store) == expected);
    for other in [MeshId([0; 16]), MeshId([0xff; 16])] {
        store.commit(&[changed(other, &one, Some(Arc::new(one.clone())))]).unwrap();
        assert!(heads(&store) == expected);
        store.commit(&[changed(other, &one, None)]).unwrap();
    }
}

#[test]
fn peers_are_sent_as_many_as_fit_into_a_message() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let large = |n: u8| record([n; 16], Some(vec![n; RECORD_BODY_BYTES_MAX]), 0);
    let all: Vec<Record> = (0..100).map(large).collect();
    store.commit(&all.iter().map(change).collect::<Vec<_>>()).unwrap();
    let reader = store.reader();
    let sent = |keys: &[RecordKey]| {
        let answer = answer(&reader, &SHELF, keys).unwrap();
        let Message::Records(records) = answer else { panic!("{answer:?}") };
        records
    };
    let missing = record([200; 16], None, 0);
    let keys: Vec<RecordKey> = [&missing].into_iter().chain(&all).map(key).collect();
    let records = sent(&keys);
    assert_eq!(records, all[..records.len()], "without the one that is not here");
    let bytes = Message::<mesh::wire::run::Run>::Records(records.clone()).encode().len();
    assert!(bytes <= WANT_REPLY_BYTES + 1_024 && bytes > WANT_REPLY_BYTES - 9_000, "{bytes}");
    assert!(Message::decode(&Message::<mesh::wire::run::Run>::Records(records).encode()).is_ok());
    assert_eq!(sent(&keys[100..]), all[99..]);
}

fn content(of: &Record, bytes: Option<&[u8]>) -> Change {
    let Record { space, collection, .. } = *of;
    let bytes = bytes.map(|bytes| Arc::new(bytes.to_vec().into()));
    Change::Content { mesh: MESH, space, collection, key: key(of), bytes }
}

/// A record with these bytes apart.
fn with_apart(id: u8, bytes: &[u8]) -> Record {
    let (collection, id) = (OTHER, RecordId([id; 16]));
    let draft = Draft { space: Space::Mesh, collection, id, body: Some(vec![7]) };
    draft.sign_with(Some(Apart::of(bytes)), &KEYS[0], MESH, Stamp::at(1)).unwrap()
}

#[test]
fn bytes_apart_are_kept_told_of_at_a_start_and_dropped() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk).unwrap();
    let (one, other) = (with_apart(1, b"one"), with_apart(2, b"other"));
    let (plain, first) = (record([3; 16], None, 0), content(&one, Some(b"one")));
    store.commit(&[change(&one), first, change(&other), change(&plain)]).unwrap();
    let told = |store: &Store| {
        let stored = store.summary(ME, Some(MESH)).unwrap().records;
        stored.iter().map(|stored| (stored.apart, stored.held)).collect::<Vec<_>>()
    };
    assert_eq!(told(&store), [(one.apart, true), (other.apart, false), (None, false)]);
    assert_eq!(store.reader().check().unwrap().findings.len(), 0);
    store.commit(&[content(&one, None), content(&other, Some(b"other"))]).unwrap();
    assert_eq!(told(&store), [(one.apart, false), (other.apart, true), (None, false)]);
    // One that is not its record's, and one whose record is gone.
    store.commit(&[content(&one, Some(b"something else")), forget(&other)]).unwrap();
    let findings = store.reader().check().unwrap().findings;
    let wrong = findings.iter().filter(|finding| finding.problem == Problem::Content);
    assert_eq!(wrong.count(), 2);
}

#[test]
fn peers_are_sent_contents_as_many_as_fit_and_told_of_those_that_lack() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let bytes = |n: u8| vec![n; FILE_BYTES_MAX];
    let all: Vec<Record> = (0..4).map(|n| with_apart(n, &bytes(n))).collect();
    let both = (0..).zip(&all).flat_map(|(n, of)| [change(of), content(of, Some(&bytes(n)))]);
    store.commit(&both.collect::<Vec<_>>()).unwrap();
    let reader = store.reader();
    let missing = [with_apart(9, b"gone"), with_apart(8, b"unknown")].map(|record| key(&record));
    let keys: Vec<RecordKey> = missing[..1].iter().copied().chain(all.iter().map(key)).collect();
    let answer = contents(&reader, &SHELF, &keys, vec![missing[1]]).unwrap();
    let bytes_sent = answer.encode().len();
    assert!(bytes_sent < mesh::limits::FRAME_BYTES_MAX, "{bytes_sent}");
    let Message::Contents(sent) = answer else { panic!("{answer:?}") };
    assert_eq!(sent.lacking, [missing[1], missing[0]]);
    let sent: Vec<_> =
        sent.contents.iter().map(|content| (content.key, content.bytes.len())).collect();
    assert_eq!(sent, [(key(&all[0]), FILE_BYTES_MAX), (key(&all[1]), FILE_BYTES_MAX)]);
}

#[test]
fn a_carrier_is_handed_records_with_their_bytes_as_many_as_fit_and_gives_them_on() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let bytes = |n: u8| vec![n; if n < 2 { 10 } else { FILE_BYTES_MAX }];
    let all: Vec<Record> = (0..4).map(|n| with_apart(n, &bytes(n))).collect();
    let both = (0..).zip(&all).flat_map(|(n, of)| [change(of), content(of, Some(&bytes(n)))]);
    let (plain, unheld) = (record([9; 16], None, 0), with_apart(8, b"not here"));
    let rest = [change(&plain), change(&unheld)];
    store.commit(&both.chain(rest).collect::<Vec<_>>()).unwrap();
    let keys: Vec<RecordKey> = [&plain, &unheld].into_iter().chain(&all).map(key).collect();
    let handed = carried::hand_over_whole(&store.reader(), ROOM, (&SHELF, &keys)).unwrap();
    let Some(Message::Parcel(parcel)) = &handed else { panic!("{handed:?}") };
    assert!(parcel.of.is_none() && parcel.contents.iter().all(Whole::is_whole));
    let records: Vec<&Record> = parcel.contents.iter().map(|whole| &whole.record).collect();
    assert_eq!(records, [&all[0], &all[1], &all[2]], "those with bytes that are here");
    let none = carried::hand_over_whole(&store.reader(), ROOM, (&SHELF, &keys[..2])).unwrap();
    assert!(none.is_none(), "{none:?}");
    // As the carrier keeps it.
    let of = NodeId([7; 32]);
    let kept = parcel.contents.iter().map(|whole| {
        let load = Load::Whole(whole.clone());
        let (log, after, _) = load.place();
        (CarriedAt { of, room: ROOM, log, after }, Arc::new(load))
    });
    let kept: Vec<(CarriedAt, Arc<Load>)> = kept.collect();
    let carriage = Change::Carriage {
        of,
        room: ROOM,
        carriage: Some(Carriage { nodes: Vec::new(), asked_ms: 1 }),
    };
    let loads = kept.iter().map(|(at, load)| {
        let load = Some(Arc::clone(load));
        Change::Load { at: *at, since_ms: 1, load }
    });
    store.commit(&loads.chain([carriage]).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.reader().check().unwrap().findings.len(), 0);
    let at: Vec<CarriedAt> = kept.iter().map(|(at, _)| *at).collect();
    let given = carried::give_on(&store.reader(), &at).unwrap();
    let Some(Message::Parcel(given)) = given else { panic!("{given:?}") };
    assert_eq!((given.of, given.contents.len()), (Some(of), 3));
    let mut all = parcel.contents.clone();
    all.sort_by_key(|whole| {
        at.iter().position(|it| it.log == Load::Whole(whole.clone()).place().0)
    });
    assert_eq!(given.contents, all);
}

#[test]
fn a_check_finds_records_that_are_not_their_owners_or_not_in_their_place() {
    let store = |change: &[Change]| {
        let mut store = Store::on(CrashingBackend::new(0)).unwrap();
        store.commit(change).unwrap();
        let report = store.reader().check().unwrap();
        report.findings.iter().filter(|finding| finding.problem == Problem::Forged).count()
    };
    let good = record([1; 16], Some(vec![7]), 0);
    let forged = Record { stamp: Stamp::at(2), ..good.clone() };
    let moved = Change::Record {
        mesh: MESH,
        space: Space::Mesh,
        collection: OTHER,
        key: RecordKey { id: RecordId([2; 16]), owner: Some(good.owner()) },
        record: Some(Arc::new(good.clone())),
    };
    let formless = Draft {
        space: Space::Mesh,
        collection: profile::COLLECTION.number,
        id: RecordId([1; 16]),
        body: Some(vec![7]),
    };
    let formless = formless.sign(&KEYS[0], MESH, Stamp::at(1)).unwrap();
    assert_eq!(store(&[change(&good)]), 0);
    assert_eq!(store(&[change(&forged)]), 1);
    assert_eq!(store(&[moved]), 1);
    assert_eq!(store(&[change(&formless)]), 1);
}

/// A file of an agent, written and sealed as the place of its key wants it.
fn agent_file(at: &RoomPlace, (agent, name): (&str, &str), bytes: &[u8]) -> [Change; 2] {
    let (by, stamp) = (&KEYS[0], Stamp::at(7_000));
    let draft = agent_files::draft(at, (agent, name), bytes);
    let sealed = agent_files::apart_name(draft.id, by.print());
    let apart = at.cover.write_apart(&sealed, bytes.to_vec());
    let draft = at.cover.write(draft, by.print(), stamp);
    let record = draft.sign_with(Some(Apart::of(&apart)), by, MESH, stamp).unwrap();
    [change(&record), content(&record, Some(&apart))]
}

#[test]
fn files_of_an_agent_are_read_in_the_place_of_its_key() {
    let opener = RoomKey::of("a key of some length");
    let group = Group::Key(KEYS[0].print());
    let place = directory(MESH, &opener);
    let seal = Seal::of_directory(MESH, group, &opener);
    let sealed = RoomRecord { seal: Some(seal), ..room_record() };
    let at = sealed.place_of_records(place).unwrap();
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let mut batch = vec![Change::Room { room: place, record: sealed }];
    batch.extend(agent_file(&at, ("ann", "SOUL.md"), b"kind"));
    batch.extend(agent_file(&at, ("ann", "AGENTS.md"), b"few"));
    batch.extend(agent_file(&at, ("bob", "USER.md"), b"another's"));
    store.commit(&batch).unwrap();
    let reader = store.reader();
    let of = owned::Of { mesh: MESH, place, key: KEYS[0].print(), agent: "ann" };
    let names: Vec<_> = owned::files(&reader, &of)
        .unwrap()
        .into_iter()
        .map(|file| (file.name, file.length))
        .collect();
    assert_eq!(names, [("AGENTS.md".to_owned(), 3), ("SOUL.md".to_owned(), 4)]);
    let file = |of: &owned::Of<'_>, name: &str| owned::file(&reader, of, name).unwrap();
    let (view, bytes) = file(&of, "SOUL.md").unwrap();
    assert_eq!((view.at_ms, bytes.as_deref()), (7, Some(&b"kind"[..])));
    assert_eq!(file(&of, "USER.md"), None);
    let others = owned::Of { key: KEYS[1].print(), ..of };
    assert_eq!(file(&others, "SOUL.md"), None, "of another key");
    let nowhere = owned::Of { place: ROOM, ..of };
    assert_eq!(owned::files(&reader, &nowhere).unwrap(), []);
}
