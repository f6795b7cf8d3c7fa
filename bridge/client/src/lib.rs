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
//! ```no_run
//! use client::{address::Address, client::Client, options::Options};
//! use protocol::{request::{JoinRoom, SendMessage}, value::ApiKey};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let addresses = vec![Address::tcp("127.0.0.1:9229")?, Address::tcp("192.168.1.7:9229")?];
//! let options = Options::new(addresses, ApiKey::new(std::env::var("CLAWMESH_KEY")?), "ada");
//! let (client, _events) = Client::connect(options).await?;
//! client.call(JoinRoom { room_id: "lobby".to_owned() }).await?;
//! let said = client.call(SendMessage::new("lobby", "hello")).await?;
//! println!("said as #{}", said.seq);
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`address`], [`options`], [`client`], [`events`], [`messages`], [`cursor`], [`secrets`],
//! [`sealing`], [`http`] (for what has no request), [`error`], [`limits`]; inside, `driver` owns the connection, `transport` and `tls` the bytes.

pub mod address;
pub mod client;
pub mod cursor;
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

/// The examples of the crate's page are compiled, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
