//! `clawmesh-testnet run`.

use std::{
    fs,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use super::output::Output;
use crate::{
    binary,
    scenario::{
        self, Report, catalogue, clocks,
        daemons::Setting,
        disks::Disk,
        file::{Scenario, World},
    },
};

/// Play a scenario: events that happen to some nodes, and promises that hold in spite of them.
///
/// Exits 1 when a promise is broken, and prints the command that replays it.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Its name, or a file
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// Say which scenarios there are
    #[arg(long, conflicts_with = "scenario")]
    list: bool,
    /// Where: `sim` is the real engine and store in virtual time, `process` is real daemons
    #[arg(long, value_enum, default_value = "sim")]
    world: World,
    /// The seed of chance in the simulated world, and of the delays of pipes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// So many times the messages that the scenario says, such as 0.01
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Say what happens, on stderr (sim)
    #[arg(long)]
    trace: bool,
    /// Keep the nodes' data and logs in DIR [default: only when something is broken] (process)
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write what agents saw into FILE, for clawmesh-judge
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// The daemon to run [default: the clawmeshd beside this program] (process)
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
    /// An older or newer daemon, for scenarios that restart nodes with another one (process)
    #[arg(long, value_name = "PATH")]
    other: Option<PathBuf>,
    /// libfaketime, for scenarios that set the clocks of nodes [default: where packages put it] (process)
    #[arg(long, value_name = "PATH")]
    libfaketime: Option<PathBuf>,
    /// How there is no room on a node's disk, where a step says so (process)
    #[arg(long, value_enum, default_value = "limit")]
    disk: Disk,
}

pub(super) fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 100.0 => Ok(scale),
        Ok(_) | Err(_) => Err("write a number above 0, at most 100".to_owned()),
    }
}

impl Run {
    pub(super) fn run(self, output: &mut Output) -> Result<ExitCode> {
        let Some(name) = &self.scenario else { return list(output) };
        let scenario = load(name)?.scaled(self.scale);
        if !scenario.worlds.contains(&self.world) {
            let worlds: Vec<String> = scenario.worlds.iter().map(ToString::to_string).collect();
            bail!("{name} is not for --world {}, but for {}", self.world, worlds.join(", "));
        }
        let began = Instant::now();
        let played = match self.world {
            World::Sim => scenario::simulate(&scenario, self.seed, self.trace),
            World::Process => self.with_daemons(&scenario, output)?,
        };
        let seconds = began.elapsed().as_secs_f64();
        if let (Some(file), Ok(report)) = (&self.history, &played) {
            write(file, report).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let broken = match &played {
            Ok(report) if report.broken.is_empty() => {
                output.say(&kept(name, &scenario, report, seconds))?;
                return Ok(ExitCode::SUCCESS);
            }
            Ok(report) => {
                let line = |broken: &scenario::checks::Broken| {
                    format!("{:?}: {}\n", broken.promise, broken.what)
                };
                report.broken.iter().map(line).collect()
            }
            Err(broken) => format!("{broken}\n"),
        };
        let Run { world, seed, scale, .. } = &self;
        let scale = if *scale == 1.0 { String::new() } else { format!(" --scale {scale}") };
        output.say(&format!(
            "{name} ({}) broke its promises in the {world} world:\n{broken}play it again: cargo run \
             --bin clawmesh-testnet -- run {name} --world {world} --seed {seed}{scale}",
            scenario.title
        ))?;
        Ok(ExitCode::FAILURE)
    }
}

impl Run {
    /// The data stays when something is broken, or somebody wants it.
    fn with_daemons(
        &self,
        scenario: &Scenario,
        output: &mut Output,
    ) -> Result<Result<Report, String>> {
        let binary = match &self.clawmeshd {
            Some(path) => path.clone(),
            None => binary::beside()?,
        };
        if binary::is_stale(&binary) {
            output.note("clawmeshd is older than its sources: `cargo build --bin clawmeshd`");
        }
        let temp = tempfile::Builder::new().prefix("clawmesh-").tempdir()?;
        let dir = match &self.keep {
            Some(dir) => std::path::absolute(dir).context("no such --keep")?,
            None => temp.path().to_owned(),
        };
        if fs::read_dir(&dir).is_ok_and(|mut files| files.next().is_some()) {
            bail!("--keep {}: not empty; a scenario begins with new nodes", dir.display());
        }
        let clocks = scenario.sets_clocks();
        let libfaketime = clocks.then(|| clocks::library(self.libfaketime.as_deref()));
        let setting = Setting {
            binary,
            other: self.other.clone(),
            dir: dir.clone(),
            libfaketime: libfaketime.transpose()?,
            disk: self.disk,
        };
        let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
        let played = runtime.block_on(scenario::run(scenario, setting));
        // Daemons that are still there are killed with it.
        drop(runtime);
        if !played.as_ref().is_ok_and(|report| report.broken.is_empty()) {
            if self.keep.is_none() {
                // Kept from now on.
                let _ = temp.keep();
            }
            output.note(&format!("data and logs of the nodes are in {}", dir.display()));
        }
        Ok(played.map_err(|error| error.to_string()))
    }
}

fn write(file: &Path, report: &Report) -> std::io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(file)?);
    report.history.write(&mut out)?;
    out.flush()
}

fn list(output: &mut Output) -> Result<ExitCode> {
    for name in catalogue::names() {
        let Some(scenario) = catalogue::named(name) else { continue };
        let scenario = scenario.with_context(|| name.to_owned())?;
        let worlds: Vec<String> = scenario.worlds.iter().map(ToString::to_string).collect();
        output.say(&format!("{name:16} {:12} {}", worlds.join(", "), scenario.title))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn load(name: &str) -> Result<Scenario> {
    if let Some(scenario) = catalogue::named(name) {
        return scenario.with_context(|| name.to_owned());
    }
    let names: Vec<&str> = catalogue::names().collect();
    let text = fs::read_to_string(name).with_context(|| {
        format!("{name} is no file, and none of the scenarios {}", names.join(", "))
    })?;
    Scenario::parse(&text).with_context(|| name.to_owned())
}

fn kept(name: &str, scenario: &Scenario, report: &Report, seconds: f64) -> String {
    let Report { told, refused, heard, messages, took, healed, memory, .. } = report;
    let memory = memory.map_or_else(String::new, |bytes| format!(", at most {} MiB", bytes >> 20));
    format!(
        "{name} ({}) kept all promises: {told} messages answered, {refused} refused, {heard} pushed, \
         {messages} in the end; {:.1} s of its own time, {:.1} s of it at the end until everything was \
         everywhere; {seconds:.1} s of ours{memory}",
        scenario.title,
        took.as_secs_f64(),
        healed.as_secs_f64()
    )
}
