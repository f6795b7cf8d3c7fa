//! `clawmeshd completions` and `clawmeshd man`: from the definition of the command line itself.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap_complete::Shell;

use super::output::{note, say};

/// Print what a shell needs to complete the commands
///
/// For example: clawmeshd completions bash > ~/.local/share/bash-completion/completions/clawmeshd
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// Which shell
    shell: Shell,
}

/// Write man pages, one for each command
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The directory they go into, such as ~/.local/share/man/man1
    directory: PathBuf,
}

impl Completions {
    pub(super) fn run(self, mut definition: clap::Command) -> Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut definition, "clawmeshd", &mut text);
        say(&String::from_utf8_lossy(&text))
    }
}

impl Man {
    pub(super) fn run(self, definition: clap::Command) -> Result<()> {
        let wanted = || self.directory.display().to_string();
        fs::create_dir_all(&self.directory).with_context(wanted)?;
        clap_mangen::generate_to(definition, &self.directory).with_context(wanted)?;
        note(&format!("man pages are in {}", self.directory.display()));
        Ok(())
    }
}
