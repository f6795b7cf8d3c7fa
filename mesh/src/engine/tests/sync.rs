//! Asking peers for what they have said that they have.

use super::*;
use crate::{
    limits::{TICK, WANT_TIMEOUT},
    wire::message::{Head, Span},
};

/// A log of which nothing is here.
const LOG: LogId = LogId { author: NodeId([5; 32]), incarnation: 0 };

impl Node {
    fn peer_says(&mut self, peer: u8, heads: Vec<Head>) {
        let (from, room) = (identity(peer).node_id(), self.lobby());
        self.give(Input::Message { from, message: Message::Have { room, heads, answer: false } });
    }

    /// Whom it asked for entries since it was looked at last.
    fn wanted_of(&mut self) -> Vec<(NodeId, Vec<Span>)> {
        let sent = std::mem::take(&mut self.effects).into_iter().filter_map(|it| match it {
            Effect::Send { to, message: Message::Want { spans, .. } } => Some((to, spans)),
            _ => None,
        });
        sent.collect()
    }

    /// How many entries of its own no other node is known to have.
    fn unsent(&mut self) -> u64 {
        let Ok(Outcome::Status(status)) = self.ask(Command::Status) else { panic!("it says") };
        let lobby = self.lobby();
        status.rooms.iter().find(|it| it.room == lobby).expect("it is there").unsent
    }
}

/// Two peers, in the order in which they are asked.
fn with_peers() -> (Node, [u8; 2]) {
    let mut node = Node::new(1);
    let mut peers = [7, 8];
    peers.sort_by_key(|seed| identity(*seed).node_id());
    for peer in peers {
        node.give(Input::PeerUp(identity(peer).node_id()));
    }
    node.effects.clear();
    (node, peers)
}

#[test]
fn what_a_peer_said_before_its_connection_went_makes_nobody_ask_it() {
    let (mut node, [gone, there]) = with_peers();
    node.give(Input::PeerDown(identity(gone).node_id()));
    node.peer_says(gone, vec![Head { log: LOG, seq: 9 }]);
    node.peer_says(there, vec![Head { log: LOG, seq: 9 }]);
    let wanted = node.wanted_of();
    assert_eq!(wanted.len(), 1, "of {wanted:?}");
    assert_eq!(wanted[0].0, identity(there).node_id());
}

#[test]
fn who_is_asked_and_silent_is_passed_over() {
    let (mut node, peers) = with_peers();
    let heads = vec![Head { log: LOG, seq: 5 }];
    peers.into_iter().for_each(|peer| node.peer_says(peer, heads.clone()));
    let mut asked: Vec<NodeId> = Vec::new();
    for _ in 0..4 {
        asked.extend(node.wanted_of().into_iter().map(|(peer, _)| peer));
        node.wait(WANT_TIMEOUT + TICK);
    }
    let [one, other] = peers.map(|seed| identity(seed).node_id());
    assert_eq!(asked[..3], [one, other, one], "of {asked:?}");
}

#[test]
fn whoever_is_asked_and_goes_is_not_waited_for() {
    let (mut node, peers) = with_peers();
    let heads = vec![Head { log: LOG, seq: 5 }];
    peers.into_iter().for_each(|peer| node.peer_says(peer, heads.clone()));
    let [one, other] = peers.map(|seed| identity(seed).node_id());
    let of = |wants: Vec<(NodeId, Vec<Span>)>| -> Vec<NodeId> {
        wants.into_iter().map(|(peer, _)| peer).collect()
    };
    assert_eq!(of(node.wanted_of()), [one]);
    node.give(Input::PeerDown(one));
    node.wait(TICK * 2);
    assert_eq!(of(node.wanted_of()), [other], "at once");
    node.give(Input::PeerUp(one));
    node.peer_says(peers[0], heads);
    node.give(Input::PeerDown(one));
    node.wait(TICK * 2);
    assert_eq!(of(node.wanted_of()), [], "the question to the other is out");
}

#[test]
fn what_is_here_and_what_will_not_be_taken_is_not_asked_for() {
    let (mut node, [peer, _]) = with_peers();
    for content in ["one", "another"] {
        let run = said_in(&node, (node.lobby(), 0), (5, 1, content)).run().clone();
        node.hear(&run);
    }
    let run = said_at(&node, 6, 1).run().clone();
    let forked = LogId { author: identity(5).node_id(), incarnation: 0 };
    let heads = vec![Head { log: forked, seq: 9 }, Head { log: run.log, seq: 1 }];
    node.effects.clear();
    node.peer_says(peer, heads);
    let spans = vec![Span { log: run.log, after: 0, upto: 1 }];
    assert_eq!(node.wanted_of(), [(identity(peer).node_id(), spans)], "who forked is out");
    node.hear(&run);
    node.wait(WANT_TIMEOUT * 3);
    assert_eq!(node.wanted_of(), [], "it came");
}

#[test]
fn whoever_sends_what_cannot_be_continued_is_asked_what_it_has_and_not_for_each_run() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let ahead = |node: &Node, first| {
        let mut run = said_at(node, 5, first).run().clone();
        run.first = first;
        run.seal(node.secret.mesh_id(), &identity(5)).run().clone()
    };
    let asked = |node: &mut Node| {
        let sent = std::mem::take(&mut node.effects);
        let has = |it: &&Effect| {
            matches!(it, Effect::Send { to, message: Message::Have { room, answer: true, .. } }
                if *room == lobby && *to == identity(9).node_id())
        };
        sent.iter().filter(has).count()
    };
    for first in 4..9 {
        let run = ahead(&node, first);
        node.hear(&run);
    }
    assert_eq!(asked(&mut node), 1);
    node.wait(TICK * 2);
    asked(&mut node);
    let run = ahead(&node, 9);
    node.hear(&run);
    assert_eq!(asked(&mut node), 1, "and again a little later");
}

#[test]
fn an_entry_is_nobodys_when_all_have_said_so_since() {
    let (mut node, peers) = with_peers();
    let lobby = node.lobby();
    let since = node.now.mono;
    let all = peers.map(|seed| identity(seed).node_id()).into();
    let nobody = |node: &Node, since| {
        node.engine.known.rooms[&lobby].replica.sync.nobody_has(
            &all,
            since,
            Head { log: LOG, seq: 5 },
        )
    };
    assert!(!nobody(&node, since), "nobody has said anything");
    node.peer_says(peers[0], Vec::new());
    assert!(!nobody(&node, since));
    node.peer_says(peers[1], vec![Head { log: LOG, seq: 4 }]);
    assert!(nobody(&node, since));
    assert!(!nobody(&node, node.now.mono), "that was before");
    node.peer_says(peers[1], vec![Head { log: LOG, seq: 5 }]);
    assert!(!nobody(&node, since));
}

#[test]
fn what_this_node_wrote_is_sent_when_another_says_that_it_has_it_or_is_in_step() {
    for in_step in [false, true] {
        let (mut node, [peer, _]) = with_peers();
        node.engine.known.live.admit(identity(peer).node_id());
        let (caller, lobby) = (node.attach("me", false, KEY).expect("free"), node.lobby());
        node.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("public");
        node.say(&caller, lobby).expect("a member");
        assert!(node.unsent() > 0, "nobody has said anything");
        let log = LogId { author: node.engine.known.cx.me, incarnation: 0 };
        let seq = node.engine.known.rooms[&lobby].replica.logs.head_of(log);
        if in_step {
            let from = identity(peer).node_id();
            for (tick, differs) in [(1, true), (2, false)] {
                assert!(node.unsent() > 0);
                let same = node.digest();
                let digest = if differs { unlike(same) } else { same };
                let it = Beacon { digest, ..beacon(from, 1, tick, 0) };
                let message = Message::Beacon(Signed { value: it, signature: [0; 64] });
                node.give(Input::Message { from, message });
            }
        } else {
            node.peer_says(peer, vec![Head { log, seq: seq - 1 }]);
            assert_eq!(node.unsent(), 1);
            node.peer_says(peer, vec![Head { log, seq }]);
        }
        assert_eq!(node.unsent(), 0, "{in_step}");
    }
}
