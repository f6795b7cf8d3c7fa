//! Looking at every row of a store: each signature, each chain of hashes, each number, each index.
//!
//! It reports and does not judge: rows that peers caused are checked for their form, not for being
//! fair. Rows that follow from others are indexes and can be repaired ([`repair`]); entries are
//! never touched.

mod indexes;
mod logs;
mod numbers;
mod repair;
mod report;
mod rooms;
mod steps;

use std::{collections::BTreeMap, path::Path};

use mesh::name::{
    id::RoomId,
    identity::{Judge, Strict},
};
use redb::ReadableDatabase;

pub use repair::repair;
pub use report::{Derived, Finding, Place, Problem, Report};

use rooms::Listed;
use steps::Steps;

use crate::{
    copy::Progress,
    error::{OpenError, ReadError},
    panics::caught,
    reader::Reader,
    store,
};

/// Looks at every row of the store in `dir`, which nobody else may have open. Nothing is written.
/// `progress` is called every some thousand rows.
///
/// # Errors
///
/// If there is no store, or it cannot even be opened: see [`OpenError`].
pub fn check(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, OpenError> {
    let mut database = store::look(dir)?;
    let mut report = Report::default();
    // redb answers some damage with a panic. Nothing that it has in hand is used afterwards.
    let whole = caught(|| database.check_integrity());
    if !matches!(whole, Ok(Ok(true))) {
        report.add(Place::Store, Problem::Pages);
    }
    let rows = || look(&database.begin_read()?, &Strict, progress, &mut report);
    let why = match caught(rows) {
        Ok(Ok(())) => return Ok(report),
        Ok(Err(error)) => chain(&error),
        Err(_) => "its pages contradict each other".to_owned(),
    };
    report.add(Place::Store, Problem::Unreadable(why));
    Ok(report)
}

impl Reader {
    /// The same of a store that is open, as it is at this moment, without the checksums of pages
    /// and without ephemeral rooms.
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
        look(&*self.databases().disk.read()?, judge, &mut |_| (), &mut report)?;
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
    read: &redb::ReadTransaction,
    judge: &dyn Judge,
    progress: &mut dyn FnMut(Progress),
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut steps = Steps { judge, progress, at: Progress { rows: 0, of: rooms::rows(read)? } };
    let rooms = rooms::list(read, report)?;
    for room in &rooms {
        rows_of_room(read, room, &mut steps, report)?;
    }
    let known: BTreeMap<u32, RoomId> = rooms.iter().map(|room| (room.row, room.id)).collect();
    rooms::strays(read, &known, report)?;
    indexes::of_no_room(read, judge, &known, report)?;
    steps.tell();
    Ok(())
}

fn rows_of_room(
    read: &redb::ReadTransaction,
    room: &Listed,
    steps: &mut Steps<'_>,
    report: &mut Report,
) -> Result<(), ReadError> {
    report.rooms += 1;
    let Some(room) = rooms::open(read, room, report)? else { return Ok(()) };
    let given = logs::check(&room, steps, report)?;
    numbers::check(&room, &given, steps, report)
}
