//! The MCP dialect: rooms, votes and tasks as tools of agent hosts, at `/mcp`; and one tool at a time at `/tools/invoke`.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of other dialects it knows nothing. Framing and
//! revisions of MCP are the crate `rmcp`'s. Its one contract: a request stands for itself. There is no session of the
//! protocol, so that a host may ask any node; everything that lasts is the mesh's, or named by an argument. A connection shows its key once.
//!
//! In reading order: `http` (a request's way in), `socket` (a connection's), `asking` (the agent that asks), `divided` (calls that wait), `server` (methods of MCP), `tools` (the
//! table of tools, and what each does; `rows`: as hosts are shown them, also those that another dialect lends), `tasks_extension` (calls whose end is asked for later; `tasks_kept`: as the node keeps them), `groups`, `grants` (what a credential allows), `resources`, `listen` (news of them), `events` (the extension; `event_hooks`: posts; `occurrence`: one), `prompts`, `arguments`, `outcome`, `refusals` (as models read them), `keys` (names of rooms and
//! agents), `reach` (agents that can be written to), `children` (tasks that agents have given to each other), `sessions` (the one that a host means), `encode` (rows), `calls` (counts), `settings`, `limits`.

#![warn(missing_docs)]

use std::sync::{Arc, OnceLock};

use bridge::{
    Transport,
    dialect::{Conversation, Dialect, First, Manners, Site},
    read::Desk,
    seam::event::{Mute, Voice},
    toolbox::Toolbox,
};

use asking::Shared;
use rows::Lent;
mod arguments;
mod asking;
mod calls;
mod children;
mod divided;
mod encode;
mod event_hooks;
mod events;
mod grants;
mod groups;
mod http;
mod keys;
pub mod limits;
mod listen;
mod occurrence;
mod outcome;
mod prompts;
mod reach;
mod refusals;
mod resources;
mod rows;
mod server;
mod sessions;
mod settings;
mod socket;
mod tasks_extension;
mod tasks_kept;
#[cfg(test)]
mod tests;
mod tools;

pub use calls::Calls;
pub use groups::Groups;
pub use settings::{Settings, SoftTimeout, Spawning};

/// See the crate's text.
#[derive(Clone)]
pub struct Mcp {
    settings: Arc<Settings>,
    calls: Arc<Calls>,
    lent: Arc<Lent>,
    /// From when the node is there.
    shared: Arc<OnceLock<Arc<Shared>>>,
    voice: Arc<Mute>,
}

impl std::fmt::Debug for Mcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mcp").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Mcp {
    /// With these settings, and with tools that another dialect lends: the group `finder`.
    #[must_use]
    pub fn new(settings: Settings, lent: Option<Arc<dyn Toolbox>>) -> Mcp {
        let lent = Arc::new(Lent::new(lent));
        let calls = Arc::new(Calls::of(tools::names(&lent)));
        let (settings, voice) = (Arc::new(settings), Arc::new(Mute));
        Mcp { settings, calls, lent, shared: Arc::default(), voice }
    }

    /// Counts of its calls.
    #[must_use]
    pub fn calls(&self) -> Arc<Calls> {
        self.calls.clone()
    }

    fn shared(&self, desk: &Desk) -> Arc<Shared> {
        let shared = || {
            let (settings, calls) = (self.settings.clone(), self.calls.clone());
            Arc::new(Shared::new(desk.clone(), settings, calls, self.lent.clone()))
        };
        self.shared.get_or_init(shared).clone()
    }
}

impl Dialect for Mcp {
    fn open(&self, desk: &Desk) {
        self.shared(desk);
    }

    fn speaks(&self, _: Transport, first: &First) -> bool {
        first.jsonrpc.as_deref() == Some("2.0")
    }

    fn begin(&self) -> Box<dyn Conversation> {
        Box::new(socket::Talk::new(self.shared.clone()))
    }

    fn manners(&self) -> Manners {
        socket::MANNERS
    }

    fn voice(&self) -> Arc<dyn Voice> {
        self.voice.clone()
    }

    fn site(&self, desk: &Desk) -> Option<Site> {
        Some(http::site(self.shared(desk)))
    }
}
