//! Nodes, and `clawmesh` with an environment of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use testnet::binary;
use testnet::process::{Auth, Mesh, Plan, Terminal};
use testnet::wire::Agent;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::running::{Running, Typed};

/// For steps that should take a moment: machines that run tests are busy.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Some nodes of one mesh, and a home directory for those who call them.
pub(crate) struct World {
    // Dropped in this order: the nodes are ended while the runtime lives.
    pub(crate) mesh: Mesh,
    pub(crate) runtime: Runtime,
    home: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A call of `clawmesh`: at a node, as somebody.
pub(crate) struct Call<'a> {
    world: &'a World,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<String>,
}

impl World {
    /// Starts so many nodes that know each other. One world at a time: the machine is small.
    pub(crate) fn of(nodes: usize) -> World {
        World::with(nodes, &[])
    }

    /// The same, with further flags of `clawmeshd up`.
    pub(crate) fn with(nodes: usize, flags: &[&str]) -> World {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed leaves nothing behind.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
        let (auth, terminal) = (Auth::Key, Terminal::Shared);
        let flags = flags.iter().map(|flag| String::from(*flag)).collect();
        let plan = Plan { binary, nodes, auth, keep: None, flags, terminal };
        let runtime = Runtime::new().unwrap();
        let mesh = runtime.block_on(Mesh::up(plan)).unwrap_or_else(|error| panic!("{error}"));
        World { mesh, runtime, home: TempDir::new().unwrap(), _alone: alone }
    }

    /// The home directory of those who call: a place for their files.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A call at a node, as somebody, with arguments.
    pub(crate) fn call(&self, node: usize, name: &str, args: &[&str]) -> Call<'_> {
        let node = self.mesh.nodes[node].ready();
        let socket = node.socket.as_ref().unwrap().display().to_string();
        let (_, key_file) = self.mesh.key.as_ref().unwrap();
        let key_file = key_file.display().to_string();
        let flags = ["--socket", &socket, "--key-file", &key_file, "--name", name];
        let args = flags.iter().chain(args).map(|arg| String::from(*arg)).collect();
        Call { world: self, args, env: Vec::new(), stdin: None }
    }

    /// A call with these arguments alone: nobody says where a node is.
    pub(crate) fn bare(&self, args: &[&str]) -> Call<'_> {
        let args = args.iter().map(|arg| String::from(*arg)).collect();
        Call { world: self, args, env: Vec::new(), stdin: None }
    }

    /// Runs the same; it has to end well. Returns its output.
    pub(crate) fn ok(&self, node: usize, name: &str, args: &[&str]) -> String {
        self.call(node, name, args).run().ok()
    }

    /// A room that all nodes know.
    pub(crate) fn room(&self, name: &str) -> String {
        let made = self.ok(0, "host", &["--json", "rooms", "create", name, "--public"]);
        for node in 0..self.mesh.nodes.len() {
            self.until("the room is known", || {
                self.call(node, "host", &["rooms", "tip", name]).run().code == 0
            });
        }
        let made: Value = serde_json::from_str(&made).unwrap();
        made["room_id"].as_str().unwrap().to_owned()
    }

    /// An agent that speaks the protocol and nothing more.
    pub(crate) fn agent(&self, node: usize, name: &str) -> Agent {
        let address = self.mesh.nodes[node].tcp();
        self.runtime.block_on(Agent::attach(address, self.mesh.key(), name)).unwrap()
    }

    /// A room's history from a node: at most 500 messages.
    pub(crate) fn history(&self, node: usize, room_id: &str) -> Vec<Value> {
        let mut agent = self.agent(node, "reader");
        let ask = json!({"room_id": room_id, "since_seq": 0, "limit": 500});
        let page = self.runtime.block_on(agent.call("get_history", ask)).unwrap();
        page["messages"].as_array().unwrap().clone()
    }

    /// Waits until it is so.
    pub(crate) fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let deadline = Instant::now() + SOON;
        while !so() {
            assert!(Instant::now() < deadline, "{what}: not within {SOON:?}\n{}", self.logs());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn logs(&self) -> String {
        let log =
            |node: &testnet::process::Daemon| format!("{}:\n{}\n", node.ready().name, node.log());
        self.mesh.nodes.iter().map(log).collect()
    }
}

impl Call<'_> {
    /// With a variable of the environment; there are no others.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this on stdin.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// The program with its arguments and an environment of its own.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clawmesh"));
        command.args(&self.args).env_clear().envs(self.env.iter().cloned());
        command.env("HOME", self.world.home()).current_dir(self.world.home()).kill_on_drop(true);
        command
    }

    /// Starts it, and goes on.
    pub(crate) fn spawn(self) -> Running {
        let _inside = self.world.runtime.enter();
        Running::start(self.command())
    }

    /// Starts it at a pseudo-terminal of its own.
    pub(crate) fn at_a_terminal(self) -> Typed {
        let _inside = self.world.runtime.enter();
        Typed::start(self.command())
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Ran {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = self.world.runtime.block_on(async {
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            if let Some(text) = self.stdin {
                stdin.write_all(text.as_bytes()).await.unwrap();
            }
            drop(stdin);
            timeout(SOON, child.wait_with_output()).await
        });
        let ran = ran.unwrap_or_else(|_| panic!("{:?} goes on\n{}", self.args, self.world.logs()));
        let ran = ran.unwrap();
        Ran {
            code: ran.status.code().unwrap_or(-1),
            stdout: String::from_utf8(ran.stdout).unwrap(),
            stderr: String::from_utf8(ran.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// It ended well. Returns its output.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// It failed. Returns its error.
    pub(crate) fn failed(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{self:?}");
        self.stderr
    }
}
