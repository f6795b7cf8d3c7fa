//! `clawmesh-testnet large`.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;

use super::output::{Output, tell};
use crate::large::{self, Report, Setting};

/// Play large meshes: as many real engines as one machine holds, in virtual time, and count what it costs.
///
/// A member at each of ten nodes talks in the lobby, 20 messages a second. The same seed gives the same
/// counts; times of the processor, memory, and how long it took are of this machine.
#[derive(Debug, clap::Args)]
pub(super) struct Large {
    /// Meshes of so many nodes, one after the other
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "100,1000",
        value_parser = clap::value_parser!(u64).range(2..=4_000))]
    nodes: Vec<u64>,
    /// How long each is idle, and how long there is talk, in virtual time
    #[arg(long, value_name = "S", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How long each may take until all nodes know each other, in virtual time
    #[arg(long, value_name = "S", default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(3..=600))]
    settle: u64,
    /// Decides the links, how long they take, and the speakers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure the cost of so many records instead: start, memory, and a peer that has none
    #[arg(long, value_name = "N", conflicts_with_all = ["nodes", "json"],
        value_parser = clap::value_parser!(u32).range(1..=500_000))]
    records: Option<u32>,
    /// Print one line of JSON, with counts by kind of message
    #[arg(long)]
    json: bool,
}

impl Large {
    pub(super) fn run(self, output: &mut Output) -> Result<ExitCode> {
        if let Some(records) = self.records {
            let costs = large::records::cost(usize::try_from(records)?, &mut tell)?;
            output.say(&costs.table())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut report = Report::default();
        for nodes in self.nodes {
            let setting = Setting {
                nodes: usize::try_from(nodes)?,
                lasts: Duration::from_secs(self.seconds),
                settles: Duration::from_secs(self.settle),
                seed: self.seed,
            };
            report.0.push(large::measure(&setting, &mut tell)?);
        }
        output.say(&if self.json { report.json()? } else { report.table() })?;
        Ok(ExitCode::SUCCESS)
    }
}
