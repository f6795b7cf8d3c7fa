//! What the directory says: rooms, lanes, stable agent ids, keys. A fold over entries that does not depend
//! on the order in which they came: ties are decided by number, then by position.

pub(crate) mod keys;
pub(crate) mod removals;
mod standing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::standing::{Firsts, Lost, Numbered, Standing};

use crate::{
    api::import::is_foreign_id,
    directory::keys::Keys,
    engine::context::Fact,
    limits::{
        AGENT_ID_BYTES_MAX, AGENT_IDS_MAX, DESCRIPTION_BYTES_MAX, LANES_PER_NODE_MAX,
        NAME_BYTES_MAX,
    },
    name::{
        id::{AgentId, KeyPrint, LocalRef, LogId, MeshId, NodeId, RoomId, sha256},
        number::Number,
    },
    wire::entry::{AgentClaimed, Body, NodeAdmitted, RoomCreated},
};

/// The id of the room that the entry at `seq` of a directory log creates: nobody can take another's.
pub(crate) fn room_id(mesh: MeshId, directory: RoomId, log: LogId, seq: u64) -> RoomId {
    let (incarnation, seq) = (log.incarnation.to_be_bytes(), seq.to_be_bytes());
    let hash =
        sha256(&[b"clawmesh room", &mesh.0, &directory.0, &log.author.0, &incarnation, &seq]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    // A UUID to whoever looks closely: version 8, variant 10.
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RoomId(id)
}

/// Where a directory entry is: which directory, and where in it.
pub(crate) type Source = (RoomId, LocalRef);

/// A room that somebody created.
#[derive(Debug)]
pub(crate) struct CreatedRoom {
    pub(crate) created: RoomCreated,
    pub(crate) author: NodeId,
    pub(crate) wall_ms: u64,
    pub(crate) source: Source,
    standing: Standing,
    firsts: Firsts,
}

impl CreatedRoom {
    /// Whether each era that numbered this room had numbered one of these before. If one had not,
    /// whoever made the room there was told that it is made.
    fn is_later_everywhere(&self, rivals: &[&CreatedRoom]) -> bool {
        let rivals: Vec<&Firsts> = rivals.iter().map(|it| &it.firsts).collect();
        self.firsts.are_later_everywhere(&rivals)
    }
}

/// What became of the name a room asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Nobody knows it by number yet.
    NotYet,
    /// It is called this.
    Name(Arc<str>),
    /// Another room of that name was created first, and no split was in between: it is none.
    Void,
}

#[derive(Debug)]
struct Claim {
    key: KeyPrint,
    standing: Standing,
    source: Source,
}

/// What the lobby was at the ClawChat server that it was brought from.
#[derive(Debug)]
pub(crate) struct Lobby {
    pub(crate) description: Option<Arc<str>>,
    /// Unix milliseconds.
    pub(crate) created_ms: u64,
    /// Which entry of the founder's log says so.
    seq: u64,
}

/// What the directories say: the mesh's, and the node's own of private rooms.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Who may bring rooms from elsewhere. `None`: nobody.
    founder: Option<NodeId>,
    lobby: Option<Lobby>,
    rooms: BTreeMap<RoomId, CreatedRoom>,
    by_source: BTreeMap<Source, Key>,
    by_name: BTreeMap<String, BTreeSet<RoomId>>,
    by_maker: BTreeMap<(NodeId, KeyPrint), BTreeSet<RoomId>>,
    claims: BTreeMap<AgentId, Vec<Claim>>,
    /// How many claims there are of each key, by the node that wrote them.
    claimed: BTreeMap<(NodeId, KeyPrint), usize>,
    pub(crate) lanes: BTreeMap<NodeId, Vec<(Standing, u32)>>,
    pub(crate) node_names: BTreeMap<NodeId, String>,
    /// When each node was admitted, by its own clock: the first entry of its log that says so.
    pub(crate) admitted: BTreeMap<NodeId, (u64, u64)>,
    pub(crate) keys: Keys,
    lost: Lost,
}

#[derive(Clone, Debug)]
enum Key {
    Room(RoomId),
    Agent(AgentId),
}

/// What a fact changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// Nothing that anybody would notice.
    Nothing,
    /// There is a new room; or names of rooms may have changed.
    Rooms(Vec<RoomId>),
    /// A node has a lane.
    Lane(NodeId),
    /// Who owns this agent id may have changed.
    Agent(AgentId),
    /// A key is not valid any more.
    Revoked(KeyPrint),
}

impl Directory {
    /// Of a mesh that this node founded.
    pub(crate) fn new(founder: Option<NodeId>) -> Directory {
        Directory { founder, ..Directory::default() }
    }

    /// Whether an entry of this log creates a room of this id: its own, or one that the founder brings.
    /// The two have different forms, so the one is never the other's.
    fn may_create(&self, (mesh, id): (MeshId, RoomId), fact: &Fact, it: &RoomCreated) -> bool {
        if it.imported.is_none() {
            return it.room == id;
        }
        let ours = it.room == RoomId::directory(mesh);
        is_foreign_id(it.room) && !ours && self.founder == Some(fact.log.author)
    }

    /// Takes in a fact. `numbers`: all that it has yet.
    pub(crate) fn learn(&mut self, mesh: MeshId, fact: Fact, numbers: &[Number]) -> Learned {
        let source = (fact.room, fact.at);
        let standing = Standing {
            numbered: numbers.iter().min().map_or(Numbered::Not, |it| Numbered::Counting(*it)),
            clock: fact.facts.clock,
            log: fact.log,
            seq: fact.at.seq,
        };
        match fact.body {
            Body::RoomCreated(ref created) => {
                let id = created.room;
                if id == RoomId::lobby(mesh) {
                    return self.learn_lobby(&fact, created);
                }
                let own = room_id(mesh, fact.room, fact.log, fact.at.seq);
                let may = self.may_create((mesh, own), &fact, created);
                // Of two that the founder brings under one id the first of its log counts.
                if !may || !fits(created) || self.rooms.contains_key(&id) {
                    return Learned::Nothing;
                }
                let created = created.clone();
                self.by_source.insert(source, Key::Room(id));
                self.by_name.entry(created.name.clone()).or_default().insert(id);
                let author = fact.log.author;
                let wall_ms = created.imported.map_or(fact.facts.wall_ms, |it| it.created_ms);
                self.by_maker.entry((author, created.owner)).or_default().insert(id);
                let mut firsts = Firsts::default();
                numbers.iter().for_each(|it| firsts.add(*it, self.lost.counts(fact.room, *it)));
                let standing = Standing { numbered: firsts.numbered(), ..standing };
                let room = CreatedRoom { created, author, wall_ms, source, standing, firsts };
                let name = room.created.name.clone();
                self.rooms.insert(id, room);
                Learned::Rooms(self.of_name(&name))
            }
            Body::AgentClaimed(claim) if claim.agent.len() <= AGENT_ID_BYTES_MAX => {
                let agent = claim.agent.clone();
                self.by_source.insert(source, Key::Agent(agent.clone()));
                let known = self.claims.entry(claim.agent).or_default();
                if known.iter().all(|it| it.source != source) {
                    *self.claimed.entry((fact.log.author, claim.key)).or_default() += 1;
                    known.push(Claim { key: claim.key, standing, source });
                    known.sort_by_key(|it| it.standing);
                }
                Learned::Agent(agent)
            }
            Body::NodeAdmitted(it) => self.learn_admitted((standing, fact.facts.wall_ms), it),
            Body::Key(act) => {
                let local = fact.room != RoomId::directory(mesh);
                let revoked = self.keys.learn((local, fact.log, fact.at.seq), fact.facts, act);
                revoked.map_or(Learned::Nothing, Learned::Revoked)
            }
            Body::AgentClaimed(_)
            | Body::Parted(_)
            | Body::Chat(_)
            | Body::Thinking(_)
            | Body::Decision(_)
            | Body::Ordered(_)
            | Body::EraClaimed(_)
            | Body::HandedOver(_)
            | Body::Vote(_)
            | Body::Election(_)
            | Body::Task(_)
            | Body::Unknown => Learned::Nothing,
        }
    }

    /// The lobby is there without being created. What else is said of it the founder brings, once.
    fn learn_lobby(&mut self, fact: &Fact, it: &RoomCreated) -> Learned {
        let may = self.founder == Some(fact.log.author) && self.lobby.is_none();
        if let Some(imported) = it.imported.filter(|_| may && is_described(it)) {
            let description = it.description.as_deref().map(Arc::from);
            let created_ms = imported.created_ms;
            self.lobby = Some(Lobby { description, created_ms, seq: fact.at.seq });
        }
        Learned::Nothing
    }

    pub(crate) fn lobby(&self) -> Option<&Lobby> {
        self.lobby.as_ref()
    }

    fn learn_admitted(&mut self, (at, wall_ms): (Standing, u64), it: NodeAdmitted) -> Learned {
        let node = at.log.author;
        let name = it.name.chars().take(NAME_BYTES_MAX / 4).collect();
        self.node_names.insert(node, name);
        let first = self.admitted.entry(node).or_insert((at.seq, wall_ms));
        *first = (at.seq, wall_ms).min(*first);
        let lanes = self.lanes.entry(node).or_default();
        lanes.push((at, it.lane));
        lanes.sort();
        lanes.dedup();
        // The first ones count: which these are, its log says.
        lanes.truncate(LANES_PER_NODE_MAX);
        Learned::Lane(node)
    }

    /// A directory entry got a number.
    pub(crate) fn renumber(&mut self, source: Source, number: Number) -> Learned {
        match self.by_source.get(&source).cloned() {
            Some(Key::Room(id)) => {
                let Some(room) = self.rooms.get_mut(&id) else { return Learned::Nothing };
                room.firsts.add(number, self.lost.counts(source.0, number));
                room.standing.numbered = room.firsts.numbered();
                let name = room.created.name.clone();
                Learned::Rooms(self.of_name(&name))
            }
            Some(Key::Agent(agent)) => {
                let Some(claims) = self.claims.get_mut(&agent) else { return Learned::Nothing };
                for claim in claims.iter_mut().filter(|it| it.source == source) {
                    let numbered = Numbered::Counting(number);
                    claim.standing.numbered = numbered.min(claim.standing.numbered);
                }
                claims.sort_by_key(|it| it.standing);
                Learned::Agent(agent)
            }
            None => Learned::Nothing,
        }
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

    /// Rooms that agents of this key made at this node, void ones included.
    pub(crate) fn made_by(&self, node: NodeId, key: KeyPrint) -> impl Iterator<Item = RoomId> {
        self.by_maker.get(&(node, key)).into_iter().flatten().copied()
    }

    /// The room that the entry at `source` creates.
    pub(crate) fn created_at(&self, source: Source) -> Option<RoomId> {
        match self.by_source.get(&source)? {
            Key::Room(id) => Some(*id),
            Key::Agent(_) => None,
        }
    }

    /// What a room is called. Of several that asked for one name the lowest number has it; one
    /// that was numbered later by every era that numbered it is void (its creator was told so), any
    /// other one was created across a split and is called `name (node)`, or `name (node 2)`. Rooms of different keys
    /// that cannot see each other do not collide.
    pub(crate) fn name(&self, id: RoomId) -> Named {
        let Some(room) = self.rooms.get(&id) else { return Named::NotYet };
        if !room.standing.is_numbered() {
            return Named::NotYet;
        }
        let name = &room.created.name;
        let rivals = self.rivals(room);
        // Numbers of the two directories say nothing about each other: of a private and a shared
        // room the private one gives way, since only this node knows of it.
        let shared = |it: &CreatedRoom| it.created.public;
        if !shared(room) && rivals.iter().any(|rival| shared(rival)) {
            return self.told_apart(room, &rivals);
        }
        let alike = alike(room, rivals);
        if room.is_later_everywhere(&alike) {
            Named::Void
        } else if alike.iter().all(|rival| room.standing < rival.standing) {
            Named::Name(name.as_str().into())
        } else {
            self.told_apart(room, &alike)
        }
    }

    /// Rooms of its name that have a number and that somebody sees who sees it.
    fn rivals(&self, room: &CreatedRoom) -> Vec<&CreatedRoom> {
        let (id, name) = (room.created.room, &room.created.name);
        let rivals = self.by_name.get(name).into_iter().flatten().filter(|it| **it != id);
        rivals
            .filter_map(|rival| self.rooms.get(rival))
            .filter(|rival| rival.standing.is_numbered() && collide(&rival.created, &room.created))
            .collect()
    }

    /// Whether a number made the room that does not count any more, and by those that do others would take it for
    /// void, or for not made yet.
    pub(crate) fn has_lost_its_lead(&self, room: &CreatedRoom) -> bool {
        if !room.firsts.has_lost_any() {
            return false;
        }
        let alike = alike(room, self.rivals(room));
        let firsts: Vec<&Firsts> = alike.into_iter().map(|it| &it.firsts).collect();
        room.firsts.lost_their_lead(&firsts)
    }

    /// Rooms that this node made and that have a number which does not count any more.
    pub(crate) fn lost_a_number(&self, node: NodeId) -> Vec<RoomId> {
        let made = self.by_maker.range((node, KeyPrint([0; 16]))..);
        let made = made.take_while(|((it, _), _)| *it == node).flat_map(|(_, ids)| ids);
        let lost = |id: &&RoomId| self.rooms.get(id).is_some_and(|it| it.firsts.has_lost_any());
        made.filter(lost).copied().collect()
    }

    /// A room that gives way to one of its `rivals`: it is called by its node, too; and if that has made others that
    /// give way, by which of them it is.
    fn told_apart(&self, room: &CreatedRoom, rivals: &[&CreatedRoom]) -> Named {
        let rank = |it: &CreatedRoom| (!it.created.public, it.standing);
        let keeper = rivals.iter().map(|it| rank(it)).min();
        let (own, node) = (rank(room), self.node_name(room.author));
        let before = rivals.iter().filter(|it| {
            let its = rank(it);
            its < own && Some(&its) != keeper.as_ref() && self.node_name(it.author) == node
        });
        Named::Name(named_apart(&room.created.name, &node, before.count()))
    }

    /// Whether a room in memory gives way to one that lasts.
    pub(crate) fn gives_way(&self, it: &RoomCreated) -> bool {
        self.beside(it).any(|room| self.name(room.created.room) != Named::Void)
    }

    /// How many rooms of its name that last may have given way, made by nodes called so.
    pub(crate) fn count_apart(&self, it: &RoomCreated, node: &str) -> usize {
        let rank = |it: &CreatedRoom| (!it.created.public, it.standing);
        let keeper = self.beside(it).map(rank).min();
        let apart = self.beside(it).filter(|it| Some(rank(it)) != keeper);
        apart.filter(|it| self.node_name(it.author) == node).count()
    }

    /// Rooms of its name that everybody sees who sees it: what it is called is the same at all nodes.
    fn beside(&self, it: &RoomCreated) -> impl Iterator<Item = &CreatedRoom> {
        let (public, owner) = (it.public, it.owner);
        let ids = self.by_name.get(&it.name).into_iter().flatten();
        ids.filter_map(|id| self.rooms.get(id))
            .filter(move |room| room.created.public || !public && room.created.owner == owner)
    }

    /// Whether a room that this key may see, or a public one, is called `name` or asks to be.
    pub(crate) fn is_taken(&self, name: &str, key: KeyPrint) -> bool {
        let ids = self.by_name.get(name).into_iter().flatten();
        ids.filter(|id| self.name(**id) != Named::Void)
            .filter_map(|id| self.rooms.get(id))
            .any(|room| room.created.public || room.created.owner == key)
    }

    /// A node's name, or the beginning of its id.
    pub(crate) fn node_name(&self, node: NodeId) -> String {
        self.node_names
            .get(&node)
            .filter(|name| !name.is_empty())
            .cloned()
            .unwrap_or_else(|| node.short())
    }

    /// The key that owns an agent id: the claim with the lowest number. `settled`: it has one.
    pub(crate) fn owner(&self, agent: &str) -> Option<(KeyPrint, bool)> {
        let claim = self.claims.get(agent)?.first()?;
        Some((claim.key, claim.standing.is_numbered()))
    }

    /// Whether there is room for what a claim says: more of an id that is known takes none.
    pub(crate) fn has_room_for(&self, claim: &AgentClaimed) -> bool {
        self.claims.len() < AGENT_IDS_MAX || self.claims.contains_key(&claim.agent)
    }

    /// Stable ids that agents of this key claimed at this node.
    pub(crate) fn claimed_by(&self, node: NodeId, key: KeyPrint) -> usize {
        self.claimed.get(&(node, key)).copied().unwrap_or_default()
    }

    /// The newest lane of a node.
    pub(crate) fn lane_of(&self, node: NodeId) -> Option<u32> {
        self.lanes.get(&node)?.last().map(|(_, lane)| *lane)
    }

    /// All lanes that were entered, and by whom.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (u32, NodeId)> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|(node, lanes)| lanes.iter().map(|(_, lane)| (*lane, *node)))
    }

    /// Whether `node` has to draw another lane: an earlier entry has its newest one too.
    pub(crate) fn lane_clashes(&self, node: NodeId) -> bool {
        let Some((mine, lane)) = self.lanes.get(&node).and_then(|lanes| lanes.last()) else {
            return false;
        };
        self.lanes.iter().any(|(other, lanes)| {
            *other != node && lanes.iter().any(|(theirs, it)| it == lane && theirs < mine)
        })
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
    }

    /// What this log says from `seq` on does not count. Returns agents that may be another key's now, or nobody's.
    pub(crate) fn forget(
        &mut self,
        mesh: MeshId,
        directory: RoomId,
        (log, seq): (LogId, u64),
    ) -> Vec<AgentId> {
        self.keys.forget(directory != RoomId::directory(mesh), log, seq);
        let void = |source: &Source, standing: &Standing| {
            source.0 == directory && standing.log == log && standing.seq >= seq
        };
        self.rooms.retain(|_, room| !void(&room.source, &room.standing));
        let founders = directory == RoomId::directory(mesh) && self.founder == Some(log.author);
        self.lobby = self.lobby.take().filter(|it| !founders || it.seq < seq);
        let mut disowned = Vec::new();
        for (agent, claims) in &mut self.claims {
            for claim in claims.extract_if(.., |claim| void(&claim.source, &claim.standing)) {
                disowned.push(agent.clone());
                if let Some(count) = self.claimed.get_mut(&(log.author, claim.key)) {
                    *count -= 1;
                }
            }
        }
        let rooms = &self.rooms;
        for ids in self.by_name.values_mut().chain(self.by_maker.values_mut()) {
            ids.retain(|id| rooms.contains_key(id));
        }
        disowned
    }
}

/// What a room is called that gives way to another one of its name: by its node, too, and after as many others of that node
/// by which of them it is.
pub(crate) fn named_apart(name: &str, node: &str, before: usize) -> Arc<str> {
    match before {
        0 => format!("{name} ({node})").into(),
        _ => format!("{name} ({node} {})", before + 1).into(),
    }
}

/// Whether a room may be called and described so.
pub(crate) fn fits(it: &RoomCreated) -> bool {
    let name = (1..=NAME_BYTES_MAX).contains(&it.name.len()) && it.name != "lobby";
    name && is_described(it)
}

/// Whether a room may be described so.
pub(crate) fn is_described(it: &RoomCreated) -> bool {
    it.description.as_ref().map_or(0, String::len) <= DESCRIPTION_BYTES_MAX
}

/// Those of them whose numbers are of the same directory as this room's.
fn alike<'a>(room: &CreatedRoom, rivals: Vec<&'a CreatedRoom>) -> Vec<&'a CreatedRoom> {
    rivals.into_iter().filter(|rival| rival.source.0 == room.source.0).collect()
}

/// Whether two rooms of one name are in each other's way.
fn collide(a: &RoomCreated, b: &RoomCreated) -> bool {
    (a.public && b.public) || a.owner == b.owner
}
