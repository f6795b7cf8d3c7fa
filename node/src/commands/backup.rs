//! `clawmeshd backup` and `clawmeshd restore`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use protocol::operator::{Answer, Request};
use store::{FILE_NAME, Progress, Store};

use super::{
    node_args::NodeArgs,
    output::{Percent, log_to_stderr, note, say},
    running::strange,
};
use crate::{
    backup::{self, Name},
    control::client::ask_long,
    files::DataDir,
};

/// Write everything that a node keeps into a new directory, while it runs or while it is stopped.
///
/// It is of one moment and whole, or not there. It holds the node's keys: keep it as safe as the node.
/// A running node writes it itself, so the directory must be one that it may write to.
#[derive(Debug, clap::Args)]
pub(super) struct Backup {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The directory to make
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

impl Backup {
    pub(super) fn run(self) -> Result<()> {
        log_to_stderr("warn")?;
        let layered = self.node_args.layered(None)?;
        let dir = DataDir::existing(&layered.data_dir()?)?;
        let to = std::path::absolute(&self.to)?;
        let mut percent = Percent::default();
        let request = Request::Backup { to: to.clone() };
        let mut told = |progress: Progress| percent.tell(progress.rows, progress.of);
        match ask_long(&dir, request, &mut told)? {
            Some((_, Answer::Done)) => {}
            Some(_) => return Err(strange()),
            None => {
                let key_file = layered.key_file().ok().filter(|file| file.is_file());
                of_stopped(&dir, &to, key_file.as_deref(), &mut told)?;
            }
        }
        note("it holds the node's keys: keep it as safe as the node itself");
        say(&to.display().to_string())
    }
}

fn of_stopped(
    dir: &DataDir,
    to: &Path,
    key_file: Option<&Path>,
    told: &mut dyn FnMut(Progress),
) -> Result<()> {
    if !dir.path().join(FILE_NAME).is_file() {
        bail!("no node was ever started at {}: there is nothing to back up", dir.path().display());
    }
    let store = Store::open(dir.path()).context("--data-dir")?;
    backup::write(dir, &store.reader(), to, key_file, &mut |progress| {
        told(progress);
        true
    })
}

/// Make a node of a backup, in an empty directory.
///
/// It is a new node of the same mesh, with all rooms and messages of the backup, those included that no
/// other node had got. It does not go on under the old node's name: what that one wrote after the backup
/// would contradict what this one writes.
#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The file that `clawmeshd backup` wrote
    #[arg(value_name = "BACKUP")]
    from: PathBuf,
    /// Go on under the old node's name. Only if it was stopped before the backup was written, and will
    /// never be started again: else nobody follows either of the two any more
    #[arg(long)]
    same_identity: bool,
}

impl Restore {
    pub(super) fn run(self) -> Result<()> {
        log_to_stderr("warn")?;
        let path = self.node_args.layered(None)?.data_dir()?;
        let name = if self.same_identity { Name::Same } else { Name::New };
        let mut percent = Percent::default();
        let done = backup::restore(&self.from, &path, name, &mut |progress| {
            percent.tell(progress.rows, progress.of);
        })?;
        let report = &done.report;
        note(&format!(
            "restored what node {} had at {}: {} rooms, {} entries, every signature checked",
            &done.before[..8],
            done.made_at,
            report.rooms,
            report.entries
        ));
        if !report.is_sound() {
            note("some indexes are wrong: run `clawmeshd check --repair` before the first start");
        }
        match name {
            Name::New => note(&format!(
                "this is a new node, {}: the old one is not started again in its place",
                &done.now[..8]
            )),
            Name::Same => note(
                "this node has the old one's name: if that one wrote anything after the backup, or is ever \
                 started again, no node follows either of them any more",
            ),
        }
        let key = done
            .clients_key
            .map_or(String::new(), |file| format!(" --key-file {}", file.display()));
        note(&format!("start it with: clawmeshd up --data-dir {}{key}", path.display()));
        say(&done.now)
    }
}
