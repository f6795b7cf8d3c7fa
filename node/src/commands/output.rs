//! Results on stdout, notes and logs on stderr.

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use anyhow::{Result, anyhow};
use bridge::log_tail::LogTail;
use tracing_subscriber::{
    EnvFilter, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{changeable::SetLog, log_tail::Tailing, settings::LogFormat};

/// Logs to stderr, for people. `filter` is `--log`.
pub(super) fn log_to_stderr(filter: &str) -> Result<()> {
    log_as(filter, LogFormat::Text, None).map(drop)
}

fn filter_of(text: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(directives(text)?).map_err(|error| anyhow!("--log {text}: {error}"))
}

/// The same, in a format (`--log-format`), and to a tail. The filter can be set anew.
pub(super) fn log_as(
    filter: &str,
    format: LogFormat,
    tail: Option<&Arc<LogTail>>,
) -> Result<SetLog> {
    let filter = filter_of(filter)?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would say on stderr that stderr cannot be written, and panic when that fails.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // A program that calls `run` twice has its log already.
    let tailing = tail.cloned().map(Tailing);
    let set: SetLog = match format {
        LogFormat::Text => {
            let logs = logs.with_filter_reloading();
            let handle = logs.reload_handle();
            drop(logs.finish().with(tailing).try_init());
            Box::new(move |text| Ok(handle.reload(filter_of(text)?)?))
        }
        LogFormat::Json => {
            let logs = logs.json().flatten_event(true).with_filter_reloading();
            let handle = logs.reload_handle();
            drop(logs.finish().with(tailing).try_init());
            Box::new(move |text| Ok(handle.reload(filter_of(text)?)?))
        }
    };
    Ok(set)
}

/// The packages of this program. A level alone is theirs: who looks for a mistake here does not want to read all that a library
/// does on its way.
const OURS: [&str; 16] = [
    "bridge",
    "clawchat",
    "clawfinder",
    "clawmeshd",
    "clawtank",
    "client",
    "goclaw",
    "import",
    "mcp",
    "mesh",
    "net",
    "node",
    "page",
    "openpgp",
    "protocol",
    "store",
];

/// `--log` as a filter: a level alone is that of this program, and libraries warn; `TARGET=LEVEL` is as it says.
fn directives(text: &str) -> Result<String> {
    let (mut general, mut special) = (Vec::new(), Vec::new());
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if part.contains(['=', '[']) {
            special.push(part.to_owned());
            continue;
        }
        let level =
            part.parse::<LevelFilter>().ok().filter(|_| part.chars().all(char::is_alphabetic));
        // A target alone would be a filter, too; so is every mistyped level, and then nothing is logged any more.
        let level = level.ok_or_else(|| {
            anyhow!(
                "--log {text}: {part:?} is no level: give off, error, warn, info, debug or trace, and TARGET=LEVEL for \
                 single libraries"
            )
        })?;
        general.push(level.min(LevelFilter::WARN).to_string());
        // It warns of what any client sends, and quotes it.
        general.push("rmcp=off".to_owned());
        general.extend(OURS.iter().map(|package| format!("{package}={level}")));
    }
    general.append(&mut special);
    Ok(general.join(","))
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

#[cfg(test)]
mod filter_tests {
    use super::*;

    #[test]
    fn a_level_alone_is_ours_and_a_mistyped_one_is_none() {
        let debug = directives("debug").unwrap();
        assert!(debug.starts_with("warn,") && debug.contains("node=debug"), "{debug}");
        let theirs = directives("libp2p=debug, debug").unwrap();
        assert!(theirs.ends_with(",libp2p=debug"), "what is special counts: {theirs}");
        assert!(directives("error").unwrap().starts_with("error,"));
        assert_eq!(directives("mesh=trace").unwrap(), "mesh=trace");
        for wrong in ["inof", "debug,inof", "libp2p", "3"] {
            let error = directives(wrong).unwrap_err().to_string();
            assert!(error.contains("--log") && error.contains("info, debug"), "{error}");
        }
    }
}
