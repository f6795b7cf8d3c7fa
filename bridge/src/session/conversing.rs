//! Messages and their place in a conversation: which request a message answers. The node of its author decides that, once,
//! out of the room's newest messages; so all readers find the same.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use mesh::{
    api::{
        budget::{Answered, Conversing},
        command::Speech,
    },
    limits::REQUEST_OPEN_FOR,
    name::id::{AgentId, MessageId, RoomId},
};

use super::{
    ask::Ask,
    job::Job,
    party::Party,
    seat::{Seat, Then},
};
use crate::{
    backend::{ReadError, Reads, Row},
    limits::REQUESTS_LOOKED_AT_MAX,
    seam::{
        answer::RoomFacts,
        call::{Call, Placed, Say},
    },
};

impl Ask for Say {
    fn begin(self, seat: &mut Seat, then: Then<<Say as Call>::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| {
            // A room that may not be read is refused with all that is wrong.
            let facts = seat.rules.readable(&me, self.room).ok();
            let Some(place) = facts.and_then(|facts| Place::of(&self, &facts, &me)) else {
                return seat.put(&me, Placed { say: self, conversing: None }, then);
            };
            seat.read(place, move |seat, found| match found {
                Ok(conversing) => seat.put(&me, Placed { say: self, conversing }, then),
                Err(error) => then(seat, Err(error.into())),
            });
        });
    }
}

/// Find the place of a message that is to be said. None: it is in no conversation.
#[derive(Debug)]
struct Place {
    room: RoomId,
    by: AgentId,
    /// Two agents alone: each message is in a conversation.
    direct: bool,
    reply_to: ReplyTo,
    expects_reply: Option<bool>,
}

/// The message that the author names.
#[derive(Clone, Copy, Debug)]
enum ReplyTo {
    Nothing,
    Message(MessageId),
    /// No message has such an id.
    Unknown,
}

impl Place {
    /// `None`: such a message has none.
    fn of(say: &Say, facts: &RoomFacts, me: &Party) -> Option<Place> {
        let by = me.agent().filter(|_| say.speech == Speech::Chat)?.clone();
        let direct = facts.access.sides.is_some();
        let reply_to = match &say.reply_to {
            None => ReplyTo::Nothing,
            Some(id) => MessageId::from_uuid(id).map_or(ReplyTo::Unknown, ReplyTo::Message),
        };
        let (room, expects_reply) = (say.room, say.expects_reply);
        let may = direct || expects_reply.is_some() || matches!(reply_to, ReplyTo::Message(_));
        may.then_some(Place { room, by, direct, reply_to, expects_reply })
    }

    fn find(&self, reads: &dyn Reads) -> Result<Option<Conversing>, ReadError> {
        let answers = match self.reply_to {
            ReplyTo::Message(message) => {
                let row = reads.by_message(self.room, message)?;
                row.and_then(|row| self.request(&row))
            }
            // Whoever says that it asks begins a conversation.
            ReplyTo::Nothing if self.direct && self.expects_reply != Some(true) => {
                self.oldest_open(&reads.page_newest(self.room, REQUESTS_LOOKED_AT_MAX, None)?)
            }
            ReplyTo::Nothing | ReplyTo::Unknown => None,
        };
        let expects_reply = self.expects_reply.unwrap_or(self.direct && answers.is_none());
        if !self.direct && answers.is_none() && !expects_reply {
            return Ok(None);
        }
        // In a room people refer to a message as often as they like: such words are not counted any more.
        let is_over =
            |answered: &Answered| answered.conversation.turn >= answered.conversation.last_turn();
        if !self.direct && self.expects_reply.is_none() && answers.as_ref().is_some_and(is_over) {
            return Ok(None);
        }
        Ok(Some(Conversing { answers, expects_reply }))
    }

    /// A message of another agent that is in a conversation.
    fn request(&self, row: &Row) -> Option<Answered> {
        let said = row.said.as_ref().filter(|said| said.agent != self.by)?;
        Some(Answered { message: row.message, conversation: said.conversation? })
    }

    /// The oldest request of the other agent that has no answer.
    fn oldest_open(&self, newest: &[Row]) -> Option<Answered> {
        let conversations = newest.iter().filter_map(|row| row.said.as_ref()?.conversation);
        let answered: HashSet<MessageId> =
            conversations.filter_map(|conversation| conversation.answers).collect();
        let since_ms = now().saturating_sub(REQUEST_OPEN_FOR).as_millis();
        let is_young = |row: &&Row| u128::from(row.facts.wall_ms) >= since_ms;
        let mut requests = newest.iter().filter(is_young).filter_map(|row| self.request(row));
        requests.find(|request| {
            request.conversation.expects_reply && !answered.contains(&request.message)
        })
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

impl Job for Place {
    type Found = Option<Conversing>;

    /// A page of some messages: what a client says is to stay in its order.
    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        self.find(reads).map(Some)
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        self.find(reads)
    }
}
