//! The node's two clocks. The core is told what time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mesh::name::time::Now;

/// Time since it was made, and of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Now {
        let wall = wall();
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        Now { mono: self.start.elapsed(), wall_ms: millis(wall), wall_us }
    }
}

/// The time of day. Unix milliseconds.
pub(crate) fn wall_ms() -> u64 {
    millis(wall())
}

fn millis(wall: Duration) -> u64 {
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}

/// A clock before 1970 is wrong, and so is 1970.
fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}
