//! Things that this node carries for others, what it owes others, and messages with such things.

use std::collections::BTreeMap;

use mesh::{
    api::batch::Change,
    limits::{CARRIED_AT_ONCE_MAX, WANT_REPLY_BYTES},
    name::id::{LogId, NodeId, RoomId},
    wire::{
        carry::{Carriage, CarriedAt, CarriedHead, Load, Owed, Parcel},
        message::{Message, Span},
        record::RecordKey,
    },
};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::{
    error::{CommitError, ReadError},
    reader::Reader,
    records::{self, Shelf},
    schema::{CARRIAGES, CARRIED, LOADS, OWED, decode, encode, table},
};

/// The rows of a batch, the last one of each key.
#[derive(Debug, Default)]
pub(crate) struct CarriedRows<'b> {
    carriages: BTreeMap<[u8; 48], Option<&'b Carriage>>,
    loads: BTreeMap<[u8; 96], (u64, Option<&'b Load>)>,
    owed: BTreeMap<[u8; 48], Option<&'b Owed>>,
}

impl<'b> CarriedRows<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.carriages.is_empty() && self.loads.is_empty() && self.owed.is_empty()
    }

    /// A change that is none of these does nothing.
    pub(crate) fn add(&mut self, change: &'b Change) {
        if let Change::Carriage { of, room, carriage } = change {
            self.carriages.insert(key(*of, *room), carriage.as_ref());
        }
        if let Change::Load { at, since_ms, load } = change {
            self.loads.insert(row(*at), (*since_ms, load.as_deref()));
        }
        if let Change::Owed { room, node, owed } = change {
            self.owed.insert(key(*node, *room), owed.as_ref());
        }
    }

    pub(crate) fn apply(&self, write: &WriteTransaction) -> Result<(), CommitError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut carriages = write.open_table(CARRIAGES)?;
        for (key, carriage) in &self.carriages {
            match carriage {
                Some(carriage) => carriages.insert(key, encode(*carriage).as_slice())?,
                None => carriages.remove(key)?,
            };
        }
        let mut heads = write.open_table(CARRIED)?;
        let mut loads = write.open_table(LOADS)?;
        for (key, (since_ms, load)) in &self.loads {
            let Some(load) = load else {
                heads.remove(key)?;
                loads.remove(key)?;
                continue;
            };
            let bytes = encode(*load);
            let (_, _, upto) = load.place();
            heads.insert(key, (upto, bytes.len() as u64, *since_ms))?;
            loads.insert(key, bytes.as_slice())?;
        }
        let mut owed = write.open_table(OWED)?;
        for (key, row) in &self.owed {
            match row {
                Some(row) => owed.insert(key, encode(*row).as_slice())?,
                None => owed.remove(key)?,
            };
        }
        Ok(())
    }
}

/// Node, room.
fn key(node: NodeId, room: RoomId) -> [u8; 48] {
    let mut key = [0; 48];
    key[..32].copy_from_slice(&node.0);
    key[32..].copy_from_slice(&room.0);
    key
}

fn of_key(bytes: &[u8; 48]) -> (NodeId, RoomId) {
    let (mut node, mut room) = ([0; 32], [0; 16]);
    node.copy_from_slice(&bytes[..32]);
    room.copy_from_slice(&bytes[32..]);
    (NodeId(node), RoomId(room))
}

/// Node, room, author, incarnation and log seq.
fn row(at: CarriedAt) -> [u8; 96] {
    let mut row = [0; 96];
    row[..48].copy_from_slice(&key(at.of, at.room));
    row[48..80].copy_from_slice(&at.log.author.0);
    row[80..88].copy_from_slice(&at.log.incarnation.to_be_bytes());
    row[88..].copy_from_slice(&at.after.to_be_bytes());
    row
}

fn of_row(bytes: &[u8; 96]) -> CarriedAt {
    let (mut place, mut author) = ([0; 48], [0; 32]);
    let (mut incarnation, mut after) = ([0; 8], [0; 8]);
    place.copy_from_slice(&bytes[..48]);
    author.copy_from_slice(&bytes[48..80]);
    incarnation.copy_from_slice(&bytes[80..88]);
    after.copy_from_slice(&bytes[88..]);
    let (of, room) = of_key(&place);
    let log = LogId { author: NodeId(author), incarnation: u64::from_be_bytes(incarnation) };
    CarriedAt { of, room, log, after: u64::from_be_bytes(after) }
}

/// Rooms that are carried for nodes.
pub(crate) fn carriages(
    read: &ReadTransaction,
) -> Result<Vec<(NodeId, RoomId, Carriage)>, ReadError> {
    let rows = table(read, CARRIAGES)?;
    let carriage = |row: Result<_, redb::StorageError>| {
        let (key, row): (redb::AccessGuard<'_, &[u8; 48]>, redb::AccessGuard<'_, &[u8]>) = row?;
        let (of, room) = of_key(key.value());
        Ok((of, room, decode(row.value(), "carriage")?))
    };
    rows.iter()?.map(carriage).collect()
}

/// The outlines of all that is carried.
pub(crate) fn outlines(read: &ReadTransaction) -> Result<Vec<(CarriedAt, CarriedHead)>, ReadError> {
    let mut outlines = Vec::new();
    for row in table(read, CARRIED)?.iter()? {
        let (key, row) = row?;
        let (upto, bytes, since_ms) = row.value();
        outlines.push((of_row(key.value()), CarriedHead { upto, bytes, since_ms }));
    }
    Ok(outlines)
}

/// What this node owes others.
pub(crate) fn owed(read: &ReadTransaction) -> Result<Vec<(RoomId, NodeId, Owed)>, ReadError> {
    let mut all = Vec::new();
    for row in table(read, OWED)?.iter()? {
        let (key, row) = row?;
        let (node, room) = of_key(key.value());
        all.push((room, node, decode(row.value(), "debt")?));
    }
    Ok(all)
}

/// Whether each can be read, stands in its place, and has its outline.
pub(crate) fn are_sound(read: &ReadTransaction) -> Result<bool, ReadError> {
    let rooms = match (carriages(read), owed(read)) {
        (Ok(rooms), Ok(_)) => rooms,
        (Err(ReadError::Damaged(_)), _) | (_, Err(ReadError::Damaged(_))) => return Ok(false),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let rooms: std::collections::BTreeSet<(NodeId, RoomId)> =
        rooms.into_iter().map(|(of, room, _)| (of, room)).collect();
    let loads = table(read, LOADS)?;
    let mut count = 0;
    for (at, head) in outlines(read)? {
        count += 1;
        let Some(stored) = loads.get(&row(at))? else { return Ok(false) };
        let Ok(load) = decode::<Load>(stored.value(), "load") else { return Ok(false) };
        let fits = load.place() == (at.log, at.after, head.upto);
        if !fits || stored.value().len() as u64 != head.bytes || !rooms.contains(&(at.of, at.room))
        {
            return Ok(false);
        }
    }
    Ok(loads.iter()?.count() == count)
}

/// Entries of a room for a carrier (`Effect::HandOver`): one message of about [`WANT_REPLY_BYTES`].
///
/// # Errors
///
/// See [`ReadError`].
pub fn hand_over(
    reader: &Reader,
    room: RoomId,
    spans: &[Span],
) -> Result<Option<Message>, ReadError> {
    let Message::Spans { mut runs, mut bodies, .. } = reader.answer_spans(room, spans)? else {
        return Ok(None);
    };
    runs.truncate(CARRIED_AT_ONCE_MAX);
    bodies.retain(|body| {
        runs.iter().any(|run| run.log == body.log && (run.first..=run.last()).contains(&body.seq))
    });
    let (records, contents) = (Vec::new(), Vec::new());
    let parcel = Parcel { of: None, room, runs, bodies, records, contents };
    Ok(Some(Message::Parcel(parcel)))
}

/// Records of a group for a carrier (`Effect::HandOverRecords`), in the same way.
///
/// # Errors
///
/// See [`ReadError`].
pub fn hand_over_records(
    reader: &Reader,
    room: RoomId,
    (shelf, keys): (&Shelf, &[RecordKey]),
) -> Result<Option<Message>, ReadError> {
    let Message::Records(mut records) = records::answer(reader, shelf, keys)? else {
        return Ok(None);
    };
    records.truncate(CARRIED_AT_ONCE_MAX);
    let (runs, bodies, contents) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Some(Message::Parcel(Parcel { of: None, room, runs, bodies, records, contents })))
}

/// The same of records with their bytes apart. Those whose bytes are not here are left out.
///
/// # Errors
///
/// See [`ReadError`].
pub fn hand_over_whole(
    reader: &Reader,
    room: RoomId,
    (shelf, keys): (&Shelf, &[RecordKey]),
) -> Result<Option<Message>, ReadError> {
    let contents = records::whole(reader, shelf, keys)?;
    if contents.is_empty() {
        return Ok(None);
    }
    let (runs, bodies, records) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Some(Message::Parcel(Parcel { of: None, room, runs, bodies, records, contents })))
}

/// Things that are carried, for a node that they are for (`Effect::GiveOn`), in the same way. `None`: they are gone.
///
/// # Errors
///
/// See [`ReadError`].
pub fn give_on(reader: &Reader, at: &[CarriedAt]) -> Result<Option<Message>, ReadError> {
    let Some(CarriedAt { of, room, .. }) = at.first().copied() else { return Ok(None) };
    let (mut runs, mut all) = (Vec::new(), Vec::new());
    let (mut records, mut contents) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    let read = reader.databases().disk.read()?;
    let loads = table(&read, LOADS)?;
    for at in at.iter().filter(|at| (at.of, at.room) == (of, room)) {
        let Some(stored) = loads.get(&row(*at))? else { continue };
        bytes += stored.value().len();
        if bytes > WANT_REPLY_BYTES && bytes > stored.value().len() {
            break;
        }
        match decode(stored.value(), "load")? {
            Load::Run(run, bodies) => {
                runs.push(run);
                all.extend(bodies);
            }
            Load::Record(record) => records.push(record),
            Load::Whole(whole) => contents.push(whole),
        }
    }
    if runs.is_empty() && records.is_empty() && contents.is_empty() {
        return Ok(None);
    }
    let parcel = Parcel { of: Some(of), room, runs, bodies: all, records, contents };
    Ok(Some(Message::Parcel(parcel)))
}
