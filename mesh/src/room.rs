//! One room at one node: its logs, what is accepted into them, and what is delivered from them.
//!
//! An entry is accepted when everything it refers to is here already: its log's entries before it, its
//! body, the eras and handovers that it builds on. Until then its run waits in `pending`, bounded;
//! nothing unsettled is ever folded, so folds never wait.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    batch::{Change, Fate, Foretold, RoomRecord, Spoke, StoredRoom},
    boundary::Alarm,
    context::{Arrived, Context, Fact, Proof, Renumbered, sent, stored},
    entry::{Body, EraClaimed, Facts, HandedOver, Items, Ordered, Said},
    event::Delivered,
    id::{At, LogId, LogIx, MessageId, NodeId, RoomId},
    identity::Identity,
    limits::{
        ASK_AFTER, BODY_INLINE_BYTES_MAX, CLOCK_START_MAX, CLOCK_STEP_MAX, CUT_ERAS_MAX,
        ORDERED_ITEMS_MAX, RUN_BYTES_MAX, RUN_ENTRIES_MAX, WARM_BODY_BYTES_MAX,
    },
    log::{Logs, Place},
    number::{C_MAX, Era, Number},
    numbering::{NextItem, Numbering, Undelivered},
    pending::{Pending, Waiting},
    run::{Carried, Run, RunEntry, Verified},
    sequencing::Sequencing,
    sync::Sync,
};

/// An entry of this node that has no seal yet: it gets one before the turn ends.
#[derive(Debug)]
struct Draft {
    facts: Facts,
    body: Vec<u8>,
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
    drafts: Vec<Draft>,
    /// Above everything seen here (Lamport).
    clock: u64,
    pub(crate) numbering: Numbering,
    pub(crate) pending: Pending,
    pub(crate) sequencing: Sequencing,
    pub(crate) sync: Sync,
    /// Content bytes held, of an ephemeral room.
    pub(crate) bytes: usize,
    pub(crate) holes: u64,
}

impl Room {
    /// A room that this node has not known until now.
    pub(crate) fn new(cx: &mut Context, id: RoomId, record: RoomRecord, mine: LogId) -> Room {
        // The room's own row comes before any other of it.
        cx.change(Change::Room { room: id, record: record.clone() });
        Room::blank(cx, id, record, mine)
    }

    fn blank(cx: &mut Context, id: RoomId, record: RoomRecord, mine: LogId) -> Room {
        let numbering = Numbering::new(record.home);
        let is_directory = is_directory(cx, id);
        cx.active.insert(id);
        Room {
            id,
            record,
            record_dirty: false,
            is_directory,
            logs: Logs::default(),
            mine,
            drafts: Vec::new(),
            clock: 0,
            numbering,
            pending: Pending::default(),
            sequencing: Sequencing::default(),
            sync: Sync::default(),
            bytes: 0,
            holes: 0,
        }
    }

    /// A room as it was when the node last stopped.
    pub(crate) fn restore(cx: &mut Context, it: StoredRoom, mine: LogId) -> Room {
        let numbering = Numbering::restore(it.eras, it.waiting, it.foretold);
        let mut room = Room::blank(cx, it.room, it.record, mine);
        room.numbering = numbering;
        room.logs = Logs::restore(it.logs);
        room.clock = room.logs.iter().map(|(_, log)| log.clock).max().unwrap_or(0);
        for unsettled in it.unsettled {
            let (at, entry) = (unsettled.at, unsettled.entry);
            let forked = room.logs.get(at.log).fork;
            if at.seq <= room.logs.get(at.log).head && forked.is_none_or(|seq| at.seq < seq) {
                let body = Body::decode(entry.facts.kind, &entry.body);
                room.hold(cx, at, entry.facts, (&body, entry.body.len()));
                if let Some(waits) = room.numbering.undelivered.get_mut(&at) {
                    waits.numbers = unsettled.numbers;
                }
            }
        }
        room
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
    }

    // Receiving.

    /// A run came from a peer.
    pub(crate) fn receive(&mut self, cx: &mut Context, from: NodeId, run: Verified) {
        cx.active.insert(self.id);
        if cx.forked.contains(&run.run().log.author) {
            return;
        }
        match self.place(&run) {
            Place::Old => {}
            Place::Bad => cx.faults.chain += 1,
            Place::Fork(certificate) => cx.proofs.push(Proof { certificate, run }),
            Place::Gap => {
                self.sync.note_gap(cx, self.id, from, self.logs.heads());
                self.pending.keep(cx, run, from);
            }
            Place::Next(_) => {
                self.pending.keep_next(cx, run, from);
                self.drain(cx);
            }
        }
    }

    /// A body that its run came without.
    pub(crate) fn receive_body(&mut self, cx: &mut Context, log: LogId, seq: u64, body: Vec<u8>) {
        self.pending.add_body(cx, log, seq, body);
    }

    fn place(&self, run: &Verified) -> Place {
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
        for key in self.pending.keys() {
            let Some(waiting) = self.pending.get(key) else { continue };
            match self.place(&waiting.run) {
                Place::Gap => {}
                Place::Old | Place::Bad => drop(self.pending.take(cx, key)),
                Place::Fork(certificate) => {
                    if let Some(waiting) = self.pending.take(cx, key) {
                        cx.proofs.push(Proof { certificate, run: waiting.run });
                    }
                }
                Place::Next(skip) => {
                    let complete = waiting.lacks(skip).next().is_none();
                    if complete && self.builds_on_what_is_here(cx, waiting, skip) {
                        return self.pending.take(cx, key).map(|it| (it.run, it.bodies));
                    }
                }
            }
        }
        None
    }

    /// Whether everything is here that the run's entries refer to (see the module).
    fn builds_on_what_is_here(&self, cx: &Context, waiting: &Waiting, skip: usize) -> bool {
        let run = waiting.run.run();
        let log = run.log;
        // What earlier entries of the same run bring counts as here.
        let mut opened: BTreeMap<Era, LogId> = BTreeMap::new();
        let mut reached: BTreeMap<Era, u64> = BTreeMap::new();
        let entries = (run.first..).zip(&run.entries).skip(skip);
        entries.into_iter().all(|(seq, entry)| {
            let apart = waiting.bodies.get(&seq).map_or(&[][..], Vec::as_slice);
            let bytes = if let Carried::Here(bytes) = &entry.body { bytes } else { apart };
            match Body::decode(entry.facts.kind, bytes) {
                Body::Ordered(it) => {
                    let now = self.numbering.eras.get(&it.era).map(|era| era.record.sequencer);
                    reached.insert(it.era, it.first.saturating_add(count(&it)).saturating_sub(1));
                    opened.get(&it.era).copied().or(now) == Some(log) || self.is_void(cx, it.era)
                }
                Body::EraClaimed(it) => {
                    let lane = it.era.lane().unwrap_or(u32::MAX);
                    let in_lane =
                        cx.lanes.get(&log.author).is_some_and(|lanes| lanes.contains(&lane));
                    let here = |era: Era| {
                        self.numbering.eras.contains_key(&era)
                            || opened.contains_key(&era)
                            || self.is_void(cx, era)
                    };
                    let ready = in_lane
                        && here(it.after)
                        && it.cut.iter().all(|cut| {
                            let brought = reached.get(&cut.era).copied().unwrap_or(0);
                            let reached = self.numbering.known(cut.era).max(brought) >= cut.n;
                            here(cut.era) && (reached || self.is_void(cx, cut.era))
                        });
                    opened.insert(it.era, log);
                    ready
                }
                Body::HandedOver(it) => {
                    let now = self.numbering.eras.get(&it.era).map(|era| era.record.sequencer);
                    let ready = opened.get(&it.era).copied().or(now) == Some(log)
                        || self.is_void(cx, it.era);
                    opened.insert(it.era, it.to);
                    ready
                }
                Body::Chat(_)
                | Body::Thinking(_)
                | Body::NodeAdmitted(_)
                | Body::RoomCreated(_)
                | Body::AgentClaimed(_)
                | Body::Unknown => true,
            }
        })
    }

    fn accept(&mut self, cx: &mut Context, (run, mut bodies): (Verified, BTreeMap<u64, Vec<u8>>)) {
        let Place::Next(skip) = self.place(&run) else { return };
        let Some(ix) = self.logs.ensure(run.run().log) else {
            cx.faults.overflow += 1;
            return;
        };
        let first = run.run().first + skip as u64;
        let backlink = run.hash_at(first - 1);
        let last = run.run().last();
        for (seq, entry) in (first..).zip(&run.run().entries[skip..]) {
            let bytes = match &entry.body {
                Carried::Here(bytes) => bytes.to_vec(),
                Carried::Apart { .. } => bodies.remove(&seq).unwrap_or_default(),
            };
            let mut kept = stored(entry.facts, &bytes);
            kept.backlink = if seq == first { backlink } else { None };
            kept.seal = (seq == last).then_some(run.run().seal);
            let at = At { log: ix, seq };
            cx.change(Change::Entry { room: self.id, at, entry: Arc::new(kept) });
            self.logs.advance(ix, seq, entry.facts.clock);
            self.clock = self.clock.max(entry.facts.clock);
            self.fold(cx, at, entry.facts, &bytes);
        }
        let seal = run.certificate();
        let record = self.logs.edit(ix);
        (record.hash, record.seal) = (seal.hash, seal.seal);
    }

    // Writing.

    /// Whether this node may write here: not where another history of its own was found.
    pub(crate) fn is_writable(&self, cx: &Context) -> bool {
        !cx.forked.contains(&cx.me) && self.numbering.current().c() < C_MAX
    }

    /// Adds an entry to this node's own log; it is sealed when the turn ends.
    pub(crate) fn append(&mut self, cx: &mut Context, body: &Body) -> Option<At> {
        let ix = self.logs.ensure(self.mine)?;
        let at = At { log: ix, seq: self.logs.get(ix).head + 1 };
        // As late as the room is, but no leap that receivers would refuse: an author that was silent
        // for long catches up in steps.
        let own = self.logs.get(ix).clock;
        let ceiling = if at.seq == 1 { CLOCK_START_MAX } else { own + CLOCK_STEP_MAX };
        let clock = (self.clock + 1).min(ceiling).max(own + 1);
        self.clock = self.clock.max(clock);
        let facts =
            Facts { clock, wall_ms: cx.now.wall_ms, kind: body.kind(), visible: body.visible() };
        let bytes = body.encode();
        self.logs.advance(ix, at.seq, facts.clock);
        self.fold(cx, at, facts, &bytes);
        self.drafts.push(Draft { facts, body: bytes });
        cx.active.insert(self.id);
        Some(at)
    }

    /// Seals what was appended in this turn, as runs, and stores it. Returns what is to be sent.
    pub(crate) fn seal(&mut self, cx: &mut Context, identity: &Identity) -> Vec<Run> {
        let Some(ix) = self.logs.ix(self.mine) else { return Vec::new() };
        let mut drafts = std::mem::take(&mut self.drafts);
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
                let at = At { log: ix, seq };
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
            let from = At { log, seq: 0 };
            let to = At { log, seq: u64::MAX };
            let first = self.numbering.undelivered.range(from..=to).next();
            let now = first.map_or(head, |(at, _)| at.seq - 1);
            if now > settled {
                self.logs.edit(log).settled = now;
            }
        }
    }

    // Folding.

    fn fold(&mut self, cx: &mut Context, at: At, facts: Facts, bytes: &[u8]) {
        if self.record.ephemeral {
            self.bytes += bytes.len();
            cx.ephemeral_bytes += bytes.len();
        }
        let body = Body::decode(facts.kind, bytes);
        if facts.visible {
            self.hold(cx, at, facts, (&body, bytes.len()));
        }
        match body {
            Body::Ordered(it) => self.fold_ordered(cx, at, &it),
            Body::EraClaimed(it) => self.fold_claim(cx, at, &it),
            Body::HandedOver(it) => self.fold_handover(cx, at, it),
            Body::NodeAdmitted(_) | Body::RoomCreated(_) | Body::AgentClaimed(_) => {
                if self.is_directory {
                    let log = self.logs.id(at.log);
                    cx.facts.push(Fact { room: self.id, at, log, facts, body });
                }
            }
            Body::Chat(said) | Body::Thinking(said) => {
                if let Some(id) = said.dedup {
                    let wall_ms = facts.wall_ms;
                    cx.change(Change::Dedup { room: self.id, id, at, wall_ms });
                    self.sequencing.sent.insert(id, at, wall_ms);
                }
            }
            Body::Unknown => {}
        }
    }

    /// A visible entry is here and waits for its delivery.
    fn hold(&mut self, cx: &mut Context, at: At, facts: Facts, (body, len): (&Body, usize)) {
        let numbers = self.numbering.foretold.remove(&at);
        if numbers.is_some() {
            cx.change(Change::Foretold { room: self.id, at, numbers: None });
        }
        let (said, turn) = match body {
            Body::Chat(said) => (Some(said), said.turn),
            Body::Thinking(said) => (Some(said), None),
            Body::Ordered(_)
            | Body::EraClaimed(_)
            | Body::HandedOver(_)
            | Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Unknown => (None, None),
        };
        let warm = cx.warm_bytes + len <= WARM_BODY_BYTES_MAX;
        let said: Option<Arc<Said>> = said.filter(|_| warm).map(|it| Arc::new(it.clone()));
        let body_bytes = if said.is_some() { len } else { 0 };
        cx.warm_bytes += body_bytes;
        let waits = Undelivered {
            facts,
            numbers,
            turn,
            said,
            body_bytes,
            since: cx.now.mono,
            ask_at: cx.now.mono + ASK_AFTER,
            ask_step: ASK_AFTER,
        };
        self.numbering.undelivered.insert(at, waits);
    }

    fn fold_ordered(&mut self, cx: &mut Context, at: At, it: &Ordered) {
        let author = self.logs.id(at.log);
        let count = count(it);
        let valid =
            self.numbering.eras.get(&it.era).is_some_and(|era| {
                era.record.sequencer == author && it.first == era.record.known + 1
            }) && count <= ORDERED_ITEMS_MAX as u64
                && it.first + count <= it.era.capacity() + 1
                && it.items.iter().all(|items| (1..=SEQ_MAX).contains(&items.from));
        if !valid {
            cx.faults.void += 1;
            return;
        }
        for items in &it.items {
            let log = it.logs.get(items.log as usize).and_then(|id| self.logs.ensure(*id));
            for seq in (items.from..).take(items.count as usize) {
                // A place that cannot be still takes its number, so that those after it keep theirs.
                let at = At { log: log.unwrap_or(LogIx::MAX), seq };
                self.assign(cx, it.era, at);
            }
        }
    }

    fn assign(&mut self, cx: &mut Context, era: Era, at: At) {
        let Some(number) = self.numbering.assign(era, at) else { return };
        let known_log = at.log != LogIx::MAX;
        if !known_log {
            cx.faults.void += 1;
            return;
        }
        let (room, fate) = (self.id, Fate::Assigned);
        cx.change(Change::Number { room, number, at, fate });
        let record = self.logs.get(at.log);
        let void = record.fork.is_some_and(|fork| at.seq >= fork);
        if at.seq > record.head && !void {
            let numbers = self.numbering.foretell(at, number);
            cx.change(Change::Foretold { room, at, numbers: Some(numbers) });
        }
        if self.is_directory {
            cx.renumbered.push(Renumbered { room, at, number });
        }
    }

    fn fold_claim(&mut self, cx: &mut Context, at: At, it: &EraClaimed) {
        let author = self.logs.id(at.log);
        let lane = it.era.lane().unwrap_or(u32::MAX);
        let in_lane = cx.lanes.get(&author.author).is_some_and(|lanes| lanes.contains(&lane));
        // Claims of an ephemeral room may be lost with the memory of their author.
        let follows =
            it.era.c() == it.after.c() + 1 || (self.record.ephemeral && it.era.c() > it.after.c());
        let sane = it.era.is_valid()
            && it.cut.len() <= CUT_ERAS_MAX
            && (self.numbering.eras.contains_key(&it.after) || self.is_void(cx, it.after))
            && it.cut.iter().all(|cut| {
                let reached = cut.n <= self.numbering.known(cut.era);
                cut.era < it.era && (reached || self.is_void(cx, cut.era))
            });
        if !(in_lane && follows && sane) {
            cx.faults.void += 1;
        } else if !self.numbering.open(it, author) {
            cx.faults.void += 1;
            cx.alarm(Alarm::LaneClash { node: author.author, lane });
        }
    }

    fn fold_handover(&mut self, cx: &mut Context, at: At, it: HandedOver) {
        let author = self.logs.id(at.log);
        let valid =
            self.numbering.eras.get(&it.era).is_some_and(|era| {
                era.record.sequencer == author && it.next == era.record.known + 1
            });
        if !valid {
            cx.faults.void += 1;
            return;
        }
        if let Some(era) = self.numbering.edit(it.era) {
            era.record.sequencer = it.to;
            era.record.handed = true;
        }
        if it.to == self.mine {
            cx.handed_to_me.push((self.id, it.era, author));
        }
    }

    // Delivering.

    /// Delivers whatever has its turn (rule 2).
    pub(crate) fn deliver(&mut self, cx: &mut Context) {
        let mut again = true;
        while again {
            again = false;
            let busy: Vec<Era> = self.numbering.busy.iter().copied().collect();
            for era in busy {
                while let NextItem::Item(number, at) = self.numbering.next_item(era) {
                    if !self.deliver_item(cx, number, at) {
                        break;
                    }
                    again = true;
                }
            }
        }
    }

    /// Deals with one item. `false`: its content is not here yet.
    fn deliver_item(&mut self, cx: &mut Context, number: Number, at: At) -> bool {
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
            }
            self.edit_record().tip = number;
        }
        self.numbering.step(era);
        true
    }

    /// Not held, though it may still come: of an author that forked nothing does.
    pub(crate) fn is_missing(&self, cx: &Context, at: At) -> bool {
        if at.log == LogIx::MAX {
            return false;
        }
        let log = self.logs.get(at.log);
        at.seq > log.head && !cx.forked.contains(&log.id.author)
    }

    /// An era of an author that forked, or one that nothing is known of here and that can only be
    /// such an author's. Others may have built on it before they knew; what they wrote is accepted
    /// all the same, or their logs would be cut for ever.
    fn is_void(&self, cx: &Context, era: Era) -> bool {
        match self.numbering.eras.get(&era) {
            Some(known) => cx.forked.contains(&known.record.sequencer.author),
            None => era.lane().is_some_and(|lane| {
                cx.forked.iter().any(|it| cx.lanes.get(it).is_some_and(|it| it.contains(&lane)))
            }),
        }
    }

    fn deliver_entry(&mut self, cx: &mut Context, number: Number, at: At, entry: Undelivered) {
        cx.warm_bytes -= entry.body_bytes;
        cx.change(Change::Number { room: self.id, number, at, fate: Fate::Delivered });
        let numbers = entry.numbers.unwrap_or(Foretold { best: number, canonical: number });
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
            message: MessageId::new(self.id, log, at.seq),
            facts: entry.facts,
            said: entry.said,
        };
        self.sequencing.sent.delivered(at, number);
        cx.arrived.push(Arrived { room: self.id, it, numbers });
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
        if self.logs.get(ix).fork.is_some_and(|known| known <= seq) {
            return;
        }
        self.logs.edit(ix).fork = Some(seq);
        let (from, to) = (At { log: ix, seq }, At { log: ix, seq: u64::MAX });
        let void: Vec<At> =
            self.numbering.undelivered.range(from..=to).map(|(at, _)| *at).collect();
        for at in void {
            if let Some(entry) = self.numbering.undelivered.remove(&at) {
                cx.warm_bytes -= entry.body_bytes;
            }
        }
        self.deliver(cx);
    }

    /// Nothing more is accepted from this author, here or anywhere; its eras end where they are.
    pub(crate) fn shut_out(&mut self, cx: &mut Context, author: NodeId) {
        self.pending.forget_author(cx, author);
        self.numbering.end_eras_of(author);
        cx.active.insert(self.id);
    }

    // Numbering what needs it.

    /// Gives numbers of the current era, which this node issues, to these entries.
    pub(crate) fn issue(&mut self, cx: &mut Context, mut entries: Vec<At>) {
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
    fn position(&self, at: At) -> (u64, LogId, u64) {
        let clock = self.numbering.undelivered.get(&at).map_or(0, |it| it.facts.clock);
        (clock, self.logs.id(at.log), at.seq)
    }

    fn ordered(&self, era: Era, first: u64, entries: &[At]) -> Ordered {
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
        Ordered { era, first, logs, items }
    }
}

/// How many numbers it gives.
fn count(it: &Ordered) -> u64 {
    it.items.iter().map(|items| u64::from(items.count)).sum()
}

/// No log gets this long: leaves room to add to any log seq that is read.
const SEQ_MAX: u64 = u64::MAX >> 3;
/// [`Body::Chat`]'s kind: the one that moves the turn.
pub(crate) const CHAT: u8 = 1;

fn is_directory(cx: &Context, id: RoomId) -> bool {
    id == RoomId::directory(cx.mesh) || id == RoomId::private_directory(cx.mesh, cx.me)
}

/// How many of the drafts fit under one seal: at least one.
fn run_length(drafts: &[Draft]) -> usize {
    let mut bytes = 0;
    let fits = drafts.iter().take(RUN_ENTRIES_MAX).take_while(|draft| {
        bytes += if draft.body.len() > BODY_INLINE_BYTES_MAX { 64 } else { draft.body.len() + 24 };
        bytes <= RUN_BYTES_MAX
    });
    fits.count().max(1)
}

fn draft_entry(draft: &Draft) -> RunEntry {
    let body = if draft.body.len() > BODY_INLINE_BYTES_MAX {
        let (hash, len) = (crate::id::sha256(&[&draft.body]), draft.body.len() as u64);
        Carried::Apart { hash, len }
    } else {
        Carried::Here(draft.body.clone().into())
    };
    RunEntry { facts: draft.facts, body }
}
