//! Changes of hosts' files: planned as a whole before the first is made, shown, and made.

use std::path::{Path, PathBuf};

use super::host::Host;
use super::record::{Record, Records, Written};
use super::{files, json, spans, toml};
use crate::outcome::Failure;

/// What has to stand in a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) file: PathBuf,
    pub(super) part: Part,
}

/// In which form.
#[derive(Debug)]
pub(super) enum Part {
    /// Members and elements, in a file of which the host takes nothing but JSON as its standard has it.
    Strict(Vec<json::Entry>),
    /// The same, where the host takes comments, too.
    Relaxed(Vec<json::Entry>),
    /// Tables.
    Toml(String),
    /// All of the file.
    Whole(String),
}

/// A change of one file.
#[derive(Debug)]
pub(super) struct Change {
    /// As the host names it.
    pub(super) shown: PathBuf,
    before: Option<String>,
    /// `None`: the file goes.
    after: Option<String>,
    /// As it is when the change is made.
    record: Record,
    /// That which is not there as it was written: what there is of it stays.
    pub(super) left: Vec<String>,
}

impl Change {
    /// The texts that come, or go.
    pub(super) fn texts(&self) -> Vec<&str> {
        self.record.written.texts()
    }

    /// Where the file is, if links lead elsewhere.
    pub(super) fn elsewhere(&self) -> Option<&Path> {
        Some(self.record.file.as_path()).filter(|file| *file != self.shown)
    }

    /// Whether the file differs after it.
    fn is_any(&self) -> bool {
        self.before != self.after
    }

    /// The line before which the first text comes. `None`: the file is new, or goes.
    pub(super) fn line(&self) -> Option<usize> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        Some(before.as_bytes()[..same].iter().filter(|byte| **byte == b'\n').count() + 1)
    }

    /// Writes it, with the record first: what is in a file is always known. Gives where the backup is.
    ///
    /// # Errors
    /// [`Failure::File`]; [`Failure::Attach`] if the file has changed since it was read.
    pub(super) fn put_in(&self, records: &Records) -> Result<Option<PathBuf>, Failure> {
        let file = &self.record.file;
        self.is_fresh()?;
        let backup = self.before.as_ref().map(|text| records.back_up(file, text)).transpose()?;
        records.keep(&self.record)?;
        files::make_folders(file)?;
        files::write(file, self.after.as_deref().unwrap_or_default())?;
        Ok(backup)
    }

    /// Writes it, and drops the record after it.
    ///
    /// # Errors
    /// As [`Change::put_in`].
    pub(super) fn take_out(&self, records: &Records) -> Result<(), Failure> {
        self.is_fresh()?;
        match &self.after {
            None => files::remove(&self.record.file, &self.record.folders)?,
            Some(text) if self.is_any() => files::write(&self.record.file, text)?,
            Some(_) => {}
        }
        records.drop(&self.record)
    }

    /// Hosts write their files, too.
    fn is_fresh(&self) -> Result<(), Failure> {
        if files::read(&self.record.file)? == self.before {
            return Ok(());
        }
        Err(no(&self.shown, "it has changed in this moment: give the command again"))
    }
}

/// A failure with a file.
fn no(file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Attach { why: format!("{}: {why}", file.display()) }
}

/// The change that puts a piece into its file. `None`: it is there.
///
/// # Errors
/// [`Failure::Attach`] if it cannot be put beside what is there, [`Failure::File`].
pub(super) fn putting(
    records: &Records,
    (host, project): (Host, Option<&Path>),
    piece: &Piece,
) -> Result<Option<Change>, Failure> {
    let file = files::resolved(&piece.file)?;
    let before = files::read(&file)?;
    let old = records.of(host, &file)?;
    if before.as_deref().is_some_and(|text| stands(text, &piece.part)) {
        return Ok(None);
    }
    // What was written before, with other arguments, gives way.
    let base = match &old {
        Some(record) => taken(&piece.file, before.as_deref(), record)?.0,
        None => before.clone(),
    };
    let text = base.as_deref().unwrap_or_default();
    let (after, written) = put(&piece.file, text, base.is_some(), &piece.part)?;
    let made = old.as_ref().map_or(before.is_none(), |record| record.made);
    let folders = old.map_or_else(|| files::missing_folders(&file), |record| record.folders);
    let record =
        Record { host, project: project.map(Path::to_owned), file, made, folders, written };
    let shown = piece.file.clone();
    Ok(Some(Change { shown, before, after: Some(after), record, left: Vec::new() }))
}

/// The change that takes out what a record names.
///
/// # Errors
/// [`Failure::Attach`] if it cannot be taken out by itself, [`Failure::File`].
pub(super) fn taking(record: Record) -> Result<Change, Failure> {
    let before = files::read(&record.file)?;
    let (after, left) = taken(&record.file, before.as_deref(), &record)?;
    Ok(Change { shown: record.file.clone(), before, after, record, left })
}

/// Whether a part is in a text as it has to be.
fn stands(text: &str, part: &Part) -> bool {
    match part {
        Part::Strict(entries) | Part::Relaxed(entries) => {
            entries.iter().all(|entry| json::has(text, entry))
        }
        Part::Toml(tables) => toml::has(text, tables),
        Part::Whole(whole) => text == whole,
    }
}

fn put(file: &Path, text: &str, is_there: bool, part: &Part) -> Result<(String, Written), Failure> {
    match part {
        Part::Strict(_) if !text.trim().is_empty() && !spans::is_strict(text) => {
            Err(no(file, "it is malformed: it is no JSON"))
        }
        Part::Strict(entries) | Part::Relaxed(entries) => {
            let (text, written) = json::put(text, entries).map_err(|why| no(file, why))?;
            Ok((text, Written::Json(written)))
        }
        Part::Toml(tables) => {
            let (text, written) = toml::put(text, tables).map_err(|why| no(file, why))?;
            Ok((text, Written::Toml(written)))
        }
        Part::Whole(_) if is_there => Err(no(file, "another file of that name is there")),
        Part::Whole(whole) => Ok((whole.clone(), Written::Whole(whole.clone()))),
    }
}

/// The text without what a record names, and that which stays. No text: the file goes.
fn taken(
    file: &Path,
    text: Option<&str>,
    record: &Record,
) -> Result<(Option<String>, Vec<String>), Failure> {
    let Some(text) = text else { return Ok((None, Vec::new())) };
    let (rest, left) = match &record.written {
        Written::Json(written) => json::take(text, written).map_err(|why| no(file, why))?,
        Written::Toml(tables) => {
            let taken = toml::take(text, tables).map_err(|why| no(file, why))?;
            (taken.unwrap_or_else(|| text.to_owned()), Vec::new())
        }
        Written::Whole(whole) if text == whole => (String::new(), Vec::new()),
        Written::Whole(_) => (text.to_owned(), vec!["the file".to_owned()]),
    };
    Ok((Some(rest).filter(|rest| !(record.made && rest.trim().is_empty())), left))
}
