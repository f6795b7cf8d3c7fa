//! The mesh that is played.

use std::time::Duration;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Nodes of the mesh.
    pub nodes: usize,
    /// How long it is idle, and how long there is talk, in virtual time.
    pub lasts: Duration,
    /// How long it may take to find itself, in virtual time.
    pub settles: Duration,
    /// Decides links, latencies, and speakers.
    pub seed: u64,
}
