//! Writing: sends that are repeated, what is written at once, and what is stored of it.

use super::{
    membership::speak,
    pending::run,
    rooms::words,
    world::{Liar, World},
    *,
};
use crate::{
    api::{boundary::Alarm, command::SaidOk},
    fold::act::Fold,
    limits::{BODY_INLINE_BYTES_MAX, DEDUP_FOR, RUN_BYTES_MAX, RUN_ENTRIES_MAX},
    name::{
        id::EntryRef,
        number::{C_MAX, Era, LANES},
    },
    wire::{
        acts::{TaskAct, TaskAssigned},
        entry::{DedupId, EraClaimed, NodeAdmitted},
        message::ApartBody,
    },
};

/// Sends under this id.
fn once(room: RoomId, id: u8) -> Say {
    Say { dedup: Some(DedupId([id; 16])), ..words(room, "hello".to_owned()) }
}

fn said_ok(result: Result<Outcome, Refused>) -> SaidOk {
    match result {
        Ok(Outcome::Said(said)) => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_send_that_is_repeated_is_answered_with_the_first_ones_message() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let send = |node: &mut Node, id| {
        said_ok(node.ask(Command::Say { caller: caller.clone(), say: once(lobby, id) }))
    };
    let is_of =
        |one: &SaidOk, other: &SaidOk| (one.message, one.number) == (other.message, other.number);
    let first = send(&mut node, 1);
    let head = |node: &Node| node.engine.known.rooms[&lobby].replica.logs.heads();
    let heads = head(&node);
    let again = send(&mut node, 1);
    assert_eq!((first.fresh.is_some(), again.fresh.is_some()), (true, false));
    assert!(is_of(&first, &again));
    assert_eq!(head(&node), heads, "nothing more was written");
    let other = send(&mut node, 2);
    assert!(other.fresh.is_some() && !is_of(&first, &other));
    let mut restarted = Node::open(1, disk::stored(&node.rows), node.now);
    let join = restarted.joins("me");
    let again = said_ok(restarted.ask(Command::Say { caller: join, say: once(lobby, 1) }));
    assert!(again.fresh.is_none() && is_of(&first, &again), "also after a start");
    // For so long, and then it is a new one.
    let keep_ms = u64::try_from(DEDUP_FOR.as_millis()).expect("short");
    node.now.wall_ms = first.fresh.as_ref().expect("it is the first").wall_ms + keep_ms - 2;
    assert!(is_of(&first, &send(&mut node, 1)));
    let anew = send(&mut node, 1);
    assert!(anew.fresh.is_some() && !is_of(&first, &anew));
    assert!(is_of(&anew, &send(&mut node, 1)), "which is what is repeated from now on");
}

#[test]
fn a_send_that_is_repeated_before_it_has_its_number_is_answered_with_it() {
    let mut world = World::new(2);
    world.groups = vec![0, 1];
    let (caller, room) = (world.callers[1].clone(), world.lobby());
    let calls =
        [0; 2].map(|_| world.begin(1, Command::Say { caller: caller.clone(), say: once(room, 1) }));
    world.carry();
    assert!(calls.iter().all(|call| world.reply(1, *call).is_none()), "the sequencer is away");
    world.groups = vec![0, 0];
    world.pass(Duration::from_secs(1));
    let said = calls.map(|call| said_ok(world.reply(1, call).expect("it is back")));
    assert_eq!(said[0].message, said[1].message);
    assert_eq!(said[0].number, said[1].number);
    assert_eq!(said.map(|said| said.fresh.is_some()), [true, false]);
}

#[test]
fn a_send_that_is_repeated_where_nobody_takes_the_first_one_is_refused() {
    let mut node = Node::new(2);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let send =
        |node: &mut Node| node.begin(Command::Say { caller: caller.clone(), say: once(lobby, 1) });
    let refused = |node: &Node, call| {
        matches!(node.reply(call), Some(Err(Refused::Apart(crate::api::command::Apart::Forked))))
    };
    let first = send(&mut node);
    assert!(node.reply(first).is_none(), "it has no number yet");
    // Another history of this node's own log is found.
    let other = said_in(&node, (lobby, 0), (2, 1, "another")).run().clone();
    node.hear(&other);
    assert!(refused(&node, first));
    let again = send(&mut node);
    assert!(refused(&node, again), "it would wait for ever");
}

/// All runs of the lobby that went out, and for each the bodies that travel apart.
fn sent_whole(node: &mut Node) -> Vec<(Run, Vec<ApartBody>)> {
    let lobby = node.lobby();
    let bodies: std::collections::BTreeMap<u64, Vec<u8>> = node
        .rows
        .iter()
        .filter_map(|it| match it {
            Change::Entry { room, at, entry } if *room == lobby => {
                Some((at.seq, entry.body.to_vec()))
            }
            _ => None,
        })
        .collect();
    let runs = node.runs_sent().into_iter().filter(|it| it.room == lobby);
    let whole = runs.map(|run| {
        let apart = (run.first..).zip(&run.entries).filter_map(|(seq, it)| {
            let body = bodies[&seq].clone().into();
            matches!(it.body, Carried::Apart { .. }).then_some(ApartBody {
                log: run.log,
                seq,
                body,
            })
        });
        let apart = apart.collect();
        (run, apart)
    });
    whole.collect()
}

/// A run that others refuse would cut the log for ever.
#[test]
fn whatever_is_written_in_one_turn_others_take() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    node.say(&caller, lobby).expect("a member");
    let entry = |it: &Change| match it {
        Change::Entry { room, entry, .. } if *room == lobby && entry.facts.visible => {
            Some(entry.body.len())
        }
        _ => None,
    };
    let around = node.rows.iter().find_map(entry).expect("it was said") - "hello".len();
    // Bodies of a size, by that of the content.
    let sizes = (BODY_INLINE_BYTES_MAX - 130..BODY_INLINE_BYTES_MAX + 8)
        .chain([100; 300])
        .chain([1_000; 100])
        .chain([7_000; 10])
        .chain([20_000; 3])
        .chain([BODY_INLINE_BYTES_MAX - around - 2; 9]);
    for size in sizes {
        node.calls += 1;
        let (call, say) = (CallId(node.calls), words(lobby, "x".repeat(size)));
        let command = Command::Say { caller: caller.clone(), say };
        node.engine.handle(node.now, Input::Command { call, command });
    }
    node.turn();
    let mut other = Node::new(2);
    let mut exact = 0;
    for (run, bodies) in sent_whole(&mut node) {
        let inline = run.entries.iter().filter_map(|it| match &it.body {
            Carried::Here(body) => Some(body.len()),
            Carried::Apart { .. } | Carried::Gone(_) => None,
        });
        let inline: Vec<usize> = inline.collect();
        exact += inline.iter().filter(|it| **it == BODY_INLINE_BYTES_MAX).count();
        assert!(inline.iter().sum::<usize>() <= RUN_BYTES_MAX);
        assert!(run.entries.len() <= RUN_ENTRIES_MAX);
        let runs = vec![run.verify(node.secret.mesh_id()).expect("others check it")];
        other.told(1, Message::Spans { room: lobby, runs, bodies, last: true });
    }
    assert!(exact >= 9, "{exact}");
    let heads = |node: &Node| node.engine.known.rooms[&lobby].replica.logs.heads();
    assert_eq!(heads(&other), heads(&node));
}

/// Whole runs of the lobby, made anew of the entries that were stored: what peers are sent.
fn runs_of_rows(node: &Node) -> Vec<Run> {
    let lobby = node.lobby();
    let mut logs: std::collections::BTreeMap<u32, Vec<_>> = Default::default();
    for row in &node.rows {
        if let Change::Entry { room, at, entry } = row
            && *room == lobby
        {
            logs.entry(at.log).or_default().push((at.seq, entry.clone()));
        }
    }
    let mut runs = Vec::new();
    for (ix, entries) in logs {
        let log = node.engine.known.rooms[&lobby].replica.logs.id(ix);
        for part in entries.split_inclusive(|(_, it)| it.seal.is_some()) {
            let [(first, begins), others @ ..] = part else { panic!("none is empty") };
            assert!(others.iter().all(|(_, it)| it.backlink.is_none()), "only the first has one");
            let backlink = begins.backlink.expect("it begins a run");
            let seal = part.last().and_then(|(_, it)| it.seal).expect("it ends with one");
            let entries = part.iter().map(|(_, it)| {
                let body = Carried::Here(it.body.clone());
                RunEntry { facts: it.facts, body }
            });
            let entries = entries.collect();
            runs.push(Run { room: lobby, log, first: *first, backlink, entries, seal });
        }
    }
    runs
}

/// These entries of a run, as a run of their own.
fn part_of(node: &Node, whole: &Verified, (first, last): (u64, u64)) -> Run {
    let mut run = whole.run().clone();
    let place = |seq: u64| usize::try_from(seq - 1).expect("few");
    run.entries = run.entries[place(first)..=place(last)].to_vec();
    run.backlink = whole.hash_at(first - 1).expect("it has it");
    run.first = first;
    run.seal(node.secret.mesh_id(), &identity(5)).run().clone()
}

#[test]
fn what_is_stored_of_a_run_can_be_sent_again_as_what_it_was() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let whole = run(&node, 5, (1, 6));
    // Others seal their runs anew when they go on, and so two of them may begin alike.
    for part in [(1, 2), (1, 4), (3, 6)] {
        let run = part_of(&node, &whole, part);
        node.hear(&run);
    }
    node.says_unturned(&caller);
    node.says_unturned(&caller);
    node.turn();
    let runs = runs_of_rows(&node);
    let mut other = Node::new(2);
    for run in &runs {
        other.hear(run);
    }
    let lobby = node.lobby();
    let heads = |node: &Node| {
        let mut heads = node.engine.known.rooms[&lobby].replica.logs.heads();
        heads.sort_by_key(|it| it.log);
        heads
    };
    assert_eq!(heads(&other), heads(&node));
    let log = LogId { author: identity(5).node_id(), incarnation: 0 };
    let of_it = runs.iter().filter(|it| it.log == log).map(|it| (it.first, it.last()));
    assert_eq!(of_it.collect::<Vec<_>>(), [(1, 2), (3, 4), (5, 6)]);
}

#[test]
fn what_others_say_while_a_turn_is_made_is_taken_in_it() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    node.effects.clear();
    let call = node.says_unturned(&caller);
    let run = said_at(&node, 5, 1);
    let message = Message::Runs(vec![run]);
    node.engine.handle(node.now, Input::Message { from: identity(9).node_id(), message });
    node.turn();
    assert!(node.reply(call).is_some());
    let told = |it: &&Effect| matches!(it, Effect::Notify { event: RoomEvent::Message(_), .. });
    assert_eq!(node.effects.iter().filter(told).count(), 2);
    let asked = |it: &Effect| matches!(it, Effect::Send { message: Message::Have { .. }, .. });
    assert!(!node.effects.iter().any(asked), "nothing is missing");
}

#[test]
fn rows_are_written_of_logs_in_which_something_changed_and_of_no_others() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    for seed in 5..15 {
        let run = said_at(&node, seed, 1).run().clone();
        node.hear(&run);
    }
    node.rows.clear();
    let lobby = node.lobby();
    node.say(&caller, lobby).expect("a member");
    let logs: Vec<_> = node
        .rows
        .iter()
        .filter_map(|it| match it {
            Change::Log { room, record, .. } if *room == lobby => Some(record),
            _ => None,
        })
        .collect();
    let [own] = logs[..] else { panic!("{logs:?}") };
    assert_eq!(
        (own.id.author, own.settled),
        (node.engine.known.cx.me, own.head),
        "all is delivered"
    );
    // At a node that cannot number it, it is not settled.
    let mut other = Node::new(2);
    let caller = other.joins("me");
    other.begin_say(&caller);
    let row = other.rows.iter().rev().find_map(|it| match it {
        Change::Log { room, record, .. } if *room == lobby => Some((record.settled, record.head)),
        _ => None,
    });
    assert_eq!(row, Some((0, 1)));
}

#[test]
fn what_waits_for_its_number_when_its_node_stops_is_told_once_when_it_has_one() {
    let mut world = World::new(2);
    world.groups = vec![0, 1];
    speak(&mut world, 1);
    world.restart(1);
    world.groups = vec![0, 0];
    world.pass(Duration::from_secs(2));
    for told in &world.told {
        let messages = told.iter().filter(|it| matches!(it, RoomEvent::Message(_)));
        assert_eq!(messages.count(), 1);
    }
}

/// A liar's log with messages and tasks, proven to be forked at its third entry.
#[test]
fn what_was_forked_counts_after_a_restart_no_more_than_before_it() {
    let mut node = Node::new(2);
    let mut liar = Liar::new(5);
    let task =
        |title: &str| Body::Task(TaskAct::Assigned(TaskAssigned::of(title.to_owned(), "x".into())));
    let mut runs = Vec::new();
    for body in [Body::Chat(said("one")), task("one"), Body::Chat(said("two")), task("another")] {
        let (_, run) = liar.write(&node, &body);
        node.hear(&run);
        runs.push(run);
    }
    let room = node.lobby();
    let mut other = runs[2].clone();
    other.entries[0].facts.clock += 1;
    let proof = other.seal(node.secret.mesh_id(), &identity(5)).certificate();
    let run = runs[2].clone().verify(node.secret.mesh_id()).expect("it is sealed");
    node.told(9, Message::Fork(proof, Box::new(run)));
    let counts = |node: &Node| {
        let room = &node.engine.known.rooms[&room];
        let waits: Vec<u64> = room.order.numbering.undelivered.keys().map(|it| it.seq).collect();
        (waits, room.folds.tasks.bytes())
    };
    let before = counts(&node);
    assert_eq!(before.0, [1]);
    let again = Node::open(2, disk::stored(&node.rows), node.now);
    assert_eq!(counts(&again), before);
}

#[test]
fn a_room_whose_numbers_are_used_up_takes_nothing_more() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let mine = node.engine.known.rooms[&lobby].replica.mine;
    let lane = LANES - 1;
    let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
    node.hear(&log_of(&node, RoomId::directory(node.secret.mesh_id()), 6, &[admitted]));
    let [after, era] = [C_MAX - 1, C_MAX].map(|c| Era::new(c, lane).expect("an era"));
    let claim = EraClaimed { era: after, after: Era::HOME, cut: Vec::new(), seen: Vec::new() };
    let room = node.engine.known.rooms.get_mut(&lobby).expect("it is there");
    assert!(room.order.numbering.open(&claim, mine));
    node.say(&caller, lobby).expect("there are some");
    let seen = vec![EntryRef { log: mine, seq: 1 }];
    let claim = Body::EraClaimed(EraClaimed { era, after, cut: Vec::new(), seen });
    node.hear(&log_of(&node, lobby, 6, &[claim]));
    assert_eq!(node.engine.known.rooms[&lobby].order.numbering.current(), era);
    for _ in 0..2 {
        assert!(matches!(node.say(&caller, lobby), Err(Refused::Full(_))));
    }
    let told = node
        .effects
        .iter()
        .filter(|it| matches!(it, Effect::Alarm(Alarm::Exhausted { room }) if *room == lobby));
    assert_eq!(told.count(), 1);
}

#[test]
fn what_was_delivered_or_was_forked_takes_no_memory() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    node.say(&caller, node.lobby()).expect("a member");
    assert_eq!(node.engine.known.cx.memory.warm, 0);
    let mut node = Node::new(2);
    let [one, forked] = [5, 6].map(|seed| said_at(&node, seed, 1).run().clone());
    node.hear(&one);
    let before = node.engine.known.cx.memory.warm;
    assert!(before > 0);
    node.hear(&forked);
    assert!(node.engine.known.cx.memory.warm > before);
    let other = said_in(&node, (node.lobby(), 0), (6, 1, "another")).run().clone();
    node.hear(&other);
    assert!(node.engine.known.cx.forked.contains(&forked.log.author));
    assert_eq!(node.engine.known.cx.memory.warm, before);
}

#[test]
fn a_thought_is_one_at_other_nodes_too() {
    let mut world = World::new(2);
    let (caller, room) = (world.callers[0].clone(), world.lobby());
    let say = Say { speech: Speech::Thinking, ..words(room, "hm".to_owned()) };
    world.ask(0, Command::Say { caller, say }).expect("a member");
    world.carry();
    let told = world.told[1].iter().filter_map(|it| match it {
        RoomEvent::Message(it) => Some((it.facts.kind, it.said.as_ref()?.content.clone())),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(crate::wire::kinds::THINKING, "hm".to_owned())]);
    assert!(world.nodes.iter().all(|node| node.engine.known.cx.faults.void == 0));
}
