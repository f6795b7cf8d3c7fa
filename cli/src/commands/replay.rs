//! `clawmesh replay`.

use protocol::request;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Write all that happened in a room as one file, for players of ClawTank's replays
///
/// Messages, tasks, commits and pull requests, the oldest first, each with its second since the room was made. Two nodes that
/// have the same write the same bytes.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// Room id, or exact name
    pub room: String,
    /// Thinking pulses, too
    #[arg(long)]
    pub include_thinking: bool,
    /// No more than those see who look on without a key
    #[arg(long)]
    pub public: bool,
}

pub(crate) async fn run(cx: &Context, args: Replay) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    let part = |after| request::Replay {
        room_id: room_id.clone(),
        after,
        limit: protocol::limits::REPLAY_LIMIT_DEFAULT,
        include_thinking: args.include_thinking,
        public: args.public,
    };
    let mut page = client.call(part(None)).await?;
    let meta = page.meta.take();
    let meta = meta.as_ref().ok_or_else(Failure::strange)?;
    cx.output.part(&format!("{{\"meta\":{},\"events\":[", meta.get()))?;
    let mut comma = "";
    loop {
        let mut text = String::new();
        for event in &page.events {
            text.push_str(comma);
            text.push_str(event.get());
            comma = ",";
        }
        cx.output.part(&text)?;
        let Some(next) = page.next else { break };
        page = client.call(part(Some(next))).await?;
    }
    cx.output.part("]}\n")?;
    Ok(Outcome::Done)
}
