//! Receipts: the fate of a message (spec §3).

use bridge::{
    seam::{
        answer::{How, Receipts},
        call::{Confirm, GetReceipts},
    },
    session::seat::Seat,
};
use mesh::{
    api::delivery::{Delivery, Stage},
    name::{
        id::{AgentId, MessageId},
        number::Number,
    },
};
use protocol::{
    event::{Receipt, ReceiptState},
    reply::{self, Acked, ReachedState, Reply as Frame, StoredAt},
    request,
};

use crate::{codes::Problem, conversation::Turn, encode};

const NO_MESSAGE: &str = "no such message in this room, or it is no longer kept here";

/// News of a request.
pub(crate) fn receipt(
    room_id: String,
    request: MessageId,
    to: &AgentId,
    now: &Delivery,
) -> Receipt {
    let state = match now.stage {
        Stage::Arrived => ReceiptState::Arrived,
        Stage::Delivered => ReceiptState::Delivered,
        Stage::Failed => ReceiptState::Failed,
    };
    Receipt {
        room_id,
        message_id: request.to_uuid(),
        agent_id: to.to_string(),
        state,
        reason: now.reason.as_ref().map(|reason| reason.text()),
        node: now.node.to_string(),
        at: encode::timestamp(now.at_ms),
    }
}

impl Turn {
    pub(crate) fn get_receipts(self, seat: &mut Seat, ask: &request::GetReceipts) {
        let Some(message) = MessageId::from_uuid(&ask.message_id) else {
            return self.refuse(seat, Problem::invalid(NO_MESSAGE));
        };
        self.at(seat, &ask.room_id, |turn, seat, room| {
            seat.ask(GetReceipts { room, message }, move |seat, answer| match answer {
                Ok(Some(receipts)) => turn.reply(seat, &Frame::Receipts(written(receipts))),
                Ok(None) => turn.refuse(seat, Problem::invalid(NO_MESSAGE)),
                Err(refusal) => turn.refuse(seat, refusal),
            });
        });
    }

    pub(crate) fn ack(self, seat: &mut Seat, ack: &request::Ack) {
        let seq = ack.seq;
        self.at(seat, &ack.room_id, |turn, seat, room| {
            turn.ask(seat, Confirm { room, upto: Number(seq) }, move |voice, ()| {
                Frame::Acked(Acked { room_id: voice.name(room), seq })
            });
        });
    }
}

fn written(receipts: Receipts) -> reply::Receipts {
    let Receipts { stored, of, unknown, agents } = receipts;
    let stored = stored.into_iter().map(|stored| StoredAt {
        node: stored.node.to_string(),
        at: encode::timestamp(stored.at_ms),
    });
    let agents = agents.into_iter().map(|reached| reply::Reached {
        agent_id: reached.agent.to_string(),
        state: match reached.how {
            How::Delivered => ReachedState::Delivered,
            How::Confirmed => ReachedState::Confirmed,
            How::Answered => ReachedState::Answered,
        },
        node: reached.node.to_string(),
        at: encode::timestamp(reached.at_ms),
    });
    reply::Receipts {
        stored: stored.collect(),
        of: of as u64,
        unknown: unknown.iter().map(ToString::to_string).collect(),
        agents: agents.collect(),
    }
}
