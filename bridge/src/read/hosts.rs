//! Agents without a connection that act again and again: hosts of models, over HTTP.
//!
//! To the mesh such an agent [lingers](mesh::api::command::Command::Linger) from its first act on: it keeps its seats, and a
//! connection takes its place without a word. Its bounds are those of all agents that linger.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use mesh::{
    api::command::{Caller, Refused},
    name::id::{AgentId, KeyPrint},
};
use tokio::{
    sync::{Mutex as Turn, oneshot},
    time::timeout,
};

use super::{Desk, Hosted, Visitor};
use crate::{
    backend, limits,
    seam::{call::Attach, refusal::Refusal},
    session::party::Party,
};

type Name = (AgentId, KeyPrint);

/// See the module. Of each there is a host or somebody who is about to make one.
#[derive(Debug, Default)]
pub(super) struct Hosts(Mutex<HashMap<Name, Arc<Turn<Option<Host>>>>>);

#[derive(Debug)]
struct Host {
    party: Arc<Party>,
    /// When it acted last.
    acted: Arc<Mutex<Instant>>,
}

impl Hosts {
    /// How many there are, those included that are about to be.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn of(&self, name: &Name) -> Arc<Turn<Option<Host>>> {
        self.lock().entry(name.clone()).or_default().clone()
    }

    /// Nobody is this host any more, unless somebody is about to be.
    fn forget(&self, name: &Name) {
        let mut hosts = self.lock();
        let is_nobody = |host: &Arc<Turn<Option<Host>>>| {
            Arc::strong_count(host) == 1 && host.try_lock().is_ok_and(|host| host.is_none())
        };
        if hosts.get(name).is_some_and(is_nobody) {
            hosts.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Turn<Option<Host>>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Desk::host`].
pub(super) async fn host(desk: &Desk, call: Attach) -> Result<Hosted, Refusal> {
    let shown = desk.office.config.auth.identify(call.key.expose());
    let (Some(shown), Some(agent)) = (shown, call.identity.named()) else {
        return Err(Refusal::Mesh(Refused::NoKey));
    };
    let name: Name = (agent.into(), shown.key);
    let place = desk.hosts.of(&name);
    // One after the other: the second finds the first one attached.
    let mut host = place.lock().await;
    let visitor = seated(desk, &name, call, &mut host).await;
    let is_none = host.is_none();
    drop(host);
    drop(place);
    if is_none {
        desk.hosts.forget(&name);
    }
    visitor
}

async fn seated(
    desk: &Desk,
    name: &Name,
    call: Attach,
    host: &mut Option<Host>,
) -> Result<Hosted, Refusal> {
    let hub = &desk.office.hub;
    let there = |party| Ok(Hosted { visitor: Visitor::of(party), came: false });
    if let Some(connected) = hub.connected(&name.0, name.1) {
        return there(connected);
    }
    if let Some(host) = host.as_ref()
        && hub.lingers_on(host.party.caller()?)
    {
        *lock(&host.acted) = Instant::now();
        return there(host.party.clone());
    }
    let idle = call.linger.min(limits::LINGER_MAX);
    let party = desk.party(call).await?;
    let caller = party.caller()?.clone();
    // Before the mesh knows: a connection may take its place at once.
    let over = hub.lingers(&caller);
    backend::act_by_requests(&*desk.office.mesh, &caller).await;
    let acted = Arc::new(Mutex::new(Instant::now()));
    *host = Some(Host { party: party.clone(), acted: acted.clone() });
    let stay = Stay { name: name.clone(), caller, acted, idle };
    tokio::spawn(stay.until_it_ends(desk.clone(), over));
    Ok(Hosted { visitor: Visitor::of(party), came: true })
}

/// See [`Desk::attached`].
pub(super) fn attached(desk: &Desk, name: &Name) -> Option<Visitor> {
    if let Some(connected) = desk.office.hub.connected(&name.0, name.1) {
        return Some(Visitor::of(connected));
    }
    let place = desk.hosts.lock().get(name)?.clone();
    // Held: somebody is about to attach it, or to let it go.
    let host = place.try_lock().ok()?;
    let host = host.as_ref()?;
    if !desk.office.hub.lingers_on(host.party.caller().ok()?) {
        return None;
    }
    *lock(&host.acted) = Instant::now();
    Some(Visitor::of(host.party.clone()))
}

/// The time that an agent stays.
struct Stay {
    name: Name,
    caller: Caller,
    acted: Arc<Mutex<Instant>>,
    /// After its last act.
    idle: Duration,
}

impl Stay {
    async fn until_it_ends(self, desk: Desk, mut over: oneshot::Receiver<()>) {
        let let_go = loop {
            let left = self.idle.saturating_sub(lock(&self.acted).elapsed());
            match timeout(left, &mut over).await {
                // Without a value a connection has its place.
                Ok(ended) => break ended.is_ok(),
                Err(_) if lock(&self.acted).elapsed() < self.idle => {}
                Err(_) => break true,
            }
        };
        if let_go {
            desk.office.hub.lingers_no_longer(&self.caller);
            backend::detach(&*desk.office.mesh, &self.caller, &[]).await;
        }
        let place = desk.hosts.of(&self.name);
        let mut host = place.lock().await;
        if host.as_ref().is_some_and(|host| Arc::ptr_eq(&host.acted, &self.acted)) {
            *host = None;
        }
        drop(host);
        drop(place);
        desk.hosts.forget(&self.name);
    }
}

fn lock(acted: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    acted.lock().unwrap_or_else(PoisonError::into_inner)
}
