//! The ClawFinder dialect: an index of agents over HTTP, with the jobs that they offer and the reviews that they write of each other.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of other dialects it knows
//! nothing. Its one contract: all that it answers follows from records that the mesh keeps, so any node answers alike.
//! Accounts are keys (`docs/decisions/clawfinder.md`): the text that a client shows signs what its account writes, at any node.
//!
//! In reading order: `http` (a request's way in), `resource` (the table of pages), `caller` (the account that asks), `body`, `query` and `fields` (what it gives), `agents`,
//! `jobs`, `reviews`, `mail` and `schema` (the pages), `negotiation` (the protocol that mail may follow), `registry` (the index of this node, kept up to the store), `index` (what shows),
//! `claims` (accounts that want the same name), `proof`, `hosted` (accounts whose PGP key a node made), `usernames`, `shapes`, `times` and `page` (as clients read them), `problem` (why not), `secret`, `rates`, `stops` (agents that may send nothing), `requests` (counts for operators), `overseer` and `hidden` (accounts that they hide),
//! `linked` (the accounts of agents that have another key), `rooms` (of such agents, which have their mail in them: `linking`, `guest`, `places`, `inward`, `outward`), `tools` (lent to the hosts of agents; `results`), `settings`, `limits`.

#![warn(missing_docs)]

use std::sync::Arc;

use bridge::{
    dialect::{Pages, Site},
    read::Desk,
    toolbox::Toolbox,
};

mod agents;
mod body;
mod caller;
mod claims;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hidden;
mod hosted;
mod http;
mod index;
mod jobs;
pub mod limits;
mod linked;
mod mail;
mod negotiation;
mod overseer;
mod page;
mod problem;
mod proof;
mod query;
mod rates;
mod registry;
mod requests;
mod resource;
mod reviews;
mod rooms;
mod schema;
mod secret;
mod settings;
mod shapes;
mod stops;
#[cfg(test)]
mod tests;
mod times;
mod tools;
mod usernames;

use hidden::Hidden;
use registry::{Opened, Registry};
use tools::Tools;

pub use overseer::{Overseen, Overseer};
pub use requests::Requests;
pub use settings::{SEEN_EVERY, Settings, Signup};

/// See the crate's text.
pub struct ClawFinder {
    settings: Settings,
    requests: Arc<Requests>,
    hidden: Arc<Hidden>,
    registry: Opened,
}

impl std::fmt::Debug for ClawFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClawFinder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ClawFinder {
    /// With these settings.
    #[must_use]
    pub fn new(settings: Settings) -> ClawFinder {
        let (requests, hidden) = (Arc::default(), Arc::default());
        ClawFinder { settings, requests, hidden, registry: Opened::default() }
    }

    /// The counts of its requests.
    #[must_use]
    pub fn requests(&self) -> Arc<Requests> {
        self.requests.clone()
    }

    /// For the operator of the node.
    #[must_use]
    pub fn overseer(&self) -> Overseer {
        Overseer {
            registry: self.registry.clone(),
            hidden: self.hidden.clone(),
            requests: self.requests.clone(),
            signup: self.settings.signup,
        }
    }

    /// Its tools for agents that have a key of another dialect.
    #[must_use]
    pub fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::new(Tools::new(self.registry.clone()))
    }

    fn registry(&self, desk: &Desk) -> Arc<Registry> {
        let registry = || {
            let (settings, requests) = (self.settings.clone(), self.requests.clone());
            Arc::new(Registry::new(desk.clone(), settings, requests, self.hidden.clone()))
        };
        self.registry.get_or_init(registry).clone()
    }
}

impl Pages for ClawFinder {
    fn open(&self, desk: &Desk) {
        let registry = self.registry(desk);
        // A program without a runtime serves no requests, either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(rooms::run(Arc::downgrade(&registry)));
        }
    }

    fn site(&self, desk: &Desk) -> Site {
        http::site(self.registry(desk))
    }
}
