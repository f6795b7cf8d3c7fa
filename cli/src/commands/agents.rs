//! `clawmesh agents`.

use protocol::object::Agent;
use protocol::request::ListAgents;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// List the connected agents of the key, at whichever node they are.
#[derive(Debug, clap::Args)]
pub struct Agents {
    /// Only the members of this room (id, or exact name)
    #[arg(long, value_name = "ROOM")]
    pub room: Option<String>,
}

pub(crate) async fn run(cx: &Context, args: Agents) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.some_room(&client, args.room.as_deref()).await?;
    let list = client.call(ListAgents { room_id }).await?;
    cx.output.show(&list, || lines(&cx.output, &list.agents, None))?;
    Ok(Outcome::Done)
}

/// Agents as a table; `turn`: whose it is.
pub(crate) fn lines(output: &Output, agents: &[Agent], turn: Option<&str>) -> Vec<String> {
    let row = |agent: &Agent| {
        let node = agent.mesh.as_ref().and_then(|note| note.node.as_deref()).unwrap_or_default();
        vec![
            agent.name.clone(),
            agent.agent_id.clone(),
            format::doing(agent),
            if turn == Some(agent.agent_id.as_str()) { "yes" } else { "" }.to_owned(),
            node.chars().take(8).collect(),
            agent.capabilities.join(", "),
        ]
    };
    let heads = ["name", "id", "doing", "turn", "node", "can"];
    let mut rows: Vec<Vec<String>> = agents.iter().map(row).collect();
    let mut heads = heads.to_vec();
    if turn.is_none() {
        heads.remove(3);
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    table::lines(output, &heads, rows)
}
