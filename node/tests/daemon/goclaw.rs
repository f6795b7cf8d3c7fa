//! GoClaw at two nodes: a person at one, an agent that speaks ClawChat at the other, by a client that holds every frame to the
//! specification's tables.

use std::{
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::harness::{Agent, DEADLINE, Daemon, ask, temp, until, up_keyed};

/// A client that records the frames that it gets, and holds them to the specification.
pub(crate) struct Recorder {
    socket: WebSocket<TcpStream>,
    asked: u64,
    /// Events so far.
    events: Vec<Value>,
    /// So many of them were looked at.
    looked_at: usize,
}

/// Fields that every answer of a method has (§3, §7 to §11 of the specification).
const FIELDS: [(&str, &[&str]); 12] = [
    (
        "connect",
        &[
            "protocol",
            "role",
            "user_id",
            "tenant_id",
            "is_owner",
            "is_master_scope",
            "edition",
            "tenant_name",
            "tenant_slug",
            "locale",
            "server",
        ],
    ),
    (
        "health",
        &[
            "status",
            "version",
            "uptime",
            "mode",
            "database",
            "tools",
            "clients",
            "currentId",
            "droppedEvents",
            "peers",
        ],
    ),
    ("status", &["agents", "agentTotal", "clients", "sessions", "rooms", "peers"]),
    ("agents.list", &["agents"]),
    ("chat.send", &["runId", "sessionKey", "message_id", "role", "content", "status", "usage"]),
    ("chat.history", &["messages"]),
    (
        "chat.abort",
        &[
            "ok",
            "aborted",
            "stopped",
            "forced",
            "alreadyAborting",
            "notFound",
            "unauthorized",
            "runIds",
        ],
    ),
    ("sessions.list", &["sessions", "total", "limit", "offset"]),
    ("sessions.preview", &["key", "messages", "summary"]),
    ("skills.list", &["skills"]),
    ("teams.list", &["teams", "count"]),
    ("teams.get", &["team", "members", "id"]),
];

/// Fields that every row of a list has.
const ROWS: [(&str, &str, &[&str]); 4] = [
    (
        "agents.list",
        "agents",
        &[
            "id",
            "key",
            "agent_key",
            "uuid",
            "name",
            "display_name",
            "provider",
            "model",
            "agentType",
            "agent_type",
            "status",
            "isRunning",
            "capabilities",
            "online",
            "own",
        ],
    ),
    (
        "sessions.list",
        "sessions",
        &[
            "key",
            "label",
            "model",
            "metadata",
            "created",
            "updated",
            "messageCount",
            "userID",
            "channel",
            "inputTokens",
            "outputTokens",
            "agentName",
            "provider",
            "session_key",
            "agent_id",
            "user_id",
            "input_tokens",
            "output_tokens",
        ],
    ),
    (
        "chat.history",
        "messages",
        &["id", "role", "content", "sender_id", "sender_name", "created_at"],
    ),
    (
        "teams.list",
        "teams",
        &[
            "id",
            "name",
            "description",
            "status",
            "lead_agent_id",
            "lead_agent_key",
            "settings",
            "created_by",
            "created_at",
            "updated_at",
            "member_count",
            "tenant_id",
            "mesh",
        ],
    ),
];

/// Events that there are (§6, §14).
const EVENTS: [&str; 12] = [
    "agent",
    "agent.updated",
    "health",
    "presence",
    "cron",
    "cron.fired",
    "team.message.sent",
    "session.updated",
    "device.pair.requested",
    "device.pair.resolved",
    "tick",
    "shutdown",
];

fn has(value: &Value, fields: &[&str], what: &str) {
    for field in fields {
        assert!(value.get(field).is_some(), "{what} has no {field}: {value}");
    }
}

impl Recorder {
    pub(crate) fn connect(node: &Daemon) -> Recorder {
        let at = node.text("http").trim_start_matches("http://");
        let io = TcpStream::connect(at).unwrap();
        io.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = client(format!("ws://{at}/ws"), io).unwrap();
        Recorder { socket, asked: 0, events: Vec::new(), looked_at: 0 }
    }

    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> String {
        self.asked += 1;
        let id = format!("req-{}", self.asked);
        let frame = json!({"type": "req", "id": id, "method": method, "params": params});
        self.socket.send(Message::text(frame.to_string())).unwrap();
        id
    }

    pub(crate) fn hear(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// The answer to a request. Every frame is looked at.
    pub(crate) fn answer(&mut self, id: &str, method: &str) -> Result<Value, Value> {
        loop {
            let mut frame = self.hear();
            if frame["type"] == "event" {
                self.note(frame);
                continue;
            }
            has(&frame, &["type", "id", "ok"], "a response");
            assert_eq!((&frame["type"], &frame["id"]), (&json!("res"), &json!(id)));
            if frame["ok"] != true {
                let error = frame["error"].take();
                has(
                    &error,
                    &["code", "message", "details", "retryable", "retryAfterMs"],
                    "an error",
                );
                return Err(error);
            }
            let payload = frame["payload"].take();
            if payload["cancelled"] == true {
                has(&payload, &["aborted", "runId", "sessionKey"], "a run that was ended");
                return Ok(payload);
            }
            for (of, fields) in FIELDS {
                if of == method {
                    has(&payload, fields, method);
                }
            }
            for (of, list, fields) in ROWS {
                if of == method {
                    payload[list].as_array().unwrap().iter().for_each(|row| has(row, fields, list));
                }
            }
            return Ok(payload);
        }
    }

    fn note(&mut self, event: Value) {
        let name = event["event"].as_str().unwrap();
        let known = ["team.", "exec.approval.", "delegation."];
        let is_known = known.iter().any(|begins| name.starts_with(begins));
        assert!(EVENTS.contains(&name) || is_known, "{event}");
        assert!(event["payload"].is_object(), "{event}");
        if name == "agent" {
            let fields = ["type", "agentId", "runId", "sessionKey", "channel", "userId", "payload"];
            has(&event["payload"], &fields, "an envelope");
        }
        let last = self.events.last().map_or(0, |event| event["seq"].as_u64().unwrap());
        assert_eq!(event["seq"].as_u64(), Some(last + 1), "none was dropped");
        self.events.push(event);
    }

    pub(crate) fn gets(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id, method).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The same, as often as a connection may read.
    pub(crate) fn gets_in_time(&mut self, method: &str, params: &Value) -> Value {
        loop {
            let id = self.begin(method, params);
            match self.answer(&id, method) {
                Ok(payload) => return payload,
                Err(error) => {
                    assert_eq!(error["code"], "RESOURCE_EXHAUSTED", "{method}: {error}");
                    let wait = error["retryAfterMs"].as_u64().unwrap();
                    std::thread::sleep(Duration::from_millis(wait));
                }
            }
        }
    }

    pub(crate) fn refused(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id, method).expect_err(method)
    }

    /// The next event of this name, from now on or of those that came before and were not looked at.
    pub(crate) fn told(&mut self, name: &str) -> Value {
        let end = Instant::now() + DEADLINE;
        loop {
            // Others come again and again.
            assert!(Instant::now() < end, "no {name}: {:?}", self.events);
            let seen = self.looked_at;
            let found = self.events[seen..].iter().position(|event| event["event"] == name);
            if let Some(at) = found {
                self.looked_at = seen + at + 1;
                return self.events[seen + at]["payload"].clone();
            }
            let event = self.hear();
            self.note(event);
        }
    }

    /// The code with which the node closes the connection.
    pub(crate) fn ends(&mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.socket.read().unwrap() {
                return frame.map_or(0, |frame| frame.code.into());
            }
        }
    }

    /// Whether no event of a name that begins so has come.
    pub(crate) fn heard_nothing_of(&self, begins: &str) -> bool {
        let name = |event: &Value| event["event"].as_str().unwrap().to_owned();
        !self.events.iter().any(|event| name(event).starts_with(begins))
    }

    /// Until a run is over.
    fn until_over(&mut self) -> Vec<String> {
        let kind = |event: &Value| event["payload"]["type"].as_str().unwrap_or_default().to_owned();
        let is_over = |event: &Value| {
            matches!(&*kind(event), "run.completed" | "run.failed" | "run.cancelled")
        };
        while !self.events.iter().any(is_over) {
            let event = self.hear();
            self.note(event);
        }
        self.events.iter().map(kind).filter(|kind| !kind.is_empty()).collect()
    }
}

pub(crate) fn keyed(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

pub(crate) fn mint(node: &Daemon, more: &[&str]) -> String {
    let arguments = [&["keys", "mint", "--data-dir", node.text("data_dir")], more].concat();
    let output = ask(&arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A person, as soon as the key is known at the node.
pub(crate) fn come(node: &Daemon, key: &str, user: &str) -> Recorder {
    let mut come = None;
    until("the key is known", || {
        let mut client = Recorder::connect(node);
        let shown = json!({"token": key, "user_id": user, "protocol": 3});
        let id = client.begin("connect", &shown);
        let connected = client.answer(&id, "connect");
        come = Some(client).filter(|_| connected.is_ok());
        connected.is_ok()
    });
    come.unwrap()
}

/// An agent that speaks ClawChat, and joins nothing.
pub(crate) fn agent(node: &Daemon, key: &str, name: &str) -> Agent {
    let mut agent = None;
    until("the key is known", || {
        let mut client = Agent::connect(node.text("tcp"));
        let register = json!({"key": key, "name": name, "agent_id": name, "reconnect": true});
        let registered = client.call("register", register).is_ok();
        agent = Some(client).filter(|_| registered);
        registered
    });
    agent.unwrap()
}

/// The message of this text in the agent's direct room, and that room.
pub(crate) fn heard(agent: &mut Agent, text: &str) -> (Value, Value) {
    let mut found = (Value::Null, Value::Null);
    until("the agent has the message", || {
        let rooms = agent.call("list_rooms", json!({})).unwrap();
        let rooms = rooms["rooms"].as_array().unwrap().clone();
        for room in rooms.iter().filter(|room| room["name"].as_str().unwrap().starts_with("dm:")) {
            let page = json!({"room_id": room["room_id"], "since_seq": 0, "limit": 500});
            let Ok(page) = agent.call("get_history", page) else { continue };
            let messages = page["messages"].as_array().unwrap().iter();
            let mut messages = messages.filter(|message| message["content"] == text);
            if let Some(message) = messages.next() {
                found = (room["room_id"].clone(), message.clone());
                return true;
            }
        }
        false
    });
    found
}

#[test]
fn a_person_at_one_node_talks_to_a_clawchat_agent_at_another() {
    let dirs = [temp(), temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let join = ["--join", first.text("ticket")];
    let [second, third] = [1, 2].map(|n| keyed(dirs[n].path(), &join));
    second.until_connected();
    third.until_connected();
    let people = mint(&first, &["--scopes", "admin"]);
    let agents = mint(&first, &[]);
    let mut bob = agent(&second, &agents, "bob");
    let mut ada = come(&first, &people, "ada");
    let is_listed = |ada: &mut Recorder| {
        let list = ada.gets("agents.list", &json!({}));
        let rows = list["agents"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["id"] == "bob")
    };
    until("Bob is known where Ada is", || is_listed(&mut ada).is_some());
    let row = is_listed(&mut ada).unwrap();
    assert_eq!((&row["status"], &row["own"]), (&json!("active"), &json!(false)));

    let mut sent = None;
    until("there is a direct room", || {
        let id =
            ada.begin("chat.send", &json!({"agentId": "bob", "message": "hi bob", "stream": true}));
        let (room, message) = heard(&mut bob, "hi bob");
        assert_eq!(message["metadata"]["from"], "ada");
        assert_eq!(message["metadata"]["kind"], "request");
        let reply =
            json!({"room_id": room, "content": "hi ada", "reply_to": message["message_id"]});
        bob.call("send_message", reply).unwrap();
        sent = Some(ada.answer(&id, "chat.send").unwrap());
        true
    });
    let result = sent.unwrap();
    assert_eq!((&result["content"], &result["status"]), (&json!("hi ada"), &json!("completed")));
    assert_eq!(ada.until_over(), ["run.started", "chunk", "run.completed"]);

    // The same key at the other node reads the same session.
    let key = result["sessionKey"].clone();
    let mut elsewhere = come(&second, &people, "ada");
    until("the session is there, too", || {
        let history = elsewhere.gets("chat.history", &json!({"sessionKey": key}));
        history["messages"].as_array().unwrap().len() == 2
    });
    let list = elsewhere.gets("sessions.list", &json!({}));
    assert_eq!((&list["sessions"][0]["key"], &list["total"]), (&key, &json!(1)));
    let preview = elsewhere.gets("sessions.preview", &json!({"key": key}));
    assert_eq!(preview["messages"][1]["content"], "hi ada");
    // So does a node at which no agent of the two is, from when the key is shown there.
    let mut far = come(&third, &people, "ada");
    until("the session is at the third node", || {
        let history = far.gets("chat.history", &json!({"sessionKey": key}));
        history["messages"].as_array().unwrap().len() == 2
    });
    // And another key reads nothing of it.
    let mut other = come(&second, &agents, "ada");
    assert_eq!(other.gets("sessions.list", &json!({}))["total"], 0);

    // Ended from the other node.
    let id =
        ada.begin("chat.send", &json!({"sessionKey": key, "message": "slow", "timeoutMs": 60_000}));
    heard(&mut bob, "slow");
    until("the run is known there", || {
        elsewhere.gets("chat.abort", &json!({"sessionKey": key}))["aborted"] == true
    });
    assert_eq!(ada.answer(&id, "chat.send").err(), None, "it is no failure");
    for (method, params) in [
        ("health", json!({})),
        ("status", json!({})),
        ("skills.list", json!({})),
        ("teams.list", json!({})),
        ("teams.get", json!({"id": "lobby"})),
    ] {
        ada.gets(method, &params);
    }
    assert_eq!(ada.refused("config.patch", &json!({}))["code"], "UNAUTHORIZED");
    assert_eq!(ada.refused("sessions.compact", &json!({}))["code"], "NOT_IMPLEMENTED");
    assert_eq!(ada.gets("health", &json!({}))["peers"].as_array().unwrap().len(), 2);
}

#[test]
fn labels_and_paired_devices_are_there_after_a_restart_and_a_node_can_do_without() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let own = std::fs::read_to_string(dir.path().join("auth.key")).unwrap().trim().to_owned();
    let mut bob = agent(&node, &own, "bob");
    let mut ada = come(&node, &own, "ada");
    let key = "agent:bob:ws:direct:one";
    ada.gets("chat.inject", &json!({"sessionKey": key, "message": "note"}));
    heard(&mut bob, "note");
    ada.gets("sessions.patch", &json!({"key": key, "label": "Sheep"}));
    let mut device = Recorder::connect(&node);
    let id = device.begin("connect", &json!({}));
    // What a device is told that waits has other fields.
    let frame = device.hear();
    assert_eq!(
        (&frame["id"], &frame["payload"]["status"]),
        (&json!(id), &json!("pending_pairing"))
    );
    let issued = frame["payload"]["sender_id"].clone();
    ada.gets("device.pair.approve", &json!({"code": frame["payload"]["pairing_code"]}));
    node.stop();

    let node = keyed(dir.path(), &[]);
    let mut ada = come(&node, &own, "ada");
    let list = ada.gets("sessions.list", &json!({}));
    assert_eq!(list["sessions"][0]["label"], "Sheep");
    let mut device = Recorder::connect(&node);
    let connected = device.gets("connect", &json!({"sender_id": issued, "user_id": "phone"}));
    assert_eq!(connected["role"], "operator");
    node.stop();

    let node = keyed(dir.path(), &["--no-goclaw"]);
    let mut client = Recorder::connect(&node);
    let no = client.refused("connect", &json!({"token": own}));
    assert_eq!(no["code"], "UNAVAILABLE");
    node.stop();
}
