//! Decisions of the operator.

use std::time::Duration;

/// Decisions of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether clients are served. Else they are refused, and told why.
    pub on: bool,
    /// The shape of events about runs.
    pub events: Events,
    /// The agent that is meant by a client that names none.
    pub default_agent: Option<String>,
    /// A run that has no answer by then is over.
    pub run_limit: Duration,
    /// A client that asks for no stream is answered at the latest after this.
    pub reply_wait: Duration,
    /// Messages of one principal in a minute.
    pub requests_per_minute: u32,
    /// Whether devices may ask to be paired.
    pub pairing: bool,
}

/// The shape of events about runs: some clients hang on one of them, and clients that get both write text twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// Clients that say which protocol they speak get envelopes, all others both.
    #[default]
    Auto,
    /// Each under its own name.
    Flat,
    /// All under `agent`.
    Envelope,
    /// Both, the flat one first.
    Both,
}

impl Events {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Events> {
        match name {
            "auto" => Some(Events::Auto),
            "flat" => Some(Events::Flat),
            "envelope" => Some(Events::Envelope),
            "both" => Some(Events::Both),
            _ => None,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            on: true,
            events: Events::Auto,
            default_agent: None,
            run_limit: Duration::from_secs(600),
            reply_wait: Duration::from_secs(25),
            requests_per_minute: 60,
            pairing: true,
        }
    }
}
