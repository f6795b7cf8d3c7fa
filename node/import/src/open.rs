//! Opening a file, and reading it as it was then.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use thiserror::Error;

use crate::{
    digest::Digest,
    layout::{self, ALL, Table},
    source::{Failed, Opened, Source},
};

/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Why a file cannot be read as that of a ClawChat server.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is none, or it is none that can be read; or it cannot be copied.
    #[error("{}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is not an SQLite file: name the database of the ClawChat server", file.display())]
    NotSqlite {
        /// The file.
        file: PathBuf,
    },
    /// Its server runs.
    #[error("{}: somebody writes to it: stop the ClawChat server", file.display())]
    Changing {
        /// The file.
        file: PathBuf,
    },
    /// It lacks tables.
    #[error("{} is not a ClawChat database: it has no table {}; it has {has}", file.display(), lacks.join(", "))]
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
        "{}: the table {table} has no column `{lacks}`; it has {has}: a layout that this version does not know. An \
         older server's file is brought up to date by starting a 0.3 server with it once",
        file.display()
    )]
    Columns {
        /// The file.
        file: PathBuf,
        /// The table.
        table: &'static str,
        /// The column.
        lacks: &'static str,
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

/// How a table is read.
#[derive(Debug)]
struct Selected {
    columns: String,
    /// Its rows have numbers of their own.
    has_rowid: bool,
}

/// The database of a ClawChat server, as it was when it was opened. Never written to, and nothing
/// is made beside it.
#[derive(Debug)]
pub struct ServerFile {
    /// Holds one read transaction, so that all is of one moment.
    pub(crate) read: Connection,
    /// The file's tables, with the SQL list of their columns.
    tables: BTreeMap<&'static str, Selected>,
    log: Option<PathBuf>,
    source: Source,
}

impl ServerFile {
    /// Opens a file. Its write-ahead log counts: a server that was killed leaves messages there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(file: &Path) -> Result<ServerFile, OpenError> {
        looks_like_sqlite(file)?;
        let sqlite = |source| OpenError::Sqlite { file: file.to_owned(), source };
        let Opened { source, read, log } = Source::open(file).map_err(|failed| match failed {
            Failed::Io(source) => OpenError::Io { file: file.to_owned(), source },
            Failed::Sqlite(source) => sqlite(source),
            Failed::Changing => OpenError::Changing { file: file.to_owned() },
        })?;
        read.execute_batch("BEGIN").map_err(sqlite)?;
        let has = tables(&read).map_err(sqlite)?;
        let known = |name: &str| has.iter().any(|table| table == name);
        let lacks: Vec<&str> = layout::needed_tables().filter(|table| !known(table)).collect();
        if !lacks.is_empty() {
            return Err(OpenError::Tables { file: file.to_owned(), lacks, has: listed(&has) });
        }
        let mut selected = BTreeMap::new();
        for table in ALL.into_iter().filter(|table| known(table.name)) {
            let has = columns(&read, table.name).map_err(sqlite)?;
            let has_rowid = has_rowid(&read, table.name).map_err(sqlite)?;
            let columns =
                layout::list(table, &has, has_rowid).map_err(|lacks| OpenError::Columns {
                    file: file.to_owned(),
                    table: table.name,
                    lacks,
                    has: listed(&has),
                })?;
            selected.insert(table.name, Selected { columns, has_rowid });
        }
        Ok(ServerFile { read, tables: selected, log, source })
    }

    /// Its write-ahead log, if something is in it: the server runs, or it was killed.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Whether somebody has written to it since it was opened: then its server runs.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn has_changed(&self) -> io::Result<bool> {
        self.source.has_changed()
    }

    /// The SQL list of a table's columns; `None`: an older server's file, which has no such table.
    pub(crate) fn columns(&self, table: &Table) -> Option<&str> {
        self.tables.get(table.name).map(|found| found.columns.as_str())
    }

    /// In which order the rows of a table were made.
    pub(crate) fn made(&self, table: &Table) -> String {
        layout::made(table, self.tables.get(table.name).is_some_and(|found| found.has_rowid))
    }

    /// A number that tells this file apart from others. Reads all of it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn digest(&self) -> Result<Digest, ReadError> {
        let mut digest = Digest::default();
        for (table, Selected { columns, .. }) in &self.tables {
            let mut select = self.read.prepare(&format!("SELECT {columns} FROM {table} t"))?;
            let width = select.column_count();
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let cells: Result<Vec<_>, _> = (0..width).map(|at| row.get_ref(at)).collect();
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

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select =
        connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
    select.query_map([], |row| row.get(0))?.collect()
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    select.query_map([table], |row| row.get(0))?.collect()
}

fn has_rowid(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let select = "SELECT wr = 0 FROM pragma_table_list WHERE schema = 'main' AND name = ?1";
    connection.query_row(select, [table], |row| row.get(0))
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
