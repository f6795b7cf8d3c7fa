//! One room at one node: its logs, what is accepted into them, and what is delivered from them.
//!
//! An entry is accepted when everything it refers to is here already: its log's entries before it, its
//! body, and what it names: by which handover it gives numbers, say. Until then its run waits in `pending`, bounded;
//! nothing unsettled is ever folded, so folds never wait.

mod building;
mod eras;
mod gone;
mod imported;
mod parted;
mod writing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    api::{
        batch::{Change, Fate, NumberRange, RoomRecord, Spoke, StoredRoom, Unsettled},
        boundary::Alarm,
        event::Delivered,
    },
    engine::context::{Arrived, Context, Fact, Proof, Renumbered, stored},
    fold::{Act, Folds, Void, Written},
    limits::{ASK_AFTER, ORDERED_ITEMS_MAX, WARM_BODY_BYTES_MAX},
    name::{
        id::{EntryRef, LocalRef, LogId, MessageId, NodeId, RoomId},
        number::{Era, Number},
    },
    order::{
        liveness::EligibleNodes,
        numbering::{NextItem, Numbering, Undelivered},
        roamers::Roamers,
        sequencing::Sequencing,
    },
    replica::{
        log::{Logs, Position},
        pending::Pending,
        sync::Sync,
    },
    wire::{
        acts::{Folded, TaskAct, VoteAct},
        entry::{Body, Decision, Facts, Items, Ordered, Said, Stored},
        kinds::{self, CHAT, DECISION},
        run::{Carried, Verified},
        seal::SealContext,
    },
};
use writing::Drafts;

/// When an act is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// When it is accepted, or written.
    WhenItCame,
    /// Later, after a start: its author need not be a sequencer any more.
    AfterStart,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: RoomId,
    pub(crate) record: RoomRecord,
    record_dirty: bool,
    /// Whether entries are claims that the directory folds.
    pub(crate) is_directory: bool,
    pub(crate) logs: Logs,
    /// This node's own log here.
    pub(crate) mine: LogId,
    drafts: Drafts,
    /// Above everything seen here (Lamport).
    clock: u64,
    pub(crate) numbering: Numbering,
    pub(crate) pending: Pending,
    pub(crate) sequencing: Sequencing,
    pub(crate) roamers: Roamers,
    pub(crate) sync: Sync,
    /// Content bytes held, of an ephemeral room.
    pub(crate) bytes: usize,
    pub(crate) holes: u64,
    pub(crate) folds: Folds,
    /// After a start, until acts are folded again: decisions that were not delivered.
    decisions: Vec<Unsettled>,
    /// For how long bodies are kept here, as far as known. `None`: for ever. Milliseconds.
    pub(crate) keep_ms: Option<u64>,
}

impl Room {
    /// A room that this node has not known until now.
    pub(crate) fn new(cx: &mut Context, id: RoomId, record: RoomRecord, mine: LogId) -> Room {
        // The room's own row comes before any other of it.
        cx.change(Change::Room { room: id, record: record.clone() });
        let mut room = Room::blank(cx, id, record, mine);
        // Whoever made it may have parted since.
        room.end_eras_if_over(cx, room.record.home);
        room
    }

    fn blank(cx: &mut Context, id: RoomId, record: RoomRecord, mine: LogId) -> Room {
        let numbering = Numbering::new(record.home);
        let sealed = record.seal.as_ref().is_some_and(|seal| seal.opener.is_some());
        let is_directory = sealed || is_directory(cx, id);
        let logs = Logs::of(&record, is_open_directory(cx, id));
        let forked: BTreeSet<NodeId> = cx.forked_in(record.seal.as_ref()).collect();
        let unheard = cx.unheard_in(record.seal.as_ref());
        let roamers = Roamers::default();
        cx.active.insert(id);
        Room {
            id,
            record,
            record_dirty: false,
            is_directory,
            logs,
            mine,
            drafts: Drafts::default(),
            clock: 0,
            numbering,
            pending: Pending::default(),
            sequencing: Sequencing::default(),
            roamers,
            sync: Sync::default(),
            bytes: 0,
            holes: 0,
            folds: Folds::new(forked, unheard),
            decisions: Vec::new(),
            keep_ms: None,
        }
    }

    /// Folds an act again that the store has, after a start.
    pub(crate) fn refold(&mut self, cx: &Context, at: LocalRef, facts: Facts, body: Body) {
        let log = self.logs.get(at.log);
        if at.seq > log.head || log.fork.is_some_and(|fork| at.seq >= fork) {
            return;
        }
        if let Some(act) = Act::of(self.with_its_id(log.id, body)) {
            self.refold_act(cx, at, facts, act);
        }
    }

    pub(crate) fn refold_act(&mut self, cx: &Context, at: LocalRef, facts: Facts, act: Act) {
        let written = self.written(cx, at, facts);
        if self.is_entitled(&act, written.place, Judged::AfterStart) {
            // What is wrong with it was counted when it came.
            let _ = self.folds.apply(written, act, &mut Vec::new());
        }
    }

    fn written(&self, cx: &Context, at: LocalRef, facts: Facts) -> Written {
        Written { room: self.id, place: place(&self.logs, at), at, facts, now: cx.now }
    }

    /// Whether the author of the entry at this place may write such an act at all, as far as that
    /// follows from more than the acts themselves.
    fn is_entitled(&self, act: &Act, by: EntryRef, judged: Judged) -> bool {
        if let Act::Vote(VoteAct::Imported(_)) = act {
            self.takes_imports_of(by.log)
        } else if let Act::Task(TaskAct::Granted(grant)) = act {
            let era = self.numbering.eras.get(&grant.era).map(|era| &era.record);
            era.is_some_and(|era| match judged {
                Judged::WhenItCame => era.is_issued_by(by.log, grant.by),
                Judged::AfterStart => era.was_issued(by, grant.by),
            })
        } else {
            true
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
            Folded::Void => cx.blame(author, |it| &mut it.void),
            Folded::Overflow => cx.faults.overflow += 1,
        }
    }

    /// This node is the sequencer: it answers what was claimed.
    pub(crate) fn answer_claims(&mut self, cx: &mut Context) {
        let era = self.numbering.current();
        let by = self.numbering.by(era);
        for claim in self.folds.tasks.due(cx.now.mono, era) {
            if let Some(grant) = self.folds.tasks.answer(claim, era, by) {
                self.append(cx, &Body::Task(TaskAct::Granted(grant)));
            }
        }
    }

    /// A room as it was when the node last stopped.
    pub(crate) fn restore(cx: &mut Context, it: StoredRoom, mine: LogId) -> Room {
        let numbering = Numbering::restore(it.eras, it.waiting, it.foretold);
        let mut room = Room::blank(cx, it.room, it.record, mine);
        cx.lost.extend(numbering.lost().map(|it| (room.id, it)));
        room.numbering = numbering;
        room.logs = Logs::restore(&room.record, is_open_directory(cx, room.id), it.logs);
        room.clock = room.logs.iter().map(|(_, log)| log.clock).max().unwrap_or(0);
        let (decisions, others): (Vec<Unsettled>, Vec<Unsettled>) =
            it.unsettled.into_iter().partition(|it| it.entry.facts.kind == DECISION);
        room.decisions = decisions;
        others.into_iter().for_each(|it| room.hold_again(cx, it));
        room
    }

    /// Decisions that are still to be delivered: they can be judged when all acts are folded again.
    pub(crate) fn hold_decisions(&mut self, cx: &mut Context) {
        for unsettled in std::mem::take(&mut self.decisions) {
            let body = self.body_of(unsettled.at, &unsettled.entry);
            if self.is_leaders(unsettled.at, &body) {
                self.hold_again(cx, unsettled);
            }
        }
    }

    fn hold_again(&mut self, cx: &mut Context, it: Unsettled) {
        let (at, entry) = (it.at, it.entry);
        let log = self.logs.get(at.log);
        let counts = at.seq <= log.head && log.fork.is_none_or(|seq| at.seq < seq);
        let spot = self.spot(log.id, at.seq, entry.facts.kind);
        if counts && let Some(bytes) = self.record.open(&spot, &entry.body) {
            let body = self.with_its_id(log.id, Body::decode(entry.facts.kind, &bytes));
            self.hold(cx, at, entry.facts, (&body, bytes.len()));
            if let Some(waits) = self.numbering.undelivered.get_mut(&at) {
                waits.numbers = it.numbers;
            }
        }
    }

    /// Whether a decision counts as one: only a leader's does.
    fn is_leaders(&self, at: LocalRef, body: &Body) -> bool {
        let place = place(&self.logs, at);
        let Body::Decision(it) = body else { return false };
        if it.is_imported() {
            return self.takes_imports_of(place.log);
        }
        self.folds.elections.allows(place, it)
    }

    /// Where an entry of this room stands.
    fn spot(&self, log: LogId, seq: u64, kind: u8) -> SealContext {
        SealContext { room: self.id, log, seq, kind }
    }

    /// What an entry that the store has says.
    pub(crate) fn body_of(&self, at: LocalRef, entry: &Stored) -> Body {
        let spot = self.spot(self.logs.id(at.log), at.seq, entry.facts.kind);
        self.record.body(&spot, &entry.body)
    }

    pub(crate) fn edit_record(&mut self) -> &mut RoomRecord {
        self.record_dirty = true;
        &mut self.record
    }

    pub(crate) fn tip(&self) -> Number {
        self.record.tip
    }

    /// Something here waits: for content, for a number, for what comes before it.
    pub(crate) fn is_busy(&self) -> bool {
        !self.numbering.undelivered.is_empty()
            || !self.numbering.busy.is_empty()
            || !self.pending.is_empty()
            || self.sync.is_behind()
            || self.folds.is_waiting()
    }

    // Receiving.

    /// A run came from a peer.
    pub(crate) fn receive(&mut self, cx: &mut Context, from: NodeId, run: Verified) {
        cx.active.insert(self.id);
        if !self.takes_more(cx, run.run().log) {
            return;
        }
        let from = self.keeper(cx, from, run.run().log.author);
        match self.place(&run) {
            Position::Old => {}
            Position::Bad => cx.blame(run.run().log.author, |it| &mut it.chain),
            Position::Fork(certificate) => cx.proofs.push(Proof { certificate, run }),
            Position::Gap => {
                self.sync.note_gap(cx, self.id, from, self.logs.heads());
                self.pending.keep(cx, run, from);
            }
            Position::Next(_) => {
                self.pending.keep_next(cx, run, from);
                self.drain(cx);
            }
        }
    }

    /// Whom to ask for what a run came without: whoever relayed it may not have the room.
    fn keeper(&self, cx: &Context, from: NodeId, author: NodeId) -> NodeId {
        if self.record.seal.is_none() {
            return from;
        }
        let peers = self.peers(cx);
        let near = [from, author].into_iter().find(|it| peers.contains(it));
        near.or(peers.first().copied()).unwrap_or(author)
    }

    /// A body that its run came without.
    pub(crate) fn receive_body(
        &mut self,
        cx: &mut Context,
        from: NodeId,
        at: (LogId, u64),
        body: Vec<u8>,
    ) {
        let needs = self.needs(cx);
        self.pending.add_body(cx, from, at, (body, needs));
    }

    fn place(&self, run: &Verified) -> Position {
        let unsealed = run.run().log == self.mine && !self.drafts.is_empty();
        self.logs.place(self.id, run, unsealed)
    }

    /// Accepts what can be, until nothing more can.
    pub(crate) fn drain(&mut self, cx: &mut Context) {
        while let Some(run) = self.next_acceptable(cx) {
            self.accept(cx, run);
        }
        self.deliver(cx);
    }

    /// Takes a pending run that everything is here for; forgets those that are of no use any more.
    fn next_acceptable(&mut self, cx: &mut Context) -> Option<(Verified, BTreeMap<u64, Vec<u8>>)> {
        for key in self.pending.next_in_logs(|log| self.logs.head_of(log)) {
            let Some(waiting) = self.pending.get(key) else { continue };
            match self.place(&waiting.run) {
                Position::Gap => {}
                Position::Old | Position::Bad => drop(self.pending.take(cx, key)),
                Position::Fork(certificate) => {
                    if let Some(waiting) = self.pending.take(cx, key) {
                        cx.proofs.push(Proof { certificate, run: waiting.run });
                    }
                }
                Position::Next(skip) => {
                    let nobody = || self.nobody_has(cx, waiting);
                    if waiting.is_complete(skip, self.needs(cx), nobody)
                        && self.builds_on_what_is_here(cx, waiting, skip)
                    {
                        return self.pending.take(cx, key).map(|it| (it.run, it.bodies));
                    }
                }
            }
        }
        None
    }

    fn accept(&mut self, cx: &mut Context, (run, mut bodies): (Verified, BTreeMap<u64, Vec<u8>>)) {
        let Position::Next(skip) = self.place(&run) else { return };
        let Some(ix) = self.logs.ensure(run.run().log) else {
            cx.faults.overflow += 1;
            return;
        };
        self.cut_log(cx, ix);
        self.drafts.note_accepted();
        let first = run.run().first + skip as u64;
        let backlink = run.hash_at(first - 1);
        let last = run.run().last();
        for (seq, entry) in (first..).zip(&run.run().entries[skip..]) {
            let came = bodies.remove(&seq);
            let (bytes, gone) = match &entry.body {
                Carried::Here(bytes) => (bytes.to_vec(), None),
                Carried::Apart { .. } => (came.unwrap_or_default(), None),
                Carried::Gone(gone) => {
                    let gone = came.is_none().then_some(*gone);
                    (came.unwrap_or_default(), gone)
                }
            };
            let mut kept = stored(entry.facts, &bytes);
            kept.gone = gone;
            kept.backlink = if seq == first { backlink } else { None };
            kept.seal = (seq == last).then_some(run.run().seal);
            let at = LocalRef { log: ix, seq };
            cx.change(Change::Entry { room: self.id, at, entry: Arc::new(kept) });
            self.logs.advance(ix, seq, entry.facts.clock);
            self.clock = self.clock.max(entry.facts.clock);
            if self.logs.get(ix).fork.is_some_and(|cut| seq >= cut) {
                self.fold_uncounted(cx, at, entry.facts, &bytes);
                continue;
            }
            if gone.is_some() {
                self.hold_gone(cx, at, entry.facts);
                continue;
            }
            let spot = self.spot(run.run().log, seq, entry.facts.kind);
            self.note_bytes(cx, bytes.len());
            let opened = self.record.open(&spot, &bytes);
            self.fold(cx, at, entry.facts, opened.as_deref());
        }
        let seal = run.certificate();
        let record = self.logs.edit(ix);
        (record.hash, record.seal) = (seal.hash, seal.seal);
        self.end_eras_if_over(cx, run.run().log);
    }

    // Folding.

    /// Contents of ephemeral rooms are memory.
    fn note_bytes(&mut self, cx: &mut Context, len: usize) {
        if self.record.ephemeral {
            self.bytes += len;
            cx.ephemeral_bytes += len;
        }
    }

    /// `bytes`: the body; `None` if it is sealed and does not open. Then it says nothing and takes no
    /// number, here as at everybody who has the key: nobody without it can use up numbers.
    fn fold(&mut self, cx: &mut Context, at: LocalRef, facts: Facts, bytes: Option<&[u8]>) {
        let log = self.logs.id(at.log);
        let author = log.author;
        let Some(bytes) = bytes else {
            cx.blame(author, |it| &mut it.void);
            return;
        };
        let body = self.with_its_id(log, Body::decode(facts.kind, bytes));
        if facts.kind == DECISION && !self.is_leaders(at, &body) {
            cx.blame(author, |it| &mut it.void);
            return;
        }
        if facts.visible {
            self.hold(cx, at, facts, (&body, bytes.len()));
        }
        match body {
            Body::Ordered(it) => self.fold_ordered(cx, at, &it),
            Body::EraClaimed(it) => self.fold_claim(cx, at, &it),
            Body::HandedOver(it) => self.fold_handover(cx, at, it),
            Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Key(_)
            | Body::Parted(_) => {
                if self.is_directory {
                    cx.facts.push(Fact { room: self.id, at, log, facts, body });
                }
            }
            Body::Vote(act) => self.fold_act(cx, at, facts, Act::Vote(act)),
            Body::Election(act) => self.fold_act(cx, at, facts, Act::Election(act)),
            Body::Task(act) => self.fold_act(cx, at, facts, Act::Task(act)),
            Body::Chat(said) | Body::Thinking(said) | Body::Decision(Decision { said, .. }) => {
                if let Some(id) = said.dedup {
                    let wall_ms = facts.wall_ms;
                    cx.change(Change::Dedup { room: self.id, id, at, wall_ms });
                    self.sequencing.sent.insert(id, at, wall_ms);
                }
                if let Some(id) = said.id {
                    cx.change(Change::Called { room: self.id, id, at });
                }
            }
            // Of a kind that is known, which cannot be read.
            Body::Unknown if kinds::traits(facts.kind).is_some() => {
                cx.blame(author, |it| &mut it.void);
            }
            Body::Unknown => {}
        }
    }

    /// A visible entry is here and waits for its delivery.
    fn hold(&mut self, cx: &mut Context, at: LocalRef, facts: Facts, (body, len): (&Body, usize)) {
        let (numbers, all) = self.numbering.came(at);
        if numbers.is_some() {
            cx.change(Change::NumberRange { room: self.id, at, numbers: None });
        }
        if self.is_directory {
            let room = self.id;
            cx.renumbered.extend(all.into_iter().map(|number| Renumbered { room, at, number }));
        }
        let turn = if let Body::Chat(said) = body { said.turn } else { None };
        let said = match body {
            Body::Chat(said) | Body::Thinking(said) | Body::Decision(Decision { said, .. }) => {
                Some(said)
            }
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
            | Body::Unknown => None,
        };
        let id = said.and_then(|it| it.id);
        let warm = cx.warm_bytes + len <= WARM_BODY_BYTES_MAX;
        let said: Option<Arc<Said>> = said.filter(|_| warm).map(|it| Arc::new(it.clone()));
        let body_bytes = if said.is_some() { len } else { 0 };
        cx.warm_bytes += body_bytes;
        let waits = Undelivered {
            facts,
            numbers,
            turn,
            id,
            said,
            body_bytes,
            since: cx.now.mono,
            ask_at: cx.now.mono + ASK_AFTER,
            ask_step: ASK_AFTER,
        };
        self.numbering.undelivered.insert(at, waits);
    }

    // Delivering.

    /// Delivers whatever has its turn (rule 2).
    pub(crate) fn deliver(&mut self, cx: &mut Context) {
        let mut again = true;
        while again {
            again = false;
            let busy: Vec<Era> = self.numbering.busy.iter().copied().collect();
            for era in busy {
                while self.deliver_next(cx, era) {
                    again = true;
                }
            }
        }
    }

    /// `false`: nothing has its turn in this era.
    fn deliver_next(&mut self, cx: &mut Context, era: Era) -> bool {
        match self.numbering.next_item(era) {
            NextItem::Item(number, at) => self.deliver_item(cx, number, at),
            NextItem::Gap(upto) => {
                let record = self.edit_record();
                record.tip = record.tip.max(upto);
                self.numbering.step(era);
                true
            }
            NextItem::Nothing => false,
        }
    }

    /// Deals with one item. `false`: its content is not here yet.
    fn deliver_item(&mut self, cx: &mut Context, number: Number, at: LocalRef) -> bool {
        let era = number.era();
        if number > self.record.tip {
            if self.is_missing(cx, at) {
                if let Some(state) = self.numbering.eras.get_mut(&era) {
                    state.missing_since.get_or_insert(cx.now.mono);
                }
                return false;
            }
            if let Some(entry) = self.numbering.undelivered.remove(&at) {
                self.deliver_entry(cx, number, at, entry);
            } else if let Some(facts) = self.numbering.gone.remove(&at) {
                self.deliver_gone(cx, number, at, facts);
            } else if at.seq <= self.logs.get(at.log).head {
                cx.arrived.push(Arrived::Again { room: self.id, number, at });
            }
            self.edit_record().tip = number;
        }
        self.numbering.step(era);
        true
    }

    /// Nothing more is accepted from this author here, because it forked a log.
    pub(crate) fn is_forked(&self, cx: &Context, author: NodeId) -> bool {
        self.has_forked_in_memory(author)
            || cx.forked_in(self.record.seal.as_ref()).any(|it| it == author)
    }

    /// It forked a log of this room, which is memory only: who does not have the room cannot know of it,
    /// and who does forgets it with the room.
    pub(crate) fn has_forked_in_memory(&self, author: NodeId) -> bool {
        self.record.ephemeral && self.logs.has_shut_out(author)
    }

    /// Who could give its numbers, and close its votes.
    pub(crate) fn heirs<'a>(&self, cx: &'a Context) -> EligibleNodes<'a> {
        EligibleNodes { room: self.id, only: cx.followers.have(self.record.seal.as_ref()) }
    }

    /// Connected peers that have the room.
    pub(crate) fn peers(&self, cx: &Context) -> BTreeSet<NodeId> {
        let heirs = self.heirs(cx);
        cx.up.iter().copied().filter(|it| heirs.has(*it)).collect()
    }

    /// This node does not have the room, as far as is known.
    pub(crate) fn is_elsewhere(&self, cx: &Context, node: NodeId) -> bool {
        cx.followers.is_rostered(node) && !self.heirs(cx).has(node)
    }

    /// Not held, though it may still come: of an author that forked nothing does, of one that parted what
    /// counts.
    pub(crate) fn is_missing(&self, cx: &Context, at: LocalRef) -> bool {
        let log = self.logs.get(at.log);
        at.seq > log.head && self.may_come(cx, log.id, at.seq)
    }

    fn deliver_entry(
        &mut self,
        cx: &mut Context,
        number: Number,
        at: LocalRef,
        entry: Undelivered,
    ) {
        cx.warm_bytes -= entry.body_bytes;
        cx.change(Change::Number { room: self.id, number, at, fate: Fate::Delivered });
        self.roamers.delivers(number, at);
        let numbers = entry.numbers.unwrap_or(NumberRange { best: number, canonical: number });
        let log = self.logs.id(at.log);
        let record = self.edit_record();
        record.delivered += 1;
        record.last_activity_ms = Some(entry.facts.wall_ms);
        if entry.facts.kind == CHAT {
            let spoke = Spoke { clock: entry.facts.clock, log, turn: entry.turn };
            record.spoke = record.spoke.max(Some(spoke));
        }
        let it = Delivered {
            number,
            canonical: (numbers.canonical != number).then_some(numbers.canonical),
            at,
            log,
            message: entry.id.unwrap_or_else(|| MessageId::new(self.id, log, at.seq)),
            facts: entry.facts,
            said: entry.said,
        };
        self.sequencing.sent.delivered(at, number);
        cx.arrived.push(Arrived::Entry { room: self.id, it, numbers });
    }

    /// Leaves the next number of `era` as a hole: nobody has its content.
    pub(crate) fn leave_hole(&mut self, cx: &mut Context, era: Era) {
        let NextItem::Item(number, at) = self.numbering.next_item(era) else { return };
        cx.change(Change::Number { room: self.id, number, at, fate: Fate::Hole });
        cx.alarm(Alarm::Hole { room: self.id, number });
        self.holes += 1;
        self.edit_record().tip = number;
        self.numbering.step(era);
        self.deliver(cx);
    }

    // Forks.

    /// Nothing of this log counts from `seq` on: what was delivered stays, the rest is dropped.
    pub(crate) fn quarantine(&mut self, cx: &mut Context, log: LogId, seq: u64) {
        let Some(ix) = self.logs.ensure(log) else { return };
        if !self.logs.cut(ix, seq) {
            return;
        }
        let (from, to) = (LocalRef { log: ix, seq }, LocalRef { log: ix, seq: u64::MAX });
        let void: Vec<LocalRef> =
            self.numbering.undelivered.range(from..=to).map(|(at, _)| *at).collect();
        for at in void {
            if let Some(entry) = self.numbering.undelivered.remove(&at) {
                cx.warm_bytes -= entry.body_bytes;
            }
        }
        cx.lost.extend(self.numbering.lose(ix, seq).into_iter().map(|it| (self.id, it)));
        self.folds.retract(Void::From(EntryRef { log, seq }));
        self.deliver(cx);
    }

    /// Nothing more is accepted from this author, here or anywhere; its eras end where they are.
    pub(crate) fn shut_out(&mut self, cx: &mut Context, author: NodeId) {
        self.pending.forget_author(cx, author);
        self.logs.shut_out(author);
        self.numbering.end_eras_of(author);
        self.folds.retract(Void::Author(author));
        cx.active.insert(self.id);
    }

    // Numbering what needs it.

    /// Gives numbers of the current era, which this node issues, to these entries.
    pub(crate) fn issue(&mut self, cx: &mut Context, mut entries: Vec<LocalRef>) {
        let era = self.numbering.current();
        entries.sort_by_key(|at| self.position(*at));
        entries.dedup();
        let room = cx.capacity(era).saturating_sub(self.numbering.known(era));
        entries.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        for part in entries.chunks(ORDERED_ITEMS_MAX) {
            let first = self.numbering.known(era) + 1;
            let ordered = self.ordered(era, first, part);
            if self.append(cx, &Body::Ordered(ordered)).is_none() {
                return;
            }
            for (at, n) in part.iter().zip(first..) {
                let fresh = self.numbering.undelivered.contains_key(at);
                if era != Era::HOME || !fresh {
                    self.numbering.issued.insert(*at, era.number(n));
                }
            }
        }
        self.deliver(cx);
    }

    /// (clock, author, log seq). Delivered entries' clocks are not kept: log seq orders within a
    /// log, and that is all that a fresh number for an old entry needs.
    fn position(&self, at: LocalRef) -> (u64, LogId, u64) {
        let clock = self.numbering.undelivered.get(&at).map_or(0, |it| it.facts.clock);
        (clock, self.logs.id(at.log), at.seq)
    }

    fn ordered(&self, era: Era, first: u64, entries: &[LocalRef]) -> Ordered {
        let mut logs: Vec<LogId> = Vec::new();
        let mut items: Vec<Items> = Vec::new();
        for at in entries {
            let id = self.logs.id(at.log);
            let place = logs.iter().position(|it| *it == id).unwrap_or_else(|| {
                logs.push(id);
                logs.len() - 1
            });
            let log = u32::try_from(place).unwrap_or(u32::MAX);
            match items.last_mut() {
                Some(last) if last.log == log && last.from + u64::from(last.count) == at.seq => {
                    last.count += 1;
                }
                Some(_) | None => items.push(Items { log, from: at.seq, count: 1 }),
            }
        }
        Ordered { era, first, logs, items, by: self.numbering.by(era) }
    }
}

/// An entry, named for every node alike.
fn place(logs: &Logs, at: LocalRef) -> EntryRef {
    EntryRef { log: logs.id(at.log), seq: at.seq }
}

fn is_directory(cx: &Context, id: RoomId) -> bool {
    id == RoomId::directory(cx.mesh) || id == cx.private_directory
}

/// The mesh's, which all nodes have.
fn is_open_directory(cx: &Context, id: RoomId) -> bool {
    id == RoomId::directory(cx.mesh)
}
