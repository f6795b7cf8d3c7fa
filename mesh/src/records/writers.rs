//! The keys that write files of a public room beside the one that made it: those that it names, or all. Only its maker says so;
//! what other keys say of a room counts nowhere. Two records for a room, so that two sides of a split that change different
//! ones lose neither. In direct and shared rooms all keys write, and in private rooms of one key nobody else reads.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{WRITERS_PER_ROOM_MAX, WRITERS_RECORDS_PER_KEY_MAX, WRITERS_RECORDS_PER_NODE_MAX},
    name::id::{KeyPrint, RoomId},
    wire::{
        cbor::encode,
        cover::Cover,
        record::{CollectionNumber, Draft, Record, RecordId, RecordKey},
    },
};

/// A fingerprint, as it is encoded.
const PRINT_BYTES: usize = 17;
/// Room id, number and lengths.
const OVERHEAD_BYTES: usize = 32;

/// See the module.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(45),
    name: "room.writers",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: WRITERS_PER_ROOM_MAX * PRINT_BYTES + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: true,
    keeps_replaced: false,
    inherited: true,
    owner_max: WRITERS_RECORDS_PER_KEY_MAX,
    node_max: WRITERS_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<Said>(body).ok()?.id()),
};

/// The setting that names keys, as clients have it: a list of fingerprints.
pub const WRITERS: &str = "writers";
/// The setting that lets all keys write.
pub const FILES: &str = "files";
/// Its only value.
pub const ANYONE: &str = "anyone";

/// Keys by name.
const NAMED: u16 = 1;
/// All keys.
const ALL: u16 = 2;

/// The content of a record. One with another number is of a later version, and says nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Said {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    what: u16,
    #[n(2)]
    keys: Vec<KeyPrint>,
}

impl Said {
    fn id(&self) -> RecordId {
        id(self.room, self.what)
    }
}

fn id(room: RoomId, what: u16) -> RecordId {
    Cover::Open.id(COLLECTION.number, &room.0, &what.to_be_bytes())
}

/// A change of the keys that write files of a room. `None`: it stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritersUpdate {
    /// Keys beside the room's own; `Some(None)`: none any more.
    pub named: Option<Option<BTreeSet<KeyPrint>>>,
    /// Whether all keys do.
    pub anyone: Option<bool>,
}

impl WritersUpdate {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == WritersUpdate::default()
    }

    /// The records to write.
    #[must_use]
    pub fn drafts(&self, at: &RoomPlace) -> Vec<Draft> {
        let RoomPlace { room, space, .. } = *at;
        let draft = |what, keys: Option<Vec<KeyPrint>>| Draft {
            space,
            collection: COLLECTION.number,
            id: id(room, what),
            body: keys.map(|keys| encode(&Said { room, what, keys })),
        };
        let named = self.named.iter().map(|named| {
            let keys = named.as_ref().map(|keys| keys.iter().copied().collect());
            draft(NAMED, keys)
        });
        let anyone = self.anyone.iter().map(|all| draft(ALL, all.then(Vec::new)));
        named.chain(anyone).collect()
    }
}

/// The keys that a key says write files of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    /// These.
    pub named: BTreeSet<KeyPrint>,
    /// And all others.
    pub anyone: bool,
}

/// All that keys say of rooms: what it means for a room says the directory, which knows whose it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoomWriters {
    said: BTreeMap<RecordKey, (RoomId, u16)>,
    by_room: BTreeMap<(RoomId, KeyPrint), Writers>,
}

impl RoomWriters {
    /// A record is kept, in this state.
    pub(crate) fn learn(&mut self, key: RecordKey, record: &Record) {
        self.forget(key);
        let said = record.content().and_then(|body| minicbor::decode::<Said>(body).ok());
        let Some(Said { room, what, keys }) = said else { return };
        let writers = self.by_room.entry((room, record.owner())).or_default();
        match what {
            NAMED => writers.named = keys.into_iter().take(WRITERS_PER_ROOM_MAX).collect(),
            ALL => writers.anyone = true,
            _ => {}
        }
        self.said.insert(key, (room, what));
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, key: RecordKey) {
        let (Some((room, what)), Some(owner)) = (self.said.remove(&key), key.owner) else { return };
        let Some(writers) = self.by_room.get_mut(&(room, owner)) else { return };
        match what {
            NAMED => writers.named.clear(),
            ALL => writers.anyone = false,
            _ => {}
        }
        if *writers == Writers::default() {
            self.by_room.remove(&(room, owner));
        }
    }

    /// As this key says of a room.
    pub(crate) fn of(&self, room: RoomId, maker: KeyPrint) -> Option<&Writers> {
        self.by_room.get(&(room, maker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{id::MeshId, key::KeySecret},
        records::collection::is_sound,
        wire::record::{Space, Stamp},
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn signed(update: &WritersUpdate, at: u64) -> Vec<(RecordKey, Record)> {
        let place = RoomPlace { room: ROOM, space: Space::Mesh, cover: Cover::Open };
        let drafts = update.drafts(&place).into_iter();
        let records = drafts.map(|draft| draft.sign(&key(1), MESH, Stamp::at(at)).expect("long"));
        let records = records.map(|record| (COLLECTION.key(record.id, record.owner()), record));
        records.collect()
    }

    #[test]
    fn the_largest_list_has_the_form_of_its_collection() {
        let named: BTreeSet<_> = (0..64).map(|n| KeyPrint([n; 16])).collect();
        assert_eq!(named.len(), WRITERS_PER_ROOM_MAX);
        let update = WritersUpdate { named: Some(Some(named)), anyone: Some(true) };
        for (_, record) in signed(&update, 5) {
            let judge = crate::name::identity::Strict;
            assert!(is_sound(&record, &judge, MESH), "{:?}", record.content().map(<[u8]>::len));
        }
    }

    #[test]
    fn what_a_key_says_of_a_room_follows_from_its_records_alone() {
        let mut all = RoomWriters::default();
        let owner = key(1).print();
        let named = BTreeSet::from([key(2).print()]);
        let both = WritersUpdate { named: Some(Some(named.clone())), anyone: Some(true) };
        for (key, record) in signed(&both, 5) {
            all.learn(key, &record);
        }
        assert_eq!(all.of(ROOM, owner), Some(&Writers { named: named.clone(), anyone: true }));
        assert_eq!(all.of(ROOM, key(2).print()), None, "another key");
        let not_all = WritersUpdate { named: None, anyone: Some(false) };
        for (key, record) in signed(&not_all, 6) {
            all.learn(key, &record);
        }
        assert_eq!(all.of(ROOM, owner), Some(&Writers { named, anyone: false }));
        for (key, _) in signed(&both, 5) {
            all.forget(key);
        }
        assert!(all.of(ROOM, owner).is_none() && all.by_room.is_empty() && all.said.is_empty());
    }
}
