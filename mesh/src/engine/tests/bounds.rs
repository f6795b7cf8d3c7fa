//! What peers and clients can make grow, and where that ends.

use super::{
    asking::log,
    rooms::{make, new, words},
    *,
};
use crate::{
    limits::{
        DESCRIPTION_BYTES_MAX, EPHEMERAL_ROOMS_MAX, HELD_MAX, LOGS_PER_ROOM_MAX, WANT_TIMEOUT,
    },
    name::{id::LocalRef, number::Era},
    turn::happened::Happened,
    wire::{
        message::{About, Head, Span},
        roster::{EphemeralRoom, RoomFacts},
    },
};

const PEER: u8 = 8;

fn peer() -> NodeId {
    identity(PEER).node_id()
}

fn nth_room(nth: usize) -> RoomId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&(nth as u64).to_be_bytes());
    RoomId(id)
}

// Of peers.

#[test]
fn of_rooms_that_are_not_known_here_so_many_are_remembered() {
    const MOST: usize = 1_024;
    let mut node = Node::new(1);
    node.give(Input::PeerUp(peer()));
    let says = |node: &mut Node, nth| {
        let message = Message::Have { room: nth_room(nth), heads: Vec::new(), answer: false };
        node.hears_from(PEER, message);
    };
    for nth in 0..MOST {
        says(&mut node, nth);
    }
    says(&mut node, 5);
    assert_eq!(node.engine.known.unknown.len(), MOST, "one of which it had spoken before");
    assert!(node.engine.known.unknown.contains_key(&nth_room(0)));
    says(&mut node, MOST);
    assert_eq!(node.engine.known.unknown.len(), MOST);
    assert_eq!(node.engine.known.unknown.get(&nth_room(MOST)), Some(&peer()), "the newest is");
}

#[test]
fn peers_are_asked_what_they_have_once_in_a_while() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    for seed in [PEER, 9] {
        node.give(Input::PeerUp(identity(seed).node_id()));
    }
    let asked = |node: &mut Node| {
        node.effects.clear();
        for _ in 0..3 {
            let engine = &mut node.engine;
            engine
                .known
                .rooms
                .get_mut(&lobby)
                .expect("it is there")
                .replica
                .ask_all(&mut engine.known.cx);
        }
        node.turn();
        let asked = |it: &&Effect| {
            matches!(it, Effect::Send { message: Message::Have { answer: true, .. }, .. })
        };
        node.effects.iter().filter(asked).count()
    };
    assert_eq!([asked(&mut node), asked(&mut node)], [2, 0], "both, once");
    node.now.mono += WANT_TIMEOUT - Duration::from_millis(10);
    node.give(Input::Timeout);
    assert_eq!(asked(&mut node), 0);
    node.now.mono += Duration::from_millis(10);
    node.give(Input::Timeout);
    assert_eq!(asked(&mut node), 2);
}

#[test]
fn who_wants_entries_or_bodies_is_sent_them_by_the_driver() {
    let mut node = Node::new(1);
    node.give(Input::PeerUp(peer()));
    let (room, spans) = (node.lobby(), vec![Span { log: log(1), after: 0, upto: 9 }]);
    let at = vec![Head { log: log(1), seq: 1 }];
    node.hears_from(PEER, Message::Want { room, spans: spans.clone() });
    node.hears_from(PEER, Message::WantBodies { room, at: at.clone() });
    let sends = |it: &Effect| match it {
        Effect::SendSpans { to, room: of, spans: those } => {
            (*to, *of) == (peer(), room) && *those == spans
        }
        Effect::SendBodies { to, room: of, at: those } => {
            (*to, *of) == (peer(), room) && *those == at
        }
        _ => false,
    };
    assert_eq!(node.effects.iter().filter(|it| sends(it)).count(), 2);
}

#[test]
fn an_answer_about_a_room_brings_nothing_of_another() {
    let mut node = Node::new(1);
    node.give(Input::PeerUp(peer()));
    let run = said_at(&node, 5, 1);
    let (head, room) = (run.run().log, RoomId::directory(node.secret.mesh_id()));
    let stray = node.engine.known.cx.faults.stray;
    node.hears_from(PEER, Message::Spans { room, runs: vec![run], bodies: Vec::new(), last: true });
    assert_eq!(node.engine.known.cx.faults.stray, stray + 1);
    assert_eq!(node.engine.known.rooms[&node.lobby()].replica.logs.head_of(head), 0);
}

#[test]
fn a_room_has_so_many_logs_and_no_more() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let logs = &mut node.engine.known.rooms.get_mut(&lobby).expect("it is there").replica.logs;
    for nth in 0..LOGS_PER_ROOM_MAX {
        let mut author = [0; 32];
        author[..8].copy_from_slice(&(nth as u64).to_be_bytes());
        let log = LogId { author: NodeId(author), incarnation: 0 };
        assert!(logs.ensure(log).is_some());
    }
    let overflow = node.engine.known.cx.faults.overflow;
    let run = said_at(&node, 5, 1).run().clone();
    node.hear(&run);
    assert_eq!(node.engine.known.rooms[&lobby].replica.logs.head_of(run.log), 0);
    assert_eq!(node.engine.known.cx.faults.overflow, overflow + 1);
}

#[test]
fn what_cannot_be_read_of_a_kind_that_is_known_has_its_number_and_means_nothing() {
    let mut node = Node::new(1);
    let mut run = said_at(&node, 5, 1).run().clone();
    run.entries[0].body = Carried::Here(vec![0xff; 3].into());
    let run = run.seal(node.secret.mesh_id(), &identity(5)).run().clone();
    let void = node.engine.known.cx.faults.void;
    node.hear(&run);
    assert_eq!(node.engine.known.cx.faults.void, void + 1);
    assert_eq!(node.engine.known.rooms[&node.lobby()].tip(), Number(1), "here as everywhere");
    assert_eq!(node.engine.known.cx.blamed.get(&run.log.author).map(|it| it.void), Some(1));
}

/// Or else every node of a later version would be called noisy, and heard in part.
#[test]
fn kinds_of_later_versions_are_nobodys_fault() {
    for visible in [false, true] {
        let mut node = Node::new(1);
        let void = node.engine.known.cx.faults.void;
        let mut run = said_at(&node, 5, 1).run().clone();
        (run.entries[0].facts.kind, run.entries[0].facts.visible) = (200, visible);
        let run = run.seal(node.secret.mesh_id(), &identity(5)).run().clone();
        node.hear(&run);
        let lobby = &node.engine.known.rooms[&node.lobby()];
        assert_eq!((lobby.replica.logs.head_of(run.log), lobby.tip().0), (1, u64::from(visible)));
        assert_eq!(node.engine.known.cx.faults.void, void);
        assert!(node.engine.known.cx.blamed.is_empty());
    }
}

#[test]
fn who_says_what_another_node_is_or_is_not_connected_is_not_believed() {
    let mut node = Node::new(1);
    let about = |of: u8| {
        let epoch = crate::name::identity::LinkSecret::new(0, [0; 32]).epoch();
        let value = About { node: identity(of).node_id(), epoch, version: "1".to_owned() };
        Message::About(Signed { value, signature: [0; 64] })
    };
    let stray = node.engine.known.cx.faults.stray;
    node.hears_from(PEER, about(PEER));
    node.give(Input::PeerUp(peer()));
    node.hears_from(PEER, about(9));
    assert_eq!(node.engine.known.cx.faults.stray, stray + 2);
    assert!(node.engine.renewal.about.is_empty());
    node.hears_from(PEER, about(PEER));
    assert!(node.engine.renewal.about.contains_key(&peer()));
}

#[test]
fn that_somebody_types_is_believed_of_its_own_node_where_it_is_a_member() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let caller = node.joins("me");
    let other = make(&mut node, &caller, new("other", false)).expect("it is new");
    node.hears_beacon((5, 5), (1, 0, NONE));
    node.news(identity(5).node_id(), vec![RosterChange::Agent("ghost".into(), record(lobby))]);
    let mut types = |of: u8, room| {
        node.effects.clear();
        let what = What::Typing { agent: "ghost".into(), room, typing: true, nonce: 1 };
        let value = RosterNews { node: identity(of).node_id(), boot: 1, what };
        node.hears_from(of, Message::Roster(Box::new(Signed { value, signature: [0; 64] })));
        let told =
            |it: &Effect| matches!(it, Effect::Notify { event: RoomEvent::Typing { .. }, .. });
        node.effects.iter().any(told)
    };
    assert_eq!([types(5, lobby), types(6, lobby), types(5, other)], [true, false, false]);
}

// Of clients.

#[test]
fn a_room_is_described_shortly_and_there_are_so_many_of_memory() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let described =
        |name: &str, len| NewRoom { description: Some("x".repeat(len)), ..new(name, false) };
    make(&mut node, &caller, described("one", DESCRIPTION_BYTES_MAX)).expect("as long as may be");
    let refused = make(&mut node, &caller, described("two", DESCRIPTION_BYTES_MAX + 1));
    assert!(matches!(refused, Err(Refused::Field(_))), "{refused:?}");
    let view = node.engine.known.view(node.lobby()).expect("it is there");
    for nth in 0..EPHEMERAL_ROOMS_MAX {
        let room = nth_room(nth);
        let name = format!("room {nth}").into();
        node.engine.known.ephemeral.insert(room);
        node.engine
            .known
            .told
            .insert(room, crate::api::command::RoomView { room, name, ..view.clone() });
    }
    let refused = make(&mut node, &caller, new("three", true));
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    make(&mut node, &caller, new("four", false)).expect("it lasts");
}

#[test]
fn in_a_room_that_is_encrypted_nothing_is_said_openly() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let room = NewRoom { encrypted: true, ..new("secret", false) };
    let room = make(&mut node, &caller, room).expect("it is new");
    node.ask(Command::Join { caller: caller.clone(), room }).expect("public");
    let mut say = |room, encryption| {
        let say = Say { encryption, ..words(room, "hello".to_owned()) };
        node.ask(Command::Say { caller: caller.clone(), say }).err()
    };
    assert_eq!(say(room, Encryption::None), Some(Refused::Plaintext));
    assert_eq!(say(room, Encryption::EndToEnd), None);
    let lobby = RoomId::lobby(MeshSecret::new([7; 32], identity(1).node_id()).mesh_id());
    assert_eq!(say(lobby, Encryption::None), None);
}

#[test]
fn so_many_messages_wait_for_a_lobby_to_be_raised_and_others_do_not() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    node.engine.known.node.lobby_floor = Number(1_000);
    let calls: Vec<CallId> = (0..HELD_MAX).map(|_| node.says_unturned(&caller)).collect();
    let more = node.begin_say(&caller);
    assert!(node.reply(more).is_some(), "it is numbered at once");
    assert!(calls.iter().all(|call| node.reply(*call).is_none()));
}

#[test]
fn who_waits_in_a_room_that_ends_is_told_that_there_is_none() {
    let mut node = Node::new(1);
    let home = LogId { author: peer(), incarnation: 1 << 20 | 1 };
    let room = crate::presence::ephemeral::ephemeral_id(node.secret.mesh_id(), home, false);
    let facts = RoomFacts::Open(public_room(room, "theirs"));
    let it = EphemeralRoom { facts, home, created_ms: node.now.wall_ms };
    node.heard_saying(PEER, vec![RosterChange::Room(room, it)]);
    let caller = node.joins("me");
    node.ask(Command::Join { caller: caller.clone(), room }).expect("public");
    let say = words(room, "hello".to_owned());
    let call = node.begin(Command::Say { caller: caller.clone(), say });
    assert!(node.reply(call).is_none(), "another node gives the numbers");
    let warm = node.engine.known.cx.memory.warm;
    assert!(warm > 0 && node.engine.known.cx.memory.ephemeral > 0);
    node.ask(Command::Leave { caller, room }).expect("a member");
    assert!(node.engine.known.rooms.contains_key(&room), "another node lists it");
    // Claims of tasks that wait for their answer, there and elsewhere.
    let at = LocalRef { log: 0, seq: 1_000 };
    let [there, elsewhere] = [(room, 1_001), (node.lobby(), 1_002)].map(|(room, call)| {
        node.engine.claims.waiting.insert((room, at), CallId(call));
        CallId(call)
    });
    let what = What::Changes { version: 2, changes: vec![RosterChange::NoRoom(room)] };
    let value = RosterNews { node: peer(), boot: 1, what };
    node.hears_from(PEER, Message::Roster(Box::new(Signed { value, signature: [0; 64] })));
    assert!(!node.engine.known.rooms.contains_key(&room));
    assert_eq!(node.reply(call).and_then(|it| it.err()), Some(Refused::NoRoom));
    assert_eq!(node.reply(there).and_then(|it| it.err()), Some(Refused::NoTask));
    assert!(node.reply(elsewhere).is_none());
    assert_eq!(
        node.engine.claims.waiting.keys().map(|it| it.0).collect::<Vec<_>>(),
        [node.lobby()]
    );
    assert_eq!((node.engine.known.cx.memory.warm, node.engine.known.cx.memory.ephemeral), (0, 0));
}

#[test]
fn what_was_claimed_in_rooms_of_memory_is_kept_of_the_last_of_them() {
    let mut node = Node::new(1);
    let era = |c| Era::new(c, 7).expect("an era");
    for nth in 0..=EPHEMERAL_ROOMS_MAX {
        let (room, era) = (nth_room(nth), era(1));
        node.engine.known.cx.happens(Happened::ClaimedInMemory { room, era });
    }
    node.turn();
    let claims = |node: &Node| node.engine.known.node.ephemeral_claims.clone();
    assert_eq!(claims(&node).len(), EPHEMERAL_ROOMS_MAX);
    assert_eq!(claims(&node)[0].0, nth_room(1), "the oldest went");
    let claimed = Happened::ClaimedInMemory { room: nth_room(5), era: era(2) };
    node.engine.known.cx.happens(claimed);
    node.turn();
    assert_eq!(claims(&node).len(), EPHEMERAL_ROOMS_MAX);
    let of = claims(&node).into_iter().filter(|it| it.0 == nth_room(5)).collect::<Vec<_>>();
    assert_eq!(of, [(nth_room(5), era(2))], "the newest of each");
}

/// What a node does while its disk is full: whoever is told that something was done must find it done.
#[test]
fn what_is_answered_while_nothing_can_be_written_asks_for_nothing_to_be_written() {
    let mut node = Node::new(1);
    let (caller, room) = (node.joins("me"), node.lobby());
    node.attach("bob", true, KEY).expect("free");
    let attach = |agent: &str, stable| {
        Command::Attach(Attach {
            agent: agent.into(),
            stable,
            reconnect: true,
            key: KEY,
            own: true,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.to_owned(),
            capabilities: Vec::new(),
        })
    };
    let lost = [
        attach("ann", true),
        Command::CreateRoom { caller: caller.clone(), room: new("plan", false) },
        Command::Join { caller: caller.clone(), room },
        Command::Leave { caller: caller.clone(), room },
        Command::Say { caller: caller.clone(), say: words(room, "x".to_owned()) },
        Command::ElectLeader { caller: caller.clone(), room },
        Command::Decline { caller: caller.clone(), room },
        Command::RevokeKey { key: KEY },
        Command::Keep { name: Vec::new(), value: None },
        Command::Roam { room, cursor: Number::ZERO, entries: Vec::new() },
        Command::LeaveMesh { force: false },
        Command::Stop,
    ];
    for command in lost {
        assert!(!node.engine.answers_unwritten(&command), "{command:?}");
    }
    let asks = [
        attach("ann", false),
        attach("bob", true),
        Command::Detach { caller, seen: Vec::new() },
        Command::ListRooms { by: KEY.into(), parent: None },
        Command::ListAgents { by: KEY.into(), room: None },
        Command::RoomInfo { by: KEY.into(), room },
        Command::ListKeys,
        Command::CheckKey { key: KEY, own: true },
        Command::Status,
        Command::Behind,
        Command::Members,
    ];
    for command in asks {
        assert!(node.engine.answers_unwritten(&command), "{command:?}");
        node.rows.clear();
        let shown = format!("{command:?}");
        assert!(node.ask(command).is_ok(), "{shown}");
        let other = node.rows.iter().find(|it| !matches!(it, Change::Node(_)));
        assert!(other.is_none(), "{shown}: {other:?}");
    }
    // The private rooms of a minted key may be elsewhere: they are asked for first.
    let key = PRINTS[9];
    let mint = node.new_key(key, Tier::High, false);
    node.ask(Command::MintKey(mint)).expect("it is new");
    let Command::Attach(it) = attach("eve", false) else { panic!("it is one") };
    let of_key = |own| Command::Attach(Attach { key, own, ..it.clone() });
    let answers = [true, false].map(|own| node.engine.answers_unwritten(&of_key(own)));
    assert_eq!(answers, [true, false]);
}
