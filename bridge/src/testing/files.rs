//! Files of rooms, as the node without a disk has them.

use mesh::{
    name::id::RoomId,
    records::{
        files::{self, FileView},
        place::showing,
    },
    wire::record::RecordKey,
};

use super::{Fake, secret};
use crate::backend::FoundFile;

impl Fake {
    pub(super) fn files_of(&self, room: RoomId) -> Vec<FileView> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&room) else { return Vec::new() };
        let owners = records.values().map(|record| record.owner());
        let keys = self.proofs.file_keys(room, owners);
        let showing = showing(records.values().map(|record| &**record), &keys, secret().mesh_id());
        let showing = showing.into_iter();
        let mut files: Vec<_> =
            showing.filter_map(|record| files::read(at, record, &keys)).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }

    pub(super) fn file_of(&self, room: RoomId, path: &str) -> Option<FoundFile> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let at = places.get(&room)?;
        let owners = records.values().map(|record| record.owner());
        let (keys, id) = (self.proofs.file_keys(room, owners), files::id(at, path));
        let states = records.values().map(|record| &**record).filter(|record| record.id == id);
        let showing = showing(states, &keys, secret().mesh_id());
        let (view, key) = showing.into_iter().find_map(|record| {
            let view = files::read(at, record, &keys)?;
            Some((view, record.owner()))
        })?;
        let contents = self.contents.lock().unwrap();
        let bytes = contents.get(&RecordKey { id, owner: Some(key) }).cloned().unwrap_or_default();
        let bytes = at.cover.read_apart(&files::apart_name(id, key), bytes);
        // The node is alone: all that there is is here.
        let bytes = if view.length == 0 { Some(Vec::new()) } else { bytes };
        Some(FoundFile { view, bytes })
    }
}
