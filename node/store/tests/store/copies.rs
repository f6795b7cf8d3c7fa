//! The disk's word about copies of messages.

use mesh::{
    api::batch::{Change, Fate},
    name::{
        id::EntryRef,
        number::{Era, Number},
    },
    wire::{
        copies::{Copied, mark},
        message::Message,
    },
};
use store::{
    Reader, Store,
    copies::{self, Holding},
    testing::CrashingBackend,
};

use crate::rows::*;

/// Two messages of one log; the second has no number yet.
fn two() -> Store {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let mut batch = vec![tip(ROOM, Number(1)), log_settled(ROOM, 0, 2, 1)];
    batch.push(era(ROOM, Era::HOME, 1, 1, &[]));
    for seq in [1, 2] {
        batch.push(entry(ROOM, at(0, seq), stored(seq, &format!("message {seq}"))));
    }
    batch.push(number(ROOM, Number(1), at(0, 1), Fate::Delivered));
    store.commit(&batch).unwrap();
    store
}

fn copied(seq: u64, number: Option<u64>) -> Copied {
    let place = EntryRef { log: log_id(3), seq };
    Copied {
        place,
        mark: mark(&stored(seq, &format!("message {seq}"))),
        number: number.map(Number),
    }
}

/// The messages that a store says it holds, and their numbers.
fn answered(reader: &Reader, asked: &[Copied]) -> Vec<(u64, u64)> {
    match copies::answer(reader, ROOM, asked).unwrap() {
        None => Vec::new(),
        Some(Message::Copies { copies, .. }) => {
            let pair = |copied: &Copied| (copied.place.seq, copied.number.unwrap().0);
            copies.iter().map(pair).collect()
        }
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_held_with_its_body_and_the_number_and_under_its_mark() {
    let store = two();
    let reader = store.reader();
    for number in [None, Some(1)] {
        assert_eq!(answered(&reader, &[copied(1, number), copied(2, number)]), [(1, 1)]);
    }
    let another = Copied { mark: [0; 16], ..copied(1, None) };
    let absent = Copied { place: EntryRef { log: log_id(7), seq: 1 }, ..copied(1, None) };
    assert_eq!(answered(&reader, &[another, absent, copied(1, Some(2)), copied(3, None)]), []);
    // A question names the mark of each message that is here.
    let wanted = [1, 3].map(|seq| copied(seq, Some(1)).name());
    let Some(Message::AskCopies { copies, .. }) = copies::ask(&reader, ROOM, &wanted).unwrap()
    else {
        panic!("it is here")
    };
    assert_eq!(copies, [copied(1, Some(1))]);
    assert!(copies::ask(&reader, ROOM, &[copied(3, None).name()]).unwrap().is_none());
}

#[test]
fn a_message_whose_body_was_dropped_is_held_no_more_and_known_still() {
    let mut store = two();
    let holding =
        |store: &Store| copies::holding(&store.reader(), ROOM, &copied(1, Some(1))).unwrap();
    assert_eq!(holding(&store), Holding { held: true, delivered: Some(Number(1)) });
    store.commit(&[Change::Prune { room: ROOM, before_ms: u64::MAX }]).unwrap();
    assert_eq!(holding(&store), Holding { held: false, delivered: Some(Number(1)) });
    let reader = store.reader();
    assert_eq!(answered(&reader, &[copied(1, Some(1))]), []);
    let name = copied(1, Some(1)).name();
    assert!(copies::ask(&reader, ROOM, &[name]).unwrap().is_none(), "no copy is wanted of nothing");
    let Some(Message::AskReceipt { copied: asked, nonce, .. }) =
        copies::ask_receipt(&reader, 7, ROOM, name).unwrap()
    else {
        panic!("what became of it can be asked")
    };
    assert_eq!((asked, nonce), (copied(1, Some(1)), 7));
}

/// A grant of something that one agent does is no message: it has no number anywhere.
#[test]
fn an_act_is_held_without_a_number_and_with_none_that_is_asked_for() {
    let mut store = two();
    let mut act = stored(3, "an act");
    (act.facts.kind, act.facts.visible) = (52, false);
    let asked = Copied { mark: mark(&act), ..copied(3, None) };
    let batch = [log_settled(ROOM, 0, 3, 1), entry(ROOM, at(0, 3), act)];
    store.commit(&batch).unwrap();
    let reader = store.reader();
    let Some(Message::Copies { copies, .. }) =
        copies::answer(&reader, ROOM, &[asked, copied(2, None)]).unwrap()
    else {
        panic!("it is held")
    };
    assert_eq!(copies, [asked]);
    let numbered = Copied { number: Some(Number(1)), ..asked };
    let another = Copied { mark: [0; 16], ..asked };
    assert!(copies::answer(&reader, ROOM, &[numbered, another]).unwrap().is_none());
}
