//! Carrying: entries of sealed rooms reach followers that are never up together, by members that cannot read them
//! (`docs/decisions/carrying.md`).
//!
//! Three parts that know nothing of each other: this node as one that follows rooms and [owes](owing) others what is new there, as a
//! [carrier](carrier), and as one that is [given](taking) what others carried for it.

mod carrier;
mod owing;
mod taking;

use std::time::Duration;

use self::{carrier::Carrier, owing::Owing, taking::Taking};
use super::{digests::Digests, exchange, known::Known, records::Records};
use crate::{
    api::{batch::Summary, status::RecordStatus},
    limits::CARRY_EVERY,
    name::{
        group::Group,
        id::{NodeId, RoomId},
    },
    wire::{
        carry::{Carrying as Word, Owed, Parcel},
        run::Verified,
    },
};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Carrying {
    owing: Owing,
    carrier: Carrier,
    taking: Taking,
    next: Duration,
}

impl Carrying {
    /// `max`: bytes of rooms that are carried for others.
    pub(super) fn new(max: u64) -> Carrying {
        Carrying {
            owing: Owing::default(),
            carrier: Carrier::new(max),
            taking: Taking::default(),
            next: Duration::ZERO,
        }
    }

    pub(super) fn restore(&mut self, stored: &mut Summary) {
        self.carrier
            .restore(std::mem::take(&mut stored.carriages), std::mem::take(&mut stored.carried));
    }

    /// The same, of what this node owes others: once its rooms are there.
    pub(super) fn restore_owed(&mut self, known: &mut Known, owed: Vec<(RoomId, NodeId, Owed)>) {
        self.owing.restore(known, owed);
    }

    pub(super) fn on_peer_up(&mut self, known: &Known, peer: NodeId) {
        self.owing.on_peer_up(known, peer);
        self.carrier.on_peer_up(peer);
    }

    pub(super) fn on_peer_down(&mut self, known: &mut Known, peer: NodeId) {
        self.owing.on_peer_down(known, peer);
        self.taking.forget_peer(peer);
    }

    /// A peer has all that is here of the rooms of these groups.
    pub(super) fn note_in_step(&mut self, known: &mut Known, peer: NodeId, groups: &[Group]) {
        self.owing.note_in_step(known, peer, groups);
    }

    pub(super) fn on_word(
        &mut self,
        known: &mut Known,
        records: &Records,
        (from, word): (NodeId, Word),
    ) {
        match word {
            Word::Please { room, nodes } => self.carrier.on_please(known, from, (room, nodes)),
            Word::Holds { room, heads, full } => {
                self.owing.on_holds(known, from, records, (room, &heads, full));
            }
            Word::Offers(rooms) => self.taking.on_offers(known, from, rooms),
            Word::Has { room, heads } => self.carrier.on_has(known, from, (room, &heads)),
        }
    }

    pub(super) fn on_parcel(
        &mut self,
        known: &mut Known,
        records: &mut Records,
        (from, mut parcel): (NodeId, Parcel<Verified>),
    ) {
        if parcel.of.is_none() {
            return self.carrier.on_parcel(known, from, parcel);
        }
        let given = (std::mem::take(&mut parcel.records), std::mem::take(&mut parcel.contents));
        let settled = records.take_carried(known, given.0, given.1);
        self.taking.note((from, parcel.room), settled);
        let Parcel { room, runs, bodies, .. } = parcel;
        exchange::on_spans(known, from, exchange::Spans { room, runs, bodies, last: false });
    }

    /// At every tick.
    pub(super) fn go_on(
        &mut self,
        known: &mut Known,
        (digests, records): (&mut Digests, &Records),
        sound_clock: bool,
    ) {
        let now = known.cx.now.mono;
        if now < self.next {
            return;
        }
        self.next = now + CARRY_EVERY;
        self.owing.hand_over(known, digests, records);
        self.carrier.offer(known);
        if sound_clock {
            self.carrier.expire(known);
        }
    }

    /// At the end of a turn: what it has written may be owed to others, and those that gave something are told that it is here.
    pub(super) fn end_turn(&mut self, known: &mut Known) {
        self.owing.note_written(known);
        self.taking.tell(known);
    }

    /// For operators.
    pub(super) fn add_to(&self, status: RecordStatus) -> RecordStatus {
        RecordStatus {
            rooms_carried_bytes: self.carrier.bytes(),
            rooms_owed: self.owing.count(),
            files_left_out: self.owing.left_out(),
            ..status
        }
    }

    /// Bytes of rooms that are carried for others.
    pub(super) fn bytes(&self) -> u64 {
        self.carrier.bytes()
    }
}
