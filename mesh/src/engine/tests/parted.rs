//! Where others know more of a node that has parted, or less.

use super::{
    asking::{by, log, ordered},
    membership::expels,
    private::{follower, written},
    rooms::words,
    world::Liar,
    *,
};
use crate::{
    api::batch::Fate,
    limits::GIVEN_PER_ERA_MAX,
    name::{
        id::EntryRef,
        number::{Era, Number},
    },
    wire::{
        entry::{EraClaimed, HandedOver, Items, NodeAdmitted, Ordered, Reached},
        message::Span,
    },
};

/// Whoever heard more of it has built on that; nobody else ever will hear it.
#[test]
fn eras_of_who_has_parted_end_where_its_log_is_cut() {
    let mut node = Node::new(1);
    let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
    let era = |c, lane| Era::new(c, lane).expect("an era");
    let (theirs, next) = (era(1, 1_005), era(2, 1_006));
    for seed in [5, 6] {
        let lane = 1_000 + u32::from(seed);
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let run = log_of(&node, directory, seed, &[admitted]);
        node.hear(&run);
    }
    let claim =
        |era, after, cut| Body::EraClaimed(EraClaimed { era, after, cut, seen: Vec::new() });
    let said: Vec<Run> = [7, 8].map(|seed| said_at(&node, seed, 1).run().clone()).to_vec();
    let gives = |era, log| {
        let items = vec![Items { log: 0, from: 1, count: 1 }];
        Body::Ordered(Ordered { era, first: 1, logs: vec![log], items, by: None })
    };
    let home = Era::HOME;
    let first = [claim(theirs, home, Vec::new()), gives(theirs, said[0].log)];
    let cut = vec![Reached { era: theirs, n: 5 }];
    let first = log_of(&node, lobby, 5, &first);
    let seen = vec![EntryRef { log: first.log, seq: 3 }];
    let second = Body::EraClaimed(EraClaimed { era: next, after: theirs, cut, seen });
    let second = log_of(&node, lobby, 6, &[second, gives(next, said[1].log)]);
    for run in [&first, &second] {
        node.hear(run);
    }
    let head = |node: &Node| node.engine.known.rooms[&lobby].replica.logs.head_of(second.log);
    assert_eq!(
        (head(&node), node.engine.known.rooms[&lobby].order.numbering.current()),
        (0, theirs)
    );
    let parting = expels(&node, 9, 5, &[(lobby, 2), (directory, 1)]);
    node.hear(&parting);
    assert_eq!(head(&node), 2);
    for run in &said {
        node.hear(run);
    }
    let numbers = node.rows.iter().filter_map(|it| match it {
        Change::Number { room, number, fate: Fate::Delivered, .. } if *room == lobby => {
            Some(*number)
        }
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [theirs.number(1), next.number(1)]);
}

/// Seeds 19 and 50 of the worlds with a parting: a room that a node had made which was expelled, at a node that had never
/// had anything of that node's log there. What others had numbered since waited for ever.
#[test]
fn a_room_of_who_has_parted_goes_on_where_nothing_of_its_log_ever_came() {
    for room_first in [true, false] {
        let mut node = Node::new(1);
        let directory = RoomId::directory(node.secret.mesh_id());
        let mut maker = Liar::new(8);
        let room = crate::directory::room_id(node.secret.mesh_id(), directory, maker.log(), 1);
        let made = Body::RoomCreated(public_room(room, "theirs"));
        let (_, made) = maker.write_in(&node, directory, &made);
        let parting = expels(&node, 9, 8, &[(directory, 1)]);
        let order = if room_first { [&made, &parting] } else { [&parting, &made] };
        order.into_iter().for_each(|run| node.hear(run));
        let lane = 1_006;
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        node.hear(&log_of(&node, directory, 6, &[admitted]));
        let said = said_in(&node, (room, 0), (5, 1, "x")).run().clone();
        node.hear(&said);
        let home = Era::HOME;
        let era = Era::new(1, lane).expect("an era");
        let cut = vec![Reached { era: home, n: 3 }];
        let items = vec![Items { log: 0, from: 1, count: 1 }];
        let bodies = [
            Body::EraClaimed(EraClaimed { era, after: home, cut, seen: Vec::new() }),
            Body::Ordered(Ordered { era, first: 1, logs: vec![said.log], items, by: None }),
        ];
        node.hear(&log_of(&node, room, 6, &bodies));
        let tip = |node: &Node| node.engine.known.rooms[&room].tip();
        assert_eq!(tip(&node), era.number(1), "{room_first}");
        let again = Node::open(1, disk::stored(&node.rows), node.now);
        assert_eq!(tip(&again), era.number(1));
    }
}

/// Seeds 485 and 1181 of the worlds with a parting: what was written beyond the cut came in one turn with the parting, and
/// counted at this node until it started again.
#[test]
fn what_is_beyond_a_cut_counts_no_more_when_it_comes_with_the_parting() {
    let room_of = |together: bool, parting_first: bool| {
        let mut node = Node::new(1);
        let directory = RoomId::directory(node.secret.mesh_id());
        let mut maker = Liar::new(8);
        let rooms = [1, 2].map(|seq| {
            crate::directory::room_id(node.secret.mesh_id(), directory, maker.log(), seq)
        });
        let runs = rooms.map(|room| {
            maker.write_in(&node, directory, &Body::RoomCreated(public_room(room, "theirs"))).1
        });
        node.hear(&runs[0]);
        let mut news = vec![expels(&node, 9, 8, &[(directory, 1)]), runs[1].clone()];
        if !parting_first {
            news.reverse();
        }
        let verify = |run: Run| run.verify(node.secret.mesh_id()).expect("it is sealed");
        let news: Vec<Verified> = news.into_iter().map(verify).collect();
        let messages =
            if together { vec![news] } else { news.into_iter().map(|it| vec![it]).collect() };
        for runs in messages {
            let message = Message::Runs(runs);
            node.give(Input::Message { from: identity(9).node_id(), message });
        }
        assert_eq!(
            node.engine.known.rooms[&directory].replica.logs.head_of(maker.log()),
            2,
            "it is taken"
        );
        let engine = &mut node.engine;
        let counts = |room| {
            let digested = engine.digests.has(&mut engine.known, room);
            (engine.known.directory.room(room).is_some(), digested)
        };
        rooms.map(counts)
    };
    for (together, parting_first) in [(false, true), (false, false), (true, false), (true, true)] {
        let counts = room_of(together, parting_first);
        assert_eq!(counts, [(true, true), (false, false)], "{together} {parting_first}");
    }
}

/// Seed 1811 of the worlds with a parting: whoever was expelled had gone on in an era of its own, in which it had numbered
/// what others wait for who do not know of that era.
#[test]
fn who_asks_for_numbers_that_whoever_has_parted_gave_beyond_its_cut_gets_others() {
    let mut node = Node::new(1);
    let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
    let caller = node.joins("me");
    let lane = 1_006;
    let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
    node.hear(&log_of(&node, directory, 6, &[admitted]));
    let era = Era::new(1, lane).expect("an era");
    let claim = EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen: Vec::new() };
    let mut theirs = Liar::new(6);
    let (_, claim) = theirs.write(&node, &Body::EraClaimed(claim));
    node.hear(&claim);
    let say = words(lobby, "x".to_owned());
    let call = node.begin(Command::Say { caller, say });
    let (_, run) = theirs.write(&node, &ordered(era, 1, &[(log(1), 1, 1)]));
    node.hear(&run);
    assert!(matches!(node.reply(call), Some(Ok(Outcome::Said(_)))), "so it waits for nothing");
    let parting = expels(&node, 9, 6, &[(directory, 1)]);
    node.hear(&parting);
    let given = node.gave().len();
    let ask = |era| {
        let spans = vec![Span { log: log(1), after: 0, upto: 1 }];
        Message::Ask { room: lobby, era, tip: Number(0), spans }
    };
    node.hears_from(8, ask(Era::new(1, 7).expect("an era")));
    assert_eq!((node.gave().len(), node.current()), (given, era), "that is nobody's");
    node.hears_from(8, ask(Era::HOME));
    assert_eq!((node.gave().len(), node.current().c()), (given + 1, 2));
}

/// Nobody can name such a room in a parting: who names it not says nothing about it.
#[test]
fn in_rooms_of_memory_each_node_keeps_what_it_has_of_who_is_expelled() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let rooms = [(node.lobby(), Some(1)), (room_for_now(&mut node, &caller), None)];
    for (room, _) in rooms {
        let run = said_in(&node, (room, 0), (5, 1, "x")).run().clone();
        node.hear(&run);
    }
    let run = expels(&node, 6, 5, &[]);
    node.hear(&run);
    for (room, cut) in rooms {
        let logs = &node.engine.known.rooms[&room].replica.logs;
        let log = LogId { author: identity(5).node_id(), incarnation: 0 };
        assert_eq!(logs.get(logs.ix(log).expect("it is there")).fork, cut);
        assert_eq!(logs.has_shut_out(log.author), cut.is_none(), "and takes nothing more");
    }
}

/// A log that is cut because its author has parted looks like one that is cut because it forked.
#[test]
fn who_has_parted_did_not_fork_its_private_rooms_after_a_start_either() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.hear(&written(&node, 8, (room, &[vec![1; 40], vec![2; 40]])));
    let run = expels(&node, 6, 8, &[(room, 1)]);
    node.hear(&run);
    node.hear(&written(&node, 7, (room, &[vec![1; 40]])));
    node.hear(&written(&node, 7, (room, &[vec![2; 40], vec![3; 40]])));
    let mut again = Node::open(1, disk::stored(&node.rows), node.now);
    for it in [&node, &again] {
        let forked: Vec<_> = it.engine.known.cx.forked_for.values().flatten().collect();
        assert_eq!(forked, [&identity(7).node_id()]);
    }
    assert_eq!(again.digest_of(room), node.digest_of(room));
}

/// A node whose agent makes a room, which node 6 numbers in its third entry of the directory. On another side node 5 makes
/// a room of that name, which node 7 numbers there, and then the other one. And what both sides hear of the three; "late":
/// the node has not heard that of node 5, the third of these.
fn two_rooms_of_one_name(how: &str) -> (Node, RoomId, Vec<Run>) {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let lane = |seed: u8| 1_000 - u32::from(seed);
    let era = |seed: u8| Era::new(1, lane(seed)).expect("an era");
    let enters = |seed: u8| {
        let lane = lane(seed);
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        let (era, after) = (era(seed), Era::HOME);
        [admitted, Body::EraClaimed(EraClaimed { era, after, cut: Vec::new(), seen: Vec::new() })]
    };
    let mut sixth = Liar::new(6);
    let mut heard: Vec<Run> =
        enters(6).iter().map(|body| sixth.write_in(&node, directory, body).1).collect();
    heard.iter().for_each(|run| node.hear(run));
    let caller = node.attach("me", false, KEY).expect("free");
    let call = node.begin(Command::CreateRoom { caller, room: super::rooms::new("plan", false) });
    let logs = &node.engine.known.rooms[&directory].replica.logs;
    let mine = (log(1), logs.head_of(log(1)), 1);
    let mut gives = sixth;
    let mut numbers = ordered(era(6), 1, &[mine]);
    if how == "handed over" {
        let it = HandedOver { era: era(6), next: 1, to: log(8), by: None };
        let (_, run) = gives.write_in(&node, directory, &Body::HandedOver(it));
        node.hear(&run);
        gives = Liar::new(8);
        numbers = by(numbers, EntryRef { log: run.log, seq: run.last() });
    }
    let (_, run) = gives.write_in(&node, directory, &numbers);
    node.hear(&run);
    if how == "handed over" {
        // What comes of a log that goes on all hear, in the end.
        heard.push(run);
    }
    let made = node.made(call).expect("answered").expect("made");
    let fifth = crate::directory::room_id(node.secret.mesh_id(), directory, log(5), 1);
    let fifth = Body::RoomCreated(public_room(fifth, "plan"));
    let mut others = vec![log_of(&node, directory, 5, &[fifth])];
    let mut seventh = Liar::new(7);
    for body in enters(7).into_iter().chain([ordered(era(7), 1, &[(log(5), 1, 1), mine])]) {
        others.push(seventh.write_in(&node, directory, &body).1);
    }
    others.iter().skip(usize::from(how == "late")).for_each(|run| node.hear(run));
    heard.extend(others);
    (node, made, heard)
}

/// The node's process ends, and another begins.
fn again(node: &Node) -> Node {
    let mut again = Node::open(1, disk::stored(&node.rows), node.now);
    again.rows.splice(0..0, node.rows.clone());
    again.turn();
    again
}

/// What this node has written in a room, in runs of one entry.
fn own_log(node: &Node, room: RoomId) -> Vec<Run> {
    let own = node.engine.known.rooms[&room].replica.logs.ix(log(1));
    let bodies = node.rows.iter().filter_map(|it| match it {
        Change::Entry { room: of, at, entry } if *of == room && Some(at.log) == own => {
            Some(Body::decode(entry.facts.kind, &entry.body))
        }
        _ => None,
    });
    let mut me = Liar::new(1);
    bodies.map(|body| me.write_in(node, room, &body).1).collect()
}

/// Seeds 5851 and 5901 of the worlds with a parting: two rooms of one name had been made on two sides, one of them by a
/// number of the node that was expelled, beyond its cut. Only who had heard of that number listed the room.
#[test]
fn a_room_that_only_a_number_beyond_a_cut_made_is_numbered_anew_and_called_alike_everywhere() {
    let directory = RoomId::directory(Node::new(1).secret.mesh_id());
    let cuts = [vec![(directory, 2)], Vec::new()];
    for (how, cut) in ["started again before", "started again after", "handed over", "as it is"]
        .into_iter()
        .flat_map(|it| cuts.iter().map(move |cut| (it, cut)))
    {
        let (mut node, mine, heard) = two_rooms_of_one_name(how);
        let theirs = crate::directory::room_id(node.secret.mesh_id(), directory, log(5), 1);
        let names = |node: &Node| [theirs, mine].map(|it| node.name_of(it));
        let c = |node: &Node| node.engine.known.rooms[&directory].order.numbering.current().c();
        let before = names(&node);
        assert!(before.iter().all(Option::is_some), "{before:?}");
        if how == "started again before" {
            node = again(&node);
        }
        assert_eq!((c(&node), names(&node)), (1, before.clone()), "{how}");
        let parting = expels(&node, 9, 6, cut);
        if how == "started again after" {
            // It cannot open another era yet.
            let room = node.engine.known.rooms.get_mut(&directory).expect("it is there");
            room.order.claimed_now(node.now.mono);
        }
        node.hear(&parting);
        if how == "started again after" {
            assert_eq!((c(&node), node.engine.waiters.unsettled.len()), (1, 1));
            node = again(&node);
        }
        assert_eq!((c(&node), names(&node)), (2, before), "{how}");
        assert!(node.engine.waiters.unsettled.is_empty(), "{how}");
        assert_eq!((c(&again(&node)), names(&again(&node))), (2, names(&node)), "once is enough");
        // Another member never heard of that number.
        let mut other = Node::new(2);
        heard
            .iter()
            .chain(&own_log(&node, directory))
            .chain([&parting])
            .for_each(|run| other.hear(run));
        assert_eq!(names(&other), names(&node), "{how}");
    }
}

/// What shows that its number was not the first comes after the parting.
#[test]
fn a_room_is_numbered_anew_also_when_the_other_one_of_its_name_comes_later() {
    let (mut node, mine, heard) = two_rooms_of_one_name("late");
    let directory = RoomId::directory(node.secret.mesh_id());
    let c = |node: &Node| node.engine.known.rooms[&directory].order.numbering.current().c();
    let parting = expels(&node, 9, 6, &[(directory, 2)]);
    node.hear(&parting);
    assert_eq!((c(&node), node.name_of(mine).as_deref()), (1, Some("plan")), "it is the only one");
    node.hear(&heard[2]);
    let name = node.name_of(mine).expect("it stays");
    assert!(c(&node) == 2 && name.starts_with("plan ("), "{name}");
}

/// Or else what the successor of who is out gave would count where that is known.
#[test]
fn numbers_of_an_era_do_not_count_from_where_it_was_handed_over_beyond_a_cut() {
    let mut numbering = crate::order::numbering::Numbering::new(log(1));
    let place = |log, seq| crate::name::id::LocalRef { log, seq };
    let gave = [(place(0, 3), 1), (place(0, 5), 4), (place(1, 2), 6), (place(0, 9), 8)];
    gave.iter().for_each(|(at, first)| numbering.note_given(Era::HOME, *at, *first));
    assert_eq!(numbering.lose(2, 1), []);
    assert_eq!(numbering.lose(0, 10), []);
    assert_eq!(numbering.lose(0, 4), [Number(4)]);
    assert_eq!(numbering.lose(1, 1), [], "that is known");
    assert_eq!(numbering.lose(0, 1), [Number(1)]);
    assert_eq!(numbering.lost().collect::<Vec<_>>(), [Number(1)]);
    (0..GIVEN_PER_ERA_MAX as u64)
        .for_each(|n| numbering.note_given(Era::HOME, place(0, 10 + n), 8 + n));
    let given = &numbering.eras[&Era::HOME].record.given;
    assert_eq!((given.len(), given[0].seq), (GIVEN_PER_ERA_MAX, 10), "the last ones");
}

/// Seed 15899 of the worlds with a parting: a node that had been on one side with whoever was expelled had delivered more of
/// that one's numbers than counts. The sequencer, who never heard of these, took it to be ahead, and answered nothing.
#[test]
fn who_got_further_by_numbers_beyond_a_cut_gets_others_all_the_same() {
    for out in [true, false] {
        let mut node = Node::new(1);
        let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
        let caller = node.joins("me");
        node.say(&caller, lobby).expect("it is its own sequencer");
        let own = node.engine.known.cx.lane().expect("it has one");
        let lane = own.checked_sub(1).expect("not the first lane");
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        node.hear(&log_of(&node, directory, 6, &[admitted]));
        if out {
            let parting = expels(&node, 9, 6, &[(directory, 1)]);
            node.hear(&parting);
        }
        let room = node.engine.known.rooms.get_mut(&lobby).expect("it is there");
        assert!(room.claim(&mut node.engine.known.cx));
        node.turn();
        let given = node.gave().len();
        let ask = |era: Era, tip| {
            let spans = vec![Span { log: log(1), after: 0, upto: 1 }];
            Message::Ask { room: lobby, era, tip, spans }
        };
        let era = node.current();
        node.hears_from(8, ask(Era(u64::MAX), Number(u64::MAX)));
        node.hears_from(8, ask(era, era.number(5)));
        assert_eq!(node.gave().len(), given, "there is no such number");
        node.hears_from(8, ask(era, Era::new(1, lane).expect("an era").number(7)));
        assert_eq!(node.gave().len(), given + usize::from(out), "{out}");
    }
}
