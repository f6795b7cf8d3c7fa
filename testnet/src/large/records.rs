//! The cost of many records: a start with them, their memory, and a peer that has none and gets all.
//!
//! Two real engines with real stores, in this process and by its clock: each message is encoded, decoded, verified and
//! committed at the other; large ones are verified on two threads, as nodes do it. Not measured: sockets, and that two
//! machines work at the same time.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mesh::{
    Config, Effect, Engine, Identity, Input, MeshSecret,
    limits::{BEACON_EVERY, PROFILE_RECORDS_PER_KEY_MAX, PROFILE_RECORDS_PER_NODE_MAX, TICK},
    name::{
        id::{LogId, MeshId, NodeId, RoomId},
        key::KeySecret,
        time::Now,
    },
    order::pulse::{Pulse, Rhythm},
    records::profile::{Field, ProfileUpdate},
    wire::{
        acts::{KeyAct, KeyMinted, KeyTerms, Tier},
        entry::{Body, Facts},
        message::{Message, Signed},
        record::Stamp,
        run::{Carried, Run, RunEntry, Verified},
        signatures::SignedLog,
    },
};
use store::{Store, records::Shelf};
use tempfile::TempDir;

use crate::{
    proc::{on_disk, resident},
    table,
};

/// The wall clock at the beginning. Unix milliseconds.
const EPOCH_MS: u64 = 1_800_000_000_000;
/// Bytes of a record's text.
const TEXT_BYTES: usize = 40;
/// Records in one message to the first node.
const GIVEN: usize = 1_000;
/// A peer may take so long to get all.
const FILLED_WITHIN: Duration = Duration::from_secs(600);
/// How long two that have the same are listened to.
const LISTENED: Duration = Duration::from_secs(5);

/// A start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Until the store is open and its rows are read.
    pub read: Duration,
    /// Until the engine is there.
    pub whole: Duration,
    /// Resident bytes that came with it, when the pages of the file were in memory already.
    pub memory: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Costs {
    /// How many.
    pub records: usize,
    /// Of the store's file.
    pub file: u64,
    /// A start without any.
    pub without: Start,
    /// A start with all.
    pub with: Start,
    /// Until a peer without any had all, from its connection on.
    pub filled: Duration,
    /// Messages until then, by kind: how many, and bytes.
    pub filling: BTreeMap<&'static str, (u64, u64)>,
    /// Where the time until then went, of both nodes.
    pub spent: BTreeMap<&'static str, Duration>,
    /// Messages about records while both had the same, and when they connected again.
    pub equal: [u64; 2],
}

/// Measures.
///
/// # Errors
///
/// A file that cannot be written; a peer that does not get all.
pub fn cost(records: usize, tell: &mut dyn FnMut(&str)) -> Result<Costs> {
    let mut pair = Pair::new()?;
    tell("keys are minted");
    let keys = pair.mint(records)?;
    let without = pair.restart()?;
    tell(&format!("{records} records are signed, and written"));
    pair.write(records, &keys)?;
    let with = pair.restart()?;
    let file = on_disk(pair.nodes[0].dir.path())?;
    tell("a peer that has none connects");
    let filled = pair.fill()?;
    let (filling, spent) = (std::mem::take(&mut pair.tally), std::mem::take(&mut pair.spent));
    tell("both have the same");
    pair.listen(LISTENED)?;
    let idle = pair.about_records();
    pair.connect(false)?;
    pair.tally.clear();
    pair.connect(true)?;
    pair.listen(Duration::from_secs(1))?;
    let equal = [idle, pair.about_records()];
    Ok(Costs { records, file, without, with, filled, filling, spent, equal })
}

struct Node {
    identity: Identity,
    dir: TempDir,
    store: Store,
    engine: Engine,
    pulse: Option<Pulse>,
    rhythm: Rhythm,
}

/// Two nodes, and the messages on their way.
struct Pair {
    secret: MeshSecret,
    nodes: Vec<Node>,
    began: Instant,
    ticked: Duration,
    beaten: Duration,
    connected: bool,
    /// To which node, encoded.
    under_way: VecDeque<(usize, Vec<u8>)>,
    tally: BTreeMap<&'static str, (u64, u64)>,
    spent: BTreeMap<&'static str, Duration>,
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

impl Pair {
    fn new() -> Result<Pair> {
        let secret = MeshSecret::new([7; 32], identity(1).node_id());
        let mut pair = Pair {
            secret,
            nodes: Vec::new(),
            began: Instant::now(),
            ticked: Duration::ZERO,
            beaten: Duration::ZERO,
            connected: false,
            under_way: VecDeque::new(),
            tally: BTreeMap::new(),
            spent: BTreeMap::new(),
        };
        for seed in [1, 2] {
            let dir = tempfile::tempdir()?;
            let (store, engine, _) = pair.open(&identity(seed), &dir)?;
            let (pulse, rhythm) = (None, Rhythm::default());
            pair.nodes.push(Node { identity: identity(seed), dir, store, engine, pulse, rhythm });
        }
        (0..pair.nodes.len()).try_for_each(|node| pair.turn(node))?;
        Ok(pair)
    }

    fn now(&self) -> Now {
        let mono = self.began.elapsed() + Duration::from_secs(1);
        let us = u64::try_from(mono.as_micros()).unwrap_or(u64::MAX);
        Now { mono, wall_ms: EPOCH_MS + us / 1_000, wall_us: EPOCH_MS * 1_000 + us }
    }

    fn open(&self, identity: &Identity, dir: &TempDir) -> Result<(Store, Engine, Start)> {
        let began = Instant::now();
        let mesh = self.secret.mesh_id();
        let mut store = Store::open(dir.path())?;
        store.set_wall_ms(self.now().wall_ms);
        let summary = store.summary(identity.node_id(), Some(mesh))?;
        let read = began.elapsed();
        let config = Config::new(mesh, self.secret.founder());
        let engine = Engine::open(identity.clone(), config, summary, self.now());
        let start = Start { read, whole: began.elapsed(), memory: 0 };
        Ok((store, engine, start))
    }

    /// The first node starts again on its file. Twice: the memory is that of the second engine, for which the allocator and
    /// the store's cache have grown already.
    fn restart(&mut self) -> Result<Start> {
        let node = self.nodes.remove(0);
        let Node { identity, dir, store, engine, .. } = node;
        drop((store, engine));
        let (store, engine, start) = self.open(&identity, &dir)?;
        let before = resident(std::process::id())?;
        let summary = store.summary(identity.node_id(), Some(self.secret.mesh_id()))?;
        let config = Config::new(self.secret.mesh_id(), self.secret.founder());
        let second = Engine::open(identity.clone(), config, summary, self.now());
        let memory = resident(std::process::id())?.saturating_sub(before);
        drop(second);
        let (pulse, rhythm) = (None, Rhythm::default());
        self.nodes.insert(0, Node { identity, dir, store, engine, pulse, rhythm });
        self.turn(0)?;
        Ok(Start { memory, ..start })
    }

    /// As many keys as these records need, minted at as many members.
    fn mint(&mut self, records: usize) -> Result<Vec<KeySecret>> {
        let mesh = self.secret.mesh_id();
        let at_once = PROFILE_RECORDS_PER_NODE_MAX / PROFILE_RECORDS_PER_KEY_MAX;
        let count = records.div_ceil(PROFILE_RECORDS_PER_KEY_MAX);
        let keys: Vec<KeySecret> =
            (0..count).map(|n| KeySecret::of(&format!("{n:_>32}"))).collect();
        for (seed, keys) in (100..=u8::MAX).zip(keys.chunks(at_once)) {
            let author = identity(seed);
            let log = LogId { author: author.node_id(), incarnation: 0 };
            let mut entries = Vec::new();
            for (clock, key) in (1..).zip(keys) {
                let log = SignedLog { mesh, node: author.node_id() };
                let minted = KeyMinted::sign(key, &log, KeyTerms::of(Tier::High))?;
                let body = Body::Key(KeyAct::Minted(minted));
                let (kind, visible) = (body.kind(), body.visible());
                let facts = Facts { clock, wall_ms: EPOCH_MS, kind, visible };
                entries.push(RunEntry { facts, body: Carried::Here(body.encode().into()) });
            }
            let (room, backlink, seal) = (RoomId::directory(mesh), [0; 32], [0; 64]);
            let run = Run { room, log, first: 1, backlink, entries, seal }.seal(mesh, &author);
            self.hear(0, Message::Runs(vec![run.run().clone()]))?;
        }
        Ok(keys)
    }

    fn write(&mut self, records: usize, keys: &[KeySecret]) -> Result<()> {
        let mesh = self.secret.mesh_id();
        let mut written = Vec::new();
        for n in 0..records {
            let key = keys.get(n % keys.len()).context("there is a key")?;
            let fields = vec![(Field::Name, Some("x".repeat(TEXT_BYTES)))];
            let update = ProfileUpdate { fields, cards: None };
            let drafts = update.drafts(&format!("agent {n}"), &[]).into_iter();
            let stamp = Stamp::at(self.now().wall_us);
            for draft in drafts {
                written.push(draft.sign(key, mesh, stamp)?);
            }
        }
        for part in written.chunks(GIVEN) {
            self.hear(0, Message::Records(part.to_vec()))?;
        }
        let kept = self.kept(0)?;
        ensure!(kept == records, "{kept} of {records} records are kept");
        Ok(())
    }

    /// How many records are on a node's disk.
    fn kept(&self, node: usize) -> Result<usize> {
        let summary = self.nodes[node].store.summary(self.id(node), Some(self.secret.mesh_id()))?;
        Ok(summary.records.len())
    }

    fn connect(&mut self, up: bool) -> Result<()> {
        self.connected = up;
        self.under_way.clear();
        for node in 0..self.nodes.len() {
            let other = self.id(1 - node);
            let input = if up { Input::PeerUp(other) } else { Input::PeerDown(other) };
            self.give(node, input)?;
        }
        Ok(())
    }

    fn id(&self, node: usize) -> NodeId {
        self.nodes[node].identity.node_id()
    }

    /// The second node connects, and gets all. How long it took.
    fn fill(&mut self) -> Result<Duration> {
        self.tally.clear();
        self.spent.clear();
        let began = Instant::now();
        self.connect(true)?;
        loop {
            self.step()?;
            let digests: Vec<_> =
                self.nodes.iter().map(|node| node.pulse.map(|pulse| pulse.records)).collect();
            if self.under_way.is_empty() && digests[0].is_some() && digests[0] == digests[1] {
                break;
            }
            ensure!(began.elapsed() < FILLED_WITHIN, "the peer has not got all");
        }
        let (filled, kept) = (began.elapsed(), [self.kept(0)?, self.kept(1)?]);
        ensure!(kept[0] == kept[1], "one has {}, the other {}", kept[0], kept[1]);
        Ok(filled)
    }

    fn listen(&mut self, lasts: Duration) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < lasts {
            self.step()?;
        }
        Ok(())
    }

    /// Messages about records since it was counted anew.
    fn about_records(&self) -> u64 {
        let names = ["records", "record_roots", "record_buckets", "record_heads", "want_records"];
        names.iter().filter_map(|name| self.tally.get(name)).map(|(times, _)| times).sum()
    }

    /// A message arrives, or a little time passes.
    fn step(&mut self) -> Result<()> {
        let at = self.began.elapsed();
        if at >= self.ticked + TICK {
            self.ticked = at;
            (0..self.nodes.len()).try_for_each(|node| self.give(node, Input::Timeout))?;
        }
        if at >= self.beaten + BEACON_EVERY {
            self.beaten = at;
            (0..self.nodes.len()).for_each(|node| self.beat(node));
        }
        let Some((to, bytes)) = self.under_way.pop_front() else {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            self.spend("waiting", began);
            return Ok(());
        };
        let began = Instant::now();
        let message = Message::decode(&bytes)?;
        self.spend("reading messages", began);
        self.hear(to, message)
    }

    fn beat(&mut self, node: usize) {
        let (mesh, wall_ms) = (self.secret.mesh_id(), self.now().wall_ms);
        let by = &mut self.nodes[node];
        let beat = by.pulse.and_then(|pulse| by.rhythm.beat(by.identity.node_id(), pulse, wall_ms));
        if let Some(beat) = beat {
            let message = Message::Beacon(Signed::new(mesh, &by.identity, beat.beacon));
            self.say(node, &message);
        }
    }

    fn say(&mut self, by: usize, message: &Message) {
        if self.connected {
            let bytes = message.encode();
            let (times, all) = self.tally.entry(message.traits().name).or_default();
            (*times, *all) = (*times + 1, *all + bytes.len() as u64);
            self.under_way.push_back((1 - by, bytes));
        }
    }

    fn hear(&mut self, node: usize, message: Message) -> Result<()> {
        let began = Instant::now();
        let message = verify(message, self.secret.mesh_id())?;
        self.spend("verifying", began);
        let from = self
            .nodes
            .get(1 - node)
            .map_or(identity(9).node_id(), |other| other.identity.node_id());
        self.give(node, Input::Message { from, message })
    }

    fn give(&mut self, node: usize, input: Input) -> Result<()> {
        let (now, began) = (self.now(), Instant::now());
        self.nodes[node].engine.handle(now, input);
        self.spend("engines", began);
        self.turn(node)
    }

    fn spend(&mut self, on: &'static str, began: Instant) {
        *self.spent.entry(on).or_default() += began.elapsed();
    }

    fn turn(&mut self, node: usize) -> Result<()> {
        let (by, began) = (&mut self.nodes[node], Instant::now());
        let turn = by.engine.take_turn();
        self.spend("engines", began);
        if !turn.batch.is_empty() {
            let began = Instant::now();
            self.nodes[node].store.commit(&turn.batch)?;
            self.spend("committing", began);
        }
        turn.effects.into_iter().try_for_each(|effect| self.perform(node, effect))
    }

    /// Performs the effects that other nodes hear. Only the two are there.
    fn perform(&mut self, node: usize, effect: Effect) -> Result<()> {
        let reader = self.nodes[node].store.reader();
        if let Effect::Pulse(pulse) = effect {
            self.nodes[node].pulse = Some(pulse);
        } else if let Effect::Broadcast { message, .. } | Effect::Send { message, .. } = effect {
            self.say(node, &message);
        } else if let Effect::SendSpans { room, spans, .. } = effect {
            self.say(node, &reader.answer_spans(room, &spans)?);
        } else if let Effect::SendBodies { room, at, .. } = effect {
            self.say(node, &reader.answer_bodies(room, &at)?);
        } else if let Effect::SendRecords { space, collection, keys, .. } = effect {
            let shelf = Shelf { mesh: self.secret.mesh_id(), space, collection };
            let began = Instant::now();
            let answer = store::records::answer(&reader, &shelf, &keys)?;
            self.spend("reading records for a peer", began);
            self.say(node, &answer);
        }
        Ok(())
    }
}

/// On two threads, as a node's intake does it.
fn verify(message: Message<Run>, mesh: MeshId) -> Result<Message<Verified>> {
    let (first, second) = message.halves();
    let Some(second) = second else { return Ok(first.verify(mesh)?) };
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(move || second.verify(mesh));
        (first.verify(mesh), second.join())
    });
    let second = second.ok().context("a thread has panicked")?;
    first?.with_half(second?).context("they are of one message")
}

impl Costs {
    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1_000.0);
        let more = self.with.memory.saturating_sub(self.without.memory);
        let mut rows = vec![
            ("records".to_owned(), self.records.to_string()),
            ("file".to_owned(), mib(self.file)),
            (
                "start without any: file read, engine there".to_owned(),
                format!("{}, {}", ms(self.without.read), ms(self.without.whole)),
            ),
            (
                "start with all: file read, engine there".to_owned(),
                format!("{}, {}", ms(self.with.read), ms(self.with.whole)),
            ),
            ("memory of the engine, more than without".to_owned(), mib(more)),
            ("… a record, bytes".to_owned(), format!("{:.0}", more as f64 / self.records as f64)),
            ("a peer without any has all after".to_owned(), ms(self.filled)),
        ];
        for (name, (times, bytes)) in &self.filling {
            rows.push((format!("… {name}"), format!("{times}, {}", mib(*bytes))));
        }
        rows.extend(self.spent.iter().map(|(on, time)| (format!("… {on}"), ms(*time))));
        rows.push((
            "messages about records in 5 s, both have the same".to_owned(),
            self.equal[0].to_string(),
        ));
        rows.push(("… when they connect again".to_owned(), self.equal[1].to_string()));
        table::columns(
            &rows.into_iter().map(|(title, value)| vec![title, value]).collect::<Vec<_>>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::cost;

    #[test]
    fn a_peer_gets_all_and_equal_sets_cost_one_message() {
        let costs = cost(5_000, &mut |_| {}).expect("it can be measured");
        assert_eq!(costs.records, 5_000);
        assert!(costs.filling["records"].0 >= 5, "{costs:?}");
        assert_eq!(costs.equal, [0, 1], "{costs:?}");
    }
}
