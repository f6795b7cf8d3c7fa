//! Rows of records, and reading them: by name, and for peers.

use std::{collections::BTreeSet, panic::resume_unwind, thread};

use mesh::{
    Proofs,
    api::batch::StoredRecord,
    limits::{
        ACCOUNT_RECORD_BYTES_MAX, FILE_BYTES_MAX, FRAME_BYTES_MAX, RECORDS_IN_MESSAGE_MAX,
        SEAL_BYTES, WANT_REPLY_BYTES,
    },
    name::id::{KeyPrint, MeshId, RoomId},
    records::{
        collection::Collection,
        details::{self, Details},
        files::{self, FileView},
        place::{RoomPlace, showing},
        schedules::{JOBS, JobView, RUNS, RunView, WantedJobs, WantedRuns},
        threads::{self, ThreadFact},
    },
    wire::{
        carry::Whole,
        contents::{Content, SentContents},
        message::Message,
        record::{CollectionNumber, Record, RecordKey, Space},
    },
};
use redb::{
    AccessGuard, ReadTransaction, ReadableTable as _, ReadableTableMetadata as _, StorageError,
};

use crate::{
    error::ReadError,
    limits::{READ_BY_TWO_FROM, RECORD_OVERHEAD_BYTES, RECORDS_FOUND_MAX},
    reader::Reader,
    schema::{CONTENTS, COPIED, RECORDS, decode, table},
    view::View,
};

// One more record than the budget is within a frame.
const _: () = assert!(
    WANT_REPLY_BYTES + ACCOUNT_RECORD_BYTES_MAX + RECORD_OVERHEAD_BYTES < FRAME_BYTES_MAX
        && RECORDS_IN_MESSAGE_MAX * 64 < FRAME_BYTES_MAX
        && WANT_REPLY_BYTES + FILE_BYTES_MAX + SEAL_BYTES < FRAME_BYTES_MAX
        && WANT_REPLY_BYTES + FILE_BYTES_MAX + ACCOUNT_RECORD_BYTES_MAX < FRAME_BYTES_MAX
);

/// The records of one kind in one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The mesh that they are of: those of an earlier one stay, and are not read.
    pub mesh: MeshId,
    /// Where they are.
    pub space: Space,
    /// Their kind.
    pub collection: CollectionNumber,
}

impl Shelf {
    fn prefix(&self) -> Vec<u8> {
        let Shelf { mesh, space, collection } = self;
        let (space, of) = match space {
            Space::Mesh => (0, Vec::new()),
            Space::Followers(group) => (1, group.bytes()),
            Space::Node => (2, Vec::new()),
        };
        [&mesh.0, [space].as_slice(), &of, &collection.0.to_be_bytes()].concat()
    }

    /// The beginning of the keys of rows whose ids begin so.
    pub(crate) fn beginning(&self, first: &[u8]) -> Vec<u8> {
        [self.prefix().as_slice(), first].concat()
    }

    /// The key of a record's row.
    pub(crate) fn row(&self, key: RecordKey) -> Vec<u8> {
        let owner = key.owner.map(|owner| owner.0);
        [self.prefix().as_slice(), &key.id.0, owner.as_ref().map_or(&[], |owner| owner)].concat()
    }
}

/// The records whose ids begin with `first`, by id: at most [`RECORDS_FOUND_MAX`], of which `wanted` says yes to the
/// owner. Deletions are among them.
///
/// # Errors
///
/// See [`ReadError`].
pub fn find(
    reader: &Reader,
    shelf: &Shelf,
    first: &[u8],
    wanted: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, ReadError> {
    let prefix = shelf.beginning(first);
    let read = reader.databases().disk.read()?;
    let mut found = Vec::new();
    for row in table(&read, RECORDS)?.range(prefix.as_slice()..)? {
        let (key, row) = row?;
        if !key.value().starts_with(&prefix) || found.len() >= RECORDS_FOUND_MAX {
            break;
        }
        let record: Record = decode(row.value(), "record")?;
        if wanted(&record) {
            found.push(record);
        }
    }
    Ok(found)
}

/// The details of rooms of a mesh, one for each that is asked for, in their order. `settings`: with these. `keys`: those that
/// write them; records of others are passed over by their names, however many there are.
///
/// # Errors
///
/// See [`ReadError`].
pub fn details(
    reader: &Reader,
    mesh: MeshId,
    rooms: &[RoomId],
    keys: impl Fn(RoomId) -> BTreeSet<KeyPrint>,
    settings: bool,
) -> Result<Vec<Details>, ReadError> {
    let read = reader.databases().disk.read()?;
    let shelves = table(&read, RECORDS)?;
    let mut all = Vec::with_capacity(rooms.len());
    for room in rooms {
        let keys = keys(*room);
        let Some(at) = place_in(&read, *room)?.filter(|_| !keys.is_empty()) else {
            all.push(Details::default());
            continue;
        };
        let shelf = Shelf { mesh, space: at.space, collection: details::COLLECTION.number };
        let mut records: Vec<Record> = Vec::new();
        for id in details::ids(&at) {
            for key in &keys {
                let row = shelves.get(shelf.row(RecordKey { id, owner: Some(*key) }).as_slice())?;
                records.extend(row.map(|row| decode(row.value(), "record")).transpose()?);
            }
        }
        if settings {
            let shelf = Shelf { collection: details::SETTINGS.number, ..shelf };
            let first = at.subject(shelf.collection);
            records.extend(owned(&shelves, &shelf, &first, &keys)?);
        }
        all.push(details::read(&at, &records, &keys, mesh));
    }
    Ok(all)
}

/// The facts of a room's threads, as one key has written them.
///
/// # Errors
///
/// See [`ReadError`].
pub fn threads(
    reader: &Reader,
    mesh: MeshId,
    room: RoomId,
    key: KeyPrint,
) -> Result<Vec<ThreadFact>, ReadError> {
    let read = reader.databases().disk.read()?;
    let shelves = table(&read, RECORDS)?;
    let Some(at) = place_in(&read, room)? else { return Ok(Vec::new()) };
    let shelf = Shelf { mesh, space: at.space, collection: threads::COLLECTION.number };
    let first = at.subject(shelf.collection);
    let records = owned(&shelves, &shelf, &first, &[key].into())?;
    Ok(threads::read(&at, &records, key, mesh))
}

/// Where a room's records are. `None`: it is not here, or has none ([`RoomRecord::place_of_records`]).
///
/// [`RoomRecord::place_of_records`]: mesh::api::batch::RoomRecord::place_of_records
///
/// # Errors
///
/// See [`ReadError`].
pub fn place(reader: &Reader, room: RoomId) -> Result<Option<RoomPlace>, ReadError> {
    place_in(&*reader.databases().disk.read()?, room)
}

pub(crate) fn place_in(
    read: &ReadTransaction,
    room: RoomId,
) -> Result<Option<RoomPlace>, ReadError> {
    let record = View::open(read, room)?.map(|view| view.record()).transpose()?;
    Ok(record.and_then(|record| record.place_of_records(room)))
}

/// The table of records.
pub(crate) type Rows = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The records of these owners whose ids begin so, by id, with deletions. Those of others are passed over unread. The bounds of
/// what one key may write bound them.
pub(crate) fn owned(
    shelves: &Rows,
    shelf: &Shelf,
    first: &[u8],
    owners: &BTreeSet<KeyPrint>,
) -> Result<Vec<Record>, ReadError> {
    let mut found = Vec::new();
    let prefix = shelf.beginning(first);
    for row in shelves.range(prefix.as_slice()..)? {
        let (key, row) = row?;
        if !key.value().starts_with(&prefix) {
            break;
        }
        if owners.iter().any(|owner| key.value().ends_with(&owner.0)) {
            found.push(decode(row.value(), "record")?);
        }
    }
    Ok(found)
}

/// The answer to a peer that lacks these (`Effect::SendRecords`): one message of about [`WANT_REPLY_BYTES`] at most. It
/// asks again for the rest. Those that are not here any more are left out.
///
/// # Errors
///
/// See [`ReadError`].
pub fn answer(reader: &Reader, shelf: &Shelf, keys: &[RecordKey]) -> Result<Message, ReadError> {
    let read = reader.databases().disk.read()?;
    let rows = table(&read, RECORDS)?;
    let mut records = Vec::new();
    let mut bytes = 0;
    for key in keys {
        let Some(row) = rows.get(shelf.row(*key).as_slice())? else { continue };
        bytes += row.value().len();
        if records.len() >= RECORDS_IN_MESSAGE_MAX || bytes > WANT_REPLY_BYTES {
            break;
        }
        records.push(decode(row.value(), "record")?);
    }
    Ok(Message::Records(records))
}

/// The answer to a peer that lacks bytes apart (`Effect::SendContents`): one message of about [`WANT_REPLY_BYTES`], or one
/// content. `lacking`: those of which it is known that they are not here. It asks again for the rest.
///
/// # Errors
///
/// See [`ReadError`].
pub fn contents(
    reader: &Reader,
    shelf: &Shelf,
    keys: &[RecordKey],
    mut lacking: Vec<RecordKey>,
) -> Result<Message, ReadError> {
    let read = reader.databases().disk.read()?;
    let rows = table(&read, CONTENTS)?;
    let mut contents = Vec::new();
    let mut bytes = 0;
    for key in keys {
        let Some(row) = rows.get(shelf.row(*key).as_slice())? else {
            lacking.push(*key);
            continue;
        };
        bytes += row.value().len();
        if bytes > WANT_REPLY_BYTES && !contents.is_empty() {
            break;
        }
        contents.push(Content::of(*key, row.value()));
    }
    let (space, collection) = (shelf.space, shelf.collection);
    Ok(Message::Contents(SentContents { space, collection, contents, lacking }))
}

/// Records with their bytes apart, as many as one message of about [`WANT_REPLY_BYTES`] takes, or one. Those that have none, or
/// whose bytes are not here, are left out.
pub(crate) fn whole(
    reader: &Reader,
    shelf: &Shelf,
    keys: &[RecordKey],
) -> Result<Vec<Whole>, ReadError> {
    let read = reader.databases().disk.read()?;
    let (rows, contents) = (table(&read, RECORDS)?, table(&read, CONTENTS)?);
    let (mut found, mut bytes) = (Vec::new(), 0);
    for key in keys {
        let row = shelf.row(*key);
        let (Some(record), Some(content)) =
            (rows.get(row.as_slice())?, contents.get(row.as_slice())?)
        else {
            continue;
        };
        bytes += record.value().len() + content.value().len();
        if bytes > WANT_REPLY_BYTES && !found.is_empty() {
            break;
        }
        let record = decode(record.value(), "record")?;
        found.push(Whole { record, bytes: content.value().to_vec().into() });
    }
    Ok(found)
}

/// The keys whose files of a room show, of those that wrote the rows that begin so. All rows are looked through if all keys
/// may write: not even then are contents of those that do not count read.
pub(crate) fn writers(
    proofs: &Proofs,
    room: RoomId,
    shelves: &Rows,
    prefix: &[u8],
) -> Result<BTreeSet<KeyPrint>, ReadError> {
    let mut owners = BTreeSet::new();
    if proofs.writers_of_room(room).anyone {
        for row in shelves.range(prefix..)? {
            let (key, _) = row?;
            let (key, length) = (key.value(), size_of::<KeyPrint>());
            if !key.starts_with(prefix) {
                break;
            }
            let owner = key.last_chunk().filter(|_| key.len() >= prefix.len() + length);
            owners.extend(owner.map(|owner| KeyPrint(*owner)));
        }
    }
    Ok(proofs.file_keys(room, owners))
}

/// The files of a room of a mesh, by path. `proofs`: say whose show.
///
/// # Errors
///
/// See [`ReadError`].
pub fn files(
    reader: &Reader,
    mesh: MeshId,
    room: RoomId,
    proofs: &Proofs,
) -> Result<Vec<FileView>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(Vec::new()) };
    let shelf = Shelf { mesh, space: at.space, collection: files::COLLECTION.number };
    let first = at.subject(shelf.collection);
    let rows = table(&read, RECORDS)?;
    let keys = &writers(proofs, room, &rows, &shelf.beginning(&first))?;
    let records = owned(&rows, &shelf, &first, keys)?;
    let showing = showing(&records, keys, mesh).into_iter();
    let mut found: Vec<_> = showing.filter_map(|record| files::read(&at, record, keys)).collect();
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// A file, and its bytes if they are here.
pub type FoundFile = (FileView, Option<Vec<u8>>);

/// One file of a room. `None`: there is none of this path. Its bytes are those of the same moment.
///
/// # Errors
///
/// See [`ReadError`].
pub fn file(
    reader: &Reader,
    mesh: MeshId,
    (room, path): (RoomId, &str),
    proofs: &Proofs,
) -> Result<Option<FoundFile>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(None) };
    let (collection, id) = (files::COLLECTION.number, files::id(&at, path));
    let shelf = Shelf { mesh, space: at.space, collection };
    let (rows, mut states) = (table(&read, RECORDS)?, Vec::<Record>::new());
    let keys = &writers(proofs, room, &rows, &shelf.beginning(&id.0))?;
    for key in keys {
        let row = rows.get(shelf.row(RecordKey { id, owner: Some(*key) }).as_slice())?;
        states.extend(row.map(|row| decode(row.value(), "record")).transpose()?);
    }
    let shown = showing(&states, keys, mesh);
    let Some(record) = shown.first() else { return Ok(None) };
    let Some(view) = files::read(&at, record, keys) else { return Ok(None) };
    let key = record.owner();
    let row = shelf.row(RecordKey { id, owner: Some(key) });
    if record.apart.is_none() {
        return Ok(Some((view, Some(Vec::new()))));
    }
    let bytes = table(&read, CONTENTS)?.get(row.as_slice())?.map(|row| row.value().to_vec());
    let bytes = bytes.and_then(|bytes| at.cover.read_apart(&files::apart_name(id, key), bytes));
    Ok(Some((view, bytes)))
}

/// Jobs of a schedule, which is in a room of a mesh. `keys`: those whose room it is.
///
/// # Errors
///
/// See [`ReadError`].
pub fn jobs(
    reader: &Reader,
    mesh: MeshId,
    (room, wanted): (RoomId, WantedJobs),
    keys: &BTreeSet<KeyPrint>,
) -> Result<Vec<JobView>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(Vec::new()) };
    let shelf = Shelf { mesh, space: at.space, collection: JOBS.number };
    let rows = table(&read, RECORDS)?;
    let records = owned(&rows, &shelf, &wanted.first(&at), keys)?;
    Ok(WantedJobs::read(&at, &records, keys, mesh))
}

/// The same, of runs.
///
/// # Errors
///
/// See [`ReadError`].
pub fn runs(
    reader: &Reader,
    mesh: MeshId,
    (room, wanted): (RoomId, WantedRuns),
    keys: &BTreeSet<KeyPrint>,
) -> Result<Vec<RunView>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(Vec::new()) };
    let shelf = Shelf { mesh, space: at.space, collection: RUNS.number };
    let rows = table(&read, RECORDS)?;
    let records = owned(&rows, &shelf, &wanted.first(&at), keys)?;
    Ok(WantedRuns::read(&at, &records, keys, mesh))
}

fn about(record: &Record) -> Option<KeyPrint> {
    Collection::of(record.collection)?.about(record.content())
}

fn is_in_memory(record: &Record) -> bool {
    Collection::of(record.collection).is_some_and(|collection| collection.in_memory)
}

/// A row's key and its value.
type Row<'r> = (AccessGuard<'r, &'static [u8]>, AccessGuard<'r, &'static [u8]>);

/// The heads of all records of a mesh. Each has a hash of the signed text: a start waits for it, and as a rule all rows
/// are of this mesh. Then two threads read, one from each end.
pub(crate) fn heads(read: &ReadTransaction, mesh: MeshId) -> Result<Vec<StoredRecord>, ReadError> {
    let rows = table(read, RECORDS)?;
    let count = usize::try_from(rows.len()?).unwrap_or(0);
    let of_mesh =
        |row: Option<Row<'_>>| row.is_some_and(|(key, _)| key.value().starts_with(&mesh.0));
    let all_are = of_mesh(rows.first()?) && of_mesh(rows.last()?);
    if count < READ_BY_TWO_FROM || !all_are {
        return some_heads(read, mesh, rows.range(mesh.0.as_slice()..)?, count);
    }
    let half = count / 2;
    let (first, second) = thread::scope(|scope| {
        let second = || {
            let from_end = rows.iter()?.rev();
            some_heads(read, mesh, from_end, count - half)
        };
        let other = thread::Builder::new().spawn_scoped(scope, second);
        let first = rows.iter().map_err(ReadError::from);
        let first = first.and_then(|rows| some_heads(read, mesh, rows, half));
        let second_half = other.map(|other| other.join().unwrap_or_else(|it| resume_unwind(it)));
        // The system may have no thread for it.
        (first, second_half.unwrap_or_else(|_| second()))
    });
    let (mut heads, second) = (first?, second?);
    heads.extend(second.into_iter().rev());
    Ok(heads)
}

/// Those of the first so many of these rows, as far as they are of the mesh.
fn some_heads<'r>(
    read: &ReadTransaction,
    mesh: MeshId,
    rows: impl Iterator<Item = Result<Row<'r>, StorageError>>,
    count: usize,
) -> Result<Vec<StoredRecord>, ReadError> {
    let mut heads = Vec::with_capacity(count);
    let (contents, copied) = (table(read, CONTENTS)?, table(read, COPIED)?);
    for row in rows.take(count) {
        let (key, row) = row?;
        if !key.value().starts_with(&mesh.0) {
            break;
        }
        let record: Record = decode(row.value(), "record")?;
        heads.push(StoredRecord {
            space: record.space,
            collection: record.collection,
            head: record.head(mesh),
            deleted: record.body.is_none(),
            about: about(&record),
            apart: record.apart,
            held: record.apart.is_some() && contents.get(key.value())?.is_some(),
            copied: record.apart.is_some() && copied.get(key.value())?.is_some(),
            whole: is_in_memory(&record).then(|| Box::new(record)),
        });
    }
    Ok(heads)
}
