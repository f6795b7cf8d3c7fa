//! How fast clients are heard. Their frames are heard later, none is refused: so frames without end cost others nothing.
//!
//! A dialect says in its [`Manners`](crate::dialect::Manners) at which [`Pace`] its clients are heard. Keys and strangers are counted over all
//! dialects: to the node it is one crowd.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use mesh::name::id::KeyPrint;

use super::rates::{Bucket, Buckets, Rate};
use crate::limits::{KEYS_PACED_MAX, PACE_OF_STRANGERS, STRANGER_FRAMES_UNCOUNTED};

/// The pace at which clients of a dialect are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Frames of one connection whose client has shown a key.
    pub own: Rate,
    /// Of all connections of one key.
    pub of_key: Rate,
    /// Of a connection that has shown none. All of these together have
    /// [`PACE_OF_STRANGERS`], too.
    pub of_stranger: Rate,
}

/// How much was heard of all clients.
#[derive(Debug)]
pub(crate) struct Paces {
    keys: Mutex<Buckets<KeyPrint>>,
    /// Of those who have shown no key, and say more than one needs to.
    strangers: Mutex<Bucket>,
}

/// How much was heard of one connection.
#[derive(Debug)]
pub struct Paced {
    all: Arc<Paces>,
    own: Bucket,
    /// Frames from before it had shown a key.
    strange: u32,
}

impl Paces {
    pub(crate) fn new(now: Instant) -> Paces {
        Paces {
            keys: Mutex::new(Buckets::new(KEYS_PACED_MAX)),
            strangers: Mutex::new(Bucket::new(now)),
        }
    }
}

impl Paced {
    pub(crate) fn new(all: Arc<Paces>, now: Instant) -> Paced {
        Paced { all, own: Bucket::new(now), strange: 0 }
    }

    /// Counts a frame. `key`: the one that the client has shown. The time until its next frame is heard.
    pub fn wait(&mut self, pace: Pace, key: Option<KeyPrint>, now: Instant) -> Duration {
        let Some(key) = key else { return self.wait_of_stranger(pace, now) };
        let mut keys = self.all.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.own.reserve(pace.own, now).max(keys.reserve(&key, pace.of_key, now))
    }

    fn wait_of_stranger(&mut self, pace: Pace, now: Instant) -> Duration {
        let own = self.own.reserve(pace.of_stranger, now);
        self.strange = self.strange.saturating_add(1);
        if self.strange <= STRANGER_FRAMES_UNCOUNTED {
            return own;
        }
        let mut strangers = self.all.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        own.max(strangers.reserve(PACE_OF_STRANGERS, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: Pace = Pace {
        own: Rate { burst: 64, per_minute: 250 * 60 },
        of_key: Rate { burst: 128, per_minute: 500 * 60 },
        of_stranger: Rate { burst: 8, per_minute: 10 * 60 },
    };

    /// Frames that are heard within a time, of connections that send one as soon as the one before was heard.
    fn heard(connections: usize, key: Option<KeyPrint>, within: Duration) -> u32 {
        let now = Instant::now();
        let all = Arc::new(Paces::new(now));
        let mut open: Vec<(Paced, Instant)> =
            (0..connections).map(|_| (Paced::new(all.clone(), now), now)).collect();
        let mut frames = 0;
        while let Some((paced, next)) =
            open.iter_mut().filter(|(_, next)| *next < now + within).min_by_key(|(_, next)| *next)
        {
            *next += paced.wait(PACE, key, *next);
            frames += 1;
        }
        frames
    }

    #[test]
    fn all_connections_of_a_key_are_heard_as_often_as_one_key_may() {
        let key = Some(KeyPrint([1; 16]));
        let most = PACE.of_key.burst + PACE.of_key.per_minute / 60 * 10;
        let some = heard(64, key, SECOND * 10);
        // A frame is heard before its connection waits.
        assert!(some > most / 2 && some <= most + 64, "{some} of {most}");
        let alone = heard(1, key, SECOND * 10);
        assert!(alone <= PACE.own.burst + PACE.own.per_minute / 60 * 10 + 1, "{alone}");
    }

    #[test]
    fn strangers_that_say_much_share_one_pace_and_those_that_say_little_do_not_wait_for_them() {
        let most = PACE_OF_STRANGERS.burst + PACE_OF_STRANGERS.per_minute / 60 * 10;
        let some = heard(1_000, None, SECOND * 10);
        let uncounted = 1_000 * STRANGER_FRAMES_UNCOUNTED;
        assert!(some <= uncounted + most + 1_000, "{some}");

        let now = Instant::now();
        let all = Arc::new(Paces::new(now));
        let mut many: Vec<Paced> = (0..1_000).map(|_| Paced::new(all.clone(), now)).collect();
        for paced in &mut many {
            for _ in 0..=STRANGER_FRAMES_UNCOUNTED {
                paced.wait(PACE, None, now);
            }
        }
        let mut other = Paced::new(all, now);
        for _ in 0..STRANGER_FRAMES_UNCOUNTED {
            assert_eq!(other.wait(PACE, None, now), Duration::ZERO, "it connects at once");
        }
        assert!(other.wait(PACE, None, now) > SECOND);
    }

    #[test]
    fn a_program_that_asks_some_things_at_once_is_heard_at_once() {
        let now = Instant::now();
        let mut paced = Paced::new(Arc::new(Paces::new(now)), now);
        let key = Some(KeyPrint([1; 16]));
        assert!((0..64).all(|_| paced.wait(PACE, key, now).is_zero()));
        assert!(!paced.wait(PACE, key, now).is_zero());
    }
}
