//! A client without a socket: the session, its link, and what the connection does between them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use mesh::name::id::RoomId;
use protocol::frame::parse_request;
use serde_json::{Value, json};

use super::{Fake, lobby};
use crate::{
    Hub, Mesh, Reply,
    config::{Auth, Config, NodeKey},
    link::{Ending, Life, Link},
    outbox::Work,
    reply::Hook,
    session::{Session, Step, Steps},
};

pub(crate) struct Local {
    pub(crate) fake: Arc<Fake>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) link: Arc<Link>,
    pub(crate) session: Session,
    replies: BTreeMap<String, Value>,
    pub(crate) events: VecDeque<Value>,
    /// Types of all frames, in the order they were written.
    pub(crate) written: Vec<String>,
    asked: usize,
    /// What its clock says.
    pub(crate) now: Instant,
}

/// A node whose only key is `key`.
pub(crate) fn keyed() -> Config {
    Config::new(lobby(), Auth::Key(NodeKey::new("key")))
}

impl Local {
    /// A connection that has not registered.
    pub(crate) fn fresh(fake: &Arc<Fake>, config: Config) -> Local {
        let hub = fake.hub();
        Local {
            fake: fake.clone(),
            link: hub.connect(),
            session: Session::new(Arc::new(config), hub.clone(), fake.meter.clone()),
            now: fake.started,
            hub,
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
        self.ask("register", json!({"key": "key", "name": id, "agent_id": id, "reconnect": true}))
    }

    /// Sends a line; answers that come at once are worked off.
    pub(crate) fn line(&mut self, line: &str) {
        let steps = self.session.on_request(self.now, parse_request(line));
        self.perform(steps);
        self.settle();
    }

    /// Sends a line if the connection would read it now.
    pub(crate) fn hear(&mut self, line: &str) {
        if self.is_open() && self.session.takes_requests() && self.link.takes_replies() {
            self.line(line);
        }
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
        self.link.life() == Life::Open
    }

    /// The connection ends.
    pub(crate) fn hang_up(self) {
        self.link.end(Ending::Done);
        self.hub.disconnect(&self.link);
        if let Some(caller) = self.session.caller() {
            let (reply, _) = Reply::once();
            let command = mesh::api::command::Command::Detach {
                caller: caller.clone(),
                seen: self.link.seen(),
            };
            self.fake.call(command, reply);
        }
    }

    /// Works off answers and reads what was written.
    pub(crate) fn settle(&mut self) {
        loop {
            let answers = self.link.take_answers();
            if answers.is_empty() {
                break;
            }
            for (ticket, answer) in answers {
                let steps = self.session.on_answer(ticket, answer);
                self.perform(steps);
            }
        }
        let mut batch = Vec::new();
        while let Some(work) = self.link.next(&mut batch) {
            match work {
                Work::Wait => break,
                Work::CatchUp(lag) => {
                    let page = self.hub.page(&self.link, lag).unwrap();
                    assert!(self.link.caught_up(lag.room, page));
                }
                Work::Write => {
                    for frame in &batch {
                        let value: Value = serde_json::from_slice(&frame.bytes).unwrap();
                        assert_eq!(frame.bytes.last(), Some(&b'\n'));
                        self.written.push(value["type"].as_str().unwrap().into());
                        match value["reply_to"].as_str() {
                            Some(id) => drop(self.replies.insert(id.into(), value)),
                            None => self.events.push_back(value),
                        }
                    }
                }
            }
        }
    }

    fn perform(&mut self, steps: Steps) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Reply(bytes) => self.link.reply(bytes),
                Step::Replay { message, bytes } => self.link.replay(message, bytes),
                Step::Call { ticket, command, hook } => {
                    let hook = match hook {
                        Hook::Join { room, .. } => {
                            Hook::Join { room, fresh: self.hub.seat(&self.link, room) }
                        }
                        Hook::None | Hook::Attach { .. } | Hook::Leave { .. } => hook,
                    };
                    let (hub, link) = (self.hub.clone(), self.link.clone());
                    self.fake.call(command, Reply::to_link(hub, link, ticket, hook));
                }
                // Asked over a socket: there is no runtime here. Nobody waits for the answer.
                Step::Webhooks { .. } if cfg!(feature = "fuzzing") => {}
                Step::Webhooks { .. } => panic!("webhooks are asked over a socket"),
                Step::Read { ticket, job } => {
                    let found = job.run(&*self.fake);
                    for step in self.session.on_found(ticket, found).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Came(room, cursor) => self.link.came(room, cursor),
                Step::Paged(room, upto) => self.link.paged(room, upto),
                Step::Hold(room) => self.link.hold(room),
                Step::GoOnFrom(room, cursor) => {
                    let tip = self.hub.tip(room);
                    self.link.go_on_from(room, (cursor, tip));
                }
                Step::Release(room, seen) => self.link.release(room, seen),
                Step::Open => self.link.open(),
                Step::Close(ending) => self.link.drain(ending),
            }
        }
    }
}

/// A room's id from a reply.
pub(crate) fn room(reply: &Value) -> RoomId {
    RoomId::from_uuid(reply["room_id"].as_str().unwrap()).unwrap()
}
