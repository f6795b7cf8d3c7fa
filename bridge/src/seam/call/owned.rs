//! Calls about agents whose ids are the caller's key's own: they need not be there.

use mesh::{
    api::{
        command::{self, AgentFileChange, Command, Retire},
        rules::{Broken, Field, Rule},
    },
    limits::AGENT_FILE_BYTES_MAX,
    name::id::AgentId,
};

use super::to_mesh::{Row, ToMesh};
use crate::{
    config::Quota,
    seam::{
        answer::RoomFacts,
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

/// Retire an agent, for ever: nobody attaches under its id again, at any node.
#[derive(Clone, Debug)]
pub struct RetireAgent(pub AgentId);

/// Stop an agent, or all: they send nothing until they are let go. It holds for agents of the caller's key, and at nodes of which
/// that is an operator's for all of them.
#[derive(Clone, Debug)]
pub struct StopAgents {
    /// One agent; `None`: all.
    pub agent: Option<AgentId>,
    /// The person who stops them, for those who are refused; `None`: they are let go.
    pub by: Option<String>,
}

/// Agents that are stopped, as far as it counts here, or the caller's key says so.
#[derive(Clone, Copy, Debug)]
pub struct ListStops;

/// Write a file of an agent. Answered when it is durable.
#[derive(Clone, Debug)]
pub struct PutAgentFile {
    /// The agent.
    pub agent: AgentId,
    /// The file's name.
    pub name: String,
    /// Its bytes. `None`: it is deleted, if it is there.
    pub bytes: Option<Vec<u8>>,
}

/// The files of an agent, by name.
#[derive(Clone, Debug)]
pub struct ListAgentFiles(pub AgentId);

/// A file of an agent.
#[derive(Clone, Debug)]
pub struct GetAgentFile {
    /// The agent.
    pub agent: AgentId,
    /// The file's name.
    pub name: String,
}

impl ToMesh for RetireAgent {
    const ROW: Row = Row::counted(Bound::Profile);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (key, signer) = (party.key(), party.signer().cloned());
        Ok(Command::RetireAgent(Box::new(Retire { key, agent: self.0, signer })))
    }
}

impl ToMesh for StopAgents {
    const ROW: Row = Row::counted(Bound::Profile);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (key, signer) = (party.key(), party.signer().cloned());
        let StopAgents { agent, by } = self;
        let stop = command::StopAgents { key, signer, agent, by };
        Ok(Command::StopAgents(Box::new(stop)))
    }
}

impl ToMesh for ListStops {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListStops { key: party.key() })
    }
}

impl ToMesh for PutAgentFile {
    const ROW: Row = Row::counted(Bound::Profile);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        let max = AGENT_FILE_BYTES_MAX;
        if self.bytes.as_ref().is_some_and(|bytes| bytes.len() > max) {
            return Err(Broken { field: Field::File, rule: Rule::AtMost(max) }.into());
        }
        Ok(())
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let PutAgentFile { agent, name, bytes } = self;
        let (key, signer) = (party.key(), party.signer().cloned());
        let change = AgentFileChange { key, agent, signer, name, bytes };
        Ok(Command::ChangeAgentFile(Box::new(change)))
    }
}
