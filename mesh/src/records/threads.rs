//! Facts of threads: what a key says of the conversations of a room, each under a name of its own: a label, from where on it is
//! read. They are where the room is, and sealed with it. Each key has its own, so the other side of a direct room cannot hide a
//! conversation. The names and values of facts are a dialect's.

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::{RoomPlace, showing},
};
use crate::{
    limits::{
        THREAD_FACT_BYTES_MAX, THREAD_FACT_NAME_BYTES_MAX, THREAD_NAME_BYTES_MAX,
        THREAD_RECORDS_PER_KEY_MAX, THREAD_RECORDS_PER_NODE_MAX,
    },
    name::id::{KeyPrint, MeshId, RoomId},
    wire::{
        cbor::encode,
        cover::Cover,
        record::{CollectionNumber, Draft, Record, RecordId},
    },
};

/// Room id, numbers and lengths, beside the texts.
const OVERHEAD_BYTES: usize = 64;

/// See the module.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(61),
    name: "session.facts",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: THREAD_NAME_BYTES_MAX
        + THREAD_FACT_NAME_BYTES_MAX
        + THREAD_FACT_BYTES_MAX
        + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: THREAD_RECORDS_PER_KEY_MAX,
    node_max: THREAD_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<FactRecord>(body).ok()?.id(&Cover::Open)),
};

/// A fact of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFact {
    /// The thread.
    pub thread: String,
    /// Which fact.
    pub name: String,
    /// Its value, as JSON.
    pub value: String,
}

/// A change of the facts of one thread: names with their values, texts of JSON; `None`: the fact is deleted. The last one of a
/// name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadUpdate {
    /// The thread.
    pub thread: String,
    /// Its facts.
    pub facts: Vec<(String, Option<String>)>,
}

/// The content of a record.
#[derive(Encode, Decode)]
struct FactRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    thread: String,
    #[n(2)]
    name: String,
    #[n(3)]
    value: String,
}

impl FactRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        id(cover, self.room, &self.thread, &self.name)
    }
}

fn id(cover: &Cover, room: RoomId, thread: &str, name: &str) -> RecordId {
    // No text of another length of the first part has the same bytes.
    let length = (thread.len() as u64).to_be_bytes();
    let part = [&length, thread.as_bytes(), name.as_bytes()].concat();
    cover.id(COLLECTION.number, &room.0, &part)
}

impl ThreadUpdate {
    /// Bytes that the client chose.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let facts = self.facts.iter();
        let facts = facts.map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len));
        self.thread.len() + facts.sum::<usize>()
    }

    /// The records to write.
    #[must_use]
    pub fn drafts(&self, at: &RoomPlace) -> Vec<Draft> {
        let RoomPlace { room, space, cover } = at;
        let latest: std::collections::BTreeMap<&String, &Option<String>> =
            self.facts.iter().map(|(name, value)| (name, value)).collect();
        let drafts = latest.into_iter().map(|(name, value)| {
            let record = |value: &String| FactRecord {
                room: *room,
                thread: self.thread.clone(),
                name: name.clone(),
                value: value.clone(),
            };
            Draft {
                space: *space,
                collection: COLLECTION.number,
                id: id(cover, *room, &self.thread, name),
                body: value.as_ref().map(|value| encode(&record(value))),
            }
        });
        drafts.collect()
    }
}

/// The facts that these records say of the threads of a room of a mesh, as one key has written them.
#[must_use]
pub fn read<'r>(
    at: &RoomPlace,
    records: impl IntoIterator<Item = &'r Record>,
    key: KeyPrint,
    mesh: MeshId,
) -> Vec<ThreadFact> {
    let of_kind = records
        .into_iter()
        .filter(|record| record.collection == COLLECTION.number && record.space == at.space);
    let shown = showing(of_kind, &[key].into(), mesh).into_iter();
    let fact =
        |said: FactRecord| ThreadFact { thread: said.thread, name: said.name, value: said.value };
    shown.filter_map(|record| said(at, record).map(fact)).collect()
}

/// The thread of which a record says something.
pub(super) fn thread_of(at: &RoomPlace, record: &Record) -> Option<String> {
    said(at, record).map(|said| said.thread)
}

fn said(at: &RoomPlace, record: &Record) -> Option<FactRecord> {
    let content = at.cover.read(&record.spot(), record.content()?)?;
    let said: FactRecord = minicbor::decode(&content).ok()?;
    // Of a sealed one nobody has looked whether its name is that of its content.
    let is_named = said.room == at.room && said.id(&at.cover) == record.id;
    is_named.then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::RECORD_BODY_BYTES_MAX,
        name::{group::Group, id::RoomKey, key::KeySecret},
        wire::{
            record::{Space, Stamp},
            seal::Seal,
        },
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn sealed(room: RoomId) -> RoomPlace {
        let group = Group::Key(key(1).print());
        let seal = Seal::of_room(group, &RoomKey::of("a key of some length"), room);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        RoomPlace { room, space: Space::Followers(group), cover }
    }

    fn update(thread: &str, facts: &[(&str, Option<&str>)]) -> ThreadUpdate {
        let facts = facts.iter().map(|(name, value)| {
            let value = value.map(str::to_owned);
            ((*name).to_owned(), value)
        });
        ThreadUpdate { thread: thread.to_owned(), facts: facts.collect() }
    }

    fn signed(update: &ThreadUpdate, at: &RoomPlace, by: &KeySecret, stamp: u64) -> Vec<Record> {
        let sign = |draft: Draft| {
            let draft = at.cover.write(draft, by.print(), Stamp(stamp));
            draft.sign(by, MESH, Stamp(stamp)).expect("it is long enough")
        };
        update.drafts(at).into_iter().map(sign).collect()
    }

    #[test]
    fn facts_are_those_of_one_key_and_nobody_elses_word_changes_them() {
        let (own, other, at) = (key(1), key(2), sealed(ROOM));
        let facts = |records: &[Record]| {
            let mut facts = read(&at, records, own.print(), MESH);
            facts.sort_by(|one, other| (&one.thread, &one.name).cmp(&(&other.thread, &other.name)));
            facts.into_iter().map(|it| (it.thread, it.name, it.value)).collect::<Vec<_>>()
        };
        let said = |thread: &str, name: &str, value: &str| {
            (thread.to_owned(), name.to_owned(), value.to_owned())
        };
        let first =
            update("a", &[("epoch", Some("1")), ("epoch", Some("7")), ("label", Some("\"l\""))]);
        let mut records = signed(&first, &at, &own, 5);
        records.extend(signed(&update("ab", &[("epoch", Some("9"))]), &at, &own, 5));
        let all = [said("a", "epoch", "7"), said("a", "label", "\"l\""), said("ab", "epoch", "9")];
        assert_eq!(facts(&records), all);
        records.extend(signed(&update("a", &[("epoch", Some("99"))]), &at, &other, 9));
        assert_eq!(facts(&records), all, "the other side says so");
        records.extend(signed(&update("a", &[("label", None)]), &at, &own, 6));
        assert_eq!(facts(&records), [all[0].clone(), all[2].clone()], "deleted");
        // Of another room, and under the name of another fact.
        let lies = signed(&first, &sealed(RoomId([3; 16])), &own, 20);
        assert_eq!(facts(&lies), []);
        let mut drafts = first.drafts(&at);
        let id = drafts[1].id;
        let moved = Draft { id, ..drafts.swap_remove(0) };
        let moved = at.cover.write(moved, own.print(), Stamp(20));
        let moved = moved.sign(&own, MESH, Stamp(20)).expect("it is long enough");
        assert_eq!(facts(&[moved]), []);
    }

    #[test]
    fn names_of_threads_and_facts_do_not_run_into_each_other() {
        let at = sealed(ROOM);
        let of = |thread: &str, name: &str| id(&at.cover, ROOM, thread, name);
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert_eq!(of("ab", "c").0[..8], at.subject(COLLECTION.number));
    }

    #[test]
    fn the_largest_fact_is_a_record() {
        let long = |n: usize| "x".repeat(n);
        let largest = ThreadUpdate {
            thread: long(THREAD_NAME_BYTES_MAX),
            facts: vec![(long(THREAD_FACT_NAME_BYTES_MAX), Some(long(THREAD_FACT_BYTES_MAX)))],
        };
        for at in [sealed(ROOM), RoomPlace { room: ROOM, space: Space::Mesh, cover: Cover::Open }] {
            for record in signed(&largest, &at, &key(1), 5) {
                let bytes = record.content().map_or(0, <[u8]>::len);
                assert!(bytes <= RECORD_BODY_BYTES_MAX, "{bytes}");
                assert_eq!(read(&at, [&record], key(1).print(), MESH).len(), 1);
            }
        }
        assert!(COLLECTION.body_bytes_max + crate::limits::SEAL_BYTES <= RECORD_BODY_BYTES_MAX);
    }
}
