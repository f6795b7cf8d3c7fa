//! Errors, by operation.

use std::io;

use protocol::code::Code;
use protocol::frame::FrameError;

use crate::address::Address;
use crate::sealing::TooLong;

/// Connecting and registering failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No address was given.
    #[error("no address of a node was given")]
    NoAddress,
    /// Nobody listens there, or the way is closed.
    #[error("cannot reach {address}: {source}")]
    Unreachable {
        /// Where.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// The node did not answer in time.
    #[error("{address} does not answer")]
    TimedOut {
        /// Where.
        address: Address,
    },
    /// The listener does not speak the protocol, or closed the connection.
    #[error("{address} broke off while registering: {source}")]
    Broken {
        /// Where.
        address: Address,
        /// How.
        source: Broken,
    },
    /// The node refused the registration.
    #[error("{address} refused to register: {message} ({code})")]
    Refused {
        /// Where.
        address: Address,
        /// Why.
        code: Code,
        /// Why, for people.
        message: String,
    },
}

impl ConnectError {
    /// Whether trying again later can help.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            ConnectError::NoAddress => false,
            ConnectError::Unreachable { .. }
            | ConnectError::TimedOut { .. }
            | ConnectError::Broken { .. } => true,
            ConnectError::Refused { code, .. } => {
                *code == Code::RateLimitAgents || *code == Code::InternalError
            }
        }
    }
}

/// A connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The node closed it.
    #[error("the node closed the connection")]
    Closed,
    /// Nothing came for too long.
    #[error("the node has gone silent")]
    Silent,
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The WebSocket failed.
    #[error(transparent)]
    WebSocket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// A frame is longer than `FRAME_READ_BYTES_MAX`.
    #[error("the node sent a frame that is too long")]
    TooLong,
    /// A frame is not UTF-8.
    #[error("the node sent a frame that is not UTF-8")]
    NotUtf8,
    /// A frame lacks something.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The node refused.
    #[error("{message} ({code})")]
    Refused {
        /// Why.
        code: Code,
        /// Why, for people.
        message: String,
    },
    /// The connection was lost before the answer came; it is not known whether the node acted.
    #[error("the connection was lost before the node answered: look before you repeat")]
    Lost,
    /// No answer in time; it is not known whether the node acted.
    #[error("the node did not answer in time")]
    TimedOut,
    /// The client has given up connecting; its last event says why.
    #[error("the client is not connected any more")]
    Closed,
    /// The request is longer than a frame may be.
    #[error("the request has {bytes} bytes, a frame may have {max}: send less at once")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The bound of a node.
        max: usize,
    },
    /// The answer does not have the shape it should.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The content cannot be encrypted.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The system gave no random bytes for a dedup id or a nonce.
    #[error("the system gives no random numbers")]
    NoRandomness,
}
