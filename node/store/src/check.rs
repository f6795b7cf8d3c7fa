//! Looking at every row of a store: each signature, each chain of hashes, each number, each index.
//!
//! What is found is told, nothing is judged: rows that peers caused are checked for being what a node
//! writes, not for being fair. What can be had from other rows is an index and can be repaired
//! ([`repair`]); entries are never touched.

mod indexes;
mod logs;
mod numbers;
mod repair;
mod rooms;

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use mesh::{
    name::{
        id::{LogId, RoomId},
        identity::{Judge, Strict},
        number::{Era, Number},
    },
    wire::run::BadRun,
};
use redb::ReadableDatabase;
use thiserror::Error;

pub use repair::repair;

use crate::{
    copy::Progress,
    error::{OpenError, ReadError},
    limits::FINDINGS_MAX,
    reader::Reader,
    store,
};

/// What was looked at, and what is wrong.
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
    /// Whether some of what was found can be repaired.
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

    /// Something is wrong that [`repair`] cannot mend.
    #[must_use]
    pub fn is_beyond_repair(&self) -> bool {
        self.unrepairable
    }

    fn add(&mut self, place: Place, problem: Problem) {
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
    /// What.
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
        let author = |log: &Option<LogId>| log.map_or("?".to_owned(), |it| it.author.short());
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

/// What is wrong.
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
    /// Rows of a room that is not there.
    #[error("{0} of a room that is not there")]
    NoRoom(&'static str),
    /// Rows of a log that is not there.
    #[error("{0} of a log that is not there")]
    NoLog(&'static str),
    /// The index from ids to rooms is not what the rooms say.
    #[error("the index of room ids does not lead there")]
    RoomIndex,
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
    /// An act that is not in the index of acts, or the other way round.
    #[error("the index of acts is wrong")]
    ActIndex,
    /// A message that does not keep the id under which it is found, or the other way round.
    #[error("the index of ids from a ClawChat server is wrong")]
    CallIndex,
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
    /// The index from entries to numbers is not what the numbers say.
    #[error("the index from entries to numbers is wrong")]
    NumberIndex,
    /// What is known of an entry that is not held is not what the numbers say.
    #[error("the index of numbers whose entries are not held is wrong")]
    ForetoldIndex,
    /// The room's tip is not where its eras are.
    #[error("the room's tip is not where its eras are")]
    Tip,
    /// A repeated send leads to an entry that is not there.
    #[error("a remembered send leads to no entry")]
    Dedup,
    /// A note is about no vote.
    #[error("a note on a vote leads to no entry")]
    Note,
    /// Evidence that proves nothing.
    #[error("the evidence against a log proves nothing")]
    Evidence,
}

impl Problem {
    /// Whether what is wrong can be had from other rows, or left out.
    #[must_use]
    pub fn is_repairable(&self) -> bool {
        match self {
            Problem::RoomIndex
            | Problem::ActIndex
            | Problem::CallIndex
            | Problem::NumberIndex
            | Problem::ForetoldIndex
            | Problem::Tip
            | Problem::Dedup
            | Problem::Note => true,
            Problem::Pages
            | Problem::Unreadable(_)
            | Problem::Record(_)
            | Problem::NoRoom(_)
            | Problem::NoLog(_)
            | Problem::LogList
            | Problem::Missing
            | Problem::BeyondHead
            | Problem::Run(_)
            | Problem::HalfRun(_)
            | Problem::Chain
            | Problem::Head
            | Problem::Gone
            | Problem::Era
            | Problem::NoEra
            | Problem::NotGiven
            | Problem::NumberMissing
            | Problem::DeliveredNothing
            | Problem::DeliveredTwice
            | Problem::Evidence => false,
        }
    }
}

/// Looks at every row of the store in `dir`, which nobody else may have open. Nothing is written, whatever
/// is found. `progress` is called every some thousand rows.
///
/// # Errors
///
/// If there is no store, or it cannot even be opened: see [`OpenError`].
pub fn check(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, OpenError> {
    let mut database = store::look(dir)?;
    let mut report = Report::default();
    // redb answers some damage with a panic. Nothing that it has in hand is used afterwards.
    let whole = catch_unwind(AssertUnwindSafe(|| database.check_integrity()));
    if !matches!(whole, Ok(Ok(true))) {
        report.add(Place::Store, Problem::Pages);
    }
    let rows = AssertUnwindSafe(|| look((&database.begin_read()?, &Strict), progress, &mut report));
    let why = match catch_unwind(rows) {
        Ok(Ok(())) => return Ok(report),
        Ok(Err(error)) => chain(&error),
        Err(_) => "its pages contradict each other".to_owned(),
    };
    report.add(Place::Store, Problem::Unreadable(why));
    Ok(report)
}

impl Reader {
    /// The same of a store that is open, as it is at this moment: what the checksums of pages say is left
    /// out, and ephemeral rooms are.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn check(&self) -> Result<Report, ReadError> {
        self.check_by(&Strict)
    }

    /// The same, with somebody else to judge signatures.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn check_by(&self, judge: &dyn Judge) -> Result<Report, ReadError> {
        let mut report = Report::default();
        look((&*self.databases().disk.read()?, judge), &mut |_| (), &mut report)?;
        Ok(report)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// All rooms, then what is of no room.
fn look(
    (read, judge): (&redb::ReadTransaction, &dyn Judge),
    progress: &mut dyn FnMut(Progress),
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut steps = Steps { judge, progress, at: Progress { rows: 0, of: rooms::rows(read)? } };
    let rooms = rooms::list(read, report)?;
    for (row, (id, record)) in &rooms {
        report.rows_of_room(read, (*row, *id, record), &mut steps)?;
    }
    let known: BTreeMap<u32, RoomId> = rooms.iter().map(|(row, (id, _))| (*row, *id)).collect();
    rooms::strays(read, &known, report)?;
    indexes::of_no_room((read, judge), &known, report)?;
    steps.tell();
    Ok(())
}

impl Report {
    fn rows_of_room(
        &mut self,
        read: &redb::ReadTransaction,
        (row, id, record): (u32, RoomId, &mesh::api::batch::RoomRecord),
        steps: &mut Steps<'_>,
    ) -> Result<(), ReadError> {
        self.rooms += 1;
        let Some(room) = rooms::open(read, (row, id, record), self)? else { return Ok(()) };
        let given = logs::check(&room, steps, self)?;
        numbers::check(&room, &given, steps, self)
    }
}

/// Says how far the check is, and judges signatures.
struct Steps<'a> {
    judge: &'a dyn Judge,
    progress: &'a mut dyn FnMut(Progress),
    at: Progress,
}

impl Steps<'_> {
    fn row(&mut self) {
        self.at.rows += 1;
        if self.at.rows.is_multiple_of(crate::limits::PROGRESS_ROWS) {
            self.tell();
        }
    }

    fn tell(&mut self) {
        (self.progress)(self.at);
    }
}
