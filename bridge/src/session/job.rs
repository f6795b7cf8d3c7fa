//! Reads that a session wants done: decided without I/O, done by the connection, on a blocking
//! thread where they may be long. Each names the type of its result.

use std::collections::BTreeSet;

use mesh::{
    api::account::{ContentState, RecordNews, RecordPage, RecordView},
    name::{
        id::{AgentId, KeyPrint, LocalRef, MessageId, RoomId},
        number::{Era, Number},
    },
    order::served::Served,
    records::{
        agent_files::AgentFile,
        details::Details,
        files::{FileView, ReplacedFile},
        threads::ThreadFact,
    },
};

use crate::{
    backend::{
        FoundAgentFile, FoundFile, FoundProfile, FoundReplaced, ReadError, Reads, Row, Serves,
    },
    limits,
    records::{FollowRecords, GetContent, GetRecord, ListRecords, LocateContents},
    seam::call::ListDescribed,
};

/// Something to be read.
pub(crate) trait Job: Send + 'static {
    type Found: Send + 'static;

    /// Whether it is to be done after a pause.
    fn waits(&self) -> bool {
        false
    }

    /// The result, if it takes no longer than to ask somebody else.
    fn at_once(&self, _: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        Ok(None)
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError>;
}

/// The newest number of a room.
#[derive(Debug)]
pub(crate) struct Tip(pub(crate) RoomId);

/// A message.
#[derive(Debug)]
pub(crate) struct OneMessage {
    pub(crate) room: RoomId,
    pub(crate) message: MessageId,
}

/// The message of a number.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) room: RoomId,
    pub(crate) number: Number,
}

/// The profile of an agent.
#[derive(Debug)]
pub(crate) struct ProfileOf(pub(crate) AgentId);

/// The details of rooms.
#[derive(Debug)]
pub(crate) struct DetailsOf {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) settings: bool,
}

/// The facts of a room's threads, as a key has written them.
#[derive(Debug)]
pub(crate) struct ThreadsOf {
    pub(crate) room: RoomId,
    pub(crate) key: KeyPrint,
}

/// The files of a room.
#[derive(Debug)]
pub(crate) struct FilesOf(pub(crate) RoomId);

/// A file of a room.
#[derive(Debug)]
pub(crate) struct FileOf {
    pub(crate) room: RoomId,
    pub(crate) path: String,
}

/// States of files that newer ones have replaced.
#[derive(Debug)]
pub(crate) struct ReplacedOf(pub(crate) RoomId);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct OneReplaced {
    pub(crate) room: RoomId,
    pub(crate) path: String,
    pub(crate) nth: usize,
}

/// The files of an agent.
#[derive(Debug)]
pub(crate) struct AgentFilesOf {
    pub(crate) place: RoomId,
    pub(crate) key: KeyPrint,
    pub(crate) agent: AgentId,
}

/// A file of an agent.
#[derive(Debug)]
pub(crate) struct AgentFileOf {
    pub(crate) of: AgentFilesOf,
    pub(crate) name: String,
}

/// Messages that an agent which comes back missed, for each room above its cursor.
#[derive(Debug)]
pub(crate) struct MissedIn(pub(crate) Vec<(RoomId, Cursor)>);

/// A page of history.
#[derive(Clone, Debug)]
pub(crate) struct PageOf {
    pub(crate) room: RoomId,
    pub(crate) from: From,
    pub(crate) limit: usize,
    pub(crate) before_ms: Option<u64>,
    /// Live messages of the room are held back until the page has been given.
    pub(crate) held: bool,
    /// Other nodes were asked for the message that it begins after.
    pub(crate) sought: bool,
}

/// Where a page begins.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// The newest.
    Newest,
    /// The newest below a number.
    Below(Number),
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

/// The origin of a cursor, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing: it may be from any node.
    Any,
    /// The client got it from this node, to which it came with `came`.
    Here { came: Number },
    /// From elsewhere, and the mesh was asked already to number the entries that it is not proven to have seen.
    Claimed,
}

/// The cursor that a client came with, if somebody may have been given less below it; else zero. Below a cursor of the home era
/// nobody was.
pub(crate) fn arrival(cursor: Number) -> Number {
    if cursor.era() > Era::HOME { cursor } else { Number::ZERO }
}

impl Cursor {
    pub(crate) fn new(number: Number, origin: Origin) -> Cursor {
        Cursor { number, origin, waited: 0, asked: Number::ZERO }
    }

    /// Of a client of which nothing is known but the numbers that it was given here.
    pub(crate) fn of(number: Number, served: &Served) -> Cursor {
        let here = served.came_with(number).map(|came| Origin::Here { came });
        Cursor::new(number, here.unwrap_or(Origin::Any))
    }

    /// The cursor that the client came to this node with.
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

/// Messages above a cursor.
#[derive(Debug)]
pub(crate) enum Since {
    Rows(Vec<Row>),
    /// As [`Since::Rows`], from a cursor that is of this node.
    Log(Vec<Row>),
    /// Nothing yet: to be read again after a pause.
    Later,
    /// Nothing yet: the mesh must be asked to number these first.
    Claim(Claim),
}

/// Entries that a cursor has not proven seen.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) room: RoomId,
    pub(crate) cursor: Cursor,
    /// With the numbers that they were delivered under here.
    pub(crate) entries: Vec<(LocalRef, Option<Number>)>,
}

/// Messages that an agent which comes back missed.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// The newest [`limits::MISSED_MAX`], oldest first, rising within each room.
    pub(crate) rows: Vec<(RoomId, Row)>,
    /// How far each room was read.
    pub(crate) seen: Vec<(RoomId, Number)>,
    /// Rooms to be read again after a pause.
    pub(crate) later: Vec<(RoomId, Cursor)>,
    /// Rooms to be read once the mesh has numbered missing entries.
    pub(crate) claims: Vec<Claim>,
}

impl Job for Tip {
    type Found = Number;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Number>, ReadError> {
        reads.tip(self.0).map(Some)
    }

    fn run(self, reads: &dyn Reads) -> Result<Number, ReadError> {
        reads.tip(self.0)
    }
}

impl Job for OneMessage {
    type Found = Option<Box<Row>>;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        Ok(Some(reads.by_message(self.room, self.message)?.map(Box::new)))
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        Ok(reads.by_message(self.room, self.message)?.map(Box::new))
    }
}

impl Job for Numbered {
    type Found = Option<Box<Row>>;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        Ok(Some(reads.by_number(self.room, self.number)?.map(Box::new)))
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        Ok(reads.by_number(self.room, self.number)?.map(Box::new))
    }
}

impl Job for ProfileOf {
    type Found = FoundProfile;

    fn run(self, reads: &dyn Reads) -> Result<FoundProfile, ReadError> {
        reads.profile(&self.0)
    }
}

impl Job for DetailsOf {
    type Found = Vec<Details>;

    fn run(self, reads: &dyn Reads) -> Result<Vec<Details>, ReadError> {
        reads.details(&self.rooms, self.settings)
    }
}

impl Job for ThreadsOf {
    type Found = Vec<ThreadFact>;

    fn run(self, reads: &dyn Reads) -> Result<Vec<ThreadFact>, ReadError> {
        reads.threads(self.room, self.key)
    }
}

impl Job for FilesOf {
    type Found = Vec<FileView>;

    fn run(self, reads: &dyn Reads) -> Result<Vec<FileView>, ReadError> {
        reads.files(self.0)
    }
}

impl Job for FileOf {
    type Found = Option<FoundFile>;

    fn run(self, reads: &dyn Reads) -> Result<Option<FoundFile>, ReadError> {
        reads.file(self.room, &self.path)
    }
}

impl Job for ReplacedOf {
    type Found = Vec<ReplacedFile>;

    fn run(self, reads: &dyn Reads) -> Result<Vec<ReplacedFile>, ReadError> {
        reads.replaced_files(self.0)
    }
}

impl Job for OneReplaced {
    type Found = Option<FoundReplaced>;

    fn run(self, reads: &dyn Reads) -> Result<Option<FoundReplaced>, ReadError> {
        reads.replaced_file(self.room, &self.path, self.nth)
    }
}

impl Job for AgentFilesOf {
    type Found = Vec<AgentFile>;

    fn run(self, reads: &dyn Reads) -> Result<Vec<AgentFile>, ReadError> {
        reads.agent_files(self.place, self.key, &self.agent)
    }
}

impl Job for AgentFileOf {
    type Found = Option<FoundAgentFile>;

    fn run(self, reads: &dyn Reads) -> Result<Option<FoundAgentFile>, ReadError> {
        let AgentFilesOf { place, key, agent } = self.of;
        reads.agent_file(place, key, (&agent, &self.name))
    }
}

impl Job for FollowRecords {
    type Found = RecordNews;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<RecordNews>, ReadError> {
        let nothing = RecordNews { mark: self.after, ..RecordNews::default() };
        Ok((!reads.has_record_news(self.after)).then_some(nothing))
    }

    fn run(self, reads: &dyn Reads) -> Result<RecordNews, ReadError> {
        reads.record_news(&self)
    }
}

impl Job for GetRecord {
    type Found = Option<RecordView>;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        reads.record(self).map(Some)
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        reads.record(&self)
    }
}

impl Job for GetContent {
    type Found = Option<Vec<u8>>;

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        reads.content(&self)
    }
}

impl Job for LocateContents {
    type Found = Vec<ContentState>;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        if self.keys.is_empty() {
            Ok(Some(Vec::new()))
        } else {
            reads.content_states(self).map(Some)
        }
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        reads.content_states(&self)
    }
}

impl Job for ListDescribed {
    type Found = BTreeSet<AgentId>;

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        reads.described(self.limit)
    }
}

impl Job for ListRecords {
    type Found = RecordPage;

    fn run(self, reads: &dyn Reads) -> Result<RecordPage, ReadError> {
        reads.records(&self)
    }
}

impl Job for MissedIn {
    type Found = Missed;

    fn waits(&self) -> bool {
        self.0.iter().any(|(_, cursor)| cursor.waited > 0)
    }

    fn run(self, reads: &dyn Reads) -> Result<Missed, ReadError> {
        missed(reads, self.0)
    }
}

impl Job for PageOf {
    /// `None`: there is no such message as it is to begin after.
    type Found = Option<Since>;

    fn waits(&self) -> bool {
        match &self.from {
            From::After(cursor) => cursor.waited > 0,
            From::Newest | From::Below(_) | From::AfterMessage(..) => false,
        }
    }

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Option<Since>>, ReadError> {
        match &self.from {
            From::After(cursor) if self.before_ms.is_none() && cursor.origin != Origin::Claimed => {
                let rows = reads.page_at_once(self.room, cursor.number, self.limit)?;
                Ok(rows.map(|rows| Some(Since::Log(rows))))
            }
            From::After(_) | From::Newest | From::Below(_) | From::AfterMessage(..) => Ok(None),
        }
    }

    fn run(self, reads: &dyn Reads) -> Result<Option<Since>, ReadError> {
        let cursor = match self.from {
            From::Newest => {
                let rows = reads.page_newest(self.room, self.limit, self.before_ms)?;
                return Ok(Some(Since::Rows(rows)));
            }
            From::Below(number) => {
                let mut rows = reads.page_below(self.room, self.limit, number)?;
                rows.retain(|row| self.before_ms.is_none_or(|before| row.facts.wall_ms < before));
                return Ok(Some(Since::Rows(rows)));
            }
            From::After(cursor) => cursor,
            From::AfterMessage(message, served) => match reads.by_message(self.room, message)? {
                Some(row) => Cursor::of(row.number, &served),
                None => return Ok(None),
            },
        };
        let mut found = since(reads, self.room, cursor, self.limit)?;
        if let (Since::Rows(rows) | Since::Log(rows), Some(before)) = (&mut found, self.before_ms) {
            rows.retain(|row| row.facts.wall_ms < before);
        }
        Ok(Some(found))
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

/// The cursor that a client which goes on in this node's delivery log came here with; zero if nothing below its cursor is owed to it.
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
) -> Result<Since, ReadError> {
    if is_here(reads, room, &cursor)? {
        return reads
            .page_of_arrival(room, cursor.number, came_here(&cursor), limit)
            .map(Since::Log);
    }
    let tip = reads.tip(room)?;
    let roam = reads.roam(room, cursor.number, limit)?;
    // An entry that was delivered below the cursor since the mesh was asked has no number above it.
    let is_new = |(_, number): &(LocalRef, Option<Number>)| {
        number.is_some_and(|number| number > cursor.asked)
    };
    let asks = match cursor.origin {
        Origin::Any | Origin::Here { .. } => roam.needs_claim,
        Origin::Claimed => roam.unproven.iter().any(is_new),
    };
    if asks {
        let cursor = Cursor { origin: Origin::Any, asked: tip, ..cursor };
        return Ok(Since::Claim(Claim { room, cursor, entries: roam.unproven }));
    }
    if roam.later && !roam.more && cursor.waited < limits::LATER_TRIES_MAX {
        return Ok(Since::Later);
    }
    Ok(if roam.needs_claim || roam.later { Since::Rows(roam.rows) } else { Since::Log(roam.rows) })
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
                Since::Claim(claim) => {
                    missed.claims.push(claim);
                    continue;
                }
                Since::Later => {
                    missed.later.push((room, cursor.waited()));
                    continue;
                }
                Since::Rows(rows) | Since::Log(rows) => rest(reads, room, rows)?,
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

/// A full page of unseen messages is followed by the newest ones.
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
    /// Adds the rows of another job. Claims and rooms for later are the caller's.
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
