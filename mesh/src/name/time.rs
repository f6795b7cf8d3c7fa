//! The time an input happened at. The core reads no clock: its driver says what time it is.

use std::time::Duration;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic, since an arbitrary point. All waiting is measured with it.
    pub mono: Duration,
    /// Unix milliseconds. For people.
    pub wall_ms: u64,
    /// The same in microseconds: for the order in which members joined at different nodes.
    pub wall_us: u64,
}

/// Whole milliseconds.
#[must_use]
pub fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
