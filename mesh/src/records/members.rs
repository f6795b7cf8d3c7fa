//! Members of rooms on record: agents that the key of a room wants there, each with a role. Their nodes give them a seat when they
//! attach. The word of the key that made the room counts, and that of an agent's own key, which can say one thing alone: that
//! the agent has left. What others say of a room counts nowhere.
//!
//! Which members show is a function of the records that are kept: of each agent the room's own word; the agent has left if its own
//! word is later. Of several leads the latest one leads.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{
        AGENT_ID_BYTES_MAX, MEMBER_RECORDS_PER_KEY_MAX, MEMBER_RECORDS_PER_NODE_MAX,
        MEMBERS_ON_RECORD_MAX,
    },
    name::id::{AgentId, Hash, KeyPrint, RoomId},
    wire::{
        cbor::{encode, text},
        cover::Cover,
        record::{CollectionNumber, Draft, Record, RecordId, Space, Stamp},
    },
};

/// Room id, print, role and lengths, beside the agent's id.
const OVERHEAD_BYTES: usize = 64;

/// One record for each agent of a room, by each key that says something of it.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(51),
    name: "room.member",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: AGENT_ID_BYTES_MAX + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: true,
    owner_max: MEMBER_RECORDS_PER_KEY_MAX,
    node_max: MEMBER_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<Said>(body).ok()?.id(&Cover::Open)),
};

/// The part of a member in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It leads: at most one does.
    Lead,
    /// One of the others.
    Member,
    /// It looks at the work of others.
    Reviewer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Lead, Role::Member, Role::Reviewer];

    /// As it is written, and shown by dialects that have no word of their own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Lead => "lead",
            Role::Member => "member",
            Role::Reviewer => "reviewer",
        }
    }

    /// And back.
    #[must_use]
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    const fn number(self) -> u16 {
        match self {
            Role::Lead => 1,
            Role::Member => 2,
            Role::Reviewer => 3,
        }
    }

    /// One of a later version is a member.
    fn of(number: u16) -> Role {
        Role::ALL.into_iter().find(|role| role.number() == number).unwrap_or(Role::Member)
    }
}

/// An agent that the key of a room wants there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub agent: AgentId,
    /// The key that it is of: a later owner of the id is another agent.
    pub key: KeyPrint,
    /// Its part.
    pub role: Role,
    /// When the room's key said so last. Unix milliseconds, by the clock of the node that wrote it.
    pub since_ms: u64,
    /// It has left by itself since then.
    pub left: bool,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct Said {
    #[n(0)]
    room: RoomId,
    #[cbor(n(1), with = "text")]
    agent: AgentId,
    #[n(2)]
    key: KeyPrint,
    #[n(3)]
    role: u16,
    #[n(4)]
    left: bool,
}

impl Said {
    fn id(&self, cover: &Cover) -> RecordId {
        member_id(cover, self.room, &self.agent)
    }
}

fn member_id(cover: &Cover, room: RoomId, agent: &str) -> RecordId {
    cover.id(COLLECTION.number, &room.0, agent.as_bytes())
}

/// The name of the records about an agent in a room.
#[must_use]
pub fn id(at: &RoomPlace, agent: &str) -> RecordId {
    member_id(&at.cover, at.room, agent)
}

/// A word about a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The agent.
    pub agent: AgentId,
    /// Its key.
    pub key: KeyPrint,
    /// Its part.
    pub role: Role,
    /// It has left by itself.
    pub left: bool,
}

/// The record that says it.
#[must_use]
pub fn draft(at: &RoomPlace, word: &Word) -> Draft {
    let Word { agent, key, role, left } = word.clone();
    let said = Said { room: at.room, agent, key, role: role.number(), left };
    let id = said.id(&at.cover);
    Draft { space: at.space, collection: COLLECTION.number, id, body: Some(encode(&said)) }
}

/// The record that takes an agent off the room's list.
#[must_use]
pub fn removal(at: &RoomPlace, agent: &str) -> Draft {
    Draft { space: at.space, collection: COLLECTION.number, id: id(at, agent), body: None }
}

/// The place of a record among those about members: those of one room stand together.
type At = (Space, RecordId, KeyPrint);

/// All that keys say of members of rooms: which of it means something says the reader, who knows whose a room is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    all: BTreeMap<At, Kept>,
}

/// A record that is kept.
#[derive(Clone, Debug)]
struct Kept {
    stamp: Stamp,
    hash: Hash,
    /// As it is written: a sealed one is opened when its room is looked at. A deletion has none.
    record: Option<Record>,
}

impl Words {
    /// A record is kept, in this state.
    pub(crate) fn learn(&mut self, record: &Record, hash: Hash) {
        let at = (record.space, record.id, record.owner());
        let kept = record.content().is_some().then(|| record.clone());
        self.all.insert(at, Kept { stamp: record.stamp, hash, record: kept });
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, space: Space, id: RecordId, owner: KeyPrint) {
        self.all.remove(&(space, id, owner));
    }

    /// Whether nothing is said of any room.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The members of a room that this key has made, by agent: the newest [`MEMBERS_ON_RECORD_MAX`] and a ninth, where more were
    /// written on two sides of a split.
    pub(crate) fn of(&self, at: &RoomPlace, maker: KeyPrint) -> Vec<Member> {
        let mut shown: Vec<(Stamp, Hash, Member)> = self
            .about(at)
            .filter(|((_, _, owner), _)| *owner == maker)
            .filter_map(|((_, id, _), kept)| {
                let said = read(at, kept.record.as_ref()?)?;
                let own = self.all.get(&(at.space, *id, said.key)).filter(|_| said.key != maker);
                let has_left = own.and_then(|own| {
                    let later = (own.stamp, own.hash) > (kept.stamp, kept.hash);
                    Some(later && read(at, own.record.as_ref()?)?.left)
                });
                let member = Member {
                    agent: said.agent,
                    key: said.key,
                    role: Role::of(said.role),
                    since_ms: kept.stamp.wall_ms(),
                    left: said.left || has_left.unwrap_or(false),
                };
                Some((kept.stamp, kept.hash, member))
            })
            .collect();
        shown.sort_unstable_by_key(|(stamp, hash, _)| std::cmp::Reverse((*stamp, *hash)));
        shown.truncate(MEMBERS_ON_RECORD_MAX.saturating_mul(10).div_ceil(9));
        let mut leads = shown.iter_mut().filter(|(_, _, member)| member.role == Role::Lead);
        leads.next();
        leads.for_each(|(_, _, member)| member.role = Role::Member);
        let mut members: Vec<Member> = shown.into_iter().map(|(_, _, member)| member).collect();
        members.sort_unstable_by(|one, other| one.agent.cmp(&other.agent));
        members
    }

    /// When the room's key took an agent off the list, if that is its last word.
    pub(crate) fn removed(&self, at: &RoomPlace, maker: KeyPrint, agent: &str) -> Option<Stamp> {
        let kept = self.all.get(&(at.space, id(at, agent), maker))?;
        kept.record.is_none().then_some(kept.stamp)
    }

    fn about(&self, at: &RoomPlace) -> impl Iterator<Item = (&At, &Kept)> {
        let (mut first, mut last) = ([0; 16], [0xff; 16]);
        let subject = at.subject(COLLECTION.number);
        first[..RecordId::SUBJECT_BYTES].copy_from_slice(&subject);
        last[..RecordId::SUBJECT_BYTES].copy_from_slice(&subject);
        let first = (at.space, RecordId(first), KeyPrint([0; 16]));
        let last = (at.space, RecordId(last), KeyPrint([0xff; 16]));
        self.all.range(first..=last)
    }
}

/// The word that a record has, if it is of this room.
fn read(at: &RoomPlace, record: &Record) -> Option<Said> {
    let content = at.cover.read(&record.spot(), record.content()?)?;
    let said: Said = minicbor::decode(&content).ok()?;
    // Of a sealed one nobody has looked whether its name is that of its content.
    let is_named = said.room == at.room && said.id(&at.cover) == record.id;
    let has_id = (1..=AGENT_ID_BYTES_MAX).contains(&said.agent.len());
    (is_named && has_id).then_some(said)
}

/// The members of rooms as they show, where some do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    rooms: BTreeMap<RoomId, std::sync::Arc<[Member]>>,
    of_agent: BTreeMap<AgentId, BTreeSet<RoomId>>,
}

/// Members that are others than before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Those who are on the list now, and were not, or have not left any more.
    pub(crate) came: Vec<(AgentId, KeyPrint)>,
    /// Those who are not any more.
    pub(crate) gone: Vec<AgentId>,
}

impl Shown {
    /// These show from now on. `None`: nothing is otherwise than before.
    pub(crate) fn set(&mut self, room: RoomId, members: Vec<Member>) -> Option<Changed> {
        let before = self.rooms.get(&room).map_or(&[][..], |before| before);
        if *before == members[..] {
            return None;
        }
        let was = |list: &[Member], member: &Member| {
            list.iter().any(|other| {
                (&other.agent, other.key, other.left) == (&member.agent, member.key, false)
            })
        };
        let came = members.iter().filter(|member| !member.left && !was(before, member));
        let came = came.map(|member| (member.agent.clone(), member.key)).collect();
        let names = |list: &[Member]| -> BTreeSet<AgentId> {
            list.iter().map(|member| member.agent.clone()).collect()
        };
        let (old, new) = (names(before), names(&members));
        let gone: Vec<AgentId> = old.difference(&new).cloned().collect();
        for agent in &gone {
            if let Some(rooms) = self.of_agent.get_mut(agent) {
                rooms.remove(&room);
                if rooms.is_empty() {
                    self.of_agent.remove(agent);
                }
            }
        }
        for agent in new {
            self.of_agent.entry(agent).or_default().insert(room);
        }
        if members.is_empty() {
            self.rooms.remove(&room);
        } else {
            self.rooms.insert(room, members.into());
        }
        Some(Changed { came, gone })
    }

    /// Of a room.
    pub(crate) fn of(&self, room: RoomId) -> std::sync::Arc<[Member]> {
        self.rooms.get(&room).cloned().unwrap_or_default()
    }

    /// The rooms that have an agent on their lists.
    pub(crate) fn rooms_of(&self, agent: &str) -> impl Iterator<Item = RoomId> {
        self.of_agent.get(agent).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{
            group::Group,
            id::{MeshId, RoomKey},
            key::KeySecret,
        },
        wire::seal::Seal,
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn places(by: &KeySecret) -> [RoomPlace; 2] {
        let group = Group::Key(by.print());
        let seal = Seal::of_room(group, &RoomKey::of("a key of some length"), ROOM);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        let sealed = RoomPlace { room: ROOM, space: Space::Followers(group), cover };
        [RoomPlace { room: ROOM, space: Space::Mesh, cover: Cover::Open }, sealed]
    }

    fn word(agent: &str, of: &KeySecret, role: Role) -> Word {
        Word { agent: agent.into(), key: of.print(), role, left: false }
    }

    fn signed(at: &RoomPlace, draft: Draft, by: &KeySecret, stamp: u64) -> Record {
        let draft = at.cover.write(draft, by.print(), Stamp::at(stamp));
        draft.sign(by, MESH, Stamp::at(stamp)).expect("it is long enough")
    }

    fn words(records: &[&Record]) -> Words {
        let mut words = Words::default();
        records.iter().for_each(|record| words.learn(record, record.head(MESH).hash));
        words
    }

    fn names(words: &Words, at: &RoomPlace, maker: &KeySecret) -> Vec<(String, Role, bool)> {
        let members = words.of(at, maker.print()).into_iter();
        members.map(|member| (member.agent.to_string(), member.role, member.left)).collect()
    }

    #[test]
    fn members_are_those_that_the_rooms_key_names_sealed_or_not() {
        let (maker, other, liar) = (key(1), key(2), key(3));
        for at in places(&maker) {
            let ann = signed(&at, draft(&at, &word("ann", &maker, Role::Lead)), &maker, 5);
            let bob = signed(&at, draft(&at, &word("bob", &other, Role::Reviewer)), &maker, 6);
            let eve = signed(&at, draft(&at, &word("eve", &liar, Role::Lead)), &liar, 9);
            let all = words(&[&eve, &bob, &ann]);
            let expect = [("ann", Role::Lead), ("bob", Role::Reviewer)];
            let expect = expect.map(|(agent, role)| (agent.to_owned(), role, false));
            assert_eq!(names(&all, &at, &maker), expect);
            // A stranger takes nobody off, and nobody out.
            let gone = signed(&at, removal(&at, "ann"), &liar, 10);
            let out = Word { left: true, ..word("bob", &other, Role::Member) };
            let out = signed(&at, draft(&at, &out), &liar, 10);
            let all = words(&[&eve, &bob, &ann, &gone, &out]);
            assert_eq!(names(&all, &at, &maker), expect);
            assert_eq!(all.removed(&at, maker.print(), "ann"), None);
            let elsewhere = RoomPlace { room: RoomId([3; 16]), ..at.clone() };
            assert_eq!(names(&all, &elsewhere, &maker), []);
        }
    }

    #[test]
    fn an_agent_leaves_by_its_own_word_until_the_rooms_key_names_it_again() {
        let (maker, other) = (key(1), key(2));
        let [at, _] = places(&maker);
        let bob = signed(&at, draft(&at, &word("bob", &other, Role::Member)), &maker, 5);
        let out = Word { left: true, ..word("bob", &other, Role::Lead) };
        let out = signed(&at, draft(&at, &out), &other, 6);
        let has_left = vec![("bob".to_owned(), Role::Member, true)];
        assert_eq!(names(&words(&[&bob, &out]), &at, &maker), has_left);
        assert_eq!(names(&words(&[&out]), &at, &maker), [], "it was never named");
        let again = signed(&at, draft(&at, &word("bob", &other, Role::Member)), &maker, 7);
        let is_back = vec![("bob".to_owned(), Role::Member, false)];
        assert_eq!(names(&words(&[&again, &out]), &at, &maker), is_back);
        let gone = signed(&at, removal(&at, "bob"), &maker, 8);
        let all = words(&[&out, &gone]);
        assert_eq!(names(&all, &at, &maker), []);
        assert_eq!(all.removed(&at, maker.print(), "bob"), Some(Stamp::at(8)));
    }

    #[test]
    fn of_several_leads_the_latest_leads_in_whichever_order_they_come() {
        let maker = key(1);
        let [at, _] = places(&maker);
        let lead =
            |agent, stamp| signed(&at, draft(&at, &word(agent, &maker, Role::Lead)), &maker, stamp);
        let (ann, bob, cid) = (lead("ann", 5), lead("bob", 7), lead("cid", 6));
        for order in [[&ann, &bob, &cid], [&bob, &cid, &ann], [&cid, &ann, &bob]] {
            let shown = names(&words(&order), &at, &maker);
            let roles: Vec<Role> = shown.iter().map(|(_, role, _)| *role).collect();
            assert_eq!(roles, [Role::Member, Role::Lead, Role::Member]);
        }
    }

    #[test]
    fn those_who_came_and_went_are_told_once() {
        let member = |agent: &str, left| Member {
            agent: agent.into(),
            key: KeyPrint([1; 16]),
            role: Role::Member,
            since_ms: 0,
            left,
        };
        let mut shown = Shown::default();
        let first = shown.set(ROOM, vec![member("ann", false), member("bob", true)]);
        let came = vec![("ann".into(), KeyPrint([1; 16]))];
        assert_eq!(first, Some(Changed { came, gone: Vec::new() }));
        assert_eq!(shown.set(ROOM, vec![member("ann", false), member("bob", true)]), None);
        let back = shown.set(ROOM, vec![member("bob", false)]);
        let came = vec![("bob".into(), KeyPrint([1; 16]))];
        assert_eq!(back, Some(Changed { came, gone: vec!["ann".into()] }));
        assert_eq!(shown.rooms_of("bob").collect::<Vec<_>>(), [ROOM]);
        assert_eq!(shown.rooms_of("ann").count(), 0);
        shown.set(ROOM, Vec::new());
        assert!(shown.rooms.is_empty() && shown.of_agent.is_empty());
    }

    #[test]
    fn the_longest_id_makes_a_record_sealed_or_not() {
        let maker = key(1);
        for at in places(&maker) {
            let longest = word(&"x".repeat(AGENT_ID_BYTES_MAX), &maker, Role::Reviewer);
            let record = signed(&at, draft(&at, &longest), &maker, 5);
            let fits = |record: &Record| {
                COLLECTION.fits(at.space, (record.id, record.owner()), record.content())
            };
            assert!(fits(&record));
            assert!(fits(&signed(&at, removal(&at, &longest.agent), &maker, 6)));
        }
        assert!(Role::ALL.iter().all(|role| Role::named(role.name()) == Some(*role)));
        assert!(Role::ALL.iter().all(|role| Role::of(role.number()) == *role));
        assert_eq!(Role::named("boss"), None);
    }
}
