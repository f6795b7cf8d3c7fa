//! `clawmesh task`.

use protocol::object::Task;
use protocol::request::{AssignTask, ListTasks, UpdateTask};
use protocol::value::{IfAssignee, TaskStatus};

use crate::context::Context;
use crate::format;
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
    },
    Update(Update),
    /// List the tasks of a room, the oldest first
    List {
        /// Room id, or exact name
        room: String,
        /// Only those that are so far
        #[arg(long, value_name = "STATUS")]
        status: Option<Stage>,
    },
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
    #[arg(long, value_name = "AGENT_ID|none", requires = "assignee")]
    pub if_assignee: Option<String>,
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
        TaskCommand::Assign { room, title, description, assignee } => {
            let room_id = cx.join(&client, &room).await?;
            let task = client.call(AssignTask { room_id, title, description, assignee }).await?;
            cx.output.show(&task, || lines(&cx.output, std::slice::from_ref(&task)))?;
        }
        TaskCommand::Update(args) => {
            let if_assignee = match args.if_assignee.as_deref() {
                None => IfAssignee::Anybody,
                Some("none") => IfAssignee::Nobody,
                Some(id) => IfAssignee::Agent(id.to_owned()),
            };
            let Update { task, status, assignee, note, .. } = args;
            let status = status.map(TaskStatus::from);
            let update = UpdateTask { task_id: task, status, assignee, note, if_assignee };
            let task = client.call(update).await?;
            cx.output.show(&task, || lines(&cx.output, std::slice::from_ref(&task)))?;
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

fn lines(output: &Output, tasks: &[Task]) -> Vec<String> {
    let row = |task: &Task| {
        let contested =
            task.mesh.as_ref().map(|note| note.contested.join(", ")).unwrap_or_default();
        vec![
            task.title.clone(),
            task.task_id.clone(),
            format::task_status(task.status).to_owned(),
            task.assignee.clone().unwrap_or_default(),
            task.note.clone().unwrap_or_default(),
            contested,
        ]
    };
    let heads = ["title", "id", "status", "assignee", "note", "contested"];
    table::lines(output, &heads, tasks.iter().map(row).collect())
}
