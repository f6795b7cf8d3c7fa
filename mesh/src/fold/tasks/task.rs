//! One task: the writes of its fields, and the ones that show.

use std::{mem::discriminant, sync::Arc};

use crate::{
    api::{
        agenda::{TaskMarks, TaskView},
        rules::{self, agent_id, titled},
    },
    fold::act::Written,
    limits::{
        TASK_CAPABILITY_BYTES_MAX, TASK_NOTE_BYTES_MAX, TASK_OVER_MAX, TASK_REPLACED_BYTES_MAX,
        TASK_TITLE_BYTES_MAX, TASK_WRITES_KEPT,
    },
    name::id::{AgentId, EntryRef, LogId, MessageId, Position, RoomId},
    wire::{
        acts::{TaskAssigned, TaskStatus, TaskUpdated},
        given::TaskMark,
    },
};

/// A field that updates set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Status,
    Assignee,
    Note,
}

const FIELDS: [Field; 3] = [Field::Status, Field::Assignee, Field::Note];

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Status => "status",
            Field::Assignee => "assignee",
            Field::Note => "note",
        }
    }
}

/// The fields that one act sets. `None`: not this one.
#[derive(Clone, Debug)]
struct Values {
    status: Option<TaskStatus>,
    assignee: Option<Option<AgentId>>,
    note: Option<Option<Arc<str>>>,
}

impl Values {
    fn sets(&self, field: Field) -> bool {
        match field {
            Field::Status => self.status.is_some(),
            Field::Assignee => self.assignee.is_some(),
            Field::Note => self.note.is_some(),
        }
    }

    /// Whether both set this field, and to the same.
    fn agrees(&self, other: &Values, field: Field) -> bool {
        match field {
            Field::Status => self.status == other.status,
            Field::Assignee => self.assignee == other.assignee,
            Field::Note => self.note == other.note,
        }
    }
}

/// One act that sets fields.
#[derive(Clone, Debug)]
struct Write {
    clock: u64,
    place: EntryRef,
    wall_ms: u64,
    /// The writes that its author knew and replaced.
    over: Vec<EntryRef>,
    values: Values,
    /// By field: another write replaced it.
    covered: [bool; 3],
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
            for field in FIELDS {
                self.covered[field as usize] |= by.values.sets(field);
            }
        }
    }

    fn shows(&self, field: Field) -> bool {
        self.values.sets(field) && !self.covered[field as usize]
    }

    fn is_covered(&self) -> bool {
        FIELDS.iter().all(|field| !self.shows(*field))
    }

    fn bytes(&self) -> usize {
        let note = self.values.note.iter().flatten().map(|note| note.len()).sum::<usize>();
        note + size_of::<Write>() + self.over.len() * size_of::<EntryRef>()
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
    title: Arc<str>,
    description: Option<Arc<str>>,
    created_by: AgentId,
    created_ms: u64,
    writes: Vec<Write>,
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
            title: new.title.into(),
            description: new.description.map(Arc::from),
            created_by: new.created_by,
            created_ms: written.facts.wall_ms,
            writes: Vec::new(),
            marks: Vec::new(),
        };
        let values = Values {
            status: Some(TaskStatus::Pending),
            assignee: Some(new.assignee),
            note: Some(None),
        };
        task.write(written, Vec::new(), values);
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
        let values = Values {
            status: update.status,
            assignee: update.assignee.map(Some),
            note: update.note.map(|note| Some(note.into())),
        };
        self.write(written, update.over, values);
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

    fn write(&mut self, written: &Written, over: Vec<EntryRef>, values: Values) {
        let (clock, wall_ms) = (written.facts.clock, written.facts.wall_ms);
        let place = written.place;
        let write = Write { clock, place, wall_ms, over, values, covered: [false; 3] };
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
        let before = (self.writes.len(), self.marks.len());
        self.writes.retain(|write| counts(write.place));
        self.marks.retain(|(position, _)| counts(position.place));
        if (self.writes.len(), self.marks.len()) == before {
            return false;
        }
        let all = self.writes.clone();
        for write in &mut self.writes {
            write.covered = [false; 3];
            all.iter().for_each(|by| write.cover(by));
        }
        true
    }

    fn heads(&self, field: Field) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(move |write| write.shows(field))
    }

    fn shown(&self, field: Field) -> Option<&Values> {
        self.heads(field).max_by_key(|write| write.position()).map(|write| &write.values)
    }

    /// The assignee, as far as it is known here.
    pub(super) fn assignee(&self) -> Option<AgentId> {
        self.shown(Field::Assignee).and_then(|values| values.assignee.clone().flatten())
    }

    fn is_contested(&self, field: Field) -> bool {
        let Some(shown) = self.shown(field) else { return false };
        self.heads(field).any(|write| !write.values.agrees(shown, field))
    }

    /// The writes that an update made now replaces.
    pub(super) fn known(&self, update: &TaskUpdated) -> Vec<EntryRef> {
        let sets = |field| match field {
            Field::Status => update.status.is_some(),
            Field::Assignee => update.assignee.is_some(),
            Field::Note => update.note.is_some(),
        };
        let fields = FIELDS.into_iter().filter(|field| sets(*field));
        let mut heads: Vec<&Write> = fields.flat_map(|field| self.heads(field)).collect();
        heads.sort_by_key(|write| std::cmp::Reverse(write.position()));
        heads.dedup_by_key(|write| write.place);
        // So many write at once only where somebody lies: the rest stays contested.
        heads.into_iter().take(TASK_OVER_MAX).map(|write| write.place).collect()
    }

    /// How far it is.
    pub(super) fn status(&self) -> TaskStatus {
        let shown = self.shown(Field::Status).and_then(|values| values.status);
        shown.unwrap_or(TaskStatus::Pending)
    }

    pub(super) fn view(&self) -> TaskView {
        let note = self.shown(Field::Note).and_then(|values| values.note.clone().flatten());
        let shown =
            self.writes.iter().filter(|write| write.place != self.place && !write.is_covered());
        TaskView {
            task: self.id,
            room: self.room,
            title: Arc::clone(&self.title),
            description: self.description.clone(),
            status: self.status(),
            assignee: self.assignee(),
            created_by: Arc::clone(&self.created_by),
            created_ms: self.created_ms,
            updated_ms: shown.max_by_key(|write| write.position()).map(|write| write.wall_ms),
            note,
            contested: FIELDS
                .into_iter()
                .filter(|field| self.is_contested(*field))
                .map(Field::name)
                .collect(),
            marks: self.marks(),
        }
    }

    /// Memory that it takes, near enough.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.title.len() + self.description.as_ref().map_or(0, |text| text.len());
        let marks = self.marks.iter().map(|(_, mark)| mark_bytes(mark)).sum::<usize>();
        texts + marks + size_of::<Task>() + self.writes.iter().map(Write::bytes).sum::<usize>()
    }

    /// Memory that one more takes.
    pub(super) fn new_bytes(new: &TaskAssigned) -> usize {
        let texts = new.title.len() + new.description.as_ref().map_or(0, String::len);
        texts + size_of::<Task>() + size_of::<Write>()
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
    let note = update.note.as_ref().map_or(0, String::len);
    note + size_of::<Write>() + update.over.len() * size_of::<EntryRef>()
}

/// Whether an entry makes a task.
pub(super) fn is_sound(new: &TaskAssigned) -> bool {
    let texts = titled(&new.title, new.description.as_deref(), TASK_TITLE_BYTES_MAX);
    texts.is_ok() && is_agent_id(new.assignee.as_deref())
}

/// Whether this may be an agent's id, or nobody's.
pub(super) fn is_agent_id(agent: Option<&str>) -> bool {
    agent_id(rules::Field::Assignee, agent).is_ok()
}

/// Whether an entry may set a task to this.
pub(super) fn is_sound_update(update: &TaskUpdated) -> bool {
    let fits = update.note.as_ref().is_none_or(|text| text.len() <= TASK_NOTE_BYTES_MAX);
    fits && is_agent_id(update.assignee.as_deref())
}
