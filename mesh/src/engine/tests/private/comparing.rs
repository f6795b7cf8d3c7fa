//! Followers of a key tell each other how far they are with its rooms.

use super::*;

/// How far a node says that it is with the private rooms of the key, when a peer shows that it follows.
fn how_far(node: &mut Node, peer: u8) -> Vec<Digest> {
    let me = identity(peer).node_id();
    node.give(Input::PeerUp(me));
    node.sent_to(peer);
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), me);
    node.told(
        peer,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    digests(node, peer)
}

fn digests(node: &mut Node, peer: u8) -> Vec<Digest> {
    let said = node.sent_to(peer).into_iter().filter_map(|it| match it {
        Message::Follows(keys) => Some(keys[0].digest),
        _ => None,
    });
    said.collect()
}

#[test]
fn a_node_that_starts_again_follows_what_it_followed_and_is_as_far() {
    let (mut node, me) = follower();
    let rooms = [node.create_private(&me, false), node.create_second(&me)];
    for room in rooms.into_iter().chain(rooms) {
        node.number(&me, room);
    }
    let mut again = Node::open(1, disk::stored(&node.rows), node.now);
    let token = again.engine.known.cx.followers.token(Group::Key(key())).expect("it follows");
    let own = again.engine.known.cx.me;
    assert!(again.engine.known.rosters.follows(own).contains(&token), "and shows it");
    let before = how_far(&mut node, 8);
    assert!(before.len() == 1 && before[0] != Digest::default(), "{before:?}");
    assert_eq!(how_far(&mut again, 8), before);
}

#[test]
fn followers_compare_their_private_rooms_now_and_then_and_say_more_only_if_they_differ() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.number(&me, room);
    let mine = how_far(&mut node, 8)[0];
    node.wait(crate::limits::FOLLOWERS_COMPARE_EVERY * 5);
    let said = digests(&mut node, 8).len();
    assert!((4..=6).contains(&said), "{said} times");
    assert_eq!(digests(&mut node, STRANGER), [], "to those who follow");
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), identity(8).node_id());
    let mut named = |digest| {
        node.told(8, Message::Follows(vec![Followed { token, digest, records: [0; 16] }]));
        node.sent_to(8).into_iter().any(|it| match it {
            Message::Digests(rooms) => rooms.iter().any(|it| it.room == room),
            _ => false,
        })
    };
    assert!(!named(mine) && named(unlike(mine)));
}

#[test]
fn a_roster_that_shows_one_more_key_is_answered_once_with_how_far_its_rooms_are_here() {
    let (mut node, _) = follower();
    let peer = identity(8).node_id();
    node.give(Input::PeerUp(peer));
    node.sent_to(8);
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), peer);
    node.heard_saying(8, vec![RosterChange::Follows(token)]);
    assert_eq!(digests(&mut node, 8).len(), 1);
    let lobby = node.lobby();
    let changes = vec![seated("a", KEY, lobby)];
    let it = RosterNews { node: peer, boot: 1, what: What::Changes { version: 2, changes } };
    node.told(8, Message::Roster(Box::new(Signed { value: it, signature: [0; 64] })));
    assert_eq!(digests(&mut node, 8).len(), 0, "it knows that already");
}
