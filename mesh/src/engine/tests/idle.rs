//! What a node looks at when nothing happens: only what waits, however many rooms there are.

use super::*;
use crate::{
    limits::{
        BEACON_EVERY, EPHEMERAL_EMPTY_FOR, HEARD_DIRECTLY_WITHIN, PAUSED_AFTER, TAKEOVER_AFTER,
    },
    order::pulse::Spread,
    wire::message::Head,
};

const PEER: u8 = 9;

fn room(node: &mut Node, caller: &Caller, name: &str) -> RoomId {
    let room = NewRoom {
        name: name.to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    let joined = node.ask(Command::Join { caller: caller.clone(), room: view.room });
    assert!(joined.is_ok(), "{joined:?}");
    view.room
}

/// The peer lives, and has what this digest is of.
fn hears_beacon(node: &mut Node, tick: u64, digest: Digest) {
    let from = identity(PEER).node_id();
    let it = Beacon { digest, ..super::beacon(from, 1, tick, 0) };
    let message = Message::Beacon(Signed { value: it, signature: [0; 64] });
    node.give(Input::Message { from, message });
}

fn behind(node: &mut Node) -> u64 {
    let Ok(Outcome::Behind(behind)) = node.ask(Command::Behind) else { panic!("it says") };
    let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("it says") };
    assert_eq!(behind, status.rooms.iter().map(|it| it.behind).sum::<u64>());
    behind
}

#[test]
fn rooms_in_which_nothing_waits_are_not_looked_at() {
    let mut node = Node::new(1);
    let caller = node.attach("a", true, KEY).unwrap();
    for n in 0..50 {
        let room = room(&mut node, &caller, &format!("room {n}"));
        node.say(&caller, room).unwrap();
    }
    let digest = node.digest();
    let engine = &node.engine;
    assert!(engine.known.busy.is_empty(), "all is delivered: {:?}", engine.known.busy);
    assert!(engine.digests.unshared.len() > 50, "nobody else is known to have it");
    hears_beacon(&mut node, 1, digest);
    assert!(
        node.engine.digests.unshared.is_empty(),
        "the peer has it: {:?}",
        node.engine.digests.unshared
    );
    let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("it says") };
    assert_eq!(status.rooms.iter().map(|it| it.unsent).sum::<u64>(), 0);
    let lobby = node.lobby();
    let joined = node.ask(Command::Join { caller: caller.clone(), room: lobby });
    assert!(joined.is_ok(), "{joined:?}");
    node.say(&caller, lobby).unwrap();
    assert_eq!(Vec::from_iter(&node.engine.digests.unshared), [&lobby]);
    assert!(node.engine.known.ephemeral.is_empty());
}

#[test]
fn what_a_room_lacks_is_told_without_a_look_at_the_others() {
    let mut node = Node::new(1);
    let caller = node.attach("a", true, KEY).unwrap();
    let made = room(&mut node, &caller, "made");
    assert_eq!(behind(&mut node), 0);
    let peer = identity(PEER).node_id();
    node.give(Input::PeerUp(peer));
    for (room, seq) in [(node.lobby(), 5), (made, 7)] {
        let heads = vec![Head { log: LogId { author: peer, incarnation: 0 }, seq }];
        let message = Message::Have { room, heads, answer: false };
        node.give(Input::Message { from: peer, message });
    }
    assert_eq!(behind(&mut node), 12);
    node.give(Input::PeerDown(peer));
    assert_eq!(behind(&mut node), 0, "nobody is known to have it any more");
}

#[test]
fn an_ephemeral_room_that_nobody_joins_ends() {
    let mut node = Node::new(1);
    let caller = node.attach("a", true, KEY).unwrap();
    let room = room_for_now(&mut node, &caller);
    for command in [
        Command::Join { caller: caller.clone(), room },
        Command::Leave { caller: caller.clone(), room },
    ] {
        assert_eq!(Vec::from_iter(&node.engine.known.ephemeral), [&room]);
        let done = node.ask(command);
        assert!(done.is_ok(), "{done:?}");
    }
    assert!(node.engine.known.ephemeral.is_empty(), "it ended with its last member");
    let room = room_for_now(&mut node, &caller);
    for passed in [EPHEMERAL_EMPTY_FOR - TICK, 2 * TICK] {
        assert!(node.engine.known.rooms.contains_key(&room));
        node.now.mono += passed;
        node.now.wall_ms += u64::try_from(passed.as_millis()).unwrap();
        node.give(Input::Timeout);
    }
    assert!(!node.engine.known.rooms.contains_key(&room));
    assert!(node.engine.known.ephemeral.is_empty());
}

/// How the node's own beacons go, after this time with direct beacons of these nodes, and of others that
/// the first of them passes on.
fn spread_after(node: &mut Node, lasts: Duration, (direct, relayed): (&[u8], &[u8])) -> Spread {
    let mut left = lasts;
    while left > Duration::ZERO {
        let step = left.min(BEACON_EVERY);
        (node.now.mono, left) = (node.now.mono + step, left - step);
        // Hardly one is left out, as by peers who are not calm.
        let tick = u64::try_from(node.now.mono.as_millis() / BEACON_EVERY.as_millis()).unwrap();
        let digest = node.digest();
        for (of, by) in direct.iter().map(|it| (it, it)).chain(relayed.iter().map(|it| (it, &PEER)))
        {
            let it = Beacon { digest, ..super::beacon(identity(*of).node_id(), 1, tick, 0) };
            let message = Message::Beacon(Signed { value: it, signature: [0; 64] });
            node.give(Input::Message { from: identity(*by).node_id(), message });
        }
        node.give(Input::Timeout);
    }
    node.engine.beacons.pulse.spread
}

#[test]
fn beacons_are_gossiped_while_somebody_who_lives_is_not_heard_directly() {
    use Spread::{EachTime, NowAndThen};
    const STRANGER: u8 = 8;
    let short = HEARD_DIRECTLY_WITHIN + TICK;
    let mut node = Node::new(1);
    assert_eq!(spread_after(&mut node, short, (&[], &[])), EachTime, "who lives is not known yet");
    node.give(Input::PeerUp(identity(PEER).node_id()));
    assert_eq!(spread_after(&mut node, ROSTER_LEASE, (&[PEER], &[])), NowAndThen);
    // Somebody who is not connected lives.
    assert_eq!(spread_after(&mut node, short, (&[PEER], &[STRANGER])), EachTime);
    assert_eq!(spread_after(&mut node, ROSTER_LEASE, (&[PEER], &[])), NowAndThen);
    // It is connected, but heard through the other only: this node may not be heard by it either.
    node.give(Input::PeerUp(identity(STRANGER).node_id()));
    assert_eq!(spread_after(&mut node, short, (&[PEER], &[STRANGER])), EachTime);
    assert_eq!(spread_after(&mut node, short, (&[PEER, STRANGER], &[])), NowAndThen);
    assert_eq!(spread_after(&mut node, short, (&[STRANGER], &[])), EachTime, "one is silent");
    assert_eq!(spread_after(&mut node, short, (&[PEER, STRANGER], &[])), NowAndThen);
    node.give(Input::PeerDown(identity(STRANGER).node_id()));
    assert_eq!(node.engine.beacons.pulse.spread, EachTime, "at once: it may live");
    assert_eq!(spread_after(&mut node, ROSTER_LEASE, (&[PEER], &[])), NowAndThen, "it does not");
    // After a pause nobody knows who came meanwhile.
    node.now.mono += PAUSED_AFTER + TICK;
    assert_eq!(spread_after(&mut node, short, (&[PEER], &[])), EachTime);
}

#[test]
fn who_is_in_a_hurry_to_take_over_says_all_the_more_often_that_it_lives() {
    let mut node = Node::with(1, |config| config.takeover_after = TAKEOVER_AFTER - TICK);
    node.give(Input::PeerUp(identity(PEER).node_id()));
    assert_eq!(spread_after(&mut node, ROSTER_LEASE, (&[PEER], &[])), Spread::EachTime);
}
