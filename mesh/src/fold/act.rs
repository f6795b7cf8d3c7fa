//! Acts, as folds take them in, and the trait of all folds.

use std::time::Duration;

use crate::{
    api::{boundary::Alarm, command::Refused},
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, LogId, NodeId, Position, RoomId},
        time::Now,
    },
    wire::{
        acts::{ElectionAct, TaskAct, VoteAct},
        approval::ApprovalAct,
        delivery::DeliveryAct,
        entry::{Body, Facts},
        once::OnceAct,
    },
};

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

/// An act that a node has written for an agent: it counts if the node can speak for the agent, by the directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoken<'a> {
    pub(crate) node: NodeId,
    /// The key that the node says it was shown. `None`: it checks none.
    pub(crate) key: Option<KeyPrint>,
    pub(crate) agent: &'a AgentId,
}

/// How often what nodes are known to speak for has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision {
    /// Something was learned or does not count any more.
    pub(crate) changes: u64,
    /// Something that was proven may not be any more.
    pub(crate) withdrawals: u64,
}

/// The effect of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folded {
    /// It has its effect; or its subject is not known any more.
    Taken,
    /// It can mean nothing: no honest node wrote it.
    Void,
    /// There is no memory for it.
    Overflow,
}

/// Entries that do not count any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Void {
    /// This entry of a log, and all after it.
    From(EntryRef),
    /// All of a node: others may hold more of its entries, or less.
    Author(NodeId),
    /// A node was removed from the mesh, and its agents with it. Its logs count up to a cut that all
    /// nodes know.
    Member(NodeId),
}

/// A state that follows from a room's acts, the same wherever the same logs are, in whatever order they
/// are read.
pub(crate) trait Fold {
    type Act;
    /// A change that the engine acts on: it tells members, and keeps an index.
    type News;

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

    /// The changes since this was last asked, the oldest first.
    fn take_news(&mut self, now: Duration) -> Vec<Self::News>;

    /// Whether something may become due in it by time alone, or as nodes come and go.
    fn is_waiting(&self) -> bool;

    /// Memory that the state takes, near enough.
    fn bytes(&self) -> usize;
}

/// One act of any of the folds.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Vote(VoteAct),
    Election(ElectionAct),
    Task(TaskAct),
    Delivery(DeliveryAct),
    Once(OnceAct),
    Approval(ApprovalAct),
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
        } else if let Body::Delivery(act) = body {
            Some(Act::Delivery(act))
        } else if let Body::Once(act) = body {
            Some(Act::Once(act))
        } else if let Body::Approval(act) = body {
            Some(Act::Approval(act))
        } else {
            None
        }
    }
}
