//! Things that at most one agent does: asking for them, and the news that another one has one now.

use std::time::Duration;

use bridge::{seam::call::AskOnce, session::seat::Seat};
use mesh::{
    api::once::{OnceAnswered, OnceLost, OnceWant, WhyLost},
    name::{id::MessageId, time::in_ms},
};
use protocol::{
    event::{self, OnceWhy},
    reply::{OnceResult, Reply as Frame},
    request,
};

use crate::{codes::Problem, conversation::Turn};

const ONE_WISH: &str =
    "`renew` and `release` name a grant of yours: give one of them, and no `lease_ms`";

impl Turn {
    pub(crate) fn once(self, seat: &mut Seat, once: request::Once) {
        let want = match wanted(&once) {
            Ok(want) => want,
            Err(why) => return self.refuse(seat, Problem::invalid(why)),
        };
        let subject = once.subject;
        self.at(seat, &once.room_id, |turn, seat, room| {
            turn.ask(seat, AskOnce { room, subject, want }, move |voice, answered| {
                Frame::Once(Box::new(written(voice.name(room), *answered)))
            });
        });
    }
}

fn wanted(once: &request::Once) -> Result<OnceWant, String> {
    let grant = |name: &str, text: &str| {
        MessageId::from_uuid(text).ok_or_else(|| format!("`{name}` must be the id of a grant"))
    };
    match (once.lease_ms, &once.renew, &once.release) {
        (lease, None, None) => Ok(OnceWant::Take(lease.map(Duration::from_millis))),
        (None, Some(renew), None) => grant("renew", renew).map(OnceWant::Renew),
        (None, None, Some(release)) => grant("release", release).map(OnceWant::Release),
        (_, _, _) => Err(ONE_WISH.to_owned()),
    }
}

fn written(room_id: String, answered: OnceAnswered) -> OnceResult {
    let OnceAnswered { subject, granted, holder, durable } = answered;
    OnceResult {
        room_id,
        subject,
        granted,
        agent_id: holder.as_ref().map(|holder| holder.agent.to_string()),
        grant_id: holder.as_ref().map(|holder| holder.grant.to_uuid()),
        lease_ms: holder.and_then(|holder| holder.lease).map(in_ms),
        durable: durable.map(|copies| copies as u64),
    }
}

/// See [`event::OnceLost`].
pub(crate) fn lost(room_id: String, lost: &OnceLost) -> event::OnceLost {
    event::OnceLost {
        room_id,
        subject: lost.subject.to_string(),
        grant_id: lost.grant.to_uuid(),
        why: match lost.why {
            WhyLost::Lapsed => OnceWhy::Lapsed,
            WhyLost::Split => OnceWhy::Split,
        },
        agent_id: lost.holder.as_ref().map(|holder| holder.agent.to_string()),
    }
}
