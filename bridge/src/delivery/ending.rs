//! Why a connection ends.

/// Why a connection ends, as a WebSocket's close frame says it (RFC 6455 §7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client has hung up.
    Done,
    /// The node stops.
    GoingAway,
    /// The client was refused: the reply says why.
    Refused,
    /// Not registered in time, or silent for too long.
    Silent,
    /// A frame that is too large, or none: for dialects whose clients do not tell these apart.
    BadFrame,
    /// A frame that is too large.
    TooLarge,
    /// A frame that is no text.
    NotText,
    /// The agent registered on a newer connection.
    Replaced,
    /// Its key was revoked.
    Revoked,
    /// The node cannot go on with it.
    Failed,
}

impl Ending {
    /// Whether an agent that wishes to linger does: its connection ended, and neither the agent nor the node is over.
    pub(crate) fn lets_linger(self) -> bool {
        match self {
            Ending::Done
            | Ending::Silent
            | Ending::BadFrame
            | Ending::TooLarge
            | Ending::NotText
            | Ending::Failed => true,
            Ending::GoingAway | Ending::Refused | Ending::Replaced | Ending::Revoked => false,
        }
    }

    /// The code with which a WebSocket is closed.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Ending::Done => 1000,
            Ending::GoingAway => 1001,
            Ending::NotText => 1003,
            Ending::Refused
            | Ending::Silent
            | Ending::BadFrame
            | Ending::Replaced
            | Ending::Revoked => 1008,
            Ending::TooLarge => 1009,
            Ending::Failed => 1011,
        }
    }

    /// The reason, for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Ending::Done => "",
            Ending::GoingAway => "the node is stopping",
            Ending::Refused => "refused",
            Ending::Silent => "silent for too long",
            Ending::BadFrame => "a frame is too large or malformed",
            Ending::TooLarge => "a frame is too large",
            Ending::NotText => "a frame is no text",
            Ending::Replaced => "the agent registered on a newer connection",
            Ending::Revoked => "the key is not valid any more",
            Ending::Failed => "the node cannot go on with this connection",
        }
    }
}
