//! The one order of a room: eras, numbers, sequencers, and who is alive to give them.

pub(crate) mod liveness;
pub(crate) mod numbering;
pub mod pulse;
pub(crate) mod roamers;
pub(crate) mod sequencing;
pub mod served;
