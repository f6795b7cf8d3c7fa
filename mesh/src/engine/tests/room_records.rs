//! Details of rooms: records that are where the room is, with all nodes, with those that have the key, or with one.

use super::{
    records::{MINTED, signer},
    world::{STEP, World},
    *,
};
use crate::{
    api::command::RoomSet,
    limits::{FOLLOWERS_COMPARE_EVERY, RECORDS_COMPARE_EVERY, ROOM_SETTINGS_MAX},
    name::{group::Group, id::RoomKey},
    records::{
        comparison::Part,
        details::{self, Details, DetailsUpdate, RoomState},
        digest::{Bucket, BucketDigest},
    },
    wire::{
        comparing::{Comparing, Step},
        record::{Draft, Record, RecordKey, Root, Space, Stamp},
    },
};

/// Part of all that is private.
const SECRET: &str = "for few eyes";

pub(super) fn title(text: &str) -> DetailsUpdate {
    DetailsUpdate { title: Some(Some(text.to_owned())), ..DetailsUpdate::default() }
}

pub(super) fn set(caller: &Caller, room: RoomId, update: DetailsUpdate) -> Command {
    let (caller, signer) = (caller.clone(), signer(caller.key));
    Command::SetRoom(Box::new(RoomSet { caller, room, signer, update }))
}

pub(super) fn new_room(name: &str, public: bool, ephemeral: bool) -> NewRoom {
    let name = name.to_owned();
    NewRoom { name, description: None, parent: None, ephemeral, public, encrypted: false }
}

impl Node {
    fn details(&self, room: RoomId) -> Details {
        let known = &self.engine.known;
        let Some(state) = known.rooms.get(&room) else { return Details::default() };
        let at = state.replica.record.place_of_records(room).expect("it is permanent");
        let keys = known.directory.proofs().keys_of_room(room);
        details::read(&at, &self.records(), &keys, known.cx.mesh)
    }

    pub(super) fn title(&self, room: RoomId) -> Option<String> {
        self.details(room).title
    }
}

impl World {
    /// A minted key is presented at some of the nodes, with an agent of its own at each.
    pub(super) fn presents(&mut self, nodes: &[usize]) -> Vec<Caller> {
        self.link();
        self.nodes[0].mints(MINTED);
        self.carry();
        nodes.iter().map(|n| self.present(*n)).collect()
    }

    fn present(&mut self, n: usize) -> Caller {
        let agent = format!("holder{n}");
        let opener = Some(RoomKey::of("a key of these tests"));
        let attach = Attach { own: false, opener, ..registers(&agent, (MINTED, false)) };
        let call = self.begin(n, Command::Attach(attach));
        self.pass(STEP * 20);
        let reply = self.reply(n, call);
        let Some(Ok(Outcome::Attached(it))) = reply else { panic!("{reply:?}") };
        Caller { agent: agent.as_str().into(), key: MINTED, registration: it.registration }
    }

    pub(super) fn makes(&mut self, n: usize, caller: &Caller, room: NewRoom) -> RoomId {
        let call = self.begin(n, Command::CreateRoom { caller: caller.clone(), room });
        self.pass(STEP * 40);
        let reply = self.reply(n, call);
        let Some(Ok(Outcome::Room(view))) = reply else { panic!("{reply:?}") };
        view.room
    }

    fn titles(&self, room: RoomId) -> Vec<Option<String>> {
        self.nodes.iter().map(|node| node.title(room)).collect()
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn details_of_a_public_room_are_durable_and_show_at_all_nodes() {
    let mut world = World::new(2);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    let update = DetailsUpdate {
        title: Some(text("Harbour")),
        description: Some(text("where ships come in")),
        state: Some(Some(RoomState::Active)),
        settings: vec![("theme".to_owned(), text("\"dark\""))],
        ..DetailsUpdate::default()
    };
    world.ask(0, set(&callers[0], room, update)).expect("its key");
    for node in &world.nodes {
        let details = node.details(room);
        assert_eq!(details.title, text("Harbour"));
        assert_eq!(details.description, text("where ships come in"));
        assert_eq!(details.state, Some(RoomState::Active));
        assert_eq!(details.settings, [("theme".to_owned(), "\"dark\"".to_owned())]);
    }
    // Another agent of the key, at another node.
    let deletes = DetailsUpdate {
        title: Some(None),
        settings: vec![("theme".to_owned(), None)],
        ..DetailsUpdate::default()
    };
    world.ask(1, set(&callers[1], room, deletes)).expect("its key");
    for node in &world.nodes {
        let details = node.details(room);
        assert_eq!((details.title, details.settings), (None, Vec::new()));
        assert_eq!(details.state, Some(RoomState::Active), "as it was");
    }
}

#[test]
fn details_of_a_private_room_are_with_those_who_have_the_key_and_with_nobody_else() {
    let mut world = World::new(3);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    world.ask(0, set(&callers[0], room, title(SECRET))).expect("its key");
    assert_eq!(world.titles(room), [text(SECRET), text(SECRET), None]);
    assert_eq!(world.nodes[2].records(), []);
    let has_secret =
        |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!world.told_to.iter().any(|(_, bytes)| has_secret(bytes)), "sealed on its way");
    let rows = world.nodes[0].records();
    assert!(
        !rows.is_empty()
            && rows.iter().all(|row| row.space == Space::Followers(Group::Key(MINTED)))
    );
    assert!(!rows.iter().any(|row| has_secret(row.content().expect("it is set"))), "and kept so");
    let of_records = |message: &Message| matches!(message, Message::Records(_));
    assert!(!world.said.iter().any(of_records), "no gossip");
    for (to, bytes) in &world.told_to {
        let message = Message::decode(bytes).expect("it was sent");
        assert!(*to != 2 || !of_records(&message), "{message:?}");
    }
    // The node without the key gets it: everything is there, before its agent is answered.
    let caller = world.present(2);
    assert_eq!(world.titles(room), [text(SECRET), text(SECRET), text(SECRET)]);
    world.ask(2, set(&caller, room, title("next"))).expect("its key");
    assert_eq!(world.titles(room), [text("next"), text("next"), text("next")]);
}

#[test]
fn followers_that_were_apart_keep_the_same_once_they_meet() {
    let mut world = World::new(3);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    world.groups = vec![0, 1, 0];
    world.ask(0, set(&callers[0], room, title("one"))).expect("its key");
    world.nodes[1].now.wall_us += 1_000_000;
    let state = DetailsUpdate { state: Some(Some(RoomState::Paused)), ..title("other") };
    world.ask(1, set(&callers[1], room, state)).expect("its key");
    world.held.clear();
    assert_eq!(world.titles(room), [text("one"), text("other"), None]);
    world.groups = vec![0, 0, 0];
    world.pass((FOLLOWERS_COMPARE_EVERY + RECORDS_COMPARE_EVERY) * 3);
    assert_eq!(world.titles(room), [text("other"), text("other"), None]);
    assert_eq!(world.nodes[0].details(room).state, Some(RoomState::Paused));
    assert_eq!(world.nodes[2].records(), []);
    let told = |n: usize| world.nodes[n].engine.known.cx.followers.records(Group::Key(MINTED));
    assert_eq!(told(0), told(1));
    assert_ne!(told(0), [0; 16]);
    // A start goes on where the store ends.
    let before = told(0);
    world.restart_reading(0);
    world.present(0);
    assert_eq!(world.nodes[0].engine.known.cx.followers.records(Group::Key(MINTED)), before);
    assert_eq!(world.titles(room), [text("other"), text("other"), None]);
}

#[test]
fn a_peer_without_the_key_learns_nothing_by_asking() {
    let mut world = World::new(3);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    world.ask(0, set(&callers[0], room, title(SECRET))).expect("its key");
    let held = world.nodes[0].records().remove(0);
    let later = Stamp(world.nodes[0].now_stamp().0 + 1);
    let collection = details::COLLECTION.number;
    let key = RecordKey { id: held.id, owner: Some(MINTED) };
    let bucket = Bucket::of(key);
    let part = Part { bucket, after: None, upto: None, heads: Vec::new() };
    let steps = [
        Step::Roots(vec![Root { collection, digest: [9; 32] }]),
        Step::Buckets { collection, buckets: vec![BucketDigest { bucket, digest: [9; 32] }] },
        Step::Heads { collection, parts: vec![part] },
        Step::Want { collection, keys: vec![key] },
    ];
    let ids: Vec<NodeId> = world.nodes.iter().map(|node| node.engine.known.cx.me).collect();
    let mut answers = |from: NodeId, space: Space, step: &Step| {
        let node = &mut world.nodes[0];
        node.effects.clear();
        let message = Message::Comparing(Comparing { space, step: step.clone() });
        node.give(Input::Message { from, message });
        let is_told = |effect: &Effect| match effect {
            Effect::Send { to, message } => *to == from && matches!(message, Message::Comparing(_)),
            Effect::SendRecords { to, .. } => *to == from,
            _ => false,
        };
        node.effects.iter().any(is_told)
    };
    for step in &steps {
        assert!(
            answers(ids[1], Space::Followers(Group::Key(MINTED)), step),
            "a follower: {step:?}"
        );
        assert!(!answers(ids[2], Space::Followers(Group::Key(MINTED)), step), "{step:?}");
        assert!(!answers(ids[1], Space::Node, step), "{step:?}");
        assert!(
            !answers(ids[1], Space::Followers(Group::Key(KEY)), step),
            "a key that is not followed: {step:?}"
        );
    }
    // Nor does it put anything there, though the key has signed it.
    let lie = Draft { space: held.space, collection, id: held.id, body: None };
    let signer = signer(MINTED).expect("it is one of these");
    let lie = lie.sign(&signer, world.nodes[0].secret.mesh_id(), later).expect("it is long enough");
    let hears = |world: &mut World, from: usize| {
        let message = Message::Records(vec![lie.clone()]);
        let message = message.verify(world.nodes[0].secret.mesh_id()).expect("it is signed");
        let from = ids[from];
        world.nodes[0].give(Input::Message { from, message });
    };
    hears(&mut world, 2);
    assert_eq!(world.titles(room)[0], text(SECRET));
    hears(&mut world, 1);
    assert_eq!(world.titles(room)[0], None, "a follower passes it on");
}

#[test]
fn nobody_keeps_records_of_another_key_among_the_followers_of_one() {
    let mut world = World::new(2);
    let callers = world.presents(&[0, 1]);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    let other = PRINTS[5];
    world.nodes[0].mints(other);
    world.carry();
    let follower = world.nodes[1].engine.known.cx.me;
    let mesh = world.nodes[0].secret.mesh_id();
    let state = &world.nodes[0].engine.known.rooms[&room].replica.record;
    let at = state.place_of_records(room).expect("it is permanent");
    let mut hears = |key: KeyPrint| {
        let draft = title(SECRET).drafts(&at).remove(0);
        let stamp = world.nodes[0].now_stamp();
        let record = at.cover.write(draft, key, stamp);
        let record = record.sign(&signer(key).expect("it is known"), mesh, stamp);
        let message = Message::Records(vec![record.expect("it is long enough")]).verify(mesh);
        let message = message.expect("it is signed");
        world.nodes[0].give(Input::Message { from: follower, message });
        world.nodes[0].records().len()
    };
    assert_eq!((hears(other), hears(MINTED)), (0, 1));
}

#[test]
fn details_are_refused_to_whoever_has_not_made_the_room() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let (holder, own) = (&callers[0], world.callers[0].clone());
    let room = world.makes(0, holder, new_room("hall", true, false));
    let own_room = world.makes(0, &own, new_room("yard", true, false));
    let brief = world.makes(0, holder, new_room("brief", true, true));
    let lobby = world.lobby();
    let node = &mut world.nodes[0];
    assert_eq!(node.ask(set(&own, room, title("x"))).err(), Some(Refused::NotYours));
    assert_eq!(node.ask(set(holder, own_room, title("x"))).err(), Some(Refused::NotYours));
    assert_eq!(node.ask(set(holder, RoomId([9; 16]), title("x"))).err(), Some(Refused::NoRoom));
    let refused = |node: &mut Node, command| match node.ask(command) {
        Err(Refused::Impossible(text) | Refused::Full(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(node, set(holder, lobby, title("x"))).contains("lobby"));
    assert!(refused(node, set(holder, brief, title("x"))).contains("ephemeral"));
    let mut unsigned = set(holder, room, title("x"));
    if let Command::SetRoom(set) = &mut unsigned {
        set.signer = None;
    }
    assert!(refused(node, unsigned).contains("checks no keys"));
    let long = title(&"x".repeat(257));
    assert!(matches!(node.ask(set(holder, room, long)), Err(Refused::Field(_))));
    assert_eq!(node.records(), []);
    // A room has so many settings; one that is replaced or deleted takes no place.
    let settings = |names: std::ops::Range<usize>, value: Option<&str>| DetailsUpdate {
        settings: names.map(|n| (n.to_string(), value.map(String::from))).collect(),
        ..DetailsUpdate::default()
    };
    let max = ROOM_SETTINGS_MAX;
    node.ask(set(holder, room, settings(0..max - 1, Some("1")))).expect("not full");
    node.ask(set(holder, room, settings(max - 1..max, Some("1")))).expect("full now");
    node.ask(set(holder, room, settings(0..max, Some("2")))).expect("the same ones");
    assert!(
        refused(node, set(holder, room, settings(max..max + 1, Some("1")))).contains("settings")
    );
    node.ask(set(holder, room, settings(0..1, None))).expect("one less");
    node.ask(set(holder, room, settings(max..max + 1, Some("1")))).expect("not full");
    let other = world.makes(0, holder, new_room("garden", true, false));
    let node = &mut world.nodes[0];
    node.ask(set(holder, other, settings(0..max, Some("1")))).expect("another room");
}

#[test]
fn records_of_a_room_of_this_node_alone_are_sent_to_nobody() {
    let mut world = World::new(2);
    world.link();
    let own = world.callers[0].clone();
    let room = world.makes(0, &own, new_room("yard", false, false));
    world.nodes[0].effects.clear();
    world.ask(0, set(&own, room, title(SECRET))).expect("its key");
    world.pass(FOLLOWERS_COMPARE_EVERY * 4);
    assert_eq!(world.nodes[0].title(room), text(SECRET));
    assert!(world.nodes[0].records().iter().all(|record| record.space == Space::Node));
    assert_eq!(world.nodes[1].records(), []);
    let of_node = |record: &Record| record.space == Space::Node;
    for message in &world.said {
        assert!(!matches!(message, Message::Records(records) if records.iter().any(of_node)));
    }
    world.restart(0);
    assert_eq!(world.nodes[0].title(room), text(SECRET));
}

#[test]
fn what_another_key_says_of_a_room_does_not_show_and_hides_nothing() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    let node = &mut world.nodes[0];
    node.ask(set(&callers[0], room, title("Harbour"))).expect("its key");
    let at = node.engine.known.rooms[&room].replica.record.place_of_records(room).expect("there");
    let mesh = node.secret.mesh_id();
    for (nth, update) in (1..).zip([title("Lie"), DetailsUpdate { title: Some(None), ..title("") }])
    {
        let draft: Draft = update.drafts(&at).remove(0);
        let stamp = Stamp(node.now_stamp().0 + nth);
        let signer = signer(KEY).expect("it is one of these");
        node.hear_record(draft.sign(&signer, mesh, stamp).expect("it is long enough"));
        assert_eq!(node.records().len(), 2, "it is kept");
        assert_eq!(node.title(room), text("Harbour"));
    }
    node.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    assert_eq!(node.details(room), Details::default(), "a revoked key says nothing");
}
