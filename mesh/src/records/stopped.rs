//! Agents that are stopped: they send nothing until they are let go. A key says so of its own agents, and the key of an operator of
//! those of all nodes that were started with it: of one agent, or of all. What it means at a node says the engine, which knows
//! whose word counts there.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use super::collection::{Collection, Merge, Owners, Place, Writer};
use crate::{
    limits::{
        AGENT_ID_BYTES_MAX, STOP_RECORDS_PER_KEY_MAX, STOP_RECORDS_PER_NODE_MAX, STOPPER_BYTES_MAX,
    },
    name::id::{AgentId, KeyPrint},
    wire::{
        cbor::encode,
        record::{CollectionNumber, Draft, Record, RecordId, RecordKey, Space},
    },
};

/// One record for each agent that a key stops, and one for all.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(59),
    name: "agent.stopped",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: AGENT_ID_BYTES_MAX + STOPPER_BYTES_MAX + 16,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: false,
    owner_max: STOP_RECORDS_PER_KEY_MAX,
    node_max: STOP_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(id(minicbor::decode::<Said>(body).ok()?.agent.as_deref())),
};

/// The content of a record.
#[derive(Encode, Decode)]
struct Said {
    /// `None`: all.
    #[n(0)]
    agent: Option<String>,
    /// The person, for those who are refused.
    #[n(1)]
    by: String,
}

fn id(agent: Option<&str>) -> RecordId {
    let kind = [u8::from(agent.is_some())];
    RecordId::of_part(COLLECTION.number, agent.unwrap_or_default().as_bytes(), &kind)
}

/// The record to write: an agent, or all, is stopped by this person, or let go (`None`).
#[must_use]
pub fn draft(agent: Option<&AgentId>, by: Option<&str>) -> Draft {
    let said =
        |by: &str| encode(&Said { agent: agent.map(|agent| agent.to_string()), by: by.to_owned() });
    let id = id(agent.map(|agent| &**agent));
    Draft { space: Space::Mesh, collection: COLLECTION.number, id, body: by.map(said) }
}

/// A word that agents are stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) key: KeyPrint,
    /// `None`: all.
    pub(crate) agent: Option<AgentId>,
    pub(crate) by: String,
    /// Unix milliseconds.
    pub(crate) since_ms: u64,
}

/// All that keys say: whose word counts says the engine. `None`: the key has let go.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoppedAgents(BTreeMap<RecordKey, Option<Stop>>);

impl StoppedAgents {
    /// A record is kept, in this state.
    pub(crate) fn learn(&mut self, key: RecordKey, record: &Record) {
        let said = record.content().and_then(|body| minicbor::decode::<Said>(body).ok());
        let stop = said.map(|Said { agent, by }| {
            let agent = agent.map(|agent| AgentId::from(&*agent));
            Stop { key: record.owner(), agent, by, since_ms: record.stamp.wall_ms() }
        });
        self.0.insert(key, stop);
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, key: RecordKey) {
        self.0.remove(&key);
    }

    /// No key has said anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The word of a key itself about an agent, or all (`None`). `Some(None)`: it has let go.
    pub(crate) fn own(&self, key: KeyPrint, agent: Option<&str>) -> Option<Option<&Stop>> {
        self.0.get(&COLLECTION.key(id(agent), key)).map(Option::as_ref)
    }

    /// The same of a key, or else of the nearest one before it that has said anything. `line`: the key, and those whose belongings
    /// have come to it.
    pub(crate) fn said(&self, line: &[KeyPrint], agent: Option<&str>) -> Option<&Stop> {
        line.iter().find_map(|key| self.own(*key, agent))?
    }

    /// All that these keys have stopped, as [`said`](Self::said) has it.
    pub(crate) fn of_line<'s>(&'s self, line: &'s [KeyPrint]) -> impl Iterator<Item = &'s Stop> {
        let stops = self.0.values().flatten().filter(|stop| line.contains(&stop.key));
        stops.filter(|stop| self.said(line, stop.agent.as_deref()) == Some(*stop))
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
    fn a_key_stops_an_agent_or_all_and_lets_go_each_by_itself() {
        let (key, mesh) = (KeySecret::of(&"k".repeat(32)), MeshId([1; 16]));
        let agent: AgentId = "x".repeat(AGENT_ID_BYTES_MAX).as_str().into();
        let by = "y".repeat(STOPPER_BYTES_MAX);
        let (mut all, line) = (StoppedAgents::default(), [key.print()]);
        let mut learn = |draft: Draft, at| {
            let record = draft.sign(&key, mesh, Stamp::at(at)).expect("it is long enough");
            assert!(is_sound(&record, &crate::name::identity::Strict, mesh));
            all.learn(COLLECTION.key(record.id, record.owner()), &record);
            let said = |stop: Option<&Stop>| stop.map(|stop| stop.by.clone());
            (said(all.said(&line, Some(&agent))), said(all.said(&line, None)))
        };
        assert_eq!(learn(draft(Some(&agent), Some(&by)), 5_000), (Some(by.clone()), None));
        let both = (Some(by.clone()), Some("ada".to_owned()));
        assert_eq!(learn(draft(None, Some("ada")), 6_000), both);
        assert_eq!(learn(draft(Some(&agent), None), 7_000), (None, Some("ada".to_owned())));
        assert_eq!(learn(draft(None, None), 8_000), (None, None));
        assert_eq!(all.of_line(&line).count(), 0);
    }

    #[test]
    fn the_word_of_a_key_comes_before_those_of_the_keys_before_it() {
        let keys = ["a", "b", "c"].map(|text| KeySecret::of(&text.repeat(32)));
        let (mesh, line) = (MeshId([1; 16]), [2, 1, 0].map(|nth: usize| keys[nth].print()));
        let agent: AgentId = "ann".into();
        let mut all = StoppedAgents::default();
        let mut learn = |nth: usize, by: Option<&str>| {
            let draft = draft(Some(&agent), by);
            let record = draft.sign(&keys[nth], mesh, Stamp::at(5_000)).expect("it is long enough");
            all.learn(COLLECTION.key(record.id, record.owner()), &record);
            let said = all.said(&line, Some(&agent)).map(|stop| stop.by.clone());
            assert_eq!(all.of_line(&line).map(|stop| stop.by.clone()).next(), said);
            said
        };
        assert_eq!(learn(0, Some("ada")).as_deref(), Some("ada"));
        assert_eq!(learn(1, None), None);
        assert_eq!(learn(0, Some("eve")), None, "not any more");
        assert_eq!(learn(2, Some("bob")).as_deref(), Some("bob"));
        assert_eq!(learn(1, Some("eve")).as_deref(), Some("bob"));
    }
}
