//! Replays: the past of a room, in parts.

use bridge::{
    replay::{Page, Wish},
    seam::refusal::Refusal,
    session::seat::Seat,
};
use protocol::{
    reply::{ReplayResult, Reply as Frame},
    request,
    value::Metadata,
};
use serde_json::Value;

use crate::{conversation::Turn, limits::REPLAY_EVENTS_MAX};

impl Turn {
    pub(crate) fn replay(self, seat: &mut Seat, ask: &request::Replay) {
        let request::Replay { room_id, after, limit, include_thinking, public } = ask;
        let wish = Wish { thinking: *include_thinking, public: *public };
        let limit = usize::try_from(*limit).unwrap_or(usize::MAX).clamp(1, REPLAY_EVENTS_MAX);
        let after = after.unwrap_or(0);
        self.at(seat, room_id, move |turn, seat, room| {
            let me = seat.agent().cloned().zip(seat.key());
            let desk = turn.desk.get().cloned();
            let work = async move {
                let (Some(desk), Some((agent, key))) = (desk, me) else {
                    return Err(Refusal::NotAttached);
                };
                let visitor = desk.attached(&agent, key).ok_or(Refusal::NotAttached)?;
                desk.replay(&visitor, (room, wish), (after, limit)).await
            };
            seat.owe(work, move |seat, page| match page {
                Ok(page) => {
                    let frame = shown(turn.voice.name(room), &page);
                    turn.reply(seat, &frame);
                }
                Err(refusal) => turn.refuse(seat, refusal),
            });
        });
    }
}

fn shown(room_id: String, page: &Page) -> Frame {
    // They are written by this node: all of them are sound.
    let sound = |value: &Value| Metadata::parse(&value.to_string()).ok();
    Frame::Replay(ReplayResult {
        room_id,
        meta: page.meta.as_ref().and_then(sound),
        events: page.events.iter().filter_map(sound).collect(),
        next: page.next,
    })
}
