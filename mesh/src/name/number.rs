//! Numbers (the wire's `seq`) and the eras they come from. See `docs/numbering.md`.

use std::fmt;

use minicbor::{Decode, Encode};

/// Bits of `n` above the home era.
const N_BITS: u32 = 16;
/// Bits of a lane.
const LANE_BITS: u32 = 19;
/// Where `c` begins; below it is the home era.
const C_SHIFT: u32 = N_BITS + LANE_BITS;

/// How many lanes there are.
pub const LANES: u32 = 1 << LANE_BITS;
/// The highest `c`.
pub const C_MAX: u32 = (1 << 18) - 1;

/// The number of a message in a room: within [1, 2^53). Ordered by era, then by place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Default)]
#[cbor(transparent)]
pub struct Number(#[n(0)] pub u64);

impl Number {
    /// Before the first number of any room.
    pub const ZERO: Number = Number(0);

    /// The era this number is from.
    #[must_use]
    pub const fn era(self) -> Era {
        if self.0 >> C_SHIFT == 0 { Era::HOME } else { Era(self.0 & !((1 << N_BITS) - 1)) }
    }

    /// The place in its era, from 1.
    #[must_use]
    pub const fn n(self) -> u64 {
        self.0 - self.era().0
    }
}

/// A block of numbers that one node at a time may issue from. Ordered by `c`, then by lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Default)]
#[cbor(transparent)]
pub struct Era(#[n(0)] pub u64);

impl Era {
    /// 1 … 2^35-1: where every room begins, and in calm weather stays.
    pub const HOME: Era = Era(0);

    /// The era `c` (1 to [`C_MAX`]) in `lane` (below [`LANES`]); `None` outside of these.
    #[must_use]
    pub const fn new(c: u32, lane: u32) -> Option<Era> {
        if c == 0 || c > C_MAX || lane >= LANES {
            return None;
        }
        Some(Era((c as u64) << C_SHIFT | (lane as u64) << N_BITS))
    }

    /// 0 for the home era.
    #[must_use]
    pub const fn c(self) -> u32 {
        (self.0 >> C_SHIFT) as u32
    }

    /// The lane, or `None` for the home era.
    #[must_use]
    pub const fn lane(self) -> Option<u32> {
        if self.c() == 0 { None } else { Some((self.0 >> N_BITS) as u32 & (LANES - 1)) }
    }

    /// Whether this has the form of an era: decoded ones may not.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 == 0 || (self.c() >= 1 && self.c() <= C_MAX && self.0 & ((1 << N_BITS) - 1) == 0)
    }

    /// How many numbers the era has.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        if self.0 == 0 { (1 << C_SHIFT) - 1 } else { (1 << N_BITS) - 1 }
    }

    /// The `n`th number, from 1 to [`Era::capacity`].
    #[must_use]
    pub const fn number(self, n: u64) -> Number {
        Number(self.0 + n)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}#{}", self.era(), self.n())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lane() {
            None => f.write_str("home"),
            Some(lane) => write!(f, "era {}.{lane}", self.c()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_apart_as_they_were_put_together() {
        assert_eq!(Number(1).era(), Era::HOME);
        assert_eq!(Number((1 << 35) - 1).n(), Era::HOME.capacity());
        let era = Era::new(3, 77).unwrap();
        let number = era.number(9);
        assert_eq!(number.0, 3 << 35 | 77 << 16 | 9, "as docs/numbering.md says");
        assert_eq!((number.era(), number.n(), era.c(), era.lane()), (era, 9, 3, Some(77)));
        let last = Era::new(C_MAX, LANES - 1).unwrap();
        assert_eq!(last.number(last.capacity()).0, (1 << 53) - 1);
        assert!(
            Era::new(0, 1).is_none()
                && Era::new(C_MAX + 1, 0).is_none()
                && Era::new(1, LANES).is_none()
        );
    }

    #[test]
    fn every_later_era_is_above_every_earlier_number() {
        assert!(Era::new(1, 0).unwrap().number(1) > Era::HOME.number(Era::HOME.capacity()));
        assert!(Era::new(2, 0).unwrap().number(1) > Era::new(1, LANES - 1).unwrap().number(65_535));
    }

    #[test]
    fn what_has_not_the_form_of_an_era_is_none() {
        let era = Era::new(1, 3).unwrap();
        assert!(Era::HOME.is_valid() && era.is_valid());
        for bits in [era.0 | 1, 1, 1 << 16, 1 << 34, 1 << 53] {
            assert!(!Era(bits).is_valid(), "{bits:#x}");
        }
    }
}
