//! `health` and `status`.

use std::{collections::BTreeMap, net::IpAddr};

use bridge::seam::call::{ListNodes, ListRooms};
use mesh::{api::status::MemberStatus, name::id::NodeId};
use serde_json::{Value, json};

use crate::{
    agents::{Known, is_online},
    caller::Caller,
    limits::CLIENTS_LISTED_MAX,
    methods::METHODS,
    outcome::{No, Outcome},
    times,
};

/// Other nodes of the mesh. Those that were removed from it are none.
async fn others(caller: &Caller) -> Result<Vec<MemberStatus>, No> {
    let mut nodes = caller.read(ListNodes).await?;
    nodes.retain(|node| !node.me && node.parted.is_none());
    Ok(nodes)
}

/// How the node is, in a word: it takes something new, and reaches some other node if there are any.
pub(crate) async fn state_of(caller: &Caller) -> Result<&'static str, No> {
    if caller.shared.desk.is_full() {
        return Ok("degraded");
    }
    Ok(state(false, &others(caller).await?))
}

fn state(full: bool, others: &[MemberStatus]) -> &'static str {
    let is_alone = !others.is_empty() && !others.iter().any(|node| node.connected);
    if full || is_alone { "degraded" } else { "ok" }
}

/// Other nodes, by name, and since when there is a link to each.
async fn peers(caller: &Caller, others: &[MemberStatus]) -> Vec<Value> {
    let (links, now_ms) = (caller.shared.desk.links().await, times::now_ms());
    let row = |node: &MemberStatus| {
        let name = if node.name.is_empty() { node.node.to_string() } else { node.name.clone() };
        let mut row = json!({"node": name, "connected": node.connected});
        if let Some(up_ms) = links.get(&node.node).filter(|_| node.connected) {
            row["since"] = json!(times::text(now_ms.saturating_sub(*up_ms)));
        }
        row
    };
    others.iter().map(row).collect()
}

/// Connections of the caller's key, of all dialects; of the owner's all.
fn clients(caller: &Caller) -> Vec<Value> {
    let row = |id: String, address: Option<IpAddr>, (user, role): (&str, &str), dialect: &str| {
        let at = address.map(|at| at.to_string()).unwrap_or_default();
        json!({"id": id, "remoteAddr": at, "userId": user, "role": role, "dialect": dialect})
    };
    let clients = caller.shared.clients();
    let seen =
        clients.iter().filter(|client| caller.owner || client.caller.print() == caller.print());
    let people = seen.map(|client| {
        let who = (&*client.caller.user, client.caller.role.name());
        (client.since_ms, row(client.id.to_string(), client.address, who, "goclaw"))
    });
    let agents = caller.shared.desk.connected_here(&caller.holder, CLIENTS_LISTED_MAX);
    let agents = agents.iter().map(|link| {
        let dialect = link.dialect.unwrap_or_default().to_lowercase();
        let id = format!("{dialect}-{}", link.id);
        (link.since_ms, row(id, link.address, (&link.agent, "agent"), &dialect))
    });
    let rows = people.chain(agents).take(CLIENTS_LISTED_MAX).map(|(since_ms, mut row)| {
        row["connectedAt"] = json!(times::text(since_ms));
        row
    });
    rows.collect()
}

/// `id`: the connection's own.
pub(crate) async fn health(caller: &Caller, id: u64) -> Outcome {
    let shared = &caller.shared;
    let dropped: u64 = shared.clients().iter().map(|client| client.line.dropped()).sum();
    let (full, others) = (shared.desk.is_full(), others(caller).await?);
    Ok(json!({
        "status": state(full, &others),
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": times::ms(shared.started.elapsed()),
        "mode": "mesh",
        // A node whose store fails ends.
        "database": if full { "full" } else { "ok" },
        "tools": METHODS.iter().filter(|method| method.missing.is_none()).count() + 1,
        "clients": clients(caller),
        "currentId": id.to_string(),
        "droppedEvents": dropped,
        "peers": peers(caller, &others).await,
    }))
}

pub(crate) async fn status(caller: &Caller) -> Outcome {
    let attached = caller.attached(false).await?;
    let nodes: BTreeMap<NodeId, String> =
        caller.nodes(attached.iter().map(|view| view.node)).await?;
    let rows: Vec<Value> = attached
        .iter()
        .map(|view| {
            let node = nodes.get(&view.node).cloned().unwrap_or_else(|| view.node.to_string());
            let known = Known {
                agent: view.agent.clone(),
                view: Some(view.clone()),
                profile: mesh::records::profile::Profile::default(),
            };
            json!({
                "id": &*view.agent, "isRunning": caller.is_running(&known),
                "online": is_online(view), "node": node,
            })
        })
        .collect();
    let rooms = caller.read(ListRooms { parent: None }).await?;
    let rooms = rooms.iter().filter(|room| room.sides.is_none()).count();
    let connected = others(caller).await?.iter().filter(|node| node.connected).count();
    Ok(json!({
        "agentTotal": rows.len(),
        "agents": rows,
        "clients": caller.shared.clients().len(),
        "sessions": caller.session_count().await?,
        "rooms": rooms,
        "peers": connected,
    }))
}
