//! What votes, elections and tasks take of a node's memory, and how much of it there is for them.

use super::{rooms::new, *};
use crate::{
    api::agenda::{NewTask, NewVote},
    fold::act::Fold,
    limits::{ELECTION_CANDIDATES_MAX, EPHEMERAL_BYTES_MAX},
};

fn vote(room: RoomId, caller: &Caller) -> Command {
    let vote = NewVote {
        room,
        title: "what".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        duration_secs: None,
    };
    Command::CreateVote { caller: caller.clone(), vote }
}

fn task(room: RoomId, caller: &Caller) -> Command {
    let task = NewTask::of(room, "do it");
    Command::AssignTask { caller: caller.clone(), task }
}

fn elect(room: RoomId, caller: &Caller) -> Command {
    Command::ElectLeader { caller: caller.clone(), room }
}

#[test]
fn memory_of_acts_is_counted_in_each_room_and_over_all() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let other = rooms::make(&mut node, &caller, new("other", false)).expect("it is new");
    node.ask(Command::Join { caller: caller.clone(), room: other }).expect("public");
    let mut all = 0;
    for room in [lobby, other] {
        for act in [vote(room, &caller), elect(room, &caller), task(room, &caller)] {
            let bytes = |node: &Node| node.engine.known.rooms[&room].folds.bytes();
            let before = bytes(&node);
            node.ask(act).expect("a member");
            let more = bytes(&node) - before;
            assert!((100..10_000).contains(&more), "{more}");
            all += more;
        }
        let it = &node.engine.known.rooms[&room];
        let parts = [it.folds.votes.bytes(), it.folds.elections.bytes(), it.folds.tasks.bytes()];
        assert!(parts.iter().all(|it| *it > 100), "{parts:?}");
        assert_eq!(it.folds.bytes(), parts.iter().sum::<usize>());
    }
    assert_eq!(node.engine.known.acts_bytes(), all);
}

#[test]
fn acts_in_memory_are_bounded_with_it() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let room = room_for_now(&mut node, &caller);
    node.ask(Command::Join { caller: caller.clone(), room }).expect("public");
    let heads = node.engine.known.rooms[&room].replica.logs.heads();
    node.engine.known.cx.memory.ephemeral = EPHEMERAL_BYTES_MAX - 5;
    let refused = node.ask(task(room, &caller));
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    assert_eq!(node.engine.known.rooms[&room].replica.logs.heads(), heads, "nothing was written");
    node.engine.known.cx.memory.ephemeral = EPHEMERAL_BYTES_MAX / 2;
    node.ask(task(room, &caller)).expect("there is room");
    let lobby = node.lobby();
    node.engine.known.cx.memory.ephemeral = EPHEMERAL_BYTES_MAX;
    node.ask(task(lobby, &caller)).expect("this one is kept");
}

/// So many members, of ids as long as may be, at another node.
fn crowded(members: usize) -> (Node, Caller) {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    node.hears_beacon((5, 5), (1, 0, NONE));
    let seated = |n: usize| RosterChange::Agent(format!("{n:0128}").as_str().into(), record(lobby));
    node.news(identity(5).node_id(), (1..members).map(seated).collect());
    assert_eq!(node.engine.known.rosters.members(lobby).len(), members);
    (node, caller)
}

#[test]
fn what_does_not_fit_one_entry_is_refused_with_the_reason() {
    for (members, may) in [(ELECTION_CANDIDATES_MAX, true), (ELECTION_CANDIDATES_MAX + 1, false)] {
        let (mut node, caller) = crowded(members);
        let lobby = node.lobby();
        let heads = node.engine.known.rooms[&lobby].replica.logs.heads();
        match node.ask(elect(lobby, &caller)) {
            Ok(_) => assert!(may, "{members}"),
            Err(Refused::Full(text)) => assert!(!may && text.contains("cannot elect"), "{text}"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(node.engine.known.rooms[&lobby].replica.logs.heads() != heads, may);
        node.ask(vote(lobby, &caller)).expect("that many may vote");
    }
    let (mut node, caller) = crowded(4_000);
    let full = Refused::Full("the room has too many members for this".to_owned());
    assert_eq!(node.ask(vote(node.lobby(), &caller)).err(), Some(full));
}
