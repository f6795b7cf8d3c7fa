//! One task: the writes of its fields, and the ones that show.

use std::{mem::discriminant, sync::Arc};

use crate::{
    api::{
        agenda::{TaskComment, TaskField, TaskMarks, TaskRecord, TaskView, TaskWrite},
        rules::{self, agent_id},
    },
    fold::act::Written,
    limits::{
        TASK_CAPABILITY_BYTES_MAX, TASK_COMMENTS_BYTES_MAX, TASK_COMMENTS_MAX, TASK_NOTE_BYTES_MAX,
        TASK_OVER_MAX, TASK_REPLACED_BYTES_MAX, TASK_WRITES_KEPT,
    },
    name::id::{AgentId, EntryRef, LogId, MessageId, Position, RoomId},
    wire::{
        acts::{TaskAssigned, TaskUpdated},
        given::TaskMark,
        tasks::{CommentKind, TaskFacts, TaskFields, TaskProgress, TaskStatus},
    },
};

/// Medium: that of a task whose maker says nothing else.
const PRIORITY: u8 = 1;

/// The fields that one act sets. `None`: not this one.
#[derive(Clone, Debug, Default)]
struct Values {
    status: Option<TaskStatus>,
    assignee: Option<Option<AgentId>>,
    note: Option<Option<Arc<str>>>,
    title: Option<Arc<str>>,
    description: Option<Option<Arc<str>>>,
    priority: Option<u8>,
    labels: Option<Arc<[String]>>,
    due_ms: Option<Option<u64>>,
    progress: Option<Option<Arc<TaskProgress>>>,
    result: Option<Option<Arc<str>>>,
}

/// A text that is no text if it is empty.
fn filled(text: String) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

impl Values {
    fn of(fields: TaskFields) -> Values {
        Values {
            title: fields.title.map(Arc::from),
            description: fields.description.map(filled),
            priority: fields.priority,
            labels: fields.labels.map(Arc::from),
            due_ms: fields.due_ms.map(|due| (due > 0).then_some(due)),
            progress: fields.progress.map(|progress| Some(Arc::new(progress))),
            result: fields.result.map(filled),
            ..Values::default()
        }
    }

    fn sets(&self, field: TaskField) -> bool {
        match field {
            TaskField::Status => self.status.is_some(),
            TaskField::Assignee => self.assignee.is_some(),
            TaskField::Note => self.note.is_some(),
            TaskField::Title => self.title.is_some(),
            TaskField::Description => self.description.is_some(),
            TaskField::Priority => self.priority.is_some(),
            TaskField::Labels => self.labels.is_some(),
            TaskField::Due => self.due_ms.is_some(),
            TaskField::Progress => self.progress.is_some(),
            TaskField::Result => self.result.is_some(),
        }
    }

    /// Whether both set this field, and to the same.
    fn agrees(&self, other: &Values, field: TaskField) -> bool {
        match field {
            TaskField::Status => self.status == other.status,
            TaskField::Assignee => self.assignee == other.assignee,
            TaskField::Note => self.note == other.note,
            TaskField::Title => self.title == other.title,
            TaskField::Description => self.description == other.description,
            TaskField::Priority => self.priority == other.priority,
            TaskField::Labels => self.labels == other.labels,
            TaskField::Due => self.due_ms == other.due_ms,
            TaskField::Progress => self.progress == other.progress,
            TaskField::Result => self.result == other.result,
        }
    }

    fn bytes(&self) -> usize {
        let len = |text: &Option<Option<Arc<str>>>| {
            text.iter().flatten().map(|text| text.len()).sum::<usize>()
        };
        let labels = self.labels.iter().flat_map(|labels| labels.iter());
        let labels = labels.map(|label| label.len() + size_of::<String>()).sum::<usize>();
        let step = self.progress.iter().flatten().map(|at| at.step.len()).sum::<usize>();
        let title = self.title.as_ref().map_or(0, |text| text.len());
        title + len(&self.note) + len(&self.description) + len(&self.result) + labels + step
    }
}

/// One act that sets fields.
#[derive(Clone, Debug)]
struct Write {
    clock: u64,
    place: EntryRef,
    wall_ms: u64,
    by: AgentId,
    /// The writes that its author knew and replaced.
    over: Vec<EntryRef>,
    values: Values,
    /// By field: another write replaced it.
    covered: [bool; TaskField::ALL.len()],
}

impl Write {
    /// Orders writes alike at every node.
    fn position(&self) -> Position {
        Position { clock: self.clock, place: self.place }
    }

    /// Whether its author knew `other`: it says so, or wrote both.
    fn knew(&self, other: &Write) -> bool {
        let own = self.place.log == other.place.log && self.place.seq > other.place.seq;
        own || self.over.contains(&other.place)
    }

    fn cover(&mut self, by: &Write) {
        if by.knew(self) {
            for field in TaskField::ALL {
                self.covered[field as usize] |= by.values.sets(field);
            }
        }
    }

    fn shows(&self, field: TaskField) -> bool {
        self.values.sets(field) && !self.covered[field as usize]
    }

    fn is_covered(&self) -> bool {
        TaskField::ALL.iter().all(|field| !self.shows(*field))
    }

    fn bytes(&self) -> usize {
        self.values.bytes() + size_of::<Write>() + self.over.len() * size_of::<EntryRef>()
    }
}

/// A note, as it is remembered for its own sake.
#[derive(Clone, Debug)]
struct Comment {
    clock: u64,
    place: EntryRef,
    wall_ms: u64,
    by: AgentId,
    kind: CommentKind,
    text: Arc<str>,
}

impl Comment {
    fn position(&self) -> Position {
        Position { clock: self.clock, place: self.place }
    }

    fn bytes(&self) -> usize {
        size_of::<Comment>() + self.text.len()
    }
}

/// See the module. Each field is a multi-value register: a write replaces the ones that its author knew.
/// Those left, several if they were written at the same time, are the field's heads.
#[derive(Clone, Debug)]
pub(super) struct Task {
    id: MessageId,
    room: RoomId,
    clock: u64,
    place: EntryRef,
    facts: Arc<TaskFacts>,
    created_by: AgentId,
    created_ms: u64,
    writes: Vec<Write>,
    /// The newest, by position.
    comments: Vec<Comment>,
    /// The newest one that was forgotten: older ones are forgotten, too, so that the same are remembered everywhere.
    forgotten: Option<Position>,
    /// The first act of each log that deletes it.
    deletions: Vec<EntryRef>,
    /// The first one of each kind by position, in this order.
    marks: Vec<(Position, TaskMark)>,
}

impl Task {
    pub(super) fn new(written: &Written, new: TaskAssigned) -> Task {
        let (room, place) = (written.room, written.place);
        let mut task = Task {
            id: new.id.unwrap_or_else(|| MessageId::new(room, place.log, place.seq)),
            room,
            clock: written.facts.clock,
            place,
            facts: Arc::from(new.facts),
            created_by: Arc::clone(&new.created_by),
            created_ms: written.facts.wall_ms,
            writes: Vec::new(),
            comments: Vec::new(),
            forgotten: None,
            deletions: Vec::new(),
            marks: Vec::new(),
        };
        let values = Values {
            status: Some(TaskStatus::Pending),
            assignee: Some(new.assignee),
            note: Some(None),
            title: Some(new.title.into()),
            description: Some(new.description.map(Arc::from)),
            ..Values::of(*new.fields)
        };
        task.write(written, new.created_by, Vec::new(), values);
        task
    }

    pub(super) fn id(&self) -> MessageId {
        self.id
    }

    /// Orders tasks: the oldest first.
    pub(super) fn position(&self) -> Position {
        Position { clock: self.clock, place: self.place }
    }

    /// This act sets fields.
    pub(super) fn update(&mut self, written: &Written, update: TaskUpdated) {
        let note = update.note.map(Arc::<str>::from);
        if let Some(text) = note.clone().filter(|text| !text.is_empty()) {
            let (clock, wall_ms) = (written.facts.clock, written.facts.wall_ms);
            let (place, by, kind) = (written.place, Arc::clone(&update.by), update.kind);
            self.comment(Comment { clock, place, wall_ms, by, kind, text });
        }
        let values = Values {
            status: update.status,
            assignee: update.assignee,
            note: note.map(Some),
            ..Values::of(*update.fields)
        };
        self.write(written, update.by, update.over, values);
    }

    fn comment(&mut self, comment: Comment) {
        if self.forgotten.is_some_and(|forgotten| comment.position() < forgotten) {
            return;
        }
        let at = self.comments.partition_point(|other| other.position() < comment.position());
        self.comments.insert(at, comment);
        let mut bytes = 0;
        let kept = self.comments.iter().rev().take(TASK_COMMENTS_MAX).take_while(|comment| {
            bytes += comment.text.len();
            bytes <= TASK_COMMENTS_BYTES_MAX
        });
        let gone = self.comments.len() - kept.count();
        if let Some(last) = self.comments.drain(..gone).next_back() {
            self.forgotten = Some(last.position());
        }
    }

    /// It is there no more.
    pub(super) fn delete(&mut self, written: &Written) {
        let place = written.place;
        match self.deletions.iter_mut().find(|deleted| deleted.log == place.log) {
            Some(deleted) => deleted.seq = deleted.seq.min(place.seq),
            None => self.deletions.push(place),
        }
    }

    pub(super) fn is_deleted(&self) -> bool {
        !self.deletions.is_empty()
    }

    /// Its number in the room.
    pub(super) fn n(&self) -> u64 {
        self.facts.n
    }

    /// Something is true of it from now on. The first of each kind stays, so that it is the same everywhere.
    pub(super) fn mark(&mut self, written: &Written, mark: TaskMark) {
        let position = Position { clock: written.facts.clock, place: written.place };
        let is_same =
            |(_, other): &(Position, TaskMark)| discriminant(other) == discriminant(&mark);
        if let Some(before) = self.marks.iter().position(is_same) {
            if self.marks[before].0 < position {
                return;
            }
            self.marks.remove(before);
        }
        let at = self.marks.partition_point(|(other, _)| *other < position);
        self.marks.insert(at, (position, mark));
    }

    fn marks(&self) -> TaskMarks {
        TaskMarks::of(self.marks.iter().map(|(_, mark)| mark))
    }

    fn write(&mut self, written: &Written, by: AgentId, over: Vec<EntryRef>, values: Values) {
        let (clock, wall_ms) = (written.facts.clock, written.facts.wall_ms);
        let place = written.place;
        let write = Write {
            clock,
            place,
            wall_ms,
            by,
            over,
            values,
            covered: [false; TaskField::ALL.len()],
        };
        for known in &mut self.writes {
            known.cover(&write);
        }
        self.writes.push(write);
        self.forget_covered();
    }

    /// Covered writes are kept for a while: the write that covers one may turn out to be of a forked log.
    /// The newest by position stay, so that they are the same everywhere.
    fn forget_covered(&mut self) {
        let mut covered: Vec<&Write> =
            self.writes.iter().filter(|write| write.is_covered()).collect();
        covered.sort_by_key(|write| std::cmp::Reverse(write.position()));
        let mut bytes = 0;
        let kept = covered.iter().take(TASK_WRITES_KEPT).take_while(|write| {
            bytes += write.bytes();
            bytes <= TASK_REPLACED_BYTES_MAX
        });
        let gone: Vec<EntryRef> =
            covered.iter().skip(kept.count()).map(|write| write.place).collect();
        if !gone.is_empty() {
            self.writes.retain(|write| !gone.contains(&write.place));
        }
    }

    /// Nothing of this log counts from `seq` on. `true`: that makes a difference.
    pub(super) fn forget_log(&mut self, log: LogId, seq: u64) -> bool {
        let counts = |place: EntryRef| place.log != log || place.seq < seq;
        let size = |task: &Task| {
            let Task { writes, marks, comments, deletions, .. } = task;
            (writes.len(), marks.len(), comments.len(), deletions.len())
        };
        let before = size(self);
        self.writes.retain(|write| counts(write.place));
        self.marks.retain(|(position, _)| counts(position.place));
        self.comments.retain(|comment| counts(comment.place));
        self.deletions.retain(|place| counts(*place));
        if size(self) == before {
            return false;
        }
        let all = self.writes.clone();
        for write in &mut self.writes {
            write.covered = [false; TaskField::ALL.len()];
            all.iter().for_each(|by| write.cover(by));
        }
        true
    }

    fn heads(&self, field: TaskField) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(move |write| write.shows(field))
    }

    fn shown(&self, field: TaskField) -> Option<&Values> {
        self.heads(field).max_by_key(|write| write.position()).map(|write| &write.values)
    }

    /// The assignee, as far as it is known here.
    pub(super) fn assignee(&self) -> Option<AgentId> {
        self.shown(TaskField::Assignee).and_then(|values| values.assignee.clone().flatten())
    }

    fn is_contested(&self, field: TaskField) -> bool {
        let Some(shown) = self.shown(field) else { return false };
        self.heads(field).any(|write| !write.values.agrees(shown, field))
    }

    /// The writes that an update made now replaces.
    pub(super) fn known(&self, update: &TaskUpdated) -> Vec<EntryRef> {
        let values = Values {
            status: update.status,
            assignee: update.assignee.clone(),
            note: update.note.as_ref().map(|_| None),
            ..Values::of(*update.fields.clone())
        };
        let fields = TaskField::ALL.into_iter().filter(|field| values.sets(*field));
        let mut heads: Vec<&Write> = fields.flat_map(|field| self.heads(field)).collect();
        heads.sort_by_key(|write| std::cmp::Reverse(write.position()));
        heads.dedup_by_key(|write| write.place);
        // So many write at once only where somebody lies: the rest stays contested.
        heads.into_iter().take(TASK_OVER_MAX).map(|write| write.place).collect()
    }

    /// How far it is.
    pub(super) fn status(&self) -> TaskStatus {
        let shown = self.shown(TaskField::Status).and_then(|values| values.status);
        shown.unwrap_or(TaskStatus::Pending)
    }

    pub(super) fn view(&self) -> TaskView {
        let shown =
            self.writes.iter().filter(|write| write.place != self.place && !write.is_covered());
        let title = self.shown(TaskField::Title).and_then(|values| values.title.clone());
        let priority = self.shown(TaskField::Priority).and_then(|values| values.priority);
        let labels = self.shown(TaskField::Labels).and_then(|values| values.labels.clone());
        let due_ms = self.shown(TaskField::Due).and_then(|values| values.due_ms.flatten());
        let progress = self.shown(TaskField::Progress);
        let text = |field, of: fn(&Values) -> Option<Option<Arc<str>>>| {
            self.shown(field).and_then(of).flatten()
        };
        TaskView {
            task: self.id,
            room: self.room,
            title: title.unwrap_or_default(),
            description: text(TaskField::Description, |values| values.description.clone()),
            status: self.status(),
            assignee: self.assignee(),
            created_by: Arc::clone(&self.created_by),
            created_ms: self.created_ms,
            updated_ms: shown.max_by_key(|write| write.position()).map(|write| write.wall_ms),
            note: text(TaskField::Note, |values| values.note.clone()),
            facts: Arc::clone(&self.facts),
            priority: priority.unwrap_or(PRIORITY),
            labels: labels.unwrap_or_default(),
            due_ms,
            progress: progress.and_then(|values| values.progress.clone().flatten()),
            result: text(TaskField::Result, |values| values.result.clone()),
            comments: self.comments.len(),
            contested: TaskField::ALL
                .into_iter()
                .filter(|field| self.is_contested(*field))
                .map(TaskField::name)
                .collect(),
            marks: self.marks(),
        }
    }

    /// All that is remembered of it.
    pub(super) fn record(&self) -> TaskRecord {
        let id = |place: EntryRef| MessageId::new(self.room, place.log, place.seq);
        let comment = |comment: &Comment| TaskComment {
            id: id(comment.place),
            by: Arc::clone(&comment.by),
            wall_ms: comment.wall_ms,
            kind: comment.kind,
            text: Arc::clone(&comment.text),
        };
        let mut writes: Vec<&Write> = self.writes.iter().collect();
        writes.sort_by_key(|write| write.position());
        let write = |write: &Write| TaskWrite {
            id: id(write.place),
            by: Arc::clone(&write.by),
            wall_ms: write.wall_ms,
            fields: TaskField::ALL.into_iter().filter(|field| write.values.sets(*field)).collect(),
            status: write.values.status,
            assignee: write.values.assignee.clone(),
        };
        TaskRecord {
            view: self.view(),
            comments: self.comments.iter().map(comment).collect(),
            writes: writes.into_iter().map(write).collect(),
        }
    }

    /// Memory that it takes, near enough.
    pub(super) fn bytes(&self) -> usize {
        let marks = self.marks.iter().map(|(_, mark)| mark_bytes(mark)).sum::<usize>();
        let writes = self.writes.iter().map(Write::bytes).sum::<usize>();
        let comments = self.comments.iter().map(Comment::bytes).sum::<usize>();
        let deletions = self.deletions.len() * size_of::<EntryRef>();
        size_of::<Task>()
            + size_of::<TaskFacts>()
            + self.facts.bytes()
            + writes
            + comments
            + deletions
            + marks
    }

    /// Memory that one more takes.
    pub(super) fn new_bytes(new: &TaskAssigned) -> usize {
        let texts = new.title.len() + new.description.as_ref().map_or(0, String::len);
        let more = new.facts.bytes() + new.fields.bytes();
        texts + more + size_of::<Task>() + size_of::<TaskFacts>() + size_of::<Write>()
    }
}

/// Memory that a mark takes.
pub(super) fn mark_bytes(mark: &TaskMark) -> usize {
    size_of::<(Position, TaskMark)>() + capability(mark).map_or(0, str::len)
}

fn capability(mark: &TaskMark) -> Option<&str> {
    match mark {
        TaskMark::Terms(terms) => Some(&terms.chosen.as_ref()?.capability),
        TaskMark::RanOut | TaskMark::Dismissed | TaskMark::Untaken | TaskMark::Read => None,
    }
}

/// Whether a task may have this mark.
pub(super) fn is_sound_mark(mark: &TaskMark) -> bool {
    capability(mark).is_none_or(|text| text.len() <= TASK_CAPABILITY_BYTES_MAX)
}

/// Memory that an update takes, at most: the writes that it replaces may go, or not.
pub(super) fn update_bytes(update: &TaskUpdated) -> usize {
    let note = update.note.as_ref().filter(|note| !note.is_empty());
    let note = note.map_or(0, |note| 2 * note.len() + size_of::<Comment>());
    let over = update.over.len() * size_of::<EntryRef>();
    note + update.fields.bytes() + size_of::<Write>() + over
}

/// Whether an entry makes a task.
pub(super) fn is_sound(new: &TaskAssigned) -> bool {
    let TaskAssigned { title, description, assignee, facts, fields, .. } = new;
    let begins = TaskFields {
        title: Some(title.clone()),
        description: description.clone(),
        ..TaskFields::default()
    };
    let is_sound = begins.check().is_ok() && fields.check().is_ok() && facts.check().is_ok();
    is_sound && is_agent_id(assignee.as_deref())
}

/// Whether this may be an agent's id, or nobody's.
pub(super) fn is_agent_id(agent: Option<&str>) -> bool {
    agent_id(rules::Field::Assignee, agent).is_ok()
}

/// Whether an entry may set a task to this.
pub(super) fn is_sound_update(update: &TaskUpdated) -> bool {
    let fits = update.note.as_ref().is_none_or(|text| text.len() <= TASK_NOTE_BYTES_MAX);
    let assignee = update.assignee.as_ref().and_then(Option::as_deref);
    fits && update.fields.check().is_ok() && is_agent_id(assignee)
}
