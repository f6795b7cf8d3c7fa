//! A record of what `attach` wrote into each file, in the user's state directory: so `detach` takes out exactly that.

use std::fs;
use std::path::{Path, PathBuf};

use client::options::drawn_from;
use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use super::host::Host;
use super::{files, json};
use crate::outcome::Failure;

/// What was written into one file for one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) host: Host,
    /// The project that it is for. `None`: for all of the user's.
    pub(super) project: Option<PathBuf>,
    /// The file itself, where links lead.
    pub(super) file: PathBuf,
    /// Whether the file was not there before.
    pub(super) made: bool,
    /// Folders that were not there before.
    pub(super) folders: Vec<PathBuf>,
    pub(super) written: Written,
}

/// The form of what was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Written {
    Json(json::Written),
    Toml(String),
    Whole(String),
}

impl Written {
    /// The texts that were put in, for people.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Written::Json(written) => written.texts().collect(),
            Written::Toml(text) | Written::Whole(text) => vec![text],
        }
    }
}

/// The folder of all records and backups.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
}

impl Records {
    /// # Errors
    /// [`Failure::NoHome`].
    pub(super) fn open() -> Result<Records, Failure> {
        let base = etcetera::choose_base_strategy().map_err(|_| Failure::NoHome)?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Records { folder: state.join("clawmesh").join("attach") })
    }

    /// All records, by file.
    ///
    /// # Errors
    /// [`Failure::File`], [`Failure::NotJson`].
    pub(super) fn all(&self) -> Result<Vec<Record>, Failure> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(Vec::new()) };
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
        let mut records = Vec::new();
        for path in paths {
            let Some(text) = files::read(&path)? else { continue };
            let record = serde_json::from_str(&text);
            records.push(record.map_err(|source| Failure::NotJson { path, source })?);
        }
        records.sort_by(|a: &Record, b: &Record| a.file.cmp(&b.file));
        Ok(records)
    }

    /// The record of one file.
    ///
    /// # Errors
    /// As [`Records::all`].
    pub(super) fn of(&self, host: Host, file: &Path) -> Result<Option<Record>, Failure> {
        let all = self.all()?;
        Ok(all.into_iter().find(|record| record.host == host && record.file == file))
    }

    /// Keeps a record, in place of an older one of the file.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub(super) fn keep(&self, record: &Record) -> Result<(), Failure> {
        let path = self.path(record.host, &record.file);
        files::make_folders(&path)?;
        files::write(&path, &format!("{}\n", serde_json::to_string_pretty(record)?))
    }

    /// Drops a record.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub(super) fn drop(&self, record: &Record) -> Result<(), Failure> {
        files::remove(&self.path(record.host, &record.file), &[])
    }

    /// Keeps the text of a file, once and for all. Gives where.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub(super) fn back_up(&self, file: &Path, text: &str) -> Result<PathBuf, Failure> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = self.folder.join("backup").join(format!("{name}.{}", digits(file)));
        files::make_folders(&path)?;
        files::back_up(text, &path)?;
        Ok(path)
    }

    fn path(&self, host: Host, file: &Path) -> PathBuf {
        self.folder.join(format!("{}-{}.json", host.name(), digits(file)))
    }
}

/// Twelve digits that tell files of one name apart.
fn digits(file: &Path) -> String {
    let part = drawn_from(&["clawmesh attach", &file.to_string_lossy()]);
    part.iter().map(|byte| format!("{byte:02x}")).collect()
}
