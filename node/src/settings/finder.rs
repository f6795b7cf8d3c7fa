//! The index of agents.

use std::time::Duration;

use clawfinder::{SEEN_EVERY, Signup};

use super::{
    error::{Result, bad},
    parse::{bytes, duration},
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

/// The most that a node may be told to carry: beyond any disk it would be a slip of the pen.
const CARRY_MOST: u64 = 1 << 40;

/// Bytes of mail that are carried for others.
pub(super) fn carry(text: Option<&str>) -> Result<u64> {
    let Some(text) = text else { return Ok(mesh::limits::CARRY_BYTES) };
    let why = "write a number of bytes, as 0, 500MiB or 2GiB, to 1024GiB";
    bytes(text).filter(|bytes| *bytes <= CARRY_MOST).ok_or_else(|| bad("carry", text, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_carried_have_a_unit_or_none() {
        let read = |text: &str| carry(Some(text)).ok();
        assert_eq!([read("0"), read("77"), read("2KiB")], [Some(0), Some(77), Some(2_048)]);
        assert_eq!([read("500 MiB"), read("1GiB")], [Some(500 << 20), Some(1 << 30)]);
        assert_eq!(carry(None).ok(), Some(1 << 30));
        for wrong in ["", "-1", "1GB", "1.5GiB", "2000GiB", "GiB", "99999999999GiB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
