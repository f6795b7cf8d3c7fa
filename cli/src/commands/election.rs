//! `clawmesh election`.

use std::time::Duration;

use client::events::Events;
use protocol::event::{Event as Pushed, LeaderElected};
use protocol::request::{Decision, DeclineElection, ElectLeader};
use protocol::value::Metadata;
use tokio::time::timeout;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Elect a leader; decide as the leader.
///
/// A leader leads while it is connected, and for two minutes after its last command: under the same --name or --agent-id.
#[derive(Debug, clap::Subcommand)]
pub enum ElectionCommand {
    /// Start an election among those who are in the room, and wait for its end
    Start {
        /// Room id, or exact name
        room: String,
        /// Do not wait for its end
        #[arg(long)]
        no_wait: bool,
    },
    /// Do not stand in the election that is under way
    Decline {
        /// Room id, or exact name
        room: String,
    },
    /// Decide, as the room's leader
    Decide {
        /// Room id, or exact name
        room: String,
        /// The decision
        text: String,
        /// A JSON object that goes with it
        #[arg(long, value_name = "JSON", value_parser = metadata)]
        metadata: Option<Metadata>,
    },
}

fn metadata(text: &str) -> Result<Metadata, String> {
    Metadata::parse(text).map_err(|error| error.to_string())
}

/// A window of 2 s, nonces to be opened, and nodes that do not: an election is over by then.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(cx: &Context, args: ElectionCommand) -> Result<Outcome, Failure> {
    match args {
        ElectionCommand::Start { room, no_wait: false } => {
            let (client, mut events) = cx.connect().await?;
            let room_id = cx.join(&client, &room).await?;
            // They came before that answer: of an earlier election, if it ended since this agent's last command.
            while let Ok(Some(_)) = timeout(Duration::ZERO, events.next()).await {}
            let election = client.call(ElectLeader { room_id: room_id.clone() }).await?;
            let count = format::counted(election.candidates.len() as u64, "candidate");
            cx.output.note(&format!("{count}; who does not want to lead declines within 2 s"))?;
            let ended = timeout(PATIENCE, ended(events, &room_id)).await;
            let leader = ended.map_err(|_| Failure::NoLeader { after: PATIENCE })??;
            let (name, id) = (format::name(&leader.leader_name), format::name(&leader.leader_id));
            cx.output.show(&leader, || vec![format!("Leader: {name} ({id})")])?;
        }
        ElectionCommand::Start { room, no_wait: true } => {
            let client = cx.client().await?;
            let room_id = cx.join(&client, &room).await?;
            let election = client.call(ElectLeader { room_id }).await?;
            cx.output.show(&election, || vec![format::name(&election.message)])?;
        }
        ElectionCommand::Decline { room } => {
            let client = cx.client().await?;
            let room_id = cx.room(&client, &room).await?;
            let declined = client.call(DeclineElection { room_id }).await?;
            cx.output.show(&declined, || vec![format::name(&declined.message)])?;
        }
        ElectionCommand::Decide { room, text, metadata } => {
            let client = cx.client().await?;
            let room_id = cx.room(&client, &room).await?;
            let decision = Decision { room_id, content: text, metadata, mesh: None };
            let decided = client.call(decision).await?;
            cx.output.show(&decided, || vec![format!("Decided: {}", decided.message_id)])?;
        }
    }
    Ok(Outcome::Done)
}

/// The leader of the election that was just started.
async fn ended(mut events: Events, room: &str) -> Result<LeaderElected, Failure> {
    while let Some(event) = events.next().await {
        let Some(pushed) = event.pushed() else { continue };
        if let Pushed::LeaderElected(leader) = pushed {
            if leader.room_id == room {
                return Ok(leader);
            }
        } else if let Pushed::LeaderCleared(cleared) = pushed
            // Other reasons speak of the leader before; the end of this election is still to come.
            && cleared.room_id == room
            && cleared.reason == "all candidates declined"
        {
            return Err(Failure::NobodyLeads { reason: format::name(&cleared.reason) });
        }
    }
    Err(Failure::Disconnected)
}
