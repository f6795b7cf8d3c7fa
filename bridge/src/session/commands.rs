//! Commands of a registered agent (spec §3): from a request to a call, a read or a refusal.

use mesh::{
    command::{Command, NewRoom, Presence, Say, Speech},
    entry::DedupId,
    id::{AgentId, MessageId, RoomId},
    number::Number,
};
use protocol::{
    code::Code,
    reply::{HistoryResult, Reply as Frame},
    request::{CreateRoom, GetHistory, ListAgents, ListRooms, Request, SetPresence},
    value::{Metadata, SendOptions},
};

use super::{Me, Pending, Saying, Session, Steps};
use crate::{
    convert,
    hub::RoomFacts,
    job::{Cursor, From, History, Job, Origin},
    limits,
    refusal::Refusal,
    reply::Hook,
};

/// What end-to-end encrypted content begins with (spec §10).
const ENCRYPTED_MARK: &str = "clw1:";
/// Numbers are below this (spec §1).
const NUMBERS_END: u64 = 1 << 53;

/// `send_message` and `thinking`: one path, the data differs.
struct Utterance {
    room_id: String,
    speech: Speech,
    content: String,
    reply_to: Option<String>,
    mentions: Vec<String>,
    metadata: Option<Metadata>,
    options: Option<SendOptions>,
}

impl Session {
    pub(super) fn command(
        &mut self,
        me: &Me,
        request: Request,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        match request {
            Request::Register(_) | Request::Ping(_) | Request::Pong(_) => {
                unreachable!("taken by the session in every state")
            }
            Request::CreateRoom(it) => self.create_room(me, it, reply_to),
            Request::JoinRoom(it) => {
                let (room, _) = self.readable(me, &it.room_id)?;
                let command = Command::Join { caller: me.caller.clone(), room };
                let hook = Hook::Join { room, fresh: false };
                Ok(vec![self.call(command, hook, Pending::InRoom(room), reply_to)])
            }
            Request::LeaveRoom(it) => {
                let (room, _) = self.readable(me, &it.room_id)?;
                let command = Command::Leave { caller: me.caller.clone(), room };
                Ok(vec![self.call(command, Hook::Leave { room }, Pending::InRoom(room), reply_to)])
            }
            Request::SendMessage(it) => {
                let utterance = Utterance {
                    room_id: it.room_id,
                    speech: Speech::Chat,
                    content: it.content,
                    reply_to: it.reply_to,
                    mentions: it.mentions,
                    metadata: it.metadata,
                    options: it.mesh,
                };
                self.say(me, utterance, reply_to)
            }
            Request::Thinking(it) => {
                let utterance = Utterance {
                    room_id: it.room_id,
                    speech: Speech::Thinking,
                    content: it.content,
                    reply_to: None,
                    mentions: Vec::new(),
                    metadata: None,
                    options: it.mesh,
                };
                self.say(me, utterance, reply_to)
            }
            Request::GetHistory(it) => self.history(me, it, reply_to),
            Request::RoomTip(it) => {
                let (room, _) = self.readable(me, &it.room_id)?;
                Ok(vec![self.read(Job::Tip(room), Pending::Tip(room), reply_to)])
            }
            Request::ListRooms(it) => self.list_rooms(me, it, reply_to),
            Request::ListAgents(it) => self.list_agents(me, it, reply_to),
            Request::RoomInfo(it) => {
                let (room, _) = self.readable(me, &it.room_id)?;
                let command = Command::RoomInfo { key: me.caller.key, room };
                Ok(vec![self.call(command, Hook::None, Pending::RoomInfo, reply_to)])
            }
            Request::SetTyping(it) => {
                let (room, _) = self.readable(me, &it.room_id)?;
                let caller = me.caller.clone();
                let command = Command::SetTyping { caller, room, typing: it.typing };
                Ok(vec![self.call(command, Hook::None, Pending::InRoom(room), reply_to)])
            }
            Request::SetPresence(it) => self.set_presence(me, it, reply_to),
        }
    }

    fn create_room(
        &mut self,
        me: &Me,
        it: CreateRoom,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        if it.name.trim().is_empty() {
            return Err(Refusal::invalid("`name` must not be empty"));
        }
        at_most("name", &it.name, mesh::limits::NAME_BYTES_MAX)?;
        let description = it.description.as_deref().unwrap_or_default();
        at_most("description", description, mesh::limits::DESCRIPTION_BYTES_MAX)?;
        let parent = it.parent_id.as_deref().map(|parent| self.readable(me, parent));
        let room = NewRoom {
            name: it.name,
            description: it.description,
            parent: parent.transpose()?.map(|(room, _)| room),
            ephemeral: it.ephemeral,
            public: it.public,
            encrypted: it.encrypted,
        };
        let command = Command::CreateRoom { caller: me.caller.clone(), room };
        Ok(vec![self.call(command, Hook::None, Pending::CreateRoom, reply_to)])
    }

    fn say(&mut self, me: &Me, it: Utterance, reply_to: Option<String>) -> Result<Steps, Refusal> {
        let (room, facts) = self.readable(me, &it.room_id)?;
        if facts.encrypted && !it.content.starts_with(ENCRYPTED_MARK) {
            let text = "the room is end-to-end encrypted: content must be a clw1: blob";
            return Err(Refusal::new(Code::PlaintextInEncryptedRoom, text));
        }
        it.check(self.config.auth.content_bytes_max())?;
        let options = it.options.unwrap_or_default();
        let agent = &me.caller.agent;
        let dedup = options.dedup.map(|id| DedupId::new(me.caller.key, agent, id.as_str()));
        let say = Say {
            room,
            speech: it.speech,
            content: it.content.clone(),
            reply_to: it.reply_to.clone(),
            mentions: distinct(it.mentions),
            metadata: it.metadata.as_ref().map(|json| String::from(json.get())),
            dedup,
        };
        let metadata = match it.speech {
            Speech::Chat => it.metadata,
            Speech::Thinking => convert::thinking_metadata(),
        };
        let saying =
            Box::new(Saying { room, content: it.content, reply_to: it.reply_to, metadata });
        let command = Command::Say { caller: me.caller.clone(), say };
        Ok(vec![self.call(command, Hook::None, Pending::Say(saying), reply_to)])
    }

    fn history(
        &mut self,
        me: &Me,
        it: GetHistory,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let (room, _) = self.readable(me, &it.room_id)?;
        let before_ms = match &it.before {
            Some(text) => Some(convert::unix_ms(text).ok_or_else(|| {
                Refusal::invalid("`before` must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
            })?),
            None => None,
        };
        let from = match (it.since_seq, &it.since) {
            // Above every number there is: nothing can be after it.
            (Some(NUMBERS_END..), _) => {
                let room_id = self.room_name(room);
                let reply = Frame::History(HistoryResult { room_id, messages: Vec::new() });
                return Ok(self.reply(&reply, reply_to.as_deref()));
            }
            (Some(seq), _) => From::After(Cursor::new(Number(seq), self.origin(room, Number(seq)))),
            (None, Some(id)) => {
                let id = MessageId::from_uuid(id);
                From::AfterMessage(id.ok_or_else(no_such_message)?)
            }
            (None, None) => From::Newest,
        };
        let limit = usize::try_from(it.limit).unwrap_or(usize::MAX);
        let limit = limit.clamp(1, limits::HISTORY_ROWS_MAX);
        let history = History { room, from, limit, before_ms, held: false };
        let job = Job::History(history.clone());
        Ok(vec![self.read(job, Pending::History(history), reply_to)])
    }

    fn origin(&self, room: RoomId, number: Number) -> Origin {
        if self.paged == Some((room, number)) { Origin::Here } else { Origin::Any }
    }

    fn list_rooms(
        &mut self,
        me: &Me,
        it: ListRooms,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let parent = it.parent_id.as_deref().map(|parent| self.readable(me, parent));
        let parent = parent.transpose()?.map(|(room, _)| room);
        let command = Command::ListRooms { key: me.caller.key, parent };
        Ok(vec![self.call(command, Hook::None, Pending::ListRooms, reply_to)])
    }

    fn list_agents(
        &mut self,
        me: &Me,
        it: ListAgents,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let room = it.room_id.as_deref().map(|room| self.readable(me, room));
        let room = room.transpose()?.map(|(room, _)| room);
        let command = Command::ListAgents { key: me.caller.key, room };
        Ok(vec![self.call(command, Hook::None, Pending::ListAgents, reply_to)])
    }

    fn set_presence(
        &mut self,
        me: &Me,
        it: SetPresence,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let detail = it.status_detail.as_deref().unwrap_or_default();
        at_most("status_detail", detail, mesh::limits::DESCRIPTION_BYTES_MAX)?;
        let presence = Presence {
            status: convert::core_status(it.status),
            detail: it.status_detail,
            progress: it.progress.map(protocol::value::Progress::percent),
        };
        let command = Command::SetPresence { caller: me.caller.clone(), presence };
        Ok(vec![self.call(command, Hook::None, Pending::Presence(it.status), reply_to)])
    }

    fn readable(&self, me: &Me, room: &str) -> Result<(RoomId, RoomFacts), Refusal> {
        self.hub.readable(room, me.caller.key)
    }
}

impl Utterance {
    fn check(&self, content_bytes_max: usize) -> Result<(), Refusal> {
        let too_large = |text: String| Err(Refusal::new(Code::MessageTooLarge, text));
        if self.content.len() > content_bytes_max {
            return too_large(format!("`content` must have at most {content_bytes_max} bytes"));
        }
        let max = mesh::limits::MENTIONS_MAX;
        let id_max = mesh::limits::AGENT_ID_BYTES_MAX;
        if self.mentions.len() > max || self.mentions.iter().any(|id| id.len() > id_max) {
            return Err(Refusal::invalid(format!(
                "`mentions` must have at most {max} ids of at most {id_max} bytes"
            )));
        }
        at_most("reply_to", self.reply_to.as_deref().unwrap_or(""), limits::REPLY_TO_BYTES_MAX)?;
        let metadata = self.metadata.as_ref().map_or(0, |json| json.get().len());
        let mentions: usize = self.mentions.iter().map(|id| id.len() + 4).sum();
        let body = self.content.len() + metadata + mentions + limits::BODY_OVERHEAD_BYTES;
        if body > mesh::limits::BODY_BYTES_MAX {
            return too_large(String::from("`metadata` is too large to be sent with this content"));
        }
        Ok(())
    }
}

pub(super) fn no_such_message() -> Refusal {
    Refusal::invalid("`since` must be the id of a message in this room")
}

fn at_most(field: &str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.len() > max {
        return Err(Refusal::invalid(format!("`{field}` must have at most {max} bytes")));
    }
    Ok(())
}

fn distinct(mut mentions: Vec<String>) -> Vec<AgentId> {
    mentions.sort_unstable();
    mentions.dedup();
    mentions.into_iter().map(AgentId::from).collect()
}
