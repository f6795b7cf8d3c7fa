//! Every bound of the client, with its reason.

/// Longest frame that is read, in bytes. A history page has up to 500 messages of up to 256 KiB;
/// a longer frame is no page and must not fill the memory.
pub const FRAME_READ_BYTES_MAX: usize = 160 * 1024 * 1024;

/// Events kept for a reader that is busy. A page holds 500 messages: two pages' worth of bursts.
pub const EVENTS_QUEUED_MAX: usize = 1024;

/// Bytes of events kept for a reader that is busy, as they came on the wire.
pub const EVENTS_QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Calls that wait for their turn to be written; further callers wait.
pub const ORDERS_QUEUED_MAX: usize = 64;

/// Calls written and not answered yet; further ones stay in the queue.
pub const CALLS_OPEN_MAX: usize = 1024;

/// Frames handed to the writer and not written yet. Each is at most a megabyte.
pub const FRAMES_QUEUED_MAX: usize = 16;

/// Messages that one `get_history` asks for; standard clients ask for as many.
pub const PAGE_MESSAGES: u64 = 500;

/// Messages remembered by id, so that one that another node gives under another number is not given
/// twice. After a split seldom more are numbered again; older ones may come again.
pub const IDS_REMEMBERED_MAX: usize = 16 * 1024;

/// Longest answer to a request over HTTP, in bytes: a list of a thousand files with the longest paths.
pub const HTTP_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Until a request over HTTP has its answer.
pub const HTTP_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);
