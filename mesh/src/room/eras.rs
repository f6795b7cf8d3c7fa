//! Folding what gives numbers: orders, claims of eras, handovers.

use super::Room;
use crate::{
    api::{
        batch::{Change, Fate},
        boundary::Alarm,
    },
    engine::{context::Context, happened::Happened},
    limits::{CLAIM_SEEN_MAX, CUT_ERAS_MAX, ORDERED_ITEMS_MAX},
    name::{
        id::{EntryRef, LocalRef},
        number::Era,
    },
    wire::entry::{EraClaimed, HandedOver, Ordered, Reached},
};

impl Room {
    pub(super) fn fold_ordered(&mut self, cx: &mut Context, at: LocalRef, it: &Ordered) {
        let author = self.logs.id(at.log);
        let count = it.count();
        // Numbers that a ClawChat server had no message of, however many.
        let gaps = it.era == Era::HOME && self.takes_imports_of(author);
        let given = if gaps { named(it) } else { count };
        let valid = self.numbering.eras.get(&it.era).is_some_and(|era| {
            era.record.is_issued_by(author, it.by) && it.first == era.record.known + 1
        }) && given <= ORDERED_ITEMS_MAX as u64
            && it.fits();
        if !valid {
            // Who goes on with an era of a node that is out here may not know of it.
            if !self.is_void(cx, it.era) {
                cx.blame(author.author, |it| &mut it.void);
            }
            return;
        }
        if self.is_directory && count > 0 {
            self.numbering.note_given(it.era, at, it.first);
        }
        for items in &it.items {
            let id = it.logs.get(items.log as usize);
            let log = id.and_then(|id| self.logs.ensure(*id));
            let Some(log) = log else {
                // A place that cannot be still takes its number, so that those after it keep theirs.
                self.numbering.skip(it.era, items.count.into());
                if id.is_some_and(|id| self.logs.can_have(*id)) {
                    // There is no room for another log here; there may have been with the author.
                    cx.faults.overflow += 1;
                } else if !gaps {
                    cx.blame(author.author, |it| &mut it.void);
                }
                continue;
            };
            for seq in (items.from..).take(items.count as usize) {
                self.assign(cx, it.era, LocalRef { log, seq });
            }
        }
    }

    fn assign(&mut self, cx: &mut Context, era: Era, at: LocalRef) {
        let Some(number) = self.numbering.assign(era, at) else { return };
        let (room, fate) = (self.id, Fate::Assigned);
        cx.change(Change::Number { room, number, at, fate });
        let record = self.logs.get(at.log);
        let void = record.fork.is_some_and(|fork| at.seq >= fork);
        if at.seq > record.head && !void {
            let numbers = self.numbering.foretell(at, number);
            cx.change(Change::NumberRange { room, at, numbers: Some(numbers) });
        }
        if self.is_directory {
            cx.happens(Happened::Numbered { room, at, number });
        }
    }

    pub(super) fn fold_claim(&mut self, cx: &mut Context, at: LocalRef, it: &EraClaimed) {
        let author = self.logs.id(at.log);
        let lane = it.era.lane().unwrap_or(u32::MAX);
        let in_lane = cx.lanes.get(&author.author).is_some_and(|lanes| lanes.contains(&lane));
        // Claims of an ephemeral room may be lost with the memory of their author.
        let follows =
            it.era.c() == it.after.c() + 1 || (self.record.ephemeral && it.era.c() > it.after.c());
        let sane = it.era.is_valid()
            && it.cut.len() <= CUT_ERAS_MAX
            && it.seen.len() <= CLAIM_SEEN_MAX
            && it.cut.iter().all(|cut| cut.era < it.era)
            && (self.numbering.eras.contains_key(&it.after) || !self.is_own_lane(it));
        if !(in_lane && follows && sane) {
            cx.blame(author.author, |it| &mut it.void);
        } else if !self.numbering.open(&self.as_far_as_given(cx, it), author) {
            cx.blame(author.author, |it| &mut it.void);
            cx.alarm(Alarm::LaneClash { node: author.author, lane });
        } else if self.numbering.current() == it.era && self.is_used_up() {
            cx.alarm(Alarm::Exhausted { room: self.id });
        }
        self.end_eras_if_over(cx, author);
    }

    /// Whether the claim follows another one of its author: of these its log says which there are. Of an
    /// ephemeral room the logs before it may be forgotten.
    fn is_own_lane(&self, it: &EraClaimed) -> bool {
        it.after.lane() == it.era.lane() && !self.record.ephemeral
    }

    /// The claim, with a cut that is no higher than what is known of eras that go on. What an honest author cuts is known
    /// by now, unless somebody gave it who has forked: nobody is to wait for what was never given.
    fn as_far_as_given(&self, cx: &Context, it: &EraClaimed) -> EraClaimed {
        let cut = it.cut.iter().map(|cut| {
            let known = self.numbering.known(cut.era);
            let n = if self.is_void(cx, cut.era) { cut.n } else { cut.n.min(known) };
            Reached { era: cut.era, n }
        });
        EraClaimed { cut: cut.collect(), ..it.clone() }
    }

    pub(super) fn fold_handover(&mut self, cx: &mut Context, at: LocalRef, it: HandedOver) {
        let author = self.logs.id(at.log);
        let valid = self.numbering.eras.get(&it.era).is_some_and(|era| {
            era.record.is_issued_by(author, it.by) && it.next == era.record.known + 1
        });
        if !valid {
            if !self.is_void(cx, it.era) {
                cx.blame(author.author, |it| &mut it.void);
            }
            return;
        }
        if let Some(era) = self.numbering.edit(it.era) {
            era.record.hand_over(EntryRef { log: author, seq: at.seq }, it.to);
        }
        if self.is_directory {
            self.numbering.note_given(it.era, at, it.next);
        }
        self.end_eras_if_over(cx, it.to);
        if it.to == self.mine {
            cx.happens(Happened::HandedToMe { room: self.id, era: it.era, from: author });
        }
    }
}

/// How many of these to entries.
fn named(it: &Ordered) -> u64 {
    let named = it.items.iter().filter(|items| (items.log as usize) < it.logs.len());
    named.map(|items| u64::from(items.count)).sum()
}
