//! Entries of any content that a member of the mesh signs: an engine takes them or leaves them, says the same after
//! a second look, and still serves its own agents.
//!
//! The bytes are a list of entries: author and room, kind, step of the clock, length (two bytes), body.
#![no_main]

use std::{collections::BTreeMap, time::Duration};

use libfuzzer_sys::fuzz_target;
use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    api::{
        batch::Summary,
        command::{Attach, CallId, Caller, Command, Encryption, Outcome, Say, Speech},
    },
    name::{
        id::{KeyPrint, LogId, RoomId},
        time::Now,
    },
    wire::{
        entry::Facts,
        message::Message,
        run::{Carried, Run, RunEntry},
    },
};

/// Those of them that the directory or a room gives numbers.
const VISIBLE: [u8; 5] = [1, 2, 3, 33, 34];

struct Node {
    engine: Engine,
    now: Now,
    calls: u64,
    outcome: Option<Outcome>,
}

impl Node {
    fn give(&mut self, input: Input) {
        self.now.mono += Duration::from_millis(1);
        self.now.wall_ms += 1;
        self.now.wall_us += 1_000;
        self.engine.handle(self.now, input);
        let turn = self.engine.take_turn();
        for effect in turn.effects {
            if let Effect::Reply { result, .. } = effect {
                self.outcome = result.ok();
            }
        }
    }

    fn ask(&mut self, command: Command) -> Option<Outcome> {
        self.calls += 1;
        self.outcome = None;
        self.give(Input::Command { call: CallId(self.calls), command });
        self.outcome.take()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let me = Identity::from_seed(&[1; 32]);
    let authors = [2, 3, 4].map(|seed| Identity::from_seed(&[seed; 32]));
    let secret = MeshSecret::new([7; 32], me.node_id());
    let mesh = secret.mesh_id();
    let rooms = [RoomId::lobby(mesh), RoomId::directory(mesh)];
    let wall_ms = 1_800_000_000_000;
    let now = Now { mono: Duration::from_secs(1), wall_ms, wall_us: wall_ms * 1_000 };
    let config = Config::new(mesh, me.node_id());
    let engine = Engine::open(me, config, Summary::default(), now);
    let mut node = Node { engine, now, calls: 0, outcome: None };
    let from = authors[0].node_id();
    node.give(Input::PeerUp(from));

    let mut tails: BTreeMap<(usize, usize), (u64, [u8; 32], u64)> = BTreeMap::new();
    let mut rest = bytes;
    while let [whose, kind, step, high, low, more @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (body, after) = more.split_at(len);
        rest = after;
        let (author, place) = (usize::from(whose % 3), usize::from(whose / 3 % 2));
        let (seq, hash, clock) = tails.get(&(author, place)).copied().unwrap_or_default();
        let clock = clock + 1 + u64::from(*step);
        let facts = Facts { clock, wall_ms, kind: *kind, visible: VISIBLE.contains(kind) };
        let run = Run {
            room: rooms[place],
            log: LogId { author: authors[author].node_id(), incarnation: 0 },
            first: seq + 1,
            backlink: hash,
            entries: vec![RunEntry { facts, body: Carried::Here(body.to_vec().into()) }],
            seal: [0; 64],
        };
        let sealed = run.seal(mesh, &authors[author]);
        tails.insert((author, place), (seq + 1, sealed.certificate().hash, clock));
        node.give(Input::Message { from, message: Message::Runs(vec![sealed]) });
    }
    node.now.mono += Duration::from_secs(20);
    node.give(Input::Timeout);

    let key = KeyPrint([1; 16]);
    let attach = Attach {
        agent: "me".into(),
        stable: false,
        reconnect: false,
        key,
        own: true,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: "me".to_owned(),
        capabilities: Vec::new(),
    };
    let Some(Outcome::Attached(attached)) = node.ask(Command::Attach(attach)) else {
        panic!("refused")
    };
    let caller = Caller { agent: "me".into(), key, registration: attached.registration };
    let join = Command::Join { caller: caller.clone(), room: rooms[0] };
    node.ask(join).expect("the lobby is everybody's");
    let say = Say {
        room: rooms[0],
        speech: Speech::Chat,
        content: "hello".to_owned(),
        encryption: Encryption::None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    };
    // Entries of others may have moved the room into another era, whose sequencer is silent: then it takes its time.
    if node.ask(Command::Say { caller: caller.clone(), say }).is_none() {
        for _ in 0..100 {
            node.now.mono += Duration::from_millis(100);
            node.give(Input::Timeout);
        }
        assert!(matches!(node.outcome, Some(Outcome::Said(_))), "nobody gives numbers any more");
    }
    node.ask(Command::ListVotes { by: key.into(), room: rooms[0], limit: 50 });
    node.ask(Command::ListTasks { by: key.into(), room: rooms[0], status: None });
});
