//! This node's copy of a room's logs: heads, runs that wait, comparison with peers.

pub(crate) mod log;
pub(crate) mod pending;
pub(crate) mod sync;
