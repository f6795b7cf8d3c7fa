//! Entries for other nodes: whole runs, as they were sealed, and the bodies that travel apart.

use mesh::{
    limits::{
        BODY_BYTES_MAX, BODY_INLINE_BYTES_MAX, FRAME_BYTES_MAX, RUN_BYTES_MAX, RUN_ENTRIES_MAX,
        WANT_REPLY_BYTES,
    },
    name::id::{LocalRef, LogId, RoomId},
    wire::{
        entry::Stored,
        message::{ApartBody, Head, Message, Span},
        run::{Carried, Run, RunEntry},
    },
};
use sha2::{Digest, Sha256};

use crate::{
    error::ReadError,
    limits::{ENTRY_OVERHEAD_BYTES, RUN_OVERHEAD_BYTES},
    reader::Reader,
    view::View,
};

// The first run or body fits the budget, and the budget fits a frame: an answer is one message.
const _: () = assert!(
    RUN_BYTES_MAX + RUN_ENTRIES_MAX * ENTRY_OVERHEAD_BYTES + RUN_OVERHEAD_BYTES < WANT_REPLY_BYTES
        && BODY_BYTES_MAX + ENTRY_OVERHEAD_BYTES < WANT_REPLY_BYTES
        && WANT_REPLY_BYTES < FRAME_BYTES_MAX
);

/// Part of a log, as it travels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Whole runs, in order.
    pub runs: Vec<Run>,
    /// Their bodies that are apart, in the same order.
    pub bodies: Vec<ApartBody>,
    /// Nothing was left out that is held here.
    pub complete: bool,
}

impl Reader {
    /// The runs that hold entries `after + 1` … `upto`, as far as they are here. The first may
    /// begin earlier, the last end later. Stops when about `budget_bytes` are spent, but never
    /// before the first run; bodies apart that do not fit are left out (they can be asked for by
    /// place).
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn runs(&self, room: RoomId, span: Span, budget_bytes: usize) -> Result<Spans, ReadError> {
        let mut spans = Spans { complete: true, ..Spans::default() };
        if let Some(view) = self.view(room)? {
            collect(&view, span, &mut Budget::new(budget_bytes), &mut spans)?;
        }
        Ok(spans)
    }

    /// The bodies at these places, until about `budget_bytes` are spent, but never less than one.
    /// An empty one says that it is not held here, or not any more.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn bodies(
        &self,
        room: RoomId,
        at: &[Head],
        budget_bytes: usize,
    ) -> Result<Vec<ApartBody>, ReadError> {
        let mut bodies = Vec::new();
        let view = self.view(room)?;
        let mut budget = Budget::new(budget_bytes);
        for head in at {
            let log = view.as_ref().map(|view| view.log(head.log)).transpose()?.flatten();
            let stored = match (&view, log) {
                (Some(view), Some((log, _))) => view.stored(LocalRef { log, seq: head.seq })?,
                (Some(_), None) | (None, _) => None,
            };
            // Of one that was dropped the body is empty, too.
            let body = stored.map_or_else(|| Vec::new().into(), |entry| entry.body);
            if !budget.take(body.len() + ENTRY_OVERHEAD_BYTES) && !bodies.is_empty() {
                break;
            }
            bodies.push(ApartBody { log: head.log, seq: head.seq, body });
        }
        Ok(bodies)
    }

    /// The answer to a `Want` (`Effect::SendSpans`), ready to be sent: one message of at most
    /// [`WANT_REPLY_BYTES`]. The asker asks again for the rest. Empty, if nothing is held here.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn answer_spans(&self, room: RoomId, spans: &[Span]) -> Result<Message, ReadError> {
        let mut all = Spans { complete: true, ..Spans::default() };
        if let Some(view) = self.view(room)? {
            let mut budget = Budget::new(WANT_REPLY_BYTES);
            for span in spans {
                if !all.runs.is_empty() && budget.spent() {
                    break;
                }
                collect(&view, *span, &mut budget, &mut all)?;
            }
        }
        Ok(Message::Spans { room, runs: all.runs, bodies: all.bodies, last: true })
    }

    /// The answer to a `WantBodies` (`Effect::SendBodies`); otherwise as [`Reader::answer_spans`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn answer_bodies(&self, room: RoomId, at: &[Head]) -> Result<Message, ReadError> {
        let bodies = self.bodies(room, at, WANT_REPLY_BYTES)?;
        Ok(Message::Spans { room, runs: Vec::new(), bodies, last: true })
    }
}

/// Bytes that may still be sent.
struct Budget(usize);

impl Budget {
    fn new(bytes: usize) -> Budget {
        Budget(bytes)
    }

    fn spent(&self) -> bool {
        self.0 == 0
    }

    /// Whether there were so many; if not, nothing is left.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Appends one span's runs.
fn collect(
    view: &View,
    span: Span,
    budget: &mut Budget,
    spans: &mut Spans,
) -> Result<(), ReadError> {
    let Some((log, record)) = view.log(span.log)? else { return Ok(()) };
    let upto = span.upto.min(record.head);
    let mut next = span.after.saturating_add(1);
    if next > upto {
        return Ok(());
    }
    next = run_start(view, LocalRef { log, seq: next })?;
    while next <= upto {
        let (run, bodies) = run(view, record.id, LocalRef { log, seq: next })?;
        if !budget.take(run_bytes(&run)) && !spans.runs.is_empty() {
            spans.complete = false;
            return Ok(());
        }
        next = run.last() + 1;
        spans.runs.push(run);
        for body in bodies {
            if budget.take(body.body.len() + ENTRY_OVERHEAD_BYTES) {
                spans.bodies.push(body);
            } else {
                spans.complete = false;
            }
        }
        if budget.spent() && next <= upto {
            spans.complete = false;
            return Ok(());
        }
    }
    Ok(())
}

/// Log seq of the first entry of the run that `at` is in.
fn run_start(view: &View, at: LocalRef) -> Result<u64, ReadError> {
    let lowest = at.seq.saturating_sub(RUN_ENTRIES_MAX as u64 - 1).max(1);
    for seq in (lowest..=at.seq).rev() {
        if stored(view, LocalRef { seq, ..at })?.backlink.is_some() {
            return Ok(seq);
        }
    }
    Err(ReadError::Damaged("run without a beginning"))
}

fn stored(view: &View, at: LocalRef) -> Result<Stored, ReadError> {
    view.stored(at)?.ok_or(ReadError::Damaged("log with a gap"))
}

/// The run that begins at `at`, and its bodies that are apart.
fn run(view: &View, id: LogId, at: LocalRef) -> Result<(Run, Vec<ApartBody>), ReadError> {
    let broken = ReadError::Damaged("run without a beginning");
    let backlink = stored(view, at)?.backlink.ok_or(broken)?;
    let mut entries = Vec::new();
    let mut bodies = Vec::new();
    for seq in (at.seq..).take(RUN_ENTRIES_MAX) {
        let Stored { facts, body, seal, gone, .. } = stored(view, LocalRef { seq, ..at })?;
        if let Some(gone) = gone {
            entries.push(RunEntry { facts, body: Carried::Gone(gone) });
        } else if body.len() > BODY_INLINE_BYTES_MAX {
            let (hash, len) = (Sha256::digest(&*body).into(), body.len() as u64);
            entries.push(RunEntry { facts, body: Carried::Apart { hash, len } });
            bodies.push(ApartBody { log: id, seq, body });
        } else {
            entries.push(RunEntry { facts, body: Carried::Here(body) });
        }
        if let Some(seal) = seal {
            let run = Run { room: view.id, log: id, first: at.seq, backlink, entries, seal };
            return Ok((run, bodies));
        }
    }
    Err(ReadError::Damaged("run without an end"))
}

/// Bytes of a run encoded, at most.
fn run_bytes(run: &Run) -> usize {
    let entry = |entry: &RunEntry| match &entry.body {
        Carried::Here(body) => body.len() + ENTRY_OVERHEAD_BYTES,
        Carried::Apart { .. } | Carried::Gone(_) => ENTRY_OVERHEAD_BYTES,
    };
    run.entries.iter().map(entry).sum::<usize>() + RUN_OVERHEAD_BYTES
}
