//! Vouchers: in whose name nodes can speak, as others know it.

use super::*;
use crate::{
    api::proof::Proof,
    limits::{VOUCHER_WAITS_MAX, VOUCHER_WITHIN},
    wire::{acts::KeyAct, signatures::KeySignature},
};

const OTHER_KEY: KeyPrint = PRINTS[2];
const PROVEN: Proof = Proof { verified: true, key_revoked: false };
const UNPROVEN: Proof = Proof { verified: false, key_revoked: false };

fn said_by(agent: &str, key: Option<KeyPrint>) -> Said {
    Said { agent: agent.into(), key, ..said("x") }
}

impl Node {
    fn vouchers(&self) -> Vec<KeyPrint> {
        let bodies = self.rows.iter().filter_map(|row| match row {
            Change::Entry { entry, .. } => Some(Body::decode(entry.facts.kind, &entry.body)),
            _ => None,
        });
        let keys = bodies.filter_map(|body| match body {
            Body::Key(KeyAct::Shown(shown)) => Some(shown.key()),
            _ => None,
        });
        keys.collect()
    }

    fn proof(&self, node: NodeId, agent: &str, key: KeyPrint) -> Proof {
        self.engine.proofs().of(node, &said_by(agent, Some(key)))
    }
}

#[test]
fn a_thousand_calls_of_one_key_leave_one_voucher_at_a_node() {
    let mut node = Node::new(1);
    for _ in 0..1_000 {
        let caller = node.attach("me", true, KEY).expect("it is its own");
        node.ask(Command::Detach { caller, seen: Vec::new() }).expect("it is attached");
    }
    assert_eq!(node.vouchers(), [KEY]);
    node.attach("you", true, OTHER_KEY).expect("it is free");
    assert_eq!(node.vouchers(), [KEY, OTHER_KEY]);
}

#[test]
fn what_is_no_voucher_of_its_key_for_this_node_is_not_written_and_keeps_nobody_out() {
    let mut node = Node::new(1);
    let here = node.signed_log();
    let elsewhere = SignedLog { node: NodeId([9; 32]), ..here };
    let at = |log: &SignedLog, key| shown(log, key).expect("it is one of these");
    let good = at(&here, KEY);
    let bad = [
        None,
        Some(at(&elsewhere, KEY)),
        Some(at(&here, OTHER_KEY)),
        Some(KeySignature { signature: [0; 64], ..good }),
    ];
    for (nth, shown) in bad.into_iter().enumerate() {
        let attach =
            Attach { shown: shown.map(Box::new), ..registers(&nth.to_string(), (KEY, false)) };
        let call = CallId(1_000 + nth as u64);
        let input = Input::Command { call, command: Command::Attach(attach) };
        node.engine.handle(node.now, input);
        node.turn();
        assert!(matches!(node.reply(call), Some(Ok(Outcome::Attached(_)))), "{nth}");
    }
    assert_eq!(node.vouchers(), []);
}

#[test]
fn a_message_is_verified_where_its_authors_node_was_shown_the_key_of_its_agent() {
    let (mut here, mut there) = (Node::new(1), Node::new(2));
    let (me, it) = (here.engine.known.cx.me, there.engine.known.cx.me);
    let drawn = crate::name::agent::drawn([1; 6], KEY);
    assert_eq!(there.proof(me, &drawn, KEY), UNPROVEN);
    here.attach("me", true, KEY).expect("it is free");
    for run in here.runs_sent() {
        there.hear(&run);
    }
    assert_eq!(there.proof(me, "me", KEY), PROVEN);
    assert_eq!(there.proof(me, &drawn, KEY), PROVEN, "its own without a claim");
    assert_eq!(here.proof(me, "me", KEY), PROVEN);
    // Another node writes in its name.
    assert_eq!(there.proof(it, "me", KEY), UNPROVEN);
    // The node writes in the name of others.
    assert_eq!(there.proof(me, "you", KEY), UNPROVEN, "of an id that it has not claimed");
    assert_eq!(there.proof(me, "me", OTHER_KEY), UNPROVEN);
    assert_eq!(there.engine.proofs().of(me, &said_by("me", None)), Proof::default());
    // Shown at the other node, too.
    there.attach("me", true, KEY).expect("it is its own");
    assert_eq!(there.proof(it, "me", KEY), PROVEN);
}

#[test]
fn nothing_of_a_revoked_key_is_verified_whenever_it_was_written() {
    let mut node = Node::new(1);
    let me = node.engine.known.cx.me;
    let minted = node.new_key(OTHER_KEY, Tier::Low, false);
    node.ask(Command::MintKey(minted)).expect("it is new");
    node.attach("ann", true, OTHER_KEY).expect("it is free");
    assert_eq!(node.proof(me, "ann", OTHER_KEY), PROVEN);
    node.ask(Command::RevokeKey { key: OTHER_KEY }).expect("it was minted");
    assert_eq!(node.proof(me, "ann", OTHER_KEY), Proof { verified: false, key_revoked: true });
}

#[test]
fn what_an_agent_says_names_the_key_that_it_has_shown() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    node.say(&caller, node.lobby()).expect("it is in it");
    let told = node.effects.iter().find_map(|effect| match effect {
        Effect::Notify { event: RoomEvent::Message(message), .. } => message.said.clone(),
        _ => None,
    });
    assert_eq!(told.expect("it was told").key, Some(KEY));
}

/// Contents of the messages that local members were told of, once.
fn told(node: &mut Node) -> Vec<String> {
    let effects = std::mem::take(&mut node.effects).into_iter();
    let told = effects.filter_map(|effect| match effect {
        Effect::Notify { event: RoomEvent::Message(message), .. } => message.said,
        _ => None,
    });
    told.map(|said| said.content.clone()).collect()
}

/// A node with a member of the lobby, that was told of nothing yet.
fn listens() -> (Node, Caller) {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    told(&mut node);
    (node, caller)
}

fn words<const N: usize>(node: &Node, author: u8, texts: [&str; N]) -> Run {
    let bodies = texts.map(|text| Body::Chat(Said { key: Some(OTHER_KEY), ..said(text) }));
    log_of(node, node.lobby(), author, &bodies)
}

/// That node was shown [`OTHER_KEY`].
fn voucher(node: &Node, author: u8) -> Run {
    let log = SignedLog { node: identity(author).node_id(), ..node.signed_log() };
    let shown = shown(&log, OTHER_KEY).expect("it is one of these");
    log_of(
        node,
        RoomId::directory(node.secret.mesh_id()),
        author,
        &[Body::Key(KeyAct::Shown(shown))],
    )
}

#[test]
fn a_live_message_waits_for_its_voucher_and_what_follows_it_in_its_room_waits_too() {
    let (mut node, caller) = listens();
    node.hear(&words(&node, 5, ["one", "two"]));
    assert!(matches!(node.say(&caller, node.lobby()), Ok(Outcome::Said(_))), "answers do not wait");
    assert_eq!(told(&mut node), [""; 0]);
    assert!(node.engine.deadline() <= node.now.mono + VOUCHER_WITHIN);
    node.hear(&voucher(&node, 5));
    let all = told(&mut node);
    assert_eq!((&*all[0], &*all[1], all.len()), ("one", "two", 3));
    node.hear(&words(&node, 6, ["three"]));
    node.hear(&voucher(&node, 6));
    assert_eq!(told(&mut node), ["three"]);
}

#[test]
fn without_a_voucher_a_message_is_told_a_moment_later_and_its_node_is_not_waited_for_again() {
    let (mut node, _) = listens();
    node.hear(&words(&node, 5, ["one", "two"]));
    node.now.mono += VOUCHER_WITHIN;
    node.give(Input::Timeout);
    // The second one would have had to wait for the same.
    assert_eq!(told(&mut node), ["one", "two"]);
    let all = words(&node, 5, ["one", "two", "three"]);
    node.hear(&all);
    assert_eq!(told(&mut node), ["three"]);
    node.hear(&words(&node, 6, ["four"]));
    assert_eq!(told(&mut node), [""; 0], "another node is waited for");
}

/// A member with many identities, each of which speaks with a key that it was not shown.
#[test]
fn waits_for_many_vouchers_do_not_add_up() {
    let (mut node, _) = listens();
    for author in 20..40 {
        let run = words(&node, author, ["x"]);
        node.hear(&run);
    }
    assert_eq!(told(&mut node), [""; 0]);
    node.now.mono += VOUCHER_WITHIN;
    node.give(Input::Timeout);
    assert_eq!(told(&mut node).len(), 20);
}

#[test]
fn nothing_waits_in_a_room_while_a_member_decides() {
    let (mut node, caller) = listens();
    node.hear(&words(&node, 5, ["one"]));
    assert_eq!(told(&mut node), [""; 0]);
    let (room, speech) = (node.lobby(), Speech::Decision);
    let say = Say {
        room,
        speech,
        content: "so be it".to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        encryption: Encryption::None,
        durable: None,
        conversing: None,
    };
    node.begin(Command::Say { caller, say });
    assert_eq!(told(&mut node), ["one"], "though it is refused: it does not lead");
}

#[test]
fn so_many_events_wait_for_vouchers_and_no_more() {
    let (mut node, caller) = listens();
    node.hear(&words(&node, 5, ["one"]));
    for _ in 0..VOUCHER_WAITS_MAX {
        node.say(&caller, node.lobby()).expect("it is in it");
        node.now.mono -= Duration::from_millis(1);
    }
    assert!(told(&mut node).len() > VOUCHER_WAITS_MAX / 2);
}
