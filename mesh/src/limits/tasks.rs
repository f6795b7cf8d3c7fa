//! Bounds of tasks beside those of their title and notes, which all dialects have.

/// The description of a task: more than that of a room, for it says what is to be done.
pub const TASK_DESCRIPTION_BYTES_MAX: usize = 10_000;
/// The highest priority of a task.
pub const TASK_PRIORITY_MAX: u8 = 3;
/// Words that a task is found by.
pub const TASK_LABELS_MAX: usize = 20;
/// One of these.
pub const TASK_LABEL_BYTES_MAX: usize = 50;
/// The step that a task is at.
pub const TASK_STEP_BYTES_MAX: usize = 256;
/// The result of a task, a JSON text: a report, and no file.
pub const TASK_RESULT_BYTES_MAX: usize = 32 * 1024;
/// Lists of lines that a task is made with: requirements, and those of its acceptance.
pub const TASK_LINES_MAX: usize = 50;
/// One line of these.
pub const TASK_LINE_BYTES_MAX: usize = 500;
/// The context that a task is made with, a JSON text.
pub const TASK_CONTEXT_BYTES_MAX: usize = 8 * 1024;
/// Single words that a task is made with: its kind, and the effort.
pub const TASK_WORD_BYTES_MAX: usize = 64;
/// The four names of a task's origin together: one may be a session's, of 256 bytes.
pub const TASK_ORIGIN_BYTES_MAX: usize = 512;
/// Tasks that a task waits for.
pub const TASK_BLOCKED_BY_MAX: usize = 20;
/// Comments of one task that are remembered, the newest: older ones are in the log only.
pub const TASK_COMMENTS_MAX: usize = 200;
/// Memory of these.
pub const TASK_COMMENTS_BYTES_MAX: usize = 64 * 1024;
/// Replaced updates of one task that are remembered, in case their replacement is in a forked log.
pub const TASK_WRITES_KEPT: usize = 16;
/// Memory of these: of long notes the newest few.
pub const TASK_REPLACED_BYTES_MAX: usize = 8 * 1024;
