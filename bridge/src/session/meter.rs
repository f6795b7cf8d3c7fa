//! How much the agents of a key have said and done: checked and counted in one step.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use mesh::name::id::KeyPrint;

use crate::limits;

/// Seconds that a window looks back on, the present one included: a minute, and the rest of the
/// second in which it began.
const SLOTS: usize = 61;

/// Counts the messages and acts of each key at this node, over all its connections: in no 60 seconds more than
/// it may. Time is counted by the second, so a place is free again 60 to 61 s after it was taken.
#[derive(Debug)]
pub(crate) struct Meter {
    start: Instant,
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    by_key: HashMap<KeyPrint, Window>,
    /// The second in which windows without messages were last dropped.
    swept: u64,
}

/// Messages of the last minute, by second.
#[derive(Debug)]
struct Window {
    counts: [u32; SLOTS],
    /// The second that was counted last.
    newest: u64,
    total: u32,
}

impl Meter {
    pub(crate) fn new(start: Instant) -> Meter {
        Meter { start, windows: Mutex::default() }
    }

    /// Takes one message of at most `max` per minute, or refuses it and counts nothing.
    pub(crate) fn take(&self, key: KeyPrint, max: u32, now: Instant) -> bool {
        let second = now.saturating_duration_since(self.start).as_secs();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.window(key, second).is_some_and(|window| window.take(max, second))
    }

    /// How many a key has taken within the last minute.
    pub(crate) fn taken(&self, key: KeyPrint, now: Instant) -> u32 {
        let second = now.saturating_duration_since(self.start).as_secs();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(window) = windows.by_key.get_mut(&key) else { return 0 };
        window.pass(second);
        window.total
    }
}

impl Windows {
    /// `None`: so many keys have spoken within a minute that no more can be counted.
    fn window(&mut self, key: KeyPrint, second: u64) -> Option<&mut Window> {
        let full = self.by_key.len() >= limits::METERED_KEYS_MAX;
        if full && !self.by_key.contains_key(&key) {
            if self.swept == second {
                return None;
            }
            self.swept = second;
            self.by_key.retain(|_, window| window.is_live(second));
            if self.by_key.len() >= limits::METERED_KEYS_MAX {
                return None;
            }
        }
        Some(self.by_key.entry(key).or_insert_with(|| Window::new(second)))
    }
}

impl Window {
    fn new(second: u64) -> Window {
        Window { counts: [0; SLOTS], newest: second, total: 0 }
    }

    fn is_live(&self, second: u64) -> bool {
        self.total > 0 && second < self.newest + SLOTS as u64
    }

    fn take(&mut self, max: u32, second: u64) -> bool {
        let second = self.pass(second);
        if self.total >= max {
            return false;
        }
        self.total += 1;
        self.counts[slot(second)] += 1;
        true
    }

    /// Forgets what is over a minute old. Returns the present second.
    fn pass(&mut self, second: u64) -> u64 {
        // Threads may come here in another order than they read the clock in.
        let second = second.max(self.newest);
        let gone = usize::try_from(second - self.newest).unwrap_or(SLOTS).min(SLOTS);
        for later in 1..=gone as u64 {
            let slot = slot(self.newest + later);
            self.total -= std::mem::take(&mut self.counts[slot]);
        }
        self.newest = second;
        second
    }
}

fn slot(second: u64) -> usize {
    usize::try_from(second % SLOTS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: KeyPrint = KeyPrint([1; 16]);
    const B: KeyPrint = KeyPrint([2; 16]);

    #[test]
    fn no_minute_has_more_than_its_share() {
        let start = Instant::now();
        let meter = Meter::new(start);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let took = |ms: u64, times: u32| (0..times).filter(|_| meter.take(A, 10, at(ms))).count();
        assert_eq!(took(500, 4), 4);
        assert_eq!(took(30_000, 20), 6);
        assert!(meter.take(B, 10, at(30_000)), "another key has its own");
        assert_eq!(took(60_400, 1), 0, "59.9 s after the first four");
        assert_eq!(took(61_000, 9), 4, "and then their places are free");
        assert_eq!(took(0, 1), 0, "a clock that was read earlier");
        assert_eq!(took(90_999, 9), 0);
        assert_eq!(took(91_000, 9), 6);
        assert_eq!(took(10_000_000, 20), 10);
        let taken = |ms| meter.taken(A, at(ms));
        assert_eq!([10_000_100, 10_059_000, 10_061_000].map(taken), [10, 10, 0]);
        assert_eq!(meter.taken(KeyPrint([3; 16]), at(0)), 0);
    }

    #[test]
    fn any_rate_that_keeps_the_limit_passes_and_any_minute_is_bounded() {
        let start = Instant::now();
        let meter = Meter::new(start);
        let mut taken: Vec<u64> = Vec::new();
        for ms in (0..400_000).step_by(130) {
            if meter.take(A, 200, start + Duration::from_millis(ms)) {
                taken.push(ms);
            }
            let minute = taken.iter().rev().take_while(|it| ms - **it < 60_000).count();
            assert!(minute <= 200, "{minute} at {ms}");
        }
        assert!(taken.len() >= 200 * 6, "{}", taken.len());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let start = Instant::now();
        let meter = Meter::new(start);
        let key = |nth: usize| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&nth.to_be_bytes());
            KeyPrint(key)
        };
        let max = limits::METERED_KEYS_MAX;
        assert!((0..max).all(|nth| meter.take(key(nth), 1, start)));
        assert!(!meter.take(key(max), 1, start), "no more than can be counted");
        let later = start + Duration::from_secs(61);
        assert!(meter.take(key(max), 1, later));
        assert_eq!(meter.windows.lock().unwrap().by_key.len(), 1);
        assert!(meter.take(key(0), 1, later));
    }
}
