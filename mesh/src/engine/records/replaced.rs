//! States that records have replaced: kept for a while beside the sets, in no digest, and asked of others when somebody looks
//! for them. The store has them; here is the asking.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use minicbor::bytes::ByteArray;

use super::{Records, answers_for, contents::Name, shares, writing::place_in};
use crate::{
    api::{
        batch::{Change, ReplacedChange},
        boundary::Effect,
        command::{CallId, GatherReplaced, Outcome, Refused},
    },
    engine::known::Known,
    limits::{
        INQUIRIES_ANSWERED_PER_TICK, INQUIRIES_MAX, INQUIRY_FOR, REPLACED_ENDS_EVERY, REPLACED_FOR,
        TICK,
    },
    name::id::NodeId,
    records::{collection::Collection, files, set::Set},
    wire::{
        message::Message,
        record::{Record, RecordKey, Space},
        replaced::{Ids, ReplacedState, SentReplaced, WantedReplaced},
    },
};

/// A question to all who have the space.
#[derive(Clone, Debug)]
struct Asking {
    call: CallId,
    wanted: WantedReplaced,
    /// Connected nodes that have not answered.
    asked: BTreeSet<NodeId>,
    until: Duration,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathering {
    /// By nonce; at most [`INQUIRIES_MAX`].
    running: BTreeMap<u64, Asking>,
    last: u64,
    /// Since when questions of a peer are counted, and how many were answered.
    answered: BTreeMap<NodeId, (Duration, u32)>,
    /// There may be some here whose time ends, up to then. After a start nobody knows.
    any_until: Option<Duration>,
    next_end: Duration,
}

impl Gathering {
    fn may_have_answer(&mut self, now: Duration, peer: NodeId) -> bool {
        let (since, count) = self.answered.entry(peer).or_default();
        if now >= *since + TICK {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= INQUIRIES_ANSWERED_PER_TICK
    }

    /// Questions end that all have answered, or that have run for long enough.
    fn go_on(&mut self, known: &mut Known) {
        let (now, stopping) = (known.cx.now.mono, known.stopping);
        let is_over = |asking: &Asking| asking.asked.is_empty() || asking.until <= now || stopping;
        for (_, asking) in self.running.extract_if(.., |_, asking| is_over(asking)) {
            known.cx.reply(asking.call, Ok(Outcome::Done));
        }
    }
}

/// The state of a record is about to be replaced. `is_live`: the one that is there says something.
pub(super) fn keep(known: &mut Known, gathering: &mut Gathering, name: Name, is_live: bool) {
    if !is_live {
        return;
    }
    let until_ms = known.cx.now.wall_ms.saturating_add(for_ms());
    say(known, name, ReplacedChange::Keep { until_ms });
    gathering.any_until = Some(known.cx.now.mono + REPLACED_FOR);
}

/// A record is deleted, or not kept any more: the states before go with it.
pub(super) fn drop_all(known: &mut Known, name: Name) {
    say(known, name, ReplacedChange::Drop);
}

fn say(known: &mut Known, name: Name, change: ReplacedChange) {
    let (mesh, Name { space, collection, key }) = (known.cx.mesh, name);
    known.cx.change(Change::Replaced { mesh, space, collection, key, change });
}

fn for_ms() -> u64 {
    u64::try_from(REPLACED_FOR.as_millis()).unwrap_or(u64::MAX)
}

impl Records {
    /// Asks all connected nodes that have the room's records for the states of its files which these have replaced. Answered
    /// when the last one has answered, and after [`INQUIRY_FOR`] at the latest.
    pub(crate) fn gather_replaced(
        &mut self,
        known: &mut Known,
        call: CallId,
        gather: &GatherReplaced,
    ) {
        let begun = self.ask_for_replaced(known, call, gather);
        if let Err(refused) = begun {
            known.cx.reply(call, Err(refused));
        }
        self.gathering.go_on(known);
    }

    fn ask_for_replaced(
        &mut self,
        known: &mut Known,
        call: CallId,
        gather: &GatherReplaced,
    ) -> Result<(), Refused> {
        let GatherReplaced { by, room, file } = gather;
        known.may_read(by, *room)?;
        let at = match place_in(known, *room) {
            Ok(at) => at,
            Err(Refused::NoRoom) => return Err(Refused::NoRoom),
            // The room has no records: nobody has to be asked.
            Err(_) => {
                known.cx.reply(call, Ok(Outcome::Done));
                return Ok(());
            }
        };
        let collection = files::COLLECTION.number;
        let ids = match file {
            Some((path, _)) => Ids::Only(ByteArray::from(files::id(&at, path).0)),
            None => Ids::Of(ByteArray::from(at.subject(collection))),
        };
        let stamp = file.as_ref().and_then(|(_, stamp)| *stamp);
        let gathering = &mut self.gathering;
        gathering.last += 1;
        let nonce = gathering.last;
        let wanted = WantedReplaced { nonce, space: at.space, collection, ids, stamp };
        let mut asked = BTreeSet::new();
        if at.space != Space::Node && gathering.running.len() < INQUIRIES_MAX {
            let up = known.cx.up.iter().copied();
            asked.extend(up.filter(|peer| shares(known, *peer, at.space)));
        }
        for peer in &asked {
            known.cx.send(*peer, Message::WantReplaced(wanted.clone()));
        }
        let until = known.cx.now.mono + INQUIRY_FOR;
        gathering.running.insert(nonce, Asking { call, wanted, asked, until });
        Ok(())
    }

    /// A peer asks.
    pub(crate) fn on_want_replaced(
        &mut self,
        known: &mut Known,
        from: NodeId,
        wanted: WantedReplaced,
    ) {
        let keeps = Collection::of(wanted.collection).is_some_and(|kind| kind.keeps_replaced);
        let may_ask = keeps && shares(known, from, wanted.space);
        if may_ask && self.gathering.may_have_answer(known.cx.now.mono, from) {
            known.cx.effects.push(Effect::SendReplaced { to: from, wanted });
        }
    }

    /// A peer answers. What is not of the question, and what no record here has replaced, is passed over.
    pub(crate) fn on_replaced(&mut self, known: &mut Known, from: NodeId, sent: SentReplaced) {
        let Some(asking) = self.gathering.running.get_mut(&sent.nonce) else { return };
        if !asking.asked.remove(&from) {
            return;
        }
        let wanted = asking.wanted.clone();
        for state in sent.states {
            self.take_replaced(known, &wanted, state);
        }
        self.gathering.go_on(known);
    }

    fn take_replaced(&mut self, known: &mut Known, wanted: &WantedReplaced, state: ReplacedState) {
        let ReplacedState { record, bytes, left_ms } = state;
        let (space, collection) = (wanted.space, wanted.collection);
        let is_wanted = (record.space, record.collection) == (space, collection)
            && record.id.0.starts_with(wanted.ids.beginning())
            && wanted.stamp.is_none_or(|stamp| stamp == record.stamp);
        let Some(kind) = Collection::of(collection).filter(|_| is_wanted) else { return };
        let set = self.set(space, collection);
        let key = kind.key(record.id, record.owner());
        let owns = answers_for(known, (space, kind), record.owner()).is_some();
        if !owns || !set.is_some_and(|set| is_replaced(set, key, &record)) {
            return;
        }
        let until_ms = known.cx.now.wall_ms.saturating_add(left_ms.min(for_ms()));
        let (record, bytes) = (Box::new(record), bytes.map(Vec::from));
        say(
            known,
            Name { space, collection, key },
            ReplacedChange::Heard { record, bytes, until_ms },
        );
        self.gathering.any_until = Some(known.cx.now.mono + REPLACED_FOR);
    }

    /// At every tick.
    pub(crate) fn go_on_gathering(&mut self, known: &mut Known, clock_is_sound: bool) {
        self.gathering.go_on(known);
        let (now, gathering) = (known.cx.now, &mut self.gathering);
        let any_until = *gathering.any_until.get_or_insert(now.mono + REPLACED_FOR);
        if now.mono < gathering.next_end || !clock_is_sound {
            return;
        }
        gathering.next_end = now.mono + REPLACED_ENDS_EVERY;
        if now.mono <= any_until + REPLACED_ENDS_EVERY {
            known.cx.change(Change::ReplacedEnd { now_ms: now.wall_ms });
        }
    }

    /// A peer is gone, and answers nothing more.
    pub(super) fn forget_asked(&mut self, known: &mut Known, peer: NodeId) {
        self.gathering.answered.remove(&peer);
        for asking in self.gathering.running.values_mut() {
            asking.asked.remove(&peer);
        }
        self.gathering.go_on(known);
    }
}

/// Whether a state is an earlier one of a record that is here, and is not deleted.
fn is_replaced(set: &Set, key: RecordKey, state: &Record) -> bool {
    let is_later = set.head(key).is_some_and(|head| head.stamp > state.stamp);
    state.body.is_some() && is_later && set.is_live(key)
}
