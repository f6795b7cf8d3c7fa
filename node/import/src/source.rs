//! The files that a database is in, and how they are looked at without leaving a trace.
//!
//! SQLite makes `-wal` and `-shm` beside a database that it opens, also to read. So one that is
//! whole is opened as one that nobody writes to; one of which something is still in a log (its
//! server runs, or was killed) is copied to where only this user can look, with its log, and the
//! copy is opened.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// Suffixes of the files beside a database: a log of later changes, or of the pages before them.
const LOGS: [&str; 2] = ["-wal", "-journal"];

/// See the module.
#[derive(Debug)]
pub(crate) struct Source {
    /// Without links: SQLite looks for logs beside the file itself.
    file: PathBuf,
    /// How its files were when it was opened.
    was: Look,
    /// Holds what was copied.
    _copy: Option<TempDir>,
}

/// The look of a database's files: a writer changes it. `None`: there is no such file.
type Look = Vec<Option<(u64, i64, i64, u64)>>;

/// A database that is open, and where it is from.
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) read: Connection,
    /// The log that it has, if something is in it.
    pub(crate) log: Option<PathBuf>,
}

/// Why it cannot be opened.
pub(crate) enum Failed {
    Io(io::Error),
    Sqlite(rusqlite::Error),
    /// Somebody wrote to it while it was copied.
    Changing,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed::Sqlite(error)
    }
}

impl Source {
    pub(crate) fn open(file: &Path) -> Result<Opened, Failed> {
        let file = file.canonicalize()?;
        let was = look(&file)?;
        let logs = LOGS.map(|suffix| beside(&file, suffix));
        let logs: Vec<PathBuf> = logs
            .into_iter()
            .filter(|log| log.metadata().is_ok_and(|meta| meta.len() > 0))
            .collect();
        let (read, copy) = if logs.is_empty() {
            (connect(&whole(&file), OpenFlags::SQLITE_OPEN_READ_ONLY)?, None)
        } else {
            let dir = tempfile::Builder::new().prefix("clawmesh-import-").tempdir()?;
            let copy = dir.path().join("clawchat.db");
            copy_to(&file, &copy)?;
            for (log, name) in LOGS.map(|name| (beside(&file, name), name)) {
                if logs.contains(&log) {
                    copy_to(&log, &beside(&copy, name))?;
                }
            }
            if look(&file)? != was {
                return Err(Failed::Changing);
            }
            // Written to where its log is taken in.
            (connect(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?, Some(dir))
        };
        let log = logs.into_iter().next();
        Ok(Opened { source: Source { file, was, _copy: copy }, read, log })
    }

    /// Whether somebody has written to it since.
    pub(crate) fn has_changed(&self) -> io::Result<bool> {
        Ok(look(&self.file)? != self.was)
    }
}

fn beside(file: &Path, name: &str) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(name);
    path.into()
}

fn look(file: &Path) -> io::Result<Look> {
    let mut look = Vec::new();
    for name in ["", LOGS[0], LOGS[1]] {
        look.push(match fs::metadata(beside(file, name)) {
            Ok(meta) => Some((meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        });
    }
    Ok(look)
}

/// API keys are in it.
fn copy_to(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    Ok(())
}

/// A name under which SQLite takes the file for one that nobody writes to, and makes nothing beside
/// it.
fn whole(file: &Path) -> PathBuf {
    let mut name = "file:".to_owned();
    for byte in file.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            name.push(char::from(*byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    format!("{name}?immutable=1").into()
}

fn connect(name: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let how = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(name, access | how)?;
    // The schema may name functions; nothing of it is run.
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
    Ok(connection)
}
