//! Agents that the operator stops, with the node's own key.

use anyhow::{Context, Result, ensure};
use mesh::{
    api::command::{Command, Outcome, StopAgents, StopView},
    name::{id::AgentId, key::KeySecret},
};
use protocol::operator::{Answer, StoppedAgents};

use super::{Control, wrong_answer};
use crate::files::api_key::ApiKey;

impl Control {
    /// The node's own key signs it: so it holds at all nodes that have it among their operators, too.
    fn own_key(&self) -> Result<KeySecret> {
        let file = self.files.key_file().context(
            "this node checks no keys, so nobody is an operator: start it without --no-auth",
        )?;
        let key = ApiKey::read(&file)?.context("the key file is gone")?;
        Ok(KeySecret::of(key.text()))
    }

    /// Stops an agent, or all, or lets them go.
    pub(super) async fn stop_agents(&self, agent: Option<String>, stops: bool) -> Result<Answer> {
        let signer = self.own_key()?;
        let agent = agent.map(|agent| AgentId::from(agent.trim()));
        ensure!(agent.as_ref().is_none_or(|agent| !agent.is_empty()), "name an agent");
        let by = stops.then(|| format!("the operator of {}", self.name));
        let key = signer.print();
        let stop = StopAgents { key, signer: Some(signer.into()), agent: agent.clone(), by };
        self.engine(Command::StopAgents(Box::new(stop))).await?;
        tracing::info!(
            agent = agent.as_deref().unwrap_or("all"),
            stops,
            "agents were stopped or let go"
        );
        Ok(Answer::Done)
    }

    pub(super) async fn list_stops(&self) -> Result<Answer> {
        let key = self.own_key()?.print();
        let Outcome::Stops(stops) = self.engine(Command::ListStops { key }).await? else {
            return Err(wrong_answer());
        };
        let stopped = |stop: StopView| StoppedAgents {
            agent_id: stop.agent.map(|agent| agent.to_string()),
            by: stop.by,
            fingerprint: stop.key.to_string(),
            since_ms: stop.since_ms,
        };
        Ok(Answer::Stops(stops.stops.into_iter().map(stopped).collect()))
    }
}
