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
    /// Measure the ClawChat server there instead, of any kind
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["nodes", "clawmeshd"])]
    against: Option<String>,
    /// The file of the key that the server wants
    #[arg(long, value_name = "FILE", requires = "against")]
    key_file: Option<PathBuf>,
    /// The daemon to measure [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
    /// Another daemon, such as that of the commit before: measured in the same run, with the ratios
    #[arg(long, value_name = "PATH", conflicts_with = "against")]
    beside: Option<PathBuf>,
    /// The nats-server to compare with in the row `nats`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["against", "beside"])]
    nats: Option<PathBuf>,
}

/// Measure how cost grows with nodes and with rooms: a table for each.
///
/// Starts real daemons; 10,000 rooms take minutes.
#[derive(Debug, clap::Args)]
pub(super) struct Growth {
    /// Nodes of the meshes, one after the other; none if only rooms are given
    #[arg(long, value_name = "N,…", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..=50))]
    nodes: Vec<u64>,
    /// Rooms of a mesh of two, one after the other
    #[arg(long, value_name = "N,…", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..=50_000))]
    rooms: Vec<u64>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// So many times the durations, such as 0.1
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = super::run::scale)]
    scale: f64,
    /// The daemon to measure [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

/// Measured if nothing is said.
const GROWS_BY_NODES: [u64; 4] = [1, 3, 5, 10];
const GROWS_BY_ROOMS: [u64; 3] = [10, 1_000, 10_000];

impl Growth {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let Growth { mut nodes, mut rooms, json, scale, clawmeshd } = self;
        if nodes.is_empty() && rooms.is_empty() {
            (nodes, rooms) = (GROWS_BY_NODES.to_vec(), GROWS_BY_ROOMS.to_vec());
        }
        let target = Target::Daemons { binary: program(clawmeshd, output)?, nodes: 1 };
        let tell = super::output::tell;
        let setting = Setting { rows: Vec::new(), target, beside: None, nats: None, scale, tell };
        let growth = bench::grow(setting, &nodes, &rooms).await?;
        output.say(&if json { growth.json()? } else { growth.table() })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The daemon to measure.
fn program(named: Option<PathBuf>, output: &mut Output) -> Result<PathBuf> {
    let binary = match named {
        Some(path) => path,
        None => binary::beside()?,
    };
    if binary::is_stale(&binary) {
        output.note("clawmeshd is older than its sources");
    }
    Ok(binary)
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
                let binary = program(self.clawmeshd, output)?;
                Target::Daemons { binary, nodes: usize::from(self.nodes) }
            }
        };
        let mut rows = self.rows;
        if rows.is_empty() {
            rows = Row::value_variants().to_vec();
            if matches!(target, Target::Server { .. }) {
                rows.retain(|row| row.needs_one_server());
            }
            if self.nats.is_none() {
                rows.retain(|row| *row != Row::Nats);
            }
        }
        let (beside, nats, tell) = (self.beside, self.nats, super::output::tell);
        Ok(Setting { rows, target, beside, nats, scale: self.scale, tell })
    }
}
