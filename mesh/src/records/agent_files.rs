//! Files of agents, which say who they are: with the key that owns the agent's id, sealed for the nodes that it was shown to, or
//! on one node. Their contents travel apart, as those of files of rooms do.

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{
        AGENT_FILE_BYTES_MAX, AGENT_FILE_NAME_BYTES_MAX, AGENT_FILE_RECORDS_PER_KEY_MAX,
        AGENT_FILE_RECORDS_PER_NODE_MAX, AGENT_ID_BYTES_MAX,
    },
    name::id::KeyPrint,
    wire::{
        cbor::encode,
        cover::{ApartName, Cover},
        record::{CollectionNumber, Draft, Record, RecordId, Stamp},
    },
};

/// See the module.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(53),
    name: "agent.file",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: AGENT_ID_BYTES_MAX + AGENT_FILE_NAME_BYTES_MAX + 32,
    apart_bytes_max: AGENT_FILE_BYTES_MAX,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: AGENT_FILE_RECORDS_PER_KEY_MAX,
    node_max: AGENT_FILE_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<FileRecord>(body).ok()?.id(&Cover::Open)),
};

/// The content of a record. The file itself travels apart.
#[derive(Encode, Decode)]
struct FileRecord {
    #[n(0)]
    agent: String,
    #[n(1)]
    name: String,
    /// Before it is sealed.
    #[n(2)]
    length: u32,
}

impl FileRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        file_id(cover, &self.agent, &self.name)
    }
}

fn file_id(cover: &Cover, agent: &str, name: &str) -> RecordId {
    cover.id(COLLECTION.number, agent.as_bytes(), name.as_bytes())
}

/// A file of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// Its name.
    pub name: String,
    /// Its length. Bytes.
    pub length: u32,
    /// When it was written. Unix milliseconds, by the clock of the writer's node.
    pub at_ms: u64,
}

/// The beginning of the ids of all files of an agent, in the place of its key.
#[must_use]
pub fn subject(at: &RoomPlace, agent: &str) -> [u8; RecordId::SUBJECT_BYTES] {
    at.cover.subject(COLLECTION.number, agent.as_bytes())
}

/// The name of a file's record.
#[must_use]
pub fn id(at: &RoomPlace, agent: &str, name: &str) -> RecordId {
    file_id(&at.cover, agent, name)
}

/// The draft of a file's record.
#[must_use]
pub fn draft(at: &RoomPlace, (agent, name): (&str, &str), bytes: &[u8]) -> Draft {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let record = FileRecord { agent: agent.to_owned(), name: name.to_owned(), length };
    let (space, collection, id) = (at.space, COLLECTION.number, record.id(&at.cover));
    Draft { space, collection, id, body: Some(encode(&record)) }
}

/// The name under which a file's bytes are sealed.
#[must_use]
pub fn apart_name(id: RecordId, owner: KeyPrint) -> ApartName {
    ApartName { collection: COLLECTION.number, owner, id }
}

/// The file of an agent that a record of its key says, if it says one.
#[must_use]
pub fn read(at: &RoomPlace, agent: &str, record: &Record) -> Option<AgentFile> {
    if record.space != at.space || record.collection != COLLECTION.number {
        return None;
    }
    let content = at.cover.read(&record.spot(), record.content()?)?;
    let said: FileRecord = minicbor::decode(&content).ok()?;
    // Of a sealed one nobody has looked whether its name is that of its content.
    let is_named = said.agent == agent && said.id(&at.cover) == record.id;
    let FileRecord { name, length, .. } = said;
    is_named.then_some(AgentFile { name, length, at_ms: Stamp::wall_ms(record.stamp) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{
            group::Group,
            id::{MeshId, RoomId, RoomKey},
            key::KeySecret,
        },
        wire::{
            record::{Apart, Space},
            seal::Seal,
        },
    };

    #[test]
    fn a_file_is_its_agents_in_the_place_of_its_key_alone() {
        let key = KeySecret::of(&"k".repeat(32));
        let (group, room) = (Group::Key(key.print()), RoomId([2; 16]));
        let seal = Seal::of_room(group, &RoomKey::of("a key of some length"), room);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        let at = RoomPlace { room, space: Space::Followers(group), cover };
        let (agent, name) = ("x".repeat(AGENT_ID_BYTES_MAX), "n".repeat(AGENT_FILE_NAME_BYTES_MAX));
        let draft = draft(&at, (&agent, &name), b"text");
        let draft = at.cover.write(draft, key.print(), Stamp::at(5_000));
        let record = draft
            .sign_with(Some(Apart::of(b"text")), &key, MeshId([1; 16]), Stamp::at(5_000))
            .expect("it is long enough");
        assert!(COLLECTION.fits(at.space, (record.id, record.owner()), record.content()));
        assert_eq!(record.id, id(&at, &agent, &name));
        assert!(record.id.0.starts_with(&subject(&at, &agent)));
        assert_eq!(read(&at, &agent, &record), Some(AgentFile { name, length: 4, at_ms: 5 }));
        assert_eq!(read(&at, "another", &record), None);
        let open = RoomPlace { room, space: Space::Node, cover: Cover::Open };
        assert_eq!(read(&open, &agent, &record), None);
    }
}
