//! Tasks that one agent gives to another, each in a direct room of its own: their time, and the end of their rooms.
//!
//! The terms of a task are an act in its room, so all nodes of the agent that gave it know when its time is up. A node that
//! has the agent's inbox acts on it: the task is blocked then, and the inbox has an item in the same turn. A room is closed
//! in the directory of its pair: those who have neither its messages nor its end must not wait for bodies that are gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{inboxes::Inboxes, known::Known};
use crate::{
    api::{
        agenda::{GivenAct, TaskMarks, TaskView},
        command::{Caller, Outcome, Refused},
    },
    directory::direct::Stage,
    limits::GIVEN_TASKS_AT_ONCE,
    name::{
        id::{EntryRef, RoomId},
        time::in_ms,
    },
    wire::{
        acts::{TaskAct, TaskStatus, TaskUpdated},
        entry::{Body, DirectClosed},
        given::{TaskMark, TaskMarked},
    },
};

/// How long this node waits if it may not write.
const AGAIN_AFTER_MS: u64 = 10_000;

/// For so long a new inbox has items of tasks that ended before it was made: as of messages.
const TOLD_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The next thing to do about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its time is up.
    RunOut,
    /// Its room is closed, some time after its end.
    Close { drops: bool },
}

/// See the module. One time for each room at most: there are [`crate::limits::DIRECT_ROOMS_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    due: BTreeSet<(u64, RoomId)>,
    times: BTreeMap<RoomId, u64>,
}

impl Given {
    /// Something has changed in a room, or the agent that gave its task has an inbox here since just now.
    pub(super) fn note(&mut self, known: &Known, inboxes: &Inboxes, room: RoomId) {
        let step = next(known, inboxes, room);
        self.set(room, step.map(|(at_ms, _)| at_ms));
    }

    /// After a start.
    pub(super) fn note_all(&mut self, known: &Known, inboxes: &Inboxes) {
        let rooms = known.rooms.keys().copied().filter(|room| is_for_task(known, *room));
        for room in rooms.collect::<Vec<_>>() {
            self.note(known, inboxes, room);
        }
    }

    /// An agent has an inbox here since just now: tasks that it gave elsewhere are this node's business, too. Of those that
    /// ended a short while ago without an answer it is told here as well.
    pub(super) fn note_agent(&mut self, known: &mut Known, inboxes: &mut Inboxes, by: &Caller) {
        let rooms = known.directory.direct.of_agent(&by.agent, by.key);
        for room in rooms.filter(|room| is_for_task(known, *room)).collect::<Vec<_>>() {
            self.note(known, inboxes, room);
            let Some((_, task)) = task_of(known, room) else { continue };
            let TaskMarks { ran_out, untaken, read, .. } = task.marks;
            let ended_ms = task.updated_ms.unwrap_or(task.created_ms);
            let is_young = ended_ms.saturating_add(in_ms(TOLD_FOR)) >= known.cx.now.wall_ms;
            let is_own = task.created_by == by.agent && stage(known, room) != Stage::Dropped;
            if is_own && is_young && (ran_out || untaken) && !read {
                inboxes.on_task_ended(known, &task);
            }
        }
    }

    fn set(&mut self, room: RoomId, at_ms: Option<u64>) {
        let before = match at_ms {
            Some(at_ms) => self.times.insert(room, at_ms),
            None => self.times.remove(&room),
        };
        if let Some(before) = before {
            self.due.remove(&(before, room));
        }
        self.due.extend(at_ms.map(|at_ms| (at_ms, room)));
    }

    /// Does what is due now.
    pub(super) fn go_on(&mut self, known: &mut Known, inboxes: &Inboxes) {
        let now_ms = known.cx.now.wall_ms;
        for _ in 0..GIVEN_TASKS_AT_ONCE {
            let Some((at_ms, room)) = self.due.first().copied() else { return };
            if at_ms > now_ms {
                return;
            }
            let step = next(known, inboxes, room).filter(|(at_ms, _)| *at_ms <= now_ms);
            let done = match step {
                Some((_, Step::RunOut)) => run_out(known, room),
                Some((_, Step::Close { drops })) => close(known, room, drops),
                None => Ok(()),
            };
            match done {
                Ok(()) => self.note(known, inboxes, room),
                // It is written when this node may write again.
                Err(_) => self.set(room, Some(now_ms.saturating_add(AGAIN_AFTER_MS))),
            }
        }
    }

    /// An act of the agent that gave the task of a room.
    pub(super) fn act(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        (room, act): (RoomId, GivenAct),
    ) -> Result<Outcome, Refused> {
        known.caller(caller)?;
        known.may_read(&caller.reader(), room)?;
        let (place, task) = task_of(known, room).ok_or(Refused::NoTask)?;
        if task.created_by != caller.agent {
            return Err(Refused::NotYours);
        }
        match act {
            GivenAct::Terms(terms) => mark(known, room, place, TaskMark::Terms(terms))?,
            // It has begun, or has ended, just now.
            GivenAct::Dismiss if task.status != TaskStatus::Pending && !task.marks.dismissed => {
                return Err(Refused::Held { holder: task.assignee });
            }
            GivenAct::Dismiss => {
                block(known, room, place, &task)?;
                mark(known, room, place, TaskMark::Dismissed)?;
                close(known, room, false)?;
            }
            GivenAct::GiveUp => {
                if !task.marks.untaken {
                    block(known, room, place, &task)?;
                    mark(known, room, place, TaskMark::Untaken)?;
                    close(known, room, false)?;
                }
            }
            GivenAct::HasResult => has_result(known, caller, room, &task)?,
            GivenAct::Returned => {
                if !task.marks.read {
                    mark(known, room, place, TaskMark::Read)?;
                }
            }
            // An answer may still come: then that is the result.
            GivenAct::HasNotice if task.marks.ran_out && stage(known, room) == Stage::Open => {
                if !task.marks.read {
                    mark(known, room, place, TaskMark::Read)?;
                }
            }
            GivenAct::HasNotice => has_result(known, caller, room, &task)?,
        }
        Ok(Outcome::Done)
    }
}

/// The agent that gave a task has its result: its room goes, unless it is kept, and so do those of agents that were asked before.
fn has_result(
    known: &mut Known,
    caller: &Caller,
    room: RoomId,
    task: &TaskView,
) -> Result<(), Refused> {
    if !has_ended(task) || task.marks.terms.as_ref().is_none_or(|terms| terms.keeps) {
        return Ok(());
    }
    let chosen = task.marks.terms.as_ref().and_then(|terms| terms.chosen.as_ref());
    let first = chosen.map(|chosen| chosen.first.map_or(room, |first| first.room));
    let others: Vec<RoomId> = match first {
        Some(first) => {
            let of_agent = known.directory.direct.of_agent(&caller.agent, caller.key);
            of_agent.filter(|other| is_after(known, first, *other)).collect()
        }
        None => Vec::new(),
    };
    for room in others.into_iter().chain([room]) {
        close(known, room, true)?;
    }
    Ok(())
}

/// Whether a task is the first one of those that agents were asked to do one after the other, or a later one.
fn is_after(known: &Known, first: RoomId, room: RoomId) -> bool {
    let asked_after = || {
        let (_, task) = task_of(known, room)?;
        Some(task.marks.terms.as_ref()?.chosen.as_ref()?.first?.room)
    };
    room == first || asked_after() == Some(first)
}

fn has_ended(task: &TaskView) -> bool {
    matches!(task.status.basic(), TaskStatus::Completed | TaskStatus::Blocked)
}

fn is_for_task(known: &Known, room: RoomId) -> bool {
    known.directory.direct.get(room).is_some_and(|direct| direct.task)
}

fn stage(known: &Known, room: RoomId) -> Stage {
    known.directory.direct.get(room).map_or(Stage::Dropped, |direct| direct.stage())
}

fn task_of(known: &Known, room: RoomId) -> Option<(EntryRef, TaskView)> {
    known.rooms.get(&room).filter(|_| is_for_task(known, room))?.folds.tasks.first()
}

/// What is to be done next about the task of a room, and when. Unix milliseconds.
fn next(known: &Known, inboxes: &Inboxes, room: RoomId) -> Option<(u64, Step)> {
    let (_, task) = task_of(known, room).filter(|_| stage(known, room) == Stage::Open)?;
    let terms = task.marks.terms.as_ref()?;
    if !inboxes.has(known, &task.created_by) {
        return None;
    }
    if !has_ended(&task) {
        return Some((task.created_ms.saturating_add(terms.run_ms?), Step::RunOut));
    }
    let drops = !terms.keeps && task.marks.read;
    let step = Step::Close { drops };
    let after = in_ms(known.config.archive_after);
    let ended_ms = task.updated_ms.unwrap_or(task.created_ms);
    let ends = terms.keeps || task.marks.ran_out || task.marks.read;
    ends.then_some((ended_ms.saturating_add(after), step))
}

fn run_out(known: &mut Known, room: RoomId) -> Result<(), Refused> {
    let (place, task) = task_of(known, room).ok_or(Refused::NoTask)?;
    block(known, room, place, &task)?;
    mark(known, room, place, TaskMark::RanOut)
}

fn block(known: &mut Known, room: RoomId, place: EntryRef, task: &TaskView) -> Result<(), Refused> {
    if task.status.basic() == TaskStatus::Blocked {
        return Ok(());
    }
    let by = task.created_by.clone();
    let update = TaskUpdated { status: Some(TaskStatus::Blocked), ..TaskUpdated::of(place, by) };
    let state = known.rooms.get(&room).ok_or(Refused::NoTask)?;
    let update = state.folds.tasks.over_what_is_known(update);
    known.write_act(room, &Body::Task(TaskAct::Updated(update))).map(drop)
}

fn mark(known: &mut Known, room: RoomId, task: EntryRef, mark: TaskMark) -> Result<(), Refused> {
    let marked = TaskMarked { task, mark };
    known.write_act(room, &Body::Task(TaskAct::Marked(marked))).map(drop)
}

/// A request in the room of a task has failed. If it is the one that gave the task, which nobody has begun, the task is over: a
/// node says so that has the inbox of the agent that gave it, where the agent is told.
pub(super) fn on_failed(known: &mut Known, inboxes: &Inboxes, room: RoomId, request: EntryRef) {
    let Some((place, task)) = task_of(known, room) else { return };
    let Some(state) = known.rooms.get(&room) else { return };
    let is_before = |other: EntryRef| other.log == request.log && other.seq < request.seq;
    let is_first = request.log == place.log && !state.folds.deliveries.requests().any(is_before);
    let is_open = task.status == TaskStatus::Pending && stage(known, room) == Stage::Open;
    if is_open && is_first && inboxes.has(known, &task.created_by) {
        // A node that may not write now leaves it to the end of the task's time.
        drop(block(known, room, place, &task));
    }
}

/// Says in the directory of its pair that a room takes nothing more.
fn close(known: &mut Known, room: RoomId, drops: bool) -> Result<(), Refused> {
    let wanted = if drops { Stage::Dropped } else { Stage::Closed };
    let Some(direct) = known.directory.direct.get(room).filter(|direct| direct.stage() < wanted)
    else {
        return Ok(());
    };
    let (directory, opened) = direct.listed().ok_or(Refused::NoRoom)?;
    let list = known.rooms.get_mut(&directory).ok_or(Refused::NoRoom)?;
    if !list.is_writable(&known.cx) {
        return Err(known.not_writable(directory));
    }
    let body = Body::DirectClosed(DirectClosed { room, opened, drops });
    list.append(&mut known.cx, &body).ok_or(Refused::Closed).map(drop)
}

/// A direct room takes nothing more.
pub(super) fn on_closed(known: &mut Known, room: RoomId) {
    known.tell_of_room(room, false);
    if stage(known, room) == Stage::Dropped
        && let Some(state) = known.rooms.get_mut(&room)
    {
        // Bodies that others have dropped already are not waited for.
        state.replica.keep_ms = Some(in_ms(Duration::ZERO));
        known.cx.to_advance.insert(room);
    }
}
