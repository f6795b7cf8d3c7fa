//! States that follow from a room's acts: the same at every node that has the same logs.

pub(crate) mod act;
pub(crate) mod approvals;
pub(crate) mod asked;
pub(crate) mod deliveries;
pub(crate) mod elections;
pub(crate) mod once;
pub(crate) mod tasks;
pub(crate) mod votes;

use std::{collections::BTreeSet, time::Duration};

use crate::{
    api::{boundary::Alarm, command::Refused},
    name::id::{LogId, LogIx, NodeId},
    wire::{acts::ElectionAct, entry::Body},
};
use act::{Act, Fold, Folded, Void, Written};
use approvals::Approvals;
use deliveries::Deliveries;
use elections::Elections;
use once::Onces;
use tasks::Tasks;
use votes::Votes;

/// The folds of one room.
#[derive(Clone, Debug)]
pub(crate) struct Folds {
    pub(crate) votes: Votes,
    pub(crate) elections: Elections,
    pub(crate) tasks: Tasks,
    pub(crate) deliveries: Deliveries,
    pub(crate) onces: Onces,
    pub(crate) approvals: Approvals,
}

impl Folds {
    /// `forked`: nodes that forked a log; `unheard`: these and the removed ones.
    pub(crate) fn new(forked: BTreeSet<NodeId>, unheard: BTreeSet<NodeId>) -> Folds {
        Folds {
            votes: Votes::new(forked),
            elections: Elections::new(unheard),
            tasks: Tasks::default(),
            deliveries: Deliveries::default(),
            onces: Onces::default(),
            approvals: Approvals::default(),
        }
    }

    /// See [`Fold::admits`]. Entries that are no acts are always admitted.
    pub(crate) fn admits(&self, by: LogId, body: &Body, now: Duration) -> Result<(), Refused> {
        if let Body::Vote(act) = body {
            self.votes.admits(by, act, now)
        } else if let Body::Election(act) = body {
            self.elections.admits(by, act, now)
        } else if let Body::Task(act) = body {
            self.tasks.admits(by, act, now)
        } else if let Body::Once(act) = body {
            self.onces.admits(by, act, now)
        } else if let Body::Approval(act) = body {
            self.approvals.admits(by, act, now)
        } else {
            Ok(())
        }
    }

    /// Whether everything is here that an entry of this log is judged by: elections, for decisions and
    /// for other elections.
    pub(crate) fn can_judge(&self, by: LogId, body: &Body) -> bool {
        if let Body::Election(ElectionAct::Started(started)) = body {
            // Of a term before this one, a node that forked may have written it.
            self.elections.follows(started.term) || self.elections.has_unheard()
        } else if let Body::Decision(decision) = body {
            decision.is_imported() || self.elections.can_judge(by.author, decision)
        } else {
            true
        }
    }

    /// See [`Fold::apply`].
    pub(crate) fn apply(&mut self, written: Written, act: Act, alarms: &mut Vec<Alarm>) -> Folded {
        match act {
            Act::Vote(act) => self.votes.apply(written, act, alarms),
            Act::Election(act) => self.elections.apply(written, act, alarms),
            Act::Task(act) => self.tasks.apply(written, act, alarms),
            Act::Delivery(act) => self.deliveries.apply(written, act, alarms),
            Act::Once(act) => self.onces.apply(written, act, alarms),
            Act::Approval(act) => self.approvals.apply(written, act, alarms),
        }
    }

    /// See [`Fold::retract`].
    pub(crate) fn retract(&mut self, void: Void) {
        self.votes.retract(void);
        self.elections.retract(void);
        self.tasks.retract(void);
        self.deliveries.retract(void);
        self.onces.retract(void);
        self.approvals.retract(void);
    }

    /// See [`Fold::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        let acts = self.votes.bytes() + self.elections.bytes() + self.tasks.bytes();
        acts + self.deliveries.bytes() + self.onces.bytes() + self.approvals.bytes()
    }

    /// Whether something may become due in them by time alone. Votes are not asked: the engine lists
    /// those itself.
    pub(crate) fn is_waiting(&self) -> bool {
        self.elections.is_waiting() || self.has_asks()
    }

    /// Whether something waits for an answer of the room's sequencer.
    pub(crate) fn has_asks(&self) -> bool {
        self.tasks.is_waiting() || self.onces.is_waiting() || self.approvals.is_waiting()
    }

    /// Whether it is time to see that the sequencer has what this node asks.
    pub(crate) fn ask(&mut self, now: Duration, mine: Option<LogIx>) -> bool {
        let tasks = self.tasks.ask(now, mine);
        let approvals = self.approvals.ask(now, mine);
        self.onces.ask(now, mine) || tasks || approvals
    }

    /// Whether something that this node asks was kept waiting for too long.
    pub(crate) fn kept_waiting(&self, now: Duration, mine: Option<LogIx>) -> bool {
        let asks = self.tasks.kept_waiting(now, mine) || self.onces.kept_waiting(now, mine);
        asks || self.approvals.kept_waiting(now, mine)
    }
}
