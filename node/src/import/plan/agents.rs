//! Stable agent ids, and whose they are.

use std::collections::BTreeMap;

use anyhow::Result;
use import::ServerFile;
use mesh::{
    limits::{AGENT_ID_BYTES_MAX, AGENT_IDS_MAX},
    name::{
        agent::{Belongs, belongs},
        key::ShortKey,
    },
};

use super::{
    Plan, PlannedId,
    findings::Findings,
    ledger::{Named, Thing},
    owners::Owners,
};

const SKIP: &str = "leave it out with --skip-refused";

pub(super) fn take(
    plan: &mut Plan,
    file: &ServerFile,
    owners: &Owners,
    findings: &mut Findings,
) -> Result<()> {
    let mut strangers = Named::default();
    let mut strange = BTreeMap::new();
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
        let owner = owners.signer(&identity.owner).unwrap_or_else(|| {
            strangers.add(&identity.agent);
            let stranger = strange.entry(identity.owner.clone());
            stranger.or_insert_with(|| owners.stranger(&identity.owner)).clone()
        });
        let which = (Thing::AgentId, "agent_identities", &*identity.agent);
        match belongs(&identity.agent, owner.print) {
            Belongs::FirstClaim | Belongs::IfClaimed => {}
            Belongs::Drawn => {
                let why = "they are their keys' without being claimed";
                findings.ledger.leave(Thing::AgentId, why, Some(&identity.agent));
                continue;
            }
            Belongs::Another => {
                let why = "by its form it is an id that nodes draw, or another key's";
                findings.row_or(which, why, SKIP);
                continue;
            }
        }
        if owner.secret.as_ref().is_some_and(|secret| secret.check().is_err()) {
            findings.row_or(which, ShortKey, SKIP);
            continue;
        }
        plan.agents.push(PlannedId { agent: identity.agent.into(), secret: owner.secret });
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
