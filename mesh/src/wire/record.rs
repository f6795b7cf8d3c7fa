//! Records: state that its owner edits and deletes. Each is signed by the API key that owns it, over everything that
//! it says and the mesh in which it says so (`docs/decisions/records.md`).

use std::fmt;

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    name::{
        group::Group,
        id::{Hash, KeyPrint, MeshId, sha256, write_hex},
        identity::Judge,
        key::{KeySecret, ShortKey},
    },
    wire::signatures::KeySignature,
};

/// The nodes that have a set of records, and its place in their stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Space {
    /// All nodes of the mesh.
    #[n(0)]
    Mesh,
    /// The nodes that follow the private rooms of this group. Contents are sealed, and only such nodes are told of any.
    #[n(1)]
    Followers(#[n(0)] Group),
    /// One node alone: nothing of it is ever sent.
    #[n(2)]
    Node,
}

/// The number of a [collection](crate::records::collection), as it is written and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct CollectionNumber(#[n(0)] pub u16);

/// The name of a record within its collection: the first bytes of a hash of the thing that it is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RecordId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl RecordId {
    /// Bytes of the part that says which thing it is about: records of one thing stand together.
    pub const SUBJECT_BYTES: usize = 8;

    /// Of a part of a thing: of an agent and a field of its profile, say. The first half is of the thing alone.
    #[must_use]
    pub fn of_part(collection: CollectionNumber, subject: &[u8], part: &[u8]) -> RecordId {
        let mut id = [0; 16];
        id[..Self::SUBJECT_BYTES].copy_from_slice(&Self::subject(collection, subject));
        let length = (subject.len() as u64).to_be_bytes();
        let number = collection.0.to_be_bytes();
        let whole = sha256(&[b"clawmesh record part", &number, &length, subject, part]);
        id[Self::SUBJECT_BYTES..].copy_from_slice(&whole[..16 - Self::SUBJECT_BYTES]);
        RecordId(id)
    }

    /// The first bytes of the ids of all records about a thing. Others can be made to begin so: readers compare the thing.
    #[must_use]
    pub fn subject(collection: CollectionNumber, subject: &[u8]) -> [u8; RecordId::SUBJECT_BYTES] {
        let hash = sha256(&[b"clawmesh record", &collection.0.to_be_bytes(), subject]);
        let mut first = [0; Self::SUBJECT_BYTES];
        first.copy_from_slice(&hash[..Self::SUBJECT_BYTES]);
        first
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// When a record was written, by its writer's clock: microseconds since 1970, times 256, and a count. Above every
/// stamp of the same record that the writer knew of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Stamp(#[n(0)] pub u64);

/// Stamps within one microsecond.
const PER_MICROSECOND: u64 = 256;

/// Clocks reach it in the year 4253.
const FOR_EVER: u64 = 1 << 63;

impl Stamp {
    /// The first one of a moment. Unix microseconds; what is beyond all stamps is the last.
    #[must_use]
    pub fn at(wall_us: u64) -> Stamp {
        Stamp(wall_us.saturating_mul(PER_MICROSECOND))
    }

    /// The next one of this clock that is above `known`.
    #[must_use]
    pub fn after(wall_us: u64, known: Option<Stamp>) -> Stamp {
        let above = known.map_or(0, |known| known.0.saturating_add(1));
        Stamp::at(wall_us).max(Stamp(above))
    }

    /// The same moment, above all stamps of this time: of a deletion that is final
    /// ([`Merge::Final`](crate::records::collection::Merge::Final)).
    #[must_use]
    pub fn for_ever(self) -> Stamp {
        Stamp(self.0 | FOR_EVER)
    }

    /// Whether it is one of those.
    #[must_use]
    pub fn is_for_ever(self) -> bool {
        self.0 & FOR_EVER != 0
    }

    /// The moment alone.
    #[must_use]
    pub fn moment(self) -> Stamp {
        Stamp(self.0 & !FOR_EVER)
    }

    /// Unix milliseconds.
    #[must_use]
    pub fn wall_ms(self) -> u64 {
        self.moment().0 / PER_MICROSECOND / 1_000
    }
}

/// A record has one of these: two records of one key are two states of one thing, and one of them counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct RecordKey {
    /// Its id.
    #[n(0)]
    pub id: RecordId,
    /// Its owner, where nobody else may write it.
    #[n(1)]
    pub owner: Option<KeyPrint>,
}

/// All that a set keeps of a record in memory, and that nodes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RecordHead {
    /// Its id.
    #[n(0)]
    pub id: RecordId,
    /// Its owner.
    #[n(1)]
    pub owner: KeyPrint,
    /// When it was written.
    #[n(2)]
    pub stamp: Stamp,
    /// Of everything that its owner signed. All of it: of two records that are alike in some bytes alone, one could be
    /// made to hide the other.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub hash: Hash,
}

/// The digest of a whole set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Root {
    /// Whose records.
    #[n(0)]
    pub collection: CollectionNumber,
    /// See [`crate::records::digest`].
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: Hash,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Record {
    /// Where it is.
    #[n(0)]
    pub space: Space,
    /// Its kind.
    #[n(1)]
    pub collection: CollectionNumber,
    /// Its name.
    #[n(2)]
    pub id: RecordId,
    /// When it was written.
    #[n(3)]
    pub stamp: Stamp,
    /// Its owner, and the owner's signature.
    #[n(4)]
    pub by: KeySignature,
    /// Its content, in its collection's form. `None`: it is deleted.
    #[n(5)]
    pub body: Option<ByteVec>,
    /// More of its content, which travels by itself.
    #[n(6)]
    pub apart: Option<Apart>,
}

/// Bytes that belong to a record and travel by themselves: too many to be told to all whenever something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Apart {
    /// Of the bytes as they are written and sent.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    /// How many.
    #[n(1)]
    pub length: u32,
}

impl Apart {
    /// Of these bytes; they are far below 4 GiB.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Apart {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Apart { hash: sha256(&[bytes]), length }
    }
}

/// A record that is to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Where it is.
    pub space: Space,
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its name.
    pub id: RecordId,
    /// Its content as it is to be written (`wire::cover`). `None`: it is deleted.
    pub body: Option<Vec<u8>>,
}

/// The place of a content: sealed, it opens nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSpot {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its owner.
    pub owner: KeyPrint,
    /// Its name.
    pub id: RecordId,
    /// When it was written.
    pub stamp: Stamp,
}

impl RecordSpot {
    /// All of one length.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let RecordSpot { collection, owner, id, stamp } = self;
        [&collection.0.to_be_bytes()[..], &owner.0, &id.0, &stamp.0.to_be_bytes()].concat()
    }
}

/// The signed text.
#[derive(Encode)]
struct Text<'r> {
    #[n(0)]
    version: u8,
    #[n(1)]
    space: Space,
    #[n(2)]
    collection: CollectionNumber,
    #[n(3)]
    id: RecordId,
    #[n(4)]
    owner: KeyPrint,
    #[n(5)]
    stamp: Stamp,
    #[cbor(n(6), with = "minicbor::bytes")]
    body: Option<&'r [u8]>,
    #[n(7)]
    apart: Option<Apart>,
}

/// Of what is signed.
const VERSION: u8 = 1;

/// Of a signed text without the body, and without a long space.
const TEXT_BYTES: usize = 192;

impl Draft {
    /// Signs it for its owner.
    ///
    /// # Errors
    ///
    /// The key is too short for its halves to be shown.
    pub fn sign(self, key: &KeySecret, mesh: MeshId, stamp: Stamp) -> Result<Record, ShortKey> {
        self.sign_with(None, key, mesh, stamp)
    }

    /// The same, with bytes that travel apart.
    ///
    /// # Errors
    ///
    /// As [`Draft::sign`].
    pub fn sign_with(
        self,
        apart: Option<Apart>,
        key: &KeySecret,
        mesh: MeshId,
        stamp: Stamp,
    ) -> Result<Record, ShortKey> {
        let Draft { space, collection, id, body } = self;
        let owner = key.print();
        let version = VERSION;
        let written = body.as_deref();
        let text = Text { version, space, collection, id, owner, stamp, body: written, apart };
        let by = KeySignature::over(key, &text.in_mesh(mesh))?;
        Ok(Record { space, collection, id, stamp, by, body: body.map(ByteVec::from), apart })
    }
}

impl Text<'_> {
    /// Deterministic, so that a record has one text whoever wrote it down.
    fn in_mesh(&self, mesh: MeshId) -> Vec<u8> {
        // Enough for most. A start writes the text of each record that there is.
        let mut text = Vec::with_capacity(TEXT_BYTES + self.body.map_or(0, <[u8]>::len));
        text.extend_from_slice(b"clawmesh record");
        text.extend_from_slice(&mesh.0);
        minicbor::encode(self, &mut text).expect("encoding into a Vec cannot fail");
        text
    }
}

impl Record {
    /// The key that owns it.
    #[must_use]
    pub fn owner(&self) -> KeyPrint {
        self.by.key()
    }

    /// `owner`: its owner, which is a hash.
    fn text(&self, owner: KeyPrint, mesh: MeshId) -> Vec<u8> {
        let Record { space, collection, id, stamp, apart, .. } = *self;
        let (version, body) = (VERSION, self.content());
        Text { version, space, collection, id, owner, stamp, body, apart }.in_mesh(mesh)
    }

    /// See [`RecordHead`]. The signature is not in the hash: a key can sign the same thing in many ways.
    #[must_use]
    pub fn head(&self, mesh: MeshId) -> RecordHead {
        let owner = self.owner();
        let hash = sha256(&[&self.text(owner, mesh)]);
        RecordHead { id: self.id, owner, stamp: self.stamp, hash }
    }

    /// Whether it is its owner's word in this mesh.
    #[must_use]
    pub fn is_signed(&self, judge: &dyn Judge, mesh: MeshId) -> bool {
        self.by.is_over(judge, &self.text(self.owner(), mesh))
    }

    /// Its content's place.
    #[must_use]
    pub fn spot(&self) -> RecordSpot {
        let (collection, id, stamp) = (self.collection, self.id, self.stamp);
        RecordSpot { collection, owner: self.owner(), id, stamp }
    }

    /// Its content as it is written. `None`: it is deleted.
    #[must_use]
    pub fn content(&self) -> Option<&[u8]> {
        self.body.as_ref().map(|body| body.as_slice())
    }

    /// Bytes of its content.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{name::identity::Strict, wire::cbor::encode};

    const MESH: MeshId = MeshId([1; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn draft(body: Option<&[u8]>) -> Draft {
        let collection = CollectionNumber(u16::MAX);
        let id = RecordId([4; 16]);
        Draft { space: Space::Mesh, collection, id, body: body.map(<[u8]>::to_vec) }
    }

    fn signed(body: Option<&[u8]>) -> Record {
        draft(body).sign(&key(1), MESH, Stamp::at(1_000)).expect("it is long enough")
    }

    #[test]
    fn a_signature_is_over_all_that_a_record_says() {
        for good in [signed(Some(b"text")), signed(Some(b"")), signed(None)] {
            assert!(good.is_signed(&Strict, MESH));
            assert!(!good.is_signed(&Strict, MeshId([2; 16])), "in one mesh");
            let mailbox = key(2).halves().mailbox;
            let halves = crate::name::key::KeyHalves { mailbox, ..good.by.halves };
            let others = [
                Record { space: Space::Followers(Group::Key(good.owner())), ..good.clone() },
                Record { space: Space::Node, ..good.clone() },
                Record { collection: CollectionNumber(u16::MAX - 1), ..good.clone() },
                Record { id: RecordId([5; 16]), ..good.clone() },
                Record { stamp: Stamp(good.stamp.0 + 1), ..good.clone() },
                Record { body: Some(b"tex".to_vec().into()), ..good.clone() },
                Record { apart: Some(Apart::of(b"more")), ..good.clone() },
                Record {
                    by: KeySignature { halves: key(2).halves(), ..good.by.clone() },
                    ..good.clone()
                },
                Record { by: KeySignature { halves, ..good.by.clone() }, ..good.clone() },
            ];
            for other in others {
                assert!(!other.is_signed(&Strict, MESH), "{other:?}");
                assert_ne!(other.head(MESH), good.head(MESH));
            }
        }
        let (empty, deleted) = (signed(Some(b"")), signed(None));
        assert_ne!(empty.head(MESH).hash, deleted.head(MESH).hash);
        let swapped = Record { body: None, ..empty };
        assert!(!swapped.is_signed(&Strict, MESH));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let apart = Some(Apart::of(&[8; 9_000]));
        let large = draft(Some(b"text")).sign_with(apart, &key(1), MESH, Stamp::at(1_000));
        let large = large.expect("it is long enough");
        assert!(large.is_signed(&Strict, MESH));
        for record in [signed(Some(&[7; 300])), signed(None), large] {
            let bytes = encode(&record);
            let read: Record = minicbor::decode(&bytes).expect("it can be read");
            assert_eq!((&read, encode(&read)), (&record, bytes));
        }
    }

    #[test]
    fn a_stamp_is_above_those_that_are_known_whatever_the_clock_says() {
        assert_eq!(Stamp::after(5, None), Stamp::at(5));
        assert_eq!(Stamp::after(5, Some(Stamp::at(4))), Stamp::at(5));
        assert_eq!(Stamp::after(5, Some(Stamp::at(5))), Stamp(5 * 256 + 1));
        assert_eq!(Stamp::after(5, Some(Stamp::at(9))), Stamp(9 * 256 + 1));
        assert_eq!(Stamp::after(u64::MAX, Some(Stamp(u64::MAX))), Stamp(u64::MAX));
        assert_eq!(Stamp::at(1_800_000_000_123_456).wall_ms(), 1_800_000_000_123);
    }

    #[test]
    fn ids_of_one_thing_begin_alike_and_no_two_parts_of_two_things_are_one() {
        let id =
            |subject: &[u8], part: &[u8]| RecordId::of_part(CollectionNumber(1), subject, part);
        assert_eq!(id(b"a", b"b").0[..8], RecordId::subject(CollectionNumber(1), b"a"));
        assert_eq!(id(b"a", b"b").0[..8], id(b"a", b"c").0[..8]);
        assert_ne!(id(b"a", b"b"), id(b"a", b"c"));
        assert_ne!(id(b"ab", b"c").0[8..], id(b"a", b"bc").0[8..]);
        assert_ne!(id(b"a", b"b"), RecordId::of_part(CollectionNumber(2), b"a", b"b"));
    }
}
