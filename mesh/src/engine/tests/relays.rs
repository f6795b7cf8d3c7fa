//! Two nodes and a relay: a member that keeps the directory and no other room, and counts where nothing but the directory is asked for.

use super::{
    records,
    rooms::{self, words},
    world::{STEP, World},
    *,
};
use crate::{
    api::agenda::NewVote,
    api::command::{Durable, RoomView, SaidOk, traits::OnRelay},
    limits::TAKEOVER_AFTER,
    name::number::Era,
    wire::{
        kinds::{ERA_CLAIMED, ORDERED},
        message::Post,
    },
};

const RELAY: usize = 2;
/// Of some of these relays the rank in a room would be the first, of others not.
const SEEDS: std::ops::Range<u8> = 3..9;
/// Beacons are missed, peers are asked, and the next one in rank has had its time.
const LONG: u32 = 60;

fn relay(seed: u8) -> Node {
    Node::with(seed, |config| config.relay = true)
}

/// Two nodes with an agent each, and a relay with this seed; all are linked.
fn two_and(seed: u8) -> World {
    let mut world = World::of(vec![Node::new(1), Node::new(2), relay(seed)], 2);
    world.link();
    world.pass(STEP * 10);
    world
}

fn directory(world: &World) -> RoomId {
    RoomId::directory(world.nodes[0].secret.mesh_id())
}

fn sequencer(world: &World, n: usize, room: RoomId) -> NodeId {
    world.nodes[n].engine.known.rooms[&room].order.numbering.sequencer().author
}

fn id(world: &World, n: usize) -> NodeId {
    world.nodes[n].engine.known.cx.me
}

/// A message of the agent of a node, in the lobby.
fn say(world: &mut World, n: usize) -> CallId {
    let (caller, room) = (world.callers[n].clone(), world.lobby());
    world.begin(n, Command::Say { caller, say: words(room, "hello".to_owned()) })
}

fn number(world: &World, n: usize, call: CallId) -> Option<Number> {
    match world.reply(n, call)? {
        Ok(Outcome::Said(SaidOk { number, .. })) => Some(number),
        other => panic!("{other:?}"),
    }
}

fn create(world: &mut World, n: usize, name: &str) -> CallId {
    let (caller, room) = (world.callers[n].clone(), rooms::new(name, false));
    world.begin(n, Command::CreateRoom { caller, room })
}

fn made(world: &World, n: usize, call: CallId) -> Option<RoomView> {
    match world.reply(n, call)? {
        Ok(Outcome::Room(view)) => Some(view),
        other => panic!("{other:?}"),
    }
}

/// Entries of a node, as it has stored them, by kind.
fn wrote(world: &World, n: usize, kinds: [u8; 2]) -> usize {
    let known = &world.nodes[n].engine.known;
    let own = |room: &RoomId, at: crate::name::id::LocalRef| {
        known.rooms.get(room).is_some_and(|room| room.replica.name_of(at).log.author == known.cx.me)
    };
    let is_one = |row: &&Change| match row {
        Change::Entry { room, at, entry } => kinds.contains(&entry.facts.kind) && own(room, *at),
        _ => false,
    };
    world.nodes[n].rows.iter().filter(is_one).count()
}

#[test]
fn a_relay_gives_no_numbers_when_the_node_that_does_is_gone() {
    for seed in SEEDS {
        let mut world = two_and(seed);
        world.down.insert(0);
        world.meet(&[1, 0, 0]);
        world.pass(STEP * 5);
        let (said, call) = (say(&mut world, 1), create(&mut world, 1, "plans"));
        world.pass(STEP * LONG);
        let (lobby, directory) = (world.lobby(), directory(&world));
        assert!(number(&world, 1, said).is_some_and(|it| it.era() > Era::HOME), "{seed}");
        assert!(made(&world, 1, call).is_some(), "{seed}");
        for room in [lobby, directory] {
            assert_eq!(sequencer(&world, 1, room), id(&world, 1), "{seed}");
        }
        assert_eq!(sequencer(&world, RELAY, directory), id(&world, 1), "{seed}: it keeps that");
        assert_eq!(wrote(&world, RELAY, [ERA_CLAIMED, ORDERED]), 0, "{seed}");
    }
}

#[test]
fn a_relay_alone_gives_no_numbers_though_something_waits() {
    for seed in SEEDS {
        let mut world = two_and(seed);
        // It has heard of a room that has no number yet, and of its maker nothing more.
        world.meet(&[0, 1, 1]);
        create(&mut world, 1, "plans");
        world.carry();
        world.down.extend([0, 1]);
        world.meet(&[0, 1, 2]);
        world.pass(STEP * LONG);
        let directory = directory(&world);
        assert_eq!(sequencer(&world, RELAY, directory), id(&world, 0), "{seed}");
        assert_eq!(wrote(&world, RELAY, [ERA_CLAIMED, ORDERED]), 0, "{seed}");
    }
}

#[test]
fn two_nodes_that_are_cut_from_each_other_go_on_each_alone_and_the_relay_between_them_says_nothing()
{
    for seed in SEEDS {
        let mut world = two_and(seed);
        world.part(0, 1);
        world.pass(STEP * LONG);
        let calls = [0, 1].map(|n| (n, say(&mut world, n)));
        world.pass(STEP * 10);
        for (n, call) in calls {
            assert!(number(&world, n, call).is_some(), "{seed}: node {n} is not kept waiting");
        }
        assert_eq!(sequencer(&world, 0, world.lobby()), id(&world, 0), "{seed}");
        assert_eq!(sequencer(&world, 1, world.lobby()), id(&world, 1), "{seed}");
        assert_eq!(wrote(&world, RELAY, [ERA_CLAIMED, ORDERED]), 0, "{seed}");
        world.cut.clear();
        world.link();
        world.pass(STEP * LONG);
        let lobby = world.lobby();
        let digests = [0, 1].map(|n| world.nodes[n].digest_of(lobby));
        assert_eq!(digests[0], digests[1], "{seed}: they have come together");
        assert_eq!(world.nodes[0].engine.known.rooms[&world.lobby()].order.holes, 0, "{seed}");
    }
}

#[test]
fn a_relay_holds_no_copy_and_is_not_counted_among_those_that_could() {
    let mut world = two_and(3);
    let within = Duration::from_secs(2);
    let wants = |world: &mut World, copies| {
        let say = Say {
            durable: Some(Durable { copies, within }),
            ..words(world.lobby(), "hello".to_owned())
        };
        let caller = world.callers[0].clone();
        world.begin(0, Command::Say { caller, say })
    };
    let call = wants(&mut world, 3);
    world.carry();
    let refused = world.reply(0, call).and_then(Result::err);
    assert_eq!(refused, Some(Refused::TooManyCopies { max: 2 }));
    let copies = |world: &World, call| match world.reply(0, call)? {
        Ok(Outcome::Said(SaidOk { copies, .. })) => copies,
        other => panic!("{other:?}"),
    };
    let call = wants(&mut world, 2);
    world.pass(STEP * 2);
    assert_eq!(copies(&world, call), Some(2), "the other node holds it");
    world.down.insert(1);
    world.meet(&[0, 1, 0]);
    let call = wants(&mut world, 2);
    world.pass(STEP * 30);
    assert_eq!(copies(&world, call), Some(1), "the relay is there, and holds nothing");
    // Nor if it says so.
    let call = wants(&mut world, 2);
    let (room, from) = (world.lobby(), id(&world, RELAY));
    let asked = world.nodes[0].rows.iter().rev().find_map(|row| match row {
        Change::Number { room: of, number, at, .. } if *of == room => Some((*number, *at)),
        _ => None,
    });
    let (number, at) = asked.expect("it has a number");
    let place = world.nodes[0].engine.known.rooms[&room].replica.name_of(at);
    let copied = crate::wire::copies::Copied { place, mark: [0; 16], number: Some(number) };
    let message = Message::Copies { room, copies: vec![copied] };
    world.nodes[0].give(Input::Message { from, message });
    world.pass(STEP * 30);
    assert_eq!(copies(&world, call), Some(1), "its word does not count");
}

#[test]
fn a_relay_that_dies_leaves_no_hole_and_opens_no_era() {
    for seed in SEEDS {
        let mut world = two_and(seed);
        let before = say(&mut world, 1);
        world.pass(STEP * 5);
        world.down.insert(RELAY);
        world.meet(&[0, 0, 1]);
        let during = say(&mut world, 0);
        world.pass(STEP * LONG);
        let after = say(&mut world, 1);
        let call = create(&mut world, 1, "plans");
        world.pass(STEP * 5);
        let numbers =
            [number(&world, 1, before), number(&world, 0, during), number(&world, 1, after)];
        let [Some(before), Some(during), Some(after)] = numbers else { panic!("{numbers:?}") };
        assert_eq!(during.0, before.0 + 1, "{seed}");
        assert_eq!(after.0, during.0 + 1, "{seed}");
        assert!(made(&world, 1, call).is_some(), "{seed}");
        for n in [0, 1] {
            for room in [world.lobby(), directory(&world)] {
                let order = &world.nodes[n].engine.known.rooms[&room].order;
                assert_eq!((order.numbering.current(), order.holes), (Era::HOME, 0), "{seed}");
            }
        }
    }
}

#[test]
fn a_relay_keeps_the_directory_and_nothing_else() {
    let mut world = two_and(3);
    say(&mut world, 0);
    let call = create(&mut world, 1, "plans");
    world.pass(STEP * 10);
    let room = made(&world, 1, call).expect("its name is free").room;
    assert!(world.nodes[0].engine.known.rooms.contains_key(&room));
    let directory = directory(&world);
    let has = |world: &World| -> Vec<RoomId> {
        world.nodes[RELAY].engine.known.rooms.keys().copied().collect()
    };
    assert_eq!(has(&world), [directory]);
    assert_eq!(world.nodes[RELAY].digest_of(directory), world.nodes[0].digest_of(directory));
    assert_eq!(world.nodes[RELAY].records().len(), 0);
    assert!(world.nodes[RELAY].engine.known.rosters.record("agent0").is_none(), "nor agents");
    // What it misses while it is away it gets, and when all are even nobody compares without end.
    world.meet(&[0, 0, 1]);
    create(&mut world, 0, "more");
    world.pass(STEP * 20);
    assert_ne!(world.nodes[RELAY].digest_of(directory), world.nodes[0].digest_of(directory));
    world.held.retain(|(_, to, _)| *to != RELAY);
    world.meet(&[0, 0, 0]);
    world.pass(STEP * 30);
    assert_eq!(world.nodes[RELAY].digest_of(directory), world.nodes[0].digest_of(directory));
    assert_eq!(has(&world), [directory]);
    world.told_to.clear();
    world.pass(STEP * 50);
    let of_relay = world.told_to.iter().filter(|(to, _)| *to == RELAY).count();
    assert!(of_relay <= 2 * 5, "{of_relay} messages in 5 s: round trips of barriers, nothing else");
    let rows = &world.nodes[RELAY].rows;
    let elsewhere = rows.iter().filter(|row| {
        matches!(row, Change::Entry { room, .. } if *room != directory)
            || matches!(row, Change::Record { .. })
    });
    assert_eq!(elsewhere.count(), 0, "on its disk there is nothing else, either");
}

#[test]
fn a_relay_takes_no_records() {
    let mut world = two_and(3);
    let key = PRINTS[2];
    let minted = world.nodes[0].new_key(key, Tier::Low, false);
    world.ask(0, Command::MintKey(minted)).expect("it is new");
    let agent = crate::name::agent::drawn([1; 6], key);
    let ann = world.nodes[0].attach(&agent, false, key).expect("it is its own");
    world.ask(0, records::set(&ann, records::names("Ann"))).expect("it is its own");
    world.pass(STEP * 30);
    assert!(!world.nodes[1].records().is_empty(), "other nodes have them");
    assert!(world.nodes[RELAY].records().is_empty());
    let (from, records) = (id(&world, 0), world.nodes[0].records());
    world.nodes[RELAY].give(Input::Message { from, message: Message::Records(records) });
    assert!(world.nodes[RELAY].records().is_empty(), "it is given some all the same");
}

#[test]
fn a_node_that_has_none_but_a_relay_is_alone() {
    let mut world = World::of(vec![Node::new(1), relay(3)], 1);
    world.link();
    world.pass(STEP * 10);
    // Nobody can have ballots.
    let vote = NewVote {
        room: world.lobby(),
        title: "what".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        duration_secs: Some(1),
    };
    let caller = world.callers[0].clone();
    world.ask(0, Command::CreateVote { caller, vote }).expect("a member");
    world.pass(STEP * 11);
    let is_closed = |it: &RoomEvent| matches!(it, RoomEvent::VoteEnded(_));
    assert!(world.told[0].iter().any(is_closed), "nobody is waited for");
    assert!(
        super::super::listing::status(&world.nodes[0].engine.known, Default::default())
            .rooms
            .iter()
            .all(|room| room.unsent == 0),
        "nobody is missed"
    );
    // Its process ends, and the relay is away.
    world.down.insert(1);
    world.meet(&[0, 1]);
    world.restart_reading(0);
    assert!(world.nodes[0].engine.known.live.may_issue(), "nobody has gone on in its place");
}

#[test]
fn a_relay_is_one_at_all_nodes_and_after_a_start() {
    let mut world = two_and(3);
    let relay_is = id(&world, RELAY);
    for n in [0, 1, RELAY] {
        let Ok(Outcome::Members(members)) = world.ask(n, Command::Members) else { panic!() };
        let relays: Vec<NodeId> = members.iter().filter(|it| it.relay).map(|it| it.node).collect();
        assert_eq!(relays, [relay_is], "node {n}");
    }
    let stored = super::disk::stored(&world.nodes[0].rows);
    assert_eq!(stored.is_relay(relay_is), Some(true));
    assert_eq!(stored.is_relay(id(&world, 1)), Some(false));
    assert_eq!(stored.is_relay(identity(77).node_id()), None);
    world.restart_reading(0);
    assert!(world.nodes[0].engine.known.cx.relays.contains(&relay_is), "the directory says it");
    // A later word of its own changes nothing: some would have counted on the first.
    let later = Body::NodeAdmitted(crate::wire::entry::NodeAdmitted {
        lane: 4_000,
        name: "changed".to_owned(),
        relay: None,
    });
    let directory = directory(&world);
    let known = &mut world.nodes[RELAY].engine.known;
    known.rooms.get_mut(&directory).and_then(|room| room.append(&mut known.cx, &later));
    world.nodes[RELAY].turn();
    world.carry();
    let known = &world.nodes[0].engine.known;
    assert_eq!(known.directory.nodes.names[&relay_is], "changed", "it has come");
    assert!(known.directory.nodes.is_relay(relay_is));
}

#[test]
fn a_relay_has_no_agents_and_says_what_it_knows() {
    let mut node = relay(3);
    assert!(matches!(node.attach("me", false, KEY), Err(Refused::Impossible(_))));
    for command in [Command::Status, Command::Members, Command::ListKeys, Command::Attendance] {
        assert_eq!(command.traits().on_relay, OnRelay::Done);
        assert!(node.ask(command).is_ok());
    }
    let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!() };
    assert!(status.relay && status.rooms.is_empty());
    let key = node.new_key(KEY, Tier::Low, false);
    assert!(matches!(node.ask(Command::MintKey(key)), Err(Refused::Impossible(_))));
    assert!(node.engine.known.rooms.len() == 1 && node.records().is_empty());
}

#[test]
fn rooms_are_handed_to_nodes_that_keep_them_alone() {
    for seed in SEEDS {
        let mut world = two_and(seed);
        world.begin(0, Command::Stop);
        world.pass(STEP * 20);
        assert!(world.stopped.contains(&0), "{seed}");
        for room in [world.lobby(), directory(&world)] {
            assert_eq!(sequencer(&world, 1, room), id(&world, 1), "{seed}");
        }
        // One that offers its rooms to a relay gets none accepted.
        let (room, from) = (directory(&world), id(&world, 1));
        let log = LogId { author: from, incarnation: 0 };
        let era = world.nodes[RELAY].engine.known.rooms[&room].order.numbering.current();
        world.nodes[RELAY].effects.clear();
        let message = Message::Offer(vec![Post { room, era, log }]);
        world.nodes[RELAY].give(Input::Message { from, message });
        let sent = world.nodes[RELAY].sent();
        let accepted = sent.iter().find_map(|(_, it)| match it {
            Message::Accept(posts) => Some(posts.len()),
            _ => None,
        });
        assert_eq!(accepted, Some(0), "{seed}");
    }
}

#[test]
fn a_node_that_started_after_a_crash_learns_nothing_from_a_relay() {
    let mut world = two_and(3);
    world.down.insert(1);
    world.meet(&[0, 1, 0]);
    let call = say(&mut world, 0);
    assert!(number(&world, 0, call).is_some(), "it goes on alone");
    // Its process ends without a word. The other one may have gone on in its place since.
    world.restart_reading(0);
    world.meet(&[0, 1, 0]);
    world.nodes[0].give(Input::PeerUp(identity(3).node_id()));
    world.pass(STEP * 3);
    let known = &world.nodes[0].engine.known;
    assert!(known.live.last(identity(3).node_id()).is_some(), "it hears the relay");
    assert!(!known.live.may_issue(), "which knows nothing of rooms");
    world.down.remove(&1);
    world.meet(&[0, 0, 0]);
    world.pass(STEP * 3);
    assert!(world.nodes[0].engine.known.live.may_issue(), "the other node does");
    assert!(TAKEOVER_AFTER > STEP * 3);
}
