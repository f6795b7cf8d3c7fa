//! The command line: options for all commands, and the table of the commands.

use clap::CommandFactory;

use crate::args::Node;
use crate::commands::{
    agents, dm, doctor, election, export, generate, history, keygen, lantern, mesh, monitor,
    presence, profile, rooms, send, shell, status, sub, task, thinking, top, trace, vote, wait,
};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Talk in the rooms of a clawmesh node.
///
/// Without any option it uses the node of this machine, as `clawmeshd up` starts it.
#[derive(Debug, clap::Parser)]
#[command(name = "clawmesh", version)]
pub struct Cli {
    /// Which node, and as whom.
    #[command(flatten)]
    pub node: Node,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command there is.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say something in a room
    Send(send::Send),
    Dm(dm::Dm),
    /// Think out loud in a room: in its history, nobody's `wait` wakes up
    Thinking(thinking::Thinking),
    /// List, create and look at rooms
    #[command(subcommand)]
    Rooms(rooms::Rooms),
    /// List the agents of the key
    Agents(agents::Agents),
    /// Say what you are doing
    Presence(presence::Presence),
    /// Profiles of agents
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Read the messages of a room
    History(history::History),
    Wait(wait::Wait),
    Trace(trace::Trace),
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

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// [`Failure`], which is exit code 1; [`Failure::NotInShell`] for the shell, which stands above the
    /// commands and runs them.
    pub async fn run(self, cx: Context) -> Result<Outcome, Failure> {
        match self {
            Command::Send(args) => send::run(&cx, args).await,
            Command::Dm(args) => dm::run(cx, args).await,
            Command::Thinking(args) => thinking::run(&cx, args).await,
            Command::Rooms(args) => rooms::run(&cx, args).await,
            Command::Agents(args) => agents::run(&cx, args).await,
            Command::Presence(args) => presence::run(&cx, args).await,
            Command::Profile(args) => profile::run(&cx, args).await,
            Command::History(args) => history::run(cx, args).await,
            Command::Wait(args) => wait::run(cx, args).await,
            Command::Trace(args) => trace::run(&cx, args).await,
            Command::Monitor(args) => monitor::run(&cx, args).await,
            Command::Status(args) => status::run(&cx, args).await,
            Command::Vote(args) => vote::run(&cx, args).await,
            Command::Election(args) => election::run(&cx, args).await,
            Command::Task(args) => task::run(&cx, args).await,
            Command::Sub(args) => sub::run(&cx, args).await,
            Command::Lantern(args) => lantern::run(&cx, args).await,
            Command::Export(args) => export::run(cx, args).await,
            Command::Keygen(args) => keygen::run(&cx, args),
            Command::Shell(_) => Err(Failure::NotInShell),
            Command::Mesh(args) => mesh::run(&cx, args).await,
            Command::Doctor(args) => doctor::run(&cx, args).await,
            Command::Top(args) => top::run(&cx, args).await,
            Command::Completions(args) => generate::completions(&cx, args, Cli::command()),
            Command::Man(args) => generate::man(&cx, args, Cli::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use client::address::Address;

    use super::*;
    use crate::args::Since;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_table_of_commands_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_arrive_typed() {
        let cli = parse("clawmesh wait lobby --since-seq tip --timeout 5 --tcp h:1,i:2 --name n");
        let cli = cli.unwrap();
        assert_eq!(cli.node.tcp, [Address::Tcp("h:1".into()), Address::Tcp("i:2".into())]);
        assert_eq!(cli.node.name(), "n");
        let Command::Wait(wait) = cli.command else { panic!("not wait") };
        assert_eq!((wait.since_seq, wait.timeout.as_secs()), (Some(Since::Tip), 5));
        assert_eq!("auto".parse(), Ok(Since::Tip));
        assert_eq!("57".parse(), Ok(Since::Number(57)));
        assert!("-1".parse::<Since>().is_err());
    }

    #[test]
    fn nonsense_is_refused_before_anything_happens() {
        for line in [
            "clawmesh",
            "clawmesh send lobby",
            "clawmesh send lobby x --end --kind fyi",
            "clawmesh wait lobby --since-seq now",
            "clawmesh wait lobby --timeout soon",
            "clawmesh --tcp nowhere rooms list",
            "clawmesh --url http://node/ws rooms list",
            "clawmesh --name= rooms list",
            "clawmesh history lobby --since a --since-seq 1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn variables_of_clawchat_count_where_nothing_else_was_said() {
        let variable = |name: &str| match name {
            "CLAWCHAT_TCP" => Some("h:1,i:2".to_owned()),
            "CLAWCHAT_KEY" => Some("theirs".to_owned()),
            "CLAWCHAT_NAME" => Some("they".to_owned()),
            _ => None,
        };
        let parsed = |line| parse(line).unwrap().node.or_else(variable).unwrap();
        let node = parsed("clawmesh rooms list");
        assert_eq!(node.tcp, [Address::Tcp("h:1".into()), Address::Tcp("i:2".into())]);
        assert_eq!((node.name(), node.key.as_ref().unwrap().expose()), ("they", "theirs"));
        let node = parsed("clawmesh rooms list --socket s --key-file f --name me");
        assert!(node.tcp.is_empty() && node.key.is_none());
        assert_eq!(node.name(), "me");
        let bad = parse("clawmesh rooms list").unwrap().node;
        let failure = bad.or_else(|name| (name == "CLAWCHAT_URL").then(|| "nowhere".to_owned()));
        assert!(failure.unwrap_err().to_string().contains("CLAWCHAT_URL"));
    }

    #[test]
    fn the_key_does_not_show_in_debug_output() {
        let cli = parse("clawmesh --key s3cret --room-key s3cret rooms list").unwrap();
        assert!(!format!("{cli:?}").contains("s3cret"));
    }
}
