//! Shared rooms: the keys to which a room's maker has given its secret, and those from which it took it
//! (`docs/decisions/shared-rooms.md`). All nodes have these records; what is in them can be opened by the two keys alone.

use minicbor::{Decode, Encode, bytes::ByteVec};

use super::collection::{Collection, Merge, Owners, Place, Writer};
use crate::{
    limits::{ROOM_KEYS_PER_KEY_MAX, ROOM_KEYS_PER_NODE_MAX},
    name::{
        group::Shared,
        id::{AgentId, KeyPrint, MeshId, RoomId, RoomKey},
        key::Mailbox,
    },
    wire::{
        cbor::{encode, text},
        record::{CollectionNumber, Draft, RecordId, Space},
        seal::{Between, directory},
    },
};

/// One record for each key that a room is shared with.
pub static GIVEN: Collection = Collection {
    number: CollectionNumber(18),
    name: "room key",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Add,
    body_bytes_max: GIVEN_BYTES_MAX,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: false,
    owner_max: ROOM_KEYS_PER_KEY_MAX,
    node_max: ROOM_KEYS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<Given>(body).ok()?.id()),
};

/// One record for each key that was taken out: for ever.
pub static TAKEN: Collection = Collection {
    number: CollectionNumber(19),
    name: "room key taken out",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::End,
    body_bytes_max: 64,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: false,
    owner_max: ROOM_KEYS_PER_KEY_MAX,
    node_max: ROOM_KEYS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<Taken>(body).ok()?.id()),
};

/// An encoded [`Given`]: the facts take 256 bytes of name, 512 of purpose, 256 of an agent's id, and some 100 more.
const GIVEN_BYTES_MAX: usize = 1_280;

/// A room, as its maker tells those that it shares it with.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SharedFacts {
    /// It opens the room, with the print of the key that made it.
    #[n(0)]
    pub secret: RoomKey,
    /// The name.
    #[n(1)]
    pub name: String,
    /// The purpose.
    #[n(2)]
    pub description: Option<String>,
    /// Only end-to-end encrypted content is taken.
    #[n(3)]
    pub encrypted: bool,
    /// The agent that made it.
    #[cbor(n(4), with = "text")]
    pub created_by: AgentId,
    /// Unix milliseconds.
    #[n(5)]
    pub created_ms: u64,
}

impl SharedFacts {
    /// The secret in the place of a key's room key. It is of this maker alone: another key that gives the same secret away
    /// gives another room.
    #[must_use]
    pub fn opener(&self, maker: KeyPrint) -> RoomKey {
        let label = [b"clawmesh shared opener".as_slice(), &maker.0].concat();
        RoomKey::from_secret(&self.secret.derive(&label))
    }

    /// The group of the keys that have the room.
    #[must_use]
    pub fn group(&self, mesh: MeshId, maker: KeyPrint) -> Shared {
        Shared { maker, id: directory(mesh, &self.opener(maker)) }
    }

    /// The room's id.
    #[must_use]
    pub fn room(&self, mesh: MeshId, maker: KeyPrint) -> RoomId {
        let label = [b"clawmesh shared room".as_slice(), &mesh.0].concat();
        let mut id = [0; 16];
        id.copy_from_slice(&self.opener(maker).derive(&label)[..16]);
        // As of all rooms that are made here: see `direct_room`.
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        RoomId(id)
    }
}

/// A secret that draws others: of a room that a key makes. `nth` is never the same for two rooms.
#[must_use]
pub fn draw_secret(mesh: MeshId, own: &Mailbox, nth: &[u8]) -> Option<RoomKey> {
    let with_itself = own.pair_secret(mesh, &own.public())?;
    let label = [b"clawmesh shared secret".as_slice(), nth].concat();
    Some(RoomKey::from_secret(&with_itself.derive(&label)))
}

/// The record's owner has given the secret of a room to a key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Given {
    /// [`Shared::id`].
    #[n(0)]
    pub group: RoomId,
    /// The key that has it now.
    #[n(1)]
    pub key: KeyPrint,
    /// [`SharedFacts`], sealed between the owner and that key.
    #[n(2)]
    sealed: ByteVec,
}

/// The two keys between which a room is given.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The mesh.
    pub mesh: MeshId,
    /// The mailbox of one.
    pub own: &'a Mailbox,
    /// The public half of the other one's.
    pub other: &'a [u8; 32],
}

impl Ends<'_> {
    fn between(&self) -> Option<Between> {
        Between::of(self.mesh, self.own, self.other, b"clawmesh room key")
    }
}

fn spot(group: RoomId, key: KeyPrint) -> [u8; 32] {
    let mut spot = [0; 32];
    spot[..16].copy_from_slice(&group.0);
    spot[16..].copy_from_slice(&key.0);
    spot
}

impl Given {
    /// Gives a room to a key. `None`: the two have no secret.
    #[must_use]
    pub fn seal(
        ends: &Ends<'_>,
        group: Shared,
        key: KeyPrint,
        facts: &SharedFacts,
    ) -> Option<Given> {
        let sealed = ends.between()?.seal(&spot(group.id, key), &encode(facts));
        Some(Given { group: group.id, key, sealed: sealed.into() })
    }

    /// Opens it, by either of the two. `None`: it is not for them.
    #[must_use]
    pub fn open(&self, ends: &Ends<'_>) -> Option<SharedFacts> {
        let facts = ends.between()?.open(&spot(self.group, self.key), &self.sealed)?;
        minicbor::decode(&facts).ok()
    }

    fn id(&self) -> RecordId {
        RecordId::of_part(GIVEN.number, &self.group.0, &self.key.0)
    }

    /// The record of it.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let body = Some(encode(self));
        Draft { space: Space::Mesh, collection: GIVEN.number, id: self.id(), body }
    }
}

/// The record's owner has taken a key out of a room. What the key's nodes have, they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Taken {
    /// [`Shared::id`].
    #[n(0)]
    pub group: RoomId,
    /// The key.
    #[n(1)]
    pub key: KeyPrint,
}

impl Taken {
    fn id(&self) -> RecordId {
        RecordId::of_part(TAKEN.number, &self.group.0, &self.key.0)
    }

    /// The record of it.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let body = Some(encode(self));
        Draft { space: Space::Mesh, collection: TAKEN.number, id: self.id(), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::key::KeySecret;

    const MESH: MeshId = MeshId([1; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn facts() -> SharedFacts {
        let own = key(1).mailbox().expect("it is long enough").clone();
        SharedFacts {
            secret: draw_secret(MESH, &own, b"one").expect("it has one with itself"),
            name: "n".repeat(256),
            description: Some("d".repeat(512)),
            encrypted: true,
            created_by: "a".repeat(256).as_str().into(),
            created_ms: u64::MAX,
        }
    }

    #[test]
    fn a_room_is_given_to_one_key_by_one_key_and_opens_for_no_other() {
        let [maker, to, other] = [1, 2, 3].map(key);
        let mailbox = |key: &KeySecret| key.mailbox().expect("it is long enough").clone();
        let group = facts().group(MESH, maker.print());
        let (own, with) = (mailbox(&maker), to.halves().mailbox);
        let ends = Ends { mesh: MESH, own: &own, other: &with };
        let given = Given::seal(&ends, group, to.print(), &facts()).expect("they have a secret");
        let draft = given.draft();
        let body = draft.body.as_deref().expect("it has one");
        assert!(body.len() <= GIVEN_BYTES_MAX, "{}", body.len());
        assert!(GIVEN.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), Some(body)));
        let open = |given: &Given, own: &KeySecret, from: &KeySecret| {
            given.open(&Ends { mesh: MESH, own: &mailbox(own), other: &from.halves().mailbox })
        };
        assert_eq!(open(&given, &to, &maker), Some(facts()));
        assert_eq!(open(&given, &other, &maker), None);
        assert_eq!(open(&given, &to, &other), None, "another key has not given it");
        let moved = Given { group: RoomId([9; 16]), ..given };
        assert_eq!(open(&moved, &to, &maker), None, "of another room");
    }

    #[test]
    fn a_room_is_its_makers_and_of_one_secret() {
        let [maker, other] = [1, 2].map(|n| key(n).print());
        let (facts, own) = (facts(), key(1).mailbox().expect("it is long enough").clone());
        let secret = draw_secret(MESH, &own, b"two").expect("it has one with itself");
        let second = SharedFacts { secret, ..facts.clone() };
        let rooms = [
            facts.room(MESH, maker),
            facts.room(MESH, other),
            facts.room(MeshId([2; 16]), maker),
            second.room(MESH, maker),
        ];
        assert!((1..4).all(|n| rooms[n] != rooms[0]), "{rooms:?}");
        assert_ne!(facts.group(MESH, maker).id, facts.group(MESH, other).id);
        assert_ne!(facts.group(MESH, maker).id, rooms[0]);
        assert!(!crate::name::id::is_foreign(rooms[0].0));
    }

    #[test]
    fn a_key_that_is_taken_out_has_one_record_for_ever() {
        let taken = Taken { group: RoomId([7; 16]), key: key(1).print() };
        let draft = taken.draft();
        assert!(TAKEN.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), draft.body.as_deref()));
        assert!(!TAKEN.fits(Space::Mesh, (draft.id, KeyPrint::OPEN), None), "it is not taken back");
        let other = Taken { key: key(2).print(), ..taken };
        assert!(!TAKEN.fits(
            Space::Mesh,
            (draft.id, KeyPrint::OPEN),
            other.draft().body.as_deref()
        ));
    }
}
