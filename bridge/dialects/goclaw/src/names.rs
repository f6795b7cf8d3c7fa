//! Names: agents as UUIDs, and keys of sessions. People are named as in all dialects.

pub(crate) use bridge::seam::principal::{is_principal, principal, principals_of, user_of};
use mesh::name::id::{MessageId, RoomId};
use sha2::{Digest as _, Sha256};

/// An agent's UUID.
pub(crate) fn uuid_of(agent: &str) -> String {
    let digest = Sha256::new()
        .chain_update(b"clawmesh agent id\0")
        .chain_update(agent.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid(bytes, 8)
}

/// The text of a UUID of this version.
pub(crate) fn uuid(mut bytes: [u8; 16], version: u8) -> String {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    MessageId(bytes).to_uuid()
}

/// A session: a thread in the direct room of a person and an agent, or a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// Its agent, and its whole key.
    Thread {
        agent: String,
        key: String,
    },
    Room(RoomId),
}

/// The rest of the key of the thread of messages that name none.
const BARE: &str = "mesh:direct";

impl Session {
    /// `None`: it is no key.
    pub(crate) fn parse(key: &str) -> Option<Session> {
        if let Some(room) = key.strip_prefix("room:") {
            return RoomId::from_uuid(room).map(Session::Room);
        }
        let (agent, rest) = key.strip_prefix("agent:")?.split_once(':')?;
        let agent = unescaped(agent)?;
        let is_key = !agent.is_empty() && !rest.is_empty() && !rest.chars().any(char::is_control);
        is_key.then(|| Session::Thread { agent, key: key.to_owned() })
    }
}

fn escaped(agent: &str) -> String {
    agent.replace('%', "%25").replace(':', "%3A")
}

fn unescaped(agent: &str) -> Option<String> {
    let mut parts = agent.split('%');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        text.push(match code {
            "25" => '%',
            "3A" | "3a" => ':',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}

/// The key of a new session with an agent, under an id that was drawn.
pub(crate) fn new_session(agent: &str, id: &str) -> String {
    format!("agent:{}:ws:direct:{id}", escaped(agent))
}

/// The session of those who write to each other without naming one.
pub(crate) fn bare_session(agent: &str) -> String {
    format!("agent:{}:{BARE}", escaped(agent))
}

/// The key of a room, as a session.
pub(crate) fn room_session(room: RoomId) -> String {
    format!("room:{}", room.to_uuid())
}

/// The channel of a session, as lists have it.
pub(crate) fn channel(key: &str) -> &str {
    let rest = key
        .strip_prefix("agent:")
        .and_then(|rest| rest.split_once(':'))
        .map_or("", |(_, rest)| rest);
    match rest.split(':').next() {
        Some(channel @ ("ws" | "cron" | "task" | "clawtank" | "mesh")) => channel,
        _ => "ws",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_uuid_is_its_own_and_of_version_8() {
        let uuid = uuid_of("bob");
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "8"));
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        assert_ne!(uuid, uuid_of("bobby"));
    }

    #[test]
    fn a_sessions_key_names_its_agent_whatever_that_is_called() {
        for agent in ["bob", "a:b%c", "é"] {
            for key in [new_session(agent, "id"), bare_session(agent)] {
                let session = Session::Thread { agent: agent.to_owned(), key: key.clone() };
                assert_eq!(Session::parse(&key), Some(session));
            }
        }
        let room = RoomId([7; 16]);
        assert_eq!(Session::parse(&format!("room:{}", room.to_uuid())), Some(Session::Room(room)));
        for no in [
            "",
            "bob",
            "agent:bob",
            "agent::x",
            "agent:bob:",
            "agent:b%2:x",
            "agent:b%00:x",
            "room:x",
        ] {
            assert_eq!(Session::parse(no), None, "{no}");
        }
        assert_eq!(channel(&new_session("bob", "id")), "ws");
        assert_eq!(channel(&bare_session("b:ob")), "mesh");
    }
}
