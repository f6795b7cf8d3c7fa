//! The databases of a store, and snapshots of them.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak, atomic::AtomicU64},
};

use redb::{Database, ReadTransaction, ReadableDatabase};

use crate::{error::ReadError, held::Gate, search::News};

/// The database of the file: opened anew after the disk was full.
#[derive(Debug)]
pub(crate) struct Disk {
    gate: Arc<Gate>,
    current: Mutex<Arc<Database>>,
}

impl Disk {
    pub(crate) fn new(database: Database, gate: Arc<Gate>) -> Disk {
        Disk { gate, current: Mutex::new(Arc::new(database)) }
    }

    /// For the writer: these rows may not be on the disk.
    pub(crate) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the database. Reads of the one before go on to their end.
    pub(crate) fn replace(&self, database: Database) -> Weak<Database> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::new(database));
        drop(current);
        self.gate.open();
        Arc::downgrade(&before)
    }

    /// A snapshot of the rows on the disk.
    pub(crate) fn read(&self) -> Result<Snapshot, ReadError> {
        loop {
            let state = self.gate.wait();
            let database = self.database();
            let read = database.begin_read()?;
            if self.gate.is_still(state) {
                return Ok(Snapshot { read, database: Some(database) });
            }
        }
    }
}

/// One moment of a database, which is not closed while something of it is read.
pub(crate) struct Snapshot {
    read: ReadTransaction,
    /// Kept open meanwhile; `None`: it is never replaced.
    pub(crate) database: Option<Arc<Database>>,
}

impl Snapshot {
    /// Of ephemeral rooms, whose database is never replaced.
    pub(crate) fn of_memory(read: ReadTransaction) -> Snapshot {
        Snapshot { read, database: None }
    }
}

impl Deref for Snapshot {
    type Target = ReadTransaction;

    fn deref(&self) -> &ReadTransaction {
        &self.read
    }
}

/// State that store and readers share.
#[derive(Debug)]
pub(crate) struct Databases {
    pub(crate) disk: Disk,
    /// Ephemeral rooms, once there are any.
    pub(crate) memory: OnceLock<Database>,
    /// The number of the last change of a followed record that is committed ([`crate::followed`]).
    pub(crate) changed: AtomicU64,
    /// Rooms in which something was delivered, for the index of words.
    pub(crate) news: News,
    /// Bytes of the file.
    pub(crate) size: Arc<AtomicU64>,
}
