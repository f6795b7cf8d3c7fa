//! From a client's bytes to the mesh and back: transport (bytes and frames) × dialect (frames and
//! requests) × session (meaning).
//!
//! It never sees libp2p or redb: what it asks of a node is in [`backend`]. Its one contract: a client
//! that has the reply to its join gets every message of the room that is delivered from then on, once,
//! in rising order of number, however slowly it reads; and memory stays within [`limits`].
//!
//! The driver makes a [`Hub`], tells it what happens ([`Hub::notify`], [`Hub::tell`]) and answers calls
//! ([`Reply::send`]), all on one thread and in the order of the engine's effects. [`Bridge`] serves the
//! listeners that it is given.
//!
//! In reading order: [`backend`] (the seam), [`config`], `reply`, `hub` (who gets what), `outbox` and
//! `link` (what waits for one reader), `session` and `job` (what requests mean), `dialect`,
//! `transport`, `connection`, `webhooks` (messages that are posted), `serve` and `http` (listeners), `convert` (core types to wire types),
//! `refusal` (codes), `counters`, `ids`, [`limits`].

#![warn(missing_docs)]

pub mod backend;
pub mod config;
mod connection;
mod convert;
mod counters;
mod dialect;
mod encrypted;
mod http;
mod hub;
mod ids;
mod job;
pub mod limits;
mod link;
mod meter;
mod notice;
mod outbox;
mod readers;
#[cfg(test)]
mod readers_tests;
mod refusal;
mod reply;
mod serve;
mod session;
mod transport;
mod webhooks;

pub use backend::{Mesh, Reads};
pub use config::Config;
pub use convert::timestamp;
pub use counters::{Counters, Transport};
pub use http::Metrics;
pub use hub::Hub;
pub use reply::Reply;
pub use serve::Bridge;
pub use webhooks::BroughtWebhook;

#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, reason = "a poisoned lock is a failed test")]
#[cfg_attr(not(test), allow(dead_code, unreachable_pub, reason = "tests use the rest of it"))]
mod fake;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod tests;
