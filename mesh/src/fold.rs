//! States that follow from a room's acts: the same at every node that has the same logs.

pub(crate) mod elections;
pub(crate) mod tasks;
pub(crate) mod votes;

use std::{collections::BTreeSet, time::Duration};

use crate::{
    api::{boundary::Alarm, command::Refused},
    name::{
        id::{EntryRef, LocalRef, LogId, NodeId, RoomId},
        time::Now,
    },
    wire::{
        acts::{ElectionAct, Folded, Position, TaskAct, VoteAct},
        entry::{Body, Facts},
    },
};
use elections::Elections;
use tasks::Tasks;
use votes::Votes;

/// An act's place and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) room: RoomId,
    pub(crate) place: EntryRef,
    pub(crate) at: LocalRef,
    pub(crate) facts: Facts,
    /// When it came here.
    pub(crate) now: Now,
}

impl Written {
    pub(crate) fn position(&self) -> Position {
        Position { clock: self.facts.clock, place: self.place }
    }
}

/// Entries that do not count any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Void {
    /// This entry of a log, and all after it.
    From(EntryRef),
    /// All of a node: others may hold more of what it wrote, or less.
    Author(NodeId),
    /// A node was removed from the mesh, and its agents with it. Its logs count up to a cut that all
    /// nodes know.
    Member(NodeId),
}

/// A state that follows from a room's acts, the same wherever the same logs are, in whatever order they
/// are read.
pub(crate) trait Fold {
    type Act;

    /// Whether the author of this log may write this act now.
    ///
    /// # Errors
    ///
    /// There is too much of something.
    fn admits(&self, by: LogId, act: &Self::Act, now: Duration) -> Result<(), Refused>;

    /// Takes in an act that was accepted. `alarms`: for operators, about acts that contradict what is
    /// here.
    fn apply(&mut self, written: Written, act: Self::Act, alarms: &mut Vec<Alarm>) -> Folded;

    /// Takes back the effect of entries that do not count any more.
    fn retract(&mut self, void: Void);

    /// Memory that the state takes, near enough.
    fn bytes(&self) -> usize;
}

/// One act of any of the folds.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Vote(VoteAct),
    Election(ElectionAct),
    Task(TaskAct),
}

impl Act {
    /// The act that an entry is. `None`: it is no act of these folds.
    pub(crate) fn of(body: Body) -> Option<Act> {
        if let Body::Vote(act) = body {
            Some(Act::Vote(act))
        } else if let Body::Election(act) = body {
            Some(Act::Election(act))
        } else if let Body::Task(act) = body {
            Some(Act::Task(act))
        } else {
            None
        }
    }
}

/// The folds of one room.
#[derive(Debug)]
pub(crate) struct Folds {
    pub(crate) votes: Votes,
    pub(crate) elections: Elections,
    pub(crate) tasks: Tasks,
}

impl Folds {
    /// `forked`: nodes that forked a log; `unheard`: these and the removed ones.
    pub(crate) fn new(forked: BTreeSet<NodeId>, unheard: BTreeSet<NodeId>) -> Folds {
        Folds {
            votes: Votes::new(forked),
            elections: Elections::new(unheard),
            tasks: Tasks::default(),
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
        } else {
            Ok(())
        }
    }

    /// See [`Fold::apply`].
    pub(crate) fn apply(&mut self, written: Written, act: Act, alarms: &mut Vec<Alarm>) -> Folded {
        match act {
            Act::Vote(act) => self.votes.apply(written, act, alarms),
            Act::Election(act) => self.elections.apply(written, act, alarms),
            Act::Task(act) => self.tasks.apply(written, act, alarms),
        }
    }

    /// See [`Fold::retract`].
    pub(crate) fn retract(&mut self, void: Void) {
        self.votes.retract(void);
        self.elections.retract(void);
        self.tasks.retract(void);
    }

    /// See [`Fold::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        self.votes.bytes() + self.elections.bytes() + self.tasks.bytes()
    }

    /// Whether something may become due in them by time alone. Votes are not asked: the engine lists
    /// those itself.
    pub(crate) fn is_waiting(&self) -> bool {
        self.elections.is_waiting() || self.tasks.is_waiting()
    }
}
