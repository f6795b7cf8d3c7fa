//! `clawmesh-testnet sim`.

use std::{fmt::Write, num::NonZeroUsize, process::ExitCode, thread, time::Instant};

use anyhow::Result;

use super::output::Output;
use crate::{
    sim::{self, Report},
    worlds::{self, Summary},
};

/// Failures shown in full as they come; of the others a line each, at the end.
const FAILURES_SHOWN: usize = 50;
/// From so many worlds on each kind of fault must have happened in some of them.
const COVERED_FROM: u64 = 512;

/// Play simulated worlds: real nodes and stores, virtual time, faults; one seed is one world.
///
/// Exits 1 when a world breaks a promise, and prints the command that replays it; or when a kind of fault
/// happened in none of at least 512 worlds.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(super) struct Simulate {
    /// Play the world of this seed
    #[arg(long, group = "which")]
    seed: Option<u64>,
    /// Say what happens in it, on stderr
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Play this many worlds
    #[arg(long, group = "which", value_name = "N")]
    seeds: Option<u64>,
    /// The first seed of them
    #[arg(long, value_name = "M", default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Worlds in which one node lies, and the promises to all others
    #[arg(long)]
    liar: bool,
    /// Worlds in which one node is expelled, or fails and is given up, and the promises to all others
    #[arg(long, conflicts_with = "liar")]
    parting: bool,
    /// Worlds in which the disk of one node is lost, and the promises to all others
    #[arg(long, conflicts_with_all = ["liar", "parting"])]
    loss: bool,
    /// Worlds in which one node goes on from an earlier copy of its disk, and the promises about records
    #[arg(long, conflicts_with_all = ["liar", "parting", "loss"])]
    restored: bool,
    /// Worlds in which agents have inboxes, and the promises about these
    #[arg(long, conflicts_with_all = ["liar", "parting", "loss", "restored"])]
    inboxes: bool,
    /// Worlds in which agents answer everything that they are told, and the promise that they stop
    #[arg(long, conflicts_with_all = ["liar", "parting", "loss", "restored", "inboxes"])]
    answering: bool,
    /// Worlds in which two nodes are never up together, and the promise that others carry for them
    #[arg(long, conflicts_with_all = ["liar", "parting", "loss", "restored", "inboxes", "answering"])]
    carried: bool,
    /// Worlds at the same time [default: one for each processor]
    #[arg(long, conflicts_with = "seed")]
    jobs: Option<NonZeroUsize>,
}

impl Simulate {
    pub(super) fn run(self, output: &mut Output) -> Result<ExitCode> {
        match self.seed {
            Some(seed) => one(seed, self.kind(), self.trace, output),
            None => self.many(output),
        }
    }

    fn many(self, output: &mut Output) -> Result<ExitCode> {
        let count = self.seeds.unwrap_or(0);
        let end = self.from.saturating_add(count);
        let all = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let jobs = self.jobs.map_or(all, NonZeroUsize::get);
        let began = Instant::now();
        let (mut shown, kind) = (0, self.kind());
        let summary = worlds::play(kind, self.from..end, jobs, |so_far| {
            for failure in so_far.failures.iter().skip(shown).take(FAILURES_SHOWN - shown) {
                output.note(&failure.to_string());
            }
            shown = so_far.failures.len().min(FAILURES_SHOWN);
            let text = format!("worlds, {} broke a promise", so_far.failures.len());
            output.progress(so_far.worlds, count, &text);
        });
        output.say(&text(kind, &summary, began.elapsed().as_secs_f64()))?;
        let covered = count < COVERED_FROM || summary.total.coverage.never(kind).is_empty();
        Ok(code(summary.failures.is_empty() && covered))
    }

    fn kind(&self) -> sim::Kind {
        // Not two of them.
        let kinds = [
            (self.liar, sim::Kind::WithLiar),
            (self.parting, sim::Kind::WithParting),
            (self.loss, sim::Kind::WithLoss),
            (self.restored, sim::Kind::WithRestore),
            (self.inboxes, sim::Kind::WithInboxes),
            (self.answering, sim::Kind::Answering),
            (self.carried, sim::Kind::Carried),
        ];
        kinds.into_iter().find(|(asked, _)| *asked).map_or(sim::Kind::Honest, |(_, kind)| kind)
    }
}

fn one(seed: u64, kind: sim::Kind, trace: bool, output: &mut Output) -> Result<ExitCode> {
    match sim::run(kind, seed, trace) {
        Ok(report) => {
            output.say(&format!("seed {seed} kept all promises: {}", counts(&report)))?;
            Ok(code(true))
        }
        Err(failure) => {
            output.say(&failure.to_string())?;
            Ok(code(false))
        }
    }
}

fn code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn text(kind: sim::Kind, summary: &Summary, seconds: f64) -> String {
    let Summary { worlds, total, failures } = summary;
    let kept = worlds - failures.len() as u64;
    let mut text = format!("{kept} of {worlds} worlds kept all promises, in {seconds:.1} s\n");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "in these: {}", counts(total));
    let happened: Vec<String> =
        total.coverage.of(kind).map(|(name, count)| format!("{name} {count}")).collect();
    let _ = writeln!(text, "what happened in them, and how often: {}", happened.join(", "));
    let never = total.coverage.never(kind);
    if !never.is_empty() {
        let _ = writeln!(text, "warning: in none of them: {}", never.join(", "));
    }
    for failure in failures {
        let _ = writeln!(text, "{failure}");
    }
    text
}

fn counts(report: &Report) -> String {
    let Report { entries, eras, holes, answered, refused, moves, taken, repeats, .. } = report;
    let Report { votes, ballots, elections, leaders, decisions, .. } = report;
    let Report { tasks, claims, granted, contested, lies: (told, stopped), .. } = report;
    format!(
        "{entries} messages, {eras} eras, {holes} holes, {answered} commands answered and {refused} \
         refused, {moves} moves of roaming clients, {repeats} repeats \
         among the {taken} messages that they were given, {votes} votes and \
         {ballots} ballots told, {elections} elections, {leaders} leaders told and {decisions} \
         decisions, {tasks} tasks, {claims} claims, {granted} of them granted, and {contested} fields \
         contested to the end; {told} lies told, {stopped} stopped at the door"
    )
}
