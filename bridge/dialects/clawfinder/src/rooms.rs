//! Rooms of agents that have a ClawChat key and a linked account: mail of each correspondent is a conversation in a room of theirs.
//! The node that linked an account is its host: it alone writes mail into the rooms, and what the agent says there out as mail.
//!
//! The rooms say themselves how far they are: which mail is in them, and what was refused. What the agent says there goes out under
//! an id that is made of the message's, so nothing is sent twice, nor lost with a crash (`docs/decisions/clawfinder.md`).
//!
//! `linking` (an agent gets its account, and this node as its host), `guest` (an account, and the looks at it), `places` (its rooms),
//! `inward` (mail into them), `outward` (messages out of them).

mod guest;
mod inward;
pub(crate) mod linking;
mod outward;
mod places;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bridge::{
    read::Overheard,
    seam::{event::Event, refusal::Refusal},
};
use mesh::name::id::{AgentId, KeyPrint, RoomId};
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    time::sleep,
};

use crate::{
    limits::{HOSTED_MAX, LOOK_EVERY, ROOMS_LOOK_EVERY},
    registry::Registry,
};

use guest::{Guest, Woken};

/// Names of kept rows begin so; the print of the account follows.
const PREFIX: &[u8] = b"finder/";

/// The accounts that this node is host of.
#[derive(Default)]
pub(crate) struct Hosting {
    all: Mutex<BTreeMap<KeyPrint, Arc<Guest>>>,
    /// There is another one, or mail was sent here.
    stir: Notify,
}

impl Hosting {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<KeyPrint, Arc<Guest>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guests(&self) -> Vec<Arc<Guest>> {
        self.lock().values().cloned().collect()
    }

    /// Whether there is room for one more, or it is there.
    fn takes(&self, account: KeyPrint) -> bool {
        let all = self.lock();
        all.len() < HOSTED_MAX || all.contains_key(&account)
    }

    fn insert(&self, guest: Guest) {
        self.lock().insert(guest.caller.print, Arc::new(guest));
        self.stir.notify_one();
    }

    /// Forgets all that it knows, as a start does, and reads what is kept.
    #[cfg(test)]
    pub(crate) async fn begin_anew(&self, registry: &Registry) {
        let rows = registry.desk.kept(PREFIX.to_vec()).await.expect("a store");
        for guest in rows.iter().filter_map(|(_, row)| Guest::of_row(row)) {
            self.insert(guest);
        }
    }

    /// The agent whose mail is put into rooms here, and its key.
    pub(crate) fn agent_of(&self, account: KeyPrint) -> Option<(KeyPrint, AgentId)> {
        self.lock().get(&account).map(|guest| (guest.print, guest.agent.clone()))
    }

    fn has_agent(&self, agent: &str) -> bool {
        self.lock().values().any(|guest| *guest.agent == *agent)
    }
}

fn row_of(account: KeyPrint) -> Vec<u8> {
    [PREFIX, &account.0].concat()
}

/// Sees to all accounts that this node is host of. Ends with the node: while it waits it holds nothing
/// of that, or a store would not be closed in order.
pub(crate) async fn run(registry: Weak<Registry>) {
    let Some(hosting) = begin(&registry).await else { return };
    let mut heard = None;
    loop {
        if hosting.guests().is_empty() {
            // Nobody listens to the whole node for nothing.
            heard = None;
            hosting.stir.notified().await;
            continue;
        }
        let woken = match &mut heard {
            Some(heard) => wait(&hosting, heard).await,
            None => Woken::All,
        };
        let Some(registry) = registry.upgrade().filter(|_| !matches!(woken, Woken::Ended)) else {
            return;
        };
        heard.get_or_insert_with(|| registry.desk.overhear());
        if let Err(problem) = registry.refresh().await {
            tracing::debug!(why = problem.text(), "the index was not brought up to the store");
            continue;
        }
        for guest in hosting.guests() {
            guest.look(&registry, &woken).await;
        }
    }
}

/// The accounts that were kept here. `None`: the node ends.
async fn begin(registry: &Weak<Registry>) -> Option<Arc<Hosting>> {
    loop {
        let registry = registry.upgrade()?;
        match registry.desk.kept(PREFIX.to_vec()).await {
            Ok(rows) => {
                for guest in rows.iter().filter_map(|(_, row)| Guest::of_row(row)) {
                    registry.hosting.insert(guest);
                }
                return Some(Arc::clone(&registry.hosting));
            }
            Err(Refusal::Unknown) => return None,
            Err(_) => {
                drop(registry);
                sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// Waits until there may be something to do.
async fn wait(hosting: &Hosting, heard: &mut broadcast::Receiver<Arc<Overheard>>) -> Woken {
    let time = sleep(ROOMS_LOOK_EVERY);
    tokio::pin!(time);
    loop {
        let news = tokio::select! {
            () = hosting.stir.notified() => return Woken::All,
            () = &mut time => return Woken::Time,
            news = heard.recv() => news,
        };
        match news {
            Ok(overheard) => {
                if let Some((room, agent)) = said(&overheard)
                    && hosting.has_agent(&agent)
                {
                    return Woken::Said(room, agent);
                }
            }
            Err(RecvError::Lagged(_)) => return Woken::All,
            Err(RecvError::Closed) => return Woken::Ended,
        }
    }
}

/// The private room in which somebody has said something, and who.
fn said(overheard: &Overheard) -> Option<(RoomId, AgentId)> {
    let Event::Said(message) = &overheard.event else { return None };
    (!overheard.facts.is_public()).then(|| (overheard.room, message.said.agent.clone()))
}
