//! Tasks that writers give to each other, each in a room of its own and with a time. When it is up before there is an end, each
//! inbox of the agent that gave the task has exactly one item of it, also where a node was down at that time: a part of *inbox*.

use std::{collections::BTreeMap, sync::Arc};

use mesh::{
    api::{
        agenda::{GivenAct, NewTask, TaskUpdate},
        command::{Command, Outcome, Refused},
    },
    name::{
        group::TaskSeed,
        id::{MessageId, RoomId},
        number::Number,
    },
    wire::{acts::TaskStatus, given::TaskTerms},
};

use super::{Correspondents, asked::Asked};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::{Seated, may_be_in_the_way},
    promises::{Broken, broken},
};

/// Tasks of a world.
const TASKS: usize = 12;
/// Their time.
const RUN_MS: (u64, u64) = (500, 20_000);
/// A node acts on a time that is up within this.
const ACTS_WITHIN_MS: u64 = 15_000;

/// A task that an agent has given to another one.
#[derive(Debug)]
struct Given {
    by: usize,
    to: usize,
    task: Option<MessageId>,
    /// It has a time, and its node has said so: so long it is.
    run_ms: Option<u64>,
    /// When it was said, by the clock of each node. No node is earlier than this one when the time is up.
    said_ms: u64,
    /// Somebody may have ended it.
    ended: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Giving(BTreeMap<RoomId, Given>);

/// A step of giving a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Its room: by whom, and for whom.
    Open(usize, usize),
    Assign(RoomId),
    /// Its time, in milliseconds.
    Time(RoomId, u64),
    End,
}

impl Step {
    /// Rooms and tasks that are not known at a node yet, and agents that are not in them.
    pub(super) fn may_be_refused(self, refused: &Refused) -> bool {
        let is_unknown = matches!(
            refused,
            Refused::NoAgent(_)
                | Refused::NoMailbox(_)
                | Refused::NoRoom
                | Refused::NoTask
                | Refused::NotMember
                | Refused::NotYours
        );
        is_unknown || may_be_in_the_way(refused)
    }
}

impl Correspondents {
    /// An agent goes on with a task that it gives, ends one that it was given, or gives one more.
    pub(super) fn give(&mut self, cluster: &mut Cluster, i: usize) {
        let Some(Seated { node, caller }) = self.agents[i].place.clone() else { return };
        let own = |given: &&Given| given.by == i && given.run_ms.is_none();
        let begun = self.giving.0.iter().find(|(_, given)| own(given));
        if let Some((room, given)) = begun {
            let room = *room;
            let (step, command) = match given.task {
                None => {
                    let assignee = Some(self.agents[given.to].id.clone());
                    let title = "do it".to_owned();
                    let task = NewTask { assignee, ..NewTask::of(room, title) };
                    (Step::Assign(room), Command::AssignTask { caller, task })
                }
                Some(_) => {
                    let run_ms = cluster.dice.within(RUN_MS.0, RUN_MS.1);
                    let (run, keeps) = (Some(run_ms), cluster.dice.chance(30));
                    let terms =
                        TaskTerms { run_ms: run, keeps, depth: 1, chosen: None, name: None };
                    let act = GivenAct::Terms(terms);
                    (Step::Time(room, run_ms), Command::Given { caller, room, act })
                }
            };
            self.calls.ask(cluster, node, Asked::Task(step), command);
            return;
        }
        let mut of_others = self.giving.0.iter_mut().filter(|(_, given)| given.to == i);
        if let Some((_, given)) = of_others.find(|(_, given)| !given.ended)
            && let Some(task) = given.task
            && cluster.dice.chance(20)
        {
            given.ended = true;
            let status = Some(TaskStatus::Completed);
            let update = TaskUpdate { status, ..TaskUpdate::of(task) };
            let command = Command::UpdateTask { caller, update };
            self.calls.ask(cluster, node, Asked::Task(Step::End), command);
            return;
        }
        let with = cluster.dice.index(self.agents.len());
        if i == with || self.giving.0.len() >= TASKS {
            return;
        }
        let signer = Some(Arc::clone(&self.keys[self.agents[i].key].secret));
        let agent = self.agents[with].id.clone();
        let mut seed = [0; 16];
        seed.copy_from_slice(&cluster.dice.seed()[..16]);
        let command = Command::OpenDirect { caller, signer, agent, task: Some(TaskSeed(seed)) };
        self.calls.ask(cluster, node, Asked::Task(Step::Open(i, with)), command);
    }

    /// A step is done.
    pub(super) fn gave(&mut self, cluster: &Cluster, node: usize, step: Step, outcome: &Outcome) {
        match (step, outcome) {
            (Step::Open(by, to), Outcome::Room(view)) => {
                let (task, run_ms) = (None, None);
                let given = Given { by, to, task, run_ms, said_ms: 0, ended: false };
                self.giving.0.entry(view.room).or_insert(given);
            }
            (Step::Assign(room), Outcome::Task(view)) => {
                if let Some(given) = self.giving.0.get_mut(&room) {
                    given.task.get_or_insert(view.task);
                }
            }
            (Step::Time(room, run_ms), _) => {
                if let Some(given) = self.giving.0.get_mut(&room) {
                    given.run_ms.get_or_insert(run_ms);
                    given.said_ms = cluster.nodes[node].now(cluster.now()).wall_ms;
                }
            }
            (Step::Open(..) | Step::Assign(_) | Step::End, _) => {}
        }
    }

    /// Whether an inbox may have an item of the task of this room: of the agent that gave it.
    pub(super) fn may_be_told(&self, i: usize, room: RoomId) -> bool {
        self.giving.0.get(&room).is_some_and(|given| given.by == i)
    }

    /// *inbox*, of tasks, when all that was written is everywhere.
    pub(in crate::sim) fn tasks_are_told(&self, cluster: &mut Cluster) -> Result<(), Broken> {
        for (room, given) in &self.giving.0 {
            let Some(run_ms) = given.run_ms.filter(|_| !given.ended) else { continue };
            let agent = &self.agents[given.by].id;
            for node in 0..cluster.nodes.len() {
                let now_ms = cluster.nodes[node].now(cluster.now()).wall_ms;
                let is_up = now_ms > given.said_ms + run_ms + ACTS_WITHIN_MS;
                let Some(count) = self.inboxes.count(node, agent, (*room, Number::ZERO)) else {
                    continue;
                };
                if is_up && cluster.nodes[node].running.is_some() {
                    cluster.coverage.count(Happening::RanOut);
                    if count != 1 {
                        let what = format!(
                            "{agent} at node{node} has {count} items of the task of {room}, whose time was up"
                        );
                        return broken("inbox", what);
                    }
                }
            }
        }
        Ok(())
    }
}
