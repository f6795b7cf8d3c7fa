//! Large meshes: real engines, as many as one machine holds, in virtual time, to count what a mesh costs.
//!
//! [`measure`] builds one mesh, lets it find itself, be idle, and talk, and counts. In reading order:
//! `setting`, `slot` (virtual time), `spoken` (a message on its way), `overlay` (links), `node` (an engine and its
//! inbox), `world` (events), `tally` (counts), `play` (from start to talk), `report` (results). `records` is a measurement by itself.
//!
//! Unlike [`crate::sim`] nothing fails here and no promise is judged but that messages come, once and
//! everywhere. The network is modelled after `node/net/src/behaviour.rs`: flood publishing, a gossip
//! mesh of degree 3, deduplication by content. Not modelled: gossipsub's own control messages, the bytes that noise,
//! yamux and TCP add, bandwidth, announcements of addresses, the time that a processor takes. There are no disks:
//! a commit takes a fixed time, and questions of peers to a node's store are answered from runs that are kept once
//! for all nodes, because a run is the same at every node that has it. So a thousand nodes fit one machine.

mod node;
mod overlay;
mod play;
pub mod records;
mod report;
mod setting;
mod slot;
mod spoken;
mod tally;
#[cfg(test)]
mod tests;
mod world;

pub use self::{
    play::measure,
    report::{Report, Size},
    setting::Setting,
};
