//! Arguments that several commands share: every value typed, every doc comment its help.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use client::address::{Address, AddressError};
use client::secrets::Secret;
use protocol::value::ApiKey;

use crate::outcome::Failure;
use crate::seq::Seq;

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
    /// WebSocket or HTTPS URL of the node (for `sub create` before the command); wins over --tcp and --socket. Several, separated by
    /// commas, are tried in turn
    // Not global: `sub create` has a --url of its own. See `url_arg`.
    #[arg(long, env = "CLAWMESH_URL", value_name = "wss://HOST/ws",
        value_parser = url, value_delimiter = ',')]
    pub url: Vec<Address>,
    /// PEM file of the authorities that are trusted for wss:// and https://, instead of the system's
    #[arg(long, global = true, env = "CLAWMESH_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
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
    /// Your name in rooms [default: cli]
    #[arg(long, global = true, env = "CLAWMESH_NAME", value_name = "NAME",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// Stable identity of your choice, kept for ever [default: one for this user, host and --name, or terminal session]
    #[arg(long, global = true, env = "CLAWMESH_AGENT_ID", value_name = "ID",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub agent_id: Option<String>,
    /// Print results as JSON, one object per line: the payloads of the ClawChat protocol
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Which of these are on the command line itself.
    #[arg(skip)]
    pub typed: Typed,
}

/// Values that stand on the command line itself. One of a variable is meant for all commands, and not for this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Typed {
    /// `--name`.
    pub name: bool,
    /// `--agent-id`.
    pub agent_id: bool,
}

impl Node {
    /// The agent's name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("cli")
    }

    /// Fills missing arguments from the variables of ClawChat's own client.
    ///
    /// # Errors
    /// [`Failure::Variable`] if one is malformed.
    pub fn or_else(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Node, Failure> {
        let value = |suffix: &str| {
            let name = format!("CLAWCHAT_{suffix}");
            variable(&name).filter(|text| !text.is_empty()).map(|text| (name, text))
        };
        let list = |suffix, parse: fn(&str) -> Result<Address, AddressError>| {
            let Some((name, text)) = value(suffix) else { return Ok(Vec::new()) };
            let addresses: Result<_, AddressError> = text.split(',').map(parse).collect();
            addresses.map_err(|source| Failure::Variable { name, source })
        };
        // An explicit address excludes all others.
        if self.socket.is_empty() && self.tcp.is_empty() && self.url.is_empty() {
            self.url = list("URL", url)?;
            self.tcp = list("TCP", tcp)?;
            self.socket = value("SOCKET").map(|(_, path)| path.into()).into_iter().collect();
        }
        if self.key.is_none() && self.key_file.is_none() {
            self.key = value("KEY").map(|(_, key)| ApiKey::new(key));
            self.key_file = value("KEY_FILE").map(|(_, path)| path.into());
        }
        self.ca = self.ca.or(value("CA").map(|(_, path)| path.into()));
        self.room_key =
            self.room_key.or(value("ROOM_KEY").and_then(|(_, secret)| Secret::new(secret)));
        self.name = self.name.or(value("NAME").map(|(_, name)| name));
        self.agent_id = self.agent_id.or(value("AGENT_ID").map(|(_, id)| id));
        Ok(self)
    }
}

/// `--url` behind a command.
pub(crate) fn url_arg(id: &'static str) -> clap::Arg {
    clap::Arg::new(id)
        .long("url")
        .value_name("wss://HOST/ws")
        .value_parser(url)
        .value_delimiter(',')
        .action(clap::ArgAction::Append)
        .help("WebSocket URL of the node; wins over --tcp and --socket. Several, separated by commas, are tried in turn")
        .help_heading("Node and identity")
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
                .map(|seq| Self::Number(seq.0))
                .map_err(|_| "give a number, tip or auto"),
        }
    }
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse::<u64>() {
        Ok(seconds) if seconds <= SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err("give whole seconds, at most a year"),
    }
}

/// A year: beyond it, sums of times could overflow, and nobody waits so long.
const SECONDS_MAX: u64 = 366 * 24 * 60 * 60;
