//! Who gives numbers in a room, and what a node does that waits for one: asking, taking over, holes.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    api::boundary::Alarm,
    engine::context::Context,
    limits::{
        ASK_ENTRIES_MAX, ASK_EVERY_MAX, CLAIM_EVERY, DEDUP_FOR, DEDUP_IDS_MAX, FORLORN_AFTER,
        HOLE_AFTER, HOLE_AFTER_SILENCE, NUMBER_WITHIN, ROAM_ERAS_AHEAD_MAX, VETO_WAIT,
        WANT_TIMEOUT,
    },
    name::{
        id::{EntryRef, LocalRef, LogId, NodeId},
        number::{Era, Number},
    },
    order::{
        liveness::{Gone, Liveness, Verdict},
        numbering::{EraState, NextItem},
    },
    room::Room,
    wire::{
        entry::{Body, DedupId, EraClaimed, HandedOver},
        message::{Message, Span},
        seal::NOBODY,
    },
};

/// Sends that may be repeated, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    by_id: BTreeMap<DedupId, LocalRef>,
    entries: BTreeMap<LocalRef, Send>,
    /// In the order in which they became known.
    order: VecDeque<LocalRef>,
}

/// One send.
#[derive(Debug)]
struct Send {
    id: DedupId,
    wall_ms: u64,
    number: Option<Number>,
}

impl Sent {
    pub(crate) fn insert(&mut self, id: DedupId, at: LocalRef, wall_ms: u64) {
        let known = self.by_id.get(&id).and_then(|at| self.entries.get(at));
        if known.is_some_and(|it| wall_ms < it.wall_ms.saturating_add(keep_ms())) {
            return;
        }
        self.by_id.insert(id, at);
        self.entries.insert(at, Send { id, wall_ms, number: None });
        self.order.push_back(at);
        if self.order.len() > DEDUP_IDS_MAX {
            self.forget_oldest();
        }
    }

    pub(crate) fn delivered(&mut self, at: LocalRef, number: Number) {
        if let Some(send) = self.entries.get_mut(&at) {
            send.number = Some(number);
        }
    }

    /// The entry of an earlier send within the time that repeats are recognised, and its number
    /// if it has been delivered.
    pub(crate) fn find(&self, wall_ms: u64, id: DedupId) -> Option<(LocalRef, Option<Number>)> {
        let at = *self.by_id.get(&id)?;
        let send = self.entries.get(&at)?;
        (wall_ms < send.wall_ms.saturating_add(keep_ms())).then_some((at, send.number))
    }

    fn forget_oldest(&mut self) {
        if let Some(at) = self.order.pop_front()
            && let Some(send) = self.entries.remove(&at)
            && self.by_id.get(&send.id) == Some(&at)
        {
            self.by_id.remove(&send.id);
        }
    }
}

/// How long a send is remembered, in milliseconds.
fn keep_ms() -> u64 {
    u64::try_from(DEDUP_FOR.as_millis()).unwrap_or(u64::MAX)
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Sequencing {
    pub(crate) sent: Sent,
    claimed_at: Option<Duration>,
    /// When peers were asked last what they have of the room, before its sequencer was to be replaced.
    compared: Option<Duration>,
    /// What may still be given to askers, and since when that is counted.
    asked: Option<(Duration, usize)>,
}

#[cfg(test)]
impl Sequencing {
    pub(crate) fn claimed_now(&mut self, at: Duration) {
        self.claimed_at = Some(at);
    }
}

/// Who issues a room's numbers, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Post {
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

impl Room {
    /// Who issues numbers here now.
    pub(crate) fn post(&self, cx: &Context, live: &Liveness) -> Post {
        let (era, log) = (self.numbering.current(), self.numbering.sequencer());
        if log.author == NOBODY {
            return Post::Closed;
        }
        if log.author != cx.me {
            let gone = if self.is_out(cx, log.author) || self.is_elsewhere(cx, log.author) {
                Some(Gone { node: log.author, since: Duration::ZERO, anew: false })
            } else {
                live.gone(cx.now.mono, log)
            };
            return gone.map_or(Post::Other(log.author), Post::Gone);
        }
        if !live.may_issue() && !self.record.local {
            return Post::Waiting;
        }
        if cx.out {
            return Post::Closed;
        }
        let closed = log != self.mine || self.record.floor.is_some_and(|floor| era <= floor);
        if closed || self.was_given_by_nobody(cx, era) { Post::Closed } else { Post::Mine }
    }

    /// Who joins later cannot get all entries that gave this era from one to the next, and so none of its numbers.
    fn was_given_by_nobody(&self, cx: &Context, era: Era) -> bool {
        let former = self.numbering.eras.get(&era).map_or(&[][..], |it| &it.record.former);
        former.iter().any(|it| !self.may_come(cx, it.log, it.seq))
    }

    /// Does what is due: numbers what waits, or sees that somebody does.
    pub(crate) fn advance(&mut self, cx: &mut Context, live: &mut Liveness) {
        self.drain(cx);
        self.leave_holes(cx);
        if self.numbering.undelivered.is_empty() && !self.folds.tasks.is_waiting() {
            return;
        }
        match self.post(cx, live) {
            Post::Mine => {
                self.number_what_waits(cx);
                self.answer_claims(cx);
            }
            Post::Waiting => {}
            Post::Closed => self.claim_for_what_waits(cx),
            Post::Other(_) => self.ask(cx, live),
            Post::Gone(gone) => {
                if self.needs_sequencer() {
                    self.take_over(cx, live, gone);
                }
                self.claim_if_kept_waiting(cx, true);
            }
        }
    }

    fn has_unnumbered_or_late(&self) -> bool {
        let tip = self.tip();
        self.numbering.undelivered.values().any(|it| it.needs_number(tip))
    }

    /// When the first of what waits for a number came.
    fn waits_since(&self) -> Duration {
        let tip = self.tip();
        let waits = self.numbering.undelivered.values().filter(|it| it.needs_number(tip));
        waits.map(|it| it.since).min().unwrap_or_default()
    }

    fn what_waits(&self) -> Vec<LocalRef> {
        let tip = self.tip();
        let waits = self.numbering.undelivered.iter().filter(|(_, it)| it.needs_number(tip));
        waits.map(|(at, _)| *at).collect()
    }

    fn number_what_waits(&mut self, cx: &mut Context) {
        let waits = self.what_waits();
        if waits.is_empty() {
            return;
        }
        let era = self.numbering.current();
        let now = cx.now.mono;
        let eras = |floor: Number| floor.era().c().saturating_sub(era.c()) + 1;
        let floor = self.roamers.floor(era);
        let floor = floor.filter(|it| self.roamers.may_claim(now, eras(*it)));
        if let Some(floor) = floor
            && self.claim_above(cx, floor)
        {
            // A client came from an era above this one: it would drop what gets a number below its cursor.
            self.roamers.claimed(now, eras(floor));
            self.issue(cx, waits);
        } else if self.numbering.known(era) >= cx.capacity(era) {
            // A full era is followed by one that its own sequencer opens.
            self.claim_for_what_waits(cx);
        } else {
            self.issue(cx, waits);
        }
    }

    fn claim_for_what_waits(&mut self, cx: &mut Context) {
        if self.needs_sequencer() {
            self.claim(cx);
        }
    }

    /// An entry waits for a number, or a claim for its answer.
    fn needs_sequencer(&self) -> bool {
        self.has_unnumbered_or_late() || self.folds.tasks.is_waiting()
    }

    /// Opens the next era and numbers there what waits; at most once per [`CLAIM_EVERY`]. `false`:
    /// not now.
    pub(crate) fn claim(&mut self, cx: &mut Context) -> bool {
        self.claim_for(cx, Vec::new())
    }

    /// The same, and numbers these before all others.
    pub(crate) fn claim_for(&mut self, cx: &mut Context, first: Vec<LocalRef>) -> bool {
        let now = cx.now.mono;
        if self.sequencing.claimed_at.is_some_and(|at| now < at + CLAIM_EVERY) {
            return false;
        }
        let before = self.numbering.sequencer().author;
        let Some(era) = self.open_era(cx) else { return false };
        if before != NOBODY {
            cx.alarm(Alarm::EraOpened { room: self.id, era, before });
        }
        self.issue(cx, first);
        let waits = self.what_waits();
        self.issue(cx, waits);
        true
    }

    /// Whether the era of this number gave lower ones to entries that are not here, and may come yet.
    pub(crate) fn is_behind_holes(&self, cx: &Context, number: Number) -> bool {
        self.numbering.foretold_below(number).any(|at| self.is_missing(cx, at))
    }

    /// A claim of this era, with what shows what it says: whoever accepts it has heard of the era that it follows, and of
    /// all that is cut.
    fn claim_of(&self, era: Era, after: Era) -> EraClaimed {
        let cut = self.numbering.cut();
        let eras = cut.iter().map(|it| it.era).chain([after]);
        let records = eras.filter_map(|era| Some(&self.numbering.eras.get(&era)?.record));
        let mut seen: BTreeMap<LogId, u64> = BTreeMap::new();
        for record in records {
            let gives =
                EntryRef { log: record.sequencer, seq: self.logs.head_of(record.sequencer) };
            for place in record.by().iter().chain([&gives]) {
                let seq = seen.entry(place.log).or_default();
                *seq = place.seq.max(*seq);
            }
        }
        // Of its own log it shows what comes before the claim.
        seen.retain(|log, seq| *log != self.mine && *seq > 0);
        let seen = seen.into_iter().map(|(log, seq)| EntryRef { log, seq }).collect();
        EraClaimed { era, after, cut, seen }
    }

    /// Writes the claim of the next era. `None`: this node may not write, or numbers are used up.
    fn open_era(&mut self, cx: &mut Context) -> Option<Era> {
        let lane = cx.lane().filter(|_| self.is_writable(cx))?;
        let after = self.numbering.current();
        // What an ephemeral room forgot of this node's own claims must not be claimed again.
        let forgotten = self.record.floor.filter(|_| self.record.ephemeral).unwrap_or(after);
        let era = Era::new(after.max(forgotten).c() + 1, lane)?;
        let claim = self.claim_of(era, after);
        self.append(cx, &Body::EraClaimed(claim))?;
        self.sequencing.claimed_at = Some(cx.now.mono);
        if self.record.ephemeral {
            cx.ephemeral_claims.push((self.id, era));
        }
        (self.numbering.current() == era).then_some(era)
    }

    fn take_over(&mut self, cx: &mut Context, live: &mut Liveness, gone: Gone) {
        // Whoever has heard of a successor says so: news of private rooms may be under way for longer than that.
        let now = cx.now.mono;
        if !gone.anew && self.sequencing.compared.is_none_or(|at| now >= at + WANT_TIMEOUT) {
            self.sequencing.compared = Some(now);
            self.ask_all(cx);
        }
        // Whoever is gone for long is missed when something waits: ranks count from then, or all would claim at once.
        // While the first asks what others have, nobody else need.
        let first = live.rank(now, self.heirs(cx), gone.node) == 0;
        let missed = self.waits_since() + if first { Duration::ZERO } else { VETO_WAIT };
        let gone = Gone { since: gone.since.max(missed), ..gone };
        match live.verdict(now, self.heirs(cx), gone) {
            Verdict::Gone if !gone.anew && !self.has_compared(cx) => {}
            Verdict::Wait => {}
            Verdict::AskPeers => {
                for peer in live.probe(cx.now.mono, gone.node) {
                    cx.send(peer, Message::Probe { node: gone.node });
                }
            }
            Verdict::Gone => {
                self.claim(cx);
            }
        }
    }

    /// Whether peers had time to say what they have.
    fn has_compared(&self, cx: &Context) -> bool {
        let alone = self.peers(cx).is_empty();
        alone || self.sequencing.compared.is_some_and(|at| cx.now.mono >= at + VETO_WAIT)
    }

    /// The author's node claims, whatever its rank, when its entry is kept waiting (rule 1). A sequencer that lives is
    /// asked for what is late.
    fn claim_if_kept_waiting(&mut self, cx: &mut Context, gone: bool) {
        let (now, tip, mine) = (cx.now.mono, self.tip(), self.logs.ix(self.mine));
        let kept = self.numbering.undelivered.iter().any(|(at, it)| {
            let waits = it.is_unnumbered() || (gone && it.is_late(tip));
            Some(at.log) == mine && waits && now >= it.since + NUMBER_WITHIN
        });
        if kept || self.folds.tasks.kept_waiting(now, mine) {
            self.claim(cx);
        }
    }

    /// Sees to it that what waits here gets numbers: what is late is asked for; an own entry without
    /// a number, or an own claim without an answer, has not reached the sequencer, or that has not come
    /// back, so frontiers are compared with it.
    fn ask(&mut self, cx: &mut Context, live: &Liveness) {
        let (now, tip, mine) = (cx.now.mono, self.tip(), self.logs.ix(self.mine));
        let (mut late, mut unnumbered) = (Vec::new(), self.folds.tasks.ask(now, mine));
        for (at, it) in &mut self.numbering.undelivered {
            // Normally its author sees to it that an entry gets a number; whoever has waited this
            // long knows of none that others do, because its giver forked.
            let forlorn = it.is_unnumbered() && now >= it.since + FORLORN_AFTER;
            let own = it.is_unnumbered() && Some(at.log) == mine && !forlorn;
            if (it.is_late(tip) || own || forlorn)
                && now >= it.ask_at
                && late.len() < ASK_ENTRIES_MAX
            {
                it.ask_step = (it.ask_step * 2).min(ASK_EVERY_MAX);
                it.ask_at = now + it.ask_step;
                unnumbered |= own;
                if !own {
                    late.push(*at);
                }
            }
        }
        let sequencer = self.numbering.sequencer().author;
        let near = live.up.contains(&sequencer);
        if !late.is_empty() {
            let (room, era, spans) = (self.id, self.numbering.current(), self.spans(&late));
            let ask = Message::Ask { room, era, tip, spans };
            if near {
                cx.send(sequencer, ask);
            } else {
                cx.broadcast(Some(room), ask);
            }
        }
        if unnumbered && near {
            let (room, heads) = (self.id, self.logs.heads());
            cx.send(sequencer, Message::Have { room, heads, answer: true });
        } else if unnumbered {
            self.ask_all(cx);
        }
        self.claim_if_kept_waiting(cx, false);
    }

    fn spans(&self, entries: &[LocalRef]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for at in entries {
            let log = self.logs.id(at.log);
            match spans.last_mut() {
                Some(last) if last.log == log && last.upto + 1 == at.seq => last.upto = at.seq,
                Some(_) | None => spans.push(Span { log, after: at.seq - 1, upto: at.seq }),
            }
        }
        spans
    }

    /// A node cannot deliver these under any number they have (rule 3).
    pub(crate) fn on_ask(
        &mut self,
        cx: &mut Context,
        live: &Liveness,
        (era, tip, spans): (Era, Number, &[Span]),
    ) {
        let post = self.post(cx, live);
        // What this node must not go on with nobody else does while it lives.
        let closed = post == Post::Closed && self.numbering.sequencer().author == cx.me;
        // Whoever has parted went on in a later era than this node's own, beyond what counts of its log: who asks never
        // hears of that.
        let own = |it: &EraState| it.record.sequencer == self.mine;
        let passed = self.is_out(cx, self.numbering.sequencer().author)
            && self.numbering.eras.get(&era).is_some_and(|it| own(it));
        let here = era == self.numbering.current() && (closed || post == Post::Mine);
        // Of an era that is none here not even the first number is worth working out.
        if !(here || passed) {
            return;
        }
        // Who asks may have got there by numbers that whoever is out gave beyond what counts of its log: nothing of that
        // will ever come here.
        let elsewhere = tip < era.number(1) && self.is_void(cx, tip.era());
        if tip > self.tip() && !elsewhere {
            return;
        }
        let mut give = Vec::new();
        // However much is asked for, and by however many: numbers cost everybody.
        let now = cx.now.mono;
        if self.sequencing.asked.is_none_or(|(since, _)| now >= since + CLAIM_EVERY) {
            self.sequencing.asked = Some((now, ASK_ENTRIES_MAX));
        }
        let mut left = self.sequencing.asked.map_or(0, |(_, left)| left);
        for span in spans {
            let Some(log) = self.logs.ix(span.log) else { continue };
            let upto = span.upto.min(self.logs.get(log).head);
            for seq in (span.after.saturating_add(1)..=upto).take(left) {
                left -= 1;
                let at = LocalRef { log, seq };
                if self.highest_issued(at).is_none_or(|number| number <= tip) {
                    give.push(at);
                }
            }
        }
        if let Some((_, budget)) = &mut self.sequencing.asked {
            *budget -= give.len();
        }
        // A full era is followed by one that its own sequencer opens, also when only others wait.
        let full = self.numbering.known(era) >= cx.capacity(era);
        if !give.is_empty() && (!(full || closed || passed) || self.claim(cx)) {
            self.issue(cx, give);
        }
    }

    /// The highest number that is known or was issued here for an entry, as far as it matters to
    /// whom it may be given another one.
    fn highest_issued(&self, at: LocalRef) -> Option<Number> {
        match self.numbering.undelivered.get(&at) {
            Some(it) => it.numbers.map(|numbers| numbers.best),
            None => self.numbering.issued.get(&at).copied(),
        }
    }

    /// A client came with a cursor that this node cannot serve: an era above it is needed, and
    /// numbers there for `entries` (numbering.md, Roaming). `false`: not now.
    pub(crate) fn number_above(
        &mut self,
        cx: &mut Context,
        cursor: Number,
        entries: Vec<LocalRef>,
    ) -> bool {
        let era = self.numbering.current();
        let mine = self.numbering.sequencer() == self.mine
            && self.record.floor.is_none_or(|floor| era > floor);
        // Numbers of this era that are still to be issued are above the cursor.
        let above = era > cursor.era() || (era == cursor.era() && self.tip() >= cursor);
        // As many as are needed: the client reads on after this, and asks no more for what is left out.
        let needed = self.lack_number_above(cursor, &entries).len().max(1) as u64;
        let (all, known) = (cx.capacity(era), self.numbering.known(era));
        let open = mine && above && needed.min(all) <= all.saturating_sub(known);
        if !open && !self.claim_above(cx, cursor) {
            return false;
        }
        let entries = self.lack_number_above(cursor, &entries);
        self.issue(cx, entries);
        true
    }

    /// Those of these entries that are here and have no number above `cursor`.
    fn lack_number_above(&self, cursor: Number, entries: &[LocalRef]) -> Vec<LocalRef> {
        let lacks = |at: &&LocalRef| {
            let held = self.logs.iter().any(|(ix, log)| ix == at.log && at.seq <= log.head);
            held && self.highest_issued(**at).is_none_or(|number| number <= cursor)
        };
        entries.iter().filter(lacks).copied().collect()
    }

    /// Claims eras until one is above `cursor`: each builds on the one before, so a cursor from the
    /// other side of a split may take several. They are few (see [`crate::limits`]).
    fn claim_above(&mut self, cx: &mut Context, cursor: Number) -> bool {
        let before = self.numbering.sequencer().author;
        for _ in 0..=ROAM_ERAS_AHEAD_MAX {
            let Some(era) = self.open_era(cx) else { return false };
            if era > cursor.era() {
                cx.alarm(Alarm::EraOpened { room: self.id, era, before });
                return true;
            }
        }
        false
    }

    /// Gives the rest of the current era to `to`. `None`: it is not this node's to give.
    pub(crate) fn hand_over(&mut self, cx: &mut Context, era: Era, to: LogId) -> Option<u64> {
        let mine = self.numbering.current() == era && self.numbering.sequencer() == self.mine;
        if !mine {
            return None;
        }
        let next = self.numbering.known(era) + 1;
        let by = self.numbering.by(era);
        let at = self.append(cx, &Body::HandedOver(HandedOver { era, next, to, by }))?;
        Some(at.seq)
    }

    /// Numbers whose content nobody has are left as holes, in the end (rule 2).
    fn leave_holes(&mut self, cx: &mut Context) {
        let now = cx.now.mono;
        let busy: Vec<Era> = self.numbering.busy.iter().copied().collect();
        for era in busy {
            let Some(since) = self.numbering.eras.get(&era).and_then(|it| it.missing_since) else {
                continue;
            };
            let NextItem::Item(_, at) = self.numbering.next_item(era) else { continue };
            if !self.is_missing(cx, at) {
                continue;
            }
            self.ask_all(cx);
            let peers = self.peers(cx);
            let waited = now.saturating_sub(since);
            // What is missing behind it was missing as long: one wait is enough for all of them.
            let mut next = Some(at);
            while let Some(at) = next.filter(|at| self.is_missing(cx, *at)) {
                let log = self.logs.id(at.log);
                let nobody = self.sync.nobody_has(&peers, since, (log, at.seq));
                if !(waited >= HOLE_AFTER && nobody || waited >= HOLE_AFTER_SILENCE) {
                    break;
                }
                self.leave_hole(cx, era);
                next = match self.numbering.next_item(era) {
                    NextItem::Item(_, at) => Some(at),
                    NextItem::Gap(_) | NextItem::Nothing => None,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> DedupId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_be_bytes());
        DedupId(id)
    }

    fn at(seq: u64) -> LocalRef {
        LocalRef { log: 0, seq }
    }

    #[test]
    fn so_many_sends_are_remembered_and_the_newest_of_them() {
        let mut sent = Sent::default();
        let most = DEDUP_IDS_MAX as u64;
        for n in 1..=most {
            sent.insert(id(n), at(n), 0);
        }
        assert_eq!(sent.find(0, id(1)), Some((at(1), None)));
        sent.insert(id(most + 1), at(most + 1), 0);
        assert_eq!(sent.find(0, id(1)), None);
        assert_eq!(sent.find(0, id(2)), Some((at(2), None)));
        assert_eq!(sent.find(0, id(most + 1)), Some((at(most + 1), None)));
        assert!(sent.entries.len() <= DEDUP_IDS_MAX && sent.by_id.len() <= DEDUP_IDS_MAX);
    }

    #[test]
    fn a_send_is_what_it_was_first_for_so_long_and_then_what_it_is_next() {
        let mut sent = Sent::default();
        sent.insert(id(1), at(1), 1_000);
        sent.insert(id(1), at(2), 1_000 + keep_ms() - 1);
        sent.delivered(at(1), Number(7));
        assert_eq!(sent.find(1_000 + keep_ms() - 1, id(1)), Some((at(1), Some(Number(7)))));
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), None);
        sent.insert(id(1), at(3), 1_000 + keep_ms());
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), Some((at(3), None)));
        sent.forget_oldest();
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), Some((at(3), None)), "it was the first");
        sent.forget_oldest();
        assert_eq!(sent.find(1_000, id(1)), None);
    }
}
