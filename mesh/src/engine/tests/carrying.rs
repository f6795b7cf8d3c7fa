//! Two nodes that are never up together, and a third one that carries between them what it cannot read.

use std::collections::BTreeSet;

use super::{
    pairs::Two,
    room_records::{new_room, set, title},
    shared::{making, plans, sharing},
    world::{STEP, World, parcel},
    *,
};
use crate::{
    api::{command::ShareAct, status::RecordStatus},
    limits::{
        CARRIED_AT_ONCE_MAX, CARRIED_FOR, CARRIED_HEAD_BYTES, CARRIED_HEADS_MAX, CARRY_ASKED_AGAIN,
        CARRY_RECHECKED, CARRY_SHARES_MIN, OWED_STORED_AFTER, RECORD_AHEAD_MAX,
    },
    wire::{
        carry::{Awaited, Carriage, Carrying, Load, Owed, Parcel},
        message::Head,
        run::Verified,
        seal::Token,
    },
};

/// Ann is at the first node, Bob at the second; the third has the key of neither.
pub(super) const ANN: usize = 0;
pub(super) const BOB: usize = 1;
pub(super) const THIRD: usize = 2;
/// Who is connected with whom.
pub(super) const ALL: [usize; 3] = [0, 0, 0];
pub(super) const BOB_AWAY: [usize; 3] = [0, 1, 0];
pub(super) const ANN_AWAY: [usize; 3] = [1, 0, 0];

pub(super) fn heard_from(world: &World, n: usize, texts: &[&str]) -> Vec<String> {
    let heard = world.heard(n).into_iter();
    heard.filter(|text| texts.contains(&text.as_str())).collect()
}

/// All that the third node has on its disk for a node that has handed it over, as bytes.
pub(super) fn carried(world: &World, of: usize) -> Vec<Vec<u8>> {
    let of = world.nodes[of].engine.known.cx.me;
    let loads = world.nodes[THIRD].loads().into_iter().filter(|(at, _)| at.of == of);
    loads.map(|(_, load)| crate::wire::cbor::encode(&load)).collect()
}

#[test]
fn what_one_writes_in_a_direct_room_reaches_the_other_by_a_third_alone() {
    go_by_the_third(Two::talking());
}

#[test]
fn a_relay_that_is_told_to_carries_as_others_do() {
    let third = Node::with(3, |config| config.relay = true);
    let world = World::of(vec![Node::new(1), Node::new(2), third], 2);
    go_by_the_third(Two::within(world).talk());
}

fn go_by_the_third((mut two, room): (Two, RoomId)) {
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(ANN, &ann, room, "together");
    two.world.pass(STEP * 40);
    assert!(carried(&two.world, ANN).is_empty(), "nobody is away");
    two.world.meet(&BOB_AWAY);
    two.says(ANN, &ann, room, "one");
    two.says(ANN, &ann, room, "two");
    two.world.pass(STEP * 30);
    let held = carried(&two.world, ANN);
    assert!(!held.is_empty(), "it is carried");
    let shows =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(!held.iter().any(|it| shows(it, "one") || shows(it, "together")), "and not readable");
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["one", "two"]), ["one", "two"]);
    assert!(carried(&two.world, ANN).is_empty(), "he has said that he has it");
    // And back.
    two.says(BOB, &bob, room, "three");
    two.world.pass(STEP * 30);
    assert!(!carried(&two.world, BOB).is_empty());
    two.world.meet(&BOB_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, ANN, &["three"]), ["three"]);
    assert!(carried(&two.world, BOB).is_empty());
    // What was carried is what they would have told each other.
    two.world.meet(&ALL);
    two.world.pass(STEP * 40);
    let digest = |n: usize| {
        let heads = &two.world.nodes[n].engine.known.rooms[&room].replica.logs;
        heads.heads().into_iter().map(|head| (head.log, head.seq)).collect::<Vec<_>>()
    };
    let (mut here, mut there) = (digest(ANN), digest(BOB));
    here.sort();
    there.sort();
    assert_eq!(here, there);
    assert!(!two.world.has_room(THIRD, room));
}

#[test]
fn a_direct_room_that_is_opened_while_the_other_is_away_comes_whole() {
    let mut two = Two::new();
    let ann = two.ann.clone();
    two.world.meet(&BOB_AWAY);
    let room = two.world.open(ANN, &ann, "bob").expect("he is known").room;
    two.says(ANN, &ann, room, "hello");
    two.world.pass(STEP * 60);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 120);
    assert!(two.world.has_room(BOB, room), "the pair's directory came first");
    assert_eq!(heard_from(&two.world, BOB, &["hello"]), ["hello"]);
    assert!(carried(&two.world, ANN).is_empty());
}

#[test]
fn nothing_that_a_carrier_said_it_carries_is_lost_when_it_restarts() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&BOB_AWAY);
    two.says(ANN, &ann, room, "kept");
    two.world.pass(STEP * 30);
    let before = carried(&two.world, ANN);
    assert!(!before.is_empty());
    // Ann's laptop is closed, and the third node restarts.
    two.world.meet(&[1, 2, 0]);
    two.world.restart(THIRD);
    assert_eq!(carried(&two.world, ANN), before);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["kept"]), ["kept"]);
}

#[test]
fn what_was_written_alone_is_owed_after_a_restart_too() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.says(ANN, &ann, room, "together");
    two.world.pass(STEP * 40);
    // Nobody is there.
    two.world.meet(&[0, 1, 2]);
    two.says(ANN, &ann, room, "alone");
    two.world.restart(ANN);
    two.world.meet(&BOB_AWAY);
    two.world.pass(STEP * 30);
    let held = two.world.nodes[THIRD].loads();
    assert!(!held.is_empty());
    // And no more than that: the rest he has.
    let brings = |load: &Load| matches!(load, Load::Run(run, _) if run.first == 1);
    assert!(!held.values().any(brings), "{held:?}");
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["alone"]), ["alone"]);
}

fn owed(world: &World, n: usize) -> usize {
    world.nodes[n].engine.carrying.add_to(RecordStatus::default()).rooms_owed
}

#[test]
fn nothing_is_owed_of_rooms_that_are_gone() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&[0, 1, 2]);
    two.says(ANN, &ann, room, "alone");
    let bob = two.world.nodes[BOB].engine.known.cx.me;
    let gone = RoomId([5; 16]);
    let debt = Owed { met: false, heads: Some(Vec::new()), records: None };
    let row = Change::Owed { room: gone, node: bob, owed: Some(debt) };
    two.world.nodes[ANN].rows.push(row);
    two.world.restart(ANN);
    assert_eq!(owed(&two.world, ANN), 1, "that of the room that is there");
    let rows = two.world.nodes[ANN].rows.iter();
    let mut of_gone = rows.filter(|row| matches!(row, Change::Owed { room, .. } if *room == gone));
    assert!(matches!(of_gone.next_back(), Some(Change::Owed { owed: None, .. })));
}

#[test]
fn what_a_connected_node_does_not_get_is_owed_after_a_crash_too() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&BOB_AWAY);
    // Her link to him stands, and nothing comes over it.
    let bob = two.world.nodes[BOB].engine.known.cx.me;
    two.world.nodes[ANN].give(Input::PeerUp(bob));
    two.world.pass(STEP * 30);
    two.says(ANN, &ann, room, "held up");
    let_pass(&mut two.world, CARRY_RECHECKED + OWED_STORED_AFTER);
    two.world.meet(&[0, 1, 2]);
    two.world.restart(ANN);
    assert_eq!(owed(&two.world, ANN), 1);
    two.world.meet(&BOB_AWAY);
    two.world.pass(STEP * 30);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["held up"]), ["held up"]);
}

const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];

/// They talk in this room while both are there, then each is away in turns.
fn reaches(world: &mut World, (ann, bob): (&Caller, &Caller), room: RoomId) {
    for (n, caller) in [(ANN, ann), (BOB, bob)] {
        let caller = caller.clone();
        let call = world.begin(n, Command::Join { caller, room });
        world.carry();
        world.pass(STEP * 20);
        assert!(matches!(world.reply(n, call), Some(Ok(_))), "node {n}");
    }
    world.says(ANN, ann, room, "together").expect("it is written");
    world.pass(STEP * 40);
    assert_eq!(heard_from(world, BOB, &["together"]), ["together"]);
    world.meet(&BOB_AWAY);
    world.says(ANN, ann, room, "alone").expect("it is written");
    world.pass(STEP * 30);
    assert!(!carried(world, ANN).is_empty() && !world.has_room(THIRD, room));
    world.meet(&ANN_AWAY);
    world.pass(STEP * 30);
    assert_eq!(heard_from(world, BOB, &["alone"]), ["alone"]);
    assert!(carried(world, ANN).is_empty(), "he has said that he has it");
}

#[test]
fn a_private_room_reaches_the_other_node_of_its_key_by_a_third_alone() {
    let mut world = World::new(3);
    let holders = world.presents(&[ANN, BOB]);
    let room = world.makes(ANN, &holders[0], new_room("den", false, false));
    reaches(&mut world, (&holders[0], &holders[1]), room);
}

/// Ann's shared room, which Bob has, too.
pub(super) fn sharing_world() -> (World, Caller, Caller, RoomId) {
    let mut world = World::new(3);
    world.link();
    let ann = world.come(ANN, "ann", ANNS);
    let bob = world.come(BOB, "bob", BOBS);
    let made = world.ask(ANN, making(&ann, plans())).expect("she may");
    let Outcome::Room(view) = made else { panic!("{made:?}") };
    world.ask(ANN, sharing(&ann, view.room, "bob", ShareAct::Give)).expect("it is hers");
    world.pass(STEP * 20);
    (world, ann, bob, view.room)
}

#[test]
fn a_shared_room_reaches_its_other_keys_by_a_third_alone() {
    let (mut world, ann, bob, room) = sharing_world();
    reaches(&mut world, (&ann, &bob), room);
}

#[test]
fn records_of_a_sealed_room_reach_the_other_by_a_third_alone() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    world.ask(ANN, set(&ann, room, title("changed meanwhile"))).expect("it is hers");
    world.pass(STEP * 30);
    let held = carried(&world, ANN);
    assert_eq!(held.len(), 1, "the record, and nothing else");
    let readable = b"changed meanwhile";
    assert!(!held[0].windows(readable.len()).any(|it| it == readable));
    let records = |world: &World| {
        let all = world.nodes[BOB].records();
        all.iter().filter(|it| it.collection == crate::records::details::COLLECTION.number).count()
    };
    assert_eq!(records(&world), 0);
    world.meet(&ANN_AWAY);
    world.pass(STEP * 30);
    assert_eq!(records(&world), 1);
    assert!(carried(&world, ANN).is_empty(), "he has said that he has it");
}

#[test]
fn a_record_that_comes_before_it_can_be_taken_is_given_again() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    world.ask(ANN, set(&ann, room, title("changed meanwhile"))).expect("it is hers");
    world.pass(STEP * 30);
    // Bob's clock is behind by so much that he takes no record of now.
    let behind = 2 * RECORD_AHEAD_MAX;
    let us = u64::try_from(behind.as_micros()).expect("it fits");
    world.nodes[BOB].now.wall_us -= us;
    world.meet(&ANN_AWAY);
    world.pass(CARRY_ASKED_AGAIN + STEP * 30);
    let records = |world: &World| {
        let all = world.nodes[BOB].records();
        all.iter().filter(|it| it.collection == crate::records::details::COLLECTION.number).count()
    };
    assert_eq!(records(&world), 0);
    assert_eq!(carried(&world, ANN).len(), 1, "he has not said that he has it");
    world.nodes[BOB].now.wall_us += us;
    world.pass(CARRY_ASKED_AGAIN + STEP * 30);
    assert_eq!(records(&world), 1);
    assert!(carried(&world, ANN).is_empty(), "now he has");
}

#[test]
fn a_meeting_that_is_too_short_for_anything_takes_nothing_from_what_is_carried() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&BOB_AWAY);
    two.says(ANN, &ann, room, "kept");
    two.world.pass(STEP * 30);
    let before = carried(&two.world, ANN);
    assert!(!before.is_empty());
    // Her link to him stands, and nothing comes over it.
    let bob = two.world.nodes[BOB].engine.known.cx.me;
    two.world.nodes[ANN].give(Input::PeerUp(bob));
    two.world.pass(STEP * 30);
    assert_eq!(carried(&two.world, ANN), before);
    two.world.nodes[ANN].give(Input::PeerDown(bob));
    two.world.pass(STEP * 30);
    assert_eq!(carried(&two.world, ANN), before);
    // When they meet for long enough it is called off.
    two.world.meet(&ALL);
    two.world.pass(STEP * 60);
    assert_eq!(heard_from(&two.world, BOB, &["kept"]), ["kept"]);
    assert!(carried(&two.world, ANN).is_empty());
    let mut rows = two.world.nodes[THIRD].rows.iter().filter_map(|row| match row {
        Change::Carriage { room: of, carriage, .. } if *of == room => Some(carriage.is_some()),
        _ => None,
    });
    assert_eq!(rows.next_back(), Some(false));
    assert_eq!(owed(&two.world, ANN), 0);
}

#[test]
fn of_a_record_the_latest_state_alone_is_carried() {
    let (mut world, ann, _, room) = sharing_world();
    world.pass(STEP * 40);
    world.meet(&BOB_AWAY);
    for text in ["one", "two", "three"] {
        world.ask(ANN, set(&ann, room, title(text))).expect("it is hers");
        world.pass(STEP * 30);
    }
    assert_eq!(carried(&world, ANN).len(), 1);
    let stamp = |world: &World, n: usize| {
        let all = world.nodes[n].records().into_iter();
        let of_kind = all.filter(|it| it.collection == crate::records::details::COLLECTION.number);
        of_kind.map(|it| it.stamp).max()
    };
    world.meet(&ANN_AWAY);
    world.pass(STEP * 30);
    assert_eq!(stamp(&world, BOB), stamp(&world, ANN));
    assert!(carried(&world, ANN).is_empty());
}

/// A node is told this by a member. Returns its words about what is carried in answer.
fn answers(world: &mut World, n: usize, from: NodeId, message: Message<Verified>) -> Vec<Carrying> {
    world.nodes[n].effects.clear();
    world.nodes[n].give(Input::Message { from, message });
    let words = world.nodes[n].effects.iter().filter_map(|effect| match effect {
        Effect::Send { message: Message::Carrying(word), .. } => Some(word.clone()),
        _ => None,
    });
    words.collect()
}

fn please(room: RoomId, node: NodeId, heads: Vec<Head>) -> Message<Verified> {
    let awaited = Awaited { node, pass: Token([7; 16]), heads };
    Message::Carrying(Carrying::Please { room, nodes: vec![awaited] })
}

#[test]
fn who_follows_a_room_answers_as_any_member_and_nobody_answers_to_nothing() {
    let (mut two, room) = Two::talking();
    two.world.pass(STEP * 40);
    let (liar, nobody) = (identity(9).node_id(), identity(8).node_id());
    for n in [BOB, THIRD] {
        let heads = Vec::new();
        let holds = Carrying::Holds { room, heads, full: false };
        assert_eq!(answers(&mut two.world, n, liar, please(room, nobody, Vec::new())), [holds]);
        let empty = Message::Parcel(parcel(None, room));
        assert_eq!(answers(&mut two.world, n, liar, empty), []);
    }
}

/// The rows of rooms that a node carries for another one, one after the other.
fn carriages(world: &World, n: usize, of: NodeId) -> Vec<Carriage> {
    let rows = world.nodes[n].rows.iter().filter_map(|row| match row {
        Change::Carriage { of: it, carriage, .. } if *it == of => carriage.clone(),
        _ => None,
    });
    rows.collect()
}

fn heads_of(seed: u8, seq: u64) -> Vec<Head> {
    let log = |n: usize| {
        let mut author = [seed; 32];
        author[..8].copy_from_slice(&n.to_be_bytes());
        LogId { author: NodeId(author), incarnation: 0 }
    };
    (0..CARRIED_HEADS_MAX).map(|n| Head { log: log(n), seq }).collect()
}

#[test]
fn who_asks_again_and_again_has_a_carrier_remember_no_more() {
    let mut two = Two::new();
    let (liar, room) = (identity(9).node_id(), RoomId([5; 16]));
    let nodes: Vec<Awaited> = (10..18)
        .map(|n| Awaited { node: identity(n).node_id(), pass: Token([7; 16]), heads: Vec::new() })
        .collect();
    let ask = |world: &mut World, which: usize, seq: u64| {
        let mut nodes = nodes.clone();
        let seed = u8::try_from(which).expect("few");
        nodes[which].heads = heads_of(seed, seq);
        let message = Message::Carrying(Carrying::Please { room, nodes });
        answers(world, THIRD, liar, message)
    };
    for which in (0..nodes.len()).rev() {
        let told = ask(&mut two.world, which, 1);
        assert!(matches!(&told[..], [Carrying::Holds { full: false, .. }]));
    }
    let last = carriages(&two.world, THIRD, liar).pop().expect("it is carried");
    let heads: usize = last.nodes.iter().map(|node| node.heads.len()).sum();
    assert_eq!(heads, CARRIED_HEADS_MAX);
    // They count.
    let bytes = two.world.nodes[THIRD].engine.carrying.bytes();
    assert!(bytes >= CARRIED_HEADS_MAX as u64 * CARRIED_HEAD_BYTES, "{bytes}");
    // The same again is no news for the disk.
    let rows = carriages(&two.world, THIRD, liar).len();
    ask(&mut two.world, 0, 1);
    assert_eq!(carriages(&two.world, THIRD, liar).len(), rows);
    // A start counts as before.
    two.world.restart(THIRD);
    assert_eq!(two.world.nodes[THIRD].engine.carrying.bytes(), bytes);
    // With less room it is refused.
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * 65_536);
    let told = ask(&mut two.world, 0, 1);
    assert!(matches!(&told[..], [Carrying::Holds { full: true, .. }]), "{told:?}");
    assert_eq!(two.world.nodes[THIRD].engine.carrying.bytes(), 0);
}

#[test]
fn what_a_node_cannot_take_keeps_nothing_from_it() {
    let mut two = Two::new();
    let (giver, taker, room) = (identity(9), identity(8).node_id(), RoomId([5; 16]));
    let third = &mut two.world.nodes[THIRD];
    let mesh = third.secret.mesh_id();
    third.give(Input::PeerUp(taker));
    let message = please(room, taker, Vec::new());
    third.give(Input::Message { from: giver.node_id(), message });
    // More than fits into one message.
    let count = 2 * CARRIED_AT_ONCE_MAX + 2;
    let run = |n: usize| {
        let facts = Facts { clock: 1, wall_ms: 1, kind: 99, visible: false };
        let entries = vec![RunEntry { facts, body: Carried::Here(vec![1].into()) }];
        let log = LogId { author: giver.node_id(), incarnation: n as u64 };
        let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
        run.seal(mesh, &giver)
    };
    let runs: Vec<Verified> = (0..count).map(run).collect();
    for runs in runs.chunks(CARRIED_AT_ONCE_MAX) {
        let runs = runs.to_vec();
        let message = Message::Parcel(Parcel { runs, ..parcel(None, room) });
        third.give(Input::Message { from: giver.node_id(), message });
    }
    // It takes none of them.
    let mut given = BTreeSet::new();
    for _ in 0..3 {
        third.effects.clear();
        third.now.mono += CARRY_ASKED_AGAIN;
        third.give(Input::Timeout);
        let message = Message::Carrying(Carrying::Has { room, heads: Vec::new() });
        third.give(Input::Message { from: taker, message });
        for effect in &third.effects {
            if let Effect::GiveOn { to, at } = effect {
                assert!(*to == taker && at.len() <= CARRIED_AT_ONCE_MAX);
                given.extend(at.iter().copied());
            }
        }
    }
    assert_eq!(given.len(), count);
}

/// Much time passes for all nodes alike.
pub(super) fn let_pass(world: &mut World, time: Duration) {
    for node in &mut world.nodes {
        node.now.mono += time;
        node.now.wall_ms += u64::try_from(time.as_millis()).expect("it fits");
        node.now.wall_us += u64::try_from(time.as_micros()).expect("it fits");
    }
    world.pass(STEP * 20);
}

/// Ann has written something that the third node carries for Bob; then she is away, too.
pub(super) fn left_with_the_third() -> (Two, RoomId) {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&BOB_AWAY);
    two.says(ANN, &ann, room, "left");
    two.world.pass(STEP * 30);
    assert!(!carried(&two.world, ANN).is_empty());
    two.world.meet(&[1, 2, 0]);
    (two, room)
}

#[test]
fn what_nobody_comes_for_is_carried_for_seven_days_and_no_longer() {
    let (mut two, _) = left_with_the_third();
    let_pass(&mut two.world, CARRIED_FOR - Duration::from_secs(60));
    assert!(!carried(&two.world, ANN).is_empty(), "it is time yet");
    let_pass(&mut two.world, Duration::from_secs(120));
    assert!(carried(&two.world, ANN).is_empty());
}

#[test]
fn nobody_has_it_dropped_who_is_not_the_one_that_it_is_for() {
    let (mut two, room) = left_with_the_third();
    let before = carried(&two.world, ANN);
    let heads: Vec<Head> = {
        let ann = &two.world.nodes[ANN].engine.known.rooms[&room];
        ann.replica.logs.heads()
    };
    let bob = two.world.nodes[BOB].engine.known.cx.me;
    // A member that says that it has all, that it is to be carried for Bob as far as that, and that no more is.
    let liar = identity(9).node_id();
    let awaited = Awaited { node: bob, pass: Token([7; 16]), heads: heads.clone() };
    for word in [
        Carrying::Has { room, heads: heads.clone() },
        Carrying::Please { room, nodes: vec![awaited] },
        Carrying::Please { room, nodes: Vec::new() },
    ] {
        let message = Message::Carrying(word);
        two.world.nodes[THIRD].give(Input::Message { from: liar, message });
    }
    assert_eq!(carried(&two.world, ANN), before);
    // Nor does one that offers it learn who has it.
    let offers = Message::Carrying(Carrying::Offers(vec![(room, Token([7; 16]))]));
    two.world.nodes[BOB].give(Input::PeerUp(liar));
    two.world.nodes[BOB].effects.clear();
    two.world.nodes[BOB].give(Input::Message { from: liar, message: offers });
    let told = |it: &Effect| matches!(it, Effect::Send { message: Message::Carrying(_), .. });
    assert!(!two.world.nodes[BOB].effects.iter().any(told));
    two.world.nodes[BOB].give(Input::PeerDown(liar));
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["left"]), ["left"]);
}

/// The third node with so much room for all of `--carry`.
pub(super) fn with_room(world: &mut World, bytes: u64) {
    let third = &mut world.nodes[THIRD].engine;
    third.known.config.carry = bytes;
    third.carrying = crate::engine::carrying::Carrying::new(bytes / 2);
}

#[test]
fn a_carrier_takes_no_more_than_its_bound_and_says_so() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    let share = 4_096;
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * share);
    two.world.meet(&BOB_AWAY);
    for n in 0..12 {
        two.says(ANN, &ann, room, &format!("{n}"));
    }
    two.world.pass(STEP * 30);
    let bytes: usize = carried(&two.world, ANN).iter().map(Vec::len).sum();
    assert!(bytes > 0 && (bytes as u64) < share, "{bytes}");
    let full = two.world.told_to.iter().filter(|(to, bytes)| {
        let message = Message::decode(bytes).expect("it was sent");
        let Message::Carrying(Carrying::Holds { full, .. }) = message else { return false };
        *to == ANN && full
    });
    assert!(full.count() > 0, "it says so");
    // What it holds is the beginning, so that he can take it in.
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    let heard = two.world.heard(BOB);
    assert!(heard.contains(&"0".to_owned()) && !heard.contains(&"11".to_owned()), "{heard:?}");
    // There is room again.
    two.world.meet(&BOB_AWAY);
    two.world.pass(CARRY_RECHECKED + STEP * 30);
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert!(two.world.heard(BOB).len() > heard.len());
}

#[test]
fn a_member_that_fills_its_share_leaves_others_theirs() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    with_room(&mut two.world, 2 * CARRY_SHARES_MIN * 16_384);
    let liar = identity(9).node_id();
    let nobody = identity(8).node_id();
    for n in 0..=255 {
        let awaited = Awaited { node: nobody, pass: Token([7; 16]), heads: Vec::new() };
        let word = Carrying::Please { room: RoomId([n; 16]), nodes: vec![awaited] };
        let message = Message::Carrying(word);
        two.world.nodes[THIRD].give(Input::Message { from: liar, message });
    }
    let asked = two.world.nodes[THIRD].rows.iter();
    let asked = asked.filter(|row| matches!(row, Change::Carriage { of, .. } if *of == liar));
    assert!(asked.count() < 64, "its share is full");
    two.world.meet(&BOB_AWAY);
    two.says(ANN, &ann, room, "others");
    two.world.pass(STEP * 30);
    assert!(!carried(&two.world, ANN).is_empty());
}

#[test]
fn a_carrier_that_says_that_it_carries_and_does_not_loses_nothing_for_ever() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&[0, 1, 2]);
    let liar = identity(9).node_id();
    two.world.nodes[ANN].give(Input::PeerUp(liar));
    two.says(ANN, &ann, room, "lost on the way");
    two.world.pass(STEP * 20);
    let heads: Vec<Head> = {
        let ann = &two.world.nodes[ANN].engine.known.rooms[&room];
        ann.replica.logs.heads()
    };
    let message = Message::Carrying(Carrying::Holds { room, heads, full: false });
    two.world.nodes[ANN].give(Input::Message { from: liar, message });
    two.world.nodes[ANN].give(Input::PeerDown(liar));
    // The third one is asked all the same.
    two.world.meet(&BOB_AWAY);
    two.world.pass(STEP * 30);
    assert!(!carried(&two.world, ANN).is_empty());
    two.world.meet(&ANN_AWAY);
    two.world.pass(STEP * 30);
    assert_eq!(heard_from(&two.world, BOB, &["lost on the way"]), ["lost on the way"]);
}

#[test]
fn a_carrier_that_takes_nothing_is_handed_nothing_at_each_of_its_words() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.world.pass(STEP * 40);
    two.world.meet(&[0, 1, 2]);
    let liar = identity(9).node_id();
    let node = &mut two.world.nodes[ANN];
    node.give(Input::PeerUp(liar));
    two.says(ANN, &ann, room, "wanted");
    two.world.pass(STEP * 20);
    let node = &mut two.world.nodes[ANN];
    node.effects.clear();
    // It makes up logs, and takes back what it has said to hold.
    for n in 0..20 {
        let heads = heads_of(n, u64::from(n % 3) + 1);
        let message = Message::Carrying(Carrying::Holds { room, heads, full: false });
        node.give(Input::Message { from: liar, message });
    }
    let handed = |it: &&Effect| matches!(it, Effect::HandOver { to, .. } if *to == liar);
    assert_eq!(node.effects.iter().filter(handed).count(), 1);
}
