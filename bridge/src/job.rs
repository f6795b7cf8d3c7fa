//! Reads that a session wants done: decided without I/O, done by the connection, on a blocking
//! thread where they may be long.

use mesh::{
    name::{
        id::{LocalRef, MessageId, RoomId},
        number::{Era, Number},
    },
    order::served::Served,
};

use crate::{
    backend::{ReadError, Reads, Row, Serves},
    limits,
};

/// What is to be read.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    Tip(RoomId),
    Message(RoomId, MessageId),
    History(History),
    /// What an agent that comes back missed, for each room above its cursor.
    Missed(Vec<(RoomId, Cursor)>),
}

/// A page of history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) room: RoomId,
    pub(crate) from: From,
    pub(crate) limit: usize,
    pub(crate) before_ms: Option<u64>,
    /// Live messages of the room are held back until the page has been given.
    pub(crate) held: bool,
    /// Other nodes were asked for what it begins after.
    pub(crate) sought: bool,
}

/// Where a page begins.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// The newest.
    Newest,
    /// The oldest after a number.
    After(Cursor),
    /// The oldest after a message, for an agent that was given this here.
    AfterMessage(MessageId, Served),
}

/// A client's place in a room.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) number: Number,
    pub(crate) origin: Origin,
    /// How often a page from here was read again, for something was still to be passed.
    pub(crate) waited: u8,
    /// Up to where the room was delivered here when the mesh was asked to number what the cursor lacks.
    pub(crate) asked: Number,
}

/// What is known of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing: it may be from any node.
    Any,
    /// The client got it from this node, to which it came with `came`.
    Here { came: Number },
    /// From elsewhere, and the mesh was asked already to number what it is not proven to have seen.
    Claimed,
}

/// What a client came with, if somebody may have been given less below it; else zero. Below a cursor of the home era
/// nobody was.
pub(crate) fn arrival(cursor: Number) -> Number {
    if cursor.era() > Era::HOME { cursor } else { Number::ZERO }
}

impl Cursor {
    pub(crate) fn new(number: Number, origin: Origin) -> Cursor {
        Cursor { number, origin, waited: 0, asked: Number::ZERO }
    }

    /// Of a client of which nothing else is known than what it was given here.
    pub(crate) fn of(number: Number, served: &Served) -> Cursor {
        let here = served.came_with(number).map(|came| Origin::Here { came });
        Cursor::new(number, here.unwrap_or(Origin::Any))
    }

    /// What the client came to this node with.
    pub(crate) fn came_with(&self) -> Number {
        match self.origin {
            Origin::Any | Origin::Claimed => arrival(self.number),
            Origin::Here { came } => came,
        }
    }

    /// The same, one pause later.
    #[must_use]
    pub(crate) fn waited(self) -> Cursor {
        Cursor { waited: self.waited.saturating_add(1), ..self }
    }
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Found {
    Tip(Number),
    Message(Option<Box<Row>>),
    Rows(Vec<Row>),
    /// As [`Found::Rows`], from a cursor that is of this node.
    Log(Vec<Row>),
    /// Nothing yet: to be read again after a pause.
    Later,
    NoSuchMessage,
    /// Nothing yet: the mesh must be asked to number these first.
    Claim(Claim),
    Missed(Missed),
}

/// What a cursor has not proven seen.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) room: RoomId,
    pub(crate) cursor: Cursor,
    /// With the numbers that they were delivered under here.
    pub(crate) entries: Vec<(LocalRef, Option<Number>)>,
}

/// What an agent that comes back missed.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// The newest [`limits::MISSED_MAX`], oldest first, rising within each room.
    pub(crate) rows: Vec<(RoomId, Row)>,
    /// How far each room was read.
    pub(crate) seen: Vec<(RoomId, Number)>,
    /// Rooms to be read again after a pause.
    pub(crate) later: Vec<(RoomId, Cursor)>,
    /// Rooms to be read once the mesh has numbered what is missing.
    pub(crate) claims: Vec<Claim>,
}

impl Job {
    /// Whether it is to be done after a pause.
    pub(crate) fn waits(&self) -> bool {
        let waited = |cursor: &Cursor| cursor.waited > 0;
        match self {
            Job::Tip(_) | Job::Message(..) => false,
            Job::History(history) => match &history.from {
                From::After(cursor) => waited(cursor),
                From::Newest | From::AfterMessage(..) => false,
            },
            Job::Missed(rooms) => rooms.iter().any(|(_, cursor)| waited(cursor)),
        }
    }

    /// With which cursor a client says that it came from another node; zero if it did not.
    pub(crate) fn comes_with(&self) -> Option<(RoomId, Number)> {
        match self {
            Job::History(History { room, from: From::After(cursor), .. }) => {
                Some((*room, cursor.came_with()))
            }
            Job::History(_) | Job::Tip(_) | Job::Message(..) | Job::Missed(_) => None,
        }
    }

    /// What it finds, if it takes no longer than to ask somebody else.
    pub(crate) fn run_at_once(&self, reads: &dyn Reads) -> Result<Option<Found>, ReadError> {
        match self {
            Job::Tip(room) => reads.tip(*room).map(|tip| Some(Found::Tip(tip))),
            Job::Message(room, message) => {
                let row = reads.by_message(*room, *message)?;
                Ok(Some(Found::Message(row.map(Box::new))))
            }
            Job::History(history) => history.run_at_once(reads),
            Job::Missed(_) => Ok(None),
        }
    }

    pub(crate) fn run(self, reads: &dyn Reads) -> Result<Found, ReadError> {
        match self {
            Job::Tip(room) => reads.tip(room).map(Found::Tip),
            Job::Message(room, message) => {
                reads.by_message(room, message).map(|row| Found::Message(row.map(Box::new)))
            }
            Job::History(history) => history.run(reads),
            Job::Missed(rooms) => missed(reads, rooms).map(Found::Missed),
        }
    }
}

impl History {
    fn run_at_once(&self, reads: &dyn Reads) -> Result<Option<Found>, ReadError> {
        match &self.from {
            From::After(cursor) if self.before_ms.is_none() && cursor.origin != Origin::Claimed => {
                let rows = reads.page_at_once(self.room, cursor.number, self.limit)?;
                Ok(rows.map(Found::Log))
            }
            From::After(_) | From::Newest | From::AfterMessage(..) => Ok(None),
        }
    }

    fn run(self, reads: &dyn Reads) -> Result<Found, ReadError> {
        let cursor = match self.from {
            From::Newest => {
                return reads.page_newest(self.room, self.limit, self.before_ms).map(Found::Rows);
            }
            From::After(cursor) => cursor,
            From::AfterMessage(message, served) => match reads.by_message(self.room, message)? {
                Some(row) => Cursor::of(row.number, &served),
                None => return Ok(Found::NoSuchMessage),
            },
        };
        let mut found = since(reads, self.room, cursor, self.limit)?;
        if let (Found::Rows(rows) | Found::Log(rows), Some(before)) = (&mut found, self.before_ms) {
            rows.retain(|row| row.facts.wall_ms < before);
        }
        Ok(found)
    }
}

/// Whether the delivery log goes on from a cursor.
fn is_here(reads: &dyn Reads, room: RoomId, cursor: &Cursor) -> Result<bool, ReadError> {
    Ok(match cursor.origin {
        Origin::Here { .. } => true,
        Origin::Any => {
            cursor.number == Number::ZERO || reads.serves(room, cursor.number)? == Serves::Here
        }
        Origin::Claimed => false,
    })
}

/// What a client that goes on in this node's delivery log came here with; zero if nothing below its cursor is owed to it.
fn came_here(cursor: &Cursor) -> Number {
    match cursor.origin {
        Origin::Here { came } => came,
        Origin::Any | Origin::Claimed => Number::ZERO,
    }
}

/// The oldest `limit` messages that a cursor has not proven seen.
fn since(
    reads: &dyn Reads,
    room: RoomId,
    cursor: Cursor,
    limit: usize,
) -> Result<Found, ReadError> {
    if is_here(reads, room, &cursor)? {
        return reads
            .page_of_arrival(room, cursor.number, came_here(&cursor), limit)
            .map(Found::Log);
    }
    let tip = reads.tip(room)?;
    let roam = reads.roam(room, cursor.number, limit)?;
    // What was delivered below the cursor since the mesh was asked has no number above it.
    let is_new =
        |(_, number): &(LocalRef, Option<Number>)| number.is_some_and(|it| it > cursor.asked);
    let asks = match cursor.origin {
        Origin::Any | Origin::Here { .. } => roam.needs_claim,
        Origin::Claimed => roam.unproven.iter().any(is_new),
    };
    if asks {
        let cursor = Cursor { origin: Origin::Any, asked: tip, ..cursor };
        return Ok(Found::Claim(Claim { room, cursor, entries: roam.unproven }));
    }
    if roam.later && !roam.more && cursor.waited < limits::LATER_TRIES_MAX {
        return Ok(Found::Later);
    }
    Ok(if roam.needs_claim || roam.later { Found::Rows(roam.rows) } else { Found::Log(roam.rows) })
}

fn missed(reads: &dyn Reads, rooms: Vec<(RoomId, Cursor)>) -> Result<Missed, ReadError> {
    let mut missed = Missed::default();
    for (room, cursor) in rooms {
        let came = came_here(&cursor);
        let rows = if is_here(reads, room, &cursor)? && came > Number::ZERO {
            let limit = limits::HISTORY_ROWS_MAX;
            let rows = reads.page_of_arrival(room, cursor.number, came, limit)?;
            rest(reads, room, rows)?
        } else if is_here(reads, room, &cursor)? {
            let newest = reads.page_newest(room, limits::MISSED_MAX, None)?;
            newest.into_iter().filter(|row| row.number > cursor.number).collect()
        } else {
            match since(reads, room, cursor.clone(), limits::HISTORY_ROWS_MAX)? {
                Found::Claim(claim) => {
                    missed.claims.push(claim);
                    continue;
                }
                Found::Later => {
                    missed.later.push((room, cursor.waited()));
                    continue;
                }
                Found::Rows(rows) | Found::Log(rows) => rest(reads, room, rows)?,
                Found::Tip(_) | Found::Message(_) | Found::NoSuchMessage | Found::Missed(_) => {
                    unreachable!("since() gives rows, or what stands in their way")
                }
            }
        };
        if let Some(last) = rows.last() {
            missed.seen.push((room, last.number));
        }
        missed.rows.extend(rows.into_iter().map(|row| (room, row)));
        missed.trim();
    }
    Ok(missed)
}

/// A full page of what a roaming cursor has not seen is followed by what came after it.
fn rest(reads: &dyn Reads, room: RoomId, mut rows: Vec<Row>) -> Result<Vec<Row>, ReadError> {
    if rows.len() >= limits::HISTORY_ROWS_MAX
        && let Some(last) = rows.last().map(|row| row.number)
    {
        let newest = reads.page_newest(room, limits::MISSED_MAX, None)?;
        rows.extend(newest.into_iter().filter(|row| row.number > last));
    }
    Ok(rows)
}

impl Missed {
    /// Adds what another job found. What is still to be done is the caller's.
    pub(crate) fn merge(&mut self, other: Missed) {
        self.rows.extend(other.rows);
        self.seen.extend(other.seen);
        self.trim();
    }

    /// Rows of different rooms by time; of one room they stay in the order of their numbers, so that
    /// the oldest number is dropped first even where clocks disagree.
    fn trim(&mut self) {
        let mut latest = std::collections::HashMap::new();
        let rows = std::mem::take(&mut self.rows);
        let mut timed: Vec<_> = rows
            .into_iter()
            .map(|(room, row)| {
                let time = latest.entry(room).or_insert(0);
                *time = row.facts.wall_ms.max(*time);
                (*time, room, row)
            })
            .collect();
        timed.sort_by_key(|(time, room, row)| (*time, *room, row.number));
        let surplus = timed.len().saturating_sub(limits::MISSED_MAX);
        self.rows = timed.into_iter().skip(surplus).map(|(_, room, row)| (room, row)).collect();
    }
}
