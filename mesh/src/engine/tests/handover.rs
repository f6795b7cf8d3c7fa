//! A node that stops hands over what it sequences, and waits for nobody for long.

use super::*;
use crate::limits::HANDOVER_STEP;

const HEIR: u8 = 2;

/// A node that stops has offered its rooms to the only one that lives.
fn stopping() -> Node {
    let mut node = Node::new(1);
    let peer = identity(HEIR).node_id();
    node.give(Input::PeerUp(peer));
    let it = Beacon { node: peer, boot: 1, tick: 1, roster: 0, digest: 0 };
    node.told(HEIR, Message::Beacon(Signed { it, signature: [0; 64] }));
    node.begin(Command::Stop);
    let offered = |it: &Effect| matches!(it, Effect::Send { message: Message::Offer(_), .. });
    assert!(node.effects.iter().any(offered));
    node
}

fn has_stopped(node: &Node) -> bool {
    node.effects.iter().any(|it| matches!(it, Effect::Stopped))
}

#[test]
fn who_was_not_asked_to_take_rooms_keeps_no_node_from_stopping() {
    let mut node = stopping();
    for _ in 0..5 {
        assert!(!has_stopped(&node));
        node.told(3, Message::Accept(Vec::new()));
        node.wait(HANDOVER_STEP / 5);
    }
    assert!(has_stopped(&node));
}
