//! Bounds of streams: pieces of answers that are being written (`docs/decisions/streams.md`).

use std::time::Duration;

/// Pieces of one agent in a second: more than a model writes words, and a client that shows them redraws no faster.
pub const PIECES_PER_SECOND: u32 = 100;
/// And their bytes: a hundred times as much as a model writes.
pub const PIECE_BYTES_PER_SECOND: usize = 64 * 1024;
/// Content, tool, input and result of one piece together: the result of a tool may have some pages, and four such are a second's.
pub const PIECE_BYTES_MAX: usize = 16 * 1024;
/// An encoded piece, sealed or not: its contents, its names and their frame.
pub const PIECE_BODY_BYTES_MAX: usize = PIECE_BYTES_MAX + 2 * 1024;
/// The name that an agent gives a stream.
pub const STREAM_ID_BYTES_MAX: usize = 128;
/// The name of a tool.
pub const TOOL_NAME_BYTES_MAX: usize = 256;
/// How many times as much a node takes from another one as an agent may write: pieces that were held up come together.
pub const PIECES_HEARD_FACTOR: u32 = 4;
/// Agents of one other node whose pieces are taken in one second: a node that makes up agents gets no more by it.
pub const STREAMING_AGENTS_PER_NODE_MAX: usize = 64;
/// Rooms in whose streams a node says that somebody there is interested; and as many are remembered of each peer.
pub const AWAITED_ROOMS_MAX: usize = 1_024;
/// For how long that counts: nobody has to say that it is over.
pub const AWAITED_FOR: Duration = Duration::from_secs(30);
/// So often it is said anew.
pub const AWAITED_TOLD_EVERY: Duration = Duration::from_secs(10);
/// So long after somebody began to wait, nodes that only now have the room are told at the next tick.
pub const AWAITED_FRESH_FOR: Duration = Duration::from_secs(10);
