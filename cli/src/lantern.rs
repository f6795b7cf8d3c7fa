//! The LANTERN messages of a room, read as a whole.
//!
//! Pure logic: no connection, no clock, no file. A [`journal`] takes the messages of a room in any order, once each, and tells its
//! [`thread`]s, sparks, shared state and [`calibration`]. Envelopes are the package `lantern`'s. The specification is docs/lantern.md.
//!
//! Its contract: no content of a message makes it panic, and its memory is bounded
//! ([`crate::limits`]). From the same messages every node of a mesh tells the same, under all numbers
//! that they may have there.

pub mod calibration;
pub mod journal;
pub mod numbers;
pub mod record;
pub mod thread;

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod samples;
