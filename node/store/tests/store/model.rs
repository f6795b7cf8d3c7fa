//! A small world after `numbering_model.py`: nodes that write, pull, split, claim and deliver. It
//! makes the states that roaming has to cope with: what one node delivered to a client, and all
//! that another one knows. It does not check numbering itself.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::batch::{Change, Fate, RoomRecord},
    name::{
        id::LocalRef,
        number::{Era, Number},
    },
};

use crate::rows::*;

/// splitmix64
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }
}

#[derive(Clone, Default)]
struct Items {
    sequencer: usize,
    cut: BTreeMap<Era, u64>,
    items: Vec<LocalRef>,
}

#[derive(Clone)]
pub(crate) struct Node {
    me: usize,
    clock: u64,
    /// Place → position in the order of clocks.
    entries: BTreeMap<LocalRef, (u64, LocalRef)>,
    eras: BTreeMap<Era, Items>,
    done: BTreeMap<Era, u64>,
    /// What clients here were given, in order.
    pub(crate) log: Vec<(Number, LocalRef)>,
    delivered: BTreeSet<LocalRef>,
    tip: Number,
    alone_since: Option<u64>,
}

impl Node {
    fn new(me: usize) -> Node {
        Node {
            me,
            clock: 0,
            entries: BTreeMap::new(),
            eras: BTreeMap::from([(Era::HOME, Items::default())]),
            done: BTreeMap::new(),
            log: Vec::new(),
            delivered: BTreeSet::new(),
            tip: Number::ZERO,
            alone_since: None,
        }
    }

    pub(crate) fn current(&self) -> Era {
        *self.eras.last_key_value().unwrap().0
    }

    fn write(&mut self) {
        let log = u32::try_from(self.me).unwrap();
        let seq = self.entries.keys().filter(|it| it.log == log).count() as u64 + 1;
        self.clock += 1;
        self.entries.insert(at(log, seq), (self.clock, at(log, seq)));
    }

    fn pull(&mut self, other: &Node, random: &mut Random) {
        for (place, position) in &other.entries {
            let before = place.seq == 1 || self.entries.contains_key(&at(place.log, place.seq - 1));
            if before && !self.entries.contains_key(place) && random.percent(85) {
                self.entries.insert(*place, *position);
                self.clock = self.clock.max(position.0);
            }
        }
        for (era, theirs) in &other.eras {
            let mine = self
                .eras
                .entry(*era)
                .or_insert_with(|| Items { items: Vec::new(), ..theirs.clone() });
            let have = mine.items.len();
            if theirs.items.len() > have {
                let more = random.below((theirs.items.len() - have) as u64 + 1);
                mine.items.extend(&theirs.items[have..have + usize::try_from(more).unwrap()]);
            }
        }
    }

    fn best(&self) -> BTreeMap<LocalRef, Number> {
        let mut best = BTreeMap::new();
        for (era, it) in &self.eras {
            best.extend(it.items.iter().zip(1..).map(|(place, n)| (*place, era.number(n))));
        }
        best
    }

    fn late(&self) -> BTreeSet<LocalRef> {
        let best = self.best();
        let late = |place: &&LocalRef| {
            !self.delivered.contains(place)
                && best.get(place).is_none_or(|number| *number <= self.tip)
        };
        self.entries.keys().filter(late).copied().collect()
    }

    fn deliver(&mut self) {
        for (era, it) in &self.eras {
            let reached = |era: &Era| self.done.get(era).copied().unwrap_or(0);
            if it.cut.iter().any(|(era, n)| reached(era) < *n) {
                continue;
            }
            for (place, n) in it.items.iter().zip(1..) {
                let number = era.number(n);
                if n <= self.done.get(era).copied().unwrap_or(0) {
                    continue;
                }
                if !self.entries.contains_key(place) {
                    break;
                }
                if number > self.tip && self.delivered.insert(*place) {
                    self.log.push((number, *place));
                    self.tip = number;
                }
                self.done.insert(*era, n);
            }
        }
    }

    fn number(&mut self, peers: &[Node]) {
        let current = self.current();
        if self.eras[&current].sequencer != self.me {
            return;
        }
        let best = self.best();
        let mut need = self.late();
        for peer in peers {
            need.extend(peer.late().into_iter().filter(|place| {
                self.entries.contains_key(place)
                    && best.get(place).is_none_or(|number| *number <= peer.tip)
            }));
        }
        let mut need: Vec<LocalRef> = need.into_iter().collect();
        need.sort_by_key(|place| self.entries[place]);
        self.eras.get_mut(&current).unwrap().items.extend(need);
        self.deliver();
    }

    /// `whole`: cuts name every era, not only those that changed since the cut before.
    fn claim(&mut self, whole: bool) {
        let c = self.current().c() + 1;
        let era = Era::new(c, u32::try_from(self.me).unwrap() + 1).unwrap();
        let known = full_cut(&self.eras, self.current());
        let mut cut: BTreeMap<Era, u64> =
            self.eras.keys().map(|it| (*it, self.done.get(it).copied().unwrap_or(0))).collect();
        if !whole {
            cut.retain(|era, n| known.get(era).copied().unwrap_or(0) != *n);
        }
        self.eras.insert(era, Items { sequencer: self.me, cut, items: Vec::new() });
    }

    /// As its engine would have written it.
    pub(crate) fn rows(&self) -> Vec<Change> {
        let delivered = self.log.len() as u64;
        let record = RoomRecord { tip: self.tip, delivered, ..room_record() };
        let mut batch = vec![Change::Room { room: ROOM, record }];
        for (era, it) in &self.eras {
            let cut: Vec<(Era, u64)> = it.cut.iter().map(|(era, n)| (*era, *n)).collect();
            let done = self.done.get(era).copied().unwrap_or(0);
            batch.push(crate::rows::era(ROOM, *era, it.items.len() as u64, done, &cut));
            for (place, n) in it.items.iter().zip(1..) {
                let delivered = self.log.contains(&(era.number(n), *place));
                let fate = if delivered { Fate::Delivered } else { Fate::Assigned };
                batch.push(number(ROOM, era.number(n), *place, fate));
            }
        }
        for place in self.entries.keys() {
            batch.push(entry(ROOM, *place, stored(place.seq, "")));
        }
        for author in 0..6 {
            let head = self.entries.keys().filter(|it| it.log == author).count() as u64;
            batch.push(log(ROOM, author, head));
        }
        batch
    }

    /// Whether every era up to `upto` that `other` knows is known here.
    pub(crate) fn knows_eras_of(&self, other: &Node, upto: Era) -> bool {
        other.eras.range(..upto).all(|(era, _)| self.eras.contains_key(era))
    }

    /// What live delivery will still bring to a client here whose cursor is not above it.
    pub(crate) fn brings(&self, place: LocalRef) -> bool {
        !self.delivered.contains(&place)
    }
}

/// What a claimer who wrote only changes meant: the cut before (that of the era it follows), with
/// them put over it.
fn full_cut(eras: &BTreeMap<Era, Items>, era: Era) -> BTreeMap<Era, u64> {
    let Some(before) = eras.range(..era).filter(|it| it.0.c() + 1 == era.c()).map(|it| it.0).max()
    else {
        return eras[&era].cut.clone();
    };
    let mut cut = full_cut(eras, *before);
    cut.extend(eras[&era].cut.iter().map(|(era, n)| (*era, *n)));
    cut
}

/// Some time in a world with splits: the nodes as they are then.
pub(crate) fn world(random: &mut Random, whole: bool) -> Vec<Node> {
    let count = 2 + usize::try_from(random.below(3)).unwrap();
    let mut nodes: Vec<Node> = (0..count).map(Node::new).collect();
    let mut group = vec![0; count];
    for time in 0..30 + random.below(150) {
        if random.percent(6) {
            let groups = 1 + random.below(3);
            group = (0..count).map(|_| random.below(groups)).collect();
        }
        for me in 0..count {
            let peers: Vec<Node> = (0..count)
                .filter(|it| *it != me && group[*it] == group[me])
                .map(|it| nodes[it].clone())
                .collect();
            let node = &mut nodes[me];
            if random.percent(15) {
                node.write();
            }
            if !peers.is_empty() && random.percent(60) {
                let from = usize::try_from(random.below(peers.len() as u64)).unwrap();
                node.pull(&peers[from], random);
            }
            node.deliver();
            let boss = node.eras[&node.current()].sequencer;
            if boss == me || peers.iter().any(|it| it.me == boss) {
                node.alone_since = None;
            } else if time - *node.alone_since.get_or_insert(time) > 3 + random.below(6) {
                node.claim(whole);
                node.alone_since = None;
            }
            node.number(&peers);
        }
    }
    nodes
}
