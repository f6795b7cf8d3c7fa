//! Writing files of rooms.

use super::{
    Records,
    contents::Name,
    writing::{Shelf, Unsigned, Writing, impossible, is_of, latest, place_in},
};
use crate::{
    api::{
        command::{Encryption, FileAct, FileChange, Outcome, Reader, Refused},
        rules::{Broken, Field, Rule},
    },
    engine::known::Known,
    limits::{FILES_PER_ROOM_MAX, KEY_FILES_BYTES_MAX, ROOM_FILES_BYTES_MAX},
    name::id::{AgentId, KeyPrint, RoomId},
    records::{
        files::{self, NewFile},
        place::RoomPlace,
        set::Set,
    },
    wire::record::{RecordId, RecordKey},
};

impl Records {
    pub(crate) fn change_file(
        &mut self,
        known: &mut Known,
        change: FileChange,
    ) -> Result<Outcome, Refused> {
        let FileChange { room, key, agent, signer, act } = change;
        let signer = signer.as_deref();
        match act {
            FileAct::Put(file, encryption) => {
                file.check()?;
                let shelf = self.admit(known, key, room, agent.as_ref())?;
                let is_encrypted = known.told.get(&room).is_some_and(|view| view.encrypted);
                if is_encrypted && encryption == Encryption::None {
                    return Err(Refused::Plaintext);
                }
                let unsigned = written(&shelf.at, key, file, agent.as_deref());
                let length = unsigned.apart.as_ref().map_or(0, |bytes| bytes.len() as u64);
                self.has_room(&shelf.at, key, unsigned.draft.id, length)?;
                self.write(known, &Writing::of_room(key, signer, &shelf), vec![unsigned])?;
            }
            FileAct::Remove(path) => {
                files::check_path(&path).map_err(bad_path)?;
                let shelf = self.admit(known, key, room, agent.as_ref())?;
                let draft = files::deletion(&shelf.at, &path);
                let set = self.set(shelf.at.space, draft.collection);
                // Beneath the deletion of another key one's own state still takes its place.
                let is_there = |set: &Set| {
                    let shown = latest(set, draft.id, &shelf.keys);
                    let own = RecordKey { id: draft.id, owner: Some(key) };
                    set.is_live(own) || shown.is_some_and(|record| set.is_live(record))
                };
                if !set.is_some_and(is_there) {
                    return Err(Refused::NoFile);
                }
                self.write(known, &Writing::of_room(key, signer, &shelf), vec![draft.into()])?;
            }
        }
        Ok(Outcome::Done)
    }

    /// The place of the files of a room, if the key may write there, in this agent's name.
    fn admit(
        &self,
        known: &Known,
        key: KeyPrint,
        room: RoomId,
        agent: Option<&AgentId>,
    ) -> Result<Shelf, Refused> {
        known.may_read(&Reader { key, agent: agent.cloned() }, room)?;
        known.may_write(room)?;
        let proofs = known.directory.proofs();
        let is_own = |agent: &AgentId| {
            let seated = known.rosters.record(agent).is_some_and(|(_, record)| record.key == key);
            seated || proofs.owns(key, agent)
        };
        if !agent.is_none_or(is_own) {
            return Err(impossible(NOT_ITS_AGENT));
        }
        let at = place_in(known, room)?;
        let writers = proofs.writers_of_room(room);
        let owners = self.set(at.space, files::COLLECTION.number).into_iter().flat_map(Set::owners);
        // The key need not have written anything yet.
        let keys = proofs.file_keys(room, owners.chain([key]));
        let may_write = is_of(known, key, room) || writers.anyone || keys.contains(&key);
        if may_write { Ok(Shelf { at, keys }) } else { Err(Refused::NotYours) }
    }

    /// A client's file is refused where there are too many, or too much of them.
    fn has_room(
        &self,
        at: &RoomPlace,
        key: KeyPrint,
        id: RecordId,
        length: u64,
    ) -> Result<(), Refused> {
        let collection = files::COLLECTION.number;
        let first = at.subject(collection);
        let record = RecordKey { id, owner: Some(key) };
        let set = self.set(at.space, collection);
        let replaced = self.contents.length(&Name { space: at.space, collection, key: record });
        let there = set.map_or(0, |set| set.live_of(key, &first).count());
        let is_new = !set.is_some_and(|set| set.is_live(record));
        if is_new && there >= FILES_PER_ROOM_MAX {
            let text = format!("the room has {there} files, and may have {FILES_PER_ROOM_MAX}");
            return Err(Refused::Full(text));
        }
        let of_room = self.contents.bytes_about((at.space, collection), first, key);
        let of_key = self.contents.bytes_of(at.space, key);
        let bounds = [
            (of_room, ROOM_FILES_BYTES_MAX, "files of the room"),
            (of_key, KEY_FILES_BYTES_MAX, "files of the key"),
        ];
        for (bytes, max, whose) in bounds {
            if bytes - replaced.min(bytes) + length > max {
                let text = format!("the {whose} have {bytes} bytes, and may have {max}");
                return Err(Refused::Full(text));
            }
        }
        Ok(())
    }
}

/// A file as it is to be signed.
fn written(at: &RoomPlace, key: KeyPrint, file: NewFile, by: Option<&str>) -> Unsigned {
    let draft = files::draft(at, &file, by);
    let name = files::apart_name(draft.id, key);
    // An empty one has nothing to travel.
    let apart = Some(file.bytes).filter(|bytes| !bytes.is_empty());
    Unsigned { draft, apart: apart.map(|bytes| at.cover.write_apart(&name, bytes)) }
}

fn bad_path(rule: files::PathRule) -> Refused {
    Refused::Field(Broken { field: Field::Path, rule: Rule::Path(rule) })
}

const NOT_ITS_AGENT: &str = "no agent of this key has that id: name one of its own, or none";
