//! One client that holds a cursor, and the nodes' memory of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::command::CallId,
    name::{
        id::RoomId,
        number::{Era, Number},
    },
    order::served::Served,
};
use store::Row;

use crate::sim::promises::{Broken, Entry, broken};

/// After so long a node has written what a client was given, as the bridge does it.
const KEPT_AFTER: Duration = Duration::from_secs(1);

/// A kind of client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// It never leaves its node.
    pub(super) stays: bool,
    /// It listens to live events between pages; otherwise it only pages.
    pub(super) live: bool,
    /// Its agent has an id of its own, so that nodes know what they gave it.
    pub(super) stable: bool,
}

/// A message of a room that a node delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) node: usize,
    pub(super) room: RoomId,
    pub(super) number: Number,
    pub(super) entry: Entry,
}

/// One node's memory of one client.
#[derive(Debug, Default)]
struct Known {
    served: Served,
    /// As it is on the disk.
    kept: Served,
    /// When it last changed.
    noted: Duration,
    /// Entries that were given since it was written: they may be given again after a crash.
    unkept: BTreeSet<Entry>,
}

impl Known {
    /// It is written to the disk.
    fn keep(&mut self) {
        self.kept = self.served.clone();
        self.unkept.clear();
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Roamer {
    pub(super) node: usize,
    kind: Kind,
    pub(super) room: RoomId,
    pub(super) cursor: Number,
    pub(super) seen: BTreeSet<Entry>,
    /// Where it has been.
    pub(super) visited: BTreeSet<usize>,
    /// The nodes' memory of it.
    known: BTreeMap<usize, Known>,
    /// Entries that a node gave it just before a crash, and had not noted.
    unnoted: BTreeSet<Entry>,
    /// The cursor with which it came to its node.
    pub(super) came: Number,
    /// Its last page was the end of all rows: live events may follow.
    pub(super) caught_up: bool,
    /// The numbers that it asked for were given.
    pub(super) claimed: bool,
    /// Up to where its room was delivered when it asked.
    pub(super) asked: Number,
    /// How often it read again, for something was still to come.
    pub(super) waited: u8,
    /// It asked for an era above its cursor.
    pub(super) waits_for: Option<CallId>,
    pub(super) taken: u64,
    pub(super) repeats: u64,
    pub(super) moves: u64,
}

impl Roamer {
    pub(super) fn new(node: usize, room: RoomId, kind: Kind) -> Roamer {
        Roamer {
            node,
            kind,
            room,
            cursor: Number::ZERO,
            seen: BTreeSet::new(),
            visited: BTreeSet::from([node]),
            known: BTreeMap::new(),
            unnoted: BTreeSet::new(),
            came: Number::ZERO,
            caught_up: false,
            claimed: false,
            asked: Number::ZERO,
            waited: 0,
            waits_for: None,
            taken: 0,
            repeats: 0,
            moves: 0,
        }
    }

    /// The power failed, or the process ended in good order: then everything is written first.
    pub(super) fn node_down(&mut self, node: usize, now: Duration) {
        if let Some(known) = self.known.get_mut(&node) {
            if now < known.noted + KEPT_AFTER {
                self.unnoted.append(&mut known.unkept);
                known.served = known.kept.clone();
            }
            known.keep();
        }
        if self.node == node {
            self.leave();
        }
    }

    /// The node writes its memory.
    pub(super) fn keep(&mut self, node: usize) {
        if let Some(known) = self.known.get_mut(&node) {
            known.keep();
        }
    }

    /// It connects to a node.
    pub(super) fn go(&mut self, node: usize) {
        self.node = node;
        self.moves += 1;
        self.leave();
    }

    /// Its node goes on from an earlier copy of its disk, and has forgotten what it gave to whom: nothing is promised any more to
    /// those who stay there.
    pub(super) fn disk_replaced(&mut self, node: usize) {
        self.kind.stays &= self.node != node;
    }

    /// It goes to another node, unless it stays where it is.
    pub(super) fn wander(&mut self, node: usize) {
        if self.node != node && !self.kind.stays {
            self.visited.insert(node);
            self.go(node);
        }
    }

    fn leave(&mut self) {
        self.came = self.cursor;
        self.caught_up = false;
        self.claimed = false;
        self.waits_for = None;
    }

    /// It asks its node for numbers. Live events are held until it has read again.
    pub(super) fn asks(&mut self, call: CallId, tip: Number) {
        self.asked = tip;
        self.claimed = false;
        self.waits_for = Some(call);
        self.caught_up = false;
    }

    /// Whether it came to its node with a cursor below which it may have been given less.
    pub(super) fn has_arrived(&self) -> bool {
        arrival(self.came) > Number::ZERO
    }

    /// Whether it takes a live event.
    pub(super) fn hears(&self, message: Message) -> bool {
        let Message { node, room, number, .. } = message;
        let listens = self.kind.live && self.caught_up && self.waits_for.is_none();
        listens && (self.node, self.room) == (node, room) && number > self.cursor
    }

    pub(super) fn served(&self) -> Served {
        self.known.get(&self.node).map(|known| known.served.clone()).unwrap_or_default()
    }

    /// It takes a page.
    pub(super) fn take_page(
        &mut self,
        rows: &[Row],
        settled: bool,
        now: Duration,
    ) -> Result<(), Broken> {
        let cursor = self.cursor;
        let mut given = Vec::new();
        for row in rows {
            if row.number <= self.cursor {
                return broken("roaming", format!("{:?} at or behind {cursor:?}", row.number));
            }
            given.push((row.log, row.at.seq));
            self.take(row.number, (row.log, row.at.seq))?;
        }
        let upto = self.cursor;
        if (settled || upto > cursor) && upto.era() > Era::HOME {
            let came = self.served().came_with(cursor).unwrap_or(arrival(cursor));
            self.note(now, &given, |served| served.page(came, (cursor, upto)));
        }
        Ok(())
    }

    /// It takes a live event.
    pub(super) fn take_live(
        &mut self,
        number: Number,
        entry: Entry,
        now: Duration,
    ) -> Result<(), Broken> {
        let before = self.cursor;
        self.take(number, entry)?;
        if number.era() > Era::HOME {
            self.note(now, &[entry], |served| served.went_on(before, number));
        }
        Ok(())
    }

    /// Its node notes that it was given entries up to its cursor.
    fn note(&mut self, now: Duration, given: &[Entry], note: impl FnOnce(&mut Served)) {
        if !self.kind.stable {
            return;
        }
        let known = self.known.entry(self.node).or_default();
        if now >= known.noted + KEPT_AFTER {
            known.keep();
        }
        let mut served = known.served.clone();
        note(&mut served);
        known.unkept.extend(given);
        // A client that comes into an era is noted at once.
        if known.served.came_with(self.cursor).is_none() {
            known.kept = served.clone();
            known.unkept.clear();
        }
        known.served = served;
        known.noted = now;
    }

    /// *stays*: a client that stays gets each message once.
    fn take(&mut self, number: Number, entry: Entry) -> Result<(), Broken> {
        self.cursor = number;
        self.taken += 1;
        if self.seen.insert(entry) {
            return Ok(());
        }
        self.repeats += 1;
        if self.kind.stays && !self.unnoted.contains(&entry) {
            let what = format!("{entry:?}, again as {number:?}, at node{}", self.node);
            return broken("stays", what);
        }
        Ok(())
    }
}

/// The cursor of a client that comes, if it may have been given less below it than is delivered there.
pub(super) fn arrival(cursor: Number) -> Number {
    if cursor.era() > Era::HOME { cursor } else { Number::ZERO }
}
