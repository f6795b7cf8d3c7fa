use super::*;
use crate::{
    name::{
        id::{LocalRef, RoomId},
        time::Now,
    },
    wire::entry::Facts,
};

fn log(author: u8) -> LogId {
    LogId { author: NodeId([author; 32]), incarnation: 0 }
}

fn request(seq: u64) -> EntryRef {
    EntryRef { log: log(1), seq }
}

fn act(seq: u64, word: Word) -> DeliveryAct {
    DeliveryAct { request: request(seq), to: "bob".into(), key: None, word }
}

fn written(author: u8, seq: u64) -> Written {
    Written {
        room: RoomId([9; 16]),
        place: EntryRef { log: log(author), seq },
        at: LocalRef { log: author.into(), seq },
        facts: Facts {
            clock: seq,
            wall_ms: seq,
            kind: crate::wire::kinds::DELIVERY,
            visible: false,
        },
        now: Now { mono: Duration::ZERO, wall_ms: 0, wall_us: 0 },
    }
}

fn apply(all: &mut Deliveries, author: u8, seq: u64, act: DeliveryAct) -> Folded {
    all.apply(written(author, seq), act, &mut Vec::new())
}

fn judged(all: &Deliveries, seq: u64) -> Option<(Stage, u8, u64)> {
    let fate = all.of(request(seq))?.judged(request(seq), &"bob".into(), |_| true)?;
    Some((fate.stage, fate.node.0[0], fate.at_ms))
}

#[test]
fn the_state_does_not_depend_on_the_order_in_which_words_come() {
    let words = [
        (2, 5, Word::Arrived),
        (3, 4, Word::Arrived),
        (1, 9, Word::Failed(Reason::Expired)),
        (3, 8, Word::Delivered),
        (2, 7, Word::Delivered),
        (2, 8, Word::Delivered),
    ];
    for turn in 0..words.len() {
        let mut all = Deliveries::default();
        let (last, first) = words.split_at(turn);
        for (author, seq, word) in first.iter().chain(last) {
            assert_eq!(apply(&mut all, *author, *seq, act(3, word.clone())), Folded::Taken);
        }
        assert_eq!(judged(&all, 3), Some((Stage::Delivered, 2, 7)), "what says most, the first");
        all.retract(Void::From(EntryRef { log: log(2), seq: 6 }));
        assert_eq!(judged(&all, 3), Some((Stage::Delivered, 3, 8)));
        all.retract(Void::From(EntryRef { log: log(3), seq: 5 }));
        assert_eq!(judged(&all, 3), Some((Stage::Failed, 1, 9)));
        all.retract(Void::From(EntryRef { log: log(1), seq: 4 }));
        assert_eq!(judged(&all, 3), Some((Stage::Arrived, 3, 4)));
        all.retract(Void::From(EntryRef { log: log(1), seq: 3 }));
        assert_eq!((judged(&all, 3), all.bytes()), (None, 0), "the request itself does not count");
    }
}

#[test]
fn only_the_node_of_the_author_gives_up_and_only_others_refuse() {
    let proves = |spoken: &Spoken<'_>| spoken.node == NodeId([2; 32]);
    let stage = |author, word| {
        let mut all = Deliveries::default();
        apply(&mut all, author, 9, act(3, word));
        let words = all.of(request(3)).expect("it was said");
        words.judged(request(3), &"bob".into(), proves).map(|fate| fate.stage)
    };
    assert_eq!(stage(1, Word::Failed(Reason::Expired)), Some(Stage::Failed));
    assert_eq!(stage(2, Word::Failed(Reason::Expired)), None);
    let refused = || Word::Failed(Reason::Refused("inbound".to_owned()));
    assert_eq!((stage(1, refused()), stage(2, refused())), (None, Some(Stage::Failed)));
    assert_eq!(
        (stage(1, Word::Delivered), stage(2, Word::Delivered)),
        (None, Some(Stage::Delivered))
    );
}

#[test]
fn of_one_author_the_newest_requests_are_known_in_any_order_of_words() {
    let most = DELIVERIES_PER_LOG_MAX as u64;
    let all: Vec<u64> = (1..=most + 10).collect();
    let mut backwards = all.clone();
    backwards.reverse();
    for order in [all, backwards] {
        let mut all = Deliveries::default();
        for seq in order {
            apply(&mut all, 2, 1_000 + seq, act(seq, Word::Arrived));
        }
        assert_eq!(all.requests().count(), DELIVERIES_PER_LOG_MAX);
        assert!(all.is_forgotten(request(10)) && !all.is_forgotten(request(11)));
        assert_eq!((judged(&all, 10), judged(&all, 11).is_some()), (None, true));
        assert_eq!(all.bytes(), all.of.values().map(Words::bytes).sum::<usize>());
    }
}

#[test]
fn words_of_one_request_are_bounded_and_the_same_in_any_order() {
    let most = u8::try_from(DELIVERY_WORDS_MAX).expect("few");
    let judge = |authors: &mut dyn Iterator<Item = u8>| {
        let mut all = Deliveries::default();
        for author in authors {
            apply(&mut all, author, 9, act(3, Word::Arrived));
        }
        let nodes = all.of(request(3)).expect("many").told.keys().map(|(_, node)| node.0[0]);
        nodes.collect::<Vec<u8>>()
    };
    let forwards = judge(&mut (2..2 * most));
    assert_eq!(forwards.len(), DELIVERY_WORDS_MAX);
    assert_eq!(forwards, judge(&mut (2..2 * most).rev()));
}
