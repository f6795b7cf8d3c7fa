//! Opening a file, and reading it as it was then.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use thiserror::Error;

use crate::{
    digest::Digest,
    layout::{ALL, BALLOTS, Found, KEYS, MESSAGES, ROOMS, SEQUENCES, TABLES, TASKS, VOTES},
};

/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// How long a server that writes just now is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// Why a file cannot be read as that of a ClawChat server.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is none, or it is none that can be read.
    #[error("{}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{} is not an SQLite file: name the database of the ClawChat server", file.display())]
    NotSqlite {
        /// The file.
        file: PathBuf,
    },
    /// It lacks tables.
    #[error(
        "{} is not a ClawChat database of the 0.3 layout: it has no table {}; it has {has}. An older server's \
         file is brought up to date by starting a 0.3 server with it once",
        file.display(), lacks.join(", ")
    )]
    Tables {
        /// The file.
        file: PathBuf,
        /// Those that it should have.
        lacks: Vec<&'static str>,
        /// Those that it has.
        has: String,
    },
    /// A table lacks a column.
    #[error(
        "{}: the table {table} has no column `{lacks}`; it has {has}: a layout that this version does not know",
        file.display()
    )]
    Columns {
        /// The file.
        file: PathBuf,
        /// The table.
        table: &'static str,
        /// The names that the column may have.
        lacks: String,
        /// Those that it has.
        has: String,
    },
    /// SQLite cannot.
    #[error("{} cannot be read", file.display())]
    Sqlite {
        /// The file.
        file: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

/// SQLite could not read on: the file is damaged, or the disk.
#[derive(Debug, Error)]
#[error("the ClawChat database cannot be read on")]
pub struct ReadError(#[from] pub(crate) rusqlite::Error);

/// The database of a ClawChat server, as it was when it was opened. Never written to.
#[derive(Debug)]
pub struct ServerFile {
    /// Holds one read transaction, so that all is of one moment.
    pub(crate) read: Connection,
    /// Sees what others write meanwhile.
    watch: Connection,
    version: i64,
    log: Option<PathBuf>,
    pub(crate) rooms: Found,
    pub(crate) messages: Found,
    pub(crate) sequences: Found,
    pub(crate) tasks: Found,
    pub(crate) votes: Found,
    pub(crate) ballots: Found,
    pub(crate) keys: Found,
}

impl ServerFile {
    /// Opens a file. What is in its write-ahead log counts: a server that was killed leaves some there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(file: &Path) -> Result<ServerFile, OpenError> {
        looks_like_sqlite(file)?;
        let sqlite = |source| OpenError::Sqlite { file: file.to_owned(), source };
        let (read, watch) = (connect(file).map_err(sqlite)?, connect(file).map_err(sqlite)?);
        read.execute_batch("BEGIN").map_err(sqlite)?;
        let version = data_version(&watch).map_err(sqlite)?;
        let has = tables(&read).map_err(sqlite)?;
        let known = |name: &&str| has.iter().any(|it| it.eq_ignore_ascii_case(name));
        let lacks: Vec<&str> = TABLES.into_iter().filter(|it| !known(it)).collect();
        if !lacks.is_empty() {
            return Err(OpenError::Tables { file: file.to_owned(), lacks, has: listed(&has) });
        }
        let mut found = Vec::new();
        for table in ALL {
            let has = columns(&read, table.name).map_err(sqlite)?;
            let columns = Found::among(table, &has).map_err(|lacks| OpenError::Columns {
                file: file.to_owned(),
                table: table.name,
                lacks,
                has: listed(&has),
            })?;
            found.push(columns);
        }
        let wal = PathBuf::from(format!("{}-wal", file.display()));
        let log = wal.metadata().is_ok_and(|it| it.len() > 0).then_some(wal);
        let of = |table: &crate::layout::Table| {
            let it = found.iter().find(|it| it.table() == table.name);
            it.expect("each table was looked for").clone()
        };
        Ok(ServerFile {
            rooms: of(&ROOMS),
            messages: of(&MESSAGES),
            sequences: of(&SEQUENCES),
            tasks: of(&TASKS),
            votes: of(&VOTES),
            ballots: of(&BALLOTS),
            keys: of(&KEYS),
            read,
            watch,
            version,
            log,
        })
    }

    /// Its write-ahead log, if it has one: the server runs, or it was killed.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Whether somebody has written to it since it was opened: then its server runs.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn has_changed(&self) -> Result<bool, ReadError> {
        Ok(data_version(&self.watch)? != self.version)
    }

    /// What tells it apart from others. Reads all of it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn digest(&self) -> Result<Digest, ReadError> {
        let mut digest = Digest::default();
        for found in [
            &self.rooms,
            &self.messages,
            &self.sequences,
            &self.tasks,
            &self.votes,
            &self.ballots,
            &self.keys,
        ] {
            let (table, columns) = (found.table(), found.list("t"));
            let mut select = self.read.prepare(&format!("SELECT {columns} FROM {table} t"))?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let cells: Result<Vec<_>, _> =
                    (0..found.width()).map(|at| row.get_ref(at)).collect();
                digest.add(table, cells?.into_iter());
            }
        }
        Ok(digest)
    }
}

fn looks_like_sqlite(file: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io { file: file.to_owned(), source };
    let mut begins = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    opened.take(16).read_to_end(&mut begins).map_err(failed)?;
    if begins != MAGIC {
        return Err(OpenError::NotSqlite { file: file.to_owned() });
    }
    Ok(())
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    // Whatever its schema says, nothing of it is run.
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
    Ok(connection)
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select =
        connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
    select.query_map([], |row| row.get(0))?.collect()
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    select.query_map([table], |row| row.get(0))?.collect()
}

/// Some of them: a file may have any number.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 24;
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "))
}
