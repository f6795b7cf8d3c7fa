//! Whose turn it is, told to rooms with very many members here. The event names all members, so that what it
//! takes grows with their square: of 1,000 each gets 40 KB. It goes to some of them at a time, between
//! messages; who has not got it when there is a newer one gets the newer one.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use mesh::name::id::RoomId;
use tokio::{sync::Notify, time::sleep};

use super::Hub;
use crate::{
    limits::{CROWD_TOLD_BYTES, CROWD_TOLD_EVERY, CROWD_TOLD_UP_TO},
    link::{Link, LinkId},
};

#[derive(Debug, Default)]
pub(super) struct Crowds {
    rooms: Mutex<BTreeMap<RoomId, Telling>>,
    begun: Notify,
}

/// The newest event of a room, and who has not got it: each of those attached here once.
#[derive(Debug)]
struct Telling {
    frame: Bytes,
    waiting: VecDeque<LinkId>,
}

impl Crowds {
    fn rooms(&self) -> MutexGuard<'_, BTreeMap<RoomId, Telling>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all of a room's members, at once if they are few.
    pub(super) fn tell(&self, room: RoomId, seats: &BTreeMap<LinkId, Arc<Link>>, frame: Bytes) {
        let mut rooms = self.rooms();
        if seats.len() <= CROWD_TOLD_UP_TO {
            // What some still waited for is old now.
            rooms.remove(&room);
            seats.values().for_each(|link| link.event(frame.clone()));
            return;
        }
        let before = rooms.remove(&room).map(|it| it.waiting).unwrap_or_default();
        // Who has waited for the one before comes first.
        let first: HashSet<LinkId> = before.iter().copied().collect();
        let others = seats.keys().copied().filter(|it| !first.contains(it));
        let waiting =
            before.iter().copied().filter(|it| seats.contains_key(it)).chain(others).collect();
        rooms.insert(room, Telling { frame, waiting });
        self.begun.notify_one();
    }
}

impl Hub {
    /// Tells crowds, until it is dropped. To run as long as anybody is served.
    pub(crate) async fn tell_crowds(&self) {
        loop {
            self.crowds.begun.notified().await;
            while self.tell_some() {
                sleep(CROWD_TOLD_EVERY).await;
            }
        }
    }

    /// Tells some of each crowd: whether there are others left.
    fn tell_some(&self) -> bool {
        let state = self.read();
        let mut rooms = self.crowds.rooms();
        let share = CROWD_TOLD_BYTES / rooms.len().max(1);
        rooms.retain(|room, telling| {
            let Some(known) = state.rooms.get(room) else { return false };
            let some = (share / telling.frame.len().max(1)).max(1).min(telling.waiting.len());
            let links = telling.waiting.drain(..some).filter_map(|it| known.seats.get(&it));
            links.for_each(|link| link.event(telling.frame.clone()));
            !telling.waiting.is_empty()
        });
        !rooms.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Work;

    const ROOM: RoomId = RoomId([1; 16]);

    fn seats(count: u64) -> BTreeMap<LinkId, Arc<Link>> {
        let link = |id| {
            let link = Link::new(LinkId(id));
            link.open();
            (link.id, Arc::new(link))
        };
        (0..count).map(link).collect()
    }

    fn got(link: &Link) -> Vec<Bytes> {
        let mut batch = Vec::new();
        let mut all = Vec::new();
        while link.next(&mut batch) == Some(Work::Write) {
            all.extend(batch.iter().map(|it| it.bytes.clone()));
        }
        all
    }

    #[test]
    fn few_are_told_at_once_and_nothing_older_comes_after_it() {
        let crowds = Crowds::default();
        let many = seats(CROWD_TOLD_UP_TO as u64 + 1);
        crowds.tell(ROOM, &many, Bytes::from_static(b"old"));
        assert!(got(&many[&LinkId(0)]).is_empty());
        let few: BTreeMap<_, _> = many.into_iter().skip(1).collect();
        crowds.tell(ROOM, &few, Bytes::from_static(b"new"));
        assert!(few.values().all(|link| got(link) == ["new"]));
        assert!(crowds.rooms().is_empty());
    }

    #[test]
    fn who_waits_gets_the_newest_and_comes_first() {
        let crowds = Crowds::default();
        let many = seats(CROWD_TOLD_UP_TO as u64 + 1);
        crowds.tell(ROOM, &many, Bytes::from_static(b"old"));
        crowds.rooms().get_mut(&ROOM).unwrap().waiting.drain(..100);
        let left: BTreeMap<_, _> =
            many.iter().filter(|(id, _)| id.0 != 101).map(|(id, it)| (*id, it.clone())).collect();
        let left = left.into_iter().chain(seats(2 * CROWD_TOLD_UP_TO as u64).into_iter().skip(200));
        crowds.tell(ROOM, &left.collect(), Bytes::from_static(b"new"));
        let rooms = crowds.rooms();
        let telling = &rooms[&ROOM];
        assert_eq!(telling.frame, "new");
        let first: Vec<u64> = telling.waiting.iter().map(|it| it.0).take(3).collect();
        assert_eq!(first, [100, 102, 103]);
        assert_eq!(telling.waiting.len(), 128 + 56, "each once");
    }
}
