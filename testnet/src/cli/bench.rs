//! `clawmesh-testnet bench`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::output::Output;
use crate::{
    bench::{self, Row, Setting, Target},
    binary,
};

/// Measure how fast nodes are, beside what disk and loopback can do in the same run.
///
/// Starts real daemons. Figures of a development build say little: build with `--profile dist`.
#[derive(Debug, clap::Args)]
pub(super) struct Bench {
    /// Measure these only [default: all]
    #[arg(value_enum, value_name = "ROW")]
    rows: Vec<Row>,
    /// How many nodes are in the mesh of the rows that one is enough for
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=50))]
    nodes: u8,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// Draw the distributions
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// So many times the durations and messages, such as 0.1
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = super::run::scale)]
    scale: f64,
    /// Measure the ClawChat server there instead, whatever it is
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["nodes", "clawmeshd"])]
    against: Option<String>,
    /// The file of the key that the server wants
    #[arg(long, value_name = "FILE", requires = "against")]
    key_file: Option<PathBuf>,
    /// The daemon to measure [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

/// As many open files as this user may have; nodes inherit it.
fn raise_open_files() -> rustix::io::Result<()> {
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits })
}

impl Bench {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        // 1,000 members take as many files here, and as many again in the daemon.
        let _ = raise_open_files();
        let (json, svg) = (self.json, self.svg.clone());
        let report = bench::measure(self.setting(output)?).await?;
        if let Some(file) = svg {
            fs::write(&file, bench::draw(&report))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        output.say(&if json { report.json()? } else { report.table() })?;
        Ok(ExitCode::SUCCESS)
    }

    fn setting(self, output: &mut Output) -> Result<Setting> {
        let target = match self.against {
            Some(address) => {
                let key = self.key_file.map(|file| {
                    let key = fs::read_to_string(&file);
                    key.with_context(|| format!("cannot read {}", file.display()))
                });
                let key = key.transpose()?.map(|key| key.trim().to_owned());
                Target::Server { address, key }
            }
            None => {
                let binary = match self.clawmeshd {
                    Some(path) => path,
                    None => binary::beside()?,
                };
                if binary::is_stale(&binary) {
                    output.note("clawmeshd is older than its sources");
                }
                Target::Daemons { binary, nodes: usize::from(self.nodes) }
            }
        };
        let mut rows = self.rows;
        if rows.is_empty() {
            rows = Row::value_variants().to_vec();
            if matches!(target, Target::Server { .. }) {
                rows.retain(|row| row.needs_one_server());
            }
        }
        let dir = std::env::temp_dir();
        Ok(Setting { rows, target, scale: self.scale, dir, tell: super::output::tell })
    }
}
