//! States that records have replaced: kept for a while, listed, and found by peers that ask.

use std::collections::BTreeMap;

use mesh::{
    Proofs,
    api::batch::ReplacedChange,
    limits::{RECORDS_IN_MESSAGE_MAX, REPLACED_FOR, REPLACED_STATES_MAX, WANT_REPLY_BYTES},
    name::id::{KeyPrint, MeshId, RoomId},
    records::{
        files::{self, ReplacedFile},
        place::{RoomPlace, showing},
    },
    wire::{
        message::Message,
        record::{Apart, Record, RecordId, RecordKey, Stamp},
        replaced::{ReplacedState, SentReplaced, WantedReplaced},
    },
};
use minicbor::{Decode, Encode};
use redb::{
    ReadTransaction, ReadableTable as _, ReadableTableMetadata as _, StorageError, Table,
    WriteTransaction,
};

use crate::{
    error::{CommitError, ReadError},
    limits::{RECORD_OVERHEAD_BYTES, REPLACED_BYTES_MAX},
    reader::Reader,
    records::{Shelf, owned, place_in, writers},
    schema::{
        CONTENTS, RECORDS, REPLACED, REPLACED_BYTES, REPLACED_CONTENTS, REPLACED_ORDER, decode,
        encode, table,
    },
};

/// A row of [`REPLACED`].
#[derive(Clone, Debug, Encode, Decode)]
struct State {
    #[n(0)]
    record: Record,
    #[n(1)]
    until_ms: u64,
}

/// A change of a batch, in the order of the batch.
#[derive(Debug)]
pub(crate) enum Step<'b> {
    /// Of the row of [`RECORDS`].
    Row {
        row: Vec<u8>,
        /// The state that the batch itself has given it.
        before: Option<&'b Record>,
        /// The bytes that the batch itself has given it, or (`None` within) taken from it.
        bytes: Option<Option<&'b [u8]>>,
        change: &'b ReplacedChange,
    },
    /// Those go whose time was over then.
    End { now_ms: u64 },
}

// Writing.

/// Before the changes of records and contents are written.
pub(crate) fn apply(write: &WriteTransaction, steps: &[Step<'_>]) -> Result<(), CommitError> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut tables = Tables::open(write)?;
    for step in steps {
        match step {
            Step::End { now_ms } => tables.end(*now_ms)?,
            Step::Row { row, change: ReplacedChange::Drop, .. } => tables.drop_all(row)?,
            Step::Row {
                row, change: ReplacedChange::Heard { record, bytes, until_ms }, ..
            } => {
                let state = State { record: (**record).clone(), until_ms: *until_ms };
                tables.put(row, &state, bytes.as_deref())?;
            }
            Step::Row { row, before, bytes, change: ReplacedChange::Keep { until_ms } } => {
                let (record, held) = match before {
                    // The bytes of the state before it are none of its own.
                    Some(record) => ((*record).clone(), None),
                    None => match stored(write, row)? {
                        Some(state) => state,
                        None => continue,
                    },
                };
                let bytes = bytes.map_or(held, |bytes| bytes.map(<[u8]>::to_vec));
                let state = State { record, until_ms: *until_ms };
                tables.put(row, &state, bytes.as_deref())?;
            }
        }
    }
    tables.bound()
}

/// A record and its bytes that travel apart, as far as they are here.
type Whole = (Record, Option<Vec<u8>>);

/// A record as it is, with its bytes.
fn stored(write: &WriteTransaction, row: &[u8]) -> Result<Option<Whole>, CommitError> {
    let records = write.open_table(RECORDS)?;
    let Some(record) =
        records.get(row)?.map(|found| decode(found.value(), "record")).transpose()?
    else {
        return Ok(None);
    };
    let bytes = write.open_table(CONTENTS)?.get(row)?.map(|found| found.value().to_vec());
    Ok(Some((record, bytes)))
}

struct Tables<'t> {
    states: Table<'t, &'static [u8], &'static [u8]>,
    contents: Table<'t, &'static [u8], &'static [u8]>,
    order: Table<'t, &'static [u8], u64>,
    bytes: Table<'t, &'static [u8], u64>,
}

impl<'t> Tables<'t> {
    fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, CommitError> {
        Ok(Tables {
            states: write.open_table(REPLACED)?,
            contents: write.open_table(REPLACED_CONTENTS)?,
            order: write.open_table(REPLACED_ORDER)?,
            bytes: write.open_table(REPLACED_BYTES)?,
        })
    }

    fn put(&mut self, row: &[u8], state: &State, bytes: Option<&[u8]>) -> Result<(), CommitError> {
        let key = key_of(row, state.record.stamp);
        let (is_there, has_bytes) = (
            self.states.get(key.as_slice())?.is_some(),
            self.contents.get(key.as_slice())?.is_some(),
        );
        if is_there && (has_bytes || bytes.is_none()) {
            return Ok(());
        }
        self.remove(&key)?;
        let text = encode(state);
        let length = (text.len() + bytes.map_or(0, <[u8]>::len)) as u64;
        self.states.insert(key.as_slice(), text.as_slice())?;
        if let Some(bytes) = bytes {
            self.contents.insert(key.as_slice(), bytes)?;
        }
        self.order.insert(order_of(&key, state.until_ms).as_slice(), length)?;
        self.count(owner_of(&key), |sum| sum + length)?;
        let mut kept = keys(&self.states, row)?;
        kept.truncate(kept.len().saturating_sub(REPLACED_STATES_MAX));
        kept.iter().try_for_each(|earlier| self.remove(earlier))
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), CommitError> {
        let state = self.states.remove(key)?.map(|row| decode::<State>(row.value(), "replaced"));
        let Some(state) = state.transpose()? else { return Ok(()) };
        self.contents.remove(key)?;
        let length = self.order.remove(order_of(key, state.until_ms).as_slice())?;
        let length = length.map_or(0, |row| row.value());
        self.count(owner_of(key), |sum| sum.saturating_sub(length))
    }

    fn count(&mut self, owner: &[u8], change: impl Fn(u64) -> u64) -> Result<(), CommitError> {
        for who in [owner, ALL] {
            let sum = change(self.bytes.get(who)?.map_or(0, |row| row.value()));
            if sum == 0 {
                self.bytes.remove(who)?;
            } else {
                self.bytes.insert(who, sum)?;
            }
        }
        Ok(())
    }

    fn drop_all(&mut self, row: &[u8]) -> Result<(), CommitError> {
        let gone = keys(&self.states, row)?;
        gone.iter().try_for_each(|key| self.remove(key))
    }

    /// The owners are some hundred, as a rule, and this is done once an hour.
    fn end(&mut self, now_ms: u64) -> Result<(), CommitError> {
        let mut gone = Vec::new();
        for row in self.bytes.iter()? {
            let (owner, _) = row?;
            let (owner, until) = (owner.value(), now_ms.to_be_bytes());
            if owner == ALL {
                continue;
            }
            for row in self.order.range(owner..[owner, &until].concat().as_slice())? {
                gone.push(row?.0.value()[ORDER_BYTES..].to_vec());
            }
        }
        gone.iter().try_for_each(|key| self.remove(key))
    }

    /// Where there is too much, that of the owner that has most goes, its oldest first.
    fn bound(&mut self) -> Result<(), CommitError> {
        while self.bytes.get(ALL)?.is_some_and(|row| row.value() > REPLACED_BYTES_MAX) {
            let mut most = (0, Vec::new());
            for row in self.bytes.iter()? {
                let (owner, sum) = row?;
                if owner.value() != ALL && sum.value() > most.0 {
                    most = (sum.value(), owner.value().to_vec());
                }
            }
            let first = self.order.range(most.1.as_slice()..)?.next().transpose()?;
            let Some(key) = first.map(|(order, _)| order.value()[ORDER_BYTES..].to_vec()) else {
                return Ok(());
            };
            self.remove(&key)?;
        }
        Ok(())
    }
}

/// In [`REPLACED_BYTES`]: of all owners.
const ALL: &[u8] = &[];
const OWNER_BYTES: usize = size_of::<KeyPrint>();
const STAMP_BYTES: usize = size_of::<u64>();
/// In a key of [`REPLACED_ORDER`], before the key of the state.
const ORDER_BYTES: usize = OWNER_BYTES + size_of::<u64>();

fn key_of(row: &[u8], stamp: Stamp) -> Vec<u8> {
    [row, &stamp.0.to_be_bytes()].concat()
}

/// The owner of a state, by its key: collections whose states are kept have records of owners.
fn owner_of(key: &[u8]) -> &[u8] {
    let end = key.len().saturating_sub(STAMP_BYTES);
    key.get(end.saturating_sub(OWNER_BYTES)..end).unwrap_or_default()
}

fn order_of(key: &[u8], until_ms: u64) -> Vec<u8> {
    [owner_of(key), &until_ms.to_be_bytes(), key].concat()
}

/// The keys of all states of one row, the earliest first.
fn keys(
    states: &Table<'_, &'static [u8], &'static [u8]>,
    row: &[u8],
) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut keys = Vec::new();
    for found in states.range(row..)? {
        let (key, _) = found?;
        if !key.value().starts_with(row) {
            break;
        }
        keys.push(key.value().to_vec());
    }
    Ok(keys)
}

// For peers.

/// The answer to a peer (`Effect::SendReplaced`): one message of about [`WANT_REPLY_BYTES`].
///
/// # Errors
///
/// See [`ReadError`].
pub fn answer(
    reader: &Reader,
    mesh: MeshId,
    wanted: &WantedReplaced,
    now_ms: u64,
) -> Result<Message, ReadError> {
    let WantedReplaced { nonce, space, collection, ids, stamp } = wanted;
    let shelf = Shelf { mesh, space: *space, collection: *collection };
    let read = reader.databases().disk.read()?;
    let contents = table(&read, REPLACED_CONTENTS)?;
    let (mut states, mut bytes) = (Vec::new(), 0);
    for (key, state) in kept(&read, &shelf, ids.beginning(), now_ms)? {
        if stamp.is_some_and(|stamp| stamp != state.record.stamp) {
            continue;
        }
        let apart = match stamp {
            Some(_) => contents.get(key.as_slice())?.map(|row| row.value().to_vec()),
            None => None,
        };
        let size = state.record.size() + RECORD_OVERHEAD_BYTES;
        bytes += size + apart.as_ref().map_or(0, Vec::len);
        if states.len() >= RECORDS_IN_MESSAGE_MAX
            || (bytes > WANT_REPLY_BYTES && !states.is_empty())
        {
            break;
        }
        let left_ms = state.until_ms - now_ms;
        states.push(ReplacedState { record: state.record, bytes: apart.map(Into::into), left_ms });
    }
    Ok(Message::Replaced(SentReplaced { nonce: *nonce, states }))
}

/// The states whose ids begin so, and whose time is not over: of each row the latest first.
fn kept(
    read: &ReadTransaction,
    shelf: &Shelf,
    first: &[u8],
    now_ms: u64,
) -> Result<Vec<(Vec<u8>, State)>, ReadError> {
    let prefix = shelf.beginning(first);
    let mut found: Vec<(Vec<u8>, State)> = Vec::new();
    for row in table(read, REPLACED)?.range(prefix.as_slice()..)? {
        let (key, state) = row?;
        if !key.value().starts_with(&prefix) {
            break;
        }
        let state: State = decode(state.value(), "replaced")?;
        if state.until_ms > now_ms {
            found.push((key.value().to_vec(), state));
        }
    }
    let row = |key: &[u8]| key[..key.len() - STAMP_BYTES].to_vec();
    found.sort_by(|(one, _), (other, _)| row(one).cmp(&row(other)).then(other.cmp(one)));
    Ok(found)
}

// For readers.

/// The replaced states of the files of a room, by path, the latest first: at most [`REPLACED_STATES_MAX`] of each file that is
/// there. Those of a file that is deleted are not shown. `proofs`: say whose show.
///
/// # Errors
///
/// See [`ReadError`].
pub fn files(
    reader: &Reader,
    mesh: MeshId,
    room: RoomId,
    (proofs, now_ms): (&Proofs, u64),
) -> Result<Vec<ReplacedFile>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(Vec::new()) };
    let first = at.subject(files::COLLECTION.number);
    let found = Found::read(&read, (mesh, &at, &first), proofs, now_ms)?;
    let mut all: Vec<ReplacedFile> = found.all.into_iter().map(|state| state.file).collect();
    all.sort_by(|one, other| (&one.view.path, one.nth).cmp(&(&other.view.path, other.nth)));
    Ok(all)
}

/// A state, and its bytes if they are here.
pub type FoundState = (ReplacedFile, Option<Vec<u8>>);

/// One of them. `None`: there is none of this number.
///
/// # Errors
///
/// See [`ReadError`].
pub fn file(
    reader: &Reader,
    mesh: MeshId,
    (room, path, nth): (RoomId, &str, usize),
    (proofs, now_ms): (&Proofs, u64),
) -> Result<Option<FoundState>, ReadError> {
    let read = reader.databases().disk.read()?;
    let Some(at) = place_in(&read, room)? else { return Ok(None) };
    let id = files::id(&at, path);
    let found = Found::read(&read, (mesh, &at, &id.0), proofs, now_ms)?;
    let Some(state) = found.all.into_iter().find(|state| state.file.nth == nth) else {
        return Ok(None);
    };
    let bytes = match state.place {
        Place::Replaced(key) => table(&read, REPLACED_CONTENTS)?.get(key.as_slice())?,
        Place::Beside(row) => table(&read, CONTENTS)?.get(row.as_slice())?,
    };
    let bytes = bytes.map(|row| row.value().to_vec());
    let name = files::apart_name(id, state.owner);
    let bytes = match bytes {
        None if state.file.view.length == 0 => Some(Vec::new()),
        None => None,
        Some(bytes) => at.cover.read_apart(&name, bytes),
    };
    Ok(Some((state.file, bytes)))
}

/// The bytes of a state.
enum Place {
    /// In [`REPLACED_CONTENTS`].
    Replaced(Vec<u8>),
    /// In [`CONTENTS`]: the state of a key that another key's is later than.
    Beside(Vec<u8>),
}

struct OneState {
    file: ReplacedFile,
    owner: KeyPrint,
    place: Place,
}

struct Found {
    all: Vec<OneState>,
}

impl Found {
    fn read(
        read: &ReadTransaction,
        (mesh, at, first): (MeshId, &RoomPlace, &[u8]),
        proofs: &Proofs,
        now_ms: u64,
    ) -> Result<Found, ReadError> {
        let shelf = Shelf { mesh, space: at.space, collection: files::COLLECTION.number };
        let rows = table(read, RECORDS)?;
        let keys = writers(proofs, at.room, &rows, &shelf.beginning(first))?;
        let records = owned(&rows, &shelf, first, &keys)?;
        let shown: BTreeMap<RecordId, &Record> =
            showing(&records, &keys, mesh).into_iter().map(|record| (record.id, record)).collect();
        let is_live = |id: &RecordId| shown.get(id).is_some_and(|record| record.body.is_some());
        let mut of_file: BTreeMap<RecordId, Vec<OneState>> = BTreeMap::new();
        let mut add = |record: &Record, until_ms: u64, place: Place| {
            if !is_live(&record.id) || until_ms <= now_ms {
                return;
            }
            let Some(view) = files::read(at, record, &keys) else { return };
            let file = ReplacedFile { view, nth: 0, until_ms, stamp: record.stamp };
            let states = of_file.entry(record.id).or_default();
            states.push(OneState { file, owner: record.owner(), place });
        };
        for (key, state) in kept(read, &shelf, first, now_ms)? {
            add(&state.record, state.until_ms, Place::Replaced(key));
        }
        for record in &records {
            let Some(shows) = shown.get(&record.id).filter(|shows| **shows != record) else {
                continue;
            };
            let kept_ms = u64::try_from(REPLACED_FOR.as_millis()).unwrap_or(u64::MAX);
            let until_ms = shows.stamp.wall_ms().saturating_add(kept_ms);
            let key = RecordKey { id: record.id, owner: Some(record.owner()) };
            add(record, until_ms, Place::Beside(shelf.row(key)));
        }
        let mut all = Vec::new();
        for mut states in of_file.into_values() {
            states.sort_by_key(|state| std::cmp::Reverse(state.file.stamp));
            states.truncate(REPLACED_STATES_MAX);
            for (before, state) in states.iter_mut().enumerate() {
                state.file.nth = before + 1;
            }
            all.append(&mut states);
        }
        Ok(Found { all })
    }
}

/// Whether each state is in the order and counted, and has the bytes that it says.
pub(crate) fn are_sound(read: &ReadTransaction) -> Result<bool, ReadError> {
    let (states, contents) = (table(read, REPLACED)?, table(read, REPLACED_CONTENTS)?);
    let (order, bytes) = (table(read, REPLACED_ORDER)?, table(read, REPLACED_BYTES)?);
    let (mut sums, mut with_bytes, mut count) = (BTreeMap::<Vec<u8>, u64>::new(), 0, 0);
    for row in states.iter()? {
        let (key, value) = row?;
        let Ok(State { record, until_ms }) = decode::<State>(value.value(), "replaced") else {
            return Ok(false);
        };
        let found = contents.get(key.value())?.map(|row| row.value().to_vec());
        let told = found.as_deref().map(Apart::of);
        let length = (value.value().len() + found.map_or(0, |bytes| bytes.len())) as u64;
        let counted = order.get(order_of(key.value(), until_ms).as_slice())?;
        if counted.map(|row| row.value()) != Some(length)
            || told.is_some_and(|told| record.apart != Some(told))
        {
            return Ok(false);
        }
        with_bytes += u64::from(told.is_some());
        count += 1;
        for who in [owner_of(key.value()), ALL] {
            *sums.entry(who.to_vec()).or_default() += length;
        }
    }
    let mut told = BTreeMap::new();
    for row in bytes.iter()? {
        let (owner, sum) = row?;
        told.insert(owner.value().to_vec(), sum.value());
    }
    Ok(told == sums && contents.len()? == with_bytes && order.len()? == count)
}
