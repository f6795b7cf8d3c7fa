//! `clawmesh`: talk in the rooms of a node from a shell or a script.
//!
//! It speaks the ClawChat protocol through `client` and knows nothing of the mesh behind the node.
//! Each command returns an [`outcome::Outcome`] or a [`outcome::Failure`], and only [`output`] writes.
//!
//! From the top down, each knowing only those below: [`shell`] (runs commands in one connection),
//! [`command_line`] (the table of commands), [`commands`] (one file each), [`context`] (the connection,
//! rooms by name, the output) and [`operator`] (the node's control socket), [`args`] (arguments that
//! commands share), `person` (the agent that calls), `pages` (whole histories), `tools` (a node's tools over HTTP), `quoted` (texts of agents that a model may read), [`pick`] (which messages), [`mod@format`], [`table`] and `progress`, [`output`],
//! [`outcome`], [`mod@lantern`] (pure: the messages of [`commands::lantern`]), [`seq`] (numbers as people
//! write them), [`limits`].

pub mod args;
pub mod command_line;
pub mod commands;
pub mod context;
pub mod format;
pub mod lantern;
pub mod limits;
pub mod operator;
pub mod outcome;
pub mod output;
mod pages;
mod person;
pub mod pick;
mod progress;
mod quoted;
pub mod seq;
pub mod shell;
pub mod table;
mod tools;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::command_line::{Cli, Command};
use crate::commands::daemon;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;

/// Runs the command line and says how it went.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(args) = daemon::handed_over(&args) {
        return finish(Err(daemon::become_daemon(&args)));
    }
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let is_hook = has("inbox") && (has("--hook") || has("--hook=copilot"));
    match Cli::parse_from_args(args) {
        Ok(cli) => finish(execute(cli)),
        Err(usage) if is_hook => {
            // A variable that makes no sense is no matter of the host that runs the hook, and the text is for its author alone.
            let _ = usage.print();
            ExitCode::SUCCESS
        }
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
    let is_hook = matches!(&cli.command, Command::Inbox(inbox) if inbox.is_hook());
    let node = match cli.node.or_else(|name| std::env::var(name).ok()) {
        // A host takes any failure of a hook for a matter of its own.
        Err(_) if is_hook => return Ok(Outcome::Done),
        node => node?,
    };
    let cx = Context::new(node);
    runtime.block_on(async {
        if let Command::Shell(args) = cli.command {
            return shell::run(&cx, args).await;
        }
        cli.command.run(cx).await
    })
}

fn finish(result: Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(outcome) => outcome.exit_code(),
        // As `head` does when it has enough: no failure of ours.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            // Nobody is left to tell when even this cannot be written.
            let _ = Output::new(false).note(&format!("clawmesh: {failure}"));
            failure.exit_code()
        }
    }
}
