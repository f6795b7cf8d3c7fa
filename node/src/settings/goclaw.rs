//! GoClaw: the programs of people, on `/ws`.

use std::{ops::RangeInclusive, time::Duration};

use ::goclaw::{Events, Settings};
use serde::Deserialize;

use super::error::{Result, bad};

/// What a file says of GoClaw. Times are in milliseconds, as its clients have them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct GoClawTable {
    /// Whether its clients are served.
    pub(crate) enabled: Option<bool>,
    /// The form of events about runs.
    pub(crate) events: Option<String>,
    /// The agent of clients that name none.
    pub(crate) default_agent: Option<String>,
    /// A run without an answer is over after this.
    pub(crate) run_limit_ms: Option<u64>,
    /// Clients without a stream are answered after this at the latest.
    pub(crate) reply_wait_ms: Option<u64>,
    /// Messages of one user in a minute.
    pub(crate) requests_per_minute: Option<u32>,
    /// Whether devices may ask to be paired.
    pub(crate) pairing: Option<bool>,
}

/// A day: an agent that needs longer is asked for a task instead.
const RUN_LIMIT_MS: RangeInclusive<u64> = 1_000..=86_400_000;
/// As clients may say it themselves.
const REPLY_WAIT_MS: RangeInclusive<u64> = 1_000..=600_000;
const PER_MINUTE: RangeInclusive<u32> = 1..=60_000;

/// `off`: as a flag or a variable has it.
pub(super) fn read(off: Option<bool>, table: &GoClawTable) -> Result<Settings> {
    // A flag or a variable stands over the file.
    let on = !off.unwrap_or(table.enabled == Some(false));
    let mut goclaw = Settings { on, ..Settings::default() };
    if let Some(name) = &table.events {
        let why = "write auto, flat, envelope or both";
        goclaw.events = Events::named(name).ok_or_else(|| bad("goclaw.events", name, why))?;
    }
    let within = |name, ms: u64, allowed: RangeInclusive<u64>| {
        let why = format!("write milliseconds from {} to {}", allowed.start(), allowed.end());
        let time = allowed.contains(&ms).then_some(Duration::from_millis(ms));
        time.ok_or_else(|| bad(name, &ms.to_string(), why))
    };
    if let Some(ms) = table.run_limit_ms {
        goclaw.run_limit = within("goclaw.run-limit-ms", ms, RUN_LIMIT_MS)?;
    }
    if let Some(ms) = table.reply_wait_ms {
        goclaw.reply_wait = within("goclaw.reply-wait-ms", ms, REPLY_WAIT_MS)?;
    }
    if let Some(count) = table.requests_per_minute {
        let why = format!("write a number from {} to {}", PER_MINUTE.start(), PER_MINUTE.end());
        let allowed = Some(count).filter(|count| PER_MINUTE.contains(count));
        goclaw.requests_per_minute =
            allowed.ok_or_else(|| bad("goclaw.requests-per-minute", &count.to_string(), why))?;
    }
    goclaw.default_agent = table.default_agent.clone().filter(|agent| !agent.is_empty());
    goclaw.pairing = table.pairing.unwrap_or(true);
    Ok(goclaw)
}
