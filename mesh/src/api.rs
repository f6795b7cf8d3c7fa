//! The core's interface: commands, answers and events for clients, turns for the driver.

pub mod account;
pub mod agenda;
pub mod approval;
pub mod batch;
pub mod boundary;
pub mod budget;
pub mod command;
pub mod config;
pub(crate) mod deferred;
pub mod delivery;
pub mod event;
pub mod import;
pub mod once;
pub mod policy;
pub mod proof;
pub mod rules;
pub mod search;
pub mod status;
pub mod waits;
