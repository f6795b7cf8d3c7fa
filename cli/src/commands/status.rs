//! `clawmesh status`.

use std::time::Instant;

use protocol::request::{ListAgents, ListRooms, Ping};

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Ask the node how it is: how fast it answers, and how many rooms and agents the key sees.
#[derive(Debug, clap::Args)]
pub struct Status {}

pub(crate) async fn run(cx: &Context, _: Status) -> Result<Outcome, Failure> {
    let (client, _) = cx.connect().await?;
    let asked = Instant::now();
    client.call(Ping {}).await?;
    let took = asked.elapsed();
    let rooms = client.call(ListRooms { parent_id: None }).await?.rooms.len();
    let agents = client.call(ListAgents { room_id: None }).await?.agents.len();
    cx.output.line(&format!("node answers in {:.1} ms", took.as_secs_f64() * 1000.0))?;
    cx.output.line(&format::counted(rooms as u64, "room"))?;
    cx.output.line(&format!(
        "{} of this key, this one included",
        format::counted(agents as u64, "agent")
    ))?;
    Ok(Outcome::Done)
}
