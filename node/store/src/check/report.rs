//! The findings of a check.

use std::fmt;

use mesh::{
    name::{
        id::{LogId, RoomId},
        number::{Era, Number},
    },
    wire::run::BadRun,
};
use thiserror::Error;

use crate::limits::FINDINGS_MAX;

/// Counts of the rows that were read, and the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How many there are.
    pub found: u64,
    /// Rooms looked at, those of earlier meshes included.
    pub rooms: u64,
    /// Logs.
    pub logs: u64,
    /// Runs, each with one signature.
    pub runs: u64,
    /// Entries.
    pub entries: u64,
    /// Numbers.
    pub numbers: u64,
    /// Whether some of the findings can be repaired.
    pub repairable: bool,
    /// Whether all of it can.
    unrepairable: bool,
}

impl Report {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.found == 0
    }

    /// Something is wrong that [`repair`](super::repair) cannot mend.
    #[must_use]
    pub fn is_beyond_repair(&self) -> bool {
        self.unrepairable
    }

    pub(super) fn add(&mut self, place: Place, problem: impl Into<Problem>) {
        let problem = problem.into();
        self.found += 1;
        if problem.is_repairable() {
            self.repairable = true;
        } else {
            self.unrepairable = true;
        }
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, problem });
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repair = if self.problem.is_repairable() { " (can be repaired)" } else { "" };
        write!(f, "{}: {}{repair}", self.place, self.problem)
    }
}

/// Where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Place {
    /// In no room.
    Store,
    /// A room of which only the store's own integer is known.
    Row { room: u32 },
    /// A room.
    Room { room: RoomId },
    /// A log. `None`: it has no record.
    Log { room: RoomId, log: Option<LogId> },
    /// An entry.
    Entry { room: RoomId, log: Option<LogId>, seq: u64 },
    /// An era.
    Era { room: RoomId, era: Era },
    /// A number.
    Number { room: RoomId, number: Number },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let author = |log: &Option<LogId>| log.map_or("?".to_owned(), |log| log.author.short());
        match self {
            Place::Store => f.write_str("store"),
            Place::Row { room } => write!(f, "room row {room}"),
            Place::Room { room } => write!(f, "room {}", room.to_uuid()),
            Place::Log { room, log } => {
                write!(f, "room {}, log of node {}", room.to_uuid(), author(log))
            }
            Place::Entry { room, log, seq } => {
                write!(f, "room {}, entry {seq} of node {}", room.to_uuid(), author(log))
            }
            Place::Era { room, era } => write!(f, "room {}, {era:?}", room.to_uuid()),
            Place::Number { room, number } => write!(f, "room {}, number {number}", room.to_uuid()),
        }
    }
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Pages do not have the checksums they should.
    #[error("pages of the file are damaged")]
    Pages,
    /// Something could not be read at all, which ended the check.
    #[error("the check ended here: {0}")]
    Unreadable(String),
    /// A record does not have its form.
    #[error("the {0} cannot be read")]
    Record(&'static str),
    /// A record is not its owner's word, or has the place of another.
    #[error("a record is not its owner's, or not where it has to be")]
    Forged,
    /// Bytes apart that are not those of a record.
    #[error("a content that is not its record's")]
    Content,
    /// Rows of a room that is not there.
    #[error("{0} of a room that is not there")]
    NoRoom(&'static str),
    /// Rows of a log that is not there.
    #[error("{0} of a log that is not there")]
    NoLog(&'static str),
    /// The logs of a room are not numbered without gaps, or one is there twice.
    #[error("the list of its logs has a gap, or a log twice")]
    LogList,
    /// An entry is missing below the head.
    #[error("the entry is missing")]
    Missing,
    /// An entry above the head.
    #[error("the entry is above the head of its log")]
    BeyondHead,
    /// A run does not hold: its form, its hashes or its seal.
    #[error("the run that ends here does not hold: {0}")]
    Run(BadRun),
    /// A run has no beginning or no end.
    #[error("the run here has no {0}")]
    HalfRun(&'static str),
    /// A run does not continue what is before it.
    #[error("the run that begins here does not continue what is before it")]
    Chain,
    /// The log's record has another head than its entries.
    #[error("the record of the log's head is not that of its last entry")]
    Head,
    /// Kept as dropped, though it is nothing that is ever dropped.
    #[error("the body is gone, though nothing drops it")]
    Gone,
    /// An era says that more was done than is known, or has a name that no era has.
    #[error("the era contradicts itself")]
    Era,
    /// A number that no era has.
    #[error("no era has this number")]
    NoEra,
    /// A number that no entry of a sequencer gives to this entry.
    #[error("no sequencer has given it to the entry that it names")]
    NotGiven,
    /// A number that a sequencer has given, and that is known, is not there.
    #[error("a sequencer has given it, and it is not there")]
    NumberMissing,
    /// Delivered, and not there, or nothing that is ever delivered.
    #[error("it is in the delivery log, and its entry is not held, or takes no number")]
    DeliveredNothing,
    /// An entry was delivered under two numbers.
    #[error("its entry is in the delivery log under another number, too")]
    DeliveredTwice,
    /// Evidence that proves nothing.
    #[error("the evidence against a log proves nothing")]
    Evidence,
    /// A row that follows from other rows is wrong.
    #[error(transparent)]
    Derived(#[from] Derived),
}

impl Problem {
    /// Whether a repair mends it: the row is made anew, or left out.
    #[must_use]
    pub fn is_repairable(&self) -> bool {
        matches!(self, Problem::Derived(_))
    }
}

/// A problem of a row that follows from other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Derived {
    /// The index from ids to rooms contradicts the rooms.
    #[error("the index of room ids does not lead there")]
    RoomIndex,
    /// An act that is not in the index of acts, or the other way round.
    #[error("the index of acts is wrong")]
    ActIndex,
    /// A message that does not keep the id under which it is found, or the other way round.
    #[error("the index of ids from a ClawChat server is wrong")]
    CallIndex,
    /// The index from entries to numbers contradicts the numbers.
    #[error("the index from entries to numbers is wrong")]
    NumberIndex,
    /// The range of numbers of an entry that is not held contradicts the numbers.
    #[error("the index of numbers whose entries are not held is wrong")]
    NumberRangeIndex,
    /// The room's tip is not where its eras are.
    #[error("the room's tip is not where its eras are")]
    Tip,
    /// A repeated send leads to an entry that is not there.
    #[error("a remembered send leads to no entry")]
    Dedup,
    /// A note is about no vote.
    #[error("a note on a vote leads to no entry")]
    Note,
}
