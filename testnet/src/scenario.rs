//! Scenarios: events that happen to a few nodes, as data, played in the simulated world or with real daemons, and
//! judged by the sights of agents.
//!
//! In reading order: [`mod@file`] (what a scenario says), [`history`] (what was seen; `lines`, the same for another judge), `handing` (what agents tell each other besides), [`checks`] (what must
//! hold), [`catalogue`] (those that come with the program), [`simulate`] and [`run`] (the two worlds),
//! [`daemons`], `speaker`, `reader`, [`clocks`] and [`disks`] (the nodes and agents of the second one, its time
//! of day, and its disks).

pub mod catalogue;
pub mod checks;
pub mod clocks;
pub mod daemons;
pub mod disks;
pub mod file;
pub(crate) mod handing;
pub mod history;
mod lines;
mod reader;
mod speaker;

use std::time::{Duration, Instant};

use checks::Broken;
use daemons::{Setting, StageError};
use file::Scenario;
use history::{History, Seen};

use crate::sim;

/// The outcome of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// Messages answered `ok`.
    pub told: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages pushed, over all connections.
    pub heard: usize,
    /// Messages in a node's history at the end.
    pub messages: usize,
    /// How long it took, in the world's own time.
    pub took: Duration,
    /// From the end of the last step until everything was everywhere, in the world's own time.
    pub healed: Duration,
    /// The most memory that one of the processes had, in bytes.
    pub memory: Option<u64>,
    /// Promises that do not hold.
    pub broken: Vec<Broken>,
    /// All that was seen.
    pub history: History,
}

impl Report {
    fn of(scenario: &Scenario, history: History, took: Duration) -> Report {
        let count =
            |which: fn(&Seen) -> bool| history.seen.iter().filter(|seen| which(seen)).count();
        let messages = history.seen.iter().filter_map(|seen| {
            let Seen::Read { rows, .. } = seen else { return None };
            Some(rows.len())
        });
        Report {
            told: history.told(),
            refused: count(|seen| matches!(seen, Seen::Refused { .. })),
            heard: count(|seen| matches!(seen, Seen::Heard { .. })),
            messages: messages.max().unwrap_or(0),
            took,
            healed: history.healed,
            memory: history.memory,
            broken: checks::judge(&history, &scenario.promises),
            history,
        }
    }
}

/// Plays a scenario in the simulated world.
///
/// # Errors
///
/// A promise that the world itself found broken: its name, how, and when.
pub fn simulate(scenario: &Scenario, seed: u64, trace: bool) -> Result<Report, String> {
    match sim::scripted::play(scenario, seed, trace) {
        Ok((history, took)) => Ok(Report::of(scenario, history, took)),
        Err((at, broken)) => {
            let at = at.as_secs_f64();
            Err(format!("\"{}\" broken at {at:.3} s: {}", broken.promise, broken.what))
        }
    }
}

/// Plays a scenario with real daemons.
///
/// # Errors
///
/// It could not be played to its end.
pub async fn run(scenario: &Scenario, setting: Setting) -> Result<Report, StageError> {
    let began = Instant::now();
    let history = daemons::play(scenario, setting).await?;
    Ok(Report::of(scenario, history, began.elapsed()))
}
