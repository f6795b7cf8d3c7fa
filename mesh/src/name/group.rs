//! Groups: API keys that share one secret, from which the seals of their private rooms are derived. A key alone is a
//! group; so are two keys, each of which derives the secret by itself (`docs/decisions/pairs.md`); and so are the keys
//! of a shared room, to which its maker has given the secret (`docs/decisions/shared-rooms.md`).

use std::{fmt, sync::Arc};

use minicbor::{Decode, Encode};

use crate::{
    name::{
        id::{AgentId, KeyPrint, MeshId, RoomId, sha256},
        key::KeyHalves,
    },
    wire::cbor::text,
};

/// The keys that share one secret: nodes to which one of them was presented follow the rooms of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Group {
    /// One key: its private rooms.
    #[n(0)]
    Key(#[n(0)] KeyPrint),
    /// Two keys, or one twice: the direct rooms of their agents.
    #[n(1)]
    Pair(#[n(0)] Pair),
    /// The keys of one shared room. They come and go, as records say ([`crate::records::shared`]).
    #[n(2)]
    Shared(#[n(0)] Shared),
}

impl Group {
    /// Whether a key is one of those that are in it for good.
    #[must_use]
    pub fn has(self, key: KeyPrint) -> bool {
        self.keys().any(|own| own == key)
    }

    /// It as bytes, none of which are the beginning of another one's.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Group::Key(key) => [&[0], key.0.as_slice()].concat(),
            Group::Pair(pair) => [&[1], pair.low.0.as_slice(), &pair.high.0].concat(),
            Group::Shared(shared) => [&[2], shared.maker.0.as_slice(), &shared.id.0].concat(),
        }
    }

    /// The keys that are in it for good, each once: of a shared room the one that made it.
    pub fn keys(self) -> impl Iterator<Item = KeyPrint> {
        let (one, other) = match self {
            Group::Key(own) => (own, None),
            Group::Pair(pair) => (pair.low, Some(pair.high).filter(|high| *high != pair.low)),
            Group::Shared(shared) => (shared.maker, None),
        };
        [one].into_iter().chain(other)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Key(key) => write!(f, "{key}"),
            Group::Pair(pair) => write!(f, "{} and {}", pair.low, pair.high),
            Group::Shared(shared) => write!(f, "the room {} of {}", shared.id, shared.maker),
        }
    }
}

/// Two keys, or one with itself. Which is named first does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Pair {
    #[n(0)]
    low: KeyPrint,
    #[n(1)]
    high: KeyPrint,
}

impl Pair {
    /// Of these two.
    #[must_use]
    pub fn of(one: KeyPrint, other: KeyPrint) -> Pair {
        Pair { low: one.min(other), high: one.max(other) }
    }

    /// Whether a key is one of the two.
    #[must_use]
    pub fn has(self, key: KeyPrint) -> bool {
        self.low == key || self.high == key
    }
}

/// The keys that one has shared a room with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Shared {
    /// The key that made the room: it alone gives the secret to others. The secret is bound to it.
    #[n(0)]
    pub maker: KeyPrint,
    /// The name by which everybody knows the group: the id of its sealed directory, which tells nothing else.
    #[n(1)]
    pub id: RoomId,
}

/// One of the two agents of a direct room, and the key that the agent belonged to when the room was made.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Side {
    /// The agent.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// The public halves of its key.
    #[n(1)]
    pub halves: KeyHalves,
}

impl Side {
    fn name(&self) -> Vec<u8> {
        let length = (self.agent.len() as u64).to_be_bytes();
        [&length, self.agent.as_bytes(), &self.halves.signer].concat()
    }
}

/// The two agents of a direct room, each with the print of its key, in the order of their ids. Both are the same in the
/// room that an agent has with itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides(Arc<[(AgentId, KeyPrint); 2]>);

impl Sides {
    /// Of these two.
    #[must_use]
    pub fn of(one: &Side, other: &Side) -> Sides {
        let mut sides = [one, other].map(|side| (side.agent.clone(), side.halves.print()));
        sides.sort_unstable();
        Sides(Arc::new(sides))
    }

    /// Whether an agent with this key is one of them.
    #[must_use]
    pub fn has(&self, key: KeyPrint, agent: &str) -> bool {
        self.0.iter().any(|(side, of)| **side == *agent && *of == key)
    }

    /// The place of an agent among the two, if its key there is one that `may` says yes to.
    #[must_use]
    pub fn place_of(&self, agent: &str, may: impl Fn(KeyPrint) -> bool) -> Option<usize> {
        self.0.iter().position(|(side, of)| **side == *agent && may(*of))
    }

    /// The other one.
    #[must_use]
    pub fn peer_of(&self, agent: &str) -> &AgentId {
        let [(one, _), (other, _)] = &*self.0;
        if **one == *agent { other } else { one }
    }

    /// Both agents, each with its key; one that is both, twice.
    pub fn iter(&self) -> impl Iterator<Item = (&AgentId, KeyPrint)> {
        self.0.iter().map(|(agent, key)| (agent, *key))
    }

    /// Both agents, each with its key, in their order.
    #[must_use]
    pub fn each(&self) -> [(&AgentId, KeyPrint); 2] {
        let [(one, one_key), (other, other_key)] = &*self.0;
        [(one, *one_key), (other, *other_key)]
    }

    /// The same agents, with the keys to which these have come.
    #[must_use]
    pub fn with_keys(&self, current: impl Fn(KeyPrint) -> KeyPrint) -> Sides {
        let [(one, one_key), (other, other_key)] = &*self.0;
        let mut sides = [(one.clone(), current(*one_key)), (other.clone(), current(*other_key))];
        sides.sort_unstable();
        Sides(Arc::new(sides))
    }

    /// The name of their direct room.
    #[must_use]
    pub fn name(&self) -> String {
        direct_name(&self.0[0].0, &self.0[1].0)
    }
}

/// Tells the rooms of several tasks of two agents apart. Drawn by the one that makes the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct TaskSeed(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// The direct room of two agents, or of one with itself; with a seed, the room of one task. With other keys it is another
/// room: so nobody inherits the words of an id that changes hands.
#[must_use]
pub fn direct_room(mesh: MeshId, one: &Side, other: &Side, task: Option<TaskSeed>) -> RoomId {
    let mut sides = [one.name(), other.name()];
    sides.sort_unstable();
    let seed = task.as_ref().map_or(&[][..], |seed| seed.0.as_slice());
    let hash = sha256(&[b"clawmesh direct", &mesh.0, &sides[0], &sides[1], seed]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    // A UUID of version 8, variant 10, as of all rooms that are made here: one that is brought from elsewhere has
    // another form.
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RoomId(id)
}

/// The name of the room of a task.
#[must_use]
pub fn task_name(room: RoomId) -> String {
    let digits = room.0.iter().take(4).map(|byte| format!("{byte:02x}"));
    [TASK.to_owned()].into_iter().chain(digits).collect()
}

/// An agent's id in the names of rooms and sessions: itself, if it is plain, else a hash of it.
#[must_use]
pub fn agent_ref(agent: &str) -> String {
    if is_plain(agent) {
        return agent.to_owned();
    }
    let hash = sha256(&[agent.as_bytes()]);
    format!("{HASHED}{}", base32(&hash[..16]))
}

/// The beginning of names of agents whose ids are not plain.
const HASHED: &str = "x-";
/// Characters of a hash after it.
const HASHED_CHARS: usize = 26;
const PLAIN_CHARS_MAX: usize = 64;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

fn is_plain(agent: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let Some((first, rest)) = agent.as_bytes().split_first() else { return false };
    let hashed = agent.strip_prefix(HASHED).is_some_and(|hash| {
        hash.len() == HASHED_CHARS && hash.bytes().all(|c| BASE32.contains(&c))
    });
    plain(*first)
        && rest.len() < PLAIN_CHARS_MAX
        && rest.iter().all(|byte| plain(*byte) || matches!(byte, b'_' | b'-'))
        && !hashed
}

/// RFC 4648, lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    let (mut out, mut bits, mut held) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            out.push(char::from(BASE32[(bits >> held & 31) as usize]));
        }
    }
    if held > 0 {
        out.push(char::from(BASE32[(bits << (5 - held) & 31) as usize]));
    }
    out
}

/// The beginnings of names that only nodes give: of rooms of two agents, of tasks, and of mail.
pub const RESERVED: [&str; 3] = ["dm:", TASK, "finder:"];

/// The beginning of names of rooms of tasks.
const TASK: &str = "task:";

/// The beginning of names of direct rooms.
pub const DIRECT: &str = RESERVED[0];

/// The beginning of names of rooms with an agent's mail. The private rooms of a key may be called so: nobody else sees them.
pub const MAIL: &str = RESERVED[2];

/// Whether no room may be called so by those who make it. `is_plain`: it is private, and nothing else besides.
#[must_use]
pub fn is_reserved(name: &str, is_plain: bool) -> bool {
    let is_its = |beginning: &&&str| name.starts_with(**beginning);
    RESERVED.iter().find(is_its).is_some_and(|beginning| !is_plain || *beginning != MAIL)
}

/// The name of a direct room, the same to both of its agents.
#[must_use]
pub fn direct_name(one: &str, other: &str) -> String {
    let mut refs = [agent_ref(one), agent_ref(other)];
    refs.sort_unstable();
    format!("{DIRECT}{}:{}", refs[0], refs[1])
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::name::key::KeySecret;

    const MESH: MeshId = MeshId([1; 16]);

    fn side(agent: &str, key: u8) -> Side {
        let halves = KeySecret::of(&format!("{key:0>32}")).halves();
        Side { agent: agent.into(), halves }
    }

    #[test]
    fn a_direct_room_follows_from_two_agents_and_their_keys_whichever_is_named_first() {
        let (bob, ann) = (side("bob", 1), side("ann", 2));
        let room = direct_room(MESH, &bob, &ann, None);
        assert_eq!(room, direct_room(MESH, &ann, &bob, None));
        let others = [
            direct_room(MeshId([2; 16]), &bob, &ann, None),
            direct_room(MESH, &bob, &bob, None),
            direct_room(MESH, &side("bo", 1), &ann, None),
            direct_room(MESH, &side("bob", 3), &ann, None),
            direct_room(MESH, &bob, &side("ann", 1), None),
            direct_room(MESH, &bob, &ann, Some(TaskSeed([1; 16]))),
        ];
        assert!(others.iter().all(|other| *other != room));
        // By hand. "ann" and "bob" are of one length.
        let mut hash = Sha256::new();
        hash.update(
            b"clawmesh direct\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
        );
        hash.update(b"\0\0\0\0\0\0\0\x03ann");
        hash.update(ann.halves.signer);
        hash.update(b"\0\0\0\0\0\0\0\x03bob");
        hash.update(bob.halves.signer);
        let (id, hash) = (room.0, hash.finalize());
        assert_eq!((&id[..6], id[7], &id[9..]), (&hash[..6], hash[7], &hash[9..16]));
        assert_eq!((id[6], id[8]), (hash[6] & 0x0f | 0x80, hash[8] & 0x3f | 0x80));
        assert!(!crate::name::id::is_foreign(id), "none is brought from elsewhere under this id");
    }

    #[test]
    fn agents_are_named_by_their_ids_or_by_hashes_that_are_no_ids() {
        let longest = "a".repeat(64);
        let hashed = format!("x-{}", "a".repeat(26));
        for plain in ["bob", "7", "a_b-c", &longest, "x-abc", &hashed[..27]] {
            assert_eq!(agent_ref(plain), plain);
        }
        for other in ["", "Bob", "-bob", "a b", "bö", &"a".repeat(65), &hashed] {
            let name = agent_ref(other);
            assert_eq!((name.len(), &name[..2]), (28, "x-"), "{other}");
            assert!(!is_plain(&name) && name != *other);
        }
        assert_eq!(agent_ref("Bob"), "x-zwp3dykiztmeils2u5eqjtdtx4", "as Python has it");
        assert_eq!(base32(b"foobar"), "mzxw6ytboi", "RFC 4648");
        assert_eq!(base32(b"fooba"), "mzxw6ytb");
        assert_eq!(base32(b"foob"), "mzxw6yq");
    }

    #[test]
    fn a_direct_room_is_called_by_both_of_its_agents_and_nothing_else_is() {
        assert_eq!(direct_name("bob", "ann"), "dm:ann:bob");
        assert_eq!(direct_name("ann", "bob"), "dm:ann:bob");
        assert_eq!(direct_name("ann", "ann"), "dm:ann:ann");
        for reserved in ["dm:", "dm:x", "task:1", "finder:y"] {
            assert!(is_reserved(reserved, false));
            assert_eq!(is_reserved(reserved, true), !reserved.starts_with(MAIL));
        }
        for free in ["dm", "_dm:x", "tasks:1", "DM:x", ""] {
            assert!(!is_reserved(free, false) && !is_reserved(free, true));
        }
    }

    #[test]
    fn a_pair_has_its_two_keys_and_a_key_may_be_both() {
        let [a, b, c] = [1, 2, 3].map(|byte| KeyPrint([byte; 16]));
        let pair = Pair::of(b, a);
        assert_eq!(pair, Pair::of(a, b));
        assert!(pair.has(a) && pair.has(b) && !pair.has(c));
        let keys = |group: Group| group.keys().collect::<Vec<_>>();
        assert_eq!(keys(Group::Pair(pair)), [a, b]);
        assert_eq!(keys(Group::Pair(Pair::of(c, c))), [c]);
        assert_eq!(keys(Group::Key(a)), [a]);
        assert!(Group::Key(a).has(a) && !Group::Key(a).has(b) && Group::Pair(pair).has(b));
    }
}
