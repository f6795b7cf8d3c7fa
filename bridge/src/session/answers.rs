//! From what the mesh answered, or the store had, to a reply.

use mesh::{
    api::{
        agenda::{TaskView, VoteView},
        command::{Command, Outcome, Roamed, RoomInfo, RoomView, SaidOk, Speech},
    },
    name::{
        id::RoomId,
        number::{Era, Number},
    },
    order::served::Served,
};
use protocol::{
    code::Code,
    object::{Message, Room, Task, Vote},
    reply::{
        AgentList, BallotCast, Decided, Declined, Election, HistoryNote, HistoryResult, InRoom,
        PresenceSet, Reply as Frame, RoomInfoResult, RoomList, RoomTipResult, TaskList, Votes,
    },
};

use super::{Paged, Pending, Saying, Session, State, Step, Steps};
use crate::{
    backend::Row,
    convert::{self, Told},
    job::{Claim, Cursor, Found, From, History, Job, Origin},
    limits,
    refusal::Refusal,
    reply::{Answer, Hook},
};

/// What comes next, for people.
const ELECTION_STARTED: &str = "candidates may decline within 2 seconds; then a leader is drawn";

impl Session {
    pub(super) fn answered(
        &mut self,
        pending: Pending,
        answer: Answer,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let pending = match pending {
            Pending::Attach { name, me } => return self.attached(name, me, answer, reply_to),
            Pending::Key(refusal) => return Err(self.key_checked(refusal, answer)),
            Pending::MissedClaim { room, cursor, tries } => {
                return Ok(self.missed_claim(room, (cursor, tries), answer));
            }
            Pending::Behind { room, cursor, tries } => {
                return Ok(self.behind_answered(room, (cursor, tries), answer));
            }
            Pending::HistoryClaim(history) => {
                return Ok(self.history_claimed(history, answer, reply_to));
            }
            // Whatever came of it: the request is answered as things are known now.
            Pending::Again(request) => {
                let State::Registered(me) = &self.state else { return Ok(Vec::new()) };
                let me = me.clone();
                return self.command(&me, *request, reply_to);
            }
            Pending::HistoryAgain(history) => {
                let job = Job::History(history.clone());
                return Ok(vec![self.read(job, Pending::History(history), reply_to)]);
            }
            Pending::Missed
            | Pending::CreateRoom
            | Pending::InRoom(_)
            | Pending::Say(_)
            | Pending::Repeated(_)
            | Pending::Presence(_)
            | Pending::Tip(_)
            | Pending::History(_)
            | Pending::ListRooms
            | Pending::ListAgents
            | Pending::RoomInfo
            | Pending::Vote { .. }
            | Pending::Cast(_)
            | Pending::Votes(_)
            | Pending::Election(_)
            | Pending::Declined(_)
            | Pending::Task { .. }
            | Pending::Tasks(_)
            | Pending::Webhooks => pending,
        };
        let outcome = answer.map_err(|failure| Refusal::of(failure, pending.full()))?;
        if let (Pending::Say(saying), Outcome::Said(said)) = (&pending, &outcome)
            && said.repeated
            && saying.speech != Speech::Decision
        {
            let job = Job::Message(saying.room, said.message);
            return Ok(vec![self.read(job, Pending::Repeated(saying.room), reply_to)]);
        }
        let reply = self.outcome(pending, outcome)?;
        Ok(self.reply(&reply, reply_to.as_deref()))
    }

    /// What the mesh did, as a reply.
    fn outcome(&self, pending: Pending, outcome: Outcome) -> Result<Frame, Refusal> {
        let name = |room| self.room_name(room);
        Ok(match (pending, outcome) {
            (Pending::CreateRoom, Outcome::Room(view)) => Frame::Room(Box::new(self.room(&view))),
            (Pending::InRoom(room), Outcome::Joined(_) | Outcome::Done) => {
                Frame::InRoom(InRoom { room_id: name(room) })
            }
            (Pending::Say(saying), Outcome::Said(said)) if saying.speech == Speech::Decision => {
                let message_id = said.message.to_uuid();
                Frame::Decided(Decided { message_id, room_id: name(saying.room) })
            }
            (Pending::Say(saying), Outcome::Said(said)) => {
                Frame::Message(Box::new(self.said(*saying, said)))
            }
            (Pending::Presence(status), Outcome::Done) => {
                Frame::PresenceSet(PresenceSet { status })
            }
            (Pending::ListRooms, Outcome::Rooms(views)) => {
                Frame::RoomList(RoomList { rooms: self.rooms(&views) })
            }
            (Pending::ListAgents, Outcome::Agents(views)) => {
                Frame::AgentList(AgentList { agents: views.iter().map(convert::agent).collect() })
            }
            (Pending::RoomInfo, Outcome::RoomInfo(info)) => {
                Frame::RoomInfo(Box::new(self.room_info(&info)))
            }
            (Pending::Vote { .. }, Outcome::Vote(view)) => Frame::Vote(Box::new(self.vote(&view))),
            (Pending::Cast(vote), Outcome::Cast { cast, eligible }) => {
                Frame::BallotCast(BallotCast {
                    vote_id: vote.to_uuid(),
                    votes_cast: cast as u64,
                    eligible_voters: eligible as u64,
                })
            }
            (Pending::Votes(room), Outcome::Votes(views)) => {
                let votes = views.iter().map(|view| self.vote(view)).collect();
                Frame::Votes(Votes { room_id: name(room), votes })
            }
            (Pending::Election(room), Outcome::Candidates(candidates)) => {
                Frame::Election(Election {
                    room_id: name(room),
                    candidates: convert::agent_ids(&candidates),
                    message: String::from(ELECTION_STARTED),
                })
            }
            (Pending::Declined(room), Outcome::Done) => {
                let message = String::from("you do not stand in this election");
                Frame::Declined(Declined { room_id: name(room), message })
            }
            (Pending::Task { .. }, Outcome::Task(view)) => Frame::Task(Box::new(self.task(&view))),
            (Pending::Tasks(room), Outcome::Tasks(views)) => {
                let tasks = views.iter().map(|view| self.task(view)).collect();
                Frame::TaskList(TaskList { room_id: name(room), tasks })
            }
            (_, _) => {
                tracing::error!(
                    event = "wrong_answer",
                    "the mesh answered something else than it was asked"
                );
                return Err(Refusal::new(Code::InternalError, "the node answered something else"));
            }
        })
    }

    pub(super) fn found(
        &mut self,
        pending: Pending,
        found: Found,
        reply_to: Option<String>,
    ) -> Result<Steps, Refusal> {
        let reply = match (pending, found) {
            (Pending::Missed, Found::Missed(missed)) => return Ok(self.missed(missed)),
            (Pending::Behind { room, cursor, tries }, found) => {
                return Ok(self.behind_found(room, (cursor, tries), found));
            }
            (Pending::Tip(room), Found::Tip(tip)) => {
                self.gave((room, tip), |served| served.told(tip));
                Frame::RoomTip(RoomTipResult { room_id: self.room_name(room), seq: tip.0 })
            }
            (Pending::Repeated(room), Found::Message(row)) => {
                let message = row.as_ref().and_then(|row| self.message(room, row));
                let message = message.ok_or_else(|| {
                    Refusal::new(Code::InternalError, "the first message is no longer kept")
                })?;
                Frame::Message(Box::new(message))
            }
            (Pending::History(history), Found::NoSuchMessage) => {
                match self.seek_message(history, reply_to.clone()) {
                    Ok(steps) => return Ok(steps),
                    // As at a ClawChat server: of a message that nobody has any more nothing can be after it.
                    Err(history) => self.page(&history, &[]),
                }
            }
            (Pending::History(history), Found::Rows(rows)) => {
                match (&history.from, rows.last().map(|row| row.number)) {
                    (From::After(cursor), Some(last)) => self.paged(history.room, cursor, last),
                    // The newest are given: who goes on from there wants nothing that is below.
                    (From::Newest, Some(last)) if history.before_ms.is_none() => {
                        self.gave((history.room, last), |it| it.page(Number::ZERO, (last, last)));
                        self.given.push((history.room, last));
                    }
                    (From::Newest | From::After(_) | From::AfterMessage(..), _) => {}
                }
                self.page(&history, &rows)
            }
            (Pending::History(history), Found::Log(rows)) => {
                if let From::After(cursor) = &history.from {
                    let upto = rows.last().map_or(cursor.number, |row| row.number);
                    self.paged(history.room, cursor, upto);
                }
                self.page(&history, &rows)
            }
            (Pending::History(history), Found::Later) => {
                return Ok(self.history_later(history, reply_to));
            }
            (Pending::History(history), Found::Claim(claim)) => {
                return Ok(self.history_claim(history, claim, reply_to));
            }
            (_, _) => {
                tracing::error!(
                    event = "wrong_answer",
                    "the store answered something else than it was asked"
                );
                return Err(Refusal::new(Code::InternalError, "the node answered something else"));
            }
        };
        Ok(self.reply(&reply, reply_to.as_deref()))
    }

    /// Something is to be passed first, which live delivery will not bring: it is waited for.
    fn history_later(&mut self, mut history: History, reply_to: Option<String>) -> Steps {
        if let From::After(cursor) = &history.from {
            history.from = From::After(cursor.clone().waited());
        }
        self.held(history, |session, history| {
            session.read(Job::History(history.clone()), Pending::History(history), reply_to)
        })
    }

    /// The mesh is asked to number what a roaming cursor has not proven seen.
    fn history_claim(&mut self, history: History, claim: Claim, reply_to: Option<String>) -> Steps {
        let Claim { room, cursor, entries } = claim;
        let number = cursor.number;
        self.held(History { from: From::After(cursor), ..history }, |session, history| {
            let command = Command::Roam { room, cursor: number, entries };
            session.call(command, Hook::None, Pending::HistoryClaim(history), reply_to)
        })
    }

    /// Holds the room's live messages, if they are not held, until the page has been given.
    fn held(
        &mut self,
        mut history: History,
        next: impl FnOnce(&mut Session, History) -> Step,
    ) -> Steps {
        let hold = (!history.held).then_some(Step::Hold(history.room));
        history.held = true;
        hold.into_iter().chain([next(self, history)]).collect()
    }

    /// The mesh has numbered what a roaming cursor had not proven seen, or has not: then the cursor
    /// counts as the tip. The room is held; it is released when the page has been given.
    fn history_claimed(
        &mut self,
        mut history: History,
        answer: Answer,
        reply_to: Option<String>,
    ) -> Steps {
        let reply = match answer {
            Ok(Outcome::Roamed(roamed @ (Roamed::Ready | Roamed::Heard))) => {
                if let (From::After(cursor), Roamed::Ready) = (&mut history.from, roamed) {
                    cursor.origin = Origin::Claimed;
                }
                let job = Job::History(history.clone());
                return vec![self.read(job, Pending::History(history), reply_to)];
            }
            Ok(Outcome::Roamed(Roamed::Behind)) => return self.page_later(&history, reply_to),
            Ok(_) => self.page(&history, &[]),
            Err(failure) => Refusal::of(failure, Code::InternalError).into_reply(),
        };
        let mut steps = self.reply(&reply, reply_to.as_deref());
        steps.push(Step::Release(history.room, Number::ZERO));
        steps
    }

    /// The cursor cannot be judged yet: an empty page that says so. Live messages of the room wait until it can be.
    fn page_later(&mut self, history: &History, reply_to: Option<String>) -> Steps {
        let From::After(cursor) = &history.from else { return Vec::new() };
        let (room, cursor) = (history.room, cursor.number);
        let mesh = Some(HistoryNote { behind: true });
        let page = HistoryResult { room_id: self.room_name(room), messages: Vec::new(), mesh };
        let mut steps = self.reply(&Frame::History(page), reply_to.as_deref());
        steps.push(self.read_again(room, cursor, 0));
        steps
    }

    /// Looks whether the cursor can be judged now, and has what it lacks numbered. The client may take the empty page for
    /// the end: then what it has not seen comes to it live.
    fn read_again(&mut self, room: RoomId, cursor: Number, tries: u8) -> Step {
        let from = From::After(Cursor::new(cursor, Origin::Any));
        let history = History { room, from, limit: 1, before_ms: None, held: true, sought: true };
        self.read(Job::History(history), Pending::Behind { room, cursor, tries }, None)
    }

    /// It was looked.
    fn behind_found(&mut self, room: RoomId, (cursor, tries): (Number, u8), found: Found) -> Steps {
        match found {
            Found::Claim(claim) => {
                let command = Command::Roam { room, cursor, entries: claim.entries };
                vec![self.call(command, Hook::None, Pending::Behind { room, cursor, tries }, None)]
            }
            Found::Tip(_)
            | Found::Message(_)
            | Found::Rows(_)
            | Found::Log(_)
            | Found::Later
            | Found::NoSuchMessage
            | Found::Missed(_) => vec![Step::GoOnFrom(room, cursor)],
        }
    }

    /// What it lacks was numbered, or was not.
    fn behind_answered(
        &mut self,
        room: RoomId,
        (cursor, tries): (Number, u8),
        answer: Answer,
    ) -> Steps {
        let again = matches!(answer, Ok(Outcome::Roamed(Roamed::Behind | Roamed::Heard)));
        if again && tries < limits::BEHIND_TRIES_MAX {
            return vec![self.read_again(room, cursor, tries + 1)];
        }
        vec![Step::GoOnFrom(room, cursor)]
    }

    /// The agent was given a page, up to a number.
    fn paged(&mut self, room: RoomId, cursor: &Cursor, upto: Number) {
        let came = cursor.came_with();
        self.gave((room, upto), |served| served.page(came, (cursor.number, upto)));
        self.given.push((room, upto));
        // An empty page is the end of those before it: where they ended still counts.
        if upto > cursor.number {
            self.paged = Some(Paged { room, number: upto, came });
        }
    }

    /// The agent was given something in a room, or told of it.
    fn gave(&self, what: (RoomId, Number), note: impl FnOnce(&mut Served)) {
        if let State::Registered(me) = &self.state
            && what.1.era() > Era::HOME
        {
            self.hub.gave(&me.reader(), what, note);
        }
    }

    fn page(&self, history: &History, rows: &[Row]) -> Frame {
        let messages = rows.iter().filter_map(|row| self.message(history.room, row)).collect();
        let room_id = self.room_name(history.room);
        Frame::History(HistoryResult { room_id, messages, mesh: None })
    }

    fn message(&self, room: mesh::name::id::RoomId, row: &Row) -> Option<Message> {
        Told::of_row(row)?.into_message(self.room_name(room))
    }

    fn said(&self, saying: Saying, said: SaidOk) -> Message {
        let agent = self.caller().map(|caller| caller.agent.to_string());
        Message {
            message_id: said.message.to_uuid(),
            room_id: self.room_name(saying.room),
            agent_id: agent.unwrap_or_default(),
            agent_name: said.name,
            content: saying.content,
            reply_to_message: saying.reply_to,
            metadata: saying.metadata,
            timestamp: convert::timestamp(said.wall_ms),
            seq: said.number.0,
            mesh: None,
        }
    }

    fn room(&self, view: &RoomView) -> Room {
        let key = match &self.state {
            State::Registered(me) => Some(me.caller.key),
            State::Fresh | State::Attaching | State::Resuming(_) => None,
        };
        convert::room(self.config.lobby, view, key)
    }

    fn vote(&self, view: &VoteView) -> Vote {
        convert::vote(self.config.lobby, view)
    }

    fn task(&self, view: &TaskView) -> Task {
        convert::task(self.config.lobby, view)
    }

    fn rooms(&self, views: &[RoomView]) -> Vec<Room> {
        views.iter().map(|view| self.room(view)).collect()
    }

    fn room_info(&self, info: &RoomInfo) -> RoomInfoResult {
        RoomInfoResult {
            room: self.room(&info.room),
            agents: info.agents.iter().map(convert::agent).collect(),
            sub_rooms: self.rooms(&info.sub_rooms),
            current_turn_holder: info.turn.as_deref().map(String::from),
            turn_order: info.agents.iter().map(|it| it.agent.to_string()).collect(),
        }
    }
}

impl Pending {
    /// What it means for this call that a bound of the node was reached.
    fn full(&self) -> Code {
        match self {
            Pending::Attach { .. } => Code::RateLimitAgents,
            Pending::CreateRoom => Code::RateLimitRooms,
            Pending::Say(_) => Code::RateLimitMessages,
            // There is no code for these: the text says what is full, and that is the room, not the node.
            Pending::InRoom(_)
            | Pending::Vote { .. }
            | Pending::Cast(_)
            | Pending::Election(_)
            | Pending::Declined(_)
            | Pending::Task { .. } => Code::InvalidPayload,
            Pending::Key(_)
            | Pending::Missed
            | Pending::MissedClaim { .. }
            | Pending::Repeated(_)
            | Pending::Presence(_)
            | Pending::Tip(_)
            | Pending::History(_)
            | Pending::HistoryClaim(_)
            | Pending::Behind { .. }
            | Pending::HistoryAgain(_)
            | Pending::Again(_)
            | Pending::ListRooms
            | Pending::ListAgents
            | Pending::RoomInfo
            | Pending::Votes(_)
            | Pending::Tasks(_)
            | Pending::Webhooks => Code::InternalError,
        }
    }
}
