//! Private rooms that span the mesh, on a few real nodes and a network without faults: each test says
//! who has the key, and looks at what the others get.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for; a new variant is none of its business"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Config, Effect, Input, MeshSecret,
    api::{
        agenda::NewKey,
        command::{
            Attach, CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, RoomView,
            SaidOk, Say, Speech,
        },
    },
    name::{
        id::{KeyPrint, NodeId, RoomId, RoomKey},
        key::KeySecret,
        number::Number,
    },
    order::pulse::Beat,
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        message::{Message, Signed},
        signatures::SignedLog,
    },
};

use crate::sim::{node::Node, signing::Signing};

const LOCAL_KEY: &str = "a key of one node alone, in tests";
const API_KEY: &str = "a key of the whole mesh, in tests";
/// Texts that nobody without the key is to see.
const NAME: &str = "the plan that nobody knows";
const WORDS: &str = "words that are for few";

/// See the module.
struct Nodes {
    secret: MeshSecret,
    nodes: Vec<Node>,
    now: Duration,
    gossip: bool,
    /// Links that are cut.
    cut: BTreeSet<(usize, usize)>,
    connected: BTreeSet<(usize, usize)>,
    replies: BTreeMap<CallId, Result<Outcome, Refused>>,
    calls: u64,
    /// Every byte that each node was sent.
    heard: Vec<Vec<u8>>,
    beat_at: Duration,
}

impl Nodes {
    fn new(count: u8, gossip: bool) -> Nodes {
        let seeds: Vec<[u8; 32]> = (1..=count).map(|n| [n; 32]).collect();
        let founder = mesh::Identity::from_seed(&seeds[0]).node_id();
        let secret = MeshSecret::new([7; 32], founder);
        let node = |(i, seed): (usize, &[u8; 32])| {
            let mut config = Config::new(secret.mesh_id(), founder);
            config.name = format!("node{i}");
            config.seed = i as u64;
            Node::new(Signing::Real, seed, config, i as u64)
        };
        let nodes: Vec<Node> = seeds.iter().enumerate().map(node).collect();
        let mut nodes = Nodes {
            heard: vec![Vec::new(); nodes.len()],
            secret,
            nodes,
            now: Duration::from_secs(1),
            gossip,
            cut: BTreeSet::new(),
            connected: BTreeSet::new(),
            replies: BTreeMap::new(),
            calls: 0,
            beat_at: Duration::ZERO,
        };
        for i in 0..nodes.nodes.len() {
            nodes.start(i);
        }
        nodes.run(3_000);
        nodes
    }

    // Lives and links.

    fn start(&mut self, node: usize) {
        self.nodes[node].start(self.now);
        self.connect();
    }

    fn kill(&mut self, node: usize) {
        self.nodes[node].exit();
        self.connect();
    }

    fn cut(&mut self, a: usize, b: usize) {
        self.cut.insert((a, b));
        self.connect();
    }

    fn heal(&mut self) {
        self.cut.clear();
        self.connect();
    }

    fn connect(&mut self) {
        for a in 0..self.nodes.len() {
            for b in a + 1..self.nodes.len() {
                let up = self.nodes[a].running.is_some() && self.nodes[b].running.is_some();
                let up = up && !self.cut.contains(&(a, b));
                if up == self.connected.contains(&(a, b)) {
                    continue;
                }
                let event = if up { Input::PeerUp } else { Input::PeerDown };
                let (id_a, id_b) = (self.nodes[a].id, self.nodes[b].id);
                self.nodes[a].push(event(id_b));
                self.nodes[b].push(event(id_a));
                if up {
                    self.connected.insert((a, b));
                } else {
                    self.connected.remove(&(a, b));
                }
            }
        }
    }

    // Time.

    fn run(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            self.now += Duration::from_millis(10);
            if self.now >= self.beat_at {
                self.beat_at = self.now + mesh::limits::BEACON_EVERY;
                (0..self.nodes.len()).for_each(|node| self.beat(node));
            }
            self.turn_all();
        }
    }

    fn turn_all(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].running.is_none() {
                continue;
            }
            let turn = self.nodes[node].turn(self.now).expect("no disk fails here");
            for effect in turn.effects {
                self.perform(node, effect);
            }
        }
    }

    fn perform(&mut self, node: usize, effect: Effect) {
        match effect {
            Effect::Broadcast { message, .. } if self.gossip => self.gossip(node, &message),
            Effect::Send { to, message } => self.send(node, self.index(to), &message),
            Effect::SendSpans { to, room, spans } => {
                let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
                let answer = reader.answer_spans(room, &spans).expect("a sound store reads");
                self.send(node, self.index(to), &answer);
            }
            Effect::SendBodies { to, room, at } => {
                let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
                let answer = reader.answer_bodies(room, &at).expect("a sound store reads");
                self.send(node, self.index(to), &answer);
            }
            Effect::HandOver { to, room, spans } => {
                let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
                let parcel = store::carried::hand_over(reader, room, &spans);
                if let Some(parcel) = parcel.expect("a sound store reads") {
                    self.send(node, self.index(to), &parcel);
                }
            }
            Effect::GiveOn { to, at } => {
                let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
                let parcel = store::carried::give_on(reader, &at);
                if let Some(parcel) = parcel.expect("a sound store reads") {
                    self.send(node, self.index(to), &parcel);
                }
            }
            Effect::Reply { call, result } => drop(self.replies.insert(call, result)),
            Effect::Stopped => {
                self.nodes[node].exit();
                self.connect();
            }
            _ => {}
        }
    }

    /// Relayed by all nodes that get it, as far as links go.
    fn gossip(&mut self, from: usize, message: &Message) {
        let mut seen = BTreeSet::from([from]);
        let mut relays = vec![from];
        while let Some(relay) = relays.pop() {
            for to in 0..self.nodes.len() {
                if self.connected.contains(&pair(relay, to)) && seen.insert(to) {
                    relays.push(to);
                    self.send(relay, to, message);
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        if !self.connected.contains(&pair(from, to)) {
            return;
        }
        let bytes = message.encode();
        self.heard[to].extend(&bytes);
        let decoded = Message::decode(&bytes).expect("what nodes send can be read");
        let message = decoded.verify(self.secret.mesh_id()).expect("what nodes send is sealed");
        let from = self.nodes[from].id;
        self.nodes[to].push(Input::Message { from, message });
    }

    fn beat(&mut self, node: usize) {
        let id = self.nodes[node].id;
        let Some(running) = &mut self.nodes[node].running else { return };
        let Some(pulse) = running.pulse else { return };
        let rhythm = running.rhythm.get_or_insert_default();
        let Some(Beat { beacon, .. }) = rhythm.beat(id, pulse, 0) else { return };
        let signed = Signed::new(self.secret.mesh_id(), self.nodes[node].identity(), beacon);
        self.gossip(node, &Message::Beacon(signed));
    }

    fn index(&self, id: NodeId) -> usize {
        self.nodes.iter().position(|node| node.id == id).expect("it is one of them")
    }

    // Clients.

    fn call(&mut self, node: usize, command: Command) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.nodes[node].push(Input::Command { call, command });
        call
    }

    /// The answer, and how long it took.
    fn ask_timed(&mut self, node: usize, command: Command) -> (Result<Outcome, Refused>, Duration) {
        let call = self.call(node, command);
        let asked = self.now;
        for _ in 0..2_000 {
            if let Some(result) = self.replies.remove(&call) {
                return (result, self.now.saturating_sub(asked));
            }
            self.run(10);
        }
        panic!("node{node} does not answer")
    }

    fn ask(&mut self, node: usize, command: Command) -> Result<Outcome, Refused> {
        self.ask_timed(node, command).0
    }

    fn mint(&mut self, node: usize, api_key: &str, local: bool) {
        let log = SignedLog { mesh: self.secret.mesh_id(), node: self.nodes[node].id };
        let minted = KeyMinted::sign(&KeySecret::of(api_key), &log, KeyTerms::of(Tier::High));
        let mint = NewKey { minted: Box::new(minted.expect("it is long enough")), local };
        self.ask(node, Command::MintKey(mint)).expect("it is new");
        self.run(3_000);
    }

    fn try_attach(&mut self, node: usize, agent: &str, api_key: &str) -> Result<Caller, Refused> {
        let key = KeyPrint::of(api_key);
        let attach = Attach {
            agent: agent.into(),
            stable: false,
            reconnect: false,
            key,
            own: false,
            opener: Some(RoomKey::of(api_key)),
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.to_owned(),
            capabilities: Vec::new(),
        };
        match self.ask(node, Command::Attach(attach))? {
            Outcome::Attached(attached) => {
                let registration = attached.registration;
                Ok(Caller { agent: agent.into(), key, registration })
            }
            other => panic!("{other:?}"),
        }
    }

    fn attach(&mut self, node: usize, agent: &str) -> Caller {
        self.try_attach(node, agent, API_KEY).expect("the key is valid")
    }

    fn try_create(
        &mut self,
        node: usize,
        caller: &Caller,
        name: &str,
        ephemeral: bool,
    ) -> Result<RoomView, Refused> {
        let room = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral,
            public: false,
            encrypted: false,
        };
        match self.ask(node, Command::CreateRoom { caller: caller.clone(), room })? {
            Outcome::Room(view) => Ok(view),
            other => panic!("{other:?}"),
        }
    }

    /// Makes a private room and joins it.
    fn create(&mut self, node: usize, caller: &Caller, ephemeral: bool) -> RoomId {
        let room = self.try_create(node, caller, NAME, ephemeral).expect("the name is free").room;
        self.join(node, caller, room);
        room
    }

    fn join(&mut self, node: usize, caller: &Caller, room: RoomId) {
        self.ask(node, Command::Join { caller: caller.clone(), room }).expect("it is its room");
    }

    fn try_say(
        &mut self,
        node: usize,
        caller: &Caller,
        room: RoomId,
        content: &str,
    ) -> (Result<SaidOk, Refused>, Duration) {
        let say = Say {
            room,
            speech: Speech::Chat,
            content: content.to_owned(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        let (result, took) = self.ask_timed(node, Command::Say { caller: caller.clone(), say });
        let said = result.map(|outcome| match outcome {
            Outcome::Said(said) => said,
            other => panic!("{other:?}"),
        });
        (said, took)
    }

    fn say(&mut self, node: usize, caller: &Caller, room: RoomId, content: &str) -> Number {
        self.try_say(node, caller, room, content).0.expect("a member may").number
    }

    fn names(&mut self, node: usize, api_key: &str) -> Vec<String> {
        let key = KeyPrint::of(api_key);
        let rooms = self.ask(node, Command::ListRooms { by: key.into(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("anybody may") };
        rooms.iter().map(|room| room.name.to_string()).collect()
    }

    fn members(&mut self, node: usize, room: RoomId) -> Vec<String> {
        let key = KeyPrint::of(API_KEY);
        let agents = self.ask(node, Command::ListAgents { by: key.into(), room: Some(room) });
        let Ok(Outcome::Agents(agents)) = agents else { panic!("its owner may") };
        agents.iter().map(|agent| agent.agent.to_string()).collect()
    }

    /// Deliveries: numbers and contents.
    fn history(&self, node: usize, room: RoomId) -> Vec<(u64, String)> {
        let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
        let rows = reader.page_since(room, Number::ZERO, 500).expect("a sound store reads");
        let row = |row: store::Row| (row.number.0, row.said.map(|said| said.content));
        rows.into_iter().map(row).map(|(n, said)| (n, said.unwrap_or_default())).collect()
    }

    fn has(&self, node: usize, room: RoomId) -> bool {
        let reader = &self.nodes[node].running.as_ref().expect("it runs").reader;
        let rooms = reader.rooms().expect("a sound store reads");
        rooms.iter().any(|(id, _)| *id == room)
    }

    /// Whether a node was sent this text, or has it on its disk.
    fn came_to_know(&mut self, node: usize, text: &str) -> [bool; 2] {
        let within =
            |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        [within(&self.heard[node]), within(&self.nodes[node].image())]
    }
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// Node 0 minted the key, and never heard it itself.
fn three(gossip: bool) -> Nodes {
    let mut nodes = Nodes::new(3, gossip);
    nodes.mint(0, API_KEY, false);
    nodes
}

#[test]
fn a_private_room_is_where_its_key_was_presented_and_nowhere_else() {
    for gossip in [true, false] {
        let mut nodes = three(gossip);
        let ada = nodes.attach(1, "ada");
        let room = nodes.create(1, &ada, false);
        assert_eq!(nodes.say(1, &ada, room, WORDS), Number(1));
        let bob = nodes.attach(2, "bob");
        assert_eq!(nodes.names(2, API_KEY), ["lobby", NAME], "at once after registering");
        nodes.join(2, &bob, room);
        assert_eq!(nodes.say(2, &bob, room, "and an answer"), Number(2));
        nodes.run(5_000);
        let all = [(1, WORDS.to_owned()), (2, "and an answer".to_owned())];
        for node in [1, 2] {
            assert_eq!(nodes.history(node, room), all, "gossip {gossip}, node{node}");
            assert_eq!(nodes.members(node, room), ["ada", "bob"]);
        }
        assert!(!nodes.has(0, room), "it does not even know that there is one");
        assert_eq!(nodes.names(0, API_KEY), ["lobby"], "gossip {gossip}");
        for text in [NAME, WORDS, "and an answer"] {
            assert_eq!(nodes.came_to_know(0, text), [false; 2], "{text}, gossip {gossip}");
            for follower in [1, 2] {
                assert_eq!(nodes.came_to_know(follower, text), [false; 2], "{text}: sealed there");
            }
        }
    }
}

#[test]
fn a_dead_sequencer_is_replaced_by_another_node_that_has_the_key() {
    // The first rank differs from room to room: often enough it is a node without the key.
    let mut nodes = Nodes::new(5, true);
    nodes.mint(0, API_KEY, false);
    let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
    let rooms: Vec<RoomId> = (0..6)
        .map(|i| {
            let made = nodes.try_create(1, &ada, &format!("room {i}"), false);
            made.expect("the name is free").room
        })
        .collect();
    for room in &rooms {
        nodes.run(100);
        nodes.join(2, &bob, *room);
        nodes.say(2, &bob, *room, "before");
    }
    nodes.kill(1);
    nodes.run(2_000);
    for room in &rooms {
        let (said, took) = nodes.try_say(2, &bob, *room, "after");
        assert!(said.is_ok() && took < Duration::from_millis(400), "{said:?} after {took:?}");
    }
    for node in [0, 3, 4] {
        assert!(rooms.iter().all(|room| !nodes.has(node, *room)), "node{node}");
    }
}

#[test]
fn a_node_that_stops_hands_its_private_rooms_to_one_that_has_the_key() {
    let mut nodes = Nodes::new(4, true);
    nodes.mint(0, API_KEY, false);
    let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(3, "bob"));
    for i in 0..6 {
        let room = nodes.try_create(1, &ada, &format!("room {i}"), false).expect("free").room;
        nodes.run(100);
        nodes.join(3, &bob, room);
    }
    nodes.call(1, Command::Stop);
    nodes.run(500);
    assert!(nodes.nodes[1].running.is_none(), "it has stopped");
    let key = KeyPrint::of(API_KEY);
    let Ok(Outcome::Rooms(rooms)) =
        nodes.ask(3, Command::ListRooms { by: key.into(), parent: None })
    else {
        panic!("anybody may")
    };
    for room in rooms.iter().filter(|room| !room.public) {
        let (said, took) = nodes.try_say(3, &bob, room.room, "after");
        let number = said.expect("a member may").number;
        assert_eq!(
            (number, took < Duration::from_millis(100)),
            (Number(1), true),
            "no era is spent"
        );
    }
}

#[test]
fn a_node_goes_on_following_after_a_restart_without_the_key() {
    for gossip in [true, false] {
        let mut nodes = three(gossip);
        let ada = nodes.attach(1, "ada");
        let room = nodes.create(1, &ada, false);
        nodes.attach(2, "bob");
        nodes.kill(2);
        nodes.say(1, &ada, room, WORDS);
        nodes.start(2);
        nodes.run(5_000);
        assert_eq!(nodes.history(2, room), [(1, WORDS.to_owned())], "gossip {gossip}");
        // And the one that made the room is not needed any more.
        nodes.kill(1);
        let bob = nodes.attach(2, "bob");
        assert_eq!(nodes.names(2, API_KEY), ["lobby", NAME]);
        nodes.join(2, &bob, room);
        nodes.say(2, &bob, room, "alone");
        nodes.start(1);
        nodes.run(5_000);
        let (a, b) = (nodes.history(1, room), nodes.history(2, room));
        assert_eq!((a.len(), a), (2, b), "gossip {gossip}");
    }
}

#[test]
fn both_sides_of_a_split_write_and_have_everything_after_it() {
    for gossip in [true, false] {
        let mut nodes = three(gossip);
        let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
        let room = nodes.create(1, &ada, false);
        nodes.run(3_000);
        nodes.join(2, &bob, room);
        for (a, b) in [(0, 2), (1, 2)] {
            nodes.cut(a, b);
        }
        nodes.run(3_000);
        nodes.say(1, &ada, room, "on one side");
        nodes.say(2, &bob, room, "on the other");
        let other = nodes.try_create(2, &bob, "made in the split", false).expect("free").room;
        nodes.heal();
        nodes.run(8_000);
        for node in [1, 2] {
            let mut said: Vec<String> =
                nodes.history(node, room).into_iter().map(|(_, said)| said).collect();
            said.sort();
            assert_eq!(said, ["on one side", "on the other"], "gossip {gossip}, node{node}");
            assert_eq!(nodes.names(node, API_KEY), ["lobby", "made in the split", NAME]);
            assert!(nodes.has(node, other));
        }
    }
}

#[test]
fn a_node_in_the_middle_carries_what_it_cannot_read() {
    let mut nodes = three(true);
    let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
    nodes.cut(1, 2);
    nodes.run(3_000);
    let room = nodes.create(1, &ada, false);
    nodes.run(500);
    nodes.join(2, &bob, room);
    assert_eq!(nodes.say(2, &bob, room, WORDS), Number(1), "the sequencer is behind node 0");
    assert_eq!(nodes.history(1, room), nodes.history(2, room));
    assert_eq!(nodes.members(1, room), ["ada", "bob"]);
    assert_eq!(nodes.came_to_know(0, WORDS), [false; 2]);
    assert!(!nodes.has(0, room));
}

#[test]
fn rooms_of_a_key_for_one_node_stay_there() {
    let mut nodes = Nodes::new(2, true);
    nodes.mint(1, LOCAL_KEY, true);
    let ada = nodes.try_attach(1, "ada", LOCAL_KEY).expect("it is valid there");
    let room = nodes.create(1, &ada, false);
    nodes.say(1, &ada, room, WORDS);
    nodes.run(3_000);
    let refused = nodes.try_attach(0, "bob", LOCAL_KEY).expect_err("not valid here");
    assert_eq!(refused, Refused::NoKey);
    assert!(!nodes.has(0, room));
    let id: Vec<u8> = room.0.to_vec();
    assert!(!nodes.heard[0].windows(16).any(|window| window == id), "not even its id is told");
}

#[test]
fn rooms_of_a_revoked_key_are_served_to_nobody_and_kept() {
    let mut nodes = three(true);
    let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
    let room = nodes.create(1, &ada, false);
    nodes.say(1, &ada, room, WORDS);
    nodes.run(1_000);
    nodes.join(2, &bob, room);
    nodes.ask(0, Command::RevokeKey { key: KeyPrint::of(API_KEY) }).expect("it was minted");
    nodes.run(1_000);
    for restart in [false, true] {
        if restart {
            nodes.kill(2);
            nodes.start(2);
            nodes.run(1_000);
        }
        assert_eq!(nodes.names(2, API_KEY), ["lobby"]);
        let key = KeyPrint::of(API_KEY);
        let info = nodes.ask(2, Command::RoomInfo { by: key.into(), room });
        assert_eq!(info.err(), Some(Refused::NoRoom));
        assert_eq!(nodes.try_attach(2, "eve", API_KEY).expect_err("revoked"), Refused::NoKey);
        assert_eq!(nodes.history(2, room), [(1, WORDS.to_owned())], "kept");
    }
}

#[test]
fn a_private_ephemeral_room_spans_the_nodes_that_have_its_key() {
    for gossip in [true, false] {
        let mut nodes = three(gossip);
        let ada = nodes.attach(1, "ada");
        let room = nodes.create(1, &ada, true);
        nodes.say(1, &ada, room, WORDS);
        nodes.run(3_000);
        // Announced before the key is presented here, and opened then.
        let bob = nodes.attach(2, "bob");
        assert_eq!(nodes.names(2, API_KEY), ["lobby", NAME]);
        nodes.join(2, &bob, room);
        nodes.run(3_000);
        assert_eq!(nodes.say(2, &bob, room, "and an answer"), Number(2), "gossip {gossip}");
        nodes.run(3_000);
        assert_eq!(nodes.history(1, room), nodes.history(2, room));
        assert_eq!((nodes.members(1, room), nodes.has(0, room)), (nodes.members(2, room), false));
        assert_eq!(nodes.names(0, API_KEY), ["lobby"]);
        for text in [NAME, WORDS, "and an answer"] {
            assert_eq!(nodes.came_to_know(0, text), [false; 2], "{text}, gossip {gossip}");
        }
        for (node, caller) in [(1, ada), (2, bob)] {
            nodes.ask(node, Command::Leave { caller, room }).expect("it is in it");
        }
        nodes.run(3_000);
        assert_eq!(nodes.names(1, API_KEY), ["lobby"], "it ended with its last member");
        assert_eq!(nodes.names(2, API_KEY), ["lobby"]);
    }
}

#[test]
fn names_are_given_as_in_public_rooms_and_a_private_one_gives_way() {
    let mut nodes = three(true);
    let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
    nodes.create(1, &ada, false);
    nodes.run(1_000);
    let again = nodes.try_create(2, &bob, NAME, false).expect_err("it is taken");
    assert_eq!(again, Refused::NameTaken(NAME.to_owned()));
    // In a split the key's own public room gets a name that its private one has on the other side.
    for (a, b) in [(0, 1), (1, 2)] {
        nodes.cut(a, b);
    }
    nodes.run(3_000);
    nodes.try_create(1, &ada, "twice", false).expect("nobody here knows of another");
    let room = NewRoom {
        name: "twice".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    nodes.ask(2, Command::CreateRoom { caller: bob, room }).expect("nobody here either");
    nodes.heal();
    nodes.run(5_000);
    for node in [1, 2] {
        assert_eq!(nodes.names(node, API_KEY), ["lobby", NAME, "twice", "twice (node1)"]);
    }
}

/// Each of the two is up while the other is not, and the one in between loses its power meanwhile.
#[test]
fn two_nodes_of_a_key_that_are_never_up_together_have_the_same_room() {
    for gossip in [true, false] {
        let mut nodes = three(gossip);
        let (ada, bob) = (nodes.attach(1, "ada"), nodes.attach(2, "bob"));
        let room = nodes.create(1, &ada, false);
        nodes.join(2, &bob, room);
        nodes.say(1, &ada, room, "together");
        nodes.run(5_000);
        nodes.kill(2);
        let mut said = vec!["together".to_owned()];
        for round in 0..3 {
            let (here, there) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
            let agent = nodes.attach(here, &format!("agent{round}"));
            nodes.join(here, &agent, room);
            for nth in 0..40 {
                let text = format!("{WORDS} {round} {nth}");
                nodes.say(here, &agent, room, &text);
                said.push(text);
            }
            let large = format!("{round} {}", "x".repeat(100_000));
            nodes.say(here, &agent, room, &large);
            said.push(large);
            nodes.run(8_000);
            nodes.kill(here);
            nodes.kill(0);
            nodes.start(0);
            nodes.start(there);
            nodes.run(20_000);
            let history = nodes.history(there, room).into_iter().map(|(_, said)| said);
            let history: Vec<String> = history.collect();
            let missing: Vec<_> = said.iter().filter(|text| !history.contains(text)).collect();
            let missing: Vec<_> = missing.iter().map(|text| text.get(..40)).collect();
            assert_eq!(missing, [], "round {round}, gossip {gossip}");
            assert!(history == said, "round {round}, gossip {gossip}: in another order");
        }
        assert_eq!(nodes.came_to_know(0, WORDS), [false; 2]);
        assert!(!nodes.has(0, room));
    }
}
