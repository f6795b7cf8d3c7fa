//! How far the log of each author counts: not from a fork on, and not beyond the cut of a node that was
//! removed from the mesh ([`crate::directory::removals`]).

use super::Replica;
use crate::{
    directory::removals::Cut,
    name::id::{LocalRef, LogId, LogIx, NodeId},
    turn::context::Context,
};

impl Replica {
    /// Nothing more is accepted from this author here, because it forked a log.
    pub(crate) fn is_forked(&self, cx: &Context, author: NodeId) -> bool {
        self.has_forked_in_memory(author)
            || cx.forked_in(self.record.seal.as_ref()).any(|forked| forked == author)
    }

    /// It forked a log of this room, which is memory only: nodes without the room cannot know of it, and the
    /// others forget it with the room.
    pub(crate) fn has_forked_in_memory(&self, author: NodeId) -> bool {
        self.record.ephemeral && self.logs.has_shut_out(author)
    }

    /// How far this log counts, if its author was removed. Memory that is another node's alone is named by
    /// nobody.
    pub(crate) fn cut_of(&self, cx: &Context, log: LogId) -> Option<Cut> {
        let open = self.record.seal.is_none() && !self.record.ephemeral;
        cx.parted.cut(log.author, self.id, open)
    }

    /// The author forked a log, or was removed: it gives no numbers and opens no nonces.
    pub(crate) fn is_out(&self, cx: &Context, author: NodeId) -> bool {
        self.is_forked(cx, author) || cx.parted.has(author) || (author == cx.me && cx.out)
    }

    /// Authors whose logs are cut here because they forked, not because they were removed.
    pub(crate) fn forkers(&self, cx: &Context) -> Vec<NodeId> {
        let removed = |log: LogId, seq: u64| matches!(self.cut_of(cx, log), Some(Cut::At(last)) if last + 1 == seq);
        let cut = self.logs.iter().filter_map(|(_, log)| Some((log.id, log.fork?)));
        cut.filter(|(log, seq)| !removed(*log, *seq)).map(|(log, _)| log.author).collect()
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

    /// Not held, though it may still come: an entry of an author that forked nothing does, one of a removed
    /// node as far as it counts.
    pub(crate) fn is_missing(&self, cx: &Context, at: LocalRef) -> bool {
        let log = self.logs.get(at.log);
        at.seq > log.head && self.may_come(cx, log.id, at.seq)
    }

    /// All of this log that will ever count is here.
    pub(crate) fn is_over(&self, cx: &Context, log: LogId) -> bool {
        let next = self.logs.head_of(log).saturating_add(1);
        !self.may_come(cx, log, next)
    }

    /// Whether the next entry of this log is taken. In the directory it is in any case, unless the log is
    /// forked: one side of a split may have heard of a removal that is written there.
    pub(crate) fn takes_more(&self, cx: &Context, log: LogId) -> bool {
        if self.logs.is_whole() {
            return !self.is_forked(cx, log.author);
        }
        !self.is_over(cx, log)
    }

    /// The last entry of this log that is worth having: at most `upto`.
    pub(crate) fn worth_having(&self, cx: &Context, log: LogId, upto: u64) -> u64 {
        match self.cut_of(cx, log) {
            Some(Cut::At(last)) if !self.logs.is_whole() => upto.min(last),
            Some(Cut::At(_) | Cut::AsHeld) | None => upto,
        }
    }

    /// A log that is written to anew may be of a node that was removed.
    pub(super) fn cut_log(&mut self, cx: &Context, ix: LogIx) {
        if let Some(Cut::At(last)) = self.cut_of(cx, self.logs.id(ix)) {
            self.logs.cut(ix, last + 1);
        }
    }
}
