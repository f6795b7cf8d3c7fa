//! The meaning of a connection's calls, without I/O: calls and answers in, steps out.
//!
//! A [`seat::Seat`] stands for a connection towards its dialect. It attaches the agent and brings back missed
//! events (`attach`), checks calls and puts them to the mesh (`ask`), and pages through history
//! for clients that may come from any node (`history`). Reads are decided here and done by the
//! connection (`job`, `reading`); answers wait in its `inbox`. `meter` counts the messages of a key.

pub mod ask;
mod attach;
mod history;
pub(crate) mod inbox;
pub(crate) mod job;
pub(crate) mod meter;
pub(crate) mod reading;
pub mod seat;
