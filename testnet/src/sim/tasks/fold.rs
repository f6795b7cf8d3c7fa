//! The tasks of a room as docs/decisions/tasks.md defines them, over all acts at once.

use mesh::{
    api::agenda::{TaskMarks, TaskView},
    name::id::{AgentId, EntryRef, LogId, MessageId, RoomId},
    wire::acts::{Grant, TaskAct, TaskAssigned, TaskStatus, TaskUpdated},
};

/// An act, as some node has written it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) clock: u64,
    pub(super) wall_ms: u64,
    pub(super) act: TaskAct,
}

impl Act {
    pub(super) fn assigns(&self) -> Option<&TaskAssigned> {
        if let TaskAct::Assigned(new) = &self.act { Some(new) } else { None }
    }

    pub(super) fn grants(&self) -> Option<&Grant> {
        if let TaskAct::Granted(grant) = &self.act { Some(grant) } else { None }
    }

    /// The fields that it sets.
    pub(super) fn updates(&self) -> Option<&TaskUpdated> {
        if let TaskAct::Updated(update) = &self.act {
            return Some(update);
        }
        self.grants()?.update.as_ref()
    }

    /// The holder to whom it gives a task, if it does. It was written at a place.
    pub(super) fn gives(&self, place: EntryRef, task: EntryRef) -> Option<&Option<AgentId>> {
        if let Some(new) = self.assigns() {
            return (place == task).then_some(&new.assignee);
        }
        let update = self.updates().filter(|update| update.task == task)?;
        update.assignee.is_some().then_some(&update.assignee)
    }
}

/// One write of one task's fields.
struct Write<'a> {
    position: (u64, EntryRef),
    wall_ms: u64,
    over: &'a [EntryRef],
    status: Option<TaskStatus>,
    assignee: Option<&'a Option<AgentId>>,
    note: Option<Option<&'a str>>,
}

/// The values of a field that nothing replaces, with where they were written.
struct Heads<T>(Vec<((u64, EntryRef), T)>);

/// The tasks of a room, in order.
pub(super) fn fold<'a>(
    room: RoomId,
    acts: impl Iterator<Item = (&'a EntryRef, &'a Act)> + Clone,
) -> Vec<TaskView> {
    let mut tasks: Vec<((u64, EntryRef), TaskView)> = Vec::new();
    for (place, act) in acts.clone() {
        let Some(new) = act.assigns() else { continue };
        let mut writes = vec![Write {
            position: (act.clock, *place),
            wall_ms: act.wall_ms,
            over: &[],
            status: Some(TaskStatus::Pending),
            assignee: Some(&new.assignee),
            note: Some(None),
        }];
        writes.extend(acts.clone().filter_map(|(at, act)| write(*at, act, *place)));
        tasks.push(((act.clock, *place), view(room, new, &writes)));
    }
    tasks.sort_by_key(|(position, _)| *position);
    tasks.into_iter().map(|(_, task)| task).collect()
}

fn write(at: EntryRef, act: &Act, task: EntryRef) -> Option<Write<'_>> {
    let update = act.updates().filter(|update| update.task == task)?;
    Some(Write {
        position: (act.clock, at),
        wall_ms: act.wall_ms,
        over: &update.over,
        status: update.status,
        assignee: update.assignee.is_some().then_some(&update.assignee),
        note: update.note.as_ref().map(|note| Some(&**note)),
    })
}

/// A task, from its writes: the first one made it.
fn view(room: RoomId, new: &TaskAssigned, writes: &[Write<'_>]) -> TaskView {
    let (_, place) = writes[0].position;
    let status = Heads::of(writes, |write| write.status);
    let assignee = Heads::of(writes, |write| write.assignee);
    let note = Heads::of(writes, |write| write.note);
    let left = status.positions().chain(assignee.positions()).chain(note.positions());
    let updated = left.filter(|position| position.1 != place).max();
    let updated = writes.iter().find(|write| Some(write.position) == updated);
    let contested = [
        (status.are_contested(), "status"),
        (assignee.are_contested(), "assignee"),
        (note.are_contested(), "note"),
    ];
    TaskView {
        task: MessageId::new(room, place.log, place.seq),
        room,
        title: new.title.clone().into(),
        description: new.description.clone().map(Into::into),
        status: status.shown().unwrap_or(TaskStatus::Pending),
        assignee: assignee.shown().cloned().flatten(),
        created_by: new.created_by.clone(),
        created_ms: writes[0].wall_ms,
        updated_ms: updated.map(|write| write.wall_ms),
        note: note.shown().flatten().map(Into::into),
        contested: contested.into_iter().filter(|(is, _)| *is).map(|(_, field)| field).collect(),
        // Only tasks in direct rooms have any, which nobody folds here.
        marks: TaskMarks::default(),
    }
}

impl<T: Copy + PartialEq> Heads<T> {
    fn of<'a>(writes: &'a [Write<'a>], field: impl Fn(&Write<'a>) -> Option<T>) -> Heads<T> {
        let knew = |by: &Write, log: LogId, seq: u64| {
            let own = by.position.1.log == log && by.position.1.seq > seq;
            own || by.over.contains(&EntryRef { log, seq })
        };
        let is_head = |write: &&Write<'a>| {
            let EntryRef { log, seq } = write.position.1;
            !writes.iter().any(|by| field(by).is_some() && knew(by, log, seq))
        };
        let heads = writes.iter().filter(is_head);
        Heads(heads.filter_map(|write| Some((write.position, field(write)?))).collect())
    }

    fn positions(&self) -> impl Iterator<Item = (u64, EntryRef)> {
        self.0.iter().map(|(position, _)| *position)
    }

    fn shown(&self) -> Option<T> {
        self.0.iter().max_by_key(|(position, _)| *position).map(|(_, value)| *value)
    }

    fn are_contested(&self) -> bool {
        self.0.iter().any(|(_, value)| *value != self.0[0].1)
    }
}
