//! A storage backend that writes nothing until it is told to: a file that turns out to be damaged,
//! newer or somebody else's is left as it was, although redb writes while it opens. And one that is
//! new is made in one step: power may fail at any moment of it.
//!
//! When the disk is full it holds back again, because redb uses nothing any more that has failed
//! once, not even for reading. Later writes of redb are nowhere but here, and are forgotten with
//! it: the file is opened anew ([`HoldBack::again`]), as it was after the last commit that it had
//! room for.

use std::{
    collections::VecDeque,
    io,
    ops::Bound,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

use crate::journal::Journal;

/// Stands where redb's magic number will be while a new file is being made. A file that begins so
/// never held anything.
const IN_THE_MAKING: &[u8; 16] = b"clawmesh: made..";
/// A disk writes this much in one piece: marker and magic number are within the first.
const SECTOR_BYTES: usize = 512;

/// Shows whoever wants to read which opening of the file is to be read, and that one has to wait:
/// between the moment at which redb is told that something is written that is not, and the next
/// opening.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Odd: closed. Each opening has a number of its own.
    state: Mutex<u64>,
    opened: Condvar,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, u64> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is open. A read that begins then counts if [`Gate::is_still`] says so
    /// afterwards.
    pub(crate) fn wait(&self) -> u64 {
        let open = self.opened.wait_while(self.state(), |state| *state % 2 == 1);
        *open.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was open all the time since [`Gate::wait`] said this.
    pub(crate) fn is_still(&self, state: u64) -> bool {
        *self.state() == state
    }

    fn close(&self) {
        *self.state() |= 1;
    }

    /// If it was closed.
    pub(crate) fn open(&self) {
        let mut state = self.state();
        *state += *state % 2;
        self.opened.notify_all();
    }
}

/// Whether there is no room for a write: on the disk, in a quota, or within the file's size limit.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Writes of redb while the backend was held, to be done later in the same order.
#[derive(Debug)]
enum Held {
    SetLen(u64),
    Write(u64, Vec<u8>),
    Sync,
}

#[derive(Debug)]
struct Inner {
    backend: Arc<Journal>,
    /// Whether writes still wait.
    holding: AtomicBool,
    /// The disk was full: redb takes writes for done that are not.
    full: AtomicBool,
    /// The file was opened anew: this backend does nothing any more.
    over: AtomicBool,
    /// The file was locked by an earlier opening, and still is.
    locked: bool,
    gate: Arc<Gate>,
    waiting: Mutex<VecDeque<Held>>,
    /// There was nothing yet, or only what an interrupted making left. Looked at when redb first
    /// asks for the length: it has locked the file by then, so nobody else is making it.
    new: OnceLock<bool>,
    /// That one has been made.
    made: AtomicBool,
    /// The length as redb sees it.
    len: Arc<AtomicU64>,
}

/// See the module. A clone is another handle of the same backend.
#[derive(Clone, Debug)]
pub(crate) struct HoldBack(Arc<Inner>);

impl HoldBack {
    pub(crate) fn new(backend: Journal) -> HoldBack {
        HoldBack(Arc::new(Inner {
            backend: Arc::new(backend),
            holding: AtomicBool::new(true),
            full: AtomicBool::new(false),
            over: AtomicBool::new(false),
            locked: false,
            gate: Arc::default(),
            waiting: Mutex::default(),
            new: OnceLock::new(),
            made: AtomicBool::new(false),
            len: Arc::new(AtomicU64::new(0)),
        }))
    }

    /// The same backend as it is, for redb to open once more: held back, with its locks. Writes
    /// held back here are forgotten, and this one does nothing any more.
    pub(crate) fn again(&self) -> io::Result<HoldBack> {
        let inner = &self.0;
        inner.over.store(true, Ordering::Release);
        inner.backend.roll_back()?;
        inner.len.store(inner.backend.len()?, Ordering::Release);
        Ok(HoldBack(Arc::new(Inner {
            backend: Arc::clone(&inner.backend),
            holding: AtomicBool::new(true),
            full: AtomicBool::new(false),
            over: AtomicBool::new(false),
            locked: true,
            gate: Arc::clone(&inner.gate),
            waiting: Mutex::default(),
            new: OnceLock::from(false),
            made: AtomicBool::new(false),
            len: Arc::clone(&inner.len),
        })))
    }

    /// Whether something that redb takes for written is not, because the disk was full.
    pub(crate) fn is_full(&self) -> bool {
        self.0.full.load(Ordering::Acquire)
    }

    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.0.gate)
    }

    /// Whether there was nothing yet.
    pub(crate) fn is_new(&self) -> bool {
        self.0.new.get().is_some_and(|new| *new)
    }

    /// Whether there is nothing yet, still.
    fn is_unmade(&self) -> bool {
        self.is_new() && !self.0.made.load(Ordering::Acquire)
    }

    /// The length as redb sees it, while held.
    fn len_held(&self) -> io::Result<u64> {
        if self.0.new.get().is_none() {
            let new = is_new(&*self.0.backend)?;
            let len = if new { 0 } else { self.0.backend.len()? };
            self.0.len.store(len, Ordering::Release);
            self.0.new.get_or_init(|| new);
        }
        Ok(self.0.len.load(Ordering::Acquire))
    }

    /// Does what was held back, and from now on everything at once. Nobody else may be writing
    /// meanwhile, nor reading if it is new. If it fails some of it is done: it may be tried again.
    pub(crate) fn release(&self) -> io::Result<()> {
        if self.is_unmade() {
            self.make()?;
        }
        let mut waiting = self.waiting();
        while let Some(held) = waiting.front() {
            match held {
                Held::SetLen(len) => self.0.backend.set_len(*len)?,
                Held::Write(offset, data) => self.0.backend.write(*offset, data)?,
                Held::Sync => self.0.backend.sync_data()?,
            }
            waiting.pop_front();
        }
        self.0.holding.store(false, Ordering::Release);
        Ok(())
    }

    /// The disk is full: later writes of redb are held back, and nobody else may read them.
    fn fill(&self, held: Held) {
        self.0.gate.close();
        self.waiting().push_back(held);
        self.0.full.store(true, Ordering::Release);
        self.0.holding.store(true, Ordering::Release);
    }

    /// The first opening locks the file, and it stays locked until the last one is closed.
    fn keeps_locks(&self) -> bool {
        self.0.locked || self.is_over()
    }

    /// Whether redb has the file open once more, and this is of no meaning.
    fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Writes all that was held back at once: a marker, everything but the first sector, and then
    /// that one over the marker.
    fn make(&self) -> io::Result<()> {
        let len = self.0.len.load(Ordering::Acquire);
        let mut image = vec![0; index(len)];
        self.read_held(0, &mut image)?;
        self.waiting().clear();
        let backend = &self.0.backend;
        backend.set_len(IN_THE_MAKING.len() as u64)?;
        backend.write(0, IN_THE_MAKING)?;
        backend.sync_data()?;
        backend.set_len(len)?;
        let (first, rest) = image.split_at(SECTOR_BYTES.min(image.len()));
        backend.write(first.len() as u64, rest)?;
        backend.sync_data()?;
        backend.write(0, first)?;
        backend.sync_data()?;
        self.0.made.store(true, Ordering::Release);
        Ok(())
    }

    /// All that is committed is in its place, if there is room for that.
    pub(crate) fn checkpoint(&self) -> io::Result<()> {
        if self.holding() || self.is_over() {
            return Ok(());
        }
        match self.0.backend.checkpoint() {
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }

    /// Bytes of the storage, for as long as anybody cares.
    pub(crate) fn size(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.len)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Held>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holding(&self) -> bool {
        self.0.holding.load(Ordering::Acquire)
    }

    /// The file's content, with the writes that are held back on top of it.
    fn read_held(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if end > self.len_held()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let base = if self.is_unmade() { 0 } else { self.0.backend.len()? };
        let there = base.saturating_sub(offset).min(out.len() as u64);
        if there > 0 {
            self.0.backend.read(offset, &mut out[..index(there)])?;
        }
        for held in self.waiting().iter() {
            match held {
                Held::SetLen(len) => {
                    let kept = len.saturating_sub(offset).min(out.len() as u64);
                    out[index(kept)..].fill(0);
                }
                Held::Write(at, data) => {
                    let (from, to) = (offset.max(*at), end.min(at + data.len() as u64));
                    if from < to {
                        out[index(from - offset)..index(to - offset)]
                            .copy_from_slice(&data[index(from - at)..index(to - at)]);
                    }
                }
                Held::Sync => {}
            }
        }
        Ok(())
    }
}

/// Nothing, the length of the marker without its bytes, or the marker: see [`HoldBack::make`].
fn is_new(backend: &dyn StorageBackend) -> io::Result<bool> {
    let len = backend.len()?;
    let mut start = vec![0; IN_THE_MAKING.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
    backend.read(0, &mut start)?;
    let blank = len <= IN_THE_MAKING.len() as u64 && start.iter().all(|byte| *byte == 0);
    Ok(blank || start == IN_THE_MAKING)
}

/// Offsets within a buffer in memory fit.
fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset within a buffer fits a usize")
}

impl StorageBackend for HoldBack {
    fn len(&self) -> io::Result<u64> {
        if self.holding() { self.len_held() } else { self.0.backend.len() }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.holding() { self.read_held(offset, out) } else { self.0.backend.read(offset, out) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        if self.holding() {
            self.waiting().push_back(Held::SetLen(len));
        } else {
            match self.0.backend.set_len(len) {
                Err(error) if is_full(&error) => self.fill(Held::SetLen(len)),
                done => done?,
            }
        }
        self.0.len.store(len, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        if self.holding() {
            self.waiting().push_back(Held::Sync);
            return Ok(());
        }
        match self.0.backend.sync_data() {
            // The journal has no room for this commit, and still has all before it.
            Err(error) if is_full(&error) => {
                self.fill(Held::Sync);
                Ok(())
            }
            done => done,
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        if self.holding() {
            self.waiting().push_back(Held::Write(offset, data.to_vec()));
            return Ok(());
        }
        match self.0.backend.write(offset, data) {
            Err(error) if is_full(&error) => {
                self.fill(Held::Write(offset, data.to_vec()));
                Ok(())
            }
            done => done,
        }
    }

    fn close(&self) -> io::Result<()> {
        if self.is_over() { Ok(()) } else { self.0.backend.close() }
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.keeps_locks() { Ok(true) } else { self.0.backend.try_lock_range(start, end) }
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        if self.keeps_locks() {
            return Ok(true);
        }
        self.0.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.keeps_locks() { Ok(()) } else { self.0.backend.lock_range(start, end) }
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.keeps_locks() { Ok(()) } else { self.0.backend.lock_shared_range(start, end) }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.keeps_locks() { Ok(()) } else { self.0.backend.unlock_range(start, end) }
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.keeps_locks() { Ok(false) } else { self.0.backend.query_lock_range(start, end) }
    }
}
