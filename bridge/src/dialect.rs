//! Which language a connection speaks: decided by its first frame.
//!
//! There is one now. Another one stands beside it here, with its own session.

use protocol::frame::{Incoming, RequestError, parse_request};

use crate::transport::Heard;

/// A language on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// NDJSON as in the specification.
    ClawChat,
}

impl Dialect {
    /// The dialect of a connection whose first frame is this.
    pub(crate) fn of(_first: Heard<'_>) -> Dialect {
        Dialect::ClawChat
    }

    pub(crate) fn parse(self, frame: Heard<'_>) -> Result<Incoming, RequestError> {
        match (self, frame) {
            (Dialect::ClawChat, Heard::Text(line)) => parse_request(line),
            (Dialect::ClawChat, Heard::Binary) => {
                let message = String::from("frames are text messages, not binary ones");
                Err(RequestError { reply_to: None, message, of_agents: false })
            }
        }
    }
}
