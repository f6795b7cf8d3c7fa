//! What is believed, and answered, when it comes by gossip.

use super::*;
use crate::{
    limits::BEACON_EVERY,
    name::number::Era,
    wire::message::{Head, Post},
};

fn gossip(node: &mut Node, message: Message<Verified>) {
    let from = identity(9).node_id();
    node.give(Input::Gossip { from, message });
}

/// Whoever passes it on would be taken for who says it.
#[test]
fn what_nobody_signed_is_not_believed_by_gossip() {
    let mut node = Node::new(1);
    let from = identity(9).node_id();
    node.give(Input::PeerUp(from));
    node.effects.clear();
    let (room, log) = (node.lobby(), LogId { author: identity(5).node_id(), incarnation: 0 });
    let post = Post { room, era: Era::HOME, log };
    let said = [
        Message::Have { room, heads: vec![Head { log, seq: 5 }], answer: true },
        Message::Want { room, spans: Vec::new() },
        Message::WantBodies { room, at: vec![Head { log, seq: 5 }] },
        Message::Spans { room, runs: Vec::new(), bodies: Vec::new(), last: true },
        Message::Buckets(vec![NONE; crate::limits::BUCKETS]),
        Message::Digests(Vec::new()),
        Message::Follows(Vec::new()),
        Message::Probe { node: from },
        Message::Sighting { node: from, age_ms: Some(1) },
        Message::Offer(vec![post]),
        Message::Accept(vec![post]),
        Message::Taken(vec![post]),
    ];
    let count = said.len() as u64;
    for message in said {
        gossip(&mut node, message);
    }
    assert_eq!(node.engine.known.cx.faults.stray, count);
    assert!(node.effects.is_empty(), "{:?}", node.effects);
    // What its author signed is.
    let run = said_at(&node, 5, 1);
    gossip(&mut node, Message::Runs(vec![run]));
    assert_eq!(node.engine.known.rooms[&room].replica.logs.head_of(log), 1);
}

#[test]
fn a_roster_that_is_wanted_by_gossip_is_told_to_all_and_not_for_each_who_asks() {
    let mut node = Node::new(1);
    node.attach("me", false, KEY).expect("free");
    node.give(Input::PeerUp(identity(9).node_id()));
    node.effects.clear();
    let me = node.engine.known.cx.me;
    let told = |node: &mut Node| {
        let told = std::mem::take(&mut node.effects).into_iter().filter(|it| match it {
            Effect::Broadcast { message: Message::Roster(_), .. } => true,
            Effect::Send { message, .. } => panic!("to one alone: {message:?}"),
            _ => false,
        });
        told.count()
    };
    for _ in 0..2 {
        node.now.mono += BEACON_EVERY;
        for _ in 0..100 {
            gossip(
                &mut node,
                Message::WantRoster { node: me, boot: 0, version: 0, nonce: Some(1) },
            );
        }
        assert_eq!(told(&mut node), 1);
    }
}
