//! The GoClaw dialect: programs of people ask for agents, write to them, and read their sessions, over `/ws`.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of other dialects it
//! knows nothing. Its one contract: a person is an agent of the mesh as any other, and a session is a thread in the direct room
//! of two agents. So agents of all dialects answer, and hosts of models see the same conversations. Nothing that was not done
//! is answered as done.
//!
//! In reading order: `socket` (a connection), `line` (the way of frames to it), `frame`, `connect` (who a client is; `pairing`:
//! clients without a key), `caller` (what it may do), `methods` (the table), `dispatch`, `system`, `agents`, `skills`, `chat`
//! (`runs`: requests until their end; `threads`: sessions in rooms), `sessions` (`facts`: what people say of them), `teams`
//! (`workspace`: their files), `profiles` (agents that people make), `keys` (of the mesh), `logs`, `usage`, `channels` (webhooks), `cron` (jobs), `names`, `params`, `answer`, `outcome` (refusals), `times`, `http` and `v1` (pages), `shared`, `settings`, `limits`.

#![warn(missing_docs)]

use std::sync::{Arc, OnceLock};

use bridge::{
    Transport,
    dialect::{Conversation, Dialect, First, Manners, Site},
    log_tail::LogTail,
    node_settings::NodeSettings,
    read::Desk,
    seam::event::{Mute, Voice},
};

use mesh::name::id::RoomId;

mod agents;
mod answer;
mod approvals;
mod caller;
mod channels;
mod chat;
mod config;
mod connect;
mod cron;
mod delegations;
mod dispatch;
mod facts;
mod files;
mod frame;
mod http;
mod keys;
pub mod limits;
mod line;
mod logs;
mod members;
mod methods;
mod names;
mod outcome;
mod pairing;
mod params;
mod pieces;
mod presence;
mod profiles;
mod records;
mod runs;
mod said;
mod serve;
mod sessions;
mod settings;
mod shared;
mod skills;
mod socket;
mod system;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;
mod threads;
mod times;
mod usage;
mod v1;
mod workspace;

pub use settings::{Events, Live, Settings};
use shared::Shared;

/// See the crate's text.
#[derive(Clone)]
pub struct GoClaw {
    lobby: RoomId,
    settings: Live,
    log: Option<Arc<LogTail>>,
    node: Option<Arc<dyn NodeSettings>>,
    /// From when the node is there.
    shared: Arc<OnceLock<Arc<Shared>>>,
    voice: Arc<Mute>,
}

impl std::fmt::Debug for GoClaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoClaw").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl GoClaw {
    /// Of the mesh with this lobby.
    #[must_use]
    pub fn new(lobby: RoomId, settings: Settings) -> GoClaw {
        let settings = Live::new(settings);
        let (log, node) = (None, None);
        GoClaw { lobby, settings, log, node, shared: Arc::default(), voice: Arc::new(Mute) }
    }
}

impl GoClaw {
    /// Its operator is shown this log.
    #[must_use]
    pub fn with_log(self, log: Option<Arc<LogTail>>) -> GoClaw {
        GoClaw { log, ..self }
    }
}

impl GoClaw {
    /// Its operator is shown the node's settings, and changes them.
    #[must_use]
    pub fn with_node(self, node: Option<Arc<dyn NodeSettings>>) -> GoClaw {
        GoClaw { node, ..self }
    }

    /// Its own settings, to be changed while it runs.
    #[must_use]
    pub fn live(&self) -> Live {
        self.settings.clone()
    }
}

impl Dialect for GoClaw {
    fn open(&self, desk: &Desk) {
        let shared = || {
            let mut shared = Shared::new(desk.clone(), self.lobby, self.settings.clone());
            shared.log.clone_from(&self.log);
            shared.node.clone_from(&self.node);
            Arc::new(shared)
        };
        self.shared.get_or_init(shared);
    }

    fn speaks(&self, transport: Transport, first: &First) -> bool {
        let is_frame = matches!(first.kind.as_deref(), Some("req" | "res" | "event"));
        transport == Transport::WebSocket && is_frame
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

    fn site(&self, _: &Desk) -> Option<Site> {
        self.settings.get().on.then(|| http::site(self.shared.clone()))
    }
}
