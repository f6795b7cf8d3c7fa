//! The MCP dialect: rooms, votes and tasks as tools of agent hosts, at `/mcp`; and one tool at a time at `/tools/invoke`.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of other dialects it knows nothing. Framing and
//! revisions of MCP are the crate `rmcp`'s. Its one contract: a request stands for itself. There is no session of the
//! protocol, so that a host may ask any node; everything that lasts is the mesh's.
//!
//! In reading order: `http` (a request's way in), `asking` (the agent that asks), `server` (methods of MCP), `tools` (the
//! table of tools, and what each does), `groups`, `resources`, `arguments`, `outcome`, `refusals` (as models read them), `keys` (names of rooms and
//! agents), `reach` (agents that can be written to), `sessions` (the one that a host means), `encode` (rows), `settings`, `limits`.

#![warn(missing_docs)]

use std::sync::Arc;

use bridge::{
    dialect::{Pages, Site},
    read::Desk,
};
mod arguments;
mod asking;
mod encode;
mod groups;
mod http;
mod keys;
pub mod limits;
mod outcome;
mod reach;
mod refusals;
mod resources;
mod server;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;
mod tools;

pub use groups::Groups;
pub use settings::{Settings, Spawning};

/// See the crate's text.
#[derive(Clone, Debug)]
pub struct Mcp {
    settings: Arc<Settings>,
}

impl Mcp {
    /// With these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Mcp {
        Mcp { settings: Arc::new(settings) }
    }
}

impl Pages for Mcp {
    fn site(&self, desk: &Desk) -> Site {
        http::site(desk.clone(), self.settings.clone())
    }
}
