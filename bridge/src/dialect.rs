//! Which language a connection speaks: decided by its first frame.
//!
//! There is one now. Another one stands beside it here, with its own session.

use protocol::frame::{Incoming, RequestError, parse_request};

/// A language on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// NDJSON as in the specification.
    ClawChat,
}

impl Dialect {
    /// The dialect of a connection whose first frame is this.
    pub(crate) fn of(_first: &str) -> Dialect {
        Dialect::ClawChat
    }

    pub(crate) fn parse(self, frame: &str) -> Result<Incoming, RequestError> {
        match self {
            Dialect::ClawChat => parse_request(frame),
        }
    }
}
