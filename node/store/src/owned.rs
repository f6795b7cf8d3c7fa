//! Files of agents, in the place of the key that owns their ids.

use mesh::{
    name::id::{KeyPrint, MeshId, RoomId},
    records::agent_files::{self, AgentFile},
    wire::record::{Record, RecordKey},
};

use crate::{
    error::ReadError,
    reader::Reader,
    records::{Shelf, find, place},
    schema::{CONTENTS, RECORDS, decode, table},
};

/// The agent whose files are meant.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// The mesh.
    pub mesh: MeshId,
    /// The room in whose place the key's own records are.
    pub place: RoomId,
    /// The key.
    pub key: KeyPrint,
    /// The agent.
    pub agent: &'a str,
}

/// All of them, by name.
///
/// # Errors
///
/// See [`ReadError`].
pub fn files(reader: &Reader, of: &Of<'_>) -> Result<Vec<AgentFile>, ReadError> {
    let Some(at) = place(reader, of.place)? else { return Ok(Vec::new()) };
    let collection = agent_files::COLLECTION.number;
    let shelf = Shelf { mesh: of.mesh, space: at.space, collection };
    let first = agent_files::subject(&at, of.agent);
    let found = find(reader, &shelf, &first, |record| record.owner() == of.key)?;
    let files = found.iter().filter_map(|record| agent_files::read(&at, of.agent, record));
    let mut files: Vec<AgentFile> = files.collect();
    files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// A file, and its bytes if they are here.
pub type FoundAgentFile = (AgentFile, Option<Vec<u8>>);

/// One of them. `None`: there is none of this name. Its bytes are those of the same moment.
///
/// # Errors
///
/// See [`ReadError`].
pub fn file(reader: &Reader, of: &Of<'_>, name: &str) -> Result<Option<FoundAgentFile>, ReadError> {
    let Some(at) = place(reader, of.place)? else { return Ok(None) };
    let (collection, id) = (agent_files::COLLECTION.number, agent_files::id(&at, of.agent, name));
    let shelf = Shelf { mesh: of.mesh, space: at.space, collection };
    let row = shelf.row(RecordKey { id, owner: Some(of.key) });
    let read = reader.databases().disk.read()?;
    let Some(found) = table(&read, RECORDS)?.get(row.as_slice())? else { return Ok(None) };
    let record: Record = decode(found.value(), "record")?;
    let Some(view) = agent_files::read(&at, of.agent, &record) else { return Ok(None) };
    if record.apart.is_none() {
        return Ok(Some((view, Some(Vec::new()))));
    }
    let bytes = table(&read, CONTENTS)?.get(row.as_slice())?.map(|row| row.value().to_vec());
    let name = agent_files::apart_name(id, of.key);
    Ok(Some((view, bytes.and_then(|bytes| at.cover.read_apart(&name, bytes)))))
}
