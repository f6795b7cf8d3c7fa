//! A journal in front of the database's pages, in the same file: a commit appends its pages to it, one after the other, and
//! syncs once. The database has them in memory until then, and gets them later, many commits at once.
//!
//! redb writes a dozen pages for one message, all over its file, and a disk takes three times as long for them as for the same
//! bytes in a row. It writes new pages only where no state that counts has one, and its header last; so the pages of all commits
//! since the last checkpoint, written again in their order, give the file after the last whole one.
//!
//! - [`sync_data`](StorageBackend::sync_data) makes a record of all that was written since the last one, and is over when that
//!   record is on the disk.
//! - A *checkpoint* writes the pages of all records to their places, syncs, and then says in the header that there is a new
//!   generation of records: the next one is written over the first, and what is left of the others does not count.
//! - A commit of very many pages is *direct*: after a checkpoint it is written to its places at once, as if there were no
//!   journal.
//! - A start reads the records of the header's generation, up to the first that is not whole. Nothing is written until somebody
//!   writes.
//!
//! [`form`] has the bytes.

use std::{
    fmt, io,
    ops::Bound,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use redb::{BackendError, StorageBackend};

use crate::limits::{
    JOURNAL_BYTES, JOURNAL_FIRST_BYTES, JOURNAL_RECORD_BYTES_MAX, JOURNAL_WRITE_BYTES,
};

mod form;
#[cfg(test)]
mod tests;

use form::{BLOCK, BLOCK_BYTES, Blocks, FIRST, Found, Header, Stamp};

/// How much room the journal of a new file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes of the file before the database. Whole blocks.
    pub(crate) whole: u64,
    /// Bytes of it that are made ready when the file is made. Whole blocks.
    pub(crate) first: u64,
}

impl Room {
    /// Of a node's file.
    pub(crate) const FILE: Room = Room { whole: JOURNAL_BYTES, first: JOURNAL_FIRST_BYTES };
    /// Of a disk in memory: a few commits.
    pub(crate) const SMALL: Room = Room { whole: 64 * BLOCK, first: 32 * BLOCK };
}

/// Where the database is in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its first byte.
    start: u64,
    /// There is no journal: the file is somebody else's, or of an earlier layout.
    foreign: bool,
}

/// What is not in its place yet.
#[derive(Default)]
struct Pages {
    /// Of the commit that is under way, written since the last sync.
    open: Blocks,
    /// Of records.
    kept: Blocks,
    /// Bytes of the database, as its user sees it.
    len: u64,
    /// The same after the last sync.
    kept_len: u64,
}

/// The end of the journal.
#[derive(Debug)]
struct Head {
    header: Header,
    /// Where the next record goes.
    at: u64,
    /// Its number.
    seq: u64,
    /// The file has this header, and no record of it is from an earlier start.
    is_written: bool,
    /// There is no such file yet.
    is_new: bool,
    /// What is written now goes to its place.
    is_direct: bool,
}

/// See the module. One thread writes at a time; any number may read.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Box<dyn StorageBackend>,
    room: Room,
    /// Known when somebody first asks for the length: redb has locked the file by then.
    place: OnceLock<Place>,
    head: Mutex<Head>,
    pages: RwLock<Pages>,
}

impl Journal {
    /// On a file, which may be empty.
    pub(crate) fn on(file: impl StorageBackend, room: Room) -> Journal {
        let header = Header { region: room.whole, ready: room.first, generation: 1 };
        let head =
            Head { header, at: FIRST, seq: 1, is_written: false, is_new: false, is_direct: false };
        Journal {
            file: Box::new(file),
            room,
            place: OnceLock::new(),
            head: Mutex::new(head),
            pages: RwLock::default(),
        }
    }

    /// Writes all that is not in its place yet there, so that the journal is empty: to be done at leisure.
    ///
    /// # Errors
    ///
    /// Those of the file. All that was synced stays so.
    pub(crate) fn checkpoint(&self) -> io::Result<()> {
        let mut head = self.head();
        if head.is_written && !head.is_direct { self.empty(&mut head) } else { Ok(()) }
    }

    /// Forgets all that was written since the last sync.
    pub(crate) fn roll_back(&self) -> io::Result<()> {
        let place = self.place()?;
        let mut head = self.head();
        let there = self.file.len()?.saturating_sub(place.start);
        let direct = std::mem::replace(&mut head.is_direct, false);
        let mut pages = self.pages_mut();
        pages.open.clear();
        if direct || place.foreign {
            // Pages that no state that counts has were written over, and the file may be longer.
            pages.kept_len = there;
        }
        pages.len = pages.kept_len;
        Ok(())
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages_mut(&self) -> RwLockWriteGuard<'_, Pages> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the file, the first time.
    fn place(&self) -> io::Result<Place> {
        if let Some(place) = self.place.get() {
            return Ok(*place);
        }
        let mut head = self.head();
        if let Some(place) = self.place.get() {
            return Ok(*place);
        }
        let place = match form::look(&*self.file, self.room.whole.max(JOURNAL_BYTES))? {
            Found::Blank => {
                head.is_new = true;
                Place { start: self.room.whole, foreign: false }
            }
            Found::Ours(header) => {
                head.header = header;
                self.replay(&header)?;
                Place { start: header.region, foreign: false }
            }
            Found::Foreign => {
                let len = self.file.len()?;
                *self.pages_mut() = Pages { len, kept_len: len, ..Pages::default() };
                Place { start: 0, foreign: true }
            }
        };
        Ok(*self.place.get_or_init(|| place))
    }

    /// Reads the records of a file into memory.
    fn replay(&self, header: &Header) -> io::Result<()> {
        let mut len = self.file.len()?.saturating_sub(header.region);
        let mut kept = Blocks::new();
        let (mut at, mut seq) = (FIRST, 1);
        while let Some((stamp, blocks, bytes)) = form::decode(&*self.file, at, header.region)? {
            if (stamp.generation, stamp.seq) != (header.generation, seq) {
                break;
            }
            kept.extend(blocks);
            len = stamp.len;
            seq += 1;
            at += bytes;
        }
        *self.pages_mut() = Pages { open: Blocks::new(), kept, len, kept_len: len };
        Ok(())
    }

    /// The file is there, and its journal is of this start.
    fn prepare(&self, head: &mut Head) -> io::Result<()> {
        if head.is_written {
            return Ok(());
        }
        if head.is_new {
            self.file.set_len(head.header.region)?;
            self.fill(FIRST, head.header.ready)?;
            self.file.write(0, &head.header.encode())?;
            self.file.sync_data()?;
        } else {
            self.place_kept(head)?;
        }
        (head.is_written, head.is_new) = (true, false);
        Ok(())
    }

    /// A checkpoint, if there are records.
    fn empty(&self, head: &mut Head) -> io::Result<()> {
        if head.at > FIRST {
            self.place_kept(head)?;
            self.grow(head);
        }
        Ok(())
    }

    /// Writes the pages of records to their places, and begins a new generation of records.
    fn place_kept(&self, head: &mut Head) -> io::Result<()> {
        let start = head.header.region;
        let pages = self.pages();
        if !pages.kept.is_empty() || self.file.len()? < start + pages.kept_len {
            self.lengthen(start + pages.kept_len)?;
            self.write_pages(start, &pages.kept, pages.kept_len)?;
            self.file.sync_data()?;
        }
        drop(pages);
        // Before a record is written over the first of them: some of them would lead back.
        let header = Header { generation: head.header.generation + 1, ..head.header };
        self.file.write(0, &header.encode())?;
        self.file.sync_data()?;
        (head.header, head.at, head.seq) = (header, FIRST, 1);
        self.pages_mut().kept.clear();
        Ok(())
    }

    /// Pages that follow each other are written at once.
    fn write_pages(&self, start: u64, blocks: &Blocks, len: u64) -> io::Result<()> {
        let mut run = (0, Vec::new());
        let write = |(first, bytes): &(u64, Vec<u8>)| -> io::Result<()> {
            let offset = first * BLOCK;
            // A database of which a part of a page is made is still being made.
            let end = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
            let bytes = &bytes[..bytes.len().min(end)];
            if bytes.is_empty() { Ok(()) } else { self.file.write(start + offset, bytes) }
        };
        for (index, block) in blocks {
            let follows = run.0 + (run.1.len() as u64) / BLOCK == *index;
            if !follows || run.1.len() >= JOURNAL_WRITE_BYTES {
                write(&run)?;
                run = (*index, Vec::with_capacity(run.1.capacity().min(JOURNAL_WRITE_BYTES)));
            }
            run.1.extend_from_slice(&block[..]);
        }
        write(&run)
    }

    /// The file is at least so long.
    fn lengthen(&self, len: u64) -> io::Result<()> {
        if self.file.len()? < len { self.file.set_len(len) } else { Ok(()) }
    }

    /// More of the region is made ready: twice as much each time, for a node that says much is not to wait for checkpoints often.
    /// Where that fails the journal stays as it is.
    fn grow(&self, head: &mut Head) {
        let Header { region, ready, .. } = head.header;
        let more = ready.saturating_mul(2).min(region);
        if more > ready && self.fill(ready, more).is_ok() {
            head.header.ready = more;
        }
    }

    /// Zeros, so that the place of later writes is known to the file system.
    fn fill(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0; JOURNAL_WRITE_BYTES];
        let mut at = from;
        while at < to {
            let step = (to - at).min(JOURNAL_WRITE_BYTES as u64);
            self.file.write(at, &zeros[..usize::try_from(step).unwrap_or(JOURNAL_WRITE_BYTES)])?;
            at += step;
        }
        Ok(())
    }

    /// From now on what is written goes to its place.
    fn go_direct(&self, head: &mut Head) -> io::Result<()> {
        self.prepare(head)?;
        // Before anything of this commit is in its place: records would take it back.
        self.empty(head)?;
        let start = head.header.region;
        let mut pages = self.pages_mut();
        self.lengthen(start + pages.len)?;
        self.write_pages(start, &pages.open, pages.len)?;
        pages.open.clear();
        head.is_direct = true;
        Ok(())
    }

    /// Bytes of the file; zeros where it is still to become longer.
    fn read_placed(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let Err(error) = self.file.read(at, out) else { return Ok(()) };
        let there = usize::try_from(self.file.len()?.saturating_sub(at)).unwrap_or(usize::MAX);
        if there >= out.len() {
            return Err(error);
        }
        let (old, new) = out.split_at_mut(there);
        new.fill(0);
        if old.is_empty() { Ok(()) } else { self.file.read(at, old) }
    }

    /// A page as it was before `bytes` of it are written.
    fn before(
        &self,
        pages: &Pages,
        start: u64,
        index: u64,
        bytes: usize,
    ) -> io::Result<form::Block> {
        if bytes == BLOCK_BYTES {
            return Ok(form::blank());
        }
        if let Some(block) = pages.kept.get(&index) {
            return Ok(block.clone());
        }
        let mut block = form::blank();
        self.read_placed(start + index * BLOCK, &mut block[..])?;
        Ok(block)
    }

    /// What would be a longer record is written to its place.
    fn record_max(head: &Head) -> u64 {
        JOURNAL_RECORD_BYTES_MAX.min((head.header.ready - FIRST) / 2)
    }

    /// Appends a record of all that was written since the last one.
    fn append(&self, head: &mut Head) -> io::Result<()> {
        let pages = self.pages();
        let bytes = form::record_bytes(pages.open.len());
        drop(pages);
        if head.at + bytes > head.header.ready {
            self.empty(head)?;
        }
        let (generation, seq) = (head.header.generation, head.seq);
        let pages = self.pages();
        let record = form::encode(&Stamp { generation, seq, len: pages.len }, &pages.open);
        drop(pages);
        self.file.write(head.at, &record)?;
        self.file.sync_data()?;
        head.at += bytes;
        head.seq += 1;
        Ok(())
    }
}

/// Parts of `offset..offset + len`: index of the block, offset within it, bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = offset + from as u64;
        let within = usize::try_from(at % BLOCK).unwrap_or(0);
        let step = (BLOCK_BYTES - within).min(len - from);
        let part = (at / BLOCK, within, from..from + step);
        from += step;
        (step > 0).then_some(part)
    })
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("open", &self.open.len())
            .field("kept", &self.kept.len())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Pages {
    fn get(&self, index: u64) -> Option<&form::Block> {
        self.open.get(&index).or_else(|| self.kept.get(&index))
    }
}

impl StorageBackend for Journal {
    fn len(&self) -> io::Result<u64> {
        self.place()?;
        Ok(self.pages().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let place = self.place()?;
        let pages = self.pages();
        let end = offset.checked_add(out.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if end > pages.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !parts(offset, out.len()).all(|(index, ..)| pages.get(index).is_some()) {
            self.read_placed(place.start + offset, out)?;
        }
        if pages.open.is_empty() && pages.kept.is_empty() {
            return Ok(());
        }
        for (index, within, part) in parts(offset, out.len()) {
            if let Some(block) = pages.get(index) {
                let step = part.len();
                out[part].copy_from_slice(&block[within..within + step]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let place = self.place()?;
        let mut head = self.head();
        if place.foreign {
            return self.file.set_len(len);
        }
        if len < self.pages().len && !head.is_direct {
            self.go_direct(&mut head)?;
        }
        if head.is_direct {
            self.file.set_len(place.start + len)?;
        }
        self.pages_mut().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let place = self.place()?;
        if place.foreign {
            return self.file.sync_data();
        }
        let mut head = self.head();
        if !head.is_direct {
            let pages = self.pages();
            if pages.open.is_empty() && pages.len == pages.kept_len {
                return Ok(());
            }
            let bytes = form::record_bytes(pages.open.len());
            drop(pages);
            self.prepare(&mut head)?;
            if bytes > Self::record_max(&head) {
                self.go_direct(&mut head)?;
            }
        }
        if head.is_direct {
            self.file.sync_data()?;
            head.is_direct = false;
        } else {
            self.append(&mut head)?;
        }
        let mut pages = self.pages_mut();
        let open = std::mem::take(&mut pages.open);
        pages.kept.extend(open);
        pages.kept_len = pages.len;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = self.place()?;
        let mut head = self.head();
        if place.foreign || head.is_direct {
            return self.file.write(place.start + offset, data);
        }
        let mut pages = self.pages_mut();
        let end = offset.checked_add(data.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if end > pages.len {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "write past the end"));
        }
        for (index, within, part) in parts(offset, data.len()) {
            let bytes = &data[part];
            if !pages.open.contains_key(&index) {
                let block = self.before(&pages, place.start, index, bytes.len())?;
                pages.open.insert(index, block);
            }
            if let Some(block) = pages.open.get_mut(&index) {
                block[within..within + bytes.len()].copy_from_slice(bytes);
            }
        }
        let bytes = form::record_bytes(pages.open.len());
        drop(pages);
        if bytes > Self::record_max(&head) { self.go_direct(&mut head) } else { Ok(()) }
    }

    fn close(&self) -> io::Result<()> {
        // All of it is in the journal: the next start can do this, too.
        drop(self.checkpoint());
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
