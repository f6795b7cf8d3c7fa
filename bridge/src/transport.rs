//! Bytes to frames and back, for sockets and for WebSockets.

use std::{future::Future, io};

use protocol::frame::{Incoming, RequestError};
use tokio::{task::yield_now, time::Instant};

use crate::{limits, link::Ending, outbox::Frame};

mod lines;
mod websocket;

pub(crate) use lines::{LineSink, Lines};
pub(crate) use websocket::Texts;

/// A request, or what is wrong with it.
pub(crate) type Received = Result<Incoming, RequestError>;

/// What a connection has read since others had their turn. The runtime counts reads, however much they bring.
#[derive(Debug, Default)]
struct Share(usize);

impl Share {
    fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    /// Lets others go first when it is used up. May be dropped.
    async fn turn(&mut self) {
        if self.0 >= limits::READ_BYTES_PER_TURN {
            self.0 = 0;
            yield_now().await;
        }
    }
}

/// Where requests come from.
pub(crate) trait Source: Send {
    /// The next one. May be dropped and called again without loss.
    fn next(&mut self) -> impl Future<Output = Result<Received, Gone>> + Send;

    /// When the last byte came.
    fn heard(&self) -> Instant;

    /// The client has shown a key: its frames may be as large as they come.
    fn trust(&mut self);
}

/// Where frames go.
pub(crate) trait Sink: Send {
    /// Writes them all, in one write if the system takes them.
    fn write(&mut self, frames: &[Frame]) -> impl Future<Output = io::Result<()>> + Send;

    /// Says that nothing follows, and why.
    fn close(&mut self, ending: Ending) -> impl Future<Output = ()> + Send;
}

/// Why nothing more comes from a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    #[error("the client has hung up")]
    HungUp,
    #[error("a frame is larger than {} bytes", protocol::limits::LINE_BYTES_MAX)]
    TooLong,
    #[error("a frame is not UTF-8")]
    NotText,
    #[error("read the connection")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}
