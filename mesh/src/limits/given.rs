//! Bounds of tasks that one agent gives to another.

use std::time::Duration;

/// By default the room of a task is closed so long after its end, if it is kept.
pub const ARCHIVE_AFTER: Duration = Duration::from_secs(3_600);
/// The capability by which an agent was chosen for a task.
pub const TASK_CAPABILITY_BYTES_MAX: usize = 1024;
/// Tasks whose time is up, or whose rooms are closed, at one tick: each writes to the disk.
pub const GIVEN_TASKS_AT_ONCE: usize = 64;
