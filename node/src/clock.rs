//! The node's two clocks. Read by the driver alone: the core is told what time it is.

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
        // A clock before 1970 is wrong, and so is 1970.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        Now { mono: self.start.elapsed(), wall_ms, wall_us }
    }
}
