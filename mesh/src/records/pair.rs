//! That two keys have direct rooms: by this, nodes of the other key hear that they have something to follow
//! (`docs/decisions/pairs.md`). All nodes have these records; the rooms themselves are the two keys' alone.

use minicbor::{Decode, Encode};

use super::collection::{Collection, Merge, Owners, Place, Writer};
use crate::{
    limits::{PAIR_RECORDS_PER_KEY_MAX, PAIR_RECORDS_PER_NODE_MAX},
    name::id::sha256,
    wire::{
        cbor::encode,
        record::{CollectionNumber, Draft, RecordId, Space},
    },
};

/// One record for each pair. Its owner is one of the two keys; both may say so.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(16),
    name: "pair",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Add,
    body_bytes_max: BODY_BYTES_MAX,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: PAIR_RECORDS_PER_KEY_MAX,
    node_max: PAIR_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<Mailboxes>(body).ok()?.id()),
};

/// An encoded body.
const BODY_BYTES_MAX: usize = 80;

/// The public mailboxes of the two keys, the lower one first. Nothing is sealed: both are in the directory, and the id
/// alone would tell everybody who tries which two they are.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
struct Mailboxes {
    #[cbor(n(0), with = "minicbor::bytes")]
    low: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    high: [u8; 32],
}

impl Mailboxes {
    fn of(one: &[u8; 32], other: &[u8; 32]) -> Mailboxes {
        Mailboxes { low: *one.min(other), high: *one.max(other) }
    }

    fn id(&self) -> RecordId {
        let hash = sha256(&[b"clawmesh pair record", &self.low, &self.high]);
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        RecordId(id)
    }
}

/// The id of the record that says that the keys with these public mailboxes are a pair.
#[must_use]
pub fn id(one: &[u8; 32], other: &[u8; 32]) -> RecordId {
    Mailboxes::of(one, other).id()
}

/// The record itself.
#[must_use]
pub fn draft(one: &[u8; 32], other: &[u8; 32]) -> Draft {
    let both = Mailboxes::of(one, other);
    let (space, collection) = (Space::Mesh, COLLECTION.number);
    Draft { space, collection, id: both.id(), body: Some(encode(&both)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::id::KeyPrint;

    #[test]
    fn a_pair_has_one_record_whichever_key_says_so() {
        let (one, other) = ([1; 32], [2; 32]);
        let record = draft(&one, &other);
        assert_eq!(record, draft(&other, &one));
        assert_eq!((record.id, id(&one, &one) == record.id), (id(&other, &one), false));
        let body = record.body.expect("it has one");
        assert!(
            COLLECTION.fits(Space::Mesh, (record.id, KeyPrint::OPEN), Some(&body))
                && body.len() <= BODY_BYTES_MAX
        );
        assert!(
            !COLLECTION.fits(Space::Mesh, (id(&one, &one), KeyPrint::OPEN), Some(&body)),
            "of another pair"
        );
        assert!(!COLLECTION.fits(Space::Mesh, (record.id, KeyPrint::OPEN), Some(&body[1..])));
        assert!(
            !COLLECTION.fits(Space::Mesh, (record.id, KeyPrint::OPEN), None),
            "it is not taken back"
        );
    }
}
