//! The past of a room, in the order of all its entries: the logs are read side by side, so that no more than one entry of each
//! is in memory, and a page begins where another one ended.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use mesh::{
    api::batch::{EraRecord, LogRecord, RoomRecord},
    chronicle::{Position, as_it_counts},
    name::{
        id::{EntryRef, LocalRef, LogIx, RoomId},
        number::Era,
    },
    wire::{
        acts::TaskAct,
        entry::{Body, Facts},
        kinds::{CHAT, DECISION, TASK, THINKING},
        seal::SealContext,
    },
};

use crate::{error::ReadError, limits::PAGE_ROWS_MAX, reader::Reader, row::Row, view::View};

/// Something that happened in a room.
#[derive(Clone, Debug)]
pub struct Past {
    /// Where it stands among all entries of the room.
    pub at: Position,
    /// What it is.
    pub what: Happened,
}

/// See [`Past`].
#[derive(Clone, Debug)]
pub enum Happened {
    /// A message, under the number that it was delivered under here.
    Said(Row),
    /// A step of a task, that counts.
    Task(Facts, TaskAct),
}

impl Reader {
    /// The oldest `limit` (at most [`PAGE_ROWS_MAX`]) messages and steps of tasks of a room after a position, in the order of
    /// positions. Messages that were not delivered here, or lost their bodies, are left out, and so is what stands in a log
    /// from where it was forked.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn past(
        &self,
        room: RoomId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Past>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Vec::new()) };
        let mut walk = Walk::begin(&view, after)?;
        let limit = limit.min(PAGE_ROWS_MAX);
        let mut page = Vec::new();
        while page.len() < limit
            && let Some((at, ix)) = walk.next()?
        {
            if let Some(what) = walk.what(at, ix)? {
                page.push(Past { at, what });
            }
        }
        Ok(page)
    }
}

/// All logs of a room, side by side.
struct Walk<'a> {
    view: &'a View,
    record: RoomRecord,
    eras: BTreeMap<Era, EraRecord>,
    /// The last entry of each log that counts.
    ends: BTreeMap<LogIx, u64>,
    /// The next entry of each.
    next: BinaryHeap<Reverse<(Position, LogIx)>>,
}

/// The last entry that counts.
fn end(log: &LogRecord) -> u64 {
    log.fork.map_or(log.head, |fork| log.head.min(fork.saturating_sub(1)))
}

impl<'a> Walk<'a> {
    fn begin(view: &'a View, after: Option<Position>) -> Result<Walk<'a>, ReadError> {
        let (record, eras) = (view.record()?, view.eras()?.into_iter().collect());
        let (ends, next) = (BTreeMap::new(), BinaryHeap::new());
        let mut walk = Walk { view, record, eras, ends, next };
        for (ix, log) in view.logs()? {
            let end = end(&log);
            walk.ends.insert(ix, end);
            let first = match after {
                Some(after) => walk.first_after((ix, &log), end, after)?,
                None => 1,
            };
            walk.put(EntryRef { log: log.id, seq: first }, ix)?;
        }
        Ok(walk)
    }

    fn clock(&self, ix: LogIx, seq: u64) -> Result<u64, ReadError> {
        let facts = self.view.facts(LocalRef { log: ix, seq })?;
        Ok(facts.ok_or(ReadError::Damaged("log with a gap"))?.clock)
    }

    /// Clocks of a log rise.
    fn first_after(
        &self,
        (ix, log): (LogIx, &LogRecord),
        end: u64,
        after: Position,
    ) -> Result<u64, ReadError> {
        let (mut low, mut high) = (1, end.saturating_add(1));
        while low < high {
            let seq = low + (high - low) / 2;
            let place = EntryRef { log: log.id, seq };
            if (Position { clock: self.clock(ix, seq)?, place }) > after {
                high = seq;
            } else {
                low = seq + 1;
            }
        }
        Ok(low)
    }

    /// An entry is the next one of its log, if it is there.
    fn put(&mut self, place: EntryRef, ix: LogIx) -> Result<(), ReadError> {
        if self.ends.get(&ix).is_some_and(|end| place.seq <= *end) {
            let clock = self.clock(ix, place.seq)?;
            self.next.push(Reverse((Position { clock, place }, ix)));
        }
        Ok(())
    }

    /// The next entry of all.
    fn next(&mut self) -> Result<Option<(Position, LogIx)>, ReadError> {
        let Some(Reverse((at, ix))) = self.next.pop() else { return Ok(None) };
        let Position { place: EntryRef { log, seq }, .. } = at;
        self.put(EntryRef { log, seq: seq + 1 }, ix)?;
        Ok(Some((at, ix)))
    }

    fn what(&self, at: Position, ix: LogIx) -> Result<Option<Happened>, ReadError> {
        let here = LocalRef { log: ix, seq: at.place.seq };
        let Some(facts) = self.view.facts(here)? else { return Ok(None) };
        match facts.kind {
            CHAT | THINKING | DECISION => {
                let Some(number) = self.view.numbers_of(here)?.delivered() else {
                    return Ok(None);
                };
                Ok(self.view.row(number, here)?.map(Happened::Said))
            }
            TASK => Ok(self.act(at, here)?.map(|act| Happened::Task(facts, act))),
            _ => Ok(None),
        }
    }

    fn act(&self, at: Position, here: LocalRef) -> Result<Option<TaskAct>, ReadError> {
        let Some(stored) = self.view.stored(here)? else { return Ok(None) };
        let EntryRef { log, seq } = at.place;
        let context = SealContext { room: self.view.id, log, seq, kind: stored.facts.kind };
        let Body::Task(act) = self.record.body(&context, &stored.body) else { return Ok(None) };
        Ok(as_it_counts((self.view.id, &self.record), &self.eras, at.place, act))
    }
}
