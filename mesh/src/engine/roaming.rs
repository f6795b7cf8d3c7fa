//! Clients that come from another node with a cursor that this one cannot serve from (`docs/numbering.md`, "Roaming").

use std::{collections::BTreeSet, time::Duration};

use super::Engine;
use crate::{
    api::command::{CallId, Outcome, Refused, Roamed},
    engine::context::Context,
    limits::{ROAM_ASK_EVERY, ROAM_ASK_FOR, ROAM_ERAS_AHEAD_MAX, ROAM_START_FOR, ROAMING_MAX},
    name::{
        id::{LocalRef, RoomId},
        number::{Era, Number},
    },
    room::Room,
};

/// A roaming client whose cursor could not be served at once.
#[derive(Debug)]
struct Roaming {
    call: CallId,
    room: RoomId,
    cursor: Number,
    /// What it is not proven to have seen, and under which number that was delivered here.
    entries: Vec<(LocalRef, Option<Number>)>,
    since: Duration,
    /// Its era was not known, and peers were asked.
    asked: bool,
}

/// Clients that wait, and rooms in which what is said next needs a number above a client's cursor.
#[derive(Debug, Default)]
pub(super) struct Roams {
    /// LocalRef most [`ROAMING_MAX`].
    waiting: Vec<Roaming>,
    raised: BTreeSet<RoomId>,
}

impl Engine {
    pub(super) fn roam(
        &mut self,
        call: CallId,
        room: RoomId,
        cursor: Number,
        entries: Vec<(LocalRef, Option<Number>)>,
    ) {
        let era = cursor.era();
        let Some(it) = self.rooms.get(&room) else {
            return self.reply(call, Err(Refused::NoRoom));
        };
        let far = era.c() > it.order.numbering.current().c() + ROAM_ERAS_AHEAD_MAX;
        if !era.is_valid() || far {
            return self.reply(call, Ok(Outcome::Roamed(Roamed::Never)));
        }
        if self.roams.waiting.len() >= ROAMING_MAX {
            return self.reply(call, Ok(Outcome::Roamed(Roamed::Behind)));
        }
        let since = self.cx.now.mono;
        let it = Roaming { call, room, cursor, entries, since, asked: false };
        self.roams.waiting.push(it);
        self.go_on_roaming();
    }

    /// Whether the era is in some member's lane.
    fn has_member_for(&self, era: Era) -> bool {
        era.lane().is_some_and(|lane| self.cx.lanes.values().any(|lanes| lanes.contains(&lane)))
    }

    /// This node has started a moment ago, and has not met all members again.
    fn is_meeting_others(&self) -> bool {
        let others = self.cx.lanes.keys().filter(|it| **it != self.cx.me);
        let mut apart = others.filter(|it| !self.cx.parted.has(**it) && !self.cx.up.contains(*it));
        self.cx.now.mono < self.started + ROAM_START_FOR && apart.next().is_some()
    }

    /// Clients that came with a cursor from elsewhere are answered as soon as they can be.
    pub(super) fn go_on_roaming(&mut self) {
        for mut it in std::mem::take(&mut self.roams.waiting) {
            match self.roamed(&mut it) {
                Ok(Some(roamed)) => self.reply(it.call, Ok(Outcome::Roamed(roamed))),
                Ok(None) => self.roams.waiting.push(it),
                Err(refused) => self.reply(it.call, Err(refused)),
            }
        }
        for id in std::mem::take(&mut self.roams.raised) {
            if self.raise_what_is_below(id) {
                self.roams.raised.insert(id);
            }
        }
    }

    /// What is to be done for a client. `None`: it waits.
    fn roamed(&mut self, it: &mut Roaming) -> Result<Option<Roamed>, Refused> {
        let (now, era) = (self.cx.now.mono, it.cursor.era());
        let meeting = self.is_meeting_others();
        // The lane of a node that has just been admitted may not be known yet.
        let member = era == Era::HOME || self.has_member_for(era);
        let waited = now >= it.since + ROAM_ASK_FOR;
        let room = self.rooms.get_mut(&it.room).ok_or(Refused::NoRoom)?;
        if !room.is_writable(&self.cx) {
            return Ok(Some(Roamed::Never));
        }
        if room.order.numbering.eras.contains_key(&era) {
            if it.asked {
                return Ok(Some(Roamed::Heard));
            }
        } else if !waited && (meeting || !self.cx.up.is_empty()) {
            // A peer that has heard of the claim of that era gives it.
            it.asked = true;
            room.replica.ask_all_every(&mut self.cx, ROAM_ASK_EVERY);
            return Ok(None);
        } else if meeting {
            return Ok(Some(Roamed::Behind));
        } else if !member {
            return Ok(Some(Roamed::Never));
        }
        // All of it, before it is given any number of an era that says that all of it was given.
        let entries: Vec<LocalRef> = it.entries.iter().map(|(at, _)| *at).collect();
        if entries.is_empty() {
            if era > room.order.numbering.current() {
                room.order.roamers.raise(it.cursor);
                self.roams.raised.insert(it.room);
            }
            return Ok(Some(Roamed::Ready));
        }
        if raise(room, &mut self.cx, it.cursor, entries) {
            return Ok(Some(Roamed::Ready));
        }
        Ok(waited.then_some(Roamed::Behind))
    }

    /// What was said below the cursor of a client from an era that is not known here gets a number above it. `false`:
    /// nobody waits for that any more.
    fn raise_what_is_below(&mut self, id: RoomId) -> bool {
        let Some(room) = self.rooms.get_mut(&id) else { return false };
        let current = room.order.numbering.current();
        let floor = room.order.roamers.floor(current).filter(|_| room.is_writable(&self.cx));
        let below = room.order.roamers.below().to_vec();
        match floor {
            Some(floor) if !below.is_empty() => {
                if raise(room, &mut self.cx, floor, below) {
                    room.order.roamers.settle();
                }
            }
            Some(_) => {}
            None => room.order.roamers.settle(),
        }
        room.order.roamers.is_waiting()
    }
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
