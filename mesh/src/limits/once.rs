//! Bounds of things that wait for the sequencer of their room: claims of tasks, and things that at most one agent does.

use std::time::Duration;

/// A subject: a name, a path, or two ids.
pub const ONCE_SUBJECT_BYTES_MAX: usize = 128;
/// The shortest lease. Its renewals are entries of the room's log: four a second at this length.
pub const ONCE_LEASE_MIN: Duration = Duration::from_secs(1);
/// The longest lease: who needs more asks without one.
pub const ONCE_LEASE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Grants of a room that are not over: some 3 MiB. The sequencer grants no more.
pub const ONCE_LIVE_PER_ROOM_MAX: usize = 10_000;
/// Grants of a room that are remembered, those that are over included: as many again for each side of a split, and for those
/// whose end is in a log that may fork. Those that are over go first.
pub const ONCE_KEPT_PER_ROOM_MAX: usize = 4 * ONCE_LIVE_PER_ROOM_MAX;
/// Claims of tasks in one room that wait for its sequencer.
pub const CLAIMS_OPEN_MAX: usize = 4_096;
/// Asks of a room that wait for its sequencer.
pub const ONCE_ASKS_OPEN_MAX: usize = 4_096;
/// Grants that one answer replaces: each side of a split had one, and then some.
pub const ONCE_OVER_MAX: usize = 64;
/// A grant is forgotten so long after it was given: 10,000 of them last for a room that asks 330 times a day.
pub const ONCE_KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long a grant's client waits for another node to hold the grant. Longer than an exchange over a slow link, and short
/// for one that waits for work.
pub const ONCE_DURABLE_WITHIN: Duration = Duration::from_secs(1);
