//! The place of a room's records. They are where the room is: with all nodes, with the followers of a key, or on one node. The records
//! of all rooms of one space are in its sets, and each names its room: a room without records costs nothing.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    name::id::{KeyPrint, MeshId, RoomId},
    wire::{
        cover::Cover,
        record::{CollectionNumber, Record, RecordId, Space},
    },
};

/// Where a room's records are, and how they are written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPlace {
    /// The room.
    pub room: RoomId,
    /// The nodes that have it.
    pub space: Space,
    /// How its records are written.
    pub cover: Cover,
}

impl RoomPlace {
    /// The beginning of the ids of a collection's records about the room.
    #[must_use]
    pub fn subject(&self, collection: CollectionNumber) -> [u8; RecordId::SUBJECT_BYTES] {
        self.cover.subject(collection, &self.room.0)
    }
}

/// The records that show, of those that several keys have written: of each name the latest, be it a deletion.
#[must_use]
pub fn showing<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    keys: &BTreeSet<KeyPrint>,
    mesh: MeshId,
) -> Vec<&'r Record> {
    let mut latest: BTreeMap<(CollectionNumber, RecordId), &Record> = BTreeMap::new();
    for record in records.into_iter().filter(|record| keys.contains(&record.owner())) {
        let shown = latest.entry((record.collection, record.id)).or_insert(record);
        // The hash costs work, and decides seldom.
        let is_later = match record.stamp.cmp(&shown.stamp) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => record.head(mesh).hash > shown.head(mesh).hash,
        };
        if is_later {
            *shown = record;
        }
    }
    latest.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::key::KeySecret,
        wire::record::{Draft, Stamp},
    };

    const MESH: MeshId = MeshId([1; 16]);

    fn record(by: &KeySecret, at: u64, text: Option<&str>) -> Record {
        let body = text.map(|text| text.as_bytes().to_vec());
        let (collection, id) = (CollectionNumber(5), RecordId([7; 16]));
        let draft = Draft { space: Space::Mesh, collection, id, body };
        draft.sign(by, MESH, Stamp::at(at)).expect("it is long enough")
    }

    #[test]
    fn the_latest_of_all_that_the_keys_have_written_shows_be_it_a_deletion() {
        let [ann, bob, eve] = [1, 2, 3].map(|n| KeySecret::of(&format!("{n:0>32}")));
        let keys = [ann.print(), bob.print()].into();
        let text = |records: &[Record]| {
            let shown = showing(records, &keys, MESH);
            shown.first().map(|record| record.content().map(<[u8]>::to_vec))
        };
        let (one, two) = (record(&ann, 1, Some("one")), record(&bob, 2, Some("two")));
        let (other, gone) = (record(&eve, 9, Some("other")), record(&ann, 3, None));
        let said = |text: &str| Some(Some(text.as_bytes().to_vec()));
        assert_eq!(text(&[one.clone(), two.clone(), other.clone()]), said("two"));
        assert_eq!(text(&[two.clone(), gone.clone(), one.clone()]), Some(None));
        assert_eq!(text(&[other]), None);
        // At one moment the hash decides, in whichever order they are read.
        let (a, b) = (record(&ann, 5, Some("a")), record(&bob, 5, Some("b")));
        assert_eq!(text(&[a.clone(), b.clone()]), text(&[b, a]));
    }
}
