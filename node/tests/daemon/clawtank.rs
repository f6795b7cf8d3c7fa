//! ClawTank at two nodes: people and agents of three dialects in one room, and of one task.

use std::{collections::VecDeque, net::TcpStream, path::Path};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::harness::{Agent, Daemon, ask, temp, until, up_keyed};

/// A client on `/ws`.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    /// Frames that came while another one was waited for.
    pub(crate) heard: VecDeque<Value>,
    sent: u128,
}

fn ulid(number: u128) -> String {
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digit = |place: u32| char::from(digits[(number >> (5 * (25 - place)) & 31) as usize]);
    (0..26).map(digit).collect()
}

/// Ids of things, so that no two of a test are the same.
fn fresh() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ulid(u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64)
}

impl Client {
    fn connect(node: &Daemon) -> Client {
        let at = node.text("http").trim_start_matches("http://");
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(crate::harness::DEADLINE)).unwrap();
        let (socket, _) = client(format!("ws://{at}/ws"), stream).unwrap();
        Client { socket, heard: VecDeque::new(), sent: 0 }
    }

    fn send(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).unwrap();
    }

    pub(crate) fn find(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.heard.iter().position(&what) {
            return self.heard.remove(place).unwrap();
        }
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if what(&frame) {
                    return frame;
                }
                self.heard.push_back(frame);
            }
        }
    }

    pub(crate) fn ask(&mut self, kind: &str, data: Value) -> Value {
        self.sent += 1;
        let id = fresh();
        self.send(&json!({
            "id": id, "type": kind, "timestamp": "2026-02-17T21:03:00.123Z", "data": data,
        }));
        self.find(|frame| frame["metadata"]["correlation_id"] == id)
    }

    fn gets(&mut self, kind: &str, data: Value) -> Value {
        let answer = self.ask(kind, data);
        assert_ne!(answer["type"], "error", "{answer}");
        answer
    }
}

pub(crate) fn keyed(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

pub(crate) fn mint(node: &Daemon) -> String {
    let output = ask(&["keys", "mint", "--data-dir", node.text("data_dir")]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Somebody in the lobby, as soon as the key is known at the node.
pub(crate) fn come(node: &Daemon, kind: &str, key: &str, name: &str) -> Client {
    let mut come = None;
    until("the key is known", || {
        let mut client = Client::connect(node);
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
            "owner_info": {"user_id": ulid(1), "display_name": "x"},
        });
        client.gets("agent.register", own);
    }
    client
}

fn words(text: &str) -> Value {
    json!({
        "message_id": fresh(), "room_id": "lobby", "visibility": "public",
        "content": {"text": text},
        "author": {"user_id": ulid(1), "display_name": "x", "type": "human"},
    })
}

fn task(id: &str) -> Value {
    json!({
        "task_id": id, "title": "do it", "description": "", "priority": "high", "status": "open",
        "creator": {"user_id": ulid(1), "display_name": "x", "type": "human"},
        "context": {"tags": ["cli"]},
    })
}

/// Two nodes, a person and an agent of this dialect at one each, and an agent that speaks ClawChat at the first.
struct Company {
    first: Daemon,
    second: Daemon,
    key: String,
    ada: Client,
    bob: Client,
    eve: Agent,
}

impl Company {
    fn at(dirs: &[tempfile::TempDir; 2]) -> Company {
        let first = keyed(dirs[0].path(), &[]);
        let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
        second.until_connected();
        let key = mint(&first);
        let (ada, bob) = (come(&first, "human", &key, "ada"), come(&second, "agent", &key, "bob"));
        let mut eve = Agent::connect(first.text("tcp"));
        eve.call("register", json!({"key": key, "name": "eve", "agent_id": "eve"})).unwrap();
        eve.call("join_room", json!({"room_id": "lobby"})).unwrap();
        Company { first, second, key, ada, bob, eve }
    }

    fn talks(&mut self) {
        let said = self.ada.gets("chat.human_message", words("hello all"));
        let heard = self.bob.find(|frame| frame["type"] == "chat.human_message");
        assert_eq!((&heard["id"], &heard["data"]), (&said["id"], &said["data"]), "at all nodes");
        let page = json!({"room_id": "lobby", "limit": 1});
        let kept = self.eve.call("get_history", page).unwrap()["messages"][0].clone();
        assert_eq!((&kept["content"], &kept["metadata"]), (&json!("hello all"), &Value::Null));
        let answer = json!({"room_id": "lobby", "content": "hi ada"});
        self.eve.call("send_message", answer).unwrap();
        for client in [&mut self.ada, &mut self.bob] {
            let heard = client.find(|frame| frame["type"] == "chat.agent_message");
            assert_eq!(heard["data"]["agent"]["agent_id"], "eve");
        }
    }

    /// Of two that want a task at once, over two dialects, one has it.
    fn claims(&mut self, round: u32) {
        let Company { ada, bob, eve, .. } = self;
        let id = fresh();
        let made = ada.gets("task.created", task(&id));
        let uuid = made["data"]["mesh"]["id"].as_str().unwrap().to_owned();
        let known = bob.find(|frame| frame["type"] == "task.created");
        assert_eq!(known["data"]["task_id"], format!("task_{id}"));
        let claim = json!({"task_id": id, "agent_id": "bob"});
        let (won, taken) = std::thread::scope(|scope| {
            let claims = scope.spawn(|| bob.ask("task.claim", claim));
            let update = json!({"task_id": uuid, "assignee": "eve", "if_assignee": null});
            let taken = eve.call("update_task", update).is_ok();
            (claims.join().unwrap(), taken)
        });
        let won = won["type"] == "task.claim_accepted";
        assert!(won != taken, "one of the two has it, in round {round}");
        let holder = if won { "bob" } else { "eve" };
        let told = ada.find(|frame| frame["type"] == "task.claim_accepted");
        assert_eq!(told["data"]["agent_id"], holder);
        // Else the next round may find that the agent holds too many.
        eve.call("update_task", json!({"task_id": uuid, "status": "completed"})).unwrap();
        bob.find(|frame| frame["type"] == "task.completed");
    }

    /// A GoClaw program asks the agent, which answers as it answers everybody.
    fn answers(&mut self) {
        let mut program = Client::connect(&self.first);
        program.send(&json!({
            "type": "req", "id": "1", "method": "connect",
            "params": {"token": self.key, "user_id": "cy", "protocol": 3},
        }));
        assert_eq!(program.find(|frame| frame["id"] == "1")["ok"], true);
        program.send(&json!({
            "type": "req", "id": "2", "method": "chat.send",
            "params": {"agentId": "bob", "message": "only you"},
        }));
        let asked = self.bob.find(|frame| frame["data"]["visibility"] == "private");
        assert_eq!(asked["data"]["content"]["text"], "only you");
        let mut answer = words("yes");
        answer["room_id"] = asked["data"]["room_id"].clone();
        answer["context"] = json!({"in_reply_to": asked["data"]["message_id"]});
        self.bob.gets("chat.agent_message", answer);
        let answered = program.find(|frame| frame["id"] == "2");
        assert_eq!(answered["payload"]["content"], "yes", "{answered}");
    }
}

#[test]
fn three_dialects_at_two_nodes_share_a_room_its_tasks_and_one_claim() {
    let dirs = [temp(), temp()];
    let mut company = Company::at(&dirs);
    company.talks();
    (0..10).for_each(|round| company.claims(round));
    company.answers();
}

/// What somebody reports of a repository.
fn commit(sha: u8, branch: &str, agent: &str, file: &str) -> Value {
    json!({
        "commit_info": {
            "sha": format!("{sha:040x}"), "message": "feat: more", "branch": branch,
            "author": {"name": agent, "email": "x@y.z", "timestamp": "2026-02-17T21:03:00.123Z"},
        },
        "repository": {"url": "https://example.org/x", "owner": "o", "name": "x"},
        "changes": {
            "files_added": [], "files_modified": [file], "files_deleted": [],
            "stats": {"additions": 1, "deletions": 2, "total_changes": 3},
        },
        "context": {"agent_id": agent},
    })
}

impl Company {
    /// Commits are told at both nodes, once, and so is a conflict, under one id.
    fn commits(&mut self, carl: &mut Client) {
        let Company { ada, bob, eve, .. } = self;
        let said = bob.gets("git.commit", commit(1, "a", "bob", "x.rs"));
        let heard = ada.find(|frame| frame["type"] == "git.commit");
        assert_eq!((&heard["id"], &heard["data"]), (&said["id"], &said["data"]));
        let page = json!({"room_id": "lobby", "limit": 1});
        let kept = eve.call("get_history", page).unwrap()["messages"][0].clone();
        assert_eq!(kept["content"], "[git] commit 0000000 on a by bob: feat: more (+1 -2, 1 file)");
        assert_eq!(kept["metadata"]["kind"], "git.commit");
        // Another agent reports it at the other node.
        let again = carl.gets("git.commit", commit(1, "a", "carl", "x.rs"));
        assert_eq!((&again["id"], &again["data"]), (&said["id"], &said["data"]));
        carl.gets("git.commit", commit(2, "b", "carl", "x.rs"));
        let warned = [ada, bob, carl].map(|client| {
            let warning = client.find(|frame| frame["type"] == "git.conflict_warning");
            let seen = client.heard.iter().filter(|frame| frame["data"]["commit_info"].is_object());
            assert!(seen.count() <= 2, "each is told once");
            warning
        });
        assert!(warned.iter().all(|warning| warning["id"] == warned[0]["id"]), "{warned:?}");
        assert_eq!(warned[0]["data"]["agents_affected"], json!(["bob", "carl"]));
    }

    /// A person at one node and a program of another dialect at the other decide at once: one wins, and all know which.
    fn decides(&mut self, program: &mut Client, round: u32) {
        let Company { ada, bob, .. } = self;
        let request = fresh();
        bob.gets(
            "approval.request",
            json!({
                "request_id": request, "agent_id": "bob", "approval_type": "exec",
                "details": {"command": format!("make {round}")}, "room_id": "lobby",
            }),
        );
        let shown = format!("approval_{request}");
        ada.find(|frame| frame["data"]["request_id"] == *shown);
        let call = |program: &mut Client, method: &str, params: Value| {
            let id = fresh();
            program.send(&json!({"type": "req", "id": id, "method": method, "params": params}));
            program.find(|frame| frame["id"] == id)
        };
        let listed = call(program, "exec.approval.list", json!({}));
        let id = listed["payload"]["pending"][0]["id"].clone();
        let (approved, denied) = std::thread::scope(|scope| {
            let approves = scope.spawn(|| {
                ada.ask("approval.response", json!({"request_id": request, "decision": "approved"}))
            });
            let denied = call(program, "exec.approval.deny", json!({"id": id, "reason": "no"}));
            (approves.join().unwrap(), denied)
        });
        let (yes, no) = (approved["type"] == "approval.response", denied["ok"] == true);
        assert!(yes != no, "one of the two decides: {approved} {denied}");
        let word = if yes { "approved" } else { "denied" };
        let told = bob.find(|frame| frame["type"] == "approval.response");
        assert_eq!(
            (&told["data"]["decision"], &told["data"]["request_id"]),
            (&json!(word), &json!(shown))
        );
        if !yes {
            assert_eq!(approved["data"]["error_code"], "RESOURCE_CONFLICT", "{approved}");
            ada.find(|frame| frame["data"]["decision"] == "denied");
        }
    }
}

#[test]
fn commits_conflicts_and_decisions_are_the_same_at_two_nodes() {
    let dirs = [temp(), temp()];
    let mut company = Company::at(&dirs);
    let mut carl = come(&company.first, "agent", &company.key, "carl");
    company.commits(&mut carl);
    let mut program = Client::connect(&company.second);
    program.send(&json!({
        "type": "req", "id": "1", "method": "connect",
        "params": {"token": company.key, "user_id": "cy", "protocol": 3},
    }));
    assert_eq!(program.find(|frame| frame["id"] == "1")["ok"], true);
    (0..5).for_each(|round| company.decides(&mut program, round));
}

#[test]
fn a_node_can_do_without_clawtank_and_says_so() {
    let dir = temp();
    let node = keyed(dir.path(), &["--no-clawtank"]);
    let mut client = Client::connect(&node);
    let answer = client.ask("connection.request", json!({"client_type": "human"}));
    assert_eq!(answer["data"]["error_code"], "AUTHORIZATION_DENIED");
    node.stop();
}
