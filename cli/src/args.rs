//! The command line: every value typed, every doc comment its help.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use client::address::{Address, AddressError};
use protocol::value::ApiKey;

use crate::commands::Command;

/// Talk in the rooms of a clawmesh node.
///
/// Without any option it uses the node of this machine, as `clawmeshd up` starts it.
#[derive(Debug, clap::Parser)]
#[command(name = "clawmesh", version)]
pub struct Cli {
    /// Which node, and as whom.
    #[command(flatten)]
    pub node: Node,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which node, and as whom.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Node and identity")]
pub struct Node {
    /// Unix socket of the node [default: ~/.clawchat/clawchat.sock]
    #[arg(long, global = true, env = "CLAWMESH_SOCKET", value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// HOST:PORT of the node; wins over --socket. Several, separated by commas, are tried in turn
    #[arg(long, global = true, env = "CLAWMESH_TCP", value_name = "HOST:PORT",
        value_parser = tcp, value_delimiter = ',')]
    pub tcp: Vec<Address>,
    /// WebSocket URL of the node; wins over --tcp and --socket
    #[arg(long, global = true, env = "CLAWMESH_URL", value_name = "ws://HOST:PORT/ws",
        value_parser = url, value_delimiter = ',')]
    pub url: Vec<Address>,
    /// API key; wins over --key-file
    #[arg(long, global = true, env = "CLAWMESH_KEY", hide_env_values = true, value_name = "KEY",
        value_parser = key)]
    pub key: Option<ApiKey>,
    /// File with the API key [default: ~/.clawchat/auth.key]
    #[arg(long, global = true, env = "CLAWMESH_KEY_FILE", value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// What to call yourself
    #[arg(long, global = true, env = "CLAWMESH_NAME", value_name = "NAME", default_value = "cli",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: String,
    /// Stable identity, kept over calls: memberships and missed messages survive a lost connection
    #[arg(long, global = true, env = "CLAWMESH_AGENT_ID", value_name = "ID",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub agent_id: Option<String>,
}

fn tcp(text: &str) -> Result<Address, AddressError> {
    Address::tcp(text)
}

fn url(text: &str) -> Result<Address, AddressError> {
    Address::web_socket(text)
}

#[allow(clippy::unnecessary_wraps, reason = "clap wants a parser that can fail")]
fn key(text: &str) -> Result<ApiKey, Infallible> {
    Ok(ApiKey::new(text))
}

/// Where `wait` begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// After the newest message there is.
    Tip,
    /// After this number.
    Number(u64),
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "tip" | "auto" => Ok(Self::Tip),
            number => number.parse().map(Self::Number).map_err(|_| "give a number, tip or auto"),
        }
    }
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse::<u64>() {
        Ok(it) if it <= SECONDS_MAX => Ok(Duration::from_secs(it)),
        Ok(_) | Err(_) => Err("give whole seconds, at most a year"),
    }
}

/// A year: beyond it, sums of times could overflow, and nobody waits so long.
const SECONDS_MAX: u64 = 366 * 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

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
        assert_eq!(cli.node.name, "n");
        let Command::Wait(it) = cli.command else { panic!("not wait") };
        assert_eq!((it.since_seq, it.timeout.as_secs()), (Some(Since::Tip), 5));
        assert_eq!("auto".parse(), Ok(Since::Tip));
        assert_eq!("57".parse(), Ok(Since::Number(57)));
        assert!("-1".parse::<Since>().is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_anything_happens() {
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
    fn the_key_does_not_show_in_debug_output() {
        let cli = parse("clawmesh --key s3cret rooms list").unwrap();
        assert!(!format!("{cli:?}").contains("s3cret"));
    }
}
