//! An engine goes on from what the store kept.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for; a new variant is none of its business"
)]

use std::time::Duration;

use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    api::{
        agenda::{NewKey, Standing},
        command::{CallId, Command, Opaque, Outcome, Refused},
        event::AgentEvent,
    },
    name::{id::KeyPrint, key::KeySecret, time::Now},
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        signatures::SignedLog,
    },
};
use store::{Store, testing::CrashingBackend};

/// A node that can be started anew.
struct Node {
    disk: CrashingBackend,
    store: Store,
    engine: Engine,
    now: Now,
    calls: u64,
    effects: Vec<Effect>,
}

fn identity() -> Identity {
    Identity::from_seed(&[1; 32])
}

fn mesh_secret() -> MeshSecret {
    MeshSecret::new([7; 32], identity().node_id())
}

fn open(store: &Store, now: Now) -> Engine {
    let me = identity().node_id();
    let config = Config::new(mesh_secret().mesh_id(), me);
    let summary = store.summary(me, Some(config.mesh)).unwrap();
    Engine::open(identity(), config, summary, now)
}

impl Node {
    fn new() -> Node {
        let disk = CrashingBackend::new(1);
        let store = Store::on(disk.clone()).unwrap();
        let now = Now {
            mono: Duration::from_secs(1),
            wall_ms: 1_800_000_000_000,
            wall_us: 1_800_000_000_000_000,
        };
        let engine = open(&store, now);
        let mut node = Node { disk, store, engine, now, calls: 0, effects: Vec::new() };
        node.turn();
        node
    }

    fn turn(&mut self) {
        let turn = self.engine.take_turn();
        self.store.commit(&turn.batch).unwrap();
        self.effects = turn.effects;
    }

    fn ask(&mut self, command: Command) -> Result<Outcome, Refused> {
        self.now.mono += Duration::from_millis(1);
        self.calls += 1;
        let call = CallId(self.calls);
        self.engine.handle(self.now, Input::Command { call, command });
        self.turn();
        let reply = self.effects.iter().find_map(|effect| match effect {
            Effect::Reply { call: of, result } if *of == call => Some(result.clone()),
            _ => None,
        });
        reply.unwrap()
    }

    /// The machine goes down, and comes up again.
    fn restart(self) -> Node {
        let disk = self.disk.crash(store::testing::Unsynced::Dropped);
        let store = Store::on(disk.clone()).unwrap();
        let engine = open(&store, self.now);
        let mut node = Node { disk, store, engine, effects: Vec::new(), ..self };
        node.turn();
        node
    }

    fn standing(&mut self, key: KeyPrint) -> Result<Standing, Refused> {
        match self.ask(Command::CheckKey { key, own: false })? {
            Outcome::Key(standing) => Ok(standing),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn keys_and_revocations_outlive_the_process() {
    let mut node = Node::new();
    let secret = |n: u8| KeySecret::of(&format!("{n:0>64}"));
    let key = |n| secret(n).print();
    let log = SignedLog { mesh: mesh_secret().mesh_id(), node: identity().node_id() };
    for (n, local) in [(1, false), (2, true), (3, false), (4, true)] {
        let minted = KeyMinted::sign(&secret(n), &log, KeyTerms::of(Tier::High)).unwrap();
        node.ask(Command::MintKey(NewKey { minted: Box::new(minted), local })).unwrap();
    }
    for n in [3, 4] {
        node.ask(Command::RevokeKey { key: key(n) }).unwrap();
    }
    let Ok(Outcome::Keys(before)) = node.ask(Command::ListKeys) else { panic!() };
    let mut node = node.restart();
    let told =
        node.effects.iter().filter(|it| matches!(it, Effect::Tell(AgentEvent::KeyInvalid { .. })));
    assert_eq!(told.count(), 2, "whoever was to be told may not have been");
    let Ok(Outcome::Keys(after)) = node.ask(Command::ListKeys) else { panic!() };
    assert_eq!((before.len(), &before), (4, &after));
    for n in 1..=4 {
        let expect = if n < 3 {
            Ok(Standing::Minted { tier: Tier::High, writes: true, approves: true })
        } else {
            Err(Refused::NoKey)
        };
        assert_eq!(node.standing(key(n)), expect, "{n}");
    }
}

#[test]
fn what_the_daemon_keeps_outlives_the_process() {
    let mut node = Node::new();
    let keep = |name: &[u8], value: Option<&[u8]>| Command::Keep {
        name: name.to_vec(),
        value: value.map(|value| Opaque(value.to_vec())),
    };
    node.ask(keep(b"a", Some(b"1"))).unwrap();
    node.ask(keep(b"b", Some(b"2"))).unwrap();
    node.ask(keep(b"a", None)).unwrap();
    let node = node.restart();
    assert_eq!(node.store.reader().kept(b"").unwrap(), [(b"b".to_vec(), b"2".to_vec())]);
}
