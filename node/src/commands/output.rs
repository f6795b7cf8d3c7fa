//! Results on stdout, notes and logs on stderr.

use std::io::{self, IsTerminal, Write};

use anyhow::{Result, anyhow};
use tracing_subscriber::EnvFilter;

use crate::settings::LogFormat;

/// Logs to stderr, for people. `filter` is `--log`.
pub(super) fn log_to_stderr(filter: &str) -> Result<()> {
    log_as(filter, LogFormat::Text)
}

/// The same, in a format (`--log-format`).
pub(super) fn log_as(filter: &str, format: LogFormat) -> Result<()> {
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

/// The answer, on stdout. Fails when nobody reads it.
pub(super) fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// For the person who reads along, on stderr.
pub(super) fn note(text: &str) {
    // Nobody may be there.
    drop(writeln!(io::stderr(), "{text}"));
}

/// Says how far something long is, in steps of ten percent.
#[derive(Debug, Default)]
pub(super) struct Percent(u64);

impl Percent {
    pub(super) fn tell(&mut self, done: u64, of: u64) {
        let tens = done.saturating_mul(10).checked_div(of).unwrap_or(0).min(10);
        if tens > self.0 && tens < 10 {
            note(&format!("{tens}0 %"));
        }
        self.0 = self.0.max(tens);
    }
}
