//! Tasks in a simulated world: agents make them, update them, and claim them, several at once.
//!
//! *same tasks*: in the end every node shows of every room the tasks that all acts of all logs make,
//! by a fold of the simulation's own, and a node that stayed up told its members that. A task is there once.
//! *acknowledged updates survive*: an update that was answered ok is among these acts, as it was asked for. *one
//! claim*: a sequencer answers a claim once, and grants no more claims that name one holder than that one
//! was given the task; in calm weather they are all of the home era. *proven*: it grants none for an agent by a node that cannot
//! speak for that. *claims end*: once everybody is there
//! again one of many claims wins, and a contested field is so no longer when it is written again.

pub(super) mod end;
mod fold;

use std::collections::BTreeMap;

use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{Command, Outcome, Refused},
        event::RoomEvent,
    },
    name::{
        id::{AgentId, EntryRef, KeyPrint, MessageId, NodeId, RoomId},
        number::Era,
    },
    wire::{
        acts::{Grant, TaskAct, TaskClaimed},
        tasks::{TaskFields, TaskProgress, TaskStatus},
    },
};

use self::fold::Act;
use super::{
    agents::Agents,
    cluster::Cluster,
    dice::Dice,
    parts::{Desk, Matter, Seated, Written},
    promises::{Broken, broken},
};

/// Tasks of a room that agents look at: the newest. Else few updates would meet in one task.
const RECENT: usize = 3;

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Assign { by: AgentId, room: RoomId, title: String, assignee: Option<AgentId> },
    Update { by: AgentId, room: RoomId, update: TaskUpdate },
    Delete { room: RoomId, task: MessageId },
    List,
}

/// A task that was made.
#[derive(Clone, Debug)]
struct Made {
    task: MessageId,
    room: RoomId,
    title: String,
    /// Its maker, who deletes it.
    by: AgentId,
    /// Its holder, as far as the agents have heard.
    assignee: Option<AgentId>,
}

/// An update or a claim that was answered ok.
#[derive(Clone, Debug)]
struct Acknowledged {
    node: usize,
    by: AgentId,
    room: RoomId,
    update: TaskUpdate,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    desk: Desk<Asked, Vec<TaskView>>,
    made: Vec<Made>,
    acknowledged: Vec<Acknowledged>,
    /// Tasks whose end was answered: it is never undone.
    ended: Vec<(RoomId, MessageId)>,
    /// Every act that was durable anywhere.
    acts: BTreeMap<RoomId, BTreeMap<EntryRef, Act>>,
    /// Claims by nodes that lie.
    forged: BTreeMap<(RoomId, EntryRef), Forged>,
    /// The state of each task that members were told last, by node.
    told: BTreeMap<(usize, MessageId), TaskView>,
    /// Claims that were made.
    pub(super) claimed: u64,
    /// Claims that were granted.
    pub(super) granted: u64,
    /// Tasks that were deleted.
    pub(super) deleted: u64,
    /// Fields that were contested in the end.
    pub(super) contested: u64,
}

impl Tasks {
    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// The newest tasks of these rooms.
    fn recent(&self, rooms: &[RoomId]) -> Vec<Made> {
        let there = self.made.iter().rev().filter(|task| rooms.contains(&task.room));
        there.take(RECENT).cloned().collect()
    }
}

/// Acts of agents.
impl Tasks {
    /// An agent makes a task, or updates one, or some claim one at once.
    pub(super) fn act(&mut self, cluster: &mut Cluster, agents: &Agents, i: usize) {
        let Some(by) = agents.seated(i) else { return };
        let rooms = agents.rooms_of(i);
        let recent = self.recent(&rooms);
        if rooms.is_empty() {
            return;
        }
        if recent.is_empty() || cluster.dice.chance(25) {
            let room = *cluster.dice.pick(&rooms);
            let assignee = cluster.dice.chance(30).then(|| agents.somebody(&mut cluster.dice));
            return self.assign(cluster, by, room, assignee);
        }
        let task = cluster.dice.pick(&recent).clone();
        if cluster.dice.chance(10) && task.by == by.caller.agent {
            return self.delete(cluster, by, &task);
        }
        if cluster.dice.chance(50) {
            let update = some_update(cluster, agents, task.task);
            return self.update(cluster, by, task.room, update);
        }
        if cluster.dice.chance(20) {
            return self.everybody_decides(cluster, agents, &task);
        }
        let if_assignee = match cluster.dice.within(0, 9) {
            0..=5 => task.assignee.clone(),
            6..=8 => None,
            _ => Some(agents.somebody(&mut cluster.dice)),
        };
        let mut claimants = vec![by];
        for _ in 0..cluster.dice.within(0, 3) {
            let another = cluster.dice.index(agents.count());
            claimants.extend(agents.seated(another));
        }
        for by in claimants {
            self.claim(cluster, by, &task, if_assignee.clone());
        }
    }

    fn assign(
        &mut self,
        cluster: &mut Cluster,
        by: Seated,
        room: RoomId,
        assignee: Option<AgentId>,
    ) {
        let Seated { node, caller } = by;
        let title = format!("task {}", cluster.text());
        let agent = caller.agent.clone();
        let asked =
            Asked::Assign { by: agent, room, title: title.clone(), assignee: assignee.clone() };
        let task = NewTask { assignee, ..NewTask::of(room, title) };
        self.desk.calls.ask(cluster, node, asked, Command::AssignTask { caller, task });
    }

    fn delete(&mut self, cluster: &mut Cluster, by: Seated, task: &Made) {
        let Seated { node, caller } = by;
        let asked = Asked::Delete { room: task.room, task: task.task };
        let command = Command::DeleteTask { caller, task: task.task };
        self.desk.calls.ask(cluster, node, asked, command);
    }

    /// Some say that what is in review is done, and some that it is not wanted: the first ones send it there.
    fn everybody_decides(&mut self, cluster: &mut Cluster, agents: &Agents, task: &Made) {
        for nth in 0..cluster.dice.within(2, 4) {
            let Some(by) = agents.seated(cluster.dice.index(agents.count())) else { continue };
            let to = match nth {
                0 => TaskStatus::InReview,
                _ if cluster.dice.chance(50) => TaskStatus::Completed,
                _ => TaskStatus::Cancelled,
            };
            let update = TaskUpdate {
                status: Some(to),
                note: Some(format!("decided {}", cluster.text())),
                if_assignee: Some(task.assignee.clone()).filter(|_| nth > 0),
                if_status: Some(TaskStatus::InReview).filter(|_| nth > 0),
                ..TaskUpdate::of(task.task)
            };
            self.claimed += u64::from(nth > 0);
            self.update(cluster, by, task.room, update);
        }
    }

    fn claim(
        &mut self,
        cluster: &mut Cluster,
        by: Seated,
        task: &Made,
        if_assignee: Option<AgentId>,
    ) {
        // Nobody else writes this, so the claim can be told from others of its agent.
        let note = format!("claim {}", cluster.text());
        let update = TaskUpdate {
            status: cluster.dice.chance(50).then_some(TaskStatus::InProgress),
            assignee: Some(Some(by.caller.agent.clone())),
            note: Some(note),
            if_assignee: Some(if_assignee),
            ..TaskUpdate::of(task.task)
        };
        self.claimed += 1;
        self.update(cluster, by, task.room, update);
    }

    fn update(&mut self, cluster: &mut Cluster, by: Seated, room: RoomId, update: TaskUpdate) {
        let Seated { node, caller } = by;
        let asked = Asked::Update { by: caller.agent.clone(), room, update: update.clone() };
        self.desk.calls.ask(cluster, node, asked, Command::UpdateTask { caller, update });
    }
}

fn some_update(cluster: &mut Cluster, agents: &Agents, task: MessageId) -> TaskUpdate {
    let note = format!("note {}", cluster.text());
    let dice = &mut cluster.dice;
    TaskUpdate {
        status: dice.chance(50).then(|| *dice.pick(&TaskStatus::ALL)),
        assignee: dice.chance(20).then(|| dice.chance(80).then(|| agents.somebody(dice))),
        fields: Box::new(some_fields(dice)),
        note: dice.chance(50).then_some(note),
        ..TaskUpdate::of(task)
    }
}

fn some_fields(dice: &mut Dice) -> TaskFields {
    let text = |dice: &mut Dice| ["", "one", "two"][dice.index(3)].to_owned();
    TaskFields {
        title: None,
        description: dice.chance(10).then(|| text(dice)),
        priority: dice.chance(10).then(|| dice.index(4) as u8),
        labels: dice.chance(10).then(|| vec![text(dice)]),
        due_ms: dice.chance(10).then(|| dice.within(0, 2)),
        progress: dice
            .chance(10)
            .then(|| TaskProgress { percent: dice.index(101) as u8, step: text(dice) }),
        result: dice.chance(10).then(|| text(dice)),
    }
}

impl Matter for Tasks {
    type Asked = Asked;
    type View = Vec<TaskView>;

    fn desk(&self) -> &Desk<Asked, Vec<TaskView>> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<Asked, Vec<TaskView>> {
        &mut self.desk
    }

    fn answered(
        &mut self,
        cluster: &Cluster,
        node: usize,
        asked: &Asked,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        match (asked, result) {
            (Asked::Assign { by, room, title, assignee }, Ok(Outcome::Task(view))) => {
                let (by, title, assignee) = (by.clone(), title.clone(), assignee.clone());
                self.made.push(Made { task: view.task, room: *room, title, by, assignee });
            }
            (Asked::Delete { room, task }, Ok(Outcome::Done)) => {
                self.deleted += 1;
                self.ended.push((*room, *task));
                self.made.retain(|made| made.task != *task);
            }
            // It has not ended, as its node knows.
            (Asked::Delete { .. }, Err(Refused::Stands { .. })) => {}
            (Asked::Update { update, .. }, Err(Refused::Stands { is, .. }))
                if update.if_status.is_some_and(|wanted| wanted != *is) => {}
            (Asked::Update { by, room, update }, Ok(Outcome::Task(view))) => {
                let sets = update.assignee.is_some() || view.assignee.is_some();
                let made = self.made.iter_mut().find(|made| made.task == update.task);
                if let Some(made) = made.filter(|_| sets) {
                    made.assignee = view.assignee.clone();
                }
                self.granted += u64::from(update.if_assignee.is_some());
                let (by, update) = (by.clone(), update.clone());
                self.acknowledged.push(Acknowledged { node, by, room: *room, update });
            }
            (Asked::Update { update, .. }, Err(Refused::Held { holder }))
                if update.if_assignee.as_ref().is_some_and(|expected| expected != holder) => {}
            // The voucher of its node had not come to the one that decides.
            (Asked::Update { update, .. }, Err(Refused::Full(why)))
                if update.if_assignee.is_some()
                    && why.contains("was shown its key")
                    && !cluster.plan.is_undisturbed() => {}
            (Asked::List, Ok(Outcome::Tasks(tasks))) => {
                self.desk.views.insert(node, tasks.clone());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The task has not come to this node yet.
    fn may_be_refused(&self, asked: &Asked, refused: &Refused) -> bool {
        matches!(asked, Asked::Update { .. } | Asked::Delete { .. }) && *refused == Refused::NoTask
    }
}

/// Whether the node that answers a claim knows that the claim's node can speak for the agent.
fn is_proven(cluster: &Cluster, by: NodeId, grant: &Grant, claim: &TaskClaimed) -> bool {
    let answering = cluster.index(by).and_then(|node| cluster.nodes[node].running.as_ref());
    let (node, agent) = (grant.claim.log.author, &claim.update.by);
    claim.key.zip(answering).is_some_and(|(key, answering)| {
        answering.engine.proofs().of_agent(node, key, agent).verified
    })
}

/// A claim by a node that lies.
#[derive(Clone, Debug)]
pub(super) struct Forged {
    pub(super) node: NodeId,
    pub(super) key: Option<KeyPrint>,
    /// The key, or the agent, is the liar's own.
    pub(super) is_its_own: bool,
}

impl Forged {
    /// Agents of this world attach to the liar's node, too, and show it their keys.
    pub(super) fn may_count(&self, cluster: &Cluster) -> bool {
        self.is_its_own || self.key.is_some_and(|key| cluster.shown.contains(&(self.node, key)))
    }
}

/// The promises of every moment.
impl Tasks {
    /// *proven*. A liar's claim counts only where it can speak for the agent.
    pub(super) fn liar_claimed(&mut self, room: RoomId, place: EntryRef, claim: Forged) {
        let known = self.forged.entry((room, place)).or_insert_with(|| claim.clone());
        // A log that forked has two entries there, and each may be answered.
        known.is_its_own |= known.key != claim.key || claim.is_its_own;
    }

    /// *one claim*. An act is durable at a node.
    pub(super) fn stored(
        &mut self,
        cluster: &Cluster,
        written: Written,
        act: TaskAct,
    ) -> Result<(), Broken> {
        let Written { room, place, clock, wall_ms, .. } = written;
        let acts = self.acts.entry(room).or_default();
        if acts.contains_key(&place) {
            return Ok(());
        }
        let granted = if let TaskAct::Granted(grant) = &act { Some(grant.clone()) } else { None };
        let claim = granted.as_ref().filter(|grant| grant.update.is_some());
        let claim = claim.and_then(|grant| self.forged.get(&(room, grant.claim)));
        if let Some(claim) = claim.filter(|claim| !claim.may_count(cluster)) {
            return broken("proven", format!("{place:?} grants {claim:?}"));
        }
        acts.insert(place, Act { clock, wall_ms, act });
        match granted {
            Some(grant) if cluster.is_honest() => self.claim_answered(cluster, room, place, &grant),
            Some(_) | None => Ok(()),
        }
    }

    fn claim_answered(
        &self,
        cluster: &Cluster,
        room: RoomId,
        place: EntryRef,
        grant: &Grant,
    ) -> Result<(), Broken> {
        let Some(acts) = self.acts.get(&room) else { return Ok(()) };
        let of_era: Vec<(&EntryRef, &Grant)> = acts
            .iter()
            .filter_map(|(at, act)| Some((at, act.grants()?)))
            .filter(|(_, other)| other.era == grant.era)
            .collect();
        let same = |(at, other): &&(&EntryRef, &Grant)| other.claim == grant.claim && **at != place;
        if let Some(again) = of_era.iter().find(same) {
            return broken("one claim", format!("{again:?} and {place:?} answer one claim"));
        }
        // An ephemeral room may have ended where its home era was, and gone on elsewhere.
        if cluster.plan.calm && grant.era != Era::HOME && !cluster.rooms.is_ephemeral(room) {
            return broken(
                "one claim",
                format!("in calm weather {:?} of room {room} answers", grant.era),
            );
        }
        let asked = acts.get(&grant.claim).map(|act| &act.act);
        if let Some(TaskAct::Claimed(claim)) = asked
            && let TaskClaimed { if_assignee, .. } = claim
            && (*if_assignee == grant.holder && grant.status.is_none()) != grant.update.is_some()
            && (grant.update.is_some() || is_proven(cluster, place.log.author, grant, claim))
        {
            return broken("one claim", format!("of {if_assignee:?} one was answered {grant:?}"));
        }
        let Some(task) = grant.update.as_ref().map(|update| update.task) else { return Ok(()) };
        decided_once(acts, &of_era, (place, task), asked)?;
        // A decision leaves the holder as it is.
        if grant.update.as_ref().is_some_and(|update| update.assignee.is_none()) {
            return Ok(());
        }
        let given = acts.iter().filter(|(at, act)| act.gives(**at, task) == Some(&grant.holder));
        let won = of_era.iter().filter(|(_, other)| {
            let of_task = other
                .update
                .as_ref()
                .is_some_and(|update| update.task == task && update.assignee.is_some());
            of_task && other.holder == grant.holder
        });
        let (given, won) = (given.count(), won.count());
        if won > given {
            let text = format!(
                "in {:?} {won} claims of {task:?} from {:?} won, who was given it {given} times",
                grant.era, grant.holder
            );
            return broken("one claim", text);
        }
        Ok(())
    }

    /// A member is told of a task.
    pub(super) fn told(&mut self, node: usize, event: &RoomEvent) {
        if let RoomEvent::TaskAssigned(view) | RoomEvent::TaskUpdated(view, _) = event {
            self.told.insert((node, view.task), TaskView::clone(view));
        }
        if let RoomEvent::TaskDeleted { view, .. } = event {
            self.told.remove(&(node, view.task));
        }
    }
}

/// *one claim*, of claims that name a state: no more are granted in one era than the task came into it.
fn decided_once(
    acts: &BTreeMap<EntryRef, Act>,
    of_era: &[(&EntryRef, &Grant)],
    (place, task): (EntryRef, EntryRef),
    asked: Option<&TaskAct>,
) -> Result<(), Broken> {
    let wanted = |act: Option<&TaskAct>| {
        if let Some(TaskAct::Claimed(claim)) = act { claim.if_status } else { None }
    };
    let Some(status) = wanted(asked) else { return Ok(()) };
    let came = acts.iter().filter(|(at, act)| act.comes_into(**at, task) == Some(status)).count();
    let of_task = |grant: &Grant| grant.update.as_ref().is_some_and(|update| update.task == task);
    let decided = of_era.iter().filter(|(_, grant)| {
        of_task(grant) && wanted(acts.get(&grant.claim).map(|act| &act.act)) == Some(status)
    });
    let decided = decided.count();
    if decided > came {
        let text = format!(
            "{place:?}: {decided} decisions of {task:?}, which was {status:?} {came} times"
        );
        return broken("one claim", text);
    }
    Ok(())
}
