//! The meaning of calls, without I/O: calls and answers in, steps out.
//!
//! A [`seat::Seat`] stands for a connection towards its dialect, or for a visitor of the desk. It attaches the agent and
//! brings back missed events (`attach`), has calls judged (`rules`; `policy`: by what the operator lets agents send) and puts them to the mesh (`ask`) for the `party` that
//! asks, pages through history for clients that may come from any node (`history`), finds out the fate of a message
//! (`receipts`) and which request a message answers (`conversing`), and reads inboxes of agents that come and ask (`mail`), and searches (`search`). Reads are decided here and done
//! by the connection (`job`, `reading`); answers wait in its `inbox`. `meter` counts the messages of a key,
//! and `pace` how fast its clients are heard, with `rates`, which dialects count with, too.

mod approving;
pub mod ask;
pub(crate) mod attach;
mod conversing;
mod history;
pub(crate) mod inbox;
pub(crate) mod job;
mod mail;
pub(crate) mod meter;
pub mod pace;
pub(crate) mod party;
pub(crate) mod policy;
pub mod rates;
pub(crate) mod reading;
mod receipts;
mod replaced;
pub(crate) mod rules;
mod search;
pub mod seat;
