//! Clients that come from another node with a cursor: what they are proven to have seen, and what
//! is served to them. The rules are in `docs/numbering.md`, "Roaming".

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    batch::{EraRecord, Fate},
    id::{At, RoomId},
    number::{Era, Number},
};

use crate::{
    error::ReadError,
    limits::PAGE_ROWS_MAX,
    reader::{Reader, Row},
    schema::Numbers,
    view::View,
};

/// Whether a cursor can be served from the delivery log as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// [`Reader::page_since`] serves it.
    Here,
    /// It is of another node: [`Reader::roam`].
    Foreign,
}

/// What is served to a cursor of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roam {
    /// Ascending, each under its smallest number above the cursor. Nothing that is still to be
    /// delivered live.
    pub rows: Vec<Row>,
    /// The page is full and there is more: ask again from the last row's number.
    pub more: bool,
    /// Highest number, above the tip, of an entry that this node will pass over because it was
    /// delivered here before: live delivery will not bring it to this client. Ask again, from the
    /// client's cursor, when the tip or the era's `done` has passed it.
    pub later: Option<Number>,
    /// Entries that the client is not proven to have seen and that have no number above its cursor:
    /// they need one (`Command::Roam`) before the rows are served.
    pub unproven: Vec<At>,
    /// A new era above the cursor is needed first.
    pub needs_claim: bool,
}

impl Reader {
    /// Whether a cursor can be served as it is: it is zero, in the delivery log, or ahead of the tip
    /// in the tip's own era.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn serves(&self, room: RoomId, cursor: Number) -> Result<Cursor, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Cursor::Here) };
        if cursor == Number::ZERO || matches!(view.number(cursor)?, Some((_, Fate::Delivered))) {
            return Ok(Cursor::Here);
        }
        let tip = view.record()?.tip;
        let ahead = cursor > tip && cursor.era() == tip.era();
        Ok(if ahead { Cursor::Here } else { Cursor::Foreign })
    }

    /// The oldest `limit` (at most [`PAGE_ROWS_MAX`]) rows that a client with a cursor of another
    /// node may not have seen, and what stands in the way of serving it. Never skips; may repeat.
    /// Any cursor may be given: for one that is served here in calm weather, the rows are those of
    /// [`Reader::page_since`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn roam(&self, room: RoomId, cursor: Number, limit: usize) -> Result<Roam, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Roam::default()) };
        let eras: BTreeMap<Era, EraRecord> = view.eras()?.into_iter().collect();
        let mut roam = Roam::default();
        serve(&view, &eras, cursor, limit.min(PAGE_ROWS_MAX), &mut roam)?;
        let seen = Seen::new(&eras, cursor);
        roam.unproven = unproven(&view, &eras, &seen)?;
        let highest = eras.keys().next_back().copied().unwrap_or(Era::HOME);
        roam.needs_claim = !roam.unproven.is_empty() || cursor.era() > highest;
        Ok(roam)
    }
}

/// Fills in rows, `more` and `later`.
fn serve(
    view: &View,
    eras: &BTreeMap<Era, EraRecord>,
    cursor: Number,
    limit: usize,
    roam: &mut Roam,
) -> Result<(), ReadError> {
    let tip = view.record()?.tip;
    let done = |number: Number| {
        number <= tip || eras.get(&number.era()).is_some_and(|era| number.n() <= era.done)
    };
    let mut live = false;
    for numbered in view.numbers(Number(cursor.0.saturating_add(1)), Number(u64::MAX))? {
        let (number, at, _) = numbered?;
        // From the first number on that is still to be delivered nothing is served: the client's
        // cursor would pass it.
        live = live || !done(number);
        let numbers = view.numbers_of(at)?;
        if numbers.above(cursor) != Some(number) {
            continue;
        }
        if live {
            if numbers.delivered().is_some_and(|it| it <= cursor) {
                roam.later = Some(number);
            }
        } else if roam.rows.len() < limit {
            roam.rows.extend(view.row(number, at)?);
        } else {
            roam.more = true;
            return Ok(());
        }
    }
    Ok(())
}

/// What a client with this cursor has seen for certain.
struct Seen {
    cursor: Number,
    /// How far in the eras below the cursor's own.
    cut: BTreeMap<Era, u64>,
}

impl Seen {
    fn new(eras: &BTreeMap<Era, EraRecord>, cursor: Number) -> Seen {
        Seen { cursor, cut: cut(eras, cursor.era()) }
    }

    /// By this number alone.
    fn proves(&self, number: Number, fate: Fate) -> bool {
        let era = number.era();
        let reached = if era == self.cursor.era() {
            number <= self.cursor
        } else {
            self.cut.get(&era).is_some_and(|n| number.n() <= *n)
        };
        reached && fate != Fate::Hole
    }

    /// Whether an entry with these numbers is neither proven seen nor served above the cursor.
    fn misses(&self, numbers: &Numbers) -> bool {
        numbers.above(self.cursor).is_none()
            && !numbers.0.iter().any(|(number, fate)| self.proves(*number, *fate))
    }
}

/// How far, in each lower era, everybody is who has entered `era`.
///
/// A cut names only what changed since the cut before. So an era that it does not name counts with
/// the highest of what was reached by those who entered an era that it does name (they had to get
/// there first), and of what all eras agree on that can be the one before. Not simply with the
/// highest cut of any lower era: an era of the other side of a split is lower too, and its cut says
/// nothing of this side.
fn cut(eras: &BTreeMap<Era, EraRecord>, era: Era) -> BTreeMap<Era, u64> {
    let mut cuts: BTreeMap<Era, BTreeMap<Era, u64>> = BTreeMap::new();
    for (&at, record) in eras.range(..=era) {
        let mut cut: BTreeMap<Era, u64> = BTreeMap::new();
        // The era before is the highest its claimer knew, one `c` below: it is among these.
        let named = record.cut.iter().filter(|it| it.era.c() + 1 == at.c()).map(|it| it.era).max();
        let mut before = eras
            .range(named.unwrap_or(Era::HOME)..at)
            .filter(|(it, _)| it.c() + 1 == at.c())
            .filter_map(|(it, _)| cuts.get(it));
        if let Some(first) = before.next() {
            cut.clone_from(first);
            for other in before {
                cut.retain(|era, _| other.contains_key(era));
                for (era, n) in &mut cut {
                    *n = (*n).min(other[era]);
                }
            }
        }
        for reached in record.cut.iter().filter(|it| it.n > 0) {
            for (era, n) in cuts.get(&reached.era).into_iter().flatten() {
                let highest = cut.entry(*era).or_default();
                *highest = (*highest).max(*n);
            }
        }
        for reached in &record.cut {
            cut.insert(reached.era, reached.n);
        }
        cuts.insert(at, cut);
    }
    cuts.remove(&era).unwrap_or_default()
}

/// Entries held here that the client may not have seen and that no number above its cursor names.
/// They have numbers, all of them in eras below the cursor's and beyond its cut.
fn unproven(
    view: &View,
    eras: &BTreeMap<Era, EraRecord>,
    seen: &Seen,
) -> Result<Vec<At>, ReadError> {
    let mut found = BTreeSet::new();
    let mut missing = Vec::new();
    for (era, record) in eras.range(..seen.cursor.era()) {
        let from = seen.cut.get(era).copied().unwrap_or(0) + 1;
        if from > record.known {
            continue;
        }
        for numbered in view.numbers(era.number(from), era.number(record.known))? {
            let (_, at, _) = numbered?;
            if !found.contains(&at)
                && seen.misses(&view.numbers_of(at)?)
                && view.facts(at)?.is_some_and(|facts| facts.visible)
            {
                found.insert(at);
                missing.push(at);
            }
        }
    }
    Ok(missing)
}
