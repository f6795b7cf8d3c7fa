//! The peculiarities of tasks on a mesh: in objects, and in requests.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::field::Field;
use crate::object::Task;

/// A state that a task may have on a mesh: the four of every client, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Nobody has begun.
    Pending,
    /// Somebody is at it.
    InProgress,
    /// Waits for something.
    Blocked,
    /// Done, if somebody else says so.
    InReview,
    /// Done.
    Completed,
    /// Not wanted any more.
    Cancelled,
    /// It was tried in vain.
    Failed,
}

/// How far the work at a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// 0 to 100.
    pub percent: u8,
    /// The step that it is at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// Where a task came from, as the dialect that made it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOrigin {
    /// The dialect.
    pub dialect: String,
    /// A channel of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// A conversation there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// The person who wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// What is true of a task from its beginning, and never changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskFacts {
    /// Where it came from. Nodes say it: nobody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<TaskOrigin>,
    /// The task that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Tasks that are to be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// Of which kind it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it has to do, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
    /// How it is seen that it is done, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// How much work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// It is done when somebody has approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_approval: bool,
}

/// What a mesh node says of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskNote {
    /// Its number in the room, for people.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n: u64,
    /// The same with the beginning of its id: after a split two tasks may have one number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identifier: String,
    /// How far it is, where that says more than `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// 0 low, 2 high, 3 urgent. Absent: 1, medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// RFC 3339 UTC: when it is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// How far the work is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
    /// What has come of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// How many comments `get_task` shows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub comments: u64,
    /// From its beginning.
    #[serde(flatten)]
    pub facts: TaskFacts,
    /// Fields that were set at the same time in two places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The wishes of mesh nodes alone, of an agent that makes a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewTaskOptions {
    /// 0 low to 3 urgent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// RFC 3339: when it is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// From its beginning.
    #[serde(flatten)]
    pub facts: TaskFacts,
}

impl Field for NewTaskOptions {
    const EXPECTED: &'static str = "an object with `priority`, `labels`, `due`, `parent`, `blocked_by`, `kind`, \
        `requirements`, `acceptance`, `context`, `effort` or `requires_approval`, as the protocol says";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// The same of an agent that changes one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskOptions {
    /// How far it is: set only if this is its next step, else the update is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// With `if_assignee`: only if it is so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_state: Option<TaskState>,
    /// Nobody is to hold it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
    /// The work to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More about it. Empty: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// 0 low to 3 urgent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// RFC 3339: when it is to be done. Empty: at no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// How far the work is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
    /// What has come of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Of which kind the note is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note_kind: Option<CommentKind>,
}

impl Field for TaskOptions {
    const EXPECTED: &'static str = "an object with `state`, `if_state`, `release`, `title`, `description`, `priority`, \
        `labels`, `due`, `progress`, `result` or `note_kind`, as the protocol says";

    fn decode(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

/// Of which kind a comment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentKind {
    /// Any words.
    Note,
    /// How it goes.
    Status,
    /// Something that the work waits for.
    Blocker,
}

/// A comment on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The same on every node.
    pub comment_id: String,
    /// The agent that has written it.
    pub agent_id: String,
    /// Of which kind it is.
    pub kind: CommentKind,
    /// The words.
    pub text: String,
    /// RFC 3339 UTC.
    pub created_at: String,
}

/// To `get_task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task.
    pub task: Task,
    /// The newest ones, the oldest of them first.
    pub comments: Vec<Comment>,
}

/// To `delete_task`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGone {
    /// True.
    pub deleted: bool,
}
