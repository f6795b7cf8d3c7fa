//! A client without a socket that speaks and hears JSON.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bridge::{
    Config,
    testing::{Connection, Fake, KEY, keyed, lobby},
};
use mesh::name::id::RoomId;
use serde_json::{Value, json};

use crate::ClawChat;

pub(crate) struct Local {
    pub(crate) fake: Arc<Fake>,
    pub(crate) line: Connection,
    replies: BTreeMap<String, Value>,
    pub(crate) events: VecDeque<Value>,
    /// Types of all frames, in the order they were written.
    pub(crate) written: Vec<String>,
    asked: usize,
}

impl Local {
    /// A connection that has not registered.
    pub(crate) fn fresh(fake: &Arc<Fake>, config: Config) -> Local {
        let line = Connection::new(fake, config, &ClawChat::new(lobby()));
        Local {
            fake: fake.clone(),
            line,
            replies: BTreeMap::new(),
            events: VecDeque::new(),
            written: Vec::new(),
            asked: 0,
        }
    }

    /// A registered agent of the node's key.
    pub(crate) fn agent(fake: &Arc<Fake>, id: &str) -> Local {
        let mut local = Local::fresh(fake, keyed());
        let reply = local.register(id);
        assert_eq!(reply["type"], "ok", "{reply}");
        local
    }

    pub(crate) fn register(&mut self, id: &str) -> Value {
        self.ask("register", json!({"key": KEY, "name": id, "agent_id": id, "reconnect": true}))
    }

    /// Sends a line; answers that come at once are worked off.
    pub(crate) fn line(&mut self, line: &str) {
        self.line.say(line);
        self.settle();
    }

    /// Sends a line if the connection would read it now.
    #[cfg_attr(not(feature = "fuzzing"), allow(dead_code, reason = "fuzzing says what it likes"))]
    pub(crate) fn hear(&mut self, line: &str) {
        self.line.say_if_read(line);
        self.settle();
    }

    /// Sends a request without waiting. Returns its id.
    pub(crate) fn post(&mut self, kind: &str, payload: Value) -> String {
        self.asked += 1;
        let id = format!("r{}", self.asked);
        self.line(&json!({"id": id, "type": kind, "payload": payload}).to_string());
        id
    }

    /// The whole reply.
    pub(crate) fn ask(&mut self, kind: &str, payload: Value) -> Value {
        let id = self.post(kind, payload);
        self.reply(&id).unwrap_or_else(|| panic!("no reply to {kind}"))
    }

    /// The payload of a reply that is no error.
    pub(crate) fn call(&mut self, kind: &str, payload: Value) -> Value {
        let mut reply = self.ask(kind, payload);
        assert_ne!(reply["type"], "error", "{reply}");
        reply["payload"].take()
    }

    /// The code of a reply that is an error.
    pub(crate) fn code(&mut self, kind: &str, payload: Value) -> String {
        let reply = self.ask(kind, payload);
        assert_eq!(reply["type"], "error", "{reply}");
        reply["payload"]["code"].as_str().unwrap().into()
    }

    pub(crate) fn reply(&mut self, id: &str) -> Option<Value> {
        self.settle();
        self.replies.remove(id)
    }

    /// The payload of the next event of this type; those before it are dropped.
    pub(crate) fn event(&mut self, kind: &str) -> Option<Value> {
        self.settle();
        while let Some(mut event) = self.events.pop_front() {
            if event["type"] == kind {
                return Some(event["payload"].take());
            }
        }
        None
    }

    pub(crate) fn kinds(&mut self) -> Vec<String> {
        self.settle();
        self.events.drain(..).map(|event| event["type"].as_str().unwrap().into()).collect()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.line.is_open()
    }

    /// The connection ends.
    pub(crate) fn hang_up(self) {
        self.line.hang_up();
    }

    /// Works off answers and reads written frames.
    pub(crate) fn settle(&mut self) {
        self.line.settle();
        for frame in self.line.frames.drain(..) {
            let value: Value = serde_json::from_slice(&frame).unwrap();
            assert!(!frame.contains(&b'\n'), "one line");
            self.written.push(value["type"].as_str().unwrap().into());
            match value["reply_to"].as_str() {
                Some(id) => drop(self.replies.insert(id.into(), value)),
                None => self.events.push_back(value),
            }
        }
    }
}

/// A room's id from a reply.
#[cfg(test)]
pub(crate) fn room(reply: &Value) -> RoomId {
    RoomId::from_uuid(reply["room_id"].as_str().unwrap()).unwrap()
}
