//! Records of any time and content that three keys sign, and anything that peers say when they compare: two engines that
//! have heard different parts of it keep the same once they compare with each other, in memory and on the disk.
//!
//! The bytes are a list: who hears it (2 bits), which key (2 bits) and of which thing (4 bits), stamp (two bytes), length, content.
//! The last ones to hear are given the content as the bytes of a message instead.
#![no_main]

use std::{collections::BTreeMap, time::Duration};

use libfuzzer_sys::fuzz_target;
use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    api::{
        agenda::NewKey,
        batch::{Change, Summary},
        command::{CallId, Command},
    },
    name::{
        id::{MeshId, NodeId},
        key::KeySecret,
        time::Now,
    },
    records::profile::{Field, ProfileUpdate},
    wire::{
        acts::{KeyMinted, Tier},
        message::{Beacon, Message, Signed},
        record::{CollectionNumber, Record, RecordKey, Stamp},
        run::Verified,
        signatures::SignedLog,
    },
};

struct Node {
    id: NodeId,
    engine: Engine,
    rows: BTreeMap<(CollectionNumber, RecordKey), Record>,
    digest: [u8; 16],
    boot: u64,
    said: Vec<Message>,
}

const START_MS: u64 = 1_800_000_000_000;

impl Node {
    fn new(seed: u8, secret: &MeshSecret, now: Now) -> Node {
        let identity = Identity::from_seed(&[seed; 32]);
        let id = identity.node_id();
        let config = Config { seed: seed.into(), ..Config::new(secret.mesh_id(), secret.founder()) };
        let engine = Engine::open(identity, config, Summary::default(), now);
        let mut node = Node { id, engine, rows: BTreeMap::new(), digest: [0; 16], boot: 0, said: Vec::new() };
        node.turn();
        node
    }

    fn give(&mut self, now: Now, input: Input) {
        self.engine.handle(now, input);
        self.turn();
    }

    fn turn(&mut self) {
        let turn = self.engine.take_turn();
        for change in turn.batch {
            if let Change::Record { collection, key, record, .. } = change {
                match record {
                    Some(record) => drop(self.rows.insert((collection, key), Record::clone(&record))),
                    None => drop(self.rows.remove(&(collection, key))),
                }
            }
        }
        for effect in turn.effects {
            match effect {
                Effect::Send { message, .. } | Effect::Broadcast { message, .. } => self.said.push(message),
                Effect::SendRecords { collection, keys, .. } => {
                    let records = keys.iter().filter_map(|key| self.rows.get(&(collection, *key)).cloned());
                    self.said.push(Message::Records(records.collect()));
                }
                Effect::Pulse(pulse) => (self.digest, self.boot) = (pulse.records, pulse.boot),
                _ => {}
            }
        }
    }
}

fn heard(message: Message, mesh: MeshId) -> Option<Message<Verified>> {
    let message = Message::decode(&message.encode()).expect("it is what was written");
    message.verify(mesh).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let founder = Identity::from_seed(&[1; 32]).node_id();
    let secret = MeshSecret::new([7; 32], founder);
    let mesh = secret.mesh_id();
    let mut now = Now { mono: Duration::from_secs(1), wall_ms: START_MS, wall_us: START_MS * 1_000 };
    let mut nodes = [1, 2].map(|seed| Node::new(seed, &secret, now));
    let keys = [1, 2, 3].map(|n| KeySecret::of(&format!("{n:0>32}")));
    for (nth, key) in keys.iter().enumerate() {
        let log = SignedLog { mesh, node: founder };
        let minted = KeyMinted::sign(key, &log, Tier::Low, None).expect("it is long enough");
        let command = Command::MintKey(NewKey { minted, local: false });
        nodes[0].give(now, Input::Command { call: CallId(nth as u64), command });
    }
    for message in std::mem::take(&mut nodes[0].said) {
        let message = heard(message, mesh).expect("an honest node says it");
        nodes[1].give(now, Input::Message { from: founder, message });
    }

    let stranger = Identity::from_seed(&[9; 32]).node_id();
    let mut rest = bytes;
    while let [what, high, low, len, more @ ..] = rest {
        let (content, after) = more.split_at(usize::from(*len).min(more.len()));
        rest = after;
        let (hears, key, thing) = (what & 3, usize::from(what >> 2 & 3), what >> 4);
        let message = if hears == 3 {
            Message::decode(content).ok()
        } else {
            let text = String::from_utf8_lossy(content).into_owned();
            let text = (!text.is_empty()).then_some(text);
            let update = ProfileUpdate { fields: vec![(Field::Name, text)], cards: None };
            let draft = update.drafts(&thing.to_string(), &[]).remove(0);
            let stamp = Stamp::at((START_MS * 1_000) + u64::from(u16::from_be_bytes([*high, *low])) * 4_000_000);
            let record = draft.sign(&keys[key % 3], mesh, stamp).expect("it is long enough");
            Some(Message::Records(vec![record]))
        };
        let Some(message) = message.and_then(|message| message.verify(mesh).ok()) else { continue };
        for (nth, node) in (0..).zip(&mut nodes) {
            if hears >= 2 || hears == nth {
                node.give(now, Input::Message { from: stranger, message: message.clone() });
            }
        }
    }
    nodes.iter_mut().for_each(|node| node.said.clear());

    let ids = [nodes[0].id, nodes[1].id];
    for (nth, node) in nodes.iter_mut().enumerate() {
        node.give(now, Input::PeerUp(ids[1 - nth]));
    }
    for tick in 1..400 {
        for from in 0..2 {
            let Node { id, digest, boot, .. } = nodes[from];
            let value = Beacon { node: id, boot, tick, roster: 0, digest: 0, records: digest, wall_ms: 0 };
            let beacon = Message::Beacon(Signed { value, signature: [0; 64] });
            let mut said = std::mem::take(&mut nodes[from].said);
            said.push(beacon);
            for message in said {
                let message = message.verify_from(ids[from], mesh).expect("an honest node says it");
                nodes[1 - from].give(now, Input::Message { from: ids[from], message });
            }
        }
        now.mono += Duration::from_millis(100);
        now.wall_ms += 100;
        now.wall_us += 100_000;
        nodes.iter_mut().for_each(|node| node.give(now, Input::Timeout));
        if nodes[0].digest == nodes[1].digest && nodes.iter().all(|node| node.said.is_empty()) {
            break;
        }
    }
    assert_eq!(nodes[0].digest, nodes[1].digest, "they never come to keep the same");
    let heads = |node: &Node| -> Vec<_> { node.rows.values().map(|record| record.head(mesh)).collect() };
    assert_eq!(heads(&nodes[0]), heads(&nodes[1]));
});
