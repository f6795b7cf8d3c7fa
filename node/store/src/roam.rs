//! Clients that come from another node with a cursor: the entries that they are proven to have
//! seen, and the rows that they are served. The rules are in `docs/numbering.md`, "Roaming".

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::batch::{EraRecord, Fate},
    name::{
        id::{LocalRef, RoomId},
        number::{Era, Number},
    },
};

use crate::{
    error::ReadError,
    limits::{
        AT_ONCE_ERAS_MAX, AT_ONCE_ROWS_MAX, PAGE_AHEAD_NUMBERS_MAX, PAGE_ROWS_MAX,
        UNPROVEN_NUMBERS_MAX,
    },
    reader::Reader,
    row::Row,
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

/// The answer to a cursor of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roam {
    /// Ascending, each under its smallest number above the cursor. Nothing that is still to be
    /// delivered live.
    pub rows: Vec<Row>,
    /// The page is full and there is more: ask again from the last row's number.
    pub more: bool,
    /// Highest number, above the tip, of an entry that this node will pass over because it was
    /// delivered here before: live delivery will not bring it to this client. Ask again, from the
    /// client's cursor, when the tip or the era's `done` has passed it. Or a number of an entry that
    /// others have given, and that is still to come here: ask again in a moment.
    pub later: Option<Number>,
    /// Entries that the client is not proven to have seen and that have no number above its cursor,
    /// each with the number that it was delivered under here, if it was: the node may have to give
    /// them one (`Command::Roam`) before the rows are served.
    pub unproven: Vec<(LocalRef, Option<Number>)>,
    /// There are such entries, or nothing is known of the cursor's era: the node is to be asked
    /// first.
    pub needs_claim: bool,
}

impl Reader {
    /// Whether a cursor can be served as it is: it is zero, in the delivery log, or ahead of the
    /// tip in the tip's own era. Right for a client that has read here all along; one that comes
    /// from another node may have been given less below the same cursor: [`Reader::serves_roamer`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn serves(&self, room: RoomId, cursor: Number) -> Result<Cursor, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Cursor::Here) };
        let known = view.number(cursor)?;
        if cursor == Number::ZERO || matches!(known, Some((_, Fate::Delivered))) {
            return Ok(Cursor::Here);
        }
        let tip = view.record()?.tip;
        if known.is_none() && is_done(&view, cursor)? {
            return before_a_gap(&view, cursor);
        }
        let ahead = cursor > tip && cursor.era() == tip.era();
        Ok(if ahead { Cursor::Here } else { Cursor::Foreign })
    }

    /// As [`Reader::serves`], for a client that may have its cursor from any node: `Here` only if
    /// nothing was delivered here below the cursor that the other node may have had to deliver
    /// above it. Until a split has healed everywhere, that is not so of every cursor in the
    /// delivery log.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn serves_roamer(&self, room: RoomId, cursor: Number) -> Result<Cursor, ReadError> {
        if self.serves(room, cursor)? == Cursor::Foreign {
            return Ok(Cursor::Foreign);
        }
        let Some(view) = self.view(room)? else { return Ok(Cursor::Here) };
        let eras: BTreeMap<Era, EraRecord> = view.eras()?.into_iter().collect();
        let seen = Seen::new(&eras, cursor);
        if passes_over(&view, &eras, &seen)? {
            return Ok(Cursor::Foreign);
        }
        let proven = Proven::of(&eras, cursor);
        if self.is_proven(room, &proven) {
            return Ok(Cursor::Here);
        }
        if !below(&view, &eras, &seen)?.unproven.is_empty() {
            return Ok(Cursor::Foreign);
        }
        self.note_proven(room, proven);
        Ok(Cursor::Here)
    }

    /// The same page as [`Reader::page_since`], if it is plain that a cursor from any node can be
    /// served as it is ([`Reader::serves_roamer`]) and that neither takes long: some ten
    /// microseconds and one for each row. `None`: that has to be looked at. At most
    /// [`AT_ONCE_ROWS_MAX`] rows.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn page_at_once(
        &self,
        room: RoomId,
        after: Number,
        limit: usize,
    ) -> Result<Option<Vec<Row>>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Some(Vec::new())) };
        if limit > AT_ONCE_ROWS_MAX || !self.is_plain(&view, after)? {
            return Ok(None);
        }
        let from = after.max(view.pruned()?);
        let mut numbers = view.numbers(Number(from.0.saturating_add(1)), Number(u64::MAX))?;
        let mut rows = Vec::with_capacity(limit);
        for numbered in numbers.by_ref().take(2 * AT_ONCE_ROWS_MAX) {
            let (number, at, fate) = numbered?;
            if rows.len() == limit {
                return Ok(Some(rows));
            }
            if fate == Fate::Delivered {
                rows.extend(view.row(number, at)?);
            }
        }
        let whole = rows.len() == limit || numbers.next().is_none();
        Ok(whole.then_some(rows))
    }

    /// Whether it is plain that a cursor from any node can be served here.
    fn is_plain(&self, view: &View, cursor: Number) -> Result<bool, ReadError> {
        if cursor == Number::ZERO {
            return Ok(true);
        }
        if !matches!(view.number(cursor)?, Some((_, Fate::Delivered))) {
            return Ok(false);
        }
        // A member can open as many as it likes.
        let Some(eras) = view.few_eras(AT_ONCE_ERAS_MAX)? else { return Ok(false) };
        let lower = eras.range(..cursor.era()).next().is_some();
        let proven = !lower || self.is_proven(view.id, &Proven::of(&eras, cursor));
        let ahead: u64 = eras.values().map(|era| era.known.saturating_sub(era.done)).sum();
        if !proven || ahead > AT_ONCE_ROWS_MAX as u64 || !is_one_to_one(view, &eras)? {
            return Ok(false);
        }
        Ok(!passes_over(view, &eras, &Seen::new(&eras, cursor))?)
    }

    /// The oldest `limit` (at most [`PAGE_ROWS_MAX`]) rows that a client with a cursor of another
    /// node may not have seen, and the obstacles to serving it. Never skips; may repeat; may be
    /// more than `limit` where a shorter page would have to end with a cursor that says too much.
    /// Any cursor may be given: for one that is served here in calm weather, the rows are those of
    /// [`Reader::page_since`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn roam(&self, room: RoomId, cursor: Number, limit: usize) -> Result<Roam, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(Roam::default()) };
        let eras: BTreeMap<Era, EraRecord> = view.eras()?.into_iter().collect();
        let seen = Seen::new(&eras, cursor);
        let Below { unproven, lacking } = below(&view, &eras, &seen)?;
        let page = Page { lacking, ..Page::default() };
        let mut roam = serve(&view, &eras, &seen, limit.min(PAGE_ROWS_MAX), page)?;
        roam.unproven = unproven;
        roam.needs_claim = !roam.unproven.is_empty() || !eras.contains_key(&cursor.era());
        Ok(roam)
    }
}

/// Whether its era has got as far here.
fn is_done(view: &View, cursor: Number) -> Result<bool, ReadError> {
    let mut eras = view.eras()?.into_iter();
    Ok(eras.any(|(era, record)| era == cursor.era() && cursor.n() <= record.done))
}

/// A number that names nothing (numbering.md, rule 1): there is nothing to be seen of it, so it
/// says what the one before it says that names something.
fn before_a_gap(view: &View, cursor: Number) -> Result<Cursor, ReadError> {
    let before = view.numbers(cursor.era().number(1), cursor)?.next_back().transpose()?;
    Ok(match before {
        None if cursor.era() != Era::HOME => Cursor::Foreign,
        None | Some((_, _, Fate::Delivered)) => Cursor::Here,
        Some((_, _, Fate::Assigned | Fate::Hole)) => Cursor::Foreign,
    })
}

/// The bound up to which cursors of an era prove everything: a higher cursor of the same era proves
/// at least as much, as long as nothing more is known of the eras below. Saves most reads after a
/// split from searching the eras of that split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proven {
    era: Era,
    /// Numbers known in all lower eras: they only grow.
    below: u64,
    from: Number,
}

impl Proven {
    fn of(eras: &BTreeMap<Era, EraRecord>, cursor: Number) -> Proven {
        let era = cursor.era();
        let below = eras.range(..era).map(|(_, record)| record.known).sum();
        Proven { era, below, from: cursor }
    }

    /// Whether a cursor that this was found out for says the same of `other`.
    pub(crate) fn covers(&self, other: &Proven) -> bool {
        (self.era, self.below) == (other.era, other.below) && self.from <= other.from
    }
}

/// Whether every number up to which eras are done, and that names something, was a delivery.
fn is_one_to_one(view: &View, eras: &BTreeMap<Era, EraRecord>) -> Result<bool, ReadError> {
    let done: u64 = eras.values().map(|era| era.done.saturating_sub(era.empty)).sum();
    Ok(done == view.record()?.delivered)
}

/// Whether some entry was delivered here at or below the cursor, is not proven to be seen, and has
/// a number above it, under which it is passed over here: another node may have had to deliver it
/// under that one.
fn passes_over(
    view: &View,
    eras: &BTreeMap<Era, EraRecord>,
    seen: &Seen,
) -> Result<bool, ReadError> {
    let cursor = seen.cursor;
    let above = Number(cursor.0.saturating_add(1));
    let one_to_one = is_one_to_one(view, eras)?;
    for (era, record) in eras.range(cursor.era()..) {
        // Where every number was a delivery, only what is still to come can be passed over.
        let first = if one_to_one { record.done + 1 } else { 1 };
        let from = era.number(first).max(above);
        for numbered in view.numbers(from, era.number(record.known))? {
            let (_, at, fate) = numbered?;
            if fate != Fate::Delivered {
                let numbers = view.numbers_of(at)?;
                let before = numbers.delivered().is_some_and(|number| number <= cursor);
                if before && !seen.has(&numbers) && has_body(view, at)? {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Rows, `more` and `later`. `page` knows the entries that are lacking.
fn serve(
    view: &View,
    eras: &BTreeMap<Era, EraRecord>,
    seen: &Seen,
    limit: usize,
    mut page: Page,
) -> Result<Roam, ReadError> {
    let mut roam = Roam::default();
    // Bodies up to here are dropped: entries that have one are served under a number above.
    let cursor = seen.cursor.max(view.pruned()?);
    let tip = view.record()?.tip;
    let done = |number: Number| {
        number <= tip || eras.get(&number.era()).is_some_and(|era| number.n() <= era.done)
    };
    let ahead = if is_one_to_one(view, eras)? { 0 } else { PAGE_AHEAD_NUMBERS_MAX };
    let (mut live, mut beyond) = (false, 0);
    for numbered in view.numbers(Number(cursor.0.saturating_add(1)), Number(u64::MAX))? {
        let (number, at, _) = numbered?;
        // From the first number on that is still to be delivered nothing is served: the client's
        // cursor would pass it.
        live = live || !done(number);
        beyond += usize::from(page.rows.len() >= limit);
        let numbers = view.numbers_of(at)?;
        if numbers.above(cursor) != Some(number) || seen.has(&numbers) {
            continue;
        }
        let Some(gist) = view.gist(at)? else {
            if !live {
                page.lacks(number);
            }
            continue;
        };
        if gist.gone.is_some() {
            continue;
        }
        if !live {
            // Or there is, and it is too far away to be found.
            roam.more = page.rows.len() >= PAGE_ROWS_MAX || beyond > ahead;
            if roam.more {
                break;
            }
            page.rows.push((number, at));
        } else if numbers.delivered().is_some_and(|number| number <= cursor) {
            roam.later = Some(number);
        } else {
            continue;
        }
        page.goes_on_with(numbers, cursor);
    }
    let end = match page.end(eras, limit) {
        Some(end) => {
            roam.more |= end < page.rows.len();
            end
        }
        None if page.rows.is_empty() => 0,
        None => {
            // The missing entries may come.
            roam.more = false;
            roam.later = roam.later.or(page.missing());
            limit.min(page.rows.len())
        }
    };
    if !roam.more && roam.later.is_none() && page.waits_before_live(eras, cursor) {
        roam.later = page.missing();
    }
    for (number, at) in page.rows.into_iter().take(end) {
        roam.rows.extend(view.row(number, at)?);
    }
    Ok(roam)
}

/// Rows that may be served to a cursor, and the places where a page may end.
///
/// The last number of a page is the client's next cursor, and proves the entries that the cut of
/// its era names. An entry that was numbered again may be within that cut, and still be to come,
/// under a number of a higher era: if the client then went elsewhere, it would never get it. So a
/// page ends where its cursor says nothing wrong, and is rather longer than was asked for.
#[derive(Debug, Default)]
struct Page {
    rows: Vec<(Number, LocalRef)>,
    /// How many there are, with those that live delivery has still to pass.
    len: usize,
    /// Those that have a number up to the cursor, too, with their places from 1.
    again: Vec<(usize, Numbers)>,
    /// Where each era goes on beyond an entry that is not here: other nodes have given that one
    /// under this number.
    beyond: BTreeMap<Era, usize>,
    /// The first of those numbers.
    lacks: Option<Number>,
    /// Entries that are not here and have numbers up to the cursor: no page ends in an era whose cut
    /// names one of these.
    lacking: Vec<Numbers>,
}

impl Page {
    fn goes_on_with(&mut self, numbers: Numbers, cursor: Number) {
        self.len += 1;
        // A cut that names a number above the cursor is of a higher era, and below that this is
        // served.
        if numbers.all().any(|number| number <= cursor) {
            self.again.push((self.len, numbers));
        }
    }

    fn lacks(&mut self, number: Number) {
        self.beyond.entry(number.era()).or_insert(self.len);
        self.lacks = self.lacks.or(Some(number));
    }

    /// A number of an entry for which the page waits.
    fn missing(&self) -> Option<Number> {
        self.lacks.or_else(|| self.lacking.first().and_then(Numbers::lowest))
    }

    /// Whether live messages of the current era would say that what is missing here was given.
    fn waits_before_live(&self, eras: &BTreeMap<Era, EraRecord>, cursor: Number) -> bool {
        let current = eras.keys().next_back().copied().unwrap_or(Era::HOME);
        if self.lacking.is_empty() || current <= cursor.era() {
            return false;
        }
        let cuts = cuts(eras, current);
        self.lacking.iter().any(|numbers| within(&cuts[&current], numbers))
    }

    /// How many rows to serve: at most `limit` if that can be. `None`: wherever a page ended, its
    /// cursor would say too much.
    fn end(&self, eras: &BTreeMap<Era, EraRecord>, limit: usize) -> Option<usize> {
        // Up to which place an era's cut names what is to come. `None`: it names what is not here.
        let mut named: BTreeMap<Era, Option<usize>> = BTreeMap::new();
        let highest = self.rows.last().map_or(Era::HOME, |(number, _)| number.era());
        let cuts = cuts(eras, highest);
        let mut ends = Vec::with_capacity(self.rows.len());
        for (place, (number, _)) in (1..).zip(&self.rows) {
            let era = number.era();
            if !named.contains_key(&era) {
                if named.len() >= AT_ONCE_ERAS_MAX {
                    break;
                }
                // By this cut alone, and also if it has a number in this era: another node may not
                // have heard of the eras between, nor of that number yet.
                let is_named = |numbers: &Numbers| within(&cuts[&era], numbers);
                let last = self.again.iter().rev().find(|(_, numbers)| is_named(numbers));
                let is_here = !self.lacking.iter().any(is_named);
                named.insert(era, is_here.then(|| last.map_or(0, |number| number.0)));
            }
            let whole = self.beyond.get(&era).is_none_or(|end| place <= *end);
            if named[&era].is_some_and(|last| last <= place) && whole {
                ends.push(place);
            }
        }
        let within = ends.partition_point(|end| *end <= limit);
        let end = within.checked_sub(1).or(Some(within)).and_then(|end| ends.get(end));
        end.copied()
    }
}

/// Whether there is anything to be served of an entry: not if it is old.
fn has_body(view: &View, at: LocalRef) -> Result<bool, ReadError> {
    Ok(view.gist(at)?.is_some_and(|gist| gist.gone.is_none()))
}

/// Entries that a client with this cursor has seen for certain.
pub(crate) struct Seen {
    cursor: Number,
    /// How far in the eras below the cursor's own.
    cut: BTreeMap<Era, u64>,
}

impl Seen {
    pub(crate) fn new(eras: &BTreeMap<Era, EraRecord>, cursor: Number) -> Seen {
        Seen { cursor, cut: cut(eras, cursor.era()) }
    }

    pub(crate) fn has(&self, numbers: &Numbers) -> bool {
        own(numbers, self.cursor)
            || (numbers.is_free_of(self.cursor.era()) && within(&self.cut, numbers))
    }

    /// The number above `number` under which the client is given an entry, if so it is: another
    /// node may have given it under `number`.
    pub(crate) fn given_later(
        &self,
        view: &View,
        number: Number,
        at: LocalRef,
    ) -> Result<Option<Number>, ReadError> {
        let numbers = view.numbers_of(at)?;
        let later = numbers.delivered().filter(|delivered| *delivered > number);
        Ok(later.filter(|_| !self.has(&numbers)))
    }

    /// Whether what was delivered here up to the cursor that a client came with is given under
    /// `number`, now that it has read up to `after`.
    pub(crate) fn is_owed(
        &self,
        view: &View,
        number: Number,
        at: LocalRef,
        after: Number,
    ) -> Result<bool, ReadError> {
        let numbers = view.numbers_of(at)?;
        let before = numbers.delivered().is_some_and(|number| number <= self.cursor);
        // The first one, so that it is given once. One that it has passed may have become known too
        // late.
        let first = numbers.above(after) == Some(number);
        Ok(before && first && !self.has(&numbers) && !own(&numbers, after) && has_body(view, at)?)
    }
}

/// Whether a cut names one of these numbers.
fn within(cut: &BTreeMap<Era, u64>, numbers: &Numbers) -> bool {
    let within = |(number, fate): &(Number, Fate)| {
        *fate != Fate::Hole && cut.get(&number.era()).is_some_and(|n| number.n() <= *n)
    };
    numbers.0.iter().any(within)
}

/// Whether an entry with these numbers was given up to a cursor, in the cursor's own era.
fn own(numbers: &Numbers, cursor: Number) -> bool {
    let own = |(number, fate): &(Number, Fate)| {
        number.era() == cursor.era() && *number <= cursor && *fate != Fate::Hole
    };
    numbers.0.iter().any(own)
}

/// How far in each lower era everything was *delivered* to a client whose cursor is in `era`, and
/// not merely passed over.
///
/// A node that goes on in a lower era after it has entered a higher one passes its numbers over:
/// their entries are late there and get fresh numbers. So a number counts only if it lies within
/// the cuts of all eras between its own and the client's: whichever of them the client's node
/// entered first, it had got so far by then. (An entry that was late has a fresh number in a higher
/// era, and is proven by that one.)
fn cut(eras: &BTreeMap<Era, EraRecord>, era: Era) -> BTreeMap<Era, u64> {
    if !eras.contains_key(&era) {
        return BTreeMap::new();
    }
    let mut lowest: BTreeMap<Era, u64> = BTreeMap::new();
    for (at, cut) in cuts(eras, era) {
        for (lower, n) in &mut lowest {
            *n = (*n).min(cut.get(lower).copied().unwrap_or(0));
        }
        lowest.insert(at, u64::MAX);
    }
    lowest.remove(&era);
    lowest
}

/// The whole cuts of all eras up to one.
fn cuts(eras: &BTreeMap<Era, EraRecord>, upto: Era) -> BTreeMap<Era, BTreeMap<Era, u64>> {
    let mut cuts = BTreeMap::new();
    for (&at, record) in eras.range(..=upto) {
        let cut = whole_cut(&cuts, at, record);
        cuts.insert(at, cut);
    }
    cuts
}

/// An era's cut, completed: it names only changes since the cut of the era before, the highest that
/// its claimer knew. `cuts`: of all lower eras.
fn whole_cut(
    cuts: &BTreeMap<Era, BTreeMap<Era, u64>>,
    era: Era,
    record: &EraRecord,
) -> BTreeMap<Era, u64> {
    // The era before is one `c` below, and not below another such that the cut names. If several
    // can be meant, only the entries in all of them count.
    let named = record.cut.iter().filter(|cut| cut.era.c() + 1 == era.c()).map(|cut| cut.era).max();
    let mut before = cuts
        .range(named.unwrap_or(Era::HOME)..)
        .filter(|(after, _)| after.c() + 1 == era.c())
        .map(|(_, cut)| cut);
    let mut whole = before.next().cloned().unwrap_or_default();
    for other in before {
        whole.retain(|era, _| other.contains_key(era));
        for (era, n) in &mut whole {
            *n = (*n).min(other[era]);
        }
    }
    whole.extend(record.cut.iter().map(|cut| (cut.era, cut.n)));
    whole
}

/// Entries with numbers in eras below the cursor's and beyond its cut: the client may not have seen
/// them.
#[derive(Debug, Default)]
struct Below {
    /// Those that are here, have a body, and no number above the cursor.
    unproven: Vec<(LocalRef, Option<Number>)>,
    /// Those that are not here. Some node has them, and has given them under these numbers.
    lacking: Vec<Numbers>,
}

/// Looks at the highest [`UNPROVEN_NUMBERS_MAX`] numbers.
fn below(view: &View, eras: &BTreeMap<Era, EraRecord>, seen: &Seen) -> Result<Below, ReadError> {
    let mut found = BTreeSet::new();
    let mut below = Below::default();
    let mut left = UNPROVEN_NUMBERS_MAX;
    for (era, record) in eras.range(..seen.cursor.era()).rev() {
        let from = seen.cut.get(era).copied().unwrap_or(0) + 1;
        if from > record.known {
            continue;
        }
        let numbers = view.numbers(era.number(from), era.number(record.known))?;
        for numbered in numbers.rev().take(left) {
            let (_, at, _) = numbered?;
            left -= 1;
            let numbers = view.numbers_of(at)?;
            if seen.has(&numbers) || !found.insert(at) {
                continue;
            }
            let is_above = numbers.above(seen.cursor).is_some();
            match view.gist(at)? {
                None => below.lacking.push(numbers),
                Some(gist) if is_above || !gist.facts.visible || gist.gone.is_some() => {}
                Some(_) => below.unproven.push((at, numbers.delivered())),
            }
        }
    }
    below.unproven.reverse();
    Ok(below)
}
