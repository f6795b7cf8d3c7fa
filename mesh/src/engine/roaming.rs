//! Clients that come from another node with a cursor that this one cannot serve from (`docs/numbering.md`, "Roaming").

use std::{collections::BTreeSet, time::Duration};

use super::known::Known;
use crate::{
    api::command::{CallId, Outcome, Refused, Roamed},
    limits::{ROAM_ASK_EVERY, ROAM_ASK_FOR, ROAM_ERAS_AHEAD_MAX, ROAM_START_FOR, ROAMING_MAX},
    name::{
        id::{LocalRef, RoomId},
        number::Number,
    },
    room::Room,
    turn::context::Context,
};

/// A client that comes from another node, and its cursor in a room.
#[derive(Clone, Debug)]
pub(super) struct Roamer {
    pub(super) room: RoomId,
    pub(super) cursor: Number,
    /// Entries that it is not proven to have seen, and the numbers under which they were delivered here.
    pub(super) entries: Vec<(LocalRef, Option<Number>)>,
}

/// A roaming client whose cursor could not be served at once.
#[derive(Clone, Debug)]
struct Roaming {
    call: CallId,
    roamer: Roamer,
    since: Duration,
    /// Its era was not known, and peers were asked.
    asked: bool,
}

/// Clients that wait, and rooms in which what is said next needs a number above a client's cursor.
#[derive(Clone, Debug, Default)]
pub(super) struct Roams {
    /// At most [`ROAMING_MAX`].
    waiting: Vec<Roaming>,
    raised: BTreeSet<RoomId>,
}

impl Roams {
    pub(super) fn roam(&mut self, known: &mut Known, call: CallId, roamer: Roamer) {
        let era = roamer.cursor.era();
        let Some(room) = known.rooms.get(&roamer.room) else {
            return known.cx.reply(call, Err(Refused::NoRoom));
        };
        let far = era.c() > room.order.numbering.current().c() + ROAM_ERAS_AHEAD_MAX;
        if !era.is_valid() || far {
            return known.cx.reply(call, Ok(Outcome::Roamed(Roamed::Never)));
        }
        if self.waiting.len() >= ROAMING_MAX {
            return known.cx.reply(call, Ok(Outcome::Roamed(Roamed::Behind)));
        }
        let since = known.cx.now.mono;
        self.waiting.push(Roaming { call, roamer, since, asked: false });
        self.go_on_roaming(known);
    }

    /// Clients that came with a cursor from elsewhere are answered as soon as they can be.
    pub(super) fn go_on_roaming(&mut self, known: &mut Known) {
        for mut roaming in std::mem::take(&mut self.waiting) {
            match self.roamed(known, &mut roaming) {
                Ok(Some(roamed)) => known.cx.reply(roaming.call, Ok(Outcome::Roamed(roamed))),
                Ok(None) => self.waiting.push(roaming),
                Err(refused) => known.cx.reply(roaming.call, Err(refused)),
            }
        }
        for id in std::mem::take(&mut self.raised) {
            if raise_what_is_below(known, id) {
                self.raised.insert(id);
            }
        }
    }

    /// The answer to a client. `None`: it waits.
    fn roamed(
        &mut self,
        known: &mut Known,
        roaming: &mut Roaming,
    ) -> Result<Option<Roamed>, Refused> {
        let (now, era) = (known.cx.now.mono, roaming.roamer.cursor.era());
        let meeting = is_meeting_others(known);
        let waited = now >= roaming.since + ROAM_ASK_FOR;
        let room = known.rooms.get_mut(&roaming.roamer.room).ok_or(Refused::NoRoom)?;
        if !room.is_writable(&known.cx) {
            return Ok(Some(Roamed::Never));
        }
        if room.order.numbering.eras.contains_key(&era) {
            if roaming.asked {
                return Ok(Some(Roamed::Heard));
            }
        } else if !waited && (meeting || !known.cx.up.is_empty()) {
            // A peer that has heard of the claim of that era gives it.
            roaming.asked = true;
            room.replica.ask_all_every(&mut known.cx, ROAM_ASK_EVERY);
            return Ok(None);
        } else if meeting {
            return Ok(Some(Roamed::Behind));
        }
        // Its lane may be of a member whose admission has not come here: it was cut off as soon as it was admitted, say.
        // All of it, before it is given any number of an era that says that all of it was given.
        let entries: Vec<LocalRef> = roaming.roamer.entries.iter().map(|(at, _)| *at).collect();
        if entries.is_empty() {
            if era > room.order.numbering.current() {
                room.order.roamers.raise(roaming.roamer.cursor);
                self.raised.insert(roaming.roamer.room);
            }
            return Ok(Some(Roamed::Ready));
        }
        if raise(room, &mut known.cx, roaming.roamer.cursor, entries) {
            return Ok(Some(Roamed::Ready));
        }
        Ok(waited.then_some(Roamed::Behind))
    }
}

/// This node has started a moment ago, and has not met all members again.
fn is_meeting_others(known: &Known) -> bool {
    let others = known.cx.lanes.keys().filter(|node| **node != known.cx.me);
    let mut apart = others.filter(|node| {
        !known.cx.parted.has(**node)
            && !known.cx.up.contains(*node)
            && !known.cx.relays.contains(*node)
    });
    known.cx.now.mono < known.started + ROAM_START_FOR && apart.next().is_some()
}

/// Messages below the cursor of a client from an era that is not known here get numbers above it.
/// `false`: nobody waits for that any more.
fn raise_what_is_below(known: &mut Known, id: RoomId) -> bool {
    let Some(room) = known.rooms.get_mut(&id) else { return false };
    let current = room.order.numbering.current();
    let floor = room.order.roamers.floor(current).filter(|_| room.is_writable(&known.cx));
    let below = room.order.roamers.below().to_vec();
    match floor {
        Some(floor) if !below.is_empty() => {
            if raise(room, &mut known.cx, floor, below) {
                room.order.roamers.settle();
            }
        }
        Some(_) => {}
        None => room.order.roamers.settle(),
    }
    room.order.roamers.is_waiting()
}

/// Gives entries numbers above a cursor. `false`: not now.
fn raise(room: &mut Room, cx: &mut Context, cursor: Number, entries: Vec<LocalRef>) -> bool {
    let before = room.order.numbering.current();
    // Numbers of an era that is already this node's to give cost no claim.
    let claims = room.order.numbering.sequencer() != room.replica.mine || before <= cursor.era();
    let eras = cursor.era().c().saturating_sub(before.c()) + 1;
    let may = !claims || room.order.roamers.may_claim(cx.now.mono, eras);
    if !may || !room.number_above(cx, cursor, &entries) {
        return false;
    }
    let opened = room.order.numbering.current().c().saturating_sub(before.c());
    room.order.roamers.claimed(cx.now.mono, opened);
    true
}
