//! Findings in a file while it is looked at: rows that cannot be brought until somebody decides,
//! and the list.

use std::fmt;

use import::BadRow;

use super::ledger::{Ledger, Thing};

/// Refusals that are told; more are counted.
const SHOWN: usize = 50;

/// Rows that cannot be brought, and why.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    told: Vec<String>,
    all: u64,
}

impl Refusals {
    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        match self.all.saturating_sub(self.told.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
    }
}

/// The thing that a row would have become, its table, and its id.
pub(super) type Which<'w> = (Thing, &'static str, &'w str);

/// See the module. All that is refused is a row, so that `--skip-refused` can leave it out.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) refusals: Refusals,
    pub(super) ledger: Ledger,
    /// Rows that are refused are left out instead.
    skips: bool,
}

impl Findings {
    pub(super) fn new(skips: bool) -> Findings {
        Findings { skips, ..Findings::default() }
    }

    /// A row, and the thing that it would have become.
    pub(super) fn bad(&mut self, thing: Thing, row: BadRow) {
        if self.skips {
            self.ledger.leave(thing, row.why, row.id.as_deref());
        } else {
            self.refuse(thing, row.to_string());
        }
    }

    /// The same, by its table and id.
    pub(super) fn row(&mut self, which: Which<'_>, why: impl fmt::Display) {
        self.row_or(which, why, "");
    }

    /// The same, with advice, if the row is not left out anyway.
    pub(super) fn row_or(&mut self, which: Which<'_>, why: impl fmt::Display, advice: &str) {
        let (thing, table, id) = which;
        let row = BadRow { table, id: Some(id.to_owned()), why: why.to_string() };
        if self.skips || advice.is_empty() {
            self.bad(thing, row);
        } else {
            self.refuse(thing, format!("{row}: {advice}"));
        }
    }

    fn refuse(&mut self, thing: Thing, what: String) {
        self.ledger.refused.add(thing, 1);
        self.refusals.all += 1;
        if self.refusals.told.len() < SHOWN {
            self.refusals.told.push(what);
        }
    }

    /// Of rows those that can be read.
    pub(super) fn readable<T>(&mut self, thing: Thing, rows: Vec<Result<T, BadRow>>) -> Vec<T> {
        let mut readable = Vec::new();
        for row in rows {
            match row {
                Ok(row) => readable.push(row),
                Err(bad) => self.bad(thing, bad),
            }
        }
        readable
    }
}

/// `Err`: the texts of all checks that a row does not pass.
pub(super) fn all_well(checks: &[(bool, String)]) -> Result<(), String> {
    let wrong: Vec<&str> =
        checks.iter().filter(|(well, _)| !well).map(|(_, why)| why.as_str()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
