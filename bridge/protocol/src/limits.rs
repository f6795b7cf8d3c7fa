//! Every bound of the dialect, with its reason.

/// Longest line of a client in bytes, newline included. A longer one closes the connection (§1).
pub const LINE_BYTES_MAX: usize = 1_048_576;

/// Deepest nesting of objects and arrays in metadata. `serde_json` readers stop at 128 levels and a
/// history page wraps metadata in five; with 100 nobody's metadata can make a page unreadable.
pub const METADATA_DEPTH_MAX: usize = 100;

/// Longest dedup id in bytes. Nodes remember these for minutes, so they must stay small.
pub const DEDUP_BYTES_MAX: usize = 128;

/// The longest wait of a send for copies of its message, in milliseconds: less than clients wait for a reply.
pub const DURABLE_WAIT_MS_MAX: u64 = 20_000;

/// How much of an unknown `type` an error message repeats, in characters.
pub const ECHO_CHARS_MAX: usize = 64;

/// Events that `replay` returns when it names no limit.
pub const REPLAY_LIMIT_DEFAULT: u64 = 500;
/// Messages that `get_history` returns when it names no limit (§3).
pub const HISTORY_LIMIT_DEFAULT: u64 = 50;

/// Messages that `search` returns when it names no limit.
pub const SEARCH_LIMIT_DEFAULT: u64 = 20;

/// Votes that `list_votes` returns when it names no limit (§3).
pub const VOTES_LIMIT_DEFAULT: u64 = 20;

/// The one protocol version there is; a `register` without one means it.
pub const PROTOCOL_VERSION: u64 = 1;
