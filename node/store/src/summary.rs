//! The summary that an engine starts from.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::batch::{
        EraRecord, Fate, LogRecord, NodeRecord, StoredRoom, Summary, Unsettled, VoteNote,
    },
    limits::PROOFS_MAX,
    name::{
        id::{LocalRef, LogIx, MeshId, NodeId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::{DedupId, Stored},
        run::{Certificate, Run},
    },
};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use crate::{
    carried,
    error::ReadError,
    inboxes, records, requests,
    schema::{ACTS, DEDUPS, EVIDENCE, NODE, NOTES, NUMBER_RANGES, PlaceKey, ROOMS, decode, table},
    view::{View, bounds, room_row},
};

/// Kinds that order entries: of no use to those who fold the directory.
const ORDER_KINDS: std::ops::RangeInclusive<u8> = 16..=18;

/// Remembered sends of one room: id, entry, wall time.
type Dedups = Vec<(DedupId, LocalRef, u64)>;

pub(crate) fn read(db: &Database, me: NodeId, mesh: Option<MeshId>) -> Result<Summary, ReadError> {
    let read = db.begin_read()?;
    let node: Option<NodeRecord> =
        table(&read, NODE)?.get(0)?.map(|row| decode(row.value(), "node")).transpose()?;
    let forked = forked(&read)?;
    let Some(mesh) = mesh.or(node.as_ref().map(|node| node.mesh)) else {
        return Ok(Summary { node, forked, ..Summary::default() });
    };
    let mut dedups = dedups(&read)?;
    let former = node.as_ref().and_then(|node| node.private_of).unwrap_or(me);
    let directories = [
        RoomId::directory(mesh),
        RoomId::private_directory(mesh, me),
        RoomId::private_directory(mesh, former),
    ];
    let mut rooms = Vec::new();
    let mut directory = Vec::new();
    let (mut acts, mut notes) = (Vec::new(), Vec::new());
    for row in table(&read, ROOMS)?.iter()? {
        let (id, record) = room_row(row?.1.value())?;
        if record.mesh != mesh {
            continue;
        }
        let view = View::open(&read, id)?.ok_or(ReadError::Damaged("room id"))?;
        let sealed_directory = record.seal.as_ref().is_some_and(|seal| seal.opener.is_some());
        if directories.contains(&id) || sealed_directory {
            directory_of(&view, &mut directory)?;
        }
        acts_of(&read, &view, &mut acts)?;
        notes_of(&read, &view, &mut notes)?;
        let dedups = dedups.remove(&view.room).unwrap_or_default();
        rooms.push(room(&read, &view, dedups)?);
    }
    let proofs = proofs(&read, &rooms)?;
    // The mesh's directory before the private ones, whichever was made first.
    directory.sort_by_key(|(id, at, ..)| (*id != directories[0], *at));
    let records = records::heads(&read, mesh)?;
    let inboxes = inboxes::all(&read)?;
    let requests = requests::all(&read)?;
    let (carriages, owed) = (carried::carriages(&read)?, carried::owed(&read)?);
    let carried = carried::outlines(&read)?;
    let summary =
        Summary { node, rooms, directory, forked, proofs, acts, notes, ..Summary::default() };
    Ok(Summary { records, inboxes, requests, carriages, carried, owed, ..summary })
}

/// Forks in sealed rooms count in the rooms of the same key alone: the logs' records tell of them.
fn forked(read: &ReadTransaction) -> Result<Vec<NodeId>, ReadError> {
    let mut authors = BTreeSet::new();
    for row in table(read, EVIDENCE)?.iter()? {
        let (certificate, _): (Certificate, Run) = decode(row?.1.value(), "evidence")?;
        let record = View::open(read, certificate.room)?.map(|view| view.record()).transpose()?;
        if record.is_none_or(|room| room.seal.is_none()) {
            authors.insert(certificate.log.author);
        }
    }
    Ok(authors.into_iter().collect())
}

/// Of these rooms; as many as the engine keeps.
fn proofs(
    read: &ReadTransaction,
    rooms: &[StoredRoom],
) -> Result<Vec<(Certificate, Run)>, ReadError> {
    let rooms: BTreeSet<RoomId> = rooms.iter().map(|room| room.room).collect();
    let mut proofs = Vec::new();
    for row in table(read, EVIDENCE)?.iter()? {
        let (certificate, run): (Certificate, Run) = decode(row?.1.value(), "evidence")?;
        if rooms.contains(&certificate.room) && proofs.len() < PROOFS_MAX {
            proofs.push((certificate, run));
        }
    }
    Ok(proofs)
}

/// By room. Rows are in order of time: of one id the newest stays.
fn dedups(read: &ReadTransaction) -> Result<BTreeMap<u32, Dedups>, ReadError> {
    let mut newest = BTreeMap::new();
    for row in table(read, DEDUPS)?.iter()? {
        let (key, row) = row?;
        let ((wall_ms, room, id), (log, seq)) = (key.value(), row.value());
        newest.insert((room, id), (LocalRef { log, seq }, wall_ms));
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
        foretold: number_ranges(read, view.room)?,
        dedups: dedups.into_iter().map(with_number).collect::<Result<_, ReadError>>()?,
        logs: logs.into_iter().map(|(_, record)| record).collect(),
        eras,
    })
}

/// For each era the numbers above `done`.
fn waiting(view: &View, eras: &[(Era, EraRecord)]) -> Result<Vec<(Number, LocalRef)>, ReadError> {
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
            let at = LocalRef { log: *log, seq };
            let facts = view.facts(at)?.ok_or(ReadError::Damaged("log with a gap"))?;
            if !facts.visible {
                continue;
            }
            let numbers = view.numbers_of(at)?;
            if numbers.0.iter().all(|(_, fate)| *fate != Fate::Delivered) {
                let entry = view.stored(at)?.ok_or(ReadError::Damaged("log with a gap"))?;
                // Nobody waits for an entry that came without its body.
                if entry.gone.is_some() {
                    continue;
                }
                unsettled.push(Unsettled { at, entry, numbers: bounds(&numbers) });
            }
        }
    }
    Ok(unsettled)
}

fn number_ranges(
    read: &ReadTransaction,
    room: u32,
) -> Result<Vec<(LocalRef, mesh::api::batch::NumberRange)>, ReadError> {
    table(read, NUMBER_RANGES)?
        .range(all_of(room))?
        .map(|row| {
            let (key, row) = row?;
            let ((_, log, seq), (best, canonical)) = (key.value(), row.value());
            let numbers =
                mesh::api::batch::NumberRange { best: Number(best), canonical: Number(canonical) };
            Ok((LocalRef { log, seq }, numbers))
        })
        .collect()
}

/// Entries of a directory, in the order of its logs, but for those that only order it.
fn directory_of(
    view: &View,
    directory: &mut Vec<(RoomId, LocalRef, Stored, Vec<Number>)>,
) -> Result<(), ReadError> {
    for row in view.entries.range(all_of(view.room))? {
        let (key, row) = row?;
        let (_, log, seq) = key.value();
        let at = LocalRef { log, seq };
        let entry: Stored = decode(row.value(), "entry")?;
        if !ORDER_KINDS.contains(&entry.facts.kind) {
            directory.push((view.id, at, entry, view.numbers_of(at)?.all().collect()));
        }
    }
    Ok(())
}

/// Acts of a room, each log's in order.
fn acts_of(
    read: &ReadTransaction,
    view: &View,
    acts: &mut Vec<(RoomId, LocalRef, Stored)>,
) -> Result<(), ReadError> {
    for row in table(read, ACTS)?.range(all_of(view.room))? {
        let (_, log, seq) = row?.0.value();
        let at = LocalRef { log, seq };
        acts.push((view.id, at, view.stored(at)?.ok_or(ReadError::Damaged("act"))?));
    }
    Ok(())
}

fn notes_of(
    read: &ReadTransaction,
    view: &View,
    notes: &mut Vec<(RoomId, LocalRef, VoteNote)>,
) -> Result<(), ReadError> {
    for row in table(read, NOTES)?.range(all_of(view.room))? {
        let (key, row) = row?;
        let (_, log, seq) = key.value();
        notes.push((view.id, LocalRef { log, seq }, decode(row.value(), "note")?));
    }
    Ok(())
}

/// Every place in a room.
fn all_of(room: u32) -> std::ops::RangeInclusive<PlaceKey> {
    (room, 0, 0)..=(room, u32::MAX, u64::MAX)
}
