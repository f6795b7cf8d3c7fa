//! The agent in whose name a command sends something, and so the one place that says what an agent that is stopped may not do.
//!
//! It may do nothing by which others hear, see or find something of its own making. It still comes and goes, takes and gives up
//! seats, reads, confirms what it was given, and takes back: it ends its typing, and says that it is idle. Its name and what it can
//! do are part of its coming.

use super::{Command, GivenAct, Presence};
use crate::name::id::{AgentId, KeyPrint};

impl Command {
    /// See the module. Holders of keys that act in nobody's name are nobody's agents.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table: one row for each command")]
    pub fn sender(&self) -> Option<(KeyPrint, &AgentId)> {
        let caller = match self {
            Command::CreateRoom { caller, .. }
            | Command::OpenDirect { caller, .. }
            | Command::CreateShared { caller, .. }
            | Command::Say { caller, .. }
            | Command::Stream { caller, .. }
            | Command::CreateVote { caller, .. }
            | Command::CastVote { caller, .. }
            | Command::ElectLeader { caller, .. }
            | Command::Decline { caller, .. }
            | Command::AssignTask { caller, .. }
            | Command::UpdateTask { caller, .. }
            | Command::DeleteTask { caller, .. }
            | Command::SetProfile { caller, .. } => Some(caller),
            Command::Share(share) => Some(&share.caller),
            Command::Once(once) => Some(&once.caller),
            Command::RequestApproval(new) => Some(&new.caller),
            Command::DecideApproval(decide) => Some(&decide.caller),
            Command::SetRoom(set) => Some(&set.caller),
            Command::SetMember(set) => Some(&set.caller),
            Command::SetTyping { caller, typing, .. } => typing.then_some(caller),
            Command::SetPresence { caller, presence } => {
                (*presence != Presence::default()).then_some(caller)
            }
            Command::Given { caller, act, .. } => match act {
                GivenAct::Terms(_) => Some(caller),
                // The rest takes back, or notes what the agent has.
                GivenAct::Dismiss
                | GivenAct::GiveUp
                | GivenAct::HasResult
                | GivenAct::Returned
                | GivenAct::HasNotice => None,
            },
            Command::ChangeFile(change) => {
                return change.agent.as_ref().map(|agent| (change.key, agent));
            }
            Command::MaySend { key, agent } => return Some((*key, agent)),
            // It comes, reads and goes.
            Command::Attach(_)
            | Command::Detach { .. }
            | Command::Linger { .. }
            | Command::StandOutside { .. }
            | Command::Join { .. }
            | Command::JoinAsGuest { .. }
            | Command::Leave { .. }
            | Command::LeaveOnRecord(_)
            | Command::Inbox { .. }
            | Command::Handed { .. }
            | Command::AwaitPieces { .. }
            | Command::ListRooms { .. }
            | Command::ListAgents { .. }
            | Command::ListSeats { .. }
            | Command::ListWaits { .. }
            | Command::NameNodes { .. }
            | Command::RoomInfo { .. }
            | Command::GetVote { .. }
            | Command::Receipts { .. }
            | Command::GatherReplaced(_)
            | Command::ListVotes { .. }
            | Command::ListApprovals { .. }
            | Command::ReadApproval { .. }
            | Command::ListTasks { .. }
            | Command::ReadTask { .. }
            | Command::FindAccount(_)
            | Command::ListClaims(_)
            | Command::ListOffering { .. }
            | Command::ListAttached { .. }
            | Command::ListDirect { .. }
            | Command::FindAgent { .. }
            | Command::CheckAgent { .. }
            | Command::Roam { .. }
            | Command::Seek { .. } => None,
            // Of holders of keys and accounts, and of operators.
            Command::MintKey(_)
            | Command::SignUp(_)
            | Command::RevokeKey { .. }
            | Command::ReplaceKey(_)
            | Command::SignAnew(_)
            | Command::ListKeys
            | Command::CheckKey { .. }
            | Command::SetProfileOf(_)
            | Command::RetireAgent(_)
            | Command::StopAgents(_)
            | Command::ListStops { .. }
            | Command::ChangeAgentFile(_)
            | Command::PlaceOfKey { .. }
            | Command::ChangeSchedule(_)
            | Command::ClaimAccount { .. }
            | Command::WriteRecords(_)
            | Command::PresentAccount(_)
            | Command::KeyTerms { .. }
            | Command::Attendance
            | Command::Keep { .. }
            | Command::Status
            | Command::Behind
            | Command::Members
            | Command::Part { .. }
            | Command::RotateSecret { .. }
            | Command::LeaveMesh { .. }
            | Command::Stop => None,
        };
        caller.map(|caller| (caller.key, &caller.agent))
    }
}
