//! Why a client does not get what it asked for: the one place where core refusals become codes.

use mesh::command::Refused;
use protocol::{code::Code, reply::Reply};

use crate::{backend::ReadError, reply::Failure};

/// A code and a text that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidPayload, message)
    }

    pub(crate) fn no_room() -> Refusal {
        Refusal::new(Code::RoomNotFound, "no such room")
    }

    pub(crate) fn not_yours() -> Refusal {
        Refusal::new(Code::AccessDenied, "the room belongs to another key")
    }

    pub(crate) fn into_reply(self) -> Reply {
        Reply::error(self.code, self.message)
    }

    /// What became of a call. `full`: what it means for this call that a bound was reached.
    pub(crate) fn of(failure: Failure, full: Code) -> Refusal {
        let refused = match failure {
            Failure::Refused(refused) => refused,
            Failure::Unanswered => {
                return Refusal::new(Code::InternalError, "the node is overloaded; try again");
            }
        };
        let message = refused.to_string();
        let code = match refused {
            Refused::NoRoom => Code::RoomNotFound,
            Refused::NotYours | Refused::Closed => Code::AccessDenied,
            Refused::NotMember => Code::NotInRoom,
            Refused::NameTaken(_) => Code::RoomNameTaken,
            Refused::AgentTaken(_) => Code::AgentIdTaken,
            Refused::Plaintext => Code::PlaintextInEncryptedRoom,
            Refused::TooLarge { .. } => Code::MessageTooLarge,
            Refused::Invalid(_) => Code::InvalidPayload,
            Refused::Full(_) => full,
            Refused::Superseded => Code::NotRegistered,
            Refused::NoVote => Code::VoteNotFound,
            Refused::VoteClosed => Code::VoteClosed,
            Refused::AlreadyVoted => Code::AlreadyVoted,
            Refused::NotEligible => Code::AccessDenied,
            Refused::NoOption { .. } => Code::InvalidOption,
            Refused::NotLeader => Code::NotLeader,
            Refused::ElectionRuns => Code::ElectionInProgress,
            Refused::NoElection => Code::NoElectionActive,
            Refused::NoTask => Code::TaskNotFound,
            Refused::Held { .. } => Code::InvalidPayload,
            Refused::NoKey => Code::Unauthorized,
            Refused::TooManyAgents { .. } => Code::RateLimitAgents,
            Refused::TooManyRooms { .. } => Code::RateLimitRooms,
            Refused::DiskFull | Refused::Stopping => Code::InternalError,
        };
        Refusal { code, message }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        tracing::error!(
            event = "read_failed",
            error = &error as &dyn std::error::Error,
            "a client could not be answered"
        );
        Refusal::new(Code::InternalError, "the node's store cannot be read")
    }
}
