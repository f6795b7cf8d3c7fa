//! Things that at most one agent does: asking for them, and telling agents what became of it.

use std::{collections::BTreeMap, sync::Arc};

use super::{known::Known, receipts::Receipts};
use crate::{
    api::{
        command::{CallId, Outcome, Refused},
        event::RoomEvent,
        once::{Once, OnceAnswered, OnceLost, OnceWant, WhyLost, check_once},
    },
    fold::{
        act::Fold as _,
        once::{Answer, News},
    },
    name::{
        id::{AgentId, EntryRef, LocalRef, RoomId},
        time::in_ms,
    },
    room::Room,
    wire::{
        entry::Body,
        once::{OnceAct, OnceAsked, OnceWish},
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Onces {
    /// The calls that wait for an answer, by the entry of the ask.
    pub(super) waiting: BTreeMap<(RoomId, LocalRef), CallId>,
}

/// A grant that is to be given back, for its agent does not know of it, or was told that another one has it.
struct GivenBack {
    subject: String,
    by: AgentId,
    grant: EntryRef,
}

impl Onces {
    pub(super) fn ask(&mut self, known: &mut Known, call: CallId, once: Once) {
        match try_ask(known, once) {
            Ok(Begun::Written(place)) => {
                self.waiting.insert(place, call);
            }
            Ok(Begun::Answered(answered)) => {
                known.cx.reply(call, Ok(Outcome::Once(Box::new(answered))));
            }
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    /// Acts on what has changed in a room.
    pub(super) fn settle(&mut self, known: &mut Known, receipts: &mut Receipts, id: RoomId) {
        let Some(room) = known.rooms.get_mut(&id) else { return };
        for news in room.folds.onces.take_news(known.cx.now.mono) {
            match news {
                News::Answered { ask, asked, answer, by } => {
                    self.on_answered(known, receipts, (id, ask), Answered { asked, answer, by });
                }
                News::Unasked { subject, by, grant } => {
                    give_back(known, id, GivenBack { subject: subject.to_string(), by, grant });
                }
                News::Lost { grant, was, subject, now, why } => {
                    let back =
                        GivenBack { subject: subject.to_string(), by: was.agent.clone(), grant };
                    if known.registrations.contains_key(&was.agent) {
                        let (agent, grant) = (was.agent, was.grant);
                        let lost = OnceLost { agent, subject, grant, holder: now, why };
                        known.cx.notify(id, RoomEvent::OnceLost(Arc::new(lost)));
                    }
                    if why == WhyLost::Split {
                        give_back(known, id, back);
                    }
                }
            }
        }
    }

    fn on_answered(
        &mut self,
        known: &mut Known,
        receipts: &mut Receipts,
        place: (RoomId, LocalRef),
        answered: Answered,
    ) {
        let Answered { asked, answer, by } = answered;
        let call = self.waiting.remove(&place);
        let took = matches!(asked.wish, OnceWish::Take(_));
        let subject = asked.subject.clone();
        let done = |granted, holder| OnceAnswered { subject, granted, holder, durable: None };
        let result = match answer {
            Answer::Granted(holder) => Ok(done(true, holder)),
            Answer::Held(holder) => Ok(done(false, holder)),
            Answer::Unproven => Err(Refused::Full(UNPROVEN.to_owned())),
            Answer::Full => Err(Refused::Full(FULL.to_owned())),
        };
        let is_granted = result.as_ref().is_ok_and(|done| done.granted);
        if took && !(is_granted && call.is_some()) {
            // Its agent does not know of it, now or ever.
            let Some(room) = known.rooms.get(&place.0) else { return };
            let grant = room.replica.name_of(place.1);
            give_back(known, place.0, GivenBack { subject: asked.subject, by: asked.by, grant });
        }
        let Some(call) = call else { return };
        match result {
            Ok(done) if is_granted => receipts.secure_act(known, call, (place.0, by), done),
            Ok(done) => known.cx.reply(call, Ok(Outcome::Once(Box::new(done)))),
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse(&mut self, known: &mut Known, which: impl Fn(&Known, RoomId) -> bool) {
        let refused = self.waiting.extract_if(.., |(room, _), _| which(known, *room));
        let refused: Vec<(RoomId, CallId)> =
            refused.map(|((room, _), call)| (room, call)).collect();
        for (room, call) in refused {
            let why = known.not_writable(room);
            known.cx.reply(call, Err(why));
        }
    }

    /// The room has ended.
    pub(super) fn forget(&mut self, known: &mut Known, room: &Room) {
        let ended = self.waiting.extract_if(.., |(of, _), _| *of == room.replica.id);
        for call in ended.map(|(_, call)| call).collect::<Vec<_>>() {
            known.cx.reply(call, Err(Refused::NoRoom));
        }
    }
}

/// See [`News::Answered`].
struct Answered {
    asked: OnceAsked,
    answer: Answer,
    by: LocalRef,
}

/// How an ask began.
enum Begun {
    /// It waits for its answer.
    Written((RoomId, LocalRef)),
    /// There is nothing to ask for.
    Answered(OnceAnswered),
}

fn try_ask(known: &mut Known, once: Once) -> Result<Begun, Refused> {
    known.may_contribute(&once.caller, once.room)?;
    check_once(&once.subject, once.want)?;
    let Once { caller, room, subject, want } = once;
    let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
    if state.replica.record.ephemeral {
        return Err(Refused::NotDurable);
    }
    known.may_speak(&caller)?;
    let onces = &state.folds.onces;
    let wish = match want {
        OnceWant::Take(lease) => Some(OnceWish::Take(lease.map(in_ms))),
        OnceWant::Renew(grant) => onces.find(&subject, grant).map(OnceWish::Renew),
        OnceWant::Release(grant) => onces.find(&subject, grant).map(OnceWish::Release),
    };
    let Some(wish) = wish else {
        let holder = onces.holder(&subject);
        let none = OnceAnswered { subject, granted: false, holder, durable: None };
        return Ok(Begun::Answered(none));
    };
    let (era, by, key) = (state.order.numbering.current(), caller.agent, caller.key.checked());
    let asked = OnceAsked { subject, by, wish, era, key };
    let at = known.write_act(room, &Body::Once(OnceAct::Asked(asked)))?;
    Ok(Begun::Written((room, at)))
}

/// Gives a grant of this node back, for its agent.
fn give_back(known: &mut Known, id: RoomId, back: GivenBack) {
    let GivenBack { subject, by, grant } = back;
    if grant.log.author != known.cx.me {
        return;
    }
    let Some(room) = known.rooms.get(&id) else { return };
    if !room.folds.onces.is_open(grant) {
        return;
    }
    let era = room.order.numbering.current();
    let key = room.folds.onces.key_of(grant);
    let asked = OnceAsked { subject, by, wish: OnceWish::Release(grant), era, key };
    // A node that cannot write keeps it until its lease has run out, or for 30 days.
    let _ = known.write_act(id, &Body::Once(OnceAct::Asked(asked)));
    known.cx.to_advance.insert(id);
}

/// Sees which asks are their agents', before they are answered: an ask and the voucher of its node travel in two rooms.
pub(super) fn judge(known: &mut Known, id: RoomId) {
    let keys = known.directory.keys();
    if let Some(room) = known.rooms.get_mut(&id).filter(|room| room.folds.onces.is_waiting()) {
        room.folds.onces.judge(|act| keys.may_ask(act));
    }
}

/// After a start nobody is told of what was there before.
pub(super) fn drop_news(known: &mut Known) {
    for room in known.rooms.values_mut() {
        drop(room.folds.onces.take_news(known.cx.now.mono));
    }
}

/// Why nothing was granted though nobody has it.
const UNPROVEN: &str =
    "the node that decides does not know yet that this agent's node was shown its key: try again";

/// Why nothing more is granted.
const FULL: &str = "the room has 10000 things that one agent has: give some back, or use leases";
