//! The surroundings of every command: a connection, rooms by name, and the output.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use client::address::Address;
use client::client::Client;
use client::error::ConnectError;
use client::events::Events;
use client::options::{Authorities, Options, Policy};
use client::secrets::Secrets;
use etcetera::home_dir;
use protocol::code::Code;
use protocol::object::Room;
use protocol::request::{JoinRoom, ListRooms};
use protocol::value::{ApiKey, RegisterOptions};
use tokio::time::{Instant, sleep};

use crate::args::{Node, Typed};
use crate::format;
use crate::outcome::Failure;
use crate::output::Output;
use crate::person;

/// The surroundings of a command.
#[derive(Debug)]
pub struct Context {
    /// Which node, and as whom.
    pub node: Node,
    /// Where to write.
    pub output: Output,
    /// A connection that is there already: the one of the shell.
    held: Option<Client>,
    /// Events that nodes tell only to those who ask for them.
    events: Vec<String>,
}

/// Between two tries of a command that waits for a node.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

impl Context {
    /// Nothing is opened yet.
    pub fn new(node: Node) -> Self {
        let output = Output::new(node.json);
        Self { node, output, held: None, events: Vec::new() }
    }

    /// For a command that is given over a connection that is there: with its own way to print.
    pub fn within(&self, client: Client, json: bool) -> Self {
        let mut node = self.node.clone();
        // They stand at the shell, and not at the command.
        node.typed = Typed::default();
        Self { node, output: Output::new(json), held: Some(client), events: Vec::new() }
    }

    /// Asks for events of this kind with the next connection.
    pub fn ask_for(&mut self, event: &str) {
        self.events.push(event.to_owned());
    }

    /// Whether the command is given over a connection that is there, as in the shell.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Connects and registers, for a command that only asks.
    ///
    /// # Errors
    /// As [`Context::connect`].
    pub async fn client(&self) -> Result<Client, Failure> {
        match &self.held {
            Some(client) => Ok(client.clone()),
            None => Ok(self.connect().await?.0),
        }
    }

    /// Connects and registers.
    ///
    /// # Errors
    /// [`Failure`] that names the flag to change, or the program to start.
    pub async fn connect(&self) -> Result<(Client, Events), Failure> {
        if self.is_held() {
            return Err(Failure::NotInShell);
        }
        Client::connect(self.options()?).await.map_err(explain)
    }

    /// The same as an agent of its own, though there are others of this person.
    ///
    /// # Errors
    /// As [`Context::connect`].
    pub async fn connect_alone(&self) -> Result<(Client, Events), Failure> {
        if self.is_held() {
            return Err(Failure::NotInShell);
        }
        let options = Options { mesh: RegisterOptions::default(), ..self.options()? };
        Client::connect(options).await.map_err(explain)
    }

    /// Connects and registers, however long it takes a node to be there. `until`: or fails then.
    ///
    /// # Errors
    /// As [`Context::connect`], if waiting does not help.
    pub async fn connect_patiently(
        &self,
        until: Option<Instant>,
    ) -> Result<(Client, Events), Failure> {
        let mut pause = RETRY_FIRST;
        loop {
            let failure = match self.connect().await {
                Err(Failure::NoNode { source }) => Failure::NoNode { source },
                other => return other,
            };
            if until.is_some_and(|until| Instant::now() + pause > until) {
                return Err(failure);
            }
            if pause == RETRY_FIRST {
                self.output.note(&format!("clawmesh: {failure}; trying again"))?;
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    fn options(&self) -> Result<Options, Failure> {
        let secrets = self.node.room_key.clone().map(Secrets::for_all_rooms);
        Ok(Options {
            addresses: self.addresses()?,
            authorities: self.authorities(),
            key: self.key()?,
            name: self.node.name().to_owned(),
            agent_id: self.node.agent_id.clone(),
            mesh: RegisterOptions {
                events: self.events.clone(),
                ..person::wishes(self.node.name.as_deref())
            },
            capabilities: Vec::new(),
            secrets: secrets.unwrap_or_default(),
            policy: Policy::default(),
        })
    }

    /// The id of a room given by id or exact name.
    ///
    /// # Errors
    /// [`Failure::RoomUnknown`], [`Failure::RoomAmbiguous`], or the node's refusal.
    pub async fn room(&self, client: &Client, room: &str) -> Result<String, Failure> {
        let list = client.call(ListRooms { parent_id: None }).await?;
        let room = choose_room(&list.rooms, room)?;
        if self.node.room_key.is_some() && !room.encrypted {
            let name = format::name(&room.name);
            self.output.note(&format!(
                "clawmesh: {name} is not marked as encrypted: with a room key what you send there can \
                 only be read by who has it"
            ))?;
        }
        Ok(room.room_id.clone())
    }

    /// The same, where no room means all of them.
    ///
    /// # Errors
    /// As [`Context::room`].
    pub async fn some_room(
        &self,
        client: &Client,
        room: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        match room {
            Some(room) => self.room(client, room).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same, and joins it: only members speak in a room.
    ///
    /// # Errors
    /// As [`Context::room`].
    pub async fn join(&self, client: &Client, room: &str) -> Result<String, Failure> {
        let room_id = self.room(client, room).await?;
        client.call(JoinRoom { room_id: room_id.clone() }).await?;
        Ok(room_id)
    }

    /// Where the node is looked for.
    ///
    /// # Errors
    /// [`Failure::NoHome`].
    pub fn addresses(&self) -> Result<Vec<Address>, Failure> {
        if !self.node.url.is_empty() {
            return Ok(self.node.url.clone());
        }
        if !self.node.tcp.is_empty() {
            return Ok(self.node.tcp.clone());
        }
        if self.node.socket.is_empty() {
            return Ok(vec![Address::Unix(in_home("clawchat.sock")?)]);
        }
        Ok(self.node.socket.iter().cloned().map(Address::Unix).collect())
    }

    /// The file that the key is read from, if it is not given itself.
    ///
    /// # Errors
    /// [`Failure::NoHome`].
    pub fn key_file(&self) -> Result<PathBuf, Failure> {
        match &self.node.key_file {
            Some(path) => Ok(path.clone()),
            None => in_home("auth.key"),
        }
    }

    /// Whom TLS trusts.
    pub(crate) fn authorities(&self) -> Authorities {
        self.node.ca.clone().map_or(Authorities::System, Authorities::File)
    }

    /// The API key.
    ///
    /// # Errors
    /// [`Failure`] that names the file, and the flag to give.
    pub(crate) fn key(&self) -> Result<ApiKey, Failure> {
        if let Some(key) = &self.node.key {
            return Ok(key.clone());
        }
        let path = self.key_file()?;
        match fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => Err(Failure::KeyEmpty { path }),
            Ok(text) => Ok(ApiKey::new(text.trim())),
            Err(source) => Err(Failure::KeyFile { path, source }),
        }
    }
}

/// The user's home directory.
///
/// # Errors
/// [`Failure::NoHome`] if the system does not tell it.
pub fn home() -> Result<PathBuf, Failure> {
    home_dir().map_err(|_| Failure::NoHome)
}

fn in_home(name: &str) -> Result<PathBuf, Failure> {
    Ok(home()?.join(".clawchat").join(name))
}

fn explain(error: ConnectError) -> Failure {
    match error {
        source @ (ConnectError::Unreachable { .. }
        | ConnectError::TimedOut { .. }
        | ConnectError::Broken { .. }) => Failure::NoNode { source },
        source @ ConnectError::Refused { code: Code::Unauthorized, .. } => {
            Failure::KeyRefused { source }
        }
        other @ (ConnectError::Refused { .. } | ConnectError::NoAddress) => Failure::Connect(other),
    }
}

/// The room of an id or exact name. Of several of one name that of the own key: others may give it shared rooms of any name.
///
/// # Errors
/// [`Failure::RoomUnknown`], [`Failure::RoomAmbiguous`].
pub(crate) fn choose_room<'a>(rooms: &'a [Room], wanted: &str) -> Result<&'a Room, Failure> {
    match choose(rooms, wanted, |room| (&room.room_id, &room.name)) {
        Err(failure @ Failure::RoomAmbiguous { .. }) => {
            let own = |room: &&Room| room.name == wanted && room.owner_key.is_some();
            let mut own = rooms.iter().filter(own);
            match (own.next(), own.next()) {
                (Some(room), None) => Ok(room),
                (Some(_) | None, _) => Err(failure),
            }
        }
        chosen => chosen,
    }
}

/// An id wins over a name, so that nobody can take a room over by naming another like its id.
pub(crate) fn choose<'a, R>(
    rooms: &'a [R],
    wanted: &str,
    id_and_name: impl Fn(&R) -> (&str, &str),
) -> Result<&'a R, Failure> {
    if let Some(room) = rooms.iter().find(|room| id_and_name(room).0 == wanted) {
        return Ok(room);
    }
    let mut named = rooms.iter().filter(|room| id_and_name(room).1 == wanted);
    let room = || wanted.to_owned();
    match (named.next(), named.count()) {
        (Some(room), 0) => Ok(room),
        (Some(_), others) => Err(Failure::RoomAmbiguous { room: room(), count: others + 1 }),
        (None, _) => Err(Failure::RoomUnknown { room: room() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn missing() -> io::Error {
        io::Error::from(io::ErrorKind::NotFound)
    }

    fn room(room_id: &str, name: &str) -> Room {
        let json = format!(
            r#"{{"room_id":"{room_id}","name":"{name}","created_at":"t","visibility":"public"}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_room_is_an_id_or_an_exact_name() {
        let rooms = [room("1", "a"), room("2", "b"), room("3", "b"), room("4", "1")];
        let choose = |wanted| choose(&rooms, wanted, |room| (&room.room_id, &room.name));
        assert_eq!(choose("1").unwrap().room_id, "1");
        assert_eq!(choose("a").unwrap().room_id, "1");
        assert!(matches!(choose("b"), Err(Failure::RoomAmbiguous { count: 2, .. })));
        for unknown in ["A", "", "c"] {
            assert!(matches!(choose(unknown), Err(Failure::RoomUnknown { .. })));
        }
    }

    #[test]
    fn failures_are_one_line_that_says_what_to_do() {
        let key = Failure::KeyFile { path: "/x/auth.key".into(), source: missing() };
        let address = Address::Unix("/x/clawchat.sock".into());
        let node =
            explain(ConnectError::Unreachable { address: address.clone(), source: missing() });
        let message = String::from("bad key");
        let refused = ConnectError::Refused { address, code: Code::Unauthorized, message };
        for (failure, parts) in [
            (key, ["/x/auth.key", "clawmeshd up", "--key-file"]),
            (node, ["/x/clawchat.sock", "clawmeshd up", "--socket"]),
            (explain(refused), ["/x/clawchat.sock", "bad key", "--key"]),
        ] {
            let text = failure.to_string();
            assert!(!text.contains('\n'));
            for part in parts {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
