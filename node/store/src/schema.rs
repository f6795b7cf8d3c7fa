//! Tables: their names, keys and values. Byte by byte: `docs/store.md`.

use minicbor::{Decode, Encode};
use redb::{Database, ReadTransaction, ReadableDatabase, TableDefinition, TableHandle};

use mesh::{
    api::batch::Fate,
    name::number::{Era, Number},
    wire::entry::{Facts, Gone},
};

use crate::error::ReadError;

/// The layout that this version writes.
pub(crate) const LAYOUT: u64 = 13;
/// The row of [`META`] that says which layout a file has.
const LAYOUT_ROW: &str = "layout";

/// (room, log, log seq)
pub(crate) type PlaceKey = (u32, u32, u64);

/// Says which layout the rest has. Its own name and form never change.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Room id → room.
pub(crate) const ROOM_IDS: TableDefinition<'_, &[u8; 16], u32> = TableDefinition::new("room_ids/1");
/// Room → room id (16 bytes), then its record.
pub(crate) const ROOMS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rooms/1");
/// (room, log) → `LogRecord`.
pub(crate) const LOGS: TableDefinition<'_, (u32, u32), &[u8]> = TableDefinition::new("logs/1");
/// (room, log, log seq) → `Stored`.
pub(crate) const ENTRIES: TableDefinition<'_, PlaceKey, &[u8]> = TableDefinition::new("entries/1");
/// (room, era) → `EraRecord`.
pub(crate) const ERAS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("eras/1");
/// (room, number) → (log, log seq, fate).
pub(crate) const NUMBERS: TableDefinition<'_, (u32, u64), (u32, u64, u8)> =
    TableDefinition::new("numbers/1");
/// (room, log, log seq) → all its numbers with their fates: see [`Numbers`].
pub(crate) const PLACES: TableDefinition<'_, PlaceKey, &[u8]> = TableDefinition::new("places/1");
/// (room, log, log seq) → (highest, lowest number).
pub(crate) const NUMBER_RANGES: TableDefinition<'_, PlaceKey, (u64, u64)> =
    TableDefinition::new("foretold/1");
/// (wall time, room, id) → (log, log seq). Time first, so that old rows are one range.
pub(crate) const DEDUPS: TableDefinition<'_, (u64, u32, u128), (u32, u64)> =
    TableDefinition::new("dedups/1");
/// Author, room, incarnation → (`Certificate`, `Run`).
pub(crate) const EVIDENCE: TableDefinition<'_, &[u8; 56], &[u8]> =
    TableDefinition::new("evidence/1");
/// 0 → `NodeRecord`.
pub(crate) const NODE: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("node/1");
/// (room, log, log seq) of each entry that is an act.
pub(crate) const ACTS: TableDefinition<'_, PlaceKey, ()> = TableDefinition::new("acts/1");
/// (room, log, log seq) of the act that opened a vote → `VoteNote`.
pub(crate) const NOTES: TableDefinition<'_, PlaceKey, &[u8]> = TableDefinition::new("notes/1");
/// Name → value, of the node's own.
pub(crate) const KEPT: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kept/1");

/// Mesh, space, collection, id and owner, one after the other → `Record`.
pub(crate) const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records/1");

/// As in [`RECORDS`] → bytes that travel apart from that record.
pub(crate) const CONTENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("contents/1");

/// As in [`RECORDS`]: another node has the bytes in [`CONTENTS`], too.
pub(crate) const COPIED: TableDefinition<'_, &[u8], ()> = TableDefinition::new("copied/1");

/// As in [`RECORDS`], then the stamp (8 bytes big endian) → a state that another one has replaced.
pub(crate) const REPLACED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("replaced/1");
/// As in [`REPLACED`] → bytes that travel apart from that state.
pub(crate) const REPLACED_CONTENTS: TableDefinition<'_, &[u8], &[u8]> =
    TableDefinition::new("replaced_contents/1");
/// Owner, time up to which a state is kept (8 bytes big endian), key in [`REPLACED`] → bytes of the state.
pub(crate) const REPLACED_ORDER: TableDefinition<'_, &[u8], u64> =
    TableDefinition::new("replaced_order/1");
/// Owner, or nothing → bytes of its states, or of all.
pub(crate) const REPLACED_BYTES: TableDefinition<'_, &[u8], u64> =
    TableDefinition::new("replaced_bytes/1");

/// The number of a change → key of the record's row in [`RECORDS`]. Of each record of an account, its last change.
pub(crate) const RECORD_CHANGES: TableDefinition<'_, u64, &[u8]> =
    TableDefinition::new("record_changes/1");
/// As in [`RECORDS`] → number of the record's last change.
pub(crate) const RECORD_NUMBERS: TableDefinition<'_, &[u8], u64> =
    TableDefinition::new("record_numbers/1");
/// Those changes after which the record was gone.
pub(crate) const RECORDS_GONE: TableDefinition<'_, u64, ()> =
    TableDefinition::new("records_gone/1");

/// Hash of an agent's id → `InboxRecord`.
pub(crate) const INBOXES: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("inboxes/1");
/// Hash of an agent's id, place in its inbox (8 bytes big endian) → `InboxItem`.
pub(crate) const INBOX_ITEMS: TableDefinition<'_, &[u8; 24], &[u8]> =
    TableDefinition::new("inbox_items/2");
/// Message id → `RequestRecord`, of requests of this node's agents that nobody was given yet.
pub(crate) const REQUESTS: TableDefinition<'_, &[u8; 16], &[u8]> =
    TableDefinition::new("requests/1");

/// Node, room → `Carriage`, of rooms that are carried for that node.
pub(crate) const CARRIAGES: TableDefinition<'_, &[u8; 48], &[u8]> =
    TableDefinition::new("carriages/1");
/// Node, room, author, incarnation, log seq → (last log seq, bytes, since), of things that are carried.
pub(crate) const CARRIED: TableDefinition<'_, &[u8; 96], (u64, u64, u64)> =
    TableDefinition::new("carried/1");
/// As in [`CARRIED`] → `Load`: apart, so that a start need not read it.
pub(crate) const LOADS: TableDefinition<'_, &[u8; 96], &[u8]> = TableDefinition::new("loads/2");
/// Node, room → `Owed`, of rooms of this node.
pub(crate) const OWED: TableDefinition<'_, &[u8; 48], &[u8]> = TableDefinition::new("owed/1");

/// Room → the number up to which all that was delivered has lost its body.
pub(crate) const PRUNED: TableDefinition<'_, u32, u64> = TableDefinition::new("pruned/1");

/// (room, message id) of each message that keeps the id that a ClawChat server gave it → (log, log
/// seq).
pub(crate) const CALLED: TableDefinition<'_, (u32, u128), (u32, u64)> =
    TableDefinition::new("called/1");

/// A [`mesh::wire::entry::Stored`] without its body, which is skipped, not copied.
#[derive(Decode)]
pub(crate) struct Gist {
    #[n(0)]
    pub(crate) facts: Facts,
    #[n(4)]
    pub(crate) gone: Option<Gone>,
}

/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing in it yet.
    Empty,
    /// Ours, of this layout.
    Layout(u64),
    /// Has tables, but not ours.
    Foreign,
}

/// Looks, without writing.
pub(crate) fn find(db: &Database) -> Result<Found, ReadError> {
    let read = db.begin_read()?;
    let names: Vec<String> = read.list_tables()?.map(|table| table.name().to_owned()).collect();
    if names.is_empty() {
        return Ok(Found::Empty);
    }
    if !names.iter().any(|name| name == META.name()) {
        return Ok(Found::Foreign);
    }
    let layout = match read.open_table(META) {
        Ok(table) => table.get(LAYOUT_ROW)?.map(|row| row.value()),
        Err(redb::TableError::Storage(error)) => return Err(error.into()),
        // A table of that name that is none of ours.
        Err(_) => None,
    };
    Ok(layout.map_or(Found::Foreign, Found::Layout))
}

/// Makes all tables, in one transaction.
pub(crate) fn make(db: &Database) -> Result<(), redb::Error> {
    let mut write = db.begin_write()?;
    write.set_quick_repair(true);
    write.open_table(ROOM_IDS)?;
    write.open_table(ROOMS)?;
    write.open_table(LOGS)?;
    write.open_table(ENTRIES)?;
    write.open_table(ERAS)?;
    write.open_table(NUMBERS)?;
    write.open_table(PLACES)?;
    write.open_table(NUMBER_RANGES)?;
    write.open_table(DEDUPS)?;
    write.open_table(EVIDENCE)?;
    write.open_table(NODE)?;
    write.open_table(ACTS)?;
    write.open_table(NOTES)?;
    write.open_table(KEPT)?;
    write.open_table(PRUNED)?;
    write.open_table(CALLED)?;
    write.open_table(RECORDS)?;
    write.open_table(CONTENTS)?;
    write.open_table(COPIED)?;
    write.open_table(REPLACED)?;
    write.open_table(REPLACED_CONTENTS)?;
    write.open_table(REPLACED_ORDER)?;
    write.open_table(REPLACED_BYTES)?;
    write.open_table(RECORD_CHANGES)?;
    write.open_table(RECORD_NUMBERS)?;
    write.open_table(RECORDS_GONE)?;
    write.open_table(INBOXES)?;
    write.open_table(INBOX_ITEMS)?;
    write.open_table(REQUESTS)?;
    write.open_table(CARRIAGES)?;
    write.open_table(CARRIED)?;
    write.open_table(LOADS)?;
    write.open_table(OWED)?;
    write.open_table(META)?.insert(LAYOUT_ROW, LAYOUT)?;
    Ok(write.commit()?)
}

/// Room for most rows: a buffer that begins empty moves six times until it holds a message.
const USUAL_ROW_BYTES: usize = 512;

/// A record as a row. Encoding into memory cannot fail.
pub(crate) fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut row = Vec::with_capacity(USUAL_ROW_BYTES);
    minicbor::encode(value, &mut row).expect("encoding into a Vec cannot fail");
    row
}

/// A row as the record it must be.
pub(crate) fn decode<'b, T: Decode<'b, ()>>(
    bytes: &'b [u8],
    what: &'static str,
) -> Result<T, ReadError> {
    minicbor::decode(bytes).map_err(|_| ReadError::Damaged(what))
}

pub(crate) fn fate_byte(fate: Fate) -> u8 {
    match fate {
        Fate::Assigned => 0,
        Fate::Delivered => 1,
        Fate::Hole => 2,
    }
}

pub(crate) fn fate_of(byte: u8) -> Result<Fate, ReadError> {
    match byte {
        0 => Ok(Fate::Assigned),
        1 => Ok(Fate::Delivered),
        2 => Ok(Fate::Hole),
        _ => Err(ReadError::Damaged("fate of a number")),
    }
}

/// All numbers of one entry, ascending. As a row: for each 8 bytes big endian, then its fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<(Number, Fate)>);

impl Numbers {
    const ITEM_BYTES: usize = 9;

    pub(crate) fn decode(row: &[u8]) -> Result<Numbers, ReadError> {
        let (items, rest) = row.as_chunks::<{ Numbers::ITEM_BYTES }>();
        if !rest.is_empty() {
            return Err(ReadError::Damaged("numbers of an entry"));
        }
        let item = |[number @ .., fate]: &[u8; Numbers::ITEM_BYTES]| {
            Ok((Number(u64::from_be_bytes(*number)), fate_of(*fate)?))
        };
        items.iter().map(item).collect::<Result<_, _>>().map(Numbers)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.0.len() * Self::ITEM_BYTES);
        for (number, fate) in &self.0 {
            row.extend_from_slice(&number.0.to_be_bytes());
            row.push(fate_byte(*fate));
        }
        row
    }

    /// Sets the fate of one number; `None` takes it away.
    pub(crate) fn set(&mut self, number: Number, fate: Option<Fate>) {
        match (self.0.binary_search_by_key(&number, |row| row.0), fate) {
            (Ok(i), Some(fate)) => self.0[i].1 = fate,
            (Ok(i), None) => {
                self.0.remove(i);
            }
            (Err(i), Some(fate)) => self.0.insert(i, (number, fate)),
            (Err(_), None) => {}
        }
    }

    /// Whether none is of this era.
    pub(crate) fn is_free_of(&self, era: Era) -> bool {
        self.all().all(|number| number.era() != era)
    }

    /// Ascending.
    pub(crate) fn all(&self) -> impl Iterator<Item = Number> {
        self.0.iter().map(|row| row.0)
    }

    pub(crate) fn lowest(&self) -> Option<Number> {
        self.0.first().map(|row| row.0)
    }

    pub(crate) fn highest(&self) -> Option<Number> {
        self.0.last().map(|row| row.0)
    }

    /// The one it was delivered under here.
    pub(crate) fn delivered(&self) -> Option<Number> {
        self.0.iter().find(|row| row.1 == Fate::Delivered).map(|row| row.0)
    }

    /// The lowest above `cursor`.
    pub(crate) fn above(&self, cursor: Number) -> Option<Number> {
        self.0.iter().map(|row| row.0).find(|number| *number > cursor)
    }
}

/// Opens a table to read; all of them are there from the first transaction on.
pub(crate) fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
    read: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<redb::ReadOnlyTable<K, V>, ReadError> {
    Ok(read.open_table(definition)?)
}
