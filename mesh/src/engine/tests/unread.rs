//! Rooms of a key that is new to a node: listed before what was said there has come.

use super::{
    private::{API_KEY, follower, key, presented},
    *,
};
use crate::{
    limits::{KEY_NEW_FOR, PRESENTED_WITHIN},
    name::id::RoomKey,
    wire::{message::Followed, seal::Token},
};

/// A follower with a room in which something was said, and another node, to which its key is presented.
struct Pair {
    first: Node,
    said: Vec<Run>,
    sealed: RoomId,
    room: RoomId,
    second: Node,
    call: CallId,
}

impl Pair {
    fn new() -> Pair {
        let (mut first, me) = follower();
        let room = first.create_private(&me, false);
        first.number(&me, room);
        let said = first.runs_sent();
        let sealed = first
            .engine
            .known
            .cx
            .followers
            .directory(crate::name::group::Group::Key(key()))
            .expect("it follows");
        let (_, attach) = presented(false, false);
        let mut second = Node::new(8);
        let author = identity(1).node_id();
        let directory = RoomId::directory(first.secret.mesh_id());
        said.iter().filter(|run| run.room == directory).for_each(|run| second.hear(run));
        second.give(Input::PeerUp(author));
        let call = second.begin(Command::Attach(attach));
        let token = Token::of(first.secret.mesh_id(), &RoomKey::of(API_KEY), author);
        second.told(
            1,
            Message::Follows(vec![Followed { token, digest: Digest([1; 16]), records: [0; 16] }]),
        );
        Pair { first, said, sealed, room, second, call }
    }

    /// The first one says what it has of a room.
    fn says(&mut self, room: RoomId) {
        let heads = self.first.engine.known.rooms[&room].replica.logs.heads();
        self.second.told(1, Message::Have { room, heads, answer: false });
    }

    /// And gives it.
    fn gives(&mut self, room: RoomId) {
        let runs = self.said.iter().filter(|run| run.room == room);
        let mesh = self.first.secret.mesh_id();
        let runs = runs.map(|run| run.clone().verify(mesh).expect("it is sealed")).collect();
        self.second.told(1, Message::Spans { room, runs, bodies: Vec::new(), last: true });
    }

    fn is_answered(&self) -> bool {
        matches!(self.second.reply(self.call), Some(Ok(Outcome::Attached(_))))
    }

    fn shows(&self) -> bool {
        self.second.engine.known.told.contains_key(&self.room)
    }
}

#[test]
fn the_rooms_of_a_key_are_shown_when_their_history_is_here_and_not_before() {
    let mut pair = Pair::new();
    let (sealed, room) = (pair.sealed, pair.room);
    pair.says(sealed);
    pair.second.effects.clear();
    pair.gives(sealed);
    let asked = |it: &Effect| {
        matches!(
            it,
            Effect::Send { message: Message::Have { room: it, answer: true, .. }, .. } if *it == room
        )
    };
    assert!(pair.second.effects.iter().any(asked), "what has been said there?");
    assert!(!pair.is_answered() && !pair.shows(), "it is listed, and would be empty");
    pair.says(room);
    assert!(!pair.is_answered() && !pair.shows());
    pair.gives(room);
    assert!(pair.is_answered());
    assert_eq!(
        pair.second.engine.known.told[&room].tip,
        pair.first.engine.known.rooms[&room].tip()
    );
}

#[test]
fn a_history_that_does_not_come_keeps_nobody_waiting_and_its_room_is_not_shown_without() {
    let mut pair = Pair::new();
    let (sealed, room) = (pair.sealed, pair.room);
    pair.says(sealed);
    pair.gives(sealed);
    pair.says(room);
    pair.second.wait(PRESENTED_WITHIN);
    assert!(pair.is_answered() && !pair.shows());
    pair.second.wait(2 * KEY_NEW_FOR);
    assert!(!pair.shows());
    pair.gives(room);
    assert!(pair.shows());
}
