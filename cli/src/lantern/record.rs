//! The part of a LANTERN message that a journal keeps: lists and scores need no more.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::limits::{HEADLINE_CHARS_MAX, HELLO_CAPABILITIES_MAX, NAME_CHARS_MAX};
use ::lantern::envelope::Capability;
use ::lantern::heard::{Introduction, Said};
use ::lantern::verb::{Basis, Verb};

/// How much of each message is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Enough for lists and scores.
    Outline,
    /// And the additions to the shared state.
    Deltas,
}

/// The kept part of a message.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) verb: Verb,
    pub(crate) from: String,
    /// As it was given: any number of the message that opened the thread.
    pub(crate) thread: Option<u64>,
    pub(crate) intent: Option<String>,
    /// The claim, the question, the seed, or the fate of a spark.
    pub(crate) text: Option<String>,
    pub(crate) confidence: Option<f64>,
    pub(crate) basis: Option<Basis>,
    pub(crate) outcomes: Vec<(u64, bool)>,
    pub(crate) delta: Option<Box<RawValue>>,
    pub(crate) spark: Option<u64>,
}

/// An agent, as it introduced itself last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Participant {
    /// Its name.
    pub agent_name: String,
    /// Its maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its part in the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its abilities, as it states them.
    pub capabilities: Vec<Capability>,
    /// The number of its HELLO.
    pub seq: u64,
    #[serde(skip)]
    pub(crate) lowest: u64,
}

/// The memory of an entry of a map or set, roughly.
pub(crate) const ENTRY_BYTES: usize = 64;

impl Record {
    pub(crate) fn of(said: &Said, keep: Keep) -> Self {
        let headline = |name| said.text(name).filter(|text| !text.trim().is_empty()).map(headline);
        let (text, spark) = match said.verb {
            Verb::Assert => (headline("claim"), None),
            Verb::Probe => (headline("question"), None),
            Verb::Spark => (headline("seed"), None),
            Verb::Harvest => (said.body().get("becomes").map(any), said.number("spark_seq")),
            Verb::Bury => (headline("reason"), said.number("spark_seq")),
            Verb::Hello | Verb::Challenge | Verb::Resolve | Verb::Fuse | Verb::Sync => (None, None),
        };
        let is_fuse = said.verb == Verb::Fuse;
        let is_claim = said.verb == Verb::Assert || said.verb == Verb::Challenge;
        let delta = said.delta().filter(|_| is_fuse && keep == Keep::Deltas);
        Self {
            verb: said.verb,
            from: clip(&said.from, NAME_CHARS_MAX),
            thread: said.thread,
            intent: said
                .intent
                .as_deref()
                .filter(|text| !text.trim().is_empty())
                .map(self::headline),
            text,
            confidence: said.confidence().filter(|_| is_claim),
            basis: said.basis(),
            outcomes: if is_fuse { said.outcomes() } else { Vec::new() },
            delta: delta.and_then(|delta| to_raw_value(delta).ok()),
            spark,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        ENTRY_BYTES
            + size_of::<Self>()
            + self.from.capacity()
            + of(&self.intent)
            + of(&self.text)
            + self.outcomes.capacity() * size_of::<(u64, bool)>()
            + self.delta.as_ref().map_or(0, |delta| delta.get().len())
    }
}

impl Participant {
    pub(crate) fn of(introduction: Introduction, seq: u64, lowest: u64) -> Self {
        let name = |text: String| clip(&text, NAME_CHARS_MAX);
        let capability = |heard: Capability| Capability {
            name: name(heard.name),
            falsifiable_by: heard.falsifiable_by.as_deref().map(headline),
        };
        let capabilities = introduction.capabilities.into_iter().take(HELLO_CAPABILITIES_MAX);
        Self {
            agent_name: name(introduction.agent_name),
            provider: introduction.provider.map(name),
            model: introduction.model.map(name),
            role: introduction.role.map(name),
            capabilities: capabilities.map(capability).collect(),
            seq,
            lowest,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let abilities = self.capabilities.iter();
        let abilities = abilities
            .map(|capability| ENTRY_BYTES + capability.name.len() + of(&capability.falsifiable_by));
        ENTRY_BYTES
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
