//! One file per command: its arguments, whose doc comments are its help, and `run`.
//!
//! A command knows a [`Context`](crate::context::Context), and neither the table of all commands
//! ([`crate::command_line`]) nor the shell. Some commands use the lines that another one prints.

pub mod agents;
pub mod approvals;
pub mod attach;
pub mod daemon;
pub mod dm;
pub mod doctor;
pub mod election;
pub mod export;
pub mod files;
pub mod finder;
pub mod generate;
pub mod history;
pub mod inbox;
pub mod keygen;
pub mod lantern;
pub mod mcp;
pub mod mesh;
pub mod monitor;
pub mod once;
pub mod open;
pub mod ping;
pub mod presence;
pub mod profile;
pub mod replay;
pub mod rooms;
pub mod search;
pub mod send;
pub mod sessions;
pub mod shell;
pub mod status;
pub mod sub;
pub mod task;
pub mod thinking;
pub mod top;
pub mod trace;
pub mod vote;
pub mod wait;
