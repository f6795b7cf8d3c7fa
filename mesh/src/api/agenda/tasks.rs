//! Tasks as clients ask for and see them.

use std::sync::Arc;

use crate::{
    name::id::{AgentId, MessageId, RoomId},
    wire::{
        given::{TaskMark, TaskTerms},
        tasks::{CommentKind, TaskFacts, TaskFields, TaskProgress, TaskStatus},
    },
};

/// A task to be made.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Where.
    pub room: RoomId,
    /// The work.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// The agent that is to do it.
    pub assignee: Option<AgentId>,
    /// What is true of it from its beginning; its number is the room's to say.
    pub facts: Box<TaskFacts>,
    /// Fields that it begins with, but for title and description.
    pub fields: Box<TaskFields>,
}

impl NewTask {
    /// A task with nothing but a title.
    #[must_use]
    pub fn of(room: RoomId, title: impl Into<String>) -> NewTask {
        NewTask {
            room,
            title: title.into(),
            description: None,
            assignee: None,
            facts: Box::default(),
            fields: Box::default(),
        }
    }
}

/// Fields of a task to be set. `None` leaves a field as it is.
#[derive(Clone, Debug)]
pub struct TaskUpdate {
    /// Which.
    pub task: MessageId,
    /// How far it is.
    pub status: Option<TaskStatus>,
    /// The agent that is to do it (`Some(None)`: nobody).
    pub assignee: Option<Option<AgentId>>,
    /// Free text: a comment.
    pub note: Option<String>,
    /// Only if it is held by this agent (`Some(None)`: by nobody). Of several at the same moment the sequencer grants one.
    pub if_assignee: Option<Option<AgentId>>,
    /// With `if_assignee`: only if it is so far.
    pub if_status: Option<TaskStatus>,
    /// Of which kind the note is.
    pub kind: CommentKind,
    /// More fields.
    pub fields: Box<TaskFields>,
    /// The status is set only if [`TaskStatus::may_become`] says so.
    pub by_steps: bool,
}

impl TaskUpdate {
    /// An update that sets nothing.
    #[must_use]
    pub fn of(task: MessageId) -> TaskUpdate {
        TaskUpdate {
            task,
            status: None,
            assignee: None,
            note: None,
            if_assignee: None,
            if_status: None,
            kind: CommentKind::Note,
            fields: Box::default(),
            by_steps: false,
        }
    }

    /// Whether it sets anything.
    #[must_use]
    pub fn sets(&self) -> bool {
        let TaskUpdate { status, assignee, note, fields, .. } = self;
        status.is_some() || assignee.is_some() || note.is_some() || !fields.is_empty()
    }
}

/// A field of a task that updates set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskField {
    /// How far it is.
    Status,
    /// The agent that is to do it.
    Assignee,
    /// The newest note.
    Note,
    /// The work.
    Title,
    /// More about it.
    Description,
    /// How urgent it is.
    Priority,
    /// Words to find it by.
    Labels,
    /// When it is to be done.
    Due,
    /// How far the work is.
    Progress,
    /// What has come of it.
    Result,
}

impl TaskField {
    /// All of them.
    pub const ALL: [TaskField; 10] = [
        TaskField::Status,
        TaskField::Assignee,
        TaskField::Note,
        TaskField::Title,
        TaskField::Description,
        TaskField::Priority,
        TaskField::Labels,
        TaskField::Due,
        TaskField::Progress,
        TaskField::Result,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TaskField::Status => "status",
            TaskField::Assignee => "assignee",
            TaskField::Note => "note",
            TaskField::Title => "title",
            TaskField::Description => "description",
            TaskField::Priority => "priority",
            TaskField::Labels => "labels",
            TaskField::Due => "due",
            TaskField::Progress => "progress",
            TaskField::Result => "result",
        }
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its id: that of the entry which made it.
    pub task: MessageId,
    /// Where.
    pub room: RoomId,
    /// The work.
    pub title: Arc<str>,
    /// More about it.
    pub description: Option<Arc<str>>,
    /// How far it is.
    pub status: TaskStatus,
    /// The agent that is to do it.
    pub assignee: Option<AgentId>,
    /// The agent that made it.
    pub created_by: AgentId,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// Unix milliseconds of the newest update.
    pub updated_ms: Option<u64>,
    /// The note of the newest update that had one.
    pub note: Option<Arc<str>>,
    /// What is true of it from its beginning.
    pub facts: Arc<TaskFacts>,
    /// 0 low, 1 medium, 2 high, 3 urgent.
    pub priority: u8,
    /// Words to find it by.
    pub labels: Arc<[String]>,
    /// When it is to be done. Unix milliseconds.
    pub due_ms: Option<u64>,
    /// How far the work is.
    pub progress: Option<Arc<TaskProgress>>,
    /// What has come of it: a JSON text, as its writer says.
    pub result: Option<Arc<str>>,
    /// How many comments are remembered.
    pub comments: usize,
    /// Fields that were set at the same time in two places, by [`TaskField::name`]: the
    /// later by position is shown.
    pub contested: Vec<&'static str>,
    /// Of a task that one agent gave to another.
    pub marks: TaskMarks,
}

impl TaskView {
    /// Its number and the beginning of its id: two tasks of one number differ in it.
    #[must_use]
    pub fn identifier(&self) -> String {
        let [first, second, ..] = self.task.0;
        format!("T-{}-{first:02x}{second:02x}", self.facts.n)
    }
}

/// A comment on a task: the note of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskComment {
    /// Its id: that of the entry that says it.
    pub id: MessageId,
    /// The agent that has written it.
    pub by: AgentId,
    /// Unix milliseconds.
    pub wall_ms: u64,
    /// Of which kind it is.
    pub kind: CommentKind,
    /// The words.
    pub text: Arc<str>,
}

/// An update of a task, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWrite {
    /// Its id: that of its entry. The first one made the task.
    pub id: MessageId,
    /// The agent that has made it.
    pub by: AgentId,
    /// Unix milliseconds.
    pub wall_ms: u64,
    /// The fields that it has set.
    pub fields: Vec<TaskField>,
    /// How far the task was then, if it has set that.
    pub status: Option<TaskStatus>,
    /// Who held it then, if it has set that.
    pub assignee: Option<Option<AgentId>>,
}

/// All that is remembered of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// The task.
    pub view: TaskView,
    /// Its newest comments, the oldest first.
    pub comments: Vec<TaskComment>,
    /// The updates whose values show, and the newest of those that were replaced, the oldest first.
    pub writes: Vec<TaskWrite>,
}

/// What an update has changed in a task, for those who are told.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TaskChange {
    /// The agent that has changed it. `None`: updates were taken back, for their log has forked.
    pub by: Option<AgentId>,
    /// Fields that show something else now.
    pub fields: Vec<TaskField>,
    /// How far the task was before, if that has changed.
    pub was: Option<TaskStatus>,
    /// Its comment, if it has one.
    pub comment: Option<Arc<str>>,
}

/// What is true of a task beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TaskMarks {
    /// The terms on which it was given, if it was given on any.
    pub terms: Option<Arc<TaskTerms>>,
    /// See [`TaskMark::RanOut`].
    pub ran_out: bool,
    /// See [`TaskMark::Dismissed`].
    pub dismissed: bool,
    /// See [`TaskMark::Untaken`].
    pub untaken: bool,
    /// See [`TaskMark::Read`].
    pub read: bool,
}

impl TaskMarks {
    /// All these marks, the oldest first.
    pub(crate) fn of<'m>(marks: impl Iterator<Item = &'m TaskMark>) -> TaskMarks {
        let mut all = TaskMarks::default();
        for mark in marks {
            match mark {
                TaskMark::Terms(terms) => {
                    all.terms.get_or_insert_with(|| Arc::new(terms.clone()));
                }
                TaskMark::RanOut => all.ran_out = true,
                TaskMark::Dismissed => all.dismissed = true,
                TaskMark::Untaken => all.untaken = true,
                TaskMark::Read => all.read = true,
            }
        }
        all
    }
}

/// An act of an agent in the room of a task that it gave to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenAct {
    /// The task is given on these terms.
    Terms(TaskTerms),
    /// The agent that was chosen has not begun, and is not to begin any more: the room is closed.
    Dismiss,
    /// No agent that was chosen has begun: the agent that gave it is told so in its inbox.
    GiveUp,
    /// The agent that gave it has the result: it has said so.
    HasResult,
    /// A call has returned the result. Its host may never have got it, and finds it for a while.
    Returned,
    /// The agent that gave it knows that its time was up, or that nobody took it.
    HasNotice,
}
