//! The logs of a room: every run's form, hashes and seal, and that each continues the one before.
//! On the way, which numbers they give, and which entries are acts.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::batch::LogRecord,
    limits::{BODY_INLINE_BYTES_MAX, ORDERED_ITEMS_MAX, RUN_ENTRIES_MAX},
    name::{
        id::{EntryRef, Hash, LocalRef, LogId, LogIx},
        identity::Judge,
        number::{Era, Number},
    },
    wire::{
        entry::{Body, Ordered, Stored},
        kinds::is_act,
        run::{Carried, Run, RunEntry},
        seal::SealContext,
    },
};
use sha2::{Digest, Sha256};

use super::{
    report::{Derived, Place, Problem, Report},
    rooms::Room,
    steps::Steps,
};
use crate::{
    error::ReadError,
    schema::{ACTS, CALLED, decode, table},
};

/// The kind of an `Ordered` entry.
const ORDERED: u8 = 16;

/// Consecutive numbers given to consecutive entries of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Given {
    /// The first number.
    pub(super) first: Number,
    /// How many, at most [`ORDERED_ITEMS_MAX`].
    pub(super) count: u64,
    /// The log; `None`: one that the room cannot have.
    pub(super) log: Option<LogIx>,
    /// The entry that gets the first.
    pub(super) from: u64,
}

/// Where a log is.
struct LogWalk<'a, 'b> {
    room: &'a Room<'b>,
    ix: LogIx,
    id: LogId,
    /// Of the run that is read.
    run: Option<Run>,
    /// Hash and clock of the entry before; of a log that is broken unknown.
    before: Option<(Hash, u64)>,
    seal: [u8; 64],
    given: &'a mut Vec<Given>,
    judge: &'a dyn Judge,
}

/// All logs. Returns what they give numbers to, ascending.
pub(super) fn check(
    room: &Room<'_>,
    steps: &mut Steps<'_>,
    report: &mut Report,
) -> Result<Vec<Given>, ReadError> {
    let mut given = Vec::new();
    let mut acts: BTreeSet<(LogIx, u64)> = BTreeSet::new();
    let mut called: BTreeMap<u128, (LogIx, u64)> = BTreeMap::new();
    let row = room.row();
    for (ix, log) in &room.logs {
        report.logs += 1;
        let start = Some(([0; 32], 0));
        let mut cursor = LogWalk {
            room,
            ix: *ix,
            id: log.id,
            run: None,
            before: start,
            seal: [0; 64],
            given: &mut given,
            judge: steps.judge,
        };
        let mut next = 1;
        for entry in room.view.entries.range((row, *ix, 0)..=(row, *ix, u64::MAX))? {
            let (key, entry) = entry?;
            let seq = key.value().2;
            steps.row();
            report.entries += 1;
            if seq != next {
                report.add(room.entry(*ix, next), Problem::Missing);
                (cursor.run, cursor.before) = (None, None);
            }
            next = seq + 1;
            if seq > log.head {
                report.add(room.entry(*ix, seq), Problem::BeyondHead);
            }
            let Ok(entry): Result<Stored, _> = decode(entry.value(), "entry") else {
                report.add(room.entry(*ix, seq), Problem::Record("entry"));
                (cursor.run, cursor.before) = (None, None);
                continue;
            };
            if is_act(entry.facts.kind) {
                acts.insert((*ix, seq));
            }
            if let Some(id) = room.keeps_id(EntryRef { log: log.id, seq }, &entry) {
                called.entry(u128::from_be_bytes(id.0)).or_insert((*ix, seq));
            }
            cursor.take(seq, entry, report);
        }
        if next <= log.head {
            report.add(room.entry(*ix, next), Problem::Missing);
            cursor.before = None;
        }
        cursor.end(log, next, report);
        if log.settled > log.head {
            report.add(Place::Log { room: room.view.id, log: Some(log.id) }, Problem::Head);
        }
    }
    check_strays(room, report)?;
    check_acts(room, &acts, report)?;
    check_called(room, &called, report)?;
    given.sort_unstable();
    Ok(given)
}

impl LogWalk<'_, '_> {
    fn take(&mut self, seq: u64, entry: Stored, report: &mut Report) {
        let here = self.room.entry(self.ix, seq);
        if entry.facts.kind == ORDERED {
            let context =
                SealContext { room: self.room.view.id, log: self.id, seq, kind: entry.facts.kind };
            if let Body::Ordered(ordered) = self.room.record.body(&context, &entry.body) {
                give(self.room, &ordered, self.given);
            }
        }
        let run = match (self.run.take(), entry.backlink) {
            (Some(_), Some(_)) => {
                report.add(here, Problem::HalfRun("end"));
                (self.before, self.run) = (None, None);
                return;
            }
            (Some(run), None) => Some(run),
            (None, Some(backlink)) => {
                if self.before.is_some_and(|(hash, _)| hash != backlink) {
                    report.add(here, Problem::Chain);
                }
                let (room, log) = (self.room.view.id, self.id);
                let entries = Vec::new();
                Some(Run { room, log, first: seq, backlink, entries, seal: [0; 64] })
            }
            (None, None) => {
                // Of a log that is broken already the rest of the run says nothing new.
                if self.before.is_some() {
                    report.add(here, Problem::HalfRun("beginning"));
                }
                self.before = None;
                None
            }
        };
        let Some(mut run) = run else { return };
        let facts = entry.facts;
        let body = match entry.gone {
            Some(gone) => {
                if !facts.visible || !entry.body.is_empty() {
                    report.add(here, Problem::Gone);
                }
                Carried::Gone(gone)
            }
            None if entry.body.len() > BODY_INLINE_BYTES_MAX => Carried::Apart {
                hash: Sha256::digest(&*entry.body).into(),
                len: entry.body.len() as u64,
            },
            None => Carried::Here(entry.body),
        };
        run.entries.push(RunEntry { facts, body });
        match entry.seal {
            Some(seal) => {
                run.seal = seal;
                self.verify(run, here, report);
            }
            None if run.entries.len() >= RUN_ENTRIES_MAX => {
                report.add(here, Problem::HalfRun("end"));
                self.before = None;
            }
            None => self.run = Some(run),
        }
    }

    fn verify(&mut self, run: Run, here: Place, report: &mut Report) {
        report.runs += 1;
        let first = run.entries.first().map_or(0, |entry| entry.facts.clock);
        let last = run.entries.last().map_or(0, |entry| entry.facts.clock);
        if self.before.is_some_and(|(_, clock)| first <= clock) {
            report.add(here, Problem::Chain);
        }
        self.seal = run.seal;
        self.before = match run.verify_by(self.judge, self.room.record.mesh) {
            Ok(verified) => Some((verified.certificate().hash, last)),
            Err(bad) => {
                report.add(here, Problem::Run(bad));
                None
            }
        };
    }

    /// The log ends here: as its record says?
    fn end(self, record: &LogRecord, next: u64, report: &mut Report) {
        if self.run.is_some() {
            report.add(self.room.entry(self.ix, next - 1), Problem::HalfRun("end"));
        } else if let Some((hash, clock)) = self.before
            && (hash, clock, self.seal) != (record.hash, record.clock, record.seal)
        {
            let place = Place::Log { room: self.room.view.id, log: Some(self.id) };
            report.add(place, Problem::Head);
        }
    }
}

/// Notes what an `Ordered` says, whether its author may or not.
fn give(room: &Room<'_>, ordered: &Ordered, given: &mut Vec<Given>) {
    let (era, mut n): (Era, u64) = (ordered.era, ordered.first);
    for items in &ordered.items {
        let count = u64::from(items.count);
        let log = ordered.logs.get(items.log as usize);
        let few = count <= ORDERED_ITEMS_MAX as u64;
        // An import may leave out any number of entries, and these name no log.
        let fits = n >= 1 && (few || log.is_none()) && n <= era.capacity();
        if !(era.is_valid() && fits) {
            return;
        }
        if few {
            let log = log.and_then(|id| room.by_id.get(id).copied());
            given.push(Given { first: era.number(n), count, log, from: items.from });
        }
        n = n.saturating_add(count);
    }
}

/// Entries of logs without a record. One finding for each.
fn check_strays(room: &Room<'_>, report: &mut Report) -> Result<(), ReadError> {
    let row = room.row();
    let mut log = 0;
    loop {
        let from = (row, log, 0);
        let Some(entry) = room.view.entries.range(from..=(row, u32::MAX, u64::MAX))?.next() else {
            return Ok(());
        };
        let (_, of, _) = entry?.0.value();
        if !room.logs.contains_key(&of) {
            report.add(Place::Log { room: room.view.id, log: None }, Problem::NoLog("entries"));
        }
        let Some(next) = of.checked_add(1) else { return Ok(()) };
        log = next;
    }
}

fn check_acts(
    room: &Room<'_>,
    acts: &BTreeSet<(LogIx, u64)>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let row = room.row();
    let mut indexed = BTreeSet::new();
    for key in table(room.read, ACTS)?.range((row, 0, 0)..=(row, u32::MAX, u64::MAX))? {
        let (_, log, seq) = key?.0.value();
        indexed.insert((log, seq));
    }
    for (log, seq) in acts.symmetric_difference(&indexed) {
        report.add(room.entry(*log, *seq), Derived::ActIndex);
    }
    Ok(())
}

/// A row may lead to a message whose body was dropped since: its id is in no other row.
fn check_called(
    room: &Room<'_>,
    called: &BTreeMap<u128, (LogIx, u64)>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let row = room.row();
    let mut missing = called.clone();
    for found in table(room.read, CALLED)?.range((row, 0)..=(row, u128::MAX))? {
        let (key, at) = found?;
        let (id, (log, seq)) = (key.value().1, at.value());
        let is_gone = || {
            let gist = room.view.gist(LocalRef { log, seq });
            gist.is_ok_and(|gist| gist.is_some_and(|gist| gist.gone.is_some()))
        };
        if missing.remove(&id) != Some((log, seq)) && !is_gone() {
            report.add(room.entry(log, seq), Derived::CallIndex);
        }
    }
    for (log, seq) in missing.into_values() {
        report.add(room.entry(log, seq), Derived::CallIndex);
    }
    Ok(())
}
