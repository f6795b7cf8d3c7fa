//! `presence`: agents that come and go; and `health`: the node is otherwise than before. Told to clients that know these events.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use mesh::name::id::AgentId;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::{
    agents::is_online,
    limits::PRESENCE_EVERY,
    shared::{Client, Shared},
    system,
};

/// Whether somebody looks, and how often something has changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    looks: AtomicBool,
    version: AtomicU64,
    /// The same of the node's own state.
    health: AtomicU64,
}

/// What was seen by the last look.
#[derive(Debug, Default)]
struct Last {
    agents: Option<Seen>,
    state: Option<&'static str>,
}

/// The agents of the mesh, and whether messages reach each now.
type Seen = BTreeMap<AgentId, bool>;

/// Looks from now on, as long as there are clients that are told: others would take the event for an answer.
pub(crate) fn watch(shared: &Arc<Shared>) {
    if shared.presence.looks.swap(true, Ordering::AcqRel) {
        return;
    }
    let shared = Arc::downgrade(shared);
    drop(tokio::spawn(async move {
        let mut last = Last::default();
        while let Some(shared) = go_on(&shared) {
            look(&shared, &mut last).await;
            drop(shared);
            sleep(PRESENCE_EVERY).await;
        }
    }));
}

/// `None`: nobody is to be told any more.
fn go_on(shared: &Weak<Shared>) -> Option<Arc<Shared>> {
    let shared = shared.upgrade()?;
    let is_told = || shared.clients().iter().any(|client| client.caller.modern);
    if is_told() {
        return Some(shared);
    }
    shared.presence.looks.store(false, Ordering::Release);
    // A client that has just come has found that somebody looks.
    (is_told() && !shared.presence.looks.swap(true, Ordering::AcqRel)).then_some(shared)
}

async fn look(shared: &Arc<Shared>, last: &mut Last) {
    let modern: Vec<_> =
        shared.clients().into_iter().filter(|client| client.caller.modern).collect();
    let mut found = None;
    for client in &modern {
        // All see the same agents. A key that is not valid any more sees nothing.
        if let Ok(attached) = client.caller.attached(false).await {
            found = Some(attached);
            break;
        }
    }
    look_at_node(shared, &modern, last).await;
    let Some(attached) = found else { return };
    let now: Seen = attached.iter().map(|view| (view.agent.clone(), is_online(view))).collect();
    let Some(before) = last.agents.replace(now.clone()) else { return };
    let changed = changes(&before, &now);
    if changed.is_empty() {
        return;
    }
    let version = shared.presence.version.fetch_add(1, Ordering::Relaxed) + 1;
    let health = shared.presence.health.load(Ordering::Relaxed);
    let state = json!({"presence": version, "health": health});
    let payload = json!({"agents": changed});
    for client in modern {
        client.line.state("presence", &payload, &state);
    }
}

async fn look_at_node(shared: &Arc<Shared>, modern: &[Client], last: &mut Last) {
    let mut now = None;
    for client in modern {
        now = system::state_of(&client.caller).await.ok();
        if now.is_some() {
            break;
        }
    }
    // Nobody can tell, or it is the first look.
    let (Some(now), before) = (now, last.state) else { return };
    last.state = Some(now);
    if before.is_none_or(|before| before == now) {
        return;
    }
    let health = shared.presence.health.fetch_add(1, Ordering::Relaxed) + 1;
    let presence = shared.presence.version.load(Ordering::Relaxed);
    let state = json!({"presence": presence, "health": health});
    for client in modern {
        client.line.state("health", &json!({"status": now}), &state);
    }
}

/// Agents of which something else holds now.
fn changes(before: &Seen, now: &Seen) -> Map<String, Value> {
    let mut changed = Map::new();
    for (agent, online) in now {
        if before.get(agent).copied().unwrap_or(false) != *online {
            changed.insert(agent.to_string(), json!(online));
        }
    }
    for (agent, was_online) in before {
        if *was_online && !now.contains_key(agent) {
            changed.insert(agent.to_string(), json!(false));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_of_once_when_it_comes_and_once_when_it_goes() {
        let seen = |rows: &[(&str, bool)]| -> Seen {
            rows.iter().map(|(agent, online)| (AgentId::from(*agent), *online)).collect()
        };
        let none = seen(&[]);
        let both = seen(&[("a", true), ("b", false)]);
        assert_eq!(Value::Object(changes(&none, &both)), json!({"a": true}));
        assert_eq!(Value::Object(changes(&both, &none)), json!({"a": false}));
        let turned = seen(&[("a", false), ("b", true)]);
        assert_eq!(Value::Object(changes(&both, &turned)), json!({"a": false, "b": true}));
        assert!(changes(&both, &both).is_empty());
    }
}
