//! How each call is carried out.

use std::sync::Arc;

use mesh::{
    api::command::Command,
    name::id::{MessageId, RoomId},
};

use super::{
    job,
    seat::{Me, Place, Seat, Then},
};
use crate::{
    delivery::hook::Hook,
    seam::{
        answer,
        call::{
            Attach, Call, EnableSubscription, History, ListSubscriptions, Look, OneMessage,
            Subscribe, Tip, ToMesh, Unsubscribe,
        },
        event::Message,
        refusal::Refusal,
    },
};

/// A call that a [`Seat`] carries out.
pub trait Ask: Call {
    /// Carries it out. Dialects say [`Seat::ask`].
    #[doc(hidden)]
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>);
}

/// A room, or a message in it, that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
    pub(super) room: RoomId,
    pub(super) message: Option<MessageId>,
}

impl<C: ToMesh> Ask for C {
    fn begin(self, seat: &mut Seat, then: Then<C::Answer>) {
        seat.look_up(self.room(), then, move |seat, me, then| seat.put(&me, self, then));
    }
}

impl Ask for Attach {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.attach(self, then);
    }
}

impl Ask for Look {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(Some(self.0), then, move |seat, me, then| {
            let facts = seat.readable(&me, self.0);
            then(seat, facts);
        });
    }
}

impl Ask for OneMessage {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let OneMessage { room, message } = self;
        seat.read(job::OneMessage { room, message }, move |seat, found| {
            let message = found.map_err(Refusal::from);
            then(seat, message.map(|row| row.and_then(|row| Message::read(room, *row))));
        });
    }
}

impl Ask for History {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| seat.history(&me, self, then));
    }
}

impl Ask for Tip {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = self.0;
        seat.look_up(Some(room), then, move |seat, me, then| match seat.readable(&me, room) {
            Ok(_) => seat.read(job::Tip(room), move |seat, found| {
                if let Ok(tip) = found {
                    seat.gave(room, tip, |served| served.told(tip));
                }
                then(seat, found.map_err(Refusal::from));
            }),
            Err(refusal) => then(seat, Err(refusal)),
        });
    }
}

impl Ask for Subscribe {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(Some(self.room), then, move |seat, me, then| match seat.count(&me) {
            Ok(()) => {
                seat.ask_webhooks(move |hooks| hooks.subscribe(me.caller.key, self), then);
            }
            Err(refusal) => then(seat, Err(refusal)),
        });
    }
}

impl Ask for Unsubscribe {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| {
            seat.ask_webhooks(move |hooks| hooks.unsubscribe(me.caller.key, self.id), then);
        });
    }
}

impl Ask for EnableSubscription {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| {
            seat.ask_webhooks(move |hooks| hooks.enable(me.caller.key, self.id), then);
        });
    }
}

impl Ask for ListSubscriptions {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| {
            seat.ask_webhooks(move |hooks| hooks.list(me.caller.key, self.room), then);
        });
    }
}

impl Seat {
    /// Goes on once a room is known here, or nobody knows it: a client may have it from an agent of another node, so
    /// connected nodes are asked before it is refused. An agent that is attached stays so: `me` holds in all that follows.
    fn look_up<A: 'static>(
        &mut self,
        room: Option<RoomId>,
        then: Then<A>,
        go_on: impl FnOnce(&mut Seat, Arc<Me>, Then<A>) + Send + 'static,
    ) {
        let Some(me) = self.me().cloned() else {
            return then(self, Err(Refusal::NotAttached));
        };
        match room.filter(|room| self.hub.facts(*room).is_none()) {
            Some(room) => {
                let sought = Sought { room, message: None };
                // Found or not: the call is answered as things are known now.
                self.seek(&me.clone(), sought, Place::First, move |seat| go_on(seat, me, then));
            }
            None => go_on(self, me, then),
        }
    }

    /// Asks connected nodes for something that is not known here.
    pub(super) fn seek(
        &mut self,
        me: &Me,
        sought: Sought,
        place: Place,
        go_on: impl FnOnce(&mut Seat) + Send + 'static,
    ) {
        let Sought { room, message } = sought;
        let command = Command::Seek { caller: me.caller.clone(), room, message };
        self.send(command, Hook::None, place, move |seat, _| go_on(seat));
    }

    /// Checks a call and puts it to the mesh.
    fn put<C: ToMesh>(&mut self, me: &Me, call: C, then: Then<C::Answer>) {
        if let Err(refusal) = self.judge(me, &call) {
            return then(self, Err(refusal));
        }
        let (hook, command) = (call.hook(), call.command(&me.caller));
        self.send(command, hook, Place::Any, move |seat, ended| {
            then(seat, answer::read(ended, C::ROW.bound));
        });
    }

    /// Whether the agent may make a call. One that counts is counted.
    fn judge<C: ToMesh>(&self, me: &Me, call: &C) -> Result<(), Refusal> {
        let quota = self.quota(me);
        let facts = call.room().map(|room| self.readable(me, room)).transpose()?;
        call.check(facts, quota)?;
        if C::ROW.counts { self.count(me) } else { Ok(()) }
    }
}
