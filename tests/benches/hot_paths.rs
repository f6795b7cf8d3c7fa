//! The hot paths, one at a time: the cost of each message between a client's frame and the disk, and back.
//!
//! `cargo bench -p tests` runs them; `-- verify` only those with that name. The sum that users see
//! is measured by `clawmesh-testnet bench`.

use std::{hint::black_box, time::Duration};

use divan::{Bencher, counter::ItemsCount};
use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    api::{
        batch::{Change, Summary},
        command::{Attach, CallId, Caller, Command, Encryption, Outcome, Say, Speech},
    },
    name::{
        id::{KeyPrint, LogId, MeshId, RoomId},
        number::Number,
        time::Now,
    },
    wire::{
        entry::{Body, Facts, Said},
        kinds::CHAT,
        run::{Carried, Run, RunEntry},
    },
};
use protocol::{
    event::Event,
    frame::{encode_event, encode_reply, parse_request},
    object::Message,
    reply::Reply,
};
use store::Store;
use tempfile::TempDir;

/// As in the figures of `clawmesh-testnet bench`.
const CONTENT_BYTES: usize = 200;
/// The log that a page of history is taken from.
const STORED: u64 = 10_000;
/// Messages of a page.
const PAGE: usize = 50;
const KEY: KeyPrint = KeyPrint([1; 16]);

fn main() {
    divan::main();
}

fn content() -> String {
    "x".repeat(CONTENT_BYTES)
}

// The wire of clients.

#[divan::bench]
fn decode_frame(bencher: Bencher<'_, '_>) {
    let line = format!(
        r#"{{"id":"1","type":"send_message","payload":{{"room_id":"lobby","content":"{}"}}}}"#,
        content()
    );
    bencher.bench(|| parse_request(black_box(&line)).expect("a request"));
}

fn message() -> Box<Message> {
    Box::new(Message {
        message_id: "0a1b2c3d-0000-8000-8000-000000000001".to_owned(),
        room_id: "0a1b2c3d-0000-8000-8000-000000000002".to_owned(),
        agent_id: "0a1b2c3d-0000-8000-8000-000000000003".to_owned(),
        agent_name: "an agent".to_owned(),
        content: content(),
        reply_to_message: None,
        metadata: None,
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        seq: 4_711,
        mesh: None,
    })
}

#[divan::bench]
fn encode_an_event(bencher: Bencher<'_, '_>) {
    let event = Event::MessageReceived(message());
    bencher.bench(|| encode_event(black_box(&event), "0a1b2c3d-0000-4000-8000-000000000004"));
}

#[divan::bench]
fn encode_an_answer(bencher: Bencher<'_, '_>) {
    let reply = Reply::Message(message());
    let id = "0a1b2c3d-0000-4000-8000-000000000004";
    bencher.bench(|| encode_reply(black_box(&reply), Some("1"), id));
}

// The wire of nodes.

fn identity() -> Identity {
    Identity::from_seed(&[7; 32])
}

fn mesh_id() -> MeshId {
    MeshSecret::new([8; 32], identity().node_id()).mesh_id()
}

fn run_of(entries: u64) -> Run {
    let said = Said {
        agent: "an agent".into(),
        name: "its name".to_owned(),
        content: content(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        turn: None,
        id: None,
        key: None,
        conversation: None,
    };
    let body = Body::Chat(said).encode();
    let entry = |clock| RunEntry {
        facts: Facts { clock, wall_ms: 1_790_000_000_000, kind: CHAT, visible: true },
        body: Carried::Here(body.clone().into()),
    };
    let run = Run {
        room: RoomId::lobby(mesh_id()),
        log: LogId { author: identity().node_id(), incarnation: 0 },
        first: 1,
        backlink: [0; 32],
        entries: (1..=entries).map(entry).collect(),
        seal: [0; 64],
    };
    run.seal(mesh_id(), &identity()).run().clone()
}

/// Hashes and the one signature of a run.
#[divan::bench(args = [1, 32])]
fn verify_a_run(bencher: Bencher<'_, '_>, entries: u64) {
    let (mesh, run) = (mesh_id(), run_of(entries));
    bencher
        .counter(ItemsCount::new(entries))
        .with_inputs(|| run.clone())
        .bench_values(|run| run.verify(mesh).expect("a sound run"));
}

#[divan::bench(args = [1, 32])]
fn seal_a_run(bencher: Bencher<'_, '_>, entries: u64) {
    let (mesh, identity, run) = (mesh_id(), identity(), run_of(entries));
    bencher
        .counter(ItemsCount::new(entries))
        .with_inputs(|| run.clone())
        .bench_values(|run| run.seal(mesh, &identity));
}

// Engine and store.

/// A node of its own with one agent in the lobby, without sockets.
struct Node {
    engine: Engine,
    store: Store,
    caller: Caller,
    calls: u64,
    at: Duration,
    dir: TempDir,
}

impl Node {
    fn new() -> Node {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(dir.path()).expect("a new store");
        let config = Config::new(mesh_id(), identity().node_id());
        let at = Duration::from_secs(1);
        let engine = Engine::open(identity(), config, Summary::default(), now(at));
        let caller = Caller { agent: "agent".into(), key: KEY, registration: Default::default() };
        let mut node = Node { engine, store, caller, calls: 0, at, dir };
        node.commit();
        let attach = Attach {
            agent: "agent".into(),
            stable: false,
            reconnect: false,
            key: KEY,
            own: true,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: "its name".to_owned(),
            capabilities: Vec::new(),
        };
        node.give(Command::Attach(attach));
        for effect in node.commit() {
            if let Effect::Reply { result: Ok(Outcome::Attached(attached)), .. } = effect {
                node.caller.registration = attached.registration;
            }
        }
        let (caller, room) = (node.caller.clone(), node.lobby());
        node.give(Command::Join { caller, room });
        node.commit();
        node
    }

    fn lobby(&self) -> RoomId {
        RoomId::lobby(mesh_id())
    }

    fn give(&mut self, command: Command) {
        self.calls += 1;
        self.at += Duration::from_micros(50);
        let call = CallId(self.calls);
        self.engine.handle(now(self.at), Input::Command { call, command });
    }

    fn say(&mut self) {
        let say = Say {
            room: self.lobby(),
            speech: Speech::Chat,
            content: content(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        self.give(Command::Say { caller: self.caller.clone(), say });
    }

    /// The entries since the last time, as the store is to keep them.
    fn turn(&mut self) -> (Vec<Change>, Vec<Effect>) {
        let turn = self.engine.take_turn();
        (turn.batch, turn.effects)
    }

    fn commit(&mut self) -> Vec<Effect> {
        let (batch, effects) = self.turn();
        self.store.commit(&batch).expect("a disk");
        effects
    }

    /// With so many messages.
    fn with(messages: u64) -> Node {
        let mut node = Node::new();
        for n in 0..messages {
            node.say();
            if n % 500 == 499 {
                node.commit();
            }
        }
        node.commit();
        node
    }
}

fn now(mono: Duration) -> Now {
    let wall_ms = 1_790_000_000_000 + mono.as_millis() as u64;
    Now { mono, wall_ms, wall_us: wall_ms * 1_000 }
}

/// From commands to a batch that is signed and numbered: everything but the disk.
#[divan::bench(args = [1, 16, 128])]
fn append(bencher: Bencher<'_, '_>, messages: u64) {
    let mut node = Node::new();
    bencher.counter(ItemsCount::new(messages)).bench_local(|| {
        for _ in 0..messages {
            node.say();
        }
        node.turn()
    });
}

/// The same with the disk.
#[divan::bench(args = [1, 16, 128], sample_count = 50)]
fn commit(bencher: Bencher<'_, '_>, messages: u64) {
    let mut node = Node::with(1_000);
    bencher.counter(ItemsCount::new(messages)).bench_local(|| {
        for _ in 0..messages {
            node.say();
        }
        node.commit()
    });
}

#[divan::bench]
fn history_page(bencher: Bencher<'_, '_>) {
    let node = Node::with(STORED);
    let (reader, room) = (node.store.reader(), node.lobby());
    let mut after = 0;
    bencher.counter(ItemsCount::new(PAGE)).bench_local(|| {
        after = (after + 7_919) % (STORED - PAGE as u64);
        let page = reader.page_since(room, Number(after), PAGE).expect("a sound store");
        assert_eq!(page.len(), PAGE);
        page
    });
    drop(node.dir);
}
