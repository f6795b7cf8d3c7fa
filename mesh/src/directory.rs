//! What the directory says: rooms, lanes, stable agent ids. A fold over entries that does not depend
//! on the order in which they came: ties are decided by number, then by position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    context::Fact,
    entry::{Body, RoomCreated},
    id::{AgentId, At, KeyPrint, LogId, MeshId, NodeId, RoomId, sha256},
    number::Number,
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

/// Where a fact stands among others of its kind: the lowest number, then the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    number: Number,
    clock: u64,
    log: LogId,
    seq: u64,
}

impl Standing {
    const UNNUMBERED: Number = Number(u64::MAX);

    fn is_numbered(self) -> bool {
        self.number != Self::UNNUMBERED
    }
}

/// Where a directory entry is: which directory, and where in it.
pub(crate) type Source = (RoomId, At);

/// A room that somebody created.
#[derive(Debug)]
pub(crate) struct CreatedRoom {
    pub(crate) created: RoomCreated,
    pub(crate) author: NodeId,
    pub(crate) wall_ms: u64,
    pub(crate) source: Source,
    standing: Standing,
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

/// What the directories say: the mesh's, and the node's own of private rooms.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    rooms: BTreeMap<RoomId, CreatedRoom>,
    by_source: BTreeMap<Source, Key>,
    by_name: BTreeMap<String, BTreeSet<RoomId>>,
    claims: BTreeMap<AgentId, Vec<Claim>>,
    pub(crate) lanes: BTreeMap<NodeId, Vec<(Standing, u32)>>,
    pub(crate) node_names: BTreeMap<NodeId, String>,
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
    /// Who owns an agent id may have changed.
    Agent,
}

impl Directory {
    /// Takes in a fact. `number`: the lowest it has, if it has one yet.
    pub(crate) fn learn(&mut self, mesh: MeshId, fact: Fact, number: Option<Number>) -> Learned {
        let source = (fact.room, fact.at);
        let standing = Standing {
            number: number.unwrap_or(Standing::UNNUMBERED),
            clock: fact.facts.clock,
            log: fact.log,
            seq: fact.at.seq,
        };
        match fact.body {
            Body::RoomCreated(created) => {
                let id = room_id(mesh, fact.room, fact.log, fact.at.seq);
                if created.room != id || self.rooms.contains_key(&id) {
                    return Learned::Nothing;
                }
                self.by_source.insert(source, Key::Room(id));
                self.by_name.entry(created.name.clone()).or_default().insert(id);
                let (author, wall_ms) = (fact.log.author, fact.facts.wall_ms);
                let room = CreatedRoom { created, author, wall_ms, source, standing };
                let name = room.created.name.clone();
                self.rooms.insert(id, room);
                Learned::Rooms(self.of_name(&name))
            }
            Body::AgentClaimed(claim) => {
                self.by_source.insert(source, Key::Agent(claim.agent.clone()));
                let known = self.claims.entry(claim.agent).or_default();
                if known.iter().all(|it| it.source != source) {
                    known.push(Claim { key: claim.key, standing, source });
                    known.sort_by_key(|it| it.standing);
                }
                Learned::Agent
            }
            Body::NodeAdmitted(it) => {
                let node = fact.log.author;
                self.node_names.insert(node, it.name);
                let lanes = self.lanes.entry(node).or_default();
                lanes.push((standing, it.lane));
                lanes.sort();
                lanes.dedup();
                Learned::Lane(node)
            }
            Body::Chat(_)
            | Body::Thinking(_)
            | Body::Ordered(_)
            | Body::EraClaimed(_)
            | Body::HandedOver(_)
            | Body::Unknown => Learned::Nothing,
        }
    }

    /// A directory entry got a number.
    pub(crate) fn renumber(&mut self, source: Source, number: Number) -> Learned {
        match self.by_source.get(&source).cloned() {
            Some(Key::Room(id)) => {
                let Some(room) = self.rooms.get_mut(&id) else { return Learned::Nothing };
                if number >= room.standing.number {
                    return Learned::Nothing;
                }
                room.standing.number = number;
                let name = room.created.name.clone();
                Learned::Rooms(self.of_name(&name))
            }
            Some(Key::Agent(agent)) => {
                let Some(claims) = self.claims.get_mut(&agent) else { return Learned::Nothing };
                for claim in claims.iter_mut().filter(|it| it.source == source) {
                    claim.standing.number = claim.standing.number.min(number);
                }
                claims.sort_by_key(|it| it.standing);
                Learned::Agent
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

    /// The room that the entry at `source` creates.
    pub(crate) fn created_at(&self, source: Source) -> Option<RoomId> {
        match self.by_source.get(&source)? {
            Key::Room(id) => Some(*id),
            Key::Agent(_) => None,
        }
    }

    /// What a room is called. Of several that asked for one name the lowest number has it; one
    /// that was numbered later in the same era is void (its creator was told so), one of another
    /// era was created across a split and is called `name (node)`. Rooms of different keys that
    /// cannot see each other do not collide.
    pub(crate) fn name(&self, id: RoomId) -> Named {
        let Some(room) = self.rooms.get(&id) else { return Named::NotYet };
        if !room.standing.is_numbered() {
            return Named::NotYet;
        }
        let name = &room.created.name;
        let rivals = self.by_name.get(name).into_iter().flatten().filter(|it| **it != id);
        let first = rivals
            .filter_map(|rival| self.rooms.get(rival))
            .filter(|rival| collide(&rival.created, &room.created))
            .map(|rival| rival.standing)
            .filter(|standing| standing.is_numbered() && *standing < room.standing)
            .min();
        match first {
            None => Named::Name(name.as_str().into()),
            Some(first) if first.number.era() == room.standing.number.era() => Named::Void,
            Some(_) => Named::Name(format!("{name} ({})", self.node_name(room.author)).into()),
        }
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

    pub(crate) fn agent_ids(&self) -> usize {
        self.claims.len()
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

    /// What a forked author claimed from `seq` on does not count.
    pub(crate) fn forget(&mut self, directory: RoomId, log: LogId, seq: u64) {
        let void = |source: &Source, standing: &Standing| {
            source.0 == directory && standing.log == log && standing.seq >= seq
        };
        self.rooms.retain(|_, room| !void(&room.source, &room.standing));
        for claims in self.claims.values_mut() {
            claims.retain(|claim| !void(&claim.source, &claim.standing));
        }
        let rooms = &self.rooms;
        for ids in self.by_name.values_mut() {
            ids.retain(|id| rooms.contains_key(id));
        }
    }
}

/// Whether two rooms of one name are in each other's way.
fn collide(a: &RoomCreated, b: &RoomCreated) -> bool {
    (a.public && b.public) || a.owner == b.owner
}
