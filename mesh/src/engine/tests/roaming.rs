//! Clients that come from elsewhere, and hold numbers that this node does not know.

use super::{
    asking::{FOUNDER, STEP, log, ordered},
    world::Liar,
    *,
};
use crate::{
    api::{command::Roamed as Answer, event::RoomEvent},
    limits::{
        ENTER_WITHIN, NUMBER_WITHIN, ROAM_ASK_FOR, ROAM_CLAIM_EVERY, ROAM_ERAS_AHEAD_MAX,
        ROAM_START_FOR, ROAMING_MAX,
    },
    name::{
        id::LocalRef,
        number::{Era, LANES},
    },
    wire::{
        entry::{EraClaimed, NodeAdmitted, Reached},
        message::Head,
    },
};

/// A founder in whose lobby something was said, another node's lane, and how to ask for what is behind a cursor.
struct Roamed {
    node: Node,
    lane: u32,
}

impl Roamed {
    fn new() -> Roamed {
        let mut node = Node::new(FOUNDER);
        let caller = node.joins("me");
        for _ in 0..3 {
            node.say(&caller, node.lobby()).expect("a member");
        }
        // Above this node's own: one claim does not get above it.
        let lane = LANES - 1;
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let directory = RoomId::directory(node.secret.mesh_id());
        let run = log_of(&node, directory, 6, &[admitted]);
        node.hear(&run);
        Roamed { node, lane }
    }

    /// When it has waited long enough for the other node, which never comes.
    fn alone() -> Roamed {
        let mut it = Roamed::new();
        it.node.wait(ROAM_START_FOR);
        it
    }

    /// Asks for numbers above the cursor for what was said first.
    fn roam(&mut self, cursor: Number) -> CallId {
        let room = self.node.lobby();
        let entries = vec![(LocalRef { log: 0, seq: 1 }, Some(Number(1)))];
        self.node.begin(Command::Roam { room, cursor, entries })
    }

    fn answer(&self, call: CallId) -> Option<Answer> {
        match self.node.reply(call)? {
            Ok(Outcome::Roamed(it)) => Some(it),
            other => panic!("{other:?}"),
        }
    }

    fn era(&self, c: u32) -> Era {
        Era::new(c, self.lane).expect("an era")
    }
}

#[test]
fn who_comes_from_elsewhere_gets_numbers_above_its_cursor_in_as_few_eras_as_can_be() {
    let mut it = Roamed::alone();
    let before = it.node.gave().len();
    for _ in 0..2 {
        let call = it.roam(Number(1));
        assert_eq!(it.answer(call), Some(Answer::Ready));
        assert_eq!(it.node.gave().len(), before + 1, "what has a number above it needs none");
    }
    assert_eq!(it.node.current(), Era::HOME, "its numbers are above the cursor");
    let cursor = it.era(1).number(7);
    let call = it.roam(cursor);
    assert_eq!(it.answer(call), Some(Answer::Ready));
    assert!(it.node.current() > cursor.era(), "an era above the cursor");
    let given = it.node.gave().pop().expect("it gave some");
    assert_eq!((given.era, given.items.len()), (it.node.current(), 1), "of what was said first");
    // Another cursor below that costs nothing, one above it waits.
    let (below, above) = (it.roam(cursor), it.era(9).number(1));
    assert_eq!(it.answer(below), Some(Answer::Ready));
    let call = it.roam(above);
    assert_eq!(it.answer(call), None, "one at a time");
    it.node.wait(ROAM_CLAIM_EVERY);
    assert_eq!(it.answer(call), Some(Answer::Ready));
    assert!(it.node.current() > above.era());
    assert!(it.node.engine.known.rooms[&it.node.lobby()].tip() > above);
}

/// Whoever came with a cursor from elsewhere may have to be given it.
#[test]
fn another_number_of_what_was_delivered_is_told_of_in_its_order() {
    let mut it = Roamed::alone();
    let lobby = it.node.lobby();
    let other = it.node.joins("other");
    it.node.effects.clear();
    let call = it.roam(Number(1));
    assert_eq!(it.answer(call), Some(Answer::Ready));
    it.node.say(&other, lobby).expect("a member");
    let told = it.node.effects.iter().filter_map(|effect| match effect {
        Effect::Notify { room, event } if *room == lobby => match event {
            RoomEvent::Message(it) => Some((it.number, it.at.seq, false)),
            RoomEvent::PassedOver { number, at, .. } => Some((*number, at.seq, true)),
            _ => None,
        },
        _ => None,
    });
    let told: Vec<(Number, u64, bool)> = told.collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((told[0], told[1].0, told[1].2), ((Number(4), 1, true), Number(5), false));
}

#[test]
fn nobody_uses_up_eras_with_cursors_that_it_made_up() {
    let mut it = Roamed::alone();
    let head = |node: &Node| node.engine.known.rooms[&node.lobby()].replica.logs.heads();
    let before = head(&it.node);
    let far = it.era(ROAM_ERAS_AHEAD_MAX + 1);
    let none = Number(far.0 | 1 << 60);
    for cursor in [far.number(1), none] {
        let call = it.roam(cursor);
        assert_eq!(it.answer(call), Some(Answer::Never), "{cursor:?}");
    }
    assert_eq!(head(&it.node), before, "nothing was written");
    let (cursor, room) = (it.era(ROAM_ERAS_AHEAD_MAX).number(1), RoomId([9; 16]));
    let call = it.node.begin(Command::Roam { room, cursor, entries: Vec::new() });
    assert_eq!(it.node.reply(call).map(|it| it.err()), Some(Some(Refused::NoRoom)));
    let call = it.roam(cursor);
    assert_eq!(it.answer(call), Some(Answer::Ready), "that far is served");
    // But once in an hour.
    let current = it.node.current();
    it.node.wait(ROAM_CLAIM_EVERY);
    let call = it.roam(it.era(current.c() + ROAM_ERAS_AHEAD_MAX).number(1));
    it.node.wait(ROAM_ASK_FOR);
    assert_eq!((it.answer(call), it.node.current()), (Some(Answer::Behind), current));
}

/// Seed 20965 of the simulation at d6b3f50: a member was cut off as soon as it was admitted, a client came from it, and its
/// cursor counted as the tip.
#[test]
fn who_comes_from_a_member_that_is_not_known_here_is_given_all_that_is_here() {
    let mut it = Roamed::alone();
    let cursor = Era::new(1, it.lane - 1).expect("an era").number(1);
    let call = it.roam(cursor);
    assert_eq!(it.answer(call), Some(Answer::Ready));
    assert!(it.node.current() > cursor.era(), "{:?}", it.node.current());
    let given = it.node.gave().pop().expect("a number above");
    assert_eq!((given.era, given.items.len()), (it.node.current(), 1));
}

#[test]
fn a_lobby_that_is_to_be_raised_is_heard_of_first_and_is_not_if_it_is_high_enough() {
    for (high_enough, behind) in [(false, false), (true, false), (false, true)] {
        let mut node = Node::new(FOUNDER);
        let caller = node.joins("me");
        node.say(&caller, node.lobby()).expect("a member");
        node.give(Input::PeerUp(identity(8).node_id()));
        node.engine.known.node.lobby_floor = Number(if high_enough { 1 } else { 1_000 });
        let call = node.begin_say(&caller);
        node.wait(STEP * 3);
        assert_eq!(node.said_as(call), None, "nobody has said how long it is");
        let heads = if behind { vec![Head { log: log(5), seq: 3 }] } else { Vec::new() };
        let room = node.lobby();
        node.hears_from(8, Message::Have { room, heads, answer: false });
        node.wait(STEP * 2);
        assert_eq!(node.said_as(call).is_some(), !behind, "{high_enough}");
        assert_eq!(node.current() == Era::HOME, high_enough || behind);
        node.wait(NUMBER_WITHIN);
        assert!(node.said_as(call).is_some(), "nobody waits longer than for a number");
        assert_eq!(node.engine.known.node.lobby_floor, Number::ZERO);
    }
}

/// The client reads on from there, and does not ask again for what got no number.
#[test]
fn who_comes_from_elsewhere_gets_all_the_numbers_that_it_needs() {
    let mut node = Node::with(FOUNDER, |config| config.era_capacity = Some(8));
    let caller = node.joins("me");
    for _ in 0..6 {
        node.say(&caller, node.lobby()).expect("a member");
    }
    let before = node.gave().len();
    let entries = [1, 3, 5].map(|seq| (LocalRef { log: 0, seq }, Some(Number(seq)))).to_vec();
    let (room, cursor) = (node.lobby(), Number(6));
    let call = node.begin(Command::Roam { room, cursor, entries });
    assert!(matches!(node.reply(call), Some(Ok(Outcome::Roamed(Answer::Ready)))));
    let given: Vec<_> = node.gave().split_off(before);
    let count: u32 = given.iter().flat_map(|it| &it.items).map(|it| it.count).sum();
    assert_eq!(count, 3, "the home era has two left: {given:?}");
    assert!(given.iter().all(|it| it.era == node.current()));
}

#[test]
fn who_waits_for_a_lobby_that_cannot_be_raised_is_told_so() {
    let mut node = Node::new(FOUNDER);
    let caller = node.joins("me");
    node.engine.known.node.lobby_floor = Number(1_000);
    let call = node.begin_say(&caller);
    node.engine.known.cx.out = true;
    node.wait(NUMBER_WITHIN + STEP * 2);
    assert!(matches!(node.reply(call), Some(Err(Refused::Full(_)))));
}

#[test]
fn so_many_wait_for_an_era_and_no_more() {
    let mut it = Roamed::alone();
    let call = it.roam(it.era(1).number(7));
    assert_eq!(it.answer(call), Some(Answer::Ready));
    let above = it.era(9).number(1);
    // All in one moment: after a second each is answered.
    let room = it.node.lobby();
    let entries = vec![(LocalRef { log: 0, seq: 1 }, Some(Number(1)))];
    for nth in 0..ROAMING_MAX as u64 {
        let command = Command::Roam { room, cursor: above, entries: entries.clone() };
        it.node.engine.handle(it.node.now, Input::Command { call: CallId(10_000 + nth), command });
    }
    let waits = (0..ROAMING_MAX as u64).map(|nth| CallId(10_000 + nth));
    let surplus = it.roam(above);
    assert_eq!(it.answer(surplus), Some(Answer::Behind), "it is to come again");
    assert!(waits.clone().all(|call| it.answer(call).is_none()));
    it.node.wait(ROAM_CLAIM_EVERY);
    assert!(waits.clone().all(|call| it.answer(call) == Some(Answer::Ready)), "one era for all");
}

#[test]
fn who_comes_gets_numbers_of_what_is_here_and_in_eras_of_this_node() {
    let mut it = Roamed::alone();
    let (room, before) = (it.node.lobby(), it.node.gave().len());
    let entries = vec![(LocalRef { log: 0, seq: 1_000 }, None)];
    let call = it.node.begin(Command::Roam { room, cursor: it.era(1).number(7), entries });
    assert_eq!(it.answer(call), Some(Answer::Ready));
    assert_eq!(it.node.gave().len(), before, "it is not here");
    // In the era that it opened for that, it goes on.
    let era = it.node.current();
    let tip = it.node.engine.known.rooms[&room].tip();
    let call = it.roam(tip);
    assert_eq!((it.answer(call), it.node.current()), (Some(Answer::Ready), era));
    // Beside another node that gives the numbers, it gives them in an era of its own.
    let mut node = Node::new(2);
    let (_, run) = Liar::new(FOUNDER).write(&node, &Body::Chat(said("hello")));
    node.hear(&run);
    node.hears_beacon((FOUNDER, FOUNDER), (1, 0, NONE));
    let (room, entries) = (node.lobby(), vec![(LocalRef { log: 0, seq: 1 }, Some(Number(1)))]);
    let call = node.begin(Command::Roam { room, cursor: Number(1), entries });
    assert!(matches!(node.reply(call), Some(Ok(Outcome::Roamed(Answer::Ready)))));
    assert!(node.current() > Era::HOME);
    assert_eq!(node.engine.known.cx.faults.void, 0);
}

/// 85 pairs of a reader and a room in 37 of 101 runs with real daemons: a node that had just started numbered all
/// history for the first client that came with a newer cursor, and everybody got it again.
#[test]
fn a_node_that_has_just_started_numbers_nothing_for_a_cursor_that_it_does_not_know() {
    let mut it = Roamed::new();
    let (cursor, before) = (it.era(1).number(7), it.node.gave().len());
    let call = it.roam(cursor);
    assert_eq!(it.answer(call), None, "others may be met in a moment");
    it.node.wait(ROAM_ASK_FOR);
    assert_eq!(it.answer(call), Some(Answer::Behind));
    assert_eq!((it.node.current(), it.node.gave().len()), (Era::HOME, before));
}

#[test]
fn peers_are_asked_for_the_era_of_a_cursor_and_it_is_read_again_when_it_is_known() {
    let mut it = Roamed::alone();
    it.node.give(Input::PeerUp(identity(6).node_id()));
    it.node.hears_beacon((6, 6), (1, 0, NONE));
    it.node.effects.clear();
    let call = it.roam(it.era(1).number(1));
    assert_eq!(it.answer(call), None);
    let asked = |node: &Node| {
        let have = |it: &&Effect| matches!(it, Effect::Send { message: Message::Have { answer: true, room, .. }, .. } if *room == node.lobby());
        node.effects.iter().filter(have).count()
    };
    assert_eq!(asked(&it.node), 1);
    let claim = EraClaimed { era: it.era(1), after: Era::HOME, cut: Vec::new(), seen: Vec::new() };
    let run = log_of(&it.node, it.node.lobby(), 6, &[Body::EraClaimed(claim)]);
    it.node.hear(&run);
    it.node.wait(STEP);
    assert_eq!(it.answer(call), Some(Answer::Heard));
    // One that nobody has heard of is waited for no longer than that: then all that is here is numbered above it.
    let call = it.roam(it.era(2).number(1));
    it.node.wait(ROAM_ASK_FOR + STEP);
    assert_eq!(it.answer(call), Some(Answer::Ready));
    assert!(it.node.current() > it.era(2));
}

/// Another node goes on with numbers that the client would drop.
#[test]
fn what_others_say_below_the_cursor_of_a_client_gets_a_number_above_it() {
    let mut node = Node::new(2);
    let mut founder = Liar::new(FOUNDER);
    node.wait(ROAM_START_FOR);
    let lane = *node.engine.known.cx.lanes[&identity(2).node_id()].first().expect("it has one");
    let (room, cursor) = (node.lobby(), Era::new(3, lane).expect("an era").number(1));
    let call = node.begin(Command::Roam { room, cursor, entries: Vec::new() });
    node.wait(ROAM_ASK_FOR + STEP);
    assert!(matches!(node.reply(call), Some(Ok(Outcome::Roamed(Answer::Ready)))));
    assert_eq!(node.current(), Era::HOME);
    node.hears_beacon((FOUNDER, FOUNDER), (1, 0, NONE));
    let (at, run) = founder.write(&node, &Body::Chat(said("after")));
    node.hear(&run);
    let numbers = ordered(Era::HOME, 1, &[(at.log, at.seq, 1)]);
    let (_, run) = founder.write(&node, &numbers);
    node.hear(&run);
    node.wait(STEP * 2);
    assert!(node.current() > cursor.era(), "{:?}", node.current());
    let given = node.gave().pop().expect("a number above");
    assert_eq!(given.logs, [at.log]);
}

/// A node that was cut off with a member, whose era it went into, and that hears now of the other side: of an entry of
/// another author that had a number there before the split, and of an era whose cut names it.
struct Healed {
    node: Node,
    /// Of the other side.
    member: Liar,
    late: Run,
    eras: [Era; 2],
}

impl Healed {
    fn new(late_is_here: bool) -> Healed {
        let mut node = Node::new(2);
        let mut founder = Liar::new(FOUNDER);
        let directory = RoomId::directory(node.secret.mesh_id());
        let [mut near, member] = [6, 7].map(Liar::new);
        let eras = [LANES - 2, LANES - 1].map(|lane| Era::new(1, lane).expect("an era"));
        for (seed, era) in [(6, eras[0]), (7, eras[1])] {
            let lane = era.lane().expect("it has one");
            let admitted =
                Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
            let run = log_of(&node, directory, seed, &[admitted]);
            node.hear(&run);
        }
        let (first, run) = founder.write(&node, &Body::Chat(said("before")));
        node.hear(&run);
        node.founder_writes(&mut founder, &ordered(Era::HOME, 1, &[(first.log, first.seq, 1)]));
        let mut healed = Healed { late: said_at(&node, 5, 1).run().clone(), node, member, eras };
        healed.opens(&mut near, eras[0], 1);
        assert_eq!(healed.tip(), eras[0].number(1));
        if late_is_here {
            healed.node.hear(&healed.late);
        }
        let numbers = ordered(Era::HOME, 2, &[(healed.late.log, 1, 1)]);
        healed.node.founder_writes(&mut founder, &numbers);
        let mut member = std::mem::replace(&mut healed.member, Liar::new(7));
        healed.opens(&mut member, eras[1], 2);
        healed.member = member;
        healed
    }

    /// A member opens an era with this cut of the home era, and says something there.
    fn opens(&mut self, liar: &mut Liar, era: Era, n: u64) {
        let cut = vec![Reached { era: Era::HOME, n }];
        let claim = EraClaimed { era, after: Era::HOME, cut, seen: Vec::new() };
        let (_, run) = liar.write(&self.node, &Body::EraClaimed(claim));
        self.node.hear(&run);
        let (at, run) = liar.write(&self.node, &Body::Chat(said("on one side")));
        self.node.hear(&run);
        let (_, run) = liar.write(&self.node, &ordered(era, 1, &[(at.log, at.seq, 1)]));
        self.node.hear(&run);
    }

    fn tip(&self) -> Number {
        self.node.engine.known.rooms[&self.node.lobby()].tip()
    }
}

/// Seeds 20674 of the simulation at aac4ed2, and 20890 at d6b3f50: a client was given a number of the other side's era, which says that
/// it has all that the cut names, before it was given that. It went on to a node that did not know where it had been.
#[test]
fn an_era_is_entered_when_what_its_cut_names_can_be_given_with_it() {
    for late_is_here in [true, false] {
        let mut it = Healed::new(late_is_here);
        let [near, far] = it.eras;
        assert_eq!((it.node.current(), it.tip()), (far, near.number(1)), "it waits");
        let late = it.late.clone();
        it.node.hear(&late);
        assert_eq!(it.tip(), near.number(1));
        it.node.effects.clear();
        let (_, run) = it.member.write(&it.node, &ordered(far, 2, &[(it.late.log, 1, 1)]));
        it.node.hear(&run);
        let told = it.node.effects.iter().filter_map(|effect| match effect {
            Effect::Notify { event: RoomEvent::Message(message), .. } => Some(message.number),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [far.number(1), far.number(2)], "at once");
    }
}

#[test]
fn an_era_is_not_waited_for_longer_than_that() {
    let mut it = Healed::new(true);
    let [near, far] = it.eras;
    // Nobody gives it another number.
    it.node.engine.known.cx.out = true;
    it.node.wait(ENTER_WITHIN - STEP * 2);
    assert_eq!(it.tip(), near.number(1));
    it.node.wait(STEP * 4);
    assert_eq!(it.tip(), far.number(1));
}
