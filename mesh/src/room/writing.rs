//! Writing in a room: what this node adds to its own log, sealed as runs when the turn ends.

use std::sync::Arc;

use super::Room;
use crate::{
    api::{batch::Change, command::Refused},
    engine::context::{Context, sent, stored},
    limits::{
        BODY_INLINE_BYTES_MAX, CLOCK_START_MAX, CLOCK_STEP_MAX, PLAIN_BODY_BYTES_MAX,
        RUN_BYTES_MAX, RUN_ENTRIES_MAX,
    },
    name::{
        id::{LocalRef, LogIx},
        identity::Identity,
        number::C_MAX,
    },
    wire::{
        acts::ElectionAct,
        entry::{Body, Facts},
        kinds::NODE_ADMITTED,
        run::{Carried, Run, RunEntry},
    },
};

/// An entry of this node that has no seal yet: it gets one before the turn ends.
#[derive(Debug)]
struct Draft {
    facts: Facts,
    body: Vec<u8>,
    /// It begins a run: receivers may have to take somebody else's run between what comes before it and this.
    begins: bool,
}

/// Whether an entry begins a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// Receivers judge it by what came before the run.
    Always,
    /// They may need what was accepted here meanwhile.
    IfHeard,
    Never,
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    list: Vec<Draft>,
    /// A run of another node was accepted, or a lane entered, since the first of those that would stand under one seal.
    heard: bool,
}

impl Drafts {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A run of another node is accepted. It may have been written in advance, for what is not even sealed here.
    pub(super) fn note_accepted(&mut self) {
        self.heard = !self.list.is_empty();
    }

    /// Runs are accepted as a whole: one that builds on what builds on it would be accepted by nobody.
    fn push(&mut self, (facts, body): (Facts, Vec<u8>), begins: Begins) {
        let begins = match begins {
            Begins::Always => true,
            Begins::IfHeard => self.heard,
            Begins::Never => false,
        };
        // Claims in a lane count where the lane is known: they cannot come with it.
        self.heard = (self.heard && !begins) || facts.kind == NODE_ADMITTED;
        self.list.push(Draft { facts, body, begins });
    }

    fn take(&mut self) -> Vec<Draft> {
        std::mem::take(self).list
    }
}

impl Room {
    /// Whether this node may write here: not where another history of its own was found, and nowhere when
    /// it has no part in the mesh any more.
    pub(crate) fn is_writable(&self, cx: &Context) -> bool {
        !self.is_out(cx, cx.me) && !self.is_used_up()
    }

    /// Whether no era can follow the current one: that is not written in any more.
    pub(crate) fn is_used_up(&self) -> bool {
        self.numbering.current().c() >= C_MAX
    }

    /// Whether this node would fold this act of its own: so that nothing half done stays behind.
    ///
    /// # Errors
    ///
    /// What there is too much of.
    pub(crate) fn fits(&self, cx: &Context, body: &Body) -> Result<(), Refused> {
        self.folds.admits(self.mine, body, cx.now.mono)
    }

    /// Memory that its acts take, near enough.
    pub(crate) fn acts_bytes(&self) -> usize {
        self.folds.bytes()
    }

    /// Adds an entry to this node's own log; it is signed when the turn ends. `None`: the room has too
    /// many logs, or the body too many bytes.
    pub(crate) fn append(&mut self, cx: &mut Context, body: &Body) -> Option<LocalRef> {
        self.append_dated(cx, body, cx.now.wall_ms)
    }

    /// The same, as of another time (Unix milliseconds).
    pub(crate) fn append_dated(
        &mut self,
        cx: &mut Context,
        body: &Body,
        wall_ms: u64,
    ) -> Option<LocalRef> {
        let plain = body.encode();
        // One that receivers refuse would cut this node's log for ever.
        let fits = plain.len() <= PLAIN_BODY_BYTES_MAX;
        let ix = self.logs.ensure(self.mine).filter(|_| fits)?;
        let at = LocalRef { log: ix, seq: self.logs.get(ix).head + 1 };
        // As late as the room is, but no leap that receivers would refuse: an author that was silent
        // for long catches up in steps.
        let own = self.logs.get(ix).clock;
        let ceiling = if at.seq == 1 { CLOCK_START_MAX } else { own + CLOCK_STEP_MAX };
        let clock = (self.clock + 1).min(ceiling);
        self.clock = self.clock.max(clock);
        let facts = Facts { clock, wall_ms, kind: body.kind(), visible: body.visible() };
        let spot = self.spot(self.mine, at.seq, facts.kind);
        let kept = self.record.seal.as_ref().map(|seal| seal.seal(&spot, &plain));
        self.logs.advance(ix, at.seq, facts.clock);
        self.note_bytes(cx, kept.as_ref().unwrap_or(&plain).len());
        self.fold(cx, at, facts, Some(&plain));
        let begins = begins(body);
        self.drafts.push((facts, kept.unwrap_or(plain)), begins);
        cx.active.insert(self.id);
        Some(at)
    }

    /// Seals what was appended in this turn, as runs, and stores it. Returns what is to be sent.
    pub(crate) fn seal(&mut self, cx: &mut Context, identity: &Identity) -> Vec<Run> {
        let Some(ix) = self.logs.ix(self.mine) else { return Vec::new() };
        let mut drafts = self.drafts.take();
        let mut first = self.logs.get(ix).head + 1 - drafts.len() as u64;
        let mut out = Vec::new();
        while !drafts.is_empty() {
            let rest = drafts.split_off(run_length(&drafts));
            let run = Run {
                room: self.id,
                log: self.mine,
                first,
                backlink: self.logs.get(ix).hash,
                entries: drafts.iter().map(draft_entry).collect(),
                seal: [0; 64],
            };
            let run = run.seal(cx.mesh, identity);
            let last = run.run().last();
            for (seq, draft) in (first..).zip(&drafts) {
                let mut kept = stored(draft.facts, &draft.body);
                kept.backlink = (seq == first).then_some(run.run().backlink);
                kept.seal = (seq == last).then_some(run.run().seal);
                let at = LocalRef { log: ix, seq };
                cx.change(Change::Entry { room: self.id, at, entry: Arc::new(kept) });
            }
            let seal = run.certificate();
            let record = self.logs.edit(ix);
            (record.hash, record.seal) = (seal.hash, seal.seal);
            first = last + 1;
            out.push(sent(&run));
            drafts = rest;
        }
        out
    }

    /// Rows for whatever control state changed in this turn.
    pub(crate) fn flush(&mut self, cx: &mut Context) {
        self.note_settled();
        if std::mem::take(&mut self.record_dirty) {
            cx.change(Change::Room { room: self.id, record: self.record.clone() });
        }
        for (log, record) in self.logs.take_dirty() {
            cx.change(Change::Log { room: self.id, log, record });
        }
        for (era, record) in self.numbering.take_dirty() {
            cx.change(Change::Era { room: self.id, era, record });
        }
    }

    /// Moves each log's `settled` up to just before its first undelivered entry.
    fn note_settled(&mut self) {
        let logs: Vec<(LogIx, u64, u64)> =
            self.logs.iter().map(|(ix, log)| (ix, log.head, log.settled)).collect();
        for (log, head, settled) in logs {
            let from = LocalRef { log, seq: 0 };
            let to = LocalRef { log, seq: u64::MAX };
            let first = self.numbering.undelivered.range(from..=to).next();
            let now = first.map_or(head, |(at, _)| at.seq - 1);
            if now > settled {
                self.logs.edit(log).settled = now;
            }
        }
    }
}

/// How many of the drafts fit under one seal: at least one.
fn run_length(drafts: &[Draft]) -> usize {
    let mut bytes = 0;
    let next = drafts.iter().skip(1).position(|it| it.begins);
    let most = next.map_or(RUN_ENTRIES_MAX, |at| RUN_ENTRIES_MAX.min(at + 1));
    let fits = drafts.iter().take(most).take_while(|draft| {
        bytes += if draft.body.len() > BODY_INLINE_BYTES_MAX { 64 } else { draft.body.len() + 24 };
        bytes <= RUN_BYTES_MAX
    });
    fits.count().max(1)
}

fn draft_entry(draft: &Draft) -> RunEntry {
    let body = if draft.body.len() > BODY_INLINE_BYTES_MAX {
        let (hash, len) = (crate::name::id::sha256(&[&draft.body]), draft.body.len() as u64);
        Carried::Apart { hash, len }
    } else {
        Carried::Here(draft.body.clone().into())
    };
    RunEntry { facts: draft.facts, body }
}

/// Whether an entry that says this begins a run.
fn begins(body: &Body) -> Begins {
    match body {
        Body::Decision(_) | Body::Election(ElectionAct::Started(_)) => Begins::Always,
        Body::Chat(_) | Body::Thinking(_) => Begins::Never,
        Body::Ordered(it) if it.by.is_none() => Begins::Never,
        Body::Ordered(_)
        | Body::EraClaimed(_)
        | Body::HandedOver(_)
        | Body::NodeAdmitted(_)
        | Body::RoomCreated(_)
        | Body::AgentClaimed(_)
        | Body::Key(_)
        | Body::Parted(_)
        | Body::Vote(_)
        | Body::Election(_)
        | Body::Task(_)
        | Body::Unknown => Begins::IfHeard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::kinds::{CHAT, DECISION};

    /// Stands for whatever builds on others.
    const ACT: u8 = 100;

    /// The runs that drafts of these kinds become; 0: a run of another node is accepted.
    fn lengths(kinds: &[u8]) -> Vec<usize> {
        let mut drafts = Drafts::default();
        for (kind, clock) in kinds.iter().zip(1..) {
            let facts = Facts { clock, wall_ms: 0, kind: *kind, visible: true };
            match *kind {
                0 => drafts.note_accepted(),
                DECISION => drafts.push((facts, vec![0; 10]), Begins::Always),
                ACT | NODE_ADMITTED => drafts.push((facts, vec![0; 10]), Begins::IfHeard),
                _ => drafts.push((facts, vec![0; 10]), Begins::Never),
            }
        }
        let mut drafts = drafts.take();
        let mut lengths = Vec::new();
        while !drafts.is_empty() {
            let length = run_length(&drafts);
            lengths.push(length);
            drafts.drain(..length);
        }
        lengths
    }

    #[test]
    fn a_decision_begins_a_run() {
        assert_eq!(lengths(&[CHAT; 3]), [3]);
        assert_eq!(lengths(&[CHAT, DECISION, DECISION]), [1, 1, 1]);
        assert_eq!(lengths(&[CHAT, CHAT, DECISION, CHAT]), [2, 2]);
        let many: Vec<u8> = [[CHAT; RUN_ENTRIES_MAX].as_slice(), &[CHAT, DECISION]].concat();
        assert_eq!(lengths(&many), [RUN_ENTRIES_MAX, 1, 1]);
    }

    #[test]
    fn what_may_build_on_a_run_that_was_accepted_meanwhile_begins_a_run() {
        assert_eq!(lengths(&[0, ACT, ACT]), [2], "that came before");
        assert_eq!(lengths(&[ACT, 0, CHAT, CHAT]), [3], "chat builds on nothing");
        assert_eq!(lengths(&[CHAT, 0, 0, CHAT, ACT, ACT]), [2, 2], "once");
        assert_eq!(lengths(&[CHAT, 0, ACT, 0, CHAT, ACT]), [1, 2, 1]);
    }

    #[test]
    fn a_claim_does_not_come_with_the_lane_it_is_in() {
        assert_eq!(lengths(&[CHAT, NODE_ADMITTED, ACT, ACT]), [2, 2]);
    }
}
