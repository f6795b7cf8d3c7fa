//! One room in one snapshot.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use mesh::{
    api::{
        batch::{EraRecord, Fate, LogRecord, NumberRange, RoomRecord},
        import::message_id,
    },
    name::{
        id::{EntryRef, LocalRef, LogId, LogIx, MessageId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::{Facts, Said, Stored},
        seal::SealContext,
    },
};
use redb::{Database, ReadOnlyTable, ReadTransaction};

use crate::{
    error::ReadError,
    limits::ROW_NUMBERS_MAX,
    row::Row,
    schema::{
        CALLED, ENTRIES, ERAS, Gist, LOGS, NUMBERS, Numbers, PLACES, PRUNED, PlaceKey, ROOM_IDS,
        ROOMS, decode, fate_of, table,
    },
};

/// See the module.
pub(crate) struct View {
    pub(crate) id: RoomId,
    /// Its small integer in this database.
    pub(crate) room: u32,
    rooms: ReadOnlyTable<u32, &'static [u8]>,
    pub(crate) logs: ReadOnlyTable<(u32, u32), &'static [u8]>,
    pub(crate) entries: ReadOnlyTable<PlaceKey, &'static [u8]>,
    eras: ReadOnlyTable<(u32, u64), &'static [u8]>,
    numbers: ReadOnlyTable<(u32, u64), (u32, u64, u8)>,
    places: ReadOnlyTable<PlaceKey, &'static [u8]>,
    pruned: ReadOnlyTable<u32, u64>,
    called: ReadOnlyTable<(u32, u128), (u32, u64)>,
    log_ids: RefCell<BTreeMap<LogIx, LogId>>,
    /// All logs by id: read once, because peers name hundreds in one question.
    by_id: OnceCell<BTreeMap<LogId, (LogIx, LogRecord)>>,
    /// Read once: bodies need it.
    record: OnceCell<RoomRecord>,
    /// See [`View::keeping`]. The last to be dropped.
    _database: Option<Arc<Database>>,
}

/// A number, the entry that it names here, and its fate.
pub(crate) type Numbered = (Number, LocalRef, Fate);

impl View {
    /// `None` if the database has no such room.
    pub(crate) fn open(read: &ReadTransaction, id: RoomId) -> Result<Option<View>, ReadError> {
        let room = table(read, ROOM_IDS)?.get(&id.0)?.map(|row| row.value());
        room.map(|room| View::at(read, id, room)).transpose()
    }

    /// The room `id`, which is `room` in this database.
    pub(crate) fn at(read: &ReadTransaction, id: RoomId, room: u32) -> Result<View, ReadError> {
        Ok(View {
            id,
            room,
            rooms: table(read, ROOMS)?,
            logs: table(read, LOGS)?,
            entries: table(read, ENTRIES)?,
            eras: table(read, ERAS)?,
            numbers: table(read, NUMBERS)?,
            places: table(read, PLACES)?,
            pruned: table(read, PRUNED)?,
            called: table(read, CALLED)?,
            log_ids: RefCell::default(),
            by_id: OnceCell::new(),
            record: OnceCell::new(),
            _database: None,
        })
    }

    /// The same, with a database that is not to be closed while it is read.
    pub(crate) fn keeping(self, database: Option<Arc<Database>>) -> View {
        View { _database: database, ..self }
    }

    pub(crate) fn record(&self) -> Result<RoomRecord, ReadError> {
        let row = self.rooms.get(self.room)?.ok_or(ReadError::Damaged("room"))?;
        Ok(room_row(row.value())?.1)
    }

    /// All logs, by index.
    pub(crate) fn logs(&self) -> Result<Vec<(LogIx, LogRecord)>, ReadError> {
        self.logs
            .range((self.room, 0)..=(self.room, u32::MAX))?
            .map(|row| {
                let (key, row) = row?;
                Ok((key.value().1, decode(row.value(), "log")?))
            })
            .collect()
    }

    /// The index and head of a log.
    pub(crate) fn log(&self, id: LogId) -> Result<Option<(LogIx, &LogRecord)>, ReadError> {
        let by_id = match self.by_id.get() {
            Some(known) => known,
            None => {
                let logs = self.logs()?.into_iter();
                let read = logs.map(|(log, record)| (record.id, (log, record))).collect();
                self.by_id.get_or_init(|| read)
            }
        };
        Ok(by_id.get(&id).map(|(log, record)| (*log, record)))
    }

    fn log_id(&self, log: LogIx) -> Result<LogId, ReadError> {
        if let Some(id) = self.log_ids.borrow().get(&log) {
            return Ok(*id);
        }
        let row = self.logs.get((self.room, log))?.ok_or(ReadError::Damaged("log of an entry"))?;
        let record: LogRecord = decode(row.value(), "log")?;
        self.log_ids.borrow_mut().insert(log, record.id);
        Ok(record.id)
    }

    /// All eras, ascending.
    pub(crate) fn eras(&self) -> Result<Vec<(Era, EraRecord)>, ReadError> {
        self.eras
            .range((self.room, 0)..=(self.room, u64::MAX))?
            .map(|row| {
                let (key, row) = row?;
                Ok((Era(key.value().1), decode(row.value(), "era")?))
            })
            .collect()
    }

    /// All eras, if there are no more than so many.
    pub(crate) fn few_eras(
        &self,
        most: usize,
    ) -> Result<Option<BTreeMap<Era, EraRecord>>, ReadError> {
        let rows = self.eras.range((self.room, 0)..=(self.room, u64::MAX))?;
        let mut eras = BTreeMap::new();
        for row in rows {
            if eras.len() == most {
                return Ok(None);
            }
            let (key, row) = row?;
            eras.insert(Era(key.value().1), decode(row.value(), "era")?);
        }
        Ok(Some(eras))
    }

    pub(crate) fn stored(&self, at: LocalRef) -> Result<Option<Stored>, ReadError> {
        let row = self.entries.get((self.room, at.log, at.seq))?;
        row.map(|row| decode(row.value(), "entry")).transpose()
    }

    pub(crate) fn facts(&self, at: LocalRef) -> Result<Option<Facts>, ReadError> {
        Ok(self.gist(at)?.map(|gist| gist.facts))
    }

    /// An entry but for its body.
    pub(crate) fn gist(&self, at: LocalRef) -> Result<Option<Gist>, ReadError> {
        let row = self.entries.get((self.room, at.log, at.seq))?;
        row.map(|row| decode(row.value(), "entry")).transpose()
    }

    /// All that was delivered up to here has lost its body.
    pub(crate) fn pruned(&self) -> Result<Number, ReadError> {
        Ok(Number(self.pruned.get(self.room)?.map_or(0, |row| row.value())))
    }

    pub(crate) fn numbers_of(&self, at: LocalRef) -> Result<Numbers, ReadError> {
        match self.places.get((self.room, at.log, at.seq))? {
            Some(row) => Numbers::decode(row.value()),
            None => Ok(Numbers::default()),
        }
    }

    /// The entry that a number names here.
    pub(crate) fn number(&self, number: Number) -> Result<Option<(LocalRef, Fate)>, ReadError> {
        let Some(row) = self.numbers.get((self.room, number.0))? else { return Ok(None) };
        let (log, seq, fate) = row.value();
        Ok(Some((LocalRef { log, seq }, fate_of(fate)?)))
    }

    /// Numbers from `from` to `upto`, both included. Ascending; from its other end, descending.
    pub(crate) fn numbers(
        &self,
        from: Number,
        upto: Number,
    ) -> Result<impl DoubleEndedIterator<Item = Result<Numbered, ReadError>>, ReadError> {
        // An empty range, not a panic, when the ends are crossed.
        let upto = upto.0.max(from.0.saturating_sub(1));
        let range = (self.room, from.0)..(self.room, upto.saturating_add(1));
        Ok(self.numbers.range(range)?.map(|row| {
            let (key, row) = row?;
            let (log, seq, fate) = row.value();
            Ok((Number(key.value().1), LocalRef { log, seq }, fate_of(fate)?))
        }))
    }

    /// The entry at `at` as a row under `number`; `None` if it is not held, or its body was
    /// dropped.
    pub(crate) fn row(&self, number: Number, at: LocalRef) -> Result<Option<Row>, ReadError> {
        match self.stored(at)? {
            Some(stored) if stored.gone.is_none() => self.row_of(number, at, stored).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The same, also if the body is dropped.
    pub(crate) fn named(&self, number: Number, at: LocalRef) -> Result<Option<Row>, ReadError> {
        self.stored(at)?.map(|stored| self.row_of(number, at, stored)).transpose()
    }

    fn row_of(&self, number: Number, at: LocalRef, stored: Stored) -> Result<Row, ReadError> {
        let log = self.log_id(at.log)?;
        let numbers = self.numbers_of(at)?;
        let canonical = numbers.lowest().unwrap_or(number);
        let several = if numbers.0.len() > 1 { &numbers.0[..] } else { &[] };
        let said = self.said(log, at, &stored)?;
        let message =
            message_id(self.room_record()?, self.id, EntryRef { log, seq: at.seq }, said.as_ref());
        Ok(Row {
            number,
            canonical,
            numbers: several.iter().map(|number| number.0).take(ROW_NUMBERS_MAX).collect(),
            at,
            log,
            message,
            facts: stored.facts,
            said,
        })
    }

    /// The message at a place and when it was written, if there is one and its body is kept.
    pub(crate) fn text_at(&self, at: LocalRef) -> Result<Option<(u64, Said)>, ReadError> {
        let Some(stored) = self.stored(at)?.filter(|stored| stored.gone.is_none()) else {
            return Ok(None);
        };
        let said = self.said(self.log_id(at.log)?, at, &stored)?;
        Ok(said.map(|said| (stored.facts.wall_ms, said)))
    }

    /// The message, if the entry is one. Bodies of sealed rooms are kept sealed.
    fn said(&self, log: LogId, at: LocalRef, stored: &Stored) -> Result<Option<Said>, ReadError> {
        let context = SealContext { room: self.id, log, seq: at.seq, kind: stored.facts.kind };
        Ok(self.room_record()?.body(&context, &stored.body).said())
    }

    fn room_record(&self) -> Result<&RoomRecord, ReadError> {
        match self.record.get() {
            Some(record) => Ok(record),
            None => {
                let record = self.record()?;
                Ok(self.record.get_or_init(|| record))
            }
        }
    }

    /// Where the message is that keeps this id of a ClawChat server.
    pub(crate) fn called(&self, id: MessageId) -> Result<Option<LocalRef>, ReadError> {
        let row = self.called.get((self.room, u128::from_be_bytes(id.0)))?;
        Ok(row.map(|row| row.value()).map(|(log, seq)| LocalRef { log, seq }))
    }

    /// The entry at `at` under the number that it was delivered under here, else under its lowest;
    /// `None` if it is not held or has no number. Without content, if its body was dropped.
    pub(crate) fn row_at(&self, at: LocalRef) -> Result<Option<Row>, ReadError> {
        let numbers = self.numbers_of(at)?;
        match numbers.delivered().or(numbers.lowest()) {
            Some(number) => self.named(number, at),
            None => Ok(None),
        }
    }
}

/// A row of the rooms table.
pub(crate) fn room_row(row: &[u8]) -> Result<(RoomId, RoomRecord), ReadError> {
    let (id, record) = row.split_first_chunk().ok_or(ReadError::Damaged("room"))?;
    Ok((RoomId(*id), decode(record, "room")?))
}

/// Highest and lowest, if there are any.
pub(crate) fn bounds(numbers: &Numbers) -> Option<NumberRange> {
    Some(NumberRange { best: numbers.highest()?, canonical: numbers.lowest()? })
}
