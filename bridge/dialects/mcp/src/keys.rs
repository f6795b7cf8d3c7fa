//! Keys of sessions: what hosts call rooms and agents.

use bridge::policy::{self, CHANNEL, GROUP, LOBBY, Place, TASK};
use mesh::{
    api::command::RoomView,
    name::{
        group::agent_ref,
        id::{KeyPrint, MessageId, RoomId},
    },
};
use serde_json::{Map, json};

use crate::{
    limits::{AMBIGUOUS_MAX, SUGGESTIONS_MAX},
    outcome::No,
};

/// The agent's own session.
pub(crate) const MAIN: &str = policy::MAIN;
/// Between a session's key and the id of one of its messages.
pub(crate) const THREAD: &str = ":thread:";
/// Keys of sessions that there are not yet, or never.
const RESERVED: [&str; 5] = ["cron:", "hook:", "node-", "global", "unknown"];

/// An agent's id as a part of a key: itself, if it is short and plain.
pub(crate) fn reference(agent: &str) -> String {
    agent_ref(agent)
}

/// The direct session of an agent with the caller.
pub(crate) fn of_agent(agent: &str) -> String {
    policy::key_of_agent(agent)
}

/// The form of a text that is to name a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Main,
    /// A reference to an agent.
    Agent(String),
    /// A session, and a message of it.
    Thread(String, MessageId),
    Reserved,
    /// An id or a name.
    Other,
}

impl Form {
    /// As the agent `me` means it.
    pub(crate) fn of(text: &str, me: &str) -> Form {
        let lower = text.trim().to_lowercase();
        if let Some((of, message)) = lower.rsplit_once(THREAD)
            && let Some(message) = MessageId::from_uuid(message)
        {
            return Form::Thread(of.to_owned(), message);
        }
        if matches!(&*lower, MAIN | "current") {
            return Form::Main;
        }
        let agent = lower.strip_prefix("agent:").and_then(|rest| rest.strip_suffix(":main"));
        if let Some(agent) = agent {
            let own = agent == reference(me);
            return if own { Form::Main } else { Form::Agent(agent.to_owned()) };
        }
        let is_reserved = RESERVED.iter().any(|name| lower.starts_with(name));
        if is_reserved { Form::Reserved } else { Form::Other }
    }
}

/// The names of rooms in a mesh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) lobby: RoomId,
    /// The agent that asks.
    pub(crate) me: &'a str,
}

impl Names<'_> {
    /// A room's id as hosts know it.
    pub(crate) fn id(self, room: RoomId) -> String {
        if room == self.lobby { LOBBY.to_owned() } else { room.to_uuid() }
    }

    /// A room, as the place of a session.
    pub(crate) fn place(self, view: &RoomView) -> Place<'_> {
        let (room, task, public) = (view.room, view.task, view.public);
        Place { room, sides: view.sides.as_ref(), task, public, lobby: self.lobby }
    }

    /// The key of a task's room.
    pub(crate) fn of_task(self, room: RoomId) -> String {
        format!("{TASK}{}", room.to_uuid())
    }

    /// A room's key.
    pub(crate) fn key(self, view: &RoomView) -> String {
        self.place(view).key(self.me)
    }

    /// The id that a text is, if it is one.
    pub(crate) fn parse_id(self, text: &str) -> Option<RoomId> {
        let text = text.trim().to_ascii_lowercase();
        let own = format!("agent:{}:", reference(self.me));
        let text =
            text.strip_prefix(&own).filter(|rest| rest.starts_with("mesh:")).unwrap_or(&text);
        // Of whom a task is does not matter: its room has an id.
        let text = text.rsplit_once(":subagent:").map_or(text, |(_, id)| id);
        let prefixes = [CHANNEL, GROUP, TASK].into_iter();
        let id = prefixes.filter_map(|prefix| text.strip_prefix(prefix)).next().unwrap_or(text);
        if id == LOBBY { Some(self.lobby) } else { RoomId::from_uuid(id) }
    }

    /// The room that a text means, by name or as the session with an agent.
    pub(crate) fn find<'r>(self, text: &str, rooms: &'r [RoomView]) -> Result<&'r RoomView, No> {
        let text = text.trim();
        let lower = text.to_lowercase();
        let is_key = |view: &&RoomView| self.key(view) == lower;
        if let Some(room) = rooms.iter().find(is_key) {
            return Ok(room);
        }
        let after =
            |prefix: &str| lower.starts_with(prefix).then(|| text.get(prefix.len()..)).flatten();
        let name = after(CHANNEL).or_else(|| after(GROUP)).unwrap_or(text);
        // A session with an agent is no name of a room.
        let exact = |view: &&RoomView| view.sides.is_none() && *view.name == *name;
        if let Some(room) = self.only(name, rooms.iter().filter(exact).collect())? {
            return Ok(room);
        }
        let folded = name.to_lowercase();
        let alike = |view: &&RoomView| view.sides.is_none() && view.name.to_lowercase() == folded;
        if let Some(room) = self.only(name, rooms.iter().filter(alike).collect())? {
            return Ok(room);
        }
        Err(self.missing(text, rooms))
    }

    fn only<'r>(self, name: &str, fitting: Vec<&'r RoomView>) -> Result<Option<&'r RoomView>, No> {
        match *fitting {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [..] => {
                let keys: Vec<String> =
                    fitting.iter().take(AMBIGUOUS_MAX).map(|view| self.key(view)).collect();
                let keys = keys.join(", ");
                Err(No::error(format!("{name:?} is ambiguous: use one of {keys}")))
            }
        }
    }

    /// There is no such room: those whose names are most like it, or else the liveliest, are suggested.
    pub(crate) fn missing(self, text: &str, rooms: &[RoomView]) -> No {
        let wanted = text.to_lowercase();
        let mut rooms: Vec<&RoomView> = rooms.iter().collect();
        rooms.sort_by_key(|view| {
            let name = view.name.to_lowercase();
            let is_like = name.contains(&wanted) || wanted.contains(&name);
            (!is_like, std::cmp::Reverse(view.last_activity_ms))
        });
        let keys: Vec<String> =
            rooms.into_iter().take(SUGGESTIONS_MAX).map(|view| self.key(view)).collect();
        No::error(format!("no such session: {text:?}")).with("suggestions", json!(keys))
    }
}

/// The id of an agent that names none: the key's own.
pub(crate) fn agent_of(key: KeyPrint) -> String {
    let mut hex = key.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
    hex.insert(0, "mcp-".to_owned());
    hex.concat()
}

/// Fields that say where a message is from.
pub(crate) fn provenance(agent: &str) -> serde_json::Value {
    let fields: Map<String, serde_json::Value> = [
        ("kind".to_owned(), json!("inter_session")),
        ("sourceSessionKey".to_owned(), json!(of_agent(agent))),
        ("sourceChannel".to_owned(), json!("mesh")),
        ("isUser".to_owned(), json!(false)),
    ]
    .into_iter()
    .collect();
    serde_json::Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_any_letter_case() {
        let agent = |text: &str| Form::Agent(text.to_owned());
        assert_eq!(Form::of(" AGENT:BOB:MAIN ", "ada"), agent("bob"));
        for own in ["main", "Current", "agent:ada:main"] {
            assert_eq!(Form::of(own, "ada"), Form::Main, "{own}");
        }
        let message = MessageId([7; 16]);
        let thread = format!("agent:bob:main:thread:{}", message.to_uuid());
        assert_eq!(Form::of(&thread, "ada"), Form::Thread("agent:bob:main".to_owned(), message));
        for reserved in ["cron:x", "hook:7", "node-1", "global"] {
            assert_eq!(Form::of(reserved, "ada"), Form::Reserved, "{reserved}");
        }
        assert_eq!(Form::of("mesh:channel:lobby", "ada"), Form::Other);
    }

    #[test]
    fn an_agent_without_a_name_has_its_keys() {
        assert_eq!(agent_of(KeyPrint([0xab; 16])), "mcp-abababababababab");
    }
}
