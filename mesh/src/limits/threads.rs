//! Bounds of the facts of threads.

/// The name of a thread.
pub const THREAD_NAME_BYTES_MAX: usize = 256;
/// The name of a fact.
pub const THREAD_FACT_NAME_BYTES_MAX: usize = 32;
/// Its value, as JSON: with its names it fits into a record.
pub const THREAD_FACT_BYTES_MAX: usize = 7_168;
/// Facts that one change has.
pub const THREAD_FACTS_AT_ONCE_MAX: usize = 8;
/// Facts of one key, deletions included, up to which its clients are not refused: some of a thousand conversations. A set keeps
/// ten ninths of this, and so of a key that others sign for 40 MiB at most, at the nodes that have its rooms.
pub const THREAD_RECORDS_PER_KEY_MAX: usize = 5_000;
/// The same of all keys that one node minted.
pub const THREAD_RECORDS_PER_NODE_MAX: usize = 20_000;
