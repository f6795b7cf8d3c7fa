//! The program as people and scripts run it: its own process, against real nodes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod attach;
mod daemon;
mod files;
mod finder;
mod forked;
mod inbox;
mod interactive;
mod lantern;
mod mcp;
mod once;
mod operators;
mod running;
mod same;
mod streams;
mod stub;
mod support;
mod talk;
mod tls;
mod waiting;
