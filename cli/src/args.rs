//! The command line: every value typed, every doc comment its help.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use client::address::{Address, AddressError};
use client::secrets::Secret;
use protocol::value::ApiKey;

use crate::commands::Command;
use crate::outcome::Failure;
use crate::seq::Seq;

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

/// Which node, and as whom. Variables named `CLAWCHAT_…` count where those named `CLAWMESH_…` are not set.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Node and identity")]
pub struct Node {
    /// Unix socket of the node; repeatable: tried in turn [default: ~/.clawchat/clawchat.sock]
    #[arg(long, global = true, env = "CLAWMESH_SOCKET", value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// HOST:PORT of the node; wins over --socket. Several, separated by commas, are tried in turn
    #[arg(long, global = true, env = "CLAWMESH_TCP", value_name = "HOST:PORT",
        value_parser = tcp, value_delimiter = ',')]
    pub tcp: Vec<Address>,
    /// WebSocket URL of the node, before the command; wins over --tcp and --socket. Several, separated by
    /// commas, are tried in turn
    // Not global: `sub create` has a --url of its own.
    #[arg(long, env = "CLAWMESH_URL", value_name = "wss://HOST/ws",
        value_parser = url, value_delimiter = ',')]
    pub url: Vec<Address>,
    /// API key; wins over --key-file
    #[arg(long, global = true, env = "CLAWMESH_KEY", hide_env_values = true, value_name = "KEY",
        value_parser = key)]
    pub key: Option<ApiKey>,
    /// File with the API key [default: ~/.clawchat/auth.key]
    #[arg(long, global = true, env = "CLAWMESH_KEY_FILE", value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// Secret of the room: content is encrypted before it is sent, and decrypted when it comes
    #[arg(long, global = true, env = "CLAWMESH_ROOM_KEY", hide_env_values = true,
        value_name = "SECRET", value_parser = secret)]
    pub room_key: Option<Secret>,
    /// What to call yourself [default: cli]
    #[arg(long, global = true, env = "CLAWMESH_NAME", value_name = "NAME",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// Stable identity, kept over calls: memberships and missed messages survive a lost connection
    #[arg(long, global = true, env = "CLAWMESH_AGENT_ID", value_name = "ID",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub agent_id: Option<String>,
    /// Print results as JSON, one object per line: the payloads of the ClawChat protocol
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
}

impl Node {
    /// What to call oneself.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("cli")
    }

    /// Fills what was not given from the variables of ClawChat's own client.
    ///
    /// # Errors
    /// [`Failure::Variable`] if one makes no sense.
    pub fn or_else(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Node, Failure> {
        let value = |what: &str| {
            let name = format!("CLAWCHAT_{what}");
            variable(&name).filter(|it| !it.is_empty()).map(|it| (name, it))
        };
        let list = |what, parse: fn(&str) -> Result<Address, AddressError>| {
            let Some((name, text)) = value(what) else { return Ok(Vec::new()) };
            let addresses: Result<_, AddressError> = text.split(',').map(parse).collect();
            addresses.map_err(|source| Failure::Variable { name, source })
        };
        // Whoever says where one is does not want to be somewhere else.
        if self.socket.is_empty() && self.tcp.is_empty() && self.url.is_empty() {
            self.url = list("URL", url)?;
            self.tcp = list("TCP", tcp)?;
            self.socket = value("SOCKET").map(|(_, it)| it.into()).into_iter().collect();
        }
        if self.key.is_none() && self.key_file.is_none() {
            self.key = value("KEY").map(|(_, it)| ApiKey::new(it));
            self.key_file = value("KEY_FILE").map(|(_, it)| it.into());
        }
        self.room_key = self.room_key.or(value("ROOM_KEY").and_then(|(_, it)| Secret::new(it)));
        self.name = self.name.or(value("NAME").map(|(_, it)| it));
        self.agent_id = self.agent_id.or(value("AGENT_ID").map(|(_, it)| it));
        Ok(self)
    }
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

fn secret(text: &str) -> Result<Secret, &'static str> {
    Secret::new(text).ok_or("a room key is not empty; `clawmesh keygen` makes one")
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
            number => Seq::from_str(number)
                .map(|it| Self::Number(it.0))
                .map_err(|_| "give a number, tip or auto"),
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
        assert_eq!(cli.node.name(), "n");
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
    fn variables_of_clawchat_count_where_nothing_else_was_said() {
        let variable = |name: &str| match name {
            "CLAWCHAT_TCP" => Some("h:1,i:2".to_owned()),
            "CLAWCHAT_KEY" => Some("theirs".to_owned()),
            "CLAWCHAT_NAME" => Some("they".to_owned()),
            _ => None,
        };
        let node = |line| parse(line).unwrap().node.or_else(variable).unwrap();
        let it = node("clawmesh rooms list");
        assert_eq!(it.tcp, [Address::Tcp("h:1".into()), Address::Tcp("i:2".into())]);
        assert_eq!((it.name(), it.key.as_ref().unwrap().expose()), ("they", "theirs"));
        let it = node("clawmesh rooms list --socket s --key-file f --name me");
        assert!(it.tcp.is_empty() && it.key.is_none());
        assert_eq!(it.name(), "me");
        let bad = parse("clawmesh rooms list").unwrap().node;
        let failure = bad.or_else(|it| (it == "CLAWCHAT_URL").then(|| "nowhere".to_owned()));
        assert!(failure.unwrap_err().to_string().contains("CLAWCHAT_URL"));
    }

    #[test]
    fn the_key_does_not_show_in_debug_output() {
        let cli = parse("clawmesh --key s3cret --room-key s3cret rooms list").unwrap();
        assert!(!format!("{cli:?}").contains("s3cret"));
    }
}
