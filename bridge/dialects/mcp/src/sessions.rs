//! Sessions: what a host means by a key, an id or a name.

use bridge::seam::{
    call::{DescribeRoom, FindAgent, GetProfile, ListRooms},
    refusal::Refusal,
};
use mesh::{
    api::command::{Refused, RoomView},
    name::id::{AgentId, MessageId},
};
use serde_json::json;

use crate::{
    arguments::Arguments,
    asking::Asking,
    children::{Child, given_by, newest_of},
    keys::{self, Form, of_agent, reference},
    limits::{AMBIGUOUS_MAX, KEY_CHARS_MAX, SUGGESTIONS_MAX},
    outcome::No,
    reach::{Reachable, reachable},
};

/// A session that a host means.
#[derive(Clone, Debug)]
pub(crate) enum Session {
    /// The agent's own, with itself.
    Main,
    /// The one with another agent. There may be no room for it yet.
    Agent(AgentId),
    /// A room.
    Room(Box<RoomView>),
    /// A message of a session, and what answers it.
    Thread(Box<Session>, MessageId),
}

impl Session {
    /// Its key.
    pub(crate) fn key(&self, asking: &Asking) -> String {
        match self {
            Session::Main => keys::MAIN.to_owned(),
            Session::Agent(agent) => of_agent(agent),
            Session::Room(room) => asking.names().key(room),
            Session::Thread(of, message) => {
                format!("{}{}{}", of.key(asking), keys::THREAD, message.to_uuid())
            }
        }
    }
}

impl Asking {
    /// The session that arguments name. At least one has to; those that do name the same.
    pub(crate) async fn session(&self, arguments: &Arguments) -> Result<Session, No> {
        let key = arguments.filled("sessionKey", KEY_CHARS_MAX)?;
        let agent = arguments.filled("agentId", KEY_CHARS_MAX)?;
        let label = arguments.filled("label", KEY_CHARS_MAX)?;
        let mut named: Vec<(&'static str, Session)> = Vec::new();
        if let Some(key) = key {
            named.push(("sessionKey", self.resolve(&key).await?));
        }
        if let Some(agent) = agent {
            let found = self.agent_of(agent.trim()).await;
            named.push(("agentId", self.shown(&agent, found)?));
        }
        if let Some(label) = label {
            let found = self.by_label(label.trim()).await;
            named.push(("label", self.shown(&label, found)?));
        }
        let mut named = named.into_iter();
        let Some((first, session)) = named.next() else {
            return Err(No::Argument {
                text: "name a target: sessionKey, agentId or label".to_owned(),
                field: "sessionKey",
            });
        };
        let wanted = session.key(self);
        if let Some((other, _)) = named.find(|(_, session)| session.key(self) != wanted) {
            let text = format!("{first} and {other} name different sessions");
            return Err(No::Argument { text, field: other });
        }
        Ok(session)
    }

    /// The session of an argument that has to be there.
    pub(crate) async fn session_of_key(&self, arguments: &Arguments) -> Result<Session, No> {
        let key = arguments.required("sessionKey", KEY_CHARS_MAX)?;
        self.resolve(&key).await
    }

    /// The session that a text means, if the agent may know of it.
    pub(crate) async fn resolve(&self, text: &str) -> Result<Session, No> {
        let found = self.resolve_any(text).await;
        self.shown(text, found)
    }

    /// The session that a text means, the first that fits.
    async fn resolve_any(&self, text: &str) -> Result<Session, No> {
        let text = text.trim();
        match Form::of(text, &self.agent) {
            Form::Main => Ok(Session::Main),
            Form::Agent(reference) => self.by_reference(&reference).await,
            Form::Thread(of, message) => {
                let of = Box::pin(self.resolve_any(&of)).await?;
                if matches!(of, Session::Thread(..)) {
                    return Err(No::error(format!("no such session: {text:?}")));
                }
                Ok(Session::Thread(Box::new(of), message))
            }
            Form::Reserved => Err(self.missing(text, &self.rooms().await?)),
            Form::Other => self.by_id_or_name(text).await,
        }
    }

    /// A room by its id, an agent by its own, a room by its name, or an agent by what it calls itself.
    async fn by_id_or_name(&self, text: &str) -> Result<Session, No> {
        if let Some(room) = self.names().parse_id(text) {
            let found = self.shared.desk.ask(&self.reader, DescribeRoom(room)).await;
            match found {
                Ok(info) => return self.of_room(info.room).await,
                Err(refusal) if !is_missing(&refusal) => return Err(refusal.into()),
                // A room of another key is as one that is not there. A name may look like an id.
                Err(_) => {}
            }
        }
        let is_room = text.to_ascii_lowercase().starts_with("mesh:");
        if !is_room && self.knows(text).await? {
            return Ok(Session::Agent(text.into()));
        }
        self.by_name(text).await
    }

    /// The session of a task that the agent has given, by its label; else by name.
    async fn by_label(&self, label: &str) -> Result<Session, No> {
        let given = given_by(self).await?;
        // Later rooms of one task are led to by the first one.
        let is_first = |child: &&Child| !child.is_next() && *child.task.title == *label;
        let found: Vec<&RoomView> =
            given.iter().filter(is_first).map(|child| &child.room).collect();
        match *found {
            [] => self.by_name(label).await,
            [one] => self.of_room(one.clone()).await,
            [..] => {
                let keys = found.iter().take(AMBIGUOUS_MAX).map(|room| self.names().key(room));
                let keys = keys.collect::<Vec<_>>().join(", ");
                Err(No::error(format!("{label:?} is ambiguous: use one of {keys}")))
            }
        }
    }

    /// A room by its name, or an agent by what it calls itself.
    async fn by_name(&self, text: &str) -> Result<Session, No> {
        let rooms = self.rooms().await?;
        match self.names().find(text, &rooms) {
            Ok(room) => return self.of_room(room.clone()).await,
            Err(no) if !no.is_missing() => return Err(no),
            Err(_) => {}
        }
        let lower = text.to_lowercase();
        let reachable = reachable(self, None).await?;
        let alike: Vec<_> =
            reachable.iter().filter(|other| other.name.to_lowercase() == lower).collect();
        let keys = |all: &[&Reachable]| {
            let keys = all.iter().take(AMBIGUOUS_MAX).map(|other| of_agent(&other.agent));
            keys.collect::<Vec<_>>().join(", ")
        };
        match *alike {
            [] => Err(self.missing(text, &rooms)),
            [one] if one.known => Ok(Session::Agent(one.agent.clone())),
            [one] => Err(No::error(format!(
                "{text:?} is only what agents call themselves: use one of {}",
                of_agent(&one.agent)
            ))),
            [..] => Err(No::error(format!("{text:?} is ambiguous: use one of {}", keys(&alike)))),
        }
    }

    /// The session of an agent, by its reference or its exact id.
    pub(crate) async fn agent_of(&self, text: &str) -> Result<Session, No> {
        if *text == *self.agent {
            return Ok(Session::Main);
        }
        if self.knows(text).await? {
            return Ok(Session::Agent(text.into()));
        }
        self.by_reference(&text.to_lowercase()).await
    }

    async fn by_reference(&self, wanted: &str) -> Result<Session, No> {
        if reference(&self.agent) == wanted {
            return Ok(Session::Main);
        }
        // Most are written as they are.
        if reference(wanted) == wanted && self.knows(wanted).await? {
            return Ok(Session::Agent(wanted.into()));
        }
        let reachable = reachable(self, None).await?;
        let found = reachable.iter().find(|other| reference(&other.agent) == wanted);
        if let Some(other) = found {
            return Ok(Session::Agent(other.agent.clone()));
        }
        let like = reachable.iter().map(|other| of_agent(&other.agent)).take(SUGGESTIONS_MAX);
        let like: Vec<String> = like.collect();
        Err(No::error(format!("unknown agent {wanted:?}")).with("suggestions", json!(like)))
    }

    /// Whether there is an agent of this id: attached somewhere, or known to the directory.
    async fn knows(&self, agent: &str) -> Result<bool, No> {
        if agent.is_empty() || agent.len() > mesh::limits::AGENT_ID_BYTES_MAX {
            return Ok(false);
        }
        if !self.read(FindAgent(agent.into())).await?.is_empty() {
            return Ok(true);
        }
        match self.shared.desk.ask(&self.reader, GetProfile(agent.into())).await {
            Ok(_) => Ok(true),
            Err(Refusal::NoAgent) => Ok(false),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// A room as a session: a direct one is that of its other agent.
    async fn of_room(&self, room: RoomView) -> Result<Session, No> {
        // The agent that was asked first has not begun: what is said goes to the one that was asked last.
        if room.task && room.closed {
            let newest = newest_of(self, &room).await?;
            return Ok(Session::Room(Box::new(newest.unwrap_or(room))));
        }
        Ok(match &room.sides {
            Some(sides) if !room.task && *sides.peer_of(&self.agent) == self.agent => Session::Main,
            Some(_) | None => Session::Room(Box::new(room)),
        })
    }

    /// The direct room with an agent, if there is one: the liveliest, where the keys have changed.
    pub(crate) async fn direct_room(&self, with: &AgentId) -> Result<Option<RoomView>, No> {
        let rooms = self.rooms().await?.into_iter();
        let with = rooms.filter(|room| {
            !room.task
                && room.sides.as_ref().is_some_and(|sides| sides.peer_of(&self.agent) == with)
        });
        Ok(with.max_by_key(|room| room.last_activity_ms))
    }

    /// The room of a session, if there is one.
    pub(crate) async fn room_of(&self, session: &Session) -> Result<Option<RoomView>, No> {
        match session {
            Session::Main => self.direct_room(&self.agent).await,
            Session::Agent(agent) => self.direct_room(agent).await,
            Session::Room(room) => Ok(Some((**room).clone())),
            Session::Thread(of, _) => Box::pin(self.room_of(of)).await,
        }
    }

    pub(crate) async fn rooms(&self) -> Result<Vec<RoomView>, No> {
        self.read(ListRooms { parent: None }).await
    }

    fn missing(&self, text: &str, rooms: &[RoomView]) -> No {
        self.names().missing(text, rooms)
    }
}

/// Whether there is no such room, or none that may be known of.
pub(crate) fn is_missing(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Mesh(Refused::NoRoom | Refused::NotYours))
}
