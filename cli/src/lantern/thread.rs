//! The state of a thread.

use serde::Serialize;

use crate::lantern::numbers::Numbers;
use crate::lantern::record::Record;
use ::lantern::verb::Verb;

/// How far a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing is decided.
    Open,
    /// Something was observed that decides.
    Resolved,
    /// An agreement was committed.
    Fused,
}

impl State {
    /// For people, and for JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Resolved => "resolved",
            State::Fused => "fused",
        }
    }
}

/// A thread, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its id: the number of the message that opened it.
    pub thread: u64,
    /// How far it is.
    pub state: State,
    /// Its subject.
    pub headline: String,
    /// The agent that opened it; unknown if that message is no LANTERN message, or not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<String>,
    /// How many messages it has.
    pub messages: usize,
    /// The number of its newest message.
    pub last_seq: u64,
}

impl Thread {
    /// From its messages in order. There is at least one: without messages there is no thread.
    pub(crate) fn of(id: u64, messages: &[(u64, &Record)], numbers: &Numbers) -> Self {
        let records = || messages.iter().map(|(_, record)| *record);
        let has = |verb| records().any(|record| record.verb == verb);
        let state = if has(Verb::Fuse) {
            State::Fused
        } else if has(Verb::Resolve) {
            State::Resolved
        } else {
            State::Open
        };
        let text = |verb| {
            records().filter(|record| record.verb == verb).find_map(|record| record.text.clone())
        };
        let headline = text(Verb::Assert)
            .or_else(|| text(Verb::Probe))
            .or_else(|| records().find_map(|record| record.intent.clone()))
            .unwrap_or_else(|| {
                let verb = messages.first().map_or(Verb::Sync, |(_, record)| record.verb);
                format!("{} thread", verb.word())
            });
        let opener = messages.iter().find(|(at, _)| *at == id);
        Self {
            thread: numbers.shown(id),
            state,
            headline,
            opened_by: opener.map(|(_, record)| record.from.clone()),
            messages: messages.len(),
            last_seq: messages.last().map_or(id, |(at, _)| numbers.shown(*at)),
        }
    }
}
