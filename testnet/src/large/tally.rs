//! Counts over all nodes together.

use std::collections::BTreeMap;

use super::spoken::{About, Spoken};

/// How many, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) times: u64,
    /// Of payloads, encoded.
    pub(super) bytes: u64,
}

impl Count {
    fn add(&mut self, spoken: &Spoken) {
        self.times += 1;
        self.bytes += spoken.bytes;
    }
}

/// Counts by kind of message.
pub(super) type ByKind = BTreeMap<&'static str, Count>;

/// Alarms that operators would be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alarms {
    pub(super) eras: u64,
    pub(super) holes: u64,
    pub(super) others: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Gossip that came and was new.
    pub(super) fresh: ByKind,
    /// Gossip that came and was there already.
    pub(super) again: ByKind,
    /// Messages that one peer sent another one.
    pub(super) frames: ByKind,
    /// Messages that gossipsub does not publish because the same came by within the minute.
    pub(super) unpublished: u64,
    /// Over how many links chat messages came first: `hops[1]` did over one.
    pub(super) hops: Vec<u64>,
    /// Copies that were sent of chat messages, of their numbers; bytes of both.
    pub(super) chat: Count,
    pub(super) numbers: Count,
    /// Members of the lobby that left it, as each node saw.
    pub(super) left: u64,
    /// Processor time of engines.
    pub(super) nanoseconds: u64,
    pub(super) turns: u64,
}

impl Tally {
    pub(super) fn gossip(&mut self, spoken: &Spoken, hop: usize, is_new: bool) {
        let by_kind = if is_new { &mut self.fresh } else { &mut self.again };
        by_kind.entry(spoken.kind).or_default().add(spoken);
        match spoken.about {
            About::Chat => {
                self.chat.add(spoken);
                if is_new {
                    self.hops.resize(self.hops.len().max(hop + 1), 0);
                    self.hops[hop] += 1;
                }
            }
            About::Number => self.numbers.add(spoken),
            About::Other => {}
        }
    }

    pub(super) fn frame(&mut self, spoken: &Spoken) {
        self.frames.entry(spoken.kind).or_default().add(spoken);
    }
}

pub(super) fn sum(of: &ByKind) -> Count {
    of.values().fold(Count::default(), |sum, count| Count {
        times: sum.times + count.times,
        bytes: sum.bytes + count.bytes,
    })
}

/// The `percent`th of a hundred values, of which each is counted; 0 of nothing.
pub(super) fn of_histogram(counts: &[u64], percent: u64) -> usize {
    let all: u64 = counts.iter().sum();
    let mut left = (all * percent).div_ceil(100);
    for (value, count) in counts.iter().enumerate() {
        left = left.saturating_sub(*count);
        if left == 0 && *count > 0 {
            return value;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_counts() {
        let counts = [0, 98, 1, 1];
        assert_eq!([50, 98, 99, 100].map(|percent| of_histogram(&counts, percent)), [1, 1, 2, 3]);
        assert_eq!(of_histogram(&[], 50), 0);
    }
}
