//! One room at one node. It wires the three parts of a room: its [`Replica`] takes entries in, its [`Order`]
//! numbers and delivers them, its [`Folds`] keep the states that follow from acts.
//!
//! An entry is accepted when everything it refers to is here already: its log's entries before it, its
//! body, and the entries that it names: the handover by which it gives numbers, say. Until then its run waits,
//! bounded; nothing unsettled is ever folded, so folds never wait.

use std::collections::BTreeSet;

use crate::{
    api::{
        batch::{Change, RoomRecord, StoredRoom, Unsettled},
        command::Refused,
    },
    directory::removals::Cut,
    fold::{
        Folds,
        act::{Act, Folded, Void, Written},
    },
    name::{
        group::Group,
        id::{EntryRef, LocalRef, LogId, NodeId, RoomId},
        identity::Identity,
        number::{Era, Number},
    },
    order::{
        self, Order, delivery::Read, issuing::Question, liveness::Liveness, numbering::Numbering,
        takeover::SequencerStatus,
    },
    replica::{
        Replica,
        acceptance::{Accepted, Content},
        pending::Waiting,
    },
    turn::{
        context::Context,
        happened::{Fact, Happened},
    },
    wire::{
        acts::{TaskAct, VoteAct},
        approval::ApprovalAct,
        entry::{Body, Facts},
        kinds::{self, Class, DECISION, PARTED},
        message::Head,
        once::OnceAct,
        run::{Run, Verified},
    },
};

/// When an act is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// When it is accepted, or written.
    WhenItCame,
    /// Later, after a start: its author need not be a sequencer any more.
    AfterStart,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) replica: Replica,
    pub(crate) order: Order,
    pub(crate) folds: Folds,
    /// After a start, until acts are folded again: decisions that were not delivered.
    decisions: Vec<Unsettled>,
}

impl Room {
    /// A room that this node has not known until now.
    pub(crate) fn new(cx: &mut Context, id: RoomId, record: RoomRecord, mine: LogId) -> Room {
        // The room's own row comes before any other of it.
        cx.change(Change::Room { room: id, record: record.clone() });
        let numbering = Numbering::new(record.home);
        let mut room = Room::blank(cx, Replica::new(cx, id, record, mine), numbering);
        cx.to_advance.insert(id);
        // The node that made it may have been removed since.
        room.order.end_eras_if_over(cx, &room.replica, room.replica.record.home);
        room
    }

    fn blank(cx: &Context, replica: Replica, numbering: Numbering) -> Room {
        let seal = replica.record.seal.as_ref();
        let forked: BTreeSet<NodeId> = cx.forked_in(seal).collect();
        let folds = Folds::new(forked, cx.unheard_in(seal));
        Room { replica, order: Order::new(numbering), folds, decisions: Vec::new() }
    }

    /// A room as it was when the node last stopped.
    pub(crate) fn restore(cx: &mut Context, stored: StoredRoom, mine: LogId) -> Room {
        let id = stored.room;
        let numbering = Numbering::restore(stored.eras, stored.waiting, stored.foretold);
        cx.lost.extend(numbering.lost().map(|number| (id, number)));
        let mut replica = Replica::new(cx, id, stored.record, mine);
        replica.restore_logs(stored.logs);
        let mut room = Room::blank(cx, replica, numbering);
        cx.to_advance.insert(id);
        let (decisions, others): (Vec<Unsettled>, Vec<Unsettled>) = stored
            .unsettled
            .into_iter()
            .partition(|unsettled| unsettled.entry.facts.kind == DECISION);
        room.decisions = decisions;
        others.into_iter().for_each(|unsettled| room.hold_again(cx, unsettled));
        room
    }

    /// Decisions that are still to be delivered: they can be judged when all acts are folded again.
    pub(crate) fn hold_decisions(&mut self, cx: &mut Context) {
        for unsettled in std::mem::take(&mut self.decisions) {
            let body = self.replica.body_of(unsettled.at, &unsettled.entry);
            if self.is_leaders(unsettled.at, &body) {
                self.hold_again(cx, unsettled);
            }
        }
    }

    fn hold_again(&mut self, cx: &mut Context, unsettled: Unsettled) {
        let (at, facts) = (unsettled.at, unsettled.entry.facts);
        if self.replica.counts(at)
            && let Some((body, len)) = self.replica.open(at, &unsettled.entry)
        {
            self.order.hold(cx, &self.replica, Read { at, facts, body: &body, len });
            if let Some(waits) = self.order.numbering.undelivered.get_mut(&at) {
                waits.numbers = unsettled.numbers;
            }
        }
    }

    /// The number of the newest entry that was delivered.
    pub(crate) fn tip(&self) -> Number {
        self.replica.record.tip
    }

    /// Something here waits: for content, for a number, for entries before it.
    pub(crate) fn is_busy(&self) -> bool {
        !self.order.numbering.undelivered.is_empty()
            || !self.order.numbering.busy.is_empty()
            || !self.replica.pending.is_empty()
            || self.replica.sync.is_behind()
            || self.folds.is_waiting()
    }

    // Receiving.

    /// A run came from a peer.
    pub(crate) fn receive(&mut self, cx: &mut Context, from: NodeId, run: Verified) {
        if self.replica.receive(cx, from, run) {
            self.drain(cx);
        }
    }

    /// A peer says what it has. Fetches entries that are missing here, and answers if asked to.
    pub(crate) fn on_have(&mut self, cx: &mut Context, from: NodeId, heads: &[Head], answer: bool) {
        if self.replica.on_have(cx, from, heads, answer) {
            self.pump(cx);
        }
    }

    /// The answer to a want has ended.
    pub(crate) fn on_spans_end(&mut self, cx: &mut Context, from: NodeId) {
        self.replica.on_spans_end(from);
        self.pump(cx);
    }

    /// Asks for bodies and entries that are known to exist elsewhere, and gives up runs that have waited for
    /// too long.
    pub(crate) fn pump(&mut self, cx: &mut Context) {
        for expired in self.replica.pending.expire(cx) {
            if self.order.gives_for_another(cx, &self.replica, &expired) {
                cx.blame(expired.run.run().log.author, |faults| &mut faults.void);
            }
        }
        self.replica.pump(cx);
    }

    /// Accepts runs until no more can be, and delivers.
    pub(crate) fn drain(&mut self, cx: &mut Context) {
        while let Some(waiting) = self.next_acceptable(cx) {
            self.accept(cx, waiting);
        }
        self.order.deliver(cx, &mut self.replica);
    }

    fn next_acceptable(&mut self, cx: &mut Context) -> Option<Waiting> {
        let folds = &self.folds;
        self.replica.next_acceptable(cx, |cx, log, body| {
            order::is_in_lane(cx, log, body) && folds.can_judge(log, body)
        })
    }

    fn accept(&mut self, cx: &mut Context, waiting: Waiting) {
        let log = waiting.run.run().log;
        let Some(mut accepting) = self.replica.accept(cx, waiting) else { return };
        while let Some(accepted) = self.replica.accept_next(cx, &mut accepting) {
            self.fold_accepted(cx, accepted);
        }
        self.order.end_eras_if_over(cx, &self.replica, log);
    }

    fn fold_accepted(&mut self, cx: &mut Context, accepted: Accepted) {
        let Accepted { at, facts, content } = accepted;
        let log = self.replica.logs.id(at.log);
        match content {
            Content::Uncounted(bytes) => {
                // It says nothing, unless it removes another node.
                if facts.kind == PARTED && self.replica.logs.is_whole() {
                    let (room, body) = (self.replica.id, Body::decode(facts.kind, &bytes));
                    cx.happens(Happened::Listed(Fact { room, at, log, facts, body }));
                }
            }
            Content::Gone => self.order.hold_gone(cx, &self.replica, at, facts),
            Content::Unopened => cx.blame(log.author, |faults| &mut faults.void),
            Content::Open(bytes) => self.fold(cx, at, facts, &bytes),
        }
    }

    // Folding.

    /// Takes in an entry that counts; `bytes` is its body.
    fn fold(&mut self, cx: &mut Context, at: LocalRef, facts: Facts, bytes: &[u8]) {
        let log = self.replica.logs.id(at.log);
        let body = self.replica.as_it_counts(log, Body::decode(facts.kind, bytes));
        if facts.kind == DECISION && !self.is_leaders(at, &body) {
            cx.blame(log.author, |faults| &mut faults.void);
            return;
        }
        if facts.visible {
            self.order.hold(cx, &self.replica, Read { at, facts, body: &body, len: bytes.len() });
        }
        let room = self.replica.id;
        match body.traits().class {
            Class::Order => self.order.fold(cx, &mut self.replica, at, &body),
            Class::Directory => {
                if self.replica.is_directory {
                    cx.happens(Happened::Listed(Fact { room, at, log, facts, body }));
                }
            }
            Class::Vote
            | Class::Election
            | Class::Task
            | Class::Delivery
            | Class::Once
            | Class::Approval => {
                if let Some(act) = Act::of(body) {
                    self.fold_act(cx, at, facts, act);
                }
            }
            Class::Said => self.note_ids(cx, at, facts, &body),
            Class::Unknown => {
                // Of a kind that is known, but it cannot be read.
                if kinds::traits(facts.kind).is_some() {
                    cx.blame(log.author, |faults| &mut faults.void);
                }
            }
        }
    }

    /// Whether a decision counts as one: only a leader's does.
    fn is_leaders(&self, at: LocalRef, body: &Body) -> bool {
        let place = self.replica.name_of(at);
        let Body::Decision(decision) = body else { return false };
        if decision.is_imported() {
            return self.replica.takes_imports_of(place.log);
        }
        self.folds.elections.allows(place, decision)
    }

    /// Ids of a message by which it is found: of its send, and from elsewhere.
    fn note_ids(&mut self, cx: &mut Context, at: LocalRef, facts: Facts, body: &Body) {
        let Some(said) = body.words() else { return };
        let room = self.replica.id;
        if let Some(id) = said.dedup {
            cx.change(Change::Dedup { room, id, at, wall_ms: facts.wall_ms });
            self.order.sent.insert(id, at, facts.wall_ms);
        }
        if let Some(id) = said.id {
            cx.change(Change::Called { room, id, at });
        }
    }

    /// Takes in an act that was accepted.
    fn fold_act(&mut self, cx: &mut Context, at: LocalRef, facts: Facts, act: Act) {
        let written = self.written(cx, at, facts);
        let author = written.place.log.author;
        let mut alarms = Vec::new();
        let folded = if self.is_entitled(&act, written.place, Judged::WhenItCame) {
            self.folds.apply(written, act, &mut alarms)
        } else {
            Folded::Void
        };
        alarms.into_iter().for_each(|alarm| cx.alarm(alarm));
        match folded {
            Folded::Taken => {}
            Folded::Void => cx.blame(author, |faults| &mut faults.void),
            Folded::Overflow => cx.faults.overflow += 1,
        }
    }

    /// Folds an act again that the store has, after a start.
    pub(crate) fn refold(&mut self, cx: &Context, at: LocalRef, facts: Facts, body: Body) {
        let log = self.replica.logs.id(at.log);
        if self.replica.counts(at)
            && let Some(act) = Act::of(self.replica.as_it_counts(log, body))
        {
            self.refold_act(cx, at, facts, act);
        }
    }

    pub(crate) fn refold_act(&mut self, cx: &Context, at: LocalRef, facts: Facts, act: Act) {
        let written = self.written(cx, at, facts);
        if self.is_entitled(&act, written.place, Judged::AfterStart) {
            // Faults of the act were counted when it came.
            let _ = self.folds.apply(written, act, &mut Vec::new());
        }
    }

    fn written(&self, cx: &Context, at: LocalRef, facts: Facts) -> Written {
        let (room, place) = (self.replica.id, self.replica.name_of(at));
        Written { room, place, at, facts, now: cx.now }
    }

    /// Whether the author of the entry at this place may write such an act at all, as far as that
    /// follows from more than the acts themselves.
    fn is_entitled(&self, act: &Act, by: EntryRef, judged: Judged) -> bool {
        if let Act::Vote(VoteAct::Imported(_)) = act {
            self.replica.takes_imports_of(by.log)
        } else if let Act::Task(TaskAct::Granted(grant)) = act {
            self.is_sequencers(by, (grant.era, grant.by), judged)
        } else if let Act::Once(OnceAct::Answered(answer)) = act {
            self.is_sequencers(by, (answer.era, answer.by), judged)
        } else if let Act::Approval(ApprovalAct::Answered(answer)) = act {
            self.is_sequencers(by, (answer.era, answer.by), judged)
        } else if let Act::Delivery(_) = act {
            // Elsewhere nobody asks somebody in particular.
            let seal = self.replica.record.seal.as_ref();
            seal.is_some_and(|seal| matches!(seal.group, Group::Pair(_)))
        } else {
            true
        }
    }

    /// Whether the author of the entry at this place is, or was, the sequencer of an era, by a handover if it names one.
    fn is_sequencers(
        &self,
        at: EntryRef,
        (era, by): (Era, Option<EntryRef>),
        judged: Judged,
    ) -> bool {
        let era = self.order.numbering.eras.get(&era).map(|era| &era.record);
        era.is_some_and(|era| match judged {
            Judged::WhenItCame => era.is_issued_by(at.log, by),
            Judged::AfterStart => era.was_issued(at, by),
        })
    }

    // Forks and removal.

    /// Nothing of this log counts from `seq` on: entries that were delivered stay, the rest is dropped.
    pub(crate) fn quarantine(&mut self, cx: &mut Context, log: LogId, seq: u64) {
        let Some(ix) = self.replica.logs.ensure(log) else { return };
        if !self.replica.logs.cut(ix, seq) {
            return;
        }
        self.order.forget_from(cx, &self.replica, LocalRef { log: ix, seq });
        self.folds.retract(Void::From(EntryRef { log, seq }));
        self.order.deliver(cx, &mut self.replica);
    }

    /// Nothing more is accepted from this author, here or anywhere; its eras end where they are.
    pub(crate) fn shut_out(&mut self, cx: &mut Context, author: NodeId) {
        self.replica.pending.forget_author(cx, author);
        self.replica.logs.shut_out(author);
        self.order.numbering.end_eras_of(author);
        self.folds.retract(Void::Author(author));
        cx.to_advance.insert(self.replica.id);
    }

    /// A node was removed, or less of it counts than was thought. Returns from where on each of its logs does
    /// not count, where somebody has said.
    pub(crate) fn remove(&mut self, cx: &mut Context, node: NodeId) -> Vec<(LogId, u64)> {
        let logs = self.replica.logs.iter().map(|(_, log)| log.id);
        let logs: Vec<LogId> = logs.filter(|log| log.author == node).collect();
        let mut cuts = Vec::new();
        for log in logs {
            match self.replica.cut_of(cx, log) {
                Some(Cut::At(last)) => {
                    self.quarantine(cx, log, last + 1);
                    cuts.push((log, last + 1));
                }
                // Others hold more of it, or less.
                Some(Cut::AsHeld) => {
                    self.folds.retract(Void::Author(node));
                    self.replica.logs.shut_out(node);
                }
                None => {}
            }
        }
        // It may give numbers here, and nothing of its log be here.
        let given = self.order.numbering.eras.values().map(|era| era.record.sequencer);
        let given: BTreeSet<LogId> = given.filter(|log| log.author == node).collect();
        for log in given {
            self.order.end_eras_if_over(cx, &self.replica, log);
        }
        // Of some of these logs nothing is here yet.
        let waits = self.replica.pending.keys().into_iter().filter(|(log, _)| log.author == node);
        if waits.into_iter().any(|(log, _)| !self.replica.takes_more(cx, log)) {
            self.replica.pending.forget_author(cx, node);
        }
        self.folds.retract(Void::Member(node));
        self.order.deliver(cx, &mut self.replica);
        cx.to_advance.insert(self.replica.id);
        cuts
    }

    // Writing.

    /// Whether this node may write here.
    pub(crate) fn is_writable(&self, cx: &Context) -> bool {
        self.order.is_writable(cx, &self.replica)
    }

    /// Whether this node would fold this act of its own: so that nothing half done stays behind.
    ///
    /// # Errors
    ///
    /// There is too much of something.
    pub(crate) fn fits(&self, cx: &Context, body: &Body) -> Result<(), Refused> {
        self.folds.admits(self.replica.mine, body, cx.now.mono)
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
        let draft = self.replica.write(cx, body, wall_ms)?;
        self.fold(cx, draft.at, draft.facts, &draft.plain);
        let at = draft.at;
        self.replica.keep(draft);
        Some(at)
    }

    /// Seals the entries that were written in this turn, and stores them. Returns the runs, to be sent.
    pub(crate) fn seal(&mut self, cx: &mut Context, identity: &Identity) -> Vec<Run> {
        self.replica.seal(cx, identity)
    }

    /// Rows for all control state that changed in this turn.
    pub(crate) fn flush(&mut self, cx: &mut Context) {
        let undelivered = &self.order.numbering.undelivered;
        self.replica.note_settled(|log| {
            let (from, to) = (LocalRef { log, seq: 0 }, LocalRef { log, seq: u64::MAX });
            undelivered.range(from..=to).next().map(|(at, _)| at.seq)
        });
        self.replica.flush(cx);
        self.order.flush(cx, &self.replica);
    }

    // Numbers.

    /// Does what is due: numbers entries that wait, or sees that somebody does.
    pub(crate) fn advance(&mut self, cx: &mut Context, live: &mut Liveness) {
        self.drain(cx);
        self.order.leave_holes(cx, &mut self.replica);
        let claims = self.folds.has_asks();
        if self.order.numbering.undelivered.is_empty() && !claims {
            return;
        }
        let waits = claims || self.order.needs_numbers(self.tip());
        match self.order.status(cx, &self.replica, live) {
            SequencerStatus::Mine => {
                self.order.number_waiting(cx, &mut self.replica);
                self.answer_claims(cx);
            }
            SequencerStatus::Waiting => {}
            SequencerStatus::Closed => {
                if waits {
                    self.claim(cx);
                }
            }
            SequencerStatus::Other(_) => {
                let (now, mine) = (cx.now.mono, self.replica.logs.ix(self.replica.mine));
                let claims_due = self.folds.ask(now, mine);
                self.order.ask(cx, &mut self.replica, live, claims_due);
                self.order.call(cx, &self.replica, live, claims_due);
                self.claim_if_kept_waiting(cx, false);
            }
            SequencerStatus::Gone(gone) => {
                if waits {
                    self.order.take_over(cx, &mut self.replica, live, gone);
                }
                self.claim_if_kept_waiting(cx, true);
            }
        }
    }

    /// This node is the sequencer: it answers claims of tasks, and asks for things that one agent does.
    fn answer_claims(&mut self, cx: &mut Context) {
        let era = self.order.numbering.current();
        let by = self.order.numbering.by(era);
        for claim in self.folds.tasks.due(cx.now.mono, era) {
            if let Some(grant) = self.folds.tasks.answer(claim, era, by) {
                self.append(cx, &Body::Task(TaskAct::Granted(grant)));
            }
        }
        for asked in self.folds.onces.due(cx.now.mono, era) {
            if let Some(answer) = self.folds.onces.answer(asked, era, by, cx.now) {
                self.append(cx, &Body::Once(OnceAct::Answered(answer)));
            }
        }
        for asked in self.folds.approvals.due(cx.now.mono, era) {
            if let Some(answer) = self.folds.approvals.answer(asked, era, by, cx.now) {
                self.append(cx, &Body::Approval(ApprovalAct::Answered(answer)));
            }
        }
    }

    /// The author's node claims the next era, at any rank, when its entry, or its claim of a task, is kept
    /// waiting (rule 1). `gone`: the sequencer is.
    fn claim_if_kept_waiting(&mut self, cx: &mut Context, gone: bool) {
        let mine = self.replica.logs.ix(self.replica.mine);
        if self.order.keeps_waiting(cx, &self.replica, gone)
            || self.folds.kept_waiting(cx.now.mono, mine)
        {
            self.claim(cx);
        }
    }

    /// Opens the next era and numbers there all entries that wait. `false`: not now.
    pub(crate) fn claim(&mut self, cx: &mut Context) -> bool {
        self.claim_for(cx, Vec::new())
    }

    /// The same, and numbers these before all others.
    pub(crate) fn claim_for(&mut self, cx: &mut Context, first: Vec<LocalRef>) -> bool {
        self.order.claim(cx, &mut self.replica, first)
    }

    /// See [`Order::on_ask`].
    pub(crate) fn on_ask(&mut self, cx: &mut Context, live: &Liveness, question: Question<'_>) {
        self.order.on_ask(cx, &mut self.replica, live, question);
    }

    /// See [`Order::number_above`].
    pub(crate) fn number_above(
        &mut self,
        cx: &mut Context,
        cursor: Number,
        entries: &[LocalRef],
    ) -> bool {
        self.order.number_above(cx, &mut self.replica, cursor, entries)
    }

    /// See [`Order::hand_over`].
    pub(crate) fn hand_over(&mut self, cx: &mut Context, era: Era, to: LogId) -> Option<u64> {
        self.order.hand_over(cx, &mut self.replica, era, to)
    }

    /// See [`Order::is_behind_holes`].
    pub(crate) fn is_behind_holes(&self, cx: &Context, number: Number) -> bool {
        self.order.is_behind_holes(cx, &self.replica, number)
    }

    /// See [`Order::issue_imported`].
    pub(crate) fn issue_imported(
        &mut self,
        cx: &mut Context,
        entries: &[(LocalRef, u64)],
        next: u64,
    ) -> bool {
        self.order.issue_imported(cx, &mut self.replica, entries, next)
    }
}

#[cfg(test)]
mod tests;
