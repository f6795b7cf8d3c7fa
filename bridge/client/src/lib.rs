//! A ClawChat client over Unix socket, TCP or WebSocket, for one node or several.
//!
//! It reconnects on its own, to the next address if need be, registers again under the same agent
//! id and joins its rooms again. It knows nothing of the mesh: any ClawChat server will do.
//!
//! Its contract: [`client::Client::call`] answers each call once, and repeats it after a lost
//! connection only where that does no harm (a repeated send carries the same dedup id).
//! [`messages::Messages`] gives every message of a room once, in rising order of `seq`, over
//! lost connections and changes of node. [`events::Events`] may drop when nobody reads it, and then
//! says so: replies and heartbeats never wait for a reader of events.
//!
//! It encrypts content end to end, with [`secrets`] that nodes never see.
//!
//! In reading order: [`address`], [`options`], [`client`], [`events`], [`messages`], [`secrets`],
//! [`sealing`], [`http`] (for what has no request), [`error`], [`limits`]; inside, `driver` owns the connection, `transport` and `tls` the bytes.

pub mod address;
pub mod client;
mod driver;
pub mod error;
pub mod events;
pub mod http;
pub mod limits;
pub mod messages;
pub mod options;
pub mod sealing;
pub mod secrets;
mod tls;
mod transport;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
