//! Records of accounts, for readers that keep an index of them: each change has a number, and of each record its last one is
//! known. A reader that has all changes up to a number gets those that came later.
//!
//! Numbers rise, and are of this store alone. The number of a record that is gone stays for a while, so that readers hear of
//! it; one that comes after too many are gone begins anew.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use mesh::{
    api::account::{ContentState, Mark, RecordNews, RecordPage, RecordView},
    name::id::{KeyPrint, MeshId},
    records::collection::Collection,
    wire::record::{CollectionNumber, Record, RecordId, RecordKey, Space, Stamp},
};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _};

use crate::{
    error::{CommitError, ReadError},
    limits::{FOLLOWED_BYTES_MAX, FOLLOWED_ROWS_MAX, RECORDS_FOLLOWED_MAX, RECORDS_GONE_KEPT},
    reader::Reader,
    records::Shelf,
    schema::{
        CONTENTS, COPIED, META, RECORD_CHANGES, RECORD_NUMBERS, RECORDS, RECORDS_GONE, decode,
        table,
    },
};

/// The row of [`META`] with the number of the last change.
const LAST: &str = "record changes";
/// The row of [`META`] with the number up to which it is not known any more which records are gone.
const FORGOTTEN: &str = "records forgotten";

/// The parts of the key of a record's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    mesh: MeshId,
    collection: CollectionNumber,
    id: RecordId,
    owner: KeyPrint,
}

impl RowKey {
    /// `None`: it is no record of an account.
    pub(crate) fn of(row: &[u8]) -> Option<RowKey> {
        let (mesh, rest) = row.split_first_chunk::<16>()?;
        let (space, rest) = rest.split_first()?;
        let (collection, rest) = rest.split_first_chunk::<2>()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let owner: [u8; 16] = rest.try_into().ok()?;
        let collection = CollectionNumber(u16::from_be_bytes(*collection));
        let is_followed = Collection::of(collection).is_some_and(|kind| kind.family().is_some());
        let key =
            RowKey { mesh: MeshId(*mesh), collection, id: RecordId(*id), owner: KeyPrint(owner) };
        (*space == 0 && is_followed).then_some(key)
    }

    fn gone(self) -> RecordView {
        let RowKey { collection, id, owner, .. } = self;
        RecordView {
            collection,
            id,
            owner,
            halves: None,
            stamp: Stamp::default(),
            body: None,
            apart_bytes: 0,
        }
    }
}

fn view(record: Record) -> RecordView {
    RecordView {
        collection: record.collection,
        id: record.id,
        owner: record.owner(),
        halves: Some(record.by.halves),
        stamp: record.stamp,
        apart_bytes: record.apart.map_or(0, |apart| apart.length),
        body: record.body.map(Vec::from),
    }
}

// Writing.

/// Numbers the changes of a batch. `changed`: rows of records, and whether each is there from now on.
pub(crate) fn number(
    write: &redb::WriteTransaction,
    changed: &BTreeMap<Vec<u8>, Option<&Record>>,
) -> Result<(), CommitError> {
    let mut followed = changed.iter().filter(|(key, _)| RowKey::of(key).is_some()).peekable();
    if followed.peek().is_none() {
        return Ok(());
    }
    let mut meta = write.open_table(META)?;
    let mut numbers = write.open_table(RECORD_NUMBERS)?;
    let mut changes = write.open_table(RECORD_CHANGES)?;
    let mut gone = write.open_table(RECORDS_GONE)?;
    let mut last = meta.get(LAST)?.map_or(0, |row| row.value());
    for (key, record) in followed {
        let before = numbers.get(key.as_slice())?.map(|row| row.value());
        if before.is_none() && record.is_none() {
            continue;
        }
        if let Some(before) = before {
            changes.remove(before)?;
            gone.remove(before)?;
        }
        last += 1;
        numbers.insert(key.as_slice(), last)?;
        changes.insert(last, key.as_slice())?;
        if record.is_none() {
            gone.insert(last, ())?;
        }
    }
    meta.insert(LAST, last)?;
    for _ in RECORDS_GONE_KEPT..gone.len()?.max(RECORDS_GONE_KEPT) {
        let Some(first) = gone.pop_first()?.map(|(number, _)| number.value()) else { break };
        let key = changes.remove(first)?.map(|key| key.value().to_vec());
        if let Some(key) = key {
            numbers.remove(key.as_slice())?;
        }
        meta.insert(FORGOTTEN, first)?;
    }
    Ok(())
}

/// The number of the last change.
pub(crate) fn last(database: &Database) -> Result<u64, ReadError> {
    Ok(table(&database.begin_read()?, META)?.get(LAST)?.map_or(0, |row| row.value()))
}

/// Whether the rows of numbers are those of the records that there are, and each other's.
pub(crate) fn are_sound(read: &redb::ReadTransaction) -> Result<bool, ReadError> {
    let (numbers, changes) = (table(read, RECORD_NUMBERS)?, table(read, RECORD_CHANGES)?);
    let (records, gone) = (table(read, RECORDS)?, table(read, RECORDS_GONE)?);
    let last = table(read, META)?.get(LAST)?.map_or(0, |row| row.value());
    for row in changes.iter()? {
        let (number, key) = row?;
        let (number, key) = (number.value(), key.value());
        let is_there = records.get(key)?.is_some();
        let own = numbers.get(key)?.map(|row| row.value());
        if own != Some(number) || is_there == gone.get(number)?.is_some() || number > last {
            return Ok(false);
        }
    }
    for row in records.iter()? {
        let (key, _) = row?;
        if RowKey::of(key.value()).is_some() && numbers.get(key.value())?.is_none() {
            return Ok(false);
        }
    }
    // Each of these has its change, or there would be more of them.
    Ok(numbers.len()? == changes.len()? && gone.len()? <= changes.len()?)
}

// Reading.

/// Whether anything has changed since a mark: it costs no read.
#[must_use]
pub fn has_news(reader: &Reader, after: Mark) -> bool {
    reader.databases().changed.load(Ordering::Acquire) != after.at
}

/// The records of these kinds that have changed since a mark, in the order of their last changes: at most `limit`, and about
/// [`FOLLOWED_BYTES_MAX`] of contents.
///
/// # Errors
///
/// See [`ReadError`].
pub fn news(
    reader: &Reader,
    mesh: MeshId,
    collections: &[CollectionNumber],
    after: Mark,
    limit: usize,
) -> Result<RecordNews, ReadError> {
    if !has_news(reader, after) {
        return Ok(RecordNews { mark: after, ..RecordNews::default() });
    }
    let read = reader.databases().disk.read()?;
    let meta = table(&read, META)?;
    let get = |name| Ok::<u64, ReadError>(meta.get(name)?.map_or(0, |row| row.value()));
    let (last, forgotten) = (get(LAST)?, get(FORGOTTEN)?);
    // Of a reader that began later nothing was ever kept that had gone before.
    let known = after.at.max(after.began);
    let anew = after != Mark::START && (known < forgotten || after.at > last);
    let begins = anew || after == Mark::START;
    let mut news = RecordNews { anew, ..RecordNews::default() };
    let mut mark = if begins { Mark { at: 0, began: last } } else { after };
    let (records, changes) = (table(&read, RECORDS)?, table(&read, RECORD_CHANGES)?);
    let (mut rows, mut bytes) = (0, 0);
    let limit = limit.clamp(1, RECORDS_FOLLOWED_MAX);
    for row in changes.range(mark.at + 1..)? {
        let (number, key) = row?;
        let is_full = news.records.len() >= limit || bytes >= FOLLOWED_BYTES_MAX;
        if is_full || rows >= FOLLOWED_ROWS_MAX {
            news.more = true;
            break;
        }
        rows += 1;
        mark.at = number.value();
        let wanted = |key: &RowKey| key.mesh == mesh && collections.contains(&key.collection);
        let Some(of) = RowKey::of(key.value()).filter(wanted) else { continue };
        match records.get(key.value())? {
            Some(row) => {
                bytes += row.value().len();
                news.records.push(view(decode(row.value(), "record")?));
            }
            // To a reader that knew nothing before it is no news.
            None if number.value() <= mark.began => {}
            None => news.records.push(of.gone()),
        }
    }
    if !news.more {
        mark.at = last;
    }
    news.mark = mark;
    Ok(news)
}

/// A record of an account.
///
/// # Errors
///
/// See [`ReadError`].
pub fn record(
    reader: &Reader,
    mesh: MeshId,
    (collection, id, owner): (CollectionNumber, RecordId, KeyPrint),
) -> Result<Option<RecordView>, ReadError> {
    let read = reader.databases().disk.read()?;
    let shelf = Shelf { mesh, space: home(collection), collection };
    let row =
        table(&read, RECORDS)?.get(shelf.row(RecordKey { id, owner: Some(owner) }).as_slice())?;
    row.map(|row| decode(row.value(), "record").map(view)).transpose()
}

/// The space in which records of a kind are, that are of no room.
fn home(collection: CollectionNumber) -> Space {
    Collection::of(collection).map_or(Space::Mesh, Collection::home)
}

/// The bytes that travel apart from a record of an account. `None`: there are none, or they are not here.
///
/// # Errors
///
/// See [`ReadError`].
pub fn content(
    reader: &Reader,
    mesh: MeshId,
    (collection, id, owner): (CollectionNumber, RecordId, KeyPrint),
) -> Result<Option<Vec<u8>>, ReadError> {
    let read = reader.databases().disk.read()?;
    let shelf = Shelf { mesh, space: home(collection), collection };
    let row = shelf.row(RecordKey { id, owner: Some(owner) });
    Ok(table(&read, CONTENTS)?.get(row.as_slice())?.map(|row| row.value().to_vec()))
}

/// Whether bytes apart are here, and whether another node is known to have them, of each of these records.
///
/// # Errors
///
/// See [`ReadError`].
pub fn content_states(
    reader: &Reader,
    mesh: MeshId,
    collection: CollectionNumber,
    keys: &[(RecordId, KeyPrint)],
) -> Result<Vec<ContentState>, ReadError> {
    let read = reader.databases().disk.read()?;
    let (contents, copied) = (table(&read, CONTENTS)?, table(&read, COPIED)?);
    let shelf = Shelf { mesh, space: home(collection), collection };
    let state = |(id, owner): &(RecordId, KeyPrint)| {
        let row = shelf.row(RecordKey { id: *id, owner: Some(*owner) });
        let held = contents.get(row.as_slice())?.is_some();
        Ok(ContentState { held, copied: copied.get(row.as_slice())?.is_some() })
    };
    keys.iter().map(state).collect()
}

/// The records of a kind that are looked for.
#[derive(Clone, Debug)]
pub struct Sought<'s> {
    /// The kind.
    pub collection: CollectionNumber,
    /// Only those of this owner.
    pub owner: Option<KeyPrint>,
    /// Only those whose ids begin so.
    pub first: &'s [u8],
    /// Only those after this one.
    pub after: Option<(RecordId, KeyPrint)>,
    /// At most so many.
    pub limit: usize,
}

/// Records of a kind, by id and owner.
///
/// # Errors
///
/// See [`ReadError`].
pub fn page(reader: &Reader, mesh: MeshId, sought: &Sought<'_>) -> Result<RecordPage, ReadError> {
    let (space, collection) = (home(sought.collection), sought.collection);
    let shelf = Shelf { mesh, space, collection };
    let prefix = shelf.beginning(sought.first);
    let after = sought.after.map(|(id, owner)| shelf.row(RecordKey { id, owner: Some(owner) }));
    let from = after.clone().filter(|after| *after > prefix).unwrap_or_else(|| prefix.clone());
    let read = reader.databases().disk.read()?;
    let (mut page, mut bytes) = (RecordPage::default(), 0);
    let limit = sought.limit.clamp(1, RECORDS_FOLLOWED_MAX);
    for row in table(&read, RECORDS)?.range(from.as_slice()..)? {
        let (key, row) = row?;
        let key = key.value();
        if !key.starts_with(&prefix) {
            break;
        }
        let is_owned = sought.owner.is_none_or(|owner| key.ends_with(&owner.0));
        if after.as_deref() == Some(key) || !is_owned {
            continue;
        }
        if page.records.len() >= limit || bytes >= FOLLOWED_BYTES_MAX {
            page.more = true;
            break;
        }
        bytes += row.value().len();
        page.records.push(view(decode(row.value(), "record")?));
    }
    Ok(page)
}
