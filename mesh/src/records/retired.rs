//! Agents that are retired: their keys have said so, once and for ever. Nobody attaches under such an id again, at any node and in
//! any dialect. The word of the key that owns the id counts, and no other's.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use super::collection::{Collection, Merge, Owners, Place, Writer};
use crate::{
    limits::{AGENT_ID_BYTES_MAX, RETIRED_RECORDS_PER_KEY_MAX, RETIRED_RECORDS_PER_NODE_MAX},
    name::id::{AgentId, KeyPrint},
    wire::{
        cbor::{encode, text},
        record::{CollectionNumber, Draft, Record, RecordId, RecordKey, Space},
    },
};

/// One record for each agent that is retired.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(52),
    name: "agent.retired",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::End,
    body_bytes_max: AGENT_ID_BYTES_MAX + 16,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: true,
    owner_max: RETIRED_RECORDS_PER_KEY_MAX,
    node_max: RETIRED_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(id(&minicbor::decode::<Retired>(body).ok()?.agent)),
};

/// The content of a record.
#[derive(Encode, Decode)]
struct Retired {
    #[cbor(n(0), with = "text")]
    agent: AgentId,
}

fn id(agent: &str) -> RecordId {
    RecordId::of_part(COLLECTION.number, agent.as_bytes(), &[])
}

/// The record to write.
#[must_use]
pub fn draft(agent: &AgentId) -> Draft {
    let body = Some(encode(&Retired { agent: agent.clone() }));
    Draft { space: Space::Mesh, collection: COLLECTION.number, id: id(agent), body }
}

/// The agent that a record is about.
#[must_use]
pub fn agent_of(record: &Record) -> Option<AgentId> {
    Some(minicbor::decode::<Retired>(record.content()?).ok()?.agent)
}

/// All agents that keys say are retired: whose word counts says the directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetiredAgents {
    said: BTreeMap<RecordKey, AgentId>,
    by_agent: BTreeMap<AgentId, BTreeSet<KeyPrint>>,
}

impl RetiredAgents {
    /// A record is kept.
    pub(crate) fn learn(&mut self, key: RecordKey, record: &Record) {
        if let Some(agent) = agent_of(record) {
            self.by_agent.entry(agent.clone()).or_default().insert(record.owner());
            self.said.insert(key, agent);
        }
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, key: RecordKey) {
        let (Some(agent), Some(owner)) = (self.said.remove(&key), key.owner) else { return };
        if let Some(owners) = self.by_agent.get_mut(&agent) {
            owners.remove(&owner);
            if owners.is_empty() {
                self.by_agent.remove(&agent);
            }
        }
    }

    /// The keys that say it of an agent.
    pub(crate) fn said_by(&self, agent: &str) -> impl Iterator<Item = KeyPrint> {
        self.by_agent.get(agent).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{id::MeshId, key::KeySecret},
        records::collection::is_sound,
        wire::record::Stamp,
    };

    #[test]
    fn an_agent_is_retired_by_one_record_of_its_key_which_is_never_taken_back() {
        let (key, mesh) = (KeySecret::of(&"k".repeat(32)), MeshId([1; 16]));
        let agent: AgentId = "x".repeat(AGENT_ID_BYTES_MAX).as_str().into();
        let record = draft(&agent).sign(&key, mesh, Stamp::at(5)).expect("it is long enough");
        assert!(is_sound(&record, &crate::name::identity::Strict, mesh));
        assert!(!COLLECTION.fits(Space::Mesh, (record.id, key.print()), None));
        let mut all = RetiredAgents::default();
        let name = COLLECTION.key(record.id, record.owner());
        all.learn(name, &record);
        assert_eq!(all.said_by(&agent).collect::<Vec<_>>(), [key.print()]);
        assert_eq!(all.said_by("another").count(), 0);
        all.forget(name);
        assert!(all.said.is_empty() && all.by_agent.is_empty());
    }
}
