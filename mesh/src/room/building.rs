//! What a run builds on: it is accepted when everything its entries refer to is here.

use std::collections::BTreeMap;

use super::Room;
use crate::{
    acts::{ElectionAct, TaskAct},
    context::Context,
    entry::{Body, Decision, EraClaimed},
    id::{LogId, NodeId},
    limits::HOLE_AFTER_SILENCE,
    number::Era,
    pending::Waiting,
    run::Carried,
    sealed,
};

/// One run's entries as they are looked at, one after the other. What the earlier ones bring counts
/// as here.
struct Looked<'r> {
    room: &'r Room,
    cx: &'r Context,
    log: LogId,
    /// It has waited for so long that an era would be known whose claim is still given.
    late: bool,
    opened: BTreeMap<Era, LogId>,
    reached: BTreeMap<Era, u64>,
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
        let (opened, reached) = (BTreeMap::new(), BTreeMap::new());
        // Of whom a fork was proven before it was heard of, no era is ever known here, nor its lane. Others knew them,
        // and built on them, or have taken what others built on them.
        let late = !cx.forked.is_empty() && waiting.has_waited(cx.now.mono) >= HOLE_AFTER_SILENCE;
        let mut looked = Looked { room: self, cx, log: run.log, late, opened, reached };
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
            (seq, sealed::body(&self.record, &spot, bytes))
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

    /// Nothing is known of this era here.
    fn is_unknown(&self, era: Era) -> bool {
        !self.numbering.eras.contains_key(&era)
    }

    /// Nothing of this era will come, as far as can be known where a claim of `author` was accepted that names it.
    /// Of its own eras an author says itself which there are.
    pub(super) fn is_nothing(&self, cx: &Context, author: NodeId, era: Era) -> bool {
        let lanes = cx.lanes.get(&author);
        let own = era.lane().is_none_or(|lane| lanes.is_some_and(|it| it.contains(&lane)));
        self.is_void(cx, era) || (self.is_unknown(era) && !own)
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

    fn is_founded(&mut self, body: Body) -> bool {
        match body {
            Body::Ordered(it) => {
                let last = it.first.saturating_add(it.count()).saturating_sub(1);
                self.reached.insert(it.era, last);
                self.may_issue(it.era)
            }
            Body::EraClaimed(it) => {
                let founded = self.may_claim(&it);
                self.opened.insert(it.era, self.log);
                founded
            }
            Body::HandedOver(it) => {
                let founded = self.may_issue(it.era);
                self.opened.insert(it.era, it.to);
                founded
            }
            Body::Decision(it) => self.can_judge(&it),
            Body::Election(ElectionAct::Started(it)) => {
                // Of a term before this one, a node that forked may have written it.
                self.room.elections.follows(it.term) || self.room.elections.has_expelled()
            }
            Body::Task(TaskAct::Granted(it)) => self.may_issue(it.era),
            Body::Task(TaskAct::Claimed { era, .. }) => self.is_here(era),
            Body::Task(TaskAct::Assigned(_) | TaskAct::Updated(_))
            | Body::Chat(_)
            | Body::Thinking(_)
            | Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Key(_)
            | Body::Parted(_)
            | Body::Vote(_)
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
        (is_here || elsewhere) && self.room.elections.can_judge(self.log.author, it)
    }

    fn is_void(&self, era: Era) -> bool {
        self.room.is_void(self.cx, era) || (self.late && self.room.is_unknown(era))
    }

    /// Whether the author is the era's sequencer.
    fn may_issue(&self, era: Era) -> bool {
        let known = self.room.numbering.eras.get(&era).map(|it| it.record.sequencer);
        self.opened.get(&era).copied().or(known) == Some(self.log) || self.is_void(era)
    }

    fn is_here(&self, era: Era) -> bool {
        self.room.numbering.eras.contains_key(&era)
            || self.opened.contains_key(&era)
            || self.is_void(era)
    }

    fn may_claim(&self, it: &EraClaimed) -> bool {
        let lane = it.era.lane().unwrap_or(u32::MAX);
        let in_lane =
            self.cx.lanes.get(&self.log.author).is_some_and(|lanes| lanes.contains(&lane));
        let reached = |era: Era, n: u64| {
            let brought = self.reached.get(&era).copied().unwrap_or(0);
            self.room.numbering.known(era).max(brought) >= n || self.is_void(era)
        };
        in_lane
            && self.is_here(it.after)
            && it.cut.iter().all(|cut| self.is_here(cut.era) && reached(cut.era, cut.n))
    }
}
