//! An approval, and those that wanted to decide about it.

use std::{collections::BTreeMap, sync::Arc};

use super::verdict_of;
use crate::{
    api::approval::{ApprovalView, Decided, Verdict},
    fold::act::{Spoken, Written},
    name::id::{AgentId, EntryRef, KeyPrint, LogId, MessageId, Position, RoomId},
    wire::approval::{ApprovalAsked, ApprovalRequested, ApprovalWish},
};

/// Grants of one ask that are remembered: one for each era that answered.
const GRANTS_KEPT: usize = 8;

/// Something that an agent wants to do.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) id: MessageId,
    room: RoomId,
    pub(super) at: Position,
    asked_ms: u64,
    by: AgentId,
    text: Arc<str>,
    approvers: Arc<[AgentId]>,
    pub(super) until_ms: u64,
    key: Option<KeyPrint>,
    pub(super) is_proven: bool,
    /// Those that wanted to decide.
    pub(super) heard: BTreeMap<EntryRef, Heard>,
    /// Whether anybody here was told of it, and of which decision.
    pub(super) is_told: bool,
    pub(super) told: Option<EntryRef>,
    /// It was there before this node started: it is no news until somebody decides.
    pub(super) is_quiet: bool,
}

impl Wanted {
    pub(super) fn new(id: MessageId, written: &Written, requested: ApprovalRequested) -> Wanted {
        Wanted {
            id,
            room: written.room,
            at: written.position(),
            asked_ms: written.facts.wall_ms,
            by: requested.by,
            text: requested.text.into(),
            approvers: requested.approvers.into(),
            until_ms: requested.until_ms,
            key: requested.key,
            is_proven: false,
            heard: BTreeMap::new(),
            is_told: false,
            told: None,
            is_quiet: false,
        }
    }

    /// Texts of it.
    pub(super) fn bytes(&self) -> usize {
        let reasons = self.heard.values().filter_map(|heard| heard.reason.as_ref());
        let approvers = self.approvers.iter().map(|agent| agent.len());
        self.text.len() + approvers.sum::<usize>() + reasons.map(|it| it.len()).sum::<usize>()
    }

    /// Those of a log.
    pub(super) fn heard_of(&self, log: LogId) -> usize {
        self.heard.keys().filter(|ask| ask.log == log).count()
    }

    /// Whether this one may want that: nobody decides what it has asked itself.
    pub(super) fn lets(&self, asked: &ApprovalAsked) -> bool {
        let is_asker = asked.by == self.by;
        match asked.wish {
            ApprovalWish::Approve
            | ApprovalWish::Always
            | ApprovalWish::Deny
            | ApprovalWish::Change
            | ApprovalWish::Withdraw => {
                !is_asker && (self.approvers.is_empty() || self.approvers.contains(&asked.by))
            }
            ApprovalWish::Expire | ApprovalWish::ByRule(_) => is_asker,
        }
    }

    /// Whether the same agent asks for the same.
    pub(super) fn asks_the_same(&self, other: &Wanted) -> bool {
        self.by == other.by && self.key == other.key && self.text == other.text
    }

    pub(super) fn spoken(&self, place: EntryRef) -> Spoken<'_> {
        Spoken { node: place.log.author, key: self.key, agent: &self.by }
    }

    /// Sees whether it and its decisions are their agents': whether something has changed, and whether something is left.
    pub(super) fn judge(
        &mut self,
        place: EntryRef,
        proves: &impl Fn(&Spoken<'_>) -> bool,
    ) -> (bool, bool) {
        let mut changed = false;
        if !self.is_proven && proves(&self.spoken(place)) {
            (self.is_proven, changed) = (true, true);
        }
        let mut left = !self.is_proven;
        for (ask, heard) in self.heard.iter_mut().filter(|(_, heard)| !heard.is_proven) {
            let spoken = Spoken { node: ask.log.author, key: heard.key, agent: &heard.by };
            heard.is_proven = proves(&spoken);
            changed |= heard.is_proven;
            left |= !heard.is_proven;
        }
        (changed, left)
    }

    pub(super) fn view(&self, decided: Option<Decided>, is_rule: bool) -> ApprovalView {
        ApprovalView {
            id: self.id,
            room: self.room,
            by: self.by.clone(),
            text: Arc::clone(&self.text),
            approvers: Arc::clone(&self.approvers),
            asked_ms: self.asked_ms,
            until_ms: self.until_ms,
            decided,
            is_rule,
        }
    }
}

/// Somebody that wanted to decide.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    by: AgentId,
    pub(super) wish: ApprovalWish,
    reason: Option<Arc<str>>,
    key: Option<KeyPrint>,
    wall_ms: u64,
    is_proven: bool,
    /// The lowest first.
    granted: Vec<Position>,
}

impl Heard {
    pub(super) fn new(written: &Written, asked: &ApprovalAsked) -> Heard {
        Heard {
            by: asked.by.clone(),
            wish: asked.wish,
            reason: asked.reason.as_deref().map(Arc::from),
            key: asked.key,
            wall_ms: written.facts.wall_ms,
            is_proven: false,
            granted: Vec::new(),
        }
    }

    pub(super) fn grant(&mut self, at: Position) {
        let place = self.granted.partition_point(|other| *other < at);
        if self.granted.get(place) != Some(&at) {
            self.granted.insert(place, at);
            self.granted.truncate(GRANTS_KEPT);
        }
    }

    /// Grants that do not count any more: whether there were some.
    pub(super) fn withdraw(&mut self, is_gone: &impl Fn(&EntryRef) -> bool) -> bool {
        let before = self.granted.len();
        self.granted.retain(|at| !is_gone(&at.place));
        self.granted.len() < before
    }

    /// The place of its grant.
    pub(super) fn at(&self) -> Option<Position> {
        self.granted.first().copied()
    }

    /// Whether it was granted, and is proven to be its author's.
    pub(super) fn counts(&self) -> bool {
        self.is_proven && !self.granted.is_empty()
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        verdict_of(self.wish)
    }

    pub(super) fn decided(&self) -> Option<Decided> {
        let verdict = self.verdict()?;
        let by = match verdict {
            Verdict::ByRule | Verdict::Expired => None,
            Verdict::Approved | Verdict::Always | Verdict::Denied | Verdict::Changes => {
                Some(self.by.clone())
            }
        };
        Some(Decided { verdict, by, reason: self.reason.clone(), at_ms: self.wall_ms })
    }
}
