//! What counts of numbers, eras and handovers that others write.

use super::{
    asking::{FOUNDER, by, founder, log, ordered},
    pending::run,
    world::Liar,
    *,
};
use crate::{
    api::{batch::Fate, boundary::Alarm},
    limits::{HOLE_AFTER_SILENCE, PENDING_FOR},
    name::{id::EntryRef, number::Era},
    wire::entry::{EraClaimed, HandedOver, Items, NodeAdmitted, Ordered, Reached},
};

/// A node that hears a founder that lies.
fn beside_liar() -> (Node, Liar) {
    (Node::new(2), Liar::new(FOUNDER))
}

impl Node {
    /// How many entries have meant nothing.
    fn void_so_far(&self) -> u64 {
        self.engine.known.cx.faults.void
    }

    fn sequencer(&self) -> LogId {
        self.engine.known.rooms[&self.lobby()].order.numbering.sequencer()
    }

    fn heard_of(&self, log: LogId) -> u64 {
        self.engine.known.rooms[&self.lobby()].replica.logs.head_of(log)
    }
}

#[test]
fn numbers_of_who_was_handed_the_era_wait_for_the_handover() {
    let (mut node, mut liar) = beside_liar();
    let run = said_at(&node, 5, 1).run().clone();
    node.hear(&run);
    let handover = EntryRef { log: log(FOUNDER), seq: 1 };
    let numbers = by(ordered(Era::HOME, 1, &[(run.log, 1, 1)]), handover);
    let given = log_of(&node, node.lobby(), 6, &[numbers]);
    node.hear(&given);
    assert_eq!((node.heard_of(given.log), node.void_so_far()), (0, 0));
    let over = HandedOver { era: Era::HOME, next: 1, to: given.log, by: None };
    node.founder_writes(&mut liar, &Body::HandedOver(over));
    assert_eq!((node.heard_of(given.log), node.void_so_far()), (1, 0));
    assert_eq!(node.engine.known.rooms[&node.lobby()].tip(), Number(1), "it counts");
}

/// Whoever was there would have taken it for void, and whoever came later not.
#[test]
fn numbers_that_were_given_before_the_era_was_handed_over_are_void_in_whatever_order_they_come() {
    let home = Era::HOME;
    let handover = EntryRef { log: log(FOUNDER), seq: 1 };
    // By no handover, by what is none, and by the handover itself.
    let claimed = [None, Some(EntryRef { log: log(5), seq: 1 }), Some(handover)];
    for (claimed, early) in claimed.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let (mut node, mut liar) = beside_liar();
        let said = [5, 7].map(|seed| said_at(&node, seed, 1).run().clone());
        said.iter().for_each(|run| node.hear(run));
        let [first, second] = said.map(|run| ordered(home, 1, &[(run.log, 1, 1)]));
        let first = claimed.map_or(first.clone(), |place| by(first, place));
        let given = log_of(&node, node.lobby(), 6, &[first, by(second, handover)]);
        let parts = [&given.entries[..1], &given.entries[1..]].map(|it| it.to_vec());
        let part = |first, entries, backlink| {
            let run = Run { first, entries, backlink, ..given.clone() };
            run.seal(node.secret.mesh_id(), &identity(6))
        };
        let [before, after] = parts;
        let before = part(1, before, [0; 32]);
        let after = part(2, after, before.certificate().hash);
        if early {
            node.hear(before.run());
        }
        let over = HandedOver { era: home, next: 1, to: given.log, by: None };
        node.founder_writes(&mut liar, &Body::HandedOver(over));
        node.hear(before.run());
        node.hear(after.run());
        // Of the numbers the first that are by the handover count.
        let counts = if claimed == Some(handover) { 5 } else { 7 };
        let delivered = node.rows.iter().find_map(|it| match it {
            Change::Number { room, number: Number(1), at, fate: Fate::Delivered } => {
                Some((*room, *at))
            }
            _ => None,
        });
        let (room, at) = delivered.expect("one of them has it");
        assert_eq!(
            node.engine.known.rooms[&room].replica.logs.id(at.log),
            log(counts),
            "{claimed:?} {early}"
        );
        assert_eq!((node.heard_of(given.log), node.void_so_far()), (2, 1));
    }
}

#[test]
fn who_hands_over_what_is_not_its_to_give_or_gets_it_wrong_hands_over_nothing() {
    let (mut node, mut liar) = beside_liar();
    let over =
        |next, seed| Body::HandedOver(HandedOver { era: Era::HOME, next, to: log(seed), by: None });
    node.founder_writes(&mut liar, &over(2, 6));
    assert_eq!((node.sequencer(), node.void_so_far()), (log(FOUNDER), 1), "it has given none");
    // Whoever forked may be named in what others wrote, so it is taken; but it gives nothing away.
    for content in ["one", "another"] {
        let run = said_in(&node, (node.lobby(), 0), (FOUNDER, 1, content)).run().clone();
        node.hear(&run);
    }
    assert!(node.engine.known.cx.forked.contains(&founder()));
    let run = log_of(&node, node.lobby(), 6, &[over(1, 6)]);
    node.hear(&run);
    assert_eq!((node.heard_of(run.log), node.sequencer()), (1, log(FOUNDER)));
    assert_eq!(node.void_so_far(), 1);
}

#[test]
fn a_claim_waits_for_the_numbers_that_its_cut_names() {
    let (mut node, mut liar) = beside_liar();
    let lane = 2_000;
    let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
    let run = log_of(&node, RoomId::directory(node.secret.mesh_id()), 6, &[admitted]);
    node.hear(&run);
    let era = Era::new(1, lane).expect("an era");
    let cut = vec![Reached { era: Era::HOME, n: 1 }];
    let seen = vec![EntryRef { log: log(FOUNDER), seq: 1 }];
    let claim = Body::EraClaimed(EraClaimed { era, after: Era::HOME, cut, seen });
    let claim = log_of(&node, node.lobby(), 6, &[claim]);
    node.hear(&claim);
    assert_eq!((node.heard_of(claim.log), node.current()), (0, Era::HOME));
    node.wait(HOLE_AFTER_SILENCE + Duration::from_secs(1));
    assert_eq!((node.heard_of(claim.log), node.current()), (0, Era::HOME));
    let said = said_at(&node, 5, 1).run().clone();
    node.hear(&said);
    node.founder_writes(&mut liar, &ordered(Era::HOME, 1, &[(said.log, 1, 1)]));
    assert_eq!((node.heard_of(claim.log), node.current()), (1, era));
}

#[test]
fn who_gives_numbers_for_another_is_named_when_nothing_has_shown_that_it_may() {
    let (mut node, _) = beside_liar();
    let directory = RoomId::directory(node.secret.mesh_id());
    let admitted =
        |lane| Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
    for (seed, lane) in [(6, 2_000), (7, 2_001)] {
        node.hear(&log_of(&node, directory, seed, &[admitted(lane)]));
    }
    let claim = |lane| {
        let era = Era::new(1, lane).expect("an era");
        Body::EraClaimed(EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen: Vec::new() })
    };
    let item = [(log(7), 1, 1)];
    let unknown = Era::new(3, 2_000).expect("an era");
    let to_come = EntryRef { log: log(7), seq: 50 };
    // In another's lane, and in another's era by a handover that never comes; in a lane that nobody has, and in an era
    // that is not known. Without a handover both are void at once.
    let written = [
        (8, claim(2_001), (0, 1, 0)),
        (9, by(ordered(Era::HOME, 1, &item), to_come), (0, 1, 0)),
        (10, claim(3_000), (0, 0, 0)),
        (11, by(ordered(unknown, 1, &item), to_come), (0, 0, 0)),
        (12, ordered(Era::HOME, 1, &item), (1, 1, 1)),
        (13, ordered(unknown, 1, &item), (1, 1, 1)),
    ];
    for (seed, body, _) in &written {
        node.hear(&log_of(&node, node.lobby(), *seed, std::slice::from_ref(body)));
    }
    let void = |node: &Node, seed: u8| {
        let cx = &node.engine.known.cx;
        cx.blamed.get(&identity(seed).node_id()).map_or(0, |it| it.void)
    };
    node.wait(PENDING_FOR - Duration::from_secs(1));
    for (seed, body, (before, ..)) in &written {
        assert_eq!(void(&node, *seed), *before, "it may come yet: {body:?}");
    }
    node.wait(Duration::from_secs(2));
    for (seed, body, (_, times, head)) in written {
        assert_eq!((void(&node, seed), node.heard_of(log(seed))), (times, head), "{body:?}");
    }
}

#[test]
fn an_author_may_refer_to_numbers_that_it_gave_in_the_same_run() {
    let lane = 2_000;
    let eras = [1, 2].map(|c| Era::new(c, lane).expect("an era"));
    // Numbers that are void do not get an era anywhere, whatever a cut says.
    for (first, reached) in [(1, 5), (100, 0)] {
        let mut node = Node::new(2);
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let entered = log_of(&node, RoomId::directory(node.secret.mesh_id()), 6, &[admitted]);
        let said = run(&node, 5, (1, 5)).run().clone();
        node.hear(&entered);
        node.hear(&said);
        let claim =
            |era, after, cut| Body::EraClaimed(EraClaimed { era, after, cut, seen: Vec::new() });
        let cut = vec![Reached { era: eras[0], n: first + 4 }];
        let bodies = [
            claim(eras[0], Era::HOME, Vec::new()),
            ordered(eras[0], first, &[(said.log, 1, 5)]),
            claim(eras[1], eras[0], cut),
        ];
        let all = log_of(&node, node.lobby(), 6, &bodies);
        node.hear(&all);
        assert_eq!(node.heard_of(all.log), 3, "all of it is taken");
        assert_eq!(node.current(), eras[1]);
        let record = &node.engine.known.rooms[&node.lobby()].order.numbering.eras[&eras[1]].record;
        assert_eq!(record.cut, [Reached { era: eras[0], n: reached }]);
        assert_eq!(node.void_so_far(), u64::from(reached == 0));
    }
}

#[test]
fn claims_that_no_honest_node_makes_open_nothing() {
    let lane = 2_000;
    let era = Era::new(1, lane).expect("an era");
    let next = Era::new(2, lane).expect("an era");
    let reached = |n| vec![Reached { era: Era::HOME, n }];
    let claims = [
        (Era(era.0 | 5), Era::HOME, Vec::new()),
        (next, Era::HOME, Vec::new()),
        (era, Era::HOME, vec![Reached { era, n: 0 }]),
        (era, Era::HOME, reached(0)),
    ];
    for (claimed, after, cut) in claims {
        let good = (claimed, cut.first().map(|it| it.era)) == (era, Some(Era::HOME));
        let mut node = Node::new(2);
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let run = log_of(&node, RoomId::directory(node.secret.mesh_id()), 6, &[admitted]);
        node.hear(&run);
        // Its own eras may be named in its cut, so that the run is taken.
        let claim = EraClaimed { era: claimed, after, cut, seen: Vec::new() };
        let run = log_of(&node, node.lobby(), 6, &[Body::EraClaimed(claim.clone())]);
        node.hear(&run);
        assert_eq!(node.current() != Era::HOME, good, "{claim:?}");
    }
}

#[test]
fn of_two_nodes_in_one_lane_the_second_that_claims_an_era_is_named() {
    let mut node = Node::new(2);
    let lane = 2_000;
    let era = Era::new(1, lane).expect("an era");
    for seed in [5, 6] {
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let run = log_of(&node, RoomId::directory(node.secret.mesh_id()), seed, &[admitted]);
        node.hear(&run);
    }
    let clashes = |node: &Node| {
        let named = node.effects.iter().filter_map(|it| match it {
            Effect::Alarm(Alarm::LaneClash { node, lane }) => Some((*node, *lane)),
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    for (seed, named) in [(5, vec![]), (6, vec![(identity(6).node_id(), lane)])] {
        let claim = EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen: Vec::new() };
        let run = log_of(&node, node.lobby(), seed, &[Body::EraClaimed(claim)]);
        node.hear(&run);
        assert_eq!((node.sequencer(), clashes(&node)), (log(5), named));
    }
}

#[test]
fn numbers_that_come_before_their_entries_are_kept_until_these_come() {
    let (mut node, mut liar) = beside_liar();
    let said = run(&node, 5, (1, 2)).run().clone();
    node.founder_writes(&mut liar, &ordered(Era::HOME, 1, &[(said.log, 1, 2)]));
    let foretold = |node: &Node| {
        let kept = node.engine.known.rooms[&node.lobby()].order.numbering.foretold.len();
        let lobby = disk::stored(&node.rows).rooms.into_iter().find(|it| it.room == node.lobby());
        (kept, lobby.expect("it is there").foretold.len())
    };
    assert_eq!(foretold(&node), (2, 2));
    node.hear(&said);
    assert_eq!(foretold(&node), (0, 0));
    assert_eq!(node.engine.known.rooms[&node.lobby()].tip(), Number(2), "each under its number");
    // What is here when its number comes is not kept as foretold.
    let other = said_at(&node, 6, 1).run().clone();
    node.hear(&other);
    node.founder_writes(&mut liar, &ordered(Era::HOME, 3, &[(other.log, 1, 1)]));
    assert_eq!(foretold(&node), (0, 0));
    // Nor is what never will be.
    for content in ["one", "another"] {
        let run = said_in(&node, (node.lobby(), 0), (7, 1, content)).run().clone();
        node.hear(&run);
    }
    node.founder_writes(&mut liar, &ordered(Era::HOME, 4, &[(log(7), 2, 1)]));
    assert_eq!(foretold(&node), (0, 0));
    assert_eq!(node.engine.known.rooms[&node.lobby()].tip(), Number(4));
    // Numbers that leave some out number nothing.
    node.founder_writes(&mut liar, &ordered(Era::HOME, 6, &[(other.log, 1, 1)]));
    assert_eq!(node.void_so_far(), 1);
    assert_eq!(node.engine.known.rooms[&node.lobby()].order.numbering.known(Era::HOME), 4);
}

/// Numbers that name nothing cost nothing, and those that name entries are as many as in any other.
#[test]
fn numbers_of_old_are_bounded_by_how_many_of_them_name_something() {
    let gap = Items { log: u32::MAX, from: 1, count: 1_000_000 };
    let named = |count| Items { log: 0, from: 1, count };
    for (items, counts) in [
        (vec![gap, named(256)], true),
        (vec![named(257), gap], false),
        (vec![gap, named(200), named(200)], false),
    ] {
        let (mut node, mut liar) = beside_liar();
        let ordered = Ordered { era: Era::HOME, first: 1, logs: vec![log(5)], items, by: None };
        node.founder_writes(&mut liar, &Body::Ordered(ordered));
        assert_eq!(node.void_so_far(), u64::from(!counts));
        assert_eq!(
            node.engine.known.rooms[&node.lobby()].order.numbering.known(Era::HOME) > 0,
            counts
        );
    }
}

#[test]
fn who_takes_over_says_whose_place_it_took() {
    let mut node = Node::new(2);
    let caller = node.joins("me");
    node.begin_say(&caller);
    node.wait(Duration::from_secs(4));
    let opened = node.effects.iter().filter_map(|it| match it {
        Effect::Alarm(Alarm::EraOpened { room, era, before }) => Some((*room, *era, *before)),
        _ => None,
    });
    assert_eq!(opened.collect::<Vec<_>>(), [(node.lobby(), node.current(), founder())]);
}

/// What an entry of the directory has for numbers decides about names, whenever they come.
#[test]
fn a_room_without_a_name_is_given_one_when_another_era_has_numbered_it() {
    let mut node = Node::new(FOUNDER);
    let caller = node.joins("me");
    super::rooms::make(&mut node, &caller, super::rooms::new("plan", false)).expect("it is new");
    let directory = RoomId::directory(node.secret.mesh_id());
    let (mut liar, lane) = (Liar::new(6), 2_000);
    let room = crate::directory::room_id(node.secret.mesh_id(), directory, log(6), 2);
    let era = Era::new(1, lane).expect("an era");
    let names = |node: &mut Node| {
        let Ok(Outcome::Rooms(rooms)) =
            node.ask(Command::ListRooms { by: KEY.into(), parent: None })
        else {
            panic!("anybody may")
        };
        rooms.into_iter().map(|it| it.name.to_string()).collect::<Vec<_>>()
    };
    let mut write = |node: &mut Node, body| {
        let (_, run) = liar.write_in(node, directory, &body);
        node.hear(&run);
    };
    write(&mut node, Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None }));
    write(&mut node, Body::RoomCreated(public_room(room, "plan")));
    assert_eq!(names(&mut node), ["lobby", "plan"], "the name was taken");
    write(
        &mut node,
        Body::EraClaimed(EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen: Vec::new() }),
    );
    write(&mut node, ordered(era, 1, &[(log(6), 2, 1)]));
    let mut again = Node::open(FOUNDER, disk::stored(&node.rows), node.now);
    for node in [&mut node, &mut again] {
        let names = names(node);
        assert_eq!((names.len(), &*names[1]), (3, "plan"), "{names:?}");
        assert!(names[2].starts_with("plan ("), "{names:?}");
    }
}
