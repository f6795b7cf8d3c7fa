//! API keys of simulated agents.

use std::sync::LazyLock;

use mesh::{
    api::command::Attach,
    name::{
        id::{AgentId, KeyPrint, MeshId},
        key::KeySecret,
    },
    wire::signatures::{KeySignature, SignedLog},
};

/// The one key of all agents whose key is their node's own.
pub(crate) static KEY: LazyLock<KeyPrint> = LazyLock::new(|| OWN.print());
static OWN: LazyLock<KeySecret> = LazyLock::new(|| secret("the own key"));

/// The secret of the key that is called so.
pub(super) fn secret(name: &str) -> KeySecret {
    KeySecret::of(&text(name))
}

/// The text of the key that is called so: as long as one whose halves are shown has to be.
pub(super) fn text(name: &str) -> String {
    format!("{name:_>32}")
}

/// A key's claim of an agent id.
pub(super) fn claim(secret: &KeySecret, mesh: MeshId, agent: &str) -> KeySignature {
    KeySignature::of_claim(secret, mesh, agent).expect("keys of worlds are long enough")
}

/// A key's word that it was shown at a node.
pub(super) fn shown(secret: &KeySecret, log: &SignedLog) -> KeySignature {
    KeySignature::of_voucher(secret, log).expect("keys of worlds are long enough")
}

/// An agent whose key is its node's own registers at that node under its id, whoever is connected under it.
pub(crate) fn attach(at: &SignedLog, agent: AgentId, name: String) -> Attach {
    Attach {
        claim: Some(Box::new(claim(&OWN, at.mesh, &agent))),
        shown: Some(Box::new(shown(&OWN, at))),
        agent,
        stable: true,
        reconnect: true,
        key: *KEY,
        own: true,
        opener: None,
        mailbox: OWN.mailbox().ok().cloned(),
        name,
        capabilities: Vec::new(),
    }
}
