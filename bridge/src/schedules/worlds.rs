//! Worlds for the decision which node of a key fires: books of several nodes, runs that take their time between these, a lease
//! that is granted by one of them, and nodes that die and come back. A world is made of its seed alone.
//!
//! *calm*: where nothing fails, each slot of each job is fired once. *death*: over deaths a slot is fired twice only if the
//! second node could not have heard of the first run; and a slot that comes when all have been up for a while is fired.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    name::id::{JobId, KeyPrint, LogId, MessageId, NodeId, RoomId},
    wire::record::RecordId,
};
use tokio::time::Instant;

use super::{
    book::{Book, Entry, Now, Turn, millis, rank_of},
    job::{Job, Run, Status, tests::job},
    plan::Plan,
};
use crate::{
    limits::{SCHEDULE_ASKS_WITHIN, SCHEDULE_GRACE, SCHEDULE_LEASE, SCHEDULE_SETTLES},
    secret::Secret,
};

/// A world begins at this time of its clock.
const BEGINS_MS: u64 = 1_800_000_000_000;
const LASTS_MS: u64 = 10 * 60_000;
const STEP_MS: u64 = 50;
const KEY: KeyPrint = KeyPrint([7; 16]);
/// Another node grants leases so long after the one that did is gone.
const TAKEOVER_MS: u64 = 3_000;

struct Dice(u64);

impl Dice {
    fn within(&mut self, low: u64, high: u64) -> u64 {
        // xorshift64*: any sequence does that differs for each seed.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        low + self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % (high - low + 1)
    }
}

struct Node {
    id: NodeId,
    book: Book,
    is_up: bool,
    /// Its clock is ahead by so much.
    ahead_ms: u64,
    asks_until_ms: u64,
    renews_at_ms: u64,
}

/// A thing that is on its way.
#[derive(Clone, Debug)]
enum Way {
    Run { to: usize, run: Run },
    Ask { by: usize, asked_ms: u64, renews: Option<MessageId> },
    Answer { to: usize, asked_ms: u64, granted: Option<MessageId> },
}

/// The lease, as the node that grants it knows it: the same at the next one.
#[derive(Default)]
struct Lease {
    holder: Option<(usize, MessageId, u64)>,
    granted: u64,
    /// Nobody answers before.
    from_ms: u64,
}

struct World {
    dice: Dice,
    mono: Instant,
    now_ms: u64,
    nodes: Vec<Node>,
    jobs: Vec<Job>,
    lease: Lease,
    /// In the order of arrival.
    ways: BTreeMap<(u64, u64), Way>,
    sent: u64,
    /// Who has fired a slot, when, and which nodes have heard of that.
    fired: BTreeMap<(JobId, u64), Vec<Fired>>,
    broken: Vec<String>,
}

struct Fired {
    by: usize,
    heard: BTreeSet<usize>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let count = dice.within(2, 4);
        let ids: Vec<NodeId> =
            (0..count).map(|_| NodeId([(); 32].map(|()| dice.within(0, 255) as u8))).collect();
        // Some so long that the lease runs out between two slots.
        let every = [5_000, 17_000, 61_000, 100_000, 145_000];
        let jobs = (0..dice.within(1, 3)).map(|nth| {
            let every = every[dice.within(0, 4) as usize];
            Job {
                id: JobId([nth as u8 + 1; 16]),
                plan: Plan::every(every).unwrap(),
                home: ids[dice.within(0, count - 1) as usize],
                from_ms: BEGINS_MS,
                ..job(Plan::every(every).unwrap())
            }
        });
        let jobs: Vec<Job> = jobs.collect();
        let nodes = ids.iter().map(|id| Node {
            id: *id,
            book: book_of(&jobs, 0),
            is_up: true,
            ahead_ms: dice.within(0, 1_000),
            asks_until_ms: 0,
            renews_at_ms: 0,
        });
        let nodes = nodes.collect();
        World {
            dice,
            mono: Instant::now(),
            now_ms: BEGINS_MS,
            nodes,
            jobs,
            lease: Lease::default(),
            ways: BTreeMap::new(),
            sent: 0,
            fired: BTreeMap::new(),
            broken: Vec::new(),
        }
    }

    fn now_of(&self, node: usize) -> Now {
        let passed = Duration::from_millis(self.now_ms - BEGINS_MS);
        Now { ms: self.now_ms + self.nodes[node].ahead_ms, mono: self.mono + passed }
    }

    fn mono_at(&self, ms: u64) -> Instant {
        self.mono + Duration::from_millis(ms - BEGINS_MS)
    }

    fn send(&mut self, way: Way) {
        let at_ms = self.now_ms + self.dice.within(5, 400);
        self.sent += 1;
        self.ways.insert((at_ms, self.sent), way);
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        while let Some(first) = self.ways.first_entry().filter(|it| it.key().0 <= self.now_ms) {
            let way = first.remove();
            self.arrives(way);
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_up {
                self.looks(node);
            }
        }
    }

    fn arrives(&mut self, way: Way) {
        match way {
            Way::Run { to, run } if self.nodes[to].is_up => {
                let me = self.nodes[to].id;
                if let Some(entry) = self.nodes[to].book.entries.get_mut(&run.job) {
                    entry.note(&run, me);
                }
                self.hears(to, &run);
            }
            Way::Ask { by, asked_ms, renews } => {
                if self.now_ms < self.lease.from_ms {
                    return;
                }
                let until_ms = self.now_ms + millis(SCHEDULE_LEASE);
                let is_free =
                    self.lease.holder.is_none_or(|(.., until_ms)| until_ms <= self.now_ms);
                let is_own = self
                    .lease
                    .holder
                    .is_some_and(|(holder, grant, _)| holder == by && renews == Some(grant));
                let granted = if is_own && !is_free {
                    renews
                } else if is_free {
                    self.lease.granted += 1;
                    let log = LogId { author: self.nodes[by].id, incarnation: 0 };
                    Some(MessageId::new(RoomId([1; 16]), log, self.lease.granted))
                } else {
                    None
                };
                if let Some(grant) = granted {
                    self.lease.holder = Some((by, grant, until_ms));
                }
                self.send(Way::Answer { to: by, asked_ms, granted });
            }
            Way::Answer { to, asked_ms, granted } if self.nodes[to].is_up => {
                let (now, asked) = (self.now_of(to), self.mono_at(asked_ms));
                // One that has started anew waits for no answer.
                if self.nodes[to].book.asking {
                    self.nodes[to].book.answered(granted, asked, now);
                }
            }
            Way::Run { .. } | Way::Answer { .. } => {}
        }
    }

    fn hears(&mut self, node: usize, run: &Run) {
        let slot = (run.job, run.slot_ms().unwrap());
        if let Some(fired) = self.fired.get_mut(&slot) {
            for one in fired.iter_mut().filter(|one| self.nodes[one.by].id == run.node) {
                one.heard.insert(node);
            }
        }
    }

    fn looks(&mut self, node: usize) {
        let now = self.now_of(node);
        let me = (self.nodes[node].id, rank_of(self.nodes[node].id, KEY));
        if self.nodes[node].book.asking && now.ms > self.nodes[node].asks_until_ms {
            self.nodes[node].book.unanswered(now);
        }
        for nth in 0..self.jobs.len() {
            let job = self.jobs[nth].id;
            let book = &self.nodes[node].book;
            match book.turn(&book.entries[&job], me, now) {
                Turn::Later(_) => {}
                Turn::AskLease => self.asks(node),
                Turn::Fire => self.fires(node, job),
            }
        }
        if now.ms >= self.nodes[node].renews_at_ms {
            self.nodes[node].renews_at_ms = now.ms + millis(SCHEDULE_LEASE) / 2;
            if self.nodes[node].book.renews(now) {
                self.asks(node);
            }
        }
    }

    fn asks(&mut self, by: usize) {
        let now = self.now_of(by);
        let node = &mut self.nodes[by];
        if node.book.asking {
            return;
        }
        node.book.asking = true;
        node.asks_until_ms = now.ms + millis(SCHEDULE_ASKS_WITHIN);
        let renews = node.book.grant;
        self.send(Way::Ask { by, asked_ms: self.now_ms, renews });
    }

    fn fires(&mut self, by: usize, job: JobId) {
        let (now, me) = (self.now_of(by), self.nodes[by].id);
        let entry = self.nodes[by].book.entries.get_mut(&job).unwrap();
        let due = entry.due(now.ms);
        let slots = [(due.missed, Status::Missed), (due.fires, Status::Running)];
        for (slot_ms, status) in slots {
            let Some(slot_ms) = slot_ms else { continue };
            let entry = self.nodes[by].book.entries.get_mut(&job).unwrap();
            let run = Run {
                job,
                node: me,
                place: entry.take_place(now.ms),
                slot: slot_ms.to_string(),
                at_ms: now.ms,
                status,
                error: None,
                summary: None,
                took_ms: None,
                tokens: None,
            };
            entry.note(&run, me);
            if status == Status::Running {
                self.is_once(by, job, slot_ms);
            }
            for to in (0..self.nodes.len()).filter(|to| *to != by) {
                self.send(Way::Run { to, run: run.clone() });
            }
        }
    }

    fn is_once(&mut self, by: usize, job: JobId, slot_ms: u64) {
        let fired = self.fired.entry((job, slot_ms)).or_default();
        if let Some(again) = fired.iter().find(|one| one.by == by || one.heard.contains(&by)) {
            let text = format!("slot {slot_ms} of {job:?} by {by} after {}", again.by);
            self.broken.push(text);
        }
        fired.push(Fired { by, heard: BTreeSet::from([by]) });
    }

    fn dies(&mut self, node: usize) {
        self.nodes[node].is_up = false;
        // It may have been the one that grants leases.
        if self.dice.within(0, 1) == 0 {
            self.lease.from_ms = self.now_ms + TAKEOVER_MS;
        }
    }

    /// A node starts anew: it reads all runs that it has, and gets the others' soon.
    fn comes(&mut self, node: usize) {
        let settles_ms = self.now_of(node).ms + millis(SCHEDULE_SETTLES);
        let all: Vec<(JobId, u64, NodeId)> = self
            .fired
            .iter()
            .flat_map(|((job, slot_ms), fired)| fired.iter().map(|one| (*job, *slot_ms, one.by)))
            .map(|(job, slot_ms, by)| (job, slot_ms, self.nodes[by].id))
            .collect();
        self.nodes[node].book = book_of(&self.jobs, settles_ms);
        self.nodes[node].is_up = true;
        self.nodes[node].renews_at_ms = 0;
        for (job, slot_ms, by) in all {
            let run = Run {
                job,
                node: by,
                place: 0,
                slot: slot_ms.to_string(),
                at_ms: slot_ms,
                status: Status::Done,
                error: None,
                summary: None,
                took_ms: None,
                tokens: None,
            };
            self.send(Way::Run { to: node, run });
        }
    }

    /// The slots of all jobs between two times that nobody has fired.
    fn unfired(&self, from_ms: u64, until_ms: u64) -> Vec<(JobId, u64)> {
        let mut unfired = Vec::new();
        for job in &self.jobs {
            let mut after_ms = from_ms;
            while let Some(slot_ms) =
                job.plan.next(job.from_ms, after_ms).filter(|next| *next < until_ms)
            {
                if !self.fired.contains_key(&(job.id, slot_ms)) {
                    unfired.push((job.id, slot_ms));
                }
                after_ms = slot_ms;
            }
        }
        unfired
    }
}

fn book_of(jobs: &[Job], settles_ms: u64) -> Book {
    let mut book = Book::new(Secret::new("k"), false, false);
    for job in jobs {
        let record = RecordId([job.id.0[0]; 16]);
        book.put(Entry::new(job.clone(), record, settles_ms));
    }
    book
}

#[tokio::test]
async fn in_calm_weather_each_slot_is_fired_once() {
    for seed in 1..=60 {
        let mut world = World::new(seed);
        while world.now_ms < BEGINS_MS + LASTS_MS {
            world.step();
        }
        assert_eq!(world.broken, Vec::<String>::new(), "seed {seed}");
        let twice = world.fired.iter().filter(|(_, fired)| fired.len() != 1);
        assert_eq!(twice.count(), 0, "seed {seed}");
        // What was due in the last moments may be on its way.
        let until_ms = BEGINS_MS + LASTS_MS - millis(SCHEDULE_GRACE) - 10_000;
        assert_eq!(world.unfired(BEGINS_MS, until_ms), Vec::new(), "seed {seed}");
    }
}

#[tokio::test]
async fn over_deaths_a_slot_is_fired_twice_only_by_a_node_that_could_not_know() {
    let mut deaths = 0;
    for seed in 1_000..=1_120 {
        let mut world = World::new(seed);
        let mut calm_from_ms = BEGINS_MS;
        while world.now_ms < BEGINS_MS + LASTS_MS {
            world.step();
            let is_late = world.now_ms > BEGINS_MS + LASTS_MS / 2;
            if !is_late && world.dice.within(0, 400) == 0 {
                let node = world.dice.within(0, world.nodes.len() as u64 - 1) as usize;
                if world.nodes[node].is_up {
                    world.dies(node);
                    deaths += 1;
                } else {
                    world.comes(node);
                }
            }
            if is_late && calm_from_ms == BEGINS_MS {
                // In every other world the dead stay dead, and the others see to their jobs.
                let stay = seed % 2 == 0 && world.nodes.iter().any(|node| node.is_up);
                for node in 0..world.nodes.len() {
                    if !stay && !world.nodes[node].is_up {
                        world.comes(node);
                    }
                }
                // The lease of a node that died runs out, and the others wait for their ranks.
                calm_from_ms = world.now_ms + millis(SCHEDULE_LEASE) + 60_000;
            }
        }
        assert_eq!(world.broken, Vec::<String>::new(), "seed {seed}");
        let until_ms = BEGINS_MS + LASTS_MS - millis(SCHEDULE_GRACE) - 10_000;
        assert_eq!(world.unfired(calm_from_ms, until_ms), Vec::new(), "seed {seed}");
        for ((job, slot_ms), fired) in world.fired.iter().filter(|(_, fired)| fired.len() > 1) {
            let is_calm = *slot_ms >= calm_from_ms;
            assert!(!is_calm, "seed {seed}: {slot_ms} of {job:?} {} times", fired.len());
        }
    }
    assert!(deaths > 200, "{deaths} deaths");
}
