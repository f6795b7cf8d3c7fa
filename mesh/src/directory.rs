//! What the directory says: rooms, lanes, stable agent ids, keys. A fold over entries that does not depend
//! on the order in which they came: ties are decided by number, then by position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    context::Fact,
    entry::{AgentClaimed, Body, NodeAdmitted, RoomCreated},
    id::{AgentId, At, KeyPrint, LogId, MeshId, NodeId, RoomId, sha256},
    import::is_foreign_id,
    keys::Keys,
    limits::{
        AGENT_ID_BYTES_MAX, AGENT_IDS_MAX, DESCRIPTION_BYTES_MAX, LANES_PER_NODE_MAX,
        NAME_BYTES_MAX, NAME_ERAS_MAX,
    },
    number::{Era, Number},
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
    /// The lowest number that it has in each era that numbered it: all of them, or the lowest eras.
    firsts: BTreeMap<Era, Number>,
}

impl CreatedRoom {
    fn number(&mut self, number: Number) {
        self.standing.number = self.standing.number.min(number);
        let first = self.firsts.entry(number.era()).or_insert(number);
        *first = number.min(*first);
        if self.firsts.len() > NAME_ERAS_MAX {
            self.firsts.pop_last();
        }
    }

    /// Whether each era that numbered this room had numbered one of these before. If one had not,
    /// whoever made the room there was told that it is made.
    fn is_later_everywhere(&self, rivals: &[&CreatedRoom]) -> bool {
        self.firsts.iter().all(|(era, number)| {
            rivals.iter().any(|rival| rival.firsts.get(era).is_some_and(|it| it < number))
        })
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

/// What the directories say: the mesh's, and the node's own of private rooms.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Who may bring rooms from elsewhere. `None`: nobody.
    founder: Option<NodeId>,
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
        let ours = [RoomId::lobby(mesh), RoomId::directory(mesh)].contains(&it.room);
        is_foreign_id(it.room) && !ours && self.founder == Some(fact.log.author)
    }

    /// Takes in a fact. `numbers`: all that it has yet.
    pub(crate) fn learn(&mut self, mesh: MeshId, fact: Fact, numbers: &[Number]) -> Learned {
        let source = (fact.room, fact.at);
        let standing = Standing {
            number: numbers.iter().min().copied().unwrap_or(Standing::UNNUMBERED),
            clock: fact.facts.clock,
            log: fact.log,
            seq: fact.at.seq,
        };
        match fact.body {
            Body::RoomCreated(ref created) => {
                let own = room_id(mesh, fact.room, fact.log, fact.at.seq);
                let id = created.room;
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
                let firsts = BTreeMap::new();
                let mut room = CreatedRoom { created, author, wall_ms, source, standing, firsts };
                numbers.iter().for_each(|number| room.number(*number));
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
                room.number(number);
                let name = room.created.name.clone();
                Learned::Rooms(self.of_name(&name))
            }
            Some(Key::Agent(agent)) => {
                let Some(claims) = self.claims.get_mut(&agent) else { return Learned::Nothing };
                for claim in claims.iter_mut().filter(|it| it.source == source) {
                    claim.standing.number = claim.standing.number.min(number);
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
        let rivals = self.by_name.get(name).into_iter().flatten().filter(|it| **it != id);
        let rivals: Vec<&CreatedRoom> = rivals
            .filter_map(|rival| self.rooms.get(rival))
            .filter(|rival| rival.standing.is_numbered() && collide(&rival.created, &room.created))
            .collect();
        // Numbers of the two directories say nothing about each other: of a private and a shared
        // room the private one gives way, since only this node knows of it.
        let shared = |it: &CreatedRoom| it.created.public;
        if !shared(room) && rivals.iter().any(|rival| shared(rival)) {
            return self.told_apart(room, &rivals);
        }
        let alike = |rival: &&CreatedRoom| rival.source.0 == room.source.0;
        let alike: Vec<&CreatedRoom> = rivals.into_iter().filter(alike).collect();
        if room.is_later_everywhere(&alike) {
            Named::Void
        } else if alike.iter().all(|rival| room.standing < rival.standing) {
            Named::Name(name.as_str().into())
        } else {
            self.told_apart(room, &alike)
        }
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

    /// What a forked author claimed from `seq` on does not count. Returns agents that may be another key's now, or
    /// nobody's.
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
    let description = it.description.as_ref().map_or(0, String::len);
    let name = (1..=NAME_BYTES_MAX).contains(&it.name.len()) && it.name != "lobby";
    name && description <= DESCRIPTION_BYTES_MAX
}

/// Whether two rooms of one name are in each other's way.
fn collide(a: &RoomCreated, b: &RoomCreated) -> bool {
    (a.public && b.public) || a.owner == b.owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entry::Facts, number::Era};

    const MESH: MeshId = MeshId([9; 16]);
    const DIRECTORY: RoomId = RoomId([7; 16]);

    fn log(author: u8) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation: 0 }
    }

    fn fact(author: u8, seq: u64, body: Body) -> Fact {
        let facts = Facts { clock: seq, wall_ms: 0, kind: 33, visible: true };
        let at = At { log: u32::from(author), seq };
        Fact { room: DIRECTORY, at, log: log(author), facts, body }
    }

    /// A public room called "plan", by the first entry of this author's log.
    fn plan(author: u8) -> Fact {
        let room = room_id(MESH, DIRECTORY, log(author), 1);
        let created = RoomCreated {
            room,
            name: "plan".to_owned(),
            description: None,
            parent: None,
            public: true,
            encrypted: false,
            owner: KeyPrint([author; 16]),
            created_by: "agent".into(),
            imported: None,
        };
        fact(author, 1, Body::RoomCreated(created))
    }

    fn id(author: u8) -> RoomId {
        room_id(MESH, DIRECTORY, log(author), 1)
    }

    #[test]
    fn of_two_rooms_of_one_name_the_lower_number_keeps_it_in_whatever_order_they_come() {
        let other = Era::new(1, 5).expect("an era");
        let cases = [
            (Number(4), Number(9), Named::Void),
            (Number(4), other.number(1), Named::Name("plan (02020202)".into())),
        ];
        for (first, second, loser) in cases {
            for swap in [false, true] {
                let mut directory = Directory::default();
                let mut facts = vec![(plan(1), first), (plan(2), second)];
                if swap {
                    facts.reverse();
                }
                for (fact, number) in facts {
                    directory.learn(MESH, fact, &[number]);
                }
                assert_eq!(directory.name(id(1)), Named::Name("plan".into()), "{first:?}");
                assert_eq!(directory.name(id(2)), loser, "{second:?}");
            }
        }
    }

    /// Whoever made the second room was told, by the other side of a split, that it is made. Later it gets
    /// a number of the first one's side, too.
    #[test]
    fn a_room_that_one_era_numbered_first_is_never_void() {
        let other = Era::new(1, 5).expect("an era");
        let called = Named::Name("plan (02020202)".into());
        let numbers = [other.number(3), Number(9), other.number(8)];
        for turn in 0..numbers.len() {
            let mut directory = Directory::default();
            let mut numbers = numbers;
            numbers.rotate_left(turn);
            let (known, later) = numbers.split_at(turn);
            directory.learn(MESH, plan(1), &[Number(4), other.number(5)]);
            directory.learn(MESH, plan(2), known);
            let fact = plan(2);
            for number in later {
                directory.renumber((fact.room, fact.at), *number);
            }
            assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
            assert_eq!(directory.name(id(2)), called, "{turn}");
        }
    }

    /// Seed 30296 of the simulation: a room was void when its node made another one of the name, and got a number then
    /// that made it valid.
    #[test]
    fn rooms_that_give_way_have_names_of_their_own_also_if_one_node_made_them() {
        let eras = [1, 2, 3].map(|c| Era::new(c, 5).expect("an era"));
        let again = |author: u8| {
            let mut it = plan(author);
            it.at.seq = 2;
            if let Body::RoomCreated(created) = &mut it.body {
                created.room = room_id(MESH, DIRECTORY, log(author), 2);
            }
            it
        };
        let mut directory = Directory::default();
        let facts = [plan(1), plan(2), again(2), plan(3), again(1)];
        let numbers = [Number(4), eras[0].number(1), eras[1].number(1), eras[2].number(1)];
        for (fact, number) in facts.into_iter().zip(numbers.into_iter().chain([eras[2].number(9)]))
        {
            directory.learn(MESH, fact, &[number]);
        }
        let ids = [(1, 1), (2, 1), (2, 2), (3, 1)];
        let names = ids.map(|(author, seq)| {
            let id = room_id(MESH, DIRECTORY, log(author), seq);
            match directory.name(id) {
                Named::Name(name) => name.to_string(),
                Named::Void | Named::NotYet => panic!("it was the first of its era"),
            }
        });
        assert_eq!(names, ["plan", "plan (02020202)", "plan (02020202 2)", "plan (03030303)"]);
    }

    #[test]
    fn a_room_that_every_era_numbered_later_is_void() {
        let other = Era::new(1, 5).expect("an era");
        let mut directory = Directory::default();
        directory.learn(MESH, plan(1), &[Number(4), other.number(2)]);
        directory.learn(MESH, plan(2), &[Number(5), other.number(3)]);
        assert_eq!(directory.name(id(2)), Named::Void);
    }

    #[test]
    fn a_room_has_no_name_before_it_has_a_number() {
        let mut directory = Directory::default();
        directory.learn(MESH, plan(1), &[]);
        assert_eq!(directory.name(id(1)), Named::NotYet);
        assert!(directory.is_taken("plan", KeyPrint([5; 16])), "nobody else may ask for it");
        let fact = plan(1);
        directory.renumber((fact.room, fact.at), Number(3));
        assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
    }

    #[test]
    fn nobody_can_create_a_room_under_an_id_that_is_not_theirs() {
        let mut directory = Directory::default();
        let mut stolen = plan(2);
        if let Body::RoomCreated(created) = &mut stolen.body {
            created.room = id(1);
        }
        assert_eq!(directory.learn(MESH, stolen, &[Number(1)]), Learned::Nothing);
        assert!(directory.room(id(1)).is_none());
    }

    #[test]
    fn an_agent_id_belongs_to_the_claim_with_the_lowest_number() {
        let claim = |author, key| {
            let body = AgentClaimed { agent: "me".into(), key: KeyPrint([key; 16]) };
            fact(author, 1, Body::AgentClaimed(body))
        };
        let mut directory = Directory::default();
        directory.learn(MESH, claim(1, 1), &[]);
        assert_eq!(directory.owner("me"), Some((KeyPrint([1; 16]), false)));
        directory.learn(MESH, claim(2, 2), &[Number(7)]);
        assert_eq!(directory.owner("me"), Some((KeyPrint([2; 16]), true)));
        directory.renumber((DIRECTORY, At { log: 1, seq: 1 }), Number(6));
        assert_eq!(directory.owner("me"), Some((KeyPrint([1; 16]), true)));
        assert_eq!(directory.claimed_by(NodeId([1; 32]), KeyPrint([1; 16])), 1);
        directory.forget(MESH, DIRECTORY, (log(1), 1));
        assert_eq!(directory.claimed_by(NodeId([1; 32]), KeyPrint([1; 16])), 0);
        assert_eq!(directory.owner("me"), Some((KeyPrint([2; 16]), true)));
    }

    #[test]
    fn of_two_equal_lanes_the_later_one_has_to_be_drawn_again() {
        let admitted = |author, seq| {
            let body = NodeAdmitted { lane: 5, name: String::new() };
            fact(author, seq, Body::NodeAdmitted(body))
        };
        let mut directory = Directory::default();
        directory.learn(MESH, admitted(1, 1), &[]);
        directory.learn(MESH, admitted(2, 2), &[]);
        assert!(!directory.lane_clashes(NodeId([1; 32])));
        assert!(directory.lane_clashes(NodeId([2; 32])));
    }

    /// A room of this author, as it is made in the directory that all have.
    fn made(author: u8, change: impl FnOnce(&mut RoomCreated)) -> Fact {
        let mut fact = plan(author);
        let Body::RoomCreated(created) = &mut fact.body else { panic!("it is") };
        change(created);
        fact
    }

    #[test]
    fn ids_of_rooms_are_uuids_of_a_form_that_no_server_gave() {
        let ids: Vec<RoomId> = (0..64).map(|seq| room_id(MESH, DIRECTORY, log(1), seq)).collect();
        assert!(ids.iter().all(|id| id.0[6] >> 4 == 8 && id.0[8] >> 6 == 2));
        assert!(ids.iter().all(|id| !is_foreign_id(*id)));
        for (byte, varies) in [(6, 12), (8, 32)] {
            let all: BTreeSet<u8> = ids.iter().map(|id| id.0[byte]).collect();
            assert!(all.len() > varies, "byte {byte} is of the hash: {all:?}");
        }
    }

    #[test]
    fn rooms_that_cannot_see_each_other_have_one_name_and_others_do_not() {
        let cases = [
            // Public, of one key, and what the later one is called.
            ([true, true], false, Named::Void),
            ([false, false], true, Named::Void),
            ([false, false], false, Named::Name("plan".into())),
            ([false, true], false, Named::Name("plan".into())),
        ];
        for (public, alike, second) in cases {
            let mut directory = Directory::default();
            for (author, number) in [(1, Number(4)), (2, Number(9))] {
                let fact = made(author, |it| {
                    it.public = public[usize::from(author - 1)];
                    it.owner = KeyPrint([if alike { 7 } else { author }; 16]);
                });
                directory.learn(MESH, fact, &[number]);
            }
            assert_eq!(directory.name(id(1)), Named::Name("plan".into()), "{public:?} {alike}");
            assert_eq!(directory.name(id(2)), second, "{public:?} {alike}");
        }
    }

    #[test]
    fn a_name_is_its_first_ones_before_the_second_has_a_number() {
        let mut directory = Directory::default();
        directory.learn(MESH, plan(1), &[Number(4)]);
        directory.learn(MESH, plan(2), &[]);
        assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
        assert_eq!(directory.name(id(2)), Named::NotYet);
        assert_eq!(directory.room_count(), 2);
    }

    #[test]
    fn a_room_is_called_and_described_as_it_may_be_or_is_none() {
        let taken = |change: &dyn Fn(&mut RoomCreated)| {
            let mut directory = Directory::default();
            directory.learn(MESH, made(1, change), &[Number(1)]) != Learned::Nothing
        };
        assert!(taken(&|it| it.name = "x".repeat(NAME_BYTES_MAX)));
        assert!(!taken(&|it| it.name = "x".repeat(NAME_BYTES_MAX + 1)));
        assert!(!taken(&|it| it.name = String::new()) && !taken(&|it| it.name = "lobby".into()));
        assert!(taken(&|it| it.description = Some("x".repeat(DESCRIPTION_BYTES_MAX))));
        assert!(!taken(&|it| it.description = Some("x".repeat(DESCRIPTION_BYTES_MAX + 1))));
    }

    #[test]
    fn of_many_eras_that_numbered_a_room_the_lowest_are_known() {
        let mut directory = Directory::default();
        let max = u32::try_from(NAME_ERAS_MAX).expect("few");
        let eras = |n: u32| Era::new(1 + n, 5).expect("an era");
        directory.learn(MESH, plan(1), &[]);
        let source = (DIRECTORY, At { log: 1, seq: 1 });
        for n in (0..max + 9).rev() {
            directory.renumber(source, eras(n).number(3));
        }
        let firsts = &directory.room(id(1)).expect("it is there").firsts;
        assert_eq!(firsts.len(), NAME_ERAS_MAX);
        assert!(firsts.keys().copied().eq((0..max).map(eras)));
    }

    #[test]
    fn agent_ids_are_as_long_and_as_many_as_they_may_be() {
        let mut directory = Directory::default();
        let claim = |agent: &str| AgentClaimed { agent: agent.into(), key: KeyPrint([1; 16]) };
        for (seq, len) in [(1, AGENT_ID_BYTES_MAX), (2, AGENT_ID_BYTES_MAX + 1)] {
            let body = Body::AgentClaimed(claim(&"x".repeat(len)));
            let learned = directory.learn(MESH, fact(1, seq, body), &[Number(seq)]);
            assert_eq!(learned == Learned::Nothing, len > AGENT_ID_BYTES_MAX);
        }
        let more = (1..AGENT_IDS_MAX).map(|n| (format!("agent {n}").as_str().into(), Vec::new()));
        assert!(directory.has_room_for(&claim("new")));
        directory.claims.extend(more);
        assert_eq!(directory.claims.len(), AGENT_IDS_MAX);
        assert!(
            !directory.has_room_for(&claim("new")) && directory.has_room_for(&claim("agent 7"))
        );
    }

    #[test]
    fn nodes_are_called_by_their_names_or_ids_and_have_their_newest_lanes() {
        let mut directory = Directory::default();
        let node = |author: u8| log(author).author;
        let long = "é".repeat(NAME_BYTES_MAX);
        for (author, seq, lane, name) in
            [(1, 1, 5, "one"), (1, 2, 6, "one"), (2, 1, 7, ""), (3, 1, 8, &*long)]
        {
            let it = NodeAdmitted { lane, name: name.to_owned() };
            let learned = directory.learn(MESH, fact(author, seq, Body::NodeAdmitted(it)), &[]);
            assert_eq!(learned, Learned::Lane(node(author)));
        }
        assert_eq!(directory.node_name(node(1)), "one");
        assert_eq!(directory.node_name(node(2)), node(2).short());
        assert_eq!(directory.node_name(node(4)), node(4).short());
        assert_eq!(directory.node_name(node(3)).chars().count(), NAME_BYTES_MAX / 4);
        let lanes = [1, 2, 3, 4].map(|author| directory.lane_of(node(author)));
        assert_eq!(lanes, [Some(6), Some(7), Some(8), None]);
        let all = [(5, node(1)), (6, node(1)), (7, node(2)), (8, node(3))];
        assert!(directory.lanes().eq(all));
    }

    #[test]
    fn keys_of_the_part_of_a_log_that_does_not_count_are_none_in_its_directory_alone() {
        let print = KeyPrint([8; 16]);
        let minted =
            crate::acts::KeyMinted { key: print, tier: crate::acts::Tier::Free, label: None };
        let mesh = RoomId::directory(MESH);
        for (room, other) in [(mesh, DIRECTORY), (DIRECTORY, mesh)] {
            let mut directory = Directory::default();
            let body = Body::Key(crate::acts::KeyAct::Minted(minted.clone()));
            directory.learn(MESH, Fact { room, ..fact(1, 3, body) }, &[]);
            directory.forget(MESH, other, (log(1), 1));
            assert!(directory.keys.knows(print));
            directory.forget(MESH, room, (log(1), 3));
            assert!(!directory.keys.knows(print));
        }
    }
}
