//! Tasks: making them, updating them, and claims, which the room's sequencer answers.

use super::{Engine, votes::forget};
use crate::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{CallId, Caller, Outcome, Refused},
        event::RoomEvent,
    },
    fold::tasks::{Answer, News, check_new, check_update, is_agent_id},
    name::id::{EntryRef, KeyPrint, LocalRef, RoomId},
    room::Room,
    wire::{
        acts::{TaskAct, TaskAssigned, TaskStatus, TaskUpdated},
        entry::Body,
    },
};

impl Engine {
    pub(super) fn assign_task(
        &mut self,
        caller: &Caller,
        new: NewTask,
    ) -> Result<Outcome, Refused> {
        self.may_act(caller, new.room)?;
        check_new(&new.title, new.description.as_deref(), new.assignee.as_deref())
            .map_err(|wrong| Refused::Invalid(wrong.to_owned()))?;
        let act = TaskAct::Assigned(TaskAssigned {
            title: new.title,
            description: new.description,
            assignee: new.assignee,
            created_by: caller.agent.clone(),
            id: None,
        });
        let at = self.write_act(new.room, &Body::Task(act))?;
        let room = self.rooms.get(&new.room).ok_or(Refused::NoRoom)?;
        let task = EntryRef { log: room.replica.mine, seq: at.seq };
        self.task(new.room, task)
    }

    pub(super) fn update_task(&mut self, call: CallId, caller: &Caller, update: TaskUpdate) {
        match self.try_update(caller, update) {
            Ok(Started::Done(outcome)) => self.reply(call, Ok(*outcome)),
            Ok(Started::Claimed(room, at)) => {
                self.claiming.insert((room, at), call);
            }
            Err(refused) => self.reply(call, Err(refused)),
        }
    }

    fn try_update(&mut self, caller: &Caller, it: TaskUpdate) -> Result<Started, Refused> {
        self.caller(caller)?;
        let (room, task) = self.tasks.get(&it.task).copied().ok_or(Refused::NoTask)?;
        self.may_act(caller, room).map_err(no_task_without_room)?;
        check_update(it.assignee.as_deref(), it.note.as_deref())
            .map_err(|wrong| Refused::Invalid(wrong.to_owned()))?;
        if !is_agent_id(it.if_assignee.as_ref().and_then(|it| it.as_deref())) {
            return Err(Refused::Invalid("if_assignee must have 1 to 128 bytes".to_owned()));
        }
        let sets = it.status.is_some() || it.assignee.is_some() || it.note.is_some();
        let update = TaskUpdated {
            task,
            over: Vec::new(),
            status: it.status,
            assignee: it.assignee,
            note: it.note,
            by: caller.agent.clone(),
        };
        let state = self.rooms.get(&room).ok_or(Refused::NoTask)?;
        if let Some(if_assignee) = it.if_assignee {
            let era = state.order.numbering.current();
            let claim = TaskAct::Claimed { update, if_assignee, era };
            let at = self.write_act(room, &Body::Task(claim))?;
            return Ok(Started::Claimed(room, at));
        }
        if sets {
            let update = state.folds.tasks.over_what_is_known(update);
            self.write_act(room, &Body::Task(TaskAct::Updated(update)))?;
        }
        self.task(room, task).map(|it| Started::Done(Box::new(it)))
    }

    fn task(&self, room: RoomId, task: EntryRef) -> Result<Outcome, Refused> {
        let view = self.rooms.get(&room).and_then(|it| it.folds.tasks.view(task));
        view.map(|it| Outcome::Task(Box::new(it))).ok_or(Refused::NoTask)
    }

    pub(super) fn list_tasks(
        &self,
        key: KeyPrint,
        room: RoomId,
        status: Option<TaskStatus>,
    ) -> Result<Outcome, Refused> {
        self.may_read(key, room)?;
        let tasks =
            self.rooms.get(&room).map(|it| it.folds.tasks.newest(status)).unwrap_or_default();
        Ok(Outcome::Tasks(tasks))
    }

    // What acts came to.

    /// After a start: where the tasks are that were there before. Nobody is told of them.
    pub(super) fn note_tasks(&mut self) {
        for room in self.rooms.values_mut() {
            drop(room.folds.tasks.take_news());
            let id = room.replica.id;
            for (task, place) in room.folds.tasks.ids() {
                self.tasks.entry(task).or_insert((id, place));
            }
        }
    }

    pub(super) fn settle_tasks(&mut self, id: RoomId) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        for news in room.folds.tasks.take_news() {
            match news {
                News::Assigned { place, view } => {
                    self.tasks.entry(view.task).or_insert((id, place));
                    self.cx.notify(id, RoomEvent::TaskAssigned(view));
                }
                News::Updated(view) => self.cx.notify(id, RoomEvent::TaskUpdated(view)),
                News::Forgotten(task, place) => forget(&mut self.tasks, task, (id, place)),
                News::Answered { claim, answer } => {
                    if let Some(call) = self.claiming.remove(&(id, claim)) {
                        self.reply(call, told(answer));
                    }
                }
            }
        }
    }

    /// The room has ended.
    pub(super) fn forget_tasks(&mut self, room: &Room) {
        for (task, place) in room.folds.tasks.ids() {
            forget(&mut self.tasks, task, (room.replica.id, place));
        }
        let all = (room.replica.id, LocalRef { log: 0, seq: 0 })..;
        let waiting = self.claiming.range(all).take_while(|((it, _), _)| *it == room.replica.id);
        let waiting: Vec<(RoomId, LocalRef)> = waiting.map(|(key, _)| *key).collect();
        for key in waiting {
            if let Some(call) = self.claiming.remove(&key) {
                self.reply(call, Err(Refused::NoTask));
            }
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

fn told(answer: Answer) -> Result<Outcome, Refused> {
    match answer {
        Answer::Granted(view) => Ok(Outcome::Task(Box::new(TaskView::clone(&view)))),
        Answer::Held(holder) => Err(Refused::Held { holder }),
        Answer::Forgotten => Err(Refused::NoTask),
    }
}

/// A task of a room that is not there any more is not either.
fn no_task_without_room(refused: Refused) -> Refused {
    if refused == Refused::NoRoom { Refused::NoTask } else { refused }
}
