//! The verdict.

use std::{collections::BTreeMap, fmt};

/// Findings of one promise that are told; others are counted.
const TOLD_MAX: usize = 5;

/// A promise. `docs/promises.md` has them in words for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// A number means one message, everywhere and for ever; a message says one thing.
    Names,
    /// Numbers rise on each connection, and in each reading.
    Rising,
    /// No message comes twice on a connection, or stands twice in a reading.
    Once,
    /// What was acknowledged is at every node in the end.
    Acknowledged,
    /// All nodes have the same messages in the end.
    Complete,
    /// A connection that heard two messages heard all that its node has between them, but its client's own.
    Pushed,
    /// What was acknowledged after all faults has one number everywhere.
    Agreement,
    /// A request that was asked again became one message.
    OneOfARequest,
    /// What was refused is nowhere.
    Refused,
    /// Nothing is there that nobody said.
    Said,
    /// A number that anybody was told leads to its message.
    Resolves,
}

impl Promise {
    /// All of them.
    pub const ALL: [Promise; 11] = [
        Promise::Names,
        Promise::Rising,
        Promise::Once,
        Promise::Acknowledged,
        Promise::Complete,
        Promise::Pushed,
        Promise::Agreement,
        Promise::OneOfARequest,
        Promise::Refused,
        Promise::Said,
        Promise::Resolves,
    ];

    /// As it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Promise::Names => "names",
            Promise::Rising => "rising",
            Promise::Once => "once",
            Promise::Acknowledged => "acknowledged",
            Promise::Complete => "complete",
            Promise::Pushed => "pushed",
            Promise::Agreement => "agreement",
            Promise::OneOfARequest => "one of a request",
            Promise::Refused => "refused",
            Promise::Said => "said",
            Promise::Resolves => "resolves",
        }
    }
}

/// How often a promise was tried, and how it was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// How many things it was looked at with. None: the history says nothing of it.
    pub tried: u64,
    /// How many of them broke it.
    pub broken: u64,
    /// The first of these, in words.
    pub told: Vec<String>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    findings: BTreeMap<Promise, Finding>,
    /// Lines of the history.
    pub lines: u64,
}

impl Report {
    pub(crate) fn tried(&mut self, promise: Promise, times: u64) {
        self.findings.entry(promise).or_default().tried += times;
    }

    pub(crate) fn broken(&mut self, promise: Promise, how: impl FnOnce() -> String) {
        let finding = self.findings.entry(promise).or_default();
        finding.broken += 1;
        if finding.told.len() < TOLD_MAX {
            finding.told.push(how());
        }
    }

    /// Of a promise.
    #[must_use]
    pub fn of(&self, promise: Promise) -> Finding {
        self.findings.get(&promise).cloned().unwrap_or_default()
    }

    /// Those that were broken.
    pub fn all_broken(&self) -> impl Iterator<Item = Promise> + '_ {
        self.findings.iter().filter(|(_, finding)| finding.broken > 0).map(|(promise, _)| *promise)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} lines", self.lines)?;
        for promise in Promise::ALL {
            let Finding { tried, broken, told } = self.of(promise);
            let name = promise.name();
            match (tried, broken) {
                (0, 0) => writeln!(f, "{name:<16}  not tried")?,
                (_, 0) => writeln!(f, "{name:<16}  kept, {tried} times")?,
                (_, _) => writeln!(f, "{name:<16}  BROKEN, {broken} times")?,
            }
            for how in told {
                writeln!(f, "{:<16}  - {how}", "")?;
            }
        }
        Ok(())
    }
}
