//! Waiting longer after each failure, with jitter so that nodes that fail together do not retry
//! together.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A retry policy: doubles from `min` to `max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Backoff {
    /// The wait after so many failures in a row: between half of the full wait and all of it.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let full = self.full(failures);
        // `RandomState` is seeded by the system; jitter needs no better randomness.
        let random = RandomState::new().build_hasher().finish() % 1024;
        full / 2 + (full / 2).mul_f64(random as f64 / 1024.0)
    }

    /// Without jitter.
    pub(crate) fn full(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        self.min.saturating_mul(1 << doublings).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_maximum() {
        let backoff =
            Backoff { min: Duration::from_millis(200), max: Duration::from_millis(15_000) };
        let full: Vec<u128> = (0..9).map(|n| backoff.full(n).as_millis()).collect();
        assert_eq!(full, [200, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000]);
        assert_eq!(backoff.full(u32::MAX), backoff.max);
        for _ in 0..100 {
            let wait = backoff.after(3).as_millis();
            assert!((400..=800).contains(&wait));
        }
    }
}
