//! Agents without a connection that are not detached yet: when their time is over, and not before, unless there are too many.

use std::collections::{BTreeMap, HashMap};

use mesh::{
    api::command::Caller,
    name::id::{AgentId, KeyPrint},
};
use tokio::sync::oneshot;

use crate::limits;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    agents: HashMap<AgentId, Lingerer>,
    /// The same by age, the oldest first.
    order: BTreeMap<u64, AgentId>,
    begun: u64,
}

#[derive(Debug)]
struct Lingerer {
    caller: Caller,
    begun: u64,
    let_go: oneshot::Sender<()>,
}

impl Lingering {
    /// An agent begins to linger. What is returned ends before its time: with a value if the agent is to be detached, without
    /// one if it is back.
    pub(super) fn begin(&mut self, caller: &Caller) -> oneshot::Receiver<()> {
        let newer = self.agents.get(&caller.agent);
        if newer.is_some_and(|newer| newer.caller.registration > caller.registration) {
            // An old connection ends late: the agent has been back since, and lingers from then on.
            return oneshot::channel().1;
        }
        self.is_back(&caller.agent);
        let of_key = self.of_key(caller.key);
        if of_key.len() >= limits::LINGERING_PER_KEY_MAX {
            self.let_go(of_key.first().copied());
        }
        if self.agents.len() >= limits::LINGERING_MAX {
            self.let_go(self.order.keys().next().copied());
        }
        let (let_go, over) = oneshot::channel();
        self.begun += 1;
        self.order.insert(self.begun, caller.agent.clone());
        let lingerer = Lingerer { caller: caller.clone(), begun: self.begun, let_go };
        self.agents.insert(caller.agent.clone(), lingerer);
        over
    }

    /// The agent of this registration has acted: it is the youngest. `false`: it does not linger.
    pub(super) fn goes_on(&mut self, caller: &Caller) -> bool {
        let lingerer = self.agents.get_mut(&caller.agent);
        let Some(lingerer) = lingerer.filter(|lingerer| lingerer.caller == *caller) else {
            return false;
        };
        self.order.remove(&lingerer.begun);
        self.begun += 1;
        lingerer.begun = self.begun;
        self.order.insert(self.begun, caller.agent.clone());
        true
    }

    /// The agent has a connection again, here or elsewhere.
    pub(super) fn is_back(&mut self, agent: &AgentId) {
        if let Some(lingerer) = self.agents.remove(agent) {
            self.order.remove(&lingerer.begun);
        }
    }

    /// The time of this registration is over.
    pub(super) fn is_over(&mut self, caller: &Caller) {
        if self.agents.get(&caller.agent).is_some_and(|lingerer| lingerer.caller == *caller) {
            self.is_back(&caller.agent);
        }
    }

    /// Nobody of this key lingers on.
    pub(super) fn revoked(&mut self, key: KeyPrint) {
        for begun in self.of_key(key) {
            self.let_go(Some(begun));
        }
    }

    /// Oldest first.
    fn of_key(&self, key: KeyPrint) -> Vec<u64> {
        let of_key = |agent| self.agents.get(agent).is_some_and(|one| one.caller.key == key);
        self.order.iter().filter(|(_, agent)| of_key(*agent)).map(|(begun, _)| *begun).collect()
    }

    fn let_go(&mut self, begun: Option<u64>) {
        let agent = begun.and_then(|begun| self.order.remove(&begun));
        if let Some(lingerer) = agent.and_then(|agent| self.agents.remove(&agent)) {
            // Nobody waits any more: its time was over at this moment.
            lingerer.let_go.send(()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use mesh::api::command::Registration;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn caller(agent: &str, key: u8) -> Caller {
        let key = KeyPrint([key; 16]);
        Caller { agent: agent.into(), key, registration: Registration(1) }
    }

    #[test]
    fn of_too_many_the_oldest_are_let_go_first_those_of_the_same_key() {
        let mut lingering = Lingering::default();
        let mut other = lingering.begin(&caller("other", 2));
        let mut one = |nth: usize| lingering.begin(&caller(&nth.to_string(), 1));
        let mut first = one(0);
        let rest: Vec<_> = (1..limits::LINGERING_PER_KEY_MAX).map(&mut one).collect();
        assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
        let last = one(limits::LINGERING_PER_KEY_MAX);
        assert_eq!((first.try_recv(), other.try_recv()), (Ok(()), Err(TryRecvError::Empty)));
        for nth in 0..limits::LINGERING_MAX {
            let key = u8::try_from(3 + nth % 100).unwrap();
            drop(lingering.begin(&caller(&format!("more {nth}"), key)));
        }
        assert_eq!(other.try_recv(), Ok(()), "there is a bound for all");
        let (agents, order) = (lingering.agents.len(), lingering.order.len());
        assert!(agents <= limits::LINGERING_MAX && agents == order, "{agents} {order}");
        drop((rest, last));
    }

    #[test]
    fn an_old_connection_that_ends_late_ends_no_newer_time() {
        let mut lingering = Lingering::default();
        let newer = Caller { registration: Registration(2), ..caller("x", 1) };
        let mut time = lingering.begin(&newer);
        let mut late = lingering.begin(&caller("x", 1));
        assert_eq!(late.try_recv(), Err(TryRecvError::Closed), "as if it were back");
        assert_eq!(time.try_recv(), Err(TryRecvError::Empty), "the newer one goes on");
        lingering.is_over(&newer);
        assert!(lingering.agents.is_empty());
    }

    #[test]
    fn an_agent_that_acts_while_it_lingers_is_let_go_after_others() {
        let mut lingering = Lingering::default();
        let mut active = lingering.begin(&caller("active", 1));
        let mut silent = lingering.begin(&caller("silent", 1));
        assert!(lingering.goes_on(&caller("active", 1)));
        let other = Caller { registration: Registration(2), ..caller("active", 1) };
        assert!(!lingering.goes_on(&other) && !lingering.goes_on(&caller("nobody", 1)));
        let more = 2..=limits::LINGERING_PER_KEY_MAX;
        let rest: Vec<_> = more.map(|nth| lingering.begin(&caller(&nth.to_string(), 1))).collect();
        assert_eq!(silent.try_recv(), Ok(()), "it was silent for longest");
        assert_eq!(active.try_recv(), Err(TryRecvError::Empty));
        drop(rest);
    }

    #[test]
    fn who_is_back_is_not_let_go_and_a_revoked_key_has_nobody_left() {
        let mut lingering = Lingering::default();
        let mut back = lingering.begin(&caller("back", 1));
        lingering.is_back(&"back".into());
        assert_eq!(back.try_recv(), Err(TryRecvError::Closed));
        let mut again = lingering.begin(&caller("back", 1));
        lingering.is_over(&Caller { registration: Registration(0), ..caller("back", 1) });
        assert_eq!(again.try_recv(), Err(TryRecvError::Empty), "an earlier registration's end");
        let mut theirs = lingering.begin(&caller("theirs", 2));
        lingering.revoked(KeyPrint([1; 16]));
        assert_eq!((again.try_recv(), theirs.try_recv()), (Ok(()), Err(TryRecvError::Empty)));
        assert_eq!((lingering.agents.len(), lingering.order.len()), (1, 1));
    }
}
