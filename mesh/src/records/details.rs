//! Details of rooms: title, description, state and settings, as the key that made the room says; in a direct or a
//! shared room all its keys, and the latest shows. Two collections, which are where
//! the room is: in the mesh's set, in that of a key's followers, or on one node. Each detail is a record of its own, and each
//! setting: two sides of a split that change different ones lose neither.
//!
//! Anybody with a key may write details of any public room. They show only if the key made the room.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use super::{
    closing,
    collection::{Collection, Merge, Owners, Place, Writer},
    news::RoomNote,
    place::{RoomPlace, showing},
    threads::ThreadUpdate,
    writers::{ANYONE, FILES, WRITERS, Writers, WritersUpdate},
};
use crate::{
    limits::{
        DESCRIPTION_BYTES_MAX, DETAIL_RECORDS_PER_KEY_MAX, DETAIL_RECORDS_PER_NODE_MAX,
        SETTING_BYTES_MAX, SETTING_NAME_BYTES_MAX, SETTING_RECORDS_PER_KEY_MAX,
        SETTING_RECORDS_PER_NODE_MAX,
    },
    name::id::{KeyPrint, MeshId, RoomId},
    wire::{
        cbor::encode,
        cover::Cover,
        record::{CollectionNumber, Draft, Record, RecordId},
    },
};

/// Room id, numbers and lengths, beside the text.
const OVERHEAD_BYTES: usize = 64;

/// Title, description, state.
pub static COLLECTION: Collection = Collection {
    number: CollectionNumber(3),
    name: "room.facts",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: DESCRIPTION_BYTES_MAX + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: DETAIL_RECORDS_PER_KEY_MAX,
    node_max: DETAIL_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<DetailRecord>(body).ok()?.id(&Cover::Open)),
};

/// Settings: names, and values that are for clients.
pub static SETTINGS: Collection = Collection {
    number: CollectionNumber(4),
    name: "room.setting",
    place: Place::Rooms,
    writer: Writer::Owner,
    owners: Owners::Keys,
    merge: Merge::Latest,
    body_bytes_max: SETTING_NAME_BYTES_MAX + SETTING_BYTES_MAX + OVERHEAD_BYTES,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: true,
    owner_max: SETTING_RECORDS_PER_KEY_MAX,
    node_max: SETTING_RECORDS_PER_NODE_MAX,
    names: |body, _| Some(minicbor::decode::<SettingRecord>(body).ok()?.id(&Cover::Open)),
};

/// The state of a room, for its members. It binds nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomState {
    /// Its members gather.
    Lobby,
    /// Its members work.
    Active,
    /// They have paused.
    Paused,
    /// It is kept to be read.
    Archived,
}

impl RoomState {
    /// All of them.
    pub const ALL: [RoomState; 4] =
        [RoomState::Lobby, RoomState::Active, RoomState::Paused, RoomState::Archived];

    /// As it is written, and shown by dialects that have no word of their own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RoomState::Lobby => "lobby",
            RoomState::Active => "active",
            RoomState::Paused => "paused",
            RoomState::Archived => "archived",
        }
    }

    /// And back.
    #[must_use]
    pub fn of(name: &str) -> Option<RoomState> {
        RoomState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A change of a room's details. `None` in a field: it stays as it is; `Some(None)`: it is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailsUpdate {
    /// A title beside the name.
    pub title: Option<Option<String>>,
    /// In the place of the description that the room was made with. Deleted, that one shows again.
    pub description: Option<Option<String>>,
    /// Its state.
    pub state: Option<Option<RoomState>>,
    /// Names with their values, texts of JSON; `None`: the setting is deleted. The last one of a name counts.
    pub settings: Vec<(String, Option<String>)>,
    /// The keys that write its files.
    pub writers: WritersUpdate,
    /// Facts of threads, of the key that writes them.
    pub threads: Vec<ThreadUpdate>,
    /// The room is closed, for ever: by the key that made it alone.
    pub closes: bool,
}

/// The details of a room as they show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// A title beside the name.
    pub title: Option<String>,
    /// In the place of the description that the room was made with.
    pub description: Option<String>,
    /// Its state.
    pub state: Option<RoomState>,
    /// By name, with values that their writer said are JSON.
    pub settings: Vec<(String, String)>,
}

/// Which detail. Others are kept and passed on, and do not show: a later version may know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Title,
    Description,
    State,
}

impl Detail {
    const ALL: [Detail; 3] = [Detail::Title, Detail::Description, Detail::State];

    const fn number(self) -> u16 {
        match self {
            Detail::Title => 1,
            Detail::Description => 2,
            Detail::State => 3,
        }
    }

    fn of(number: u16) -> Option<Detail> {
        Detail::ALL.into_iter().find(|detail| detail.number() == number)
    }
}

/// The content of a detail's record.
#[derive(Encode, Decode)]
struct DetailRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    detail: u16,
    #[n(2)]
    text: String,
}

/// The content of a setting's record.
#[derive(Encode, Decode)]
struct SettingRecord {
    #[n(0)]
    room: RoomId,
    #[n(1)]
    name: String,
    #[n(2)]
    value: String,
}

impl DetailRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        detail_id(cover, self.room, self.detail)
    }
}

impl SettingRecord {
    fn id(&self, cover: &Cover) -> RecordId {
        setting_id(cover, self.room, &self.name)
    }
}

fn detail_id(cover: &Cover, room: RoomId, detail: u16) -> RecordId {
    cover.id(COLLECTION.number, &room.0, &detail.to_be_bytes())
}

fn setting_id(cover: &Cover, room: RoomId, name: &str) -> RecordId {
    cover.id(SETTINGS.number, &room.0, name.as_bytes())
}

impl DetailsUpdate {
    /// Bytes that the client chose.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let settings = self.settings.iter().map(|(name, value)| name.len() + length(value));
        let texts = [&self.title, &self.description].into_iter().flatten();
        let threads = self.threads.iter().map(ThreadUpdate::bytes);
        texts.map(length).sum::<usize>() + settings.sum::<usize>() + threads.sum::<usize>()
    }

    /// The records to write.
    #[must_use]
    pub fn drafts(&self, at: &RoomPlace) -> Vec<Draft> {
        let RoomPlace { room, space, cover } = at;
        let state = self.state.map(|state| state.map(|state| state.name().to_owned()));
        let details = [
            (Detail::Title, &self.title),
            (Detail::Description, &self.description),
            (Detail::State, &state),
        ];
        let draft = |collection: &Collection, id, body| Draft {
            space: *space,
            collection: collection.number,
            id,
            body,
        };
        let mut drafts = Vec::new();
        for (detail, text) in details {
            let Some(text) = text else { continue };
            let number = detail.number();
            let record =
                |text: &String| DetailRecord { room: *room, detail: number, text: text.clone() };
            let body = text.as_ref().map(|text| encode(&record(text)));
            drafts.push(draft(&COLLECTION, detail_id(cover, *room, number), body));
        }
        let settings: BTreeMap<&String, &Option<String>> =
            self.settings.iter().map(|(name, value)| (name, value)).collect();
        for (name, value) in settings {
            let record = |value: &String| SettingRecord {
                room: *room,
                name: name.clone(),
                value: value.clone(),
            };
            let body = value.as_ref().map(|value| encode(&record(value)));
            drafts.push(draft(&SETTINGS, setting_id(cover, *room, name), body));
        }
        drafts.extend(self.writers.drafts(at));
        drafts.extend(self.threads.iter().flat_map(|thread| thread.drafts(at)));
        drafts.extend(self.closes.then(|| closing::draft(at)));
        drafts
    }
}

/// The names of a room's details, but for its settings: they begin alike ([`RoomPlace::subject`] of [`SETTINGS`]).
#[must_use]
pub fn ids(at: &RoomPlace) -> [RecordId; 3] {
    Detail::ALL.map(|detail| detail_id(&at.cover, at.room, detail.number()))
}

/// The detail that a record of a room says, or deletes. `None`: it says something else than its name, or is of a later version.
pub(super) fn note_of(at: &RoomPlace, record: &Record) -> Option<RoomNote> {
    if record.collection == SETTINGS.number {
        let Some(written) = record.content() else { return Some(RoomNote::Setting(None)) };
        let content = at.cover.read(&record.spot(), written)?;
        let said: SettingRecord = minicbor::decode(&content).ok()?;
        let is_named = said.room == at.room && said.id(&at.cover) == record.id;
        return is_named.then_some(RoomNote::Setting(Some(said.name)));
    }
    let is_it = |detail: &Detail| detail_id(&at.cover, at.room, detail.number()) == record.id;
    Some(match Detail::ALL.into_iter().find(is_it)? {
        Detail::Title => RoomNote::Title,
        Detail::Description => RoomNote::Description,
        Detail::State => RoomNote::State,
    })
}

/// The details that these records say of a room of a mesh. `keys`: those that write them; records of others do not show.
#[must_use]
pub fn read<'r>(
    at: &RoomPlace,
    records: impl IntoIterator<Item = &'r Record>,
    keys: &BTreeSet<KeyPrint>,
    mesh: MeshId,
) -> Details {
    let mut details = Details::default();
    for record in showing(records, keys, mesh) {
        if record.space == at.space {
            let content = record.content().and_then(|body| at.cover.read(&record.spot(), body));
            content.and_then(|content| details.take(at, record, &content));
        }
    }
    details.settings.sort_unstable();
    details
}

impl Details {
    /// The keys that write its files are shown as settings.
    pub fn show_writers(&mut self, writers: &Writers) {
        if !writers.named.is_empty() {
            let keys: Vec<String> = writers.named.iter().map(|key| format!("\"{key}\"")).collect();
            self.settings.push((WRITERS.to_owned(), format!("[{}]", keys.join(","))));
        }
        if writers.anyone {
            self.settings.push((FILES.to_owned(), format!("\"{ANYONE}\"")));
        }
        self.settings.sort_unstable();
    }

    /// `None`: it is about something else, or of a later version.
    fn take(&mut self, at: &RoomPlace, record: &Record, content: &[u8]) -> Option<()> {
        // Of a sealed one nobody has looked whether its name is that of its content.
        let is_named = |room: RoomId, id: RecordId| room == at.room && id == record.id;
        if record.collection == COLLECTION.number {
            let said: DetailRecord = minicbor::decode(content).ok()?;
            let detail = Detail::of(said.detail)?;
            if is_named(said.room, said.id(&at.cover)) {
                match detail {
                    Detail::Title => self.title = Some(said.text),
                    Detail::Description => self.description = Some(said.text),
                    Detail::State => self.state = RoomState::of(&said.text),
                }
            }
        } else if record.collection == SETTINGS.number {
            let said: SettingRecord = minicbor::decode(content).ok()?;
            if is_named(said.room, said.id(&at.cover)) {
                self.settings.push((said.name, said.value));
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::RECORD_BODY_BYTES_MAX,
        name::{
            group::Group,
            id::{MeshId, RoomKey},
            key::KeySecret,
        },
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

    fn open(room: RoomId) -> RoomPlace {
        RoomPlace { room, space: Space::Mesh, cover: Cover::Open }
    }

    fn sealed(room: RoomId, by: &KeySecret) -> RoomPlace {
        let seal =
            Seal::of_room(Group::Key(by.print()), &RoomKey::of("a key of some length"), room);
        let cover = Cover::Sealed(Box::new(seal.of_records()));
        RoomPlace { room, space: Space::Followers(Group::Key(by.print())), cover }
    }

    fn update() -> DetailsUpdate {
        DetailsUpdate {
            title: Some(Some("Harbour".to_owned())),
            description: Some(Some(String::new())),
            state: Some(Some(RoomState::Paused)),
            settings: vec![
                ("b".to_owned(), Some("1".to_owned())),
                ("a".to_owned(), Some("{}".to_owned())),
                ("b".to_owned(), Some("2".to_owned())),
            ],
            writers: WritersUpdate::default(),
            threads: Vec::new(),
            closes: false,
        }
    }

    fn signed(update: &DetailsUpdate, at: &RoomPlace, by: &KeySecret) -> Vec<Record> {
        let sign = |draft: Draft| {
            let draft = at.cover.write(draft, by.print(), Stamp(5));
            draft.sign(by, MESH, Stamp(5)).expect("it is long enough")
        };
        update.drafts(at).into_iter().map(sign).collect()
    }

    #[test]
    fn details_are_what_the_rooms_key_says_in_the_rooms_place() {
        let (owner, other) = (key(1), key(2));
        for at in [open(ROOM), sealed(ROOM, &owner)] {
            let mut records = signed(&update(), &at, &owner);
            assert_eq!(records.len(), 5, "the last word of a setting counts");
            assert_eq!(ids(&at), [0, 1, 2].map(|nth| records[nth].id));
            let first = at.subject(SETTINGS.number);
            assert!(records[3..].iter().all(|setting| setting.id.0.starts_with(&first)));
            let details = read(&at, &records, &[owner.print()].into(), MESH);
            assert_eq!(details.title.as_deref(), Some("Harbour"));
            assert_eq!(details.description.as_deref(), Some(""));
            assert_eq!(details.state, Some(RoomState::Paused));
            let settings =
                [("a", "{}"), ("b", "2")].map(|(name, value)| (name.into(), value.into()));
            assert_eq!(details.settings, settings);
            assert_eq!(
                read(&at, &records, &BTreeSet::new(), MESH),
                Details::default(),
                "a revoked key"
            );
            assert_eq!(read(&at, &records, &[other.print()].into(), MESH), Details::default());
            // Of another room, of another key, and in the clear where it is to be sealed.
            let lie = DetailsUpdate { title: Some(Some("Lie".to_owned())), ..Default::default() };
            records.clear();
            records.extend(signed(&lie, &at, &other));
            records.extend(signed(&lie, &open(RoomId([3; 16])), &owner));
            records.extend(signed(&lie, &sealed(RoomId([3; 16]), &owner), &owner));
            let elsewhere = if at == open(ROOM) { sealed(ROOM, &owner) } else { open(ROOM) };
            records.extend(signed(&lie, &elsewhere, &owner));
            assert_eq!(read(&at, &records, &[owner.print()].into(), MESH), Details::default());
        }
    }

    #[test]
    fn a_sealed_detail_shows_under_its_own_name_alone() {
        let owner = key(1);
        let at = sealed(ROOM, &owner);
        let mut drafts = update().drafts(&at);
        let id = drafts[1].id;
        let title = Draft { id, ..drafts.swap_remove(0) };
        let title = at.cover.write(title, owner.print(), Stamp(5));
        let record = title.sign(&owner, MESH, Stamp(5)).expect("it is long enough");
        assert_eq!(read(&at, &[record], &[owner.print()].into(), MESH), Details::default());
    }

    #[test]
    fn the_largest_details_are_records_sealed_or_not() {
        let long = |n: usize| "x".repeat(n);
        let largest = DetailsUpdate {
            title: Some(Some(long(crate::limits::ROOM_TITLE_BYTES_MAX))),
            description: Some(Some(long(DESCRIPTION_BYTES_MAX))),
            state: Some(None),
            settings: vec![(long(SETTING_NAME_BYTES_MAX), Some(long(SETTING_BYTES_MAX)))],
            threads: Vec::new(),
            writers: WritersUpdate::default(),
            closes: false,
        };
        assert_eq!(largest.check(), Ok(()));
        for at in [open(ROOM), sealed(ROOM, &key(1))] {
            for record in signed(&largest, &at, &key(1)) {
                let kind = Collection::of(record.collection).expect("it is known");
                assert!(
                    kind.fits(at.space, (record.id, record.owner()), record.content()),
                    "{kind:?}"
                );
                assert!(record.size() <= RECORD_BODY_BYTES_MAX);
                assert!(kind.fits(at.space, (record.id, record.owner()), None));
                assert!(!kind.fits(
                    at.space,
                    (record.id, record.owner()),
                    Some(&[0; RECORD_BODY_BYTES_MAX])
                ));
            }
        }
        let one = signed(&largest, &open(ROOM), &key(1)).remove(0);
        assert!(
            !COLLECTION.fits(Space::Mesh, (RecordId([9; 16]), KeyPrint::OPEN), one.content()),
            "another's name"
        );
    }

    #[test]
    fn fields_have_bounds_and_settings_names() {
        let good = update();
        let long = |n: usize| "x".repeat(n + 1);
        let setting = |name: String, value: usize| vec![(name, Some(long(value)))];
        let bad = [
            DetailsUpdate {
                title: Some(Some(long(crate::limits::ROOM_TITLE_BYTES_MAX))),
                ..good.clone()
            },
            DetailsUpdate { description: Some(Some(long(DESCRIPTION_BYTES_MAX))), ..good.clone() },
            DetailsUpdate { settings: setting(String::new(), 1), ..good.clone() },
            DetailsUpdate { settings: setting(long(SETTING_NAME_BYTES_MAX), 1), ..good.clone() },
            DetailsUpdate { settings: setting("a".to_owned(), SETTING_BYTES_MAX), ..good.clone() },
        ];
        assert_eq!(good.check(), Ok(()));
        assert!(bad.iter().all(|update| update.check().is_err()), "{bad:?}");
        assert_eq!(RoomState::of("busy"), None);
        assert!(RoomState::ALL.iter().all(|state| RoomState::of(state.name()) == Some(*state)));
    }
}
