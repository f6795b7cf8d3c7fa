//! `clawmeshd check`.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use store::{FILE_NAME, check};

use super::{
    node_args::NodeArgs,
    output::{Percent, log_to_stderr, note, say},
};
use crate::files::{DataDir, private::sync_dir};

/// Look at everything that a stopped node keeps: every signature, chain, number and index.
///
/// Exits 0 if all of it holds, 1 if not. Nothing is written without --repair.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Make indexes anew that are wrong, after a copy of the store was written beside it. Messages are
    /// never changed
    #[arg(long)]
    repair: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<()> {
        log_to_stderr("warn")?;
        let dir = DataDir::existing(&self.node_args.layered(None)?.data_dir()?)?;
        let path = dir.path();
        ensure!(
            path.join(FILE_NAME).is_file(),
            "no node was ever started at {}: there is nothing to check",
            path.display()
        );
        dir.node_seed()?.with_context(|| missing(path, "node.key"))?;
        dir.mesh()?.with_context(|| missing(path, "mesh.key"))?;
        let mut report = look(path)?;
        if self.repair && report.repairable {
            let copy = path.join(format!("{FILE_NAME}.before-repair"));
            ensure!(!copy.exists(), "{} is there already: move it away first", copy.display());
            fs::copy(path.join(FILE_NAME), &copy)
                .and_then(|_| fs::File::open(&copy)?.sync_all())
                .and_then(|()| sync_dir(path))
                .with_context(|| format!("write {}", copy.display()))?;
            note(&format!("the store as it was is now in {}", copy.display()));
            check::repair(path)?.context("repair the store")?;
            report = look(path)?;
        }
        tell(&report, self.repair)
    }
}

fn missing(path: &Path, file: &str) -> String {
    format!("--data-dir {}: {file} is missing: restore it from a backup", path.display())
}

fn look(path: &Path) -> Result<check::Report> {
    let mut percent = Percent::default();
    let report = check::check(path, &mut |progress| percent.tell(progress.rows, progress.of));
    report.context("--data-dir")
}

fn tell(report: &check::Report, repaired: bool) -> Result<()> {
    for finding in &report.findings {
        say(&finding.to_string())?;
    }
    let check::Report { rooms, logs, runs, entries, numbers, found, .. } = report;
    note(&format!(
        "looked at {rooms} rooms, {logs} logs, {runs} signatures, {entries} entries, {numbers} numbers"
    ));
    if report.is_sound() {
        return say("all of it holds");
    }
    let more = found.saturating_sub(report.findings.len() as u64);
    if more > 0 {
        note(&format!("and {more} more like these"));
    }
    if report.is_beyond_repair() {
        bail!(
            "{found} things are wrong, and not all of them can be repaired: restore a backup, or start a new \
             node in another directory, which gets what other nodes have"
        );
    }
    if repaired {
        bail!("{found} things are still wrong after the repair; this is a bug");
    }
    bail!("{found} things are wrong, all of them can be repaired: run it again with --repair")
}
