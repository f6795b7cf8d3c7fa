//! Decisions of the operator.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// Decisions of the operator, which change while the node runs. All copies are one.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<RwLock<Arc<Settings>>>);

impl Live {
    /// Beginning with these.
    #[must_use]
    pub fn new(settings: Settings) -> Live {
        Live(Arc::new(RwLock::new(Arc::new(settings))))
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// They are others from now on. Whether the dialect is on does not change: its routes were made at the start.
    pub fn set(&self, settings: Settings) {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let on = now.on;
        *now = Arc::new(Settings { on, ..settings });
    }
}

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

impl Events {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Events::Auto => "auto",
            Events::Flat => "flat",
            Events::Envelope => "envelope",
            Events::Both => "both",
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
