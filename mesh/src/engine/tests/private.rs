//! Private rooms of a key of the whole mesh, against nodes to which it was not presented.

mod comparing;

use super::{retention::bare, *};
use crate::{
    api::agenda::NewKey,
    limits::{GONE_AFTER, HOLE_AFTER},
    name::group::Group,
    name::{
        id::{EntryRef, RoomKey},
        key::KeySecret,
    },
    presence::ephemeral::ephemeral_id,
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        entry::{Decision, RoomCreated},
        message::{Followed, Head, Signed, Span},
        roster::{EphemeralRoom, RoomFacts},
        seal::{Seal, SealContext, Token},
    },
};

pub(super) const API_KEY: &str = "a key that is valid in the whole mesh";
/// A node without the key.
const STRANGER: u8 = 9;

pub(super) fn key() -> KeyPrint {
    KeyPrint::of(API_KEY)
}

/// A node to which the key was presented, and an agent of it.
pub(super) fn follower() -> (Node, Caller) {
    let (mut node, attach) = presented(false, false);
    let attached = node.ask(Command::Attach(attach));
    let Ok(Outcome::Attached(it)) = attached else { panic!("{attached:?}") };
    let registration = it.registration;
    (node, Caller { agent: "me".into(), key: key(), registration })
}

impl Node {
    pub(super) fn create_private(&mut self, caller: &Caller, ephemeral: bool) -> RoomId {
        let room = NewRoom {
            name: "plan".to_owned(),
            description: None,
            parent: None,
            ephemeral,
            public: false,
            encrypted: false,
        };
        let made = self.ask(Command::CreateRoom { caller: caller.clone(), room });
        let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
        let joined = self.ask(Command::Join { caller: caller.clone(), room: view.room });
        joined.expect("its owner");
        view.room
    }

    pub(super) fn number(&mut self, caller: &Caller, room: RoomId) -> Number {
        let said = self.say(caller, room);
        let Ok(Outcome::Said(said)) = said else { panic!("{said:?}") };
        said.number
    }

    fn members_of(&mut self, room: RoomId) -> usize {
        let members = self.ask(Command::ListAgents { by: key().into(), room: Some(room) });
        let Ok(Outcome::Agents(members)) = members else { panic!("{members:?}") };
        members.len()
    }

    pub(super) fn told(&mut self, from: u8, message: Message<Verified>) {
        self.give(Input::Message { from: identity(from).node_id(), message });
    }

    /// It is heard, and says this of its agents and rooms.
    pub(super) fn heard_saying(&mut self, from: u8, changes: Vec<RosterChange>) {
        let node = identity(from).node_id();
        let it = beacon(node, 1, 1, 1);
        self.told(from, Message::Beacon(Signed { value: it, signature: [0; 64] }));
        self.news(node, changes);
    }

    /// What this node sent to one peer since it was asked last.
    fn sent_to(&mut self, peer: u8) -> Vec<Message> {
        let peer = identity(peer).node_id();
        let sent = std::mem::take(&mut self.effects).into_iter().filter_map(|it| match it {
            Effect::Send { to, message } if to == peer => Some(message),
            Effect::SendSpans { to, .. } | Effect::SendBodies { to, .. } if to == peer => {
                panic!("what is in the room is sent")
            }
            _ => None,
        });
        sent.collect()
    }
}

/// A log of `author`'s that begins with chat messages of these bodies, as they are.
pub(super) fn written(node: &Node, author: u8, (room, bodies): (RoomId, &[Vec<u8>])) -> Run {
    let author = identity(author);
    let entry = |(body, clock): (&Vec<u8>, u64)| RunEntry {
        facts: Facts { clock, wall_ms: 0, kind: 1, visible: true },
        body: Carried::Here(body.clone().into()),
    };
    let entries = bodies.iter().zip(1_000..).map(entry).collect();
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(node.secret.mesh_id(), &author).run().clone()
}

/// A follower hears, from the only other one, of what has no body any more. A stranger is connected, too.
fn hears_what_is_gone() -> (Node, impl Fn(&Node) -> bool) {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let author = identity(8).node_id();
    let mesh = node.secret.mesh_id();
    let token = Token::of(mesh, &RoomKey::of(API_KEY), author);
    for peer in [8, STRANGER] {
        node.give(Input::PeerUp(identity(peer).node_id()));
    }
    node.told(
        8,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    let unsealed = said_at(&node, 8, 1).run().entries[0].clone();
    let Carried::Here(unsealed) = unsealed.body else { panic!("it is short") };
    let log = LogId { author, incarnation: 0 };
    let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room);
    let body = seal.seal(&SealContext { room, log, seq: 1, kind: 1 }, &unsealed);
    let mut run = written(&node, 8, (room, &[body]));
    // Younger than what this node would drop itself, and old enough for another to have dropped it.
    run.entries[0].facts.wall_ms = node.now.wall_ms - 24 * 3_600_000;
    let run = run.seal(mesh, &identity(8)).run().clone();
    let run = bare(&run).verify(mesh).expect("it is sealed");
    node.rows.clear();
    node.told(8, Message::Spans { room, runs: vec![run], bodies: Vec::new(), last: true });
    let kept = move |it: &Change| matches!(it, Change::Entry { room: it, .. } if *it == room);
    (node, move |node| node.rows.iter().any(kept))
}

/// Seed 731 of the simulation: nodes without the room were waited for, who have nothing to say of it.
#[test]
fn what_is_gone_of_a_private_room_is_asked_of_those_who_have_it() {
    let (mut node, kept) = hears_what_is_gone();
    node.wait(HOLE_AFTER / 2);
    assert!(!kept(&node), "others may come back");
    node.wait(HOLE_AFTER / 2 + Duration::from_secs(1));
    let asked = |it: &Message| matches!(it, Message::WantBodies { .. });
    assert!(!node.sent_to(STRANGER).iter().any(asked), "it does not have the room");
    assert!(kept(&node), "nobody else can have it");
}

#[test]
fn what_is_gone_of_a_private_room_is_waited_for_while_a_member_may_have_the_room() {
    let (mut node, kept) = hears_what_is_gone();
    for (member, lane) in [(8, 1), (STRANGER, 2)] {
        node.engine.known.cx.lanes.insert(identity(member).node_id(), [lane].into());
    }
    let author = identity(8).node_id();
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), author);
    node.news(author, vec![RosterChange::Follows(token)]);
    node.wait(2 * GONE_AFTER);
    assert!(!kept(&node), "it is not known which rooms the other one has");
    node.news(identity(STRANGER).node_id(), Vec::new());
    node.wait(GONE_AFTER);
    assert!(kept(&node));
}

/// A roster of one agent, of this key, with a seat there.
fn seated(agent: &str, key: KeyPrint, room: RoomId) -> RosterChange {
    let record = AgentRecord {
        name: agent.into(),
        key,
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
    };
    RosterChange::Agent(agent.into(), record)
}

#[test]
fn who_has_no_key_uses_up_no_numbers_and_says_nothing() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let unsealed = said_at(&node, STRANGER, 1).run().entries[0].clone();
    let Carried::Here(unsealed) = unsealed.body else { panic!("it is short") };
    let other = Seal::of_room(Group::Key(key()), &RoomKey::of("another key"), room);
    let log = LogId { author: identity(STRANGER).node_id(), incarnation: 0 };
    let forged = other.seal(&SealContext { room, log, seq: 2, kind: 1 }, &unsealed);
    let run = written(&node, STRANGER, (room, &[unsealed.to_vec(), forged]));
    node.hear(&run);
    assert_eq!(node.number(&me, room), Number(1));
    // With the key the same words count.
    let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room);
    let log = LogId { author: identity(8).node_id(), incarnation: 0 };
    let sealed = seal.seal(&SealContext { room, log, seq: 1, kind: 1 }, &unsealed);
    let run = written(&node, 8, (room, &[sealed]));
    node.hear(&run);
    assert_eq!(node.number(&me, room), Number(3));
}

#[test]
fn who_has_no_key_gets_nothing_by_asking() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.say(&me, room).expect("a member");
    node.give(Input::PeerUp(identity(STRANGER).node_id()));
    node.sent_to(STRANGER);
    let log = LogId { author: identity(1).node_id(), incarnation: 0 };
    let directory = crate::wire::seal::directory(node.secret.mesh_id(), &RoomKey::of(API_KEY));
    for room in [room, directory] {
        let spans = vec![Span { log, after: 0, upto: 9 }];
        node.told(STRANGER, Message::Want { room, spans });
        node.told(STRANGER, Message::WantBodies { room, at: vec![Head { log, seq: 1 }] });
        node.told(STRANGER, Message::Have { room, heads: Vec::new(), answer: true });
    }
    let stolen = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), identity(1).node_id());
    node.told(
        STRANGER,
        Message::Follows(vec![Followed {
            token: stolen,
            digest: Digest::default(),
            records: [0; 16],
        }]),
    );
    for message in node.sent_to(STRANGER) {
        assert!(matches!(message, Message::WantRoster { .. }), "{message:?}");
    }
    // Who shows that it follows does.
    let peer = identity(8).node_id();
    node.give(Input::PeerUp(peer));
    node.sent_to(8);
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), peer);
    node.told(
        8,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    node.told(8, Message::Have { room, heads: Vec::new(), answer: true });
    let sent = node.sent_to(8);
    let named = sent.iter().any(
        |it| matches!(it, Message::Have { room: it, heads, .. } if *it == room && !heads.is_empty()),
    );
    assert!(named, "{sent:?}");
}

#[test]
fn what_is_said_in_a_private_room_goes_out_sealed_whether_it_lasts_or_not() {
    for ephemeral in [false, true] {
        let (mut node, me) = follower();
        let room = node.create_private(&me, ephemeral);
        node.runs_sent();
        node.say(&me, room).expect("a member");
        let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room);
        let mut said = Vec::new();
        for run in node.runs_sent().iter().filter(|it| it.room == room) {
            for (seq, entry) in (run.first..).zip(&run.entries) {
                let Carried::Here(body) = &entry.body else { panic!("it is short") };
                let spot = SealContext { room, log: run.log, seq, kind: entry.facts.kind };
                said.extend(seal.open(&spot, body).expect("it is sealed"));
            }
        }
        assert!(said.windows(5).any(|it| it == b"hello"), "{ephemeral}");
    }
}

#[test]
fn who_has_no_key_sits_in_no_private_room() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.heard_saying(STRANGER, vec![seated("a", key(), room)]);
    assert_eq!(node.members_of(room), 1, "a fingerprint is not a key");
    let peer = identity(8).node_id();
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), peer);
    let other = KeyPrint([2; 16]);
    node.heard_saying(8, vec![RosterChange::Follows(token), seated("b", other, room)]);
    assert_eq!(node.members_of(room), 1, "it follows, but the agent is another key's");
    let peer = identity(7).node_id();
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), peer);
    // What it follows may become known after who sits there.
    node.heard_saying(7, vec![seated("c", key(), room)]);
    assert_eq!(node.members_of(room), 1);
    let what = What::Changes { version: 2, changes: vec![RosterChange::Follows(token)] };
    let it = RosterNews { node: peer, boot: 1, what };
    let signed = Signed { value: it, signature: [0; 64] };
    node.told(7, Message::Roster(Box::new(signed)));
    assert_eq!(node.members_of(room), 2);
}

#[test]
fn a_sealed_announcement_cannot_be_passed_off_as_an_open_one() {
    let (mut node, me) = follower();
    let mesh = node.secret.mesh_id();
    let home = LogId { author: identity(8).node_id(), incarnation: 1 << 20 | 1 };
    let (room, open) = (ephemeral_id(mesh, home, true), ephemeral_id(mesh, home, false));
    let facts = |room| RoomCreated { owner: KeyPrint([9; 16]), ..public_room(room, "theirs") };
    let announce =
        |room, facts| RosterChange::Room(room, EphemeralRoom { facts, home, created_ms: 1 });
    let rooms = |node: &mut Node| {
        let rooms = node.ask(Command::ListRooms { by: key().into(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("anybody may") };
        rooms.into_iter().map(|it| it.name.to_string()).collect::<Vec<_>>()
    };
    let passed_off = announce(room, RoomFacts::Open(facts(room)));
    node.heard_saying(STRANGER, vec![passed_off]);
    assert_eq!(rooms(&mut node), ["lobby"]);
    // Nor is what does not open, or is not of the key.
    let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room);
    let spot = SealContext { room, log: home, seq: 0, kind: crate::wire::kinds::ROOM_CREATED };
    let body = Body::RoomCreated(facts(room)).encode();
    for (i, sealed) in [(1, body.clone()), (2, seal.seal(&spot, &body))] {
        let facts = RoomFacts::Sealed { owner: key(), sealed: sealed.into() };
        node.heard_saying(20 + i, vec![announce(room, facts)]);
        assert_eq!(rooms(&mut node), ["lobby"]);
    }
    let mine = RoomCreated { public: false, owner: key(), ..facts(room) };
    let sealed = seal.seal(&spot, &Body::RoomCreated(mine).encode());
    let sealed = RoomFacts::Sealed { owner: key(), sealed: sealed.into() };
    node.heard_saying(30, vec![announce(room, sealed)]);
    assert_eq!(rooms(&mut node), ["lobby", "theirs"]);
    node.heard_saying(31, vec![announce(open, RoomFacts::Open(facts(open)))]);
    assert_eq!(rooms(&mut node).len(), 3, "an open one is another room");
    node.ask(Command::Join { caller: me, room }).expect("it is of the key");
}

#[test]
fn a_fork_in_a_private_room_is_not_held_against_its_author_where_nobody_can_know_of_it() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let one = written(&node, 8, (room, &[vec![1; 40]]));
    let another = written(&node, 8, (room, &[vec![2; 40], vec![3; 40]]));
    node.hear(&one);
    node.hear(&another);
    let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("anybody may") };
    assert_eq!(status.forked, [identity(8).node_id()], "the operator is told");
    let lobby = node.lobby();
    let caller = node.attach("own", false, KEY).expect("free");
    node.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("public");
    let run = said_at(&node, 8, 5).run().clone();
    node.hear(&run);
    assert_eq!(node.number(&caller, lobby), Number(2), "all nodes number what it says here");
    let second = node.create_second(&me);
    let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), second);
    let log = LogId { author: identity(8).node_id(), incarnation: 0 };
    let Carried::Here(body) = &run.entries[0].body else { panic!("it is short") };
    let sealed = seal.seal(&SealContext { room: second, log, seq: 1, kind: 1 }, body);
    let run = written(&node, 8, (second, &[sealed]));
    node.hear(&run);
    assert_eq!(node.number(&me, second), Number(1), "not in the key's other rooms");
}

#[test]
fn a_fork_of_ones_own_log_in_a_private_room_refuses_what_waits_in_rooms_of_its_key_alone() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.number(&me, room);
    // Claims whose answers have not come.
    let (held, waits) = (CallId(1_001), CallId(1_002));
    let at = crate::name::id::LocalRef { log: 0, seq: 1_000 };
    let lobby = node.lobby();
    node.engine.claims.waiting.extend([((room, at), held), ((lobby, at), waits)]);
    node.hear(&written(&node, 1, (room, &[vec![1; 40], vec![2; 40], vec![3; 40]])));
    assert_eq!(
        node.reply(held).and_then(Result::err),
        Some(Refused::Apart(crate::api::command::Apart::Forked))
    );
    assert!(node.reply(waits).is_none());
    assert_eq!(node.engine.claims.waiting.get(&(lobby, at)), Some(&waits));
}

/// What a node may have elected that forked in a private room is judged alike in all rooms of the key,
/// whether they were there before the fork was found or not.
#[test]
fn a_fork_in_a_private_room_clouds_elections_in_the_other_rooms_of_its_key() {
    let (mut node, me) = follower();
    let first = node.create_private(&me, false);
    node.hear(&written(&node, 8, (first, &[vec![1; 40]])));
    node.hear(&written(&node, 8, (first, &[vec![2; 40], vec![3; 40]])));
    let second = node.create_second(&me);
    for room in [first, second] {
        let election =
            EntryRef { log: LogId { author: identity(8).node_id(), incarnation: 0 }, seq: 9 };
        let said = said("so be it");
        let body = Body::Decision(Decision { said, election });
        let author = identity(7);
        let log = LogId { author: author.node_id(), incarnation: 0 };
        let spot = SealContext { room, log, seq: 1, kind: body.kind() };
        let sealed = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room)
            .seal(&spot, &body.encode());
        let facts = Facts { clock: 1_000, wall_ms: 0, kind: body.kind(), visible: true };
        let entries = vec![RunEntry { facts, body: Carried::Here(sealed.into()) }];
        let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
        node.hear(run.seal(node.secret.mesh_id(), &author).run());
        assert_eq!(node.number(&me, room), Number(2), "it took the first number");
    }
}

impl Node {
    fn create_second(&mut self, caller: &Caller) -> RoomId {
        let room = NewRoom {
            name: "another plan".to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public: false,
            encrypted: false,
        };
        let made = self.ask(Command::CreateRoom { caller: caller.clone(), room });
        let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
        self.ask(Command::Join { caller: caller.clone(), room: view.room }).expect("its owner");
        view.room
    }
}

#[test]
fn a_sealed_directory_lists_the_keys_private_rooms_and_nothing_else() {
    let (mut node, me) = follower();
    node.create_private(&me, false);
    let opener = RoomKey::of(API_KEY);
    let directory = crate::wire::seal::directory(node.secret.mesh_id(), &opener);
    let seal = Seal::of_room(Group::Key(key()), &opener, directory);
    let author = identity(8);
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let room = |seq| crate::directory::room_id(node.secret.mesh_id(), directory, log, seq);
    let created = |seq, public, owner| {
        Body::RoomCreated(RoomCreated {
            room: room(seq),
            name: format!("room {seq}"),
            description: None,
            parent: None,
            public,
            encrypted: false,
            owner,
            created_by: "eve".into(),
            imported: None,
        })
    };
    let lane = crate::wire::entry::NodeAdmitted { lane: 77, name: "eve".to_owned(), relay: None };
    let signed = SignedLog { node: author.node_id(), ..node.signed_log() };
    let minted = minted(&signed, PRINTS[6], Tier::High);
    let bodies = [
        created(1, true, key()),
        created(2, false, PRINTS[6]),
        Body::NodeAdmitted(lane),
        Body::Key(crate::wire::acts::KeyAct::Minted(minted)),
        created(5, false, key()),
    ];
    let entries = bodies.iter().zip(1..).map(|(body, seq)| RunEntry {
        facts: Facts { clock: seq, wall_ms: 0, kind: body.kind(), visible: body.visible() },
        body: Carried::Here(
            seal.seal(
                &SealContext { room: directory, log, seq, kind: body.kind() },
                &body.encode(),
            )
            .into(),
        ),
    });
    let entries = entries.collect();
    let run = Run { room: directory, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    let run = run.seal(node.secret.mesh_id(), &author).run().clone();
    node.hear(&run);
    let rooms = node.ask(Command::ListRooms { by: key().into(), parent: None });
    let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("anybody may") };
    let names: Vec<&str> = rooms.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["lobby", "plan", "room 5"]);
    assert!(
        !node.engine.known.cx.lanes.contains_key(&author.node_id()),
        "a lane is everybody's business"
    );
    let check = node.ask(Command::CheckKey { key: PRINTS[6], own: false });
    assert_eq!(check.err(), Some(Refused::NoKey));
}

/// A node that knows the key and has not been shown it, and who presents it.
pub(super) fn presented(own: bool, local: bool) -> (Node, Attach) {
    let mut node = Node::new(1);
    let minted =
        KeyMinted::sign(&KeySecret::of(API_KEY), &node.signed_log(), KeyTerms::of(Tier::High));
    let mint = NewKey { minted: Box::new(minted.expect("it is long enough")), local };
    node.ask(Command::MintKey(mint)).expect("it is new");
    let attach = Attach {
        agent: "me".into(),
        stable: false,
        reconnect: false,
        key: key(),
        own,
        opener: Some(RoomKey::of(API_KEY)),
        mailbox: None,
        claim: None,
        shown: None,
        name: "me".to_owned(),
        capabilities: Vec::new(),
    };
    (node, attach)
}

#[test]
fn rooms_of_keys_of_one_node_are_not_shown_to_others_that_have_the_key() {
    for (own, local) in [(true, false), (false, true)] {
        let (mut node, attach) = presented(own, local);
        node.ask(Command::Attach(attach)).expect("at once");
        assert_eq!(node.engine.known.cx.followers.token(Group::Key(key())), None);
    }
}

#[test]
fn who_follows_as_many_keys_as_it_may_makes_no_private_rooms_of_others() {
    let (mut node, attach) = presented(false, false);
    for nth in 0..crate::limits::KEYS_FOLLOWED_MAX {
        let text = format!("key {nth}");
        node.engine.known.cx.followers.follow(Group::Key(KeyPrint::of(&text)), &RoomKey::of(&text));
    }
    let Ok(Outcome::Attached(it)) = node.ask(Command::Attach(attach)) else { panic!("it may") };
    let caller = Caller { agent: "me".into(), key: key(), registration: it.registration };
    let (name, description, parent) = ("plan".to_owned(), None, None);
    let (ephemeral, public, encrypted) = (false, false, false);
    let room = NewRoom { name, description, parent, ephemeral, public, encrypted };
    let made = node.ask(Command::CreateRoom { caller, room });
    assert!(
        matches!(made, Err(Refused::Full(_))),
        "others with the key would not get it: {made:?}"
    );
}

/// The run in which another node made a private room of the key.
fn made_elsewhere(node: &Node) -> Run {
    let (mesh, opener, author) = (node.secret.mesh_id(), RoomKey::of(API_KEY), identity(8));
    let directory = crate::wire::seal::directory(mesh, &opener);
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let body = Body::RoomCreated(RoomCreated {
        room: crate::directory::room_id(mesh, directory, log, 1),
        name: "elsewhere".to_owned(),
        description: None,
        parent: None,
        public: false,
        encrypted: false,
        owner: key(),
        created_by: "ann".into(),
        imported: None,
    });
    let spot = SealContext { room: directory, log, seq: 1, kind: body.kind() };
    let sealed = Seal::of_room(Group::Key(key()), &opener, directory).seal(&spot, &body.encode());
    let facts = Facts { clock: 1, wall_ms: 0, kind: body.kind(), visible: body.visible() };
    let entries = vec![RunEntry { facts, body: Carried::Here(sealed.into()) }];
    let run = Run { room: directory, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(mesh, &author).run().clone()
}

#[test]
fn who_presents_a_key_first_waits_until_those_who_are_connected_gave_what_they_have() {
    let (mut node, attach) = presented(false, false);
    for peer in [7, 8] {
        node.give(Input::PeerUp(identity(peer).node_id()));
    }
    let call = node.begin(Command::Attach(attach));
    let run = made_elsewhere(&node);
    let (room, log) = (run.room, run.log);
    let says = |node: &mut Node, peer, heads| {
        node.told(peer, Message::Have { room, heads, answer: false });
        node.give(Input::Timeout);
        node.reply(call).is_some()
    };
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), identity(8).node_id());
    node.told(
        8,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    assert!(!says(&mut node, 7, Vec::new()), "another has not answered");
    assert!(!says(&mut node, 8, vec![Head { log, seq: 1 }]), "it is not here yet");
    let run = run.verify(node.secret.mesh_id()).expect("it is sealed");
    node.told(8, Message::Spans { room, runs: vec![run], bodies: Vec::new(), last: true });
    node.give(Input::Timeout);
    assert!(node.reply(call).is_none(), "nobody has said what there is in the room that it lists");
    let made = crate::directory::room_id(node.secret.mesh_id(), room, log, 1);
    node.told(8, Message::Have { room: made, heads: Vec::new(), answer: false });
    assert!(node.reply(call).is_some_and(|it| it.is_ok()));
    let rooms = node.ask(Command::ListRooms { by: key().into(), parent: None });
    let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("anybody may") };
    assert!(rooms.iter().any(|it| &*it.name == "elsewhere"));
}

#[test]
fn who_presents_a_key_first_does_not_wait_for_those_who_say_nothing_or_go() {
    for goes in [false, true] {
        let (mut node, attach) = presented(false, false);
        let peer = identity(8).node_id();
        node.give(Input::PeerUp(peer));
        let call = node.begin(Command::Attach(attach));
        node.wait(crate::limits::PRESENTED_WITHIN / 2);
        assert!(node.reply(call).is_none());
        if goes {
            node.give(Input::PeerDown(peer));
            node.give(Input::Timeout);
        } else {
            node.wait(crate::limits::PRESENTED_WITHIN);
        }
        assert!(node.reply(call).is_some_and(|it| it.is_ok()), "{goes}");
    }
}

#[test]
fn who_registers_waits_once_however_many_pairs_are_begun_with_the_key() {
    let (mut node, attach) = presented(false, false);
    node.give(Input::PeerUp(identity(8).node_id()));
    let call = node.begin(Command::Attach(attach));
    for other in [2, 3] {
        node.wait(crate::limits::PRESENTED_WITHIN / 3);
        assert!(node.reply(call).is_none(), "nobody has said what there is");
        let group = Group::Pair(crate::name::group::Pair::of(key(), PRINTS[other]));
        let (engine, opener) = (&mut node.engine, RoomKey::of(&other.to_string()));
        engine.private.follow(&mut engine.known, &mut engine.digests, group, &opener);
    }
    node.wait(crate::limits::PRESENTED_WITHIN / 2);
    assert!(node.reply(call).is_some_and(|reply| reply.is_ok()));
}

#[test]
fn clients_do_not_see_the_private_rooms_of_a_key_that_is_revoked() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let lobby = node.lobby();
    let shown = |node: &Node| [room, lobby].map(|it| node.engine.known.view(it).is_some());
    assert_eq!(shown(&node), [true, true]);
    node.effects.clear();
    node.ask(Command::RevokeKey { key: key() }).expect("it was minted");
    assert_eq!(shown(&node), [false, true]);
    let gone = node.effects.iter().filter_map(|it| match it {
        Effect::Notify { room, event: RoomEvent::Destroyed { .. } } => Some(*room),
        _ => None,
    });
    assert!(gone.eq([room]));
}

/// Who has no key cannot check it, and is not to learn of the room.
#[test]
fn proofs_of_forks_in_private_rooms_are_not_shown_to_strangers() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let lobby = node.lobby();
    for room in [room, lobby] {
        node.hear(&written(&node, 8, (room, &[vec![1; 40]])));
        node.hear(&written(&node, 8, (room, &[vec![2; 40], vec![3; 40]])));
    }
    node.give(Input::PeerUp(identity(STRANGER).node_id()));
    node.wait(Duration::from_secs(5));
    node.sent_to(STRANGER);
    let log = LogId { author: identity(8).node_id(), incarnation: 0 };
    let heads = vec![Head { log, seq: 2 }];
    node.told(STRANGER, Message::Have { room: lobby, heads, answer: false });
    let shown = node.sent_to(STRANGER).into_iter().filter_map(|it| match it {
        Message::Fork(it, _) => Some(it.room),
        _ => None,
    });
    assert!(shown.eq([lobby]));
}

/// What stands there is nobody's place that was taken.
#[test]
fn nobody_is_alarmed_when_the_first_thing_is_written_for_a_key() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    node.say(&me, room).expect("a member");
    assert!(!node.effects.iter().any(|it| matches!(it, Effect::Alarm(_))), "{:?}", node.effects);
}

#[test]
fn rooms_of_a_key_that_was_revoked_are_shown_to_nobody() {
    let (mut node, me) = follower();
    let room = node.create_private(&me, false);
    let listed = |node: &mut Node| {
        let listed = node.ask(Command::ListRooms { by: key().into(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = listed else { panic!("{listed:?}") };
        rooms.iter().any(|it| it.room == room)
    };
    assert!(listed(&mut node));
    node.effects.clear();
    node.ask(Command::RevokeKey { key: key() }).expect("it was minted");
    let destroyed = |it: &Effect| matches!(it, Effect::Notify { room: of, event: RoomEvent::Destroyed { .. } } if *of == room);
    assert!(node.effects.iter().any(destroyed));
    assert!(!listed(&mut node));
}

#[test]
fn a_room_of_memory_that_was_told_of_before_the_key_was_presented_is_there_when_it_is() {
    let (mut node, attach) = presented(false, false);
    let home = LogId { author: identity(8).node_id(), incarnation: 1 << 20 | 1 };
    let room = ephemeral_id(node.secret.mesh_id(), home, true);
    let facts = RoomCreated { public: false, owner: key(), ..public_room(room, "theirs") };
    let seal = Seal::of_room(Group::Key(key()), &RoomKey::of(API_KEY), room);
    let spot = SealContext { room, log: home, seq: 0, kind: crate::wire::kinds::ROOM_CREATED };
    let sealed = seal.seal(&spot, &Body::RoomCreated(facts).encode());
    let facts = RoomFacts::Sealed { owner: key(), sealed: sealed.into() };
    let it = EphemeralRoom { facts, home, created_ms: 1 };
    node.heard_saying(8, vec![RosterChange::Room(room, it)]);
    assert!(!node.engine.known.rooms.contains_key(&room));
    node.ask(Command::Attach(attach)).expect("at once");
    assert!(node.engine.known.rooms.contains_key(&room));
}

#[test]
fn who_leaves_is_told_of_a_private_room_that_nobody_else_has_if_there_is_something_in_it() {
    for said in [false, true] {
        let (mut node, me) = follower();
        let room = node.create_private(&me, false);
        if said {
            node.say(&me, room).expect("a member");
        }
        node.give(Input::PeerUp(identity(STRANGER).node_id()));
        node.effects.clear();
        let call = node.begin(Command::LeaveMesh { force: false });
        let refused = node.reply(call).and_then(|it| it.err());
        let expected = "no other member has the private room plan; --force leaves all the same";
        assert_eq!(refused, said.then(|| Refused::Impossible(expected.to_owned())));
    }
}

#[test]
fn a_peer_is_shown_the_forks_that_count_where_it_compares() {
    let (mut node, me) = follower();
    let (first, second) = (node.create_private(&me, false), node.create_second(&me));
    let own = node.attach("own", false, KEY).expect("free");
    let (lobby, memory) = (node.lobby(), room_for_now(&mut node, &own));
    for (room, author) in [(lobby, 5), (memory, 6), (first, 7)] {
        for byte in [1, 2] {
            let run = written(&node, author, (room, &[vec![byte; 40]]));
            node.hear(&run);
        }
    }
    let peer = identity(8).node_id();
    node.give(Input::PeerUp(peer));
    let token = Token::of(node.secret.mesh_id(), &RoomKey::of(API_KEY), peer);
    node.told(
        8,
        Message::Follows(vec![Followed { token, digest: Digest::default(), records: [0; 16] }]),
    );
    let mut shown = |room| {
        node.sent_to(8);
        let log = |seed| LogId { author: identity(seed).node_id(), incarnation: 0 };
        let heads = [5, 6, 7].map(|seed| Head { log: log(seed), seq: 1 }).to_vec();
        node.told(8, Message::Have { room, heads, answer: false });
        let shown = node.sent_to(8).into_iter().filter_map(|it| match it {
            Message::Fork(it, _) => Some(it.room),
            _ => None,
        });
        let mut shown: Vec<RoomId> = shown.collect();
        shown.sort();
        shown
    };
    let sorted = |mut rooms: Vec<RoomId>| {
        rooms.sort();
        rooms
    };
    assert_eq!(shown(lobby), [lobby]);
    assert_eq!(shown(memory), sorted(vec![lobby, memory]), "what counts everywhere counts there");
    for room in [first, second] {
        assert_eq!(shown(room), sorted(vec![lobby, first]), "and in all rooms of the key");
    }
}
