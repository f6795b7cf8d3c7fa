//! Inboxes of agents: rows that name messages, in the order in which these came ([`mesh::api::command::Command::Inbox`]).

use std::collections::{BTreeMap, BTreeSet};

use mesh::api::batch::{Change, InboxItem, InboxRecord, StoredInbox};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use sha2::{Digest, Sha256};

use crate::{
    error::{CommitError, ReadError},
    reader::Reader,
    schema::{INBOX_ITEMS, INBOXES, decode, encode, table},
};

/// The place of an agent among all: its id can have any length.
type Key = [u8; 16];

fn key(agent: &str) -> Key {
    let hash = Sha256::digest([b"clawmesh inbox".as_slice(), agent.as_bytes()].concat());
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}

fn item_key(key: Key, place: u64) -> [u8; 24] {
    let mut row = [0; 24];
    row[..16].copy_from_slice(&key);
    row[16..].copy_from_slice(&place.to_be_bytes());
    row
}

fn place_of(row: &[u8; 24]) -> u64 {
    let mut place = [0; 8];
    place.copy_from_slice(&row[16..]);
    u64::from_be_bytes(place)
}

/// The rows of a batch, the last one of each key.
#[derive(Debug, Default)]
pub(crate) struct Inboxes<'b> {
    records: BTreeMap<Key, &'b InboxRecord>,
    /// Those that are forgotten, with all items that were there before the batch.
    gone: BTreeSet<Key>,
    items: BTreeMap<(Key, u64), Option<InboxItem>>,
}

impl<'b> Inboxes<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.gone.is_empty() && self.items.is_empty()
    }

    /// A change that is none of inboxes does nothing.
    pub(crate) fn add(&mut self, change: &'b Change) {
        if let Change::Inbox(record) = change {
            self.records.insert(key(&record.agent), record);
        } else if let Change::NoInbox { agent } = change {
            let key = key(agent);
            self.records.remove(&key);
            self.items.retain(|(of, _), _| *of != key);
            self.gone.insert(key);
        } else if let Change::InboxItem { agent, place, item } = change {
            self.items.insert((key(agent), *place), *item);
        }
    }

    pub(crate) fn apply(&self, write: &WriteTransaction) -> Result<(), CommitError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut inboxes = write.open_table(INBOXES)?;
        let mut items = write.open_table(INBOX_ITEMS)?;
        for key in &self.gone {
            inboxes.remove(key)?;
            let all = item_key(*key, 0)..=item_key(*key, u64::MAX);
            items.retain_in::<&[u8; 24], _>(all.start()..=all.end(), |_, _| false)?;
        }
        for (key, record) in &self.records {
            inboxes.insert(key, encode(*record).as_slice())?;
        }
        for ((key, place), item) in &self.items {
            let row = item_key(*key, *place);
            match item {
                Some(item) => items.insert(&row, encode(item).as_slice())?,
                None => items.remove(&row)?,
            };
        }
        Ok(())
    }
}

/// All inboxes, each with the place of its newest item.
pub(crate) fn all(read: &ReadTransaction) -> Result<Vec<StoredInbox>, ReadError> {
    let items = table(read, INBOX_ITEMS)?;
    let mut all = Vec::new();
    for row in table(read, INBOXES)?.iter()? {
        let (key, row) = row?;
        let record: InboxRecord = decode(row.value(), "inbox")?;
        let bounds = (item_key(*key.value(), 0), item_key(*key.value(), u64::MAX));
        let newest = items.range::<&[u8; 24]>(&bounds.0..=&bounds.1)?.next_back().transpose()?;
        let newest = newest.map_or(0, |(row, _)| place_of(row.value()));
        all.push(StoredInbox { record, newest });
    }
    Ok(all)
}

/// Whether each inbox stands under its agent's id, and each item belongs to one.
pub(crate) fn are_sound(read: &ReadTransaction) -> Result<bool, ReadError> {
    let mut keys = BTreeSet::new();
    for row in table(read, INBOXES)?.iter()? {
        let (at, row) = row?;
        let record: Result<InboxRecord, _> = decode(row.value(), "inbox");
        if !record.is_ok_and(|record| key(&record.agent) == *at.value()) {
            return Ok(false);
        }
        keys.insert(*at.value());
    }
    for row in table(read, INBOX_ITEMS)?.iter()? {
        let (at, item) = row?;
        let is_of_one = at.value().first_chunk().is_some_and(|key| keys.contains(key));
        if !is_of_one || decode::<InboxItem>(item.value(), "inbox item").is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A part of an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxPage {
    /// Items with their places, ascending. Places that were taken out are left out.
    pub items: Vec<(u64, InboxItem)>,
    /// So many are there behind the last one.
    pub left: usize,
}

impl Reader {
    /// The oldest `limit` items of an agent's inbox above a place.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn inbox(&self, agent: &str, after: u64, limit: usize) -> Result<InboxPage, ReadError> {
        let read = self.databases().disk.read()?;
        let key = key(agent);
        let from = item_key(key, after.saturating_add(1));
        let mut page = InboxPage::default();
        for row in
            table(&read, INBOX_ITEMS)?.range::<&[u8; 24]>(&from..=&item_key(key, u64::MAX))?
        {
            let (place, item) = row?;
            let item: InboxItem = decode(item.value(), "inbox item")?;
            if item.is_taken_out() {
                continue;
            }
            if page.items.len() < limit {
                page.items.push((place_of(place.value()), item));
            } else {
                page.left += 1;
            }
        }
        Ok(page)
    }

    /// How far an agent has confirmed its inbox. `None`: it has none.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn inbox_mark(&self, agent: &str) -> Result<Option<u64>, ReadError> {
        let read = self.databases().disk.read()?;
        let row = table(&read, INBOXES)?.get(&key(agent))?;
        let record = row.map(|row| decode::<InboxRecord>(row.value(), "inbox")).transpose()?;
        Ok(record.map(|record| record.mark))
    }
}
