//! The directory: rooms, lanes, stable agent ids and keys, as every node knows them. A fold over entries that does
//! not depend on the order in which they came: numbers decide ties, then positions.

pub(crate) mod accounts;
mod agents;
pub(crate) mod direct;
pub(crate) mod keys;
mod learned;
pub(crate) mod naming;
pub(crate) mod nodes;
pub(crate) mod proofs;
pub(crate) mod removals;
pub(crate) mod shared;
mod standing;
#[cfg(test)]
mod tests;
mod vouchers;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(crate) use self::learned::{Learned, Source};
use self::{
    accounts::{Accounts, Entered},
    direct::{DirectRooms, Place},
    keys::{Changed, Directories, KeyEntry},
    learned::Void,
    nodes::Nodes,
    proofs::{KnownKeys, Proofs},
    shared::SharedRooms,
    standing::{Firsts, Lost, Numbered, Standing},
};

use crate::{
    api::import::is_foreign_id,
    limits::{DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX},
    name::{
        agent::Belongs,
        id::{AgentId, EntryRef, KeyPrint, LogId, MeshId, NodeId, RoomId, sha256},
        key::KeyHalves,
        number::Number,
    },
    turn::happened::Fact,
    wire::{
        acts::KeyAct,
        entry::{AgentClaimed, Body, RoomCreated},
    },
};

/// The id of the room that the entry at `seq` of a directory log creates: nobody can take another's.
pub(crate) fn room_id(mesh: MeshId, directory: RoomId, log: LogId, seq: u64) -> RoomId {
    let (incarnation, seq) = (log.incarnation.to_be_bytes(), seq.to_be_bytes());
    let hash =
        sha256(&[b"clawmesh room", &mesh.0, &directory.0, &log.author.0, &incarnation, &seq]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    // A UUID of version 8, variant 10.
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RoomId(id)
}

/// A room that somebody created.
#[derive(Clone, Debug)]
pub(crate) struct CreatedRoom {
    pub(crate) created: RoomCreated,
    pub(crate) author: NodeId,
    pub(crate) wall_ms: u64,
    pub(crate) source: Source,
    standing: Standing,
    firsts: Firsts,
}

/// The lobby as it was where it was brought from.
#[derive(Clone, Debug)]
pub(crate) struct Lobby {
    pub(crate) description: Option<Arc<str>>,
    /// Unix milliseconds.
    pub(crate) created_ms: u64,
    /// The entry of the founder's log that says so.
    seq: u64,
}

/// The directories, together: the mesh's, and the node's own of private rooms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// The node that may bring rooms from elsewhere. `None`: none may.
    founder: Option<NodeId>,
    lobby: Option<Lobby>,
    rooms: BTreeMap<RoomId, CreatedRoom>,
    by_source: BTreeMap<Source, RoomId>,
    by_name: BTreeMap<String, BTreeSet<RoomId>>,
    by_maker: BTreeMap<(NodeId, KeyPrint), BTreeSet<RoomId>>,
    pub(crate) direct: DirectRooms,
    pub(crate) shared: SharedRooms,
    pub(crate) accounts: Accounts,
    pub(crate) nodes: Nodes,
    /// Agent ids, keys, vouchers.
    proofs: Proofs,
    lost: Lost,
}

impl Directory {
    /// Of a mesh that this node founded, or another one.
    pub(crate) fn new(founder: Option<NodeId>) -> Directory {
        Directory { founder, ..Directory::default() }
    }

    /// Takes in a fact, with all numbers that it has yet.
    pub(crate) fn learn(&mut self, mesh: MeshId, fact: Fact, numbers: &[Number]) -> Learned {
        let lowest = numbers.iter().min();
        let standing = Standing {
            numbered: lowest.map_or(Numbered::Not, |number| Numbered::Counting(*number)),
            clock: fact.facts.clock,
            log: fact.log,
            seq: fact.at.seq,
        };
        if let Body::RoomCreated(created) = &fact.body {
            if created.room == RoomId::lobby(mesh) {
                return self.learn_lobby(&fact, created);
            }
            return self.learn_room(mesh, &fact, created, numbers);
        }
        if let Body::AgentClaimed(claim) = fact.body {
            return self.proofs.write().learn_claim(claim, (fact.room, fact.at), standing);
        }
        if let Body::AccountClaimed(claim) = fact.body {
            // Others are told of it by the mesh's directory alone.
            if fact.room != RoomId::directory(mesh) {
                return Learned::Nothing;
            }
            let firsts = self.firsts(fact.room, numbers);
            let standing = Standing { numbered: firsts.numbered(), ..standing };
            let (source, wall_ms) = ((fact.room, fact.at), fact.facts.wall_ms);
            return self.accounts.learn(claim, Entered { source, standing, firsts, wall_ms });
        }
        if let Body::DirectOpened(opened) = &fact.body {
            let (directory, log, seq) = (fact.room, fact.log, fact.at.seq);
            let place = Place { directory, log, seq, facts: fact.facts };
            return self.direct.learn(mesh, place, opened);
        }
        if let Body::DirectClosed(closed) = fact.body {
            let (directory, log, seq) = (fact.room, fact.log, fact.at.seq);
            let place = Place { directory, log, seq, facts: fact.facts };
            return self.direct.learn_closed(place, closed);
        }
        if let Body::NodeAdmitted(admitted) = fact.body {
            return self.nodes.learn(admitted, standing, fact.facts.wall_ms);
        }
        if let Body::Key(act) = fact.body {
            let of = directories(mesh, fact.room);
            let entry = KeyEntry { of, log: fact.log, seq: fact.at.seq, facts: fact.facts };
            return self.learn_key(entry, act);
        }
        Learned::Nothing
    }

    /// Takes in what a directory says of a key.
    pub(crate) fn learn_key(&mut self, entry: KeyEntry, act: KeyAct) -> Learned {
        let mut proofs = self.proofs.write();
        proofs.learn_halves(&entry, &act);
        if let KeyAct::Shown(shown) = act {
            // Others are told of it by the mesh's directory alone.
            let key = shown.key();
            let counts = entry.of == Directories::Mesh;
            let is_new = counts && proofs.learn_voucher(entry.log, entry.seq, key);
            return if is_new { Learned::Key(key) } else { Learned::Nothing };
        }
        match proofs.learn_key(entry, act) {
            Changed::Nothing => Learned::Nothing,
            Changed::Known(key) => Learned::Key(key),
            Changed::Invalid(key) => Learned::Revoked(key),
            Changed::Successor(key) => Learned::Replaced(key),
        }
    }

    /// The lobby is there without being created. The founder may bring more about it, once.
    fn learn_lobby(&mut self, fact: &Fact, created: &RoomCreated) -> Learned {
        let may = self.founder == Some(fact.log.author) && self.lobby.is_none();
        if let Some(imported) = created.imported.filter(|_| may && is_described(created)) {
            let description = created.description.as_deref().map(Arc::from);
            let created_ms = imported.created_ms;
            self.lobby = Some(Lobby { description, created_ms, seq: fact.at.seq });
        }
        Learned::Nothing
    }

    fn learn_room(
        &mut self,
        mesh: MeshId,
        fact: &Fact,
        created: &RoomCreated,
        numbers: &[Number],
    ) -> Learned {
        let id = created.room;
        // Of two that the founder brings under one id the first of its log counts.
        let fits = self.may_create(mesh, fact, created) && fits(created);
        if !fits || self.rooms.contains_key(&id) {
            return Learned::Nothing;
        }
        let (author, source) = (fact.log.author, (fact.room, fact.at));
        self.by_source.insert(source, id);
        self.by_name.entry(created.name.clone()).or_default().insert(id);
        self.by_maker.entry((author, created.owner)).or_default().insert(id);
        let firsts = self.firsts(fact.room, numbers);
        let (clock, log, seq) = (fact.facts.clock, fact.log, fact.at.seq);
        let room = CreatedRoom {
            created: created.clone(),
            author,
            wall_ms: created.imported.map_or(fact.facts.wall_ms, |imported| imported.created_ms),
            source,
            standing: Standing { numbered: firsts.numbered(), clock, log, seq },
            firsts,
        };
        self.rooms.insert(id, room);
        self.proofs.write().rooms.insert(id, created.owner);
        Learned::Rooms(self.of_name(&created.name))
    }

    fn firsts(&self, directory: RoomId, numbers: &[Number]) -> Firsts {
        let mut firsts = Firsts::default();
        for number in numbers {
            firsts.add(*number, self.lost.counts(directory, *number));
        }
        firsts
    }

    /// Whether the entry creates a room of the id that is its own, or of one that the founder brings. The two have
    /// different forms, so neither is ever the other.
    fn may_create(&self, mesh: MeshId, fact: &Fact, created: &RoomCreated) -> bool {
        if created.imported.is_none() {
            return created.room == room_id(mesh, fact.room, fact.log, fact.at.seq);
        }
        let ours = created.room == RoomId::directory(mesh);
        is_foreign_id(created.room) && !ours && self.founder == Some(fact.log.author)
    }

    pub(crate) fn lobby(&self) -> Option<&Lobby> {
        self.lobby.as_ref()
    }

    /// An entry of a directory got a number.
    pub(crate) fn renumber(&mut self, source: Source, number: Number) -> Learned {
        let Some(id) = self.by_source.get(&source) else {
            if self.accounts.renumber(source, number, self.lost.counts(source.0, number)) {
                return Learned::Nothing;
            }
            return self.proofs.write().renumber_claim(source, number);
        };
        let Some(room) = self.rooms.get_mut(id) else { return Learned::Nothing };
        room.firsts.add(number, self.lost.counts(source.0, number));
        room.standing.numbered = room.firsts.numbered();
        let name = room.created.name.clone();
        Learned::Rooms(self.of_name(&name))
    }

    fn of_name(&self, name: &str) -> Vec<RoomId> {
        self.by_name.get(name).map(|ids| ids.iter().copied().collect()).unwrap_or_default()
    }

    pub(crate) fn room(&self, id: RoomId) -> Option<&CreatedRoom> {
        self.rooms.get(&id)
    }

    pub(crate) fn room_count(&self) -> usize {
        self.rooms.len()
    }

    /// Rooms that agents of this key, and of those that it replaced, made at this node, void ones included.
    pub(crate) fn made_by(&self, node: NodeId, key: KeyPrint) -> impl Iterator<Item = RoomId> {
        let line = self.keys().line(key);
        line.into_iter()
            .flat_map(move |key| self.by_maker.get(&(node, key)).into_iter().flatten().copied())
    }

    /// The key to which a room belongs that was made with this one.
    pub(crate) fn current(&self, key: KeyPrint) -> KeyPrint {
        self.keys().current(key)
    }

    /// These keys have a direct or a shared room.
    pub(crate) fn note_keys_of(&mut self, room: RoomId, keys: BTreeSet<KeyPrint>) {
        self.proofs.write().shared.insert(room, keys);
    }

    /// The room that the entry at `source` creates.
    pub(crate) fn created_at(&self, source: Source) -> Option<RoomId> {
        self.by_source.get(&source).copied()
    }

    /// A node's name, or the beginning of its id.
    pub(crate) fn node_name(&self, node: NodeId) -> String {
        let name = self.nodes.names.get(&node).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| node.short())
    }

    /// The key that owns an agent id, by the claim with the lowest number, and whether that claim has a number.
    pub(crate) fn owner(&self, agent: &str) -> Option<(KeyPrint, bool)> {
        self.proofs.read().owner(agent)
    }

    /// Whether, and how, an agent id belongs by its form to this key, or to one of those that it replaced.
    pub(crate) fn belongs(&self, agent: &str, key: KeyPrint) -> Belongs {
        self.proofs.read().belongs(agent, key)
    }

    /// Ids of which the claim that counts is for one of these keys.
    pub(crate) fn claimed_for(&self, keys: &BTreeSet<KeyPrint>) -> Vec<AgentId> {
        let proofs = self.proofs.read();
        let claims = proofs.agents.all().filter(|(_, key)| keys.contains(key));
        claims.map(|(agent, _)| agent.clone()).collect()
    }

    /// As if the id had been claimed for the key long ago.
    #[cfg(test)]
    pub(crate) fn assume_owner(&mut self, agent: &str, key: KeyPrint) {
        self.proofs.write().agents.assume_owner(agent, key);
    }

    /// As if the key had been shown at the node long ago.
    #[cfg(test)]
    pub(crate) fn assume_shown(&mut self, node: NodeId, key: KeyPrint) {
        let log = LogId { author: node, incarnation: 0 };
        self.proofs.write().learn_voucher(log, 0, key);
    }

    /// Whether there is room for a claim: another one of a known id takes none.
    pub(crate) fn has_room_for(&self, claim: &AgentClaimed) -> bool {
        self.proofs.read().agents.has_room_for(claim)
    }

    /// Stable ids that agents of this key, and of those that it replaced, claimed at this node.
    pub(crate) fn claimed_by(&self, node: NodeId, key: KeyPrint) -> usize {
        let proofs = self.proofs.read();
        let line = proofs.keys.line(key).into_iter();
        line.map(|key| proofs.agents.claimed_by(node, key)).sum()
    }

    /// From now on its proofs are no longer those of the directory that it was cloned from.
    pub(crate) fn share_nothing(&mut self) {
        self.proofs = self.proofs.copied();
    }

    /// In whose name nodes can speak, for those who show messages.
    pub(crate) fn proofs(&self) -> &Proofs {
        &self.proofs
    }

    /// The keys, as long as this is held.
    pub(crate) fn keys(&self) -> KnownKeys<'_> {
        KnownKeys(self.proofs.read())
    }

    /// Keys that are not valid from now on, each once.
    pub(crate) fn take_expired(&mut self, wall_ms: u64) -> Vec<Learned> {
        // Most times there are none, and readers are not kept waiting for that.
        if !self.keys().some_expire(wall_ms) {
            return Vec::new();
        }
        let expired = self.proofs.write().keys.take_expired(wall_ms);
        expired.into_iter().map(Learned::Expired).collect()
    }

    /// The node that answers for a key as the owner of records: the one that minted it for the mesh, or the lowest one that was shown
    /// it. `None`: the mesh's directory does not know the key, so no node can take records of it for its own word.
    pub(crate) fn answers_for(&self, key: KeyPrint) -> Option<NodeId> {
        let proofs = self.proofs.read();
        proofs.keys.answers(key).or_else(|| proofs.vouchers.lowest(key))
    }

    /// The public halves of a key that was minted for the mesh, or shown at a node of it.
    pub(crate) fn halves(&self, key: KeyPrint) -> Option<KeyHalves> {
        self.proofs.read().halves.get(&key).copied()
    }

    /// Of all keys that have such.
    pub(crate) fn all_halves(&self) -> Vec<(KeyPrint, KeyHalves)> {
        self.proofs.read().halves.iter().map(|(key, halves)| (*key, *halves)).collect()
    }

    /// How many these are. They only get more.
    pub(crate) fn halves_count(&self) -> usize {
        self.proofs.read().halves.len()
    }

    /// Whether a key was shown at a node.
    pub(crate) fn is_vouched(&self, node: NodeId, key: KeyPrint) -> bool {
        self.proofs.read().vouchers.has(node, key)
    }

    /// Whether one more voucher of this node would count.
    pub(crate) fn has_room_for_voucher(&self, node: NodeId) -> bool {
        self.proofs.read().vouchers.has_room_for(node)
    }

    /// From these numbers on none of their eras counts, in directories.
    pub(crate) fn lose(&mut self, lost: &[(RoomId, Number)]) {
        if lost.is_empty() {
            return;
        }
        lost.iter().for_each(|(directory, from)| self.lost.add(*directory, *from));
        for room in self.rooms.values_mut() {
            let directory = room.source.0;
            room.firsts.lose(|number| !self.lost.counts(directory, number));
            room.standing.numbered = room.firsts.numbered();
        }
        self.accounts.lose(|source, number| !self.lost.counts(source.0, number));
    }

    /// Nothing counts that a log says in a directory, `from` an entry on. Returns agents that may be another key's
    /// now, or nobody's.
    pub(crate) fn forget(
        &mut self,
        mesh: MeshId,
        directory: RoomId,
        from: EntryRef,
    ) -> Vec<AgentId> {
        let of = directories(mesh, directory);
        let mut disowned = self.proofs.write().forget(of, from);
        self.direct.forget(directory, from);
        let void = Void { directory, from };
        self.accounts.forget(void);
        self.rooms.retain(|_, room| !void.covers(room.source, room.standing));
        self.proofs.write().rooms.retain(|id, _| self.rooms.contains_key(id));
        let by_founder = self.founder == Some(from.log.author);
        let founders = by_founder && directory == RoomId::directory(mesh);
        self.lobby = self.lobby.take().filter(|lobby| !founders || lobby.seq < from.seq);
        let rooms = &self.rooms;
        for ids in self.by_name.values_mut().chain(self.by_maker.values_mut()) {
            ids.retain(|id| rooms.contains_key(id));
        }
        disowned.extend(self.proofs.write().agents.forget(void));
        disowned
    }
}

/// The directories that this one is of.
fn directories(mesh: MeshId, directory: RoomId) -> Directories {
    if directory == RoomId::directory(mesh) { Directories::Mesh } else { Directories::Node }
}

/// Whether a room may be called and described so.
pub(crate) fn fits(created: &RoomCreated) -> bool {
    let name = &created.name;
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name != "lobby" && is_described(created)
}

/// Whether a room may be described so.
pub(crate) fn is_described(created: &RoomCreated) -> bool {
    created.description.as_ref().map_or(0, String::len) <= DESCRIPTION_BYTES_MAX
}
