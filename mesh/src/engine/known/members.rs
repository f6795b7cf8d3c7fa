//! Members of rooms on record, as they show here ([`crate::records::members`]).

use std::collections::{BTreeMap, BTreeSet};

use super::Known;
use crate::{
    name::id::{Hash, KeyPrint, RoomId},
    records::members::{COLLECTION, Changed, Shown, Words},
    wire::record::{Record, RecordId, RecordKey, Space},
};

/// The beginning of the ids of a room's records: whose they are shows no more of a sealed one.
pub(super) type Subject = (Space, [u8; RecordId::SUBJECT_BYTES]);

/// Of a record of this name.
pub(super) fn subject(space: Space, id: RecordId) -> Subject {
    let mut first = [0; RecordId::SUBJECT_BYTES];
    first.copy_from_slice(&id.0[..RecordId::SUBJECT_BYTES]);
    (space, first)
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnRecord {
    pub(crate) words: Words,
    pub(crate) shown: Shown,
    /// Rooms that clients were told of: records may be about one that is not known here yet.
    rooms: BTreeMap<Subject, RoomId>,
    /// Rooms of which something new is said: each is looked at once in a turn.
    changed: BTreeSet<RoomId>,
    /// Members that came and went, until their seats are looked after.
    news: Vec<(RoomId, Changed)>,
}

impl OnRecord {
    /// A record is kept, in this state.
    pub(crate) fn learn(&mut self, record: &Record, hash: Hash) {
        self.words.learn(record, hash);
        self.note(record.space, record.id);
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, space: Space, key: RecordKey) {
        if let Some(owner) = key.owner {
            self.words.forget(space, key.id, owner);
            self.note(space, key.id);
        }
    }

    fn note(&mut self, space: Space, id: RecordId) {
        self.changed.extend(self.rooms.get(&subject(space, id)));
    }
}

impl Known {
    /// The key that made a room, as it is called now. The lobby, direct and ephemeral rooms have none.
    pub(crate) fn maker_of(&self, room: RoomId) -> Option<KeyPrint> {
        let made = self.directory.room(room).map(|made| made.created.owner);
        let made = made.or(self.directory.shared.room(room).map(|shared| shared.group.maker));
        made.and_then(KeyPrint::checked).map(|maker| self.directory.current(maker))
    }

    /// Clients are told of a room from now on: what was said of its members before shows.
    pub(super) fn note_place_of_members(&mut self, room: RoomId) {
        let place = self.rooms.get(&room).and_then(|state| {
            state.replica.record.place_of_records(room).filter(|_| self.maker_of(room).is_some())
        });
        if let Some(at) = place {
            self.on_record.rooms.insert((at.space, at.subject(COLLECTION.number)), room);
            self.read_members(room);
        }
    }

    /// Whether others show than before.
    fn read_members(&mut self, room: RoomId) -> bool {
        if self.on_record.words.is_empty() {
            return false;
        }
        let place = self.rooms.get(&room).and_then(|it| it.replica.record.place_of_records(room));
        let maker = self.maker_of(room).filter(|key| !self.directory.keys().is_revoked(*key));
        let members = match (place, maker) {
            (Some(at), Some(maker)) => self.on_record.words.of(&at, maker),
            _ => Vec::new(),
        };
        let Some(changed) = self.on_record.shown.set(room, members) else { return false };
        self.on_record.news.push((room, changed));
        true
    }

    /// Others may read a room than before: members of it have seats who could have none when they were named.
    pub(super) fn name_members_again(&mut self, room: RoomId) {
        let list = self.on_record.shown.of(room);
        let there = list.iter().filter(|member| !member.left);
        let came: Vec<_> = there.map(|member| (member.agent.clone(), member.key)).collect();
        if !came.is_empty() {
            self.on_record.news.push((room, Changed { came, gone: Vec::new() }));
        }
    }

    /// Whether the room's key took an agent off the list after this moment, a stamp of a seat: these are made as those of records
    /// are.
    pub(crate) fn was_removed_after(&self, agent: &str, room: RoomId, seat: u64) -> bool {
        if self.on_record.words.is_empty() {
            return false;
        }
        let place = self.rooms.get(&room).and_then(|it| it.replica.record.place_of_records(room));
        let (Some(at), Some(maker)) = (place, self.maker_of(room)) else { return false };
        let removed = self.on_record.words.removed(&at, maker, agent);
        removed.is_some_and(|removed| removed.0 > seat)
    }

    /// Keys are valid no more, or are called otherwise: whose word counts of the rooms that have members is asked again.
    pub(crate) fn doubt_members(&mut self) {
        if !self.on_record.words.is_empty() {
            self.on_record.changed.extend(self.on_record.rooms.values().copied());
        }
    }

    /// Takes in what is new, and tells clients. Members that came and went.
    pub(crate) fn take_member_news(&mut self) -> Vec<(RoomId, Changed)> {
        for room in std::mem::take(&mut self.on_record.changed) {
            if self.read_members(room) {
                self.tell_of_room(room, false);
            }
        }
        std::mem::take(&mut self.on_record.news)
    }
}
