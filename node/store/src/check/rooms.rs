//! Rooms, their logs and eras by their records; and rows of rooms that are not there.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::{
        batch::{EraRecord, LogRecord, RoomRecord},
        import::{may_bring, message_id},
    },
    name::{
        id::{EntryRef, LogId, LogIx, MessageId, RoomId},
        number::Era,
    },
    wire::{
        entry::Stored,
        kinds::{CHAT, DECISION},
        seal::SealContext,
    },
};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::report::{Derived, Place, Problem, Report};
use crate::{
    error::ReadError,
    schema::{
        ACTS, CALLED, ENTRIES, ERAS, LOGS, NOTES, NUMBER_RANGES, NUMBERS, PLACES, PRUNED, ROOM_IDS,
        ROOMS, decode, table,
    },
    view::{View, room_row},
};

/// A room whose records can be read.
pub(super) struct Room<'a> {
    pub(super) read: &'a ReadTransaction,
    pub(super) view: View,
    pub(super) record: &'a RoomRecord,
    /// By index: all that can be read.
    pub(super) logs: BTreeMap<LogIx, LogRecord>,
    pub(super) by_id: BTreeMap<LogId, LogIx>,
    pub(super) eras: BTreeMap<Era, EraRecord>,
}

impl Room<'_> {
    pub(super) fn row(&self) -> u32 {
        self.view.room
    }

    pub(super) fn log_id(&self, log: LogIx) -> Option<LogId> {
        self.logs.get(&log).map(|log| log.id)
    }

    /// The id of a ClawChat server that a message keeps.
    pub(super) fn keeps_id(&self, at: EntryRef, entry: &Stored) -> Option<MessageId> {
        kept_id(self.record, self.view.id, at, entry)
    }

    pub(super) fn entry(&self, log: LogIx, seq: u64) -> Place {
        Place::Entry { room: self.view.id, log: self.log_id(log), seq }
    }
}

/// See [`Room::keeps_id`].
pub(super) fn kept_id(
    record: &RoomRecord,
    room: RoomId,
    EntryRef { log, seq }: EntryRef,
    entry: &Stored,
) -> Option<MessageId> {
    let kind = entry.facts.kind;
    let says = entry.gone.is_none() && (CHAT..=DECISION).contains(&kind);
    if !says || !may_bring(record, room, log) {
        return None;
    }
    let said = record.body(&SealContext { room, log, seq, kind }, &entry.body).said();
    let id = message_id(record, room, EntryRef { log, seq }, said.as_ref());
    id.is_foreign().then_some(id)
}

/// How many rows a check will look at, more or less.
pub(super) fn rows(read: &ReadTransaction) -> Result<u64, ReadError> {
    Ok(table(read, ENTRIES)?.len()? + table(read, NUMBERS)?.len()? + table(read, PLACES)?.len()?)
}

/// A room that can be read.
pub(super) struct Listed {
    pub(super) row: u32,
    pub(super) id: RoomId,
    pub(super) record: RoomRecord,
}

/// All rooms that can be read, ascending by their row; and whether the index of ids leads to them.
pub(super) fn list(read: &ReadTransaction, report: &mut Report) -> Result<Vec<Listed>, ReadError> {
    let mut rooms = BTreeMap::new();
    let ids = table(read, ROOM_IDS)?;
    for row in table(read, ROOMS)?.iter()? {
        let (key, row) = row?;
        let room = key.value();
        let Ok((id, record)) = room_row(row.value()) else {
            report.add(Place::Row { room }, Problem::Record("record of the room"));
            continue;
        };
        if ids.get(&id.0)?.is_none_or(|row| row.value() != room) {
            report.add(Place::Room { room: id }, Derived::RoomIndex);
        }
        rooms.insert(room, Listed { row: room, id, record });
    }
    for row in ids.iter()? {
        let (key, row) = row?;
        let id = RoomId(*key.value());
        if rooms.get(&row.value()).is_none_or(|room| room.id != id) {
            report.add(Place::Room { room: id }, Derived::RoomIndex);
        }
    }
    Ok(rooms.into_values().collect())
}

/// The records of a room. `None`: without the list of its logs nothing else can be said.
pub(super) fn open<'a>(
    read: &'a ReadTransaction,
    listed: &'a Listed,
    report: &mut Report,
) -> Result<Option<Room<'a>>, ReadError> {
    let Listed { row, id, record } = listed;
    let (row, id) = (*row, *id);
    let here = Place::Room { room: id };
    let (mut logs, mut by_id) = (BTreeMap::new(), BTreeMap::new());
    let mut whole = true;
    for (log, ix) in table(read, LOGS)?.range((row, 0)..=(row, u32::MAX))?.zip(0..) {
        let (key, log) = log?;
        let Ok(log): Result<LogRecord, _> = decode(log.value(), "log") else {
            report.add(here, Problem::Record("record of a log"));
            whole = false;
            continue;
        };
        if key.value().1 != ix || by_id.insert(log.id, ix).is_some() {
            report.add(here, Problem::LogList);
            whole = false;
        }
        logs.insert(key.value().1, log);
    }
    let mut eras = BTreeMap::new();
    for era in table(read, ERAS)?.range((row, 0)..=(row, u64::MAX))? {
        let (key, record) = era?;
        let era = Era(key.value().1);
        let place = Place::Era { room: id, era };
        let Ok(record): Result<EraRecord, _> = decode(record.value(), "era") else {
            report.add(place, Problem::Record("record of the era"));
            continue;
        };
        if !era.is_valid() || record.done > record.known || record.known > era.capacity() {
            report.add(place, Problem::Era);
        }
        eras.insert(era, record);
    }
    let room = Room { read, view: View::at(read, id, row)?, record, logs, by_id, eras };
    Ok(whole.then_some(room))
}

/// Rows of rooms that are not there. One finding for each room and table.
pub(super) fn strays(
    read: &ReadTransaction,
    known: &BTreeMap<u32, RoomId>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut found: BTreeSet<(u32, &'static str)> = BTreeSet::new();
    macro_rules! look {
        ($($table:ident, $what:literal, $room:ident => $low:expr, $key:ident => $of:expr;)*) => {
            $({
                let table = table(read, $table)?;
                let mut $room = 0_u32;
                // From room to room: the rows between are not looked at.
                while let Some(row) = table.range($low..)?.next() {
                    let $key = row?.0.value();
                    let of: u32 = $of;
                    if !known.contains_key(&of) {
                        found.insert((of, $what));
                    }
                    let Some(next) = of.checked_add(1) else { break };
                    $room = next;
                }
            })*
        };
    }
    look! {
        LOGS, "logs", room => (room, 0), key => key.0;
        ENTRIES, "entries", room => (room, 0, 0), key => key.0;
        ERAS, "eras", room => (room, 0), key => key.0;
        NUMBERS, "numbers", room => (room, 0), key => key.0;
        PLACES, "places", room => (room, 0, 0), key => key.0;
        NUMBER_RANGES, "numbers of entries", room => (room, 0, 0), key => key.0;
        ACTS, "acts", room => (room, 0, 0), key => key.0;
        NOTES, "notes", room => (room, 0, 0), key => key.0;
        CALLED, "ids of messages", room => (room, 0), key => key.0;
        PRUNED, "a floor", room => room, key => key;
    }
    for (room, what) in found {
        report.add(Place::Row { room }, Problem::NoRoom(what));
    }
    Ok(())
}
