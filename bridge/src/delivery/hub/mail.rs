//! How far agents have been told of their inboxes, and how far they have fetched the items. Neither means that they have read
//! them: that is for them to confirm. Memory: after a restart agents are told once more.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mesh::{limits::INBOXES_MAX, name::id::AgentId};

/// See the module. Places of items; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notified {
    /// The agent's host was told that there is something, up to this item.
    pub upto: u64,
    /// All up to this item has been returned to the agent.
    pub fetched: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mails(Mutex<BTreeMap<AgentId, Notified>>);

impl Mails {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Notified>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, agent: &AgentId, change: impl FnOnce(&mut Notified)) {
        let mut all = self.lock();
        if all.len() >= INBOXES_MAX && !all.contains_key(agent) {
            all.pop_first();
        }
        change(all.entry(agent.clone()).or_default());
    }

    /// How far an agent was told of its inbox.
    pub(crate) fn of(&self, agent: &AgentId) -> Notified {
        self.lock().get(agent).copied().unwrap_or_default()
    }

    /// Its inbox has got so far. One that has got less far than was told is another one.
    pub(crate) fn is_at(&self, agent: &AgentId, newest: u64) {
        let mut all = self.lock();
        if all.get(agent).is_some_and(|told| told.upto > newest || told.fetched > newest) {
            all.remove(agent);
        }
    }

    /// Its host was told of all items up to this one.
    pub(crate) fn tell_upto(&self, agent: &AgentId, upto: u64) {
        self.change(agent, |told| told.upto = told.upto.max(upto));
    }

    /// It was given all items up to this one.
    pub(crate) fn fetched(&self, agent: &AgentId, upto: u64) {
        self.change(agent, |told| told.fetched = told.fetched.max(upto));
    }
}
