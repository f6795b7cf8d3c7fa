//! `clawmesh-testnet small`.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::output::{Output, tell};
use crate::small::{self, Setting};

/// Play all small worlds: two or three real engines, a few messages and faults, and every order in which they can happen.
///
/// Begins with the smallest worlds; each that is larger has its share of the time that is left. Exits 1 when a promise is
/// broken, and prints the fewest steps that do it.
#[derive(Debug, clap::Args)]
pub(super) struct Small {
    /// So many nodes at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    nodes: u8,
    /// So many messages at most
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=20))]
    messages: u8,
    /// So many faults at most: kills, links that are cut, that lose one way, or are slow, and stops in good order
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=10))]
    faults: u8,
    /// Time passes so often at most in a world, up to a second each time
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(0..=100))]
    waits: u8,
    /// Only worlds of just this size
    #[arg(long)]
    only: bool,
    /// Messages to all are not carried: nodes compare instead
    #[arg(long)]
    without_gossip: bool,
    /// It takes so long at most
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    minutes: u64,
    /// Each world has so many states at most, whatever the time: the same in every run
    #[arg(long, value_name = "N")]
    states: Option<usize>,
    /// Play these steps, as they are printed when a promise is broken, and say what happens
    #[arg(long, value_name = "STEP,…")]
    steps: Option<String>,
    /// All that can happen after these steps; what they say and break is counted, too
    #[arg(long, value_name = "STEP,…", requires = "only", conflicts_with = "steps")]
    after: Option<String>,
    /// Say how far it is
    #[arg(long)]
    progress: bool,
}

impl Small {
    pub(super) fn run(self, output: &mut Output) -> Result<ExitCode> {
        let largest = Setting {
            nodes: self.nodes.into(),
            messages: self.messages,
            faults: self.faults,
            waits: self.waits,
            gossip: !self.without_gossip,
            states: self.states.unwrap_or(usize::MAX),
            ..Setting::default()
        };
        if let Some(steps) = &self.steps {
            return match small::replay(largest, steps, &mut tell)? {
                Ok(()) => {
                    output.say("kept all promises")?;
                    Ok(ExitCode::SUCCESS)
                }
                Err(broken) => {
                    output.say(&format!("{}: {}", broken.promise, broken.what))?;
                    Ok(ExitCode::FAILURE)
                }
            };
        }
        let all = if self.only { vec![largest] } else { largest.and_smaller() };
        let ends = Instant::now() + Duration::from_secs(self.minutes * 60);
        let mut code = ExitCode::SUCCESS;
        for (nth, setting) in all.iter().enumerate() {
            let left = ends.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(all.len() - nth)?;
            let time = if self.states.is_some() { None } else { Some(share) };
            let mut progress = |text: &str| {
                if self.progress {
                    tell(text);
                }
            };
            let setting = Setting { time, ..*setting };
            let report = small::search(setting, self.after.as_deref(), &mut progress)?;
            output.say(&report.to_string())?;
            if report.failure.is_some() {
                code = ExitCode::FAILURE;
                break;
            }
        }
        Ok(code)
    }
}
