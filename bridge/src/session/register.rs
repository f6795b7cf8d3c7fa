//! Registration (spec §2): checks, attachment, and what an agent that comes back missed.

use mesh::{
    api::command::{Attach, Attached, Caller, Command, Outcome, Roamed},
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
};
use protocol::{
    code::Code,
    limits::PROTOCOL_VERSION,
    reply::{Registered, Reply as Frame, Resumed},
    request::Register,
};

use super::{Me, Pending, Session, State, Step, Steps};
use crate::{
    backend::Row,
    config::Shown,
    ids,
    job::{Claim, Cursor, Job, Missed, Origin},
    limits,
    link::{self, Ending},
    notice,
    refusal::Refusal,
    reply::{Answer, Hook},
};

/// An agent that comes back, until it has been told what it missed.
#[derive(Debug)]
pub(super) struct Resuming {
    pub(super) me: Me,
    reply_to: Option<String>,
    rooms: Vec<RoomId>,
    missed: Missed,
    /// Claims without an answer.
    claims: usize,
    /// Rooms to be read again, when all claims are answered.
    again: Vec<(RoomId, Cursor)>,
}

impl Session {
    pub(super) fn register(
        &mut self,
        it: Register,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        if it.protocol_version != PROTOCOL_VERSION {
            let text = format!("this node speaks protocol version {PROTOCOL_VERSION} only");
            return Err(Refusal::new(Code::UnsupportedProtocol, text));
        }
        let Some(Shown { key, own, opener }) = self.config.auth.identify(&it.key) else {
            return Err(Refusal::new(Code::Unauthorized, "the key is not valid here"));
        };
        if let Err(refusal) = check(&it) {
            if own {
                return Err(refusal);
            }
            // A client with a wrong key is told that first.
            self.state = State::Attaching;
            let command = Command::CheckKey { key, own };
            return Ok(vec![self.call(command, Hook::None, Pending::Key(refusal), reply_to)]);
        }
        let stable = it.agent_id.is_some();
        let agent: AgentId = it.agent_id.unwrap_or_else(ids::agent).into();
        let attach = Attach {
            agent: agent.clone(),
            stable,
            reconnect: it.reconnect,
            key,
            own,
            opener,
            name: it.name.clone(),
            capabilities: it.capabilities,
        };
        let hook = Hook::Attach { agent: agent.clone(), key, stable };
        let pending = Pending::Attach { name: it.name, me: link::Me { agent, key, stable } };
        self.state = State::Attaching;
        Ok(vec![self.call(Command::Attach(attach), hook, pending, reply_to)])
    }

    /// A registration that cannot be, whose key has been looked at.
    pub(super) fn key_checked(&mut self, refusal: Refusal, answer: Answer) -> Refusal {
        self.state = State::Fresh;
        match answer {
            Ok(_) => refusal,
            Err(failure) => Refusal::of(failure, Code::InternalError),
        }
    }

    pub(super) fn attached(
        &mut self,
        name: String,
        reader: link::Me,
        answer: Answer,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        // Refused: it may try again on the same connection.
        self.state = State::Fresh;
        let outcome = answer.map_err(|failure| Refusal::of(failure, Code::RateLimitAgents))?;
        let Outcome::Attached(Attached { registration, restored, standing, .. }) = outcome else {
            return Err(Refusal::new(Code::InternalError, "the node answered something else"));
        };
        let link::Me { agent, key, stable } = reader.clone();
        let me = Me { caller: Caller { agent, key, registration }, name, standing, stable };
        let Some(restored) = restored else {
            let reply = Frame::Registered(self.welcome(&me, None));
            self.state = State::Registered(me);
            let mut steps = self.reply(&reply, reply_to.as_deref());
            steps.push(Step::Open);
            return Ok(steps);
        };
        let rooms = restored.iter().map(|(room, _)| *room).collect();
        let cursors = restored
            .into_iter()
            .map(|(room, number)| (room, Cursor::of(number, &self.hub.served(&reader, room))))
            .collect();
        self.state = State::Resuming(Box::new(Resuming {
            me,
            reply_to,
            rooms,
            missed: Missed::default(),
            claims: 0,
            again: Vec::new(),
        }));
        Ok(vec![self.read(Job::Missed(cursors), Pending::Missed, None)])
    }

    /// A part of what was missed has been read.
    pub(super) fn missed(&mut self, mut found: Missed) -> Steps {
        let State::Resuming(resuming) = &mut self.state else { return Vec::new() };
        let claims = std::mem::take(&mut found.claims);
        resuming.again.append(&mut found.later);
        resuming.missed.merge(found);
        resuming.claims = claims.len();
        if claims.is_empty() {
            return self.missed_again();
        }
        let claim = |Claim { room, cursor, entries }: Claim| {
            let command = Command::Roam { room, cursor: cursor.number, entries };
            let pending = Pending::MissedClaim { room, cursor, tries: 0 };
            self.call(command, Hook::None, pending, None)
        };
        claims.into_iter().map(claim).collect()
    }

    /// The mesh has numbered what was missing in a room, or has not.
    pub(super) fn missed_claim(
        &mut self,
        room: RoomId,
        (cursor, tries): (Cursor, u8),
        answer: Answer,
    ) -> Steps {
        let State::Resuming(resuming) = &mut self.state else { return Vec::new() };
        let roamed = match answer {
            Ok(Outcome::Roamed(roamed)) => roamed,
            Ok(_) | Err(_) => Roamed::Never,
        };
        match roamed {
            Roamed::Behind if tries < limits::BEHIND_TRIES_MAX => {
                let entries = Vec::new();
                let command = Command::Roam { room, cursor: cursor.number, entries };
                let pending = Pending::MissedClaim { room, cursor, tries: tries + 1 };
                return vec![self.call(command, Hook::None, pending, None)];
            }
            Roamed::Ready | Roamed::Behind => {
                resuming.again.push((room, Cursor { origin: Origin::Claimed, ..cursor }));
            }
            Roamed::Heard => resuming.again.push((room, cursor)),
            // The cursor counts as the tip: nothing was missed that could be told.
            Roamed::Never => {}
        }
        resuming.claims -= 1;
        if resuming.claims > 0 {
            return Vec::new();
        }
        self.missed_again()
    }

    /// Reads what could not be read before, if there is any.
    fn missed_again(&mut self) -> Steps {
        let State::Resuming(resuming) = &mut self.state else { return Vec::new() };
        let again = std::mem::take(&mut resuming.again);
        if again.is_empty() {
            return self.resume();
        }
        vec![self.read(Job::Missed(again), Pending::Missed, None)]
    }

    /// Reply first, then what was missed, then live.
    fn resume(&mut self) -> Steps {
        let State::Resuming(resuming) = std::mem::replace(&mut self.state, State::Fresh) else {
            return Vec::new();
        };
        let Resuming { me, reply_to, rooms, missed, .. } = *resuming;
        let notices = self.hub.missed(&me.caller.agent);
        let mut replays: Vec<Step> = Vec::new();
        for missed in notice::merge(&missed.rows, &notices) {
            match missed {
                notice::Missed::Message(room, row) => self.replay(&me, room, row, &mut replays),
                notice::Missed::Notice(it) => {
                    replays.push(Step::Replay { message: None, bytes: it.bytes.clone() });
                }
            }
        }
        replays.drain(..replays.len().saturating_sub(limits::MISSED_MAX));
        let resumed = Resumed {
            reconnected: true,
            rooms: rooms.iter().map(|room| self.room_name(*room)).collect(),
            missed_messages: replays.len() as u64,
        };
        let reply = Frame::Registered(self.welcome(&me, Some(resumed)));
        let mut steps = self.reply(&reply, reply_to.as_deref());
        steps.extend(replays);
        for room in rooms {
            let seen = missed.seen.iter().filter(|(seen, _)| *seen == room);
            let seen = seen.map(|(_, number)| *number).max().unwrap_or(Number::ZERO);
            steps.push(Step::Release(room, seen));
        }
        steps.push(Step::Open);
        self.state = State::Registered(me);
        steps
    }

    /// What was missed cannot be read. It is not told that nothing was: it may come back.
    pub(super) fn give_up(&mut self, refusal: Refusal) -> Steps {
        let State::Resuming(resuming) = &self.state else { return Vec::new() };
        let mut steps = self.reply(&refusal.into_reply(), resuming.reply_to.as_deref());
        steps.push(Step::Close(Ending::Failed));
        steps
    }

    /// Nothing for the agent's own messages, and for what can no longer be shown.
    fn replay(&self, me: &Me, room: RoomId, row: &Row, replays: &mut Vec<Step>) {
        let me = me.reader();
        if let Some((number, bytes, mention)) = self.hub.encode_row(Some(&me), room, row) {
            replays.push(Step::Replay { message: Some((room, number)), bytes });
            replays.extend(mention.map(|bytes| Step::Replay { message: None, bytes }));
        }
    }

    fn welcome(&self, me: &Me, resumed: Option<Resumed>) -> Registered {
        Registered {
            agent_id: me.caller.agent.to_string(),
            name: me.name.clone(),
            protocol_version: PROTOCOL_VERSION,
            resumed,
        }
    }
}

fn check(it: &Register) -> Result<(), Refusal> {
    let invalid = |text: String| Err(Refusal::invalid(text));
    if it.name.trim().is_empty() {
        return invalid(String::from("`name` must not be empty"));
    }
    let max = mesh::limits::NAME_BYTES_MAX;
    if it.name.len() > max {
        return invalid(format!("`name` must have at most {max} bytes"));
    }
    let max = mesh::limits::AGENT_ID_BYTES_MAX;
    if it.agent_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > max) {
        return invalid(format!("`agent_id` must have 1 to {max} bytes"));
    }
    let (count, bytes) = (mesh::limits::CAPABILITIES_MAX, limits::CAPABILITY_BYTES_MAX);
    if it.capabilities.len() > count || it.capabilities.iter().any(|it| it.len() > bytes) {
        return invalid(format!(
            "`capabilities` must have at most {count} entries of at most {bytes} bytes"
        ));
    }
    Ok(())
}
