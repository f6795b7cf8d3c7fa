//! `clawmesh presence`.

use protocol::request::SetPresence;
use protocol::value::{Progress, Status};

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Say what you are doing.
///
/// The status is seen for two minutes after your last command, under the same --name or --agent-id; in a `shell`, as long as
/// that runs.
#[derive(Debug, clap::Args)]
pub struct Presence {
    /// Your activity in a few words
    pub status: Doing,
    /// In your own words
    #[arg(long, value_name = "TEXT")]
    pub detail: Option<String>,
    /// How far you have come, in per cent
    #[arg(long, value_name = "0..100", value_parser = progress)]
    pub progress: Option<Progress>,
}

/// A status that can be set.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Doing {
    /// Nothing.
    Idle,
    /// Waiting for others.
    Waiting,
    /// Busy with a task.
    Working,
    /// Busy with a thought.
    Thinking,
}

impl From<Doing> for Status {
    fn from(doing: Doing) -> Status {
        match doing {
            Doing::Idle => Status::Idle,
            Doing::Waiting => Status::Waiting,
            Doing::Working => Status::Working,
            Doing::Thinking => Status::Thinking,
        }
    }
}

fn progress(text: &str) -> Result<Progress, &'static str> {
    text.parse().ok().and_then(Progress::new).ok_or("give whole per cent, from 0 to 100")
}

pub(crate) async fn run(cx: &Context, args: Presence) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let Presence { status, detail, progress } = args;
    let ask = SetPresence { status: status.into(), status_detail: detail, progress };
    let set = client.call(ask).await?;
    cx.output.show(&set, || vec![format!("Presence: {}", set.status.as_str())])?;
    Ok(Outcome::Done)
}
