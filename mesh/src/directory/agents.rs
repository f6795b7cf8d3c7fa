//! Stable agent ids, and the keys that claim them. The claim with the lowest number counts.

use std::collections::BTreeMap;

use super::{
    learned::{Learned, Source, Void},
    standing::{Numbered, Standing},
};
use crate::{
    limits::{AGENT_ID_BYTES_MAX, AGENT_IDS_MAX},
    name::{
        id::{AgentId, KeyPrint, NodeId},
        number::Number,
    },
    wire::entry::AgentClaimed,
};

#[derive(Clone, Debug)]
struct Claim {
    key: KeyPrint,
    standing: Standing,
    source: Source,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentIds {
    claims: BTreeMap<AgentId, Vec<Claim>>,
    by_source: BTreeMap<Source, AgentId>,
    /// How many claims there are of each key, by the node that wrote them.
    counts: BTreeMap<(NodeId, KeyPrint), usize>,
}

impl AgentIds {
    pub(super) fn learn(
        &mut self,
        claim: AgentClaimed,
        source: Source,
        standing: Standing,
    ) -> Learned {
        if claim.agent.len() > AGENT_ID_BYTES_MAX || !claim.may_count() {
            return Learned::Nothing;
        }
        let key = claim.key();
        let AgentClaimed { agent, by: _ } = claim;
        self.by_source.insert(source, agent.clone());
        let known = self.claims.entry(agent.clone()).or_default();
        if known.iter().all(|claim| claim.source != source) {
            *self.counts.entry((standing.log.author, key)).or_default() += 1;
            known.push(Claim { key, standing, source });
            known.sort_by_key(|claim| claim.standing);
        }
        Learned::Agent(agent)
    }

    pub(super) fn renumber(&mut self, source: Source, number: Number) -> Learned {
        let Some(agent) = self.by_source.get(&source) else { return Learned::Nothing };
        let Some(claims) = self.claims.get_mut(agent) else { return Learned::Nothing };
        for claim in claims.iter_mut().filter(|claim| claim.source == source) {
            let numbered = Numbered::Counting(number);
            claim.standing.numbered = numbered.min(claim.standing.numbered);
        }
        claims.sort_by_key(|claim| claim.standing);
        Learned::Agent(agent.clone())
    }

    /// As if the id had been claimed for the key long ago.
    #[cfg(test)]
    pub(super) fn assume_owner(&mut self, agent: &str, key: KeyPrint) {
        use crate::name::{
            id::{LocalRef, LogId, RoomId},
            number::Era,
        };
        let log = LogId { author: NodeId([0; 32]), incarnation: 0 };
        let numbered = Numbered::Counting(Era::HOME.number(0));
        let standing = Standing { numbered, clock: 0, log, seq: 0 };
        let source = (RoomId([0; 16]), LocalRef { log: u32::MAX, seq: self.claims.len() as u64 });
        self.claims.insert(agent.into(), vec![Claim { key, standing, source }]);
    }

    /// The id that the claim at `source` is of.
    pub(super) fn at(&self, source: Source) -> Option<&AgentId> {
        self.by_source.get(&source)
    }

    pub(super) fn owner(&self, agent: &str) -> Option<(KeyPrint, bool)> {
        let claim = self.claims.get(agent)?.first()?;
        Some((claim.key, claim.standing.is_numbered()))
    }

    /// All ids that somebody has claimed, with the key that has it.
    pub(super) fn all(&self) -> impl Iterator<Item = (&AgentId, KeyPrint)> {
        let first = |(agent, claims): (_, &Vec<Claim>)| Some((agent, claims.first()?.key));
        self.claims.iter().filter_map(first)
    }

    pub(super) fn has_room_for(&self, claim: &AgentClaimed) -> bool {
        self.claims.len() < AGENT_IDS_MAX || self.claims.contains_key(&claim.agent)
    }

    pub(super) fn claimed_by(&self, node: NodeId, key: KeyPrint) -> usize {
        self.counts.get(&(node, key)).copied().unwrap_or_default()
    }

    /// Returns ids whose owner may have changed.
    pub(super) fn forget(&mut self, void: Void) -> Vec<AgentId> {
        let mut disowned = Vec::new();
        for (agent, claims) in &mut self.claims {
            for claim in claims.extract_if(.., |claim| void.covers(claim.source, claim.standing)) {
                disowned.push(agent.clone());
                if let Some(count) = self.counts.get_mut(&(void.from.log.author, claim.key)) {
                    *count -= 1;
                }
            }
        }
        disowned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::id::{LocalRef, LogId, RoomId};

    #[test]
    fn so_many_ids_are_known_and_of_these_more_is_learned() {
        let claim = |agent: &str| AgentClaimed { agent: agent.into(), by: None };
        let mut ids = AgentIds::default();
        for nth in 0..AGENT_IDS_MAX {
            let source = (RoomId([7; 16]), LocalRef { log: 1, seq: nth as u64 });
            let log = LogId { author: NodeId([1; 32]), incarnation: 0 };
            let standing = Standing { numbered: Numbered::Not, clock: 1, log, seq: nth as u64 };
            let claim = claim(&format!("agent {nth}"));
            assert!(ids.has_room_for(&claim));
            ids.learn(claim, source, standing);
        }
        assert!(!ids.has_room_for(&claim("new")) && ids.has_room_for(&claim("agent 7")));
    }
}
