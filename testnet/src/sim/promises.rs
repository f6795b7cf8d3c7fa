//! The promises of `docs/numbering.md`, as checkers. They see what nodes store, deliver and answer,
//! and know nothing of how it came about.

use std::collections::{BTreeMap, BTreeSet};

use mesh::name::{
    id::{LogId, NodeId, RoomId},
    number::{Era, Number},
};

/// An entry of a room, the same at every node.
pub(crate) type Entry = (LogId, u64);

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name in `docs/numbering.md`.
    pub promise: &'static str,
    /// The event that broke it.
    pub what: String,
}

pub(crate) fn broken<T>(promise: &'static str, what: String) -> Result<T, Broken> {
    Err(Broken { promise, what })
}

/// The promise that a store can be read.
const STORE: &str = "store";

impl From<store::ReadError> for Broken {
    fn from(error: store::ReadError) -> Broken {
        Broken { promise: STORE, what: format!("a read failed: {error}") }
    }
}

impl Broken {
    /// Whether a store could not be read.
    pub(super) fn is_of_store(&self) -> bool {
        self.promise == STORE
    }
}

/// The deliveries of one node in one room.
#[derive(Debug, Default)]
struct Deliveries {
    tip: Number,
    numbers: BTreeMap<Entry, Number>,
    holes: BTreeSet<Number>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    deliveries: BTreeMap<(NodeId, RoomId), Deliveries>,
    /// Every number that anybody gave, and its entry.
    names: BTreeMap<(RoomId, Number), Entry>,
    /// Every visible entry that a node holds durably.
    held: BTreeMap<RoomId, BTreeMap<Entry, BTreeSet<NodeId>>>,
    /// Messages that were answered `ok`.
    acknowledged: Vec<Acknowledged>,
    /// Nodes whose disks are lost.
    lost: BTreeSet<NodeId>,
}

/// A message that was answered `ok`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) room: RoomId,
    pub(crate) entry: Entry,
    pub(crate) number: Number,
    /// By whom.
    pub(crate) node: NodeId,
    /// As many nodes hold it, it said.
    pub(crate) copies: usize,
}

impl Promises {
    /// A node stores a visible entry.
    pub(crate) fn stored(&mut self, node: NodeId, room: RoomId, entry: Entry) {
        self.held.entry(room).or_default().entry(entry).or_default().insert(node);
    }

    /// A node takes `number` for the number of `entry`. *names*: so does everybody.
    pub(crate) fn named(
        &mut self,
        room: RoomId,
        number: Number,
        entry: Entry,
    ) -> Result<(), Broken> {
        let known = *self.names.entry((room, number)).or_insert(entry);
        if known == entry {
            return Ok(());
        }
        broken("names", format!("{number:?} of room {room} means {known:?} and {entry:?}"))
    }

    /// *rising*: numbers rise at a node, and each message is delivered once.
    pub(crate) fn delivered(
        &mut self,
        node: NodeId,
        room: RoomId,
        number: Number,
        entry: Entry,
    ) -> Result<(), Broken> {
        let seen = self.deliveries.entry((node, room)).or_default();
        if number <= seen.tip {
            return broken("rising", format!("{number:?} after {:?} at {node}", seen.tip));
        }
        seen.tip = number;
        match seen.numbers.insert(entry, number) {
            None => Ok(()),
            Some(before) => broken(
                "rising",
                format!("{entry:?} delivered as {before:?} and as {number:?} at {node}"),
            ),
        }
    }

    /// A node starts with these deliveries in its store: a turn whose commit was cut off is there
    /// or not, and either is right. All earlier deliveries must still be there.
    pub(super) fn restarted(
        &mut self,
        node: NodeId,
        room: RoomId,
        stored: &[(Number, Entry)],
    ) -> Result<(), Broken> {
        let seen = self.deliveries.entry((node, room)).or_default();
        let now: BTreeMap<Entry, Number> =
            stored.iter().map(|(number, entry)| (*entry, *number)).collect();
        if let Some((entry, number)) =
            seen.numbers.iter().find(|(entry, number)| now.get(entry) != Some(number))
        {
            let text =
                format!("{entry:?} was delivered as {number:?} and now as {:?}", now.get(entry));
            return broken("rising", text);
        }
        seen.tip = seen.tip.max(now.values().max().copied().unwrap_or_default());
        seen.numbers = now;
        Ok(())
    }

    /// A node leaves a number as a hole.
    pub(super) fn hole(&mut self, node: NodeId, room: RoomId, number: Number) {
        self.deliveries.entry((node, room)).or_default().holes.insert(number);
    }

    /// Whether a node ever left a number of an entry as a hole.
    pub(super) fn left_out(&self, node: NodeId, room: RoomId, entry: Entry) -> bool {
        let holes = self.deliveries.get(&(node, room)).into_iter().flat_map(|seen| &seen.holes);
        holes.into_iter().any(|number| self.names.get(&(room, *number)) == Some(&entry))
    }

    /// An ephemeral room ended at a node: if it comes back there, that is a new story.
    pub(super) fn forgot(&mut self, node: NodeId, room: RoomId) {
        self.deliveries.remove(&(node, room));
        for holders in self.held.entry(room).or_default().values_mut() {
            holders.remove(&node);
        }
    }

    /// A node's memory is gone, and its ephemeral rooms with it.
    pub(super) fn node_down(&mut self, node: NodeId, ephemeral: &BTreeSet<RoomId>) {
        for room in ephemeral {
            self.forgot(node, *room);
        }
    }

    pub(crate) fn acknowledged(&mut self, message: Acknowledged) {
        self.acknowledged.push(message);
    }

    /// A node's disk is lost: messages that it alone was said to hold may be lost with it.
    pub(super) fn disk_lost(&mut self, node: NodeId) {
        self.lost.insert(node);
        self.deliveries.retain(|(at, _), _| *at != node);
        for holders in self.held.values_mut().flat_map(BTreeMap::values_mut) {
            holders.remove(&node);
        }
        self.acknowledged.retain(|message| message.node != node || message.copies > 1);
    }

    /// Messages that a node whose disk is lost had answered with several copies.
    pub(super) fn copied(&self) -> impl Iterator<Item = &Acknowledged> {
        self.acknowledged.iter().filter(|message| self.lost.contains(&message.node))
    }

    /// *complete*: every node has delivered every visible entry that any of them has, but for those that it
    /// `may_lack`; and *acknowledged survives*: messages that were answered `ok` are among these.
    pub(crate) fn complete(
        &self,
        nodes: &[NodeId],
        room: RoomId,
        may_lack: impl Fn(NodeId, Entry) -> bool,
    ) -> Result<(), Broken> {
        let none = BTreeMap::new();
        let held = self.held.get(&room).unwrap_or(&none);
        for node in nodes {
            let seen = self.deliveries.get(&(*node, room));
            let lacks: Vec<&Entry> = held
                .iter()
                .filter(|(_, holders)| !holders.is_empty())
                .map(|(entry, _)| entry)
                .filter(|entry| !seen.is_some_and(|seen| seen.numbers.contains_key(entry)))
                .filter(|entry| !may_lack(*node, **entry))
                .collect();
            if !lacks.is_empty() {
                let first = lacks.first();
                let what = format!(
                    "{} of {} entries of room {room} not delivered at {}, the first {first:?}",
                    lacks.len(),
                    held.len(),
                    node.short(),
                );
                return broken("complete", what);
            }
        }
        let lost = self.acknowledged.iter().find(|message| {
            message.room == room && held.get(&message.entry).is_none_or(BTreeSet::is_empty)
        });
        match lost {
            None => Ok(()),
            Some(lost) => broken("acknowledged survives", format!("{lost:?} is nowhere")),
        }
    }

    /// *agreement*: these entries have one number at all nodes.
    pub(crate) fn agree(
        &self,
        nodes: &[NodeId],
        room: RoomId,
        which: impl Fn(&Entry) -> bool,
    ) -> Result<(), Broken> {
        let mut numbers: BTreeMap<Entry, (NodeId, Number)> = BTreeMap::new();
        for node in nodes {
            let Some(seen) = self.deliveries.get(&(*node, room)) else { continue };
            for (entry, number) in seen.numbers.iter().filter(|(entry, _)| which(entry)) {
                let (other, known) = *numbers.entry(*entry).or_insert((*node, *number));
                if known != *number {
                    let (a, b) = (other.short(), node.short());
                    let what = format!(
                        "{entry:?} of room {room} is {known:?} at {a} and {number:?} at {b}"
                    );
                    return broken("agreement", what);
                }
            }
        }
        Ok(())
    }

    /// *calm*: all numbers of the room are of its home era, from 1, without gaps.
    pub(crate) fn calm(&self, nodes: &[NodeId], room: RoomId) -> Result<(), Broken> {
        for node in nodes {
            let Some(seen) = self.deliveries.get(&(*node, room)) else { continue };
            let mut numbers: Vec<Number> = seen.numbers.values().copied().collect();
            numbers.sort_unstable();
            let dense = (1..).zip(&numbers).all(|(n, number)| *number == Era::HOME.number(n));
            if !dense {
                let first = numbers.iter().zip(1..).find(|(number, n)| **number != Number(*n));
                let what = format!("room {room} at {} leaves 1, 2, 3 … at {first:?}", node.short());
                return broken("calm", what);
            }
        }
        Ok(())
    }

    /// Every entry that a node has delivered of a room.
    pub(super) fn seen(&self, node: NodeId, room: RoomId) -> BTreeSet<Entry> {
        let seen = self.deliveries.get(&(node, room));
        seen.map(|seen| seen.numbers.keys().copied().collect()).unwrap_or_default()
    }

    /// Under which number a node has delivered an entry.
    pub(super) fn number_at(&self, node: NodeId, room: RoomId, entry: Entry) -> Option<Number> {
        self.deliveries.get(&(node, room))?.numbers.get(&entry).copied()
    }

    /// The numbers of all entries that a node has delivered of a room.
    pub(super) fn numbers_at(
        &self,
        node: NodeId,
        room: RoomId,
    ) -> impl Iterator<Item = Number> + '_ {
        let seen = self.deliveries.get(&(node, room)).into_iter();
        seen.flat_map(|seen| seen.numbers.values().copied())
    }

    pub(crate) fn rooms(&self) -> BTreeSet<RoomId> {
        self.held.keys().copied().collect()
    }

    /// Every number anybody knows of a room, with its entry.
    pub(super) fn all_names(&self, room: RoomId) -> impl Iterator<Item = (Number, Entry)> + '_ {
        self.names
            .range((room, Number::ZERO)..=(room, Number(u64::MAX)))
            .map(|((_, number), entry)| (*number, *entry))
    }

    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let eras: BTreeSet<(RoomId, Era)> =
            self.names.keys().map(|(room, number)| (*room, number.era())).collect();
        let entries = self.held.values().map(BTreeMap::len).sum();
        let holes = self.deliveries.values().map(|seen| seen.holes.len()).sum();
        (entries, eras.len(), holes)
    }
}
