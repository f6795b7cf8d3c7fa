//! Reading: rooms, history, single messages. For any thread, never in the writer's way.

use std::{
    collections::BTreeMap,
    iter,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use mesh::{
    api::batch::{Fate, RoomRecord},
    name::{
        id::{LocalRef, MessageId, RoomId},
        number::Number,
    },
    wire::run::{Certificate, Run},
};
use redb::{ReadableDatabase, ReadableTable};

use crate::{
    databases::{Databases, Snapshot},
    error::ReadError,
    limits::{PAGE_ROWS_MAX, PROVEN_ROOMS_MAX, SCAN_ROWS},
    roam::{Proven, Seen},
    row::Row,
    schema::{EVIDENCE, KEPT, ROOMS, decode, table},
    view::{View, room_row},
};

/// Reads snapshots. Each call sees one moment (long scans several, in order) and never waits for
/// the writer, nor the writer for it. A call takes some ten microseconds plus some for each row:
/// fine in async code, but for [`Reader::page_newest`] with a time, [`Reader::runs`] and
/// [`Reader::roam`], which may look at a whole room.
#[derive(Clone, Debug)]
pub struct Reader {
    databases: Arc<Databases>,
    /// Results of earlier reads about cursors; all clones share them.
    proven: Arc<Mutex<BTreeMap<RoomId, Proven>>>,
}

/// A name and its value ([`Reader::kept`]).
pub type Kept = (Vec<u8>, Vec<u8>);

impl Reader {
    pub(crate) fn new(databases: Arc<Databases>) -> Reader {
        Reader { databases, proven: Arc::default() }
    }

    pub(crate) fn databases(&self) -> &Databases {
        &self.databases
    }

    /// Whether an earlier read found that such a cursor leaves nothing unproven.
    pub(crate) fn is_proven(&self, room: RoomId, cursor: &Proven) -> bool {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        proven.get(&room).is_some_and(|known| known.covers(cursor))
    }

    /// A read found that such a cursor leaves nothing unproven.
    pub(crate) fn note_proven(&self, room: RoomId, cursor: Proven) {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if proven.len() >= PROVEN_ROOMS_MAX && !proven.contains_key(&room) {
            proven.pop_first();
        }
        proven.insert(room, cursor);
    }

    /// One snapshot of each database.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = Result<Snapshot, ReadError>> {
        let memory = || {
            let memory = self.databases.memory.get()?;
            let read = memory.begin_read().map_err(ReadError::from);
            Some(read.map(Snapshot::of_memory))
        };
        let disk = iter::once_with(|| self.databases.disk.read());
        disk.chain(iter::once_with(memory).flatten())
    }

    /// The room in whichever database has it.
    pub(crate) fn view(&self, room: RoomId) -> Result<Option<View>, ReadError> {
        for snapshot in self.snapshots() {
            let snapshot = snapshot?;
            if let Some(view) = View::open(&snapshot, room)? {
                return Ok(Some(view.keeping(snapshot.database)));
            }
        }
        Ok(None)
    }

    /// All rooms, those of earlier meshes included.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn rooms(&self) -> Result<Vec<(RoomId, RoomRecord)>, ReadError> {
        let mut rooms = Vec::new();
        for read in self.snapshots() {
            for row in table(&*read?, ROOMS)?.iter()? {
                rooms.push(room_row(row?.1.value())?);
            }
        }
        Ok(rooms)
    }

    /// The highest number delivered in a room here; zero if none was.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn tip(&self, room: RoomId) -> Result<Number, ReadError> {
        Ok(self
            .view(room)?
            .map(|view| view.record())
            .transpose()?
            .map_or(Number::ZERO, |record| record.tip))
    }

    /// The oldest `limit` (at most [`PAGE_ROWS_MAX`]) rows of the delivery log above `after`,
    /// ascending, under the numbers they were delivered under. Those whose bodies were dropped are
    /// passed over.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn page_since(
        &self,
        room: RoomId,
        after: Number,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        self.page_of_arrival(room, after, Number::ZERO, limit)
    }

    /// As [`Reader::page_since`], for a client that came from elsewhere with the cursor
    /// `origin_cursor` and has got everything since, up to `after`. Adds entries that were
    /// delivered here up to `origin_cursor` (so the client did not get them), that are not proven
    /// to be seen, and that have another number above that, under which this node passes them over.
    /// Such an entry got that number because some node lacked it, and that may be the node of this
    /// client. Each is given once, as long as it gets no number of an era above `after`'s. Leaves
    /// out entries that `origin_cursor` proves to be seen, though they were delivered here only
    /// above it.
    ///
    /// More than `limit`, and still at most [`PAGE_ROWS_MAX`], where a shorter page would end
    /// between two numbers of an entry that it does not give: another node may have given that one
    /// under the first, and would take it for seen.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn page_of_arrival(
        &self,
        room: RoomId,
        after: Number,
        origin_cursor: Number,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let limit = limit.min(PAGE_ROWS_MAX);
        let mut rows = Vec::new();
        // Up to here a page does not end.
        let mut open = after;
        let is_full = |rows: &Vec<Row>, number: Number, open: Number| {
            rows.len() >= PAGE_ROWS_MAX || (rows.len() >= limit && number >= open)
        };
        let mut from = Number(after.0.saturating_add(1));
        while let Some(view) = self.view(room)?
            && !is_full(&rows, Number(from.0 - 1), open)
        {
            let mut scanned = 0;
            // Nothing is owed to a client that was here from the beginning.
            let arrival = if origin_cursor == Number::ZERO {
                None
            } else {
                let eras = view.eras()?.into_iter().collect();
                Some((Seen::new(&eras, origin_cursor), view.record()?.tip))
            };
            from = from.max(Number(view.pruned()?.0.saturating_add(1)));
            for numbered in view.numbers(from, Number(u64::MAX))?.take(SCAN_ROWS) {
                let (number, at, fate) = numbered?;
                scanned += 1;
                from = Number(number.0 + 1);
                let is_given = match (&arrival, fate) {
                    (None, Fate::Delivered) => true,
                    (Some((seen, _)), Fate::Delivered) => !seen.has(&view.numbers_of(at)?),
                    (Some((seen, tip)), Fate::Assigned) if number <= *tip => {
                        open = open.max(seen.given_later(&view, number, at)?.unwrap_or(open));
                        seen.is_owed(&view, number, at, after)?
                    }
                    (Some(_) | None, Fate::Assigned) | (_, Fate::Hole) => false,
                };
                if is_given {
                    rows.extend(view.row(number, at)?);
                }
                if is_full(&rows, number, open) {
                    break;
                }
            }
            if scanned < SCAN_ROWS {
                break;
            }
        }
        Ok(rows)
    }

    /// The newest `limit` (at most [`PAGE_ROWS_MAX`]) rows of the delivery log, ascending, under
    /// the numbers they were delivered under. With `before_wall_ms` only those written before that
    /// time (Unix milliseconds, by their authors' clocks), which may look at the whole room. Those
    /// whose bodies were dropped are passed over.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn page_newest(
        &self,
        room: RoomId,
        limit: usize,
        before_wall_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError> {
        self.newest(room, limit, Number(u64::MAX), before_wall_ms)
    }

    /// The newest `limit` (at most [`PAGE_ROWS_MAX`]) rows of the delivery log below a number, as [`Reader::page_newest`] has
    /// them.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn page_below(
        &self,
        room: RoomId,
        limit: usize,
        below: Number,
    ) -> Result<Vec<Row>, ReadError> {
        match below.0.checked_sub(1) {
            Some(upto) => self.newest(room, limit, Number(upto), None),
            None => Ok(Vec::new()),
        }
    }

    /// See [`Reader::page_newest`]: of numbers up to one.
    fn newest(
        &self,
        room: RoomId,
        limit: usize,
        mut upto: Number,
        before_wall_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError> {
        let limit = limit.min(PAGE_ROWS_MAX);
        let mut rows = Vec::new();
        while let Some(view) = self.view(room)?
            && rows.len() < limit
        {
            let mut scanned = 0;
            let lowest = Number(view.pruned()?.0.saturating_add(1));
            for numbered in view.numbers(lowest, upto)?.rev().take(SCAN_ROWS) {
                let (number, at, fate) = numbered?;
                scanned += 1;
                upto = Number(number.0 - 1);
                if fate == Fate::Delivered && is_before(&view, at, before_wall_ms)? {
                    rows.extend(view.row(number, at)?);
                }
                if rows.len() == limit {
                    break;
                }
            }
            if scanned < SCAN_ROWS {
                break;
            }
        }
        rows.reverse();
        Ok(rows)
    }

    /// The row that a number names: any number that the entry ever had, delivered under it here or
    /// not. The row's `number` is the one that was asked for. `None`: a number that is not known
    /// here, or whose entry is not held. A row whose body was dropped is still named, without
    /// content.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn by_number(&self, room: RoomId, number: Number) -> Result<Option<Row>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(None) };
        match view.number(number)? {
            Some((at, _)) => view.named(number, at),
            None => Ok(None),
        }
    }

    /// The row that a message id names: one of ours, or one that a ClawChat server gave. The row's
    /// `number` is the one it was delivered under here, else its lowest. `None`: not held here, or
    /// not numbered yet. A row whose body was dropped is still named, without content: a client may
    /// go on from it.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn by_message(&self, room: RoomId, message: MessageId) -> Result<Option<Row>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(None) };
        if message.is_foreign() {
            return view.called(message)?.map_or(Ok(None), |at| view.row_at(at));
        }
        for (log, record) in view.logs()? {
            if let Some(seq) = message.seq_in(room, record.id) {
                return view.row_at(LocalRef { log, seq });
            }
        }
        Ok(None)
    }

    /// The entry at a place. `number` and `None` as in [`Reader::by_message`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn row_at(&self, room: RoomId, at: LocalRef) -> Result<Option<Row>, ReadError> {
        self.view(room)?.map_or(Ok(None), |view| view.row_at(at))
    }

    /// All known numbers of an entry, ascending, with their fates here.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn numbers_of(&self, room: RoomId, at: LocalRef) -> Result<Vec<(Number, Fate)>, ReadError> {
        self.view(room)?.map_or(Ok(Vec::new()), |view| Ok(view.numbers_of(at)?.0))
    }

    /// The proofs that logs were forked.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn evidence(&self) -> Result<Vec<(Certificate, Run)>, ReadError> {
        let mut proofs = Vec::new();
        for read in self.snapshots() {
            for row in table(&*read?, EVIDENCE)?.iter()? {
                proofs.push(decode(row?.1.value(), "evidence")?);
            }
        }
        Ok(proofs)
    }

    /// Names and values of the node's own ([`mesh::api::batch::Change::Keep`]) whose names begin
    /// so, ascending.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn kept(&self, prefix: &[u8]) -> Result<Vec<Kept>, ReadError> {
        let read = self.databases.disk.read()?;
        let mut kept = Vec::new();
        for row in table(&read, KEPT)?.range(prefix..)? {
            let (name, value) = row?;
            if !name.value().starts_with(prefix) {
                break;
            }
            kept.push((name.value().to_vec(), value.value().to_vec()));
        }
        Ok(kept)
    }

    /// Bytes of the file. Ephemeral rooms are not in it.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.databases.size.load(Ordering::Acquire)
    }
}

fn is_before(view: &View, at: LocalRef, before_wall_ms: Option<u64>) -> Result<bool, ReadError> {
    let Some(before) = before_wall_ms else { return Ok(true) };
    Ok(view.facts(at)?.is_some_and(|facts| facts.wall_ms < before))
}
