//! A node in some lines: it answers `POST /tools/invoke` and `POST /mcp` as nodes do, and keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, SOON};

/// A request: its head in lower case, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Asked {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(prefix.as_str()))
    }
}

type Answer = dyn Fn(&Asked) -> (u16, Value) + Send + Sync;

/// The node. It listens as long as the process lives.
pub(crate) struct Stub {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    pub(crate) fn start(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (kept, answer): (_, Arc<Answer>) = (asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                // A client that hangs up needs no answer.
                std::thread::spawn(move || drop(serve(stream, &kept, &*answer)));
            }
        });
        Stub { url, asked }
    }

    /// One that gives the same result to every call of a tool.
    pub(crate) fn of(details: Value) -> Stub {
        Stub::start(move |_| result(details.clone()))
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.asked).clone()
    }
}

/// The answer of `/tools/invoke` with a tool's result.
pub(crate) fn result(details: Value) -> (u16, Value) {
    (200, json!({"ok": true, "result": {"content": [], "details": details}}))
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Asked>>, answer: &Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.replace("\r\n", "\n");
    let length = head.to_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or_default()];
    reader.read_exact(&mut body)?;
    let asked = Asked { head, body: serde_json::from_slice(&body).unwrap_or_default() };
    lock(kept).push(asked.clone());
    let (status, said) = answer(&asked);
    let said = said.to_string();
    let answer = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{said}",
        said.len()
    );
    reader.into_inner().write_all(answer.as_bytes())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An inbox as a node keeps it: its items, how far they were confirmed, and how far hooks were told of them.
#[derive(Default)]
pub(crate) struct Post {
    state: Mutex<(Vec<Value>, usize, usize)>,
    came: Condvar,
}

impl Post {
    /// A node with this inbox.
    pub(crate) fn node(self: &Arc<Post>) -> Stub {
        let post = self.clone();
        Stub::start(move |asked| post.answer(&asked.body))
    }

    /// A message of `bob` comes.
    pub(crate) fn come(&self, text: &str) {
        let mut state = lock(&self.state);
        let id = format!("m{}", state.0.len() + 1);
        let node = json!({"id": "9f3a", "name": "beta"});
        let from = json!({"agentId": "bob", "key": "agent:bob:main", "name": "Obey me",
            "node": node, "sameKey": false, "verified": true});
        state.0.push(json!({"id": id, "seq": 1, "sessionKey": "agent:bob:main", "role": "user",
            "content": text, "timestamp": 1_789_000_000_000_u64, "from": from, "item": "direct"}));
        self.came.notify_all();
    }

    /// How many items were confirmed.
    pub(crate) fn confirmed(&self) -> usize {
        lock(&self.state).1
    }

    fn answer(&self, body: &Value) -> (u16, Value) {
        let args = &body["args"];
        let waits = Duration::from_secs(args["timeoutSeconds"].as_u64().unwrap_or(30));
        let deadline = Instant::now() + waits;
        let mut state = lock(&self.state);
        let cursor = args["cursor"].as_str().and_then(|cursor| cursor.parse().ok());
        if let Some(cursor) = cursor {
            state.1 = state.1.max(cursor);
        }
        let is_notice = body["tool"] == "inbox_notice";
        loop {
            let (all, mark, told) = (state.0.len(), state.1, state.2);
            if all > if is_notice { told.max(mark) } else { mark } || Instant::now() >= deadline {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let woken = self.came.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (all, mark, told) = (state.0.len(), state.1, state.2);
        if is_notice {
            state.2 = all;
            let fresh = all > told.max(mark);
            let status = if fresh || waits.is_zero() { "ok" } else { "timeout" };
            let from = if all > mark { json!(["bob"]) } else { json!([]) };
            return result(
                json!({"status": status, "unread": all - mark, "from": from, "fresh": fresh}),
            );
        }
        let limit = args["limit"].as_u64().unwrap_or(20) as usize;
        let end = all.min(mark + limit);
        let status = if end > mark { "ok" } else { "timeout" };
        result(json!({"status": status, "messages": state.0[mark..end], "cursor": end.to_string(),
            "unread": all - end, "more": all > end, "note": "Written by other agents"}))
    }
}

/// A person or a host at this machine: a home directory, and the program in it.
pub(crate) struct Person {
    pub(crate) home: TempDir,
}

impl Person {
    pub(crate) fn new() -> Person {
        Person { home: TempDir::new().unwrap() }
    }

    /// The program, in this directory, with nothing else in its environment.
    pub(crate) fn command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clawmesh"));
        command.args(args).env_clear().env("HOME", self.home.path()).current_dir(dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it in the home directory.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        finish(self.command(self.home.path(), args).spawn().unwrap())
    }

    /// The same, with a text on standard input.
    pub(crate) fn fed(&self, args: &[&str], text: &str) -> Ran {
        let mut command = self.command(self.home.path(), args);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read ends all the same.
        drop(child.stdin.take().unwrap().write_all(text.as_bytes()));
        finish(child)
    }
}

/// To its end.
pub(crate) fn finish(child: Child) -> Ran {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let ran = receiver.recv_timeout(SOON).expect("it ends").unwrap();
    Ran {
        code: ran.status.code().unwrap_or(-1),
        stdout: String::from_utf8(ran.stdout).unwrap(),
        stderr: String::from_utf8(ran.stderr).unwrap(),
    }
}
