//! Keys that are made for strangers, counted by address.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::limits;

/// The time over which an address is counted.
const HOUR: Duration = Duration::from_secs(3_600);
/// And all addresses together.
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Keys made for strangers, and for whom, within a day: checked and counted in one step.
#[derive(Debug, Default)]
pub(crate) struct Signups(Mutex<VecDeque<(Instant, IpAddr)>>);

impl Signups {
    /// Takes one, or says how long to wait.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: Instant| now.saturating_duration_since(at);
        while made.front().is_some_and(|(at, _)| age(*at) >= DAY) {
            made.pop_front();
        }
        if let Some((first, _)) = made.front().filter(|_| made.len() >= limits::SIGNUPS_PER_DAY_MAX)
        {
            return Err(DAY.saturating_sub(age(*first)));
        }
        let recent = || made.iter().filter(|(at, of)| *of == address && age(*at) < HOUR);
        if let Some((first, _)) =
            recent().next().filter(|_| recent().count() >= limits::SIGNUPS_PER_HOUR_MAX)
        {
            return Err(HOUR.saturating_sub(age(*first)));
        }
        made.push_back((now, address));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(nth: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(nth).unwrap()))
    }

    #[test]
    fn an_address_has_ten_keys_in_any_hour() {
        let signups = Signups::default();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_secs(60 * minutes);
        for minute in 0..10 {
            assert_eq!(signups.take(address(1), at(minute)), Ok(()));
        }
        assert_eq!(signups.take(address(1), at(59)), Err(Duration::from_secs(60)));
        assert_eq!(signups.take(address(2), at(59)), Ok(()));
        assert_eq!(signups.take(address(1), at(60)), Ok(()));
        assert!(signups.take(address(1), at(60)).is_err());
    }

    #[test]
    fn all_addresses_together_have_so_many_in_any_day_and_no_more_are_remembered() {
        let signups = Signups::default();
        let start = Instant::now();
        let max = limits::SIGNUPS_PER_DAY_MAX;
        for nth in 0..max {
            assert_eq!(signups.take(address(nth), start), Ok(()));
        }
        assert_eq!(signups.take(address(max), start + HOUR), Err(DAY - HOUR));
        assert_eq!(signups.take(address(max), start + DAY), Ok(()));
        assert_eq!(signups.0.lock().unwrap().len(), 1);
    }
}
