//! What an operator decides about the bridge.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use mesh::id::{KeyPrint, RoomId};
use protocol::value::ApiKey;

use crate::limits;

/// Settings of a bridge.
#[derive(Debug)]
pub struct Config {
    /// The room that clients know as `lobby`.
    pub lobby: RoomId,
    /// Who may register.
    pub auth: Auth,
    /// Origins (`https://example.org`) whose web pages may open `/ws`. A page of any other origin
    /// may not: it would be the browser's user who is attached without knowing.
    pub origins: Vec<String>,
    /// Connections of all transports together.
    pub connections_max: usize,
    /// Times.
    pub timeouts: Timeouts,
}

impl Config {
    /// The defaults of the specification.
    #[must_use]
    pub fn new(lobby: RoomId, auth: Auth) -> Config {
        Config {
            lobby,
            auth,
            origins: Vec::new(),
            connections_max: limits::CONNECTIONS_MAX,
            timeouts: Timeouts::default(),
        }
    }
}

/// Times of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Registered within this, or closed.
    pub register: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// Closed when no byte came for this long.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            register: limits::REGISTER_WITHIN,
            heartbeat: limits::HEARTBEAT_EVERY,
            silence: limits::SILENT_FOR_MAX,
        }
    }
}

/// Who may register.
#[derive(Debug)]
pub enum Auth {
    /// Everybody, with any key; every room is visible.
    Open,
    /// Whoever holds the node's key.
    Key(NodeKey),
}

impl Auth {
    /// The fingerprint that a key stands for here; `None`: it is not valid.
    pub(crate) fn check(&self, key: &ApiKey) -> Option<KeyPrint> {
        match self {
            Auth::Open => Some(KeyPrint::OPEN),
            Auth::Key(own) => own.check(key.expose()),
        }
    }

    /// Content of one message, in bytes.
    pub(crate) fn content_bytes_max(&self) -> usize {
        match self {
            Auth::Open => mesh::limits::CONTENT_BYTES_MAX,
            Auth::Key(_) => limits::KEY_CONTENT_BYTES_MAX,
        }
    }
}

/// The node's own key, as its fingerprint: the key itself is not kept.
#[derive(Debug)]
pub struct NodeKey(RwLock<KeyPrint>);

impl NodeKey {
    /// From the key's text.
    #[must_use]
    pub fn new(key: &str) -> NodeKey {
        NodeKey(RwLock::new(KeyPrint::of(key)))
    }

    /// From now on only this key registers. Agents that are attached stay.
    pub fn rotate(&self, key: &str) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = KeyPrint::of(key);
    }

    /// Compares fingerprints, in constant time: how long it takes tells nothing of the key.
    fn check(&self, key: &str) -> Option<KeyPrint> {
        if key.len() > limits::KEY_BYTES_MAX {
            return None;
        }
        let own = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        let given = KeyPrint::of(key);
        let differs = own.0.iter().zip(given.0).fold(0, |all, (a, b)| all | (a ^ b));
        (differs == 0).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_key_is_the_only_one() {
        let auth = Auth::Key(NodeKey::new("old"));
        assert_eq!(auth.check(&ApiKey::new("old")), Some(KeyPrint::of("old")));
        assert_eq!(auth.check(&ApiKey::new("new")), None);
        let Auth::Key(key) = &auth else { unreachable!("made above") };
        key.rotate("new");
        assert_eq!(auth.check(&ApiKey::new("new")), Some(KeyPrint::of("new")));
        assert_eq!(auth.check(&ApiKey::new("old")), None);
        assert_eq!(auth.check(&ApiKey::new("n".repeat(limits::KEY_BYTES_MAX + 1))), None);
        assert_eq!(Auth::Open.check(&ApiKey::new("any")), Some(KeyPrint::OPEN));
    }
}
