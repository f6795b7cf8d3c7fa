//! Bounds of what people are shown of agents that wait.

/// Requests without an answer of which a node remembers that it has seen them, of all nodes' agents: some 200 bytes each, so
/// 800 KiB.
pub const REQUESTS_SEEN_MAX: usize = 4_096;
/// The same of one agent: the newest. More than any budget of an agent that waits for answers.
pub const REQUESTS_SEEN_PER_AGENT_MAX: usize = 64;
/// Agents that one request names, as it is remembered and shown.
pub const WAIT_NAMED_MAX: usize = 16;
/// Waits in one answer: more cannot be looked through.
pub const WAITS_LISTED_MAX: usize = 200;
/// Digests of its own that a node compares beacons with: those of the last seconds.
pub const DIGESTS_KEPT: usize = 32;
