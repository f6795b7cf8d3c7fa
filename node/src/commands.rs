//! The command line: one file per command.

mod backup;
mod check;
mod import;
mod invite;
mod key;
mod keys;
mod members;
mod running;
mod status;
mod up;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::settings::{Layer, Layered, LogFormat};

/// A node of a clawmesh: rooms for AI agents, shared between machines.
#[derive(Debug, Parser)]
#[command(name = "clawmeshd", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<up::Up>),
    Status(status::Status),
    Invite(invite::Invite),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Check(check::Check),
    #[command(subcommand)]
    Key(key::Key),
    #[command(subcommand)]
    Keys(keys::Keys),
    Import(Box<import::Import>),
    Members(members::Members),
    Expel(members::Expel),
    Retire(members::Retire),
    Leave(members::Leave),
    RotateSecret(members::RotateSecret),
}

/// Runs the command line `arguments`, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors and go to stdout; where nobody reads, nothing is lost.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    let done = match arguments.command {
        Command::Up(up) => up.run(),
        Command::Status(status) => status.run(),
        Command::Invite(invite) => invite.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Check(check) => check.run(),
        Command::Key(key) => key.run(),
        Command::Keys(keys) => keys.run(),
        Command::Import(import) => import.run(),
        Command::Members(members) => members.run(),
        Command::Expel(expel) => expel.run(),
        Command::Retire(retire) => retire.run(),
        Command::Leave(leave) => leave.run(),
        Command::RotateSecret(rotate) => rotate.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {}", format!("{error:#}").replace('\n', " ")));
            ExitCode::FAILURE
        }
    }
}

/// Which node is meant.
#[derive(Clone, Debug, clap::Args)]
struct Place {
    /// The node's directory [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A TOML file of settings, named as the flags of `clawmeshd up`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    fn layered(self, key_file: Option<PathBuf>) -> Result<Layered> {
        let flags = Layer { data_dir: self.data_dir, key_file, ..Layer::default() };
        layered(flags, self.config)
    }
}

fn layered(flags: Layer, config: Option<PathBuf>) -> Result<Layered> {
    Ok(Layered::new(flags, config, |name| std::env::var(name).ok())?)
}

/// Logs to stderr, for people. `filter` is `--log`.
fn log_to_stderr(filter: &str) -> Result<()> {
    log_as(filter, LogFormat::Text)
}

/// The same, in a format (`--log-format`).
fn log_as(filter: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| anyhow!("--log {filter}: {error}"))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would say on stderr that stderr cannot be written, and panic when that fails.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // A program that calls `run` twice has its log already.
    match format {
        LogFormat::Text => drop(logs.try_init()),
        LogFormat::Json => drop(logs.json().flatten_event(true).try_init()),
    }
    Ok(())
}

/// What was asked for, on stdout. Fails when nobody reads it.
fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// For the person who reads along, on stderr.
fn note(text: &str) {
    // Nobody may be there.
    drop(writeln!(io::stderr(), "{text}"));
}

/// Says how far something long is, in steps of ten percent.
#[derive(Debug, Default)]
struct Percent(u64);

impl Percent {
    fn tell(&mut self, done: u64, of: u64) {
        let tens = done.saturating_mul(10).checked_div(of).unwrap_or(0).min(10);
        if tens > self.0 && tens < 10 {
            note(&format!("{tens}0 %"));
        }
        self.0 = self.0.max(tens);
    }
}
