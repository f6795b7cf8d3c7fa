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
    let client = cx.client().await?;
    let asked = Instant::now();
    client.call(Ping {}).await?;
    let took = asked.elapsed().as_secs_f64() * 1000.0;
    let rooms = client.call(ListRooms { parent_id: None }).await?.rooms.len() as u64;
    let agents = client.call(ListAgents { room_id: None }).await?.agents;
    let agents = agents.iter().filter(|agent| !format::is_away(agent)).count() as u64;
    let status = serde_json::json!({ "answers_in_ms": took, "rooms": rooms, "agents": agents });
    cx.output.show(&status, || {
        vec![
            format!("node answers in {took:.1} ms"),
            format::counted(rooms, "room"),
            format!("{} of this key, this one included", format::counted(agents, "agent")),
        ]
    })?;
    Ok(Outcome::Done)
}
