//! The command line: options for all commands, and the table of the commands.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use client::address::Address;

use crate::args::{self, Node, Typed};
use crate::commands::{
    agents, approvals, attach, daemon, dm, doctor, election, export, files, finder, generate,
    history, inbox, keygen, lantern, mcp, mesh, monitor, once, open, ping, presence, profile,
    replay, rooms, search, send, sessions, shell, status, sub, task, thinking, top, trace, vote,
    wait,
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

/// The id of `--url` where it stands after a command. It cannot be a global argument as the others are: `sub create` has a
/// `--url` of its own, for the webhook.
const URL_AFTER: &str = "url_after";

impl Cli {
    /// The definition of the command line.
    pub fn definition() -> clap::Command {
        takes_url(Cli::command(), true)
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// A usage that makes no sense, or a text that was asked for.
    pub fn parse_from_args<I, T>(args: I) -> Result<Cli, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let matches = Cli::definition().try_get_matches_from(args)?;
        let mut cli = Cli::from_arg_matches(&matches)?;
        if let Some(url) = url_after(&matches) {
            cli.node.url = url;
        }
        let is_typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        cli.node.typed = Typed { name: is_typed("name"), agent_id: is_typed("agent_id") };
        Ok(cli)
    }
}

/// The same command, with a `--url` at all commands below it that have none.
fn takes_url(command: clap::Command, is_root: bool) -> clap::Command {
    let has_one = command.get_arguments().any(|arg| arg.get_long() == Some("url"));
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = if is_root || has_one { command } else { command.arg(args::url_arg(URL_AFTER)) };
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| takes_url(below, false))
    })
}

/// The addresses that stand after the command: the last ones, as of every flag that is given twice.
fn url_after(matches: &ArgMatches) -> Option<Vec<Address>> {
    let (_, below) = matches.subcommand()?;
    let here = below.try_get_many::<Address>(URL_AFTER).ok().flatten();
    url_after(below).or_else(|| here.map(|addresses| addresses.cloned().collect()))
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
    Files(files::Files),
    /// List the agents of the key
    Agents(agents::Agents),
    /// Say what you are doing
    Presence(presence::Presence),
    /// Profiles of agents
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Read the messages of a room
    History(history::History),
    Search(search::Search),
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
    Once(once::Once),
    AskApproval(approvals::AskApproval),
    Approvals(approvals::Approvals),
    Approve(approvals::Approve),
    Deny(approvals::Deny),
    Open(open::Open),
    /// Webhooks that are told of a room's messages
    #[command(subcommand)]
    Sub(sub::Sub),
    Finder(Box<finder::Finder>),
    #[command(subcommand)]
    Lantern(lantern::Lantern),
    /// Write a room's messages as a document
    Export(export::Export),
    Replay(replay::Replay),
    /// Make a room key for end-to-end encryption
    Keygen(keygen::Keygen),
    Shell(shell::Shell),
    /// The mesh, as the node of this machine sees it
    Mesh(mesh::Mesh),
    Doctor(doctor::Doctor),
    Ping(ping::Ping),
    Mcp(mcp::Mcp),
    Sessions(sessions::Sessions),
    Inbox(inbox::Inbox),
    Attach(attach::Attach),
    Detach(attach::Detach),
    Serve(daemon::Serve),
    #[command(subcommand)]
    Auth(daemon::Auth),
    InviteAgent(daemon::InviteAgent),
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
            Command::Files(args) => files::run(&cx, args).await,
            Command::Agents(args) => agents::run(&cx, args).await,
            Command::Presence(args) => presence::run(&cx, args).await,
            Command::Profile(args) => profile::run(&cx, args).await,
            Command::History(args) => history::run(cx, args).await,
            Command::Search(args) => search::run(&cx, args).await,
            Command::Wait(args) => wait::run(cx, args).await,
            Command::Trace(args) => trace::run(&cx, args).await,
            Command::Monitor(args) => monitor::run(&cx, args).await,
            Command::Status(args) => status::run(&cx, args).await,
            Command::Vote(args) => vote::run(&cx, args).await,
            Command::Election(args) => election::run(&cx, args).await,
            Command::Task(args) => task::run(&cx, args).await,
            Command::Once(args) => once::run(&cx, args).await,
            Command::AskApproval(args) => approvals::ask(&cx, args).await,
            Command::Approvals(args) => approvals::list(&cx, args).await,
            Command::Approve(args) => approvals::approve(&cx, args).await,
            Command::Deny(args) => approvals::deny(&cx, args).await,
            Command::Open(args) => open::run(&cx, args).await,
            Command::Sub(args) => sub::run(&cx, args).await,
            Command::Finder(args) => finder::run(&cx, *args).await,
            Command::Lantern(args) => lantern::run(&cx, args).await,
            Command::Export(args) => export::run(cx, args).await,
            Command::Replay(args) => replay::run(&cx, args).await,
            Command::Keygen(args) => keygen::run(&cx, args),
            Command::Shell(_) => Err(Failure::NotInShell),
            Command::Mesh(args) => mesh::run(&cx, args).await,
            Command::Doctor(args) => doctor::run(&cx, args).await,
            Command::Ping(args) => ping::run(&cx, args).await,
            Command::Mcp(args) => mcp::run(&cx, args).await,
            Command::Sessions(args) => sessions::run(&cx, args).await,
            Command::Inbox(args) => inbox::run(&cx, args).await,
            Command::Attach(args) => attach::run(&cx, args).await,
            Command::Detach(args) => attach::run_detach(&cx, &args),
            Command::Serve(_) | Command::Auth(_) | Command::InviteAgent(_) => {
                Err(Failure::NotFirst)
            }
            Command::Top(args) => top::run(&cx, args).await,
            Command::Completions(args) => generate::completions(&cx, args, Cli::definition()),
            Command::Man(args) => generate::man(&cx, args, Cli::definition()),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::args::Since;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::parse_from_args(line.split_whitespace())
    }

    #[test]
    fn the_table_of_commands_is_sound() {
        Cli::definition().debug_assert();
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

    /// Paths of all commands that run.
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let below: Vec<_> = command.get_subcommands().collect();
        if below.is_empty() {
            found.push(path.to_owned());
        }
        for below in below {
            leaves(below, &format!("{path} {}", below.get_name()), found);
        }
    }

    #[test]
    fn every_command_takes_the_flags_of_the_node_behind_it() {
        let definition = Cli::definition();
        let mut found = Vec::new();
        leaves(&definition, "clawmesh", &mut found);
        assert!(found.len() > 40, "{found:?}");
        let flags = [
            "--socket x",
            "--tcp h:1",
            "--url ws://h",
            "--key x",
            "--key-file x",
            "--room-key x",
            "--name x",
            "--agent-id x",
            "--json",
        ];
        for path in found {
            for flag in flags {
                let line = format!("{path} {flag}");
                // Other things may be missing.
                let unknown = |error: &clap::Error| {
                    matches!(
                        error.kind(),
                        clap::error::ErrorKind::UnknownArgument
                            | clap::error::ErrorKind::InvalidSubcommand
                    )
                };
                assert!(!parse(&line).is_err_and(|error| unknown(&error)), "{line}");
            }
        }
    }

    #[test]
    fn a_url_stands_before_or_after_the_command() {
        let at = |line: &str| parse(line).unwrap().node.url;
        let (a, b) =
            (Address::web_socket("ws://a/ws").unwrap(), Address::web_socket("ws://b").unwrap());
        let only_a = vec![a.clone()];
        assert_eq!(at("clawmesh --url ws://a/ws rooms list"), only_a);
        assert_eq!(at("clawmesh rooms list --url ws://a/ws,ws://b"), [a, b]);
        assert_eq!(at("clawmesh rooms --url ws://a/ws list"), only_a);
        assert_eq!(at("clawmesh --url ws://b rooms list --url ws://a/ws"), only_a);
        let create = "sub create lobby --url http://hook --secret s";
        let cli = parse(&format!("clawmesh --url ws://a/ws {create}")).unwrap();
        let Command::Sub(sub::Sub::Create(create)) = cli.command else { panic!("not create") };
        assert_eq!((cli.node.url, create.webhook_url.as_str()), (only_a, "http://hook"));
        assert!(parse("clawmesh rooms list --url x://node/ws").is_err());
    }

    #[test]
    fn a_name_says_whether_it_stands_on_the_command_line() {
        for (line, is_typed) in [
            ("clawmesh finder update --name x", true),
            ("clawmesh --name x finder update", true),
            ("clawmesh finder update", false),
        ] {
            assert_eq!(parse(line).unwrap().node.typed.name, is_typed, "{line}");
        }
        let line = "clawmesh finder register --username abc --agent-id x";
        assert!(parse(line).unwrap().node.typed.agent_id);
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
            "clawmesh --url ftp://node/ws rooms list",
            "clawmesh --name= rooms list",
            "clawmesh history lobby --since a --since-seq 1",
            "clawmesh ask-approval lobby",
            "clawmesh ask-approval lobby --timeout 0 -- x",
            "clawmesh deny x --change --withdraw",
            "clawmesh once lobby s",
            "clawmesh once lobby s true",
            "clawmesh once lobby s --lease 0 -- true",
            "clawmesh finder register --username ../x",
            "clawmesh finder me --as a/b",
            "clawmesh finder jobs --mine --agent bob",
            "clawmesh finder job create --title t",
            "clawmesh finder job create --title t --description d --metadata [1]",
            "clawmesh finder review create --reviewee r --job j --stars 6",
            "clawmesh finder mail send --to bob",
            "clawmesh finder negotiate ack --to bob --capabilities c --pricing p",
            "clawmesh finder negotiate execute --session s --to bob --attach https://h/x",
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
