//! This node's copy of one room: its record, the logs of all authors, runs that wait, comparison with peers.
//!
//! A replica knows nothing of the order of entries and of states that follow from them: it takes runs in
//! ([`acceptance`]), judges how far the logs of each author count ([`removal`]), fetches missing entries
//! ([`sync`]) and writes this node's own log ([`writing`]).

pub(crate) mod acceptance;
mod frontier;
pub(crate) mod log;
pub(crate) mod pending;
pub(crate) mod pruning;
mod removal;
pub(crate) mod sync;
pub(crate) mod writing;

use std::{collections::BTreeSet, sync::Arc};

use self::log::Logs;
use crate::{
    api::{
        batch::{Change, LogRecord, RoomRecord},
        import::may_bring,
    },
    limits::{CLOCK_START_MAX, CLOCK_STEP_MAX, PLAIN_BODY_BYTES_MAX},
    name::{
        id::{EntryRef, LocalRef, LogId, LogIx, NodeId, RoomId},
        identity::Identity,
    },
    order::liveness::EligibleNodes,
    turn::context::{Context, sent, stored},
    wire::{
        entry::{Body, Facts, Stored},
        run::{Run, RunEntry},
        seal::SealContext,
    },
};
use pending::Pending;
use sync::Sync;
use writing::{Draft, Drafts};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
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
    pub(crate) pending: Pending,
    pub(crate) sync: Sync,
    /// Content bytes held, of an ephemeral room.
    pub(crate) bytes: usize,
    /// For how long bodies are kept here, as far as known. `None`: for ever. Milliseconds.
    pub(crate) keep_ms: Option<u64>,
}

impl Replica {
    /// One that has no entries.
    pub(crate) fn new(cx: &Context, id: RoomId, record: RoomRecord, mine: LogId) -> Replica {
        let sealed = record.seal.as_ref().is_some_and(|seal| seal.opener.is_some());
        let open_directory = id == RoomId::directory(cx.mesh);
        Replica {
            id,
            record_dirty: false,
            is_directory: sealed || open_directory || id == cx.private_directory,
            logs: Logs::of(&record, open_directory),
            record,
            mine,
            drafts: Drafts::default(),
            clock: 0,
            pending: Pending::default(),
            sync: Sync::default(),
            bytes: 0,
            keep_ms: None,
        }
    }

    /// The logs as they were when the node last stopped.
    pub(crate) fn restore_logs(&mut self, records: Vec<LogRecord>) {
        self.logs = Logs::restore(&self.record, self.logs.is_whole(), records);
        self.clock = self.logs.iter().map(|(_, log)| log.clock).max().unwrap_or(0);
    }

    pub(crate) fn edit_record(&mut self) -> &mut RoomRecord {
        self.record_dirty = true;
        &mut self.record
    }

    /// The room's name for an entry, the same at every node.
    pub(crate) fn name_of(&self, at: LocalRef) -> EntryRef {
        EntryRef { log: self.logs.id(at.log), seq: at.seq }
    }

    /// Whether an entry is here and counts.
    pub(crate) fn counts(&self, at: LocalRef) -> bool {
        let log = self.logs.get(at.log);
        at.seq <= log.head && log.fork.is_none_or(|fork| at.seq < fork)
    }

    /// The nodes that have the room: these could give its numbers, and close its votes.
    pub(crate) fn eligible<'a>(&self, cx: &'a Context) -> EligibleNodes<'a> {
        let only = cx.followers.have(self.record.seal.as_ref());
        EligibleNodes { room: self.id, only, relays: &cx.relays }
    }

    /// Whether a node keeps the room: of that of the mesh's directory relays do, too, which give none of its numbers.
    pub(crate) fn is_kept_by(&self, cx: &Context, node: NodeId) -> bool {
        self.id == RoomId::directory(cx.mesh) || self.eligible(cx).has(node)
    }

    /// Connected peers that have the room.
    pub(crate) fn peers(&self, cx: &Context) -> BTreeSet<NodeId> {
        cx.up.iter().copied().filter(|peer| self.is_kept_by(cx, *peer)).collect()
    }

    /// This node does not have the room, as far as is known.
    pub(crate) fn is_elsewhere(&self, cx: &Context, node: NodeId) -> bool {
        cx.followers.is_rostered(node) && !self.is_kept_by(cx, node)
    }

    // Bodies.

    fn context_of(&self, log: LogId, seq: u64, kind: u8) -> SealContext {
        SealContext { room: self.id, log, seq, kind }
    }

    /// The body of an entry that the store has.
    pub(crate) fn body_of(&self, at: LocalRef, entry: &Stored) -> Body {
        let context = self.context_of(self.logs.id(at.log), at.seq, entry.facts.kind);
        self.record.body(&context, &entry.body)
    }

    /// The body of an entry as it counts, and its length. `None`: it is sealed, and does not open.
    pub(crate) fn open(&self, at: LocalRef, entry: &Stored) -> Option<(Body, usize)> {
        let (log, kind) = (self.logs.id(at.log), entry.facts.kind);
        let context = self.context_of(log, at.seq, kind);
        let bytes = self.record.open(&context, &entry.body)?;
        Some((self.as_it_counts(log, Body::decode(kind, &bytes)), bytes.len()))
    }

    /// An entry of this log without an id that the log cannot give.
    pub(crate) fn as_it_counts(&self, log: LogId, mut body: Body) -> Body {
        if let Some(id) = body.foreign_id_mut() {
            *id = id.filter(|id| id.is_foreign() && self.takes_imports_of(log));
        }
        body
    }

    /// Whether imported entries may stand in this log.
    pub(crate) fn takes_imports_of(&self, log: LogId) -> bool {
        may_bring(&self.record, self.id, log)
    }

    /// Contents of ephemeral rooms are memory.
    fn note_bytes(&mut self, cx: &mut Context, len: usize) {
        if self.record.ephemeral {
            self.bytes += len;
            cx.memory.ephemeral += len;
        }
    }

    // Writing.

    /// Begins to add an entry to this node's own log, as of this time (Unix milliseconds): the caller
    /// folds it and then gives it to [`Replica::keep`]. `None`: the room has too many logs, or the body
    /// too many bytes.
    pub(crate) fn write(&mut self, cx: &mut Context, body: &Body, wall_ms: u64) -> Option<Draft> {
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
        let context = self.context_of(self.mine, at.seq, facts.kind);
        let sealed = self.record.seal.as_ref().map(|seal| seal.seal(&context, &plain));
        self.logs.advance(ix, at.seq, facts.clock);
        self.note_bytes(cx, sealed.as_ref().unwrap_or(&plain).len());
        cx.to_advance.insert(self.id);
        Some(Draft { at, facts, plain, sealed, begins: body.begins() })
    }

    /// Keeps an entry that was begun, until the turn ends: then it is sealed and stored.
    pub(crate) fn keep(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// Seals the entries that were written in this turn, as runs, and stores them. Returns the runs, to
    /// be sent.
    pub(crate) fn seal(&mut self, cx: &mut Context, identity: &Identity) -> Vec<Run> {
        let Some(ix) = self.logs.ix(self.mine) else { return Vec::new() };
        let parts = self.drafts.take_runs();
        let count: usize = parts.iter().map(Vec::len).sum();
        let mut first = self.logs.get(ix).head + 1 - count as u64;
        let mut out = Vec::new();
        for part in parts {
            let entries: Vec<RunEntry> = part.iter().map(Draft::entry).collect();
            let backlink = self.logs.get(ix).hash;
            let (room, log) = (self.id, self.mine);
            let run = Run { room, log, first, backlink, entries, seal: [0; 64] };
            let run = run.seal(cx.mesh, identity);
            let last = run.run().last();
            for (seq, draft) in (first..).zip(&part) {
                let mut kept = stored(draft.facts, draft.bytes());
                kept.backlink = (seq == first).then_some(run.run().backlink);
                kept.seal = (seq == last).then_some(run.run().seal);
                let at = LocalRef { log: ix, seq };
                cx.change(Change::Entry { room: self.id, at, entry: Arc::new(kept) });
            }
            let certificate = run.certificate();
            let record = self.logs.edit(ix);
            (record.hash, record.seal) = (certificate.hash, certificate.seal);
            first = last + 1;
            out.push(sent(&run));
        }
        out
    }

    /// Moves each log's `settled` up to just before its first undelivered entry.
    pub(crate) fn note_settled(&mut self, first_undelivered: impl Fn(LogIx) -> Option<u64>) {
        let logs: Vec<(LogIx, u64, u64)> =
            self.logs.iter().map(|(ix, log)| (ix, log.head, log.settled)).collect();
        for (ix, head, settled) in logs {
            let now = first_undelivered(ix).map_or(head, |seq| seq - 1);
            if now > settled {
                self.logs.edit(ix).settled = now;
            }
        }
    }

    /// Rows for the record and the logs, as far as they changed in this turn.
    pub(crate) fn flush(&mut self, cx: &mut Context) {
        if std::mem::take(&mut self.record_dirty) {
            cx.change(Change::Room { room: self.id, record: self.record.clone() });
        }
        for (log, record) in self.logs.take_dirty() {
            cx.change(Change::Log { room: self.id, log, record });
        }
    }
}
