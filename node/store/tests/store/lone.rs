//! A node that is alone, with the real engine, on a directory: what it writes is what nodes write.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for; a new variant is none of its business"
)]

use std::{path::Path, sync::LazyLock, time::Duration};

use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    api::{
        agenda::NewVote,
        command::{
            Attach, CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, SaidOk, Say,
            Speech,
        },
        import::{Import, ImportedMessage, ImportedMessages},
    },
    name::{
        id::{KeyPrint, MeshId, MessageId, NodeId, RoomId},
        key::KeySecret,
        time::Now,
    },
    wire::{
        entry::DedupId,
        signatures::{KeySignature, SignedLog},
    },
};
use store::Store;

/// The key of all its agents.
static SECRET: LazyLock<KeySecret> = LazyLock::new(|| KeySecret::of(&"7".repeat(64)));
pub(crate) static KEY: LazyLock<KeyPrint> = LazyLock::new(|| SECRET.print());
/// As a ClawChat server draws them: version 4.
pub(crate) const OF_OLD: MessageId =
    MessageId([1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16]);

pub(crate) struct Lone {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) now: Now,
    calls: u64,
    log: SignedLog,
    effects: Vec<Effect>,
}

pub(crate) fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

pub(crate) fn me(seed: u8) -> NodeId {
    identity(seed).node_id()
}

/// The mesh that node 1 founded.
pub(crate) fn mesh_id() -> MeshId {
    MeshSecret::new([7; 32], me(1)).mesh_id()
}

pub(crate) fn lobby() -> RoomId {
    RoomId::lobby(mesh_id())
}

impl Lone {
    /// The node of this seed, on what is in `dir`.
    pub(crate) fn open(dir: &Path, seed: u8) -> Lone {
        let mut store = Store::open(dir).unwrap();
        let now = Now {
            mono: Duration::from_secs(1),
            wall_ms: 1_800_000_000_000,
            wall_us: 1_800_000_000_000_000,
        };
        store.set_wall_ms(now.wall_ms);
        let config = Config { seed: seed.into(), ..Config::new(mesh_id(), me(1)) };
        let summary = store.summary(me(seed), Some(mesh_id())).unwrap();
        let engine = Engine::open(identity(seed), config, summary, now);
        let log = SignedLog { mesh: mesh_id(), node: me(seed) };
        let mut node = Lone { store, engine, now, calls: 0, log, effects: Vec::new() };
        node.turn();
        node
    }

    fn turn(&mut self) {
        let turn = self.engine.take_turn();
        self.store.commit(&turn.batch).unwrap();
        self.effects.extend(turn.effects);
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis() / 100 {
            self.tick(100);
            self.engine.handle(self.now, Input::Timeout);
            self.turn();
        }
    }

    fn tick(&mut self, ms: u64) {
        self.now.mono += Duration::from_millis(ms);
        self.now.wall_ms += ms;
        self.now.wall_us += ms * 1_000;
    }

    /// Asks, and waits for the answer for some seconds.
    pub(crate) fn ask(&mut self, command: Command) -> Result<Outcome, Refused> {
        self.tick(1);
        self.calls += 1;
        let call = CallId(self.calls);
        self.engine.handle(self.now, Input::Command { call, command });
        self.turn();
        for _ in 0..100 {
            let reply = self.effects.iter().find_map(|effect| match effect {
                Effect::Reply { call: of, result } if *of == call => Some(result.clone()),
                _ => None,
            });
            if let Some(reply) = reply {
                return reply;
            }
            self.pass(Duration::from_millis(100));
        }
        panic!("no answer within 10 s");
    }

    pub(crate) fn attach(&mut self, agent: &str) -> Caller {
        let attach = Attach {
            agent: agent.into(),
            stable: true,
            reconnect: true,
            key: *KEY,
            own: true,
            opener: None,
            mailbox: None,
            shown: Some(Box::new(KeySignature::of_voucher(&SECRET, &self.log).unwrap())),
            claim: Some(Box::new(KeySignature::of_claim(&SECRET, mesh_id(), agent).unwrap())),
            name: agent.to_owned(),
            capabilities: Vec::new(),
        };
        match self.ask(Command::Attach(attach)).unwrap() {
            Outcome::Attached(it) => {
                Caller { agent: agent.into(), key: *KEY, registration: it.registration }
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn join(&mut self, caller: &Caller, room: RoomId) {
        self.ask(Command::Join { caller: caller.clone(), room }).unwrap();
    }

    pub(crate) fn make(&mut self, caller: &Caller, name: &str, public: bool) -> RoomId {
        let room = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public,
            encrypted: false,
        };
        match self.ask(Command::CreateRoom { caller: caller.clone(), room }).unwrap() {
            Outcome::Room(room) => room.room,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn say(&mut self, caller: &Caller, room: RoomId, content: &str) -> SaidOk {
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
            dedup: Some(DedupId::new(*KEY, &caller.agent, content)),
        };
        match self.ask(Command::Say { caller: caller.clone(), say }).unwrap() {
            Outcome::Said(it) => it,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn open_vote(
        &mut self,
        caller: &Caller,
        room: RoomId,
    ) -> mesh::api::agenda::VoteView {
        let vote = NewVote {
            room,
            title: "what".to_owned(),
            description: None,
            options: vec!["this".to_owned(), "that".to_owned()],
            duration_secs: None,
        };
        match self.ask(Command::CreateVote { caller: caller.clone(), vote }).unwrap() {
            Outcome::Vote(it) => *it,
            other => panic!("{other:?}"),
        }
    }

    /// The founder brings a message of a ClawChat server to the lobby.
    pub(crate) fn bring(&mut self, number: u64, id: MessageId) {
        let message = ImportedMessage {
            id: Some(id),
            number,
            wall_ms: 1_700_000_000_000,
            speech: Speech::Chat,
            agent: "ada".into(),
            name: "ada".to_owned(),
            content: "of old".to_owned(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
        };
        let next = number + 1;
        let all = ImportedMessages { room: lobby(), messages: vec![message], next };
        self.engine.import(self.now, Import::Messages(all)).unwrap();
        self.turn();
    }

    /// Rooms that the key may see, by name.
    pub(crate) fn rooms(&mut self) -> Vec<(String, RoomId)> {
        match self.ask(Command::ListRooms { by: (*KEY).into(), parent: None }).unwrap() {
            Outcome::Rooms(rooms) => {
                rooms.into_iter().map(|it| (it.name.to_string(), it.room)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Something of everything: two agents, who talk in the lobby and in a private room, and vote.
pub(crate) fn busy(dir: &Path) -> Lone {
    let mut node = Lone::open(dir, 1);
    let (ada, bob) = (node.attach("ada"), node.attach("bob"));
    node.join(&ada, lobby());
    node.join(&bob, lobby());
    for n in 1..=5 {
        node.say(&ada, lobby(), &format!("lobby {n}"));
    }
    let private = node.make(&ada, "den", false);
    node.join(&ada, private);
    node.say(&ada, private, "between us");
    let vote = node.open_vote(&ada, lobby());
    node.ask(Command::CastVote { caller: ada, vote: vote.vote, option: 1 }).unwrap();
    node.say(&bob, lobby(), "a body that travels apart ".repeat(400).trim());
    node
}

/// What was said in a room, with its numbers.
pub(crate) fn said(store: &Store, room: RoomId) -> Vec<(u64, String)> {
    let rows = store.reader().page_since(room, mesh::name::number::Number(0), 500).unwrap();
    let said = rows.into_iter().filter_map(|it| Some((it.number.0, it.said?.content)));
    said.collect()
}
