//! The protocol `clawfinder/1` between two agents, without I/O: which step may follow which, and how messages are written
//! and read.
//!
//! The state of a session follows from the subjects of its mail alone, for most nodes cannot read the rest: so all agree.
//! What is inside a message is judged, shown, and never changes the state.
//!
//! In reading order: [`steps`] (states, and the fold), [`subject`], [`fields`] (what each message has), [`reading`],
//! [`writing`], [`attachments`].

pub(crate) mod attachments;
pub(crate) mod fields;
pub(crate) mod reading;
pub(crate) mod steps;
pub(crate) mod subject;
#[cfg(test)]
mod tests;
pub(crate) mod writing;
