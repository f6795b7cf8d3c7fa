//! Direct rooms, as the sealed directories of pairs list them. Either side lists one, or both do across a split: any
//! entry that counts is enough, so it does not matter which came first. They have no numbers, and their names are no
//! names that anybody chose.

use std::collections::{BTreeMap, BTreeSet};

use super::learned::Learned;
use crate::{
    limits::{DIRECT_ROOMS_MAX, DIRECT_ROOMS_PER_PAIR_MAX},
    name::{
        group::{Sides, direct_room},
        id::{AgentId, EntryRef, KeyPrint, LogId, MeshId, NodeId, RoomId},
    },
    wire::entry::{DirectClosed, DirectOpened, Facts},
};

/// An entry that lists a direct room; of each log the first one.
#[derive(Clone, Debug)]
struct Listing {
    seq: u64,
    clock: u64,
    wall_ms: u64,
    by: AgentId,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct DirectRoom {
    pub(crate) id: RoomId,
    /// Its agents.
    pub(crate) sides: Sides,
    /// It is for a task.
    pub(crate) task: bool,
    /// The directory of their pair.
    directory: RoomId,
    listings: BTreeMap<LogId, Listing>,
    /// Entries that close it; of each log the first one of either kind.
    closings: BTreeMap<(LogId, bool), u64>,
}

/// How far a direct room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its agents write.
    Open,
    /// It can be read.
    Closed,
    /// It is gone, and bodies in it with it.
    Dropped,
}

impl DirectRoom {
    pub(crate) fn stage(&self) -> Stage {
        let drops = self.closings.keys().any(|(_, drops)| *drops);
        match self.closings.is_empty() {
            true => Stage::Open,
            false if drops => Stage::Dropped,
            false => Stage::Closed,
        }
    }

    /// The directory of its pair, and an entry there that lists it.
    pub(crate) fn listed(&self) -> Option<(RoomId, EntryRef)> {
        let (log, listing) = self.listings.iter().next()?;
        Some((self.directory, EntryRef { log: *log, seq: listing.seq }))
    }

    /// The first entry that lists it, the same at all nodes that have the same logs.
    fn first(&self) -> Option<&Listing> {
        let first = self.listings.iter().min_by_key(|(log, listing)| (listing.clock, **log));
        first.map(|(_, listing)| listing)
    }

    /// When it was opened. Unix milliseconds.
    pub(crate) fn opened_ms(&self) -> u64 {
        self.first().map_or(0, |first| first.wall_ms)
    }

    /// The nodes that say that this agent has opened it.
    pub(crate) fn openers(&self, agent: &AgentId) -> impl Iterator<Item = NodeId> {
        let by = self.listings.iter().filter(|(_, listing)| listing.by == *agent);
        by.map(|(log, _)| log.author)
    }

    /// The agent that opened it.
    pub(crate) fn opened_by(&self) -> Option<&AgentId> {
        self.first().map(|first| &first.by)
    }
}

/// An entry of a pair's directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) directory: RoomId,
    pub(super) log: LogId,
    pub(super) seq: u64,
    pub(super) facts: Facts,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectRooms {
    rooms: BTreeMap<RoomId, DirectRoom>,
    /// How many there are of each pair, by its directory.
    counts: BTreeMap<RoomId, usize>,
    by_agent: BTreeMap<(AgentId, KeyPrint), BTreeSet<RoomId>>,
}

impl DirectRooms {
    pub(super) fn learn(&mut self, mesh: MeshId, place: Place, opened: &DirectOpened) -> Learned {
        let Place { directory, log, seq, facts } = place;
        let id = direct_room(mesh, &opened.by, &opened.with, opened.task);
        let by = opened.by.agent.clone();
        let listing = Listing { seq, clock: facts.clock, wall_ms: facts.wall_ms, by };
        if let Some(known) = self.rooms.get_mut(&id) {
            let first = known.listings.entry(log).or_insert_with(|| listing.clone());
            if seq < first.seq {
                *first = listing;
            }
            return Learned::Nothing;
        }
        let sides = Sides::of(&opened.by, &opened.with);
        for (agent, key) in sides.iter() {
            self.by_agent.entry((agent.clone(), key)).or_default().insert(id);
        }
        *self.counts.entry(directory).or_default() += 1;
        let listings = BTreeMap::from([(log, listing)]);
        let (task, closings) = (opened.task.is_some(), BTreeMap::new());
        self.rooms.insert(id, DirectRoom { id, sides, task, directory, listings, closings });
        Learned::Direct(id)
    }

    /// The room of a task takes nothing more. One that another directory lists is none of this one's; and where two agents talk
    /// neither closes the door on the other's words.
    pub(super) fn learn_closed(&mut self, place: Place, closed: DirectClosed) -> Learned {
        let room = self.rooms.get_mut(&closed.room);
        let counts = |room: &&mut DirectRoom| room.task && room.directory == place.directory;
        let Some(room) = room.filter(counts) else {
            return Learned::Nothing;
        };
        let before = room.stage();
        let seq = room.closings.entry((place.log, closed.drops)).or_insert(place.seq);
        *seq = place.seq.min(*seq);
        if room.stage() == before { Learned::Nothing } else { Learned::Closed(closed.room) }
    }

    /// Whether bodies of some room are to be dropped.
    pub(crate) fn drops_any(&self) -> bool {
        self.rooms.values().any(|room| room.stage() == Stage::Dropped)
    }

    /// Whether there is room for one more in the directory of a pair, or it is known.
    pub(crate) fn has_room_for(&self, directory: RoomId, id: RoomId) -> bool {
        let of_pair = self.counts.get(&directory).copied().unwrap_or(0);
        let places = of_pair < DIRECT_ROOMS_PER_PAIR_MAX && self.rooms.len() < DIRECT_ROOMS_MAX;
        places || self.rooms.contains_key(&id)
    }

    pub(crate) fn get(&self, id: RoomId) -> Option<&DirectRoom> {
        self.rooms.get(&id)
    }

    /// The direct rooms of an agent with this key.
    pub(crate) fn of_agent(&self, agent: &AgentId, key: KeyPrint) -> impl Iterator<Item = RoomId> {
        self.by_agent.get(&(agent.clone(), key)).into_iter().flatten().copied()
    }

    /// Nothing counts that a log says in a directory, `from` an entry on.
    pub(super) fn forget(&mut self, directory: RoomId, from: EntryRef) {
        if !self.counts.contains_key(&directory) {
            return;
        }
        for room in self.rooms.values_mut().filter(|room| room.directory == directory) {
            room.listings.retain(|log, listing| *log != from.log || listing.seq < from.seq);
            room.closings.retain(|(log, _), seq| *log != from.log || *seq < from.seq);
        }
        let gone = self.rooms.extract_if(.., |_, room| room.listings.is_empty());
        for (id, room) in gone.collect::<Vec<_>>() {
            self.counts.entry(directory).and_modify(|count| *count -= 1);
            for (agent, key) in room.sides.iter() {
                let of_agent = (agent.clone(), key);
                if let Some(ids) = self.by_agent.get_mut(&of_agent) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.by_agent.remove(&of_agent);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{group::Side, key::KeySecret},
        wire::kinds::DIRECT_OPENED,
    };

    const MESH: MeshId = MeshId([1; 16]);
    const DIRECTORY: RoomId = RoomId([2; 16]);

    fn side(agent: &str, key: u8) -> Side {
        let halves = KeySecret::of(&format!("{key:0>32}")).halves();
        Side { agent: agent.into(), halves }
    }

    fn opened(by: &str, with: &str) -> DirectOpened {
        let key = |agent: &str| u8::from(agent != "ann");
        DirectOpened { by: side(by, key(by)), with: side(with, key(with)), task: None }
    }

    fn place(author: u8, seq: u64) -> Place {
        let facts = Facts { clock: seq, wall_ms: seq, kind: DIRECT_OPENED, visible: false };
        let log = LogId { author: NodeId([author; 32]), incarnation: 0 };
        Place { directory: DIRECTORY, log, seq, facts }
    }

    fn from(author: u8, seq: u64) -> EntryRef {
        EntryRef { log: place(author, seq).log, seq }
    }

    #[test]
    fn a_room_that_both_sides_list_is_one_room_in_whichever_order_that_is_heard() {
        let id = direct_room(MESH, &side("ann", 0), &side("bob", 1), None);
        let both = [(place(1, 9), opened("bob", "ann")), (place(2, 4), opened("ann", "bob"))];
        for order in [[0, 1], [1, 0]] {
            let mut rooms = DirectRooms::default();
            let learned = order.map(|nth| rooms.learn(MESH, both[nth].0, &both[nth].1));
            assert_eq!(learned, [Learned::Direct(id), Learned::Nothing]);
            let room = rooms.get(id).expect("it is listed");
            assert_eq!((room.opened_ms(), room.opened_by().map(|by| &**by)), (4, Some("ann")));
            assert_eq!(room.sides.name(), "dm:ann:bob");
        }
    }

    #[test]
    fn a_room_is_there_as_long_as_one_entry_lists_it_that_counts() {
        let id = direct_room(MESH, &side("ann", 0), &side("bob", 1), None);
        let mut rooms = DirectRooms::default();
        for (author, seq) in [(1, 9), (1, 5), (2, 4)] {
            rooms.learn(MESH, place(author, seq), &opened("ann", "bob"));
        }
        let of_agent = |rooms: &DirectRooms, agent: &str, key: u8| {
            rooms.of_agent(&agent.into(), side(agent, key).halves.print()).collect::<Vec<_>>()
        };
        rooms.forget(DIRECTORY, from(2, 1));
        rooms.forget(DIRECTORY, from(1, 6));
        rooms.forget(RoomId([9; 16]), from(1, 1));
        assert_eq!(rooms.get(id).map(DirectRoom::opened_ms), Some(5));
        assert_eq!(of_agent(&rooms, "bob", 1), [id]);
        assert_eq!(of_agent(&rooms, "bob", 0), [], "with another key it is another agent");
        rooms.forget(DIRECTORY, from(1, 5));
        assert!(rooms.get(id).is_none() && of_agent(&rooms, "ann", 0).is_empty());
        assert_eq!((rooms.counts[&DIRECTORY], rooms.by_agent.len()), (0, 0));
        rooms.learn(MESH, place(3, 1), &opened("bob", "ann"));
        assert!(rooms.get(id).is_some(), "it is opened anew");
    }

    #[test]
    fn a_pair_has_so_many_rooms() {
        let mut rooms = DirectRooms::default();
        rooms.counts.insert(DIRECTORY, DIRECT_ROOMS_PER_PAIR_MAX - 1);
        let (ann, other) = (opened("ann", "bob"), opened("ann", "eve"));
        let id = |opened: &DirectOpened| direct_room(MESH, &opened.by, &opened.with, None);
        assert!(rooms.has_room_for(DIRECTORY, id(&ann)));
        rooms.learn(MESH, place(1, 1), &ann);
        assert!(!rooms.has_room_for(DIRECTORY, id(&other)), "one too many");
        assert!(rooms.has_room_for(DIRECTORY, id(&ann)), "it is known");
        assert!(rooms.has_room_for(RoomId([9; 16]), id(&other)), "of another pair");
    }
}
