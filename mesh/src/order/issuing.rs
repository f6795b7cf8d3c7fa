//! Giving numbers of an era that is this node's: to entries that wait, to entries that others ask for, for clients from
//! other nodes, and to imported entries. And giving the era away.

use super::{Order, liveness::Liveness, numbering::EraState, takeover::SequencerStatus};
use crate::{
    limits::{ASK_ENTRIES_MAX, CLAIM_EVERY, ORDERED_ITEMS_MAX},
    name::{
        id::{LocalRef, LogId, Position},
        number::{Era, Number},
    },
    replica::Replica,
    turn::context::Context,
    wire::{
        entry::{Body, HandedOver, Items, Ordered},
        message::Span,
    },
};

/// An item of an [`Ordered`] that names no log: its numbers name nothing.
const NO_LOG: u32 = u32::MAX;

/// A node's question for other numbers: it cannot deliver the entries under any number they have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'m> {
    pub(crate) era: Era,
    /// Of the node that asks.
    pub(crate) tip: Number,
    pub(crate) spans: &'m [Span],
}

impl Order {
    /// Writes an entry that gives numbers, or an era.
    pub(super) fn write(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        body: &Body,
    ) -> Option<LocalRef> {
        let draft = replica.write(cx, body, cx.now.wall_ms)?;
        let at = draft.at;
        self.fold(cx, replica, at, body);
        replica.keep(draft);
        Some(at)
    }

    /// Gives numbers of the current era, which this node issues, to these entries.
    pub(crate) fn issue(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        mut entries: Vec<LocalRef>,
    ) {
        let era = self.numbering.current();
        entries.sort_by_key(|at| self.position(replica, *at));
        entries.dedup();
        let room = cx.capacity(era).saturating_sub(self.numbering.known(era));
        entries.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        for part in entries.chunks(ORDERED_ITEMS_MAX) {
            let first = self.numbering.known(era) + 1;
            let (logs, items) = items(replica, part);
            let by = self.numbering.by(era);
            let ordered = Ordered { era, first, logs, items, by };
            if self.write(cx, replica, &Body::Ordered(ordered)).is_none() {
                return;
            }
            for (at, n) in part.iter().zip(first..) {
                let fresh = self.numbering.undelivered.contains_key(at);
                if era != Era::HOME || !fresh {
                    self.numbering.issued.insert(*at, era.number(n));
                }
            }
        }
        self.deliver(cx, replica);
    }

    /// Delivered entries' clocks are not kept: log seq orders within a log, and that is all that a fresh
    /// number for an old entry needs.
    fn position(&self, replica: &Replica, at: LocalRef) -> Position {
        let clock = self.numbering.undelivered.get(&at).map_or(0, |entry| entry.facts.clock);
        Position { clock, place: replica.name_of(at) }
    }

    /// Numbers the entries that wait, as the sequencer.
    pub(crate) fn number_waiting(&mut self, cx: &mut Context, replica: &mut Replica) {
        let waits = self.waiting(replica.record.tip);
        if waits.is_empty() {
            return;
        }
        let era = self.numbering.current();
        let now = cx.now.mono;
        let eras = |floor: Number| floor.era().c().saturating_sub(era.c()) + 1;
        let floor = self.roamers.floor(era);
        let floor = floor.filter(|floor| self.roamers.may_claim(now, eras(*floor)));
        if let Some(floor) = floor
            && self.claim_above(cx, replica, floor)
        {
            // A client came from an era above this one: it would drop entries with numbers below its cursor.
            self.roamers.claimed(now, eras(floor));
            self.issue(cx, replica, waits);
        } else if self.numbering.known(era) >= cx.capacity(era) {
            // A full era is followed by one that its own sequencer opens.
            self.claim(cx, replica, Vec::new());
        } else {
            self.issue(cx, replica, waits);
        }
    }

    /// The highest number that is known or was issued here for an entry, as far as it matters for another
    /// one.
    pub(super) fn highest_issued(&self, at: LocalRef) -> Option<Number> {
        match self.numbering.undelivered.get(&at) {
            Some(entry) => entry.numbers.map(|numbers| numbers.best),
            None => self.numbering.issued.get(&at).copied(),
        }
    }

    /// Answers a node that cannot deliver entries under any number they have.
    pub(crate) fn on_ask(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        live: &Liveness,
        question: Question<'_>,
    ) {
        let Question { era, tip, spans } = question;
        let status = self.status(cx, replica, live);
        // An era that this node must not go on with nobody else goes on with while the node lives.
        let closed =
            status == SequencerStatus::Closed && self.numbering.sequencer().author == cx.me;
        // A removed node went on in a later era than this node's own, beyond the cut of its log: the node that asks
        // never hears of that.
        let own = |state: &EraState| state.record.sequencer == replica.mine;
        let passed = replica.is_out(cx, self.numbering.sequencer().author)
            && self.numbering.eras.get(&era).is_some_and(|state| own(state));
        let mine = status == SequencerStatus::Mine;
        let here = era == self.numbering.current() && (closed || mine);
        // Of an era that is none here not even the first number is worth working out.
        if !(here || passed) {
            return;
        }
        // A node may have got there by numbers that a node which is out gave beyond the cut of its log: nothing of that
        // will ever come here.
        let elsewhere = tip < era.number(1) && self.is_void(cx, replica, tip.era());
        if tip > replica.record.tip && !elsewhere {
            return;
        }
        let give = self.within_budget(cx, replica, tip, spans);
        // A full era is followed by one that its own sequencer opens, also when only others wait.
        let full = self.numbering.known(era) >= cx.capacity(era);
        let opens = full || closed || passed;
        if !give.is_empty() && (!opens || self.claim(cx, replica, Vec::new())) {
            self.issue(cx, replica, give);
        }
    }

    /// The entries that get another number: however much is asked for, and by however many, numbers cost
    /// everybody.
    fn within_budget(
        &mut self,
        cx: &Context,
        replica: &Replica,
        tip: Number,
        spans: &[Span],
    ) -> Vec<LocalRef> {
        let now = cx.now.mono;
        if self.asked.is_none_or(|(since, _)| now >= since + CLAIM_EVERY) {
            self.asked = Some((now, ASK_ENTRIES_MAX));
        }
        let mut left = self.asked.map_or(0, |(_, left)| left);
        let mut give = Vec::new();
        for span in spans {
            let Some(log) = replica.logs.ix(span.log) else { continue };
            let upto = span.upto.min(replica.logs.get(log).head);
            for seq in (span.after.saturating_add(1)..=upto).take(left) {
                left -= 1;
                let at = LocalRef { log, seq };
                if self.highest_issued(at).is_none_or(|number| number <= tip) {
                    give.push(at);
                }
            }
        }
        if let Some((_, budget)) = &mut self.asked {
            *budget -= give.len();
        }
        give
    }

    // Clients from other nodes.

    /// A client came with a cursor that this node cannot serve: an era above it is needed, and
    /// numbers there for `entries` (numbering.md, Roaming). `false`: not now.
    pub(crate) fn number_above(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        cursor: Number,
        entries: &[LocalRef],
    ) -> bool {
        let era = self.numbering.current();
        let mine = self.numbering.sequencer() == replica.mine
            && replica.record.floor.is_none_or(|floor| era > floor);
        // Numbers of this era that are still to be issued are above the cursor.
        let tip = replica.record.tip;
        let above = era > cursor.era() || (era == cursor.era() && tip >= cursor);
        // As many as are needed: the client reads on after this, and does not ask again for entries that are left out.
        let needed = self.lack_number_above(replica, cursor, entries).len().max(1) as u64;
        let (all, known) = (cx.capacity(era), self.numbering.known(era));
        let open = mine && above && needed.min(all) <= all.saturating_sub(known);
        if !open && !self.claim_above(cx, replica, cursor) {
            return false;
        }
        let entries = self.lack_number_above(replica, cursor, entries);
        self.issue(cx, replica, entries);
        true
    }

    /// Those of these entries that are here and have no number above `cursor`.
    fn lack_number_above(
        &self,
        replica: &Replica,
        cursor: Number,
        entries: &[LocalRef],
    ) -> Vec<LocalRef> {
        let lacks = |at: &&LocalRef| {
            let held = replica.logs.iter().any(|(ix, log)| ix == at.log && at.seq <= log.head);
            held && self.highest_issued(**at).is_none_or(|number| number <= cursor)
        };
        entries.iter().filter(lacks).copied().collect()
    }

    // Handover.

    /// Gives the rest of the current era to `to`. `None`: it is not this node's to give.
    pub(crate) fn hand_over(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        era: Era,
        to: LogId,
    ) -> Option<u64> {
        let mine = self.numbering.current() == era && self.numbering.sequencer() == replica.mine;
        if !mine {
            return None;
        }
        let next = self.numbering.known(era) + 1;
        let by = self.numbering.by(era);
        let at = self.write(cx, replica, &Body::HandedOver(HandedOver { era, next, to, by }))?;
        Some(at.seq)
    }

    // Imported numbers.

    /// Whether this node may bring numbers here: it gives those of the home era, and no others were given.
    pub(crate) fn can_import(&self, replica: &Replica) -> bool {
        replica.takes_imports_of(replica.mine)
            && self.numbering.current() == Era::HOME
            && self.numbering.sequencer() == replica.mine
    }

    /// The number that is given next.
    pub(crate) fn next_home_number(&self) -> u64 {
        self.numbering.known(Era::HOME) + 1
    }

    /// Gives these entries these numbers of the home era, ascending, and the numbers between them and up to
    /// `next` (left out) to nothing. `false`: they cannot be given.
    pub(crate) fn issue_imported(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        entries: &[(LocalRef, u64)],
        next: u64,
    ) -> bool {
        let mut parts = entries.chunks(ORDERED_ITEMS_MAX).peekable();
        while let Some(part) = parts.next() {
            let upto = if parts.peek().is_some() { None } else { Some(next) };
            if !self.write_numbers(cx, replica, part, upto) {
                return false;
            }
        }
        let rest = entries.is_empty() && next > self.next_home_number();
        let written = !rest || self.write_numbers(cx, replica, &[], Some(next));
        self.deliver(cx, replica);
        written
    }

    fn write_numbers(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        part: &[(LocalRef, u64)],
        upto: Option<u64>,
    ) -> bool {
        let first = self.next_home_number();
        let mut items: Vec<Items> = Vec::new();
        let mut reached = first;
        for (at, number) in part {
            skip(&mut items, number.saturating_sub(reached));
            add(&mut items, 0, at.seq);
            reached = number + 1;
        }
        skip(&mut items, upto.map_or(0, |upto| upto.saturating_sub(reached)));
        let logs = if part.is_empty() { Vec::new() } else { vec![replica.mine] };
        let by = self.numbering.by(Era::HOME);
        let ordered = Ordered { era: Era::HOME, first, logs, items, by };
        self.write(cx, replica, &Body::Ordered(ordered)).is_some()
    }
}

/// These entries, as an [`Ordered`] names them: the logs, and places in them.
fn items(replica: &Replica, entries: &[LocalRef]) -> (Vec<LogId>, Vec<Items>) {
    let mut logs: Vec<LogId> = Vec::new();
    let mut items: Vec<Items> = Vec::new();
    for at in entries {
        let id = replica.logs.id(at.log);
        let nth = logs.iter().position(|log| *log == id).unwrap_or_else(|| {
            logs.push(id);
            logs.len() - 1
        });
        add(&mut items, u32::try_from(nth).unwrap_or(u32::MAX), at.seq);
    }
    (logs, items)
}

/// One more entry.
fn add(items: &mut Vec<Items>, log: u32, seq: u64) {
    match items.last_mut() {
        Some(last) if last.log == log && last.from + u64::from(last.count) == seq => {
            last.count += 1;
        }
        Some(_) | None => items.push(Items { log, from: seq, count: 1 }),
    }
}

/// So many numbers that name nothing.
fn skip(items: &mut Vec<Items>, mut count: u64) {
    while count > 0 {
        let part = u32::try_from(count).unwrap_or(u32::MAX);
        items.push(Items { log: NO_LOG, from: 1, count: part });
        count -= u64::from(part);
    }
}
