//! Writes the rows of a plan into one transaction.

use std::collections::BTreeMap;

use mesh::{
    api::batch::Fate,
    limits::{DEDUP_FOR, DEDUP_IDS_MAX},
    name::{id::LocalRef, number::Number},
    wire::{
        kinds::is_act,
        run::{Certificate, Run},
    },
};
use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::{
    error::{CommitError, ReadError},
    followed,
    plan::{Rows, settle},
    replaced,
    schema::{
        ACTS, CALLED, CONTENTS, COPIED, DEDUPS, ENTRIES, ERAS, EVIDENCE, KEPT, LOGS, NODE, NOTES,
        NUMBER_RANGES, NUMBERS, Numbers, PLACES, PlaceKey, RECORDS, ROOM_IDS, ROOMS, encode,
        fate_byte, fate_of,
    },
};

impl From<ReadError> for CommitError {
    fn from(error: ReadError) -> CommitError {
        match error {
            ReadError::Storage(source) => CommitError::Storage(source),
            ReadError::Damaged(what) => CommitError::Damaged(what),
        }
    }
}

/// Everything, in ascending order of keys within each table.
pub(crate) fn apply(write: &WriteTransaction, rows: &Rows<'_>) -> Result<(), CommitError> {
    rows.dropped.iter().try_for_each(|(id, room)| drop_room(write, id.0, *room))?;
    rooms(write, rows)?;
    if !rows.logs.is_empty() {
        let mut table = write.open_table(LOGS)?;
        for (key, record) in &rows.logs {
            table.insert(key, encode(*record).as_slice())?;
        }
    }
    entries(write, rows)?;
    if !rows.eras.is_empty() {
        let mut table = write.open_table(ERAS)?;
        for (key, record) in &rows.eras {
            table.insert(key, encode(*record).as_slice())?;
        }
    }
    numbers(write, &rows.numbers)?;
    if !rows.number_ranges.is_empty() {
        let mut table = write.open_table(NUMBER_RANGES)?;
        for (key, numbers) in &rows.number_ranges {
            match numbers {
                Some(range) => table.insert(key, (range.best.0, range.canonical.0))?,
                None => table.remove(key)?,
            };
        }
    }
    if !rows.dedups.is_empty() {
        let mut table = write.open_table(DEDUPS)?;
        for (key, at) in &rows.dedups {
            table.insert(key, (at.log, at.seq))?;
        }
    }
    if !rows.called.is_empty() {
        let mut table = write.open_table(CALLED)?;
        for (key, at) in &rows.called {
            call(&mut table, *key, (at.log, at.seq))?;
        }
    }
    evidence(write, &rows.evidence)?;
    notes(write, rows)?;
    replaced::apply(write, &rows.replaced)?;
    records(write, rows)?;
    rows.inboxes.apply(write)?;
    rows.requests.apply(write)?;
    rows.carried.apply(write)?;
    if let Some(record) = rows.node {
        write.open_table(NODE)?.insert(0, encode(record).as_slice())?;
    }
    Ok(())
}

/// Of two messages of one id the first counts.
pub(crate) fn call(
    table: &mut redb::Table<'_, (u32, u128), (u32, u64)>,
    key: (u32, u128),
    at: (u32, u64),
) -> Result<(), CommitError> {
    let is_new = table.get(key)?.is_none();
    if is_new {
        table.insert(key, at)?;
    }
    Ok(())
}

fn rooms(write: &WriteTransaction, rows: &Rows<'_>) -> Result<(), CommitError> {
    if !rows.ids.is_empty() {
        let mut table = write.open_table(ROOM_IDS)?;
        for (id, room) in &rows.ids {
            table.insert(&id.0, room)?;
        }
    }
    if !rows.rooms.is_empty() {
        let mut table = write.open_table(ROOMS)?;
        for (room, (id, record)) in &rows.rooms {
            let row = [id.0.as_slice(), &encode(*record)].concat();
            table.insert(room, row.as_slice())?;
        }
    }
    Ok(())
}

fn entries(write: &WriteTransaction, rows: &Rows<'_>) -> Result<(), CommitError> {
    if rows.entries.is_empty() {
        return Ok(());
    }
    let mut table = write.open_table(ENTRIES)?;
    for (key, (room, entry)) in &rows.entries {
        let row = encode(*entry);
        if let Some(old) = table.insert(key, row.as_slice())?
            && old.value() != row
        {
            let at = LocalRef { log: key.1, seq: key.2 };
            return Err(CommitError::EntryReplaced { room: *room, at });
        }
    }
    let mut acts =
        rows.entries.iter().filter(|(_, (_, entry))| is_act(entry.facts.kind)).peekable();
    if acts.peek().is_some() {
        let mut table = write.open_table(ACTS)?;
        for (key, _) in acts {
            table.insert(key, ())?;
        }
    }
    Ok(())
}

fn records(write: &WriteTransaction, rows: &Rows<'_>) -> Result<(), CommitError> {
    if !rows.contents.is_empty() {
        let mut table = write.open_table(CONTENTS)?;
        let mut copied = write.open_table(COPIED)?;
        for (key, bytes) in &rows.contents {
            match bytes {
                Some(bytes) => table.insert(key.as_slice(), *bytes)?,
                None => table.remove(key.as_slice())?,
            };
            // Of other bytes, or of none: nobody has said that he has these.
            copied.remove(key.as_slice())?;
        }
    }
    if !rows.copied.is_empty() {
        let mut table = write.open_table(COPIED)?;
        for key in &rows.copied {
            table.insert(key.as_slice(), ())?;
        }
    }
    if rows.records.is_empty() {
        return Ok(());
    }
    followed::number(write, &rows.records)?;
    let mut table = write.open_table(RECORDS)?;
    for (key, record) in &rows.records {
        match record {
            Some(record) => table.insert(key.as_slice(), encode(*record).as_slice())?,
            None => table.remove(key.as_slice())?,
        };
    }
    Ok(())
}

fn notes(write: &WriteTransaction, rows: &Rows<'_>) -> Result<(), CommitError> {
    if !rows.notes.is_empty() {
        let mut table = write.open_table(NOTES)?;
        for (key, note) in &rows.notes {
            match note {
                Some(note) => table.insert(key, encode(*note).as_slice())?,
                None => table.remove(key)?,
            };
        }
    }
    if !rows.kept.is_empty() {
        let mut table = write.open_table(KEPT)?;
        for (name, value) in &rows.kept {
            match value {
                Some(value) => table.insert(*name, *value)?,
                None => table.remove(*name)?,
            };
        }
    }
    Ok(())
}

/// Both ways: number → entry, and entry → all its numbers.
fn numbers(
    write: &WriteTransaction,
    rows: &BTreeMap<(u32, u64), (LocalRef, Fate)>,
) -> Result<(), CommitError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut places: BTreeMap<PlaceKey, Vec<(Number, Option<Fate>)>> = BTreeMap::new();
    let mut table = write.open_table(NUMBERS)?;
    for (key, new) in rows {
        // Nearly all are new: then one way through the tree is enough.
        let old = insert_number(&mut table, *key, *new)?;
        let (at, fate) = settle(old, *new);
        if (at, fate) != *new {
            insert_number(&mut table, *key, (at, fate))?;
        }
        let number = Number(key.1);
        if let Some((before, _)) = old
            && before != at
        {
            places.entry((key.0, before.log, before.seq)).or_default().push((number, None));
        }
        places.entry((key.0, at.log, at.seq)).or_default().push((number, Some(fate)));
    }
    let mut table = write.open_table(PLACES)?;
    for (key, changes) in places {
        place(&mut table, key, &changes)?;
    }
    Ok(())
}

/// The row that was there.
fn insert_number(
    table: &mut redb::Table<'_, (u32, u64), (u32, u64, u8)>,
    key: (u32, u64),
    (at, fate): (LocalRef, Fate),
) -> Result<Option<(LocalRef, Fate)>, CommitError> {
    let Some(old) = table.insert(key, (at.log, at.seq, fate_byte(fate)))? else { return Ok(None) };
    let (log, seq, fate) = old.value();
    Ok(Some((LocalRef { log, seq }, fate_of(fate)?)))
}

/// Changes of one entry's numbers.
fn place(
    table: &mut redb::Table<'_, PlaceKey, &[u8]>,
    key: PlaceKey,
    changes: &[(Number, Option<Fate>)],
) -> Result<(), CommitError> {
    let set = |mut numbers: Numbers| {
        changes.iter().for_each(|(number, fate)| numbers.set(*number, *fate));
        numbers
    };
    // Nearly all entries have no numbers yet.
    let new = set(Numbers::default());
    let old = match table.insert(key, new.encode().as_slice())? {
        Some(row) => Numbers::decode(row.value())?,
        None => Numbers::default(),
    };
    let now = set(old);
    if now.0.is_empty() {
        table.remove(key)?;
    } else if now != new {
        table.insert(key, now.encode().as_slice())?;
    }
    Ok(())
}

/// Of two proofs of one log the one with the lower place counts.
fn evidence(write: &WriteTransaction, rows: &[(&Certificate, &Run)]) -> Result<(), CommitError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = write.open_table(EVIDENCE)?;
    for (certificate, run) in rows {
        let mut key = [0; 56];
        key[..32].copy_from_slice(&certificate.log.author.0);
        key[32..48].copy_from_slice(&certificate.room.0);
        key[48..].copy_from_slice(&certificate.log.incarnation.to_be_bytes());
        let lower = match table.get(&key)? {
            Some(row) => {
                let (old, _): (Certificate, Run) = crate::schema::decode(row.value(), "evidence")?;
                certificate.seq < old.seq
            }
            None => true,
        };
        if lower {
            table.insert(&key, encode(&(**certificate, (*run).clone())).as_slice())?;
        }
    }
    Ok(())
}

/// Removes every row of a room. Only ephemeral rooms are dropped, so this is all in memory.
fn drop_room(write: &WriteTransaction, id: [u8; 16], room: u32) -> Result<(), CommitError> {
    let places = (room, 0, 0)..=(room, u32::MAX, u64::MAX);
    let numbers = (room, 0)..=(room, u64::MAX);
    write.open_table(ROOM_IDS)?.remove(&id)?;
    write.open_table(ROOMS)?.remove(room)?;
    write.open_table(LOGS)?.retain_in((room, 0)..=(room, u32::MAX), |_, _| false)?;
    write.open_table(ENTRIES)?.retain_in(places.clone(), |_, _| false)?;
    write.open_table(ERAS)?.retain_in(numbers.clone(), |_, _| false)?;
    write.open_table(NUMBERS)?.retain_in(numbers, |_, _| false)?;
    write.open_table(PLACES)?.retain_in(places.clone(), |_, _| false)?;
    write.open_table(NUMBER_RANGES)?.retain_in(places.clone(), |_, _| false)?;
    write.open_table(ACTS)?.retain_in(places.clone(), |_, _| false)?;
    write.open_table(NOTES)?.retain_in(places, |_, _| false)?;
    write.open_table(DEDUPS)?.retain(|key, _| key.1 != room)?;
    write.open_table(CALLED)?.retain_in((room, 0)..=(room, u128::MAX), |_, _| false)?;
    write.open_table(EVIDENCE)?.retain(|key, _| key[32..48] != id)?;
    Ok(())
}

/// Forgets dedup rows that are older than [`DEDUP_FOR`] at `wall_ms`, and all but the newest
/// [`DEDUP_IDS_MAX`].
pub(crate) fn prune_dedups(
    write: &WriteTransaction,
    wall_ms: Option<u64>,
) -> Result<(), CommitError> {
    let mut table = write.open_table(DEDUPS)?;
    if let Some(now) = wall_ms {
        let oldest = now.saturating_sub(u64::try_from(DEDUP_FOR.as_millis()).unwrap_or(u64::MAX));
        table.retain_in(..(oldest, 0, 0), |_, _| false)?;
    }
    let max = DEDUP_IDS_MAX as u64;
    for _ in max..table.len()?.max(max) {
        table.pop_first()?;
    }
    Ok(())
}
