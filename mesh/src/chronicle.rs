//! The past of a room, for those who tell it: which acts of its logs count, and what each did to a task. The order is that of
//! all entries of the room ([`Position`]): the same at every node that has the same logs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    api::{
        agenda::{TaskChange, TaskView},
        batch::{EraRecord, RoomRecord},
        import::may_bring,
    },
    fold::{
        act::{Fold as _, Written},
        tasks::{News, Tasks},
    },
    name::{
        id::{AgentId, EntryRef, LocalRef, RoomId},
        number::Era,
        time::Now,
    },
    wire::{acts::TaskAct, entry::Facts},
};

pub use crate::name::id::Position;

/// An act as it counts, of the entry at this place: an answer only if its author was the sequencer, an id from elsewhere only if
/// its log may bring some.
#[must_use]
pub fn as_it_counts(
    (room, record): (RoomId, &RoomRecord),
    eras: &BTreeMap<Era, EraRecord>,
    at: EntryRef,
    act: TaskAct,
) -> Option<TaskAct> {
    match act {
        TaskAct::Granted(grant) => {
            let was = eras.get(&grant.era).is_some_and(|era| era.was_issued(at, grant.by));
            was.then_some(TaskAct::Granted(grant))
        }
        TaskAct::Assigned(mut new) => {
            let brings = may_bring(record, room, at.log);
            new.id = new.id.filter(|id| brings && id.is_foreign());
            Some(TaskAct::Assigned(new))
        }
        TaskAct::Updated(_) | TaskAct::Claimed(_) | TaskAct::Marked(_) | TaskAct::Deleted(_) => {
            Some(act)
        }
    }
}

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStep {
    /// It was made.
    Made(Arc<TaskView>),
    /// An agent asks for it, for itself or somebody else. Whether it gets it, a later step says.
    Claimed {
        /// As it was then.
        task: Arc<TaskView>,
        /// Who asks.
        by: AgentId,
        /// For whom.
        to: AgentId,
    },
    /// It was changed.
    Changed(Arc<TaskView>, Arc<TaskChange>),
}

/// The tasks of a room, from its beginning. Of as many as a room remembers, as all nodes do.
#[derive(Debug)]
pub struct TaskPast {
    room: RoomId,
    tasks: Tasks,
}

impl TaskPast {
    /// Before the first entry.
    #[must_use]
    pub fn new(room: RoomId) -> TaskPast {
        TaskPast { room, tasks: Tasks::default() }
    }

    /// The next act, in the order of positions: what it did.
    pub fn takes(&mut self, at: Position, facts: Facts, act: TaskAct) -> Vec<TaskStep> {
        let Position { place, .. } = at;
        let written = Written {
            room: self.room,
            place,
            // Nobody waits for an answer.
            at: LocalRef { log: 0, seq: place.seq },
            facts,
            now: Now { mono: Duration::ZERO, wall_ms: facts.wall_ms, wall_us: 0 },
        };
        let mut steps = Vec::new();
        if let TaskAct::Claimed(claim) = &act
            && let Some(Some(to)) = &claim.update.assignee
            && let Some(task) = self.tasks.view(claim.update.task)
        {
            let by = claim.update.by.clone();
            steps.push(TaskStep::Claimed { task: Arc::new(task), by, to: to.clone() });
        }
        // Faults of the act were counted when it came.
        let _ = self.tasks.apply(written, act, &mut Vec::new());
        for news in self.tasks.take_news(written.now.mono) {
            match news {
                News::Assigned { view, .. } => steps.push(TaskStep::Made(view)),
                News::Updated(view, change) => steps.push(TaskStep::Changed(view, change)),
                News::Deleted { .. }
                | News::Restored(..)
                | News::Ended(_)
                | News::Forgotten(..)
                | News::Answered { .. } => {}
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::id::{LogId, MeshId, NodeId},
        wire::{
            acts::{Grant, TaskAssigned, TaskClaimed, TaskUpdated},
            tasks::{TaskFacts, TaskFields},
        },
    };

    fn log(n: u8) -> LogId {
        LogId { author: NodeId([n; 32]), incarnation: 0 }
    }

    fn place(n: u8, seq: u64) -> EntryRef {
        EntryRef { log: log(n), seq }
    }

    fn claim(by: &str) -> TaskClaimed {
        let update = TaskUpdated {
            assignee: Some(Some(by.into())),
            ..TaskUpdated::of(place(1, 1), by.into())
        };
        TaskClaimed { update, if_assignee: None, era: Era::HOME, key: None, if_status: None }
    }

    fn grant(of: EntryRef, by: &str) -> Grant {
        let update = Some(claim(by).update);
        Grant { era: Era::HOME, claim: of, update, holder: None, by: None, status: None }
    }

    #[test]
    fn of_two_claims_one_is_granted_and_each_step_is_told() {
        let mut past = TaskPast::new(RoomId([7; 16]));
        let mut takes = |clock: u64, place: EntryRef, act| {
            let facts = Facts { clock, wall_ms: clock, kind: 50, visible: false };
            past.takes(Position { clock, place }, facts, act)
        };
        let new = TaskAssigned {
            title: "t".to_owned(),
            description: None,
            assignee: None,
            created_by: "ann".into(),
            id: None,
            facts: Box::<TaskFacts>::default(),
            fields: Box::<TaskFields>::default(),
        };
        let made = takes(1, place(1, 1), TaskAct::Assigned(new));
        assert!(matches!(&made[..], [TaskStep::Made(task)] if &*task.title == "t"));
        for (clock, at, by) in [(2, place(1, 2), "ann"), (3, place(2, 1), "bob")] {
            let claimed = takes(clock, at, TaskAct::Claimed(claim(by)));
            assert!(matches!(&claimed[..], [TaskStep::Claimed { by: who, .. }] if **who == *by));
        }
        let granted = takes(4, place(1, 3), TaskAct::Granted(grant(place(1, 2), "ann")));
        let [TaskStep::Changed(task, _)] = &granted[..] else { panic!("{granted:?}") };
        assert_eq!(task.assignee.as_deref(), Some("ann"));
        let none = Grant { update: None, ..grant(place(2, 1), "bob") };
        assert_eq!(takes(5, place(1, 4), TaskAct::Granted(none)), []);
    }

    #[test]
    fn only_a_sequencers_answer_counts() {
        let room = RoomId([7; 16]);
        let record = RoomRecord::new(MeshId([1; 16]), log(1));
        let counts = |eras: &BTreeMap<Era, EraRecord>| {
            let act = TaskAct::Granted(grant(place(1, 2), "ann"));
            as_it_counts((room, &record), eras, place(1, 3), act).is_some()
        };
        let era = |sequencer| BTreeMap::from([(Era::HOME, EraRecord::new(sequencer, Vec::new()))]);
        assert!(counts(&era(log(1))));
        assert!(!counts(&era(log(2))), "another node's");
        assert!(!counts(&BTreeMap::new()), "of no era that is known");
    }
}
