//! How far each host is with what it was told, for the operator. Written by the waker of an agent, and read by nobody who
//! decides.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mesh::name::id::AgentId;

/// How far the host of an agent is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Woken {
    /// Nothing waits that the agent has not fetched.
    #[default]
    Nothing,
    /// Something waits: its host was told so often, and the agent has not fetched it yet.
    Told(usize),
    /// Its host does not take what it is told, and is tried again.
    Unreached,
    /// Its host was told as often as it may be, and the agent has fetched nothing. It is told no more until it does.
    Unread,
}

/// See the module. As many agents as the operator has entered.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BTreeMap<AgentId, Woken>>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Woken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, agent: &AgentId, woken: Woken) {
        self.lock().insert(agent.clone(), woken);
    }

    /// All of them, in the order of their ids.
    pub(crate) fn all(&self) -> Vec<(AgentId, Woken)> {
        self.lock().iter().map(|(agent, woken)| (agent.clone(), *woken)).collect()
    }
}
