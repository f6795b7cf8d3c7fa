//! The step from one era into another, when a split has healed. An era's cut says that all entries which it names were given
//! before its first number: every other node takes that from a client's cursor (`docs/numbering.md`, "Roaming"). A node that
//! was in an era of the other side of the split may lack some of these. They are late there, and get other numbers in a
//! moment. So it goes into the era when they have these, and gives all of it in one go.

use std::{collections::BTreeSet, time::Duration};

use super::numbering::Numbering;
use crate::{
    api::batch::NumberRange,
    limits::ENTER_WITHIN,
    name::{id::LocalRef, number::Era},
    replica::Replica,
    turn::context::Context,
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entering {
    /// Since when the next era waits.
    since: Option<Duration>,
    /// Entries that did not come, or got no number, in time: nothing waits for these again. No more than there are entries
    /// that wait for their delivery.
    in_vain: BTreeSet<LocalRef>,
}

impl Entering {
    /// Nobody has its content.
    pub(super) fn give_up(&mut self, at: LocalRef) {
        self.in_vain.insert(at);
    }

    /// Whether this era is not to be entered yet, if it is not the one of the tip.
    pub(super) fn waits(
        &mut self,
        cx: &Context,
        replica: &Replica,
        numbering: &Numbering,
        era: Era,
    ) -> bool {
        // Nobody has a cursor in a directory.
        if era == replica.record.tip.era() || replica.is_directory {
            return false;
        }
        self.in_vain.retain(|at| {
            numbering.undelivered.contains_key(at) || numbering.foretold.contains_key(at)
        });
        self.waits_for(cx.now.mono, &left_behind(cx, replica, numbering))
    }

    /// Whether the next era waits, now that these entries are left behind.
    fn waits_for(&mut self, now: Duration, left_behind: &BTreeSet<LocalRef>) -> bool {
        if left_behind.is_subset(&self.in_vain) {
            self.since = None;
            return false;
        }
        if now < *self.since.get_or_insert(now) + ENTER_WITHIN {
            return true;
        }
        self.since = None;
        self.in_vain.extend(left_behind);
        false
    }
}

/// Entries that a cut names and that are still to be given here, under numbers that are not known yet.
fn left_behind(cx: &Context, replica: &Replica, numbering: &Numbering) -> BTreeSet<LocalRef> {
    let tip = replica.record.tip;
    let is_named = |numbers: NumberRange| {
        numbers.best <= tip
            && [numbers.canonical, numbers.best].into_iter().any(|number| numbering.is_cut(number))
    };
    let late = numbering.undelivered.iter();
    let late = late.filter(|(_, entry)| entry.numbers.is_some_and(is_named)).map(|(at, _)| *at);
    let missing = numbering.foretold.iter();
    let missing =
        missing.filter(|(at, numbers)| is_named(**numbers) && replica.is_missing(cx, **at));
    late.chain(missing.map(|(at, _)| *at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_waits_for_an_entry_once_and_so_long() {
        let entries = |seqs: &[u64]| -> BTreeSet<LocalRef> {
            seqs.iter().map(|seq| LocalRef { log: 0, seq: *seq }).collect()
        };
        let (mut entering, start) = (Entering::default(), Duration::from_secs(9));
        assert!(!entering.waits_for(start, &entries(&[])));
        assert!(entering.waits_for(start, &entries(&[1, 2])));
        let almost = start + ENTER_WITHIN - Duration::from_millis(1);
        assert!(entering.waits_for(almost, &entries(&[1, 3])), "also for others, no longer");
        assert!(!entering.waits_for(start + ENTER_WITHIN, &entries(&[1, 3])));
        let later = start + 2 * ENTER_WITHIN;
        assert!(!entering.waits_for(later, &entries(&[1, 3])), "in vain");
        assert!(entering.waits_for(later, &entries(&[1, 4])));
        entering.give_up(LocalRef { log: 0, seq: 4 });
        assert!(!entering.waits_for(later, &entries(&[1, 4])));
        assert!(entering.waits_for(later + ENTER_WITHIN, &entries(&[5])), "for as long again");
    }
}
