//! Requests of the node's operator, over the control socket in its data directory.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use client::address::{Address, WebSocketUrl};
use protocol::operator::{AgentMail, Answer, Attendee, Request, Status};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::args::Node;
use crate::context::home;
use crate::outcome::Failure;

/// A node answers at once, or is stuck.
const PATIENCE: Duration = Duration::from_secs(5);
/// A report about 100,000 rooms is smaller.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Whose node it is about.
#[derive(Debug, Clone, clap::Args)]
pub struct Operator {
    /// Data directory of a node on this machine [default: ~/.clawmesh]
    #[arg(long, global = true, env = "CLAWMESH_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl Operator {
    /// The node's data directory.
    ///
    /// # Errors
    /// [`Failure::NoHome`].
    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        match &self.data_dir {
            Some(path) => Ok(path.clone()),
            None => Ok(home()?.join(".clawmesh")),
        }
    }

    /// Where the node answers over HTTP: at the URL that is given, or where the node of the directory says so. Nothing is
    /// guessed: a key goes there.
    ///
    /// # Errors
    /// [`Failure::NoHome`].
    pub(crate) fn web(&self, node: &Node) -> Result<Option<WebSocketUrl>, Failure> {
        let given = node.url.iter().find_map(|at| match at {
            Address::WebSocket(url) => Some(url.clone()),
            Address::Unix(_) | Address::Tcp(_) => None,
        });
        let elsewhere = !(node.tcp.is_empty() && node.socket.is_empty());
        if given.is_some() || (elsewhere && self.data_dir.is_none()) {
            return Ok(given);
        }
        let Some(at) = self.http()? else { return Ok(None) };
        // `http` is `ws` here, and `https` is `wss`.
        match Address::web_socket(&at.replacen("http", "ws", 1)) {
            Ok(Address::WebSocket(url)) => Ok(Some(url)),
            Ok(Address::Unix(_) | Address::Tcp(_)) | Err(_) => Ok(None),
        }
    }

    /// Asks the running node.
    ///
    /// # Errors
    /// [`Failure::NotRunning`], [`Failure::File`] if it is not the user's own, [`Failure::Operator`] if the node
    /// refuses.
    pub async fn ask(&self, request: &Request) -> Result<Answer, Failure> {
        let dir = self.data_dir()?;
        let socket = control_socket(&dir)?;
        let answer = timeout(PATIENCE, exchange(&socket, request)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match answer {
            Ok(Answer::Error(why)) => Err(Failure::Operator { why }),
            Ok(answer) => Ok(answer),
            // The file outlives a node that was killed.
            Err(source)
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Err(Failure::NotRunning { dir })
            }
            Err(source) => Err(Failure::File { path: socket, source }),
        }
    }

    /// Where clients reach the node that is named by its directory, with its key: for a command that is about that
    /// node, unless its caller names an address. `node` as it was given, if no directory is named or no node runs there.
    ///
    /// # Errors
    /// [`Failure::File`] if the description of the node cannot be read.
    pub fn clients_way(&self, node: &Node) -> Result<Node, Failure> {
        let mut node = node.clone();
        let names_one = !(node.socket.is_empty() && node.tcp.is_empty() && node.url.is_empty());
        let Some(dir) = self.data_dir.as_ref().filter(|_| !names_one) else { return Ok(node) };
        let Some(run) = description(dir)? else { return Ok(node) };
        match (run.socket, run.tcp.and_then(|at| Address::tcp(&at).ok())) {
            (Some(socket), _) => node.socket.push(socket),
            (None, Some(tcp)) => node.tcp.push(tcp),
            (None, None) => {}
        }
        if node.key.is_none() && node.key_file.is_none() {
            node.key_file = run.key_file;
        }
        Ok(node)
    }

    /// The URL at which the node of the directory answers over HTTP, if one runs there.
    ///
    /// # Errors
    /// [`Failure::File`] if the description of the node cannot be read, [`Failure::NoHome`].
    pub fn http(&self) -> Result<Option<String>, Failure> {
        Ok(description(&self.data_dir()?)?.and_then(|run| run.http))
    }

    /// Why the node of a directory that is named has no tools: it does not run, or not over HTTP. `None`: none is named.
    pub(crate) fn no_tools(&self, node: &Node) -> Option<Failure> {
        let dir = self.data_dir.as_ref().filter(|_| node.url.is_empty())?;
        let is_without = matches!(description(dir), Ok(Some(Run { http: None, .. })));
        let dir = dir.clone();
        Some(if is_without { Failure::NoHttp { dir } } else { Failure::NotRunning { dir } })
    }

    /// All agents of the node, of every key.
    ///
    /// # Errors
    /// As [`Operator::ask`].
    pub async fn agents(&self) -> Result<Vec<Attendee>, Failure> {
        let Answer::Agents(agents) = self.ask(&Request::Agents).await? else {
            return Err(Failure::strange());
        };
        Ok(agents)
    }

    /// How agents of the node are told that something waits for them.
    ///
    /// # Errors
    /// As [`Operator::ask`].
    pub async fn mail(&self) -> Result<Vec<AgentMail>, Failure> {
        let Answer::Mail(mails) = self.ask(&Request::Mail).await? else {
            return Err(Failure::strange());
        };
        Ok(mails)
    }

    /// How the node and its mesh are.
    ///
    /// # Errors
    /// As [`Operator::ask`].
    pub async fn status(&self) -> Result<Box<Status>, Failure> {
        let Answer::Status(status) = self.ask(&Request::Status).await? else {
            return Err(Failure::strange());
        };
        Ok(status)
    }
}

/// The description of the node that runs on a directory, as far as it is of use here.
#[derive(Debug, serde::Deserialize)]
struct Run {
    control: PathBuf,
    key_file: Option<PathBuf>,
    #[serde(default)]
    socket: Option<PathBuf>,
    #[serde(default)]
    tcp: Option<String>,
    #[serde(default)]
    http: Option<String>,
}

/// `None`: there is none. A node whose disk was full at its start has no room for it.
fn description(dir: &std::path::Path) -> Result<Option<Run>, Failure> {
    let path = dir.join("run.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::File { path, source }),
    };
    let run = serde_json::from_str(&text);
    run.map(Some).map_err(|error| Failure::File { path, source: io::Error::other(error) })
}

/// Where the node of a directory listens. Nobody may.
fn control_socket(dir: &std::path::Path) -> Result<PathBuf, Failure> {
    Ok(description(dir)?.map_or_else(|| dir.join("control.sock"), |run| run.control))
}

async fn exchange(socket: &std::path::Path, request: &Request) -> io::Result<Answer> {
    let (read, mut write) = UnixStream::connect(socket).await?.into_split();
    let line = serde_json::to_string(request)?;
    write.write_all(format!("{line}\n").as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(read.take(ANSWER_BYTES_MAX)).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}
