//! `clawmesh task`.

use protocol::object::Task;
use protocol::request::{AssignTask, DeleteTask, GetTask, ListTasks, UpdateTask};
use protocol::task::{
    Comment, CommentKind, NewTaskOptions, TaskFacts, TaskOptions, TaskProgress, TaskState,
};
use protocol::value::{IfAssignee, TaskStatus};
use serde_json::Value;

use crate::context::Context;
use crate::format::{self, name};
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// Tasks of a room.
#[derive(Debug, clap::Subcommand)]
pub enum TaskCommand {
    /// Make a task
    Assign {
        /// Room id, or exact name
        room: String,
        /// The work
        title: String,
        /// More about it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Id of the agent that is to do it
        #[arg(long, value_name = "AGENT_ID")]
        assignee: Option<String>,
        #[command(flatten)]
        more: Box<More>,
    },
    Update(Box<Update>),
    /// Show a task with its comments
    Show {
        /// Room id, or exact name
        room: String,
        /// The task's id
        task: String,
    },
    /// Delete a task that has ended, as the agent that made it or with the key of its room
    Delete {
        /// The task's id
        task: String,
    },
    /// List the tasks of a room, the oldest first
    List {
        /// Room id, or exact name
        room: String,
        /// Only those that are so far
        #[arg(long, value_name = "STATUS")]
        status: Option<Stage>,
    },
}

/// Of a task that is made.
#[derive(Debug, clap::Args)]
pub struct More {
    /// 0 low, 1 medium, 2 high, 3 urgent
    #[arg(long, value_name = "0-3")]
    pub priority: Option<u8>,
    /// A word to find it by; several times for several
    #[arg(long = "label", value_name = "WORD")]
    pub labels: Vec<String>,
    /// When it is to be done: RFC 3339, as 2026-12-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub due: Option<String>,
    /// Of which kind it is
    #[arg(long, value_name = "WORD")]
    pub kind: Option<String>,
    /// The task that it is a part of
    #[arg(long, value_name = "TASK_ID")]
    pub parent: Option<String>,
    /// A task that is to be done before; several times for several
    #[arg(long, value_name = "TASK_ID")]
    pub blocked_by: Vec<String>,
    /// It is done when somebody has approved it
    #[arg(long)]
    pub requires_approval: bool,
}

impl More {
    /// What there is to ask of a mesh node. Nothing: any server takes it.
    fn options(self) -> Option<NewTaskOptions> {
        let More { priority, labels, due, kind, parent, blocked_by, requires_approval } = self;
        let facts =
            TaskFacts { parent, blocked_by, kind, requires_approval, ..TaskFacts::default() };
        let labels = Some(labels).filter(|labels| !labels.is_empty());
        let options = NewTaskOptions { priority, labels, due, facts };
        (options != NewTaskOptions::default()).then_some(options)
    }
}

/// Set fields of a task
///
/// To claim a task that nobody has: --assignee ME --if-assignee none. Of two that do it at once one gets it, and
/// the other is told who did.
#[derive(Debug, clap::Args)]
pub struct Update {
    /// The task's id
    pub task: String,
    /// How far it is
    #[arg(long, value_name = "STATUS")]
    pub status: Option<Stage>,
    /// Id of the agent that is to do it
    #[arg(long, value_name = "AGENT_ID")]
    pub assignee: Option<String>,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Only if this agent has it (`none`: if nobody has)
    #[arg(long, value_name = "AGENT_ID|none")]
    pub if_assignee: Option<String>,
    #[command(flatten)]
    pub more: Fields,
}

/// Fields of a task that mesh nodes have.
#[derive(Debug, clap::Args)]
pub struct Fields {
    /// How far it is, in all the states that there are: refused if it is not the next step
    #[arg(long, value_name = "STATE", conflicts_with = "status")]
    pub state: Option<State>,
    /// With --if-assignee: only if it is so far
    #[arg(long, value_name = "STATE", requires = "if_assignee")]
    pub if_state: Option<State>,
    /// Nobody has it any more
    #[arg(long, conflicts_with = "assignee")]
    pub release: bool,
    /// The work
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// More about it; empty deletes it
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// 0 low, 1 medium, 2 high, 3 urgent
    #[arg(long, value_name = "0-3")]
    pub priority: Option<u8>,
    /// A word to find it by, in the place of those that there are; several times for several
    #[arg(long = "label", value_name = "WORD")]
    pub labels: Vec<String>,
    /// When it is to be done: RFC 3339; empty: at no time
    #[arg(long, value_name = "TIME")]
    pub due: Option<String>,
    /// How far the work is, in per cent
    #[arg(long, value_name = "0-100")]
    pub progress: Option<u8>,
    /// The step that it is at
    #[arg(long, value_name = "TEXT", requires = "progress")]
    pub step: Option<String>,
    /// What has come of it: JSON, or else a text
    #[arg(long, value_name = "JSON")]
    pub result: Option<String>,
    /// Of which kind the note is
    #[arg(long, value_name = "KIND", requires = "note")]
    pub note_kind: Option<Kind>,
}

impl Fields {
    fn options(self) -> Option<TaskOptions> {
        let step = self.step.unwrap_or_default();
        let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        let options = TaskOptions {
            state: self.state.map(TaskState::from),
            if_state: self.if_state.map(TaskState::from),
            release: self.release,
            title: self.title,
            description: self.description,
            priority: self.priority,
            labels: Some(self.labels).filter(|labels| !labels.is_empty()),
            due: self.due,
            progress: self.progress.map(|percent| TaskProgress { percent, step }),
            result: self.result.map(json),
            note_kind: self.note_kind.map(CommentKind::from),
        };
        (options != TaskOptions::default()).then_some(options)
    }
}

/// Of which kind a note is.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Kind {
    /// Any words.
    Note,
    /// How it goes.
    Status,
    /// Something that the work waits for.
    Blocker,
}

impl From<Kind> for CommentKind {
    fn from(kind: Kind) -> CommentKind {
        match kind {
            Kind::Note => CommentKind::Note,
            Kind::Status => CommentKind::Status,
            Kind::Blocker => CommentKind::Blocker,
        }
    }
}

/// How far a task is, where there is more to say than a status does.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum State {
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

impl From<State> for TaskState {
    fn from(state: State) -> TaskState {
        match state {
            State::Pending => TaskState::Pending,
            State::InProgress => TaskState::InProgress,
            State::Blocked => TaskState::Blocked,
            State::InReview => TaskState::InReview,
            State::Completed => TaskState::Completed,
            State::Cancelled => TaskState::Cancelled,
            State::Failed => TaskState::Failed,
        }
    }
}

/// How far a task is.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Stage {
    /// Nobody has begun.
    Pending,
    /// Somebody is at it.
    InProgress,
    /// Done.
    Completed,
    /// Waits for something.
    Blocked,
}

impl From<Stage> for TaskStatus {
    fn from(status: Stage) -> TaskStatus {
        match status {
            Stage::Pending => TaskStatus::Pending,
            Stage::InProgress => TaskStatus::InProgress,
            Stage::Completed => TaskStatus::Completed,
            Stage::Blocked => TaskStatus::Blocked,
        }
    }
}

pub(crate) async fn run(cx: &Context, args: TaskCommand) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    match args {
        TaskCommand::Assign { room, title, description, assignee, more } => {
            let room_id = cx.join(&client, &room).await?;
            let mesh = more.options();
            let new = AssignTask { room_id, title, description, assignee, mesh };
            let task = client.call(new).await?;
            cx.output.show(&task, || lines(&cx.output, std::slice::from_ref(&task)))?;
        }
        TaskCommand::Update(args) => {
            let if_assignee = match args.if_assignee.as_deref() {
                None => IfAssignee::Anybody,
                Some("none") => IfAssignee::Nobody,
                Some(id) => IfAssignee::Agent(id.to_owned()),
            };
            let Update { task, status, assignee, note, more, .. } = *args;
            let (status, mesh) = (status.map(TaskStatus::from), more.options());
            let update = UpdateTask { task_id: task, status, assignee, note, if_assignee, mesh };
            let task = client.call(update).await?;
            cx.output.show(&task, || lines(&cx.output, std::slice::from_ref(&task)))?;
        }
        TaskCommand::Show { room, task } => {
            let room_id = cx.room(&client, &room).await?;
            let record = client.call(GetTask { room_id, task_id: task }).await?;
            cx.output.show(&record, || {
                let task = std::slice::from_ref(&record.task);
                let comments = record.comments.iter().map(comment);
                lines(&cx.output, task).into_iter().chain(comments).collect()
            })?;
        }
        TaskCommand::Delete { task } => {
            let gone = client.call(DeleteTask { task_id: task }).await?;
            cx.output.show(&gone, || vec!["deleted".to_owned()])?;
        }
        TaskCommand::List { room, status } => {
            let room_id = cx.room(&client, &room).await?;
            let status = status.map(TaskStatus::from);
            let list = client.call(ListTasks { room_id, status }).await?;
            cx.output.list(&list, "no tasks", || lines(&cx.output, &list.tasks))?;
        }
    }
    Ok(Outcome::Done)
}

fn comment(comment: &Comment) -> String {
    format!("{} {}: {}", comment.created_at, name(&comment.agent_id), name(&comment.text))
}

fn lines(output: &Output, tasks: &[Task]) -> Vec<String> {
    let row = |task: &Task| {
        let note = task.mesh.clone().unwrap_or_default();
        let priority = note.priority.map(|priority| priority.to_string());
        let progress = note.progress.map(|at| format!("{} % {}", at.percent, at.step));
        vec![
            task.title.clone(),
            task.task_id.clone(),
            format::task_state(task).to_owned(),
            task.assignee.clone().unwrap_or_default(),
            task.note.clone().unwrap_or_default(),
            priority.unwrap_or_default(),
            note.labels.join(", "),
            note.due.unwrap_or_default(),
            progress.unwrap_or_default(),
            note.contested.join(", "),
        ]
    };
    let heads = [
        "title",
        "id",
        "status",
        "assignee",
        "note",
        "priority",
        "labels",
        "due",
        "progress",
        "contested",
    ];
    table::lines(output, &heads, tasks.iter().map(row).collect())
}
