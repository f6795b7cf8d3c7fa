//! The agents that an agent can write to.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bridge::{
    seam::call::{ListAgents, ListOffering, ListRooms},
    tokens::Visibility,
};
use mesh::{api::command::AgentView, name::id::AgentId};

use crate::{
    asking::Asking,
    children::workers,
    limits::{AGENTS_OFFERING_MAX, AGENTS_ROOMS_MAX},
    outcome::No,
};

/// An agent that can be written to.
pub(crate) struct Reachable {
    pub(crate) agent: AgentId,
    pub(crate) name: String,
    /// It is of the same key, or there is a session with it.
    pub(crate) known: bool,
    /// As it is attached; `None`: it is away.
    pub(crate) view: Option<AgentView>,
}

/// The agents that the agent is shown: all of them, or those to which it has given tasks.
pub(crate) async fn reachable(
    asking: &Asking,
    offering: Option<&str>,
) -> Result<Vec<Reachable>, No> {
    let mut reachable = everybody(asking, offering).await?;
    if asking.grant.visibility < Visibility::Joined {
        let workers = workers(asking).await?;
        reachable.retain(|other| workers.contains(&other.agent));
    }
    Ok(reachable)
}

/// The agents of the key, members of rooms that it may read (of the liveliest, where there are very many), those with whom
/// there is a session, and those of any key that offer something: this, or anything.
pub(crate) async fn everybody(
    asking: &Asking,
    offering: Option<&str>,
) -> Result<Vec<Reachable>, No> {
    let mut found: BTreeMap<AgentId, Reachable> = BTreeMap::new();
    let key = asking.reader.key();
    let mut rooms = asking.read(ListRooms { parent: None }).await?;
    let peers: BTreeSet<AgentId> = rooms
        .iter()
        .filter_map(|room| Some(room.sides.as_ref()?.peer_of(&asking.agent).clone()))
        .collect();
    rooms.retain(|view| view.members > 0);
    rooms.sort_by_key(|view| Reverse(view.last_activity_ms));
    let rooms = rooms.into_iter().take(AGENTS_ROOMS_MAX).map(|view| Some(view.room));
    for room in [None].into_iter().chain(rooms) {
        let agents = asking.shared.desk.ask(&asking.reader, ListAgents { room }).await;
        // A room that has gone since it was listed has none.
        for view in agents.unwrap_or_default() {
            let (agent, name) = (view.agent.clone(), view.name.to_string());
            let known = view.key == key || peers.contains(&agent);
            let other = Reachable { agent: agent.clone(), name, known, view: Some(view) };
            found.insert(agent, other);
        }
    }
    let capability = offering.map(str::to_owned);
    let offering = ListOffering { capability, limit: AGENTS_OFFERING_MAX };
    for view in asking.read(offering).await? {
        let (agent, name) = (view.agent.clone(), view.name.to_string());
        let known = view.key == key || peers.contains(&agent);
        let other = || Reachable { agent: agent.clone(), name, known, view: Some(view) };
        found.entry(agent.clone()).or_insert_with(other);
    }
    for agent in peers {
        let away =
            || Reachable { agent: agent.clone(), name: agent.to_string(), known: true, view: None };
        found.entry(agent.clone()).or_insert_with(away);
    }
    found.remove(&asking.agent);
    Ok(found.into_values().collect())
}
