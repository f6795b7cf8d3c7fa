//! The index of agents.

use std::time::Duration;

use clawfinder::{SEEN_EVERY, Signup};

use super::{
    error::{Result, bad},
    parse::duration,
};

/// Decisions about the index of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finder {
    /// Clients that may register.
    pub signup: Signup,
    /// Other nodes are told at most so often that an agent has asked.
    pub seen_every: Duration,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder { signup: Signup::default(), seen_every: SEEN_EVERY }
    }
}

const SEEN_LEAST: Duration = Duration::from_secs(1);
const SEEN_MOST: Duration = Duration::from_secs(24 * 3_600);

pub(super) fn read(signup: Option<&str>, seen_every: Option<&str>) -> Result<Finder> {
    let mut finder = Finder::default();
    if let Some(text) = signup {
        let why = "write local, open or off";
        finder.signup = Signup::parse(text).ok_or_else(|| bad("finder-signup", text, why))?;
    }
    if let Some(text) = seen_every {
        let time = duration(text).filter(|time| (SEEN_LEAST..=SEEN_MOST).contains(time));
        let why = "write a time from 1s to 1d";
        finder.seen_every = time.ok_or_else(|| bad("finder-seen-every", text, why))?;
    }
    Ok(finder)
}
