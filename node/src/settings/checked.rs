//! Single values, judged as those of files are: for settings that are changed while the node runs.

use std::time::Duration;

use bridge::config::Quota;

use super::{
    Limits,
    error::Result as Parsed,
    goclaw::{self, GoClawTable},
    parse,
};

fn said<T>(parsed: Parsed<T>) -> Result<T, String> {
    parsed.map_err(|error| error.to_string())
}

pub(crate) fn hosts(items: &[String]) -> Result<Vec<String>, String> {
    said(items.iter().map(|item| parse::host(item)).collect())
}

pub(crate) fn origins(items: &[String]) -> Result<Vec<String>, String> {
    said(items.iter().map(|item| parse::origin(item)).collect())
}

fn of(table: &GoClawTable) -> Result<::goclaw::Settings, String> {
    said(goclaw::read(None, table))
}

pub(crate) fn run_limit(ms: u64) -> Result<Duration, String> {
    let table = GoClawTable { run_limit_ms: Some(ms), ..GoClawTable::default() };
    Ok(of(&table)?.run_limit)
}

pub(crate) fn reply_wait(ms: u64) -> Result<Duration, String> {
    let table = GoClawTable { reply_wait_ms: Some(ms), ..GoClawTable::default() };
    Ok(of(&table)?.reply_wait)
}

pub(crate) fn per_minute(count: u64) -> Result<u32, String> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let table = GoClawTable { requests_per_minute: Some(count), ..GoClawTable::default() };
    Ok(of(&table)?.requests_per_minute)
}

/// `what`: as `--limit` has it, without its key.
pub(crate) fn quota(quota: Quota, what: &str) -> Result<Quota, String> {
    let mut limits = Limits::default();
    limits.quotas.own = quota;
    said(limits.set(&format!("own.{what}")))?;
    Ok(limits.quotas.own)
}
