//! Real daemons, each in a namespace; they are asked over their Unix sockets, which are files and stand in none.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use protocol::operator::{Answer, Request, Status};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A node that says nothing for so long is stuck, however busy the machine is.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// More than is ever said here.
const HISTORY: u32 = 200;

pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) id: String,
    ticket: String,
    dir: TempDir,
    child: Child,
    up: bool,
    /// It has agents.
    talks: bool,
}

/// The own key of every node.
const VISITOR: &str = "76697369746f727376697369746f727376697369746f727376697369746f7273";
/// Signed by nobody whom anybody knows.
const CERTIFICATE: &[u8] = include_bytes!("../../../bridge/src/webhooks/testdata/cert.pem");
const KEY: &[u8] = include_bytes!("../../../bridge/src/webhooks/testdata/key.pem");

impl Node {
    /// Public nodes, which have no ticket from elsewhere, are told where to listen.
    pub(crate) fn start(space: String, name: &str, tickets: &[String]) -> Result<Node> {
        let dir = tempfile::tempdir()?;
        let binary = testnet::binary::fresh()?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &space]).arg(binary).args(["up", "--json", "--key-file"]);
        let key = dir.path().join("client.key");
        fs::write(&key, VISITOR)?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        command.arg(key);
        command.args(["--no-tcp", "--no-http", "--name", name, "--data-dir"]).arg(dir.path());
        command.arg("--socket").arg(dir.path().join("clients.sock"));
        command.args(["--listen", "0.0.0.0:9231"]);
        for ticket in tickets {
            command.args(["--join", ticket]);
        }
        Node::run(command, name, dir, true)
    }

    /// A relay, which is reached at this address of the web, too.
    pub(crate) fn start_relay(space: String, name: &str, ticket: &str, at: &str) -> Result<Node> {
        let dir = tempfile::tempdir()?;
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        fs::write(&certificate, CERTIFICATE)?;
        fs::write(&key, KEY)?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        let command = relay_command(&space, (name, at), dir.path(), Some(ticket))?;
        Node::run(command, name, dir, false)
    }

    /// A relay that was killed goes on where it was.
    pub(crate) fn restart_relay(&mut self, space: String, at: &str) -> Result<()> {
        let command = relay_command(&space, (&self.name, at), self.dir.path(), None)?;
        self.child = spawn(command, self.dir.path())?;
        self.up = true;
        self.until_ready()
    }

    fn run(command: Command, name: &str, dir: TempDir, talks: bool) -> Result<Node> {
        let child = spawn(command, dir.path())?;
        Ok(Node {
            name: name.to_owned(),
            id: String::new(),
            ticket: String::new(),
            dir,
            child,
            up: true,
            talks,
        })
    }

    pub(crate) fn ready(mut self) -> Result<Node> {
        self.until_ready()?;
        Ok(self)
    }

    fn until_ready(&mut self) -> Result<()> {
        let said = self.child.stdout.take().context("its output is read once")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).with_context(|| {
            let log = fs::read_to_string(self.dir.path().join("daemon.log")).unwrap_or_default();
            format!("{} is not ready: {log}", self.name)
        })?;
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        (self.id, self.ticket) = (text("node_id"), text("ticket"));
        Ok(())
    }

    pub(crate) fn ticket(&self) -> String {
        self.ticket.clone()
    }

    pub(crate) fn talks(&self) -> bool {
        self.talks
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        self.up = false;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn status(&self) -> Result<Box<Status>> {
        let mut answers = ask(&self.dir.path().join("control.sock"), &json!(Request::Status))?;
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let Answer::Status(status) = serde_json::from_str(&line)? else {
            bail!("{} answers {line}", self.name)
        };
        Ok(status)
    }

    /// A connection for an agent.
    pub(crate) fn client(&self) -> Result<UnixStream> {
        let stream = UnixStream::connect(self.dir.path().join("clients.sock"))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        Ok(stream)
    }

    /// A new key of the mesh.
    pub(crate) fn mint(&self) -> Result<String> {
        let mut command = Command::new(testnet::binary::fresh()?);
        command.args(["keys", "mint", "--tier", "pro", "--data-dir"]).arg(self.dir.path());
        let output = command.output()?;
        if !output.status.success() {
            bail!("{} mints no key: {}", self.name, String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// How many of its links are carried.
    pub(crate) fn carried(&self) -> Result<usize> {
        Ok(self.status()?.peers.iter().filter(|peer| peer.through.is_some()).count())
    }

    /// An agent says a word in the lobby.
    pub(crate) fn say(&self, text: &str) -> Result<()> {
        self.call("send_message", json!({ "room_id": "lobby", "content": text })).map(drop)
    }

    /// Those of these texts that it has, in the order of the lobby.
    pub(crate) fn heard(&self, wanted: &[String]) -> Result<Vec<String>> {
        let page = self.call("get_history", json!({ "room_id": "lobby", "limit": HISTORY }))?;
        let texts = page["messages"].as_array().into_iter().flatten();
        let texts = texts.filter_map(|message| message["content"].as_str()).map(str::to_owned);
        Ok(texts.filter(|text| wanted.contains(text)).collect())
    }

    /// An agent comes, joins the lobby, asks this, and goes.
    fn call(&self, kind: &str, payload: Value) -> Result<Value> {
        let socket = self.dir.path().join("clients.sock");
        let register = json!({ "key": VISITOR, "name": "visitor" });
        let steps =
            [("register", register), ("join_room", json!({ "room_id": "lobby" })), (kind, payload)];
        let mut answers: Option<BufReader<UnixStream>> = None;
        let mut last = Value::Null;
        for (kind, payload) in steps {
            let frame = json!({ "id": kind, "type": kind, "payload": payload });
            let reader = match &mut answers {
                Some(reader) => {
                    writeln!(reader.get_mut(), "{frame}")?;
                    reader
                }
                None => answers.insert(ask(&socket, &frame)?),
            };
            last = loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    bail!("{} has hung up at {kind}", self.name);
                }
                let frame: Value = serde_json::from_str(&line)?;
                if frame["reply_to"] == kind {
                    break frame;
                }
            };
            if last["type"] == "error" {
                bail!("{} refuses {kind}: {last}", self.name);
            }
        }
        Ok(last["payload"].take())
    }
}

fn spawn(mut command: Command, dir: &Path) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(dir.join("daemon.log"))?;
    Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?)
}

/// Without a ticket it goes on where it was.
fn relay_command(
    space: &str,
    (name, at): (&str, &str),
    dir: &Path,
    ticket: Option<&str>,
) -> Result<Command> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", space]).arg(testnet::binary::fresh()?).arg("relay");
    command.args(ticket).args(["--json", "--name", name, "--reached-at", at]);
    command.arg("--data-dir").arg(dir).args(["--listen-ws", "0.0.0.0:443"]);
    command.arg("--tls-cert").arg(dir.join("cert.pem"));
    command.arg("--tls-key").arg(dir.join("key.pem"));
    Ok(command)
}

/// Writes a line to a socket, and gives what comes.
fn ask(socket: &Path, line: &Value) -> Result<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    writeln!(stream, "{line}")?;
    Ok(BufReader::new(stream))
}

/// How a node is linked with another: `Some(None)` is directly.
pub(crate) fn direct_or_through(status: &Status, name: &str) -> Option<Option<String>> {
    let peer = status.peers.iter().find(|peer| peer.name.as_deref() == Some(name))?;
    peer.connected.then(|| peer.carried_by(&status.peers))
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.up {
            // It is a process of this program: nobody else waits for it.
            drop(self.kill());
        }
    }
}
