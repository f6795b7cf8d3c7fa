//! Bounds of schedules.

/// The message of a job.
pub const JOB_MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// All else that is said of a job.
pub const JOB_FACTS_BYTES_MAX: usize = 4 * 1024;
/// All that is said of a run: two texts of 512 bytes, each of whose bytes JSON may write as six, are most of it.
pub const RUN_FACTS_BYTES_MAX: usize = 7 * 1024;
/// Jobs of one key that are not deleted, up to which its clients are not refused.
pub const JOBS_PER_KEY_MAX: usize = 1_000;
/// The same, with those that were deleted: they stay deleted for ever. A job that fires once a day and is deleted then has its
/// place for 24 years.
pub const JOB_RECORDS_PER_KEY_MAX: usize = 10_000;
/// The same of all keys that one node minted: 40,000 heads are 8 MiB of memory.
pub const JOB_RECORDS_PER_NODE_MAX: usize = 40_000;
/// Runs of one job that are kept of one node: the next one takes the place of the oldest.
pub const RUNS_PER_JOB_AND_NODE: u16 = 200;
/// Runs of all jobs of one key: the oldest fall out. 4 MiB of memory at each of its nodes.
pub const RUN_RECORDS_PER_KEY_MAX: usize = 20_000;
/// The same of all keys that one node minted: 80,000 heads are 16 MiB of memory.
pub const RUN_RECORDS_PER_NODE_MAX: usize = 80_000;
