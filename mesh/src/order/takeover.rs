//! The sequencer of a room: which node it is, asking it for numbers, and the claim of the next era when it does
//! not go on.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Order,
    liveness::{self, Gone, Liveness, Verdict},
};
use crate::{
    api::boundary::Alarm,
    limits::{
        ASK_ENTRIES_MAX, ASK_EVERY_MAX, CALL_AFTER, CLAIM_EVERY, FORLORN_AFTER, NUMBER_WITHIN,
        ROAM_ERAS_AHEAD_MAX, VETO_WAIT, WANT_TIMEOUT,
    },
    name::{
        id::{EntryRef, LocalRef, LogId, NodeId},
        number::{Era, Number},
    },
    replica::Replica,
    turn::{context::Context, happened::Happened},
    wire::{
        entry::{Body, EraClaimed},
        message::{Message, Span},
        seal::NOBODY,
    },
};

/// How a room's sequencer is, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequencerStatus {
    /// This node.
    Mine,
    /// This node would, but it has to hear a peer first.
    Waiting,
    /// Nobody goes on in that era: this node did, and must not; or it never was anybody's; or others cannot learn of it.
    Closed,
    /// Another node, which lives.
    Other(NodeId),
    /// Another node, which cannot be expected to.
    Gone(Gone),
}

impl Order {
    /// The sequencer that issues numbers here now.
    pub(crate) fn status(
        &self,
        cx: &Context,
        replica: &Replica,
        live: &Liveness,
    ) -> SequencerStatus {
        let (era, log) = (self.numbering.current(), self.numbering.sequencer());
        if log.author == NOBODY {
            return SequencerStatus::Closed;
        }
        if log.author != cx.me {
            let out = replica.is_out(cx, log.author) || replica.is_elsewhere(cx, log.author);
            let gone = if out {
                Some(Gone { node: log.author, since: Duration::ZERO, anew: false })
            } else {
                live.gone(cx.now.mono, log)
            };
            return gone.map_or(SequencerStatus::Other(log.author), SequencerStatus::Gone);
        }
        if !live.may_issue() && !replica.record.local {
            return SequencerStatus::Waiting;
        }
        let floor = replica.record.floor;
        let closed = log != replica.mine || floor.is_some_and(|floor| era <= floor);
        if cx.out || closed || !self.is_verifiable(cx, replica, era) {
            SequencerStatus::Closed
        } else {
            SequencerStatus::Mine
        }
    }

    /// Whether a late joiner can verify this era's handover chain: it needs all entries that gave the era
    /// from one node to the next, or it gets none of its numbers.
    fn is_verifiable(&self, cx: &Context, replica: &Replica, era: Era) -> bool {
        let former = self.numbering.eras.get(&era).map_or(&[][..], |era| &era.record.former);
        former.iter().all(|gave| replica.may_come(cx, gave.log, gave.seq))
    }

    // Entries that wait for a number.

    /// Whether some entry waits for the sequencer.
    pub(crate) fn needs_numbers(&self, tip: Number) -> bool {
        self.numbering.undelivered.values().any(|entry| entry.needs_number(tip))
    }

    /// When the first entry came that waits for a number.
    fn waits_since(&self, tip: Number) -> Duration {
        let waits = self.numbering.undelivered.values().filter(|entry| entry.needs_number(tip));
        waits.map(|entry| entry.since).min().unwrap_or_default()
    }

    /// The entries that wait for a number.
    pub(super) fn waiting(&self, tip: Number) -> Vec<LocalRef> {
        let waits = self.numbering.undelivered.iter().filter(|(_, entry)| entry.needs_number(tip));
        waits.map(|(at, _)| *at).collect()
    }

    /// Whether an entry of this node was kept waiting for too long (rule 1). A sequencer that lives is asked
    /// for late entries; for one that is `gone` they count, too.
    pub(crate) fn keeps_waiting(&self, cx: &Context, replica: &Replica, gone: bool) -> bool {
        let (now, tip) = (cx.now.mono, replica.record.tip);
        let mine = replica.logs.ix(replica.mine);
        self.numbering.undelivered.iter().any(|(at, entry)| {
            let waits = entry.is_unnumbered() || (gone && entry.is_late(tip));
            Some(at.log) == mine && waits && now >= entry.since + NUMBER_WITHIN
        })
    }

    /// Sees to it that entries here get numbers: late entries are asked for; an own entry without
    /// a number, or an own claim of a task without an answer (`claims_due`), has not reached the sequencer, or the
    /// answer has not come back, so frontiers are compared with it.
    pub(crate) fn ask(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        live: &Liveness,
        claims_due: bool,
    ) {
        let (now, tip, mine) = (cx.now.mono, replica.record.tip, replica.logs.ix(replica.mine));
        let (mut late, mut unnumbered) = (Vec::new(), claims_due);
        for (at, entry) in &mut self.numbering.undelivered {
            // Normally its author sees to it that an entry gets a number; an author that has waited this
            // long knows of none that others do, because their giver forked.
            let forlorn = entry.is_unnumbered() && now >= entry.since + FORLORN_AFTER;
            let own = entry.is_unnumbered() && Some(at.log) == mine && !forlorn;
            if (entry.is_late(tip) || own || forlorn)
                && now >= entry.ask_at
                && late.len() < ASK_ENTRIES_MAX
            {
                entry.ask_step = (entry.ask_step * 2).min(ASK_EVERY_MAX);
                entry.ask_at = now + entry.ask_step;
                unnumbered |= own;
                if !own {
                    late.push(*at);
                }
            }
        }
        let sequencer = self.numbering.sequencer().author;
        let near = live.up.contains(&sequencer);
        let room = replica.id;
        if !late.is_empty() {
            let (era, spans) = (self.numbering.current(), spans(replica, &late));
            let ask = Message::Ask { room, era, tip, spans };
            if near {
                cx.send(sequencer, ask);
            } else {
                cx.broadcast(Some(room), ask);
            }
        }
        if unnumbered && near {
            let heads = replica.logs.heads();
            cx.send(sequencer, Message::Have { room, heads, answer: true });
        } else if unnumbered {
            replica.ask_all(cx);
        }
    }

    /// Calls a sequencer that lives by hearsay alone, and does not give a number. An author first, or all would at once.
    pub(crate) fn call(
        &self,
        cx: &mut Context,
        replica: &Replica,
        live: &mut Liveness,
        claims_due: bool,
    ) {
        let (now, tip, sequencer) =
            (cx.now.mono, replica.record.tip, self.numbering.sequencer().author);
        if !live.is_hearsay(now, sequencer) {
            return;
        }
        let mine = replica.logs.ix(replica.mine);
        let due = self.numbering.undelivered.iter().any(|(at, entry)| {
            let patience = if Some(at.log) == mine { CALL_AFTER } else { CALL_AFTER * 2 };
            entry.needs_number(tip) && now >= entry.since + patience
        });
        if (due || claims_due)
            && let Some(nonce) = live.call(now, sequencer)
        {
            liveness::call(cx, sequencer, nonce);
        }
    }

    // Claims.

    /// Opens the next era and numbers all entries there that wait, these before all others; at most once
    /// per [`CLAIM_EVERY`]. `false`: not now.
    pub(crate) fn claim(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        first: Vec<LocalRef>,
    ) -> bool {
        let now = cx.now.mono;
        if self.claimed_at.is_some_and(|at| now < at + CLAIM_EVERY) {
            return false;
        }
        let before = self.numbering.sequencer().author;
        let Some(era) = self.open_era(cx, replica) else { return false };
        if before != NOBODY {
            cx.alarm(Alarm::EraOpened { room: replica.id, era, before });
        }
        self.issue(cx, replica, first);
        let waits = self.waiting(replica.record.tip);
        self.issue(cx, replica, waits);
        true
    }

    /// A claim of this era, with entries that prove it: a node that accepts it has heard of the era that it
    /// follows, and of all that is cut.
    fn claim_of(&self, replica: &Replica, era: Era, after: Era) -> EraClaimed {
        let cut = self.numbering.cut();
        let eras = cut.iter().map(|reached| reached.era).chain([after]);
        let records = eras.filter_map(|era| Some(&self.numbering.eras.get(&era)?.record));
        let mut seen: BTreeMap<LogId, u64> = BTreeMap::new();
        for record in records {
            let head = replica.logs.head_of(record.sequencer);
            let gives = EntryRef { log: record.sequencer, seq: head };
            for place in record.by().iter().chain([&gives]) {
                let seq = seen.entry(place.log).or_default();
                *seq = place.seq.max(*seq);
            }
        }
        // Of its own log it shows the entries before the claim.
        seen.retain(|log, seq| *log != replica.mine && *seq > 0);
        let seen = seen.into_iter().map(|(log, seq)| EntryRef { log, seq }).collect();
        EraClaimed { era, after, cut, seen }
    }

    /// Writes the claim of the next era. `None`: this node may not write, or numbers are used up.
    fn open_era(&mut self, cx: &mut Context, replica: &mut Replica) -> Option<Era> {
        let may = !cx.is_relay() && self.is_writable(cx, replica);
        let lane = cx.lane().filter(|_| may)?;
        let after = self.numbering.current();
        let ephemeral = replica.record.ephemeral;
        // Own claims that an ephemeral room forgot must not be made again.
        let forgotten = replica.record.floor.filter(|_| ephemeral).unwrap_or(after);
        let era = Era::new(after.max(forgotten).c() + 1, lane)?;
        let claim = self.claim_of(replica, era, after);
        self.write(cx, replica, &Body::EraClaimed(claim))?;
        self.claimed_at = Some(cx.now.mono);
        if ephemeral {
            cx.happens(Happened::ClaimedInMemory { room: replica.id, era });
        }
        (self.numbering.current() == era).then_some(era)
    }

    /// Claims eras until one is above `cursor`: each builds on the one before, so a cursor from the
    /// other side of a split may take several. They are few (see [`crate::limits`]).
    pub(super) fn claim_above(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        cursor: Number,
    ) -> bool {
        let before = self.numbering.sequencer().author;
        for _ in 0..=ROAM_ERAS_AHEAD_MAX {
            let Some(era) = self.open_era(cx, replica) else { return false };
            if era > cursor.era() {
                cx.alarm(Alarm::EraOpened { room: replica.id, era, before });
                return true;
            }
        }
        false
    }

    /// Claims the next era in place of a sequencer that is gone, when it is this node's turn to.
    pub(crate) fn take_over(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        live: &mut Liveness,
        gone: Gone,
    ) {
        if cx.is_relay() {
            return;
        }
        // A node that has heard of a successor says so: news of private rooms may be under way for longer than that.
        let now = cx.now.mono;
        if !gone.anew && self.compared.is_none_or(|at| now >= at + WANT_TIMEOUT) {
            self.compared = Some(now);
            replica.ask_all(cx);
        }
        // A sequencer that is gone for long is missed when something waits: ranks count from then, or all would claim
        // at once. While the first asks what others have, nobody else need.
        let first = live.rank(now, replica.eligible(cx), gone.node) == 0;
        let wait = if first { Duration::ZERO } else { VETO_WAIT };
        let missed = self.waits_since(replica.record.tip) + wait;
        let gone = Gone { since: gone.since.max(missed), ..gone };
        match live.verdict(now, replica.eligible(cx), gone) {
            Verdict::Gone if !gone.anew && !self.has_compared(cx, replica) => {}
            Verdict::Wait => {}
            Verdict::AskPeers => {
                for peer in live.probe(cx.now.mono, gone.node) {
                    cx.send(peer, Message::Probe { node: gone.node });
                }
            }
            Verdict::Gone => {
                self.claim(cx, replica, Vec::new());
            }
        }
    }

    /// Whether peers had time to say what they have.
    fn has_compared(&self, cx: &Context, replica: &Replica) -> bool {
        let alone = replica.peers(cx).is_empty();
        alone || self.compared.is_some_and(|at| cx.now.mono >= at + VETO_WAIT)
    }

    #[cfg(test)]
    pub(crate) fn claimed_now(&mut self, at: Duration) {
        self.claimed_at = Some(at);
    }
}

fn spans(replica: &Replica, entries: &[LocalRef]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for at in entries {
        let log = replica.logs.id(at.log);
        match spans.last_mut() {
            Some(last) if last.log == log && last.upto + 1 == at.seq => last.upto = at.seq,
            Some(_) | None => spans.push(Span { log, after: at.seq - 1, upto: at.seq }),
        }
    }
    spans
}
