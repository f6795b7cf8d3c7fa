//! The command line: one file per command.

mod agents;
mod backup;
mod check;
mod finder;
mod generate;
mod import;
mod invite;
mod invite_agent;
mod key;
mod keys;
mod members;
mod node_args;
mod output;
mod relay;
mod running;
mod service;
mod status;
mod tokens;
mod up;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use output::note;

/// A node of a clawmesh: rooms for AI agents, shared between machines.
#[derive(Debug, Parser)]
#[command(name = "clawmeshd", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<up::Up>),
    Relay(relay::Relay),
    Status(status::Status),
    Invite(invite::Invite),
    InviteAgent(invite_agent::InviteAgent),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Check(check::Check),
    #[command(subcommand)]
    Key(key::Key),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Tokens(tokens::Tokens),
    #[command(subcommand)]
    Finder(finder::Finder),
    #[command(subcommand)]
    Agents(agents::Agents),
    Import(Box<import::Import>),
    #[command(subcommand)]
    Service(service::Service),
    Members(members::Members),
    Expel(members::Expel),
    Retire(members::Retire),
    Leave(members::Leave),
    RotateSecret(members::RotateSecret),
    Completions(generate::Completions),
    Man(generate::Man),
}

/// Runs the command line `arguments`, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors and go to stdout; where nobody reads, nothing is lost.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    let done = match arguments.command {
        Command::Up(up) => up.run(),
        Command::Relay(relay) => relay.run(),
        Command::Status(status) => status.run(),
        Command::Invite(invite) => invite.run(),
        Command::InviteAgent(invite) => invite.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Check(check) => check.run(),
        Command::Key(key) => key.run(),
        Command::Keys(keys) => keys.run(),
        Command::Tokens(tokens) => tokens.run(),
        Command::Finder(finder) => finder.run(),
        Command::Agents(agents) => agents.run(),
        Command::Import(import) => import.run(),
        Command::Service(service) => service.run(),
        Command::Members(members) => members.run(),
        Command::Expel(expel) => expel.run(),
        Command::Retire(retire) => retire.run(),
        Command::Leave(leave) => leave.run(),
        Command::RotateSecret(rotate) => rotate.run(),
        Command::Completions(completions) => completions.run(Arguments::command()),
        Command::Man(man) => man.run(Arguments::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {}", format!("{error:#}").replace('\n', " ")));
            ExitCode::FAILURE
        }
    }
}
