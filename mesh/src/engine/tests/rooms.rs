//! Making rooms, rooms that are memory only, and what may be said.

use super::{
    asking::{STEP, log, ordered},
    world::{Liar, World},
    *,
};
use crate::{
    api::boundary::Alarm,
    limits::{
        CLAIM_EVERY, CONTENT_BYTES_MAX, EPHEMERAL_BYTES_MAX, EPHEMERAL_EMPTY_FOR,
        EPHEMERAL_ROOMS_MAX, EPHEMERAL_ROOMS_PER_NODE_MAX, HOLE_AFTER, MENTIONS_MAX,
        NAME_BYTES_MAX, NUMBER_WITHIN, TICK,
    },
    name::number::Era,
    presence::ephemeral::ephemeral_id,
    wire::{
        message::Head,
        roster::{EphemeralRoom, RoomFacts},
    },
};

pub(super) fn new(name: &str, ephemeral: bool) -> NewRoom {
    let (name, description, parent) = (name.to_owned(), None, None);
    NewRoom { name, description, parent, ephemeral, public: true, encrypted: false }
}

pub(super) fn make(node: &mut Node, caller: &Caller, room: NewRoom) -> Result<RoomId, Refused> {
    match node.ask(Command::CreateRoom { caller: caller.clone(), room })? {
        Outcome::Room(view) => Ok(view.room),
        other => panic!("{other:?}"),
    }
}

pub(super) fn words(room: RoomId, content: String) -> Say {
    Say {
        room,
        speech: Speech::Chat,
        content,
        encryption: Encryption::None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        durable: None,
        conversing: None,
    }
}

/// A node, an agent of it, and a room that lasts and one that does not, with the agent in both.
fn with_rooms() -> (Node, Caller, [RoomId; 2]) {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let rooms = [("lasting", false), ("fleeting", true)].map(|(name, ephemeral)| {
        let room = make(&mut node, &caller, new(name, ephemeral)).expect("it is new");
        node.ask(Command::Join { caller: caller.clone(), room }).expect("public");
        room
    });
    (node, caller, rooms)
}

#[test]
fn a_room_is_made_under_a_name_that_may_be_and_is_free() {
    let (mut node, caller, _) = with_rooms();
    for name in ["", "  ", &"x".repeat(NAME_BYTES_MAX + 1)] {
        let refused = make(&mut node, &caller, new(name, false));
        assert!(matches!(refused, Err(Refused::Field(_))), "{name}: {refused:?}");
    }
    make(&mut node, &caller, new(&"x".repeat(NAME_BYTES_MAX), false)).expect("as long as may be");
    for (name, ephemeral) in [
        ("lobby", false),
        ("lasting", false),
        ("lasting", true),
        ("fleeting", false),
        ("fleeting", true),
    ] {
        let refused = make(&mut node, &caller, new(name, ephemeral));
        assert_eq!(refused, Err(Refused::NameTaken(name.to_owned())), "{ephemeral}");
    }
    let other = node.attach("other", false, KeyPrint([2; 16])).expect("free");
    let refused = make(&mut node, &other, new("fleeting", true));
    assert_eq!(refused, Err(Refused::NameTaken("fleeting".to_owned())), "of another key, too");
}

#[test]
fn the_agents_of_one_node_make_so_many_rooms_of_memory_and_no_more() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    for nth in 0..EPHEMERAL_ROOMS_PER_NODE_MAX {
        make(&mut node, &caller, new(&format!("room {nth}"), true)).expect("there is room");
    }
    let refused = make(&mut node, &caller, new("one more", true));
    assert!(matches!(refused, Err(Refused::Full(_))), "others are to have some, too: {refused:?}");
    make(&mut node, &caller, new("one that lasts", false)).expect("of these there may be more");
}

#[test]
fn as_much_is_said_as_may_be_and_no_more() {
    let (mut node, caller, [lasting, fleeting]) = with_rooms();
    let mut say = |say: Say, memory: usize| {
        node.engine.known.cx.memory.ephemeral = memory;
        node.ask(Command::Say { caller: caller.clone(), say })
    };
    let full = "x".repeat(CONTENT_BYTES_MAX);
    say(words(lasting, full.clone()), 0).expect("as long as may be");
    let refused = say(words(lasting, format!("{full}x")), 0);
    assert!(matches!(refused, Err(Refused::TooLarge { .. })), "{refused:?}");
    let metadata = Some("x".repeat(CONTENT_BYTES_MAX));
    let refused = say(Say { metadata, ..words(lasting, full.clone()) }, 0);
    assert!(matches!(refused, Err(Refused::TooLarge { .. })), "with all that goes with it");
    let named = |count| Say { mentions: vec!["x".into(); count], ..words(lasting, "y".into()) };
    say(named(MENTIONS_MAX), 0).expect("as many as may be");
    let refused = say(named(MENTIONS_MAX + 1), 0);
    assert!(matches!(refused, Err(Refused::Field(_))), "{refused:?}");
    // What is memory only is bounded for all such rooms together.
    say(words(fleeting, "hello".to_owned()), EPHEMERAL_BYTES_MAX / 2).expect("there is room");
    let refused = say(words(fleeting, "hello".to_owned()), EPHEMERAL_BYTES_MAX - 10);
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    say(words(lasting, "hello".to_owned()), EPHEMERAL_BYTES_MAX).expect("this one is kept");
}

#[test]
fn what_peers_say_in_rooms_of_memory_is_bounded_with_it() {
    let (mut node, _, [_, fleeting]) = with_rooms();
    let run = said_in(&node, (fleeting, 7), (5, 1, "x")).run().clone();
    let head = |node: &Node| node.engine.known.rooms[&fleeting].replica.logs.head_of(run.log);
    node.engine.known.cx.memory.ephemeral = EPHEMERAL_BYTES_MAX - run.size() + 1;
    let overflow = node.engine.known.cx.faults.overflow;
    node.hear(&run);
    assert_eq!((head(&node), node.engine.known.cx.faults.overflow), (0, overflow + 1));
    node.engine.known.cx.memory.ephemeral = EPHEMERAL_BYTES_MAX - run.size();
    let before = node.engine.known.cx.memory.ephemeral;
    node.hear(&run);
    assert_eq!(head(&node), 1);
    assert!(node.engine.known.cx.memory.ephemeral > before, "it is counted");
}

#[test]
fn a_room_of_memory_that_ends_gives_back_what_it_took() {
    let (mut node, caller, [_, room]) = with_rooms();
    node.say(&caller, room).expect("a member");
    assert!(node.engine.known.cx.memory.ephemeral > 0);
    node.ask(Command::Leave { caller, room }).expect("a member");
    assert!(!node.engine.known.rooms.contains_key(&room), "the last one has left");
    assert_eq!(node.engine.known.cx.memory.ephemeral, 0);
    assert!(!node.engine.known.ephemeral.contains(&room));
}

/// At once: nobody else is there.
fn passes(node: &mut Node, time: Duration) {
    node.now.mono += time;
    node.now.wall_ms += u64::try_from(time.as_millis()).expect("minutes");
    node.give(Input::Timeout);
}

#[test]
fn a_room_that_nobody_has_joined_outlives_its_maker_for_ten_minutes() {
    let mut node = Node::new(1);
    let [maker, other] =
        ["maker", "other"].map(|agent| node.attach(agent, false, KEY).expect("free"));
    let [joined, waiting] = ["joined", "waiting"]
        .map(|name| make(&mut node, &maker, new(name, true)).expect("it is new"));
    // A command that makes a room ends at once.
    node.ask(Command::Detach { caller: maker, seen: Vec::new() }).expect("it leaves");
    node.ask(Command::Join { caller: other.clone(), room: joined }).expect("it is still there");
    node.say(&other, joined).expect("a member");
    let there = |node: &Node, room| node.engine.known.rooms.contains_key(&room);
    passes(&mut node, EPHEMERAL_EMPTY_FOR - TICK);
    assert!(there(&node, joined) && there(&node, waiting));
    passes(&mut node, TICK * 2);
    assert!(there(&node, joined) && !there(&node, waiting), "nobody came");
    node.ask(Command::Leave { caller: other, room: joined }).expect("a member");
    assert!(!there(&node, joined), "the last one has left");
}

#[test]
fn a_room_of_memory_lives_while_any_node_has_a_member_there() {
    let mut world = World::new(2);
    let (maker, guest) = (world.callers[0].clone(), world.callers[1].clone());
    let made = world.ask(0, Command::CreateRoom { caller: maker.clone(), room: new("now", true) });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    let room = view.room;
    world.pass(Duration::from_secs(1));
    for (n, caller) in [(0, &maker), (1, &guest)] {
        world.ask(n, Command::Join { caller: caller.clone(), room }).expect("public");
    }
    world.pass(Duration::from_secs(1));
    world.ask(0, Command::Leave { caller: maker, room }).expect("a member");
    world.pass(Duration::from_secs(1));
    let there =
        |world: &World| [0, 1].map(|n| world.nodes[n].engine.known.rooms.contains_key(&room));
    assert_eq!(there(&world), [true, true], "another is in it");
    world.ask(1, Command::Leave { caller: guest, room }).expect("a member");
    world.pass(Duration::from_secs(1));
    assert_eq!(there(&world), [false, false]);
}

#[test]
fn so_many_rooms_of_memory_are_known_and_no_more() {
    for (others, known) in [(EPHEMERAL_ROOMS_MAX - 1, true), (EPHEMERAL_ROOMS_MAX, false)] {
        let mut node = Node::new(1);
        let home = LogId { author: identity(8).node_id(), incarnation: 1 << 20 | 1 };
        let room = ephemeral_id(node.secret.mesh_id(), home, false);
        let facts = RoomFacts::Open(public_room(room, "theirs"));
        let ids = (0..others).map(|n| RoomId((n as u128).to_be_bytes()));
        node.engine.known.ephemeral.extend(ids);
        let overflow = node.engine.known.cx.faults.overflow;
        let author = identity(8).node_id();
        let it = beacon(author, 1, 1, 1);
        let message = Message::Beacon(Signed { value: it, signature: [0; 64] });
        node.give(Input::Message { from: author, message });
        node.news(
            author,
            vec![RosterChange::Room(room, EphemeralRoom { facts, home, created_ms: 1 })],
        );
        assert_eq!(node.engine.known.rooms.contains_key(&room), known);
        assert_eq!(node.engine.known.cx.faults.overflow > overflow, !known);
    }
}

#[test]
fn ids_of_rooms_of_memory_are_uuids_and_of_their_home() {
    let mesh = Node::new(1).secret.mesh_id();
    let id = |incarnation, sealed| {
        ephemeral_id(mesh, LogId { author: identity(1).node_id(), incarnation }, sealed)
    };
    let ids: Vec<RoomId> = (0..64).map(|it| id(it, false)).collect();
    assert!(ids.iter().all(|id| id.0[6] >> 4 == 8 && id.0[8] >> 6 == 2));
    for (byte, varies) in [(6, 12), (8, 32)] {
        let all: std::collections::BTreeSet<u8> = ids.iter().map(|id| id.0[byte]).collect();
        assert!(all.len() > varies, "byte {byte} is of the hash: {all:?}");
    }
    assert_ne!(id(1, false), id(1, true));
}

#[test]
fn nothing_is_made_or_said_in_rooms_of_an_archive() {
    let (node, _, [old, _]) = with_rooms();
    let view = node.engine.known.view(old).expect("it is there");
    let mut node = Node::with(2, |config| config.archive = vec![view]);
    let caller = node.attach("me", false, KEY).expect("free");
    let below = NewRoom { parent: Some(old), ..new("below", true) };
    assert_eq!(make(&mut node, &caller, below), Err(Refused::Closed));
    assert_eq!(node.say(&caller, old).err(), Some(Refused::Closed));
}

/// The lobby of the mesh that a node joined is shorter than its own was: its clients hold higher cursors.
#[test]
fn a_lobby_goes_on_above_what_clients_have_seen_of_the_one_before() {
    let (mut node, caller, [lasting, _]) = with_rooms();
    let lobby = node.lobby();
    node.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("public");
    let floor = Number(1_000);
    node.engine.known.node.lobby_floor = floor;
    let hello = words(lobby, "hello".to_owned());
    let call = node.begin(Command::Say { caller: caller.clone(), say: hello });
    assert!(node.reply(call).is_none(), "numbered now, nobody would read it");
    node.say(&caller, lasting).expect("other rooms go on");
    node.wait(NUMBER_WITHIN + Duration::from_secs(1));
    let Some(Ok(Outcome::Said(said))) = node.reply(call) else { panic!("it is numbered") };
    assert!(said.number > floor);
    let Ok(Outcome::Said(said)) = node.say(&caller, lobby) else { panic!("it is") };
    assert!(said.number > floor, "and what follows, at once");
}

#[test]
fn who_spoke_of_a_room_before_it_was_known_is_asked_when_it_is() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let author = identity(5);
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let room = crate::directory::room_id(node.secret.mesh_id(), directory, log, 1);
    let (from, heads) = (identity(8).node_id(), vec![Head { log, seq: 1 }]);
    node.give(Input::PeerUp(from));
    node.give(Input::Message { from, message: Message::Have { room, heads, answer: false } });
    let body = Body::RoomCreated(public_room(room, "theirs"));
    let facts = Facts { clock: 1, wall_ms: 0, kind: body.kind(), visible: true };
    let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
    let run = Run { room: directory, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    node.effects.clear();
    node.hear(run.seal(node.secret.mesh_id(), &author).run());
    let asked = node.effects.iter().any(|it| {
        matches!(it, Effect::Send { to, message: Message::Have { room: of, answer: true, .. } }
            if *to == from && *of == room)
    });
    assert!(asked);
}

/// A node whose agent makes two rooms, in a mesh whose founder numbers first what is here of others (`known`), then what
/// never comes, and then these two; and what it answered at once.
fn behind_a_hole(known: &[(u8, &str)]) -> (Node, [CallId; 2]) {
    let (mut node, mut founder) = (Node::new(2), Liar::new(1));
    let directory = RoomId::directory(node.secret.mesh_id());
    let caller = node.attach("me", false, KEY).expect("free");
    let made = ["plan", "other"].map(|name| {
        let room = new(name, false);
        node.begin(Command::CreateRoom { caller: caller.clone(), room })
    });
    for (author, name) in known {
        node.hears_of_room(*author, name);
    }
    let room = &node.engine.known.rooms[&directory];
    let (mine, upto) = (room.replica.mine, room.replica.logs.head_of(room.replica.mine));
    let known = known.iter().map(|(author, _)| (log(*author), 1, 1));
    let all: Vec<_> = known.chain([(log(5), 1, 1), (mine, upto - 1, 2)]).collect();
    let (_, ordered) = founder.write_in(&node, directory, &ordered(Era::HOME, 1, &all));
    node.hear(&ordered);
    (node, made)
}

impl Node {
    /// Another node's first entry in the directory makes a room.
    pub(super) fn hears_of_room(&mut self, author: u8, name: &str) -> RoomId {
        let (mesh, by) = (self.secret.mesh_id(), log(author));
        let directory = RoomId::directory(mesh);
        let room = crate::directory::room_id(mesh, directory, by, 1);
        let body = Body::RoomCreated(public_room(room, name));
        self.hear(&log_of(self, directory, author, &[body]));
        room
    }

    pub(super) fn name_of(&self, room: RoomId) -> Option<std::sync::Arc<str>> {
        self.engine.known.view(room).map(|it| it.name)
    }

    pub(super) fn made(&self, call: CallId) -> Option<Result<RoomId, Refused>> {
        self.reply(call).map(|it| match it? {
            Outcome::Room(view) => Ok(view.room),
            other => panic!("{other:?}"),
        })
    }

    fn eras_opened(&self) -> usize {
        let opened = |it: &&Effect| matches!(it, Effect::Alarm(Alarm::EraOpened { .. }));
        self.effects.iter().filter(opened).count()
    }
}

/// What was left as a hole was the creation of a room of the same name, on the other side of a split.
#[test]
fn rooms_that_were_made_behind_a_hole_stay_when_the_hole_turns_out_to_be_one_of_the_name() {
    let (mut node, made) = behind_a_hole(&[]);
    assert!(made.iter().all(|call| node.made(*call).is_none()), "what is before them is not here");
    node.wait(HOLE_AFTER + CLAIM_EVERY);
    let rooms = made.map(|call| node.made(call).expect("answered").expect("made"));
    assert_eq!(node.eras_opened(), 1, "one for both");
    let theirs = node.hears_of_room(5, "plan");
    node.wait(CLAIM_EVERY);
    let names = [rooms[0], theirs, rooms[1]].map(|it| node.name_of(it).expect("it stays"));
    assert_eq!((&*names[1], &*names[2]), ("plan", "other"), "it was the first");
    assert!(names[0].starts_with("plan ("), "{names:?}");
}

#[test]
fn rooms_behind_a_hole_wait_for_the_next_era_if_there_was_one_just_now() {
    let (mut node, made) = behind_a_hole(&[]);
    let directory = RoomId::directory(node.secret.mesh_id());
    node.wait(HOLE_AFTER - CLAIM_EVERY);
    let known = node.engine.known.rooms.get_mut(&directory).expect("it is there");
    // It claimed for something else, and another node has the era by now.
    known.order.claimed_now(node.now.mono + CLAIM_EVERY);
    node.wait(CLAIM_EVERY + STEP * 2);
    assert_eq!(node.engine.waiters.unsettled.len(), 2, "they have numbers");
    assert!(made.iter().all(|call| node.made(*call).is_none()));
    node.wait(CLAIM_EVERY);
    assert!(node.engine.waiters.unsettled.is_empty());
    assert!(made.iter().all(|call| matches!(node.made(*call), Some(Ok(_)))));
}

#[test]
fn who_makes_a_room_behind_a_hole_under_a_name_that_was_taken_before_is_told_so() {
    let (mut node, made) = behind_a_hole(&[(6, "plan")]);
    node.wait(HOLE_AFTER + CLAIM_EVERY);
    assert_eq!(node.made(made[0]), Some(Err(Refused::NameTaken("plan".to_owned()))));
    assert!(matches!(node.made(made[1]), Some(Ok(_))));
    node.hears_of_room(5, "something");
    node.wait(CLAIM_EVERY);
    let rooms = node.engine.known.told.values().map(|it| it.name.clone());
    assert_eq!(rooms.filter(|it| it.starts_with("plan")).count(), 1);
}

/// Or else its name leaks to whoever tries it.
#[test]
fn the_name_of_a_private_room_is_taken_for_its_key_alone() {
    for ephemeral in [false, true] {
        let mut node = Node::new(1);
        let private = || NewRoom { public: false, ..new("own", ephemeral) };
        let me = node.attach("me", false, KEY).expect("free");
        make(&mut node, &me, private()).expect("it is new");
        let refused = make(&mut node, &me, private());
        assert_eq!(refused, Err(Refused::NameTaken("own".to_owned())), "{ephemeral}");
        let stranger = node.attach("stranger", false, KeyPrint([2; 16])).expect("free");
        make(&mut node, &stranger, private()).expect("of another key");
    }
}
