//! Asks that wait for the answer of their room's sequencer, as a message waits for its number (`docs/numbering.md`, rules 1
//! and 4): claims of tasks, and things that at most one agent does.

use std::{collections::BTreeMap, time::Duration};

use super::act::{Spoken, Written};
use crate::{
    limits::{ASK_AFTER, ASK_EVERY_MAX, CLAIM_SETTLE, NUMBER_WITHIN},
    name::{
        id::{EntryRef, LocalRef, LogId, LogIx},
        number::Era,
    },
};

/// Something that an agent asks for.
pub(crate) trait Asking {
    /// The agent, as the node at this place says.
    fn spoken(&self, by: EntryRef) -> Spoken<'_>;

    /// The era that was current, as far as its author knew.
    fn era(&self) -> Era;
}

/// An ask that has no answer.
#[derive(Clone, Debug)]
pub(crate) struct Ask<T> {
    pub(crate) at: LocalRef,
    pub(crate) what: T,
    /// When it was written, by its author's clock. Unix milliseconds.
    pub(crate) wall_ms: u64,
    /// Whether it is proven to be the agent's, as far as is known here.
    pub(crate) is_proven: bool,
    since: Duration,
    ask_at: Duration,
    ask_step: Duration,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Asks<T>(BTreeMap<EntryRef, Ask<T>>);

impl<T> Default for Asks<T> {
    fn default() -> Asks<T> {
        Asks(BTreeMap::new())
    }
}

impl<T: Asking> Asks<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, written: &Written, what: T) {
        let (at, since) = (written.at, written.now.mono);
        let (ask_at, ask_step) = (since + ASK_AFTER, ASK_AFTER);
        let (is_proven, wall_ms) = (false, written.facts.wall_ms);
        let ask = Ask { at, what, wall_ms, is_proven, since, ask_at, ask_step };
        self.0.insert(written.place, ask);
    }

    pub(crate) fn get(&self, place: EntryRef) -> Option<&Ask<T>> {
        self.0.get(&place)
    }

    pub(crate) fn remove(&mut self, place: EntryRef) -> Option<Ask<T>> {
        self.0.remove(&place)
    }

    /// Takes those of which this is true.
    pub(crate) fn take(&mut self, which: impl Fn(&T) -> bool) -> Vec<Ask<T>> {
        self.0.extract_if(.., |_, ask| which(&ask.what)).map(|(_, ask)| ask).collect()
    }

    /// Nothing of this log counts from `seq` on.
    pub(crate) fn forget_log(&mut self, log: LogId, seq: u64) {
        self.0.retain(|place, _| place.log != log || place.seq < seq);
    }

    /// Sees which are their agents'. `proves`: whether an act counts as its agent's.
    pub(crate) fn judge(&mut self, proves: impl Fn(&Spoken<'_>) -> bool) {
        for (place, ask) in &mut self.0 {
            ask.is_proven = proves(&ask.what.spoken(*place));
        }
    }

    /// Those that the sequencer of `era` answers now, in the order of their positions as far as that matters: the first to
    /// come was answered at once. An ask of an earlier era may have been answered there: the answer gets a moment to come. So
    /// does the proof that an ask is its agent's.
    pub(crate) fn due(&self, now: Duration, era: Era) -> Vec<EntryRef> {
        let due = |ask: &Ask<T>| {
            ask.what.era() == era && ask.is_proven || now >= ask.since + CLAIM_SETTLE
        };
        let mut due: Vec<(&EntryRef, &Ask<T>)> =
            self.0.iter().filter(|(_, ask)| due(ask)).collect();
        due.sort_by_key(|(place, ask)| (ask.since, **place));
        due.into_iter().map(|(place, _)| *place).collect()
    }

    /// Whether it is time to see that the sequencer has those of this node.
    pub(crate) fn ask(&mut self, now: Duration, mine: Option<LogIx>) -> bool {
        let mut due = false;
        let own = self.0.values_mut().filter(|ask| Some(ask.at.log) == mine);
        for ask in own.filter(|ask| now >= ask.ask_at) {
            ask.ask_step = (ask.ask_step * 2).min(ASK_EVERY_MAX);
            ask.ask_at = now + ask.ask_step;
            due = true;
        }
        due
    }

    /// Whether one of this node was kept waiting for too long.
    pub(crate) fn kept_waiting(&self, now: Duration, mine: Option<LogIx>) -> bool {
        let mut own = self.0.values().filter(|ask| Some(ask.at.log) == mine);
        own.any(|ask| now >= ask.since + NUMBER_WITHIN)
    }
}
