//! Rows of records, and reading them: by name, and for peers.

use mesh::{
    api::batch::StoredRecord,
    limits::{FRAME_BYTES_MAX, RECORD_BODY_BYTES_MAX, RECORDS_IN_MESSAGE_MAX, WANT_REPLY_BYTES},
    name::id::{KeyPrint, MeshId, RoomId},
    records::{
        details::{self, Details},
        place::RoomPlace,
    },
    wire::{
        message::Message,
        record::{CollectionNumber, Record, RecordKey, Space},
    },
};
use redb::ReadTransaction;

use crate::{
    error::ReadError,
    limits::{RECORD_OVERHEAD_BYTES, RECORDS_FOUND_MAX},
    reader::Reader,
    schema::{RECORDS, decode, table},
    view::View,
};

// One more record than the budget is within a frame.
const _: () = assert!(
    WANT_REPLY_BYTES + RECORD_BODY_BYTES_MAX + RECORD_OVERHEAD_BYTES < FRAME_BYTES_MAX
        && RECORDS_IN_MESSAGE_MAX * 64 < FRAME_BYTES_MAX
);

/// The records of one kind in one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The mesh that they are of: those of an earlier one stay, and are not read.
    pub mesh: MeshId,
    /// Where they are.
    pub space: Space,
    /// Of what kind.
    pub collection: CollectionNumber,
}

impl Shelf {
    fn prefix(&self) -> Vec<u8> {
        let Shelf { mesh, space, collection } = self;
        let (space, of): (u8, &[u8]) = match space {
            Space::Mesh => (0, &[]),
            Space::Followers(key) => (1, &key.0),
            Space::Node => (2, &[]),
        };
        [&mesh.0, [space].as_slice(), of, &collection.0.to_be_bytes()].concat()
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
    let prefix = [shelf.prefix().as_slice(), first].concat();
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

/// The details of rooms of a mesh, one for each that is asked for, in their order. `settings`: with these. `key`: the one that
/// made a room; records of others are passed over by their names, however many there are.
///
/// # Errors
///
/// See [`ReadError`].
pub fn details(
    reader: &Reader,
    mesh: MeshId,
    rooms: &[RoomId],
    key: impl Fn(RoomId) -> Option<KeyPrint>,
    settings: bool,
) -> Result<Vec<Details>, ReadError> {
    let read = reader.databases().disk.read()?;
    let shelves = table(&read, RECORDS)?;
    let mut all = Vec::with_capacity(rooms.len());
    for room in rooms {
        let (Some(at), Some(key)) = (place_in(&read, *room)?, key(*room)) else {
            all.push(Details::default());
            continue;
        };
        let shelf = Shelf { mesh, space: at.space, collection: details::COLLECTION.number };
        let mut records: Vec<Record> = Vec::new();
        for id in details::ids(&at) {
            let row = shelves.get(shelf.row(RecordKey { id, owner: Some(key) }).as_slice())?;
            records.extend(row.map(|row| decode(row.value(), "record")).transpose()?);
        }
        if settings {
            let shelf = Shelf { collection: details::SETTINGS.number, ..shelf };
            let first = at.subject(shelf.collection);
            records.extend(owned(&shelves, &shelf, &first, key)?);
        }
        all.push(details::read(&at, &records, Some(key)));
    }
    Ok(all)
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

fn place_in(read: &ReadTransaction, room: RoomId) -> Result<Option<RoomPlace>, ReadError> {
    let record = View::open(read, room)?.map(|view| view.record()).transpose()?;
    Ok(record.and_then(|record| record.place_of_records(room)))
}

/// The records of one owner whose ids begin so, by id, at most [`RECORDS_FOUND_MAX`].
fn owned(
    shelves: &redb::ReadOnlyTable<&'static [u8], &'static [u8]>,
    shelf: &Shelf,
    first: &[u8],
    owner: KeyPrint,
) -> Result<Vec<Record>, ReadError> {
    let prefix = [shelf.prefix().as_slice(), first].concat();
    let mut found = Vec::new();
    for row in shelves.range(prefix.as_slice()..)? {
        let (key, row) = row?;
        if !key.value().starts_with(&prefix) || found.len() >= RECORDS_FOUND_MAX {
            break;
        }
        if key.value().ends_with(&owner.0) {
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

/// The heads of all records of a mesh.
pub(crate) fn heads(read: &ReadTransaction, mesh: MeshId) -> Result<Vec<StoredRecord>, ReadError> {
    let mut heads = Vec::new();
    for row in table(read, RECORDS)?.range(mesh.0.as_slice()..)? {
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
        });
    }
    Ok(heads)
}
