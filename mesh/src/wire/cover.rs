//! How the records of a room are named and written: in the clear where all nodes have the room, sealed where only nodes with a
//! key do. The owner signs what is written, sealed or not: so others check its word without the key, and pass on nothing
//! that it has not said.

use std::borrow::Cow;

use super::{
    record::{CollectionNumber, Draft, RecordId, RecordSpot, Stamp},
    seal::RecordSeal,
};
use crate::name::id::KeyPrint;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Anybody reads them.
    Open,
    /// Names are keyed hashes, and contents ciphertext.
    Sealed(Box<RecordSeal>),
}

/// The record that bytes apart belong to, in any of its states: sealed, they open with no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApartName {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its owner.
    pub owner: KeyPrint,
    /// Its name.
    pub id: RecordId,
}

impl ApartName {
    fn bytes(&self) -> Vec<u8> {
        // Longer than the place of a record's content, and so never one.
        let ApartName { collection, owner, id } = self;
        [&collection.0.to_be_bytes()[..], &owner.0, &id.0, b"clawmesh record apart"].concat()
    }
}

impl Cover {
    /// The first bytes of the ids of all records about a thing. Others can be made to begin so: readers compare the thing.
    #[must_use]
    pub fn subject(
        &self,
        collection: CollectionNumber,
        subject: &[u8],
    ) -> [u8; RecordId::SUBJECT_BYTES] {
        match self {
            Cover::Open => RecordId::subject(collection, subject),
            Cover::Sealed(seal) => {
                let number = collection.0.to_be_bytes();
                first(&seal.name(&[b"clawmesh record", &number, subject]))
            }
        }
    }

    /// Of a part of a thing: of a room and a field, say. The first half is of the thing alone.
    #[must_use]
    pub fn id(&self, collection: CollectionNumber, subject: &[u8], part: &[u8]) -> RecordId {
        let seal = match self {
            Cover::Open => return RecordId::of_part(collection, subject, part),
            Cover::Sealed(seal) => seal,
        };
        let mut id = [0; 16];
        id[..RecordId::SUBJECT_BYTES].copy_from_slice(&self.subject(collection, subject));
        let (number, length) = (collection.0.to_be_bytes(), (subject.len() as u64).to_be_bytes());
        let whole = seal.name(&[b"clawmesh record part", &number, &length, subject, part]);
        id[RecordId::SUBJECT_BYTES..].copy_from_slice(&first(&whole));
        RecordId(id)
    }

    /// A draft of this owner and stamp, as it is signed.
    #[must_use]
    pub fn write(&self, draft: Draft, owner: KeyPrint, stamp: Stamp) -> Draft {
        match self {
            Cover::Open => draft,
            Cover::Sealed(seal) => {
                let (collection, id) = (draft.collection, draft.id);
                let spot = RecordSpot { collection, owner, id, stamp }.bytes();
                let body = draft.body.map(|content| seal.seal(&spot, &content));
                Draft { body, ..draft }
            }
        }
    }

    /// Bytes that travel apart from a record of this owner and name, as they are written and sent.
    #[must_use]
    pub fn write_apart(&self, name: &ApartName, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Cover::Open => bytes,
            Cover::Sealed(seal) => seal.seal(&name.bytes(), &bytes),
        }
    }

    /// And read. `None`: as of [`Cover::read`].
    #[must_use]
    pub fn read_apart(&self, name: &ApartName, written: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Cover::Open => Some(written),
            Cover::Sealed(seal) => seal.open(&name.bytes(), &written),
        }
    }

    /// The content of a record in this place. `None`: it was sealed by somebody without the key, or for another place, or changed.
    #[must_use]
    pub fn read<'w>(&self, spot: &RecordSpot, written: &'w [u8]) -> Option<Cow<'w, [u8]>> {
        match self {
            Cover::Open => Some(Cow::Borrowed(written)),
            Cover::Sealed(seal) => seal.open(&spot.bytes(), written).map(Cow::Owned),
        }
    }
}

fn first(hash: &[u8]) -> [u8; RecordId::SUBJECT_BYTES] {
    let mut first = [0; RecordId::SUBJECT_BYTES];
    first.copy_from_slice(&hash[..RecordId::SUBJECT_BYTES]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::SEAL_BYTES,
        name::{
            group::Group,
            id::{RoomId, RoomKey},
        },
        wire::{record::Space, seal::Seal},
    };

    const KIND: CollectionNumber = CollectionNumber(9);

    fn sealed(key: &str, room: u8) -> Cover {
        let seal =
            Seal::of_room(Group::Key(KeyPrint::of(key)), &RoomKey::of(key), RoomId([room; 16]));
        Cover::Sealed(Box::new(seal.of_records()))
    }

    fn spot() -> RecordSpot {
        let (owner, id) = (KeyPrint([1; 16]), RecordId([2; 16]));
        RecordSpot { collection: KIND, owner, id, stamp: Stamp(3) }
    }

    fn written(cover: &Cover, text: &str) -> Vec<u8> {
        let (space, body) = (Space::Node, Some(text.as_bytes().to_vec()));
        let RecordSpot { collection, owner, id, stamp } = spot();
        let draft = cover.write(Draft { space, collection, id, body }, owner, stamp);
        draft.body.expect("it is no deletion")
    }

    #[test]
    fn a_sealed_content_opens_with_its_key_and_in_its_place_alone() {
        let cover = sealed("one", 1);
        let written = written(&cover, "for few eyes");
        assert_eq!(written.len(), 12 + SEAL_BYTES);
        assert!(!written.windows(3).any(|bytes| bytes == b"few"));
        assert_eq!(cover.read(&spot(), &written).as_deref(), Some(&b"for few eyes"[..]));
        assert_eq!(sealed("two", 1).read(&spot(), &written), None, "another key");
        assert_eq!(sealed("one", 2).read(&spot(), &written), None, "another room");
        let elsewhere = [
            RecordSpot { collection: CollectionNumber(8), ..spot() },
            RecordSpot { owner: KeyPrint([9; 16]), ..spot() },
            RecordSpot { id: RecordId([9; 16]), ..spot() },
            RecordSpot { stamp: Stamp(4), ..spot() },
        ];
        for spot in elsewhere {
            assert_eq!(cover.read(&spot, &written), None, "{spot:?}");
        }
    }

    #[test]
    fn nothing_is_drawn_and_no_nonce_is_of_two_contents() {
        let cover = sealed("one", 1);
        assert_eq!(written(&cover, "text"), written(&cover, "text"));
        assert_ne!(written(&cover, "text")[..12], written(&cover, "next")[..12]);
        assert_eq!(written(&Cover::Open, "text"), b"text");
    }

    #[test]
    fn bytes_apart_open_with_their_key_and_their_record_alone() {
        let cover = sealed("one", 1);
        let name = ApartName { collection: KIND, owner: KeyPrint([1; 16]), id: RecordId([2; 16]) };
        let written = cover.write_apart(&name, b"for few eyes".to_vec());
        assert!(!written.windows(3).any(|bytes| bytes == b"few"));
        let read = |cover: &Cover, name: &ApartName| cover.read_apart(name, written.clone());
        assert_eq!(read(&cover, &name).as_deref(), Some(&b"for few eyes"[..]));
        assert_eq!(read(&sealed("two", 1), &name), None, "another key");
        assert_eq!(read(&cover, &ApartName { id: RecordId([9; 16]), ..name }), None);
        assert_eq!(read(&cover, &ApartName { owner: KeyPrint([9; 16]), ..name }), None);
        assert_eq!(cover.read(&spot(), &written), None, "they are no content of a record");
        assert_eq!(Cover::Open.write_apart(&name, b"text".to_vec()), b"text");
    }

    #[test]
    fn nobody_without_the_key_can_tell_what_a_sealed_record_is_named_after() {
        let (open, cover) = (Cover::Open, sealed("one", 1));
        let named = |cover: &Cover, part: &[u8]| cover.id(KIND, b"room", part);
        assert_eq!(named(&open, b"notes.md"), RecordId::of_part(KIND, b"room", b"notes.md"));
        assert_ne!(named(&cover, b"notes.md").0[..8], named(&open, b"notes.md").0[..8]);
        assert_ne!(named(&cover, b"notes.md").0[8..], named(&open, b"notes.md").0[8..]);
        assert_ne!(named(&cover, b"notes.md"), named(&sealed("two", 1), b"notes.md"));
        assert_eq!(named(&cover, b"a").0[..8], named(&cover, b"b").0[..8]);
        assert_eq!(named(&cover, b"a").0[..8], cover.subject(KIND, b"room"));
        assert_ne!(named(&cover, b"a"), named(&cover, b"b"));
        assert_eq!(format!("{cover:?}"), "Sealed(RecordSeal)");
    }
}
