//! Tasks in a simulated world: agents make them, update them, and claim them, several at once.
//!
//! *same tasks*: in the end every node shows of every room what all acts of all logs make of its tasks,
//! by a fold of the simulation's own, and whoever stayed up told its members that. A task is there once.
//! *acknowledged updates survive*: what was answered ok is among these acts, as it was asked for. *one
//! claim*: a sequencer answers a claim once, and grants no more claims that name one holder than that one
//! was given the task; in calm weather they are all of the home era. *claims end*: once everybody is there
//! again one of many claims wins, and what is contested is so no longer when it is written again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Input,
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{CallId, Caller, Command, Outcome, Refused},
        event::RoomEvent,
    },
    name::{
        id::{AgentId, EntryRef, LogId, MessageId, RoomId},
        number::Era,
    },
    wire::acts::{Grant, TaskAct, TaskStatus, TaskUpdated},
};

use super::{
    agents::KEY,
    promises::{Broken, broken},
    world::World,
};

/// Tasks of a room that agents look at: the newest. Else few updates would meet in one task.
const RECENT: usize = 3;
/// How long a claim and its answer take to be everywhere, where nothing disturbs.
const DONE_WITHIN: Duration = Duration::from_secs(3);

const STATUSES: [TaskStatus; 4] =
    [TaskStatus::Pending, TaskStatus::InProgress, TaskStatus::Completed, TaskStatus::Blocked];

/// What a call was for.
#[derive(Clone, Debug)]
enum Asked {
    Assign { room: RoomId, title: String, assignee: Option<AgentId> },
    Update { by: AgentId, room: RoomId, update: TaskUpdate },
    List,
}

/// A task that was made.
#[derive(Clone, Debug)]
struct Made {
    task: MessageId,
    room: RoomId,
    title: String,
    /// Who holds it, as far as the agents have heard.
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

/// An act, as some node has written it.
#[derive(Clone, Debug)]
struct Act {
    clock: u64,
    wall_ms: u64,
    act: TaskAct,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    asked: BTreeMap<CallId, (usize, Asked)>,
    made: Vec<Made>,
    acknowledged: Vec<Acknowledged>,
    /// Every act that was durable anywhere.
    acts: BTreeMap<RoomId, BTreeMap<EntryRef, Act>>,
    /// What members were told last, by node.
    told: BTreeMap<(usize, MessageId), TaskView>,
    /// Nodes that were down at some time: what they were about to say is lost.
    went_down: BTreeSet<usize>,
    /// What each node says of the room that is asked about.
    views: BTreeMap<usize, Vec<TaskView>>,
    /// Claims that were made, and those that were granted.
    pub(super) claimed: u64,
    pub(super) granted: u64,
    /// Fields that were contested in the end.
    pub(super) contested: u64,
}

impl Tasks {
    /// Calls that were open are never answered.
    pub(super) fn node_down(&mut self, node: usize) {
        self.asked.retain(|_, (at, _)| *at != node);
        self.went_down.insert(node);
    }

    /// Calls that nobody answered though their node lives.
    pub(super) fn open(&self) -> usize {
        self.asked.len()
    }

    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// A task and its newest holder, of these rooms.
    fn recent(&self, rooms: &[RoomId]) -> Vec<Made> {
        let there = self.made.iter().rev().filter(|it| rooms.contains(&it.room));
        there.take(RECENT).cloned().collect()
    }
}

/// What agents do.
impl World {
    fn ask_of_tasks(&mut self, node: usize, asked: Asked, command: Command) {
        let call = self.call();
        self.tasks.asked.insert(call, (node, asked));
        self.give(node, Input::Command { call, command });
    }

    /// An agent makes a task, or updates one, or some claim one at once.
    pub(super) fn task_some(&mut self, i: usize) {
        let Some((node, caller)) = self.agents.caller(i) else { return };
        let rooms = self.agents.rooms_of(i);
        let recent = self.tasks.recent(&rooms);
        if rooms.is_empty() {
            return;
        }
        if recent.is_empty() || self.dice.chance(25) {
            let room = *self.dice.pick(&rooms);
            let assignee = self.dice.chance(30).then(|| self.somebody());
            return self.assign((node, caller), room, assignee);
        }
        let task = self.dice.pick(&recent).clone();
        if self.dice.chance(50) {
            let update = self.some_update(task.task);
            return self.update((node, caller), task.room, update);
        }
        let if_assignee = match self.dice.within(0, 9) {
            0..=5 => task.assignee,
            6..=8 => None,
            _ => Some(self.somebody()),
        };
        let mut claimants = vec![(node, caller)];
        for _ in 0..self.dice.within(0, 3) {
            let another = self.dice.index(self.agents.count());
            claimants.extend(self.agents.caller(another));
        }
        for by in claimants {
            self.claim(by, (task.room, task.task), if_assignee.clone());
        }
    }

    fn somebody(&mut self) -> AgentId {
        let i = self.dice.index(self.agents.count());
        AgentId::from(format!("agent{i}"))
    }

    fn assign(&mut self, by: (usize, Caller), room: RoomId, assignee: Option<AgentId>) {
        let (node, caller) = by;
        self.messages += 1;
        let title = format!("task {}", self.messages);
        let asked = Asked::Assign { room, title: title.clone(), assignee: assignee.clone() };
        let task = NewTask { room, title, description: None, assignee };
        self.ask_of_tasks(node, asked, Command::AssignTask { caller, task });
    }

    fn some_update(&mut self, task: MessageId) -> TaskUpdate {
        self.messages += 1;
        let note = format!("note {}", self.messages);
        TaskUpdate {
            task,
            status: self.dice.chance(50).then(|| *self.dice.pick(&STATUSES)),
            assignee: self.dice.chance(20).then(|| self.somebody()),
            note: self.dice.chance(50).then_some(note),
            if_assignee: None,
        }
    }

    fn claim(
        &mut self,
        by: (usize, Caller),
        (room, task): (RoomId, MessageId),
        if_assignee: Option<AgentId>,
    ) {
        self.messages += 1;
        // Nobody else writes this, so the claim can be told from others of its agent.
        let note = format!("claim {}", self.messages);
        let update = TaskUpdate {
            task,
            status: self.dice.chance(50).then_some(TaskStatus::InProgress),
            assignee: Some(by.1.agent.clone()),
            note: Some(note),
            if_assignee: Some(if_assignee),
        };
        self.tasks.claimed += 1;
        self.update(by, room, update);
    }

    fn update(&mut self, (node, caller): (usize, Caller), room: RoomId, update: TaskUpdate) {
        let asked = Asked::Update { by: caller.agent.clone(), room, update: update.clone() };
        self.ask_of_tasks(node, asked, Command::UpdateTask { caller, update });
    }

    /// Whether the call was about tasks; and if so what the answer says.
    pub(super) fn task_replied(
        &mut self,
        node: usize,
        call: CallId,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        let Some((_, asked)) = self.tasks.asked.remove(&call) else { return Ok(false) };
        self.agents.answered += 1;
        self.agents.refused += u64::from(result.is_err());
        match (asked, result) {
            (Asked::Assign { room, title, assignee }, Ok(Outcome::Task(view))) => {
                let task = view.task;
                self.tasks.made.push(Made { task, room, title, assignee });
            }
            (Asked::Update { by, room, update }, Ok(Outcome::Task(view))) => {
                let sets = update.assignee.is_some() || view.assignee.is_some();
                let made = self.tasks.made.iter_mut().find(|it| it.task == update.task);
                if let Some(made) = made.filter(|_| sets) {
                    made.assignee = view.assignee.clone();
                }
                self.tasks.granted += u64::from(update.if_assignee.is_some());
                self.tasks.acknowledged.push(Acknowledged { node, by, room, update });
            }
            (Asked::Update { update, .. }, Err(Refused::Held { holder }))
                if update.if_assignee.as_ref().is_some_and(|it| it != holder) => {}
            (Asked::List, Ok(Outcome::Tasks(tasks))) => {
                self.tasks.views.insert(node, tasks.clone());
            }
            (asked, Err(refused)) if may_be_refused(&asked, refused) => {}
            (_, Err(_)) if self.is_exempt(node) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }
}

/// What else may be in the way: the room ended, the agent lost its seat or its connection, or the task
/// has not come to this node yet.
fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    let updates = matches!(asked, Asked::Update { .. });
    matches!(
        refused,
        Refused::NoRoom
            | Refused::NotMember
            | Refused::Superseded
            | Refused::Closed
            | Refused::Stopping
    ) || (updates && *refused == Refused::NoTask)
}

/// What must hold at every moment.
impl World {
    /// *one claim*. An act is durable at a node.
    pub(super) fn task_stored(
        &mut self,
        (room, place): (RoomId, EntryRef),
        (clock, wall_ms): (u64, u64),
        act: TaskAct,
    ) -> Result<(), Broken> {
        let acts = self.tasks.acts.entry(room).or_default();
        if acts.contains_key(&place) {
            return Ok(());
        }
        acts.insert(place, Act { clock, wall_ms, act: act.clone() });
        match act {
            TaskAct::Granted(grant) if self.is_honest() => self.claim_answered(room, place, &grant),
            TaskAct::Granted(_)
            | TaskAct::Assigned(_)
            | TaskAct::Updated(_)
            | TaskAct::Claimed { .. } => Ok(()),
        }
    }

    fn claim_answered(&self, room: RoomId, place: EntryRef, grant: &Grant) -> Result<(), Broken> {
        let Some(acts) = self.tasks.acts.get(&room) else { return Ok(()) };
        let grants = acts.iter().filter_map(|(at, it)| match &it.act {
            TaskAct::Granted(grant) => Some((at, grant)),
            TaskAct::Assigned(_) | TaskAct::Updated(_) | TaskAct::Claimed { .. } => None,
        });
        let of_era: Vec<(&EntryRef, &Grant)> =
            grants.filter(|(_, it)| it.era == grant.era).collect();
        let same = |(at, it): &&(&EntryRef, &Grant)| it.claim == grant.claim && **at != place;
        if let Some(again) = of_era.iter().find(same) {
            return broken("one claim", format!("{again:?} and {place:?} answer one claim"));
        }
        // An ephemeral room may have ended where its home era was, and gone on elsewhere.
        let ephemeral = self.promises.ephemeral.contains(&room);
        if self.plan.calm && grant.era != Era::HOME && !ephemeral {
            return broken(
                "one claim",
                format!("in calm weather {:?} of room {room} answers", grant.era),
            );
        }
        let asked = acts.get(&grant.claim).map(|it| &it.act);
        if let Some(TaskAct::Claimed { if_assignee, .. }) = asked
            && (*if_assignee == grant.holder) != grant.update.is_some()
        {
            return broken("one claim", format!("of {if_assignee:?} one was answered {grant:?}"));
        }
        let Some(task) = grant.update.as_ref().map(|it| it.task) else { return Ok(()) };
        let given = acts.iter().filter(|(at, it)| gives(at, it, task) == Some(&grant.holder));
        let won = of_era.iter().filter(|(_, it)| {
            it.holder == grant.holder && it.update.as_ref().is_some_and(|it| it.task == task)
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
    pub(super) fn task_told(&mut self, node: usize, event: &RoomEvent) {
        if let RoomEvent::TaskAssigned(view) | RoomEvent::TaskUpdated(view) = event {
            self.tasks.told.insert((node, view.task), TaskView::clone(view));
        }
    }
}

/// To whom an act gives a task, if it does.
fn gives<'a>(at: &EntryRef, it: &'a Act, task: EntryRef) -> Option<&'a Option<AgentId>> {
    if let TaskAct::Assigned(new) = &it.act {
        return (*at == task).then_some(&new.assignee);
    }
    let update = written(&it.act).filter(|it| it.task == task)?;
    update.assignee.is_some().then_some(&update.assignee)
}

/// The fields that an act sets.
fn written(act: &TaskAct) -> Option<&TaskUpdated> {
    match act {
        TaskAct::Updated(it) => Some(it),
        TaskAct::Granted(it) => it.update.as_ref(),
        TaskAct::Assigned(_) | TaskAct::Claimed { .. } => None,
    }
}

/// What must hold in the end.
impl World {
    /// *same tasks* and *acknowledged updates survive*, of all rooms that are still there.
    pub(super) fn tasks_converge(&mut self) -> Result<(), Broken> {
        let rooms: Vec<RoomId> = self.tasks.acts.keys().copied().collect();
        for room in rooms {
            if self.promises.ephemeral.contains(&room) {
                continue;
            }
            let tasks = self.tasks_of(room)?;
            self.tasks_are_once(room, &tasks)?;
            for ((node, _), told) in &self.tasks.told {
                let stays = tasks.iter().find(|it| it.task == told.task);
                if told.room == room && stays != Some(told) && !self.tasks.went_down.contains(node)
                {
                    let text = format!("node{node} told {told:?} last, and it is {stays:?}");
                    return broken("same tasks", text);
                }
            }
        }
        let lost = self.tasks.acknowledged.iter().find(|it| !self.is_written(it));
        match lost {
            None => Ok(()),
            Some(it) => broken("acknowledged survives", format!("no act says {it:?}")),
        }
    }

    /// What every node says of the tasks of a room, which is what their acts make.
    fn tasks_of(&mut self, room: RoomId) -> Result<Vec<TaskView>, Broken> {
        self.tasks.views.clear();
        for node in 0..self.nodes.len() {
            let command = Command::ListTasks { key: KEY, room, status: None };
            self.ask_of_tasks(node, Asked::List, command);
        }
        let until = self.now + Duration::from_millis(20);
        self.run_until(until)?;
        let views = std::mem::take(&mut self.tasks.views);
        if views.len() < self.nodes.len() {
            return broken("same tasks", format!("only {} nodes know {room}", views.len()));
        }
        let made = fold(room, self.tasks.acts.get(&room).into_iter().flatten());
        for (node, view) in &views {
            let differs = made.iter().zip(view).find(|(a, b)| a != b);
            if view.len() != made.len() || differs.is_some() {
                let (mine, all) = (view.len(), made.len());
                let text = format!("node{node} lists {mine} of {all} tasks, differs: {differs:?}");
                return broken("same tasks", text);
            }
        }
        Ok(made)
    }

    fn tasks_are_once(&self, room: RoomId, tasks: &[TaskView]) -> Result<(), Broken> {
        let titles: BTreeSet<&str> = tasks.iter().map(|it| &*it.title).collect();
        if titles.len() < tasks.len() {
            return broken("same tasks", format!("a task of {room} is there twice"));
        }
        let lost = self.tasks.made.iter().find(|it| {
            it.room == room && !tasks.iter().any(|t| t.task == it.task && *t.title == *it.title)
        });
        match lost {
            None => Ok(()),
            Some(it) => broken("acknowledged survives", format!("{it:?} is nowhere")),
        }
    }

    /// Whether an act says what was acknowledged: of that node's log, or the answer to a claim of it.
    fn is_written(&self, it: &Acknowledged) -> bool {
        let Acknowledged { node, by, room, update } = it;
        let TaskUpdate { status, assignee, note, .. } = update;
        if self.promises.ephemeral.contains(room)
            || (status.is_none() && assignee.is_none() && note.is_none())
        {
            return true;
        }
        let Some(acts) = self.tasks.acts.get(room) else { return false };
        acts.iter().any(|(place, act)| {
            let by_whom = match &act.act {
                TaskAct::Granted(grant) => grant.claim.log.author,
                TaskAct::Assigned(_) | TaskAct::Updated(_) | TaskAct::Claimed { .. } => {
                    place.log.author
                }
            };
            let claims = matches!(act.act, TaskAct::Granted(_));
            written(&act.act).is_some_and(|it| {
                MessageId::new(*room, it.task.log, it.task.seq) == update.task
                    && (it.status, &it.assignee, &it.note) == (*status, assignee, note)
                    && it.by == *by
                    && by_whom == self.nodes[*node].id
                    && claims == update.if_assignee.is_some()
            })
        })
    }

    /// *claims end*: an agent makes a task that everybody claims, and what is contested is settled.
    pub(super) fn everybody_claims(&mut self) -> Result<(), Broken> {
        let room = RoomId::lobby(self.secret.mesh_id());
        let agents = 0..self.agents.count();
        let callers: Vec<(usize, Caller)> = agents.filter_map(|i| self.agents.caller(i)).collect();
        let contested: Vec<TaskView> =
            self.tasks_of(room)?.into_iter().filter(|it| !it.contested.is_empty()).collect();
        self.tasks.contested += contested.iter().map(|it| it.contested.len() as u64).sum::<u64>();
        let before = self.tasks.made.len();
        let by = self.dice.pick(&callers).clone();
        self.assign(by, room, None);
        let until = self.now + Duration::from_secs(2);
        self.run_until(until)?;
        let Some(task) = self.tasks.made.get(before).map(|it| it.task) else {
            return broken("claims end", "no task can be made after the heal".to_owned());
        };
        for it in &contested {
            let by = self.dice.pick(&callers).clone();
            let note = Some(format!("settled by {}", by.1.agent));
            let (status, assignee) = (Some(TaskStatus::Completed), Some(by.1.agent.clone()));
            let update = TaskUpdate { task: it.task, status, assignee, note, if_assignee: None };
            self.update(by, room, update);
        }
        let granted = self.tasks.granted;
        for by in &callers {
            self.claim(by.clone(), (room, task), None);
        }
        let until = self.now + DONE_WITHIN;
        self.run_until(until)?;
        let tasks = self.tasks_of(room)?;
        let won = self.tasks.granted - granted;
        let claimed = tasks.iter().find(|it| it.task == task);
        let held = claimed.is_some_and(|it| it.assignee.is_some() && it.contested.is_empty());
        if won != 1 || !held {
            return broken("claims end", format!("{won} claims won: {claimed:?}"));
        }
        let open = |it: &&TaskView| {
            let settled = contested.iter().any(|was| was.task == it.task);
            settled && (!it.contested.is_empty() || it.status != TaskStatus::Completed)
        };
        if let Some(it) = tasks.iter().find(open) {
            return broken("claims end", format!("this was settled: {it:?}"));
        }
        self.tasks_converge()
    }
}

/// One write of one task's fields, for the fold below.
struct Write<'a> {
    position: (u64, EntryRef),
    wall_ms: u64,
    over: &'a [EntryRef],
    status: Option<TaskStatus>,
    assignee: Option<&'a Option<AgentId>>,
    note: Option<Option<&'a str>>,
}

/// The tasks of a room as docs/decisions/tasks.md defines them, over all acts at once.
fn fold<'a>(
    room: RoomId,
    acts: impl Iterator<Item = (&'a EntryRef, &'a Act)> + Clone,
) -> Vec<TaskView> {
    let mut tasks: Vec<((u64, EntryRef), TaskView)> = Vec::new();
    for (place, it) in acts.clone() {
        let TaskAct::Assigned(new) = &it.act else { continue };
        let mut writes = vec![Write {
            position: (it.clock, *place),
            wall_ms: it.wall_ms,
            over: &[],
            status: Some(TaskStatus::Pending),
            assignee: Some(&new.assignee),
            note: Some(None),
        }];
        writes.extend(acts.clone().filter_map(|(at, it)| {
            let update = written(&it.act).filter(|it| it.task == *place)?;
            Some(Write {
                position: (it.clock, *at),
                wall_ms: it.wall_ms,
                over: &update.over,
                status: update.status,
                assignee: update.assignee.is_some().then_some(&update.assignee),
                note: update.note.as_ref().map(|it| Some(&**it)),
            })
        }));
        let status = heads(&writes, |it| it.status);
        let assignee = heads(&writes, |it| it.assignee);
        let note = heads(&writes, |it| it.note);
        let mut left: Vec<(u64, EntryRef)> = Vec::new();
        left.extend(status.iter().map(|it| it.0));
        left.extend(assignee.iter().map(|it| it.0));
        left.extend(note.iter().map(|it| it.0));
        let updated = left.into_iter().filter(|it| it.1 != *place).max();
        let updated = writes.iter().find(|it| Some(it.position) == updated);
        let contested = [
            (is_contested(&status), "status"),
            (is_contested(&assignee), "assignee"),
            (is_contested(&note), "note"),
        ];
        let view = TaskView {
            task: MessageId::new(room, place.log, place.seq),
            room,
            title: new.title.clone().into(),
            description: new.description.clone().map(Into::into),
            status: shown(&status).unwrap_or(TaskStatus::Pending),
            assignee: shown(&assignee).cloned().flatten(),
            created_by: new.created_by.clone(),
            created_ms: it.wall_ms,
            updated_ms: updated.map(|it| it.wall_ms),
            note: shown(&note).flatten().map(Into::into),
            contested: contested.into_iter().filter(|it| it.0).map(|it| it.1).collect(),
        };
        tasks.push(((it.clock, *place), view));
    }
    tasks.sort_by_key(|it| it.0);
    tasks.into_iter().map(|it| it.1).collect()
}

/// The values of a field that nothing replaces, with where they were written.
fn heads<'a, T>(
    writes: &'a [Write<'a>],
    field: impl Fn(&Write<'a>) -> Option<T>,
) -> Vec<((u64, EntryRef), T)> {
    let knew = |by: &Write, log: LogId, seq: u64| {
        let own = by.position.1.log == log && by.position.1.seq > seq;
        own || by.over.contains(&EntryRef { log, seq })
    };
    let is_head = |it: &&Write<'a>| {
        let EntryRef { log, seq } = it.position.1;
        !writes.iter().any(|by| field(by).is_some() && knew(by, log, seq))
    };
    let heads = writes.iter().filter(is_head);
    heads.filter_map(|it| Some((it.position, field(it)?))).collect()
}

fn shown<T: Copy>(heads: &[((u64, EntryRef), T)]) -> Option<T> {
    heads.iter().max_by_key(|it| it.0).map(|it| it.1)
}

fn is_contested<T: PartialEq>(heads: &[((u64, EntryRef), T)]) -> bool {
    heads.iter().any(|it| it.1 != heads[0].1)
}
