//! `presence`: agents that come and go, told to clients that know the event.

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

use crate::{agents::is_online, limits::PRESENCE_EVERY, shared::Shared};

/// Whether somebody looks, and how often something has changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    looks: AtomicBool,
    version: AtomicU64,
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
        let mut last = None;
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

async fn look(shared: &Arc<Shared>, last: &mut Option<Seen>) {
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
    let Some(attached) = found else { return };
    let now: Seen = attached.iter().map(|view| (view.agent.clone(), is_online(view))).collect();
    let Some(before) = last.replace(now.clone()) else { return };
    let changed = changes(&before, &now);
    if changed.is_empty() {
        return;
    }
    let version = shared.presence.version.fetch_add(1, Ordering::Relaxed) + 1;
    let (payload, state) = (json!({"agents": changed}), json!({"presence": version, "health": 0}));
    for client in modern {
        client.line.state("presence", &payload, &state);
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
