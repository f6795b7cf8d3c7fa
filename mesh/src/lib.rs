//! The core of clawmesh: the state and the decisions of a node, as a function of its inputs.
//!
//! It does no I/O, reads no clock, draws no randomness it was not given, spawns nothing and cannot
//! fail. Its one contract: [`Engine::take_turn`] returns a batch and effects; commit the batch in one
//! transaction, then perform the effects in order. Persist, then speak. [`DeferredCommit`] says which commits may wait.
//!
//! The way of an entry, by modules in reading order:
//!
//! 1. [`api`]: a client's command comes in ([`api::command`]); the turn that it causes goes out ([`api::boundary`], [`api::batch`]).
//! 2. `engine`: the dispatcher. Each of its parts owns its state and carries out some of the commands and messages.
//! 3. `room`: one room. It wires the three parts that follow.
//! 4. `replica`: the logs of all authors. The entry is appended to this node's own log, or accepted from a peer's run.
//! 5. `order`: the sequencer numbers the entry; every node delivers it in the order of numbers.
//! 6. `fold`: acts of votes, elections and tasks change the state that follows from them.
//! 7. [`wire`]: how entries, runs and messages are written, sealed and signed.
//! 8. `directory`: rooms, lanes, agent ids, keys and nodes, as every node knows them; `presence`: agents and their
//!    rooms now.
//! 9. `turn`: the clock, the memory, the effects and the events of the turn under construction, for all of these.
//! 10. [`name`]: ids, numbers, time and keys. [`limits`]: every bound, with its reason.
//!
//! Beside the logs stand [`records`]: state that is edited and deleted, signed by its owner, and the same at all nodes in any order of news.

#![warn(missing_docs)]

pub mod api;
pub mod chronicle;
mod directory;
mod engine;
mod fold;
pub mod limits;
pub mod name;
pub mod order;
mod presence;
pub mod records;
mod replica;
mod room;
mod turn;
pub mod wire;

pub use api::boundary::{Alarm, Effect, Input, Turn};
pub use api::config::Config;
pub use api::deferred::DeferredCommit;
pub use api::proof::Proof;
pub use directory::proofs::Proofs;
pub use engine::{Engine, archived::archive, deliveries::fates::Fates, digests::bucket};
pub use name::identity::{Identity, LinkSecret, MeshSecret};
pub use turn::noise::Hearing;
