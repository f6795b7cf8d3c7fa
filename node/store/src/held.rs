//! A storage backend that writes nothing until it is told to: a file that turns out to be damaged,
//! newer or somebody else's is left as it was, although redb writes while it opens. And one that is
//! new is made in one step: power may fail at any moment of it.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

/// Stands where redb's magic number will be while a new file is being made. A file that begins so
/// never held anything.
const IN_THE_MAKING: &[u8; 16] = b"clawmesh: made..";
/// What a disk writes in one piece: marker and magic number are within the first.
const SECTOR_BYTES: usize = 512;

/// What redb did while the backend was held, to be done later in the same order.
#[derive(Debug)]
enum Held {
    SetLen(u64),
    Write(u64, Vec<u8>),
    Sync,
}

#[derive(Debug)]
struct Inner<B> {
    backend: B,
    /// Whether the journal still counts. Never true again once false.
    holding: AtomicBool,
    journal: Mutex<Vec<Held>>,
    /// There was nothing yet, or only what an interrupted making left. Looked at when redb first
    /// asks for the length: it has locked the file by then, so nobody else is making it.
    new: OnceLock<bool>,
    /// The length as redb sees it.
    len: Arc<AtomicU64>,
}

/// See the module. A clone is another handle of the same backend.
#[derive(Debug)]
pub(crate) struct HoldBack<B>(Arc<Inner<B>>);

impl<B> Clone for HoldBack<B> {
    fn clone(&self) -> HoldBack<B> {
        HoldBack(Arc::clone(&self.0))
    }
}

impl<B: StorageBackend> HoldBack<B> {
    pub(crate) fn new(backend: B) -> HoldBack<B> {
        HoldBack(Arc::new(Inner {
            backend,
            holding: AtomicBool::new(true),
            journal: Mutex::default(),
            new: OnceLock::new(),
            len: Arc::new(AtomicU64::new(0)),
        }))
    }

    /// Whether there was nothing yet.
    pub(crate) fn is_new(&self) -> bool {
        self.0.new.get().is_some_and(|new| *new)
    }

    /// The length as redb sees it, while held.
    fn len_held(&self) -> io::Result<u64> {
        if self.0.new.get().is_none() {
            let new = is_new(&self.0.backend)?;
            let len = if new { 0 } else { self.0.backend.len()? };
            self.0.len.store(len, Ordering::Release);
            self.0.new.get_or_init(|| new);
        }
        Ok(self.0.len.load(Ordering::Acquire))
    }

    /// Does what was held back, and from now on everything at once. Nothing else may be using the
    /// backend meanwhile.
    pub(crate) fn release(&self) -> io::Result<()> {
        if self.is_new() {
            self.make()?;
        }
        for held in self.journal().drain(..) {
            match held {
                Held::SetLen(len) => self.0.backend.set_len(len)?,
                Held::Write(offset, data) => self.0.backend.write(offset, &data)?,
                Held::Sync => self.0.backend.sync_data()?,
            }
        }
        self.0.holding.store(false, Ordering::Release);
        Ok(())
    }

    /// Writes all that was held back at once: a marker, everything but the first sector, and then
    /// that one over the marker.
    fn make(&self) -> io::Result<()> {
        let len = self.0.len.load(Ordering::Acquire);
        let mut image = vec![0; index(len)];
        self.read_held(0, &mut image)?;
        self.journal().clear();
        let backend = &self.0.backend;
        backend.set_len(IN_THE_MAKING.len() as u64)?;
        backend.write(0, IN_THE_MAKING)?;
        backend.sync_data()?;
        backend.set_len(len)?;
        let (first, rest) = image.split_at(SECTOR_BYTES.min(image.len()));
        backend.write(first.len() as u64, rest)?;
        backend.sync_data()?;
        backend.write(0, first)?;
        backend.sync_data()
    }

    /// Bytes of the storage, for as long as anybody cares.
    pub(crate) fn size(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.len)
    }

    fn journal(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holding(&self) -> bool {
        self.0.holding.load(Ordering::Acquire)
    }

    /// What is there, with what was held back on top of it.
    fn read_held(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if end > self.len_held()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let base = if self.is_new() { 0 } else { self.0.backend.len()? };
        let there = base.saturating_sub(offset).min(out.len() as u64);
        if there > 0 {
            self.0.backend.read(offset, &mut out[..index(there)])?;
        }
        for held in self.journal().iter() {
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
fn is_new(backend: &impl StorageBackend) -> io::Result<bool> {
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

impl<B: StorageBackend> StorageBackend for HoldBack<B> {
    fn len(&self) -> io::Result<u64> {
        if self.holding() { self.len_held() } else { self.0.backend.len() }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.holding() { self.read_held(offset, out) } else { self.0.backend.read(offset, out) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.holding() {
            self.journal().push(Held::SetLen(len));
        } else {
            self.0.backend.set_len(len)?;
        }
        self.0.len.store(len, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.holding() {
            self.journal().push(Held::Sync);
            return Ok(());
        }
        self.0.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.holding() {
            self.journal().push(Held::Write(offset, data.to_vec()));
            return Ok(());
        }
        self.0.backend.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.backend.query_lock_range(start, end)
    }
}
