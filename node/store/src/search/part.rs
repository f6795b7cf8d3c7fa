//! A file of segments, and the messages that are in none yet.
//!
//! A segment is written whole, with the places up to which rooms are in it: after a crash the rooms are read again from there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::OpenOptions,
    io,
    path::Path,
};

use mesh::{
    api::{batch::Fate, search::Spot},
    name::{
        id::{LocalRef, RoomId},
        number::Number,
    },
};
use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
    backends::{FileBackend, InMemoryBackend},
};
use thiserror::Error;

use super::segment::{
    Draft, Words, decode_places, decode_spots, encode_spots, encode_words, united,
};
use crate::{
    error::ReadError,
    limits::{SEARCH_CACHE_BYTES, SEGMENT_BYTES_MAX, SEGMENT_CHUNK_BYTES, SEGMENT_ROWS_MAX},
    panics::caught,
    reader::Reader,
    schema::table,
};

/// The form of the file. One of another form is made anew.
const LAYOUT: u64 = 1;
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Room id → number up to which the room is in segments, and the place (log, log seq) of its entry.
const CURSORS: TableDefinition<'_, &[u8; 16], (u64, u32, u64)> = TableDefinition::new("cursors/1");
/// Segment → when its newest and its oldest message were written, and how many it has.
const SPANS: TableDefinition<'_, u64, (u64, u64, u64)> = TableDefinition::new("spans/1");
/// Segment → its messages.
const SPOTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages/1");
/// Segment, first word → words and the places of their messages in the segment.
const WORDS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("words/1");

/// Why the index cannot go on. It is made anew: nothing is only in it.
#[derive(Debug, Error)]
pub enum IndexError {
    /// Its file cannot be opened or made.
    #[error("{0} cannot be opened")]
    Open(String, #[source] io::Error),
    /// Its file cannot be read or written.
    #[error("the index of words cannot be written")]
    Storage(#[source] Box<redb::Error>),
    /// The store cannot be read, or the index is damaged.
    #[error("the index of words cannot be read")]
    Read(#[from] ReadError),
}

macro_rules! from_redb {
    ($($source:ident),*) => {
        $(impl From<redb::$source> for IndexError {
            fn from(source: redb::$source) -> IndexError {
                IndexError::Storage(Box::new(source.into()))
            }
        })*
    };
}

from_redb!(
    DatabaseError,
    StorageError,
    TableError,
    TransactionError,
    CommitError,
    SetDurabilityError
);

/// A segment in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) id: u64,
    pub(crate) newest_ms: u64,
    pub(crate) oldest_ms: u64,
    pub(crate) count: u64,
}

/// A room is in the index up to here.
pub(crate) type Cursor = (Number, LocalRef);

/// See the module.
#[derive(Debug)]
pub(crate) struct Part {
    database: Database,
    durability: Durability,
    pub(crate) spans: Vec<Span>,
    next: u64,
    pub(crate) cursors: BTreeMap<RoomId, Cursor>,
    /// Rooms whose cursors are not in the file.
    moved: BTreeSet<RoomId>,
    /// Rows that were looked at since the file was written.
    rows: usize,
    /// Messages that are in no segment yet.
    pub(crate) tail: Draft,
}

impl Part {
    /// For ephemeral rooms, and for stores without a file.
    pub(crate) fn in_memory() -> Result<Part, IndexError> {
        let database = builder().create_with_backend(InMemoryBackend::new())?;
        make(&database, Durability::None)?;
        Part::read(database, Durability::None)
    }

    /// Of a file, if that is an index of this store; else a new one.
    pub(crate) fn open(file: &Path, reader: &Reader) -> Result<Part, IndexError> {
        if file.exists() {
            // redb answers some damage with a panic.
            let looked = caught(|| Part::open_existing(file, reader));
            match looked {
                Ok(Ok(Some(part))) => return Ok(part),
                // Of another store, or of another version.
                Ok(Ok(None)) => {}
                Ok(Err(IndexError::Open(path, error))) => {
                    return Err(IndexError::Open(path, error));
                }
                Ok(Err(IndexError::Storage(_) | IndexError::Read(_))) | Err(_) => {}
            }
            std::fs::remove_file(file)
                .map_err(|error| IndexError::Open(file.display().to_string(), error))?;
        }
        let database = builder().create_with_backend(backend(file)?)?;
        make(&database, Durability::Immediate)?;
        Part::read(database, Durability::Immediate)
    }

    fn open_existing(file: &Path, reader: &Reader) -> Result<Option<Part>, IndexError> {
        let database = builder().create_with_backend(backend(file)?)?;
        let read = database.begin_read()?;
        let layout = match read.open_table(META) {
            Ok(meta) => meta.get("layout")?.map(|row| row.value()),
            Err(_) => None,
        };
        if layout != Some(LAYOUT) {
            return Ok(None);
        }
        let part = Part::read(database, Durability::Immediate)?;
        Ok(part.is_of(reader)?.then_some(part))
    }

    fn read(database: Database, durability: Durability) -> Result<Part, IndexError> {
        let read = database.begin_read()?;
        let mut spans = Vec::new();
        for row in read.open_table(SPANS)?.iter()? {
            let (id, span) = row?;
            let (newest_ms, oldest_ms, count) = span.value();
            spans.push(Span { id: id.value(), newest_ms, oldest_ms, count });
        }
        let mut cursors = BTreeMap::new();
        for row in read.open_table(CURSORS)?.iter()? {
            let (room, cursor) = row?;
            let (number, log, seq) = cursor.value();
            cursors.insert(RoomId(*room.value()), (Number(number), LocalRef { log, seq }));
        }
        drop(read);
        let next = spans.last().map_or(0, |span| span.id + 1);
        let (moved, tail) = (BTreeSet::new(), Draft::default());
        Ok(Part { database, durability, spans, next, cursors, moved, rows: 0, tail })
    }

    /// Whether the store has delivered, up to where the index goes, what the index says. Another one, or an older copy of this
    /// one, has not.
    fn is_of(&self, reader: &Reader) -> Result<bool, IndexError> {
        for (room, (number, at)) in &self.cursors {
            let Some(view) = reader.view(*room)? else { return Ok(false) };
            if view.number(*number)? != Some((*at, Fate::Delivered)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Rows of a room were looked at, up to here.
    pub(crate) fn went_to(&mut self, room: RoomId, cursor: Cursor, rows: usize) {
        self.cursors.insert(room, cursor);
        self.moved.insert(room);
        self.rows += rows;
    }

    /// Whether what was gathered is to be written.
    pub(crate) fn is_full(&self, messages: usize) -> bool {
        self.tail.spots.len() >= messages
            || self.tail.bytes >= SEGMENT_BYTES_MAX
            || self.rows >= SEGMENT_ROWS_MAX
    }

    /// Writes what was gathered. Searches go on meanwhile; [`Part::sealed`] shows them the segment.
    pub(crate) fn seal(&self) -> Result<Option<Span>, IndexError> {
        let write = self.begin()?;
        let span = put(&write, self.next, &self.tail)?;
        let mut cursors = write.open_table(CURSORS)?;
        for room in &self.moved {
            if let Some((number, at)) = self.cursors.get(room) {
                cursors.insert(&room.0, (number.0, at.log, at.seq))?;
            }
        }
        drop(cursors);
        write.commit()?;
        Ok(span)
    }

    /// What was gathered is in this segment. `None`: there was no message.
    pub(crate) fn sealed(&mut self, span: Option<Span>) {
        self.spans.extend(span);
        self.next += 1;
        self.rows = 0;
        self.moved.clear();
        self.tail = Draft::default();
    }

    fn begin(&self) -> Result<WriteTransaction, IndexError> {
        let mut write = self.database.begin_write()?;
        write.set_durability(self.durability)?;
        // Written rarely: opening the file after a crash then takes no time.
        write.set_quick_repair(true);
        Ok(write)
    }

    /// One moment of the file.
    pub(crate) fn snapshot(&self) -> Result<ReadTransaction, IndexError> {
        Ok(self.database.begin_read()?)
    }

    /// Segments that have messages written before this time.
    pub(crate) fn older_than(&self, before_ms: u64) -> Vec<Span> {
        self.spans.iter().copied().filter(|span| span.oldest_ms < before_ms).collect()
    }

    /// A segment without messages that are gone. `None`: it has none of these.
    pub(crate) fn swept(
        &self,
        span: Span,
        is_gone: &dyn Fn(&Spot) -> Result<bool, ReadError>,
    ) -> Result<Option<Draft>, IndexError> {
        let read = self.snapshot()?;
        let mut gone = BTreeSet::new();
        for spot in spots(&read, span.id)? {
            if is_gone(&spot)? {
                gone.insert(spot);
            }
        }
        if gone.is_empty() {
            return Ok(None);
        }
        Ok(Some(load(&read, span.id)?.without(|spot| gone.contains(spot))))
    }

    /// What was gathered, without messages that are gone. `None`: it has none of these.
    pub(crate) fn swept_tail(
        &self,
        is_gone: &dyn Fn(&Spot) -> Result<bool, ReadError>,
    ) -> Result<Option<Draft>, ReadError> {
        let mut gone = BTreeSet::new();
        for spot in &self.tail.spots {
            if is_gone(spot)? {
                gone.insert(*spot);
            }
        }
        Ok((!gone.is_empty()).then(|| self.tail.without(|spot| gone.contains(spot))))
    }

    /// Puts a segment in the place of another one. No search may begin meanwhile: it would find neither.
    pub(crate) fn replace(&mut self, old: Span, left: &Draft) -> Result<(), IndexError> {
        let write = self.begin()?;
        remove(&write, old.id)?;
        let new = put(&write, self.next, left)?;
        write.commit()?;
        self.spans.retain(|span| span.id != old.id);
        self.spans.extend(new);
        self.next += 1;
        Ok(())
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(SEARCH_CACHE_BYTES);
    builder
}

fn backend(file: &Path) -> Result<FileBackend, IndexError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |error| IndexError::Open(file.display().to_string(), error);
    let opened = options.open(file).map_err(failed)?;
    FileBackend::new(opened).map_err(|error| failed(io::Error::other(error)))
}

fn make(database: &Database, durability: Durability) -> Result<(), IndexError> {
    let mut write = database.begin_write()?;
    write.set_durability(durability)?;
    write.open_table(CURSORS)?;
    write.open_table(SPANS)?;
    write.open_table(SPOTS)?;
    write.open_table(WORDS)?;
    write.open_table(META)?.insert("layout", LAYOUT)?;
    Ok(write.commit()?)
}

/// Writes a segment. `None`: it has no message.
fn put(write: &WriteTransaction, id: u64, draft: &Draft) -> Result<Option<Span>, IndexError> {
    if draft.spots.is_empty() {
        return Ok(None);
    }
    let ((newest_ms, oldest_ms), count) = (draft.times(), draft.spots.len() as u64);
    write.open_table(SPANS)?.insert(id, (newest_ms, oldest_ms, count))?;
    write.open_table(SPOTS)?.insert(id, encode_spots(&draft.spots).as_slice())?;
    let mut words = write.open_table(WORDS)?;
    for (first, chunk) in encode_words(&draft.words, SEGMENT_CHUNK_BYTES) {
        words.insert((id, first), chunk.as_slice())?;
    }
    Ok(Some(Span { id, newest_ms, oldest_ms, count }))
}

fn remove(write: &WriteTransaction, id: u64) -> Result<(), IndexError> {
    write.open_table(SPANS)?.remove(id)?;
    write.open_table(SPOTS)?.remove(id)?;
    write.open_table(WORDS)?.retain_in((id, "")..(id + 1, ""), |_, _| false)?;
    Ok(())
}

fn spots(read: &ReadTransaction, id: u64) -> Result<Vec<Spot>, ReadError> {
    let Some(row) = table(read, SPOTS)?.get(id)? else { return Ok(Vec::new()) };
    decode_spots(row.value())
}

/// All of a segment.
fn load(read: &ReadTransaction, id: u64) -> Result<Draft, ReadError> {
    let mut draft = Draft { spots: spots(read, id)?, ..Draft::default() };
    for row in table(read, WORDS)?.range((id, "")..(id + 1, ""))? {
        let (_, chunk) = row?;
        let mut words = Words::of(chunk.value());
        while let Some((word, row)) = words.next()? {
            decode_places(row, draft.words.entry(word.to_owned()).or_default())?;
        }
    }
    Ok(draft)
}

/// Segments of a file at one moment.
pub(crate) struct Segments {
    words: redb::ReadOnlyTable<(u64, &'static str), &'static [u8]>,
    spots: redb::ReadOnlyTable<u64, &'static [u8]>,
}

impl Segments {
    pub(crate) fn of(read: &ReadTransaction) -> Result<Segments, ReadError> {
        Ok(Segments { words: table(read, WORDS)?, spots: table(read, SPOTS)? })
    }

    /// The messages of a word.
    pub(crate) fn places(&self, id: u64, wanted: &str) -> Result<Vec<u32>, ReadError> {
        let mut places = Vec::new();
        // The last chunk that begins at the word or before it.
        if let Some(row) = self.words.range((id, "")..=(id, wanted))?.next_back() {
            let (_, chunk) = row?;
            let mut words = Words::of(chunk.value());
            while let Some((word, row)) = words.next()? {
                if word == wanted {
                    decode_places(row, &mut places)?;
                    break;
                }
            }
        }
        Ok(places)
    }

    /// Those of all words that begin so.
    pub(crate) fn places_of_beginning(
        &self,
        id: u64,
        beginning: &str,
    ) -> Result<Vec<u32>, ReadError> {
        let mut places = Vec::new();
        let before = self.words.range((id, "")..=(id, beginning))?.next_back();
        let from = before.transpose()?.map(|(key, _)| key.value().1.to_owned());
        let from = from.as_deref().unwrap_or(beginning);
        for row in self.words.range((id, from)..(id + 1, ""))? {
            let (first, chunk) = row?;
            let first = first.value().1;
            if first > beginning && !first.starts_with(beginning) {
                break;
            }
            let mut words = Words::of(chunk.value());
            while let Some((word, row)) = words.next()? {
                if word.starts_with(beginning) {
                    decode_places(row, &mut places)?;
                }
            }
        }
        Ok(united(places))
    }

    /// Calls back with the messages at these places, as they are read. `None`: at all places.
    pub(crate) fn each(
        &self,
        id: u64,
        places: Option<&[u32]>,
        seen: &mut dyn FnMut(Spot),
    ) -> Result<(), ReadError> {
        let Some(row) = self.spots.get(id)? else { return Ok(()) };
        let spots = decode_spots(row.value())?;
        match places {
            Some(places) => {
                let spots = places.iter().filter_map(|place| spots.get(*place as usize));
                spots.copied().for_each(seen);
            }
            None => spots.into_iter().for_each(seen),
        }
        Ok(())
    }
}
