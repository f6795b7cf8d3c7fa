//! How often somebody may ask, per node.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::limits::{
    COUNTED_MAX, REGISTRATIONS_NEAR_PER_DAY, REGISTRATIONS_PER_DAY, REGISTRATIONS_PER_HOUR,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Counts of a minute, one for each that asks.
pub(crate) struct PerMinute<K> {
    most: usize,
    counts: Mutex<Counts<K>>,
}

struct Counts<K> {
    /// When the minute began.
    began: Option<Instant>,
    of: HashMap<K, usize>,
}

impl<K: Eq + Hash> PerMinute<K> {
    pub(crate) fn new(most: usize) -> PerMinute<K> {
        PerMinute { most, counts: Mutex::new(Counts { began: None, of: HashMap::new() }) }
    }

    /// Counts one, or says how many seconds to wait.
    pub(crate) fn take(&self, of: K, now: Instant) -> Result<(), u64> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let age = counts.began.map(|began| now.saturating_duration_since(began));
        if age.is_none_or(|age| age >= MINUTE) {
            counts.began = Some(now);
            counts.of.clear();
        }
        let left = MINUTE.saturating_sub(age.filter(|age| *age < MINUTE).unwrap_or_default());
        let wait = left.as_secs() + 1;
        let is_full = counts.of.len() >= COUNTED_MAX && !counts.of.contains_key(&of);
        let count = if is_full { return Err(wait) } else { counts.of.entry(of).or_default() };
        if *count >= self.most {
            return Err(wait);
        }
        *count += 1;
        Ok(())
    }
}

/// Accounts that were registered here, and from which address: checked and counted in one step.
#[derive(Default)]
pub(crate) struct Registrations(Mutex<VecDeque<(Instant, Origin)>>);

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// On this machine.
    Near,
    /// At an address, or in its network of 64 bits: one client can have many addresses of those.
    Far(IpAddr),
}

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Origin {
        match address.to_canonical() {
            address if address.is_loopback() => Origin::Near,
            IpAddr::V4(address) => Origin::Far(address.into()),
            IpAddr::V6(address) => {
                Origin::Far(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
        }
    }
}

impl Registrations {
    /// Counts one, or says how many seconds to wait.
    pub(crate) fn take(&self, origin: Origin, now: Instant) -> Result<(), u64> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: Instant| now.saturating_duration_since(at);
        while made.front().is_some_and(|(at, _)| age(*at) >= DAY) {
            made.pop_front();
        }
        let is_near = origin == Origin::Near;
        let most = if is_near { REGISTRATIONS_NEAR_PER_DAY } else { REGISTRATIONS_PER_DAY };
        let alike = made.iter().filter(|(_, of)| (*of == Origin::Near) == is_near);
        if let Some(wait) = wait(alike.map(|(at, _)| age(*at)), most, DAY) {
            return Err(wait);
        }
        let recent = made.iter().filter(|(at, of)| *of == origin && age(*at) < HOUR);
        let often = wait(recent.map(|(at, _)| age(*at)), REGISTRATIONS_PER_HOUR, HOUR);
        if let Some(wait) = often.filter(|_| !is_near) {
            return Err(wait);
        }
        made.push_back((now, origin));
        Ok(())
    }
}

/// The seconds until the first of them is so old, if there are as many as there may be. Ages, the oldest first.
fn wait(ages: impl Iterator<Item = Duration>, most: usize, span: Duration) -> Option<u64> {
    let ages: Vec<Duration> = ages.collect();
    let first = ages.first().filter(|_| ages.len() >= most)?;
    Some(span.saturating_sub(*first).as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_minute() {
        let rate = PerMinute::new(2);
        let start = Instant::now();
        assert_eq!([rate.take(1, start), rate.take(1, start)], [Ok(()), Ok(())]);
        assert_eq!(rate.take(1, start + Duration::from_secs(20)), Err(41));
        assert_eq!(rate.take(2, start), Ok(()));
        assert_eq!(rate.take(1, start + MINUTE), Ok(()));
    }

    #[test]
    fn registrations_are_counted_by_address_and_in_all() {
        let made = Registrations::default();
        let start = Instant::now();
        let far = |nth: usize| Origin::of(IpAddr::from(u32::try_from(nth).unwrap().to_be_bytes()));
        for _ in 0..REGISTRATIONS_PER_HOUR {
            assert_eq!(made.take(far(1), start), Ok(()));
        }
        assert_eq!(made.take(far(1), start), Err(3_601));
        assert_eq!(made.take(far(1), start + HOUR), Ok(()));
        for _ in 0..REGISTRATIONS_NEAR_PER_DAY {
            assert_eq!(made.take(Origin::Near, start + HOUR), Ok(()));
        }
        assert!(made.take(Origin::Near, start + HOUR).is_err());
        for nth in REGISTRATIONS_PER_HOUR + 1..REGISTRATIONS_PER_DAY {
            assert_eq!(made.take(far(nth + 2), start + HOUR), Ok(()));
        }
        assert!(made.take(far(9_999_999), start + HOUR).is_err());
        assert_eq!(made.take(far(9_999_999), start + DAY + HOUR), Ok(()));
    }
}
