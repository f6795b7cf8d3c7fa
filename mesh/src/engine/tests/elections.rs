//! Elections and decisions, as clients see them; and what liars get.

use std::collections::BTreeSet;

use super::{
    KEY, Node,
    disk::stored,
    world::{Liar, STEP, World},
};
use crate::{
    api::{
        agenda::LeaderGone,
        batch::Change,
        boundary::{Effect, Input},
        command::{Caller, Command, Encryption, Outcome, Refused, Say, Speech},
        event::RoomEvent,
    },
    fold::elections::{commitment, nonce},
    limits::CONTENT_BYTES_MAX,
    name::id::{AgentId, RoomId},
    wire::{
        acts::{Candidate, ElectionAct, ElectionStarted},
        entry::{Body, Decision, Said},
        kinds::DECISION,
        message::Message,
    },
};

fn elect(caller: &Caller, room: RoomId) -> Command {
    Command::ElectLeader { caller: caller.clone(), room }
}

fn decline(caller: &Caller, room: RoomId) -> Command {
    Command::Decline { caller: caller.clone(), room }
}

fn decide(caller: &Caller, room: RoomId, content: &str) -> Command {
    let say = Say {
        room,
        speech: Speech::Decision,
        content: content.to_owned(),
        encryption: Encryption::None,
        durable: None,
        conversing: None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    };
    Command::Say { caller: caller.clone(), say }
}

/// What members were told of leaders, one line each.
fn told(world: &mut World, n: usize) -> Vec<String> {
    let told = std::mem::take(&mut world.told[n]).into_iter().filter_map(|it| match it {
        RoomEvent::ElectionStarted { candidates, by } => {
            Some(format!("election by {by} of {}", candidates.join(" ")))
        }
        RoomEvent::LeaderElected { agent, .. } => Some(format!("{agent} leads")),
        RoomEvent::LeaderCleared { why } => Some(format!("{why:?}")),
        RoomEvent::Message(it) if it.facts.kind == DECISION => {
            let said = it.said.expect("it is fresh");
            Some(format!("{} decides {}", said.agent, said.content))
        }
        _ => None,
    });
    told.collect()
}

fn leader(world: &World, n: usize) -> Option<AgentId> {
    let room = &world.nodes[n].engine.known.rooms[&world.lobby()];
    let leader = room.folds.elections.leader(world.nodes[n].now.mono);
    leader.map(|it| it.candidate.agent.clone())
}

/// The node whose agent leads the lobby, as all nodes agree.
fn host(world: &World) -> usize {
    let alive: Vec<usize> = (0..world.nodes.len()).filter(|n| !world.down.contains(n)).collect();
    let leaders: BTreeSet<Option<AgentId>> = alive.iter().map(|n| leader(world, *n)).collect();
    let Some(Some(agent)) = leaders.first().filter(|_| leaders.len() == 1) else {
        panic!("{leaders:?}")
    };
    let host = world.callers.iter().position(|it| it.agent == *agent);
    host.expect("one of them")
}

/// Holds an election that ends as it should.
fn elected(world: &mut World) -> usize {
    let (room, starter) = (world.lobby(), world.callers[0].clone());
    world.ask(0, elect(&starter, room)).expect("none runs");
    world.pass(STEP * 23);
    host(world)
}

#[test]
fn an_election_takes_two_seconds_and_all_nodes_know_the_same_leader() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    let Ok(Outcome::Candidates(candidates)) = world.ask(1, elect(&callers[1], room)) else {
        panic!("none runs")
    };
    assert_eq!(candidates.len(), 3);
    let line = format!("election by agent1 of {}", candidates.join(" "));
    for (n, caller) in callers.iter().enumerate() {
        assert_eq!(told(&mut world, n), std::slice::from_ref(&line), "node {n}");
        assert_eq!(world.ask(n, elect(caller, room)).expect_err("one"), Refused::ElectionRuns);
    }
    world.pass(STEP * 18);
    assert!((0..3).all(|n| told(&mut world, n).is_empty()), "candidates may still decline");
    world.pass(STEP * 4);
    let host = host(&world);
    for n in 0..3 {
        assert_eq!(told(&mut world, n), [format!("agent{host} leads")], "node {n}");
        assert!(!world.nodes[n].engine.known.rooms[&room].is_busy(), "nothing is left to do");
    }
}

#[test]
fn only_the_leader_decides_and_all_members_are_told() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    for (n, caller) in callers.iter().enumerate() {
        let refused = world.ask(n, decide(caller, room, "x")).expect_err("nobody leads");
        assert_eq!(refused, Refused::NotLeader);
    }
    let host = elected(&mut world);
    (0..3).for_each(|n| drop(told(&mut world, n)));
    let turns = |world: &World| -> Vec<_> {
        world
            .nodes
            .iter()
            .map(|it| crate::engine::turn_token::holder(&it.engine.known, room))
            .collect()
    };
    let before = turns(&world);
    for n in (0..3).filter(|n| *n != host) {
        let refused = world.ask(n, decide(&callers[n], room, "x")).expect_err("another leads");
        assert_eq!(refused, Refused::NotLeader);
    }
    // Nor does whoever else is at the leader's node: no other node could ever judge that, nor what comes after it.
    let aide = world.nodes[host].attach("aide", false, KEY).expect("free");
    world.ask(host, Command::Join { caller: aide.clone(), room }).expect("public");
    (0..3).for_each(|n| drop(told(&mut world, n)));
    let refused = world.ask(host, decide(&aide, room, "x")).expect_err("another leads");
    assert_eq!(refused, Refused::NotLeader);
    let large = "x".repeat(CONTENT_BYTES_MAX + 1);
    let refused = world.ask(host, decide(&callers[host], room, &large)).expect_err("too large");
    assert!(matches!(refused, Refused::TooLarge { .. }));
    let call = world.begin(host, decide(&callers[host], room, "tea"));
    world.carry();
    assert!(matches!(world.reply(host, call), Some(Ok(Outcome::Said(_)))));
    for n in 0..3 {
        assert_eq!(told(&mut world, n), [format!("agent{host} decides tea")], "node {n}");
    }
    assert_eq!(turns(&world), before, "a decision does not move the turn");
    // Whoever is not in the room is told that first.
    let leave = Command::Leave { caller: callers[host].clone(), room };
    world.ask(host, leave).expect("a member");
    let refused = world.ask(host, decide(&callers[host], room, "x")).expect_err("outside");
    assert_eq!(refused, Refused::NotMember);
}

#[test]
fn one_may_decline_for_two_seconds_and_all_together_leave_nobody() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    let early = world.ask(0, decline(&callers[0], room)).expect_err("none runs");
    assert_eq!(early, Refused::NoElection);
    world.ask(0, elect(&callers[0], room)).expect("none runs");
    for n in [0, 2] {
        world.ask(n, decline(&callers[n], room)).expect("in time");
    }
    world.ask(2, decline(&callers[2], room)).expect("again, for nothing");
    world.pass(STEP * 23);
    assert_eq!(host(&world), 1);
    let late = world.ask(1, decline(&callers[1], room)).expect_err("it is over");
    assert_eq!(late, Refused::NoElection);
    (0..3).for_each(|n| drop(told(&mut world, n)));
    world.ask(1, elect(&callers[1], room)).expect("none runs");
    for (n, caller) in callers.iter().enumerate() {
        world.ask(n, decline(caller, room)).expect("in time");
    }
    (0..3).for_each(|n| drop(told(&mut world, n)));
    world.pass(STEP * 23);
    for n in 0..3 {
        assert_eq!(told(&mut world, n), ["AllDeclined"], "node {n}");
        assert_eq!(leader(&world, n), None);
    }
}

#[test]
fn that_all_have_declined_is_told_to_who_saw_the_election_begin() {
    let mut world = World::new(2);
    let (room, callers) = (world.lobby(), world.callers.clone());
    let all_decline = |world: &mut World, of: &[usize]| {
        world.ask(0, elect(&callers[0], room)).expect("none runs");
        for n in of {
            world.ask(*n, decline(&callers[*n], room)).expect("in time");
        }
        (0..2).for_each(|n| drop(told(world, n)));
        world.pass(STEP * 23);
    };
    all_decline(&mut world, &[0, 1]);
    for n in 0..2 {
        assert_eq!(told(&mut world, n), ["AllDeclined"], "node {n}");
    }
    world.groups = vec![0, 1];
    world.pass(STEP * 40);
    all_decline(&mut world, &[0]);
    assert_eq!(told(&mut world, 0), ["AllDeclined"]);
    world.pass(STEP * 20);
    world.groups = vec![0, 0];
    world.pass(STEP * 10);
    assert_eq!(told(&mut world, 1), Vec::<String>::new(), "it is history");
}

#[test]
fn only_members_of_a_room_they_may_see_elect_and_decline() {
    let mut node = Node::new(1);
    let bob = node.attach("bob", false, KEY).expect("free");
    let room = node.lobby();
    assert_eq!(node.ask(elect(&bob, room)).expect_err("outside"), Refused::NotMember);
    assert_eq!(node.ask(decline(&bob, room)).expect_err("outside"), Refused::NotMember);
    let nowhere = RoomId([9; 16]);
    assert_eq!(node.ask(elect(&bob, nowhere)).expect_err("no room"), Refused::NoRoom);
    assert_eq!(node.ask(decline(&bob, nowhere)).expect_err("no room"), Refused::NoRoom);
}

#[test]
fn who_leaves_or_disconnects_while_it_runs_is_not_elected() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    world.ask(0, elect(&callers[0], room)).expect("none runs");
    world.ask(0, Command::Leave { caller: callers[0].clone(), room }).expect("a member");
    let gone = Command::Detach { caller: callers[2].clone(), seen: Vec::new() };
    world.ask(2, gone).expect("it is attached");
    world.pass(STEP * 23);
    assert_eq!(host(&world), 1);
}

#[test]
fn a_leader_who_leaves_or_disconnects_leads_no_longer() {
    for disconnects in [false, true] {
        let mut world = World::new(3);
        let room = world.lobby();
        let host = elected(&mut world);
        (0..3).for_each(|n| drop(told(&mut world, n)));
        let caller = world.callers[host].clone();
        let goes = if disconnects {
            Command::Detach { caller, seen: Vec::new() }
        } else {
            Command::Leave { caller, room }
        };
        world.ask(host, goes).expect("it is there");
        for n in 0..3 {
            assert_eq!(told(&mut world, n), [format!("{:?}", LeaderGone::Left)], "node {n}");
            assert_eq!(leader(&world, n), None);
        }
    }
}

#[test]
fn a_leader_whose_node_died_is_cleared_by_another_and_by_one() {
    let mut world = World::new(3);
    let host = elected(&mut world);
    (0..3).for_each(|n| drop(told(&mut world, n)));
    world.down.insert(host);
    world.pass(STEP * 25);
    let others: Vec<usize> = (0..3).filter(|n| *n != host).collect();
    for n in &others {
        assert_eq!(leader(&world, *n), Some(world.callers[host].agent.clone()), "it may be heard");
    }
    world.pass(STEP * 20);
    let mut written = 0;
    for n in others {
        assert_eq!(told(&mut world, n), ["Left"], "node {n}");
        let cleared = world.nodes[n].rows.iter().filter(|it| {
            let crate::api::batch::Change::Entry { entry, .. } = it else { return false };
            let body = Body::decode(entry.facts.kind, &entry.body);
            matches!(body, Body::Election(ElectionAct::Cleared { .. }))
        });
        written += cleared.count();
    }
    assert_eq!(written, 2, "one entry, which both have");
}

#[test]
fn a_leader_whose_node_starts_anew_is_cleared_by_it() {
    let mut world = World::new(2);
    let host = elected(&mut world);
    (0..2).for_each(|n| drop(told(&mut world, n)));
    world.restart(host);
    for n in 0..2 {
        assert_eq!(leader(&world, n), None, "its agent is attached nowhere, or anew");
        assert_eq!(told(&mut world, n), ["Left"], "node {n}");
    }
}

#[test]
fn a_leader_that_is_still_there_leads_on_after_another_nodes_restart() {
    let mut world = World::new(2);
    let host = elected(&mut world);
    let other = 1 - host;
    world.restart(other);
    world.pass(STEP * 50);
    assert_eq!(leader(&world, other), Some(world.callers[host].agent.clone()));
    (0..2).for_each(|n| drop(told(&mut world, n)));
    let (caller, room) = (world.callers[host].clone(), world.lobby());
    world.begin(host, decide(&caller, room, "go on"));
    world.pass(STEP * 20);
    assert_eq!(told(&mut world, other), [format!("agent{host} decides go on")]);
}

#[test]
fn when_the_starter_dies_the_others_end_its_election() {
    let mut world = World::new(3);
    let (room, caller) = (world.lobby(), world.callers[2].clone());
    world.ask(2, elect(&caller, room)).expect("none runs");
    world.down.insert(2);
    world.pass(STEP * 60);
    assert_ne!(host(&world), 2, "it has not opened");
    for n in 0..2 {
        let told = told(&mut world, n);
        assert!(told.last().is_some_and(|it| it.ends_with("leads")), "{told:?}");
    }
}

/// Or else who led before leads again, for a moment.
#[test]
fn an_election_that_others_ended_is_over_after_a_restart_too() {
    let mut world = World::new(3);
    elected(&mut world);
    let (room, caller) = (world.lobby(), world.callers[2].clone());
    world.ask(2, elect(&caller, room)).expect("none runs");
    world.down.insert(2);
    world.pass(STEP * 60);
    let term =
        |node: &Node| crate::engine::elections::leader(&node.engine.known, room).map(|it| it.term);
    let node = &world.nodes[0];
    let again = Node::open(1, stored(&node.rows), node.now);
    assert_eq!([term(node), term(&again)], [Some(2), Some(2)]);
}

#[test]
fn a_node_that_dies_before_it_opens_drops_out() {
    let mut world = World::new(3);
    let (room, caller) = (world.lobby(), world.callers[0].clone());
    world.ask(0, elect(&caller, room)).expect("none runs");
    world.down.insert(1);
    world.pass(STEP * 25);
    assert_eq!(leader(&world, 0), None, "it is waited for");
    world.pass(STEP * 10);
    assert_ne!(host(&world), 1);
}

#[test]
fn of_the_leaders_of_two_sides_the_one_of_the_higher_term_stays() {
    let mut world = World::new(2);
    let (room, callers) = (world.lobby(), world.callers.clone());
    world.groups = vec![0, 1];
    world.pass(STEP * 40);
    let alone = |world: &mut World, n: usize| {
        world.begin(n, elect(&callers[n], room));
        world.pass(STEP * 25);
        assert_eq!(leader(world, n).as_ref(), Some(&callers[n].agent));
    };
    alone(&mut world, 0);
    alone(&mut world, 1);
    alone(&mut world, 1);
    (0..2).for_each(|n| drop(told(&mut world, n)));
    // Each decides before they hear of each other: both were leaders then.
    for (n, caller) in callers.iter().enumerate() {
        world.begin(n, decide(caller, room, "mine"));
    }
    world.pass(STEP * 40);
    world.groups = vec![0, 0];
    world.pass(STEP * 30);
    assert_eq!(host(&world), 1);
    let (first, second) = (told(&mut world, 0), told(&mut world, 1));
    let superseded = first.iter().position(|it| it == "Superseded").expect("one had to go");
    assert_eq!(first[superseded + 1], "agent1 leads");
    assert!(!second.iter().any(|it| it == "Superseded"), "{second:?}");
    for told in [&first, &second] {
        for n in 0..2 {
            assert!(told.contains(&format!("agent{n} decides mine")), "{told:?}");
        }
    }
    let refused = world.ask(0, decide(&callers[0], room, "still")).expect_err("superseded");
    assert_eq!(refused, Refused::NotLeader);
}

#[test]
fn two_elections_begun_at_once_leave_one_leader() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    for (n, caller) in callers.iter().enumerate().skip(1) {
        world.begin(n, elect(caller, room));
    }
    world.pass(STEP * 40);
    let host = host(&world);
    for n in 0..3 {
        let told = told(&mut world, n);
        assert_eq!(told.last(), Some(&format!("agent{host} leads")), "{told:?}");
        assert!(!world.nodes[n].engine.known.rooms[&room].is_busy());
    }
}

/// Holds back what these say to this one. Returns it.
fn hold_back(
    world: &mut World,
    from: &[usize],
    to: usize,
) -> Vec<(usize, usize, Message<crate::wire::run::Verified>)> {
    let (back, rest) = std::mem::take(&mut world.held)
        .into_iter()
        .partition(|(sender, receiver, _)| from.contains(sender) && *receiver == to);
    world.held = rest;
    back
}

#[test]
fn a_decision_waits_for_what_it_is_judged_by() {
    let mut world = World::new(3);
    let (room, callers) = (world.lobby(), world.callers.clone());
    // The third node hears nobody while the others elect and decide.
    world.groups = vec![0, 0, 1];
    world.ask(0, elect(&callers[0], room)).expect("none runs");
    world.pass(STEP * 35);
    let agent = leader(&world, 0).expect("two have opened");
    let host = callers.iter().position(|it| it.agent == agent).expect("one of them");
    world.ask(0, elect(&callers[0], room)).err();
    world.begin(host, decide(&callers[host], room, "tea"));
    world.carry();
    (0..3).for_each(|n| drop(told(&mut world, n)));
    // Then it hears the leader's node only.
    world.groups = vec![0, 0, 0];
    let late = hold_back(&mut world, &[1 - host], 2);
    world.carry();
    assert_eq!(told(&mut world, 2), Vec::<String>::new());
    assert!(!world.nodes[2].engine.known.rooms[&room].replica.pending.is_empty());
    world.held.extend(late);
    world.carry();
    world.pass(STEP * 30);
    let told = told(&mut world, 2);
    assert!(told.contains(&format!("{agent} decides tea")), "{told:?}");
    assert!(world.nodes[2].engine.known.rooms[&room].replica.pending.is_empty());
}

#[test]
fn a_decision_that_was_not_delivered_yet_is_there_after_a_restart() {
    let mut world = World::new(3);
    let room = world.lobby();
    let mut host = elected(&mut world);
    while host == 0 {
        host = elected(&mut world);
    }
    let caller = world.callers[host].clone();
    // Nobody gives it a number.
    world.down.insert(0);
    world.begin(host, decide(&caller, room, "tea"));
    world.carry();
    (0..3).for_each(|n| drop(told(&mut world, n)));
    world.restart(host);
    world.pass(STEP * 60);
    for n in 1..3 {
        let told = told(&mut world, n);
        assert!(told.contains(&format!("agent{host} decides tea")), "node {n}: {told:?}");
    }
}

/// What a node itself has written of elections in the lobby.
fn written(world: &World, n: usize, is: impl Fn(&ElectionAct) -> bool) -> usize {
    let (node, lobby) = (&world.nodes[n], world.lobby());
    let room = &node.engine.known.rooms[&lobby];
    let own = room.replica.logs.ix(room.replica.mine);
    let acts = node.rows.iter().filter(|it| {
        let Change::Entry { room, at, entry } = it else { return false };
        let Body::Election(act) = Body::decode(entry.facts.kind, &entry.body) else { return false };
        *room == lobby && Some(at.log) == own && is(&act)
    });
    acts.count()
}

fn closes(world: &World) -> Vec<usize> {
    let closed = |it: &ElectionAct| matches!(it, ElectionAct::Closed { .. });
    (0..world.nodes.len()).map(|n| written(world, n, closed)).collect()
}

fn drops(world: &World) -> Vec<usize> {
    let dropped = |it: &ElectionAct| matches!(it, ElectionAct::Dropped { .. });
    (0..world.nodes.len()).map(|n| written(world, n, dropped)).collect()
}

#[test]
fn of_several_that_could_close_an_election_or_drop_a_node_one_does() {
    let mut world = World::new(3);
    let (room, caller) = (world.lobby(), world.callers[2].clone());
    world.ask(2, elect(&caller, room)).expect("none runs");
    world.down.insert(2);
    world.pass(STEP * 60);
    assert_eq!(closes(&world).iter().sum::<usize>(), 1);
    let mut world = World::new(3);
    let caller = world.callers[0].clone();
    world.ask(0, elect(&caller, room)).expect("none runs");
    world.down.insert(1);
    world.pass(STEP * 35);
    assert_eq!((closes(&world), drops(&world)), (vec![1, 0, 0], vec![1, 0, 0]), "who closed");
}

#[test]
fn when_who_closed_is_gone_another_says_a_little_later_who_has_not_opened() {
    let mut world = World::new(4);
    let (room, caller) = (world.lobby(), world.callers[0].clone());
    world.ask(0, elect(&caller, room)).expect("none runs");
    world.pass(STEP * 10);
    world.down.insert(3);
    while closes(&world)[0] == 0 {
        world.pass(STEP);
    }
    world.down.insert(0);
    world.pass(STEP * 19);
    assert_eq!(drops(&world), [0; 4]);
    world.pass(STEP * 9);
    assert_eq!(drops(&world).iter().sum::<usize>(), 1);
}

#[test]
fn a_starter_that_is_heard_late_makes_nobody_open_twice() {
    let mut world = World::new(4);
    let (room, caller) = (world.lobby(), world.callers[2].clone());
    world.ask(2, elect(&caller, room)).expect("none runs");
    world.pass(STEP * 10);
    world.groups = vec![0, 0, 1, 0];
    // It never opens: what the others do is not over when they hear of the starter's close.
    world.down.insert(3);
    while closes(&world)[2] == 0 {
        world.pass(STEP);
    }
    world.down.insert(2);
    while closes(&world).iter().sum::<usize>() == 1 {
        world.pass(STEP);
    }
    let shown = |it: &ElectionAct| matches!(it, ElectionAct::Shown { .. });
    let opened = |world: &World| [0, 1].map(|n| written(world, n, shown));
    assert_eq!((opened(&world), leader(&world, 0)), ([1, 1], None));
    world.groups = vec![0; 4];
    world.pass(STEP * 5);
    assert_eq!(opened(&world), [1, 1]);
}

#[test]
fn a_starter_that_was_paused_ends_its_election_all_the_same() {
    let mut node = Node::new(1);
    let (caller, room) = (node.joins("ann"), node.lobby());
    node.ask(elect(&caller, room)).expect("none runs");
    node.now.mono += STEP * 50;
    for _ in 0..2 {
        node.give(Input::Timeout);
    }
    let leader = node.engine.known.rooms[&room].folds.elections.leader(node.now.mono);
    assert_eq!(leader.map(|it| it.candidate.agent.clone()), Some("ann".into()));
}

#[test]
fn a_close_that_comes_early_does_not_keep_the_starter_from_its_own() {
    let mut world = World::new(2);
    let (room, caller) = (world.lobby(), world.callers[0].clone());
    world.ask(0, elect(&caller, room)).expect("none runs");
    world.pass(STEP * 5);
    let now = world.nodes[0].now.mono;
    let running = world.nodes[0].engine.known.rooms[&room].folds.elections.running(now);
    let election = running.expect("it runs").place();
    let close = ElectionAct::Closed { election, commitments: Vec::new(), declined: Vec::new() };
    let (_, run) = Liar::new(9).write(&world.nodes[0], &Body::Election(close));
    for n in [0, 1] {
        world.nodes[n].hear(&run);
    }
    world.pass(STEP * 18);
    host(&world);
    assert_eq!(closes(&world), [1, 0]);
}

#[test]
fn members_are_told_why_a_leader_of_whom_they_never_heard_is_gone() {
    let mut world = World::new(2);
    let (room, caller) = (world.lobby(), world.callers[0].clone());
    // A leader whose node is silent would be gone before.
    while elected(&mut world) != 1 {}
    world.groups = vec![0, 1];
    world.pass(STEP * 40);
    world.ask(0, elect(&caller, room)).expect("none runs");
    world.pass(STEP * 25);
    assert_eq!(leader(&world, 0), Some(caller.agent.clone()));
    world.ask(0, Command::Leave { caller, room }).expect("a member");
    assert_eq!(leader(&world, 0), None);
    told(&mut world, 1);
    // The other hears of all of it at once.
    let from = world.nodes[0].engine.known.cx.me;
    for (_, to, message) in std::mem::take(&mut world.held) {
        if to == 1 && matches!(message, Message::Runs(_)) {
            let now = world.nodes[1].now;
            world.nodes[1].engine.handle(now, Input::Message { from, message });
        }
    }
    world.nodes[1].turn();
    world.groups = vec![0, 0];
    world.carry();
    assert_eq!(told(&mut world, 1), ["Left"]);
}

#[test]
fn a_leader_that_moved_to_another_node_leads_no_longer() {
    let mut world = World::new(3);
    let room = world.lobby();
    let host = elected(&mut world);
    (0..3).for_each(|n| drop(told(&mut world, n)));
    world.down.insert(host);
    let other = (host + 1) % 3;
    let agent = format!("agent{host}");
    let attach = crate::api::command::Attach {
        agent: agent.as_str().into(),
        stable: false,
        reconnect: true,
        key: KEY,
        own: true,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: agent.clone(),
        capabilities: Vec::new(),
    };
    let Ok(Outcome::Attached(it)) = world.ask(other, Command::Attach(attach)) else {
        panic!("it is its own")
    };
    assert_eq!(it.restored.map(|it| it[0].0), Some(room));
    world.pass(crate::limits::ROSTER_LEASE * 2);
    for n in (0..3).filter(|n| *n != host) {
        assert_eq!((leader(&world, n), told(&mut world, n)), (None, vec!["Left".to_owned()]));
    }
}

/// Of a log that forked others may have had elections that are unknown here.
#[test]
fn a_term_that_leaps_is_waited_for_while_nobody_is_known_to_have_forked() {
    for forked in [false, true] {
        let mut node = Node::new(1);
        if forked {
            for content in ["one", "another"] {
                let run = super::said_in(&node, (node.lobby(), 0), (5, 1, content)).run().clone();
                node.hear(&run);
            }
        }
        let mut liar = Liar::new(9);
        let candidates = vec![Candidate {
            agent: "eve".into(),
            name: "eve".to_owned(),
            node: liar.log().author,
        }];
        let it = ElectionStarted { term: 7, candidates, started_by: "eve".into() };
        let (_, run) = liar.write(&node, &Body::Election(ElectionAct::Started(it)));
        node.hear(&run);
        let head = node.engine.known.rooms[&node.lobby()].replica.logs.head_of(liar.log());
        assert_eq!(head, u64::from(forked));
    }
}

fn decision(agent: &str, election: crate::name::id::EntryRef) -> Body {
    let said = Said {
        agent: agent.into(),
        name: agent.to_owned(),
        content: "all power to me".to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        turn: None,
        id: None,
        key: None,
        conversation: None,
    };
    Body::Decision(Decision { said, election })
}

#[test]
fn nobody_decides_in_a_leaders_stead() {
    let mut world = World::new(2);
    let host = elected(&mut world);
    let room = world.lobby();
    let election = {
        let elections = &world.nodes[0].engine.known.rooms[&room].folds.elections;
        elections.leader(world.nodes[0].now.mono).expect("elected").election
    };
    (0..2).for_each(|n| drop(told(&mut world, n)));
    let mut liar = Liar::new(9);
    let stands = |term| {
        let node = liar.log().author;
        let candidates = vec![Candidate { agent: "eve".into(), name: "eve".to_owned(), node }];
        let it = ElectionStarted { term, candidates, started_by: "eve".into() };
        Body::Election(ElectionAct::Started(it))
    };
    let (leap, fair) = (stands(u64::MAX), stands(2));
    for (i, body) in [decision(&format!("agent{host}"), election), decision("eve", election), leap]
        .into_iter()
        .enumerate()
    {
        // Each in a log of its own: none of these is even accepted.
        let mut liar = Liar::new(10 + u8::try_from(i).expect("few"));
        let (_, run) = liar.write(&world.nodes[0], &body);
        world.nodes[0].hear(&run);
        let log = world.nodes[0].engine.known.rooms[&room].replica.logs.head_of(liar.log());
        assert_eq!((log, told(&mut world, 0).len()), (0, 0), "{body:?}");
    }
    // An election that it only began, and a message that is none.
    let (begun, run) = liar.write(&world.nodes[0], &fair);
    world.nodes[0].hear(&run);
    let (_, run) =
        liar.write(&world.nodes[0], &Body::Election(ElectionAct::Cleared { election: begun }));
    world.nodes[0].hear(&run);
    let void = world.nodes[0].engine.known.cx.faults.void;
    let nothing = crate::name::id::EntryRef { seq: 2, ..begun };
    let (_, run) = liar.write(&world.nodes[0], &decision("eve", nothing));
    world.nodes[0].hear(&run);
    assert_eq!(world.nodes[0].engine.known.cx.faults.void, void + 1, "it is here, and void");
    world.pass(STEP * 20);
    let told = told(&mut world, 0);
    assert!(!told.iter().any(|it| it.contains("decides")), "{told:?}");
}

#[test]
fn whoever_drops_a_node_that_has_opened_is_seen() {
    let mut world = World::new(2);
    elected(&mut world);
    let room = world.lobby();
    let elections = &world.nodes[0].engine.known.rooms[&room].folds.elections;
    let running = elections.concluded(world.nodes[0].now.mono).expect("elected").0;
    let closed = running.to_open(world.nodes[0].now.mono).expect("closed").place();
    let before = leader(&world, 0);
    let mut liar = Liar::new(9);
    let victim = world.nodes[1].engine.known.cx.me;
    let act = ElectionAct::Dropped { closed, nodes: vec![victim] };
    let (place, run) = liar.write(&world.nodes[0], &Body::Election(act));
    world.nodes[0].hear(&run);
    let alarm = world.nodes[0].effects.iter().find_map(|it| match it {
        Effect::Alarm(alarm) => Some(alarm.clone()),
        _ => None,
    });
    let expected = crate::Alarm::DroppedThoughOpen { room, by: place.log.author, node: victim };
    assert_eq!(alarm, Some(expected));
    assert_eq!(leader(&world, 0), before, "and changes nothing");
}

#[test]
fn nonces_follow_from_the_nodes_key_and_commitments_say_nothing_of_them() {
    let room = RoomId([1; 16]);
    let place = |seq| crate::name::id::EntryRef { log: Liar::new(1).log(), seq };
    let one = super::identity(1);
    let first = nonce(&one, room, place(1));
    assert_eq!(first, nonce(&one, room, place(1)), "a node finds its own again after a restart");
    for other in [
        nonce(&super::identity(2), room, place(1)),
        nonce(&one, RoomId([2; 16]), place(1)),
        nonce(&one, room, place(2)),
    ] {
        assert_ne!(first, other);
    }
    let node = one.node_id();
    let of = |room, place, node| commitment(room, place, node, &first);
    let good = of(room, place(1), node);
    assert_ne!(good, of(RoomId([2; 16]), place(1), node));
    assert_ne!(good, of(room, place(2), node));
    assert_ne!(good, of(room, place(1), super::identity(2).node_id()));
}
