//! Tasks: making them, updating them, and claims, which the room's sequencer answers.

use std::collections::BTreeMap;

use super::{inboxes::Inboxes, known::Known, votes::forget};
use crate::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{CallId, Caller, Outcome, Reader, Refused},
        event::RoomEvent,
    },
    fold::{
        act::Fold as _,
        tasks::{Answer, News},
    },
    name::id::{EntryRef, LocalRef, MessageId, RoomId},
    room::Room,
    wire::{
        acts::{TaskAct, TaskAssigned, TaskClaimed, TaskUpdated},
        entry::Body,
        tasks::{TaskDeleted, TaskFacts, TaskFields, TaskStatus},
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// The calls that wait for an answer, by the entry of the claim.
    pub(super) waiting: BTreeMap<(RoomId, LocalRef), CallId>,
}

impl Claims {
    pub(super) fn update_task(
        &mut self,
        known: &mut Known,
        call: CallId,
        caller: &Caller,
        update: TaskUpdate,
    ) {
        match try_update(known, caller, update) {
            Ok(Started::Done(outcome)) => known.cx.reply(call, Ok(*outcome)),
            Ok(Started::Claimed(room, at)) => {
                self.waiting.insert((room, at), call);
            }
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    // Effects of acts.

    /// `inboxes`: of the agents that gave tasks, which may have ended without an answer.
    pub(super) fn settle_tasks(&mut self, known: &mut Known, inboxes: &mut Inboxes, id: RoomId) {
        let Some(room) = known.rooms.get_mut(&id) else { return };
        for news in room.folds.tasks.take_news(known.cx.now.mono) {
            match news {
                News::Assigned { place, view } => {
                    known.index.tasks.entry(view.task).or_insert((id, place));
                    known.cx.notify(id, RoomEvent::TaskAssigned(view));
                }
                News::Updated(view, change) => {
                    known.cx.notify(id, RoomEvent::TaskUpdated(view, change));
                }
                News::Deleted { place, view, by } => {
                    forget(&mut known.index.tasks, view.task, (id, place));
                    known.cx.notify(id, RoomEvent::TaskDeleted { view, by });
                }
                News::Restored(place, task) => {
                    known.index.tasks.entry(task).or_insert((id, place));
                }
                News::Ended(view) => inboxes.on_task_ended(known, &view),
                News::Forgotten(task, place) => forget(&mut known.index.tasks, task, (id, place)),
                News::Answered { claim, answer } => {
                    if let Some(call) = self.waiting.remove(&(id, claim)) {
                        known.cx.reply(call, told(answer));
                    }
                }
            }
        }
    }

    /// Nobody takes the claims that this node wrote in these rooms, so nobody is to wait for them.
    pub(super) fn refuse(&mut self, known: &mut Known, which: impl Fn(&Known, RoomId) -> bool) {
        let refused = self.waiting.extract_if(.., |(room, _), _| which(known, *room));
        let refused: Vec<(RoomId, CallId)> =
            refused.map(|((room, _), call)| (room, call)).collect();
        for (room, call) in refused {
            let why = known.not_writable(room);
            known.cx.reply(call, Err(why));
        }
    }

    /// The room has ended.
    pub(super) fn forget_tasks(&mut self, known: &mut Known, room: &Room) {
        for (task, place) in room.folds.tasks.ids() {
            forget(&mut known.index.tasks, task, (room.replica.id, place));
        }
        let all = (room.replica.id, LocalRef { log: 0, seq: 0 })..;
        let waiting =
            self.waiting.range(all).take_while(|((other, _), _)| *other == room.replica.id);
        let waiting: Vec<(RoomId, LocalRef)> = waiting.map(|(key, _)| *key).collect();
        for key in waiting {
            if let Some(call) = self.waiting.remove(&key) {
                known.cx.reply(call, Err(Refused::NoTask));
            }
        }
    }
}

fn view(known: &Known, room: RoomId, task: EntryRef) -> Result<Outcome, Refused> {
    let view = known.rooms.get(&room).and_then(|room| room.folds.tasks.view(task));
    view.map(|view| Outcome::Task(Box::new(view))).ok_or(Refused::NoTask)
}

pub(super) fn assign_task(
    known: &mut Known,
    caller: &Caller,
    new: NewTask,
) -> Result<Outcome, Refused> {
    known.may_contribute(caller, new.room)?;
    new.check()?;
    let n = known.rooms.get(&new.room).map_or(1, |room| room.folds.tasks.next_n());
    let act = TaskAct::Assigned(TaskAssigned {
        title: new.title,
        description: new.description,
        assignee: new.assignee,
        created_by: caller.agent.clone(),
        id: None,
        facts: Box::new(TaskFacts { n, ..*new.facts }),
        fields: Box::new(TaskFields { title: None, description: None, ..*new.fields }),
    });
    let at = known.write_act(new.room, &Body::Task(act))?;
    let room = known.rooms.get(&new.room).ok_or(Refused::NoRoom)?;
    let task = EntryRef { log: room.replica.mine, seq: at.seq };
    view(known, new.room, task)
}

fn try_update(known: &mut Known, caller: &Caller, change: TaskUpdate) -> Result<Started, Refused> {
    known.caller(caller)?;
    let (room, task) = known.index.tasks.get(&change.task).copied().ok_or(Refused::NoTask)?;
    known.may_contribute(caller, room).map_err(no_task_without_room)?;
    change.check()?;
    let state = known.rooms.get(&room).ok_or(Refused::NoTask)?;
    // The index learns at the end of a turn that a task is gone. A claim of such a one has no effect, so nobody would answer it.
    let stands = state.folds.tasks.view(task).ok_or(Refused::NoTask)?;
    if change.by_steps {
        goes_by_steps(&stands, &change)?;
    }
    let sets = change.sets();
    let update = TaskUpdated {
        task,
        over: Vec::new(),
        status: change.status,
        assignee: change.assignee,
        note: change.note,
        by: caller.agent.clone(),
        kind: change.kind,
        fields: change.fields,
    };
    if let Some(if_assignee) = change.if_assignee {
        let era = state.order.numbering.current();
        known.may_speak(caller)?;
        let (key, if_status) = (caller.key.checked(), change.if_status);
        let claim = TaskClaimed { update, if_assignee, era, key, if_status };
        let at = known.write_act(room, &Body::Task(TaskAct::Claimed(claim)))?;
        return Ok(Started::Claimed(room, at));
    }
    if sets {
        let update = state.folds.tasks.over_what_is_known(update);
        known.write_act(room, &Body::Task(TaskAct::Updated(update)))?;
    }
    view(known, room, task).map(|outcome| Started::Done(Box::new(outcome)))
}

/// Whether it is set to a state that it may have next.
fn goes_by_steps(task: &TaskView, change: &TaskUpdate) -> Result<(), Refused> {
    let Some(to) = change.status else { return Ok(()) };
    let held = task.assignee.is_some();
    let stays_held = change.assignee.as_ref().map_or(held, Option::is_some);
    // Who takes a task may begin with it in one go.
    if task.status.may_become(to, held || stays_held, stays_held) {
        return Ok(());
    }
    Err(Refused::Stands { is: task.status, to: Some(to) })
}

pub(super) fn read_task(
    known: &Known,
    by: &Reader,
    (room, task): (RoomId, MessageId),
) -> Result<Outcome, Refused> {
    known.may_read(by, room)?;
    let found = known.index.tasks.get(&task).filter(|(of, _)| *of == room);
    let (_, place) = *found.ok_or(Refused::NoTask)?;
    let record = known.rooms.get(&room).and_then(|room| room.folds.tasks.record(place));
    record.map(|record| Outcome::TaskRecord(Box::new(record))).ok_or(Refused::NoTask)
}

pub(super) fn delete_task(
    known: &mut Known,
    caller: &Caller,
    task: MessageId,
) -> Result<Outcome, Refused> {
    known.caller(caller)?;
    let (room, place) = known.index.tasks.get(&task).copied().ok_or(Refused::NoTask)?;
    known.may_contribute(caller, room).map_err(no_task_without_room)?;
    let view = known.rooms.get(&room).and_then(|room| room.folds.tasks.view(place));
    let view = view.ok_or(Refused::NoTask)?;
    let owner = known.told.get(&room).and_then(|room| room.owner);
    if view.created_by != caller.agent && owner != Some(caller.key) {
        return Err(Refused::NotYours);
    }
    if !view.status.is_terminal() {
        return Err(Refused::Stands { is: view.status, to: None });
    }
    let deleted = TaskDeleted { task: place, by: caller.agent.clone() };
    known.write_act(room, &Body::Task(TaskAct::Deleted(deleted)))?;
    Ok(Outcome::Done)
}

pub(super) fn list_tasks(
    known: &Known,
    by: &Reader,
    room: RoomId,
    status: Option<TaskStatus>,
) -> Result<Outcome, Refused> {
    known.may_read(by, room)?;
    let tasks =
        known.rooms.get(&room).map(|room| room.folds.tasks.newest(status)).unwrap_or_default();
    Ok(Outcome::Tasks(tasks))
}

/// Sees which claims are their agents', before they are answered: a claim and the voucher of its node travel in two rooms.
pub(super) fn judge_claims(known: &mut Known, id: RoomId) {
    let keys = known.directory.keys();
    if let Some(room) = known.rooms.get_mut(&id).filter(|room| room.folds.tasks.is_waiting()) {
        room.folds.tasks.judge(|act| keys.may_ask(act));
    }
}

/// After a start: where the tasks are that were there before. Nobody is told of them.
pub(super) fn note_tasks(known: &mut Known) {
    for room in known.rooms.values_mut() {
        drop(room.folds.tasks.take_news(known.cx.now.mono));
        let id = room.replica.id;
        for (task, place) in room.folds.tasks.ids() {
            known.index.tasks.entry(task).or_insert((id, place));
        }
    }
}

/// How an update began.
enum Started {
    /// It is done.
    Done(Box<Outcome>),
    /// It waits for its answer.
    Claimed(RoomId, LocalRef),
}

/// Why a claim was not granted though nobody else held the task.
const UNPROVEN: &str =
    "the node that decides does not know yet that this agent's node was shown its key: try again";

fn told(answer: Answer) -> Result<Outcome, Refused> {
    match answer {
        Answer::Granted(view) => Ok(Outcome::Task(Box::new(TaskView::clone(&view)))),
        Answer::Held(holder) => Err(Refused::Held { holder }),
        Answer::Stands(is) => Err(Refused::Stands { is, to: None }),
        Answer::Unproven => Err(Refused::Full(UNPROVEN.to_owned())),
        Answer::Forgotten => Err(Refused::NoTask),
    }
}

/// A task of a room that is not there any more is not either.
fn no_task_without_room(refused: Refused) -> Refused {
    if refused == Refused::NoRoom { Refused::NoTask } else { refused }
}
