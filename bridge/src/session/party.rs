//! The party that asks.

use std::sync::Arc;

use mesh::{
    api::{
        agenda::Standing,
        command::{Caller, Reader},
    },
    name::{
        id::{AgentId, KeyPrint},
        key::KeySecret,
    },
};

use crate::{delivery::link, seam::refusal::Refusal};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Party {
    /// An agent that is attached.
    Agent {
        /// As the mesh knows it.
        caller: Caller,
        /// The kind of its key.
        standing: Standing,
        /// It chose its id, and will have it again.
        stable: bool,
        /// Signs for its key. `None`: the node checks no keys.
        signer: Option<Arc<KeySecret>>,
    },
    /// The holder of a key, without an agent: it reads, and has no name to speak under. It writes what is the key's own.
    Holder {
        /// The key.
        key: KeyPrint,
        /// Its kind.
        standing: Standing,
        /// As of an agent.
        signer: Option<Arc<KeySecret>>,
        /// The agent in whose name it reads, as it says. It opens no more than the key does: a direct room, if this is one of
        /// its two agents, with this key.
        named: Option<AgentId>,
    },
}

impl Party {
    pub(crate) fn key(&self) -> KeyPrint {
        match self {
            Party::Agent { caller, .. } => caller.key,
            Party::Holder { key, .. } => *key,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match self {
            Party::Agent { standing, .. } | Party::Holder { standing, .. } => *standing,
        }
    }

    pub(crate) fn agent(&self) -> Option<&AgentId> {
        self.caller().ok().map(|caller| &caller.agent)
    }

    /// For commands of agents.
    pub(crate) fn caller(&self) -> Result<&Caller, Refusal> {
        match self {
            Party::Agent { caller, .. } => Ok(caller),
            Party::Holder { .. } => Err(Refusal::NotAttached),
        }
    }

    /// Signs for its key.
    pub(crate) fn signer(&self) -> Option<&Arc<KeySecret>> {
        match self {
            Party::Agent { signer, .. } | Party::Holder { signer, .. } => signer.as_ref(),
        }
    }

    /// As one that reads.
    pub(crate) fn as_reader(&self) -> Reader {
        let agent = match self {
            Party::Agent { caller, .. } => Some(caller.agent.clone()),
            Party::Holder { named, .. } => named.clone(),
        };
        Reader { key: self.key(), agent }
    }

    /// An agent, as routing knows it.
    pub(crate) fn reader(&self) -> Option<link::Me> {
        match self {
            Party::Agent { caller, stable, .. } => {
                let Caller { agent, key, .. } = caller;
                Some(link::Me { agent: agent.clone(), key: *key, stable: *stable })
            }
            Party::Holder { .. } => None,
        }
    }
}
