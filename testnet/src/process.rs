//! Real daemons on this machine: started, joined, killed, started again.
//!
//! Every port is free when a daemon first asks for one (0) and is asked for again when it is restarted,
//! as an operator's would be. A daemon's log goes to a file in its data directory, and its end is
//! part of the error when the daemon does not do what it should. A daemon that is dropped is killed.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::TempDir;
use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{
    binary::BinaryError,
    proc,
    scenario::clocks::Clock,
    wire::{Agent, WireError},
};

/// How long a daemon may take to be ready: it answers within a second, but machines that run tests are
/// busy.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a daemon may take to stop. It promises 3 s; tests of that look at [`Stopped::took`].
const STOPPED_WITHIN: Duration = Duration::from_secs(60);
/// How long nodes may take to know each other.
const JOINED_WITHIN: Duration = Duration::from_secs(60);
/// How long somebody else may have a port that a daemon had: another test was given it, or a connection that
/// went out.
const PORTS_FREE_WITHIN: Duration = Duration::from_secs(20);
/// A daemon's words then, and in how many of its last lines.
const PORTS_TAKEN: [&str; 2] =
    ["the port is in use", "choose another address or stop what uses it"];
const LAST_WORDS: usize = 4;
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of a log is shown when something fails.
const LOG_SHOWN_BYTES: usize = 6_000;
/// The log of a daemon, in its data directory.
const LOG: &str = "daemon.log";

/// A daemon did not do what it should.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// There is none to run.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The system refuses.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempt.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// It ended, or said something else than that it is ready.
    #[error("{name} {what}; its log ends with:\n{log}")]
    Daemon {
        /// Which one.
        name: String,
        /// Its misbehaviour.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// An agent that looked whether nodes see each other got no answer.
    #[error("cannot see whether the nodes know each other: {0}")]
    Look(#[from] WireError),
    /// The nodes do not find each other.
    #[error("the nodes do not know each other after {0:?}")]
    Strangers(Duration),
}

type Result<T> = std::result::Result<T, ProcessError>;

impl ProcessError {
    /// Whether a daemon could not have its ports again: somebody else was given one meanwhile.
    fn is_of_ports(&self) -> bool {
        let ProcessError::Daemon { log, .. } = self else { return false };
        let last = log.trim_end().rsplit('\n').take(LAST_WORDS).collect::<String>();
        PORTS_TAKEN.iter().any(|text| last.contains(text))
    }
}

/// How to start a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub binary: PathBuf,
    /// Where it keeps everything.
    pub data_dir: PathBuf,
    /// Its name for people.
    pub name: String,
    /// The file of the key that agents need; `None`: they need none.
    pub key_file: Option<PathBuf>,
    /// Invitations.
    pub join: Vec<String>,
    /// Further flags of `clawmeshd up`.
    pub flags: Vec<String>,
    /// Whether nodes get a Ctrl-C at this terminal.
    pub terminal: Terminal,
    /// A wall clock of its own; `None`: the machine's.
    pub clock: Option<Clock>,
}

/// Whether nodes get a Ctrl-C at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// This program and its daemons: none is left when a test run is broken off.
    Shared,
    /// This program only, which ends its daemons in order.
    Mine,
}

/// The line of a daemon that is ready.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Ready {
    /// The node's id.
    pub node_id: String,
    /// Its name for people.
    pub name: String,
    /// The mesh it is in.
    pub mesh_id: String,
    /// Where it keeps everything.
    pub data_dir: PathBuf,
    /// The clients' Unix socket.
    pub socket: Option<PathBuf>,
    /// `HOST:PORT` for clients.
    pub tcp: Option<String>,
    /// `HOST:PORT` for HTTP and WebSocket.
    pub http: Option<String>,
    /// `HOST:PORT`s for other nodes.
    pub listen: Vec<String>,
    /// The invitation to its mesh: a secret.
    pub ticket: String,
}

/// How a daemon stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// Its exit code or the signal that ended it.
    pub status: ExitStatus,
    /// From the signal to its end.
    pub took: Duration,
}

/// A daemon, running or not.
#[derive(Debug)]
pub struct Daemon {
    options: Options,
    ready: Ready,
    child: Option<Child>,
}

impl Daemon {
    /// Starts one and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It does not start, or says something else than that it is ready.
    pub async fn start(options: Options) -> Result<Daemon> {
        let (child, ready) = launch(&options, None).await?;
        Ok(Daemon { options, ready, child: Some(child) })
    }

    /// Its line when it was last ready.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Its `HOST:PORT` for agents.
    #[must_use]
    pub fn tcp(&self) -> &str {
        self.ready.tcp.as_deref().unwrap_or_default()
    }

    /// Its `HOST:PORT` for HTTP.
    #[must_use]
    pub fn http(&self) -> &str {
        self.ready.http.as_deref().unwrap_or_default()
    }

    /// Ends it with SIGKILL, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub async fn kill9(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = child.id();
        child.kill().await.map_err(system(format!("kill {}", self.options.name)))?;
        if self.options.clock.is_some() {
            pid.into_iter().for_each(Clock::forget);
        }
        Ok(())
    }

    /// Ends it with SIGTERM, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It does not run, or goes on running.
    pub async fn stop(&mut self) -> Result<Stopped> {
        let began = Instant::now();
        let Some(mut child) = self.child.take() else {
            return Err(self.options.failed("does not run"));
        };
        let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let pid = pid.ok_or_else(|| self.options.failed("has ended by itself"))?;
        kill_process(pid, Signal::TERM)
            .map_err(|error| system(format!("stop {}", self.options.name))(error.into()))?;
        match timeout(STOPPED_WITHIN, child.wait()).await {
            Ok(Ok(status)) => Ok(Stopped { status, took: began.elapsed() }),
            Ok(Err(source)) => Err(system(format!("wait for {}", self.options.name))(source)),
            Err(_) => Err(self.options.failed("goes on after SIGTERM")),
        }
    }

    /// Starts it again on the same data and the same addresses, after a kill if it runs.
    ///
    /// # Errors
    ///
    /// As [`Daemon::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.kill9().await?;
        let until = Instant::now() + PORTS_FREE_WITHIN;
        let (child, ready) = loop {
            match launch(&self.options, Some(&self.ready)).await {
                Err(error) if error.is_of_ports() && Instant::now() < until => {
                    sleep(LOOK_EVERY).await;
                }
                launched => break launched?,
            }
        };
        (self.child, self.ready) = (Some(child), ready);
        Ok(())
    }

    /// Restarts it with this invitation instead of those it had.
    ///
    /// # Errors
    ///
    /// As [`Daemon::start`]; the node refuses a ticket of another mesh.
    pub async fn restart_joining(&mut self, ticket: &str) -> Result<()> {
        self.options.join = vec![ticket.to_owned()];
        self.restart().await
    }

    /// Its next start is with this program.
    pub fn set_binary(&mut self, binary: &Path) {
        self.options.binary = binary.to_owned();
    }

    /// Stops it where it stands (SIGSTOP), or lets it go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// It does not run, or the system refuses.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::STOP } else { Signal::CONT };
        let pid = self.child.as_ref().and_then(Child::id);
        let pid = pid.and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let pid = pid.ok_or_else(|| self.options.failed("does not run"))?;
        kill_process(pid, signal)
            .map_err(|error| system(format!("signal {}", self.options.name))(error.into()))
    }

    /// No file of its may have more than so many bytes from now on: to it that is a full disk. `None`: any.
    ///
    /// # Errors
    ///
    /// It does not run, or the system refuses.
    pub fn limit_files(&self, bytes: Option<u64>) -> Result<()> {
        let pid = self.child.as_ref().and_then(Child::id);
        let pid = pid.and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let pid = pid.ok_or_else(|| self.options.failed("does not run"))?;
        limit_files(pid, bytes).map_err(|error| {
            system(format!("limit the files of {}", self.options.name))(error.into())
        })
    }

    /// The most memory that it had since its start, in bytes, where the system tells.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        proc::resident_most(self.pid()?).ok()
    }

    /// Its process, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Whether it has been started and has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The document of `clawmeshd status --json`.
    ///
    /// # Errors
    ///
    /// Any other output.
    pub async fn status(&self) -> Result<serde_json::Value> {
        let mut command = Command::new(&self.options.binary);
        command.args(["status", "--json", "--data-dir"]).arg(&self.options.data_dir);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(system("run clawmeshd status".to_owned()))?;
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let why = String::from_utf8_lossy(&output.stderr);
            self.options.failed(&format!("says no status: {}", why.trim()))
        })
    }

    /// The text of `clawmeshd status`, for people.
    ///
    /// # Errors
    ///
    /// Any other output.
    pub async fn status_text(&self) -> Result<String> {
        let mut command = Command::new(&self.options.binary);
        command.args(["status", "--data-dir"]).arg(&self.options.data_dir);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(system("run clawmeshd status".to_owned()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(self.options.failed(&format!("says no status: {}", why.trim())))
    }

    /// An invitation that leads to it by way of this `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// The ticket of `clawmeshd invite`.
    pub async fn invite_at(&self, address: &str) -> Result<String> {
        self.prints(&["invite", "--at", address], "invites nobody").await
    }

    /// A key of its mesh, for agents; with flags of `clawmeshd keys mint`, if it is to be of another kind.
    ///
    /// # Errors
    ///
    /// The key of `clawmeshd keys mint`.
    pub async fn mint(&self, flags: &[&str]) -> Result<String> {
        self.prints(&[&["keys", "mint"], flags].concat(), "mints no key").await
    }

    /// The output of a command of an operator.
    async fn prints(&self, arguments: &[&str], failing: &str) -> Result<String> {
        let mut command = Command::new(&self.options.binary);
        command.args(arguments).arg("--data-dir").arg(&self.options.data_dir);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let what = || format!("run clawmeshd {}", arguments.join(" "));
        let output = command.output().await.map_err(system(what()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(self.options.failed(&format!("{failing}: {}", why.trim())))
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    ///
    /// The end of its log, always: a daemon does not end by itself.
    pub async fn ended(&mut self) -> ProcessError {
        let what = match &mut self.child {
            Some(child) => match child.wait().await {
                Ok(status) => format!("ended by itself ({status})"),
                Err(error) => format!("cannot be waited for ({error})"),
            },
            None => "does not run".to_owned(),
        };
        self.options.failed(&what)
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.options.log()
    }
}

impl Options {
    fn command(&self, before: Option<&Ready>) -> Command {
        let free = "127.0.0.1:0";
        let at = |pick: fn(&Ready) -> Option<&String>| {
            before.and_then(pick).map_or(free, |address| address)
        };
        let mut command = Command::new(&self.binary);
        command.args(["up", "--json", "--name", &self.name]);
        command.arg("--data-dir").arg(&self.data_dir);
        command.arg("--socket").arg(self.data_dir.join("clawchat.sock"));
        command.args(["--tcp", at(|ready| ready.tcp.as_ref())]);
        command.args(["--http", at(|ready| ready.http.as_ref())]);
        command.args(["--listen", at(|ready| ready.listen.first())]);
        match &self.key_file {
            Some(file) => command.arg("--key-file").arg(file),
            None => command.arg("--no-auth"),
        };
        for ticket in &self.join {
            command.args(["--join", ticket]);
        }
        command.args(&self.flags);
        // The user's settings for a daemon of their own are not for these.
        let foreign = |name: &OsStr| name.to_string_lossy().starts_with("CLAWMESH_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(name)) {
            command.env_remove(name);
        }
        if let Some(clock) = &self.clock {
            command.env_remove("FAKETIME").envs(clock.variables());
        }
        if self.terminal == Terminal::Mine {
            command.process_group(0);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }

    fn log(&self) -> String {
        let log = fs::read(self.data_dir.join(LOG)).unwrap_or_default();
        let from = log.len().saturating_sub(LOG_SHOWN_BYTES);
        String::from_utf8_lossy(&log[from..]).into_owned()
    }

    fn failed(&self, what: &str) -> ProcessError {
        ProcessError::Daemon { name: self.name.clone(), what: what.to_owned(), log: self.log() }
    }
}

/// Starts a daemon, at the addresses it had `before` if there was one.
async fn launch(options: &Options, before: Option<&Ready>) -> Result<(Child, Ready)> {
    let dir = &options.data_dir;
    fs::create_dir_all(dir).map_err(system(format!("make {}", dir.display())))?;
    let log = fs::File::options().create(true).append(true).open(dir.join(LOG));
    let log = log.map_err(system(format!("write {LOG} in {}", dir.display())))?;
    let mut child = options
        .command(before)
        .stderr(log)
        .spawn()
        .map_err(system(format!("start {}", options.binary.display())))?;
    let stdout = child.stdout.take().ok_or_else(|| options.failed("has no stdout"))?;
    let mut line = String::new();
    let mut lines = BufReader::new(stdout);
    let read = timeout(READY_WITHIN, lines.read_line(&mut line)).await;
    let read = read.map_err(|_| options.failed(&format!("is not ready after {READY_WITHIN:?}")))?;
    read.map_err(system(format!("read from {}", options.name)))?;
    if line.is_empty() {
        let status = child.wait().await.map_err(system(format!("wait for {}", options.name)))?;
        return Err(options.failed(&format!("ended instead of starting ({status})")));
    }
    match serde_json::from_str(&line) {
        Ok(ready) => Ok((child, ready)),
        Err(error) => Err(options.failed(&format!("says something else than ready: {error}"))),
    }
}

/// The hard limit stays what daemons have it from: only root could raise it again.
#[cfg(target_os = "linux")]
fn limit_files(pid: Pid, bytes: Option<u64>) -> rustix::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: bytes.or(maximum), maximum };
    prlimit(Some(pid), Resource::Fsize, limit).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn limit_files(_: Pid, _: Option<u64>) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}

fn system(what: String) -> impl FnOnce(io::Error) -> ProcessError {
    move |source| ProcessError::System { what, source }
}

/// How to start a mesh.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program.
    pub binary: PathBuf,
    /// Daemons; at least one.
    pub nodes: usize,
    /// Whether agents need a key.
    pub auth: Auth,
    /// Where data is kept, and stays; `None`: where it vanishes with the mesh.
    pub keep: Option<PathBuf>,
    /// Further flags of `clawmeshd up`, for all of them.
    pub flags: Vec<String>,
    /// Whether nodes get a Ctrl-C at this terminal.
    pub terminal: Terminal,
}

/// Whether agents need a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// One key for all nodes.
    Key,
    /// None at all.
    Open,
}

/// Some daemons that know each other.
#[derive(Debug)]
pub struct Mesh {
    /// In order of start; the others joined the first.
    pub nodes: Vec<Daemon>,
    /// The key that all of them accept, and its file.
    pub key: Option<(String, PathBuf)>,
    plan: Plan,
    dir: PathBuf,
    /// Removed when dropped, after the daemons.
    _temp: Option<TempDir>,
}

impl Mesh {
    /// Starts daemons, joins them, and waits until all know each other.
    ///
    /// # Errors
    ///
    /// A daemon fails, or they do not find each other.
    pub async fn up(plan: Plan) -> Result<Mesh> {
        let (dir, temp) = match &plan.keep {
            Some(dir) => (dir.clone(), None),
            None => {
                let prefix = "clawmesh-";
                let temp = tempfile::Builder::new().prefix(prefix).tempdir();
                let temp = temp.map_err(system("make a temporary directory".to_owned()))?;
                (temp.path().to_owned(), Some(temp))
            }
        };
        let count = plan.nodes.max(1);
        let mut mesh = Mesh { nodes: Vec::new(), key: None, plan, dir, _temp: temp };
        for i in 0..count {
            let join = mesh.nodes.first().map(|first| first.ready.ticket.clone());
            let node = mesh.add(&format!("node{}", i + 1), join).await?;
            mesh.nodes.push(node);
        }
        mesh.know_each_other().await?;
        Ok(mesh)
    }

    /// Starts a daemon beside the mesh's; it is in the mesh if `join` is the mesh's ticket.
    ///
    /// # Errors
    ///
    /// As [`Daemon::start`].
    pub async fn add(&mut self, name: &str, join: Option<String>) -> Result<Daemon> {
        let key_file = (self.plan.auth == Auth::Key).then(|| self.dir.join("auth.key"));
        let daemon = Daemon::start(Options {
            binary: self.plan.binary.clone(),
            data_dir: self.dir.join(name),
            name: name.to_owned(),
            key_file: key_file.clone(),
            join: join.into_iter().collect(),
            flags: self.plan.flags.clone(),
            terminal: self.plan.terminal,
            clock: None,
        })
        .await?;
        if let (None, Some(file)) = (&self.key, key_file) {
            let key = fs::read_to_string(&file);
            let key = key.map_err(system(format!("read {}", file.display())))?;
            self.key = Some((key.trim().to_owned(), file));
        }
        Ok(daemon)
    }

    /// The key, for [`Agent::attach`].
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|(key, _)| key.as_str())
    }

    /// Where the data of all nodes is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Waits until an agent at each of the nodes that run is seen, and seen to leave, by all others.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Strangers`] when that takes too long.
    pub async fn know_each_other(&self) -> Result<()> {
        let mut probes = Vec::new();
        for node in self.nodes.iter().filter(|node| node.child.is_some()) {
            let name = format!("testnet at {}", node.ready.name);
            let mut probe = Agent::attach(node.tcp(), self.key(), &name).await?;
            probe.call("join_room", json!({ "room_id": "lobby" })).await?;
            probes.push(probe);
        }
        let ids: Vec<String> = probes.iter().map(|probe| probe.id.clone()).collect();
        lobby_lists(&mut probes, |listed| ids.iter().all(|id| listed.contains(id))).await?;
        for probe in &mut probes {
            probe.call("leave_room", json!({ "room_id": "lobby" })).await?;
        }
        lobby_lists(&mut probes, |listed| !ids.iter().any(|id| listed.contains(id))).await
    }

    /// Ends all daemons in good order, all at once.
    ///
    /// # Errors
    ///
    /// The first that does not end, after all have been told.
    pub async fn stop(&mut self) -> Result<()> {
        let mut ending = tokio::task::JoinSet::new();
        for mut node in self.nodes.drain(..) {
            ending.spawn(async move { node.stop().await.map(drop) });
        }
        let ended = ending.join_all().await;
        ended.into_iter().collect()
    }
}

/// Waits until the lobby's members please everybody.
async fn lobby_lists(probes: &mut [Agent], pleased: impl Fn(&[String]) -> bool) -> Result<()> {
    let deadline = Instant::now() + JOINED_WITHIN;
    for probe in probes {
        loop {
            let listed = probe.call("list_agents", json!({ "room_id": "lobby" })).await?;
            let listed = listed["agents"].as_array().into_iter().flatten();
            let listed: Vec<String> =
                listed.map(|agent| crate::wire::text(agent, "agent_id")).collect();
            if pleased(&listed) {
                break;
            }
            if Instant::now() > deadline {
                return Err(ProcessError::Strangers(JOINED_WITHIN));
            }
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}
