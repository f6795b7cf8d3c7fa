//! `health` and `status`.

use std::collections::BTreeMap;

use bridge::seam::call::{ListNodes, ListRooms};
use mesh::name::id::NodeId;
use serde_json::{Value, json};

use crate::{
    agents::{Known, is_online},
    caller::Caller,
    methods::METHODS,
    outcome::{No, Outcome},
    times,
};

/// Other nodes of the mesh, by name.
async fn peers(caller: &Caller) -> Result<Vec<Value>, No> {
    let nodes = caller.read(ListNodes).await?.into_iter().filter(|node| !node.me);
    let row = |name: String, id: NodeId, connected| {
        let node = if name.is_empty() { id.to_string() } else { name };
        json!({"node": node, "connected": connected})
    };
    Ok(nodes.map(|node| row(node.name, node.node, node.connected)).collect())
}

/// `id`: the connection's own.
pub(crate) async fn health(caller: &Caller, id: u64) -> Outcome {
    let shared = &caller.shared;
    let clients = shared.clients();
    let dropped = clients.iter().map(|client| client.line.dropped());
    let seen =
        clients.iter().filter(|client| caller.owner || client.caller.print() == caller.print());
    let rows = seen.map(|client| {
        json!({
            "id": client.id.to_string(),
            "remoteAddr": client.address.map(|at| at.to_string()).unwrap_or_default(),
            "userId": client.caller.user,
            "role": client.caller.role.name(),
            "dialect": "goclaw",
            "connectedAt": times::text(client.since_ms),
        })
    });
    Ok(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": times::ms(shared.started.elapsed()),
        "mode": "mesh",
        // A store that takes nothing answers no request of this dialect: the key could not be looked up.
        "database": "ok",
        "tools": METHODS.iter().filter(|method| method.missing.is_none()).count() + 1,
        "clients": rows.collect::<Vec<Value>>(),
        "currentId": id.to_string(),
        "droppedEvents": dropped.sum::<u64>(),
        "peers": peers(caller).await?,
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
    let connected = peers(caller).await?.iter().filter(|peer| peer["connected"] == true).count();
    Ok(json!({
        "agentTotal": rows.len(),
        "agents": rows,
        "clients": caller.shared.clients().len(),
        "sessions": caller.session_count().await?,
        "rooms": rooms,
        "peers": connected,
    }))
}
