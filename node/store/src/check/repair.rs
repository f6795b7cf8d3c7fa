//! Making indexes anew, in one transaction. Entries and numbers are not touched.

use std::{collections::BTreeMap, path::Path};

use mesh::{
    api::batch::{Fate, LogRecord, RoomRecord},
    name::{
        id::{EntryRef, RoomId},
        number::Number,
    },
    wire::{entry::Stored, kinds::is_act},
};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};

use super::{
    numbers,
    report::Report,
    rooms::{self, Listed, kept_id},
};
use crate::{
    apply::call,
    error::{CommitError, OpenError},
    schema::{
        ACTS, CALLED, DEDUPS, ENTRIES, Gist, LOGS, NOTES, NUMBER_RANGES, NUMBERS, Numbers, PLACES,
        PlaceKey, ROOM_IDS, ROOMS, decode, encode, fate_of,
    },
    store,
    view::room_row,
};

/// Makes every index of the store in `dir` anew. Check it again afterwards.
///
/// # Errors
///
/// The outer one: the store cannot be opened. The inner one: it cannot be written, or rows that the
/// indexes follow from cannot be read; then nothing was changed.
pub fn repair(dir: &Path) -> Result<Result<(), CommitError>, OpenError> {
    let database = store::open_existing(dir)?;
    Ok(mend(&database))
}

fn mend(database: &Database) -> Result<(), CommitError> {
    let mut write = database.begin_write()?;
    write.set_durability(Durability::Immediate).map_err(|error| {
        let error: redb::Error = error.into();
        CommitError::Storage(Box::new(error))
    })?;
    write.set_quick_repair(true);
    room_ids(&write)?;
    acts(&write)?;
    called(&write)?;
    places(&write)?;
    references(&write)?;
    write.commit()?;
    // Tips and ranges of numbers follow from the indexes, which are right now.
    let (tips, number_ranges) = derived(database)?;
    let mut write = database.begin_write()?;
    write.set_quick_repair(true);
    {
        let mut table = write.open_table(ROOMS)?;
        for (room, (id, record)) in tips {
            let row = [id.0.as_slice(), &encode(&record)].concat();
            table.insert(room, row.as_slice())?;
        }
        let mut table = write.open_table(NUMBER_RANGES)?;
        for (key, (best, canonical)) in number_ranges {
            match best {
                0 => drop(table.remove(key)?),
                best => drop(table.insert(key, (best, canonical))?),
            }
        }
    }
    Ok(write.commit()?)
}

fn room_ids(write: &WriteTransaction) -> Result<(), CommitError> {
    let rooms = write.open_table(ROOMS)?;
    let mut ids = write.open_table(ROOM_IDS)?;
    ids.retain(|_, _| false)?;
    for row in rooms.iter()? {
        let (room, row) = row?;
        if let Some(id) = row.value().first_chunk() {
            ids.insert(id, room.value())?;
        }
    }
    Ok(())
}

fn acts(write: &WriteTransaction) -> Result<(), CommitError> {
    let entries = write.open_table(ENTRIES)?;
    let mut acts = write.open_table(ACTS)?;
    acts.retain(|_, _| false)?;
    for row in entries.iter()? {
        let (key, row) = row?;
        let gist: Result<Gist, _> = decode(row.value(), "entry");
        if gist.is_ok_and(|gist| is_act(gist.facts.kind)) {
            acts.insert(key.value(), ())?;
        }
    }
    Ok(())
}

/// Adds what is not there, and takes away what leads to another message. A row of one whose body
/// was dropped stays: nothing else has its id.
fn called(write: &WriteTransaction) -> Result<(), CommitError> {
    let rooms = write.open_table(ROOMS)?;
    let logs = write.open_table(LOGS)?;
    let entries = write.open_table(ENTRIES)?;
    let mut called = write.open_table(CALLED)?;
    called.retain(|(room, _), (log, seq)| {
        let entry = entries.get((room, log, seq)).ok().flatten();
        let gist: Option<Gist> = entry.and_then(|row| decode(row.value(), "entry").ok());
        gist.is_some_and(|gist| gist.gone.is_some())
    })?;
    for row in rooms.iter()? {
        let (room, row) = row?;
        let (room, Ok((id, record))) = (room.value(), room_row(row.value())) else { continue };
        for row in logs.range((room, 0)..=(room, u32::MAX))? {
            let (key, row) = row?;
            let (log, known) = (key.value().1, decode::<LogRecord>(row.value(), "log"));
            let Some(known) = known.ok().filter(|log| log.id == record.home) else { continue };
            for row in entries.range((room, log, 0)..=(room, log, u64::MAX))? {
                let (key, row) = row?;
                let seq = key.value().2;
                let Ok(entry) = decode::<Stored>(row.value(), "entry") else { continue };
                if let Some(message) = kept_id(&record, id, EntryRef { log: known.id, seq }, &entry)
                {
                    call(&mut called, (room, u128::from_be_bytes(message.0)), (log, seq))?;
                }
            }
        }
    }
    Ok(())
}

/// Room by room: of one room all is in memory meanwhile.
fn places(write: &WriteTransaction) -> Result<(), CommitError> {
    let numbers = write.open_table(NUMBERS)?;
    let mut places = write.open_table(PLACES)?;
    places.retain(|_, _| false)?;
    let mut of_room: BTreeMap<PlaceKey, Numbers> = BTreeMap::new();
    let mut last = None;
    for row in numbers.iter()? {
        let (key, row) = row?;
        let ((room, number), (log, seq, fate)) = (key.value(), row.value());
        if last.replace(room).is_some_and(|last| last != room) {
            for (key, numbers) in std::mem::take(&mut of_room) {
                places.insert(key, numbers.encode().as_slice())?;
            }
        }
        let fate = fate_of(fate).unwrap_or(Fate::Assigned);
        of_room.entry((room, log, seq)).or_default().set(Number(number), Some(fate));
    }
    for (key, numbers) in of_room {
        places.insert(key, numbers.encode().as_slice())?;
    }
    Ok(())
}

/// References that lead nowhere are left out.
fn references(write: &WriteTransaction) -> Result<(), CommitError> {
    let entries = write.open_table(ENTRIES)?;
    let mut dedups = write.open_table(DEDUPS)?;
    let mut dangling = Vec::new();
    for row in dedups.iter()? {
        let (key, row) = row?;
        let (log, seq) = row.value();
        if entries.get((key.value().1, log, seq))?.is_none() {
            dangling.push(key.value());
        }
    }
    for key in dangling {
        dedups.remove(key)?;
    }
    let mut notes = write.open_table(NOTES)?;
    let mut dangling = Vec::new();
    for row in notes.iter()? {
        let key = row?.0.value();
        if entries.get(key)?.is_none() {
            dangling.push(key);
        }
    }
    for key in dangling {
        notes.remove(key)?;
    }
    Ok(())
}

type Tips = BTreeMap<u32, (RoomId, RoomRecord)>;
/// By place: highest and lowest number; 0: the row is to go.
type NumberRanges = BTreeMap<PlaceKey, (u64, u64)>;

fn derived(database: &Database) -> Result<(Tips, NumberRanges), CommitError> {
    let read = database.begin_read()?;
    let (mut tips, mut number_ranges) = (Tips::new(), NumberRanges::new());
    // The check reports these problems itself.
    let mut ignored = Report::default();
    let all = rooms::list(&read, &mut ignored)?;
    let table = read.open_table(NUMBER_RANGES)?;
    for listed in &all {
        let Listed { row, id, record } = listed;
        let Some(room) = rooms::open(&read, listed, &mut ignored)? else { continue };
        let tip = numbers::tip_of(&room);
        if record.tip != tip {
            tips.insert(*row, (*id, RoomRecord { tip, ..record.clone() }));
        }
        for stale in table.range((*row, 0, 0)..=(*row, u32::MAX, u64::MAX))? {
            let key = stale?.0.value();
            if !room.logs.contains_key(&key.1) {
                number_ranges.insert(key, (0, 0));
            }
        }
        for ((log, seq), range) in numbers::expected(&room)? {
            number_ranges.insert((*row, log, seq), (range.best.0, range.canonical.0));
        }
    }
    Ok((tips, number_ranges))
}
