//! What a peer says it has and never gives.

use super::*;
use crate::{limits::WANT_TIMEOUT, wire::message::Head};

/// How often a peer answers with nothing: a node that asks again at once would do so for ever.
const ANSWERS: usize = 20;

fn asked(node: &mut Node) -> usize {
    let sent = std::mem::take(&mut node.effects).into_iter().filter(|it| {
        let Effect::Send { message, .. } = it else { return false };
        matches!(message, Message::Want { .. } | Message::WantBodies { .. })
    });
    sent.count()
}

fn nothing(node: &Node) -> Message<Verified> {
    Message::Spans { room: node.lobby(), runs: Vec::new(), bodies: Vec::new(), last: true }
}

#[test]
fn entries_that_a_peer_does_not_have_are_not_asked_for_until_it_says_so_again() {
    let mut node = Node::new(1);
    let from = identity(9).node_id();
    node.give(Input::PeerUp(from));
    asked(&mut node);
    let log = LogId { author: identity(5).node_id(), incarnation: 0 };
    let claim = |node: &Node| {
        let heads = vec![Head { log, seq: 5 }];
        Message::Have { room: node.lobby(), heads, answer: false }
    };
    for _ in 0..2 {
        let message = claim(&node);
        node.give(Input::Message { from, message });
        assert_eq!(asked(&mut node), 1, "it said that it has them");
        for _ in 0..ANSWERS {
            let message = nothing(&node);
            node.give(Input::Message { from, message });
        }
        assert_eq!(asked(&mut node), 0);
    }
    // What does come is asked on for.
    let message = claim(&node);
    node.give(Input::Message { from, message });
    asked(&mut node);
    let runs = vec![said_at(&node, 5, 1)];
    let message = Message::Spans { room: node.lobby(), runs, bodies: Vec::new(), last: true };
    node.give(Input::Message { from, message });
    assert_eq!(asked(&mut node), 1, "the rest did not fit the answer");
}

#[test]
fn a_body_that_nobody_gives_is_asked_for_now_and_then() {
    let mut node = Node::new(1);
    let from = identity(9).node_id();
    node.give(Input::PeerUp(from));
    let author = identity(9);
    let wall_ms = node.now.wall_ms;
    let facts = Facts { clock: 1, wall_ms, kind: crate::wire::kinds::CHAT, visible: true };
    let entries = vec![RunEntry { facts, body: Carried::Apart { hash: [1; 32], len: 500_000 } }];
    let log = LogId { author: from, incarnation: 0 };
    let room = node.lobby();
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    let run = run.seal(node.secret.mesh_id(), &author);
    asked(&mut node);
    node.give(Input::Message { from, message: Message::Runs(vec![run]) });
    assert_eq!(asked(&mut node), 1);
    let none = |node: &Node| {
        let bodies = vec![crate::wire::message::ApartBody { log, seq: 1, body: Vec::new().into() }];
        Message::Spans { room: node.lobby(), runs: Vec::new(), bodies, last: true }
    };
    for _ in 0..ANSWERS {
        let message = none(&node);
        node.give(Input::Message { from, message });
    }
    assert_eq!(asked(&mut node), 0);
    node.now.mono += WANT_TIMEOUT;
    node.give(Input::Timeout);
    assert_eq!(asked(&mut node), 1, "it may have it by now");
}
