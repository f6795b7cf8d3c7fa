//! Finding: segment by segment, the newest first, as far as a page goes. The index says where to look; the store says whether a
//! message is there, and its text whether it is meant.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::{
        batch::Fate,
        search::{Spot, Wanted, is_sealed},
    },
    limits::SEARCH_PAGE_MAX,
    name::{id::RoomId, number::Number},
};

use super::{
    Index,
    part::{IndexError, Part, Segments},
    segment::{Draft, agent_word, room_word},
};
use crate::{
    databases::Snapshot,
    error::ReadError,
    limits::{SEARCH_PLACES_MAX, SEARCH_ROWS_MAX},
    row::Row,
    view::View,
};

/// A cursor that follows from no message that was shown is as coarse as this.
const MINUTE_MS: u64 = 60_000;

/// A page of messages that were found, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The messages.
    pub rows: Vec<T>,
    /// There may be more behind this one. A page may be short, or empty, and have one.
    pub next: Option<Spot>,
    /// Something that was delivered a while ago is not in the index yet.
    pub behind: bool,
}

/// A place to look: a segment of a part, or the messages of one that are in none yet.
#[derive(Clone, Copy)]
enum Place {
    Segment(usize, u64),
    Tail(usize),
}

/// All places of one moment.
struct Moment {
    segments: Vec<Segments>,
    tails: Vec<Draft>,
    /// Time of the newest message, time of the oldest.
    places: Vec<(u64, u64, Place)>,
}

impl Moment {
    fn of(parts: [&Part; 2], terms: &Terms) -> Result<Moment, IndexError> {
        let mut moment = Moment { segments: Vec::new(), tails: Vec::new(), places: Vec::new() };
        for (i, part) in parts.into_iter().enumerate() {
            moment.segments.push(Segments::of(&part.snapshot()?)?);
            let spans = part.spans.iter();
            moment.places.extend(
                spans.map(|span| (span.newest_ms, span.oldest_ms, Place::Segment(i, span.id))),
            );
            // Found at once: it changes.
            let mut found = Draft::default();
            let places = terms.places(
                |word| Ok(part.tail.places(word)),
                |beginning| Ok(part.tail.places_of_beginning(beginning)),
            )?;
            match places {
                Some(places) => {
                    let spots = places.iter().filter_map(|at| part.tail.spots.get(*at as usize));
                    found.spots.extend(spots);
                }
                None => found.spots.clone_from(&part.tail.spots),
            }
            let (newest_ms, oldest_ms) = found.times();
            if !found.spots.is_empty() {
                moment.places.push((newest_ms, oldest_ms, Place::Tail(i)));
            }
            moment.tails.push(found);
        }
        moment.places.sort_by_key(|(newest_ms, ..)| std::cmp::Reverse(*newest_ms));
        Ok(moment)
    }

    fn each(
        &self,
        place: Place,
        terms: &Terms,
        seen: &mut dyn FnMut(Spot),
    ) -> Result<(), ReadError> {
        match place {
            Place::Tail(part) => {
                let spots = self.tails.get(part).map(|tail| &tail.spots);
                spots.into_iter().flatten().copied().for_each(seen);
                Ok(())
            }
            Place::Segment(part, id) => {
                let Some(segments) = self.segments.get(part) else { return Ok(()) };
                let places = terms.places(
                    |word| segments.places(id, word),
                    |beginning| segments.places_of_beginning(id, beginning),
                )?;
                if places.as_ref().is_some_and(Vec::is_empty) {
                    return Ok(());
                }
                segments.each(id, places.as_deref(), seen)
            }
        }
    }
}

/// Words that a message must have, and beginnings of words; the rarest first, as far as that is known.
struct Terms {
    words: Vec<String>,
    beginnings: Vec<String>,
}

impl Terms {
    fn of(wanted: &Wanted) -> Terms {
        let mut words: Vec<String> = wanted.from.iter().map(|from| agent_word(from)).collect();
        let mut said: Vec<&str> = wanted.pattern.words().into_iter().collect();
        // Long words are rare.
        said.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.extend(said.into_iter().map(str::to_owned));
        words.extend(wanted.room.map(room_word));
        let beginnings = wanted.pattern.beginnings().map(str::to_owned).collect();
        Terms { words, beginnings }
    }

    /// The places that have all of them. `None`: all places.
    fn places(
        &self,
        word: impl Fn(&str) -> Result<Vec<u32>, ReadError>,
        beginning: impl Fn(&str) -> Result<Vec<u32>, ReadError>,
    ) -> Result<Option<Vec<u32>>, ReadError> {
        let mut places: Option<Vec<u32>> = None;
        let lists = self.words.iter().map(|one| word(one));
        for list in lists.chain(self.beginnings.iter().map(|one| beginning(one))) {
            let list = list?;
            let both = match places {
                None => list,
                Some(mut before) => {
                    before.retain(|place| list.binary_search(place).is_ok());
                    before
                }
            };
            if both.is_empty() {
                return Ok(Some(both));
            }
            places = Some(both);
        }
        Ok(places)
    }
}

/// Messages that may be meant, the newest of them.
#[derive(Default)]
struct Pending {
    spots: BTreeSet<Spot>,
    /// Those from here on were left out.
    floor: Option<Spot>,
}

impl Pending {
    fn add(&mut self, spot: Spot) {
        if self.floor.is_some_and(|floor| spot <= floor) {
            return;
        }
        self.spots.insert(spot);
        if self.spots.len() > SEARCH_ROWS_MAX {
            self.floor = self.spots.pop_first();
        }
    }

    /// The newest one, if nothing that was not looked at yet can be newer.
    fn next(&mut self, unseen_ms: Option<u64>) -> Option<Spot> {
        let newest = self.spots.last()?;
        let is_next = unseen_ms.is_none_or(|unseen| newest.wall_ms > unseen);
        if is_next { self.spots.pop_last() } else { None }
    }
}

/// The page under construction.
struct Page<'w, T> {
    wanted: &'w Wanted,
    limit: usize,
    rows: Vec<T>,
    read: usize,
    /// The last one that was read.
    last: Option<Spot>,
    /// The last one that the searcher is shown, if it asks for it.
    shown: Option<Spot>,
}

impl<T> Page<'_, T> {
    fn is_done(&self) -> bool {
        self.rows.len() >= self.limit || self.read >= SEARCH_ROWS_MAX
    }

    /// Where the next page begins. It names a message that the searcher is not shown only where a whole page of such messages
    /// would begin again and again otherwise.
    fn end(&self) -> Option<Spot> {
        let goes_on = |spot: &Spot| self.wanted.after.is_none_or(|after| *spot < after);
        self.shown.filter(goes_on).or(self.last)
    }
}

impl Index {
    /// The messages that are wanted, as far as one page goes. `may`: whether the searcher may read a room. `show`: a row as
    /// the searcher is shown it; `None`: it is not.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn find<T>(
        &self,
        wanted: &Wanted,
        may: &dyn Fn(RoomId) -> bool,
        show: &mut dyn FnMut(RoomId, Row) -> Option<T>,
    ) -> Result<Found<T>, IndexError> {
        let terms = Terms::of(wanted);
        let moment = match self.parts().as_ref() {
            Some(parts) => Moment::of([&parts.disk, &parts.memory], &terms)?,
            None => return Ok(Found { rows: Vec::new(), next: None, behind: true }),
        };
        let mut rooms = Rooms::new(self, may)?;
        let limit = wanted.limit.clamp(1, SEARCH_PAGE_MAX);
        let mut page = Page { wanted, limit, rows: Vec::new(), read: 0, last: None, shown: None };
        let mut pending = Pending::default();
        let (mut looked, mut cut) = (0, None);
        let in_time = |newest_ms: u64, oldest_ms: u64| {
            wanted.since_ms.is_none_or(|since| newest_ms >= since)
                && wanted.before_ms.is_none_or(|before| oldest_ms < before)
                && wanted.after.is_none_or(|after| oldest_ms <= after.wall_ms)
        };
        let places = moment.places.iter().filter(|place| in_time(place.0, place.1));
        for (newest_ms, _, place) in places {
            fill(&mut page, &mut pending, Some(*newest_ms), &mut rooms, show)?;
            if page.is_done() {
                cut = page.end();
                break;
            }
            if looked >= SEARCH_PLACES_MAX {
                // Everything newer than this place was looked at. Its newest message may be in a room that the searcher knows
                // nothing of: the cursor says the minute.
                let here = Spot {
                    wall_ms: (newest_ms / MINUTE_MS).saturating_add(1).saturating_mul(MINUTE_MS),
                    room: RoomId([0; 16]),
                    number: Number::ZERO,
                };
                if wanted.after.is_none_or(|after| here < after) {
                    cut = Some(page.end().map_or(here, |end| end.min(here)));
                    break;
                }
            }
            moment.each(*place, &terms, &mut |spot| {
                looked += 1;
                if wanted.is_within(spot) && rooms.may_read(spot.room) {
                    pending.add(spot);
                }
            })?;
        }
        if cut.is_none() {
            fill(&mut page, &mut pending, None, &mut rooms, show)?;
            let is_left = !pending.spots.is_empty() || pending.floor.is_some();
            cut = page.end().filter(|_| is_left);
        }
        Ok(Found { rows: page.rows, next: cut, behind: self.is_behind() })
    }
}

/// Puts messages on the page, as long as nothing that was not looked at yet can be newer.
fn fill<T>(
    page: &mut Page<'_, T>,
    pending: &mut Pending,
    unseen_ms: Option<u64>,
    rooms: &mut Rooms<'_>,
    show: &mut dyn FnMut(RoomId, Row) -> Option<T>,
) -> Result<(), ReadError> {
    while !page.is_done()
        && let Some(spot) = pending.next(unseen_ms)
    {
        page.read += 1;
        page.last = Some(spot);
        let Some(row) = rooms.row(spot)? else { continue };
        let is_meant = is_meant(page.wanted, spot, &row);
        let Some(shown) = show(spot.room, row) else { continue };
        page.shown = Some(spot);
        page.rows.extend(Some(shown).filter(|_| is_meant));
    }
    Ok(())
}

/// The index may be older than the store, and does not know phrases.
fn is_meant(wanted: &Wanted, spot: Spot, row: &Row) -> bool {
    let Some(said) = &row.said else { return false };
    let by = |from: &String| *said.agent == **from || said.name == *from;
    row.facts.wall_ms == spot.wall_ms
        && !is_sealed(&said.content)
        && wanted.from.as_ref().is_none_or(by)
        && wanted.pattern.is_met_by(&said.content)
}

/// Rooms of one moment of the store, as a searcher sees them.
struct Rooms<'m> {
    may: &'m dyn Fn(RoomId) -> bool,
    asked: BTreeMap<RoomId, bool>,
    views: BTreeMap<RoomId, Option<View>>,
    snapshots: Vec<Snapshot>,
}

impl<'m> Rooms<'m> {
    fn new(index: &Index, may: &'m dyn Fn(RoomId) -> bool) -> Result<Rooms<'m>, ReadError> {
        let snapshots = index.0.reader.snapshots().collect::<Result<_, _>>()?;
        Ok(Rooms { may, asked: BTreeMap::new(), views: BTreeMap::new(), snapshots })
    }

    fn may_read(&mut self, room: RoomId) -> bool {
        *self.asked.entry(room).or_insert_with(|| (self.may)(room))
    }

    fn row(&mut self, spot: Spot) -> Result<Option<Row>, ReadError> {
        if !self.views.contains_key(&spot.room) {
            let mut view = None;
            for snapshot in &self.snapshots {
                view = View::open(snapshot, spot.room)?.or(view);
            }
            self.views.insert(spot.room, view);
        }
        let Some(Some(view)) = self.views.get(&spot.room) else { return Ok(None) };
        match view.number(spot.number)? {
            Some((at, Fate::Delivered)) => view.row(spot.number, at),
            Some((_, Fate::Assigned | Fate::Hole)) | None => Ok(None),
        }
    }
}

impl Index {
    /// Whether a word is in it, in a room that anybody may read or in none, dropped or not: for tests.
    ///
    /// # Errors
    /// See [`IndexError`].
    #[doc(hidden)]
    pub fn has_word(&self, word: &str) -> Result<bool, IndexError> {
        let parts = self.parts();
        for part in parts.iter().flat_map(|parts| [&parts.disk, &parts.memory]) {
            let segments = Segments::of(&part.snapshot()?)?;
            for span in &part.spans {
                if !segments.places(span.id, word)?.is_empty() {
                    return Ok(true);
                }
            }
            if !part.tail.places(word).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
