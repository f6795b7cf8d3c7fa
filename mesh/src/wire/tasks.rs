//! Tasks: how far they are, and their fields beside title, holder and note.

use minicbor::{Decode, Encode};

use crate::name::id::{AgentId, EntryRef, MessageId};

use super::cbor::text;

/// How far a task is: one register for all dialects, which have words of their own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum TaskStatus {
    /// Nobody has begun. It may be held.
    #[n(0)]
    Pending,
    /// Somebody is at it.
    #[n(1)]
    InProgress,
    /// Done.
    #[n(2)]
    Completed,
    /// Waits for something.
    #[n(3)]
    Blocked,
    /// Done, if somebody else says so.
    #[n(4)]
    InReview,
    /// Not wanted any more.
    #[n(5)]
    Cancelled,
    /// It was tried in vain.
    #[n(6)]
    Failed,
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [TaskStatus; 7] = [
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Completed,
        TaskStatus::Blocked,
        TaskStatus::InReview,
        TaskStatus::Cancelled,
        TaskStatus::Failed,
    ];

    /// Its name, for dialects that have none of their own, and for logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
            TaskStatus::Blocked => "blocked",
            TaskStatus::InReview => "in_review",
            TaskStatus::Cancelled => "cancelled",
            TaskStatus::Failed => "failed",
        }
    }

    /// And back.
    #[must_use]
    pub fn named(name: &str) -> Option<TaskStatus> {
        TaskStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The one of the four that every client knows: pending, in progress, completed, blocked.
    #[must_use]
    pub const fn basic(self) -> TaskStatus {
        match self {
            TaskStatus::Pending => TaskStatus::Pending,
            TaskStatus::InProgress | TaskStatus::InReview => TaskStatus::InProgress,
            TaskStatus::Completed | TaskStatus::Cancelled => TaskStatus::Completed,
            TaskStatus::Blocked | TaskStatus::Failed => TaskStatus::Blocked,
        }
    }

    /// Nothing more is to be done.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::Failed => true,
            TaskStatus::Pending
            | TaskStatus::InProgress
            | TaskStatus::Blocked
            | TaskStatus::InReview => false,
        }
    }

    /// Whether a task that is so far may be set to `to`, for those who keep to the steps. It is held before, and after.
    #[must_use]
    pub fn may_become(self, to: TaskStatus, is_held: bool, stays_held: bool) -> bool {
        use TaskStatus::{Blocked, InProgress, InReview, Pending};
        let begun = matches!(self, InProgress | Blocked) || (self == Pending && is_held);
        self == to
            || match to {
                // Released, sent back, opened again.
                Pending => !stays_held,
                InProgress => matches!(self, Pending | Blocked | InReview),
                Blocked => matches!(self, Pending | InProgress),
                InReview => begun,
                TaskStatus::Completed => begun || self == InReview,
                TaskStatus::Cancelled | TaskStatus::Failed => !self.is_terminal(),
            }
    }
}

/// Where a task came from, as the dialect that made it says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskOrigin {
    /// The dialect.
    #[n(0)]
    pub dialect: String,
    /// A channel of it.
    #[n(1)]
    pub channel: Option<String>,
    /// A conversation there.
    #[n(2)]
    pub chat: Option<String>,
    /// The person who wanted it.
    #[n(3)]
    pub user: Option<String>,
}

/// What is true of a task from its beginning, and never changes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct TaskFacts {
    /// Its number in the room, for people: after a split two may have one.
    #[n(0)]
    pub n: u64,
    /// Where it came from.
    #[n(1)]
    pub origin: Option<TaskOrigin>,
    /// The task that it is a part of.
    #[n(2)]
    pub parent: Option<MessageId>,
    /// Tasks that are to be done before.
    #[n(3)]
    pub blocked_by: Vec<MessageId>,
    /// Of which kind it is.
    #[n(4)]
    pub kind: Option<String>,
    /// What it has to do, line by line.
    #[n(5)]
    pub requirements: Vec<String>,
    /// How it is seen that it is done, line by line.
    #[n(6)]
    pub acceptance: Vec<String>,
    /// More about it: its maker said that this is a JSON text.
    #[n(7)]
    pub context: Option<String>,
    /// How much work it is.
    #[n(8)]
    pub effort: Option<String>,
    /// It is done when somebody has approved it.
    #[n(9)]
    pub requires_approval: bool,
    /// The id that its maker calls it by, if that is another one: for dialects whose clients choose ids.
    #[n(10)]
    pub alias: Option<MessageId>,
}

impl TaskFacts {
    /// Memory of its texts and lists.
    pub(crate) fn bytes(&self) -> usize {
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let lines = |lines: &[String]| {
            lines.iter().map(|line| line.len() + size_of::<String>()).sum::<usize>()
        };
        let origin = self.origin.as_ref().map_or(0, |origin| {
            let TaskOrigin { dialect, channel, chat, user } = origin;
            dialect.len() + len(channel) + len(chat) + len(user)
        });
        let texts = len(&self.kind) + len(&self.context) + len(&self.effort);
        let lines = lines(&self.requirements) + lines(&self.acceptance);
        texts + lines + origin + self.blocked_by.len() * size_of::<MessageId>()
    }
}

/// How far the work at a task is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskProgress {
    /// 0 to 100.
    #[n(0)]
    pub percent: u8,
    /// The step that it is at.
    #[n(1)]
    pub step: String,
}

/// Fields of a task that only some dialects have. `None`: this one stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct TaskFields {
    /// The work.
    #[n(0)]
    pub title: Option<String>,
    /// More about it. Empty: nothing.
    #[n(1)]
    pub description: Option<String>,
    /// 0 low, 1 medium, 2 high, 3 urgent.
    #[n(2)]
    pub priority: Option<u8>,
    /// Words to find it by.
    #[n(3)]
    pub labels: Option<Vec<String>>,
    /// When it is to be done. Unix milliseconds; 0: at no time.
    #[n(4)]
    pub due_ms: Option<u64>,
    /// How far it is.
    #[n(5)]
    pub progress: Option<TaskProgress>,
    /// What has come of it: its writer said that this is a JSON text. Empty: nothing.
    #[n(6)]
    pub result: Option<String>,
}

impl TaskFields {
    /// Whether any is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == TaskFields::default()
    }

    /// Memory of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let labels = self.labels.iter().flatten();
        let labels = labels.map(|label| label.len() + size_of::<String>()).sum::<usize>();
        let step = self.progress.as_ref().map_or(0, |at| at.step.len());
        len(&self.title) + len(&self.description) + len(&self.result) + labels + step
    }
}

/// Of which kind a comment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum CommentKind {
    /// Any words.
    #[default]
    #[n(0)]
    Note,
    /// How it goes.
    #[n(1)]
    Status,
    /// Something that the work waits for.
    #[n(2)]
    Blocker,
}

impl CommentKind {
    /// All of them.
    pub const ALL: [CommentKind; 3] =
        [CommentKind::Note, CommentKind::Status, CommentKind::Blocker];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CommentKind::Note => "note",
            CommentKind::Status => "status",
            CommentKind::Blocker => "blocker",
        }
    }

    /// And back.
    #[must_use]
    pub fn named(name: &str) -> Option<CommentKind> {
        CommentKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// See [`super::acts::TaskAct::Deleted`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskDeleted {
    /// The [`super::acts::TaskAssigned`].
    #[n(0)]
    pub task: EntryRef,
    /// The agent that has deleted it.
    #[cbor(n(1), with = "text")]
    pub by: AgentId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_names_and_the_four_that_all_clients_know() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::named(status.name()), Some(status));
            assert_eq!(status.basic().basic(), status.basic());
        }
        assert_eq!(TaskStatus::Failed.basic(), TaskStatus::Blocked);
        assert_eq!(TaskStatus::named("open"), None);
        for kind in CommentKind::ALL {
            assert_eq!(CommentKind::named(kind.name()), Some(kind));
        }
    }

    /// The table of records §3: from each state, those that it may become, held and not.
    #[test]
    fn a_task_goes_step_by_step() {
        use TaskStatus::{Blocked, Cancelled, Completed, Failed, InProgress, InReview, Pending};
        let may = |from: TaskStatus, held: bool| {
            let to = TaskStatus::ALL.into_iter();
            to.filter(|to| from.may_become(*to, held, held)).collect::<Vec<_>>()
        };
        assert_eq!(may(Pending, false), [Pending, InProgress, Blocked, Cancelled, Failed]);
        assert_eq!(
            may(Pending, true),
            [Pending, InProgress, Completed, Blocked, InReview, Cancelled, Failed]
        );
        assert_eq!(
            may(InProgress, true),
            [InProgress, Completed, Blocked, InReview, Cancelled, Failed]
        );
        assert_eq!(
            may(Blocked, true),
            [InProgress, Completed, Blocked, InReview, Cancelled, Failed]
        );
        assert_eq!(may(InReview, true), [InProgress, Completed, InReview, Cancelled, Failed]);
        for over in [Completed, Cancelled, Failed] {
            assert_eq!(may(over, true), [over]);
            assert!(over.may_become(Pending, true, false), "it is opened again, held by nobody");
        }
    }
}
