//! What a client names and this node does not know: before it is refused, connected nodes are asked. A client may have
//! it from an agent of theirs.

use mesh::{
    api::command::Command,
    name::id::{MessageId, RoomId},
};
use protocol::request::Request;

use super::{Me, Pending, Session, Step, Steps};
use crate::{
    convert,
    job::{From, History},
    reply::Hook,
};

impl Session {
    /// The room that a request names, if it is one that is not known here.
    pub(super) fn unknown_room(&self, request: &Request) -> Option<RoomId> {
        let room = convert::room_id(self.hub.lobby(), names(request)?)?;
        self.hub.facts(room).is_none().then_some(room)
    }

    /// Asks for the room that a request names.
    pub(super) fn seek(
        &mut self,
        me: &Me,
        room: RoomId,
        (request, reply_to): (Request, Option<String>),
    ) -> Steps {
        let pending = Pending::Again(Box::new(request));
        vec![self.ask_for(me, (room, None), pending, reply_to)]
    }

    /// Asks for the message after which a page is to begin, once.
    pub(super) fn seek_message(
        &mut self,
        history: History,
        reply_to: Option<String>,
    ) -> Result<Steps, History> {
        let me = match &self.state {
            super::State::Registered(me) => me.clone(),
            super::State::Fresh | super::State::Attaching | super::State::Resuming(_) => {
                return Err(history);
            }
        };
        let From::AfterMessage(message, _) = history.from else { return Err(history) };
        if history.sought {
            return Err(history);
        }
        let room = history.room;
        let pending = Pending::HistoryAgain(History { sought: true, ..history });
        Ok(vec![self.ask_for(&me, (room, Some(message)), pending, reply_to)])
    }

    fn ask_for(
        &mut self,
        me: &Me,
        (room, message): (RoomId, Option<MessageId>),
        pending: Pending,
        reply_to: Option<String>,
    ) -> Step {
        let command = Command::Seek { caller: me.caller.clone(), room, message };
        self.call(command, Hook::None, pending, reply_to)
    }
}

/// The room that has to be known for a request to be answered.
fn names(request: &Request) -> Option<&str> {
    match request {
        Request::CreateRoom(it) => it.parent_id.as_deref(),
        Request::JoinRoom(it) => Some(&it.room_id),
        Request::LeaveRoom(it) => Some(&it.room_id),
        Request::SendMessage(it) => Some(&it.room_id),
        Request::Thinking(it) => Some(&it.room_id),
        Request::Decision(it) => Some(&it.room_id),
        Request::GetHistory(it) => Some(&it.room_id),
        Request::RoomTip(it) => Some(&it.room_id),
        Request::ListRooms(it) => it.parent_id.as_deref(),
        Request::ListAgents(it) => it.room_id.as_deref(),
        Request::RoomInfo(it) => Some(&it.room_id),
        Request::SetTyping(it) => Some(&it.room_id),
        Request::CreateVote(it) => Some(&it.room_id),
        Request::ListVotes(it) => Some(&it.room_id),
        Request::ElectLeader(it) => Some(&it.room_id),
        Request::DeclineElection(it) => Some(&it.room_id),
        Request::AssignTask(it) => Some(&it.room_id),
        Request::ListTasks(it) => Some(&it.room_id),
        Request::Subscribe(it) => Some(&it.room_id),
        // The lists of what an agent has itself, and what is named by another id than a room's.
        Request::Register(_)
        | Request::Ping(_)
        | Request::Pong(_)
        | Request::SetPresence(_)
        | Request::CastVote(_)
        | Request::GetVoteStatus(_)
        | Request::UpdateTask(_)
        | Request::Unsubscribe(_)
        | Request::ListSubscriptions(_)
        | Request::EnableSubscription(_) => None,
    }
}

/// What is held of a request that waits, about.
pub(super) fn bytes(request: &Request) -> usize {
    serde_json::to_string(request).map_or(0, |it| it.len())
}
