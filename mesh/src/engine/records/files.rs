//! Writing files of rooms.

use super::{
    Records,
    contents::Name,
    writing::{Unsigned, Writing, impossible, place_for},
};
use crate::{
    api::{
        command::{Encryption, FileWriter, Outcome, Reader, Refused},
        rules::{Broken, Field, Rule},
    },
    engine::known::Known,
    limits::{FILES_PER_ROOM_MAX, KEY_FILES_BYTES_MAX, ROOM_FILES_BYTES_MAX},
    name::id::{AgentId, KeyPrint},
    records::{
        files::{self, NewFile},
        place::RoomPlace,
    },
    wire::record::{RecordId, RecordKey},
};

impl Records {
    pub(in crate::engine) fn put_file(
        &mut self,
        known: &mut Known,
        writer: &FileWriter,
        file: NewFile,
        encryption: Encryption,
    ) -> Result<Outcome, Refused> {
        file.check()?;
        let at = admit(known, writer)?;
        let made = known.directory.room(writer.room);
        if made.is_some_and(|made| made.created.encrypted) && encryption == Encryption::None {
            return Err(Refused::Plaintext);
        }
        let draft = files::draft(&at, &file, writer.agent.as_deref());
        let name = files::apart_name(draft.id, writer.key);
        // An empty one has nothing to travel.
        let apart = Some(file.bytes).filter(|bytes| !bytes.is_empty());
        let apart = apart.map(|bytes| at.cover.write_apart(&name, bytes));
        let length = apart.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.has_room(&at, writer.key, draft.id, length)?;
        self.write(
            known,
            &Writing::of_room(writer.key, writer.signer.as_deref(), &at),
            vec![Unsigned { draft, apart }],
        )?;
        Ok(Outcome::Done)
    }

    pub(in crate::engine) fn remove_file(
        &mut self,
        known: &mut Known,
        writer: &FileWriter,
        path: &str,
    ) -> Result<Outcome, Refused> {
        files::check_path(path).map_err(bad_path)?;
        let at = admit(known, writer)?;
        let draft = files::deletion(&at, path);
        let key = RecordKey { id: draft.id, owner: Some(writer.key) };
        let set = self.set(at.space, draft.collection);
        if !set.is_some_and(|set| set.is_live(key)) {
            return Err(Refused::NoFile);
        }
        let by = Writing::of_room(writer.key, writer.signer.as_deref(), &at);
        self.write(known, &by, vec![draft.into()])?;
        Ok(Outcome::Done)
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

/// The place of the files of a room, if the key may write there, in this agent's name.
fn admit(known: &Known, writer: &FileWriter) -> Result<RoomPlace, Refused> {
    let FileWriter { room, key, agent, .. } = writer;
    known.may_read(&Reader { key: *key, agent: agent.clone() }, *room)?;
    known.may_write(*room)?;
    let is_own = |agent: &AgentId| {
        let seated = known.rosters.record(agent).is_some_and(|(_, record)| record.key == *key);
        seated || known.directory.proofs().owns(*key, agent)
    };
    if !agent.as_ref().is_none_or(is_own) {
        return Err(impossible(NOT_ITS_AGENT));
    }
    place_for(known, *key, *room)
}

pub(super) fn bad_path(rule: files::PathRule) -> Refused {
    Refused::Field(Broken { field: Field::Path, rule: Rule::Path(rule) })
}

const NOT_ITS_AGENT: &str = "no agent of this key has that id: name one of its own, or none";
