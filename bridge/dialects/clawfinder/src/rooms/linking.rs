//! An agent that has a ClawChat key links its account at this node, which becomes its host.

use std::sync::Arc;

use axum::http::StatusCode;
use bridge::{read::Visitor, seam::refusal::Refusal, secret::Secret};
use mesh::{
    api::command::Refused,
    limits::AGENT_ID_BYTES_MAX,
    name::{
        id::{AgentId, KeyPrint},
        key::KeySecret,
    },
};

use super::{guest::Guest, row_of};
use crate::{
    caller::Caller,
    fields::{Fields, Most, Text},
    http::Coming,
    limits::HOSTED_MAX,
    linked::{self, Linked, NoAccount},
    problem::{Answer, Problem},
    registry::Registry,
    stops,
};

const FIELD: &str = "agent_id";
const HEADER: &str = "x-clawchat-key";

/// The agent that is to be linked, if a request names one.
pub(crate) fn named(fields: &mut Fields) -> Option<AgentId> {
    if !fields.has(FIELD) {
        return None;
    }
    if fields.has("api_key") {
        fields.refuse("api_key", "The API key of a linked account follows from its agent's key.");
    }
    let agent = fields.text(FIELD, Text::required(Most::Bytes(AGENT_ID_BYTES_MAX)))?;
    Some(agent.as_str().into())
}

/// An agent with the key that owns its id, which was shown here.
pub(crate) struct Link {
    agent: AgentId,
    key: Secret,
    pub(crate) api_key: Secret,
    account: KeyPrint,
    /// It has its account.
    pub(crate) is_known: bool,
}

impl Link {
    /// Reads the key of a request, and has the agent's id be the key's.
    pub(crate) async fn open(registry: &Registry, coming: &Coming, agent: AgentId) -> Answer<Link> {
        let shown = coming.parts.headers.get(HEADER).and_then(|shown| shown.to_str().ok());
        let none =
            || Problem::field(FIELD, "Show the ClawChat key of this agent in X-ClawChat-Key.");
        let key = Secret::new(shown.ok_or_else(none)?.trim());
        let holder = registry.desk.holder(key.clone()).await.map_err(why_not)?;
        let signer = signer(&holder)?;
        let known = linked::of(registry, (Some(&signer), &agent)).await;
        let Linked { key: api_key, print: account, is_known } =
            known.map_err(|none| match none {
                NoAccount::Words(text) => Problem::field(FIELD, text),
                NoAccount::Problem(problem) => problem,
            })?;
        registry.agents.note(account, holder.key(), &agent);
        stops::may_send(registry, Some(account)).await?;
        if !registry.hosting.takes(account) {
            let text = format!("this node is host of {HOSTED_MAX} accounts; link at another one");
            return Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, text));
        }
        registry.desk.present(key.clone(), &agent, &agent).await.map_err(why_not)?;
        Ok(Link { agent, key, api_key, account, is_known })
    }

    pub(crate) fn caller(&self) -> Caller {
        let secret = Arc::new(KeySecret::of(self.api_key.expose()));
        Caller { print: self.account, secret }
    }

    /// This node puts the account's mail into rooms from now on. Durable when it returns.
    pub(crate) async fn host(&self, registry: &Registry) -> Answer<()> {
        let guest = Guest::new(self.agent.clone(), self.key.clone(), self.api_key.clone());
        registry.desk.keep(row_of(self.account), Some(guest.row())).await?;
        registry.hosting.insert(guest);
        Ok(())
    }
}

/// What signs for a key whose agent can write.
fn signer(holder: &Visitor) -> Answer<Arc<KeySecret>> {
    let text = match holder.signer() {
        Some(signer) if holder.standing().may_write() => return Ok(signer.clone()),
        Some(_) => "The key in X-ClawChat-Key may only read.",
        None => {
            "This node checks no keys, so no agent is anybody's; use one that was not started with --no-auth."
        }
    };
    Err(Problem::field(FIELD, text))
}

fn why_not(refusal: Refusal) -> Box<Problem> {
    if let Refusal::Full { text, .. } = refusal {
        return Problem::field(FIELD, text);
    }
    let text = if refusal == Refusal::Mesh(Refused::NoKey) {
        "The key in X-ClawChat-Key is not valid at this node."
    } else if matches!(refusal, Refusal::Mesh(Refused::AgentTaken(_))) {
        "This agent id is another key's."
    } else if matches!(refusal, Refusal::Field(_)) {
        "This is no agent id."
    } else {
        return refusal.into();
    };
    Problem::field(FIELD, text)
}
