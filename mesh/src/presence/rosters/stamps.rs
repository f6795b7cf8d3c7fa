//! Stamps: one order of registrations, joins and departures, the same everywhere.

use crate::{
    limits::STAMP_AHEAD_MAX,
    name::{id::NodeId, time::Now},
};

/// Bits of a stamp that count within one microsecond.
pub(super) const COUNT_BITS: u32 = 8;

/// Of one node.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    me: NodeId,
    last: u64,
}

impl Stamps {
    pub(super) fn new(me: NodeId) -> Stamps {
        Stamps { me, last: 0 }
    }

    /// A stamp above all that were seen: wall-clock microseconds where clocks agree, so that the
    /// order of stamps is the order in which things happened, and in any case one order everywhere.
    pub(super) fn draw(&mut self, now: Now) -> u64 {
        // Two nodes that act in one microsecond draw two stamps: each begins to count elsewhere.
        let own = u64::from(self.me.0[0]) >> 2;
        self.last = (self.last + 1).max(now.wall_us << COUNT_BITS | own);
        self.last
    }

    pub(super) fn observe(&mut self, now: Now, stamp: u64) {
        if is_near(now, stamp) {
            self.last = self.last.max(stamp);
        }
    }
}

/// Not further ahead of this node's clock than clocks may differ.
pub(super) fn is_near(now: Now, stamp: u64) -> bool {
    let ahead = u64::try_from(STAMP_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX);
    stamp >> COUNT_BITS <= now.wall_us.saturating_add(ahead)
}
