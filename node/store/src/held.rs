//! A storage backend that writes nothing until it is told to: a file that turns out to be damaged,
//! newer or somebody else's is left as it was, although redb writes while it opens.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

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
    pub(crate) fn new(backend: B) -> io::Result<HoldBack<B>> {
        let len = Arc::new(AtomicU64::new(backend.len()?));
        Ok(HoldBack(Arc::new(Inner {
            backend,
            holding: AtomicBool::new(true),
            journal: Mutex::default(),
            len,
        })))
    }

    /// Does what was held back, and from now on everything at once. Nothing else may be using the
    /// backend meanwhile.
    pub(crate) fn release(&self) -> io::Result<()> {
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
        if end > self.0.len.load(Ordering::Acquire) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let there = self.0.backend.len()?.saturating_sub(offset).min(out.len() as u64);
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

/// Offsets within a buffer in memory fit.
fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset within a buffer fits a usize")
}

impl<B: StorageBackend> StorageBackend for HoldBack<B> {
    fn len(&self) -> io::Result<u64> {
        if self.holding() { Ok(self.0.len.load(Ordering::Acquire)) } else { self.0.backend.len() }
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
