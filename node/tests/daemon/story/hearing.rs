//! A client of any dialect on a WebSocket, and each of its frames in one line.

use std::{collections::BTreeSet, net::TcpStream};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::harness::{DEADLINE, Daemon};

/// What a client speaks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tongue {
    Tank,
    Go,
    Chat,
    Looks,
}

/// What a line is of.
enum Line {
    Talk(String),
    Work(String),
}
use Line::{Talk, Work};

/// What was heard, or is due: of messages and approvals, and of tasks. The two come side by side.
#[derive(Debug, Default, PartialEq, Eq)]
struct Transcript {
    talk: Vec<String>,
    work: Vec<String>,
}

pub(super) struct Listener {
    pub(super) name: &'static str,
    tongue: Tongue,
    socket: WebSocket<TcpStream>,
    frames: Vec<Value>,
    heard: Transcript,
    due: Transcript,
    asked: u64,
}

impl Listener {
    pub(super) fn connect(
        node: &Daemon,
        path: &str,
        tongue: Tongue,
        name: &'static str,
    ) -> Listener {
        let at = node.text("http").trim_start_matches("http://");
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (socket, _) = client(format!("ws://{at}{path}"), stream).unwrap();
        let (heard, due) = Default::default();
        Listener { name, tongue, socket, frames: Vec::new(), heard, due, asked: 0 }
    }

    fn hear(&mut self) {
        let read = self.socket.read();
        let read = read.unwrap_or_else(|error| {
            panic!("{}: {error}; heard {:#?}, due {:#?}", self.name, self.heard, self.due)
        });
        let Message::Text(text) = read else { return };
        let frame: Value = serde_json::from_str(&text).unwrap();
        for line in lines(self.tongue, &frame) {
            match line {
                Talk(line) => self.heard.talk.push(line),
                Work(line) => self.heard.work.push(line),
            }
        }
        self.frames.push(frame);
    }

    /// The first frame that is so, `from` this place on.
    fn find(&mut self, from: usize, is: impl Fn(&Value) -> bool) -> Value {
        let mut place = from;
        loop {
            while place == self.frames.len() {
                self.hear();
            }
            if is(&self.frames[place]) {
                return self.frames[place].clone();
            }
            place += 1;
        }
    }

    fn send(&mut self, frame: &Value) -> usize {
        self.socket.send(Message::text(frame.to_string())).unwrap();
        self.frames.len()
    }

    /// A request of ClawTank, and the frame that confirms or refuses it.
    pub(super) fn ask(&mut self, kind: &str, data: Value) -> Value {
        let id = super::company::fresh();
        let from = self.send(&json!({
            "id": id, "type": kind, "timestamp": "2026-02-17T21:03:00.123Z", "data": data,
        }));
        self.find(from, |frame| frame["metadata"]["correlation_id"] == id)
    }

    pub(super) fn gets(&mut self, kind: &str, data: Value) -> Value {
        let answer = self.ask(kind, data);
        assert_ne!(answer["type"], "error", "{answer}");
        answer
    }

    /// A method of GoClaw, and its result; `None`: it was refused.
    pub(super) fn tries(&mut self, method: &str, params: Value) -> Option<Value> {
        self.asked += 1;
        let id = self.asked.to_string();
        let from = self.send(&json!({"type": "req", "id": id, "method": method, "params": params}));
        let answer = self.find(from, |frame| frame["type"] == "res" && frame["id"] == id);
        (answer["ok"] == true).then(|| answer["payload"].clone())
    }

    pub(super) fn calls(&mut self, method: &str, params: Value) -> Value {
        self.tries(method, params).unwrap_or_else(|| panic!("{method}: {:?}", self.frames.last()))
    }

    /// A command of ClawChat, and its reply.
    pub(super) fn asks_chat(&mut self, kind: &str, payload: Value) -> Value {
        let reply = self.tries_chat(kind, payload);
        assert_ne!(reply["type"], "error", "{reply}");
        reply["payload"].clone()
    }

    pub(super) fn tries_chat(&mut self, kind: &str, payload: Value) -> Value {
        self.asked += 1;
        let id = self.asked.to_string();
        let from = self.send(&json!({"type": kind, "id": id, "payload": payload}));
        self.find(from, |frame| frame["reply_to"] == id)
    }

    /// A line of messages or approvals is due.
    pub(super) fn says(&mut self, line: &str) {
        self.due.talk.push(line.to_owned());
    }

    /// A line of tasks is due.
    pub(super) fn works(&mut self, line: &str) {
        self.due.work.push(line.to_owned());
    }

    /// Waits for as much as is due, which must then be all that was heard.
    pub(super) fn has_heard(&mut self) {
        while self.heard.talk.len() < self.due.talk.len()
            || self.heard.work.len() < self.due.work.len()
        {
            self.hear();
        }
        assert_eq!(self.heard, self.due, "{}", self.name);
    }

    /// Ids of events of messages and approvals.
    pub(super) fn ids_of_talk(&self) -> BTreeSet<&str> {
        let is_talk = |line: &Line| matches!(line, Talk(_));
        let frames = self.frames.iter();
        let frames = frames.filter(|frame| lines(self.tongue, frame).iter().any(is_talk));
        frames.map(|frame| text(&frame["id"])).collect()
    }

    pub(super) fn all_text(&self) -> String {
        self.frames.iter().map(|frame| frame.to_string() + "\n").collect()
    }

    /// Waits for its first frame.
    pub(super) fn is_welcome(&mut self) {
        let welcome = self.find(0, |_| true);
        assert_eq!(welcome["type"], "spectator.welcome", "{welcome}");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn lines(tongue: Tongue, frame: &Value) -> Vec<Line> {
    match tongue {
        Tongue::Tank => tank(frame).into_iter().collect(),
        Tongue::Go => go(frame).into_iter().collect(),
        Tongue::Chat => chat(frame).into_iter().collect(),
        Tongue::Looks => {
            let events = frame["data"]["events"].as_array();
            events.into_iter().flatten().filter_map(seen).collect()
        }
    }
}

fn tank(frame: &Value) -> Option<Line> {
    let data = &frame["data"];
    Some(match text(&frame["type"]) {
        "chat.human_message" | "chat.agent_message" => {
            Talk(text(&data["content"]["text"]).to_owned())
        }
        "approval.request" => Talk(format!("may I {}", text(&data["details"]["command"]))),
        "approval.response" => Talk(text(&data["decision"]).to_owned()),
        "task.created" => Work(format!("created {}", text(&data["status"]))),
        "task.claim_accepted" => Work(format!("claimed by {}", text(&data["agent_id"]))),
        "task.status" => {
            let (step, notes) = (text(&data["progress"]["current_step"]), text(&data["notes"]));
            let words =
                if notes.is_empty() && data["status"] == "in_progress" { step } else { notes };
            Work(format!(
                "status {} {} {words}",
                text(&data["status"]),
                data["progress"]["percentage"]
            ))
        }
        "task.completed" => Work(format!("completed {}", text(&data["mesh"]["state"]))),
        _ => return None,
    })
}

fn go(frame: &Value) -> Option<Line> {
    let (event, told) = (frame["event"].as_str()?, &frame["payload"]);
    if let Some(what) = event.strip_prefix("exec.approval.") {
        return Some(Talk(match told["decision"].as_str() {
            Some(decision) => format!("{what} {decision} by {}", text(&told["by"])),
            None => format!("{what} {}", text(&told["command"])),
        }));
    }
    Some(Work(match event.strip_prefix("team.task.")? {
        "progress" => format!("progress {}", told["progress_percent"]),
        "commented" => format!("commented {}", text(&told["comment_text"])),
        what => what.to_owned(),
    }))
}

fn chat(frame: &Value) -> Option<Line> {
    let told = &frame["payload"];
    Some(match frame["type"].as_str()? {
        "message_received" => Talk(text(&told["content"]).to_owned()),
        "task_assigned" => Work(format!("assigned {}", text(&told["status"]))),
        "task_updated" => {
            let state = told["mesh"]["state"].as_str().unwrap_or(text(&told["status"]));
            let percent = told["mesh"]["progress"]["percent"].as_u64().unwrap_or_default();
            let line = format!("updated {state} {percent} {}", text(&told["note"]));
            Work(line.trim_end().to_owned())
        }
        _ => return None,
    })
}

/// An event that those are shown who look on.
fn seen(event: &Value) -> Option<Line> {
    let data = &event["data"];
    let by = || text(&data["agent_name"]);
    Some(match text(&event["type"]) {
        "chat.public" => Talk(text(&data["content"]).to_owned()),
        "task.created" => {
            Work(format!("created {} by {}", text(&data["title"]), text(&data["creator"])))
        }
        "agent.claimed_task" => Work(format!("claimed by {}", by())),
        "task.completed" => Work(format!("completed by {}", by())),
        "agent.joined" | "agent.left" | "member.joined" | "member.left" | "agent.status_change" => {
            return None;
        }
        other => panic!("those who look on are told of {other}: {event}"),
    })
}
