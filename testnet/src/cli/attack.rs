//! `clawmesh-testnet attack`.

use std::{fmt::Write, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::output::Output;
use crate::{
    attack::{self, Broken, Limits, Outcome, Setting, Until, kind::Kind},
    binary,
    process::{Auth, Mesh, Plan, Terminal},
};

/// Attack real nodes of this machine while honest agents work at them, and say what these notice.
///
/// Exits 1 when a limit does not hold. Figures mean something on a machine that does nothing else.
#[derive(Debug, clap::Args)]
pub(super) struct Attack {
    /// The attacks, one after the other [default: all]
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Vec<Kind>,
    /// Nodes that are attacked
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(2..=9))]
    nodes: u8,
    /// How long agents are measured before each attack, and during it
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Messages that each of the honest agents sends in a second
    #[arg(long, value_name = "N", default_value_t = 40.0)]
    rate: f64,
    /// Threads of the attacker
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Connections, or agents who do not read
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    many: usize,
    /// Most memory of a node, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    rss_max: u64,
    /// So many times its 99th percentile before may it be during an attack
    #[arg(long, value_name = "F", default_value_t = 2.0)]
    p99_times: f64,
    /// And less than so much more is the machine's own noise, in ms
    #[arg(long, value_name = "MS", default_value_t = 25)]
    p99_grain: u64,
    /// Keep the nodes' data and logs in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The daemon to attack [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

impl Attack {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let binary = match &self.clawmeshd {
            Some(path) => path.clone(),
            None => binary::beside()?,
        };
        if binary::is_stale(&binary) {
            output.note("clawmeshd is older than its sources: `cargo build --bin clawmeshd`");
        }
        let keep = self.keep.as_ref().map(std::path::absolute).transpose()?;
        let plan = Plan {
            binary,
            nodes: usize::from(self.nodes),
            auth: Auth::Key,
            keep,
            flags: Vec::new(),
            terminal: Terminal::Shared,
        };
        let mut mesh = Mesh::up(plan).await.context("the nodes do not start")?;
        let setting = Setting {
            seconds: self.seconds,
            rate: self.rate,
            threads: self.threads,
            many: self.many,
            until: Until::Over,
        };
        let limits = Limits {
            rss_bytes: self.rss_max << 20,
            p99_times: self.p99_times,
            p99_grain: Duration::from_millis(self.p99_grain),
        };
        let kinds = match self.kind.is_empty() {
            true => Kind::value_variants().to_vec(),
            false => self.kind.clone(),
        };
        output.say(&head())?;
        let mut broken = Vec::new();
        for kind in kinds {
            let outcome = attack::play(&mut mesh, kind, setting).await;
            let outcome = outcome.with_context(|| kind.to_string())?;
            output.say(&row(&outcome))?;
            broken.extend(outcome.judge(limits));
        }
        mesh.stop().await?;
        for Broken(what) in &broken {
            output.say(&format!("BROKEN {what}"))?;
        }
        Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn head() -> String {
    line(["KIND", "OK P50 P99", "DURING", "HEARD P50 P99", "DURING", "MIB", "DONE; STATUS SAYS"])
}

fn line(cells: [&str; 7]) -> String {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip([16, 12, 12, 14, 12, 11, 0]) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{cell:width$}  ");
    }
    text
}

fn row(outcome: &Outcome) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let both = |of: attack::Percentiles| format!("{:.1} {:.1}", ms(of.p50), ms(of.p99));
    let [ok, ok_during] = outcome.ok.map(both);
    let [heard, heard_during] = outcome.delivered.map(both);
    let mib: Vec<String> = outcome.rss.iter().map(|bytes| (bytes >> 20).to_string()).collect();
    let named = outcome.named.clone().unwrap_or_else(|| "-".to_owned());
    let said = format!("{}; {named}", outcome.done);
    line([&outcome.kind.to_string(), &ok, &ok_during, &heard, &heard_during, &mib.join(" "), &said])
}
