//! Entries whose bodies are kept nowhere any more, because they are old: their headers are here, so
//! chains and numbers hold, and their numbers are delivered as nothing.

use super::Room;
use crate::{
    api::batch::{Change, Fate, Spoke},
    engine::context::Context,
    limits::STAMP_AHEAD_MS_MAX,
    name::{
        id::{LocalRef, NodeId},
        number::Number,
    },
    replica::pending::{Needs, Waiting},
    wire::{entry::Facts, kinds::CHAT},
};

impl Room {
    /// Whether bodies of this room may ever be dropped: not of directories, which are folded from them,
    /// and not of ephemeral rooms, which end by themselves.
    pub(crate) fn may_lose_bodies(&self) -> bool {
        !self.is_directory && !self.record.ephemeral
    }

    /// Which bodies are needed here.
    pub(crate) fn needs(&self, cx: &Context) -> Needs {
        if !self.may_lose_bodies() {
            return Needs { from_ms: 0, certain_ms: 0, ahead_ms: u64::MAX };
        }
        let before = |ms: u64| cx.now.wall_ms.saturating_sub(ms);
        Needs {
            from_ms: self.keep_ms.map_or(0, before),
            certain_ms: before(cx.retention_min_ms),
            ahead_ms: cx.now.wall_ms.saturating_add(STAMP_AHEAD_MS_MAX),
        }
    }

    /// Whether it is certain that nobody has what is gone of a run that waits.
    pub(super) fn nobody_has(&self, cx: &Context, waiting: &Waiting) -> bool {
        let others = !self.are_all_connected(cx);
        self.pending.nobody_has((cx.now.mono, &self.peers(cx), others), waiting)
    }

    /// Whether all members of the mesh are connected, and it is known which of them have this room. Not where the
    /// directory does not name even those who are: what it lacks may name more.
    fn are_all_connected(&self, cx: &Context) -> bool {
        let members = cx.lanes.keys().filter(|it| **it != cx.me && !cx.parted.has(**it));
        let known = |node: &NodeId| self.record.seal.is_none() || cx.followers.is_rostered(*node);
        members.eq(&cx.up) && cx.up.iter().all(known)
    }

    /// An entry was accepted without its body. Nobody is asked for a number for it: whoever dropped its
    /// body had delivered it.
    pub(super) fn hold_gone(&mut self, cx: &mut Context, at: LocalRef, facts: Facts) {
        if self.numbering.came(at).0.is_some() {
            cx.change(Change::NumberRange { room: self.id, at, numbers: None });
        }
        self.numbering.gone.insert(at, facts);
    }

    /// Its number has come.
    pub(super) fn deliver_gone(
        &mut self,
        cx: &mut Context,
        number: Number,
        at: LocalRef,
        facts: Facts,
    ) {
        cx.change(Change::Number { room: self.id, number, at, fate: Fate::Delivered });
        let log = self.logs.id(at.log);
        let record = self.edit_record();
        record.delivered += 1;
        record.last_activity_ms = Some(facts.wall_ms);
        if facts.kind == CHAT {
            // Whose turn it was after it went with its body.
            record.spoke = record.spoke.max(Some(Spoke { clock: facts.clock, log, turn: None }));
        }
    }
}
