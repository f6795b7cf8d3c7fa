//! The ClawChat dialect: frames to calls, answers and events to frames, refusals to codes, and its pages over HTTP.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and nothing else; of other dialects it knows nothing. It alone
//! names ClawChat's wire types ([`protocol`]). Its one contract: a client of a ClawChat server attaches unmodified.
//!
//! In reading order: `conversation` (requests: rooms and messages), `agenda` (votes, tasks and
//! subscriptions), `encode` (the mesh's views to wire types), `voice` (events to frames), `codes` (refusals to codes
//! and texts), `encrypted` (the mark of encrypted content), `http` (pages), `ids`, `limits`.

#![warn(missing_docs)]

use std::sync::{Arc, OnceLock};

use bridge::{
    Transport,
    delivery::ending::Ending,
    dialect::{Conversation, Dialect, First, Manners, Site},
    read::Desk,
    seam::event,
};
use mesh::name::id::RoomId;

mod agenda;
mod approvals;
mod codes;
mod conversation;
mod encode;
mod encrypted;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod http;
mod ids;
mod limits;
#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, reason = "a reply that is none is a failed test")]
#[cfg_attr(not(test), allow(dead_code, reason = "tests use the rest of it"))]
mod local;
mod once;
mod profile;
mod receipts;
mod replays;
mod rooms;
mod search;
mod streams;
mod tasks;
#[cfg(test)]
mod tests;
mod voice;

pub use codes::Refusals;
pub use encode::{agent, timestamp};

use conversation::Talk;
use voice::Voice;

/// See the crate's text.
#[derive(Debug)]
pub struct ClawChat {
    voice: Arc<Voice>,
    /// From when the node is there.
    desk: Arc<OnceLock<Desk>>,
    manners: Manners,
}

/// The bounds of a connection that the specification names (§1). A frame that is too large, or no text, ends as a breach of
/// policy.
pub const MANNERS: Manners = Manners {
    frame_bytes_max: protocol::limits::LINE_BYTES_MAX,
    attach_within: limits::REGISTER_WITHIN,
    silence: limits::SILENT_FOR_MAX,
    heartbeat: limits::HEARTBEAT_EVERY,
    pace: None,
    too_large: Ending::BadFrame,
    not_text: Ending::BadFrame,
};

impl ClawChat {
    /// Of a mesh whose lobby is this room, with [`MANNERS`].
    #[must_use]
    pub fn new(lobby: RoomId) -> ClawChat {
        ClawChat { voice: Arc::new(Voice::new(lobby)), desk: Arc::default(), manners: MANNERS }
    }

    /// Treats its clients otherwise.
    #[must_use]
    pub fn with_manners(self, manners: Manners) -> ClawChat {
        ClawChat { manners, ..self }
    }

    /// How often each code was given to clients of connections.
    #[must_use]
    pub fn refusals(&self) -> Arc<Refusals> {
        self.voice.refusals.clone()
    }
}

impl Dialect for ClawChat {
    fn open(&self, desk: &Desk) {
        self.desk.get_or_init(|| desk.clone());
    }

    /// It has all connections that no other dialect recognises.
    fn speaks(&self, _: Transport, _: &First) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn Conversation> {
        Box::new(Talk::new(self.voice.clone(), self.desk.clone(), self.manners))
    }

    fn manners(&self) -> Manners {
        self.manners
    }

    fn voice(&self) -> Arc<dyn event::Voice> {
        self.voice.clone()
    }

    fn site(&self, desk: &Desk) -> Option<Site> {
        Some(http::site(desk.clone(), self.voice.clone()))
    }
}
