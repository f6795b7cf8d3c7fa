//! Accounts of agents that have a key of another dialect. Its API key follows from that key, so nobody keeps it, and the agent has
//! its account at every node where its own key is shown.

use std::sync::Arc;

use bridge::secret::Secret;
use mesh::name::{
    id::{AgentId, KeyPrint},
    key::{KeySecret, ShortKey},
};

use crate::{
    limits::LINKED_MAX,
    problem::{Answer, Problem},
    rates::Origin,
    registry::Registry,
    secret,
};

/// The use of a key that this is, as all that is derived of one is named.
const LABEL: &[u8] = b"clawmesh finder agent";

/// The API key of the account that an agent has after so many that were deleted.
pub(crate) fn key_of(signer: &KeySecret, agent: &AgentId, nth: u64) -> Result<Secret, ShortKey> {
    let label = [LABEL, &nth.to_be_bytes(), agent.as_bytes()].concat();
    Ok(secret::of(&*signer.derive(&label)?))
}

/// The account of an agent.
pub(crate) struct Linked {
    pub(crate) key: Secret,
    pub(crate) print: KeyPrint,
    /// It is registered.
    pub(crate) is_known: bool,
}

/// Why an agent has no account, and can have none.
#[derive(Debug)]
pub(crate) enum NoAccount {
    /// In words.
    Words(String),
    /// As over HTTP.
    Problem(Box<Problem>),
}

impl From<Box<Problem>> for NoAccount {
    fn from(problem: Box<Problem>) -> NoAccount {
        NoAccount::Problem(problem)
    }
}

/// The account of an agent of a key, or the one that it would have. `signer`: of the key; a node that checks none has none.
pub(crate) async fn of(
    registry: &Registry,
    (signer, agent): (Option<&Arc<KeySecret>>, &AgentId),
) -> Result<Linked, NoAccount> {
    let Some(signer) = signer else {
        let text = "this node checks no keys, so no account can be yours; use a node that was not started with --no-auth";
        return Err(NoAccount::Words(text.to_owned()));
    };
    registry.refresh().await?;
    for nth in 0..LINKED_MAX {
        let key = key_of(signer, agent, nth);
        let key = key.map_err(|short| NoAccount::Words(short.to_string()))?;
        let print = KeyPrint::of(key.expose());
        if !registry.index().is_deleted(print) {
            let is_known = is_known(registry, &key, print).await?;
            return Ok(Linked { key, print, is_known });
        }
    }
    let text =
        format!("this agent has deleted {LINKED_MAX} accounts; go on under another agent id");
    Err(NoAccount::Words(text))
}

/// Whether an account is registered, be it at another node. One that may not act is refused as over HTTP.
async fn is_known(registry: &Registry, key: &Secret, print: KeyPrint) -> Answer<bool> {
    match registry.caller(key.expose(), Origin::Near).await {
        Ok(_) => Ok(true),
        Err(problem) if problem.is_of_the_key() && registry.standing(print).is_none() => Ok(false),
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_of_each_key_has_keys_of_its_own() {
        let signer = KeySecret::of(&"a".repeat(32));
        let (ada, bob): (AgentId, AgentId) = ("ada".into(), "bob".into());
        let key = |signer: &KeySecret, agent, nth| key_of(signer, agent, nth).unwrap();
        let first = key(&signer, &ada, 0);
        assert!(secret::is_key(first.expose()));
        assert_eq!(first.expose(), key(&signer, &ada, 0).expose());
        let other = KeySecret::of(&"b".repeat(32));
        for another in [key(&signer, &ada, 1), key(&signer, &bob, 0), key(&other, &ada, 0)] {
            assert_ne!(first.expose(), another.expose());
        }
        let label = [LABEL, &[0, 0, 0, 0, 0, 0, 0, 1], b"ada"].concat();
        let derived = secret::of(&signer.derive(&label).unwrap());
        assert_eq!(key(&signer, &ada, 1).expose(), derived.expose());
        // Computed in Python. The command line derives the same.
        let expected = "ak_3n1ObISAFGTo9qCD6MgZoRq38JR8-2xnWZGN1t3FdVU";
        assert_eq!(key(&signer, &ada, 1).expose(), expected);
        assert!(key_of(&KeySecret::of("short"), &ada, 0).is_err());
    }
}
