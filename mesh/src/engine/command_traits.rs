//! The traits of each command, in one table: a new command breaks the build here, and where it is carried out.

use crate::{
    api::command::{Attach, Caller, Command, Say, Speech},
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Traits<'a> {
    /// It is carried out while the node stops.
    pub(super) while_stopping: bool,
    /// Whether a node whose disk is full carries it out.
    pub(super) unwritten: Unwritten<'a>,
    /// Things that it names, or counts on: peers may know of them.
    pub(super) names: Names<'a>,
}

/// Whether a node whose disk is full carries a command out: nothing has to be durable before its answer.
#[derive(Debug)]
pub(super) enum Unwritten<'a> {
    Answered,
    Waits,
    /// If its agent and key are known here.
    IfKnown(&'a Attach),
}

/// The things that a command names, or counts on.
#[derive(Debug)]
pub(super) enum Names<'a> {
    /// None that peers could know of.
    Nothing,
    /// A room that the key may know of.
    Room(KeyPrint, RoomId),
    /// A message in a room.
    Message(KeyPrint, RoomId, Option<MessageId>),
    /// All members of a room: something begins among them.
    Members(&'a Caller, RoomId),
    /// The same, unless an election runs there.
    Candidates(&'a Caller, RoomId),
    /// The election that runs in a room.
    Election(KeyPrint, RoomId),
    /// A room, and that the agent leads it.
    Leadership(&'a Caller, RoomId),
    Vote(KeyPrint, &'a AgentId, MessageId),
    Task(KeyPrint, &'a AgentId, MessageId),
    /// A key, and an agent id.
    Agent(&'a Attach),
}

impl Command {
    pub(super) fn traits(&self) -> Traits<'_> {
        use Names::{Agent, Candidates, Election, Members, Nothing, Room, Task, Vote};
        use Unwritten::{Answered, IfKnown, Waits};
        let (while_stopping, unwritten, names) = match self {
            Command::Attach(attach) => (false, IfKnown(attach), Agent(attach)),
            Command::Detach { .. } => (false, Answered, Nothing),
            Command::CreateRoom { caller, room } => {
                (false, Waits, room.parent.map_or(Nothing, |parent| Room(caller.key, parent)))
            }
            Command::Join { caller, room } => (false, Waits, Room(caller.key, *room)),
            Command::Leave { caller, room } => (false, Waits, Room(caller.key, *room)),
            Command::Say { caller, say } => (false, Waits, named_by(caller, say)),
            Command::SetTyping { caller, room, .. } => (false, Waits, Room(caller.key, *room)),
            Command::SetPresence { .. } => (false, Waits, Nothing),
            Command::ListRooms { key, parent } => {
                (false, Answered, parent.map_or(Nothing, |parent| Room(*key, parent)))
            }
            Command::ListAgents { key, room } => {
                (false, Answered, room.map_or(Nothing, |room| Room(*key, room)))
            }
            Command::RoomInfo { key, room } => (false, Answered, Room(*key, *room)),
            Command::CreateVote { caller, vote } => (false, Waits, Members(caller, vote.room)),
            Command::CastVote { caller, vote, .. } => {
                (false, Waits, Vote(caller.key, &caller.agent, *vote))
            }
            Command::GetVote { key, agent, vote } => {
                let vote = |agent| Vote(*key, agent, *vote);
                (false, Answered, agent.as_ref().map_or(Nothing, vote))
            }
            Command::ListVotes { key, room, .. } => (false, Answered, Room(*key, *room)),
            Command::ElectLeader { caller, room } => (false, Waits, Candidates(caller, *room)),
            Command::Decline { caller, room } => (false, Waits, Election(caller.key, *room)),
            Command::AssignTask { caller, task } => (false, Waits, Room(caller.key, task.room)),
            Command::UpdateTask { caller, update } => {
                (false, Waits, Task(caller.key, &caller.agent, update.task))
            }
            Command::ListTasks { key, room, .. } => (false, Answered, Room(*key, *room)),
            Command::MintKey(_) => (false, Waits, Nothing),
            Command::SignUp(_) => (false, Waits, Nothing),
            Command::RevokeKey { .. } => (false, Waits, Nothing),
            Command::ListKeys => (false, Answered, Nothing),
            Command::CheckKey { .. } => (false, Answered, Nothing),
            Command::Keep { .. } => (false, Waits, Nothing),
            Command::Roam { .. } => (false, Waits, Nothing),
            Command::Seek { caller, room, message } => {
                (false, Waits, Names::Message(caller.key, *room, *message))
            }
            Command::Status => (true, Answered, Nothing),
            Command::Behind => (true, Answered, Nothing),
            Command::Members => (false, Answered, Nothing),
            Command::Part { .. } => (false, Waits, Nothing),
            Command::RotateSecret { .. } => (false, Waits, Nothing),
            Command::LeaveMesh { .. } => (false, Waits, Nothing),
            Command::Stop => (true, Waits, Nothing),
        };
        Traits { while_stopping, unwritten, names }
    }
}

/// A decision counts on its agent's leadership.
fn named_by<'a>(caller: &'a Caller, say: &Say) -> Names<'a> {
    match say.speech {
        Speech::Decision => Names::Leadership(caller, say.room),
        Speech::Chat | Speech::Thinking => Names::Room(caller.key, say.room),
    }
}
