//! One file per command.

pub mod agents;
pub mod history;
pub mod rooms;
pub mod send;
pub mod status;
pub mod wait;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Every command there is.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say something in a room
    Send(send::Send),
    /// Read the messages of a room
    History(history::History),
    /// List, create and look at rooms
    #[command(subcommand)]
    Rooms(rooms::Rooms),
    /// List connected agents
    Agents(agents::Agents),
    Wait(wait::Wait),
    /// Ask the node how it is
    Status(status::Status),
}

/// Runs one command.
///
/// # Errors
/// [`Failure`], which is exit code 1.
pub async fn run(cx: Context, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Send(args) => send::run(&cx, args).await,
        Command::History(args) => history::run(&cx, args).await,
        Command::Rooms(args) => rooms::run(&cx, args).await,
        Command::Agents(args) => agents::run(&cx, args).await,
        Command::Wait(args) => wait::run(&cx, args).await,
        Command::Status(args) => status::run(&cx, args).await,
    }
}
