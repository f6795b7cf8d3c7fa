//! Changes that the holder of a key makes of what is its agents', whether these are there or not.

use std::sync::Arc;

use crate::{
    name::{
        id::{AgentId, KeyPrint},
        key::KeySecret,
    },
    records::profile::ProfileUpdate,
    wire::{
        cover::Cover,
        record::{CollectionNumber, RecordId, Space, Stamp},
    },
};

/// The profile that an agent is to have.
#[derive(Clone, Debug)]
pub struct OwnedProfile {
    /// The key that asks.
    pub key: KeyPrint,
    /// An agent whose id is its own.
    pub agent: AgentId,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The change.
    pub update: ProfileUpdate,
}

/// An agent is to be retired.
#[derive(Clone, Debug)]
pub struct Retire {
    /// The key that asks.
    pub key: KeyPrint,
    /// An agent whose id is its own.
    pub agent: AgentId,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
}

/// A change of a file of an agent.
#[derive(Clone, Debug)]
pub struct AgentFileChange {
    /// The key that asks.
    pub key: KeyPrint,
    /// An agent whose id is its own.
    pub agent: AgentId,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The file's name.
    pub name: String,
    /// Its bytes. `None`: it is deleted, if it is there.
    pub bytes: Option<Vec<u8>>,
}

/// Agents are to be stopped, or let go.
#[derive(Clone, Debug)]
pub struct StopAgents {
    /// The key that asks.
    pub key: KeyPrint,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// One agent; `None`: all.
    pub agent: Option<AgentId>,
    /// The person who stops them; `None`: they are let go.
    pub by: Option<String>,
}

/// A word that agents are stopped, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopView {
    /// The key that says so.
    pub key: KeyPrint,
    /// One agent; `None`: all.
    pub agent: Option<AgentId>,
    /// The person.
    pub by: String,
    /// Unix milliseconds.
    pub since_ms: u64,
}

/// All that counts here of agents that are stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The key that asks is one of this node's operators.
    pub is_operator: bool,
    /// Words of operators of this node, and of the key that asks.
    pub stops: Vec<StopView>,
}

/// See [`Command::SignAnew`](super::Command::SignAnew).
#[derive(Clone, Debug)]
pub struct SignAnew {
    /// The key that was replaced.
    pub replaced: KeyPrint,
    /// Its successor.
    pub signer: Arc<KeySecret>,
    /// Records of the key before it, as its node reads them.
    pub records: Vec<Inherited>,
}

/// A record of a key that was replaced.
#[derive(Clone, Debug)]
pub struct Inherited {
    /// Where it is.
    pub space: Space,
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its name.
    pub id: RecordId,
    /// How it is written.
    pub cover: Cover,
    /// Its content, opened. `None`: it is deleted.
    pub body: Option<Vec<u8>>,
    /// Its bytes that travel apart, opened. `None`: it has none.
    pub bytes: Option<Vec<u8>>,
    /// Its stamp: the successor's is above it.
    pub above: Stamp,
}
