//! The one order of a room: eras, numbers, sequencers, delivery; and liveness of the nodes that give numbers.
//!
//! An `Order` reads the room's `Replica` and writes its own entries there: numbers, claims of eras,
//! handovers. The rules are those of `docs/numbering.md`.

pub(crate) mod delivery;
mod entering;
pub(crate) mod issuing;
pub(crate) mod liveness;
pub(crate) mod numbering;
pub mod pulse;
pub(crate) mod repeats;
pub(crate) mod roamers;
pub mod served;
pub(crate) mod takeover;

use std::time::Duration;

use crate::{
    api::{
        batch::{Change, Fate},
        boundary::Alarm,
    },
    limits::{CLAIM_SEEN_MAX, CUT_ERAS_MAX, ORDERED_ITEMS_MAX},
    name::{
        id::{EntryRef, LocalRef, LogId},
        number::{C_MAX, Era, Number},
    },
    replica::{Replica, pending::Waiting},
    turn::{context::Context, happened::Happened},
    wire::entry::{Body, EraClaimed, HandedOver, Ordered, Reached},
};
use entering::Entering;
use numbering::Numbering;
use repeats::Sent;
use roamers::Roamers;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) numbering: Numbering,
    /// Sends that may be repeated.
    pub(crate) sent: Sent,
    pub(crate) roamers: Roamers,
    entering: Entering,
    /// How many numbers were left as holes.
    pub(crate) holes: u64,
    claimed_at: Option<Duration>,
    /// When peers were asked last what they have of the room, before its sequencer was to be replaced.
    compared: Option<Duration>,
    /// How many numbers may still be given to askers, and since when that is counted.
    asked: Option<(Duration, usize)>,
}

impl Order {
    pub(crate) fn new(numbering: Numbering) -> Order {
        Order {
            numbering,
            sent: Sent::default(),
            roamers: Roamers::default(),
            entering: Entering::default(),
            holes: 0,
            claimed_at: None,
            compared: None,
            asked: None,
        }
    }

    /// Whether no era can follow the current one: that is not written in any more.
    pub(crate) fn is_used_up(&self) -> bool {
        self.numbering.current().c() >= C_MAX
    }

    /// Whether this node may write in the room: not where another history of its own was found, and nowhere
    /// when it was removed from the mesh.
    pub(crate) fn is_writable(&self, cx: &Context, replica: &Replica) -> bool {
        !replica.is_out(cx, cx.me) && !self.is_used_up()
    }

    /// Whether the era of this number gave lower ones to entries that are not here, and may come yet.
    pub(crate) fn is_behind_holes(&self, cx: &Context, replica: &Replica, number: Number) -> bool {
        self.numbering.foretold_below(number).any(|at| replica.is_missing(cx, at))
    }

    /// An era of an author of whom nothing more will come, or an unknown era that can only be such an
    /// author's. Others may have built on it before they knew; their entries are accepted all the same, or
    /// their logs would be cut for ever.
    fn is_void(&self, cx: &Context, replica: &Replica, era: Era) -> bool {
        match self.numbering.eras.get(&era) {
            Some(known) => replica.is_over(cx, known.record.sequencer),
            None => era.lane().is_some_and(|lane| {
                let mut lanes = cx.lanes.iter().filter(|(_, lanes)| lanes.contains(&lane));
                lanes.any(|(node, _)| replica.is_over(cx, LogId { author: *node, incarnation: 0 }))
            }),
        }
    }

    /// Whether a run that has waited for all its time would open an era in a lane, or give numbers in an era, that is
    /// another node's as far as is known here. Until then its author may have got it, and this node not heard of that.
    pub(crate) fn gives_for_another(
        &self,
        cx: &Context,
        replica: &Replica,
        waiting: &Waiting,
    ) -> bool {
        let log = waiting.run.run().log;
        let has = |node, lane: u32| cx.lanes.get(&node).is_some_and(|lanes| lanes.contains(&lane));
        replica.bodies_of(waiting, 0).any(|(_, body)| {
            if let Body::EraClaimed(claim) = body {
                claim.era.lane().is_some_and(|lane| {
                    !has(log.author, lane) && cx.lanes.keys().any(|node| has(*node, lane))
                })
            } else if let Body::Ordered(ordered) = body {
                let era = self.numbering.eras.get(&ordered.era);
                era.is_some_and(|era| era.record.sequencer != log)
            } else {
                false
            }
        })
    }

    /// Eras of a log of which nothing more will come get no more items.
    pub(crate) fn end_eras_if_over(&mut self, cx: &Context, replica: &Replica, log: LogId) {
        if replica.is_over(cx, log) {
            self.numbering.end_eras_of(log.author);
        }
    }

    /// Rows for the eras that changed in this turn.
    pub(crate) fn flush(&mut self, cx: &mut Context, replica: &Replica) {
        for (era, record) in self.numbering.take_dirty() {
            cx.change(Change::Era { room: replica.id, era, record });
        }
    }

    // Entries that give numbers.

    /// Takes in an entry that gives numbers, or eras.
    pub(crate) fn fold(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        at: LocalRef,
        body: &Body,
    ) {
        if let Body::Ordered(ordered) = body {
            self.fold_ordered(cx, replica, at, ordered);
        } else if let Body::EraClaimed(claim) = body {
            self.fold_claim(cx, replica, at, claim);
        } else if let Body::HandedOver(handover) = body {
            self.fold_handover(cx, replica, at, handover);
        }
    }

    fn fold_ordered(
        &mut self,
        cx: &mut Context,
        replica: &mut Replica,
        at: LocalRef,
        ordered: &Ordered,
    ) {
        let (author, era) = (replica.logs.id(at.log), ordered.era);
        let count = ordered.count();
        // Numbers of the imported server that have no message, however many.
        let gaps = era == Era::HOME && replica.takes_imports_of(author);
        let given = if gaps { named(ordered) } else { count };
        let valid = self.numbering.eras.get(&era).is_some_and(|known| {
            known.record.is_issued_by(author, ordered.by) && ordered.first == known.record.known + 1
        }) && given <= ORDERED_ITEMS_MAX as u64
            && ordered.fits();
        if !valid {
            // A node that goes on with an era of a removed node may not know of the removal.
            if !self.is_void(cx, replica, era) {
                cx.blame(author.author, |faults| &mut faults.void);
            }
            return;
        }
        if replica.is_directory && count > 0 {
            self.numbering.note_given(era, at, ordered.first);
        }
        for items in &ordered.items {
            let id = ordered.logs.get(items.log as usize);
            let Some(log) = id.and_then(|id| replica.logs.ensure(*id)) else {
                // A place that cannot be still takes its number, so that those after it keep theirs.
                self.numbering.skip(era, items.count.into());
                if id.is_some_and(|id| replica.logs.can_have(*id)) {
                    // There is no room for another log here; there may have been with the author.
                    cx.faults.overflow += 1;
                } else if !gaps {
                    cx.blame(author.author, |faults| &mut faults.void);
                }
                continue;
            };
            for seq in (items.from..).take(items.count as usize) {
                self.assign(cx, replica, era, LocalRef { log, seq });
            }
        }
    }

    fn assign(&mut self, cx: &mut Context, replica: &Replica, era: Era, at: LocalRef) {
        let Some(number) = self.numbering.assign(era, at) else { return };
        let (room, fate) = (replica.id, Fate::Assigned);
        cx.change(Change::Number { room, number, at, fate });
        let record = replica.logs.get(at.log);
        let void = record.fork.is_some_and(|fork| at.seq >= fork);
        if at.seq > record.head && !void {
            let numbers = self.numbering.foretell(at, number);
            cx.change(Change::NumberRange { room, at, numbers: Some(numbers) });
        }
        if replica.is_directory {
            cx.happens(Happened::Numbered { room, at, number });
        }
    }

    fn fold_claim(
        &mut self,
        cx: &mut Context,
        replica: &Replica,
        at: LocalRef,
        claim: &EraClaimed,
    ) {
        let author = replica.logs.id(at.log);
        let lane = claim.era.lane().unwrap_or(u32::MAX);
        let in_lane = cx.lanes.get(&author.author).is_some_and(|lanes| lanes.contains(&lane));
        // Claims of an ephemeral room may be lost with the memory of their author.
        let ephemeral = replica.record.ephemeral;
        let (next, former) = (claim.era.c(), claim.after.c());
        let follows = next == former + 1 || (ephemeral && next > former);
        // Of an author's own claims its log says which there are, but for an ephemeral room: the logs before
        // it may be forgotten.
        let own_lane = claim.after.lane() == claim.era.lane() && !ephemeral;
        let sane = claim.era.is_valid()
            && claim.cut.len() <= CUT_ERAS_MAX
            && claim.seen.len() <= CLAIM_SEEN_MAX
            && claim.cut.iter().all(|cut| cut.era < claim.era)
            && (self.numbering.eras.contains_key(&claim.after) || !own_lane);
        if !(in_lane && follows && sane) {
            cx.blame(author.author, |faults| &mut faults.void);
        } else if !self.numbering.open(&self.as_far_as_given(cx, replica, claim), author) {
            cx.blame(author.author, |faults| &mut faults.void);
            cx.alarm(Alarm::LaneClash { node: author.author, lane });
        } else if self.numbering.current() == claim.era && self.is_used_up() {
            cx.alarm(Alarm::Exhausted { room: replica.id });
        }
        self.end_eras_if_over(cx, replica, author);
    }

    /// The claim, with a cut that is no higher than is known of eras that go on. Everything that an honest author cuts
    /// is known by now, unless somebody gave it who has forked: nobody is to wait for numbers that were never given.
    fn as_far_as_given(&self, cx: &Context, replica: &Replica, claim: &EraClaimed) -> EraClaimed {
        let cut = claim.cut.iter().map(|cut| {
            let known = self.numbering.known(cut.era);
            let n = if self.is_void(cx, replica, cut.era) { cut.n } else { cut.n.min(known) };
            Reached { era: cut.era, n }
        });
        EraClaimed { cut: cut.collect(), ..claim.clone() }
    }

    fn fold_handover(
        &mut self,
        cx: &mut Context,
        replica: &Replica,
        at: LocalRef,
        handover: &HandedOver,
    ) {
        let (author, era) = (replica.logs.id(at.log), handover.era);
        let valid = self.numbering.eras.get(&era).is_some_and(|known| {
            known.record.is_issued_by(author, handover.by)
                && handover.next == known.record.known + 1
        });
        if !valid {
            if !self.is_void(cx, replica, era) {
                cx.blame(author.author, |faults| &mut faults.void);
            }
            return;
        }
        if let Some(state) = self.numbering.edit(era) {
            state.record.hand_over(EntryRef { log: author, seq: at.seq }, handover.to);
        }
        if replica.is_directory {
            self.numbering.note_given(era, at, handover.next);
        }
        self.end_eras_if_over(cx, replica, handover.to);
        if handover.to == replica.mine {
            cx.happens(Happened::HandedToMe { room: replica.id, era, from: author });
        }
    }
}

/// Whether the author of this log has entered the lane of the era that an entry claims, if it claims one.
pub(crate) fn is_in_lane(cx: &Context, log: LogId, body: &Body) -> bool {
    let Body::EraClaimed(claim) = body else { return true };
    let lane = claim.era.lane().unwrap_or(u32::MAX);
    cx.lanes.get(&log.author).is_some_and(|lanes| lanes.contains(&lane))
}

/// How many of these numbers go to entries.
fn named(ordered: &Ordered) -> u64 {
    let named = ordered.items.iter().filter(|items| (items.log as usize) < ordered.logs.len());
    named.map(|items| u64::from(items.count)).sum()
}

#[cfg(test)]
mod tests;
