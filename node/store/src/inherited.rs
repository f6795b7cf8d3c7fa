//! Records of a key that was replaced, opened, for its successor to sign.

use std::collections::BTreeMap;

use mesh::{
    api::command::Inherited,
    name::id::{KeyPrint, MeshId},
    records::{collection::Collection, place::RoomPlace},
    wire::{
        cover::{ApartName, Cover},
        record::{Record, Space},
    },
};
use redb::ReadTransaction;

use crate::{
    error::ReadError,
    reader::Reader,
    schema::{CONTENTS, RECORDS, ROOMS, decode, table},
    view::room_row,
};

/// The records of a key that are here and that its successor signs anew, with their bytes, by name; and how many are passed
/// over, because their bytes are not here, or no room that is here opens them.
///
/// # Errors
///
/// See [`ReadError`].
pub fn of(
    reader: &Reader,
    mesh: MeshId,
    owner: KeyPrint,
) -> Result<(Vec<Inherited>, usize), ReadError> {
    let read = reader.databases().disk.read()?;
    let (places, contents) = (sealed_places(&read)?, table(&read, CONTENTS)?);
    let (mut found, mut passed) = (Vec::new(), 0);
    for row in table(&read, RECORDS)?.range(mesh.0.as_slice()..)? {
        let (key, row) = row?;
        if !key.value().starts_with(&mesh.0) {
            break;
        }
        if !key.value().ends_with(&owner.0) {
            continue;
        }
        let record: Record = decode(row.value(), "record")?;
        let kind = Collection::of(record.collection).filter(|kind| kind.inherited);
        if kind.is_none() || record.owner() != owner {
            continue;
        }
        let bytes = contents.get(key.value())?.map(|row| row.value().to_vec());
        match opened(&places, &record, bytes) {
            Some(inherited) => found.push(inherited),
            None => passed += 1,
        }
    }
    Ok((found, passed))
}

/// Rooms whose records are sealed, by where these are.
fn sealed_places(read: &ReadTransaction) -> Result<BTreeMap<Space, Vec<RoomPlace>>, ReadError> {
    let mut places: BTreeMap<Space, Vec<RoomPlace>> = BTreeMap::new();
    for row in table(read, ROOMS)?.range(0..)? {
        let (id, record) = room_row(row?.1.value())?;
        let place = record.place_of_records(id);
        if let Some(at) = place.filter(|at| at.cover != Cover::Open) {
            places.entry(at.space).or_default().push(at);
        }
    }
    Ok(places)
}

fn opened(
    places: &BTreeMap<Space, Vec<RoomPlace>>,
    record: &Record,
    bytes: Option<Vec<u8>>,
) -> Option<Inherited> {
    let Record { space, collection, id, stamp: above, .. } = *record;
    let Some(content) = record.content() else {
        // It says nothing that is sealed. Its name stays: ids of deletions are not made of contents.
        let cover = Cover::Open;
        return Some(Inherited { space, collection, id, cover, body: None, bytes: None, above });
    };
    let cover = match record.space {
        Space::Mesh | Space::Node => Cover::Open,
        Space::Followers(_) => {
            let of_space = places.get(&record.space)?;
            let opens = |at: &&RoomPlace| at.cover.read(&record.spot(), content).is_some();
            of_space.iter().find(opens)?.cover.clone()
        }
    };
    let body = cover.read(&record.spot(), content)?.into_owned();
    let name = ApartName { collection: record.collection, owner: record.owner(), id: record.id };
    let bytes = match record.apart {
        None => None,
        Some(_) => Some(cover.read_apart(&name, bytes?)?),
    };
    let body = Some(body);
    Some(Inherited { space, collection, id, cover, body, bytes, above })
}
