//! Pairs of keys and direct rooms: agents of two keys, at two nodes, and a node that has neither.

use std::sync::Arc;

use super::{
    world::{STEP, World},
    *,
};
use crate::{
    api::{
        command::{Reader, RoomView},
        event::{AgentEvent, RoomEvent},
    },
    limits::{KEY_NEW_FOR, KEY_TEXT_CHARS_MIN},
    name::{
        group::{Group, Pair},
        id::RoomKey,
        key::KeySecret,
    },
    records::pair,
    wire::seal::NOBODY,
    wire::signatures::testing::secret,
};

const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];

/// Ann at the first node, Bob and Eve, of one key, at the second one; the third has neither key.
pub(super) struct Two {
    pub(super) world: World,
    pub(super) ann: Caller,
    pub(super) bob: Caller,
    pub(super) eve: Caller,
}

pub(super) fn signer(key: KeyPrint) -> Option<Arc<KeySecret>> {
    (0..PRINTS.len())
        .map(|n| KeySecret::of(&format!("{n:0>32}")))
        .find(|secret| secret.print() == key)
        .map(Arc::new)
}

fn open(caller: &Caller, with: &str) -> Command {
    Command::OpenDirect {
        caller: caller.clone(),
        signer: signer(caller.key),
        agent: with.into(),
        task: None,
    }
}

fn pair() -> Group {
    Group::Pair(Pair::of(ANNS, BOBS))
}

impl Two {
    pub(super) fn new() -> Two {
        Two::within(World::new(3))
    }

    pub(super) fn within(mut world: World) -> Two {
        world.link();
        let mut come = |n: usize, agent: &str, key| {
            let caller = world.come(n, agent, key);
            world.pass(STEP);
            caller
        };
        let ann = come(0, "ann", ANNS);
        let bob = come(1, "bob", BOBS);
        let eve = come(1, "eve", BOBS);
        world.pass(STEP * 5);
        Two { world, ann, bob, eve }
    }

    fn open(&mut self, n: usize, caller: &Caller, with: &str) -> RoomView {
        self.world.open(n, caller, with).expect("they are known")
    }

    /// Ann and Bob have a room.
    pub(super) fn talking() -> (Two, RoomId) {
        Two::new().talk()
    }

    pub(super) fn talk(self) -> (Two, RoomId) {
        let mut two = self;
        let ann = two.ann.clone();
        let room = two.open(0, &ann, "bob").room;
        two.world.pass(STEP * 5);
        (two, room)
    }

    pub(super) fn says(&mut self, n: usize, caller: &Caller, room: RoomId, text: &str) {
        let said = self.world.says(n, caller, room, text);
        assert!(matches!(said, Ok(Outcome::Said(_))), "{said:?}");
    }
}

impl World {
    pub(super) fn come(&mut self, n: usize, agent: &str, key: KeyPrint) -> Caller {
        let attach = Attach { stable: true, ..registers(agent, (key, false)) };
        let call = self.begin(n, Command::Attach(attach));
        self.carry();
        self.pass(STEP * 20);
        match self.reply(n, call) {
            Some(Ok(Outcome::Attached(it))) => {
                Caller { agent: agent.into(), key, registration: it.registration }
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn open(
        &mut self,
        n: usize,
        caller: &Caller,
        with: &str,
    ) -> Result<RoomView, Refused> {
        let call = self.begin(n, open(caller, with));
        self.carry();
        self.pass(STEP * 15);
        match self.reply(n, call).expect("it is answered")? {
            Outcome::Room(view) => Ok(view),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn says(
        &mut self,
        n: usize,
        caller: &Caller,
        room: RoomId,
        text: &str,
    ) -> Result<Outcome, Refused> {
        let say = Say {
            room,
            speech: Speech::Chat,
            content: text.to_owned(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        let call = self.begin(n, Command::Say { caller: caller.clone(), say });
        self.carry();
        self.pass(STEP * 40);
        self.reply(n, call).expect("it is answered")
    }

    pub(super) fn listed(&mut self, n: usize, by: &Reader) -> Vec<RoomView> {
        let rooms = self.ask(n, Command::ListRooms { by: by.clone(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("{rooms:?}") };
        rooms.into_iter().filter(|view| view.sides.is_some()).collect()
    }

    /// The texts that a node has told members of, in their order.
    pub(super) fn heard(&self, n: usize) -> Vec<String> {
        let said = self.told[n].iter().filter_map(|event| match event {
            RoomEvent::Message(entry) => Some(entry.said.as_ref()?.content.clone()),
            _ => None,
        });
        said.collect()
    }

    fn seated(&self, n: usize) -> Vec<(String, RoomId)> {
        let seated = self.tells[n].iter().filter_map(|event| match event {
            AgentEvent::Seated { agent, room, .. } => Some((agent.to_string(), *room)),
            _ => None,
        });
        seated.collect()
    }

    pub(super) fn has_room(&self, n: usize, room: RoomId) -> bool {
        self.nodes[n].engine.known.rooms.contains_key(&room)
    }
}

#[test]
fn other_nodes_of_the_key_that_began_a_pair_follow_it_too() {
    let mut two = Two::new();
    // Another agent of the key that opens the room, at a node that was shown no other key.
    two.world.come(2, "amy", ANNS);
    let follows = |two: &Two| {
        let nodes = two.world.nodes.iter();
        nodes.map(|node| node.engine.known.cx.followers.token(pair()).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(follows(&two), [false; 3]);
    let ann = two.ann.clone();
    two.open(0, &ann, "bob");
    two.world.pass(STEP * 20);
    assert_eq!(follows(&two), [true; 3]);
}

#[test]
fn two_agents_of_two_keys_have_a_room_that_nobody_else_lists_or_reads() {
    let (mut two, room) = Two::talking();
    let [ann, bob, eve] = [&two.ann, &two.bob, &two.eve].map(Clone::clone);
    for (n, caller) in [(0, &ann), (1, &bob)] {
        let listed = two.world.listed(n, &caller.reader());
        let [view] = &listed[..] else { panic!("{listed:?}") };
        assert_eq!((view.room, &*view.name, view.public), (room, "dm:ann:bob", false));
        assert_eq!((view.owner, view.created_by.as_deref()), (None, Some("ann")));
        let sides = view.sides.as_ref().expect("it is a direct one");
        assert!(sides.peer_of("ann") == &bob.agent && sides.peer_of("bob") == &ann.agent);
    }
    // Neither another agent of one of the two keys, nor who holds one without an agent, nor who is named alike.
    let bob_of_ann = Reader { key: ANNS, agent: Some("bob".into()) };
    for by in [eve.reader(), BOBS.into(), KeyPrint::OPEN.into(), bob_of_ann] {
        assert!(two.world.listed(1, &by).is_empty(), "{by:?}");
        let info = two.world.ask(1, Command::RoomInfo { by: by.clone(), room });
        assert_eq!(info.unwrap_err(), Refused::NotYours, "{by:?}");
    }
    let join = Command::Join { caller: eve.clone(), room };
    assert_eq!(two.world.ask(1, join).unwrap_err(), Refused::NotYours);
    let said = two.world.says(1, &eve, room, "let me in");
    assert_eq!(said.unwrap_err(), Refused::NotYours);
    assert!(!two.world.has_room(2, room), "the third node has no part in it");
}

#[test]
fn who_writes_and_who_is_written_to_has_a_seat_without_joining() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(0, &ann, room, "hello");
    assert_eq!(two.world.seated(0), [("ann".to_owned(), room)]);
    assert_eq!(two.world.seated(1), [("bob".to_owned(), room)]);
    two.says(1, &bob, room, "and hello to you");
    for n in [0, 1] {
        assert_eq!(two.world.heard(n), ["hello", "and hello to you"]);
    }
    assert!(two.world.heard(2).is_empty());
    // Who leaves has no seat until it is written to.
    two.world.ask(1, Command::Leave { caller: bob.clone(), room }).expect("it was there");
    two.world.pass(STEP * 5);
    assert_eq!(two.world.seated(1).len(), 1);
    two.says(0, &ann, room, "come back");
    assert_eq!(two.world.seated(1).len(), 2);
}

#[test]
fn who_is_written_to_before_the_room_is_seen_hears_it_when_it_is() {
    let mut two = Two::new();
    two.world.come(2, "amy", ANNS);
    let ann = two.ann.clone();
    two.open(0, &ann, "eve");
    // The second node follows the pair since just now, and the third one does not say what it has of the room.
    two.world.groups = vec![0, 0, 1];
    let room = two.open(0, &ann, "bob").room;
    two.says(0, &ann, room, "hello");
    let known = &two.world.nodes[1].engine.known;
    assert!(known.is_unread(room) && known.rooms[&room].tip() > Number::ZERO);
    assert_eq!(two.world.seated(1), []);
    two.world.groups = vec![0; 3];
    two.world.pass(STEP * 10);
    assert!(!two.world.nodes[1].engine.known.is_unread(room));
    let missed = two.world.tells[1].iter().filter_map(|event| match event {
        AgentEvent::Seated { agent, room, missed } => Some((&**agent, *room, *missed)),
        _ => None,
    });
    assert_eq!(missed.collect::<Vec<_>>(), [("bob", room, Some(Number::ZERO))]);
}

#[test]
fn two_sides_of_a_split_make_one_room_and_both_have_all_that_was_said() {
    let mut two = Two::new();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.groups = vec![0, 1, 0];
    two.world.pass(STEP * 60);
    let one = two.open(0, &ann, "bob").room;
    let other = two.open(1, &bob, "ann").room;
    assert_eq!(one, other, "it follows from the two");
    for text in ["a1", "a2"] {
        two.says(0, &ann, one, text);
    }
    for text in ["b1", "b2"] {
        two.says(1, &bob, one, text);
    }
    assert_eq!(two.world.heard(0), ["a1", "a2"]);
    two.world.groups = vec![0; 3];
    two.world.pass(STEP * 100);
    for n in [0, 1] {
        let mut heard = two.world.heard(n);
        heard.sort_unstable();
        assert_eq!(heard, ["a1", "a2", "b1", "b2"], "at node {n}");
        assert_eq!(two.world.listed(n, &[ann.reader(), bob.reader()][n]).len(), 1);
    }
    // Both count numbers from the same home, which is nobody's.
    for n in [0, 1] {
        let room = &two.world.nodes[n].engine.known.rooms[&one];
        assert_eq!(room.replica.record.home.author, NOBODY, "at node {n}");
    }
    // And nobody makes it again.
    assert_eq!(two.open(0, &ann, "bob").room, one);
    two.says(1, &bob, one, "b3");
    assert_eq!(two.world.heard(0).last().map(String::as_str), Some("b3"));
    assert!(!two.world.has_room(2, one));
}

#[test]
fn a_node_hears_of_a_pair_when_the_other_key_is_presented() {
    let mut world = World::new(3);
    world.link();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    let room = world.open(0, &ann, "bob").expect("they are known").room;
    world.says(0, &ann, room, "are you there too?").expect("it is written");
    world.pass(STEP * 5);
    // Bob's key comes to the third node, too, with another agent: its rooms come before that is registered.
    let eve = world.come(2, "eve", BOBS);
    assert!(world.has_room(2, room));
    assert!(world.listed(2, &eve.reader()).is_empty(), "they are Bob's");
    // Bob moves: what is not answered waits for him.
    world.ask(1, Command::Detach { caller: bob, seen: Vec::new() }).expect("he was there");
    world.pass(STEP * 5);
    let attach = Attach { stable: true, ..registers("bob", (BOBS, false)) };
    let attached = world.ask(2, Command::Attach(attach));
    let Ok(Outcome::Attached(attached)) = attached else { panic!("{attached:?}") };
    assert_eq!(attached.restored, None);
    assert_eq!(attached.addressed, [(room, Number::ZERO)]);
}

#[test]
fn what_was_answered_or_left_does_not_wait() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let again = |two: &mut Two, n: usize, caller: &Caller| {
        let detach = Command::Detach { caller: caller.clone(), seen: Vec::new() };
        two.world.ask(n, detach).expect("it was there");
        let attach = Attach { stable: true, ..registers(&caller.agent, (caller.key, false)) };
        let attached = two.world.ask(n, Command::Attach(attach));
        let Ok(Outcome::Attached(attached)) = attached else { panic!("{attached:?}") };
        let rooms: Vec<RoomId> = attached.addressed.iter().map(|(room, _)| *room).collect();
        (Caller { registration: attached.registration, ..caller.clone() }, rooms)
    };
    two.says(0, &ann, room, "one");
    let (ann, rooms) = again(&mut two, 0, &ann);
    assert_eq!(rooms, [], "they are her own words");
    let (bob, rooms) = again(&mut two, 1, &bob);
    assert_eq!(rooms, [room]);
    two.says(1, &bob, room, "two");
    let (bob, rooms) = again(&mut two, 1, &bob);
    assert_eq!(rooms, [], "he has answered");
    two.says(0, &ann, room, "three");
    two.world.ask(1, Command::Leave { caller: bob.clone(), room }).expect("he heard it");
    let (bob, rooms) = again(&mut two, 1, &bob);
    assert_eq!(rooms, [], "he has left");
    two.world.ask(1, Command::Detach { caller: bob.clone(), seen: Vec::new() }).expect("there");
    two.says(0, &ann, room, "four");
    let attach = Attach { stable: true, ..registers("bob", (BOBS, false)) };
    let attached = two.world.ask(1, Command::Attach(attach));
    let Ok(Outcome::Attached(attached)) = attached else { panic!("{attached:?}") };
    assert_eq!(attached.addressed.len(), 1, "and was written to since");
}

#[test]
fn pairs_and_mailboxes_outlive_a_restart() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    two.says(0, &ann, room, "before");
    two.world.restart_reading(1);
    two.world.link();
    two.world.pass(STEP * 20);
    two.says(0, &ann, room, "after");
    let bob = two.world.come(1, "bob", BOBS);
    let listed = two.world.listed(1, &bob.reader());
    assert_eq!(listed.iter().map(|view| view.room).collect::<Vec<_>>(), [room]);
    two.says(1, &bob, room, "here");
    assert_eq!(two.world.heard(0), ["before", "after", "here"]);
}

#[test]
fn a_node_that_was_shown_a_key_before_its_restart_follows_pairs_that_others_begin() {
    let mut world = World::new(2);
    world.link();
    let minted = world.nodes[1].new_key(BOBS, Tier::High, false);
    world.ask(1, Command::MintKey(minted)).expect("it is new");
    let ann = world.come(0, "ann", ANNS);
    let opener = Some(RoomKey::of("opens the rooms of the key"));
    let bob = Attach { stable: true, own: false, opener, ..registers("bob", (BOBS, false)) };
    let call = world.begin(1, Command::Attach(bob));
    world.pass(STEP * 20);
    assert!(matches!(world.reply(1, call), Some(Ok(_))), "{:?}", world.reply(1, call));
    world.restart_reading(1);
    world.link();
    world.pass(STEP * 10);
    let room = world.open(0, &ann, "bob").expect("he is known").room;
    world.pass(STEP * 10);
    assert!(world.has_room(1, room), "though nobody has come since");
}

#[test]
fn an_agent_has_a_room_with_itself_and_with_others_of_its_key() {
    let mut two = Two::new();
    let (bob, eve) = (two.bob.clone(), two.eve.clone());
    let own = two.open(1, &bob, "bob");
    assert_eq!(&*own.name, "dm:bob:bob");
    two.says(1, &bob, own.room, "a note");
    let both = two.open(1, &bob, "eve");
    assert_eq!(&*both.name, "dm:bob:eve");
    assert_eq!(two.open(1, &eve, "bob").room, both.room);
    two.says(1, &eve, both.room, "hello");
    assert_eq!(two.world.listed(1, &eve.reader()).len(), 1);
    assert_eq!(two.world.listed(1, &bob.reader()).len(), 2);
}

#[test]
fn who_cannot_be_written_to_is_said_so() {
    let mut two = Two::new();
    let ann = two.ann.clone();
    let refused = two.world.open(0, &ann, "nobody").unwrap_err();
    assert_eq!(refused, Refused::NoAgent("nobody".into()));
    // A key whose text others could guess: nobody was shown its halves.
    let short = KeyPrint::of(&"s".repeat(KEY_TEXT_CHARS_MIN - 1));
    two.world.nodes[0].engine.known.directory.assume_owner("shorty", short);
    let refused = two.world.open(0, &ann, "shorty").unwrap_err();
    assert!(matches!(refused, Refused::NoMailbox(_)), "{refused:?}");
    let unsigned =
        Command::OpenDirect { caller: ann.clone(), signer: None, agent: "bob".into(), task: None };
    let refused = two.world.ask(0, unsigned).unwrap_err();
    assert!(matches!(refused, Refused::NoMailbox(_)), "{refused:?}");
    let of_bob =
        Command::OpenDirect { caller: ann, signer: signer(BOBS), agent: "bob".into(), task: None };
    let refused = two.world.ask(0, of_bob).unwrap_err();
    assert!(matches!(refused, Refused::NoMailbox(_)), "{refused:?}");
    assert!(
        two.world.nodes.iter().all(|node| node.engine.known.cx.followers.token(pair()).is_none())
    );
}

#[test]
fn no_room_is_called_as_those_that_nodes_name() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    for name in ["dm:me:you", "task:1", "finder:x"] {
        let room = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public: true,
            encrypted: false,
        };
        let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
        assert!(matches!(made, Err(Refused::Field(_))), "{name}: {made:?}");
    }
    // Where an agent has its mail, nobody else sees the name.
    for (name, is_taken) in [("finder:x", true), ("dm:me:you", false)] {
        let room = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public: false,
            encrypted: false,
        };
        let made = node.ask(Command::CreateRoom { caller: caller.clone(), room });
        assert_eq!(made.is_ok(), is_taken, "{name}: {made:?}");
        if let Ok(Outcome::Room(view)) = made {
            assert_eq!(*view.name, *name);
        }
    }
    // Another node has made one all the same.
    let mut liar = super::world::Liar::new(4);
    let directory = RoomId::directory(node.secret.mesh_id());
    let id = crate::directory::room_id(node.secret.mesh_id(), directory, liar.log(), 1);
    let body = Body::RoomCreated(public_room(id, "dm:me:you"));
    let (_, run) = liar.write_in(&node, directory, &body);
    node.hear(&run);
    let rooms = node.ask(Command::ListRooms { by: KEY.into(), parent: None });
    let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("{rooms:?}") };
    assert!(rooms.iter().any(|view| &*view.name == "_dm:me:you"), "{rooms:?}");
}

#[test]
fn the_holder_of_a_key_sees_the_direct_rooms_of_all_its_agents_and_no_others() {
    let (mut two, room) = Two::talking();
    let mut direct = |key| match two.world.ask(0, Command::ListDirect { key }) {
        Ok(Outcome::Rooms(rooms)) => rooms.into_iter().map(|view| view.room).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(direct(ANNS), [room]);
    assert_eq!(direct(KEY), []);
}

#[test]
fn ten_thousand_rooms_of_a_pair_cost_one_token_one_directory_one_digest_and_one_record() {
    let mut two = Two::new();
    let ann = two.ann.clone();
    two.open(0, &ann, "bob");
    two.world.pass(KEY_NEW_FOR);
    let count = |two: &Two, n: usize| {
        let known = &two.world.nodes[n].engine.known;
        let groups = known.cx.followers.shared_with(known.cx.me);
        (groups, known.rosters.follows(known.cx.me).len())
    };
    let before = count(&two, 0);
    let records = two.world.nodes[0].records().len();
    let secret = secret(ANNS).expect("it is known");
    let halves = secret.halves();
    let directory = two.world.nodes[0].engine.known.cx.followers.directory(pair()).expect("it is");
    let bobs = two.world.nodes[0].engine.known.directory.halves(BOBS).expect("he was shown");
    for nth in 0..10_000 {
        let by = crate::name::group::Side { agent: format!("ann{nth}").as_str().into(), halves };
        let with = crate::name::group::Side { agent: "bob".into(), halves: bobs };
        let body = Body::DirectOpened(crate::wire::entry::DirectOpened { by, with, task: None });
        let engine = &mut two.world.nodes[0].engine;
        let room = engine.known.rooms.get_mut(&directory).expect("it is followed");
        room.append(&mut engine.known.cx, &body).expect("it is small");
        engine.known.cx.to_advance.insert(directory);
    }
    two.world.nodes[0].turn();
    two.world.carry();
    two.world.pass(STEP * 5);
    for n in [0, 1] {
        let known = &two.world.nodes[n].engine.known;
        let rooms = known.rooms.keys().filter(|id| known.directory.direct.get(**id).is_some());
        assert_eq!(rooms.count(), 10_001, "at node {n}");
    }
    assert_eq!(count(&two, 0), before);
    assert_eq!(two.world.nodes[0].records().len(), records);
    let told = two.world.nodes[0].records().into_iter();
    let pairs = told.filter(|record| record.collection == pair::COLLECTION.number);
    assert_eq!(pairs.count(), 1);
}

/// Bytes that hold this text.
fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn neither_what_is_sent_nor_the_store_of_a_node_without_the_keys_has_anything_readable() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let texts = ["a sentence for one reader", "and another one in return"];
    two.says(0, &ann, room, texts[0]);
    two.says(1, &bob, room, texts[1]);
    let in_lobby = "a sentence for all of them";
    let lobby = two.world.lobby();
    let agent = two.world.callers[0].clone();
    two.world.says(0, &agent, lobby, in_lobby).expect("it is a member");
    let sent: Vec<Vec<u8>> = two.world.said.iter().map(crate::wire::cbor::encode).collect();
    let rows: Vec<String> = two.world.nodes[2].rows.iter().map(|row| format!("{row:?}")).collect();
    let is_sent = |text: &str| sent.iter().any(|bytes| holds(bytes, text));
    // A body is shown as a list of its bytes.
    let shown = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
        bytes.join(", ")
    };
    let is_kept =
        |text: &str| rows.iter().any(|row| row.contains(text) || row.contains(&shown(text)));
    assert!(is_sent(in_lobby) && is_kept(in_lobby), "what is for all would be found");
    for text in [texts[0], texts[1], "dm:ann:bob"] {
        assert!(!is_sent(text) && !is_kept(text), "{text}");
    }
    assert!(
        !rows.iter().any(|row| row.contains(&room.to_string())),
        "it keeps nothing of the room"
    );
    let secret = two.world.nodes[0].engine.known.cx.followers.opener(pair()).expect("it follows");
    let secret = secret.derive(b"");
    assert!(!sent.iter().any(|bytes| bytes.windows(32).any(|window| window == secret)));
}
