//! Bodies of sealed rooms: as they came on the disk and towards peers, open to those who read.

use mesh::{
    api::batch::{Change, Fate, RoomRecord},
    name::{
        group::Group,
        id::{KeyPrint, MessageId, RoomId, RoomKey},
        number::{Era, Number},
    },
    wire::{
        entry::Stored,
        message::Span,
        run::Carried,
        seal::{Seal, SealContext, directory},
    },
};
use store::{Store, testing::CrashingBackend};

use crate::rows::*;

const OWNER: KeyPrint = KeyPrint([5; 16]);
const SECRET: &str = "a word that nobody else says";

fn opener() -> RoomKey {
    RoomKey::of("the key")
}

fn sealed_room(room: RoomId, seal: Seal) -> Change {
    Change::Room { room, record: RoomRecord { seal: Some(seal), ..room_record() } }
}

/// Message `seq` of log 0, sealed.
fn sealed(seq: u64) -> Stored {
    let open = stored(seq, SECRET);
    let spot = SealContext { room: ROOM, log: log_id(3), seq, kind: open.facts.kind };
    let body = Seal::of_room(Group::Key(OWNER), &opener(), ROOM).seal(&spot, &open.body);
    Stored { body: body.into(), ..open }
}

fn store_with(entry_1: Stored) -> (Store, CrashingBackend) {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    store
        .commit(&[
            sealed_room(ROOM, Seal::of_room(Group::Key(OWNER), &opener(), ROOM)),
            log(ROOM, 0, 1),
            entry(ROOM, at(0, 1), entry_1),
            era(ROOM, Era::HOME, 1, 1, &[]),
            number(ROOM, Number(1), at(0, 1), Fate::Delivered),
        ])
        .unwrap();
    (store, disk)
}

#[test]
fn readers_get_what_was_said_and_the_disk_does_not_have_it() {
    let (store, disk) = store_with(sealed(1));
    let reader = store.reader();
    let rows = [
        reader.page_since(ROOM, Number::ZERO, 9).unwrap().remove(0),
        reader.page_newest(ROOM, 9, None).unwrap().remove(0),
        reader.by_number(ROOM, Number(1)).unwrap().unwrap(),
        reader.by_message(ROOM, MessageId::new(ROOM, log_id(3), 1)).unwrap().unwrap(),
        reader.row_at(ROOM, at(0, 1)).unwrap().unwrap(),
    ];
    for row in rows {
        assert_eq!(row.said, Some(said(SECRET)));
    }
    let holds = |disk: &CrashingBackend| {
        disk.image().windows(SECRET.len()).any(|it| it == SECRET.as_bytes())
    };
    assert!(!holds(&disk));
    let (_store, disk) = store_with(stored(1, SECRET));
    assert!(holds(&disk), "what is not sealed would have been found");
}

#[test]
fn what_does_not_open_says_nothing_and_hurts_nobody() {
    let foreign = Seal::of_room(Group::Key(OWNER), &RoomKey::of("another key"), ROOM);
    let open = stored(1, SECRET);
    let spot = SealContext { room: ROOM, log: log_id(3), seq: 1, kind: open.facts.kind };
    let body = foreign.seal(&spot, &open.body);
    let forged = Stored { body: body.into(), ..stored(1, SECRET) };
    for entry in [forged, stored(1, SECRET)] {
        let (store, _) = store_with(entry);
        let row = store.reader().by_number(ROOM, Number(1)).unwrap().unwrap();
        assert_eq!((row.said, row.at), (None, at(0, 1)));
    }
}

#[test]
fn peers_get_the_sealed_bytes() {
    let (store, _) = store_with(sealed(1));
    let span = Span { log: log_id(3), after: 0, upto: 1 };
    let runs = store.reader().runs(ROOM, span, 1 << 20).unwrap().runs;
    assert_eq!(runs[0].entries[0].body, Carried::Here(sealed(1).body));
}

#[test]
fn a_restart_has_the_seal_and_the_sealed_directory() {
    let (mut store, _) = store_with(sealed(1));
    let id = directory(MESH, &opener());
    let seal = Seal::of_directory(MESH, Group::Key(OWNER), &opener());
    let listed = entry(id, at(0, 1), stored(1, "a room"));
    store.commit(&[sealed_room(id, seal.clone()), log(id, 0, 1), listed]).unwrap();
    let summary = store.summary(ME, Some(MESH)).unwrap();
    let kept = |room| summary.rooms.iter().find(|it| it.room == room).unwrap().record.seal.clone();
    assert_eq!(kept(id), Some(seal));
    assert_eq!(kept(ROOM), Some(Seal::of_room(Group::Key(OWNER), &opener(), ROOM)));
    let listed: Vec<_> = summary.directory.iter().map(|(room, at, ..)| (*room, *at)).collect();
    assert_eq!(listed, [(id, at(0, 1))]);
}
