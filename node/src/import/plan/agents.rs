//! Stable agent ids, and whose they are.

use anyhow::Result;
use import::ServerFile;
use mesh::{
    limits::{AGENT_ID_BYTES_MAX, AGENT_IDS_MAX},
    name::id::KeyPrint,
};

use super::{
    Plan,
    findings::Findings,
    ledger::{Named, Thing},
    owners::Owners,
};

pub(super) fn take(
    plan: &mut Plan,
    file: &ServerFile,
    owners: &Owners,
    findings: &mut Findings,
) -> Result<()> {
    let mut strangers = Named::default();
    for identity in findings.readable(Thing::AgentId, file.identities()?) {
        if !(1..=AGENT_ID_BYTES_MAX).contains(&identity.agent.len()) {
            let why = format!("it must have 1 to {AGENT_ID_BYTES_MAX} bytes");
            findings.row((Thing::AgentId, "agent_identities", &identity.agent), why);
            continue;
        }
        if plan.agents.len() >= AGENT_IDS_MAX {
            let why = format!("a mesh has at most {AGENT_IDS_MAX} stable agent ids");
            findings.row((Thing::AgentId, "agent_identities", &identity.agent), why);
            continue;
        }
        let owner = owners.find(&identity.owner).unwrap_or_else(|| {
            strangers.add(&identity.agent);
            let own = owners.choices.private_to_own_key;
            if own { owners.choices.own } else { KeyPrint::of(&identity.owner) }
        });
        plan.agents.push((identity.agent.into(), owner));
    }
    let whose = match (owners.choices.private_to_own_key, owners.choices.server) {
        (true, _) => {
            "stable agent ids of keys that are not known become those of the node's own key"
        }
        (false, Some(_)) => {
            "stable agent ids stay those of keys that are not known, so that nobody can use them; \
             --private-to-own-key makes them the node's own key's"
        }
        (false, None) => {
            "stable agent ids stay those of keys that are not known, so that nobody can use them; if these are the \
             server's own, name its file with --server-key-file, or make them the node's own key's with \
             --private-to-own-key"
        }
    };
    findings.ledger.note_named(whose, &strangers);
    Ok(())
}
