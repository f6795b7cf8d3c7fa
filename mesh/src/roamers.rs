//! What a room remembers for clients that come from other nodes (`docs/numbering.md`, "Roaming"): when it delivered
//! what, in this process, and above which cursor the next numbers have to be.

use std::time::Duration;

use crate::{
    id::At,
    limits::{ROAM_BELOW_MAX, ROAM_CLAIM_EVERY, ROAM_MOMENTS_MAX, TICK},
    number::{Era, Number},
};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Roamers {
    /// The tip when this process began with the room.
    began: Number,
    /// At some moments since: up to which number everything had been delivered by then. Ascending.
    moments: Vec<(Duration, Number)>,
    /// When the last of them was begun: what is delivered within a [`TICK`] moves it on.
    begun: Duration,
    /// The highest cursor of a client that came from an era above the current one. Zero: there is none.
    floor: Number,
    /// Delivered at or below it since: the client would drop it.
    below: Vec<At>,
    claimed_at: Option<Duration>,
}

impl Roamers {
    /// A room in which this was the tip when the process started.
    pub(crate) fn new(began: Number) -> Roamers {
        Roamers { began, ..Roamers::default() }
    }

    /// Something is delivered.
    pub(crate) fn delivers(&mut self, now: Duration, (number, at): (Number, At)) {
        if let Some(last) = self.moments.last_mut().filter(|_| now < self.begun + TICK) {
            *last = (now, number);
        } else {
            if self.moments.len() >= ROAM_MOMENTS_MAX {
                // Coarser the older it is.
                let mut nth = 0;
                self.moments.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
            }
            self.moments.push((now, number));
            self.begun = now;
        }
        if number <= self.floor && self.below.len() < ROAM_BELOW_MAX {
            self.below.push(at);
        }
    }

    /// Up to where everything had been delivered at that time, or before it.
    pub(crate) fn tip_at(&self, at: Duration) -> Number {
        let before = self.moments.iter().rev().find(|(moment, _)| *moment <= at);
        before.map_or(self.began, |(_, tip)| *tip)
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

    /// What was delivered below the floor.
    pub(crate) fn below(&self) -> &[At] {
        &self.below
    }

    /// Whether an era may be claimed for clients now.
    pub(crate) fn may_claim(&self, now: Duration) -> bool {
        self.claimed_at.is_none_or(|at| now >= at + ROAM_CLAIM_EVERY)
    }

    pub(crate) fn claimed(&mut self, now: Duration) {
        self.claimed_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seq: u64) -> At {
        At { log: 0, seq }
    }

    /// Rounded down: rather one entry too many is numbered for a client than that it misses one.
    #[test]
    fn what_was_delivered_after_a_moment_is_known_and_rather_too_much() {
        let mut roamers = Roamers::new(Number(7));
        assert_eq!(roamers.tip_at(Duration::MAX), Number(7), "nothing in this process");
        for second in 0..1_000 {
            let now = Duration::from_secs(second);
            roamers.delivers(now, (Number(8 + second), at(second)));
            assert!(roamers.moments.len() <= ROAM_MOMENTS_MAX);
        }
        for second in 0..1_000 {
            let tip = roamers.tip_at(Duration::from_secs(second));
            assert!(tip >= Number(7) && tip <= Number(8 + second), "{second}: {tip:?}");
        }
        let last = Duration::from_secs(999);
        assert_eq!(roamers.tip_at(last), Number(1_007));
        roamers.delivers(last + TICK / 2, (Number(1_008), at(1_000)));
        assert!(roamers.tip_at(last) < Number(1_007), "what is one moment is known at its end");
        assert_eq!(roamers.tip_at(last + TICK), Number(1_008));
    }

    #[test]
    fn what_is_delivered_below_a_floor_is_noted_within_a_bound() {
        let floor = Era::new(2, 1).expect("an era").number(3);
        let mut roamers = Roamers::default();
        roamers.delivers(Duration::ZERO, (Number(1), at(1)));
        assert!(!roamers.is_waiting() && roamers.below().is_empty());
        roamers.raise(floor);
        assert_eq!(roamers.floor(Era::HOME), Some(floor));
        assert_eq!(roamers.floor(floor.era()), None, "what comes next is above it");
        for seq in 0..2 * ROAM_BELOW_MAX as u64 {
            roamers.delivers(Duration::ZERO, (Number(seq + 2), at(seq)));
        }
        assert_eq!(roamers.below().len(), ROAM_BELOW_MAX);
        roamers.settle();
        assert!(!roamers.is_waiting() && roamers.below().is_empty());
    }
}
