//! What a turn says of all rooms together.

use super::*;
use crate::{
    directory::keys::{Directories, KeyEntry},
    limits::KEYS_MAX,
    wire::acts::{KeyAct, Tier},
};

/// One entry that begins a log.
fn begins(node: &Node, seed: u8, (room, body): (RoomId, &Body)) -> Run {
    let author = identity(seed);
    let facts = Facts { clock: 1, wall_ms: 0, kind: body.kind(), visible: body.visible() };
    let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(node.secret.mesh_id(), &author).run().clone()
}

fn created(node: &Node, name: &str) -> (RoomId, Body) {
    let (mesh, directory) = (node.secret.mesh_id(), RoomId::directory(node.secret.mesh_id()));
    let log = LogId { author: identity(5).node_id(), incarnation: 0 };
    let room = crate::directory::room_id(mesh, directory, log, 1);
    let body = Body::RoomCreated(public_room(room, name));
    (room, body)
}

#[test]
fn digests_are_of_what_everybody_has_and_of_all_of_it() {
    // Node 3 gives no numbers: what it has is what it heard, and its own admission.
    let mut node = Node::new(3);
    let caller = node.attach("me", false, KEY).expect("free");
    let before = node.digest();
    let (name, description, parent) = ("now".to_owned(), None, None);
    let (ephemeral, public, encrypted) = (true, true, false);
    let room = NewRoom { name, description, parent, ephemeral, public, encrypted };
    let own = NewRoom { name: "own".to_owned(), public: false, ..room.clone() };
    let made = [room, own].map(|room| {
        let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
        let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
        node.ask(Command::Join { caller: caller.clone(), room: view.room }).expect("its own");
        view.room
    });
    let [open, own] = made;
    node.say(&caller, own).expect("a member");
    let said = node.digest();
    node.say(&caller, open).expect("a member");
    assert_ne!(node.digest(), said);
    node.ask(Command::Leave { caller: caller.clone(), room: own }).expect("a member");
    node.ask(Command::Leave { caller, room: open }).expect("a member");
    assert_eq!(node.digest(), before, "both have ended");
    let one = said_at(&node, 5, 1).run().clone();
    let other = said_at(&node, 6, 1).run().clone();
    let mut digests = Vec::new();
    for order in [[&one, &other], [&other, &one]] {
        let mut node = Node::new(3);
        for run in order {
            node.effects.clear();
            node.hear(run);
            node.wait(TICK);
            let pulse = node.effects.iter().find_map(|it| match it {
                Effect::Pulse(it) => Some(it.digest),
                _ => None,
            });
            assert_eq!(pulse, Some(node.digest()), "beacons say it");
        }
        node.effects.clear();
        node.hear(&one);
        node.wait(TICK);
        assert!(!node.effects.iter().any(|it| matches!(it, Effect::Pulse(_))), "it is no news");
        digests.push(node.digest());
    }
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], before);
}

/// Whoever had not heard of the room by then never will.
#[test]
fn a_room_whose_making_was_lost_with_a_fork_makes_no_difference() {
    let made = |node: &Node, name| {
        let (room, body) = created(node, name);
        (room, begins(node, 5, (RoomId::directory(node.secret.mesh_id()), &body)))
    };
    let digests = [true, false].map(|hears| {
        let mut node = Node::new(3);
        let (room, one) = made(&node, "one");
        let (_, other) = made(&node, "other");
        node.hear(&one);
        let run = said_in(&node, (room, 0), (6, 1, "x")).run().clone();
        let before = node.digest();
        if hears {
            node.hear(&run);
            assert_ne!(node.digest(), before, "it is a room as any");
        }
        node.hear(&other);
        let late = said_in(&node, (room, 0), (7, 1, "x")).run().clone();
        if hears {
            node.hear(&late);
        }
        node.digest()
    });
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn keys_beyond_those_that_may_be_are_not_taken_from_others() {
    let mut node = Node::new(1);
    let log = LogId { author: identity(2).node_id(), incarnation: 0 };
    let facts = Facts { clock: 1, wall_ms: 1, kind: 35, visible: false };
    for nth in 1..=KEYS_MAX as u128 {
        let act = KeyAct::Revoked(KeyPrint(nth.to_be_bytes()));
        node.engine
            .known
            .directory
            .learn_key(KeyEntry { of: Directories::Mesh, log, seq: 1, facts }, act);
    }
    let overflow = node.engine.known.cx.faults.overflow;
    let log = SignedLog { node: identity(5).node_id(), ..node.signed_log() };
    let minted = minted(&log, PRINTS[8], Tier::High);
    let body = Body::Key(KeyAct::Minted(minted));
    let run = begins(&node, 5, (RoomId::directory(node.secret.mesh_id()), &body));
    node.hear(&run);
    assert!(!node.engine.known.directory.keys().knows(PRINTS[8]));
    assert_eq!(node.engine.known.cx.faults.overflow, overflow + 1);
}

#[test]
fn members_are_told_whose_turn_it_is_when_that_changes() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let [one, other] = ["one", "other"].map(|agent| node.attach(agent, false, KEY).expect("free"));
    let told = |node: &mut Node| {
        let effects = std::mem::take(&mut node.effects).into_iter();
        let turns = effects.filter_map(|it| match it {
            Effect::Notify { event: RoomEvent::Turn { holder, .. }, .. } => Some(holder),
            _ => None,
        });
        turns.collect::<Vec<_>>()
    };
    told(&mut node);
    node.ask(Command::Join { caller: one.clone(), room: lobby }).expect("public");
    assert_eq!(told(&mut node), [Some("one".into())]);
    node.ask(Command::Join { caller: other, room: lobby }).expect("public");
    assert_eq!(told(&mut node), [], "it is the same one's");
    node.ask(Command::Leave { caller: one, room: lobby }).expect("a member");
    assert_eq!(told(&mut node), [Some("other".into())]);
}
