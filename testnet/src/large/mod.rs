//! Large meshes: real engines, as many as one machine holds, in virtual time, to count what a mesh costs.
//!
//! [`measure`] builds one mesh, lets it find itself, be idle, and talk, and counts. In reading order:
//! `overlay` (who is linked with whom), `spoken` (what travels), `node` (an engine and what waits for it),
//! `world` (what happens when), `tally` (what is counted), [`report`] (what it came to).
//!
//! Unlike [`crate::sim`] nothing fails here and no promise is judged but that messages come, once and
//! everywhere. What the network does is modelled after `node/net/src/behaviour.rs`: flood publishing, a gossip
//! mesh of degree 3, deduplication by content. Not modelled: gossipsub's own control messages, what noise, yamux
//! and TCP add, bandwidth, announcements of addresses, the time that a processor takes. There are no disks:
//! a commit takes a fixed time, and what peers ask of a node's store is answered from runs that are kept once
//! for all nodes, because a run is the same at every node that has it. So a thousand nodes fit one machine.

mod node;
mod overlay;
mod play;
pub mod report;
mod spoken;
mod tally;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

use anyhow::Result;
pub use report::{Report, Size};

/// What is played.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Nodes of the mesh.
    pub nodes: usize,
    /// How long it is idle, and how long there is talk, in virtual time.
    pub lasts: Duration,
    /// How long it may take to find itself, in virtual time.
    pub settles: Duration,
    /// Decides links, latencies, and who speaks.
    pub seed: u64,
}

/// Plays a mesh and counts.
///
/// # Errors
///
/// Something that cannot be played: too few nodes, or memory of this process cannot be read.
pub fn measure(setting: &Setting, tell: &mut dyn FnMut(&str)) -> Result<Size> {
    play::play(setting, tell)
}
