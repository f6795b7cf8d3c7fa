//! What is drawn and counted at a start, and what a start takes from the disk.

use super::{asking::log, world::Liar, *};
use crate::{
    name::number::LANES,
    wire::{
        acts::{KeyAct, Tier},
        entry::{NodeAdmitted, NodeParted, Parting},
    },
};

#[test]
fn the_next_tick_is_due_after_the_last_one() {
    let now = Now { mono: Duration::ZERO, wall_ms: 1_800_000_000_000, wall_us: 0 };
    // A driver's clock begins at nothing.
    let mut node = Node::open(1, Summary::default(), now);
    assert_eq!(node.engine.deadline(), TICK);
    node.give(Input::Timeout);
    assert_eq!(node.engine.deadline(), TICK, "nothing was due");
    node.now.mono = TICK * 5;
    node.give(Input::Timeout);
    assert_eq!(node.engine.deadline(), node.now.mono + TICK);
}

#[test]
fn starts_are_counted_whatever_the_clock_says() {
    let mut node = Node::new(1);
    let first = node.engine.known.cx.boot;
    assert_eq!(first, node.now.wall_ms / 1_000, "above those of a disk that was lost");
    node.now.wall_ms -= 24 * 3_600 * 1_000;
    for more in [1, 2] {
        let again = Node::open(1, disk::stored(&node.rows), node.now);
        assert_eq!(again.engine.known.cx.boot, first + more);
        node.rows.extend(again.rows);
    }
}

#[test]
fn nodes_draw_lanes_that_differ_and_another_one_when_theirs_is_taken() {
    let lane = |node: &Node| node.engine.known.cx.my_lane.expect("it has entered one");
    let drawn: std::collections::BTreeSet<u32> = (1..=60).map(|n| lane(&Node::new(n))).collect();
    assert!(drawn.len() >= 58, "{} of 60", drawn.len());
    assert!(drawn.iter().any(|it| *it > LANES / 2) && drawn.iter().any(|it| *it < LANES / 2));
    // Somebody else had its lane, and half of all others, before it.
    let mut node = Node::new(1);
    let before = lane(&node);
    let seed = (2..50).find(|seed| log(*seed) < log(1)).expect("one of so many");
    let admitted =
        Body::NodeAdmitted(NodeAdmitted { lane: before, name: String::new(), relay: None });
    let run = log_of(&node, RoomId::directory(node.secret.mesh_id()), seed, &[admitted]);
    node.hear(&run);
    let lanes =
        node.engine.known.directory.nodes.lanes.get_mut(&run.log.author).expect("it has one");
    let standing = lanes[0].0;
    lanes.extend((0..LANES).filter(|it| it % 2 == before % 2).map(|it| (standing, it)));
    node.wait(TICK * 2);
    assert_ne!(lane(&node) % 2, before % 2);
}

#[test]
fn what_a_fork_took_from_the_directory_is_taken_after_a_restart_too() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let keys = [PRINTS[7], PRINTS[8], PRINTS[9]];
    let mut liar = Liar::new(5);
    let log = SignedLog { node: identity(5).node_id(), ..node.signed_log() };
    let minted = |key| Body::Key(KeyAct::Minted(minted(&log, key, Tier::High)));
    let (_, first) = liar.write_in(&node, directory, &minted(keys[0]));
    let (_, second) = liar.write_in(&node, directory, &minted(keys[1]));
    let claim = |agent: &str| Body::AgentClaimed(claimed(log.mesh, agent, keys[0]));
    let (_, third) = liar.write_in(&node, directory, &claim("bob"));
    let mut other = second.clone();
    other.entries[0].facts.clock += 1;
    let proof = other.seal(node.secret.mesh_id(), &identity(5)).certificate();
    for run in [&first, &second, &third] {
        node.hear(run);
    }
    let known = |node: &Node| {
        let directory = &node.engine.known.directory;
        let tiers = keys.map(|key| directory.keys().tier(key).is_some());
        (tiers, directory.owner("bob").is_some())
    };
    assert_eq!(known(&node), ([true, true, false], true));
    let run = second.verify(node.secret.mesh_id()).expect("it is sealed");
    node.told(9, Message::Fork(proof, Box::new(run)));
    let again = Node::open(1, disk::stored(&node.rows), node.now);
    for node in [node, again] {
        assert_eq!(known(&node), ([true, false, false], false));
    }
}

/// Nobody is brought back in.
#[test]
fn who_was_out_stays_out_when_whoever_said_so_turns_out_to_have_forked() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let out = |seed| NodeParted {
        node: identity(seed).node_id(),
        why: Parting::Expelled,
        cut: Vec::new(),
    };
    let mut liar = Liar::new(5);
    let (_, first) = liar.write_in(&node, directory, &Body::Parted(out(7)));
    let (_, second) = liar.write_in(&node, directory, &Body::Parted(out(8)));
    let mut other = second.clone();
    other.entries[0].facts.clock += 1;
    let proof = other.seal(node.secret.mesh_id(), &identity(5)).certificate();
    for run in [&first, &second] {
        node.hear(run);
    }
    let run = second.verify(node.secret.mesh_id()).expect("it is sealed");
    node.told(9, Message::Fork(proof, Box::new(run)));
    assert!(node.engine.known.cx.forked.contains(&log(5).author));
    let again = Node::open(1, disk::stored(&node.rows), node.now);
    for node in [node, again] {
        let out = [6, 7, 8].map(|seed| node.engine.known.cx.parted.has(identity(seed).node_id()));
        assert_eq!(out, [false, true, true]);
    }
}

/// A log that is used twice is a fork of one's own.
#[test]
fn a_room_of_memory_that_comes_back_has_a_log_of_this_node_that_it_never_had() {
    let mut node = Node::new(1);
    let mut mine = std::collections::BTreeSet::new();
    let home = LogId { author: log(8).author, incarnation: 1 << 20 | 1 };
    let id = crate::presence::ephemeral::ephemeral_id(node.secret.mesh_id(), home, false);
    let facts = crate::wire::roster::RoomFacts::Open(public_room(id, "theirs"));
    let it = crate::wire::roster::EphemeralRoom { facts, home, created_ms: 1 };
    node.hears_beacon((8, 8), (1, 0, NONE));
    for version in 1..4 {
        for (version, changes) in
            [(version * 2, vec![RosterChange::Room(id, it.clone())]), (version * 2 + 1, vec![])]
        {
            let what = What::Whole { version, changes };
            let it = RosterNews { node: log(8).author, boot: 1, what };
            let message = Message::Roster(Box::new(Signed { value: it, signature: [0; 64] }));
            node.hears_from(8, message);
            mine.extend(node.engine.known.rooms.get(&id).map(|it| it.replica.mine));
        }
        assert!(!node.engine.known.rooms.contains_key(&id));
    }
    assert_eq!(mine.len(), 3);
    assert!(mine.iter().all(|it| it.author == node.engine.known.cx.me && it.incarnation != 0));
}

#[test]
fn a_node_that_had_a_peer_says_so_after_a_start() {
    let mut node = Node::new(1);
    assert!(!disk::stored(&node.rows).node.is_some_and(|it| it.had_peer));
    node.give(Input::PeerUp(log(8).author));
    assert!(disk::stored(&node.rows).node.is_some_and(|it| it.had_peer));
    let admitted = Body::NodeAdmitted(NodeAdmitted { lane: 3, name: "n".to_owned(), relay: None });
    assert!(!admitted.visible(), "and none of this takes a number");
}
