//! Delivery: every entry once, in the order of numbers (rule 2).

use std::sync::Arc;

use super::{
    Order,
    numbering::{NextItem, Undelivered},
};
use crate::{
    api::{
        batch::{Change, Fate, NumberRange, Spoke},
        boundary::Alarm,
        event::Delivered,
    },
    limits::{ASK_AFTER, HOLE_AFTER, HOLE_AFTER_SILENCE, WARM_BODY_BYTES_MAX},
    name::{
        id::{LocalRef, LogId, MessageId},
        number::{Era, Number},
    },
    replica::Replica,
    turn::{context::Context, happened::Happened},
    wire::{
        entry::{Body, Facts, Said},
        kinds::CHAT,
        message::Head,
    },
};

/// An entry that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read<'b> {
    pub(crate) at: LocalRef,
    pub(crate) facts: Facts,
    pub(crate) body: &'b Body,
    /// The length of the body.
    pub(crate) len: usize,
}

/// The fate of the next item of an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is dealt with.
    Done,
    /// There is none, or its content is not here yet.
    Missing,
    /// The era is not to be entered yet.
    Waits,
}

impl Order {
    /// A visible entry is here and waits for its delivery.
    pub(crate) fn hold(&mut self, cx: &mut Context, replica: &Replica, entry: Read<'_>) {
        let (at, room) = (entry.at, replica.id);
        let (numbers, all) = self.numbering.came(at);
        if numbers.is_some() {
            cx.change(Change::NumberRange { room, at, numbers: None });
        }
        if replica.is_directory {
            for number in all {
                cx.happens(Happened::Numbered { room, at, number });
            }
        }
        let turn = if let Body::Chat(said) = entry.body { said.turn } else { None };
        let words = entry.body.words();
        let mentioned = words.map_or_else(Vec::new, |said| {
            let mentions = said.mentions.iter().filter(|agent| cx.addressees.contains(*agent));
            mentions.cloned().collect()
        });
        let warm = cx.memory.warm + entry.len <= WARM_BODY_BYTES_MAX;
        let said: Option<Arc<Said>> = words.filter(|_| warm).map(|said| Arc::new(said.clone()));
        let body_bytes = if said.is_some() { entry.len } else { 0 };
        cx.memory.warm += body_bytes;
        let waits = Undelivered {
            facts: entry.facts,
            numbers,
            turn,
            id: words.and_then(|said| said.id),
            mentioned,
            said,
            body_bytes,
            since: cx.now.mono,
            ask_at: cx.now.mono + ASK_AFTER,
            ask_step: ASK_AFTER,
        };
        self.numbering.undelivered.insert(at, waits);
    }

    /// An entry was accepted without its body. Nobody is asked for a number for it: a node that dropped the
    /// body had delivered it.
    pub(crate) fn hold_gone(
        &mut self,
        cx: &mut Context,
        replica: &Replica,
        at: LocalRef,
        facts: Facts,
    ) {
        if self.numbering.came(at).0.is_some() {
            cx.change(Change::NumberRange { room: replica.id, at, numbers: None });
        }
        self.numbering.gone.insert(at, facts);
    }

    /// Delivers every entry whose turn has come. While an era is not to be entered yet, those above it are not, either.
    pub(crate) fn deliver(&mut self, cx: &mut Context, replica: &mut Replica) {
        let mut again = true;
        while again {
            again = false;
            let busy: Vec<Era> = self.numbering.busy.iter().copied().collect();
            for era in busy {
                loop {
                    match self.deliver_next(cx, replica, era) {
                        Next::Done => again = true,
                        Next::Missing => break,
                        Next::Waits => return,
                    }
                }
            }
        }
    }

    /// Deals with the next item of an era.
    fn deliver_next(&mut self, cx: &mut Context, replica: &mut Replica, era: Era) -> Next {
        match self.numbering.next_item(era) {
            NextItem::Item(number, at) => self.deliver_item(cx, replica, number, at),
            NextItem::Gap(upto) => {
                let record = replica.edit_record();
                record.tip = record.tip.max(upto);
                self.numbering.step(era);
                Next::Done
            }
            NextItem::Nothing => Next::Missing,
        }
    }

    /// Deals with one item.
    fn deliver_item(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        number: Number,
        at: LocalRef,
    ) -> Next {
        let era = number.era();
        if number > replica.record.tip {
            if replica.is_missing(cx, at) {
                if let Some(state) = self.numbering.eras.get_mut(&era) {
                    state.missing_since.get_or_insert(cx.now.mono);
                }
                return Next::Missing;
            }
            if self.entering.waits(cx, replica, &self.numbering, era) {
                return Next::Waits;
            }
            if !self.deliver_held(cx, replica, number, at)
                && !self.deliver_gone(cx, replica, number, at)
                && at.seq <= replica.logs.get(at.log).head
            {
                cx.happens(Happened::PassedOver { room: replica.id, number, at });
            }
            replica.edit_record().tip = number;
        }
        self.numbering.step(era);
        Next::Done
    }

    /// `false`: the entry does not wait for its delivery.
    fn deliver_held(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        number: Number,
        at: LocalRef,
    ) -> bool {
        let Some(entry) = self.numbering.undelivered.remove(&at) else { return false };
        cx.memory.warm -= entry.body_bytes;
        cx.change(Change::Number { room: replica.id, number, at, fate: Fate::Delivered });
        self.roamers.delivers(number, at);
        let numbers = entry.numbers.unwrap_or(NumberRange { best: number, canonical: number });
        let (facts, log) = (entry.facts, replica.logs.id(at.log));
        note_delivered(replica, log, facts, entry.turn);
        let delivered = Delivered {
            number,
            canonical: (numbers.canonical != number).then_some(numbers.canonical),
            at,
            log,
            message: entry.id.unwrap_or_else(|| MessageId::new(replica.id, log, at.seq)),
            facts,
            said: entry.said,
        };
        self.sent.delivered(at, number);
        let (room, mentioned) = (replica.id, entry.mentioned);
        cx.happens(Happened::Delivered { room, entry: delivered, numbers, mentioned });
        true
    }

    /// The number of an entry without its body is delivered as nothing. `false`: it is none.
    fn deliver_gone(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        number: Number,
        at: LocalRef,
    ) -> bool {
        let Some(facts) = self.numbering.gone.remove(&at) else { return false };
        cx.change(Change::Number { room: replica.id, number, at, fate: Fate::Delivered });
        // Whose turn it was after it went with its body.
        note_delivered(replica, replica.logs.id(at.log), facts, None);
        true
    }

    // Entries that never come.

    /// Leaves the next number of `era` as a hole: nobody has its content.
    fn leave_hole(&mut self, cx: &mut Context, replica: &mut Replica, era: Era) {
        let NextItem::Item(number, at) = self.numbering.next_item(era) else { return };
        cx.change(Change::Number { room: replica.id, number, at, fate: Fate::Hole });
        cx.alarm(Alarm::Hole { room: replica.id, number });
        self.holes += 1;
        self.entering.give_up(at);
        replica.edit_record().tip = number;
        self.numbering.step(era);
        self.deliver(cx, replica);
    }

    /// Numbers whose content nobody has are left as holes, in the end (rule 2).
    pub(crate) fn leave_holes(&mut self, cx: &mut Context, replica: &mut Replica) {
        let now = cx.now.mono;
        let busy: Vec<Era> = self.numbering.busy.iter().copied().collect();
        for era in busy {
            let state = self.numbering.eras.get(&era);
            let Some(since) = state.and_then(|state| state.missing_since) else { continue };
            let NextItem::Item(_, at) = self.numbering.next_item(era) else { continue };
            if !replica.is_missing(cx, at) {
                continue;
            }
            replica.ask_all(cx);
            let peers = replica.peers(cx);
            let waited = now.saturating_sub(since);
            // Entries that are missing behind it were missing as long: one wait is enough for all of them.
            let mut next = Some(at);
            while let Some(at) = next.filter(|at| replica.is_missing(cx, *at)) {
                let entry = Head { log: replica.logs.id(at.log), seq: at.seq };
                let nobody = replica.sync.nobody_has(&peers, since, entry);
                if !(waited >= HOLE_AFTER && nobody || waited >= HOLE_AFTER_SILENCE) {
                    break;
                }
                self.leave_hole(cx, replica, era);
                next = match self.numbering.next_item(era) {
                    NextItem::Item(_, at) => Some(at),
                    NextItem::Gap(_) | NextItem::Nothing => None,
                };
            }
        }
    }

    /// Entries of this log from this one on do not count any more. Entries that were delivered stay
    /// delivered.
    pub(crate) fn forget_from(&mut self, cx: &mut Context, replica: &Replica, from: LocalRef) {
        let to = LocalRef { log: from.log, seq: u64::MAX };
        let void = self.numbering.undelivered.extract_if(from..=to, |_, _| true);
        cx.memory.warm -= void.map(|(_, entry)| entry.body_bytes).sum::<usize>();
        let lost = self.numbering.lose(from.log, from.seq);
        cx.lost.extend(lost.into_iter().map(|number| (replica.id, number)));
    }
}

/// An entry of this log was delivered; `turn` says whose turn it is after it.
fn note_delivered(replica: &mut Replica, log: LogId, facts: Facts, turn: Option<u64>) {
    let record = replica.edit_record();
    record.delivered += 1;
    record.last_activity_ms = Some(facts.wall_ms);
    if facts.kind == CHAT {
        let spoke = Spoke { clock: facts.clock, log, turn };
        record.spoke = record.spoke.max(Some(spoke));
    }
}
