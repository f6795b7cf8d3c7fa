//! Writing acts; and folding those of all rooms anew, after a start.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Engine,
    rooms::{NO_MEMORY, NOT_WRITABLE},
};
use crate::{
    acts::Place,
    command::Refused,
    context::Context,
    entry::{Body, Facts, Stored},
    id::{At, LogId, RoomId},
    limits::{EPHEMERAL_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    room::Room,
};

/// An act that the store kept, opened.
struct Act {
    at: At,
    facts: Facts,
    body: Body,
}

/// What is left to be folded of one log.
type Rest = VecDeque<Act>;

impl Engine {
    /// Writes an act into this node's log of a room.
    pub(super) fn write_act(&mut self, id: RoomId, body: &Body) -> Result<At, Refused> {
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::Full("the room has too many members for this".to_owned()));
        }
        let room = self.rooms.get_mut(&id).ok_or(Refused::NoRoom)?;
        if room.record.ephemeral && self.cx.ephemeral_bytes + len > EPHEMERAL_BYTES_MAX {
            return Err(Refused::Full(NO_MEMORY.to_owned()));
        }
        if !room.is_writable(&self.cx) {
            return Err(Refused::Full(NOT_WRITABLE.to_owned()));
        }
        room.append(&mut self.cx, body).ok_or(Refused::Closed)
    }

    /// A store gives each log's acts in order, but knows nothing of how logs depend on each other. An
    /// act was accepted after all that it names; so it is folded after all that it names.
    pub(super) fn refold_acts(&mut self, acts: Vec<(RoomId, At, Stored)>) {
        let mut by_room: BTreeMap<RoomId, BTreeMap<LogId, Rest>> = BTreeMap::new();
        for (id, at, entry) in acts {
            if let Some(room) = self.rooms.get(&id) {
                let log = room.logs.id(at.log);
                let act = Act { at, facts: entry.facts, body: room.body_of(at, &entry) };
                by_room.entry(id).or_default().entry(log).or_default().push_back(act);
            }
        }
        for (id, mut logs) in by_room {
            if let Some(room) = self.rooms.get_mut(&id) {
                while refold_some(&self.cx, room, &mut logs) {}
            }
        }
        for room in self.rooms.values_mut() {
            room.hold_decisions(&mut self.cx);
        }
    }
}

/// Folds what can be folded now. `false`: nothing is left.
fn refold_some(cx: &Context, room: &mut Room, logs: &mut BTreeMap<LogId, Rest>) -> bool {
    let ids: Vec<LogId> = logs.keys().copied().collect();
    let mut folded = false;
    for id in ids {
        while let Some(it) = next_ready(logs, id) {
            room.refold(cx, it.at, it.facts, it.body);
            folded = true;
        }
    }
    // Only what the store has lost something of can be left to wait for itself: in any order, then.
    if !folded && let Some(it) = logs.values_mut().find_map(VecDeque::pop_front) {
        room.refold(cx, it.at, it.facts, it.body);
        folded = true;
    }
    folded
}

/// The next act of a log, if all that it names has been folded, or is not there.
fn next_ready(logs: &mut BTreeMap<LogId, Rest>, id: LogId) -> Option<Act> {
    let act = logs.get(&id)?.front()?;
    let waits_for = |it: &Place| {
        let first = logs.get(&it.log).and_then(VecDeque::front);
        it.log != id && first.is_some_and(|first| first.at.seq <= it.seq)
    };
    let ready = !act.body.names().iter().any(waits_for);
    if ready { logs.get_mut(&id)?.pop_front() } else { None }
}
