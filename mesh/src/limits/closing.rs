//! Bounds of rooms that were closed.

/// Rooms that one key closes, up to which its clients are not refused: as many as a node with limits lets it make, and ten times
/// that. Each is in memory at every node that has the room's place, with some 200 bytes.
pub const CLOSED_RECORDS_PER_KEY_MAX: usize = 4_500;
/// The same of all keys that one node minted: 3.6 MiB of memory.
pub const CLOSED_RECORDS_PER_NODE_MAX: usize = 18_000;
