//! Copies of messages: sends that wait for them, and questions of peers.

use super::{
    rooms::{self, words},
    world::{STEP, World},
    *,
};
use crate::{
    api::command::{Durable, MessageReceipts, SaidOk},
    limits::{
        COPIES_ASKED_EVERY, COPIES_AWAITED_FOR, COPIES_AWAITED_PER_PEER_MAX, COPIES_WANTED_MAX,
        COPIES_WITHIN_MAX, INQUIRIES_ANSWERED_PER_TICK, INQUIRY_FOR,
    },
    name::{
        id::{EntryRef, LocalRef},
        number::Era,
    },
    wire::{
        copies::{AgentState, Copied, CopyOf},
        entry::{DedupId, Parting},
    },
};

const WITHIN: Duration = Duration::from_secs(2);

/// What was asked of peers since one looked last.
#[derive(Debug, Default, PartialEq)]
struct Said {
    asked: Vec<(NodeId, CopyOf)>,
    answered: Vec<(NodeId, Copied)>,
}

impl Node {
    fn said_of_copies(&mut self) -> Said {
        let mut said = Said::default();
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::AskCopies { to, copies, .. } => {
                    said.asked.extend(copies.into_iter().map(|copy| (to, copy)));
                }
                Effect::SendCopies { to, copies, .. } => {
                    said.answered.extend(copies.into_iter().map(|copy| (to, copy)));
                }
                _ => {}
            }
        }
        said
    }

    /// A peer says that it holds an entry under this number.
    fn hears_of_copy(&mut self, from: NodeId, place: EntryRef, number: Number) {
        let copies = vec![Copied { place, mark: [0; 16], number: Some(number) }];
        let message = Message::Copies { room: self.lobby(), copies };
        self.give(Input::Message { from, message });
    }

    fn wants(&mut self, caller: &Caller, copies: usize) -> CallId {
        let durable = Some(Durable { copies, within: WITHIN });
        let say = Say { durable, ..words(self.lobby(), "hello".to_owned()) };
        self.begin(Command::Say { caller: caller.clone(), say })
    }

    fn copies_of(&self, call: CallId) -> Option<usize> {
        match self.reply(call)? {
            Ok(Outcome::Said(SaidOk { copies, .. })) => copies,
            other => panic!("{other:?}"),
        }
    }

    fn later(&mut self, time: Duration) {
        self.now.mono += time;
        self.give(Input::Timeout);
    }
}

/// The first node, an agent of it in the lobby, and its two peers. It numbers the lobby's messages itself.
fn three() -> (Node, Caller, [NodeId; 2]) {
    let mut world = World::new(3);
    world.link();
    world.pass(STEP * 5);
    let caller = world.callers[0].clone();
    let mut node = world.nodes.swap_remove(0);
    node.effects.clear();
    (node, caller, [identity(2).node_id(), identity(3).node_id()])
}

/// The place and number of the newest entry of this node that was given a number.
fn last(node: &Node) -> (EntryRef, Number) {
    let lobby = node.lobby();
    let numbers = node.rows.iter().rev().find_map(|row| match row {
        Change::Number { room, number, at, .. } if *room == lobby => Some((*number, *at)),
        _ => None,
    });
    let (number, at): (Number, LocalRef) = numbers.expect("one was");
    (node.engine.known.rooms[&lobby].replica.name_of(at), number)
}

#[test]
fn a_send_is_answered_when_as_many_nodes_have_said_so_and_asks_with_the_message() {
    let (mut node, caller, [a, b]) = three();
    let call = node.wants(&caller, 3);
    let (place, number) = last(&node);
    let said = node.said_of_copies();
    assert_eq!(said.asked, [a, b].map(|peer| (peer, CopyOf { place, number: None })));
    assert_eq!(node.copies_of(call), None);
    node.hears_of_copy(a, place, number);
    node.hears_of_copy(a, place, number);
    assert_eq!(node.copies_of(call), None, "it has said so once");
    node.hears_of_copy(b, place, number);
    assert_eq!(node.copies_of(call), Some(3));
    // Nobody who does not ask pays.
    node.say(&caller, node.lobby()).expect("a member");
    let one = node.wants(&caller, 1);
    assert_eq!(node.copies_of(one), Some(1), "it holds it itself");
    assert_eq!(node.said_of_copies(), Said::default());
}

#[test]
fn a_send_is_answered_in_time_with_the_copies_that_there_are() {
    let (mut node, caller, [a, b]) = three();
    let call = node.wants(&caller, 3);
    let (place, number) = last(&node);
    node.said_of_copies();
    // Under another number it is not known how far it is.
    node.hears_of_copy(a, place, Number(number.0 + 1));
    node.hears_of_copy(b, place, number);
    node.hears_of_copy(identity(9).node_id(), place, Number(number.0 + 1));
    node.later(COPIES_ASKED_EVERY);
    let again = node.said_of_copies().asked;
    assert_eq!(again, [(a, CopyOf { place, number: Some(number) })], "by its number");
    node.later(WITHIN);
    assert_eq!(node.copies_of(call), Some(2));
    node.said_of_copies();
    node.later(COPIES_ASKED_EVERY);
    assert_eq!(node.said_of_copies(), Said::default(), "nobody waits");
    // However long it would wait.
    let durable = Some(Durable { copies: 2, within: Duration::from_secs(1 << 30) });
    let say = Say { durable, ..words(node.lobby(), "hello".to_owned()) };
    let call = node.begin(Command::Say { caller, say });
    node.later(COPIES_WITHIN_MAX);
    assert_eq!(node.copies_of(call), Some(1));
}

#[test]
fn nodes_that_are_out_or_forked_or_have_no_part_in_the_room_are_not_counted() {
    let (mut node, caller, [a, b]) = three();
    let call = node.wants(&caller, 2);
    let (place, number) = last(&node);
    node.engine.known.cx.forked.insert(a);
    node.hears_of_copy(a, place, number);
    assert_eq!(node.copies_of(call), None, "restored from a backup, it may be so again");
    node.hears_of_copy(b, place, number);
    assert_eq!(node.copies_of(call), Some(2));
    let call = node.wants(&caller, 2);
    let (place, number) = last(&node);
    node.ask(Command::Part { node: b, why: Parting::Expelled, force: true })
        .expect("it is a member");
    node.hears_of_copy(b, place, number);
    assert_eq!(node.copies_of(call), None);
}

#[test]
fn more_copies_than_nodes_are_refused_and_any_of_a_room_in_memory() {
    let (mut node, caller, [_, b]) = three();
    let refused = |node: &mut Node, copies, room| {
        let durable = Some(Durable { copies, within: WITHIN });
        let say = Say { durable, ..words(room, "hello".to_owned()) };
        let call = node.begin(Command::Say { caller: caller.clone(), say });
        node.reply(call).and_then(Result::err)
    };
    let lobby = node.lobby();
    assert_eq!(refused(&mut node, 4, lobby), Some(Refused::TooManyCopies { max: 3 }));
    assert_eq!(refused(&mut node, 3, lobby), None);
    node.ask(Command::Part { node: b, why: Parting::Expelled, force: true })
        .expect("it is a member");
    assert_eq!(refused(&mut node, 3, lobby), Some(Refused::TooManyCopies { max: 2 }));
    for (name, ephemeral, expected) in [
        ("private", false, Refused::TooManyCopies { max: 1 }),
        ("fleeting", true, Refused::NotDurable),
    ] {
        let room = NewRoom { public: ephemeral, ..rooms::new(name, ephemeral) };
        let room = rooms::make(&mut node, &caller, room).expect("it is new");
        node.ask(Command::Join { caller: caller.clone(), room }).expect("its owner");
        assert_eq!(refused(&mut node, 2, room), Some(expected));
    }
}

#[test]
fn a_repeated_send_asks_again_and_one_that_has_no_number_yet_waits_for_it() {
    let (mut node, caller, [a, _]) = three();
    let say = |node: &Node, copies| Say {
        durable: Some(Durable { copies, within: WITHIN }),
        dedup: Some(DedupId([7; 16])),
        ..words(node.lobby(), "hello".to_owned())
    };
    let send = |node: &mut Node, copies| {
        let say = say(node, copies);
        node.begin(Command::Say { caller: caller.clone(), say })
    };
    let first = send(&mut node, 2);
    let (place, number) = last(&node);
    let again = send(&mut node, 3);
    node.hears_of_copy(a, place, number);
    assert_eq!((node.copies_of(first), node.copies_of(again)), (Some(2), None));
    node.later(WITHIN);
    assert_eq!(node.copies_of(again), Some(2));
    node.said_of_copies();
    let later = send(&mut node, 2);
    assert_eq!(node.said_of_copies().asked.len(), 2, "nothing is remembered of it");
    node.hears_of_copy(a, place, number);
    assert_eq!(node.copies_of(later), Some(2));
}

#[test]
fn a_node_that_stops_says_what_is_known_and_so_does_one_that_has_too_many_to_follow() {
    let (mut node, caller, _) = three();
    let patient = |node: &mut Node| {
        let durable = Some(Durable { copies: 2, within: COPIES_WITHIN_MAX });
        let say = Say { durable, ..words(node.lobby(), "hello".to_owned()) };
        node.begin(Command::Say { caller: caller.clone(), say })
    };
    let calls: Vec<CallId> = (0..COPIES_WANTED_MAX).map(|_| patient(&mut node)).collect();
    let over = patient(&mut node);
    assert_eq!(node.copies_of(over), Some(1));
    let answers = |node: &Node| {
        let is_answer = |effect: &&Effect| matches!(effect, Effect::Reply { .. });
        node.effects.iter().filter(is_answer).count()
    };
    let before = answers(&node);
    node.begin(Command::Stop);
    assert_eq!(answers(&node), before + calls.len(), "all of them waited");
    assert_eq!(node.copies_of(calls[0]), Some(1));
}

#[test]
fn all_three_hold_a_message_whichever_of_them_numbers_it() {
    let mut world = World::new(3);
    world.link();
    world.pass(STEP * 5);
    for n in 0..3 {
        let durable = Some(Durable { copies: 3, within: WITHIN });
        let say = Say { durable, ..words(world.lobby(), "hello".to_owned()) };
        let call = world.begin(n, Command::Say { caller: world.callers[n].clone(), say });
        world.carry();
        let Some(Ok(Outcome::Said(said))) = world.reply(n, call) else { panic!("of node {n}") };
        assert_eq!(said.copies, Some(3), "of node {n}");
    }
}

/// A question of a peer for an entry of the lobby.
fn question(node: &Node, place: EntryRef, number: Option<Number>) -> Message<Verified> {
    let copies = vec![Copied { place, mark: [1; 16], number }];
    Message::AskCopies { room: node.lobby(), copies }
}

#[test]
fn a_peer_is_answered_once_the_message_and_its_number_are_here() {
    let (mut node, _, [a, b]) = three();
    let run = said_at(&node, 2, 1).run().clone();
    let place = EntryRef { log: run.log, seq: run.last() };
    let asks = |node: &mut Node, from, number| {
        let message = question(node, place, number);
        node.give(Input::Message { from, message });
    };
    asks(&mut node, a, None);
    // A number that is not given yet.
    let lobby = node.lobby();
    let next =
        Era::HOME.number(node.engine.known.rooms[&lobby].order.numbering.known(Era::HOME) + 2);
    asks(&mut node, b, Some(next));
    assert_eq!(node.said_of_copies().answered, []);
    node.hear(&run);
    let copied = Copied { place, mark: [1; 16], number: None };
    assert_eq!(node.said_of_copies().answered, [(a, copied)], "the store is asked");
    let more = said_at(&node, 3, 1).run().clone();
    node.hear(&more);
    let copied = Copied { number: Some(next), ..copied };
    assert_eq!(node.said_of_copies().answered, [(b, copied)]);
    asks(&mut node, a, Some(next));
    assert_eq!(node.said_of_copies().answered, [(a, copied)], "at once");
}

#[test]
fn questions_are_forgotten_in_time_with_their_peer_and_beyond_so_many() {
    let (mut node, _, [a, b]) = three();
    let awaited = |node: &Node| {
        let receipts = &node.engine.receipts;
        let all: usize = receipts.awaited.values().map(std::collections::BTreeMap::len).sum();
        assert_eq!(all, receipts.of_peer.values().sum::<usize>());
        all
    };
    let log = LogId { author: a, incarnation: 0 };
    let asks = |node: &mut Node, from, seq| {
        let message = question(node, EntryRef { log, seq }, None);
        node.give(Input::Message { from, message });
    };
    for seq in (0..2 * COPIES_AWAITED_PER_PEER_MAX as u64).map(|seq| 1_000 + seq) {
        asks(&mut node, a, seq);
    }
    assert_eq!(awaited(&node), COPIES_AWAITED_PER_PEER_MAX);
    asks(&mut node, a, 1_000);
    asks(&mut node, b, 1_000);
    assert_eq!(awaited(&node), COPIES_AWAITED_PER_PEER_MAX + 1);
    node.give(Input::PeerDown(a));
    assert_eq!(awaited(&node), 1);
    node.later(COPIES_AWAITED_FOR);
    assert_eq!(awaited(&node), 0);
    // Nobody is told of rooms that are not its business.
    let local = node.engine.known.cx.private_directory;
    for room in [local, RoomId([9; 16])] {
        let copies = vec![Copied { place: EntryRef { log, seq: 1 }, mark: [1; 16], number: None }];
        node.give(Input::Message { from: a, message: Message::AskCopies { room, copies } });
    }
    assert_eq!(awaited(&node), 0);
}

/// Asks the fate of a message, and of whom that is asked.
fn inquires(node: &mut Node, place: EntryRef, number: Number) -> (CallId, Vec<(NodeId, u64)>) {
    let room = node.lobby();
    let log = node.engine.known.rooms[&room].replica.logs.ix(place.log).expect("it is here");
    let at = LocalRef { log, seq: place.seq };
    node.effects.clear();
    let call = node.begin(Command::Receipts { by: KEY.into(), room, at, number });
    let asked = node.effects.iter().filter_map(|effect| match effect {
        Effect::AskReceipt { to, nonce, copy, .. } => {
            assert_eq!(*copy, CopyOf { place, number: Some(number) });
            Some((*to, *nonce))
        }
        _ => None,
    });
    (call, asked.collect())
}

fn told(node: &Node, call: CallId) -> Option<MessageReceipts> {
    match node.reply(call)? {
        Ok(Outcome::Receipts(receipts)) => Some(*receipts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_nodes_are_asked_what_became_of_a_message_and_who_is_silent_is_unknown() {
    let (mut node, caller, [a, b]) = three();
    node.say(&caller, node.lobby()).expect("a member");
    let (place, number) = last(&node);
    let (call, asked) = inquires(&mut node, place, number);
    let nonce = asked[0].1;
    assert_eq!(asked, [(a, nonce), (b, nonce)]);
    let answers = |node: &mut Node, from, nonce, held| {
        let agents = vec![AgentState { agent: "x".into(), confirmed: held, at_ms: 7 }];
        node.give(Input::Message { from, message: Message::Receipt { nonce, held, agents } });
    };
    answers(&mut node, a, nonce + 1, true);
    answers(&mut node, identity(9).node_id(), nonce, true);
    answers(&mut node, a, nonce, true);
    answers(&mut node, a, nonce, false);
    assert_eq!(told(&node, call), None, "one is silent");
    node.later(INQUIRY_FOR);
    let receipts = told(&node, call).expect("it is answered in time");
    assert_eq!((receipts.of, receipts.unknown), (3, vec![b]));
    assert_eq!(receipts.stored.iter().map(|stored| stored.node).collect::<Vec<_>>(), [a]);
    assert_eq!(receipts.agents.len(), 1, "each node speaks once");
    // At once, when all have answered or are gone; one that holds it not is no unknown one.
    let (call, asked) = inquires(&mut node, place, number);
    answers(&mut node, b, asked[0].1, false);
    node.give(Input::PeerDown(a));
    let receipts = told(&node, call).expect("nobody is left to answer");
    assert_eq!((receipts.stored.len(), receipts.unknown), (0, vec![a]));
    let (call, _) = inquires(&mut node, place, number);
    node.begin(Command::Stop);
    assert!(told(&node, call).is_some(), "it does not hold up the end");
}

#[test]
fn a_peer_is_answered_so_often_and_of_rooms_that_are_its_business() {
    let (mut node, _, [a, b]) = three();
    let copied = Copied {
        place: EntryRef { log: LogId { author: a, incarnation: 0 }, seq: 1 },
        mark: [1; 16],
        number: None,
    };
    let answered = |node: &mut Node, from, room| {
        node.effects.clear();
        let message = Message::AskReceipt { nonce: 5, room, copied };
        node.give(Input::Message { from, message });
        node.effects
            .iter()
            .any(|effect| matches!(effect, Effect::SendReceipt { to, nonce: 5, .. } if *to == from))
    };
    let (lobby, local) = (node.lobby(), node.engine.known.cx.private_directory);
    assert!(!answered(&mut node, a, local) && !answered(&mut node, a, RoomId([9; 16])));
    let many = (0..50).filter(|_| answered(&mut node, a, lobby)).count();
    assert_eq!(many, INQUIRIES_ANSWERED_PER_TICK as usize);
    assert!(answered(&mut node, b, lobby));
    node.later(TICK);
    assert!(answered(&mut node, a, lobby));
}
