//! For how long bodies are kept here, and dropping them in time (`docs/decisions/retention.md`).

use std::{ops::Bound, time::Duration};

use super::known::Known;
use crate::{
    api::{agenda::Retention, batch::Change, boundary::Alarm},
    directory::direct::Stage,
    limits::{CLOCK_JUMP_MAX, PRUNE_EVERY, PRUNE_FIRST_AFTER},
    name::{
        id::{KeyPrint, RoomId},
        time::{Now, in_ms},
    },
    replica::pruning::may_lose_bodies,
    wire::acts::Tier,
};

/// Rooms that are passed over at once, looking for one that has something to drop.
const PRUNE_ROOMS_LOOKED_AT: usize = 64;

/// The place of pruning in its round, and whether the clock can be trusted with it.
#[derive(Clone, Debug)]
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

impl Pruning {
    /// Whether the clock goes on as it began.
    pub(super) fn trusts(&self, now: Now) -> bool {
        self.jumped(now).1 <= CLOCK_JUMP_MAX
    }

    /// The oldest bodies of one room, if it is time.
    pub(super) fn go_on_pruning(&mut self, known: &mut Known) {
        let now = known.cx.now;
        if now.mono < self.next {
            return;
        }
        self.next = now.mono + PRUNE_EVERY;
        let (ahead, by) = self.jumped(now);
        if by > CLOCK_JUMP_MAX {
            if !std::mem::replace(&mut self.warned, true) {
                known.cx.alarm(Alarm::ClockJumped { ahead, by });
            }
            return;
        }
        if let Some((room, keep)) = self.next_to_prune(known) {
            let before_ms = now.wall_ms.saturating_sub(in_ms(keep));
            known.cx.change(Change::Prune { room, before_ms });
        }
    }

    /// The next room in the order of ids: one in which something was delivered, and in which bodies are
    /// not kept for ever. After the last of them the next that is left of an earlier mesh.
    fn next_to_prune(&mut self, known: &mut Known) -> Option<(RoomId, Duration)> {
        let Retention { own, low, high } = known.config.retention;
        if [own, low, high] == [None; 3] && !known.directory.direct.drops_any() {
            return None;
        }
        let from = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut next = known.rooms.range((from, Bound::Unbounded));
        for _ in 0..PRUNE_ROOMS_LOOKED_AT {
            let Some((id, room)) = next.next() else {
                self.last = None;
                return self.next_archived(known);
            };
            self.last = Some(*id);
            if room.replica.record.delivered > 0
                && let Some(keep) = retention_of(known, *id)
            {
                return Some((*id, keep));
            }
        }
        None
    }

    fn next_archived(&mut self, known: &mut Known) -> Option<(RoomId, Duration)> {
        let rooms = &known.config.archive;
        let room = rooms.get(self.archived % rooms.len().max(1))?.room;
        self.archived += 1;
        Some((room, retention_of(known, room)?))
    }
}

/// Of a minted key, though it may have been revoked; not of the node's own.
fn tier_of(known: &Known, key: KeyPrint) -> Option<Tier> {
    known.directory.keys().tier_once(key).filter(|_| !known.own_keys.contains(&key))
}

/// For how long bodies of a room are kept; `None`: for ever.
fn retention_of(known: &Known, id: RoomId) -> Option<Duration> {
    let room = known.rooms.get(&id);
    if room.is_some_and(|room| !may_lose_bodies(&room.replica)) {
        return None;
    }
    let owner = match room {
        Some(_) if known.directory.direct.get(id).is_some() => {
            let direct = known.directory.direct.get(id);
            if direct.is_some_and(|direct| direct.stage() == Stage::Dropped) {
                return Some(Duration::ZERO);
            }
            return retention_of_group(known, id);
        }
        Some(_) if known.directory.shared.room(id).is_some() => {
            return retention_of_group(known, id);
        }
        Some(_) => known.directory.room(id).map(|created| created.created.owner),
        None => known.config.archive.iter().find(|view| view.room == id)?.owner,
    };
    retention_of_key(known, owner)
}

/// Of a direct or a shared room: as long as any of its keys has it kept.
fn retention_of_group(known: &Known, id: RoomId) -> Option<Duration> {
    let keys = known.keys_of(known.sealed_for(id)?).into_iter();
    let times: Option<Vec<Duration>> = keys.map(|key| retention_of_key(known, Some(key))).collect();
    times?.into_iter().max()
}

fn retention_of_key(known: &Known, owner: Option<KeyPrint>) -> Option<Duration> {
    let owner = owner.map(|key| known.directory.current(key));
    let retention = &known.config.retention;
    let keep = match owner.and_then(|key| tier_of(known, key)) {
        None => retention.own,
        Some(Tier::Low) => retention.low,
        Some(Tier::High) => retention.high,
    };
    keep.map(|time| time.max(known.config.retention_min))
}

/// A peer has dropped bodies that are to be accepted here: which of them would this node drop, too?
pub(super) fn note_retention(known: &mut Known, id: RoomId) {
    let keep_ms = retention_of(known, id).map(in_ms);
    if let Some(room) = known.rooms.get_mut(&id) {
        room.replica.keep_ms = keep_ms;
    }
}
