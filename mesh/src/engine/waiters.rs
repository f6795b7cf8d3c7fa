//! Waiters that wait for the delivery of an entry, and how they are answered.

use std::collections::BTreeMap;

use super::known::Known;
use crate::{
    api::command::{Attach, CallId, Durable, Fresh, Outcome, Refused, SaidOk},
    directory::{Source, naming::Named},
    name::{
        id::{KeyPrint, LocalRef, RoomId},
        number::Number,
    },
    room::Room,
};

/// A call that waits for the delivery of an entry.
#[derive(Clone, Debug)]
pub(super) enum Waiter {
    /// A message: answered with its number.
    Said { call: CallId, fresh: Option<Fresh>, durable: Option<Durable> },
    /// A room: answered when its name is certain.
    Created { call: CallId, key: KeyPrint },
    /// An account: answered when its claim is certain.
    Account { call: CallId },
    /// A stable id: the registration goes on when its owner is certain.
    Claimed { call: CallId, attach: Box<Attach> },
}

impl Waiter {
    fn call(&self) -> CallId {
        let (Waiter::Said { call, .. }
        | Waiter::Created { call, .. }
        | Waiter::Account { call }
        | Waiter::Claimed { call, .. }) = self;
        *call
    }
}

/// A send that waits for copies of its message: the message has its number.
#[derive(Clone, Debug)]
pub(super) struct Securing {
    pub(super) call: CallId,
    pub(super) said: SaidOk,
    pub(super) durable: Durable,
}

/// A step of a send that wants copies of its message.
#[derive(Clone, Debug)]
pub(super) enum DurableStep {
    Written(Source),
    Numbered(Source, Securing),
}

/// A registration that goes on: its id is certain.
#[derive(Clone, Debug)]
pub(super) struct Registering {
    pub(super) call: CallId,
    pub(super) attach: Attach,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    pub(super) waiting: BTreeMap<Source, Vec<Waiter>>,
    /// Own rooms whose name is undecided: their number is behind a hole, or counts no more. The value is the tentative
    /// number. They get another one.
    pub(super) unsettled: BTreeMap<Source, Number>,
    /// Steps of this turn.
    durable: Vec<DurableStep>,
}

impl Waiters {
    pub(super) fn wait(&mut self, place: Source, waiter: Waiter) {
        if let Waiter::Said { durable: Some(Durable { copies: 2.., .. }), .. } = &waiter {
            self.durable.push(DurableStep::Written(place));
        }
        self.waiting.entry(place).or_default().push(waiter);
    }

    /// A message has its number: its send is answered, or waits for copies.
    pub(super) fn said(
        &mut self,
        known: &mut Known,
        place: Source,
        send: (CallId, Option<Durable>),
        said: SaidOk,
    ) {
        let (call, durable) = send;
        match durable {
            Some(durable) => {
                let securing = Securing { call, said, durable };
                self.durable.push(DurableStep::Numbered(place, securing));
            }
            None => known.cx.reply(call, Ok(Outcome::Said(said))),
        }
    }

    pub(super) fn take_durable(&mut self) -> Vec<DurableStep> {
        std::mem::take(&mut self.durable)
    }

    /// Whether the number of a written message is still missing: its sender would not know its fate.
    pub(super) fn owe_numbers(&self) -> bool {
        self.waiting.values().flatten().any(|waiter| matches!(waiter, Waiter::Said { .. }))
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse(&mut self, known: &mut Known, which: impl Fn(&Known, RoomId) -> bool) {
        let refused = self.waiting.extract_if(.., |(room, _), _| which(known, *room));
        let refused: Vec<(RoomId, Vec<Waiter>)> =
            refused.map(|((room, _), waiters)| (room, waiters)).collect();
        for (room, waiters) in refused {
            let why = known.not_writable(room);
            for waiter in waiters {
                known.cx.reply(waiter.call(), Err(why.clone()));
            }
        }
    }

    /// An ephemeral room has ended.
    pub(super) fn refuse_ended(&mut self, known: &mut Known, room: RoomId) {
        let all =
            (room, LocalRef { log: 0, seq: 0 })..=(room, LocalRef { log: u32::MAX, seq: u64::MAX });
        let ended: Vec<Waiter> =
            self.waiting.extract_if(all, |_, _| true).flat_map(|(_, waiters)| waiters).collect();
        for waiter in ended {
            match waiter {
                Waiter::Said { call, .. } | Waiter::Created { call, .. } => {
                    known.cx.reply(call, Err(Refused::NoRoom));
                }
                // These are in directories, which do not end.
                Waiter::Claimed { .. } | Waiter::Account { .. } => {}
            }
        }
    }

    /// An entry got its number. Registrations that waited for it go on.
    pub(super) fn answer_all(
        &mut self,
        known: &mut Known,
        place: Source,
        number: Number,
    ) -> Vec<Registering> {
        let waiters = self.waiting.remove(&place).unwrap_or_default();
        let creates = waiters.iter().any(|waiter| matches!(waiter, Waiter::Created { .. }));
        if creates && !is_settled(known, place, number) {
            self.waiting.insert(place, waiters);
            self.unsettled.insert(place, number);
            return Vec::new();
        }
        let answered = |waiter| self.answer(known, place, waiter, number);
        waiters.into_iter().filter_map(answered).collect()
    }

    /// Rooms of this node that a number made which does not count any more get another one.
    pub(super) fn note_rooms_without_lead(&mut self, known: &Known) {
        for room in known.directory.lost_a_number(known.cx.me) {
            self.note_if_without_lead(known, room);
        }
    }

    pub(super) fn note_if_without_lead(&mut self, known: &Known, room: RoomId) {
        let Some(created) =
            known.directory.room(room).filter(|created| created.author == known.cx.me)
        else {
            return;
        };
        if known.directory.has_lost_its_lead(created) {
            self.unsettled.entry(created.source).or_insert(Number::ZERO);
        }
    }

    /// Numbers undecided rooms once more, in a new era in which they are the first of their names: so they count as made
    /// on one side of a split. `None`: there are none. See [`Waiters::answer_settled`].
    pub(super) fn number_again(&mut self, known: &mut Known) -> Option<Unsettled> {
        if self.unsettled.is_empty() || known.stopping {
            return None;
        }
        let all = std::mem::take(&mut self.unsettled);
        let mut first: BTreeMap<RoomId, Vec<LocalRef>> = BTreeMap::new();
        for (place, number) in &all {
            if !is_settled(known, *place, *number) {
                first.entry(place.0).or_default().push(place.1);
            }
        }
        for (room, first) in &mut first {
            let Some(room) = known.rooms.get_mut(room) else { continue };
            if room.claim_for(&mut known.cx, first.clone()) {
                first.clear();
            }
        }
        Some(Unsettled { all, first })
    }

    /// Answers those whose name is decided now; the others wait on.
    pub(super) fn answer_settled(&mut self, known: &mut Known, unsettled: Unsettled) {
        for (place, number) in unsettled.all {
            let waits = unsettled.first.get(&place.0).is_some_and(|first| first.contains(&place.1));
            // Of two rooms of one name the second one is not the first of that era.
            if waits || is_without_lead(known, place) {
                self.unsettled.insert(place, number);
                continue;
            }
            for waiter in self.waiting.remove(&place).unwrap_or_default() {
                let registering = self.answer(known, place, waiter, number);
                debug_assert!(registering.is_none(), "a room's entry is no claim of an id");
            }
        }
    }

    /// Answers a call; a registration goes on instead.
    fn answer(
        &mut self,
        known: &mut Known,
        place: Source,
        waiter: Waiter,
        number: Number,
    ) -> Option<Registering> {
        match waiter {
            Waiter::Said { call, fresh, durable } => {
                if let Some(message) = known.message_id(place.0, place.1) {
                    let said = SaidOk { message, number, fresh, copies: None };
                    self.said(known, place, (call, durable), said);
                }
            }
            Waiter::Created { call, key } => {
                let made = made(known, place, key);
                known.cx.reply(call, made);
            }
            Waiter::Account { call } => known.cx.reply(call, Ok(Outcome::Done)),
            Waiter::Claimed { call, .. } if known.stopping => {
                known.cx.reply(call, Err(Refused::Stopping));
            }
            Waiter::Claimed { call, attach } => return Some(Registering { call, attach: *attach }),
        }
        None
    }
}

fn is_without_lead(known: &Known, source: Source) -> bool {
    let room = known.directory.created_at(source).and_then(|id| known.directory.room(id));
    room.is_some_and(|created| known.directory.has_lost_its_lead(created))
}

/// Whether the fate of a room's name is certain. It is not where a number was left as a hole: that may
/// turn out to be a room of this name, numbered first. Nor is it where a node that is out gave the
/// number, and others know nothing of that.
fn is_settled(known: &Known, source: Source, number: Number) -> bool {
    let id = known.directory.created_at(source);
    let named = id.is_some_and(|id| matches!(known.directory.name(id), Named::Name(_)));
    let room = known.rooms.get(&source.0).filter(|room| room.is_writable(&known.cx));
    let in_doubt = |room: &Room| named && room.is_behind_holes(&known.cx, number);
    room.is_none_or(|open| !in_doubt(open) && !is_without_lead(known, source))
}

/// Rooms whose name was undecided.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    all: BTreeMap<Source, Number>,
    /// Those that were not numbered again, by directory.
    first: BTreeMap<RoomId, Vec<LocalRef>>,
}

/// The fate of a room: made, or no room because another one has its name.
fn made(known: &Known, place: Source, key: KeyPrint) -> Result<Outcome, Refused> {
    let id = known.directory.created_at(place).ok_or(Refused::NoRoom)?;
    match known.directory.name(id) {
        Named::Name(_) => {
            let view = known.view(id).ok_or(Refused::NoRoom)?;
            Ok(Outcome::Room(known.for_key(view, key)))
        }
        Named::Void => {
            let room = known.directory.room(id);
            let name = room.map(|room| room.created.name.clone()).unwrap_or_default();
            Err(Refused::NameTaken(name))
        }
        Named::NotYet => Err(Refused::NoRoom),
    }
}
