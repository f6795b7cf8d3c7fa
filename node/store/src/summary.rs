//! What an engine starts from.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    batch::{EraRecord, Fate, LogRecord, NodeRecord, StoredRoom, Summary, Unsettled},
    entry::DedupId,
    id::{At, LogIx, MeshId, NodeId, RoomId},
    number::{Era, Number},
    run::{Certificate, Run},
};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use crate::{
    error::ReadError,
    schema::{DEDUPS, EVIDENCE, FORETOLD, NODE, ROOMS, decode, table},
    view::{View, bounds, room_row},
};

/// Kinds that order entries: of no use to those who fold the directory.
const ORDER_KINDS: std::ops::RangeInclusive<u8> = 16..=18;

/// Remembered sends of one room: id, entry, wall time.
type Dedups = Vec<(DedupId, At, u64)>;

pub(crate) fn read(db: &Database, me: NodeId, mesh: Option<MeshId>) -> Result<Summary, ReadError> {
    let read = db.begin_read()?;
    let node: Option<NodeRecord> =
        table(&read, NODE)?.get(0)?.map(|row| decode(row.value(), "node")).transpose()?;
    let forked = forked(&read)?;
    let Some(mesh) = mesh.or(node.as_ref().map(|it| it.mesh)) else {
        return Ok(Summary { node, forked, ..Summary::default() });
    };
    let mut dedups = dedups(&read)?;
    let directories = [RoomId::directory(mesh), RoomId::private_directory(mesh, me)];
    let mut rooms = Vec::new();
    let mut directory = Vec::new();
    for row in table(&read, ROOMS)?.iter()? {
        let (id, record) = room_row(row?.1.value())?;
        if record.mesh != mesh {
            continue;
        }
        let view = View::open(&read, id)?.ok_or(ReadError::Damaged("room id"))?;
        if directories.contains(&id) {
            directory_of(&view, &mut directory)?;
        }
        let dedups = dedups.remove(&view.room).unwrap_or_default();
        rooms.push(room(&read, &view, dedups)?);
    }
    // The mesh's directory before the private one, whichever was made first.
    directory.sort_by_key(|(id, at, ..)| (*id != directories[0], *at));
    Ok(Summary { node, rooms, directory, forked })
}

fn forked(read: &ReadTransaction) -> Result<Vec<NodeId>, ReadError> {
    let mut authors = BTreeSet::new();
    for row in table(read, EVIDENCE)?.iter()? {
        let (certificate, _): (Certificate, Run) = decode(row?.1.value(), "evidence")?;
        authors.insert(certificate.log.author);
    }
    Ok(authors.into_iter().collect())
}

/// By room. Rows are in order of time: of one id the newest stays.
fn dedups(read: &ReadTransaction) -> Result<BTreeMap<u32, Dedups>, ReadError> {
    let mut newest = BTreeMap::new();
    for row in table(read, DEDUPS)?.iter()? {
        let (key, row) = row?;
        let ((wall_ms, room, id), (log, seq)) = (key.value(), row.value());
        newest.insert((room, id), (At { log, seq }, wall_ms));
    }
    let mut rooms: BTreeMap<u32, Dedups> = BTreeMap::new();
    for ((room, id), (at, wall_ms)) in newest {
        rooms.entry(room).or_default().push((DedupId(id.to_be_bytes()), at, wall_ms));
    }
    Ok(rooms)
}

fn room(read: &ReadTransaction, view: &View, dedups: Dedups) -> Result<StoredRoom, ReadError> {
    let logs = view.logs()?;
    if logs.iter().zip(0..).any(|((log, _), ix)| *log != ix) {
        return Err(ReadError::Damaged("logs of a room"));
    }
    let eras = view.eras()?;
    let with_number = |(id, at, wall_ms)| Ok((id, at, wall_ms, view.numbers_of(at)?.delivered()));
    Ok(StoredRoom {
        room: view.id,
        record: view.record()?,
        waiting: waiting(view, &eras)?,
        unsettled: unsettled(view, &logs)?,
        foretold: foretold(read, view.room)?,
        dedups: dedups.into_iter().map(with_number).collect::<Result<_, ReadError>>()?,
        logs: logs.into_iter().map(|(_, record)| record).collect(),
        eras,
    })
}

/// For each era the numbers above `done`.
fn waiting(view: &View, eras: &[(Era, EraRecord)]) -> Result<Vec<(Number, At)>, ReadError> {
    let mut waiting = Vec::new();
    for (era, record) in eras {
        if record.known > record.done {
            let range = era.number(record.done + 1)..=era.number(record.known);
            for numbered in view.numbers(*range.start(), *range.end())? {
                let (number, at, _) = numbered?;
                waiting.push((number, at));
            }
        }
    }
    Ok(waiting)
}

/// Visible entries above each log's `settled` that were not delivered.
fn unsettled(view: &View, logs: &[(LogIx, LogRecord)]) -> Result<Vec<Unsettled>, ReadError> {
    let mut unsettled = Vec::new();
    for (log, record) in logs {
        for seq in record.settled + 1..=record.head {
            let at = At { log: *log, seq };
            let facts = view.facts(at)?.ok_or(ReadError::Damaged("log with a gap"))?;
            if !facts.visible {
                continue;
            }
            let numbers = view.numbers_of(at)?;
            if numbers.0.iter().all(|(_, fate)| *fate != Fate::Delivered) {
                let entry = view.stored(at)?.ok_or(ReadError::Damaged("log with a gap"))?;
                unsettled.push(Unsettled { at, entry, numbers: bounds(&numbers) });
            }
        }
    }
    Ok(unsettled)
}

fn foretold(
    read: &ReadTransaction,
    room: u32,
) -> Result<Vec<(At, mesh::batch::Foretold)>, ReadError> {
    table(read, FORETOLD)?
        .range((room, 0, 0)..=(room, u32::MAX, u64::MAX))?
        .map(|row| {
            let (key, row) = row?;
            let ((_, log, seq), (best, canonical)) = (key.value(), row.value());
            let numbers =
                mesh::batch::Foretold { best: Number(best), canonical: Number(canonical) };
            Ok((At { log, seq }, numbers))
        })
        .collect()
}

/// Entries of a directory, in the order of its logs, but for those that only order it.
fn directory_of(
    view: &View,
    directory: &mut Vec<(RoomId, At, mesh::entry::Stored, Option<Number>)>,
) -> Result<(), ReadError> {
    for row in view.entries.range((view.room, 0, 0)..=(view.room, u32::MAX, u64::MAX))? {
        let (key, row) = row?;
        let (_, log, seq) = key.value();
        let at = At { log, seq };
        let entry: mesh::entry::Stored = decode(row.value(), "entry")?;
        if !ORDER_KINDS.contains(&entry.facts.kind) {
            directory.push((view.id, at, entry, view.numbers_of(at)?.lowest()));
        }
    }
    Ok(())
}
