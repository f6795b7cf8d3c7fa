//! Daemons, and agents without a library.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Generous: several test runs share two cores. Nothing waits for it to pass.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon; killed if the test ends before it.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

/// `clawmeshd`, without anything that this machine's own node would have or want.
pub(crate) fn clawmeshd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clawmeshd"));
    command.args(arguments).stdin(Stdio::null()).env_clear();
    command
}

pub(crate) fn up_arguments<'a>(dir: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["up", "--data-dir", dir, "--json", "--no-socket"];
    for (flag, at) in
        [("--tcp", "127.0.0.1:0"), ("--http", "127.0.0.1:0"), ("--listen", "127.0.0.1:0")]
    {
        if !more.contains(&flag) {
            all.extend([flag, at]);
        }
    }
    all.extend(more);
    all
}

/// A node without a key.
pub(crate) fn up(dir: &Path, more: &[&str]) -> Daemon {
    up_keyed(dir, &[&["--no-auth"], more].concat())
}

pub(crate) fn up_keyed(dir: &Path, more: &[&str]) -> Daemon {
    up_logging_to(Stdio::inherit(), dir, more)
}

/// With somewhere else for its log.
pub(crate) fn up_logging_to(log: Stdio, dir: &Path, more: &[&str]) -> Daemon {
    start(&mut clawmeshd(&up_arguments(dir.to_str().unwrap(), more)), log)
}

/// A node without a key whose disk is full from the first moment on: no file may have so many bytes.
pub(crate) fn up_without_room(dir: &Path, bytes: u64) -> Daemon {
    start(&mut without_room(dir, bytes, &["--no-auth"]), Stdio::inherit())
}

pub(crate) fn start(command: &mut Command, log: Stdio) -> Daemon {
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("ready line: {line:?}"));
    Daemon { child, stdout, ready }
}

/// A start that is expected to fail: one line that says why, an exit code that says so.
pub(crate) fn refused(dir: &Path, more: &[&str]) -> String {
    refusal(&mut clawmeshd(&up_arguments(dir.to_str().unwrap(), more)))
}

/// The same for a node whose disk is full from the first moment on: no file may have so many bytes.
pub(crate) fn refused_without_room(dir: &Path, bytes: u64, more: &[&str]) -> String {
    refusal(&mut without_room(dir, bytes, more))
}

fn without_room(dir: &Path, bytes: u64, more: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={bytes}:unlimited")).arg(env!("CARGO_BIN_EXE_clawmeshd"));
    command.args(up_arguments(dir.to_str().unwrap(), more)).stdin(Stdio::null());
    // What `prlimit` itself is found by stays.
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path);
    command
}

pub(crate) fn refusal(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = ended(&mut child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// How a process ended; one that does not is killed.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Daemon {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("{name}: {}", self.ready))
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// SIGTERM: how long it took, after a clean exit that said nothing more.
    pub(crate) fn stop(mut self) -> Duration {
        let start = Instant::now();
        self.signal("-TERM");
        let status = ended(&mut self.child);
        let took = start.elapsed();
        assert_eq!(status.code(), Some(0));
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "one line and no more");
        took
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn status(&self) -> Value {
        let output = ask(&["status", "--json", "--data-dir", self.text("data_dir")]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn until_connected(&self) {
        until("connected", || {
            let peers = self.status()["peers"].clone();
            peers
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["connected"] == true && it["alive"] == true)
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended if the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a node stops within 3 s, as is promised. One that `took` longer, on a machine that stood
/// still, is not the last word: it is started and stopped again.
pub(crate) fn stops_soon(took: Duration, again: impl Fn() -> Daemon) -> bool {
    let soon = |took: Duration| took < Duration::from_secs(3);
    soon(took) || (0..3).any(|_| soon(again().stop()))
}

pub(crate) fn ask(arguments: &[&str]) -> Output {
    let output = clawmeshd(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

pub(crate) fn until(what: &str, is: impl FnMut() -> bool) {
    until_asking(what, Duration::from_millis(20), is);
}

/// As [`until`], where a node counts how often it is asked.
pub(crate) fn until_at_leisure(what: &str, is: impl FnMut() -> bool) {
    until_asking(what, Duration::from_millis(100), is);
}

fn until_asking(what: &str, every: Duration, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(every);
    }
}

/// An agent, as raw as can be.
pub(crate) struct Agent {
    pub(crate) read: BufReader<TcpStream>,
    pub(crate) calls: u64,
}

impl Agent {
    pub(crate) fn register(at: &str, key: &str) -> Result<Agent, String> {
        let mut agent = Agent::connect(at);
        agent.call("register", json!({"key": key, "name": "tester"})).map(|_| agent)
    }

    /// Whether there is no place for an agent with this key: it is refused, or hung up on, as one
    /// is that registers just when its key is revoked.
    pub(crate) fn is_kept_out(at: &str, key: &str) -> bool {
        let mut agent = Agent::connect(at);
        let reply = agent.ask("register", json!({"key": key, "name": "tester"}));
        reply.is_none_or(|it| it.is_err())
    }

    pub(crate) fn connect(at: &str) -> Agent {
        let socket = TcpStream::connect(at).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Agent { read: BufReader::new(socket), calls: 0 }
    }

    pub(crate) fn open(daemon: &Daemon) -> Agent {
        Agent::register(daemon.text("tcp"), "any").unwrap()
    }

    /// The reply's payload, or the code it was refused with. Events are passed over.
    pub(crate) fn call(&mut self, name: &str, payload: Value) -> Result<Value, String> {
        let code = |it: Value| it["code"].as_str().unwrap().to_owned();
        self.ask(name, payload).expect("it does not hang up").map_err(code)
    }

    /// The payload of a refusal.
    pub(crate) fn refused(&mut self, name: &str, payload: Value) -> Value {
        self.ask(name, payload).expect("it does not hang up").unwrap_err()
    }

    /// The same; `None`: the node hung up.
    fn ask(&mut self, name: &str, payload: Value) -> Option<Result<Value, Value>> {
        self.calls += 1;
        let id = self.calls.to_string();
        let line = json!({"id": id, "type": name, "payload": payload}).to_string() + "\n";
        self.read.get_mut().write_all(line.as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            if self.read.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let frame: Value = serde_json::from_str(&line).unwrap();
            if frame["reply_to"] == id {
                return Some(match frame["type"].as_str() {
                    Some("error") => Err(frame["payload"].clone()),
                    _ => Ok(frame["payload"].clone()),
                });
            }
        }
    }

    /// Whether the node has closed the connection. What it says meanwhile is passed over.
    pub(crate) fn is_hung_up(&mut self) -> bool {
        let socket = self.read.get_ref();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut line = String::new();
        match self.read.read_line(&mut line) {
            Ok(read) => read == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    pub(crate) fn say(&mut self, content: &str) -> u64 {
        self.call("join_room", json!({"room_id": "lobby"})).unwrap();
        let said = self.call("send_message", json!({"room_id": "lobby", "content": content}));
        said.unwrap()["seq"].as_u64().unwrap()
    }

    /// Numbers and contents of the lobby.
    pub(crate) fn lobby(&mut self) -> Vec<(u64, String)> {
        let page = json!({"room_id": "lobby", "since_seq": 0, "limit": 500});
        let page = self.call("get_history", page).unwrap();
        let message =
            |it: &Value| (it["seq"].as_u64().unwrap(), it["content"].as_str().unwrap().to_owned());
        page["messages"].as_array().unwrap().iter().map(message).collect()
    }
}

pub(crate) fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}
