//! A batch, sorted: which database each row goes to, and the last row of each key.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::batch::{
        Change, EraRecord, Fate, LogRecord, NodeRecord, NumberRange, ReplacedChange, RoomRecord,
        VoteNote,
    },
    name::id::{LocalRef, RoomId},
    wire::{
        entry::Stored,
        record::Record,
        run::{Certificate, Run},
    },
};

use crate::{
    carried::CarriedRows, error::CommitError, inboxes::Inboxes, records::Shelf, replaced,
    requests::Requests, schema::PlaceKey,
};

/// Which of the two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The file.
    Disk,
    /// Memory: ephemeral rooms.
    Memory,
}

/// Where a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) keep: Keep,
    /// Its small integer in that database.
    pub(crate) room: u32,
}

/// All rooms, and the next free integer of each database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats {
    pub(crate) rooms: BTreeMap<RoomId, Seat>,
    pub(crate) next_disk: u32,
    pub(crate) next_memory: u32,
}

/// The rows of one database. Tables are independent of each other, so that order matters only
/// between rows of one key, and there the last one wins.
#[derive(Debug, Default)]
pub(crate) struct Rows<'b> {
    pub(crate) ids: BTreeMap<RoomId, u32>,
    pub(crate) rooms: BTreeMap<u32, (RoomId, &'b RoomRecord)>,
    pub(crate) logs: BTreeMap<(u32, u32), &'b LogRecord>,
    pub(crate) entries: BTreeMap<PlaceKey, (RoomId, &'b Stored)>,
    pub(crate) eras: BTreeMap<(u32, u64), &'b EraRecord>,
    pub(crate) numbers: BTreeMap<(u32, u64), (LocalRef, Fate)>,
    pub(crate) number_ranges: BTreeMap<PlaceKey, Option<NumberRange>>,
    pub(crate) dedups: BTreeMap<(u64, u32, u128), LocalRef>,
    pub(crate) called: BTreeMap<(u32, u128), LocalRef>,
    pub(crate) evidence: Vec<(&'b Certificate, &'b Run)>,
    pub(crate) node: Option<&'b NodeRecord>,
    /// Rooms whose old bodies are to be dropped, and before which time they are old.
    pub(crate) prunes: BTreeMap<RoomId, u64>,
    pub(crate) notes: BTreeMap<PlaceKey, Option<&'b VoteNote>>,
    pub(crate) kept: BTreeMap<&'b [u8], Option<&'b [u8]>>,
    pub(crate) records: BTreeMap<Vec<u8>, Option<&'b Record>>,
    pub(crate) contents: BTreeMap<Vec<u8>, Option<&'b [u8]>>,
    /// Of contents: another node has them, too.
    pub(crate) copied: BTreeSet<Vec<u8>>,
    /// Of states that records have replaced.
    pub(crate) replaced: Vec<replaced::Step<'b>>,
    pub(crate) inboxes: Inboxes<'b>,
    pub(crate) requests: Requests<'b>,
    pub(crate) carried: CarriedRows<'b>,
    /// Rooms to forget, with all rows that were there before the batch.
    pub(crate) dropped: Vec<(RoomId, u32)>,
}

impl<'b> Rows<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.rooms.is_empty()
            && self.logs.is_empty()
            && self.entries.is_empty()
            && self.eras.is_empty()
            && self.numbers.is_empty()
            && self.number_ranges.is_empty()
            && self.dedups.is_empty()
            && self.called.is_empty()
            && self.evidence.is_empty()
            && self.node.is_none()
            && self.notes.is_empty()
            && self.kept.is_empty()
            && self.records.is_empty()
            && self.contents.is_empty()
            && self.copied.is_empty()
            && self.replaced.is_empty()
            && self.inboxes.is_empty()
            && self.requests.is_empty()
            && self.carried.is_empty()
            && self.dropped.is_empty()
    }

    /// Changes of records, and of all that is kept beside them. Others are none of its own.
    fn add_record(&mut self, change: &'b Change) {
        if let Change::ReplacedEnd { now_ms } = change {
            self.replaced.push(replaced::Step::End { now_ms: *now_ms });
        } else if let Change::Record { mesh, space, collection, key, record } = change {
            let shelf = Shelf { mesh: *mesh, space: *space, collection: *collection };
            self.records.insert(shelf.row(*key), record.as_deref());
        } else if let Change::Content { mesh, space, collection, key, bytes } = change {
            let shelf = Shelf { mesh: *mesh, space: *space, collection: *collection };
            let bytes = bytes.as_ref().map(|bytes| bytes.as_slice());
            let row = shelf.row(*key);
            self.copied.remove(&row);
            self.contents.insert(row, bytes);
        } else if let Change::Copied { mesh, space, collection, key } = change {
            let shelf = Shelf { mesh: *mesh, space: *space, collection: *collection };
            self.copied.insert(shelf.row(*key));
        } else if let Change::Replaced { mesh, space, collection, key, change } = change {
            let shelf = Shelf { mesh: *mesh, space: *space, collection: *collection };
            self.replace(shelf.row(*key), change);
        }
    }

    fn replace(&mut self, row: Vec<u8>, change: &'b ReplacedChange) {
        let before = self.records.get(&row).copied().flatten();
        let bytes = self.contents.get(&row).copied();
        self.replaced.push(replaced::Step::Row { row, before, bytes, change });
    }

    /// Takes back what the batch itself put into a room that it then drops.
    fn forget(&mut self, id: RoomId, room: u32) {
        self.ids.remove(&id);
        self.rooms.remove(&room);
        self.logs.retain(|key, _| key.0 != room);
        self.entries.retain(|key, _| key.0 != room);
        self.eras.retain(|key, _| key.0 != room);
        self.numbers.retain(|key, _| key.0 != room);
        self.number_ranges.retain(|key, _| key.0 != room);
        self.dedups.retain(|key, _| key.1 != room);
        self.called.retain(|key, _| key.0 != room);
        self.notes.retain(|key, _| key.0 != room);
        self.evidence.retain(|(certificate, _)| certificate.room != id);
        self.dropped.push((id, room));
    }
}

/// A number that an entry was delivered under stays that: clients hold it.
pub(crate) fn settle(old: Option<(LocalRef, Fate)>, new: (LocalRef, Fate)) -> (LocalRef, Fate) {
    match old {
        Some(old @ (at, Fate::Delivered)) if at == new.0 => old,
        Some(_) | None => new,
    }
}

/// A batch, ready to be written.
#[derive(Debug)]
pub(crate) struct Plan<'b> {
    pub(crate) disk: Rows<'b>,
    pub(crate) memory: Rows<'b>,
    /// Changes of the batch to the seats: see [`Seats::update`].
    pub(crate) moves: Moves,
}

/// Rooms made and (`None`) dropped by a batch, and the next free integers after it.
#[derive(Debug)]
pub(crate) struct Moves {
    rooms: BTreeMap<RoomId, Option<Seat>>,
    next_disk: u32,
    next_memory: u32,
}

impl Seats {
    /// To be done when the batch is written.
    pub(crate) fn update(&mut self, moves: Moves) {
        (self.next_disk, self.next_memory) = (moves.next_disk, moves.next_memory);
        for (id, seat) in moves.rooms {
            match seat {
                Some(seat) => self.rooms.insert(id, seat),
                None => self.rooms.remove(&id),
            };
        }
    }
}

/// A plan in the making.
struct Draft<'s, 'b> {
    seats: &'s Seats,
    plan: Plan<'b>,
}

impl<'b> Plan<'b> {
    pub(crate) fn new(seats: &Seats, batch: &'b [Change]) -> Result<Plan<'b>, CommitError> {
        let moves = Moves {
            rooms: BTreeMap::new(),
            next_disk: seats.next_disk,
            next_memory: seats.next_memory,
        };
        let plan = Plan { disk: Rows::default(), memory: Rows::default(), moves };
        let mut draft = Draft { seats, plan };
        batch.iter().try_for_each(|change| draft.add(change))?;
        Ok(draft.plan)
    }
}

impl<'b> Draft<'_, 'b> {
    fn seat(&self, room: RoomId) -> Option<Seat> {
        match self.plan.moves.rooms.get(&room) {
            Some(seat) => *seat,
            None => self.seats.rooms.get(&room).copied(),
        }
    }

    fn rows(&mut self, keep: Keep) -> &mut Rows<'b> {
        match keep {
            Keep::Disk => &mut self.plan.disk,
            Keep::Memory => &mut self.plan.memory,
        }
    }

    fn room(&mut self, room: RoomId) -> Result<(&mut Rows<'b>, u32), CommitError> {
        let seat = self.seat(room).ok_or(CommitError::UnknownRoom(room))?;
        Ok((self.rows(seat.keep), seat.room))
    }

    fn add(&mut self, change: &'b Change) -> Result<(), CommitError> {
        match change {
            Change::Room { room, record } => return self.add_room(*room, record),
            Change::Drop { room } => return self.drop_room(*room),
            Change::Log { room, log, record } => {
                let (rows, room) = self.room(*room)?;
                rows.logs.insert((room, *log), record);
            }
            Change::Entry { room, at, entry } => return self.add_entry(*room, *at, entry),
            Change::Era { room, era, record } => {
                let (rows, room) = self.room(*room)?;
                rows.eras.insert((room, era.0), record);
            }
            Change::Number { room, number, at, fate } => {
                let (rows, room) = self.room(*room)?;
                let old = rows.numbers.get(&(room, number.0)).copied();
                rows.numbers.insert((room, number.0), settle(old, (*at, *fate)));
            }
            Change::NumberRange { room, at, numbers } => {
                let (rows, room) = self.room(*room)?;
                rows.number_ranges.insert((room, at.log, at.seq), *numbers);
            }
            Change::Dedup { room, id, at, wall_ms } => {
                let (rows, room) = self.room(*room)?;
                rows.dedups.insert((*wall_ms, room, u128::from_be_bytes(id.0)), *at);
            }
            Change::Called { room, id, at } => {
                let (rows, room) = self.room(*room)?;
                rows.called.entry((room, u128::from_be_bytes(id.0))).or_insert(*at);
            }
            Change::Prune { room, before_ms } => {
                // Memory ends by itself.
                if self.seat(*room).ok_or(CommitError::UnknownRoom(*room))?.keep == Keep::Disk {
                    self.plan.disk.prunes.insert(*room, *before_ms);
                }
            }
            Change::Evidence { certificate, run } => {
                // Runs carry contents: those of rooms that are, or may have been, ephemeral stay
                // off the disk.
                let keep = self.seat(certificate.room).map_or(Keep::Memory, |seat| seat.keep);
                self.rows(keep).evidence.push((certificate, run));
            }
            Change::Note { room, vote, note } => {
                let (rows, room) = self.room(*room)?;
                rows.notes.insert((room, vote.log, vote.seq), note.as_ref());
            }
            Change::Record { .. }
            | Change::Content { .. }
            | Change::Copied { .. }
            | Change::Replaced { .. }
            | Change::ReplacedEnd { .. } => self.plan.disk.add_record(change),
            Change::Keep { name, value } => {
                self.plan.disk.kept.insert(name, value.as_ref().map(|opaque| opaque.0.as_slice()));
            }
            Change::Inbox(_) | Change::NoInbox { .. } | Change::InboxItem { .. } => {
                self.plan.disk.inboxes.add(change);
            }
            Change::Request { .. } => self.plan.disk.requests.add(change),
            Change::Carriage { .. } | Change::Load { .. } | Change::Owed { .. } => {
                self.plan.disk.carried.add(change);
            }
            Change::Node(record) => self.plan.disk.node = Some(record),
        }
        Ok(())
    }

    fn add_room(&mut self, id: RoomId, record: &'b RoomRecord) -> Result<(), CommitError> {
        let keep = if record.ephemeral { Keep::Memory } else { Keep::Disk };
        let room = match self.seat(id) {
            Some(seat) if seat.keep == keep => seat.room,
            Some(_) => return Err(CommitError::Moved(id)),
            None => {
                let next = match keep {
                    Keep::Disk => &mut self.plan.moves.next_disk,
                    Keep::Memory => &mut self.plan.moves.next_memory,
                };
                let room = *next;
                *next += 1;
                self.plan.moves.rooms.insert(id, Some(Seat { keep, room }));
                self.rows(keep).ids.insert(id, room);
                room
            }
        };
        self.rows(keep).rooms.insert(room, (id, record));
        Ok(())
    }

    fn drop_room(&mut self, id: RoomId) -> Result<(), CommitError> {
        match self.seat(id) {
            Some(Seat { keep: Keep::Memory, room }) => {
                self.plan.moves.rooms.insert(id, None);
                self.plan.memory.forget(id, room);
                Ok(())
            }
            Some(Seat { keep: Keep::Disk, .. }) => Err(CommitError::Permanent(id)),
            // Gone with the last process that had it in memory.
            None => Ok(()),
        }
    }

    fn add_entry(
        &mut self,
        id: RoomId,
        at: LocalRef,
        entry: &'b Stored,
    ) -> Result<(), CommitError> {
        let (rows, room) = self.room(id)?;
        match rows.entries.insert((room, at.log, at.seq), (id, entry)) {
            Some((_, old)) if old != entry => Err(CommitError::EntryReplaced { room: id, at }),
            Some(_) | None => Ok(()),
        }
    }
}
