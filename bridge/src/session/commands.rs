//! Commands of a registered agent (spec §3): from a request to a call, a read or a refusal.

use mesh::{
    api::command::{Command, NewRoom},
    name::{
        id::{MessageId, RoomId},
        number::{Era, Number},
    },
    order::served::Served,
    wire::roster::Presence,
};
use protocol::{
    reply::{HistoryResult, Reply as Frame},
    request::{
        CreateRoom, GetHistory, JoinRoom, LeaveRoom, ListAgents, ListRooms, Request, RoomInfo,
        RoomTip, SetPresence, SetTyping,
    },
};

use super::{
    Me, Pending, Session, Step, Steps,
    agenda::{cast_vote, get_vote, update_task},
};
use crate::{
    convert,
    hub::RoomFacts,
    job::{Cursor, From, History, Job, Origin},
    limits::{self, NUMBERS_END},
    refusal::Refusal,
    reply::Hook,
    webhooks::Ask,
};

/// What a request comes to.
pub(super) enum Next {
    /// The mesh is asked.
    Call(Command, Hook, Pending),
    /// The webhooks are asked.
    Webhooks(Ask),
    /// It is read.
    Read(Job, Pending),
    /// It is answered at once.
    Reply(Frame),
}

impl Next {
    pub(super) fn ask(command: Command, pending: Pending) -> Next {
        Next::Call(command, Hook::None, pending)
    }
}

type Handled = Result<Next, Refusal>;

impl Session {
    pub(super) fn command(
        &mut self,
        me: &Me,
        request: Request,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        Ok(match self.handle(me, request)? {
            Next::Call(command, hook, pending) => {
                vec![self.call(command, hook, pending, reply_to)]
            }
            Next::Webhooks(ask) => {
                let ticket = self.wait(Pending::Webhooks, reply_to);
                vec![Step::Webhooks { ticket, key: me.caller.key, ask }]
            }
            Next::Read(job, pending) => {
                let came = job.comes_with().map(|(room, cursor)| Step::Came(room, cursor));
                came.into_iter().chain([self.read(job, pending, reply_to)]).collect()
            }
            Next::Reply(frame) => self.reply(&frame, reply_to.as_deref()),
        })
    }

    fn handle(&self, me: &Me, request: Request) -> Handled {
        match request {
            Request::Register(_) | Request::Ping(_) | Request::Pong(_) => {
                unreachable!("taken by the session in every state")
            }
            Request::CreateRoom(it) => self.create_room(me, it),
            Request::JoinRoom(it) => self.join_room(me, &it),
            Request::LeaveRoom(it) => self.leave_room(me, &it),
            Request::SendMessage(it) => self.send_message(me, it),
            Request::Thinking(it) => self.think(me, it),
            Request::Decision(it) => self.decide(me, it),
            Request::GetHistory(it) => self.history(me, &it),
            Request::RoomTip(it) => self.room_tip(me, &it),
            Request::ListRooms(it) => self.list_rooms(me, &it),
            Request::ListAgents(it) => self.list_agents(me, &it),
            Request::RoomInfo(it) => self.describe_room(me, &it),
            Request::SetTyping(it) => self.set_typing(me, &it),
            Request::SetPresence(it) => set_presence(me, it),
            Request::CreateVote(it) => self.act(me, self.create_vote(me, it)),
            Request::CastVote(it) => self.act(me, cast_vote(me, &it)),
            Request::GetVoteStatus(it) => get_vote(me, &it),
            Request::ListVotes(it) => self.list_votes(me, &it),
            Request::ElectLeader(it) => self.act(me, self.elect_leader(me, &it)),
            Request::DeclineElection(it) => self.act(me, self.decline_election(me, &it)),
            Request::AssignTask(it) => self.act(me, self.assign_task(me, it)),
            Request::UpdateTask(it) => self.act(me, update_task(me, it)),
            Request::ListTasks(it) => self.list_tasks(me, &it),
            Request::Subscribe(it) => self.act(me, Ok(Next::Webhooks(Ask::Subscribe(it)))),
            Request::Unsubscribe(it) => Ok(Next::Webhooks(Ask::Unsubscribe(it))),
            Request::ListSubscriptions(it) => Ok(Next::Webhooks(Ask::List(it))),
            Request::EnableSubscription(it) => Ok(Next::Webhooks(Ask::Enable(it))),
        }
    }

    /// What is written for all nodes, or has this one work, counts as a message does.
    fn act(&self, me: &Me, handled: Handled) -> Handled {
        let next = handled?;
        self.count(me)?;
        Ok(next)
    }

    fn create_room(&self, me: &Me, it: CreateRoom) -> Handled {
        if it.name.trim().is_empty() {
            return Err(Refusal::invalid("`name` must not be empty"));
        }
        at_most("name", &it.name, mesh::limits::NAME_BYTES_MAX)?;
        let description = it.description.as_deref().unwrap_or_default();
        at_most("description", description, mesh::limits::DESCRIPTION_BYTES_MAX)?;
        let room = NewRoom {
            name: it.name,
            description: it.description,
            parent: self.readable_if_any(me, it.parent_id.as_deref())?,
            ephemeral: it.ephemeral,
            public: it.public,
            encrypted: it.encrypted,
        };
        let command = Command::CreateRoom { caller: me.caller.clone(), room };
        Ok(Next::ask(command, Pending::CreateRoom))
    }

    fn join_room(&self, me: &Me, it: &JoinRoom) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let command = Command::Join { caller: me.caller.clone(), room };
        Ok(Next::Call(command, Hook::Join { room, fresh: false }, Pending::InRoom(room)))
    }

    fn leave_room(&self, me: &Me, it: &LeaveRoom) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let command = Command::Leave { caller: me.caller.clone(), room };
        Ok(Next::Call(command, Hook::Leave { room }, Pending::InRoom(room)))
    }

    fn history(&self, me: &Me, it: &GetHistory) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let before_ms = match &it.before {
            Some(text) => Some(convert::unix_ms(text).ok_or_else(|| {
                Refusal::invalid("`before` must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
            })?),
            None => None,
        };
        let nothing = || {
            let room_id = self.room_name(room);
            Next::Reply(Frame::History(HistoryResult { room_id, messages: Vec::new(), mesh: None }))
        };
        let from = match (it.since_seq, &it.since) {
            // Above every number there is: nothing can be after it.
            (Some(NUMBERS_END..), _) => return Ok(nothing()),
            (Some(seq), _) => From::After(self.cursor(me, room, Number(seq))),
            (None, Some(id)) => match MessageId::from_uuid(id) {
                Some(id) => From::AfterMessage(id, self.hub.served(&me.reader(), room)),
                None => return Ok(nothing()),
            },
            (None, None) => From::Newest,
        };
        let limit = usize::try_from(it.limit).unwrap_or(usize::MAX);
        let limit = limit.min(limits::HISTORY_ROWS_MAX);
        if limit == 0 {
            return Ok(nothing());
        }
        let history = History { room, from, limit, before_ms, held: false, sought: false };
        Ok(Next::Read(Job::History(history.clone()), Pending::History(history)))
    }

    fn cursor(&self, me: &Me, room: RoomId, number: Number) -> Cursor {
        // Of a room that is in its first numbers nothing is noted.
        let noted = number.era() > Era::HOME;
        let served = if noted { self.hub.served(&me.reader(), room) } else { Served::default() };
        let paged = self.paged.filter(|it| (it.room, it.number) == (room, number));
        match paged {
            Some(it) => Cursor::new(number, Origin::Here { came: it.came }),
            None => Cursor::of(number, &served),
        }
    }

    fn room_tip(&self, me: &Me, it: &RoomTip) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        Ok(Next::Read(Job::Tip(room), Pending::Tip(room)))
    }

    fn list_rooms(&self, me: &Me, it: &ListRooms) -> Handled {
        let parent = self.readable_if_any(me, it.parent_id.as_deref())?;
        let command = Command::ListRooms { key: me.caller.key, parent };
        Ok(Next::ask(command, Pending::ListRooms))
    }

    fn list_agents(&self, me: &Me, it: &ListAgents) -> Handled {
        let room = self.readable_if_any(me, it.room_id.as_deref())?;
        let command = Command::ListAgents { key: me.caller.key, room };
        Ok(Next::ask(command, Pending::ListAgents))
    }

    fn describe_room(&self, me: &Me, it: &RoomInfo) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        Ok(Next::ask(Command::RoomInfo { key: me.caller.key, room }, Pending::RoomInfo))
    }

    fn set_typing(&self, me: &Me, it: &SetTyping) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let command = Command::SetTyping { caller: me.caller.clone(), room, typing: it.typing };
        Ok(Next::ask(command, Pending::InRoom(room)))
    }

    pub(super) fn readable(&self, me: &Me, room: &str) -> Result<(RoomId, RoomFacts), Refusal> {
        self.hub.readable(room, me.caller.key)
    }

    fn readable_if_any(&self, me: &Me, room: Option<&str>) -> Result<Option<RoomId>, Refusal> {
        room.map(|room| self.readable(me, room).map(|(room, _)| room)).transpose()
    }
}

fn set_presence(me: &Me, it: SetPresence) -> Handled {
    let detail = it.status_detail.as_deref().unwrap_or_default();
    at_most("status_detail", detail, mesh::limits::DESCRIPTION_BYTES_MAX)?;
    let presence = Presence {
        status: convert::core_status(it.status),
        detail: it.status_detail,
        progress: it.progress.map(protocol::value::Progress::percent),
    };
    let command = Command::SetPresence { caller: me.caller.clone(), presence };
    Ok(Next::ask(command, Pending::Presence(it.status)))
}

pub(super) fn at_most(field: &str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.len() > max {
        return Err(Refusal::invalid(format!("`{field}` must have at most {max} bytes")));
    }
    Ok(())
}
