//! `clawmesh`: talk in the rooms of a node from a shell or a script.
//!
//! It speaks the ClawChat protocol through `client` and knows nothing of the mesh behind the node.
//! One file per command in [`commands`]; commands return an [`outcome::Outcome`] or a
//! [`outcome::Failure`], and only [`output`] writes. In reading order: [`args`], [`context`],
//! [`operator`] (the node's control socket), [`commands`], [`pick`] (which messages), [`mod@format`], [`table`], [`seq`] (numbers as people write them),
//! [`cursor`], [`mod@lantern`] (pure: what [`commands::lantern`] sends and reads), [`output`], [`outcome`],
//! [`limits`].

pub mod args;
pub mod commands;
pub mod context;
pub mod cursor;
pub mod format;
pub mod lantern;
pub mod limits;
pub mod operator;
pub mod outcome;
pub mod output;
pub mod pick;
mod progress;
pub mod seq;
pub mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;

/// Runs the command line and says how it went.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Cli::try_parse_from(args) {
        Ok(cli) => finish(execute(cli)),
        Err(usage) => {
            // Nobody is left to tell when even this cannot be written.
            let _ = usage.print();
            // Not clap's 2: scripts read that as an idle timeout.
            ExitCode::from(u8::from(usage.use_stderr()))
        }
    }
}

fn execute(cli: Cli) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::Runtime { source })?;
    let node = cli.node.or_else(|name| std::env::var(name).ok())?;
    runtime.block_on(commands::run(Context::new(node), cli.command))
}

fn finish(result: Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            // Nobody is left to tell when even this cannot be written.
            let _ = Output::new(false).note(&format!("clawmesh: {failure}"));
            failure.exit_code()
        }
    }
}
