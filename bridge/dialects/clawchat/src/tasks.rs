//! Tasks: those of every client, and their fields on a mesh (spec §3, `mesh`).

use bridge::{
    seam::{
        call::{AssignTask, ChangeTask, DeleteTask, ListTasks, ReadTask},
        refusal::Refusal,
    },
    session::seat::Seat,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        command::Refused,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::{
        CommentKind as CoreKind, TaskFacts as CoreFacts, TaskFields, TaskProgress as CoreProgress,
    },
};
use protocol::{
    reply::{Reply as Frame, TaskList},
    request,
    task::{CommentKind, NewTaskOptions, TaskFacts, TaskGone, TaskOptions},
    value::{IfAssignee, Metadata},
};
use serde_json::Value;

use crate::{codes::Problem, conversation::Turn, encode};

impl Turn {
    pub(crate) fn assign_task(self, seat: &mut Seat, task: request::AssignTask) {
        let room = task.room_id.clone();
        self.at(seat, &room, |turn, seat, room| match new_task(room, task) {
            Ok(task) => turn.ask(seat, AssignTask(task), |voice, task| {
                Frame::Task(Box::new(encode::task(voice.lobby(), &task)))
            }),
            Err(text) => turn.refuse(seat, Problem::invalid(text)),
        });
    }

    pub(crate) fn update_task(self, seat: &mut Seat, update: request::UpdateTask) {
        let Some(task) = MessageId::from_uuid(&update.task_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoTask));
        };
        match task_update(task, update) {
            Ok(update) => self.ask(seat, ChangeTask(update), |voice, task| {
                Frame::Task(Box::new(encode::task(voice.lobby(), &task)))
            }),
            Err(text) => self.refuse(seat, Problem::invalid(text)),
        }
    }

    pub(crate) fn list_tasks(self, seat: &mut Seat, list: &request::ListTasks) {
        let status = list.status.map(encode::core_task_status);
        self.at(seat, &list.room_id, |turn, seat, room| {
            turn.ask(seat, ListTasks { room, status }, move |voice, tasks| {
                let tasks = tasks.iter().map(|task| encode::task(voice.lobby(), task)).collect();
                Frame::TaskList(TaskList { room_id: voice.name(room), tasks })
            });
        });
    }

    pub(crate) fn get_task(self, seat: &mut Seat, get: &request::GetTask) {
        let Some(task) = MessageId::from_uuid(&get.task_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoTask));
        };
        self.at(seat, &get.room_id, |turn, seat, room| {
            turn.ask(seat, ReadTask { room, task }, move |voice, record| {
                Frame::TaskRecord(Box::new(encode::record(voice.lobby(), &record)))
            });
        });
    }

    pub(crate) fn delete_task(self, seat: &mut Seat, delete: &request::DeleteTask) {
        let Some(task) = MessageId::from_uuid(&delete.task_id) else {
            return self.refuse(seat, Refusal::Mesh(Refused::NoTask));
        };
        self.ask(seat, DeleteTask(task), |_, ()| Frame::TaskGone(TaskGone { deleted: true }));
    }
}

fn new_task(room: RoomId, task: request::AssignTask) -> Result<NewTask, String> {
    let NewTaskOptions { priority, labels, due, facts } = task.mesh.unwrap_or_default();
    let due_ms = due.as_deref().map(time).transpose()?;
    Ok(NewTask {
        description: task.description,
        assignee: task.assignee.map(AgentId::from),
        facts: Box::new(core_facts(facts)?),
        fields: Box::new(TaskFields { priority, labels, due_ms, ..TaskFields::default() }),
        ..NewTask::of(room, task.title)
    })
}

fn core_facts(facts: TaskFacts) -> Result<CoreFacts, String> {
    let id = |text: &String| {
        MessageId::from_uuid(text).ok_or_else(|| format!("`mesh`: {text:?} is no id of a task"))
    };
    Ok(CoreFacts {
        n: 0,
        origin: None,
        parent: facts.parent.as_ref().map(id).transpose()?,
        blocked_by: facts.blocked_by.iter().map(id).collect::<Result<_, _>>()?,
        kind: facts.kind,
        requirements: facts.requirements,
        acceptance: facts.acceptance,
        context: facts.context.as_ref().map(json).transpose()?,
        effort: facts.effort,
        requires_approval: facts.requires_approval,
        alias: None,
    })
}

fn task_update(task: MessageId, update: request::UpdateTask) -> Result<TaskUpdate, String> {
    let if_assignee = match update.if_assignee {
        IfAssignee::Anybody => None,
        IfAssignee::Nobody => Some(None),
        IfAssignee::Agent(id) => Some(Some(AgentId::from(id))),
    };
    let mesh = update.mesh.unwrap_or_default();
    if mesh.if_state.is_some() && if_assignee.is_none() {
        return Err("`mesh.if_state` needs `if_assignee`".to_owned());
    }
    let assignee = update.assignee.map(AgentId::from);
    if mesh.release && assignee.is_some() {
        return Err("`mesh.release` gives the task to nobody: leave out `assignee`".to_owned());
    }
    let kind = mesh.note_kind;
    Ok(TaskUpdate {
        status: mesh.state.map(encode::core_state).or(update.status.map(encode::core_task_status)),
        by_steps: mesh.state.is_some(),
        assignee: if mesh.release { Some(None) } else { assignee.map(Some) },
        note: update.note,
        if_assignee,
        if_status: mesh.if_state.map(encode::core_state),
        kind: kind.map_or(CoreKind::Note, core_kind),
        fields: Box::new(fields(mesh)?),
        ..TaskUpdate::of(task)
    })
}

fn fields(mesh: TaskOptions) -> Result<TaskFields, String> {
    let progress = mesh.progress.map(|at| CoreProgress { percent: at.percent, step: at.step });
    let due_ms = match mesh.due.as_deref() {
        Some("") => Some(0),
        due => due.map(time).transpose()?,
    };
    Ok(TaskFields {
        title: mesh.title,
        description: mesh.description,
        priority: mesh.priority,
        labels: mesh.labels,
        due_ms,
        progress,
        result: mesh.result.as_ref().map(json).transpose()?,
    })
}

fn core_kind(kind: CommentKind) -> CoreKind {
    match kind {
        CommentKind::Note => CoreKind::Note,
        CommentKind::Status => CoreKind::Status,
        CommentKind::Blocker => CoreKind::Blocker,
    }
}

fn time(text: &str) -> Result<u64, String> {
    let time = encode::unix_ms(text).filter(|ms| *ms > 0);
    time.ok_or_else(|| "`mesh.due` must be an RFC 3339 time".to_owned())
}

/// Sound, as metadata of messages is: it stands in the frames of all members.
fn json(value: &Value) -> Result<String, String> {
    let json = Metadata::parse(&value.to_string());
    json.map(|json| json.get().to_owned())
        .map_err(|_| "`mesh`: JSON must not be null, and not be nested that deeply".to_owned())
}
