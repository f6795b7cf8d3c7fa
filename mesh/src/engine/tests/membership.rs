//! Nodes that leave, are retired or expelled: what counts of them, and where.

use super::{
    private::{API_KEY, follower, key},
    world::{STEP, World},
    *,
};
use crate::{
    api::{agenda::NewVote, batch::Fate, boundary::Alarm, status::MemberStatus},
    directory::removals::Cut,
    limits::{
        PARTED_LOGS_MAX, RECONNECT_WITHIN, VOTE_CLOSE_GRACE, VOTE_CLOSE_RANK_STEP, VOTE_SHOW_WITHIN,
    },
    name::group::Group,
    name::id::RoomKey,
    wire::{
        acts::{BallotCast, VoteAct},
        entry::{Kept, NodeParted, Parted, Parting},
        message::Notice,
        seal::{Seal, SealContext},
    },
};

fn id(world: &World, n: usize) -> NodeId {
    world.nodes[n].engine.known.cx.me
}

fn part(world: &mut World, by: usize, node: usize, why: Parting) -> Result<Outcome, Refused> {
    let node = id(world, node);
    world.ask(by, Command::Part { node, why, force: false })
}

pub(super) fn speak(world: &mut World, n: usize) -> CallId {
    let (caller, room) = (world.callers[n].clone(), world.lobby());
    let say = Say {
        room,
        speech: Speech::Chat,
        content: "hello".to_owned(),
        encryption: Encryption::None,
        durable: None,
        conversing: None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    };
    let call = world.begin(n, Command::Say { caller, say });
    world.carry();
    call
}

fn member(world: &mut World, at: usize, of: usize) -> MemberStatus {
    let of = id(world, of);
    let Ok(Outcome::Members(all)) = world.ask(at, Command::Members) else { panic!("it lists") };
    assert!(all.iter().all(|it| it.me == (it.node == id(world, at))));
    all.into_iter().find(|it| it.node == of).expect("it was admitted")
}

/// What a node has of another's log in the lobby: its head, and what of it waits.
fn lobby_log(world: &World, at: usize, of: usize) -> (u64, usize) {
    let log = LogId { author: id(world, of), incarnation: 0 };
    let room = &world.nodes[at].engine.known.rooms[&world.lobby()];
    let waits = room.order.numbering.undelivered.keys();
    let of_it = waits.filter(|it| Some(it.log) == room.replica.logs.ix(log)).count();
    (room.replica.logs.head_of(log), of_it)
}

/// Messages of another node's agents that a node has told its members.
fn told_of(world: &World, at: usize, of: usize) -> usize {
    let author = id(world, of);
    let told = world.told[at].iter().filter(|event| match event {
        RoomEvent::Message(it) => it.log.author == author,
        _ => false,
    });
    told.count()
}

#[test]
fn what_an_expelled_node_writes_beyond_the_cut_counts_nowhere_and_what_is_within_it_does() {
    // The sequencer sits on the side where the node is expelled, and on the other.
    for apart in [vec![0, 1, 1], vec![0, 1, 0]] {
        let mut world = World::new(3);
        let before = speak(&mut world, 1);
        assert!(world.reply(1, before).is_some_and(|it| it.is_ok()));
        let (head, _) = lobby_log(&world, 0, 1);
        world.groups.clone_from(&apart);
        world.pass(STEP_FOR_TAKEOVER);
        speak(&mut world, 1);
        part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
        world.groups = vec![0; 3];
        world.pass(STEP_FOR_TAKEOVER);
        for n in [0, 2] {
            let engine = &world.nodes[n].engine;
            let cut = engine.known.cx.parted.cut(id(&world, 1), world.lobby(), true);
            assert_eq!(cut, Some(Cut::At(head)), "node{n}");
            assert_eq!(lobby_log(&world, n, 1).1, 0, "node{n}: nothing of it waits");
            assert!(engine.known.rosters.agents().all(|agent| **agent != *"agent1"), "node{n}");
            assert!(!engine.known.live.others.contains(&id(&world, 1)), "node{n}");
            let parted = member(&mut world, n, 1).parted.expect("it has parted");
            assert_eq!((parted.why, parted.by), (Parting::Expelled, id(&world, 0)));
        }
        assert_eq!(lobby_log(&world, 0, 1).0, head, "nothing beyond is taken");
        assert_eq!(told_of(&world, 0, 1), 1, "what was delivered stays");
        assert_eq!(told_of(&world, 2, 1), if apart[2] == 1 { 2 } else { 1 });
        let digests = [0, 2].map(|n| world.nodes[n].digest());
        assert_eq!(digests[0], digests[1], "they have the same of what counts");
        // The others go on, under one number.
        let call = speak(&mut world, 2);
        world.pass(STEP_FOR_TAKEOVER);
        assert!(world.reply(2, call).is_some_and(|it| it.is_ok()), "{apart:?}");
        let tips = [0, 2].map(|n| world.nodes[n].engine.known.rooms[&world.lobby()].tip());
        assert_eq!(tips[0], tips[1]);
        // And so it is after a start.
        world.restart(2);
        assert!(world.nodes[2].engine.known.cx.parted.has(id(&world, 1)));
        assert_eq!(lobby_log(&world, 2, 1).1, 0);
    }
}

/// Long enough for a sequencer to be taken for gone, and its agents too.
const STEP_FOR_TAKEOVER: Duration = Duration::from_secs(5);

#[test]
fn what_lies_within_the_cut_is_taken_though_its_author_is_out() {
    let mut world = World::new(3);
    world.groups = vec![0, 0, 1];
    speak(&mut world, 1);
    let within = world.said.clone();
    part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
    let (head, _) = lobby_log(&world, 0, 1);
    assert!(head > lobby_log(&world, 2, 1).0, "it has not heard the message");
    // It hears who is out before it hears what that wrote.
    let (parting, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut world.held).into_iter().partition(|(_, _, message)| {
            let Message::Runs(runs) = message else { return false };
            let directory = RoomId::directory(world.nodes[0].secret.mesh_id());
            runs.iter().any(|run| run.run().room == directory)
        });
    for (from, to, message) in parting.into_iter().chain(others) {
        let from = id(&world, from);
        world.nodes[to].give(Input::Message { from, message });
    }
    assert!(world.nodes[2].engine.known.cx.parted.has(id(&world, 1)));
    world.groups = vec![0; 3];
    // From whoever has it: its author is not listened to.
    let from = id(&world, 0);
    for message in within {
        let message = message.verify(world.nodes[2].secret.mesh_id()).expect("it is sealed");
        world.nodes[2].give(Input::Message { from, message });
    }
    world.carry();
    assert_eq!(lobby_log(&world, 2, 1), (head, 0));
    assert_eq!(told_of(&world, 2, 1), 1);
}

#[test]
fn whoever_was_told_a_result_that_is_void_now_closes_the_vote_for_all() {
    for restarted in [false, true] {
        let mut world = World::new(4);
        world.leave(0);
        world.leave(2);
        let vote = world.create(1, None);
        world.groups = vec![0, 1, 0, 1];
        part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
        world.cast(1, vote, 0).expect("eligible");
        world.cast(3, vote, 1).expect("eligible");
        world.pass(STEP);
        assert_eq!(world.view(3, vote).tally, Some(vec![1, 1]));
        if restarted {
            world.restart(3);
        }
        world.groups = vec![0; 4];
        world.pass(Duration::from_secs(2));
        // The ballot and the close of who is out are beyond what counts of it.
        assert!(!world.view(0, vote).closed);
        assert_eq!(world.view(3, vote).tally, None, "it is over, and has no result yet");
        world.pass(VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * 3);
        for n in [0, 2, 3] {
            let view = world.view(n, vote);
            assert_eq!((view.tally, view.cast), (Some(vec![0, 1]), 1), "node{n}, {restarted}");
            assert_eq!(view.notes.corrected, 0, "what it told of what counts was right");
        }
        assert_eq!(world.ended(3).len(), 1, "nobody is told twice");
    }
}

#[test]
fn members_are_told_a_result_though_its_first_close_is_void_before_they_were() {
    let mut world = World::new(4);
    world.leave(0);
    let vote = world.create(1, None);
    // Whoever keeps its ballot sealed is waited for.
    world.cast(2, vote, 0).expect("eligible");
    world.groups = vec![0, 1, 2, 1];
    part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
    world.cast(1, vote, 0).expect("eligible");
    world.cast(3, vote, 1).expect("eligible");
    world.pass(STEP);
    assert_eq!((world.view(3, vote).notes.closing, world.ended(3).len()), (true, 0));
    world.groups = vec![0, 1, 2, 0];
    world.pass(STEP);
    assert_eq!((world.view(3, vote).tally, world.ended(3).len()), (None, 0));
    world.pass(VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * 3);
    assert_eq!((world.view(3, vote).tally, world.ended(3).len()), (None, 0), "it waits anew");
    world.groups = vec![0; 4];
    world.pass(VOTE_SHOW_WITHIN);
    assert_eq!(world.view(3, vote).tally, Some(vec![1, 1]));
    assert_eq!(world.ended(3).len(), 1);
}

#[test]
fn a_close_that_is_void_now_is_made_good_though_the_opener_is_back_and_knows_of_none() {
    let mut world = World::new(4);
    let vote = world.create(0, None);
    world.groups = vec![0, 1, 0, 1];
    part(&mut world, 2, 1, Parting::Expelled).expect("any member may");
    world.cast(3, vote, 1).expect("eligible");
    // Nobody waits longer than that for an opener that is gone.
    world.pass(RECONNECT_WITHIN + VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * 3);
    assert!(world.view(3, vote).closed);
    let room = &world.nodes[3].engine.known.rooms[&world.lobby()];
    let closed = room.folds.votes.all().next().expect("it is known");
    assert!(!closed.is_closed_by(id(&world, 3)), "else there is nothing to be made good");
    world.groups = vec![0; 4];
    world.pass(VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * 4);
    for n in [0, 2, 3] {
        assert_eq!(world.view(n, vote).tally, Some(vec![0, 1]), "node{n}");
    }
}

#[test]
fn two_nodes_that_expel_each_other_are_both_out_whoever_hears_what_first() {
    for first in [0, 1] {
        let mut world = World::new(4);
        world.groups = vec![0, 1, 2, 3];
        part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
        part(&mut world, 1, 0, Parting::Expelled).expect("it does not know");
        let held = std::mem::take(&mut world.held);
        let (now, later): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|(from, _, _)| *from == first);
        for (_, to, message) in now.into_iter().chain(later).filter(|(_, to, _)| *to > 1) {
            // Relayed by a member in good standing.
            let from = id(&world, 5 - to);
            world.nodes[to].give(Input::Message { from, message });
        }
        for n in [2, 3] {
            let parted = &world.nodes[n].engine.known.cx.parted;
            let out: Vec<NodeId> = parted.nodes().collect();
            assert_eq!(out.len(), 2, "node{n} knows of {out:?}, {first} first");
        }
        let digests = [2, 3].map(|n| world.nodes[n].digest());
        assert_eq!(digests[0], digests[1]);
        // So it is from the first moment of another start.
        let again = Node::open(3, disk::stored(&world.nodes[2].rows), world.nodes[2].now);
        assert_eq!(said_at_start(&again), (2, 0));
    }
}

/// Whom a node that has started shuts out, and of whom it says that they have parted.
fn said_at_start(node: &Node) -> (usize, usize) {
    let count = |fits: fn(&&Effect) -> bool| node.effects.iter().filter(fits).count();
    (
        count(|it| matches!(it, Effect::ShutOut(_))),
        count(|it| matches!(it, Effect::Alarm(Alarm::Parted { .. }))),
    )
}

#[test]
fn a_start_shuts_out_who_is_out_and_tells_nothing_anew_but_to_that_node() {
    let mut world = World::new(3);
    part(&mut world, 0, 1, Parting::Expelled).expect("any member may");
    for (n, said) in [(0, (1, 0)), (2, (1, 0)), (1, (0, 1))] {
        let seed = u8::try_from(n + 1).expect("few");
        let again = Node::open(seed, disk::stored(&world.nodes[n].rows), world.nodes[n].now);
        assert_eq!(said_at_start(&again), said, "node{n}");
        assert_eq!(again.engine.known.cx.out, n == 1);
    }
}

#[test]
fn whoever_is_out_writes_nothing_more_and_says_why() {
    let mut world = World::new(2);
    part(&mut world, 1, 0, Parting::Expelled).expect("the founder, too");
    assert!(world.nodes[0].engine.known.cx.out);
    let (caller, room) = (world.callers[0].clone(), world.lobby());
    let refused = world.nodes[0].say(&caller, room);
    assert_eq!(refused.err(), Some(Refused::Apart(crate::api::command::Apart::Expelled)));
    let Ok(Outcome::Status(status)) = world.ask(0, Command::Status) else { panic!("it says") };
    assert_eq!(status.parted.map(|it| it.by), Some(id(&world, 1)));
    let back = part(&mut world, 0, 1, Parting::Expelled);
    assert!(matches!(back, Err(Refused::Impossible(_))), "{back:?}");
    let head = lobby_log(&world, 0, 0).0;
    world.restart_reading(0);
    assert!(world.nodes[0].engine.known.cx.out, "after a start as well");
    world.pass(STEP_FOR_TAKEOVER);
    assert_eq!(lobby_log(&world, 0, 0).0, head, "not even numbers");
    // The other goes on without it, at once.
    let call = speak(&mut world, 1);
    world.pass(Duration::from_secs(1));
    assert!(world.reply(1, call).is_some_and(|it| it.is_ok()));
}

#[test]
fn a_node_is_told_that_it_is_out_by_members_and_nobody_else() {
    let mut world = World::new(2);
    let (me, member, stranger) = (id(&world, 0), id(&world, 1), identity(77).node_id());
    let parted = Parted { why: Parting::Retired, by: stranger, wall_ms: 5 };
    let mut told = |from, by, node| {
        let it = Signed { value: Notice { by, node, parted }, signature: [0; 64] };
        world.nodes[0].give(Input::Message { from, message: Message::Parted(it) });
        world.nodes[0].engine.known.cx.out
    };
    assert!(!told(stranger, stranger, me));
    assert!(!told(member, member, stranger));
    assert!(!told(stranger, member, me), "it is not said to others");
    assert!(told(member, member, me));
    assert_eq!(world.nodes[0].engine.known.cx.faults.stray, 3, "the others are counted");
    // It may have made up who decided it.
    let farewell =
        crate::engine::membership::farewell(&world.nodes[0].engine.known).map(|it| it.by);
    assert_eq!(farewell, Some(member));
    let again = Node::open(1, disk::stored(&world.nodes[0].rows), world.nodes[0].now);
    assert!(again.engine.known.cx.out, "it does not forget it");
    assert_eq!(member_alarms(&world, 0), [me]);
}

fn member_alarms(world: &World, n: usize) -> Vec<NodeId> {
    let effects = world.nodes[n].effects.iter();
    let alarms = effects.filter_map(|it| match it {
        Effect::Alarm(Alarm::Parted { node, .. }) => Some(*node),
        _ => None,
    });
    alarms.collect()
}

#[test]
fn a_node_that_was_away_is_told_when_it_comes_back() {
    let mut world = World::new(2);
    world.down.insert(1);
    world.pass(STEP_FOR_TAKEOVER);
    part(&mut world, 0, 1, Parting::Retired).expect("it is not heard");
    world.down.remove(&1);
    world.held.clear();
    world.link();
    assert!(world.nodes[1].engine.known.cx.out);
    assert!(!world.nodes[0].engine.known.cx.up.contains(&id(&world, 1)));
}

#[test]
fn a_node_that_is_heard_or_ahead_is_not_retired() {
    let mut world = World::new(3);
    let refused = part(&mut world, 0, 1, Parting::Retired);
    assert!(matches!(refused, Err(Refused::Impossible(_))), "it is heard: {refused:?}");
    world.down.insert(1);
    world.pass(STEP_FOR_TAKEOVER);
    let (room, log) = (world.lobby(), LogId { author: id(&world, 1), incarnation: 0 });
    let seq = lobby_log(&world, 0, 1).0 + 1;
    let heads = vec![crate::wire::message::Head { log, seq }];
    let from = id(&world, 2);
    world.nodes[0].give(Input::PeerUp(from));
    let message = Message::Have { room, heads, answer: false };
    world.nodes[0].give(Input::Message { from, message });
    let refused = part(&mut world, 0, 1, Parting::Retired);
    assert!(matches!(refused, Err(Refused::Impossible(_))), "another has more: {refused:?}");
    let node = id(&world, 1);
    world.ask(0, Command::Part { node, why: Parting::Retired, force: true }).expect("forced");
    assert_eq!(member(&mut world, 2, 1).parted.map(|it| it.why), Some(Parting::Retired));
    let Ok(Outcome::Status(status)) = world.ask(0, Command::Status) else { panic!("it says") };
    assert!(status.nodes.iter().all(|it| it.node != node), "nobody counts on it");
    let again = part(&mut world, 2, 1, Parting::Retired);
    assert!(matches!(again, Err(Refused::Impossible(_))), "{again:?}");
    let unknown =
        world.ask(0, Command::Part { node: NodeId([9; 32]), why: Parting::Expelled, force: true });
    assert!(matches!(unknown, Err(Refused::Impossible(_))), "{unknown:?}");
}

#[test]
fn a_node_that_leaves_hands_over_and_goes_when_another_knows() {
    let mut world = World::new(2);
    let call = world.begin(0, Command::LeaveMesh { force: false });
    let refused = world.reply(0, call);
    assert!(matches!(refused, Some(Err(Refused::Impossible(_)))), "nobody is there: {refused:?}");
    world.link();
    world.groups = vec![0, 1];
    speak(&mut world, 0);
    let call = world.begin(0, Command::LeaveMesh { force: false });
    let Some(Err(Refused::Impossible(text))) = world.reply(0, call) else {
        panic!("nobody has it")
    };
    assert!(text.contains("is known to have the last"), "{text}");
    world.groups = vec![0, 0];
    world.carry();
    // It says that the other has what it wrote when that is in step.
    world.pass(Duration::from_secs(2));
    let call = world.begin(0, Command::LeaveMesh { force: false });
    world.carry();
    world.pass(Duration::from_secs(1));
    let reply = world.reply(0, call);
    assert!(matches!(reply, Some(Ok(Outcome::LeftMesh { heard: true }))), "{reply:?}");
    assert!(world.nodes[0].engine.known.cx.out);
    let left = member(&mut world, 1, 0).parted.map(|it| (it.why, it.by));
    assert_eq!(left, Some((Parting::Left, id(&world, 0))));
    // All that it wrote counts, this entry too.
    let directory = RoomId::directory(world.nodes[1].secret.mesh_id());
    for room in [directory, world.lobby()] {
        let engine = &world.nodes[1].engine;
        let log = LogId { author: id(&world, 0), incarnation: 0 };
        let head = engine.known.rooms[&room].replica.logs.head_of(log);
        assert_eq!(engine.known.cx.parted.cut(log.author, room, true), Some(Cut::At(head)));
    }
    // Its rooms were handed over: no era is spent.
    let call = speak(&mut world, 1);
    assert!(world.reply(1, call).is_some_and(|it| it.is_ok()), "at once");
    let era = world.nodes[1].engine.known.rooms[&world.lobby()].order.numbering.current();
    assert_eq!(era, crate::name::number::Era::HOME);
}

/// A member's word that another is expelled, of whom this counts.
pub(super) fn expels(node: &Node, by: u8, out: u8, cut: &[(RoomId, u64)]) -> Run {
    let directory = RoomId::directory(node.secret.mesh_id());
    let mut cut: Vec<Kept> =
        cut.iter().map(|(room, seq)| Kept { room: *room, seq: *seq }).collect();
    cut.sort_by_key(|it| it.room);
    let it = NodeParted { node: identity(out).node_id(), why: Parting::Expelled, cut };
    log_of(node, directory, by, &[Body::Parted(it)])
}

#[test]
fn what_an_expelled_node_says_of_keys_counts_up_to_the_cut_and_of_who_is_out_always() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let log = SignedLog { node: identity(5).node_id(), ..node.signed_log() };
    let minted = |nth: usize| {
        Body::Key(crate::wire::acts::KeyAct::Minted(minted(&log, PRINTS[nth], Tier::High)))
    };
    let third = NodeParted { node: identity(7).node_id(), why: Parting::Expelled, cut: Vec::new() };
    let said = [minted(1), minted(2), Body::Parted(third)];
    let within = log_of(&node, directory, 5, &said[..1]);
    let all = log_of(&node, directory, 5, &said);
    node.hear(&within);
    for by in [6, 8] {
        let run = expels(&node, by, 5, &[(directory, 1)]);
        node.hear(&run);
    }
    let before = node.digest_of(directory);
    node.hear(&all);
    assert_ne!(node.digest_of(directory), before, "who has not heard of it is to find out");
    let keys = &node.engine.known.directory.keys();
    assert!(keys.knows(PRINTS[1]), "what was within the cut stays");
    assert!(!keys.knows(PRINTS[2]));
    assert!(node.engine.known.cx.parted.has(identity(7).node_id()));
    let alarms = node.effects.iter().filter(|it| matches!(it, Effect::Alarm(Alarm::Parted { .. })));
    assert_eq!(alarms.count(), 2, "of each once");
}

#[test]
fn what_waits_of_an_expelled_node_waits_on_within_the_cut_and_is_dropped_beyond_it() {
    for (cut, waits) in [(3, true), (1, false)] {
        let mut node = Node::new(1);
        let lobby = node.lobby();
        let said = ["one", "two", "three"].map(|it| Body::Chat(said(it)));
        let one = log_of(&node, lobby, 5, &said[..1]);
        let two = log_of(&node, lobby, 5, &said[..2]);
        let mut three = log_of(&node, lobby, 5, &said);
        three.entries.drain(..2);
        let before = two.clone().verify(node.secret.mesh_id()).expect("it is sealed");
        (three.first, three.backlink) = (3, before.certificate().hash);
        let three = three.seal(node.secret.mesh_id(), &identity(5)).run().clone();
        let parting = expels(&node, 6, 5, &[(lobby, cut)]);
        for run in [&one, &three, &parting] {
            node.hear(run);
        }
        assert_eq!(node.engine.known.rooms[&lobby].replica.pending.is_empty(), !waits);
        assert_eq!(node.engine.known.cx.memory.pending > 0, waits);
        node.hear(&two);
        let head = node.engine.known.rooms[&lobby].replica.logs.head_of(one.log);
        assert_eq!(head, cut, "all of it that counts");
    }
}

#[test]
fn what_waits_of_a_log_of_which_nothing_is_here_is_dropped_with_its_author() {
    for (cut, waits) in [(0, false), (9, true)] {
        let mut node = Node::new(1);
        let lobby = node.lobby();
        let mut ahead = said_at(&node, 5, 9).run().clone();
        ahead.first = 9;
        let ahead = ahead.seal(node.secret.mesh_id(), &identity(5)).run().clone();
        node.hear(&ahead);
        assert!(!node.engine.known.rooms[&lobby].replica.pending.is_empty());
        let named = [(lobby, cut)];
        let parting = expels(&node, 6, 5, if waits { &named } else { &[] });
        node.hear(&parting);
        assert_eq!(node.engine.known.rooms[&lobby].replica.pending.is_empty(), !waits);
        assert_eq!(node.engine.known.cx.memory.pending > 0, waits);
    }
}

#[test]
fn a_parting_names_rooms_that_last_and_how_far_they_are_here() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let (lobby, memory) = (node.lobby(), room_for_now(&mut node, &caller));
    let directory = RoomId::directory(node.secret.mesh_id());
    let admitted =
        crate::wire::entry::NodeAdmitted { lane: 2_000, name: String::new(), relay: None };
    let said = |content| Body::Chat(said(content));
    for run in [
        log_of(&node, directory, 5, &[Body::NodeAdmitted(admitted)]),
        log_of(&node, lobby, 5, &[said("one"), said("two")]),
        log_of(&node, memory, 5, &[said("three")]),
    ] {
        node.hear(&run);
    }
    let out = identity(5).node_id();
    node.ask(Command::Part { node: out, why: Parting::Expelled, force: false }).expect("a member");
    let named = node.rows.iter().find_map(|row| match row {
        Change::Entry { entry, .. } => match Body::decode(entry.facts.kind, &entry.body) {
            Body::Parted(it) => Some(it.cut),
            _ => None,
        },
        _ => None,
    });
    let mut lasting = vec![Kept { room: directory, seq: 1 }, Kept { room: lobby, seq: 2 }];
    lasting.sort_by_key(|it| it.room);
    assert_eq!(named, Some(lasting));
}

#[test]
fn who_forked_who_parted_and_this_node_when_it_is_out_give_no_numbers() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    for content in ["one", "another"] {
        let run = said_in(&node, (lobby, 0), (5, 1, content)).run().clone();
        node.hear(&run);
    }
    let run = expels(&node, 7, 6, &[]);
    node.hear(&run);
    let out = |node: &Node| {
        let room = &node.engine.known.rooms[&lobby];
        [1, 5, 6, 7]
            .map(|seed| room.replica.is_out(&node.engine.known.cx, identity(seed).node_id()))
    };
    assert_eq!(out(&node), [false, true, true, false]);
    node.engine.known.cx.out = true;
    assert_eq!(out(&node), [true, true, true, false]);
}

/// An author may seal its entries anew, as one run: of it only what is within the cut counts.
#[test]
fn a_run_that_reaches_over_the_cut_counts_up_to_it() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let out = identity(5);
    let kept = vec![Kept { room: lobby, seq: 1 }];
    let it = NodeParted { node: out.node_id(), why: Parting::Expelled, cut: kept };
    let directory = RoomId::directory(node.secret.mesh_id());
    let parting = log_of(&node, directory, 6, &[Body::Parted(it)]);
    let both = log_of(&node, lobby, 5, &[Body::Chat(said("within")), Body::Chat(said("beyond"))]);
    node.hear(&parting);
    assert!(node.engine.known.cx.parted.has(out.node_id()));
    node.hear(&both);
    let numbered = node.rows.iter().filter(|row| match row {
        Change::Number { room, fate, .. } => *room == lobby && *fate == Fate::Delivered,
        _ => false,
    });
    assert_eq!(numbered.count(), 1, "the one within the cut");
    assert!(node.engine.known.rooms[&lobby].order.numbering.undelivered.is_empty());
}

#[test]
fn who_wrote_in_more_rooms_than_a_parting_names_is_told_before_it_leaves() {
    let mut node = Node::new(1);
    let me = node.attach("busy", false, KEY).expect("free");
    for n in 0..=PARTED_LOGS_MAX {
        let (name, caller) = (format!("room{n}"), me.clone());
        let (description, parent) = (None, None);
        let (ephemeral, public, encrypted) = (false, true, false);
        let room = NewRoom { name, description, parent, ephemeral, public, encrypted };
        let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
        let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
        node.ask(Command::Join { caller: caller.clone(), room: view.room }).expect("public");
        node.say(&me, view.room).expect("a member");
        node.ask(Command::Leave { caller, room: view.room }).expect("a member");
        node.rows.clear();
        node.effects.clear();
    }
    node.give(Input::PeerUp(identity(9).node_id()));
    let refused = node.ask(Command::LeaveMesh { force: false });
    let Err(Refused::Impossible(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("more than can be named"), "{text}");
    // Whoever wants it all the same keeps its rooms: the directory is named.
    node.begin(Command::LeaveMesh { force: true });
    let directory = RoomId::directory(node.secret.mesh_id());
    node.wait(Duration::from_secs(5));
    let me = node.engine.known.cx.me;
    assert!(
        matches!(node.engine.known.cx.parted.cut(me, directory, true), Some(Cut::At(seq)) if seq > 1)
    );
}

/// Where whoever parts it could see nothing there is no cut: others hold more of what it wrote, or less.
#[test]
fn who_has_parted_counts_in_no_vote_of_a_private_room_that_its_cut_does_not_name() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let vote = NewVote {
        room,
        title: "which".to_owned(),
        description: None,
        options: vec!["this".to_owned(), "that".to_owned()],
        duration_secs: None,
    };
    let made = node.ask(Command::CreateVote { caller: me, vote });
    let Ok(Outcome::Vote(made)) = made else { panic!("{made:?}") };
    let (_, place) = node.engine.known.index.votes[&made.vote];
    node.engine.known.directory.assume_owner("me", key());
    node.engine.known.directory.assume_shown(identity(8).node_id(), key());
    let (agent, commitment) = ("me".into(), [7; 32]);
    let cast = BallotCast { vote: place, agent, commitment, key: Some(key()) };
    let body = Body::Vote(VoteAct::Cast(cast));
    let log = LogId { author: identity(8).node_id(), incarnation: 0 };
    let spot = SealContext { room, log, seq: 1, kind: body.kind() };
    let sealed =
        Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room).seal(&spot, &body.encode());
    let facts = Facts { clock: 1_000, wall_ms: 0, kind: body.kind(), visible: body.visible() };
    let entries = vec![RunEntry { facts, body: Carried::Here(sealed.into()) }];
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    node.hear(run.seal(node.secret.mesh_id(), &identity(8)).run());
    let seen = |node: &Node| {
        let room = &node.engine.known.rooms[&room];
        let cast = room.folds.votes.get(place).expect("it is known").turnout().0;
        (cast, room.folds.elections.has_unheard())
    };
    assert_eq!(seen(&node), (1, false));
    let run = expels(&node, 6, 8, &[]);
    node.hear(&run);
    assert_eq!(seen(&node), (0, true));
}

#[test]
fn a_node_is_in_step_or_behind_by_what_was_said_since() {
    let mut world = World::new(3);
    world.pass(STEP * 20);
    for (at, of) in [(0, 1), (0, 2), (1, 2), (2, 2)] {
        let step = member(&mut world, at, of).step.expect("it was heard");
        assert!(step.is_even && step.behind == 0, "{at} of {of}: {step:?}");
    }
    world.groups[2] = 1;
    for _ in 0..3 {
        speak(&mut world, 0);
        world.pass(STEP * 5);
    }
    world.pass(Duration::from_secs(5));
    assert!(member(&mut world, 0, 1).step.expect("heard").is_even);
    let step = member(&mut world, 0, 2).step.expect("it was heard before");
    assert!(!step.is_even && step.behind == 3 && step.even_ago.is_some(), "{step:?}");
    world.groups[2] = 0;
    world.pass(STEP * 30);
    let step = member(&mut world, 0, 2).step.expect("it is heard");
    assert!(step.is_even && step.behind == 0, "{step:?}");
    assert!(member(&mut world, 0, 2).through.is_none(), "it speaks itself");
}
