//! The call that makes a connection an agent.

use std::time::Duration;

use mesh::name::agent::DRAWN_BYTES;

#[cfg(doc)]
use crate::limits;
use crate::secret::Secret;

/// Become an agent. Events that it missed, if it comes back, follow the answer.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The API key.
    pub key: Secret,
    /// Its name.
    pub name: String,
    /// Which id it is to have.
    pub identity: Identity,
    /// Its skills, in its own words.
    pub capabilities: Vec<String>,
    /// Take the id over if it is connected, and the rooms back if it was just lost.
    pub reconnect: bool,
    /// After its connection has ended the agent stays for so long, with its seats, its lead, its ballots and its presence,
    /// unless it comes back before: at most [`limits::LINGER_MAX`]. Zero: it goes with its connection.
    pub linger: Duration,
}

/// The id that an agent wishes to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A fresh one: the node draws it.
    Fresh,
    /// The one that is made from these bytes and its key: it is the key's alone, without a claim. All connections of a node
    /// that register so with the same bytes and key are one agent.
    Drawn([u8; DRAWN_BYTES]),
    /// This one, of its own choice.
    Named(String),
    /// The same, which several connections have at once: all of a node that register so with the same key are one agent.
    Shared(String),
}

impl Identity {
    /// The id, if it is one of the agent's choice.
    #[must_use]
    pub fn named(&self) -> Option<&str> {
        match self {
            Identity::Named(agent) | Identity::Shared(agent) => Some(agent),
            Identity::Fresh | Identity::Drawn(_) => None,
        }
    }
}
