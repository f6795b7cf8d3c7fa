//! The part of the directory that says in whose name a node can speak: owners of agent ids, keys, vouchers. It is judged
//! where a message is shown, on any thread, and never where one is accepted: nodes that know different vouchers have
//! the same logs (`docs/decisions/keys.md`).

#![expect(
    clippy::disallowed_types,
    reason = "the engine alone writes; readers of history judge each message, and must not ask the engine for that"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{
    agents::AgentIds,
    keys::{Changed, Directories, KeyEntry, Keys},
    learned::{Learned, Source},
    standing::Standing,
    vouchers::Vouchers,
};
use crate::{
    api::proof::Proof,
    fold::act::{Revision, Spoken},
    limits::{KEYS_MAX, VOUCHERS_MAX},
    name::{
        agent::{Belongs, belongs},
        id::{AgentId, EntryRef, KeyPrint, LogId, NodeId, RoomId},
        key::KeyHalves,
        number::Number,
    },
    records::{
        retired::RetiredAgents,
        writers::{RoomWriters, Writers},
    },
    wire::{
        acts::KeyAct,
        entry::{AgentClaimed, Said},
        record::{Record, RecordKey},
    },
};

/// A handle to the proofs that are known; clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Proofs(Arc<RwLock<Shown>>);

#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) agents: AgentIds,
    pub(super) keys: Keys,
    pub(super) vouchers: Vouchers,
    /// The keys that made rooms.
    pub(super) rooms: BTreeMap<RoomId, KeyPrint>,
    /// The keys of rooms that several have.
    pub(super) shared: BTreeMap<RoomId, BTreeSet<KeyPrint>>,
    /// The public halves of keys that the mesh's directory names. They certify themselves, so nothing takes them back.
    pub(super) halves: BTreeMap<KeyPrint, KeyHalves>,
    /// The keys that write files of rooms of others.
    pub(super) writers: RoomWriters,
    /// Agents that keys say are retired.
    pub(super) retired: RetiredAgents,
    /// Withdrawals: a log was cut, or another claim of an id turned out to be the first.
    revision: Revision,
}

impl Proofs {
    /// Of a message in a log of this node.
    #[must_use]
    pub fn of(&self, node: NodeId, said: &Said) -> Proof {
        said.key.map_or_else(Proof::default, |key| self.read().of(node, key, &said.agent))
    }

    /// Of anything that an agent does with this key at this node.
    #[must_use]
    pub fn of_agent(&self, node: NodeId, key: KeyPrint, agent: &str) -> Proof {
        self.read().of(node, key, agent)
    }

    /// Whether an agent's id is a key's own now, and the key is not revoked.
    #[must_use]
    pub fn owns(&self, key: KeyPrint, agent: &str) -> bool {
        let known = self.read();
        !known.keys.is_revoked(key) && known.owns(key, agent)
    }

    /// Whether a key has claimed an agent's id.
    #[must_use]
    pub fn is_claimed(&self, agent: &str) -> bool {
        self.read().agents.owner(agent).is_some()
    }

    /// What is found first of the agents whose ids are a key's by a claim. All claims are looked at.
    pub(crate) fn find_claimed<T>(
        &self,
        key: KeyPrint,
        find: impl FnMut(&AgentId) -> Option<T>,
    ) -> Option<T> {
        let known = self.read();
        let current = known.keys.current(key);
        let all = known.agents.all().filter(|(_, owner)| known.keys.current(*owner) == current);
        all.map(|(agent, _)| agent).find_map(find)
    }

    /// The keys that write the records of a room: the one that made it, or has come after that one; of a direct or a shared
    /// room all that have it. None that are revoked; none of a room that is nobody's, or is not there.
    #[must_use]
    pub fn keys_of_room(&self, room: RoomId) -> BTreeSet<KeyPrint> {
        let known = self.read();
        let maker = known.rooms.get(&room);
        let several = known.shared.get(&room).into_iter().flatten();
        let keys = maker.into_iter().chain(several).copied().filter_map(KeyPrint::checked);
        let keys = keys.map(|key| known.keys.current(key));
        keys.filter(|key| !known.keys.is_revoked(*key)).collect()
    }

    /// The keys that the maker of a public room lets write its files.
    #[must_use]
    pub fn writers_of_room(&self, room: RoomId) -> Writers {
        let known = self.read();
        known.writers_of(room).cloned().unwrap_or_default()
    }

    /// The keys whose files of a room show: [`Proofs::keys_of_room`], and those that its maker lets write. `owners`: those that
    /// have written some, if all may ([`Writers::anyone`]).
    #[must_use]
    pub fn file_keys(
        &self,
        room: RoomId,
        owners: impl IntoIterator<Item = KeyPrint>,
    ) -> BTreeSet<KeyPrint> {
        let mut keys = self.keys_of_room(room);
        let known = self.read();
        let Some(writers) = known.writers_of(room) else { return keys };
        let counts =
            |key: &KeyPrint| !known.keys.is_revoked(*key) && known.keys.current(*key) == *key;
        keys.extend(writers.named.iter().map(|key| known.keys.current(*key)).filter(counts));
        if writers.anyone {
            keys.extend(owners.into_iter().filter(counts));
        }
        keys
    }

    /// Whether an agent is retired for ever: the key that owns its id says so. The word of a key that was replaced does not
    /// count: a thief of it could say it at any time, and nobody could take it back.
    #[must_use]
    pub fn is_retired(&self, agent: &str) -> bool {
        let known = self.read();
        known.retired.said_by(agent).any(|key| {
            let is_current = known.keys.current(key) == key && !known.keys.is_revoked(key);
            is_current && known.owns(key, agent)
        })
    }

    /// A record that retires an agent is kept; `None`: it is not any more.
    pub(crate) fn learn_retired(&self, key: RecordKey, record: Option<&Record>) {
        let retired = &mut self.write().retired;
        match record {
            Some(record) => retired.learn(key, record),
            None => retired.forget(key),
        }
    }

    /// A record about the writers of a room is kept, in this state; `None`: it is not any more.
    pub(crate) fn learn_writers(&self, key: RecordKey, record: Option<&Record>) {
        let writers = &mut self.write().writers;
        match record {
            Some(record) => writers.learn(key, record),
            None => writers.forget(key),
        }
    }

    /// The keys, as long as this is held.
    pub(crate) fn keys(&self) -> KnownKeys<'_> {
        KnownKeys(self.read())
    }

    /// The same, known to others from now on by itself.
    pub(super) fn copied(&self) -> Proofs {
        Proofs(Arc::new(RwLock::new(self.read().clone())))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Shown> {
        // No writer leaves it in between.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Shown> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// As the key says to which a room belongs now. A revoked one says nothing.
    fn writers_of(&self, room: RoomId) -> Option<&Writers> {
        let maker = self.keys.current(KeyPrint::checked(*self.rooms.get(&room)?)?);
        self.writers.of(room, maker).filter(|_| !self.keys.is_revoked(maker))
    }

    /// An act that is to be taken in carries a key's public halves. There are as many as there are keys and vouchers.
    pub(super) fn learn_halves(&mut self, entry: &KeyEntry, act: &KeyAct) {
        if entry.of != Directories::Mesh || self.halves.len() >= KEYS_MAX + VOUCHERS_MAX {
            return;
        }
        let by = match act {
            KeyAct::Minted(minted) => &minted.by,
            KeyAct::Shown(shown) if self.vouchers.has_room_for(entry.log.author) => shown,
            KeyAct::Shown(_) | KeyAct::Revoked(_) | KeyAct::Replaced(_) => return,
        };
        self.halves.insert(by.key(), by.halves);
    }

    /// A key was shown at the node of this log. Whether that is new.
    pub(super) fn learn_voucher(&mut self, log: LogId, seq: u64, key: KeyPrint) -> bool {
        self.revision.changes += 1;
        self.vouchers.learn(log, seq, key)
    }

    pub(super) fn learn_claim(
        &mut self,
        claim: AgentClaimed,
        source: Source,
        standing: Standing,
    ) -> Learned {
        let agent = claim.agent.clone();
        self.watch_owner(&agent, |agents| agents.learn(claim, source, standing))
    }

    pub(super) fn renumber_claim(&mut self, source: Source, number: Number) -> Learned {
        let Some(agent) = self.agents.at(source).cloned() else { return Learned::Nothing };
        self.watch_owner(&agent, |agents| agents.renumber(source, number))
    }

    /// Changes claims of an id, and notes if that takes it from its owner.
    fn watch_owner(
        &mut self,
        agent: &AgentId,
        change: impl FnOnce(&mut AgentIds) -> Learned,
    ) -> Learned {
        let before = self.agents.owner(agent).map(|(key, _)| key);
        let learned = change(&mut self.agents);
        let after = self.agents.owner(agent).map(|(key, _)| key);
        self.revision.changes += 1;
        self.revision.withdrawals += u64::from(before.is_some() && before != after);
        learned
    }

    /// Takes in what a directory says of a key.
    pub(super) fn learn_key(&mut self, entry: KeyEntry, act: KeyAct) -> Changed {
        if let KeyAct::Replaced(replaced) = &act {
            let (key, log) = (replaced.key(), entry.log);
            if !self.keys.is_minted_by(log, key) && !self.vouchers.has(log.author, key) {
                return Changed::Nothing;
            }
        }
        let changed = self.keys.learn(entry, act);
        if let Changed::Successor(_) = changed {
            self.revision.changes += 1;
            self.revision.withdrawals += 1;
        }
        changed
    }

    /// Nothing counts that a log says of keys in these directories, `from` an entry on. Returns agents that may be another
    /// key's now.
    pub(super) fn forget(&mut self, of: Directories, from: EntryRef) -> Vec<AgentId> {
        self.revision.changes += 1;
        self.revision.withdrawals += 1;
        let successors = self.keys.forget(of, from);
        if of == Directories::Mesh {
            self.vouchers.forget(from);
        }
        if successors {
            self.agents.all().map(|(agent, _)| agent.clone()).collect()
        } else {
            Vec::new()
        }
    }

    pub(super) fn owner(&self, agent: &str) -> Option<(KeyPrint, bool)> {
        self.agents.owner(agent).map(|(key, numbered)| (self.keys.current(key), numbered))
    }

    pub(super) fn belongs(&self, agent: &str, key: KeyPrint) -> Belongs {
        let line = self.keys.line(key).into_iter().map(|key| belongs(agent, key));
        line.min_by_key(|belongs| *belongs == Belongs::Another).unwrap_or(Belongs::Another)
    }

    fn of(&self, node: NodeId, key: KeyPrint, agent: &str) -> Proof {
        let key_revoked = self.keys.is_revoked(key);
        let is_shown = || self.vouchers.has(node, key) && self.owns(key, agent);
        Proof { verified: !key_revoked && is_shown(), key_revoked }
    }

    /// Whether an agent's id was drawn for a key, or claimed by it first; or by another one of its line: the words of a key
    /// from before it was replaced stay its agents' word.
    fn owns(&self, key: KeyPrint, agent: &str) -> bool {
        let current = self.keys.current(key);
        match self.belongs(agent, current) {
            Belongs::Drawn => true,
            Belongs::Another => false,
            Belongs::FirstClaim | Belongs::IfClaimed => {
                self.owner(agent).is_some_and(|(owner, _)| owner == current)
            }
        }
    }
}

/// The keys that are known, as long as this is held: nothing is learned meanwhile.
#[derive(Debug)]
pub(crate) struct KnownKeys<'p>(pub(super) RwLockReadGuard<'p, Shown>);

impl KnownKeys<'_> {
    /// Whether an act that a node has written for an agent counts as the agent's, whether or not its key was revoked since.
    /// Agents without a key are everybody's: any node can speak for them.
    pub(crate) fn speaks_for(&self, act: &Spoken<'_>) -> bool {
        let Spoken { node, key, agent } = *act;
        let is_shown = key.is_none_or(|key| self.0.vouchers.has(node, key));
        is_shown && self.0.owns(key.unwrap_or(KeyPrint::OPEN), agent)
    }

    /// The same of an act that asks a sequencer for something: it is answered now, so its key has to be valid now.
    pub(crate) fn may_ask(&self, act: &Spoken<'_>) -> bool {
        self.speaks_for(act) && !act.key.is_some_and(|key| self.is_revoked(key))
    }

    /// The nodes that were shown a key.
    pub(crate) fn shown_at(&self, key: KeyPrint) -> BTreeSet<NodeId> {
        self.0.vouchers.nodes(key).collect()
    }

    /// As long as it is the same, so are the answers.
    pub(crate) fn revision(&self) -> Revision {
        self.0.revision
    }
}

impl Deref for KnownKeys<'_> {
    type Target = Keys;

    fn deref(&self) -> &Keys {
        &self.0.keys
    }
}
