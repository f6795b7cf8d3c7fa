//! What counts here of nodes that have no part in the mesh any more ([`crate::directory::removals`]).

use std::collections::BTreeSet;

use super::{Room, is_open_directory};
use crate::{
    directory::removals::Cut,
    engine::context::{Context, Fact},
    fold::Void,
    name::id::{LocalRef, LogId, LogIx, NodeId},
    wire::{
        entry::{Body, Facts},
        kinds::PARTED,
    },
};

impl Room {
    /// How far this log counts, if its author has parted. Memory that is another node's alone is named by
    /// nobody.
    fn cut_of(&self, cx: &Context, log: LogId) -> Option<Cut> {
        let open = self.record.seal.is_none() && !self.record.ephemeral;
        cx.parted.cut(log.author, self.id, open)
    }

    /// The author forked a log, or has parted: it gives no numbers and opens no nonces.
    pub(crate) fn is_out(&self, cx: &Context, author: NodeId) -> bool {
        self.is_forked(cx, author) || cx.parted.has(author) || (author == cx.me && cx.out)
    }

    /// Authors whose logs are cut here because they forked, not because they have parted.
    pub(crate) fn forkers(&self, cx: &Context) -> Vec<NodeId> {
        let parted = |log: LogId, seq: u64| matches!(self.cut_of(cx, log), Some(Cut::At(last)) if last + 1 == seq);
        let cut = self.logs.iter().filter_map(|(_, log)| Some((log.id, log.fork?)));
        cut.filter(|(log, seq)| !parted(*log, *seq)).map(|(log, _)| log.author).collect()
    }

    /// Whether an entry of this log that is not here can still come.
    pub(crate) fn may_come(&self, cx: &Context, log: LogId, seq: u64) -> bool {
        !self.is_forked(cx, log.author)
            && match self.cut_of(cx, log) {
                None => true,
                Some(Cut::At(last)) => seq <= last,
                Some(Cut::AsHeld) => false,
            }
    }

    /// All of this log that will ever count is here.
    pub(super) fn is_over(&self, cx: &Context, log: LogId) -> bool {
        let next = self.logs.head_of(log).saturating_add(1);
        !self.may_come(cx, log, next)
    }

    /// Whether what comes next in this log is taken. In the directory it is in any case, unless it is
    /// forked: one side of a split may have heard of a parting that is written there.
    pub(crate) fn takes_more(&self, cx: &Context, log: LogId) -> bool {
        if is_open_directory(cx, self.id) {
            return !self.is_forked(cx, log.author);
        }
        !self.is_over(cx, log)
    }

    /// The last entry of this log that is worth having: at most `upto`.
    pub(crate) fn worth_having(&self, cx: &Context, log: LogId, upto: u64) -> u64 {
        match self.cut_of(cx, log) {
            Some(Cut::At(last)) if !is_open_directory(cx, self.id) => upto.min(last),
            Some(Cut::At(_) | Cut::AsHeld) | None => upto,
        }
    }

    /// A log that is written to anew may be of a node that has parted.
    pub(super) fn cut_log(&mut self, cx: &Context, ix: LogIx) {
        if let Some(Cut::At(last)) = self.cut_of(cx, self.logs.id(ix)) {
            self.logs.cut(ix, last + 1);
        }
    }

    /// An entry beyond the cut says nothing, but for who else has parted.
    pub(super) fn fold_uncounted(
        &mut self,
        cx: &mut Context,
        at: LocalRef,
        facts: Facts,
        bytes: &[u8],
    ) {
        if facts.kind == PARTED && is_open_directory(cx, self.id) {
            let (log, body) = (self.logs.id(at.log), Body::decode(facts.kind, bytes));
            cx.facts.push(Fact { room: self.id, at, log, facts, body });
        }
    }

    /// Eras of a log of which nothing more will come get no more items.
    pub(super) fn end_eras_if_over(&mut self, cx: &Context, log: LogId) {
        if self.is_over(cx, log) {
            self.numbering.end_eras_of(log.author);
        }
    }

    /// A node has parted, or less of it counts than was thought. Returns from where on its log does not,
    /// where somebody has said.
    pub(crate) fn part_with(&mut self, cx: &mut Context, node: NodeId) -> Vec<(LogId, u64)> {
        let logs = self.logs.iter().map(|(_, log)| log.id).filter(|log| log.author == node);
        let mut cuts = Vec::new();
        for log in logs.collect::<Vec<_>>() {
            match self.cut_of(cx, log) {
                Some(Cut::At(last)) => {
                    self.quarantine(cx, log, last + 1);
                    cuts.push((log, last + 1));
                }
                // Others hold more of it, or less.
                Some(Cut::AsHeld) => {
                    self.folds.retract(Void::Author(node));
                    self.logs.shut_out(node);
                }
                None => {}
            }
        }
        // It may give numbers here, and nothing of its log be here.
        let given = self.numbering.eras.values().map(|era| era.record.sequencer);
        let given: BTreeSet<LogId> = given.filter(|log| log.author == node).collect();
        given.into_iter().for_each(|log| self.end_eras_if_over(cx, log));
        // Of some of these logs nothing is here yet.
        let waits = self.pending.keys().into_iter().filter(|(log, _)| log.author == node);
        if waits.into_iter().any(|(log, _)| !self.takes_more(cx, log)) {
            self.pending.forget_author(cx, node);
        }
        self.folds.retract(Void::Member(node));
        self.deliver(cx);
        cx.active.insert(self.id);
        cuts
    }
}
