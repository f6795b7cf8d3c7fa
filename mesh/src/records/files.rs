//! Files of rooms: a collection that is where the room is, with contents that travel apart. The key that
//! made a room writes its files, at any node; in direct and shared rooms all keys do, and the latest state shows. Records of other keys do not.

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};

use super::{
    collection::{Collection, Merge, Owners, Place, Writer},
    place::RoomPlace,
};
use crate::{
    limits::{
        AGENT_ID_BYTES_MAX, FILE_BYTES_MAX, FILE_PATH_BYTES_MAX, FILE_RECORDS_PER_KEY_MAX,
        FILE_RECORDS_PER_NODE_MAX, MEDIA_TYPE_BYTES_MAX,
    },
    name::id::{KeyPrint, RoomId},
    wire::{
        cbor::encode,
        cover::{ApartName, Cover},
        record::{CollectionNumber, Draft, Record, RecordId, Stamp},
    },
};

/// Room id and lengths, beside the texts.
const OVERHEAD_BYTES: usize = 64;

/// See the module.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(5),
    name: "room.file",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: FILE_PATH_BYTES_MAX
        + MEDIA_TYPE_BYTES_MAX
        + AGENT_ID_BYTES_MAX
        + OVERHEAD_BYTES,
    apart_bytes_max: FILE_BYTES_MAX,
    in_memory: false,
    keeps_replaced: true,
    inherited: true,
    owner_max: FILE_RECORDS_PER_KEY_MAX,
    node_max: FILE_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<FileRecord>(body).ok()?.id(&Cover::Open)),
};

/// The content of a file's record. The file itself travels apart.
#[derive(Encode, Decode)]
struct FileRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    path: String,
    #[n(2)]
    media: Option<String>,
    #[n(3)]
    by: Option<String>,
    /// Before it is sealed.
    #[n(4)]
    length: u32,
}

impl FileRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        file_id(cover, self.room, &self.path)
    }
}

fn file_id(cover: &Cover, room: RoomId, path: &str) -> RecordId {
    cover.id(COLLECTION.number, &room.0, path.as_bytes())
}

/// The name of a file's record.
#[must_use]
pub fn id(at: &RoomPlace, path: &str) -> RecordId {
    file_id(&at.cover, at.room, path)
}

/// A file that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its path in the room.
    pub path: String,
    /// Its media type, in the writer's words.
    pub media: Option<String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A file, as it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileView {
    /// Its path in the room.
    pub path: String,
    /// Its media type, in the writer's words.
    pub media: Option<String>,
    /// The agent that wrote it, in the words of the key.
    pub by: Option<String>,
    /// Its length. Bytes.
    pub length: u32,
    /// When it was written. Unix milliseconds, by the clock of the writer's node.
    pub at_ms: u64,
}

/// A state of a file that another one has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedFile {
    /// The state.
    pub view: FileView,
    /// The latest one of a file is 1.
    pub nth: usize,
    /// This node keeps it up to then. Unix milliseconds.
    pub until_ms: u64,
    /// Its stamp.
    pub stamp: Stamp,
}

/// The draft of a file's record.
#[must_use]
pub fn draft(at: &RoomPlace, file: &NewFile, by: Option<&str>) -> Draft {
    let length = u32::try_from(file.bytes.len()).unwrap_or(u32::MAX);
    let (room, path, media) = (at.room, file.path.clone(), file.media.clone());
    let record = FileRecord { room, path, media, by: by.map(String::from), length };
    let (space, collection, id) = (at.space, COLLECTION.number, record.id(&at.cover));
    Draft { space, collection, id, body: Some(encode(&record)) }
}

/// The draft of its deletion.
#[must_use]
pub fn deletion(at: &RoomPlace, path: &str) -> Draft {
    let (space, collection, id) = (at.space, COLLECTION.number, id(at, path));
    Draft { space, collection, id, body: None }
}

/// The name under which a file's bytes are sealed.
#[must_use]
pub fn apart_name(id: RecordId, owner: KeyPrint) -> ApartName {
    ApartName { collection: COLLECTION.number, owner, id }
}

/// The file that a record says, if it is of this room and of one of the keys that write there.
#[must_use]
pub fn read(at: &RoomPlace, record: &Record, keys: &BTreeSet<KeyPrint>) -> Option<FileView> {
    let fits = record.space == at.space && record.collection == COLLECTION.number;
    if !fits || !keys.contains(&record.owner()) {
        return None;
    }
    let content = at.cover.read(&record.spot(), record.content()?)?;
    let said: FileRecord = minicbor::decode(&content).ok()?;
    // Of a sealed one nobody has looked whether its name is that of its content.
    let is_named = said.room == at.room && said.id(&at.cover) == record.id;
    let FileRecord { path, media, by, length, .. } = said;
    let is_shown = is_named && check_path(&path).is_ok();
    let at_ms = Stamp::wall_ms(record.stamp);
    is_shown.then_some(FileView { path, media, by, length, at_ms })
}

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRule {
    /// Too short or too long.
    #[error("must have 1 to {FILE_PATH_BYTES_MAX} bytes")]
    Length,
    /// It begins or ends with a slash, or has two in a row.
    #[error("must be relative, without empty parts: no slash at its ends, and no two in a row")]
    Empty,
    /// A part of it is `.` or `..`.
    #[error("must have no part that is `.` or `..`")]
    Dots,
    /// A backslash.
    #[error("must have no backslash")]
    Backslash,
    /// A control character.
    #[error("must have no control characters")]
    Control,
}

/// Whether a path may name a file: the same one on every system.
///
/// # Errors
///
/// The first rule that it breaks.
pub fn check_path(path: &str) -> Result<(), PathRule> {
    let broken = [
        (!(1..=FILE_PATH_BYTES_MAX).contains(&path.len()), PathRule::Length),
        (path.split('/').any(str::is_empty), PathRule::Empty),
        (path.split('/').any(|part| part == "." || part == ".."), PathRule::Dots),
        (path.contains('\\'), PathRule::Backslash),
        (path.contains(char::is_control), PathRule::Control),
    ];
    match broken.into_iter().find(|(broken, _)| *broken) {
        Some((_, rule)) => Err(rule),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::RECORD_BODY_BYTES_MAX,
        name::{
            id::{MeshId, RoomKey},
            key::KeySecret,
        },
        wire::{
            record::{Apart, Space},
            seal::Seal,
        },
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn places(by: &KeySecret) -> [RoomPlace; 2] {
        let group = crate::name::group::Group::Key(by.print());
        let seal = Seal::of_room(group, &RoomKey::of("a key of some length"), ROOM);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        let sealed = RoomPlace { room: ROOM, space: Space::Followers(group), cover };
        [RoomPlace { room: ROOM, space: Space::Mesh, cover: Cover::Open }, sealed]
    }

    fn signed(at: &RoomPlace, draft: Draft, by: &KeySecret) -> Record {
        let draft = at.cover.write(draft, by.print(), Stamp::at(5_000));
        let apart = draft.body.is_some().then(|| Apart::of(b"bytes"));
        draft.sign_with(apart, by, MESH, Stamp::at(5_000)).expect("it is long enough")
    }

    fn file(path: &str) -> NewFile {
        let media = Some("text/plain".to_owned());
        NewFile { path: path.to_owned(), media, bytes: b"hello".to_vec() }
    }

    #[test]
    fn a_file_is_what_the_rooms_key_says_in_the_rooms_place() {
        let (owner, other) = (key(1), key(2));
        let [open, sealed] = places(&owner);
        for (at, elsewhere) in [(&open, &sealed), (&sealed, &open)] {
            let record = signed(at, draft(at, &file("a/b.txt"), Some("scout")), &owner);
            let view = read(at, &record, &[owner.print()].into()).expect("it is one");
            assert_eq!((view.path.as_str(), view.length, view.at_ms), ("a/b.txt", 5, 5));
            assert_eq!(view.by.as_deref(), Some("scout"));
            assert_eq!(record.id, id(at, "a/b.txt"));
            assert_eq!(
                read(at, &record, &[other.print()].into()),
                None,
                "another key made the room"
            );
            assert_eq!(read(elsewhere, &record, &[owner.print()].into()), None);
            let room = RoomPlace { room: RoomId([3; 16]), ..at.clone() };
            assert_eq!(read(&room, &record, &[owner.print()].into()), None);
            let moved = Draft { id: id(at, "other"), ..draft(at, &file("a/b.txt"), None) };
            assert_eq!(
                read(at, &signed(at, moved, &owner), &[owner.print()].into()),
                None,
                "its name"
            );
            let gone = signed(at, deletion(at, "a/b.txt"), &owner);
            assert_eq!((gone.id, read(at, &gone, &[owner.print()].into())), (record.id, None));
        }
    }

    #[test]
    fn the_longest_names_make_a_record_sealed_or_not() {
        let long = |n: usize| "x".repeat(n);
        let longest = NewFile {
            path: long(FILE_PATH_BYTES_MAX),
            media: Some(long(MEDIA_TYPE_BYTES_MAX)),
            bytes: vec![0; FILE_BYTES_MAX],
        };
        for at in places(&key(1)) {
            let record =
                signed(&at, draft(&at, &longest, Some(&long(AGENT_ID_BYTES_MAX))), &key(1));
            assert!(COLLECTION.fits(at.space, (record.id, record.owner()), record.content()));
            assert!(record.size() <= RECORD_BODY_BYTES_MAX);
        }
    }

    #[test]
    fn a_path_names_one_file_on_every_system() {
        for good in ["a", "a/b.txt", "...", "a/.hidden", "ein schöner Weg/ü", &"x".repeat(512)] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        let bad = [
            ("", PathRule::Length),
            (&"x".repeat(513), PathRule::Length),
            ("/a", PathRule::Empty),
            ("a/", PathRule::Empty),
            ("a//b", PathRule::Empty),
            (".", PathRule::Dots),
            ("a/../b", PathRule::Dots),
            ("..", PathRule::Dots),
            ("a/./b", PathRule::Dots),
            ("a\\b", PathRule::Backslash),
            ("a\u{7}b", PathRule::Control),
            ("a\nb", PathRule::Control),
        ];
        for (path, rule) in bad {
            assert_eq!(check_path(path), Err(rule), "{path:?}");
        }
    }
}
