//! The tasks of a room as docs/decisions/tasks.md defines them, over all acts at once.

use std::sync::Arc;

use mesh::{
    api::agenda::{TaskField, TaskMarks, TaskView},
    limits::TASK_COMMENTS_MAX,
    name::id::{AgentId, EntryRef, LogId, MessageId, RoomId},
    wire::{
        acts::{Grant, TaskAct, TaskAssigned, TaskUpdated},
        tasks::{TaskFields, TaskStatus},
    },
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

    pub(super) fn deletes(&self) -> Option<EntryRef> {
        if let TaskAct::Deleted(deleted) = &self.act { Some(deleted.task) } else { None }
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

    /// The state into which it brings a task, if it does.
    pub(super) fn comes_into(&self, place: EntryRef, task: EntryRef) -> Option<TaskStatus> {
        if self.assigns().is_some() {
            return (place == task).then_some(TaskStatus::Pending);
        }
        self.updates().filter(|update| update.task == task)?.status
    }

    /// The holder to whom it gives a task, if it does. It was written at a place.
    pub(super) fn gives(&self, place: EntryRef, task: EntryRef) -> Option<&Option<AgentId>> {
        if let Some(new) = self.assigns() {
            return (place == task).then_some(&new.assignee);
        }
        let update = self.updates().filter(|update| update.task == task)?;
        update.assignee.as_ref()
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
    title: Option<&'a str>,
    description: Option<&'a str>,
    fields: &'a TaskFields,
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
        // A deletion wins, whatever else there is.
        if acts.clone().any(|(_, act)| act.deletes() == Some(*place)) {
            continue;
        }
        let mut writes = vec![Write {
            position: (act.clock, *place),
            wall_ms: act.wall_ms,
            over: &[],
            status: Some(TaskStatus::Pending),
            assignee: Some(&new.assignee),
            note: Some(None),
            title: Some(&new.title),
            description: Some(new.description.as_deref().unwrap_or_default()),
            fields: &new.fields,
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
        assignee: update.assignee.as_ref(),
        note: update.note.as_ref().map(|note| Some(&**note)),
        title: update.fields.title.as_deref(),
        description: update.fields.description.as_deref(),
        fields: &update.fields,
    })
}

/// A task, from its writes: the first one made it.
fn view(room: RoomId, new: &TaskAssigned, writes: &[Write<'_>]) -> TaskView {
    let (_, place) = writes[0].position;
    let status = Heads::of(writes, |write| write.status);
    let assignee = Heads::of(writes, |write| write.assignee);
    let note = Heads::of(writes, |write| write.note);
    let title = Heads::of(writes, |write| write.title);
    let description = Heads::of(writes, |write| write.description);
    let priority = Heads::of(writes, |write| write.fields.priority);
    let labels = Heads::of(writes, |write| write.fields.labels.as_ref());
    let due = Heads::of(writes, |write| write.fields.due_ms);
    let progress = Heads::of(writes, |write| write.fields.progress.as_ref());
    let result = Heads::of(writes, |write| write.fields.result.as_deref());
    let heads: [(TaskField, &dyn Seen); 10] = [
        (TaskField::Status, &status),
        (TaskField::Assignee, &assignee),
        (TaskField::Note, &note),
        (TaskField::Title, &title),
        (TaskField::Description, &description),
        (TaskField::Priority, &priority),
        (TaskField::Labels, &labels),
        (TaskField::Due, &due),
        (TaskField::Progress, &progress),
        (TaskField::Result, &result),
    ];
    let left = heads.iter().flat_map(|(_, heads)| heads.positions());
    let updated = left.filter(|position| position.1 != place).max();
    let updated = writes.iter().find(|write| Some(write.position) == updated);
    let contested = heads.iter().filter(|(_, heads)| heads.are_contested());
    let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(Into::into);
    let comments =
        writes.iter().filter(|write| write.note.flatten().is_some_and(|it| !it.is_empty()));
    TaskView {
        task: MessageId::new(room, place.log, place.seq),
        room,
        title: title.shown().unwrap_or_default().into(),
        description: filled(description.shown()),
        status: status.shown().unwrap_or(TaskStatus::Pending),
        assignee: assignee.shown().cloned().flatten(),
        created_by: new.created_by.clone(),
        created_ms: writes[0].wall_ms,
        updated_ms: updated.map(|write| write.wall_ms),
        note: note.shown().flatten().map(Into::into),
        facts: Arc::from(new.facts.clone()),
        priority: priority.shown().unwrap_or(1),
        labels: labels.shown().cloned().unwrap_or_default().into(),
        due_ms: due.shown().filter(|due| *due > 0),
        progress: progress.shown().cloned().map(Arc::new),
        result: filled(result.shown()),
        comments: comments.count().min(TASK_COMMENTS_MAX),
        contested: contested.map(|(field, _)| field.name()).collect(),
        // Only tasks in direct rooms have any, which nobody folds here.
        marks: TaskMarks::default(),
    }
}

/// What there is to see of the heads of any field.
trait Seen {
    fn positions(&self) -> Vec<(u64, EntryRef)>;
    fn are_contested(&self) -> bool;
}

impl<T: Copy + PartialEq> Seen for Heads<T> {
    fn positions(&self) -> Vec<(u64, EntryRef)> {
        self.0.iter().map(|(position, _)| *position).collect()
    }

    fn are_contested(&self) -> bool {
        self.0.iter().any(|(_, value)| *value != self.0[0].1)
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

    fn shown(&self) -> Option<T> {
        self.0.iter().max_by_key(|(position, _)| *position).map(|(_, value)| *value)
    }
}
