//! Rows of no single room: remembered sends, notes, evidence, the node itself.

use std::collections::BTreeMap;

use mesh::{
    api::batch::{NodeRecord, VoteNote},
    name::{
        id::{MeshId, RoomId},
        identity::Judge,
    },
    records::collection::{Collection, Writer, is_sound},
    wire::{
        record::{Apart, Record, RecordKey},
        run::{Certificate, Run},
    },
};
use redb::{ReadTransaction, ReadableTable};

use super::report::{Derived, Place, Problem, Report};
use crate::{
    error::ReadError,
    followed, inboxes,
    records::Shelf,
    replaced, requests,
    schema::{
        CONTENTS, COPIED, DEDUPS, ENTRIES, EVIDENCE, NODE, NOTES, RECORDS, ROOM_IDS, ROOMS, decode,
        table,
    },
    view::room_row,
};

pub(super) fn of_no_room(
    read: &ReadTransaction,
    judge: &dyn Judge,
    known: &BTreeMap<u32, RoomId>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let place =
        |room: u32| known.get(&room).map_or(Place::Row { room }, |id| Place::Room { room: *id });
    let entries = table(read, ENTRIES)?;
    for row in table(read, DEDUPS)?.iter()? {
        let (key, row) = row?;
        let ((_, room, _), (log, seq)) = (key.value(), row.value());
        if entries.get((room, log, seq))?.is_none() {
            report.add(place(room), Derived::Dedup);
        }
    }
    for row in table(read, NOTES)?.iter()? {
        let (key, row) = row?;
        let key = key.value();
        let note: Result<VoteNote, _> = decode(row.value(), "note");
        if note.is_err() {
            report.add(place(key.0), Problem::Record("note on a vote"));
        } else if entries.get(key)?.is_none() {
            report.add(place(key.0), Derived::Note);
        }
    }
    for row in table(read, EVIDENCE)?.iter()? {
        let (key, row) = row?;
        let mut room = [0; 16];
        room.copy_from_slice(&key.value()[32..48]);
        let evidence: Result<(Certificate, Run), _> = decode(row.value(), "evidence");
        match evidence {
            Ok((certificate, run)) => {
                if !proves(read, judge, key.value(), &certificate, run)? {
                    report.add(Place::Room { room: RoomId(room) }, Problem::Evidence);
                }
            }
            Err(_) => report.add(Place::Room { room: RoomId(room) }, Problem::Record("evidence")),
        }
    }
    records(read, judge, report)?;
    contents(read, report)?;
    if !followed::are_sound(read)? {
        report.add(Place::Store, Problem::Record("change of a record"));
    }
    if !replaced::are_sound(read)? {
        report.add(Place::Store, Problem::Record("replaced state of a record"));
    }
    if !inboxes::are_sound(read)? {
        report.add(Place::Store, Problem::Record("inbox"));
    }
    if !requests::are_sound(read)? {
        report.add(Place::Store, Problem::Record("request"));
    }
    for row in table(read, NODE)?.iter()? {
        let (key, row) = row?;
        let record: Result<NodeRecord, _> = decode(row.value(), "node");
        if key.value() != 0 || record.is_err() {
            report.add(Place::Store, Problem::Record("node's record"));
        }
    }
    Ok(())
}

/// Each says itself where it has to be.
fn records(
    read: &ReadTransaction,
    judge: &dyn Judge,
    report: &mut Report,
) -> Result<(), ReadError> {
    for row in table(read, RECORDS)?.iter()? {
        let (key, row) = row?;
        let record: Result<Record, _> = decode(row.value(), "record");
        let Ok(record) = record else {
            report.add(Place::Store, Problem::Record("record of a set"));
            continue;
        };
        let mut mesh = MeshId([0; 16]);
        mesh.0.iter_mut().zip(key.value()).for_each(|(byte, of)| *byte = *of);
        let Record { space, collection, .. } = record;
        let writer = Collection::of(collection).map(|kind| kind.writer);
        let owner = match writer {
            Some(Writer::Participants) => None,
            Some(Writer::Owner) | None => Some(record.owner()),
        };
        let shelf = Shelf { mesh, space, collection };
        let is_here = shelf.row(RecordKey { id: record.id, owner }) == key.value();
        if !is_here || !is_sound(&record, judge, mesh) {
            report.add(Place::Store, Problem::Forged);
        }
    }
    Ok(())
}

/// Each belongs to a record, and has the hash and the length that the record says.
fn contents(read: &ReadTransaction, report: &mut Report) -> Result<(), ReadError> {
    let records = table(read, RECORDS)?;
    for row in table(read, CONTENTS)?.iter()? {
        let (key, bytes) = row?;
        let record = records.get(key.value())?;
        let record: Option<Record> = record.and_then(|row| decode(row.value(), "record").ok());
        let apart = record.and_then(|record| record.apart);
        if apart != Some(Apart::of(bytes.value())) {
            report.add(Place::Store, Problem::Content);
        }
    }
    let contents = table(read, CONTENTS)?;
    for row in table(read, COPIED)?.iter()? {
        if contents.get(row?.0.value())?.is_none() {
            report.add(Place::Store, Problem::Content);
        }
    }
    Ok(())
}

/// Whether seal and run are both of the author, and say two things of one place. Of a room that is
/// not here any more nobody knows which mesh its runs are of: the seal alone is checked.
fn proves(
    read: &ReadTransaction,
    judge: &dyn Judge,
    key: &[u8; 56],
    certificate: &Certificate,
    run: Run,
) -> Result<bool, ReadError> {
    let log = certificate.log;
    let named = key[..32] == log.author.0
        && key[32..48] == certificate.room.0
        && key[48..] == log.incarnation.to_be_bytes();
    if !named || !certificate.verify_by(judge) || (run.room, run.log) != (certificate.room, log) {
        return Ok(false);
    }
    let room = table(read, ROOM_IDS)?.get(&certificate.room.0)?.map(|row| row.value());
    let Some(room) = room else { return Ok(true) };
    let Some(row) = table(read, ROOMS)?.get(room)? else { return Ok(true) };
    let Ok((_, record)) = room_row(row.value()) else { return Ok(true) };
    let verified = run.verify_by(judge, record.mesh);
    Ok(verified
        .is_ok_and(|run| run.hash_at(certificate.seq).is_some_and(|hash| hash != certificate.hash)))
}
