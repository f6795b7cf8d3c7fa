//! Every bound of the bridge, with its reason. What a client can grow is bounded here; what it may
//! say is bounded by [`protocol::limits`], what the mesh keeps by [`mesh::limits`].

use std::time::Duration;

/// Connections of all transports together. Some 12 KiB each when idle, so 240 MiB when full.
pub const CONNECTIONS_MAX: usize = 20_000;

/// Message and event frames that wait for one reader. Enough for a burst of a busy room; what does
/// not fit is read again from the delivery log.
pub const QUEUE_FRAMES_MAX: usize = 1_024;
/// Bytes of these. A thousand slow readers hold 256 MiB at most, shared frames counted each time.
pub const QUEUE_BYTES_MAX: usize = 256 * 1024;
/// Events without a number (turn, typing, presence, rooms, mentions) that wait behind a full queue;
/// past this the oldest is dropped: of such events the newest is the one that counts.
pub const SPILL_FRAMES_MAX: usize = 256;
/// Bytes of these.
pub const SPILL_BYTES_MAX: usize = 128 * 1024;
/// Frames that leave in one write: a socket buffer's worth.
pub const WRITE_BYTES: usize = 64 * 1024;
/// Writes after which a room that lags is served although the queue is never empty.
pub const WRITES_PER_CATCH_UP: u32 = 8;

/// Rows of one page of a catch-up: amortises the read, and is not felt by others.
pub const CATCH_UP_ROWS_MAX: usize = 128;
/// Rows of the first page; later ones follow the size of what was read.
pub const CATCH_UP_ROWS_FIRST: usize = 16;
/// What a page of a catch-up should come to in bytes.
pub const CATCH_UP_BYTES: usize = 128 * 1024;
/// Pages that are read at once, over all connections: bounds the memory that pages take.
pub const READS_AT_ONCE: usize = 8;

/// Calls of one connection without an answer; more are not read from the socket until one ends.
pub const CALLS_IN_FLIGHT_MAX: usize = 64;
/// Contents these may hold together.
pub const CALL_BYTES_MAX: usize = 1024 * 1024;
/// Replies that a client has not taken yet; past this nothing more is read from it.
pub const REPLY_BYTES_MAX: usize = 256 * 1024;

/// Messages in one page of history.
pub const HISTORY_ROWS_MAX: usize = 1_000;
/// Missed messages that are replayed to an agent that comes back (spec §2).
pub const MISSED_MAX: usize = 200;
/// How often a page that waits for a number to be passed is read again, and the pause between: 5 s,
/// in which the era's numbers come in or its sequencer is replaced. Then it is given as it is.
pub const LATER_TRIES_MAX: u8 = 50;
/// See [`LATER_TRIES_MAX`].
pub const LATER_RETRY: Duration = Duration::from_millis(100);
/// Messages that the HTTP history shows (spec §8).
pub const HTTP_HISTORY_ROWS: usize = 100;

/// Content of one message under the node's own key (spec §8).
pub const KEY_CONTENT_BYTES_MAX: usize = 65_536;
/// What a message's body needs besides its texts.
pub const BODY_OVERHEAD_BYTES: usize = 1_024;
/// The id of the message that a message answers.
pub const REPLY_TO_BYTES_MAX: usize = 128;
/// One capability.
pub const CAPABILITY_BYTES_MAX: usize = 256;
/// A key. Longer ones are not hashed before they are refused.
pub const KEY_BYTES_MAX: usize = 1_024;

/// What a connection's read buffer begins with, and shrinks to.
pub const READ_BYTES_MIN: usize = 1_024;
/// A larger read buffer is given back when it is empty.
pub const READ_BYTES_KEPT: usize = 8 * 1_024;

/// Registered within this (spec §1).
pub const REGISTER_WITHIN: Duration = Duration::from_secs(10);
/// Between two heartbeats (spec §1).
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// Without a byte for this long a connection is closed (spec §1).
pub const SILENT_FOR_MAX: Duration = Duration::from_secs(90);
/// What is queued when a connection ends may take this long to leave.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// A detach that the mesh had no room for is repeated after this.
pub const DETACH_RETRY: Duration = Duration::from_millis(100);
/// And this often at most: by then the node is not coming back.
pub const DETACH_TRIES_MAX: usize = 100;
/// A listener that cannot accept (no file descriptors left) tries again after this.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// An HTTP connection that sends nothing for this long is closed. WebSockets have a shorter limit
/// of their own, which knows when the silence is ours.
pub const HTTP_SILENT_FOR_MAX: Duration = Duration::from_secs(600);
/// What a WebSocket reads at once.
pub const WEBSOCKET_READ_BYTES: usize = 4 * 1_024;

/// A line of a client that has not registered. Who has shown no key is not to fill the memory: a
/// `register` with all it may carry fits, and 20,000 connections of strangers hold 1.3 GB at worst.
pub const STRANGER_LINE_BYTES_MAX: usize = 64 * 1024;
