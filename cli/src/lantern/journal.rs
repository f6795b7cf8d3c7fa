//! What a room's LANTERN messages come to.

use std::collections::{BTreeMap, BTreeSet};

use client::sealing::MARK;
use protocol::object::Message;
use protocol::value::Metadata;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::lantern::calibration::{Score, scores};
use crate::lantern::heard::{Heard, Introduction, Said};
use crate::lantern::numbers::Numbers;
use crate::lantern::thread::Thread;
use crate::lantern::verb::{Basis, Verb};
use crate::limits::{
    HEADLINE_CHARS_MAX, HELLO_CAPABILITIES_MAX, JOURNAL_BYTES_MAX, NAME_CHARS_MAX,
};

/// What is kept of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// What lists and scores need.
    Outline,
    /// And what was committed to the shared state.
    Deltas,
}

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

/// What is kept of a message.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) verb: Verb,
    pub(crate) from: String,
    /// As it was given: any number of the message that opened the thread.
    thread: Option<u64>,
    pub(crate) intent: Option<String>,
    /// The claim, the question, the seed, or what became of a spark.
    pub(crate) text: Option<String>,
    pub(crate) confidence: Option<f64>,
    pub(crate) basis: Option<Basis>,
    pub(crate) outcomes: Vec<(u64, bool)>,
    delta: Option<Box<RawValue>>,
    spark: Option<u64>,
}

/// An agent, as it introduced itself last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Participant {
    /// What it calls itself.
    pub agent_name: String,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is here for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What it says it can do.
    pub capabilities: Vec<Ability>,
    /// The number of its HELLO.
    pub seq: u64,
    #[serde(skip)]
    lowest: u64,
}

/// Something that an agent says it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// What it is called.
    pub name: String,
    /// What would prove it wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub falsifiable_by: Option<String>,
}

/// Something that was committed to the shared state.
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

/// An idea and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spark {
    /// Its number.
    pub seq: u64,
    /// Whose it is.
    pub from: String,
    /// The idea.
    pub seed: String,
    /// What became of it.
    #[serde(flatten)]
    pub fate: Fate,
}

/// What became of an idea. Of several messages that say so the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Fate {
    /// Nothing yet.
    Open,
    /// Something.
    Harvested {
        /// The number of the message that says so.
        by: u64,
        /// What.
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

    /// Takes the next message of the room's history, whatever it is.
    ///
    /// # Errors
    /// [`TooMuch`]: what it tells from now on is not the whole.
    pub fn add(&mut self, message: &Message) -> Result<(), TooMuch> {
        let aliases = self.numbers.aliases();
        for known_as in self.numbers.learn(message) {
            if let Some(record) = self.records.remove(&known_as) {
                let lowest = self.numbers.lowest(known_as);
                self.records.entry(lowest).or_insert(record);
            }
        }
        self.count((self.numbers.aliases() - aliases) * ALIAS_BYTES);
        let lowest = self.numbers.lowest(message.seq);
        if message.content.starts_with(MARK) {
            if tag(message, "kind").as_deref() == Some("lantern") && self.closed.insert(lowest) {
                self.count(ALIAS_BYTES);
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
            Heard::Hello(it) => {
                let it = Participant::of(it, seq, lowest);
                let known = self.participants.get(&it.agent_name);
                if known.is_none_or(|known| known.lowest < lowest) {
                    self.count(it.bytes());
                    self.participants.insert(it.agent_name.clone(), it);
                }
            }
            Heard::Said(it) => {
                let record = Record::of(&it, self.keep);
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

    /// Who introduced itself, by name.
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
        let of = self.records.iter().filter(|(at, it)| self.thread_of(**at, it) == thread);
        of.map(|(at, _)| *at).collect()
    }

    /// The thread in which a message stands, as people here know it.
    pub fn thread_with(&self, message: u64) -> Option<u64> {
        let at = self.numbers.lowest(message);
        let record = self.records.get(&at)?;
        Some(self.numbers.shown(self.thread_of(at, record)))
    }

    /// What was committed to the shared state, in the order of the FUSEs.
    pub fn shared_state(&self) -> Vec<Delta> {
        let deltas = self.records.iter().filter_map(|(at, it)| {
            Some(Delta {
                seq: self.numbers.shown(*at),
                thread: self.numbers.shown(self.thread_of(*at, it)),
                from: it.from.clone(),
                delta: it.delta.clone()?,
            })
        });
        deltas.collect()
    }

    /// Ideas and what became of them.
    pub fn sparks(&self) -> Vec<Spark> {
        let mut sparks: BTreeMap<u64, Spark> = BTreeMap::new();
        for (at, it) in self.records.iter().filter(|(_, it)| it.verb == Verb::Spark) {
            let seed = it.text.clone().unwrap_or_default();
            let seq = self.numbers.shown(*at);
            sparks.insert(*at, Spark { seq, from: it.from.clone(), seed, fate: Fate::Open });
        }
        for (at, it) in &self.records {
            let spark = it.spark.map(|it| self.numbers.lowest(it));
            let Some(spark) = spark.and_then(|it| sparks.get_mut(&it)) else { continue };
            let (by, text) = (self.numbers.shown(*at), it.text.clone());
            spark.fate = if it.verb == Verb::Harvest {
                Fate::Harvested { by, becomes: text }
            } else {
                Fate::Buried { by, reason: text }
            };
        }
        sparks.into_values().collect()
    }

    /// Whether the next FUSE of the room is to look back: every third one leads to it.
    pub fn is_refraction_due(&self) -> bool {
        let fuses = self.records.values().filter(|it| it.verb == Verb::Fuse).count();
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
        record.thread.map_or(at, |it| self.numbers.lowest(it))
    }
}

/// After so many FUSEs the next one is REFRACTION-due.
const FUSES_TO_REFRACTION: usize = 3;

/// What an entry of a map or set takes, roughly.
const ALIAS_BYTES: usize = 64;

impl Record {
    fn of(it: &Said, keep: Keep) -> Self {
        let headline = |name| it.text(name).filter(|text| !text.trim().is_empty()).map(headline);
        let (text, spark) = match it.verb {
            Verb::Assert => (headline("claim"), None),
            Verb::Probe => (headline("question"), None),
            Verb::Spark => (headline("seed"), None),
            Verb::Harvest => (it.body().get("becomes").map(any), it.number("spark_seq")),
            Verb::Bury => (headline("reason"), it.number("spark_seq")),
            Verb::Hello | Verb::Challenge | Verb::Resolve | Verb::Fuse | Verb::Sync => (None, None),
        };
        let is_fuse = it.verb == Verb::Fuse;
        let is_claim = it.verb == Verb::Assert || it.verb == Verb::Challenge;
        let delta = it.delta().filter(|_| is_fuse && keep == Keep::Deltas);
        Self {
            verb: it.verb,
            from: clip(&it.from, NAME_CHARS_MAX),
            thread: it.thread,
            intent: it.intent.as_deref().filter(|text| !text.trim().is_empty()).map(self::headline),
            text,
            confidence: it.confidence().filter(|_| is_claim),
            basis: it.basis(),
            outcomes: if is_fuse { it.outcomes() } else { Vec::new() },
            delta: delta.and_then(|it| to_raw_value(it).ok()),
            spark,
        }
    }

    fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        ALIAS_BYTES
            + size_of::<Self>()
            + self.from.capacity()
            + of(&self.intent)
            + of(&self.text)
            + self.outcomes.capacity() * size_of::<(u64, bool)>()
            + self.delta.as_ref().map_or(0, |it| it.get().len())
    }
}

impl Participant {
    fn of(it: Introduction, seq: u64, lowest: u64) -> Self {
        let name = |text: String| clip(&text, NAME_CHARS_MAX);
        let ability = |(text, falsifiable_by): (String, Option<String>)| Ability {
            name: name(text),
            falsifiable_by: falsifiable_by.as_deref().map(headline),
        };
        let capabilities = it.capabilities.into_iter().take(HELLO_CAPABILITIES_MAX);
        Self {
            agent_name: name(it.agent_name),
            provider: it.provider.map(name),
            model: it.model.map(name),
            role: it.role.map(name),
            capabilities: capabilities.map(ability).collect(),
            seq,
            lowest,
        }
    }

    fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let abilities = self.capabilities.iter();
        let abilities = abilities.map(|it| ALIAS_BYTES + it.name.len() + of(&it.falsifiable_by));
        ALIAS_BYTES
            + size_of::<Self>()
            + 2 * self.agent_name.len()
            + of(&self.provider)
            + of(&self.model)
            + of(&self.role)
            + abilities.sum::<usize>()
    }
}

fn headline(text: &str) -> String {
    clip(text, HEADLINE_CHARS_MAX)
}

fn any(value: &Value) -> String {
    value.as_str().map_or_else(|| headline(&value.to_string()), headline)
}

/// At most so many characters, and a sign that there are more.
fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Thoughts and decisions are no chat messages, whatever they contain.
fn is_chat(message: &Message) -> bool {
    !matches!(tag(message, "type").as_deref(), Some("thinking" | "decision"))
}

/// A text at the top of the metadata.
fn tag(message: &Message, name: &str) -> Option<String> {
    let json = message.metadata.as_ref().map(Metadata::get)?;
    let value: Value = serde_json::from_str(json).ok()?;
    Some(value.get(name)?.as_str()?.to_owned())
}
