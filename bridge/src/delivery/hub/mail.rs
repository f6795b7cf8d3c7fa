//! How far agents have been told of their inboxes, have fetched the items, and have confirmed them. None of the three stands
//! for another. Memory: after a restart agents are told once more.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use mesh::{limits::INBOXES_MAX, name::id::AgentId};

/// See the module. Places of items; 0: none. Times in Unix milliseconds. `None`: not since the start of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notified {
    /// The agent's host was told that there is something, up to this item.
    pub upto: u64,
    /// All up to this item has been returned to the agent.
    pub fetched: u64,
    /// When its host was told last, and in which way.
    pub told: Option<(u64, Way)>,
    /// When items were returned to it last.
    pub fetched_ms: Option<u64>,
    /// When it confirmed items last.
    pub confirmed_ms: Option<u64>,
}

/// How a host is told that something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is posted to.
    Post,
    /// A program of the host asks.
    Asked,
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

    /// All agents of which something is known.
    pub(crate) fn all(&self) -> Vec<(AgentId, Notified)> {
        self.lock().iter().map(|(agent, mail)| (agent.clone(), *mail)).collect()
    }

    /// Its inbox has got so far. One that has got less far than was told is another one.
    pub(crate) fn is_at(&self, agent: &AgentId, newest: u64) {
        let mut all = self.lock();
        if all.get(agent).is_some_and(|told| told.upto > newest || told.fetched > newest) {
            all.remove(agent);
        }
    }

    /// Its host was told of all items up to this one.
    pub(crate) fn tell_upto(&self, agent: &AgentId, upto: u64, way: Way) {
        self.change(agent, |mail| {
            mail.upto = mail.upto.max(upto);
            mail.told = Some((now_ms(), way));
        });
    }

    /// It was given all items up to this one.
    pub(crate) fn fetched(&self, agent: &AgentId, upto: u64) {
        self.change(agent, |mail| {
            if upto > mail.fetched {
                mail.fetched_ms = Some(now_ms());
            }
            mail.fetched = mail.fetched.max(upto);
        });
    }

    /// It has confirmed items.
    pub(crate) fn confirmed(&self, agent: &AgentId) {
        self.change(agent, |mail| mail.confirmed_ms = Some(now_ms()));
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_fetched_and_confirmed_are_three() {
        let (mails, ada) = (Mails::default(), AgentId::from("ada"));
        mails.tell_upto(&ada, 3, Way::Post);
        let mail = mails.of(&ada);
        assert_eq!((mail.upto, mail.fetched), (3, 0));
        assert_eq!((mail.told.map(|(_, way)| way), mail.fetched_ms), (Some(Way::Post), None));
        mails.fetched(&ada, 0);
        assert_eq!(mails.of(&ada).fetched_ms, None, "there was nothing");
        mails.fetched(&ada, 2);
        let mail = mails.of(&ada);
        assert!(mail.fetched_ms.is_some() && mail.confirmed_ms.is_none());
        mails.confirmed(&ada);
        assert!(mails.of(&ada).confirmed_ms.is_some());
        assert_eq!(mails.all().len(), 1);
        mails.is_at(&ada, 1);
        assert_eq!(mails.of(&ada), Notified::default(), "another inbox");
    }
}
