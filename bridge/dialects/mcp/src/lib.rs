//! The MCP dialect: rooms, votes and tasks as tools of agent hosts, at `/mcp`; and one tool at a time at `/tools/invoke`.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and nothing else; of other dialects it knows nothing. Framing and
//! revisions of MCP are the crate `rmcp`'s. Its one contract: a request stands for itself. There is no session of the
//! protocol, so that a host may ask any node; everything that lasts is the mesh's.
//!
//! In reading order: `http` (a request's way in), `asking` (the agent that asks), `server` (methods of MCP), `tools` (the
//! table of tools, and what each does), `resources`, `arguments`, `outcome`, `refusals` (as models read them), `keys` (names of rooms and
//! agents), `encode` (rows), `limits`.

#![warn(missing_docs)]

use std::{sync::Arc, time::Duration};

use bridge::{
    dialect::{Pages, Site},
    read::Desk,
};
use mesh::name::id::RoomId;

mod arguments;
mod asking;
mod encode;
mod http;
mod keys;
pub mod limits;
mod outcome;
mod refusals;
mod resources;
mod server;
#[cfg(test)]
mod tests;
mod tools;

pub use tools::groups::Groups;

/// See the crate's text.
#[derive(Clone, Debug)]
pub struct Mcp {
    settings: Arc<Settings>,
}

/// Decisions of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The lobby of the mesh.
    pub lobby: RoomId,
    /// The tools of a host that asks for none by name.
    pub groups: Groups,
    /// An agent stays attached for so long after its last call.
    pub idle_detach: Duration,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(lobby: RoomId) -> Settings {
        Settings { lobby, groups: Groups::ALL, idle_detach: limits::IDLE_DETACH }
    }
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
