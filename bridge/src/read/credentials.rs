//! What a request shows: a key, or a token that stands for one.

use std::time::{Duration, SystemTime};

use mesh::name::id::AgentId;

use super::{Desk, Visitor};
use crate::{
    config::Auth,
    seam::{
        call::{Attach, Identity},
        refusal::Refusal,
    },
    secret::Secret,
    tokens::Grant,
};

/// The holder of what was shown, and what it may do.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The holder of the key.
    pub holder: Visitor,
    /// The key: its agent is attached with it.
    pub key: Secret,
    /// What it may do.
    pub grant: Grant,
}

#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
impl Desk {
    /// The holder of a key, or of a token, that is valid here.
    pub async fn credential(&self, shown: &Secret) -> Result<Credential, Refusal> {
        let config = self.config();
        let token = match &config.auth {
            // None is checked, and one that is shown says nothing.
            Auth::Open => None,
            Auth::Key(_) => config.tokens.open(&config.here, shown.expose(), now_ms()),
        };
        let Some((key, token)) = token else {
            let holder = self.holder(shown.clone()).await?;
            let grant = Grant::of_key(holder.standing());
            return Ok(Credential { holder, key: shown.clone(), grant });
        };
        let holder = self.holder(key.clone()).await?;
        let grant = Grant::of_token(&token.terms, holder.standing(), config.sandbox);
        Ok(Credential { holder, key, grant })
    }

    /// Presents a key here, for an agent that is to be its own: others are told that this node was shown it.
    pub async fn present(&self, key: Secret, agent: &AgentId, name: &str) -> Result<(), Refusal> {
        let call = Attach {
            key,
            name: name.to_owned(),
            identity: Identity::Named(agent.to_string()),
            capabilities: Vec::new(),
            reconnect: false,
            // It goes at once, unless it is here already.
            linger: Duration::ZERO,
        };
        self.host(call).await.map(drop)
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
