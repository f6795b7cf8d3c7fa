//! Peers: comparing with them, and their rosters.

use super::*;
use crate::{
    limits::{BEACON_EVERY, BUCKETS},
    wire::message::{Head, RoomDigest, Span},
};

impl Node {
    pub(super) fn hears_from(&mut self, seed: u8, message: Message<Verified>) {
        self.give(Input::Message { from: identity(seed).node_id(), message });
    }

    pub(super) fn hears_beacon(
        &mut self,
        (from, of): (u8, u8),
        (tick, roster, digest): (u64, u64, Digest),
    ) {
        let it = Beacon { digest, ..beacon(identity(of).node_id(), 1, tick, roster) };
        self.hears_from(from, Message::Beacon(Signed { value: it, signature: [0; 64] }));
    }

    /// What it sent since it was looked at last.
    pub(super) fn sent(&mut self) -> Vec<(NodeId, Message)> {
        let sent = std::mem::take(&mut self.effects).into_iter().filter_map(|it| match it {
            Effect::Send { to, message } => Some((to, message)),
            _ => None,
        });
        sent.collect()
    }

    /// Whom it told the folded digests of its rooms.
    fn compared_with(&mut self) -> Vec<NodeId> {
        let sent = self.sent().into_iter();
        sent.filter(|(_, it)| matches!(it, Message::Buckets(_))).map(|(to, _)| to).collect()
    }
}

/// A node that has something in its lobby, and a peer.
fn with_peer() -> (Node, NodeId) {
    let mut node = Node::new(1);
    let run = said_at(&node, 5, 1).run().clone();
    node.hear(&run);
    let peer = identity(8).node_id();
    node.give(Input::PeerUp(peer));
    assert!(node.engine.known.node.had_peer, "it is not alone any more, also after a start");
    node.effects.clear();
    (node, peer)
}

#[test]
fn what_is_nobody_elses_business_is_not_touched() {
    for ephemeral in [false, true] {
        let (mut node, _) = with_peer();
        let caller = node.attach("me", false, KEY).expect("free");
        let room = NewRoom { public: false, ..rooms::new("own", ephemeral) };
        let room = rooms::make(&mut node, &caller, room).expect("it is new");
        node.ask(Command::Join { caller: caller.clone(), room }).expect("its owner");
        node.say(&caller, room).expect("a member");
        assert!(node.runs_sent().iter().all(|it| it.room != room), "it is said: {ephemeral}");
        let own = LogId { author: node.engine.known.cx.me, incarnation: 0 };
        for room in [room, node.engine.known.cx.private_directory] {
            let run = said_in(&node, (room, 0), (5, 1, "x"));
            let (log, before) = (run.run().log, node.engine.known.cx.faults.stray);
            node.effects.clear();
            let said = [
                Message::Runs(vec![run]),
                Message::Want { room, spans: vec![Span { log: own, after: 0, upto: 1 }] },
                Message::WantBodies { room, at: vec![Head { log: own, seq: 1 }] },
                Message::Have { room, heads: Vec::new(), answer: true },
            ];
            for message in said {
                node.hears_from(8, message);
            }
            assert_eq!(node.engine.known.cx.faults.stray, before + 4, "it is counted");
            assert!(node.effects.is_empty(), "{:?}", node.effects);
            assert_eq!(node.engine.known.rooms[&room].replica.logs.head_of(log), 0);
        }
    }
}

#[test]
fn rooms_that_differ_are_named_and_looked_into_and_others_are_not() {
    let (mut node, peer) = with_peer();
    let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
    let mut buckets = node.engine.digests.buckets(&mut node.engine.known);
    assert_eq!(buckets.len(), BUCKETS);
    node.hears_from(8, Message::Buckets(buckets.clone()));
    assert!(node.sent().is_empty(), "they are the same");
    let (of_lobby, of_directory) = (node.digest_of(lobby), node.digest_of(directory));
    let bucket = super::super::digests::bucket(lobby);
    buckets[bucket] = unlike(buckets[bucket]);
    node.hears_from(8, Message::Buckets(buckets));
    let sent = node.sent();
    let [(to, Message::Digests(rooms))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*to, &rooms[..]), (peer, &[RoomDigest { room: lobby, digest: of_lobby }][..]));
    let own = node.engine.known.cx.private_directory;
    let theirs = [(lobby, unlike(of_lobby)), (directory, of_directory), (own, OTHER)];
    let theirs = theirs.map(|(room, digest)| RoomDigest { room, digest }).to_vec();
    node.hears_from(8, Message::Digests(theirs));
    let sent = node.sent();
    let [(to, Message::Have { room, heads, answer: true })] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(
        (*to, *room, heads),
        (peer, lobby, &node.engine.known.rooms[&lobby].replica.logs.heads())
    );
    let digest = unlike(of_lobby);
    node.hears_from(8, Message::Digests(vec![RoomDigest { room: lobby, digest }; 9]));
    assert_eq!(node.sent().len(), 1, "it was asked about one room");
}

#[test]
fn a_peer_that_has_something_else_is_compared_with_now_and_then() {
    let (mut node, peer) = with_peer();
    node.hears_beacon((8, 8), (1, 0, OTHER));
    assert_eq!(node.compared_with(), [], "it was when it came");
    node.wait(Duration::from_secs(1));
    node.hears_beacon((8, 9), (1, 0, OTHER));
    assert_eq!(node.compared_with(), [], "of others it is hearsay");
    let same = node.digest();
    node.hears_beacon((8, 8), (2, 0, same));
    assert_eq!(node.compared_with(), [], "it has the same");
    node.hears_beacon((8, 8), (3, 0, OTHER));
    assert_eq!(node.compared_with(), [peer]);
    node.hears_beacon((8, 8), (4, 0, OTHER));
    assert_eq!(node.compared_with(), [], "once");
}

#[test]
fn a_roster_that_a_beacon_promises_is_asked_for_directly_or_of_all() {
    let (mut node, peer) = with_peer();
    node.hears_beacon((8, 8), (1, 3, OTHER));
    node.hears_beacon((8, 9), (1, 3, OTHER));
    let asked = |node: &mut Node| {
        let asked = std::mem::take(&mut node.effects).into_iter().filter_map(|it| match it {
            Effect::Send { to, message: Message::WantRoster { node, nonce, .. } } => {
                Some((Some(to), node, nonce.is_some()))
            }
            Effect::Broadcast { message: Message::WantRoster { node, nonce, .. }, .. } => {
                Some((None, node, nonce.is_some()))
            }
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    node.wait(BEACON_EVERY / 2);
    assert_eq!(asked(&mut node), [], "it may be on its way");
    node.wait(BEACON_EVERY);
    let mut both = asked(&mut node);
    both.sort();
    let other = identity(9).node_id();
    // By gossip it has to be another question than one that was asked before.
    assert_eq!(both, [(None, other, true), (Some(peer), peer, false)]);
    node.news(peer, Vec::new());
    node.hears_beacon((8, 8), (2, 1, OTHER));
    node.wait(BEACON_EVERY * 2);
    assert_eq!(asked(&mut node), [], "it came");
}

#[test]
fn questions_for_a_roster_by_gossip_are_never_the_same_twice() {
    let mut nonces = std::collections::BTreeSet::new();
    for seed in [1, 2] {
        let mut node = Node::new(seed);
        for tick in 1..4 {
            node.hears_beacon((8, 9), (tick, 3, OTHER));
            node.wait(BEACON_EVERY + TICK);
        }
        nonces.extend(node.effects.iter().filter_map(|it| match it {
            Effect::Broadcast { message: Message::WantRoster { nonce, .. }, .. } => *nonce,
            _ => None,
        }));
    }
    assert_eq!(nonces.len(), 6);
}

#[test]
fn nobody_is_believed_what_this_node_is_said_to_have_or_what_is_counted_against_it() {
    let (mut node, _) = with_peer();
    node.attach("me", false, KEY).expect("free");
    let me = node.engine.known.cx.me;
    let before = node.engine.known.rosters.version(me);
    let value = RosterNews {
        node: me,
        boot: before.0,
        what: What::Whole { version: before.1 + 5, changes: Vec::new() },
    };
    node.hears_from(8, Message::Roster(Box::new(Signed { value, signature: [0; 64] })));
    assert_eq!(node.engine.known.rosters.version(me), before);
    assert!(node.engine.known.rosters.agents().any(|agent| **agent == *"me"));
    let silent = node.engine.known.live.last(me).is_none();
    node.hears_beacon((8, 1), (9, 9, OTHER));
    assert!(silent && node.engine.known.live.last(me).is_none(), "nor that it lives");
}

#[test]
fn who_asks_by_gossip_for_what_it_has_or_for_anothers_roster_is_not_answered() {
    let (mut node, _) = with_peer();
    node.attach("me", false, KEY).expect("free");
    let me = node.engine.known.cx.me;
    let (boot, version) = node.engine.known.rosters.version(me);
    let mut answers = |of, (boot, version)| {
        node.effects.clear();
        let nonce = Some(1);
        let message = Message::WantRoster { node: of, boot, version, nonce };
        node.give(Input::Gossip { from: identity(8).node_id(), message });
        node.effects.iter().any(|it| matches!(it, Effect::Broadcast { .. }))
    };
    assert!(!answers(identity(9).node_id(), (0, 0)));
    assert!(!answers(me, (boot, version)), "it has it");
    assert!(answers(me, (0, 0)));
}

#[test]
fn a_roster_of_who_is_out_is_not_kept_and_one_beyond_its_limits_is_counted() {
    let (mut node, peer) = with_peer();
    let expelled = crate::wire::entry::NodeParted {
        node: identity(6).node_id(),
        why: crate::wire::entry::Parting::Expelled,
        cut: Vec::new(),
    };
    let body = Body::Parted(expelled);
    let facts = Facts { clock: 1, wall_ms: 0, kind: body.kind(), visible: body.visible() };
    let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
    let log = LogId { author: peer, incarnation: 0 };
    let room = RoomId::directory(node.secret.mesh_id());
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    node.hear(run.seal(node.secret.mesh_id(), &identity(8)).run());
    let (out, stray) = (identity(6).node_id(), node.engine.known.cx.faults.stray);
    for (of, agent) in [(out, "a"), (peer, "")] {
        let changes = vec![RosterChange::NoAgent(agent.into())];
        let value = RosterNews { node: of, boot: 1, what: What::Whole { version: 1, changes } };
        node.hears_from(8, Message::Roster(Box::new(Signed { value, signature: [0; 64] })));
        assert_eq!(node.engine.known.rosters.version(of), (0, 0));
    }
    assert_eq!(node.engine.known.cx.faults.stray, stray + 1);
}
