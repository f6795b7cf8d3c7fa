//! Folding the acts of all rooms anew, after a start.

use std::collections::{BTreeMap, VecDeque};

use super::known::Known;
use crate::{
    name::id::{EntryRef, LocalRef, LogId, Position, RoomId},
    wire::entry::{Body, Facts, Stored},
};

/// An act that the store kept, opened.
struct Act {
    at: LocalRef,
    facts: Facts,
    body: Body,
}

/// Acts of one log that are left to be folded.
type Rest = VecDeque<Act>;

/// A store gives each log's acts in order, but knows nothing of how logs depend on each other. An
/// act was accepted after all that it names; so it is folded after all that it names.
pub(super) fn refold_acts(known: &mut Known, acts: Vec<(RoomId, LocalRef, Stored)>) {
    let mut by_room: BTreeMap<RoomId, BTreeMap<LogId, Rest>> = BTreeMap::new();
    for (id, at, entry) in acts {
        if let Some(room) = known.rooms.get(&id) {
            let log = room.replica.logs.id(at.log);
            let act = Act { at, facts: entry.facts, body: room.replica.body_of(at, &entry) };
            by_room.entry(id).or_default().entry(log).or_default().push_back(act);
        }
    }
    for (id, logs) in by_room {
        let Some(room) = known.rooms.get_mut(&id) else { continue };
        let mut left = Left::new(logs);
        while let Some(act) = left.take_next() {
            room.refold(&known.cx, act.at, act.facts, act.body);
        }
    }
    for room in known.rooms.values_mut() {
        room.hold_decisions(&mut known.cx);
    }
}

/// Acts of a room that are left to be folded.
struct Left {
    logs: BTreeMap<LogId, Rest>,
    /// Each log's next act.
    next: BTreeMap<Position, LogId>,
}

impl Left {
    fn new(logs: BTreeMap<LogId, Rest>) -> Left {
        let next = logs.iter().filter_map(|(log, rest)| Some((position(*log, rest)?, *log)));
        Left { next: next.collect(), logs }
    }

    /// Takes the lowest act by position of those that name nothing that is left: about the order in which
    /// they came, so that a claim is not folded long before its answer.
    fn take_next(&mut self) -> Option<Act> {
        let ready = self.next.iter().find(|(_, log)| self.is_ready(**log));
        // Only what the store has lost something of can be left to wait for itself: in any order, then.
        let (at, log) = ready.or(self.next.first_key_value()).map(|(at, log)| (*at, *log))?;
        self.next.remove(&at);
        let rest = self.logs.get_mut(&log)?;
        let act = rest.pop_front();
        self.next.extend(position(log, rest).map(|act| (act, log)));
        act
    }

    fn is_ready(&self, log: LogId) -> bool {
        let front = |log| self.logs.get(&log).and_then(VecDeque::front);
        let waits_for = |act: &EntryRef| {
            act.log != log && front(act.log).is_some_and(|first: &Act| first.at.seq <= act.seq)
        };
        front(log).is_some_and(|act| !act.body.names().iter().any(waits_for))
    }
}

fn position(log: LogId, rest: &Rest) -> Option<Position> {
    let first = rest.front()?;
    Some(Position { clock: first.facts.clock, place: EntryRef { log, seq: first.at.seq } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{id::NodeId, number::Era},
        wire::acts::{Grant, TaskAct, TaskClaimed, TaskUpdated},
    };

    #[test]
    fn acts_are_folded_about_as_they_came_and_after_what_they_name() {
        let log = |n| LogId { author: NodeId([n; 32]), incarnation: 0 };
        let nothing = |task| TaskUpdated::of(task, "ann".into());
        let act = |(seq, clock): (u64, u64), act| {
            let facts = Facts { clock, wall_ms: 0, kind: 50, visible: false };
            Act { at: LocalRef { log: 0, seq }, facts, body: Body::Task(act) }
        };
        let claim = |seq| {
            let update = nothing(EntryRef { log: log(1), seq: 1 });
            let claimed = TaskAct::Claimed(TaskClaimed {
                update,
                if_assignee: None,
                era: Era::HOME,
                key: None,
                if_status: None,
            });
            act((seq, 10 * seq), claimed)
        };
        // The last answer's clock is below that of the claim that it names.
        let grant = |seq: u64| {
            let claim = EntryRef { log: log(1), seq };
            let grant =
                Grant { era: Era::HOME, claim, update: None, holder: None, by: None, status: None };
            act((seq, if seq < 5 { 10 * seq + 1 } else { 42 }), TaskAct::Granted(grant))
        };
        let logs = BTreeMap::from([
            (log(1), (1..=5).map(claim).collect::<Rest>()),
            (log(2), (1..=5).map(grant).collect()),
        ]);
        let mut left = Left::new(logs);
        let order: Vec<u64> =
            std::iter::from_fn(|| left.take_next()).map(|it| it.facts.clock).collect();
        assert_eq!(order, [10, 11, 20, 21, 30, 31, 40, 41, 50, 42]);
    }
}
