//! Why settings cannot be used.

use std::path::PathBuf;

use thiserror::Error;

use crate::ticket::TicketError;

/// Why settings cannot be used. Names the flag to change.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("--{flag} {value}: {why}")]
    Value { flag: &'static str, value: String, why: String },
    // Said here, so it is no source: the chain would say it twice.
    #[error("--join: {0}")]
    Ticket(TicketError),
    #[error("--{0} and --no-{0} contradict each other: give one of them")]
    Contradiction(&'static str),
    #[error("--config {}: {why}", file.display())]
    File { file: PathBuf, why: String },
    #[error("{variable}={value}: write true or false")]
    Variable { variable: String, value: String },
    #[error("--{0}: this user has no home directory, so name one")]
    NoHome(&'static str),
}

pub(super) type Result<T> = std::result::Result<T, SettingsError>;

/// A value of `flag` that cannot be used.
pub(super) fn bad(flag: &'static str, value: &str, why: impl Into<String>) -> SettingsError {
    SettingsError::Value { flag, value: value.to_owned(), why: why.into() }
}
