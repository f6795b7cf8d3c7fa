//! States that follow from a room's acts: the same at every node that has the same logs.

pub(crate) mod elections;
pub(crate) mod tasks;
pub(crate) mod votes;
