//! Clients of a room that come from other nodes (`docs/numbering.md`, "Roaming"): the cursor above which
//! the next numbers have to be, and how many eras were opened for them.

use std::time::Duration;

use crate::{
    limits::{ROAM_BELOW_MAX, ROAM_CLAIM_EVERY, ROAM_ERAS_MAX, ROAM_ERAS_WITHIN},
    name::{
        id::LocalRef,
        number::{Era, Number},
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roamers {
    /// The highest cursor of a client that came from an era above the current one. Zero: there is none.
    floor: Number,
    /// Delivered at or below it since: the client would drop it.
    below: Vec<LocalRef>,
    claimed_at: Option<Duration>,
    /// Eras opened since `counted_from`.
    opened: u32,
    counted_from: Duration,
}

impl Roamers {
    /// Something is delivered.
    pub(crate) fn delivers(&mut self, number: Number, at: LocalRef) {
        if number <= self.floor && self.below.len() < ROAM_BELOW_MAX {
            self.below.push(at);
        }
    }

    /// A client came with a cursor of an era above the current one: nothing is numbered for it before something
    /// new is said, and that gets a number above the cursor.
    pub(crate) fn raise(&mut self, cursor: Number) {
        self.floor = self.floor.max(cursor);
    }

    /// Above which the next number has to be, while the current era is below it.
    pub(crate) fn floor(&self, current: Era) -> Option<Number> {
        (self.floor.era() > current).then_some(self.floor)
    }

    /// Whether it waits for something to be said, or that needs numbers.
    pub(crate) fn is_waiting(&self) -> bool {
        self.floor > Number::ZERO
    }

    /// The current era is above it, or nobody can get there.
    pub(crate) fn settle(&mut self) {
        self.floor = Number::ZERO;
        self.below = Vec::new();
    }

    /// The entries that were delivered below the floor.
    pub(crate) fn below(&self) -> &[LocalRef] {
        &self.below
    }

    /// Whether so many eras may be opened for clients now.
    pub(crate) fn may_claim(&self, now: Duration, eras: u32) -> bool {
        let opened = if self.is_counted(now) { self.opened } else { 0 };
        self.claimed_at.is_none_or(|at| now >= at + ROAM_CLAIM_EVERY)
            && opened.saturating_add(eras) <= ROAM_ERAS_MAX
    }

    /// So many were.
    pub(crate) fn claimed(&mut self, now: Duration, eras: u32) {
        if eras == 0 {
            return;
        }
        if !self.is_counted(now) {
            (self.opened, self.counted_from) = (0, now);
        }
        self.opened = self.opened.saturating_add(eras);
        self.claimed_at = Some(now);
    }

    fn is_counted(&self, now: Duration) -> bool {
        now < self.counted_from + ROAM_ERAS_WITHIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seq: u64) -> LocalRef {
        LocalRef { log: 0, seq }
    }

    /// A room has 262,143 eras: cursors that clients make up must not use them up.
    #[test]
    fn so_many_eras_are_opened_for_clients_in_an_hour() {
        let (mut roamers, mut now, mut opened) = (Roamers::default(), Duration::ZERO, 0);
        for _ in 0..24 * 60 {
            for eras in [1_025, 1] {
                if roamers.may_claim(now, eras) {
                    roamers.claimed(now, eras);
                    opened += eras;
                }
            }
            now += Duration::from_secs(60);
        }
        assert!(opened <= 24 * ROAM_ERAS_MAX, "{opened}");
        assert!(roamers.may_claim(now + ROAM_ERAS_WITHIN, 1_025));
    }

    #[test]
    fn what_is_delivered_below_a_floor_is_noted_within_a_bound() {
        let floor = Era::new(2, 1).expect("an era").number(3);
        let mut roamers = Roamers::default();
        roamers.delivers(Number(1), at(1));
        assert!(!roamers.is_waiting() && roamers.below().is_empty());
        roamers.raise(floor);
        assert_eq!(roamers.floor(Era::HOME), Some(floor));
        assert_eq!(roamers.floor(floor.era()), None, "what comes next is above it");
        for seq in 0..2 * ROAM_BELOW_MAX as u64 {
            roamers.delivers(Number(seq + 2), at(seq));
        }
        assert_eq!(roamers.below().len(), ROAM_BELOW_MAX);
        roamers.settle();
        assert!(!roamers.is_waiting() && roamers.below().is_empty());
    }
}
