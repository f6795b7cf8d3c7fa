//! Live messages whose authors' vouchers are not here yet: a message and its voucher travel in two rooms. Local clients are told of
//! such a message when the voucher has come, or a moment later without it; and of all that follows in the room after it, for
//! members are told of a room in its order. Numbers, stores and answers do not wait.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use super::known::Known;
use crate::{
    api::{boundary::Effect, event::RoomEvent},
    limits::{VOUCHER_WAITS_MAX, VOUCHER_WITHIN, VOUCHERS_IN_VAIN_FOR, VOUCHERS_IN_VAIN_MAX},
    name::id::{NodeId, RoomId},
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Unvouched {
    /// Events of each room in which the first one waits, and when they came.
    rooms: BTreeMap<RoomId, VecDeque<(Duration, RoomEvent)>>,
    /// Rooms in which nothing waits in this turn.
    hurried: BTreeSet<RoomId>,
    /// Nodes whose vouchers did not come, and until when nobody waits for another one.
    in_vain: BTreeMap<NodeId, Duration>,
}

impl Unvouched {
    /// Takes the events that have to wait out of the effects of a turn, and puts those that waited long enough behind the
    /// others.
    pub(super) fn pass(&mut self, known: &mut Known) {
        let is_late = |effect: &Effect| matches!(effect, Effect::Notify { event, .. } if self.lacks(known, event).is_some());
        if !self.rooms.is_empty() || known.cx.effects.iter().any(is_late) {
            self.hold(known);
            self.release(known);
        }
        self.hurried.clear();
    }

    /// Members are told at once of all that has happened in a room: one of them does something that only makes sense after it.
    pub(super) fn hurry(&mut self, room: RoomId) {
        self.hurried.insert(room);
    }

    /// When a wait ends, if there is one.
    pub(super) fn due(&self) -> Option<Duration> {
        let firsts = self.rooms.values().filter_map(VecDeque::front);
        firsts.map(|(came, _)| *came + VOUCHER_WITHIN).min()
    }

    /// Behind an event that waits all of its room wait.
    fn hold(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        for effect in std::mem::take(&mut known.cx.effects) {
            let Effect::Notify { room, event } = effect else {
                known.cx.effects.push(effect);
                continue;
            };
            if self.rooms.contains_key(&room) || self.lacks(known, &event).is_some() {
                self.rooms.entry(room).or_default().push_back((now, event));
            } else {
                known.cx.effects.push(Effect::Notify { room, event });
            }
        }
    }

    /// Each event waits from the time at which it came: those behind it must not wait for it and then for themselves.
    fn release(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        let too_many = self.rooms.values().map(VecDeque::len).sum::<usize>() > VOUCHER_WAITS_MAX;
        for (room, mut events) in std::mem::take(&mut self.rooms) {
            let at_once = too_many || self.hurried.contains(&room);
            while let Some((came, event)) = events.front() {
                if let Some(node) = self.lacks(known, event).filter(|_| !at_once) {
                    if now < *came + VOUCHER_WITHIN {
                        break;
                    }
                    self.note_in_vain(node, now);
                }
                let first = events.pop_front();
                known.cx.effects.extend(first.map(|(_, event)| Effect::Notify { room, event }));
            }
            if !events.is_empty() {
                self.rooms.insert(room, events);
            }
        }
    }

    /// The node whose voucher a message lacks, if it may still come.
    fn lacks(&self, known: &Known, event: &RoomEvent) -> Option<NodeId> {
        let RoomEvent::Message(message) = event else { return None };
        let (node, key) = (message.log.author, message.said.as_ref()?.key?);
        let in_vain = self.in_vain.get(&node).is_some_and(|until| known.cx.now.mono < *until);
        let lacks = !in_vain && node != known.cx.me && !known.directory.is_vouched(node, key);
        lacks.then_some(node)
    }

    /// A node that speaks with keys that it was not shown does not hold up others more than once in a while.
    fn note_in_vain(&mut self, node: NodeId, now: Duration) {
        self.in_vain.retain(|_, until| now < *until);
        if self.in_vain.len() < VOUCHERS_IN_VAIN_MAX {
            self.in_vain.insert(node, now + VOUCHERS_IN_VAIN_FOR);
        }
    }
}
