//! How fast a client is heard. Its frames are heard later, none is refused: so frames without end cost others nothing.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use mesh::name::id::KeyPrint;

use crate::{
    limits::{
        KEYS_PACED_MAX, PACE, PACE_OF_KEY, PACE_OF_STRANGER, PACE_OF_STRANGERS,
        STRANGER_FRAMES_UNCOUNTED,
    },
    rates::{Bucket, Buckets},
};

/// Of one connection.
#[derive(Debug)]
pub(crate) struct Pace {
    own: Bucket,
    /// Frames from before it was connected.
    strange: u32,
}

/// Of all of them.
#[derive(Debug)]
pub(crate) struct Paces {
    keys: Mutex<Buckets<KeyPrint>>,
    /// Of those who are not connected, and say more than one needs to be.
    strangers: Mutex<Bucket>,
}

impl Paces {
    pub(crate) fn new(now: Instant) -> Paces {
        Paces {
            keys: Mutex::new(Buckets::new(KEYS_PACED_MAX)),
            strangers: Mutex::new(Bucket::new(now)),
        }
    }
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Pace {
        Pace { own: Bucket::new(now), strange: 0 }
    }

    /// Counts a frame. `key`: whose connection it is, once it is connected. The time until its next one is heard.
    pub(crate) fn wait(&mut self, all: &Paces, key: Option<KeyPrint>, now: Instant) -> Duration {
        let Some(key) = key else { return self.wait_of_stranger(all, now) };
        let mut keys = all.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.own.reserve(PACE, now).max(keys.reserve(&key, PACE_OF_KEY, now))
    }

    fn wait_of_stranger(&mut self, all: &Paces, now: Instant) -> Duration {
        let own = self.own.reserve(PACE_OF_STRANGER, now);
        self.strange = self.strange.saturating_add(1);
        if self.strange <= STRANGER_FRAMES_UNCOUNTED {
            return own;
        }
        let mut strangers = all.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        own.max(strangers.reserve(PACE_OF_STRANGERS, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Frames that are heard within a time, of connections that send one as soon as the one before was heard.
    fn heard(connections: usize, key: Option<KeyPrint>, within: Duration) -> u32 {
        let now = Instant::now();
        let all = Paces::new(now);
        let mut open: Vec<(Pace, Instant)> =
            (0..connections).map(|_| (Pace::new(now), now)).collect();
        let mut frames = 0;
        while let Some((pace, next)) =
            open.iter_mut().filter(|(_, next)| *next < now + within).min_by_key(|(_, next)| *next)
        {
            *next += pace.wait(&all, key, *next);
            frames += 1;
        }
        frames
    }

    #[test]
    fn all_connections_of_a_key_are_heard_as_often_as_one_key_may() {
        let key = Some(KeyPrint([1; 16]));
        let most = PACE_OF_KEY.burst + PACE_OF_KEY.per_minute / 60 * 10;
        let some = heard(64, key, SECOND * 10);
        // A frame is heard before its connection waits.
        assert!(some > most / 2 && some <= most + 64, "{some} of {most}");
        let alone = heard(1, key, SECOND * 10);
        assert!(alone <= PACE.burst + PACE.per_minute / 60 * 10 + 1, "{alone}");
    }

    #[test]
    fn strangers_that_say_much_share_one_pace_and_those_that_say_little_do_not_wait_for_them() {
        let most = PACE_OF_STRANGERS.burst + PACE_OF_STRANGERS.per_minute / 60 * 10;
        let some = heard(1_000, None, SECOND * 10);
        let uncounted = 1_000 * STRANGER_FRAMES_UNCOUNTED;
        assert!(some <= uncounted + most + 1_000, "{some}");

        let now = Instant::now();
        let all = Paces::new(now);
        let mut many: Vec<Pace> = (0..1_000).map(|_| Pace::new(now)).collect();
        for pace in &mut many {
            for _ in 0..=STRANGER_FRAMES_UNCOUNTED {
                pace.wait(&all, None, now);
            }
        }
        let mut other = Pace::new(now);
        for _ in 0..STRANGER_FRAMES_UNCOUNTED {
            assert_eq!(other.wait(&all, None, now), Duration::ZERO, "it connects at once");
        }
        assert!(other.wait(&all, None, now) > SECOND);
    }

    #[test]
    fn a_program_that_asks_some_things_at_once_is_heard_at_once() {
        let now = Instant::now();
        let all = Paces::new(now);
        let mut pace = Pace::new(now);
        let key = Some(KeyPrint([1; 16]));
        assert!((0..64).all(|_| pace.wait(&all, key, now).is_zero()));
        assert!(!pace.wait(&all, key, now).is_zero());
    }
}
