//! How long many of one thing took.

use std::time::Duration;

/// Microseconds, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution(Vec<u64>);

impl Distribution {
    /// Of microseconds in any order.
    pub(crate) fn new(mut took_us: Vec<u64>) -> Distribution {
        took_us.sort_unstable();
        Distribution(took_us)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a hundred did not exceed, in milliseconds; 0 if there are none.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        // 99.9 of a hundred is not quite that in binary: a millionth of a sample more is none.
        let rank = (percent / 100.0 * self.0.len() as f64 - 1e-6).ceil();
        let last = self.0.len().saturating_sub(1);
        let at = (rank as usize).saturating_sub(1).min(last);
        self.0.get(at).map_or(0.0, |us| *us as f64 / 1e3)
    }
}

impl FromIterator<Duration> for Distribution {
    fn from_iter<I: IntoIterator<Item = Duration>>(took: I) -> Distribution {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Distribution::new(took.into_iter().map(us).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let thousand = Distribution::new((1..=1_000).rev().map(|ms| ms * 1_000).collect());
        let percentiles =
            [0.0, 50.0, 99.0, 99.9, 100.0].map(|percent| thousand.percentile(percent));
        assert_eq!(percentiles, [1.0, 500.0, 990.0, 999.0, 1_000.0]);
        assert_eq!(Distribution::default().percentile(50.0), 0.0);
    }
}
