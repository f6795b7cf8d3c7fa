//! Threads, sparks, shared state and scores, from a room's LANTERN messages.

use std::collections::{BTreeMap, BTreeSet};

use client::sealing::MARK;
use protocol::object::Message;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::lantern::calibration::{Score, scores};
use crate::lantern::numbers::Numbers;
use crate::lantern::record::{ENTRY_BYTES, Keep, Participant, Record};
use crate::lantern::thread::Thread;
use crate::limits::JOURNAL_BYTES_MAX;
use ::lantern::heard::Heard;
use ::lantern::verb::Verb;

/// The room's LANTERN messages are more than fit into [`JOURNAL_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the room has more LANTERN messages than fit into memory")]
pub struct TooMuch;

/// The LANTERN messages of a room, each once, in the order of their lowest numbers: at all nodes the same.
#[derive(Debug)]
pub struct Journal {
    keep: Keep,
    numbers: Numbers,
    records: BTreeMap<u64, Record>,
    participants: BTreeMap<String, Participant>,
    /// Those that are encrypted and did not open.
    closed: BTreeSet<u64>,
    bytes: usize,
    bytes_max: usize,
}

/// An addition to the shared state.
#[derive(Debug, Clone, Serialize)]
pub struct Delta {
    /// The number of the FUSE.
    pub seq: u64,
    /// Its thread.
    pub thread: u64,
    /// Whose it is.
    pub from: String,
    /// Any JSON but `null`.
    pub delta: Box<RawValue>,
}

/// An idea and its fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spark {
    /// Its number.
    pub seq: u64,
    /// Whose it is.
    pub from: String,
    /// The idea.
    pub seed: String,
    /// Its fate.
    #[serde(flatten)]
    pub fate: Fate,
}

/// The fate of an idea. Of several messages that say so the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Fate {
    /// Nothing yet.
    Open,
    /// Something.
    Harvested {
        /// The number of the message that says so.
        by: u64,
        /// The fruit.
        #[serde(skip_serializing_if = "Option::is_none")]
        becomes: Option<String>,
    },
    /// Nothing.
    Buried {
        /// The number of the message that says so.
        by: u64,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Journal {
    /// Nothing yet.
    pub fn new(keep: Keep) -> Self {
        Self::within(keep, JOURNAL_BYTES_MAX)
    }

    /// With another bound.
    pub(crate) fn within(keep: Keep, bytes_max: usize) -> Self {
        Self {
            keep,
            numbers: Numbers::default(),
            records: BTreeMap::new(),
            participants: BTreeMap::new(),
            closed: BTreeSet::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Takes the next message of the room's history, of any kind.
    ///
    /// # Errors
    /// [`TooMuch`]: from now on the journal is incomplete.
    pub fn add(&mut self, message: &Message) -> Result<(), TooMuch> {
        let aliases = self.numbers.aliases();
        for known_as in self.numbers.learn(message) {
            if let Some(record) = self.records.remove(&known_as) {
                let lowest = self.numbers.lowest(known_as);
                self.records.entry(lowest).or_insert(record);
            }
        }
        self.count((self.numbers.aliases() - aliases) * ENTRY_BYTES);
        let lowest = self.numbers.lowest(message.seq);
        if message.content.starts_with(MARK) {
            if tag(message, "kind").as_deref() == Some("lantern") && self.closed.insert(lowest) {
                self.count(ENTRY_BYTES);
            }
        } else if !self.records.contains_key(&lowest) {
            match Heard::read(&message.content) {
                Some(heard) if is_chat(message) => self.hear(lowest, message.seq, heard),
                Some(_) | None => {}
            }
        }
        if self.bytes > self.bytes_max { Err(TooMuch) } else { Ok(()) }
    }

    fn hear(&mut self, lowest: u64, seq: u64, heard: Heard) {
        match heard {
            Heard::Hello(hello) => {
                let participant = Participant::of(hello, seq, lowest);
                let known = self.participants.get(&participant.agent_name);
                if known.is_none_or(|known| known.lowest < lowest) {
                    self.count(participant.bytes());
                    self.participants.insert(participant.agent_name.clone(), participant);
                }
            }
            Heard::Said(said) => {
                let record = Record::of(&said, self.keep);
                self.count(record.bytes());
                self.records.insert(lowest, record);
            }
        }
    }

    fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Which numbers are one message's.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// LANTERN messages that are encrypted and did not open: the room key is missing, or another.
    pub fn closed(&self) -> usize {
        self.closed.len()
    }

    /// Agents that introduced themselves, by name.
    pub fn participants(&self) -> impl Iterator<Item = &Participant> {
        self.participants.values()
    }

    /// All threads, in the order in which they were opened.
    pub fn threads(&self) -> Vec<Thread> {
        let threads = self.by_thread();
        threads.iter().map(|(id, of)| Thread::of(*id, of, &self.numbers)).collect()
    }

    /// The messages of a thread, by their lowest numbers; none if there is no such thread.
    pub fn messages_of(&self, thread: u64) -> BTreeSet<u64> {
        let thread = self.numbers.lowest(thread);
        let of = self.records.iter().filter(|(at, record)| self.thread_of(**at, record) == thread);
        of.map(|(at, _)| *at).collect()
    }

    /// The thread in which a message stands, as people here know it.
    pub fn thread_with(&self, message: u64) -> Option<u64> {
        let at = self.numbers.lowest(message);
        let record = self.records.get(&at)?;
        Some(self.numbers.shown(self.thread_of(at, record)))
    }

    /// All additions to the shared state, in the order of the FUSEs.
    pub fn shared_state(&self) -> Vec<Delta> {
        let deltas = self.records.iter().filter_map(|(at, record)| {
            Some(Delta {
                seq: self.numbers.shown(*at),
                thread: self.numbers.shown(self.thread_of(*at, record)),
                from: record.from.clone(),
                delta: record.delta.clone()?,
            })
        });
        deltas.collect()
    }

    /// Ideas and their fates.
    pub fn sparks(&self) -> Vec<Spark> {
        let mut sparks: BTreeMap<u64, Spark> = BTreeMap::new();
        for (at, record) in self.records.iter().filter(|(_, record)| record.verb == Verb::Spark) {
            let seed = record.text.clone().unwrap_or_default();
            let seq = self.numbers.shown(*at);
            sparks.insert(*at, Spark { seq, from: record.from.clone(), seed, fate: Fate::Open });
        }
        for (at, record) in &self.records {
            let spark = record.spark.map(|spark| self.numbers.lowest(spark));
            let Some(spark) = spark.and_then(|spark| sparks.get_mut(&spark)) else { continue };
            let (by, text) = (self.numbers.shown(*at), record.text.clone());
            spark.fate = if record.verb == Verb::Harvest {
                Fate::Harvested { by, becomes: text }
            } else {
                Fate::Buried { by, reason: text }
            };
        }
        sparks.into_values().collect()
    }

    /// Whether the next FUSE of the room is to look back: every third one leads to it.
    pub fn is_refraction_due(&self) -> bool {
        let fuses = self.records.values().filter(|record| record.verb == Verb::Fuse).count();
        fuses > 0 && fuses.is_multiple_of(FUSES_TO_REFRACTION)
    }

    /// How well each agent's confidence was placed, best first.
    pub fn calibration(&self) -> Vec<Score> {
        scores(&self.by_thread(), &self.numbers)
    }

    fn by_thread(&self) -> BTreeMap<u64, Vec<(u64, &Record)>> {
        let mut threads: BTreeMap<u64, Vec<(u64, &Record)>> = BTreeMap::new();
        for (at, record) in &self.records {
            threads.entry(self.thread_of(*at, record)).or_default().push((*at, record));
        }
        threads
    }

    /// By the lowest number.
    fn thread_of(&self, at: u64, record: &Record) -> u64 {
        record.thread.map_or(at, |thread| self.numbers.lowest(thread))
    }
}

/// After so many FUSEs the next one is REFRACTION-due.
const FUSES_TO_REFRACTION: usize = 3;

/// Thoughts and decisions are no chat messages, even with an envelope as content.
fn is_chat(message: &Message) -> bool {
    !matches!(tag(message, "type").as_deref(), Some("thinking" | "decision"))
}

/// A text at the top of the metadata.
fn tag(message: &Message, name: &str) -> Option<String> {
    message.metadata.as_ref()?.text(name)
}
