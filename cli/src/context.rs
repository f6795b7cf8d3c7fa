//! What every command needs: a connection, rooms by name, and where to write.

use std::fs;
use std::path::PathBuf;

use client::address::Address;
use client::client::Client;
use client::error::ConnectError;
use client::events::Events;
use client::options::{Options, Policy};
use client::secrets::Secrets;
use etcetera::home_dir;
use protocol::code::Code;
use protocol::object::Room;
use protocol::request::ListRooms;
use protocol::value::ApiKey;

use crate::args::Node;
use crate::outcome::Failure;
use crate::output::Output;

/// What a command runs in.
#[derive(Debug)]
pub struct Context {
    /// Which node, and as whom.
    pub node: Node,
    /// Where to write.
    pub output: Output,
}

impl Context {
    /// Nothing is opened yet.
    pub fn new(node: Node) -> Self {
        Self { node, output: Output::new() }
    }

    /// Connects and registers.
    ///
    /// # Errors
    /// [`Failure`] that says which flag to change, or what to start.
    pub async fn connect(&self) -> Result<(Client, Events), Failure> {
        let options = Options {
            addresses: self.addresses()?,
            key: self.key()?,
            name: self.node.name.clone(),
            agent_id: self.node.agent_id.clone(),
            capabilities: Vec::new(),
            secrets: Secrets::default(),
            policy: Policy::default(),
        };
        Client::connect(options).await.map_err(explain)
    }

    /// The id of a room given by id or exact name.
    ///
    /// # Errors
    /// [`Failure::RoomUnknown`], [`Failure::RoomAmbiguous`], or the node's refusal.
    pub async fn room(&self, client: &Client, room: &str) -> Result<String, Failure> {
        let list = client.call(ListRooms { parent_id: None }).await?;
        choose(&list.rooms, room)
    }

    fn addresses(&self) -> Result<Vec<Address>, Failure> {
        if !self.node.url.is_empty() {
            return Ok(self.node.url.clone());
        }
        if !self.node.tcp.is_empty() {
            return Ok(self.node.tcp.clone());
        }
        let path = match &self.node.socket {
            Some(path) => path.clone(),
            None => in_home("clawchat.sock")?,
        };
        Ok(vec![Address::Unix(path)])
    }

    fn key(&self) -> Result<ApiKey, Failure> {
        if let Some(key) = &self.node.key {
            return Ok(key.clone());
        }
        let path = match &self.node.key_file {
            Some(path) => path.clone(),
            None => in_home("auth.key")?,
        };
        match fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => Err(Failure::KeyEmpty { path }),
            Ok(text) => Ok(ApiKey::new(text.trim())),
            Err(source) => Err(Failure::KeyFile { path, source }),
        }
    }
}

fn in_home(name: &str) -> Result<PathBuf, Failure> {
    let home = home_dir().map_err(|_| Failure::NoHome)?;
    Ok(home.join(".clawchat").join(name))
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

/// An id wins over a name, so that nobody can take a room over by naming another like its id.
fn choose(rooms: &[Room], wanted: &str) -> Result<String, Failure> {
    if rooms.iter().any(|it| it.room_id == wanted) {
        return Ok(wanted.to_owned());
    }
    let mut named = rooms.iter().filter(|it| it.name == wanted);
    let room = || wanted.to_owned();
    match (named.next(), named.count()) {
        (Some(it), 0) => Ok(it.room_id.clone()),
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
        assert_eq!(choose(&rooms, "1").unwrap(), "1");
        assert_eq!(choose(&rooms, "a").unwrap(), "1");
        assert!(matches!(choose(&rooms, "b"), Err(Failure::RoomAmbiguous { count: 2, .. })));
        for unknown in ["A", "", "c"] {
            assert!(matches!(choose(&rooms, unknown), Err(Failure::RoomUnknown { .. })));
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
