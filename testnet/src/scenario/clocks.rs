//! Wall clocks of real daemons, each off by as much as a scenario says, from one moment to the next.
//!
//! By [libfaketime](https://github.com/wolfcw/libfaketime), which is loaded into the daemon and reads how far
//! its clock is off from a file, at every look at the time. `clawmeshd` itself has no flag for it, and its
//! monotonic clock, by which it waits, is left alone.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use thiserror::Error;

use crate::wire::{Agent, WireError, text};

/// Where packages put it: in this directory of one of these, or of a directory within them.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];
const LIBRARY: &str = "faketime/libfaketime.so.1";
/// A node's time may be older or newer by this many seconds: it is said, carried and read on
/// a machine that is busy. Steps that mean anything move a clock by more.
const GRAIN_SECONDS: u64 = 30;

/// Why a clock cannot be set.
#[derive(Debug, Error)]
pub enum ClockError {
    /// It is not installed.
    #[error(
        "this scenario sets the clocks of real daemons, for which libfaketime is needed: install it \
         (Debian, Ubuntu: apt-get install faketime), or name it with --libfaketime PATH, or play it with \
         --world sim"
    )]
    NotInstalled,
    /// `--libfaketime` names nothing.
    #[error("--libfaketime {}: there is no such file", .0.display())]
    NotThere(PathBuf),
    /// The file that says how far the clock is off cannot be written.
    #[error("cannot write {}: {source}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The node does not say what time it is.
    #[error("cannot see a node's clock: {0}")]
    Unseen(#[from] WireError),
    /// The library is there, and the daemon does not mind.
    #[error(
        "the clock of node {node} should be off by {wanted} s, and it says {said:?}, which is off by {off} s: \
         libfaketime does not work with this clawmeshd (one that is statically linked?)"
    )]
    Unmoved {
        /// Which, from 1.
        node: usize,
        /// Seconds that it should be off.
        wanted: i64,
        /// Its time.
        said: String,
        /// Seconds that this is off.
        off: i64,
    },
}

/// The wall clock of one daemon.
#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    /// Says how far it is off.
    file: PathBuf,
}

impl Clock {
    /// One that is right so far, kept in `file`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn new(library: &Path, file: PathBuf) -> Result<Clock, ClockError> {
        let failed = |source| ClockError::File { file: file.clone(), source };
        fs::create_dir_all(file.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let clock = Clock { library: library.to_owned(), file };
        clock.set(0)?;
        Ok(clock)
    }

    /// It is off by so many seconds from now on: ahead, or (below 0) behind.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn set(&self, seconds: i64) -> Result<(), ClockError> {
        let failed = |source| ClockError::File { file: self.file.clone(), source };
        // In one step: a reader finds the one or the other.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n")).map_err(failed)?;
        fs::rename(&new, &self.file).map_err(failed)
    }

    /// The variables with which a daemon that has this clock is started.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 5] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone()),
            // Else it would notice up to 10 s later.
            ("FAKETIME_NO_CACHE", "1".into()),
            // Only the time of day may jump: no machine's monotonic clock does.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ]
    }

    /// Removes what a daemon that was killed could not: by this it would share its clock with its children.
    pub(crate) fn forget(pid: u32) {
        for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
            // Where it is kept differently there is nothing to be done.
            drop(fs::remove_file(Path::new("/dev/shm").join(name)));
        }
    }
}

/// The library: the one that was `named`, or where packages put it.
///
/// # Errors
///
/// There is none; the error says what to install.
pub fn library(named: Option<&Path>) -> Result<PathBuf, ClockError> {
    if let Some(named) = named {
        let there = named.is_file().then(|| named.to_owned());
        return there.ok_or_else(|| ClockError::NotThere(named.to_owned()));
    }
    let within = |dir: &Path| -> Vec<PathBuf> {
        let dirs = fs::read_dir(dir).into_iter().flatten().flatten();
        dirs.map(|dir| dir.path().join(LIBRARY)).collect()
    };
    let places = LIBRARIES.iter().map(Path::new);
    let mut places = places.flat_map(|dir| [vec![dir.join(LIBRARY)], within(dir)].concat());
    places.find(|place| place.is_file()).ok_or(ClockError::NotInstalled)
}

/// Looks whether the clock of the node (from 1) at this `HOST:PORT` is off by as much as it should be, by when
/// it says that an agent came.
///
/// # Errors
///
/// [`ClockError::Unmoved`] if not.
pub(super) async fn look(node: usize, tcp: &str, wanted: i64) -> Result<(), ClockError> {
    let mut agent = Agent::attach(tcp, None, "visitor").await?;
    let listed = agent.call("list_agents", json!({})).await?;
    let mut all = listed["agents"].as_array().into_iter().flatten();
    let said = all.find(|listed| text(listed, "agent_id") == agent.id);
    let said = said.map(|listed| text(listed, "connected_at")).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let off = unix_seconds(&said).unwrap_or(0) - i64::try_from(now).unwrap_or(i64::MAX);
    match off.abs_diff(wanted) <= GRAIN_SECONDS {
        true => Ok(()),
        false => Err(ClockError::Unmoved { node, wanted, said, off }),
    }
}

/// Of a time as nodes write it: RFC 3339, UTC, from 1970 on. Days are counted as Howard Hinnant's
/// `days_from_civil` does.
fn unix_seconds(text: &str) -> Option<i64> {
    let at = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (at(0, 4)?, at(5, 7)?, at(8, 10)?);
    let (hours, minutes, seconds) = (at(11, 13)?, at(14, 16)?, at(17, 19)?);
    // Years from March on: the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2000-02-29T12:00:01.5Z"), Some(951_825_601));
        assert_eq!(unix_seconds("2026-11-22T08:01:25.809989Z"), Some(1_795_334_485));
        assert_eq!(unix_seconds("soon"), None);
    }

    #[test]
    fn a_clock_is_set_in_its_file() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("new/node1.clock");
        let clock = Clock::new(Path::new("lib"), file.clone()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "+0\n");
        clock.set(-1_800).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "-1800\n");
        clock.set(1_800).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "+1800\n");
    }

    #[test]
    fn who_has_no_library_is_told_what_to_install() {
        let missing = library(Some(Path::new("/no/such/library"))).unwrap_err().to_string();
        assert_eq!(missing, "--libfaketime /no/such/library: there is no such file");
        assert!(ClockError::NotInstalled.to_string().contains("apt-get install faketime"));
    }
}
