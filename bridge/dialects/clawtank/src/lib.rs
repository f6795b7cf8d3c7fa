//! The ClawTank dialect: rooms, chat and tasks in one envelope of events, over `/ws`.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of other dialects it
//! knows nothing. Its one contract: whoever sends something that goes to a room is told of it once, as everybody is, when it
//! is durable. A person is an agent of the mesh as in other dialects of people. Nothing that was not done is confirmed.
//!
//! In reading order: `socket` (a connection), `envelope` and `fields` (frames, and what is in them), `connect` (who a client
//! is), `state` (what its requests have at hand), `agents`, `rooms`, `chat`, `tasks` (`grace`: of agents that are gone), `git`, `approvals`, `runs`, `extensions`, `http` (pages), `replay` (a room as a file), `spectators` (those who look on); `voice` (events to
//! frames; `said`: messages; `arrivals`: members that come and go), `style` and `ids` (how things are called), `names`
//! (people as agents), `problem` (refusals), `shared`, `shape` (tables of fields), `times`, `settings`, `limits`.

#![warn(missing_docs)]

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bridge::{
    Transport,
    dialect::{Annex, Conversation, Dialect, First, Manners, Site},
    read::Desk,
    seam::event,
    shown::Eyes,
};
use mesh::name::id::RoomId;

mod agents;
mod approvals;
mod arrivals;
mod bad_frames;
mod chat;
mod connect;
mod envelope;
mod extensions;
mod fields;
mod git;
mod grace;
mod http;
mod ids;
mod limits;
mod names;
mod newest;
mod problem;
mod replay;
mod rooms;
mod runs;
mod said;
mod settings;
mod shape;
mod shared;
mod socket;
mod spectators;
mod state;
mod style;
mod tasks;
#[cfg(test)]
mod tests;
mod times;
mod voice;

pub use ids::Form;
pub use settings::Settings;

use shared::Shared;
use style::Style;
use voice::{Voice, Voices};

/// See the crate's text.
#[derive(Clone)]
pub struct ClawTank {
    settings: Settings,
    /// Agents that went keep their tasks for so long.
    grace: Duration,
    voices: Voices,
    /// From when the node is there.
    shared: Arc<OnceLock<Arc<Shared>>>,
}

impl std::fmt::Debug for ClawTank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClawTank").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ClawTank {
    /// Of the mesh with this lobby.
    #[must_use]
    pub fn new(lobby: RoomId, settings: Settings) -> ClawTank {
        let voice = |form| Arc::new(Voice(Style { form, lobby, eyes: Eyes::Members }));
        let voices = Voices {
            prefixed: voice(Form::Prefixed),
            bare: voice(Form::Bare),
            usual: settings.ids,
        };
        let grace = Duration::from_secs(limits::GRACE_SECS);
        ClawTank { settings, grace, voices, shared: Arc::default() }
    }

    #[cfg(test)]
    fn with_grace(self, grace: Duration) -> ClawTank {
        ClawTank { grace, ..self }
    }
}

impl Dialect for ClawTank {
    fn open(&self, desk: &Desk) {
        let shared = || Arc::new(Shared::new(desk.clone(), self.settings.clone(), self.grace));
        self.shared.get_or_init(shared);
    }

    fn speaks(&self, transport: Transport, first: &First) -> bool {
        let is_kind = first.kind.as_deref().is_some_and(envelope::is_kind);
        transport == Transport::WebSocket && is_kind
    }

    fn begin(&self) -> Box<dyn Conversation> {
        Box::new(socket::Talk::new(self.shared.clone(), self.voices.clone()))
    }

    fn manners(&self) -> Manners {
        socket::MANNERS
    }

    fn voice(&self) -> Arc<dyn event::Voice> {
        self.voices.usual().clone()
    }

    fn site(&self, _: &Desk) -> Option<Site> {
        let style = self.voices.usual().0;
        self.settings.on.then(|| spectators::door::site(self.shared.clone(), style))
    }

    fn annex(&self, _: &Desk) -> Option<Annex> {
        self.settings.on.then(|| http::annex(self.shared.clone(), self.voices.usual().0))
    }
}
