//! Bounds of agents that are stopped.

/// Agents that one key says are stopped, up to which its clients are not refused: twice as many as a node has room for. Each is in
/// memory at every node, with some 400 bytes.
pub const STOP_RECORDS_PER_KEY_MAX: usize = 1_000;
/// The same of all keys that one node minted: 1.6 MiB of memory.
pub const STOP_RECORDS_PER_NODE_MAX: usize = 4_000;
/// The name of the person who stops an agent, in bytes: as long as that of an agent.
pub const STOPPER_BYTES_MAX: usize = 128;
