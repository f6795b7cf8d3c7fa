//! A node's memory of one reader of one room: the parts of its delivery log that it has given to the
//! reader, and the cursors that the reader gets from here (`docs/numbering.md`, "Roaming"). Plain data; the
//! core does not keep it.

use minicbor::{Decode, Encode};

use crate::{
    limits::SERVED_STRETCHES_MAX,
    name::number::{Era, Number},
};

/// A part of a delivery log that a reader was given without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stretch {
    /// The cursor that it began with: everything that was delivered above it, up to `upto`, was given.
    #[n(0)]
    pub after: Number,
    /// Where it ends. A cursor within, both ends included, is one that the reader has from here. If the reader came into
    /// an era here, so is, for all that matters, a higher one of that era: of the era every node gives the same, and
    /// everything below it that is owed was given then.
    #[n(1)]
    pub upto: Number,
    /// The reader came to `after` here, too, and not from another node: nothing below it is owed.
    #[n(2)]
    pub whole: bool,
}

impl Stretch {
    fn has(&self, cursor: Number) -> bool {
        self.after <= cursor && cursor <= self.reach()
    }

    /// The highest cursor of which it speaks.
    fn reach(&self) -> Number {
        let era = self.upto.era();
        let came_into_it =
            self.after.era() < era || (self.after.n() == 0 && self.after < self.upto);
        if came_into_it { era.number(era.capacity()) } else { self.upto }
    }
}

/// See the module. Forgetting any of it is safe: a reader may then get messages again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Served {
    /// Ascending and apart, at most [`SERVED_STRETCHES_MAX`].
    #[n(0)]
    stretches: Vec<Stretch>,
    /// The last number of the room that it was told. Zero: none.
    #[n(1)]
    told: Number,
}

impl Served {
    /// The reader said where it is, and was given a page from there, `after`, up to a number: everything of
    /// the delivery log between them, but for entries that are proven seen. `origin_cursor`: the cursor with which
    /// it came from another node; zero if it did not, or came with one of the home era, below which all
    /// nodes have given the same.
    pub fn page(&mut self, origin_cursor: Number, (after, upto): (Number, Number)) {
        let whole = origin_cursor == Number::ZERO;
        let home = after.era() == Era::HOME;
        let after = if !whole {
            origin_cursor
        } else if home {
            Number::ZERO
        } else {
            after
        };
        self.add(Stretch { after, upto: upto.max(after), whole });
    }

    /// Live messages followed a page that ended with `after`, up to `upto`. Only then do they count: a reader that has not
    /// said where it is may drop them.
    pub fn went_on(&mut self, after: Number, upto: Number) {
        if after.era() == Era::HOME {
            // Pages of the home era are not noted.
            self.page(Number::ZERO, (after, upto));
        } else if let Some(mut stretch) =
            self.stretches.iter().find(|stretch| stretch.has(after)).copied()
        {
            stretch.upto = upto.max(stretch.upto);
            self.add(stretch);
        }
    }

    /// The reader asked for the room's tip, and was told this. If it goes on from there, it wants nothing that is below.
    pub fn told(&mut self, tip: Number) {
        if self.came_with(tip).is_none() {
            self.told = tip;
        }
    }

    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Decodes the bytes of [`Served::encode`].
    ///
    /// # Errors
    ///
    /// If it is not that.
    pub fn decode(bytes: &[u8]) -> Result<Served, minicbor::decode::Error> {
        minicbor::decode(bytes)
    }

    /// The cursor with which the reader came here, if it has `cursor` from here; zero if it never came from
    /// another node. Messages that were delivered here up to that may be owed to it.
    #[must_use]
    pub fn came_with(&self, cursor: Number) -> Option<Number> {
        let stretch = self.stretches.iter().find(|stretch| stretch.has(cursor));
        let origin =
            stretch.map(|stretch| if stretch.whole { Number::ZERO } else { stretch.after });
        origin.or_else(|| (cursor > Number::ZERO && cursor == self.told).then_some(Number::ZERO))
    }

    fn add(&mut self, new: Stretch) {
        let touches =
            |stretch: &Stretch| stretch.after <= new.reach() && new.after <= stretch.reach();
        let (touched, mut apart): (Vec<Stretch>, Vec<Stretch>) =
            self.stretches.iter().partition(|stretch| touches(stretch));
        let mut all = new;
        for stretch in touched {
            // The lower one says where the reader came from.
            if stretch.after < all.after || (stretch.after == all.after && !stretch.whole) {
                (all.after, all.whole) = (stretch.after, stretch.whole);
            }
            all.upto = all.upto.max(stretch.upto);
        }
        apart.push(all);
        apart.sort_by_key(|stretch| stretch.after);
        // The reader goes on after the last page, which is the highest.
        apart.drain(..apart.len().saturating_sub(SERVED_STRETCHES_MAX));
        self.stretches = apart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(n: u64) -> Number {
        Era::new(1, 7).expect("an era").number(n)
    }

    fn home(n: u64) -> Number {
        Number(n)
    }

    #[test]
    fn who_reads_on_from_what_it_got_here_stays() {
        let mut served = Served::default();
        assert_eq!(served.came_with(home(0)), None);
        served.page(Number::ZERO, (home(5), n(3)));
        assert_eq!(served.came_with(home(4)), Some(Number::ZERO), "a cursor of the home era");
        served.page(Number::ZERO, (n(3), n(9)));
        for cursor in [home(9), n(1), n(9)] {
            assert_eq!(served.came_with(cursor), Some(Number::ZERO));
        }
    }

    /// So it is enough that the first number of an era outlives a crash.
    #[test]
    fn who_came_into_an_era_here_was_given_all_that_is_below_it() {
        let mut served = Served::default();
        served.went_on(home(5), n(1));
        assert_eq!(served.came_with(n(30)), Some(Number::ZERO));
        let higher = Era::new(2, 7).expect("an era");
        let elsewhere = served.came_with(higher.number(1));
        assert_eq!(elsewhere, None, "it may have come into that elsewhere");
        served.page(Number::ZERO, (n(30), n(35)));
        assert_eq!(served.came_with(n(36)), Some(Number::ZERO));
    }

    /// A reader that is back gets live messages before it says where it is, and drops those below that.
    #[test]
    fn live_messages_count_only_after_a_page() {
        let mut served = Served::default();
        served.went_on(n(0), n(9));
        assert_eq!(served.came_with(n(5)), None);
        served.page(n(20), (n(20), n(25)));
        served.went_on(n(25), n(30));
        assert_eq!((served.came_with(n(30)), served.came_with(n(31))), (Some(n(20)), None));
    }

    #[test]
    fn who_came_from_elsewhere_is_owed_what_it_came_without() {
        let mut served = Served::default();
        served.page(n(20), (n(20), n(25)));
        assert_eq!(served.came_with(n(22)), Some(n(20)));
        served.told(n(28));
        assert_eq!(served.came_with(n(28)), Some(Number::ZERO), "if it goes on from the tip");
        served.page(n(20), (n(24), n(45)));
        assert_eq!(served.came_with(n(45)), Some(n(20)), "from where it was");
        served.page(Number::ZERO, (home(0), n(21)));
        assert_eq!(served.came_with(n(45)), Some(Number::ZERO), "from the beginning");
    }

    #[test]
    fn so_many_stretches_are_kept_and_the_highest() {
        let mut served = Served::default();
        for nth in 1..=3 * SERVED_STRETCHES_MAX as u64 {
            served.page(n(3 * nth), (n(3 * nth), n(3 * nth + 1)));
            assert!(served.stretches.len() <= SERVED_STRETCHES_MAX);
        }
        let last = n(9 * SERVED_STRETCHES_MAX as u64);
        assert_eq!((served.came_with(n(3)), served.came_with(last)), (None, Some(last)));
        assert_eq!(Served::decode(&served.encode()).expect("a record"), served);
    }
}
