//! One file per command.

pub mod agents;
pub mod doctor;
pub mod election;
pub mod export;
pub mod generate;
pub mod history;
pub mod keygen;
pub mod lantern;
pub mod mesh;
pub mod monitor;
pub mod presence;
pub mod rooms;
pub mod send;
pub mod shell;
pub mod status;
pub mod sub;
pub mod task;
pub mod thinking;
pub mod top;
pub mod vote;
pub mod wait;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Every command there is.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say something in a room
    Send(send::Send),
    /// Think out loud in a room: in its history, nobody's `wait` wakes up
    Thinking(thinking::Thinking),
    /// List, create and look at rooms
    #[command(subcommand)]
    Rooms(rooms::Rooms),
    /// List connected agents
    Agents(agents::Agents),
    /// Say what you are doing
    Presence(presence::Presence),
    /// Read the messages of a room
    History(history::History),
    Wait(wait::Wait),
    /// Watch everything that happens
    Monitor(monitor::Monitor),
    /// Ask the node how it is
    Status(status::Status),
    /// Sealed votes
    #[command(subcommand)]
    Vote(vote::VoteCommand),
    /// Elect a leader; decide as the leader
    #[command(subcommand)]
    Election(election::ElectionCommand),
    /// Tasks of a room
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Webhooks that are told of a room's messages
    #[command(subcommand)]
    Sub(sub::Sub),
    #[command(subcommand)]
    Lantern(lantern::Lantern),
    /// Write a room's messages as a document
    Export(export::Export),
    /// Make a room key for end-to-end encryption
    Keygen(keygen::Keygen),
    Shell(shell::Shell),
    /// The mesh, as the node of this machine sees it
    Mesh(mesh::Mesh),
    Doctor(doctor::Doctor),
    Top(top::Top),
    Completions(generate::Completions),
    Man(generate::Man),
}

/// Runs one command.
///
/// # Errors
/// [`Failure`], which is exit code 1.
pub async fn run(cx: Context, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Send(args) => send::run(&cx, args).await,
        Command::Thinking(args) => thinking::run(&cx, args).await,
        Command::Rooms(args) => rooms::run(&cx, args).await,
        Command::Agents(args) => agents::run(&cx, args).await,
        Command::Presence(args) => presence::run(&cx, args).await,
        Command::History(args) => history::run(cx, args).await,
        Command::Wait(args) => wait::run(cx, args).await,
        Command::Monitor(args) => monitor::run(&cx, args).await,
        Command::Status(args) => status::run(&cx, args).await,
        Command::Vote(args) => vote::run(&cx, args).await,
        Command::Election(args) => election::run(&cx, args).await,
        Command::Task(args) => task::run(&cx, args).await,
        Command::Sub(args) => sub::run(&cx, args).await,
        Command::Lantern(args) => lantern::run(&cx, args).await,
        Command::Export(args) => export::run(cx, args).await,
        Command::Keygen(args) => keygen::run(&cx, args),
        Command::Shell(args) => shell::run(&cx, args).await,
        Command::Mesh(args) => mesh::run(&cx, args).await,
        Command::Doctor(args) => doctor::run(&cx, args).await,
        Command::Top(args) => top::run(&cx, args).await,
        Command::Completions(args) => generate::completions(&cx, args),
        Command::Man(args) => generate::man(&cx, args),
    }
}
