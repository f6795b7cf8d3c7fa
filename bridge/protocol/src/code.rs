//! Why a node refuses. Clients know these codes and no other (§12).

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($( $(#[$doc:meta])* $name:ident = $text:literal, )*) => {
        /// An error code. The set is closed: never invent one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $( $(#[$doc])* #[serde(rename = $text)] $name, )*
        }

        impl Code {
            /// All codes, in the order of the specification.
            pub const ALL: &'static [Code] = &[$( Code::$name, )*];

            /// The code as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $( Code::$name => $text, )* }
            }
        }
    };
}

codes! {
    /// Another command came before `register`.
    NotRegistered = "not_registered",
    /// The API key is not valid here.
    Unauthorized = "unauthorized",
    /// There is no such room.
    RoomNotFound = "room_not_found",
    /// The command is for members of the room.
    NotInRoom = "not_in_room",
    /// Already a member; kept for old clients, joining twice is `ok`.
    AlreadyInRoom = "already_in_room",
    /// The agent id belongs to another key, or is connected.
    AgentIdTaken = "agent_id_taken",
    /// A room of that name exists.
    RoomNameTaken = "room_name_taken",
    /// The line or its payload is malformed; the message names the field.
    InvalidPayload = "invalid_payload",
    /// The node failed.
    InternalError = "internal_error",
    /// There is no such vote.
    VoteNotFound = "vote_not_found",
    /// The vote has been closed.
    VoteClosed = "vote_closed",
    /// The agent has cast its ballot.
    AlreadyVoted = "already_voted",
    /// The option index is out of range.
    InvalidOption = "invalid_option",
    /// Only the elected leader may decide.
    NotLeader = "not_leader",
    /// An election is running in the room.
    ElectionInProgress = "election_in_progress",
    /// No election is running in the room.
    NoElectionActive = "no_election_active",
    /// The key has as many agents connected as it may.
    RateLimitAgents = "rate_limit_agents",
    /// The key sends faster than it may.
    RateLimitMessages = "rate_limit_messages",
    /// The key has created as many rooms as it may.
    RateLimitRooms = "rate_limit_rooms",
    /// The content is larger than the key's limit.
    MessageTooLarge = "message_too_large",
    /// The node speaks another protocol version.
    UnsupportedProtocol = "unsupported_protocol",
    /// The room is private to another key.
    AccessDenied = "access_denied",
    /// There is no such task.
    TaskNotFound = "task_not_found",
    /// Plain content in an end-to-end encrypted room.
    PlaintextInEncryptedRoom = "plaintext_in_encrypted_room",
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_stands_on_the_wire() {
        assert_eq!(Code::ALL.len(), 24);
        for code in Code::ALL {
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<Code>(&json).unwrap(), *code);
        }
        assert!(serde_json::from_str::<Code>("\"teapot\"").is_err());
    }
}
