//! A client that only holds a cursor and wanders between nodes, as the bridge would serve it: it may
//! see a message twice, it must not miss one.

use std::collections::BTreeSet;

use mesh::{
    Input,
    command::{CallId, Command},
    id::RoomId,
    number::{Era, Number},
};
use store::Cursor;

use super::{
    promises::{Broken, Entry, broken},
    world::World,
};

/// Rows it takes at once.
const PAGE: usize = 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Roamer {
    pub(super) node: usize,
    room: RoomId,
    cursor: Number,
    seen: BTreeSet<Entry>,
    /// Listens to live events between pages; otherwise it only pages.
    live: bool,
    /// What it came with to where it is.
    came: Number,
    /// Its last page was the end of what there was: live events may follow.
    caught_up: bool,
    /// An era above its cursor was asked for.
    pub(super) waits_for: Option<CallId>,
    pub(super) repeats: u64,
    pub(super) moves: u64,
}

impl Roamer {
    pub(super) fn new(node: usize, room: RoomId, live: bool) -> Roamer {
        Roamer {
            node,
            room,
            cursor: Number::ZERO,
            seen: BTreeSet::new(),
            live,
            came: Number::ZERO,
            caught_up: false,
            waits_for: None,
            repeats: 0,
            moves: 0,
        }
    }

    pub(super) fn node_down(&mut self, node: usize) {
        if self.node == node {
            self.leave();
        }
    }

    pub(super) fn leave(&mut self) {
        self.came = self.cursor;
        self.caught_up = false;
        self.waits_for = None;
    }

    fn take(&mut self, number: Number, entry: Entry) {
        self.cursor = number;
        if !self.seen.insert(entry) {
            self.repeats += 1;
        }
    }
}

impl World {
    /// Some roamer reads on, or goes to another node.
    pub(super) fn roam_some(&mut self) -> Result<(), Broken> {
        let i = self.dice.index(self.roamers.len());
        if self.dice.chance(25) {
            let node = self.dice.index(self.nodes.len());
            let roamer = &mut self.roamers[i];
            if roamer.node != node {
                roamer.node = node;
                roamer.moves += 1;
                roamer.leave();
            }
        }
        self.roam_read(i)
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
        let at_once = reader.page_at_once(room, cursor, PAGE).map_err(|it| read_failed(&it))?;
        let serves = reader.serves_roamer(room, cursor).map_err(|it| read_failed(&it))?;
        if at_once.is_some() && serves != Cursor::Here {
            return broken("roaming", format!("{cursor:?} is served at once, and is not of here"));
        }
        let rows = match serves {
            Cursor::Here => reader.page_since(room, cursor, PAGE).map_err(|it| read_failed(&it))?,
            Cursor::Foreign => {
                let roam = reader.roam(room, cursor, PAGE).map_err(|it| read_failed(&it))?;
                if roam.needs_claim {
                    let call = self.call();
                    // Live events are held until it has read again.
                    self.roamers[i].waits_for = Some(call);
                    self.roamers[i].caught_up = false;
                    self.roam_calls.insert(call);
                    let command = Command::Roam { room, cursor, entries: roam.unproven };
                    self.give(node, Input::Command { call, command });
                    return Ok(());
                }
                // What is still to come under a number of its own must not be overtaken by live
                // events: it is read again later.
                if roam.later.is_some() && roam.rows.is_empty() {
                    return Ok(());
                }
                roam.rows
            }
        };
        let full = rows.len() >= PAGE;
        self.say(|| {
            format!(
                "roamer {i} at node{node} with {cursor:?} {serves:?} reads {:?}",
                rows.iter().map(|it| (it.number, it.at)).collect::<Vec<_>>()
            )
        });
        for row in rows {
            if row.number <= self.roamers[i].cursor {
                return broken("roaming", format!("{:?} at or behind {cursor:?}", row.number));
            }
            self.roamers[i].take(row.number, (row.log, row.at.seq));
            self.script_roamed((node, i), &row);
        }
        self.roamers[i].caught_up = !full && serves == Cursor::Here;
        Ok(())
    }

    /// A live event of the node it is at.
    pub(super) fn roam_live(
        &mut self,
        i: usize,
        node: usize,
        (room, number, entry): (RoomId, Number, Entry),
    ) {
        let roamer = &mut self.roamers[i];
        let listens = roamer.live && roamer.caught_up && roamer.waits_for.is_none();
        if listens && (roamer.node, roamer.room) == (node, room) && number > roamer.cursor {
            roamer.take(number, entry);
            self.say(|| format!("roamer {i} at node{node} hears {number:?} {entry:?}"));
        }
    }

    /// The node it is at passes over another number of what was delivered there before.
    pub(super) fn roam_passed_over(
        &mut self,
        i: usize,
        node: usize,
        (room, number, entry): (RoomId, Number, Entry),
    ) {
        let delivered = self.promises.number_of(self.nodes[node].id, room, entry);
        let came = self.roamers[i].came;
        if came.era() > Era::HOME && delivered.is_some_and(|it| it <= came) {
            self.roam_live(i, node, (room, number, entry));
        }
    }

    /// Whether the answer was to a roamer: `Roamed(false)` leaves it where it is, to try again.
    pub(super) fn roam_replied(&mut self, call: CallId) -> bool {
        if !self.roam_calls.remove(&call) {
            return false;
        }
        // One that has gone elsewhere does not wait for its answer.
        for roamer in &mut self.roamers {
            if roamer.waits_for == Some(call) {
                roamer.waits_for = None;
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
