//! Three nodes, the links between them, and all who work there.

use std::{
    collections::{HashSet, VecDeque},
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testnet::pipe::Pipe;
use tokio::runtime::Runtime;

use super::hearing::{Listener, Tongue};
use crate::{
    direct::keyed,
    harness::{Daemon, ask, until},
    tokens::invoke,
};

/// Who hears what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Ada,
    Bob,
    Cy,
    Eve,
    Sam,
}

pub(super) struct Company {
    pub(super) nodes: [Daemon; 3],
    /// From the second node to the first, and from the third to the second.
    of_second: [Pipe; 2],
    /// From the third node to the first.
    _other: Pipe,
    _runtime: Runtime,
    pub(super) key: String,
    pub(super) task: String,
    pub(super) request: String,
    /// The task in other dialects.
    pub(super) uuid: String,
    /// A person with ClawTank, at the first node.
    pub(super) ada: Listener,
    /// An agent with ClawTank, at the second.
    pub(super) bob: Listener,
    /// A person with GoClaw, at the first.
    pub(super) cy: Listener,
    /// An agent with ClawChat, at the third.
    pub(super) eve: Listener,
    /// Somebody who looks on, at the third.
    pub(super) sam: Listener,
    /// An agent of an MCP host, at the third.
    max: Max,
}

/// What an agent has read that asks for messages after a number.
#[derive(Default)]
struct Max {
    after: u64,
    known: HashSet<String>,
    /// Messages that were read, and not yet looked at.
    next: VecDeque<String>,
}

/// Ids of things, so that no two of a test are the same.
pub(super) fn fresh() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("01{:024}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn words(text: &str) -> Value {
    json!({
        "message_id": fresh(), "room_id": "lobby", "visibility": "public",
        "content": {"text": text},
        "author": {"user_id": fresh(), "display_name": "x", "type": "human"},
    })
}

fn mint(node: &Daemon, more: &[&str]) -> String {
    let output = ask(&[&["keys", "mint", "--data-dir", node.text("data_dir")], more].concat());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A link to a node, and a ticket that leads over it.
pub(crate) fn link(runtime: &Runtime, to: &Daemon) -> (Pipe, String) {
    let target = to.ready["listen"][0].as_str().unwrap().to_owned();
    let pipe = runtime.block_on(Pipe::to(target)).unwrap();
    let at = pipe.address().to_string();
    let output = ask(&["invite", "--at", &at, "--data-dir", to.text("data_dir")]);
    (pipe, String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Somebody with ClawTank in the lobby, as soon as the key is known at the node.
fn tank(node: &Daemon, kind: &str, key: &str, name: &'static str) -> Listener {
    let mut come = None;
    until("the key is known", || {
        let mut client = Listener::connect(node, "/ws", Tongue::Tank, name);
        let answer = client.ask(
            "connection.request",
            json!({
                "client_type": kind, "auth_token": key, "room_id": "lobby",
                "client_info": {"name": name, "version": "1.0.0", "capabilities": []},
            }),
        );
        come = Some(client).filter(|_| answer["type"] == "connection.ack");
        come.is_some()
    });
    let mut client = come.unwrap();
    if kind == "agent" {
        let own = json!({
            "agent_name": name, "agent_id": name, "agent_capabilities": ["testing"],
            "model_info": {"provider": "p", "model_name": "m"},
            "owner_info": {"user_id": fresh(), "display_name": "x"},
        });
        client.gets("agent.register", own);
    }
    client
}

fn goclaw(node: &Daemon, key: &str) -> Listener {
    let mut client = Listener::connect(node, "/ws", Tongue::Go, "cy");
    client.calls("connect", json!({"token": key, "user_id": "cy", "protocol": 3}));
    client
}

fn clawchat(node: &Daemon, key: &str) -> Listener {
    let mut come = None;
    until("the key is known", || {
        let mut client = Listener::connect(node, "/ws", Tongue::Chat, "eve");
        let register = json!({"key": key, "name": "eve", "agent_id": "eve"});
        let reply = client.tries_chat("register", register);
        come = Some(client).filter(|_| reply["type"] != "error");
        come.is_some()
    });
    let mut client = come.unwrap();
    client.asks_chat("join_room", json!({"room_id": "lobby"}));
    client
}

/// Whether a node is connected with so many others.
pub(crate) fn meets(node: &Daemon, others: usize) -> bool {
    let status = node.status();
    let peers = status["peers"].as_array().unwrap();
    peers.iter().filter(|it| it["connected"] == true && it["alive"] == true).count() == others
}

impl Company {
    pub(super) fn come(dirs: &[TempDir; 3]) -> Company {
        let runtime = Runtime::new().unwrap();
        let alone = "--no-discovery";
        let first = keyed(dirs[0].path(), &[alone]);
        let (to_first, join) = link(&runtime, &first);
        let second = keyed(dirs[1].path(), &[alone, "--join", &join]);
        let (other, join) = link(&runtime, &first);
        let (to_second, join_too) = link(&runtime, &second);
        let third = keyed(dirs[2].path(), &[alone, "--join", &join, "--join", &join_too]);
        let nodes = [first, second, third];
        until("all meet", || nodes.iter().all(|node| meets(node, 2)));
        let (key, people) = (mint(&nodes[0], &[]), mint(&nodes[0], &["--scopes", "admin"]));
        let ada = tank(&nodes[0], "human", &key, "ada");
        let bob = tank(&nodes[1], "agent", &key, "bob");
        let eve = clawchat(&nodes[2], &key);
        let cy = goclaw(&nodes[0], &people);
        let max = Max::default();
        let mut sam = Listener::connect(&nodes[2], "/spectate/lobby", Tongue::Looks, "sam");
        sam.is_welcome();
        let (task, request, uuid) = (fresh(), fresh(), String::new());
        let (of_second, _other, _runtime) = ([to_first, to_second], other, runtime);
        let company = Company {
            nodes,
            of_second,
            _other,
            _runtime,
            key,
            task,
            request,
            uuid,
            ada,
            bob,
            cy,
            eve,
            sam,
            max,
        };
        company.max_calls("room_join", json!({"room": "lobby"}));
        company
    }

    pub(super) fn one(&mut self, who: Who) -> &mut Listener {
        match who {
            Who::Ada => &mut self.ada,
            Who::Bob => &mut self.bob,
            Who::Cy => &mut self.cy,
            Who::Eve => &mut self.eve,
            Who::Sam => &mut self.sam,
        }
    }

    pub(super) fn all_have_heard(&mut self) {
        for who in [Who::Ada, Who::Bob, Who::Cy, Who::Eve, Who::Sam] {
            self.one(who).has_heard();
        }
    }

    /// These hear this of the task, in this order.
    pub(super) fn works(&mut self, told: &[(Who, &str)]) {
        for (who, line) in told {
            self.one(*who).works(line);
        }
        self.all_have_heard();
    }

    /// Everybody hears it. Who has ClawChat or MCP is not told what he said himself.
    pub(super) fn is_said(&mut self, by: &str, text: &str) {
        for who in [Who::Ada, Who::Bob, Who::Eve, Who::Sam] {
            self.one(who).says(text);
        }
        if by != "max" {
            self.max_hears(text);
        }
        self.all_have_heard();
    }

    /// Bob says how far he is.
    pub(super) fn reports(&mut self, part: f64, step: &str) {
        let report = json!({
            "task_id": self.task, "agent_id": "bob", "status": "in_progress",
            "progress": {"percentage": part, "current_step": step},
        });
        self.bob.gets("task.status", report);
    }

    pub(super) fn splits(&mut self) {
        self.of_second.iter().for_each(|pipe| pipe.set(|state| state.cut = true));
        until("the second is alone", || {
            meets(&self.nodes[1], 0) && meets(&self.nodes[0], 1) && meets(&self.nodes[2], 1)
        });
    }

    pub(super) fn heals(&mut self) {
        self.of_second.iter().for_each(|pipe| pipe.set(|state| state.cut = false));
        until("all meet again", || self.nodes.iter().all(|node| meets(node, 2)));
    }

    fn max_calls(&self, tool: &str, arguments: Value) -> Value {
        let mut details = Value::Null;
        until("the key is known", || {
            let body = json!({"tool": tool, "args": arguments, "agentId": "max"});
            let (status, answer) = invoke(&self.nodes[2], &self.key, &body);
            assert!(status == 200 || status == 401, "{tool}: {answer}");
            details = answer["result"]["details"].clone();
            status == 200
        });
        assert!(details["error"].is_null(), "{tool}: {details}");
        details
    }

    pub(super) fn max_says(&self, text: &str) {
        self.max_calls("room_send", json!({"room": "lobby", "message": text}));
    }

    /// The next that the agent of the MCP host reads.
    pub(super) fn max_hears(&mut self, text: &str) {
        while self.max.next.is_empty() {
            let wait = json!({"room": "lobby", "afterSeq": self.max.after, "timeoutSeconds": 50});
            let heard = self.max_calls("room_wait", wait);
            assert_ne!(heard["status"], "timeout", "max waits for {text:?}");
            self.max.after = heard["afterSeq"].as_u64().unwrap();
            let rows = heard["messages"].as_array().unwrap().iter();
            for row in rows {
                // A message of the time of the split may come again, under the same id and a second number.
                if self.max.known.insert(row["id"].to_string()) {
                    self.max.next.push_back(row["content"].as_str().unwrap().to_owned());
                }
            }
        }
        assert_eq!(self.max.next.pop_front().as_deref(), Some(text));
    }

    /// How far the tasks are that the agent of the MCP host is shown, when none of its messages is left.
    pub(super) fn tasks_of_max(&mut self) -> Vec<String> {
        assert_eq!(self.max.next, Vec::<String>::new());
        let listed = self.max_calls("tasks_list", json!({"room": "lobby"}));
        let rows = listed["tasks"].as_array().unwrap().iter();
        rows.map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    }
}

/// The lobby as one file.
pub(super) fn replay(node: &Daemon, key: Option<&str>) -> String {
    let at = node.text("http").trim_start_matches("http://");
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let mut socket = TcpStream::connect(at).unwrap();
    // An answer of HTTP/1.0 has no chunks.
    let request = format!("GET /api/rooms/lobby/replay HTTP/1.0\r\nhost: {at}\r\n{key}\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{answer}");
    body.to_owned()
}
