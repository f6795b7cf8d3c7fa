//! The core of clawmesh: what a node knows and decides, as a function of its inputs.
//!
//! It does no I/O, reads no clock, draws no randomness it was not given, spawns nothing and cannot
//! fail. Its one contract: [`Engine::take_turn`] returns a batch and effects; commit the batch in one
//! transaction, then perform the effects in order. Persist, then speak. [`Unsaid`] says which commits may wait.
//!
//! In reading order: names ([`id`], [`number`], [`time`]) and secrets ([`identity`]); what is written
//! ([`entry`], [`acts`], [`run`]) and said between nodes ([`message`]); what clients want ([`command`],
//! [`agenda`]), see ([`event`]) and operators see ([`status`]); what is brought from elsewhere
//! ([`import`]); what is kept ([`batch`]); bounds ([`limits`]).

#![warn(missing_docs)]

pub mod acts;
pub mod agenda;
mod barrier;
pub mod batch;
pub mod boundary;
pub mod command;
mod context;
mod directory;
mod elections;
mod engine;
pub mod entry;
pub mod event;
mod followers;
pub mod id;
pub mod identity;
pub mod import;
mod keys;
pub mod limits;
mod liveness;
mod log;
pub mod message;
mod noise;
pub mod number;
mod numbering;
mod partings;
mod pending;
pub mod pulse;
mod roamers;
mod room;
pub mod roster;
mod rosters;
pub mod run;
pub mod sealed;
mod sequencing;
pub mod served;
pub mod status;
mod sync;
mod tasks;
pub mod time;
mod unsaid;
mod votes;

pub use boundary::{Alarm, Effect, Input, Turn};
pub use engine::{Config, Engine, archive, bucket};
pub use identity::{Identity, LinkSecret, MeshSecret};
pub use noise::Hearing;
pub use unsaid::Unsaid;
