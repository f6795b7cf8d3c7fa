//! Following the delivery log: in small steps, each with a cursor of its own for each room.

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::{batch::Fate, search::Spot},
    name::{id::RoomId, number::Number},
};

use super::{
    Index, Parts,
    part::{Cursor, IndexError, Part},
    segment::words_of,
};
use crate::{
    error::ReadError,
    limits::{INDEX_STEP_ROWS, SWEEP_SEGMENTS_MAX},
    view::View,
};

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Delivered rows of the store that it looked at.
    pub rows: usize,
    /// There is more to do at once.
    pub more: bool,
    /// Something was committed since the step before: the writer is busy.
    pub busy: bool,
}

/// Writes the index: one for each.
#[derive(Debug)]
pub struct Follower {
    index: Index,
    /// Rooms that may have something new.
    rooms: BTreeSet<RoomId>,
    /// Bodies written before this time were dropped since the last sweep.
    pruned_before: Option<u64>,
    /// Ephemeral rooms are gone since then.
    dropped: bool,
    last: Option<RoomId>,
}

/// Messages of a room, with their words.
#[derive(Default)]
struct Read {
    found: Vec<(Spot, Vec<String>)>,
    rows: usize,
    cursor: Option<Cursor>,
    ephemeral: bool,
}

impl Index {
    /// Opens the index, makes it anew if it is not of this store, and begins to follow.
    ///
    /// # Errors
    /// See [`IndexError`]. Searches find nothing then; it may be tried again.
    pub fn follow(&self) -> Result<Follower, IndexError> {
        // From now on nothing is missed: what comes meanwhile is looked at twice.
        self.0.reader.databases().news.follow();
        *self.parts_mut() = None;
        self.set_behind(true);
        let disk = match &self.0.file {
            Some(file) => Part::open(file, &self.0.reader)?,
            None => Part::in_memory()?,
        };
        let parts = Parts { disk, memory: Part::in_memory()? };
        let mut rooms = BTreeSet::new();
        for (room, record) in self.0.reader.rooms()? {
            let seen = parts.disk.cursors.get(&room).map_or(Number::ZERO, |cursor| cursor.0);
            if record.tip > seen {
                rooms.insert(room);
            }
        }
        *self.parts_mut() = Some(parts);
        // What was dropped while nobody followed is not known.
        let pruned_before = Some(u64::MAX);
        Ok(Follower { index: self.clone(), rooms, pruned_before, dropped: false, last: None })
    }

    /// Waits until there may be something to do, at most so long; or until somebody stirs.
    pub fn wait(&self, at_most: Duration) {
        self.0.reader.databases().news.wait(at_most);
    }

    /// Ends a wait.
    pub fn stir(&self) {
        self.0.reader.databases().news.stir();
    }
}

impl Follower {
    /// Looks at some rows of a room that has something new.
    ///
    /// # Errors
    /// See [`IndexError`]. Another one is to follow then.
    pub fn step(&mut self) -> Result<Step, IndexError> {
        let news = self.index.0.reader.databases().news.take();
        self.rooms.extend(news.rooms);
        self.pruned_before = self.pruned_before.max(news.pruned_before);
        self.dropped |= news.dropped;
        let busy = news.commits > 0;
        let Some(room) = self.next() else { return Ok(Step { busy, ..Step::default() }) };
        let read = self.read(room)?;
        if read.rows < INDEX_STEP_ROWS {
            self.rooms.remove(&room);
        }
        let rows = read.rows;
        if let Some(full) = self.add(room, read) {
            self.seal(full)?;
        }
        Ok(Step { rows, more: !self.rooms.is_empty(), busy })
    }

    /// Rooms take turns.
    fn next(&mut self) -> Option<RoomId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.and_then(|last| self.rooms.range((Excluded(last), Unbounded)).next());
        self.last = after.or_else(|| self.rooms.first()).copied();
        self.last
    }

    fn read(&self, room: RoomId) -> Result<Read, ReadError> {
        let mut read = Read::default();
        let Some(view) = self.index.0.reader.view(room)? else { return Ok(read) };
        read.ephemeral = view.record()?.ephemeral;
        let cursor = self.index.parts().as_ref().and_then(|parts| {
            let part = if read.ephemeral { &parts.memory } else { &parts.disk };
            part.cursors.get(&room).map(|cursor| cursor.0)
        });
        let from = cursor.unwrap_or(Number::ZERO).max(view.pruned()?);
        let rows = view.numbers(Number(from.0.saturating_add(1)), Number(u64::MAX))?;
        for row in rows {
            let (number, at, fate) = row?;
            // What was not delivered is passed over at once: a step that ended among many of these would never get further.
            if fate != Fate::Delivered {
                continue;
            }
            read.rows += 1;
            read.cursor = Some((number, at));
            if let Some((wall_ms, said)) = view.text_at(at)? {
                let words = words_of(room, &said);
                if !words.is_empty() {
                    read.found.push((Spot { wall_ms, room, number }, words));
                }
            }
            if read.rows == INDEX_STEP_ROWS {
                break;
            }
        }
        Ok(read)
    }

    /// Which part is full now, if one is: that of ephemeral rooms, or the other.
    fn add(&self, room: RoomId, read: Read) -> Option<bool> {
        let mut parts = self.index.parts_mut();
        let part = parts.as_mut()?.of(read.ephemeral);
        for (spot, words) in read.found {
            part.tail.add(spot, words);
        }
        if let Some(cursor) = read.cursor {
            part.went_to(room, cursor, read.rows);
        }
        part.is_full(self.index.0.segment).then_some(read.ephemeral)
    }

    fn seal(&self, ephemeral: bool) -> Result<(), IndexError> {
        let pick = |parts: &Parts| -> Result<_, IndexError> {
            if ephemeral { parts.memory.seal() } else { parts.disk.seal() }
        };
        // Searches go on while it is written.
        let Some(span) = self.index.parts().as_ref().map(pick).transpose()? else { return Ok(()) };
        if let Some(parts) = self.index.parts_mut().as_mut() {
            parts.of(ephemeral).sealed(span);
        }
        Ok(())
    }

    /// Takes words of messages out of the index whose bodies were dropped, or whose rooms are gone: of some segments. Whether
    /// there are more.
    ///
    /// # Errors
    /// See [`IndexError`]. Another one is to follow then.
    pub fn sweep(&mut self) -> Result<bool, IndexError> {
        let mut left = SWEEP_SEGMENTS_MAX;
        if let Some(before_ms) = self.pruned_before.take() {
            self.sweep_part(false, before_ms, &mut left)?;
            if left == 0 {
                self.pruned_before = Some(before_ms);
                return Ok(true);
            }
        }
        if std::mem::take(&mut self.dropped) {
            self.sweep_part(true, u64::MAX, &mut left)?;
            self.dropped = left == 0;
            self.forget_rooms()?;
        }
        Ok(self.dropped)
    }

    fn sweep_part(
        &self,
        ephemeral: bool,
        before_ms: u64,
        left: &mut usize,
    ) -> Result<(), IndexError> {
        let part = |parts: &'_ Parts| {
            if ephemeral {
                parts.memory.older_than(before_ms)
            } else {
                parts.disk.older_than(before_ms)
            }
        };
        let spans = self.index.parts().as_ref().map(part).unwrap_or_default();
        let floors = Floors::new(&self.index);
        let is_gone = |spot: &Spot| floors.is_gone(spot);
        let tail = match self.index.parts().as_ref() {
            Some(parts) if ephemeral => parts.memory.swept_tail(&is_gone)?,
            Some(parts) => parts.disk.swept_tail(&is_gone)?,
            None => None,
        };
        if let (Some(tail), Some(parts)) = (tail, self.index.parts_mut().as_mut()) {
            parts.of(ephemeral).tail = tail;
        }
        for span in spans {
            if *left == 0 {
                break;
            }
            let swept = match self.index.parts().as_ref() {
                Some(parts) if ephemeral => parts.memory.swept(span, &is_gone)?,
                Some(parts) => parts.disk.swept(span, &is_gone)?,
                None => None,
            };
            if let Some(swept) = swept {
                *left -= 1;
                if let Some(parts) = self.index.parts_mut().as_mut() {
                    parts.of(ephemeral).replace(span, &swept)?;
                }
            }
        }
        Ok(())
    }

    /// Cursors of ephemeral rooms that are gone.
    fn forget_rooms(&self) -> Result<(), IndexError> {
        let known: Vec<RoomId> = match self.index.parts().as_ref() {
            Some(parts) => parts.memory.cursors.keys().copied().collect(),
            None => return Ok(()),
        };
        for room in known {
            if self.index.0.reader.view(room)?.is_none()
                && let Some(parts) = self.index.parts_mut().as_mut()
            {
                parts.memory.cursors.remove(&room);
            }
        }
        Ok(())
    }
}

/// Up to which number the messages of rooms are dropped, looked up once for each.
struct Floors<'i> {
    index: &'i Index,
    known: std::cell::RefCell<std::collections::BTreeMap<RoomId, Option<Number>>>,
}

impl Floors<'_> {
    fn new(index: &Index) -> Floors<'_> {
        Floors { index, known: std::cell::RefCell::default() }
    }

    fn is_gone(&self, spot: &Spot) -> Result<bool, ReadError> {
        if let Some(floor) = self.known.borrow().get(&spot.room) {
            return Ok(floor.is_none_or(|floor| spot.number <= floor));
        }
        let view = self.index.0.reader.view(spot.room)?;
        let floor = view.as_ref().map(View::pruned).transpose()?;
        self.known.borrow_mut().insert(spot.room, floor);
        Ok(floor.is_none_or(|floor| spot.number <= floor))
    }
}
