//! The fate of a message: other nodes are asked, and this one says what it knows itself.

use std::collections::BTreeMap;

use mesh::{
    api::command::{Command, MessageReceipts, StoredAt},
    name::id::{AgentId, MessageId, RoomId},
    wire::copies::AgentState,
};

use super::{
    job::{Job, Tip},
    party::Party,
    seat::{Seat, Then},
};
use crate::{
    backend::{ReadError, Reads, Row},
    limits::ANSWERS_SEARCHED_MAX,
    seam::{
        answer::{How, Reached, Receipts},
        call::{Confirm, GetReceipts},
        refusal::{Bound, Refusal},
    },
};

/// A message, and messages that answer it.
#[derive(Debug)]
struct Traced {
    row: Row,
    answers: Vec<Row>,
}

/// Looks for a message, and for answers to it among those that follow.
#[derive(Debug)]
struct Trace {
    room: RoomId,
    message: MessageId,
}

impl Job for Trace {
    type Found = Option<Box<Traced>>;

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        let Some(row) = reads.by_message(self.room, self.message)? else { return Ok(None) };
        let id = self.message.to_uuid();
        let mut answers = reads.page_since(self.room, row.number, ANSWERS_SEARCHED_MAX)?;
        answers.retain(|later| {
            let said = later.said.as_ref();
            said.is_some_and(|said| said.reply_to.as_deref() == Some(&id))
        });
        Ok(Some(Box::new(Traced { row, answers })))
    }
}

impl Seat {
    pub(super) fn receipts(&mut self, me: &Party, call: GetReceipts, then: Then<Option<Receipts>>) {
        let GetReceipts { room, message } = call;
        // All nodes are asked: it counts as a message does.
        let may = self.rules.readable(me, room).and_then(|_| self.rules.count(me, self.now));
        if let Err(refusal) = may {
            return then(self, Err(refusal));
        }
        let by = me.as_reader();
        self.read(Trace { room, message }, move |seat, found| {
            let traced = match found {
                Ok(Some(traced)) => traced,
                Ok(None) => return then(seat, Ok(None)),
                Err(error) => return then(seat, Err(Refusal::from(error))),
            };
            let (at, number) = (traced.row.at, traced.row.number);
            let command = Command::Receipts { by, room, at, number };
            seat.call(
                command,
                Bound::Node,
                move |seat, answer: Result<Box<MessageReceipts>, _>| {
                    let receipts = answer.map(|said| Some(seat.all_receipts(room, &traced, *said)));
                    then(seat, receipts);
                },
            );
        });
    }

    /// Adds to the word of others what this node knows.
    fn all_receipts(&self, room: RoomId, traced: &Traced, said: MessageReceipts) -> Receipts {
        let MessageReceipts { of, here, stored, unknown, agents } = said;
        let is_on_disk = self.rules.hub.facts(room).is_some_and(|facts| !facts.ephemeral)
            && traced.row.said.is_some();
        let own: Option<StoredAt> = is_on_disk.then_some(here);
        let mut reached = BTreeMap::new();
        for AgentState { agent, confirmed, at_ms } in self.rules.hub.given(room, traced.row.number)
        {
            note(&mut reached, Reached { agent, how: how(confirmed), node: here.node, at_ms });
        }
        for got in agents {
            let (node, at_ms) = (got.node, got.at_ms);
            note(&mut reached, Reached { agent: got.agent, how: how(got.confirmed), node, at_ms });
        }
        for row in &traced.answers {
            let Some(said) = &row.said else { continue };
            let (node, at_ms) = (row.log.author, row.facts.wall_ms);
            note(
                &mut reached,
                Reached { agent: said.agent.clone(), how: How::Answered, node, at_ms },
            );
        }
        let stored = own.into_iter().chain(stored).collect();
        Receipts { stored, of, unknown, agents: reached.into_values().collect() }
    }

    pub(super) fn confirm(&mut self, me: &Party, call: Confirm, then: Then<()>) {
        let Confirm { room, upto } = call;
        let agent = me.caller().map(|caller| caller.agent.clone());
        match self.rules.readable(me, room).and(agent) {
            Ok(agent) => self.read(Tip(room), move |seat, found| {
                let confirmed = match found {
                    Ok(tip) if upto <= tip => {
                        seat.rules.hub.confirmed(&agent, room, upto);
                        Ok(())
                    }
                    Ok(tip) => Err(Refusal::NotThere { tip }),
                    Err(error) => Err(Refusal::from(error)),
                };
                then(seat, confirmed);
            }),
            Err(refusal) => then(self, Err(refusal)),
        }
    }
}

fn how(confirmed: bool) -> How {
    if confirmed { How::Confirmed } else { How::Delivered }
}

/// Keeps of each agent what says most; of the same the first.
fn note(reached: &mut BTreeMap<AgentId, Reached>, more: Reached) {
    let known = reached.get(&more.agent);
    if known.is_none_or(|known| known.how < more.how) {
        reached.insert(more.agent.clone(), more);
    }
}
