//! The fate of the requests of a room, as nodes say: a fold over [`DeliveryAct`]s that does not depend on the order in which
//! logs are read.
//!
//! It keeps words, and judges none: whether a node may say what it says follows from keys and vouchers, and these may come
//! later. So the words are judged when they are looked at ([`Words::judged`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::act::{Fold, Folded, Spoken, Void, Written};
use crate::{
    api::{
        boundary::Alarm,
        command::Refused,
        delivery::{Delivery, Stage},
    },
    limits::{AGENT_ID_BYTES_MAX, DELIVERIES_PER_LOG_MAX, DELIVERY_WORDS_MAX},
    name::id::{AgentId, EntryRef, KeyPrint, LogId, NodeId, Position},
    wire::delivery::{DeliveryAct, Reason, Word},
};

/// The word of one node.
#[derive(Clone, Debug)]
struct Told {
    position: Position,
    wall_ms: u64,
    to: AgentId,
    key: Option<KeyPrint>,
    /// Of [`Stage::Failed`].
    reason: Option<Reason>,
}

/// All that nodes say of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// Of each node the first of each kind; of all the lowest [`DELIVERY_WORDS_MAX`].
    told: BTreeMap<(Stage, NodeId), Told>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    /// By request; of one log the newest [`DELIVERIES_PER_LOG_MAX`].
    of: BTreeMap<EntryRef, Words>,
    /// Up to there requests of a log are forgotten.
    floors: BTreeMap<LogId, u64>,
    bytes: usize,
    news: BTreeSet<EntryRef>,
}

impl Words {
    /// The fate of the request, as far as nodes say it that may: one of the agent that is asked where it is and was given,
    /// and the one of its author that it is given up. `proves`: whether a node can speak for an agent. `None`: nobody says
    /// anything.
    pub(crate) fn judged(
        &self,
        request: EntryRef,
        to: &AgentId,
        proves: impl Fn(&Spoken<'_>) -> bool,
    ) -> Option<Delivery> {
        let counts = |node: NodeId, told: &Told| {
            let of_author = told.reason.as_ref().is_some_and(Reason::is_of_author);
            let spoken = Spoken { node, key: told.key, agent: to };
            told.to == *to && if of_author { node == request.log.author } else { proves(&spoken) }
        };
        let mut counted =
            self.told.iter().filter(|((_, node), told)| counts(*node, told)).collect::<Vec<_>>();
        // What says most, and of that the first.
        counted.sort_by_key(|((stage, _), told)| (std::cmp::Reverse(*stage), told.position));
        let ((stage, node), told) = counted.into_iter().next()?;
        let reason = told.reason.clone();
        Some(Delivery { stage: *stage, node: *node, at_ms: told.wall_ms, reason })
    }

    /// Whether a node has said that.
    pub(crate) fn has(&self, node: NodeId, stage: Stage) -> bool {
        self.told.contains_key(&(stage, node))
    }

    /// How much a node has said.
    pub(crate) fn count_of(&self, node: NodeId) -> usize {
        self.told.keys().filter(|(_, by)| *by == node).count()
    }

    fn add(&mut self, written: &Written, act: DeliveryAct) {
        let (stage, reason) = match act.word {
            Word::Arrived => (Stage::Arrived, None),
            Word::Delivered => (Stage::Delivered, None),
            Word::Failed(reason) => (Stage::Failed, Some(reason)),
        };
        let (position, wall_ms) = (written.position(), written.facts.wall_ms);
        let told = Told { position, wall_ms, to: act.to, key: act.key, reason };
        let place = (stage, written.place.log.author);
        if self.told.get(&place).is_none_or(|before| told.position < before.position) {
            self.told.insert(place, told);
        }
        if self.told.len() > DELIVERY_WORDS_MAX {
            self.told.pop_last();
        }
    }

    fn bytes(&self) -> usize {
        let told = |told: &Told| WORD_BYTES + told.to.len();
        FRAME_BYTES + self.told.values().map(told).sum::<usize>()
    }
}

/// Of a word without its texts, and of a request without its words, near enough.
const WORD_BYTES: usize = 240;
const FRAME_BYTES: usize = 120;

impl Fold for Deliveries {
    type Act = DeliveryAct;
    type News = EntryRef;

    fn admits(&self, _: LogId, _: &DeliveryAct, _: Duration) -> Result<(), Refused> {
        Ok(())
    }

    fn apply(&mut self, written: Written, act: DeliveryAct, _: &mut Vec<Alarm>) -> Folded {
        let is_sound = match &act.word {
            Word::Failed(reason) => reason.is_sound(),
            Word::Arrived | Word::Delivered => true,
        };
        if !is_sound || !(1..=AGENT_ID_BYTES_MAX).contains(&act.to.len()) {
            return Folded::Void;
        }
        let request = act.request;
        if self.is_forgotten(request) {
            return Folded::Taken;
        }
        self.change(request, |words| words.add(&written, act));
        self.bound(request.log);
        Folded::Taken
    }

    fn retract(&mut self, void: Void) {
        let Void::From(from) = void else {
            // A node's words up to a cut count everywhere.
            return;
        };
        let is_void = |place: EntryRef| place.log == from.log && place.seq >= from.seq;
        let touched: Vec<EntryRef> = self
            .of
            .iter()
            .filter(|(request, words)| {
                let mut places = words.told.values().map(|told| told.position.place);
                is_void(**request) || places.any(is_void)
            })
            .map(|(request, _)| *request)
            .collect();
        for request in touched {
            self.change(request, |words| {
                words.told.retain(|_, told| !is_void(request) && !is_void(told.position.place));
            });
        }
    }

    fn take_news(&mut self, _: Duration) -> Vec<EntryRef> {
        std::mem::take(&mut self.news).into_iter().collect()
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Deliveries {
    /// What nodes say of a request.
    pub(crate) fn of(&self, request: EntryRef) -> Option<&Words> {
        self.of.get(&request)
    }

    /// All requests of which somebody says something.
    pub(crate) fn requests(&self) -> impl Iterator<Item = EntryRef> + '_ {
        self.of.keys().copied()
    }

    /// Whether it is of before those that are kept: nothing can be said of it any more.
    pub(crate) fn is_forgotten(&self, request: EntryRef) -> bool {
        self.floors.get(&request.log).is_some_and(|floor| request.seq <= *floor)
    }

    fn change(&mut self, request: EntryRef, change: impl FnOnce(&mut Words)) {
        let words = self.of.entry(request).or_default();
        let before = if words.told.is_empty() { 0 } else { words.bytes() };
        change(words);
        let is_empty = words.told.is_empty();
        let after = if is_empty { 0 } else { words.bytes() };
        if is_empty {
            self.of.remove(&request);
        }
        self.bytes = self.bytes + after - before;
        self.news.insert(request);
    }

    /// The oldest requests of a log go, the same ones in whatever order words come: only the newest are kept.
    fn bound(&mut self, log: LogId) {
        let all = EntryRef { log, seq: 0 }..=EntryRef { log, seq: u64::MAX };
        while self.of.range(all.clone()).count() > DELIVERIES_PER_LOG_MAX {
            let Some((oldest, words)) = self.of.range(all.clone()).next() else { return };
            let (oldest, bytes) = (*oldest, words.bytes());
            self.of.remove(&oldest);
            self.bytes -= bytes;
            self.floors.insert(log, oldest.seq);
            self.news.insert(oldest);
        }
    }
}

#[cfg(test)]
mod tests;
