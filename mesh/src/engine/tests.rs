//! The engine by itself, against inputs that no honest node sends.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for; a new variant is none of its business"
)]

mod accounts;
mod acts;
mod agents;
mod alike;
mod approvals;
mod asking;
mod ballots;
mod barrier;
mod bounds;
mod carried_files;
mod carrying;
mod closing;
mod deliveries;
mod disk;
mod elections;
mod files;
mod forks;
mod given;
mod gossip;
mod guests;
mod handover;
mod hearsay;
mod idle;
mod import;
mod inboxes;
mod keys;
mod liars;
mod mail;
mod members;
mod membership;
mod once;
mod owned;
mod pairs;
mod parted;
mod peers;
mod pending;
mod policies;
mod private;
mod receipts;
mod recorded;
mod records;
mod relays;
mod replaced;
mod retention;
mod roaming;
mod room_records;
mod rooms;
mod schedules;
mod secret;
mod sending;
mod shared;
mod spoken;
mod starting;
mod stopped;
mod streams;
mod successors;
mod sync;
mod tasks;
mod tasks_given;
mod turn;
mod unread;
mod views;
mod votes;
mod vouchers;
mod world;

use std::time::Duration;

use super::Engine;
use crate::{
    api::{
        agenda::NewKey,
        batch::{Change, Summary},
        boundary::{Effect, Input},
        command::{
            Attach, CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, Say, Speech,
        },
        config::Config,
        event::RoomEvent,
    },
    limits::{
        CLOCK_START_MAX, CLOCK_STEP_MAX, CROWD_TOLD_EVERY, ROSTER_LEASE, TICK, TURNS_TOLD_UP_TO,
    },
    name::{
        digest::Digest,
        id::{KeyPrint, LogId, NodeId, RoomId},
        identity::{Identity, MeshSecret},
        number::Number,
        time::Now,
    },
    wire::{
        acts::Tier,
        entry::{Body, Facts, RoomCreated, Said},
        message::{Beacon, Message, Signed},
        roster::{AgentRecord, Presence, RosterChange, RosterNews, Seat, What},
        run::{Carried, Run, RunEntry, Verified},
        signatures::{
            SignedLog,
            testing::{PRINTS, claimed, minted, secret, shown},
        },
    },
};

const KEY: KeyPrint = PRINTS[1];
/// The digest of a peer that has nothing.
const NONE: Digest = Digest([0; 16]);
/// The digest of a peer that has something else.
const OTHER: Digest = Digest([7; 16]);
/// Ids that are the key's own at every node, so that nobody has to claim them.
const AGENTS: [&str; 5] = ["agent0", "agent1", "agent2", "agent3", "me"];

/// One engine, its clock, and what it said in its last turns.
struct Node {
    engine: Engine,
    secret: MeshSecret,
    now: Now,
    calls: u64,
    effects: Vec<Effect>,
    /// What it made durable.
    rows: Vec<Change>,
}

/// Another digest than this one.
fn unlike(mut digest: Digest) -> Digest {
    digest.0[15] ^= 1;
    digest
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

impl Node {
    fn new(seed: u8) -> Node {
        Self::with(seed, |_| {})
    }

    /// With another configuration than the usual.
    fn with(seed: u8, configure: impl FnOnce(&mut Config)) -> Node {
        let now = Now {
            mono: Duration::from_secs(1),
            wall_ms: 1_800_000_000_000,
            wall_us: 1_800_000_000_000_000,
        };
        Node::open_with((seed, configure), Summary::default(), now)
    }

    fn open(seed: u8, stored: Summary, now: Now) -> Node {
        Node::open_with((seed, |_: &mut _| {}), stored, now)
    }

    fn open_with(
        (seed, configure): (u8, impl FnOnce(&mut Config)),
        stored: Summary,
        now: Now,
    ) -> Node {
        let secret = MeshSecret::new([7; 32], identity(1).node_id());
        let mut config =
            Config { seed: seed.into(), ..Config::new(secret.mesh_id(), secret.founder()) };
        configure(&mut config);
        let mut engine = Engine::open(identity(seed), config, stored, now);
        AGENTS.iter().for_each(|agent| engine.known.directory.assume_owner(agent, KEY));
        let (effects, rows) = (Vec::new(), Vec::new());
        let mut node = Node { engine, secret, now, calls: 0, effects, rows };
        node.turn();
        node
    }

    fn turn(&mut self) {
        let turn = self.engine.take_turn();
        self.rows.extend(turn.batch);
        self.effects.extend(turn.effects);
    }

    fn give(&mut self, mut input: Input) {
        if let Input::Command { command: Command::Attach(attach), .. } = &mut input {
            // As bridges do.
            attach.claim =
                claimed(self.secret.mesh_id(), &attach.agent, attach.key).by.map(Box::new);
            attach.shown = shown(&self.signed_log(), attach.key).map(Box::new);
            let key = secret(attach.key);
            attach.mailbox = key.and_then(|key| key.mailbox().ok().cloned());
        }
        self.now.mono += Duration::from_millis(1);
        self.now.wall_ms += 1;
        self.now.wall_us += 1_000;
        self.engine.handle(self.now, input);
        self.turn();
    }

    fn ask(&mut self, command: Command) -> Result<Outcome, Refused> {
        let call = self.begin(command);
        self.reply(call).expect("this node sequences, so it answers at once")
    }

    /// Asks for what may take a while.
    fn begin(&mut self, command: Command) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.give(Input::Command { call, command });
        call
    }

    fn reply(&self, call: CallId) -> Option<Result<Outcome, Refused>> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Reply { call: of, result } if *of == call => Some(result.clone()),
            _ => None,
        })
    }

    fn attach(&mut self, agent: &str, stable: bool, key: KeyPrint) -> Result<Caller, Refused> {
        let attach = Attach { stable, ..registers(agent, (key, stable)) };
        match self.ask(Command::Attach(attach))? {
            Outcome::Attached(it) => {
                Ok(Caller { agent: agent.into(), key, registration: it.registration })
            }
            other => panic!("{other:?}"),
        }
    }

    /// An agent that is in the lobby.
    fn joins(&mut self, agent: &str) -> Caller {
        let caller = self.attach(agent, false, KEY).expect("free");
        let join = Command::Join { caller: caller.clone(), room: self.lobby() };
        self.ask(join).expect("public");
        caller
    }

    /// Its log of the directory.
    fn signed_log(&self) -> SignedLog {
        SignedLog { mesh: self.secret.mesh_id(), node: self.engine.known.cx.me }
    }

    /// One of [`PRINTS`], to be minted here.
    fn new_key(&self, key: KeyPrint, tier: Tier, local: bool) -> NewKey {
        NewKey { minted: Box::new(minted(&self.signed_log(), key, tier)), local }
    }

    fn lobby(&self) -> RoomId {
        RoomId::lobby(self.secret.mesh_id())
    }

    fn say(&mut self, caller: &Caller, room: RoomId) -> Result<Outcome, Refused> {
        let say = Say {
            room,
            speech: Speech::Chat,
            content: "hello".to_owned(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        self.ask(Command::Say { caller: caller.clone(), say })
    }

    /// Over the rooms that everybody has.
    fn digest(&mut self) -> Digest {
        self.engine.digests.all(&mut self.engine.known)
    }

    /// Over the logs of one room.
    fn digest_of(&mut self, room: RoomId) -> Digest {
        let room = self.engine.known.rooms.get_mut(&room).expect("it is known");
        room.replica.logs.digest()
    }

    fn runs_sent(&mut self) -> Vec<Run> {
        let broadcast = std::mem::take(&mut self.effects).into_iter().filter_map(|it| match it {
            Effect::Broadcast { message: Message::Runs(runs), .. } => Some(runs),
            _ => None,
        });
        broadcast.flatten().collect()
    }

    fn hear(&mut self, run: &Run) {
        let run = run.clone().verify(self.secret.mesh_id()).expect("it is sealed");
        let message = Message::Runs(vec![run]);
        self.give(Input::Message { from: identity(9).node_id(), message });
    }

    fn news(&mut self, from: NodeId, changes: Vec<RosterChange>) {
        let what = What::Whole { version: 1, changes };
        let it = RosterNews { node: from, boot: 1, what };
        let signed = Signed { value: it, signature: [0; 64] };
        self.give(Input::Message { from, message: Message::Roster(Box::new(signed)) });
    }
}

/// A sign of life of a node that has nothing.
fn beacon(node: NodeId, boot: u64, tick: u64, roster: u64) -> Beacon {
    let (digest, records) = (Digest::default(), [0; 16]);
    Beacon { node, boot, tick, roster, digest, records, wall_ms: 0 }
}

/// With a key that is the node's own.
fn registers(agent: &str, (key, reconnect): (KeyPrint, bool)) -> Attach {
    Attach {
        agent: agent.into(),
        stable: false,
        reconnect,
        key,
        own: true,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: agent.to_owned(),
        capabilities: Vec::new(),
    }
}

fn said(content: &str) -> Said {
    Said {
        agent: "x".into(),
        name: "x".to_owned(),
        content: content.to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        turn: None,
        id: None,
        key: None,
        conversation: None,
    }
}

/// A message of a foreign author, with a clock of its choice.
fn said_at(node: &Node, seed: u8, clock: u64) -> Verified {
    said_in(node, (node.lobby(), 0), (seed, clock, "x"))
}

/// What is written of a room that everybody may enter, made with [`KEY`].
fn public_room(room: RoomId, name: &str) -> RoomCreated {
    RoomCreated {
        room,
        name: name.to_owned(),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KEY,
        created_by: "x".into(),
        imported: None,
    }
}

/// A message in any room, in any log of its author.
fn said_in(
    node: &Node,
    (room, incarnation): (RoomId, u64),
    (seed, clock, content): (u8, u64, &str),
) -> Verified {
    let author = identity(seed);
    let body = Body::Chat(said(content));
    let facts = Facts { clock, wall_ms: 0, kind: body.kind(), visible: true };
    let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
    let log = LogId { author: author.node_id(), incarnation };
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(node.secret.mesh_id(), &author)
}

/// All of a log, as one run.
fn log_of(node: &Node, room: RoomId, author: u8, bodies: &[Body]) -> Run {
    let author = identity(author);
    let entries = (1..).zip(bodies).map(|(clock, body)| {
        let facts = Facts { clock, wall_ms: 0, kind: body.kind(), visible: body.visible() };
        RunEntry { facts, body: Carried::Here(body.encode().into()) }
    });
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let (backlink, seal, entries) = ([0; 32], [0; 64], entries.collect());
    let run = Run { room, log, first: 1, backlink, entries, seal };
    run.seal(node.secret.mesh_id(), &author).run().clone()
}

/// In memory only.
fn room_for_now(node: &mut Node, caller: &Caller) -> RoomId {
    let room = NewRoom {
        name: "for now".to_owned(),
        description: None,
        parent: None,
        ephemeral: true,
        public: true,
        encrypted: false,
    };
    let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
    let Ok(Outcome::Room(ephemeral)) = made else { panic!("{made:?}") };
    ephemeral.room
}

#[test]
fn an_author_has_one_log_in_a_room_that_is_kept_and_others_only_in_memory() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let ephemeral = room_for_now(&mut node, &caller);
    let author = identity(5).node_id();
    let heads = |node: &Node, room| {
        [0, 7].map(|incarnation| {
            let log = LogId { author, incarnation };
            node.engine.known.rooms[&room].replica.logs.head_of(log)
        })
    };
    for (room, heads_after) in [(node.lobby(), [1, 0]), (ephemeral, [1, 1])] {
        for incarnation in [7, 0] {
            let run = said_in(&node, (room, incarnation), (5, 1, "x")).run().clone();
            node.hear(&run);
        }
        assert_eq!(heads(&node, room), heads_after);
    }
    // Nor does a log that is none prove that its author forked one: others would say the same of it.
    let place = (node.lobby(), 7);
    let proof = said_in(&node, place, (5, 1, "y")).certificate();
    let run = Box::new(said_in(&node, place, (5, 1, "x")));
    let stray = node.engine.known.cx.faults.stray;
    node.give(Input::Message { from: author, message: Message::Fork(proof, run) });
    assert!(node.engine.known.cx.forked.is_empty());
    assert_eq!(node.engine.known.cx.faults.stray, stray + 1);
    let mut logs = node.engine.known.rooms[&node.lobby()].replica.logs.iter();
    assert!(logs.all(|(_, log)| log.id.incarnation == 0), "none was made for it");
}

/// Who does not have the room cannot check the proof, and who restarts has forgotten it: if it counted
/// elsewhere, nodes would differ for ever in whom they hear.
#[test]
fn a_fork_in_memory_counts_in_that_room_alone_and_is_forgotten_with_it() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let room = room_for_now(&mut node, &caller);
    let lobby = node.lobby();
    for room in [room, lobby] {
        node.ask(Command::Join { caller: caller.clone(), room }).expect("public");
    }
    for (author, content) in [(5, "one"), (5, "another")] {
        let run = said_in(&node, (room, 7), (author, 1, content)).run().clone();
        node.hear(&run);
    }
    let forked = |node: &mut Node| {
        let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("it says") };
        status.forked
    };
    let author = identity(5).node_id();
    assert_eq!(forked(&mut node), [author], "the operator is told");
    // A peer that still follows it is given the proof, where it has the room.
    let log = LogId { author, incarnation: 7 };
    let proven = |node: &mut Node, room| {
        node.effects.clear();
        let heads = vec![crate::wire::message::Head { log, seq: 1 }];
        let message = Message::Have { room, heads, answer: false };
        node.give(Input::Message { from: identity(9).node_id(), message });
        node.effects.iter().any(|it| matches!(it, Effect::Send { message: Message::Fork(..), .. }))
    };
    assert!(proven(&mut node, room));
    assert!(!proven(&mut node, lobby));
    node.give(Input::PeerUp(identity(8).node_id()));
    let said = |it: &Effect| matches!(it, Effect::Send { message: Message::Fork(..), .. });
    assert!(!node.effects.iter().any(said), "who comes may not have the room");
    // Nothing more of it there, and everything in other rooms.
    let more = said_in(&node, (room, 8), (5, 5, "more")).run().clone();
    node.hear(&more);
    let log = LogId { author, incarnation: 8 };
    assert_eq!(node.engine.known.rooms[&room].replica.logs.head_of(log), 0);
    let elsewhere = said_in(&node, (lobby, 0), (5, 1, "hello")).run().clone();
    node.hear(&elsewhere);
    let log = LogId { author, incarnation: 0 };
    assert_eq!(node.engine.known.rooms[&lobby].replica.logs.head_of(log), 1);
    // The room ends.
    node.ask(Command::Leave { caller, room }).expect("a member");
    assert!(!node.engine.known.rooms.contains_key(&room));
    assert!(node.engine.forks.proofs.is_empty());
    assert!(forked(&mut node).is_empty());
}

/// The list of members goes to each of them: in a large room not after every message, but after the last.
#[test]
fn a_crowd_is_told_whose_turn_it_is_now_and_then_and_in_the_end() {
    let told = |node: &mut Node| {
        let effects = std::mem::take(&mut node.effects).into_iter();
        effects
            .filter(|it| matches!(it, Effect::Notify { event: RoomEvent::Turn { .. }, .. }))
            .count()
    };
    for (members, after_each, after_all) in [(TURNS_TOLD_UP_TO, 5, 0), (TURNS_TOLD_UP_TO + 1, 1, 1)]
    {
        let mut node = Node::new(1);
        let lobby = node.lobby();
        let callers: Vec<Caller> = (0..members)
            .map(|n| {
                let caller = node.attach(&format!("agent{n}"), false, KEY).expect("free");
                let join = Command::Join { caller: caller.clone(), room: lobby };
                node.ask(join).expect("public");
                caller
            })
            .collect();
        told(&mut node);
        for caller in &callers[..5] {
            node.say(caller, lobby).expect("a member");
        }
        assert_eq!(told(&mut node), after_each, "{members} members");
        for _ in 0..2 {
            node.now.mono += CROWD_TOLD_EVERY;
            node.give(Input::Timeout);
        }
        assert_eq!(told(&mut node), after_all, "{members} members");
    }
}

#[test]
fn one_clock_from_the_far_future_silences_nobody() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let lobby = node.lobby();
    node.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("public");
    node.say(&caller, lobby).expect("a member");
    let far = said_at(&node, 5, CLOCK_START_MAX).run().clone();
    node.hear(&far);
    let before = node.runs_sent();
    node.say(&caller, lobby).expect("a member");
    let runs = node.runs_sent();
    let clocks = |runs: &[Run]| -> Vec<u64> {
        runs.iter()
            .filter(|it| it.room == lobby)
            .flat_map(|it| &it.entries)
            .map(|it| it.facts.clock)
            .collect()
    };
    let (old, new) = (clocks(&before), clocks(&runs));
    let steps = old.iter().chain(&new).zip(old.iter().chain(&new).skip(1));
    assert!(!new.is_empty());
    for (a, b) in steps {
        assert!(a < b && b - a <= CLOCK_STEP_MAX, "{old:?} then {new:?}: receivers refuse it");
    }
}

fn record(room: RoomId) -> AgentRecord {
    AgentRecord {
        name: "ghost".into(),
        key: KEY,
        capabilities: Vec::new(),
        registered: 1,
        connected_ms: 0,
        last_active_ms: 0,
        presence: Presence::default(),
        rooms: [(room, Seat { joined: 1, seen: Number::ZERO, guest: false })].into(),
        reconnected: false,
        gone: None,
        lingers: false,
        hosted: false,
    }
}

#[test]
fn who_is_listed_was_announced_before() {
    let mut node = Node::new(1);
    let (lobby, peer) = (node.lobby(), identity(5).node_id());
    node.give(Input::PeerUp(peer));
    let it = beacon(peer, 1, 1, 1);
    let beacon = Message::Beacon(Signed { value: it, signature: [0; 64] });
    node.give(Input::Message { from: peer, message: beacon });
    node.effects.clear();
    let what = What::Whole {
        version: 1,
        changes: vec![RosterChange::Agent("ghost".into(), record(lobby))],
    };
    let it = RosterNews { node: peer, boot: 1, what };
    let signed = Signed { value: it, signature: [0; 64] };
    // One turn has both.
    let message = Message::Roster(Box::new(signed));
    node.engine.handle(node.now, Input::Message { from: peer, message });
    node.ask(Command::ListAgents { by: KEY.into(), room: Some(lobby) }).expect("public");
    let order: Vec<&Effect> = node
        .effects
        .iter()
        .filter(|it| match it {
            Effect::Notify { event, .. } => matches!(event, RoomEvent::Joined { .. }),
            Effect::Reply { .. } => true,
            _ => false,
        })
        .collect();
    assert!(matches!(order.as_slice(), [Effect::Notify { .. }, Effect::Reply { .. }]), "{order:?}");
}

#[test]
fn nobody_seats_himself_in_a_private_room_or_redefines_it() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let room = NewRoom {
        name: "mine".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let Ok(Outcome::Room(view)) = node.ask(Command::CreateRoom { caller: caller.clone(), room })
    else {
        panic!("it is made")
    };
    node.ask(Command::Join { caller, room: view.room }).expect("its owner");
    node.news(identity(5).node_id(), vec![RosterChange::Agent("ghost".into(), record(view.room))]);
    let Ok(Outcome::Agents(members)) =
        node.ask(Command::ListAgents { by: KEY.into(), room: Some(view.room) })
    else {
        panic!("its owner may")
    };
    assert_eq!(members.len(), 1, "{members:?}");
    let sent = format!(
        "{:?}",
        node.effects
            .iter()
            .filter(|it| !matches!(it, Effect::Notify { .. } | Effect::Reply { .. }))
            .collect::<Vec<_>>()
    );
    assert!(!sent.contains(&view.room.to_uuid()), "peers hear of a private room: {sent}");
}

#[test]
fn a_private_room_does_not_vanish_behind_a_public_one_of_its_name() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let create = |public| NewRoom {
        name: "plan".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public,
        encrypted: false,
    };
    let made = node.ask(Command::CreateRoom { caller: caller.clone(), room: create(false) });
    let Ok(Outcome::Room(private)) = made else { panic!("{made:?}") };
    // Another node, which cannot know of it, makes a public room of that name.
    let mut other = Node::new(2);
    let caller2 = other.attach("you", false, KEY).expect("free");
    other.calls += 1;
    let call = CallId(other.calls);
    other.give(Input::Command {
        call,
        command: Command::CreateRoom { caller: caller2, room: create(true) },
    });
    for run in other.runs_sent() {
        node.hear(&run);
    }
    let Ok(Outcome::Rooms(rooms)) = node.ask(Command::ListRooms { by: KEY.into(), parent: None })
    else {
        panic!("anybody may")
    };
    let names: Vec<&str> = rooms.iter().map(|it| &*it.name).collect();
    assert!(rooms.iter().any(|it| it.room == private.room), "{names:?}");
    assert!(names.contains(&"plan"), "{names:?}");
    assert_eq!(names.len(), 3, "lobby, the public one, the private one: {names:?}");
}

#[test]
fn a_node_that_was_not_heard_for_long_has_its_agents_back_when_it_is() {
    let mut world = world::World::new(2);
    let room = world.lobby();
    let members = |world: &mut world::World, n| match world
        .ask(n, Command::ListAgents { by: KEY.into(), room: Some(room) })
    {
        Ok(Outcome::Agents(agents)) => agents.len(),
        other => panic!("{other:?}"),
    };
    world.groups[1] = 1;
    world.pass(crate::limits::RECONNECT_WITHIN + Duration::from_secs(10));
    assert_eq!((members(&mut world, 0), members(&mut world, 1)), (1, 1));
    world.groups[1] = 0;
    world.pass(Duration::from_secs(2));
    assert_eq!((members(&mut world, 0), members(&mut world, 1)), (2, 2));
}

/// A disk that stalls, a machine that sleeps: what others said meanwhile is not read yet.
#[test]
fn a_node_that_was_paused_does_not_take_the_others_for_dead() {
    let mut node = Node::new(1);
    let (lobby, peer) = (node.lobby(), identity(5).node_id());
    node.give(Input::PeerUp(peer));
    let it = beacon(peer, 1, 1, 1);
    let beacon = Message::Beacon(Signed { value: it, signature: [0; 64] });
    node.give(Input::Message { from: peer, message: beacon });
    node.news(peer, vec![RosterChange::Agent("ghost".into(), record(lobby))]);
    let members = |node: &mut Node| {
        node.give(Input::Timeout);
        match node.ask(Command::ListAgents { by: KEY.into(), room: Some(lobby) }) {
            Ok(Outcome::Agents(agents)) => agents.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(members(&mut node), 1);
    node.now.mono += ROSTER_LEASE * 3;
    assert_eq!(members(&mut node), 1, "its own pause is nobody's silence");
    let until = node.now.mono + ROSTER_LEASE;
    while node.now.mono < until {
        node.now.mono += TICK;
        node.give(Input::Timeout);
    }
    assert_eq!(members(&mut node), 0, "and then it was silent");
    node.now.mono += ROSTER_LEASE * 3;
    assert_eq!(members(&mut node), 0, "a pause brings nobody back");
}

#[test]
fn a_registration_of_another_key_does_not_take_a_stable_id_away() {
    let mut node = Node::new(1);
    let caller = node.attach("bob", true, KEY).expect("free");
    let thief = AgentRecord {
        name: "bob".into(),
        key: PRINTS[2],
        capabilities: Vec::new(),
        registered: node.now.wall_us << 8 | 0xff,
        connected_ms: 0,
        last_active_ms: 0,
        presence: Presence::default(),
        rooms: Default::default(),
        reconnected: false,
        gone: None,
        lingers: false,
        hosted: false,
    };
    // Of a node that is not heard nothing counts.
    node.hears_beacon((5, 5), (1, 1, NONE));
    node.news(identity(5).node_id(), vec![RosterChange::Agent("bob".into(), thief)]);
    let lobby = node.lobby();
    node.ask(Command::Join { caller, room: lobby }).expect("bob is still bob");
    let listed = node.ask(Command::ListAgents { by: KEY.into(), room: Some(lobby) });
    let Ok(Outcome::Agents(agents)) = listed else { panic!("anybody may") };
    let nodes: Vec<NodeId> = agents.iter().map(|it| it.node).collect();
    assert_eq!(nodes, [node.engine.known.cx.me]);
    assert_eq!(
        node.attach("bob", true, PRINTS[2]).expect_err("another key"),
        Refused::AgentTaken("bob".into())
    );
}

#[test]
fn an_agent_that_had_just_come_when_its_node_crashed_comes_back_to_its_seats() {
    let back = Attach {
        agent: "me".into(),
        stable: false,
        reconnect: true,
        key: KEY,
        own: true,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: "me".to_owned(),
        capabilities: Vec::new(),
    };
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let seats_after_a_crash = |node: &Node| {
        let now = Now { mono: Duration::from_secs(1), ..node.now };
        let mut again = Node::open(1, disk::stored(&node.rows), now);
        let attached = again.ask(Command::Attach(back.clone()));
        let Ok(Outcome::Attached(it)) = attached else { panic!("{attached:?}") };
        it.restored
    };
    assert_eq!(seats_after_a_crash(&node), Some(Vec::new()));
    let room = node.lobby();
    node.ask(Command::Join { caller, room }).expect("public");
    let seats = Some(vec![(room, Number::ZERO)]);
    assert_eq!(seats_after_a_crash(&node), seats);
    // And so it does if the next crash comes at once.
    let again = Node::open(1, disk::stored(&node.rows), node.now);
    node.rows.extend(again.rows);
    assert_eq!(seats_after_a_crash(&node), seats);
}
