//! Why a client does not get what it asked for: the one place where core refusals become codes.

use mesh::api::command::Refused;
use protocol::{
    code::Code,
    reply::{ErrorBody, ErrorNote, Reason, Reply},
};

use crate::{backend::ReadError, reply::Failure};

/// A code and a text that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// What no code says.
    pub(crate) reason: Option<Reason>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), reason: None }
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

    /// Whether it was done is not known. No code of the protocol says that.
    pub(crate) fn unknown() -> Refusal {
        let message = "the node is stopping, and it is not known whether this was done: ask another node with the \
                       same id, which is safe";
        Refusal { reason: Some(Reason::Unknown), ..Refusal::new(Code::InternalError, message) }
    }

    pub(crate) fn into_reply(self) -> Reply {
        let mesh = self.reason.map(|reason| ErrorNote { reason });
        Reply::Error(ErrorBody { code: self.code, message: self.message, mesh })
    }

    /// What became of a call. `full`: what it means for this call that a bound was reached.
    pub(crate) fn of(failure: Failure, full: Code) -> Refusal {
        let refused = match failure {
            Failure::Refused(refused) => refused,
            Failure::Unanswered => {
                return Refusal::new(Code::InternalError, "the node is overloaded; try again");
            }
            Failure::Unknown => return Refusal::unknown(),
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
        Refusal::new(code, message)
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
