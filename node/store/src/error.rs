//! Errors, one enum per operation. None of them is for retrying.

use std::{io, path::PathBuf};

use mesh::name::id::{LocalRef, RoomId};
use thiserror::Error;

/// Why a store could not be opened. The file is left as it was, byte for byte.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process, or another handle of this one, has it open.
    #[error(
        "the data directory {} is in use by another process: stop that one, or choose another directory",
        dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// Not readable as a store.
    #[error(
        "{} is damaged ({why}) and was left as it is: restore a backup, or move the file away to start anew",
        file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The finding.
        why: String,
    },
    /// Written by a later version.
    #[error(
        "{} has layout {found}, this version reads layout {known}; it was left as it is: run the newer version",
        file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its layout.
        found: u64,
        /// The layout that this version reads.
        known: u64,
    },
    /// Written by a version before the first release, in a form that this one does not read.
    #[error(
        "{} has layout {found}, which only versions before the first release wrote; this one reads layout {known}. It was \
         left as it is: run the version that wrote it, or move the file away to start anew",
        file.display()
    )]
    Older {
        /// The file.
        file: PathBuf,
        /// Its layout.
        found: u64,
        /// The layout that this version reads.
        known: u64,
    },
    /// A redb database, but not one of ours.
    #[error("{} is not a clawmesh store and was left as it is: choose another directory", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// Opening writes, and there is no room. The file is unchanged.
    #[error(
        "{} cannot be opened, because there is no room on its disk: make room, then start again; nothing of it is lost",
        file.display()
    )]
    Full {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file system said no.
    #[error("{} cannot be opened", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Anything else that redb reports.
    #[error("{} cannot be opened", file.display())]
    Storage {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Box<redb::Error>,
    },
}

/// Why a batch was not written. All but [`CommitError::Full`] are fatal: the node stops, a restart
/// replays.
#[derive(Debug, Error)]
pub enum CommitError {
    /// There is no room for it. Nothing of it is written, the store can be read as it was before,
    /// and the same batch may be given again.
    #[error("the disk is full")]
    Full,
    /// The disk was full, and the store could not be opened again as it was before.
    #[error("the disk was full, and now the store cannot be read")]
    NotAgain(#[source] Box<OpenError>),
    /// redb, or the disk below it.
    #[error("storage failed")]
    Storage(#[source] Box<redb::Error>),
    /// A row that was read to be changed does not have its form.
    #[error("stored row is damaged: {0}")]
    Damaged(&'static str),
    /// A row of a room that no `Room` row introduced.
    #[error("room {0} was never written")]
    UnknownRoom(RoomId),
    /// Ephemeral rooms stay ephemeral, permanent ones permanent.
    #[error("room {0} cannot change between disk and memory")]
    Moved(RoomId),
    /// Only ephemeral rooms are forgotten.
    #[error("permanent room {0} cannot be dropped")]
    Permanent(RoomId),
    /// Entries are immutable.
    #[error("entry {at:?} of room {room} is there already, with other content")]
    EntryReplaced {
        /// The room.
        room: RoomId,
        /// The place.
        at: LocalRef,
    },
}

/// Why something could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// redb, or the disk below it.
    #[error("storage failed")]
    Storage(#[source] Box<redb::Error>),
    /// A row does not have its form.
    #[error("stored row is damaged: {0}")]
    Damaged(&'static str),
}

macro_rules! from_redb {
    ($error:ident: $($source:ident),*) => {
        $(impl From<redb::$source> for $error {
            fn from(source: redb::$source) -> $error {
                $error::Storage(Box::new(source.into()))
            }
        })*
    };
}

from_redb!(CommitError: StorageError, TableError, TransactionError, CommitError);
from_redb!(ReadError: StorageError, TableError, TransactionError);
