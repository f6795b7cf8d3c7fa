//! `clawmesh agents`.

use protocol::request::ListAgents;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// List connected agents: those of the key, or the members of a room in join order.
#[derive(Debug, clap::Args)]
pub struct Agents {
    /// Only the members of this room (id, or exact name)
    #[arg(long, value_name = "ROOM")]
    pub room: Option<String>,
}

pub(crate) async fn run(cx: &Context, args: Agents) -> Result<Outcome, Failure> {
    let (client, _) = cx.connect().await?;
    let room_id = match args.room {
        Some(room) => Some(cx.room(&client, &room).await?),
        None => None,
    };
    for agent in client.call(ListAgents { room_id }).await?.agents {
        cx.output.line(&format::agent(&agent))?;
    }
    Ok(Outcome::Done)
}
