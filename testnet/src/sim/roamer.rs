//! Clients that only hold a cursor, as the bridge would serve them. Some wander between nodes: they must not miss a
//! message, and may see one twice. Some stay at their node, and come back as soon as it has started again: they get each
//! message once, whatever others do.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Input,
    api::{
        command::{CallId, Command, Outcome, Refused, Roamed},
        event::RoomEvent,
    },
    name::{
        id::RoomId,
        number::{Era, Number},
    },
    order::served::Served,
};
use store::{Cursor, Reader, Row};

use super::{
    promises::{Broken, Entry, broken},
    world::World,
};

/// Rows it takes at once.
const PAGE: usize = 20;
/// How often a page is read again that waits for something to come, as the bridge does it.
const LATER_TRIES_MAX: u8 = 50;
/// After so long what a client was given has been written, as the bridge does it.
const KEPT_AFTER: Duration = Duration::from_secs(1);

/// What kinds of clients there are in a world.
pub(super) const KINDS: [Kind; 5] = [
    Kind { stays: false, live: false, stable: true },
    Kind { stays: false, live: true, stable: false },
    Kind { stays: false, live: true, stable: true },
    Kind { stays: true, live: false, stable: true },
    Kind { stays: true, live: true, stable: true },
];

/// What a client is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// It never leaves its node.
    stays: bool,
    /// It listens to live events between pages; otherwise it only pages.
    live: bool,
    /// Its agent has an id of its own, so that nodes know what they gave it.
    stable: bool,
}

/// What one node knows of one client.
#[derive(Debug, Default)]
struct Known {
    served: Served,
    /// As it is on the disk.
    kept: Served,
    /// When it last changed.
    noted: Duration,
    /// What was given since it was written: it may be given again after a crash.
    unkept: BTreeSet<Entry>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Roamer {
    pub(super) node: usize,
    kind: Kind,
    room: RoomId,
    cursor: Number,
    seen: BTreeSet<Entry>,
    /// Where it has been.
    visited: BTreeSet<usize>,
    /// What nodes know of it.
    known: BTreeMap<usize, Known>,
    /// What a node gave it just before a crash, and had not noted.
    unnoted: BTreeSet<Entry>,
    /// What it came with to where it is.
    came: Number,
    /// Its last page was the end of what there was: live events may follow.
    caught_up: bool,
    /// What it asked its node to number, and that was answered.
    claimed: bool,
    /// Up to where its room was delivered when it asked.
    asked: Number,
    /// How often it read again, for something was still to come.
    waited: u8,
    /// An era above its cursor was asked for.
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

    pub(super) fn stays(&self) -> bool {
        self.kind.stays
    }

    /// The power failed, or the process ended in good order: then everything is written first.
    pub(super) fn node_down(&mut self, node: usize, now: Duration) {
        if let Some(known) = self.known.get_mut(&node) {
            if now < known.noted + KEPT_AFTER {
                self.unnoted.append(&mut known.unkept);
                known.served = known.kept.clone();
            }
            known.kept = known.served.clone();
            known.unkept.clear();
        }
        if self.node == node {
            self.leave();
        }
    }

    /// The node writes what it knows.
    pub(super) fn keep(&mut self, node: usize) {
        if let Some(known) = self.known.get_mut(&node) {
            known.kept = known.served.clone();
            known.unkept.clear();
        }
    }

    pub(super) fn leave(&mut self) {
        self.came = self.cursor;
        self.caught_up = false;
        self.claimed = false;
        self.waits_for = None;
    }

    fn served(&self) -> Served {
        self.known.get(&self.node).map(|it| it.served.clone()).unwrap_or_default()
    }

    fn note(
        &mut self,
        now: Duration,
        (given, upto): (&[Entry], Number),
        note: impl FnOnce(&mut Served),
    ) {
        if !self.kind.stable {
            return;
        }
        let known = self.known.entry(self.node).or_default();
        if now >= known.noted + KEPT_AFTER {
            known.kept = known.served.clone();
            known.unkept.clear();
        }
        let mut served = known.served.clone();
        note(&mut served);
        known.unkept.extend(given);
        // Who comes into an era is noted at once.
        if known.served.came_with(upto).is_none() {
            known.kept = served.clone();
            known.unkept.clear();
        }
        known.served = served;
        known.noted = now;
    }

    /// `Err`: it stays, and gets it again.
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

/// What is given to a client at once.
struct Page {
    rows: Vec<Row>,
    /// Live events may follow.
    settled: bool,
    /// There is more to be read.
    more: bool,
}

/// What a client came with, if anybody may have been given less below it.
fn arrival(cursor: Number) -> Number {
    if cursor.era() > Era::HOME { cursor } else { Number::ZERO }
}

impl World {
    /// Some roamer reads on, or goes to another node.
    pub(super) fn roam_some(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            let i = self.dice.index(self.roamers.len());
            let goes = self.dice.chance(25);
            let node = self.dice.index(self.nodes.len());
            if goes {
                self.roam_to(i, node);
            }
            self.roam_read(i)?;
        }
        Ok(())
    }

    fn roam_to(&mut self, i: usize, node: usize) {
        let roamer = &mut self.roamers[i];
        if roamer.node != node && !roamer.stays() {
            roamer.node = node;
            roamer.visited.insert(node);
            roamer.moves += 1;
            roamer.leave();
        }
    }

    /// A node has started: who stays there comes back at once, and somebody else may come as soon.
    pub(super) fn roam_back(&mut self, node: usize) -> Result<(), Broken> {
        if self.plan.scripted.is_some() {
            return Ok(());
        }
        let comes = self.dice.index(2 * self.roamers.len());
        if comes < self.roamers.len() {
            self.roam_to(comes, node);
        }
        for i in 0..self.roamers.len() {
            if self.roamers[i].node == node {
                self.roam_read(i)?;
            }
        }
        Ok(())
    }

    /// One page, as `get_history` would serve it. A disk that was to fail may do so here first.
    pub(super) fn roam_read(&mut self, i: usize) -> Result<(), Broken> {
        let node = self.roamers[i].node;
        self.roam_page(i).or_else(|broken| {
            let failed = broken.promise == STORE && self.nodes[node].is_doomed();
            if failed { Ok(()) } else { Err(broken) }
        })
    }

    fn roam_page(&mut self, i: usize) -> Result<(), Broken> {
        let Roamer { node, room, cursor, waits_for, .. } = self.roamers[i];
        let Some(running) = &self.nodes[node].running else { return Ok(()) };
        if waits_for.is_some() {
            return Ok(());
        }
        let reader = running.reader.clone();
        let served = self.roamers[i].served();
        let at_once = reader.page_at_once(room, cursor, PAGE).map_err(|it| read_failed(&it))?;
        let serves = reader.serves_roamer(room, cursor).map_err(|it| read_failed(&it))?;
        if at_once.is_some() && serves != Cursor::Here {
            return broken("roaming", format!("{cursor:?} is served at once, and is not of here"));
        }
        let own = |rows| Page { rows, settled: true, more: false };
        let Page { rows, settled, more } = match (served.came_with(cursor), serves) {
            (Some(came), _) => {
                self.roamers[i].came = came;
                let page = reader.page_of_arrival(room, cursor, came, PAGE);
                page.map(own).map_err(|it| read_failed(&it))?
            }
            (None, Cursor::Here) => {
                reader.page_since(room, cursor, PAGE).map(own).map_err(|it| read_failed(&it))?
            }
            (None, Cursor::Foreign) => match self.read_as_foreign(i, &reader)? {
                Some(page) => page,
                None => return Ok(()),
            },
        };
        let full = rows.len() >= PAGE || more;
        self.say(|| {
            format!(
                "roamer {i} at node{node} with {cursor:?} {serves:?} reads {:?}",
                rows.iter().map(|it| (it.number, it.log, it.at.seq)).collect::<Vec<_>>()
            )
        });
        let mut given = Vec::new();
        for row in rows {
            if row.number <= self.roamers[i].cursor {
                return broken("roaming", format!("{:?} at or behind {cursor:?}", row.number));
            }
            given.push((row.log, row.at.seq));
            self.roamers[i].take(row.number, (row.log, row.at.seq))?;
            self.script_roamed((node, i), &row);
        }
        let now = self.now;
        let roamer = &mut self.roamers[i];
        let upto = roamer.cursor;
        if (settled || upto > cursor) && upto.era() > Era::HOME {
            let came = roamer.served().came_with(cursor).unwrap_or(arrival(cursor));
            roamer.note(now, (&given, upto), |served| served.page(came, (cursor, upto)));
        }
        roamer.caught_up = !full && settled;
        Ok(())
    }

    /// A page for a cursor of another node. `None`: it asked its node for numbers, or reads again later.
    fn read_as_foreign(&mut self, i: usize, reader: &Reader) -> Result<Option<Page>, Broken> {
        let Roamer { node, room, cursor, claimed, .. } = self.roamers[i];
        let tip = reader.tip(room).map_err(|it| read_failed(&it))?;
        let roam = reader.roam(room, cursor, PAGE).map_err(|it| read_failed(&it))?;
        let mut delivered = roam.unproven.iter().filter_map(|it| it.1);
        let again = claimed && delivered.any(|it| it > self.roamers[i].asked);
        if roam.needs_claim && (!claimed || again) {
            let call = self.call();
            let roamer = &mut self.roamers[i];
            roamer.asked = tip;
            roamer.claimed = false;
            // Live events are held until it has read again.
            roamer.waits_for = Some(call);
            roamer.caught_up = false;
            self.roam_calls.insert(call);
            self.say(|| {
                format!("roamer {i} at node{node} asks with {cursor:?} for {:?}", roam.unproven)
            });
            let command = Command::Roam { room, cursor, entries: roam.unproven };
            self.give(node, Input::Command { call, command });
            return Ok(None);
        }
        let roamer = &mut self.roamers[i];
        roamer.claimed = false;
        // What is still to come under a number of its own must not be overtaken by live
        // events: it is read again later.
        if roam.later.is_some() && !roam.more && roamer.waited < LATER_TRIES_MAX {
            roamer.waited += 1;
            return Ok(None);
        }
        roamer.waited = 0;
        let settled = !roam.needs_claim && (roam.more || roam.later.is_none());
        Ok(Some(Page { rows: roam.rows, settled, more: roam.more }))
    }

    /// A live event of the node it is at.
    fn roam_live(
        &mut self,
        i: usize,
        node: usize,
        (room, number, entry): (RoomId, Number, Entry),
    ) -> Result<(), Broken> {
        let now = self.now;
        let roamer = &mut self.roamers[i];
        let listens = roamer.kind.live && roamer.caught_up && roamer.waits_for.is_none();
        let before = roamer.cursor;
        if !listens || (roamer.node, roamer.room) != (node, room) || number <= before {
            return Ok(());
        }
        roamer.take(number, entry)?;
        if number.era() > Era::HOME {
            roamer.note(now, (&[entry], number), |served| served.went_on(before, number));
        }
        self.say(|| format!("roamer {i} at node{node} hears {number:?} {entry:?}"));
        Ok(())
    }

    /// What a node tells members, for clients that are there.
    pub(super) fn roamers_told(
        &mut self,
        node: usize,
        room: RoomId,
        event: &RoomEvent,
    ) -> Result<(), Broken> {
        if let RoomEvent::Message(it) = event {
            let entry = (it.log, it.at.seq);
            self.say(|| format!("node{node} delivers {:?} {entry:?} in {room}", it.number));
            for i in 0..self.roamers.len() {
                if it.canonical.is_some() && arrival(self.roamers[i].came) > Number::ZERO {
                    self.roam_judged(i, node, (room, it.number))?;
                } else {
                    self.roam_live(i, node, (room, it.number, entry))?;
                }
            }
        }
        if let RoomEvent::PassedOver { number, log, at } = event {
            let entry = (*log, at.seq);
            self.say(|| format!("node{node} passes over {number:?} {entry:?} in {room}"));
            for i in 0..self.roamers.len() {
                if arrival(self.roamers[i].came) > Number::ZERO {
                    self.roam_judged(i, node, (room, *number))?;
                }
            }
        }
        Ok(())
    }

    /// Something is delivered late, or passed over, at the node it is at. The cursor that it brought says whether it is
    /// given that: it reads on up to there, as the bridge has it do.
    fn roam_judged(
        &mut self,
        i: usize,
        node: usize,
        (room, number): (RoomId, Number),
    ) -> Result<(), Broken> {
        let roamer = &self.roamers[i];
        if (roamer.node, roamer.room) != (node, room) {
            return Ok(());
        }
        let Some(running) = &self.nodes[node].running else { return Ok(()) };
        let (after, came) = (roamer.cursor, arrival(roamer.came));
        // A disk that fails here is found out by the next who reads.
        let rows =
            running.reader.page_of_arrival(room, after, came, usize::MAX).unwrap_or_default();
        for row in rows.iter().take_while(|row| row.number <= number) {
            self.roam_live(i, node, (room, row.number, (row.log, row.at.seq)))?;
        }
        Ok(())
    }

    /// Whether the answer was to a roamer.
    pub(super) fn roam_replied(&mut self, call: CallId, result: &Result<Outcome, Refused>) -> bool {
        if !self.roam_calls.remove(&call) {
            return false;
        }
        self.say(|| format!("roamer's call {call:?} is answered {result:?}"));
        let ready = matches!(result, Ok(Outcome::Roamed(Roamed::Ready | Roamed::Never)));
        // One that has gone elsewhere does not wait for its answer.
        for roamer in &mut self.roamers {
            if roamer.waits_for == Some(call) {
                roamer.waits_for = None;
                roamer.claimed = ready;
            }
        }
        true
    }

    /// *roaming*: every roamer has seen everything.
    pub(super) fn roamers_saw_everything(&mut self) -> Result<(), Broken> {
        for i in 0..self.roamers.len() {
            let (node, room) = (self.roamers[i].node, self.roamers[i].room);
            let all = self.promises.seen(self.nodes[node].id, room);
            let missed = all.difference(&self.roamers[i].seen);
            // It may have read where the body was dropped already, and this node keeps it for longer.
            let dropped = |it| (0..self.nodes.len()).any(|at| self.is_dropped(at, room, it));
            let missed = missed.filter(|it| !dropped(**it));
            // Somewhere it may have gone past a hole, of which nobody else knows that it was one.
            let visited = &self.roamers[i].visited;
            let left_out =
                |it| visited.iter().any(|at| self.promises.left_out(self.nodes[*at].id, room, it));
            let missed = missed.filter(|it| !left_out(**it));
            let missed: Vec<&Entry> = missed.collect();
            if !missed.is_empty() {
                let (what, cursor) = (missed.first(), self.roamers[i].cursor);
                let text = format!(
                    "roamer {i} at node{node} missed {} of {} with cursor {cursor:?}, the first {what:?}",
                    missed.len(),
                    all.len()
                );
                return broken("roaming", text);
            }
            let repeats = self.roamers[i].repeats;
            if self.plan.calm && repeats > 0 {
                return broken(
                    "roaming",
                    format!("roamer {i} saw {repeats} twice in calm weather"),
                );
            }
        }
        Ok(())
    }
}

/// The promise that what is read can be.
const STORE: &str = "store";

fn read_failed(error: &store::ReadError) -> Broken {
    Broken { promise: STORE, what: format!("a read failed: {error}") }
}
