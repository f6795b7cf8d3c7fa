//! `clawmesh-testnet many`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::output::{Output, tell};
use crate::{
    binary,
    many::{self, Cost},
    process::{Auth, Plan, Terminal},
    table,
};

/// Start many real nodes that do nothing, and measure the processor time and memory of each.
///
/// Exits 1 if a node is taken for dead. Figures of a development build say little: build with `--profile dist`.
#[derive(Debug, clap::Args)]
pub(super) struct Many {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(2..=1_000))]
    nodes: u64,
    /// How long they are idle
    #[arg(long, value_name = "S", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// Further flags for every `clawmeshd up`
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
    /// The daemon to run [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

impl Many {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let limits = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
        let binary = match self.clawmeshd {
            Some(path) => path,
            None => binary::beside()?,
        };
        let plan = Plan {
            binary,
            nodes: usize::try_from(self.nodes)?,
            auth: Auth::Open,
            keep: None,
            flags: self.flags,
            terminal: Terminal::Mine,
        };
        let cost = many::measure(plan, Duration::from_secs(self.seconds), &mut tell).await?;
        output.say(&if self.json { serde_json::to_string(&cost)? } else { text(&cost) })?;
        Ok(if cost.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn text(cost: &Cost) -> String {
    let percent = |value: f64| format!("{value:.2} %");
    let rows = [
        ("NODES", cost.nodes.to_string()),
        ("all know that all live, after the last start", format!("{:.1} s", cost.known_s)),
        ("idle for", format!("{:.0} s", cost.idle_s)),
        ("processor of a node: mean, of one core", percent(cost.mean_percent)),
        ("… least", percent(cost.least_percent)),
        ("… most", percent(cost.most_percent)),
        ("memory of a node", format!("{:.1} MiB", cost.mean_mib)),
        ("pairs of which one takes the other for dead", cost.missed.to_string()),
    ];
    table::columns(&rows.map(|(what, value)| vec![what.to_owned(), value]))
}
