//! How much clients may ask: buckets that fill again. For dialects that bound what theirs do.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

/// So many at once, and so many in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// And then in a minute.
    pub per_minute: u32,
}

/// Places that are free again as time passes.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// All are free from then on.
    full_at: Instant,
}

impl Bucket {
    /// All places are free.
    #[must_use]
    pub fn new(now: Instant) -> Bucket {
        Bucket { full_at: now }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// None is free for so long.
    pub fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let each = Duration::from_secs(60) / rate.per_minute.max(1);
        let full_at = self.full_at.max(now) + each;
        let most = each * rate.burst.max(1);
        match (full_at - now).checked_sub(most).filter(|wait| !wait.is_zero()) {
            Some(wait) => Err(wait),
            None => {
                self.full_at = full_at;
                Ok(())
            }
        }
    }

    /// Takes a place in any case: the time until it is free.
    pub fn reserve(&mut self, rate: Rate, now: Instant) -> Duration {
        let each = Duration::from_secs(60) / rate.per_minute.max(1);
        self.full_at = self.full_at.max(now) + each;
        (self.full_at - now).saturating_sub(each * rate.burst.max(1))
    }
}

/// A bucket for each, of so many at most.
#[derive(Debug)]
pub struct Buckets<K> {
    buckets: HashMap<K, Bucket>,
    max: usize,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    /// Of `max` of them the one that took a place longest ago is forgotten for another one.
    #[must_use]
    pub fn new(max: usize) -> Buckets<K> {
        Buckets { buckets: HashMap::new(), max }
    }

    /// See [`Bucket::take`].
    ///
    /// # Errors
    /// None is free for so long.
    pub fn take(&mut self, of: &K, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.of(of, now).take(rate, now)
    }

    /// See [`Bucket::reserve`].
    pub fn reserve(&mut self, of: &K, rate: Rate, now: Instant) -> Duration {
        self.of(of, now).reserve(rate, now)
    }

    fn of(&mut self, of: &K, now: Instant) -> &mut Bucket {
        if self.buckets.len() >= self.max && !self.buckets.contains_key(of) {
            // A bucket that is full again says nothing.
            self.buckets.retain(|_, bucket| bucket.full_at > now);
            let first = self.buckets.iter().min_by_key(|(_, bucket)| bucket.full_at);
            if self.buckets.len() >= self.max
                && let Some(first) = first.map(|(key, _)| key.clone())
            {
                self.buckets.remove(&first);
            }
        }
        self.buckets.entry(of.clone()).or_insert_with(|| Bucket::new(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_reserved_is_free_after_those_before_it() {
        let (rate, now) = (Rate { burst: 2, per_minute: 60 }, Instant::now());
        let mut bucket = Bucket::new(now);
        let waits: Vec<u64> = (0..4).map(|_| bucket.reserve(rate, now).as_secs()).collect();
        assert_eq!(waits, [0, 0, 1, 2]);
        let later = now + Duration::from_secs(10);
        assert_eq!(bucket.reserve(rate, later), Duration::ZERO);
    }

    #[test]
    fn a_burst_is_taken_at_once_and_then_one_after_the_other() {
        let (rate, now) = (Rate { burst: 5, per_minute: 60 }, Instant::now());
        let mut buckets = Buckets::new(2);
        for _ in 0..5 {
            assert_eq!(buckets.take(&"a", rate, now), Ok(()));
        }
        assert_eq!(buckets.take(&"a", rate, now), Err(Duration::from_secs(1)));
        assert_eq!(buckets.take(&"b", rate, now), Ok(()), "each has its own");
        assert_eq!(buckets.take(&"a", rate, now + Duration::from_secs(1)), Ok(()));
        let later = now + Duration::from_secs(60);
        assert_eq!(buckets.take(&"c", rate, later), Ok(()));
        assert!(buckets.buckets.len() <= 2);
    }
}
