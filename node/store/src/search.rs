//! The index of words, for searches: a file of its own beside the store's, which follows the delivery log.
//!
//! It is written by a thread of its own ([`Follower`]), after the commit that stores a message, and read by any
//! ([`Index::find`]). Nothing is only in it: a missing, damaged or foreign file is made anew from the store. Why so, and its
//! bytes: `docs/decisions/search.md`.
//!
//! In reading order: `news` (what the writer of the store tells), `segment` (messages and their words), `part` (a file of
//! segments), `follow`, `find`.

mod find;
mod follow;
mod news;
mod part;
mod segment;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{limits::SEGMENT_MESSAGES, reader::Reader};

pub use find::Found;
pub use follow::{Follower, Step};
pub(crate) use news::News;
pub use part::IndexError;
use part::Part;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "search.redb";

/// The index of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Index(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    reader: Reader,
    /// `None`: it is in memory.
    file: Option<PathBuf>,
    /// Messages of a segment.
    segment: usize,
    /// `None`: it is not open.
    parts: RwLock<Option<Parts>>,
    /// Not all that was delivered is in it.
    behind: AtomicBool,
}

/// Permanent rooms in a file, and ephemeral ones in memory.
#[derive(Debug)]
struct Parts {
    disk: Part,
    memory: Part,
}

impl Parts {
    fn of(&mut self, ephemeral: bool) -> &mut Part {
        if ephemeral { &mut self.memory } else { &mut self.disk }
    }
}

impl Index {
    /// The index of the store in `dir`. It is empty until a [`Follower`] opens it.
    #[must_use]
    pub fn beside(dir: &Path, reader: Reader) -> Index {
        Index::new(Some(dir.join(FILE_NAME)), reader)
    }

    /// One without a file.
    #[must_use]
    pub fn in_memory(reader: Reader) -> Index {
        Index::new(None, reader)
    }

    fn new(file: Option<PathBuf>, reader: Reader) -> Index {
        let segment = SEGMENT_MESSAGES;
        Index(Arc::new(Shared {
            reader,
            file,
            segment,
            parts: RwLock::new(None),
            behind: AtomicBool::new(true),
        }))
    }

    /// The same with smaller segments: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn in_segments_of(self, segment: usize) -> Index {
        let (reader, file) = (self.0.reader.clone(), self.0.file.clone());
        let (parts, behind) = (RwLock::new(None), AtomicBool::new(true));
        Index(Arc::new(Shared { reader, file, segment, parts, behind }))
    }

    /// Says whether searches miss what was delivered a while ago.
    pub fn set_behind(&self, behind: bool) {
        self.0.behind.store(behind, Ordering::Relaxed);
    }

    fn is_behind(&self) -> bool {
        self.0.behind.load(Ordering::Relaxed)
    }

    fn parts(&self) -> RwLockReadGuard<'_, Option<Parts>> {
        self.0.parts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts_mut(&self) -> RwLockWriteGuard<'_, Option<Parts>> {
        self.0.parts.write().unwrap_or_else(PoisonError::into_inner)
    }
}
