//! The progress of an import, kept in the store with its entries.

use anyhow::{Context, Result, bail};
use mesh::api::{batch::Change, command::Opaque};
use serde::{Deserialize, Serialize};
use store::Reader;

/// Under which name it is kept.
const NAME: &[u8] = b"import";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The digest of the file.
    pub(crate) file: String,
    /// The choices about rows that cannot be brought as they are.
    pub(crate) choices: String,
    /// How many things were written, in the order in which they are.
    pub(crate) written: u64,
    /// Whether that is all.
    pub(crate) done: bool,
}

impl Journal {
    /// The journal of a store; `None`: nothing was ever imported.
    pub(crate) fn read(reader: &Reader) -> Result<Option<Journal>> {
        let kept = reader.kept(NAME)?;
        let Some((_, value)) = kept.into_iter().find(|(name, _)| name == NAME) else {
            return Ok(None);
        };
        let journal = serde_json::from_slice(&value);
        journal.map(Some).context("what the store has of an import cannot be read")
    }

    /// A row that keeps it.
    pub(crate) fn row(&self) -> Result<Change> {
        let value = Some(Opaque(serde_json::to_vec(self)?));
        Ok(Change::Keep { name: NAME.to_vec(), value })
    }

    /// A node does not serve what is only partly there.
    ///
    /// # Errors
    /// An import was begun and not finished.
    pub(crate) fn check_finished(reader: &Reader) -> Result<()> {
        match Journal::read(reader)? {
            Some(journal) if !journal.done => bail!(
                "--data-dir: an import was begun here and not finished: run `clawmeshd import` again with the same \
                 file and flags, or start with another --data-dir"
            ),
            Some(_) | None => Ok(()),
        }
    }
}
