//! Whose turn it is, told to rooms with very many members here. The event names all members, so that its
//! cost grows with their square: of 1,000 each gets 40 KB. It goes to some of them at a time, between
//! messages; members that still wait for it when there is a newer one get the newer one.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mesh::name::id::RoomId;
use tokio::sync::Notify;

use crate::{
    delivery::link::{Link, LinkId},
    limits::{CROWD_TOLD_BYTES, CROWD_TOLD_UP_TO},
    seam::event::{Rendered, Told},
};

type Seats = BTreeMap<LinkId, Arc<Link>>;

#[derive(Debug, Default)]
pub(super) struct Crowds {
    rooms: Mutex<BTreeMap<RoomId, Telling>>,
    pub(super) begun: Notify,
}

/// The newest event of a room, and the members attached here that still wait for it, each once.
#[derive(Debug)]
struct Telling {
    told: Arc<Told>,
    waiting: VecDeque<LinkId>,
}

impl Crowds {
    fn rooms(&self) -> MutexGuard<'_, BTreeMap<RoomId, Telling>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all of a room's members, at once if they are few.
    pub(super) fn tell(&self, room: RoomId, seats: &Seats, told: Arc<Told>) {
        let mut rooms = self.rooms();
        if seats.len() <= CROWD_TOLD_UP_TO {
            // The event that some still waited for is old now.
            rooms.remove(&room);
            seats.values().for_each(|link| link.tell(&told));
            return;
        }
        let before = rooms.remove(&room).map(|before| before.waiting).unwrap_or_default();
        // Members that have waited for the one before come first.
        let first: HashSet<LinkId> = before.iter().copied().collect();
        let others = seats.keys().copied().filter(|id| !first.contains(id));
        let waiting =
            before.iter().copied().filter(|id| seats.contains_key(id)).chain(others).collect();
        rooms.insert(room, Telling { told, waiting });
        self.begun.notify_one();
    }

    /// Tells some of each crowd: whether there are others left. `seats`: members of a room that are attached here.
    pub(super) fn tell_some<'a>(&self, seats: impl Fn(RoomId) -> Option<&'a Seats>) -> bool {
        let mut rooms = self.rooms();
        let share = CROWD_TOLD_BYTES / rooms.len().max(1);
        rooms.retain(|room, telling| {
            let Some(seats) = seats(*room) else { return false };
            telling.tell_some(seats, share);
            !telling.waiting.is_empty()
        });
        !rooms.is_empty()
    }
}

impl Telling {
    /// Tells one, and more while their frames come to no more than so many bytes.
    fn tell_some(&mut self, seats: &Seats, bytes: usize) {
        let mut told = 0;
        while let Some(id) = self.waiting.front() {
            let link = seats.get(id);
            let rendered = link.and_then(|link| self.told.rendered(link.voice()?));
            let size = rendered.as_ref().map_or(0, Rendered::bytes);
            if told > 0 && told + size > bytes {
                return;
            }
            told += size;
            if let (Some(link), Some(rendered)) = (link, rendered) {
                link.event(rendered);
            }
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        delivery::{link::Me, outbox::Work},
        testing::plain::{Plain, presence},
    };

    use mesh::name::id::KeyPrint;

    const ROOM: RoomId = RoomId([1; 16]);

    fn seats(count: u64) -> BTreeMap<LinkId, Arc<Link>> {
        let link = |id| {
            let link = Link::new(LinkId(id), None);
            let me = Me { agent: id.to_string().into(), key: KeyPrint([1; 16]), stable: false };
            link.register(me, Plain::voice());
            link.open();
            (link.id, Arc::new(link))
        };
        (0..count).map(link).collect()
    }

    /// An event whose frame is so long.
    fn told(bytes: usize) -> Arc<Told> {
        Arc::new(Told::new(presence(bytes)))
    }

    fn got(link: &Link) -> Vec<usize> {
        let mut batch = Vec::new();
        let mut all = Vec::new();
        while link.next(&mut batch) == Some(Work::Write) {
            all.extend(batch.iter().map(|frame| frame.parts()[0].len()));
        }
        all
    }

    #[test]
    fn few_are_told_at_once_and_nothing_older_comes_after_it() {
        let crowds = Crowds::default();
        let many = seats(CROWD_TOLD_UP_TO as u64 + 1);
        crowds.tell(ROOM, &many, told(3));
        assert!(got(&many[&LinkId(0)]).is_empty());
        let few: BTreeMap<_, _> = many.into_iter().skip(1).collect();
        crowds.tell(ROOM, &few, told(4));
        assert!(few.values().all(|link| got(link) == [4]));
        assert!(crowds.rooms().is_empty());
    }

    #[test]
    fn who_waits_gets_the_newest_and_comes_first() {
        let crowds = Crowds::default();
        let many = seats(CROWD_TOLD_UP_TO as u64 + 1);
        crowds.tell(ROOM, &many, told(3));
        crowds.rooms().get_mut(&ROOM).unwrap().waiting.drain(..100);
        let left: BTreeMap<_, _> =
            many.iter().filter(|(id, _)| id.0 != 101).map(|(id, it)| (*id, it.clone())).collect();
        let left = left.into_iter().chain(seats(2 * CROWD_TOLD_UP_TO as u64).into_iter().skip(200));
        crowds.tell(ROOM, &left.collect(), told(4));
        let rooms = crowds.rooms();
        let telling = &rooms[&ROOM];
        assert_eq!(telling.told.frames(&Plain::voice()).bytes(), 4);
        let first: Vec<u64> = telling.waiting.iter().map(|it| it.0).take(3).collect();
        assert_eq!(first, [100, 102, 103]);
        assert_eq!(telling.waiting.len(), 128 + 56, "each once");
    }
}
