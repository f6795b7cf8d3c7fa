//! From a client's bytes to the mesh and back: transport (bytes and frames) × dialect (frames and calls) × session
//! (meaning).
//!
//! It never sees libp2p or redb: its questions to a node are in [`backend`]. It knows no dialect: these are packages of
//! their own, which see the [`seam`]. Its one contract: a client that has the reply to its join gets every message of
//! the room that is delivered from then on, once, in rising order of number, however slowly it reads; and memory stays
//! within [`limits`].
//!
//! The driver makes a [`Hub`], tells it of events ([`Hub::notify`], [`Hub::tell`]) and answers calls
//! ([`Reply::send`]), all on one thread and in the order of the engine's effects. [`Bridge`] serves the
//! listeners that it is given.
//!
//! In reading order: [`seam`] (calls, answers, events, refusals: all that a dialect sees of a node), [`dialect`] (how
//! one is recognised, and its parts), [`backend`] (all that the bridge sees of a node), [`config`], [`policy`] (what agents may send), `reply`,
//! [`session`] (the meaning of calls), [`delivery`] (routing and queues), [`read`] (calls of parties without a connection),
//! [`listen`] (listeners and connections), [`webhooks`] (messages that are posted), [`mails`] (how agents are told), `announcing` (what became of conversations, in rooms), [`secret`], [`tokens`] (what stands for a key), [`toolbox`] (tools that dialects lend to each other), [`replay`] (the past of a room, as a file), [`shown`] (the parts of it for members and for strangers), [`redact`] (texts for strangers), `counters`, [`ids`], [`limits`].

#![warn(missing_docs)]

mod announcer;
mod announcing;
pub mod backend;
pub mod checkup;
pub mod config;
mod counters;
pub mod delivery;
pub mod dialect;
pub mod figures;
pub mod ids;
pub mod limits;
pub mod listen;
pub mod log_tail;
pub mod mails;
pub mod node_settings;
pub mod policy;
pub mod read;
mod records;
pub mod redact;
pub mod replay;
mod reply;
pub mod schedules;
pub mod seam;
pub mod searching;
pub mod secret;
pub mod session;
pub mod shown;
pub mod tokens;
pub mod toolbox;
mod waking;
pub mod webhooks;

pub use announcing::Announcing;
pub use backend::{Mesh, Reads};
pub use config::Config;
pub use counters::{Counters, Transport};
pub use delivery::{bell::Hold, hub::Hub};
pub use listen::{
    http::{
        metrics::Metrics,
        tls::{Tls, TlsError, Validity},
    },
    serve::Bridge,
};
pub use reply::Reply;
pub use waking::{BadBody, Wake, WakeBody, Woken};
pub use webhooks::brought::BroughtWebhook;

#[cfg(any(test, feature = "testing"))]
#[allow(
    clippy::unwrap_used,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    missing_docs,
    missing_debug_implementations,
    reason = "for tests alone"
)]
pub mod testing;
