//! Writing records about agents for the keys that own their ids: their ends, and their files.

use std::collections::BTreeSet;

use super::{
    Records,
    contents::Name,
    writing::{Shelf, Unsigned, Writing, impossible, place_in},
};
use crate::{
    api::{
        command::{AgentFileChange, Outcome, Refused, Retire, StopAgents, StopView, Stops},
        rules::{self, Broken, Field, Rule},
    },
    engine::known::Known,
    limits::{
        AGENT_FILE_BYTES_MAX, AGENT_FILE_NAME_BYTES_MAX, AGENT_ID_BYTES_MAX, KEY_FILES_BYTES_MAX,
        STOPPER_BYTES_MAX,
    },
    name::id::{AgentId, KeyPrint},
    records::{agent_files, retired, stopped},
    wire::record::{Draft, RecordKey},
};

/// Agents that are stopped, as far as it counts here or a key says so.
pub(crate) fn list_stops(known: &Known, key: KeyPrint) -> Outcome {
    let mut stops = Vec::new();
    for by in known.stoppers(key) {
        let line = known.directory.keys().line(by);
        stops.extend(known.stopped.of_line(&line).map(|stop| StopView {
            key: by,
            agent: stop.agent.clone(),
            by: stop.by.clone(),
            since_ms: stop.since_ms,
        }));
    }
    Outcome::Stops(Box::new(Stops { is_operator: known.is_operator(key), stops }))
}

impl Records {
    /// Nobody attaches under this id again.
    pub(crate) fn retire(&mut self, known: &mut Known, retire: Retire) -> Result<Outcome, Refused> {
        let Retire { key, agent, signer } = retire;
        owns(known, key, &agent)?;
        if !known.directory.proofs().is_retired(&agent) {
            self.write_open(known, (key, signer.as_deref()), retired::draft(&agent))?;
        }
        Ok(Outcome::Done)
    }

    /// Agents are stopped, or let go.
    pub(crate) fn stop(&mut self, known: &mut Known, stop: StopAgents) -> Result<Outcome, Refused> {
        let StopAgents { key, signer, agent, by } = stop;
        if let Some(by) = &by {
            rules::within(Field::Name, by, STOPPER_BYTES_MAX)?;
        }
        if let Some(agent) = &agent {
            rules::within(Field::AgentId, agent, AGENT_ID_BYTES_MAX)?;
        }
        let own = known.stopped.own(key, agent.as_deref()).flatten().is_some();
        let line = known.directory.keys().line(key);
        let is_stopped = known.stopped.said(&line, agent.as_deref()).is_some();
        // Said once more it stays as the key itself said it first, and one that was not stopped is let go without a record.
        let is_news = if by.is_some() { !own } else { is_stopped };
        if is_news {
            let draft = stopped::draft(agent.as_ref(), by.as_deref());
            self.write_open(known, (key, signer.as_deref()), draft)?;
        }
        Ok(Outcome::Done)
    }

    pub(crate) fn change_agent_file(
        &mut self,
        known: &mut Known,
        change: AgentFileChange,
    ) -> Result<Outcome, Refused> {
        let AgentFileChange { key, agent, signer, name, bytes } = change;
        rules::within(Field::Path, &name, AGENT_FILE_NAME_BYTES_MAX)?;
        let max = AGENT_FILE_BYTES_MAX;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > max) {
            return Err(Broken { field: Field::File, rule: Rule::AtMost(max) }.into());
        }
        owns(known, key, &agent)?;
        if bytes.is_some() && known.directory.proofs().is_retired(&agent) {
            return Err(Refused::AgentRetired(agent));
        }
        let at = place_in(known, known.directory_for(key, false)?)?;
        let id = agent_files::id(&at, &agent, &name);
        let record = RecordKey { id, owner: Some(key) };
        let collection = agent_files::COLLECTION.number;
        let is_there = self.set(at.space, collection).is_some_and(|set| set.is_live(record));
        let unsigned = match bytes {
            Some(bytes) => {
                let held = Name { space: at.space, collection, key: record };
                self.has_room_for(&held, key, bytes.len() as u64)?;
                let draft = agent_files::draft(&at, (&agent, &name), &bytes);
                let sealed = agent_files::apart_name(id, key);
                // An empty one has nothing to travel.
                let apart = Some(bytes).filter(|bytes| !bytes.is_empty());
                Unsigned { draft, apart: apart.map(|bytes| at.cover.write_apart(&sealed, bytes)) }
            }
            None if is_there => {
                let (space, body) = (at.space, None);
                Draft { space, collection, id, body }.into()
            }
            None => return Ok(Outcome::Done),
        };
        let shelf = Shelf { at, keys: BTreeSet::new() };
        self.write(known, &Writing::of_room(key, signer.as_deref(), &shelf), vec![unsigned])?;
        Ok(Outcome::Done)
    }

    /// The bytes apart of one key in one space are bounded, whatever they belong to.
    fn has_room_for(&self, held: &Name, key: KeyPrint, length: u64) -> Result<(), Refused> {
        let replaced = self.contents.length(held);
        let bytes = self.contents.bytes_of(held.space, key);
        if bytes - replaced.min(bytes) + length > KEY_FILES_BYTES_MAX {
            let text = format!(
                "the files of the key have {bytes} bytes, and may have {KEY_FILES_BYTES_MAX}"
            );
            return Err(Refused::Full(text));
        }
        Ok(())
    }
}

fn owns(known: &Known, key: KeyPrint, agent: &AgentId) -> Result<(), Refused> {
    if known.directory.proofs().owns(key, agent) { Ok(()) } else { Err(impossible(NOT_OWNED)) }
}

const NOT_OWNED: &str = "your key does not own that agent's id";
