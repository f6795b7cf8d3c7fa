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
    name::id::{KeyPrint, NodeId, RoomId},
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unvouched {
    rooms: BTreeMap<RoomId, Waiting>,
    /// Events in all of them.
    events: usize,
    /// Rooms in which nothing waits in this turn.
    hurried: BTreeSet<RoomId>,
    /// Nodes whose vouchers did not come, and until when nobody waits for another one.
    in_vain: BTreeMap<NodeId, Duration>,
}

/// Events of a room, the first of which waits for a voucher.
#[derive(Debug)]
struct Waiting {
    node: NodeId,
    key: KeyPrint,
    until: Duration,
    events: VecDeque<RoomEvent>,
}

impl Unvouched {
    /// Takes the events that have to wait out of the effects of a turn, and puts those in that need not any more.
    pub(super) fn pass(&mut self, known: &mut Known) {
        let effects = std::mem::take(&mut known.cx.effects);
        let mut out = self.release(known);
        for room in self.hurried.clone() {
            self.let_go(known, room, &mut out);
        }
        for effect in effects {
            let Effect::Notify { room, event } = effect else {
                out.push(effect);
                continue;
            };
            if let Some(event) = self.hold(known, room, event) {
                out.push(Effect::Notify { room, event });
            }
        }
        if self.events > VOUCHER_WAITS_MAX {
            out.extend(self.release_all());
        }
        self.hurried.clear();
        known.cx.effects = out;
    }

    /// Members are told at once of all that has happened in a room: one of them does something that only makes sense after it.
    pub(super) fn hurry(&mut self, room: RoomId) {
        self.hurried.insert(room);
    }

    /// When a wait ends, if there is one.
    pub(super) fn due(&self) -> Option<Duration> {
        self.rooms.values().map(|waiting| waiting.until).min()
    }

    /// Keeps an event back, or gives it back.
    fn hold(&mut self, known: &Known, room: RoomId, event: RoomEvent) -> Option<RoomEvent> {
        if let Some(waiting) = self.rooms.get_mut(&room) {
            waiting.events.push_back(event);
            self.events += 1;
            return None;
        }
        let waits_for = self.waits_for(known, &event).filter(|_| !self.hurried.contains(&room));
        let Some((node, key)) = waits_for else { return Some(event) };
        let until = known.cx.now.mono + VOUCHER_WITHIN;
        self.rooms.insert(room, Waiting { node, key, until, events: [event].into() });
        self.events += 1;
        None
    }

    /// The voucher that a message waits for.
    fn waits_for(&self, known: &Known, event: &RoomEvent) -> Option<(NodeId, KeyPrint)> {
        let RoomEvent::Message(message) = event else { return None };
        let (node, key) = (message.log.author, message.said.as_ref()?.key?);
        let now = known.cx.now.mono;
        let in_vain = self.in_vain.get(&node).is_some_and(|until| now < *until);
        (!in_vain && node != known.cx.me && !known.directory.is_vouched(node, key))
            .then_some((node, key))
    }

    /// What need not wait any more.
    fn release(&mut self, known: &Known) -> Vec<Effect> {
        let now = known.cx.now.mono;
        let mut out = Vec::new();
        let rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        for room in rooms {
            while let Some(waiting) = self.rooms.get(&room) {
                let came = known.directory.is_vouched(waiting.node, waiting.key);
                if !came && now < waiting.until {
                    break;
                }
                if !came {
                    self.note_in_vain(waiting.node, now);
                }
                self.let_go(known, room, &mut out);
            }
        }
        out
    }

    /// The first event of a room goes, and those after it up to the next one that waits.
    fn let_go(&mut self, known: &Known, room: RoomId, out: &mut Vec<Effect>) {
        let Some(waiting) = self.rooms.remove(&room) else { return };
        self.events -= waiting.events.len();
        let mut events = waiting.events.into_iter();
        out.extend(events.next().map(|event| Effect::Notify { room, event }));
        for event in events {
            if let Some(event) = self.hold(known, room, event) {
                out.push(Effect::Notify { room, event });
            }
        }
    }

    /// A node that speaks with keys that it was not shown does not hold up others more than once in a while.
    fn note_in_vain(&mut self, node: NodeId, now: Duration) {
        self.in_vain.retain(|_, until| now < *until);
        if self.in_vain.len() < VOUCHERS_IN_VAIN_MAX {
            self.in_vain.insert(node, now + VOUCHERS_IN_VAIN_FOR);
        }
    }

    /// There are too many events to keep any back.
    fn release_all(&mut self) -> Vec<Effect> {
        self.events = 0;
        let rooms = std::mem::take(&mut self.rooms).into_iter();
        rooms
            .flat_map(|(room, waiting)| {
                waiting.events.into_iter().map(move |event| Effect::Notify { room, event })
            })
            .collect()
    }
}
