//! What a run builds on: it is accepted when everything its entries refer to is here.

use super::Room;
use crate::{
    engine::context::Context,
    name::{
        id::{LogId, NodeId},
        number::Era,
    },
    replica::pending::Waiting,
    wire::{
        acts::ElectionAct,
        entry::{Body, Decision},
        run::Carried,
    },
};

/// One run, as it is looked at.
struct Looked<'r> {
    room: &'r Room,
    cx: &'r Context,
    log: LogId,
}

impl Room {
    /// Whether everything is here that the run's entries refer to (see the module).
    pub(super) fn builds_on_what_is_here(
        &self,
        cx: &Context,
        waiting: &Waiting,
        skip: usize,
    ) -> bool {
        let run = waiting.run.run();
        let looked = Looked { room: self, cx, log: run.log };
        self.bodies_of(waiting, skip)
            .all(|(seq, body)| looked.names_what_is_here(seq, &body) && looked.is_founded(body))
    }

    /// What the run's entries from index `skip` on say, each with its log seq.
    fn bodies_of(&self, waiting: &Waiting, skip: usize) -> impl Iterator<Item = (u64, Body)> {
        let run = waiting.run.run();
        (run.first..).zip(&run.entries).skip(skip).map(|(seq, entry)| {
            let apart = waiting.bodies.get(&seq).map_or(&[][..], Vec::as_slice);
            let bytes = if let Carried::Here(bytes) = &entry.body { bytes } else { apart };
            let spot = self.spot(run.log, seq, entry.facts.kind);
            (seq, self.record.body(&spot, bytes))
        })
    }

    /// Whether a run that has waited for all its time would open an era in a lane, or give numbers in an era, that is
    /// another node's as far as is known here. Until then its author may have got it, and this node not heard of that.
    pub(crate) fn gives_for_another(&self, cx: &Context, waiting: &Waiting) -> bool {
        let log = waiting.run.run().log;
        let has =
            |node: NodeId, lane: u32| cx.lanes.get(&node).is_some_and(|it| it.contains(&lane));
        self.bodies_of(waiting, 0).any(|(_, body)| match body {
            Body::EraClaimed(it) => it.era.lane().is_some_and(|lane| {
                !has(log.author, lane) && cx.lanes.keys().any(|node| has(*node, lane))
            }),
            Body::Ordered(it) => {
                let era = self.numbering.eras.get(&it.era);
                era.is_some_and(|it| it.record.sequencer != log)
            }
            Body::HandedOver(_)
            | Body::Chat(_)
            | Body::Thinking(_)
            | Body::Decision(_)
            | Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Key(_)
            | Body::Parted(_)
            | Body::Vote(_)
            | Body::Election(_)
            | Body::Task(_)
            | Body::Unknown => false,
        })
    }

    /// An era of an author of whom nothing more will come, or one that nothing is known of here and that can only be
    /// such an author's. Others may have built on it before they knew; what they wrote is accepted
    /// all the same, or their logs would be cut for ever.
    pub(crate) fn is_void(&self, cx: &Context, era: Era) -> bool {
        match self.numbering.eras.get(&era) {
            Some(known) => self.is_over(cx, known.record.sequencer),
            None => era.lane().is_some_and(|lane| {
                let mut lanes = cx.lanes.iter().filter(|(_, lanes)| lanes.contains(&lane));
                lanes.any(|(node, _)| self.is_over(cx, LogId { author: *node, incarnation: 0 }))
            }),
        }
    }
}

impl Looked<'_> {
    fn names_what_is_here(&self, seq: u64, body: &Body) -> bool {
        body.names().iter().all(|it| {
            self.room.logs.head_of(it.log) >= it.seq
                || (it.log == self.log && it.seq < seq)
                || !self.room.may_come(self.cx, it.log, it.seq)
        })
    }

    fn is_founded(&self, body: Body) -> bool {
        match body {
            Body::EraClaimed(it) => self.is_in_lane(it.era),
            Body::Decision(it) => self.can_judge(&it),
            Body::Election(ElectionAct::Started(it)) => {
                // Of a term before this one, a node that forked may have written it.
                self.room.folds.elections.follows(it.term)
                    || self.room.folds.elections.has_expelled()
            }
            Body::Chat(_)
            | Body::Thinking(_)
            | Body::Ordered(_)
            | Body::HandedOver(_)
            | Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Key(_)
            | Body::Parted(_)
            | Body::Vote(_)
            | Body::Task(_)
            | Body::Election(
                ElectionAct::Committed { .. }
                | ElectionAct::Declined { .. }
                | ElectionAct::Closed { .. }
                | ElectionAct::Shown { .. }
                | ElectionAct::Dropped { .. }
                | ElectionAct::Cleared { .. },
            )
            | Body::Unknown => true,
        }
    }

    /// An honest author begins a run with each decision, so what it is judged by comes before the run.
    fn can_judge(&self, it: &Decision) -> bool {
        if it.is_imported() {
            return true;
        }
        let election = it.election;
        let is_here = self.room.logs.head_of(election.log) >= election.seq;
        let elsewhere = election.log != self.log;
        (is_here || elsewhere) && self.room.folds.elections.can_judge(self.log.author, it)
    }

    /// Whether the author has entered the lane of an era that it claims.
    fn is_in_lane(&self, era: Era) -> bool {
        let lane = era.lane().unwrap_or(u32::MAX);
        self.cx.lanes.get(&self.log.author).is_some_and(|lanes| lanes.contains(&lane))
    }
}
