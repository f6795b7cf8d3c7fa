//! Changes that the holder of a key makes of what is its agents', whether these are there or not.

use std::sync::Arc;

use crate::{
    name::{
        id::{AgentId, KeyPrint},
        key::KeySecret,
    },
    records::profile::ProfileUpdate,
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
