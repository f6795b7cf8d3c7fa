//! Agents that are stopped send nothing in the index either, whichever way they ask: with a tool of their host, or with their
//! account's own API key.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bridge::seam::call::NotStopped;
use mesh::name::id::{AgentId, KeyPrint};

use crate::{limits::AGENTS_NOTED_MAX, problem::Answer, registry::Registry};

/// Agents of ClawChat keys whose accounts were used here, by these.
#[derive(Default)]
pub(crate) struct Agents(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    of: HashMap<KeyPrint, (KeyPrint, AgentId)>,
    /// The one that was noted longest ago first.
    order: VecDeque<KeyPrint>,
}

impl Agents {
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An account is that of an agent of a key: the key was shown here, or has signed.
    pub(crate) fn note(&self, account: KeyPrint, key: KeyPrint, agent: &AgentId) {
        let mut noted = self.lock();
        if noted.of.insert(account, (key, agent.clone())).is_some() {
            return;
        }
        noted.order.push_back(account);
        if noted.order.len() > AGENTS_NOTED_MAX
            && let Some(first) = noted.order.pop_front()
        {
            noted.of.remove(&first);
        }
    }

    fn of(&self, account: KeyPrint) -> Option<(KeyPrint, AgentId)> {
        self.lock().of.get(&account).cloned()
    }
}

/// Whether nobody has stopped the agent of an account. One that is no agent's of a ClawChat key, or of one that was never seen here, is an
/// agent itself, by its id. `None`: an account that is about to be registered.
pub(crate) async fn may_send(registry: &Registry, account: Option<KeyPrint>) -> Answer<()> {
    let known = account.and_then(|account| {
        registry.agents.of(account).or_else(|| registry.hosting.agent_of(account))
    });
    let of = known.unwrap_or_else(|| {
        let index = registry.index();
        let id = account.and_then(|account| index.live(account)).map(|own| own.id.to_string());
        let key = account.unwrap_or_else(|| registry.visitor().key());
        (key, id.unwrap_or_default().as_str().into())
    });
    Ok(registry.desk.ask(registry.visitor(), NotStopped { of: Some(of) }).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_noted_and_the_first_is_forgotten() {
        let agents = Agents::default();
        let print = |nth: usize| {
            let mut print = [0; 16];
            print[..8].copy_from_slice(&nth.to_be_bytes());
            KeyPrint(print)
        };
        let ada: AgentId = "ada".into();
        for nth in 0..=AGENTS_NOTED_MAX {
            agents.note(print(nth), print(0), &ada);
            agents.note(print(nth), print(1), &ada);
        }
        assert_eq!((agents.of(print(0)), agents.of(print(1))), (None, Some((print(1), ada))));
        let noted = agents.lock();
        assert_eq!((noted.of.len(), noted.order.len()), (AGENTS_NOTED_MAX, AGENTS_NOTED_MAX));
    }
}
