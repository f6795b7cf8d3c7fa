//! For how long bodies are kept here, and dropping them in time (`docs/decisions/retention.md`).

use std::{ops::Bound, time::Duration};

use super::Engine;
use crate::{
    api::{agenda::Retention, batch::Change, boundary::Alarm},
    limits::{CLOCK_JUMP_MAX, PRUNE_EVERY, PRUNE_FIRST_AFTER},
    name::{
        id::{KeyPrint, RoomId},
        time::Now,
    },
    replica::pruning::may_lose_bodies,
    wire::acts::Tier,
};

/// Rooms that are passed over at once, looking for one that has something to drop.
const PRUNE_ROOMS_LOOKED_AT: usize = 64;

/// What is dropped next, and whether the clock can be trusted with it.
#[derive(Debug)]
pub(super) struct Pruning {
    started: Now,
    /// Warned that the clock has jumped.
    warned: bool,
    next: Duration,
    /// The room before the one whose turn it is.
    last: Option<RoomId>,
    /// How many of an earlier mesh have had their turn.
    archived: usize,
}

impl Pruning {
    pub(super) fn new(now: Now, first_after: Duration) -> Pruning {
        let next = now.mono + PRUNE_FIRST_AFTER.min(first_after);
        Pruning { started: now, warned: false, next, last: None, archived: 0 }
    }

    /// How far the wall clock has moved against the monotonic one since the start.
    fn jumped(&self, now: Now) -> (bool, Duration) {
        let passed = now.mono.saturating_sub(self.started.mono);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let expected = self.started.wall_ms.saturating_add(passed_ms);
        let by = Duration::from_millis(now.wall_ms.abs_diff(expected));
        (now.wall_ms > expected, by)
    }
}

impl Engine {
    /// The oldest bodies of one room, if it is time.
    pub(super) fn go_on_pruning(&mut self) {
        let now = self.cx.now;
        if now.mono < self.pruning.next {
            return;
        }
        self.pruning.next = now.mono + PRUNE_EVERY;
        let (ahead, by) = self.pruning.jumped(now);
        if by > CLOCK_JUMP_MAX {
            if !std::mem::replace(&mut self.pruning.warned, true) {
                self.cx.alarm(Alarm::ClockJumped { ahead, by });
            }
            return;
        }
        if let Some((room, keep)) = self.next_to_prune() {
            let before_ms = now.wall_ms.saturating_sub(in_ms(keep));
            self.cx.change(Change::Prune { room, before_ms });
        }
    }

    /// The next room in the order of ids: one in which something was delivered, and in which bodies are
    /// not kept for ever. After the last of them the next that is left of an earlier mesh.
    fn next_to_prune(&mut self) -> Option<(RoomId, Duration)> {
        let Retention { own, low, high } = self.config.retention;
        if [own, low, high] == [None; 3] {
            return None;
        }
        let from = self.pruning.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut next = self.rooms.range((from, Bound::Unbounded));
        for _ in 0..PRUNE_ROOMS_LOOKED_AT {
            let Some((id, room)) = next.next() else {
                self.pruning.last = None;
                return self.next_archived();
            };
            self.pruning.last = Some(*id);
            if room.replica.record.delivered > 0
                && let Some(keep) = self.retention_of(*id)
            {
                return Some((*id, keep));
            }
        }
        None
    }

    fn next_archived(&mut self) -> Option<(RoomId, Duration)> {
        let rooms = &self.config.archive;
        let room = rooms.get(self.pruning.archived % rooms.len().max(1))?.room;
        self.pruning.archived += 1;
        Some((room, self.retention_of(room)?))
    }

    /// For how long bodies of a room are kept; `None`: for ever.
    fn retention_of(&self, id: RoomId) -> Option<Duration> {
        let room = self.rooms.get(&id);
        if room.is_some_and(|it| !may_lose_bodies(&it.replica)) {
            return None;
        }
        let owner = match room {
            Some(_) => self.directory.room(id).map(|it| it.created.owner),
            None => self.config.archive.iter().find(|it| it.room == id)?.owner,
        };
        let retention = &self.config.retention;
        let keep = match owner.and_then(|key| self.tier_of(key)) {
            None => retention.own,
            Some(Tier::Low) => retention.low,
            Some(Tier::High) => retention.high,
        };
        keep.map(|it| it.max(self.config.retention_min))
    }

    /// Of a minted key, though it may have been revoked; not of the node's own.
    fn tier_of(&self, key: KeyPrint) -> Option<Tier> {
        self.directory.keys.tier_once(key).filter(|_| !self.own_keys.contains(&key))
    }

    /// A peer has dropped bodies that are to be accepted here: which of them would this node drop, too?
    pub(super) fn note_retention(&mut self, id: RoomId) {
        let keep_ms = self.retention_of(id).map(in_ms);
        if let Some(room) = self.rooms.get_mut(&id) {
            room.replica.keep_ms = keep_ms;
        }
    }
}

pub(super) fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
