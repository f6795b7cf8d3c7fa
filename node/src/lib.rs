//! The daemon `clawmeshd`: it composes the core, the store, the network and the bridge into a node.
//!
//! It decides nothing about rooms; it owns files, sockets, threads and time. Its one contract: a
//! turn is durable before any of its effects is seen.
//!
//! In reading order: [`settings`], `files`, `chance`, [`ticket`], [`invitation`], `invitations`,
//! `guest`, `membership`, `secret` (the mesh, and its secret), [`joining`] (the fate of a start); `driver` (the engine's thread) with
//! `queue`, `fair`, `clock`, `full` and `ending`; to peers `outgoing`, `beacon` and `topics`, from
//! them `intake`, `remembered` and `clocks` (whose clocks differ); to clients `backend` and `listen`; `facing` (where to listen for other nodes) and `reach` (whether they reach this one); to operators `control`,
//! [`report`], `entry`, `keys`, `tokens`, `members`, `catching_up`, `backup` and `metrics`; `import`, from a
//! ClawChat server; [`start`] puts it together; `commands` is the command line, and `notify` tells
//! the service manager.

mod backend;
mod backup;
mod beacon;
mod catching_up;
mod certificate;
mod chance;
mod changeable;
mod checkup;
mod clock;
mod clocks;
mod commands;
mod control;
mod driver;
mod ending;
mod entry;
mod facing;
mod fair;
mod figures;
mod files;
mod full;
mod guest;
mod import;
mod indexer;
mod intake;
pub mod invitation;
mod invitations;
pub mod joining;
mod keys;
pub mod limits;
mod listen;
mod log_tail;
mod marks;
mod members;
mod membership;
mod metrics;
mod notify;
mod outgoing;
mod queue;
mod reach;
mod remembered;
pub mod report;
mod secret;
pub mod settings;
mod start;
mod telling;
pub mod ticket;
mod tokens;
mod topics;

pub use commands::run;
pub use settings::Settings;
pub use start::{Running, STOP_WITHIN, start};
