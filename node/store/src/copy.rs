//! A copy of the whole file as it was at one moment, for backups.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use redb::{
    Builder, Durability, Key, ReadableTable, ReadableTableMetadata, TableDefinition, TableHandle,
    Value, WriteTransaction, backends::FileBackend,
};
use thiserror::Error;

use crate::{
    databases::Snapshot,
    error::ReadError,
    journal::{Journal, Room},
    limits::{CACHE_BYTES, PROGRESS_ROWS},
    reader::Reader,
    schema::{
        ACTS, CALLED, CARRIAGES, CARRIED, CONTENTS, COPIED, DEDUPS, ENTRIES, ERAS, EVIDENCE,
        INBOX_ITEMS, INBOXES, KEPT, LOADS, LOGS, META, NODE, NOTES, NUMBER_RANGES, NUMBERS, OWED,
        PLACES, PRUNED, RECORD_CHANGES, RECORD_NUMBERS, RECORDS, RECORDS_GONE, REPLACED,
        REPLACED_BYTES, REPLACED_CONTENTS, REPLACED_ORDER, REQUESTS, ROOM_IDS, ROOMS,
    },
};

/// How far a long look at the store has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows dealt with.
    pub rows: u64,
    /// Rows there are.
    pub of: u64,
}

/// Why no copy was made. The unfinished file is to be removed.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The store could not be read.
    #[error("the store cannot be copied")]
    Read(#[source] ReadError),
    /// A table that this version does not know: it would be left out.
    #[error("the store has a table `{0}` that this version cannot copy; this is a bug")]
    Table(String),
    /// The new file could not be made.
    #[error("{} cannot be made", file.display())]
    Make {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The new file could not be written.
    #[error("{} cannot be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Box<redb::Error>,
    },
    /// The caller's `progress` wants no more of it.
    #[error("the copy was given up")]
    GivenUp,
}

macro_rules! from_redb {
    ($($source:ident),*) => {
        $(impl From<redb::$source> for CopyError {
            fn from(source: redb::$source) -> CopyError {
                CopyError::Read(source.into())
            }
        })*
    };
}

from_redb!(StorageError, TableError);

impl Reader {
    /// Copies the file, as it is at this moment, into a new store `file`, which must not exist; it
    /// is its owner's alone, and durable when this returns (its directory is for the caller to
    /// sync). Neither the writer nor readers wait meanwhile; the pages of this moment are kept
    /// until it is done. Ephemeral rooms are left out. `progress` is called every some thousand
    /// rows; `false` gives up.
    ///
    /// # Errors
    ///
    /// See [`CopyError`].
    pub fn copy_to(
        &self,
        file: &Path,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Progress, CopyError> {
        let read = self.databases().disk.read().map_err(CopyError::Read)?;
        let make = |source| CopyError::Make { file: file.to_owned(), source };
        let wrote = |source: redb::Error| CopyError::Write {
            file: file.to_owned(),
            source: Box::new(source),
        };
        let backend =
            new_file(file).and_then(|file| FileBackend::new(file).map_err(io::Error::other));
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        let journal = Journal::on(backend.map_err(make)?, Room::FILE);
        let database = builder.create_with_backend(journal);
        let database = database.map_err(|error| wrote(error.into()))?;
        let mut write = database.begin_write().map_err(|error| wrote(error.into()))?;
        write.set_durability(Durability::Immediate).map_err(|error| wrote(error.into()))?;
        write.set_quick_repair(true);
        let mut copy = Copy { read, write, file, progress, done: Progress::default() };
        copy.everything()?;
        let Copy { write, done, .. } = copy;
        write.commit().map_err(|error| wrote(error.into()))?;
        drop(database);
        File::open(file).and_then(|file| file.sync_all()).map_err(make)?;
        Ok(done)
    }
}

fn new_file(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

struct Copy<'a> {
    read: Snapshot,
    write: WriteTransaction,
    file: &'a Path,
    progress: &'a mut dyn FnMut(Progress) -> bool,
    done: Progress,
}

impl Copy<'_> {
    fn everything(&mut self) -> Result<(), CopyError> {
        let mut left: Vec<String> =
            self.read.list_tables()?.map(|table| table.name().to_owned()).collect();
        macro_rules! each {
            ($step:ident: $($table:ident),* $(,)?) => { $(self.$step(&mut left, $table)?;)* };
        }
        each!(count: ROOM_IDS, ROOMS, LOGS, ENTRIES, ERAS, NUMBERS, PLACES, NUMBER_RANGES, DEDUPS);
        each!(count: EVIDENCE, NODE, ACTS, NOTES, KEPT, PRUNED, CALLED, RECORDS, CONTENTS, COPIED, INBOXES);
        each!(count: INBOX_ITEMS, REQUESTS, META, RECORD_CHANGES, RECORD_NUMBERS, RECORDS_GONE, REPLACED);
        each!(count: REPLACED_CONTENTS, REPLACED_ORDER, REPLACED_BYTES);
        each!(count: CARRIAGES, CARRIED, LOADS, OWED);
        if let Some(unknown) = left.pop() {
            return Err(CopyError::Table(unknown));
        }
        each!(table: ROOM_IDS, ROOMS, LOGS, ENTRIES, ERAS, NUMBERS, PLACES, NUMBER_RANGES, DEDUPS);
        each!(table: EVIDENCE, NODE, ACTS, NOTES, KEPT, PRUNED, CALLED, RECORDS, CONTENTS, COPIED, INBOXES);
        each!(table: INBOX_ITEMS, REQUESTS, META, RECORD_CHANGES, RECORD_NUMBERS, RECORDS_GONE, REPLACED);
        each!(table: REPLACED_CONTENTS, REPLACED_ORDER, REPLACED_BYTES);
        each!(table: CARRIAGES, CARRIED, LOADS, OWED);
        if (self.progress)(self.done) { Ok(()) } else { Err(CopyError::GivenUp) }
    }

    fn count<K: Key + 'static, V: Value + 'static>(
        &mut self,
        left: &mut Vec<String>,
        table: TableDefinition<'_, K, V>,
    ) -> Result<(), CopyError> {
        left.retain(|name| name != table.name());
        self.done.of += self.read.open_table(table)?.len()?;
        Ok(())
    }

    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        _: &mut Vec<String>,
        table: TableDefinition<'_, K, V>,
    ) -> Result<(), CopyError> {
        let file = self.file;
        let wrote = |source: redb::Error| CopyError::Write {
            file: file.to_owned(),
            source: Box::new(source),
        };
        let Copy { read, write, progress, done, .. } = self;
        let from = read.open_table(table)?;
        let mut to = write.open_table(table).map_err(|error| wrote(error.into()))?;
        for row in from.iter()? {
            let (key, value) = row?;
            to.insert(key.value(), value.value()).map_err(|error| wrote(error.into()))?;
            done.rows += 1;
            if done.rows.is_multiple_of(PROGRESS_ROWS) && !progress(*done) {
                return Err(CopyError::GivenUp);
            }
        }
        Ok(())
    }
}
