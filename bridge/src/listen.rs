//! Listeners and connections: the caller binds them and says when to stop.
//!
//! [`serve`] accepts; `transport` turns bytes into frames and back, for sockets and WebSockets; `connection` is one
//! client's task; [`http`] has `/ws`, health and the pages of dialects.

pub(crate) mod connection;
pub mod http;
pub mod serve;
pub(crate) mod transport;
