//! How one kind of client is told of things: with ids of its form, in this mesh.

use bridge::shown::Eyes;
use bytes::Bytes;
use mesh::{
    api::agenda::TaskView,
    name::id::{KeyPrint, MessageId, RoomId},
};
use serde_json::{Value, json};

use crate::{
    envelope::{Related, Told, cut},
    ids::{self, Form},
    limits::NAME_CHARS_MAX,
    names,
    problem::{self, Problem},
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) form: Form,
    pub(crate) lobby: RoomId,
    /// Who is told.
    pub(crate) eyes: Eyes,
}

/// The lobby, as it is written.
const LOBBY: [u8; 16] = [0; 16];

impl Style {
    pub(crate) fn room(self, room: RoomId) -> String {
        self.form.id("room", if room == self.lobby { LOBBY } else { room.0 })
    }

    pub(crate) fn message(self, message: MessageId) -> String {
        self.form.id("chat", message.0)
    }

    /// A task, by the id that its maker chose, if there is one.
    pub(crate) fn task(self, task: &TaskView) -> String {
        self.task_id(task.facts.alias.unwrap_or(task.task))
    }

    pub(crate) fn task_id(self, task: MessageId) -> String {
        self.form.id("task", task.0)
    }

    /// A person, or an agent, as somebody who does something.
    pub(crate) fn user(self, agent: &str, name: Option<&str>) -> Value {
        let user = names::user_of(agent);
        let name = name.or(user).unwrap_or(agent);
        json!({
            "user_id": self.form.id("user", names::id_of(agent)),
            "display_name": shown(name),
            "type": if user.is_some() { "human" } else { "agent" },
        })
    }

    /// The owner of an agent with this key. To strangers nobody's is known.
    pub(crate) fn owner(self, key: Option<KeyPrint>) -> Value {
        let key = match self.eyes {
            Eyes::Members => key,
            Eyes::Strangers => None,
        };
        let (id, name) = names::owner(key);
        json!({"user_id": self.form.id("user", id), "display_name": name, "type": "human"})
    }

    /// An event of a room.
    pub(crate) fn in_room(self, told: Told, room: RoomId) -> Bytes {
        self.frame(told.with("room_id", self.room(room)))
    }

    pub(crate) fn frame(self, told: Told) -> Bytes {
        told.frame(self.form)
    }

    pub(crate) fn error(self, problem: &Problem, related: &Related) -> Bytes {
        let data = problem.data(&problem::error_id(self.form), related);
        self.frame(Told::fresh("error", data).answering(related))
    }

    /// The room that an id names, in any of its forms. `None`: it may be a name.
    pub(crate) fn room_named(self, text: &str) -> Option<RoomId> {
        if text == "lobby" {
            return Some(self.lobby);
        }
        let id = ids::parse_any(text)?;
        Some(if id == LOBBY { self.lobby } else { RoomId(id) })
    }
}

/// A name, not longer than a schema has it.
pub(crate) fn shown(name: &str) -> String {
    cut(name, NAME_CHARS_MAX).0
}
