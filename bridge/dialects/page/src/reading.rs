//! How far a person has read each room: since the person first looked at the list of rooms, in memory alone. A person who signs in
//! again while signed in elsewhere goes on from there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mesh::name::{id::RoomId, number::Number};

use crate::limits::ROOMS_READ_MAX;

#[derive(Debug, Default)]
struct Read {
    /// The list was looked at: rooms that are not in it since then are new.
    has_begun: bool,
    /// At most [`ROOMS_READ_MAX`].
    rooms: BTreeMap<RoomId, u64>,
}

/// See the module. All copies are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading(Arc<Mutex<Read>>);

impl Reading {
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The person sees these rooms in a list. What was said before the first look is not new.
    pub(crate) fn meet(&self, rooms: impl Iterator<Item = (RoomId, Number)>) {
        let mut read = self.lock();
        let begins = !read.has_begun;
        for (room, Number(tip)) in rooms {
            if read.rooms.len() < ROOMS_READ_MAX {
                read.rooms.entry(room).or_insert(if begins { tip } else { 0 });
            }
        }
        read.has_begun = true;
    }

    /// The person has read a room up to this number.
    pub(crate) fn reads(&self, room: RoomId, Number(upto): Number) {
        let mut read = self.lock();
        if read.rooms.len() < ROOMS_READ_MAX || read.rooms.contains_key(&room) {
            let known = read.rooms.entry(room).or_default();
            *known = upto.max(*known);
        }
    }

    /// `None`: it is not remembered.
    pub(crate) fn read_upto(&self, room: RoomId) -> Option<u64> {
        self.lock().rooms.get(&room).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_unread_that_came_after_the_first_look_and_so_many_rooms_are_remembered() {
        let (reading, room) = (Reading::default(), |nth: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&nth.to_be_bytes());
            RoomId(id)
        });
        reading.meet([(room(0), Number(7))].into_iter());
        assert_eq!(reading.read_upto(room(0)), Some(7), "before the first look");
        reading.meet([(room(0), Number(9)), (room(1), Number(3))].into_iter());
        assert_eq!([room(0), room(1)].map(|room| reading.read_upto(room)), [Some(7), Some(0)]);
        reading.reads(room(0), Number(9));
        reading.reads(room(0), Number(8));
        assert_eq!(reading.read_upto(room(0)), Some(9), "it only rises");
        for nth in 0..2 * ROOMS_READ_MAX {
            reading.reads(room(nth), Number(1));
        }
        assert_eq!(reading.lock().rooms.len(), ROOMS_READ_MAX);
        reading.reads(room(1), Number(4));
        assert_eq!(reading.read_upto(room(1)), Some(4), "those that are remembered go on");
    }
}
