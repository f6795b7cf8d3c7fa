//! Writing records for clients: profiles of agents, details of rooms.

use std::{collections::BTreeSet, sync::Arc};

use super::{Records, answers_for, contents::Name};
use crate::{
    api::{
        account::AccountRefused,
        command::{Caller, Outcome, OwnedProfile, Refused, RoomSet},
    },
    engine::known::Known,
    limits::{GOSSIP_BYTES_MAX, ROOM_SETTINGS_MAX},
    name::{
        id::{KeyPrint, NodeId, RoomId},
        key::KeySecret,
    },
    records::{
        collection::{Collection, Merge},
        details,
        place::RoomPlace,
        profile::{self, ProfileUpdate},
        set::Set,
    },
    wire::{
        cover::Cover,
        message::Message,
        record::{Apart, Draft, Record, RecordId, RecordKey, Space, Stamp},
    },
};

/// Records in one gossip message: leaves room for its frame.
const RECORDS_BYTES_MAX: usize = GOSSIP_BYTES_MAX - 2 * 1024;
/// A record without its content takes less.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// A profile that is to be changed.
#[derive(Debug)]
pub(crate) struct Profiled {
    pub(crate) signer: Option<Arc<KeySecret>>,
    pub(crate) update: ProfileUpdate,
}

/// The writer of records, and where they go.
pub(super) struct Writing<'w> {
    key: KeyPrint,
    signer: Option<&'w KeySecret>,
    space: Space,
    cover: &'w Cover,
    /// Other keys that write the same: what is written is later than all that they have written.
    with: &'w BTreeSet<KeyPrint>,
    /// And later than this.
    above: Stamp,
    moment: Moment,
}

/// The time that stamps say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Of writing.
    Now,
    /// Of [`Writing::above`]: what others have written since then stays later.
    Then,
}

impl<'w> Writing<'w> {
    /// Of a key: its records that all nodes read.
    fn of_key(key: KeyPrint, signer: Option<&'w KeySecret>) -> Writing<'w> {
        let (cover, above) = (&Cover::Open, Stamp::default());
        Writing { key, signer, space: Space::Mesh, cover, with: NOBODY, above, moment: Moment::Now }
    }

    /// Of an account: its records are open, and nobody else writes them.
    pub(super) fn of_account(account: &'w KeySecret, cover: &'w Cover) -> Writing<'w> {
        let (key, signer) = (account.print(), Some(account));
        let above = Stamp::default();
        Writing { key, signer, space: Space::Mesh, cover, with: NOBODY, above, moment: Moment::Now }
    }

    /// Of a key that has come after another one. It says what that one had said, as of then.
    pub(super) fn of_successor(
        signer: &'w KeySecret,
        space: Space,
        cover: &'w Cover,
        above: Stamp,
    ) -> Writing<'w> {
        let (key, signer) = (signer.print(), Some(signer));
        Writing { key, signer, space, cover, with: NOBODY, above, moment: Moment::Then }
    }

    /// The same, in this space, with stamps above this one.
    pub(super) fn within(self, space: Space, above: Stamp) -> Writing<'w> {
        Writing { space, above, ..self }
    }

    pub(super) fn of_room(
        key: KeyPrint,
        signer: Option<&'w KeySecret>,
        place: &'w Shelf,
    ) -> Writing<'w> {
        let Shelf { at, keys } = place;
        Writing {
            key,
            signer,
            space: at.space,
            cover: &at.cover,
            with: keys,
            above: Stamp::default(),
            moment: Moment::Now,
        }
    }
}

/// Where a room's records are, and the keys that write them.
pub(super) struct Shelf {
    pub(super) at: RoomPlace,
    pub(super) keys: BTreeSet<KeyPrint>,
}

/// The state that shows, of those that several keys have written: the latest one, be it a deletion.
pub(super) fn latest(set: &Set, id: RecordId, keys: &BTreeSet<KeyPrint>) -> Option<RecordKey> {
    let states = keys.iter().filter_map(|key| set.head(set.key(id, *key)));
    let latest = states.max_by_key(|head| (head.stamp, head.hash))?;
    Some(set.key(id, latest.owner))
}

/// A record that is to be written, with bytes that travel apart, as they are written.
#[derive(Debug)]
pub(super) struct Unsigned {
    pub(super) draft: Draft,
    pub(super) apart: Option<Vec<u8>>,
}

impl From<Draft> for Unsigned {
    fn from(draft: Draft) -> Unsigned {
        Unsigned { draft, apart: None }
    }
}

impl Records {
    pub(crate) fn set_profile(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        profiled: Profiled,
    ) -> Result<Outcome, Refused> {
        known.caller(caller)?;
        let Profiled { signer, update } = profiled;
        let (key, agent) = (caller.key, caller.agent.clone());
        self.set_profile_of(known, OwnedProfile { key, agent, signer, update })
    }

    pub(crate) fn set_profile_of(
        &mut self,
        known: &mut Known,
        of: OwnedProfile,
    ) -> Result<Outcome, Refused> {
        let OwnedProfile { key, agent, signer, update } = of;
        update.check()?;
        if !known.directory.proofs().owns(key, &agent) {
            return Err(impossible(NOT_OWNED));
        }
        let cards = self.set(Space::Mesh, profile::CARDS.number);
        let first = profile::cards_of(&agent);
        let cards: Vec<_> = cards.into_iter().flat_map(|set| set.live_of(key, &first)).collect();
        let drafts = update.drafts(&agent, &cards);
        let by = Writing::of_key(key, signer.as_deref());
        self.write(known, &by, unsigned(drafts))?;
        Ok(Outcome::Done)
    }

    /// Writes a record for a key that all nodes have and can read: of pairs, of shared rooms.
    pub(crate) fn write_open(
        &mut self,
        known: &mut Known,
        (key, signer): (KeyPrint, Option<&KeySecret>),
        draft: Draft,
    ) -> Result<(), Refused> {
        let by = Writing::of_key(key, signer);
        self.write(known, &by, vec![draft.into()])?;
        Ok(())
    }

    pub(crate) fn set_room(&mut self, known: &mut Known, set: RoomSet) -> Result<Outcome, Refused> {
        let RoomSet { caller, room, signer, update } = set;
        known.caller(&caller)?;
        known.may_read(&caller.reader(), room)?;
        known.may_write(room)?;
        update.check()?;
        let shelf = place_for(known, caller.key, room)?;
        let owner = known.told.get(&room).and_then(|view| view.owner);
        if update.closes && owner != Some(caller.key) {
            return Err(Refused::NotYours);
        }
        if !update.writers.is_empty() && shelf.at.space != Space::Mesh {
            return Err(impossible(ALL_WRITE));
        }
        let drafts = update.drafts(&shelf.at);
        self.check_settings(&shelf, &drafts)?;
        let (key, signer) = (caller.key, signer.as_deref());
        self.write(known, &Writing::of_room(key, signer, &shelf), unsigned(drafts))?;
        Ok(Outcome::Done)
    }

    /// A room has so many settings.
    fn check_settings(&self, shelf: &Shelf, drafts: &[Draft]) -> Result<(), Refused> {
        let Shelf { at, keys } = shelf;
        let number = details::SETTINGS.number;
        let first = at.subject(number);
        let mut there = BTreeSet::new();
        if let Some(set) = self.set(at.space, number) {
            let said = keys.iter().flat_map(|key| set.live_of(*key, &first));
            let shows = |id: &RecordId| latest(set, *id, keys).is_some_and(|key| set.is_live(key));
            there.extend(said.filter(shows));
        }
        let changed = |id| drafts.iter().any(|draft| draft.collection == number && draft.id == id);
        let stay = there.iter().filter(|id| !changed(**id)).count();
        let come = drafts.iter().filter(|draft| draft.collection == number && draft.body.is_some());
        let come = come.count();
        if come > 0 && stay + come > ROOM_SETTINGS_MAX {
            let have = there.len();
            let text = format!("the room has {have} settings, and may have {ROOM_SETTINGS_MAX}");
            return Err(Refused::Full(text));
        }
        Ok(())
    }

    /// Signs records, of one space and one sort of owners, and takes them in, all of them or none. They are durable with the turn, and told to others then.
    pub(super) fn write(
        &mut self,
        known: &mut Known,
        by: &Writing<'_>,
        unsigned: Vec<Unsigned>,
    ) -> Result<Vec<Stamp>, Refused> {
        let Writing { key, space, cover, .. } = *by;
        let signer = by.signer.filter(|signer| signer.print() == key).ok_or(impossible(NO_KEY))?;
        let place = unsigned.first().and_then(|one| Collection::of(one.draft.collection));
        let Some(kind) = place else { return Ok(Vec::new()) };
        let answers = answers_for(known, (space, kind), key).ok_or(impossible(NOT_LISTED))?;
        if let Some(apart) = known.apart().filter(|_| space != Space::Node) {
            return Err(Refused::Apart(apart));
        }
        self.check_bounds(by, answers, &unsigned)?;
        let mesh = known.cx.mesh;
        let mut written = Vec::new();
        for Unsigned { draft, apart } in unsigned {
            let Some(set) = self.sets(space).get_mut(draft.collection) else { continue };
            let mine = set.head(set.key(draft.id, key));
            let others = by.with.iter().filter_map(|other| set.head(set.key(draft.id, *other)));
            let known_stamps = mine.into_iter().chain(others).map(|head| head.stamp);
            let before = known_stamps.chain(Some(by.above)).max();
            let wall_us = match by.moment {
                Moment::Now => known.cx.now.wall_us,
                Moment::Then => 0,
            };
            let stamp = Stamp::after(wall_us, before);
            let is_final = set.collection().merge == Merge::Final && draft.body.is_none();
            let stamp = if is_final { stamp.for_ever() } else { stamp };
            let told = apart.as_deref().map(Apart::of);
            let record = cover.write(draft, key, stamp).sign_with(told, signer, mesh, stamp);
            let record = record.map_err(|short| Refused::Impossible(short.to_string()))?;
            if !set.wants(&record.head(mesh), answers) {
                // A record that others have signed for a time to come, or this node before its clock was set back.
                return Err(if set.collection().family().is_some() {
                    Refused::Account(AccountRefused::Behind)
                } else {
                    impossible("the clock of this node is behind the records of this key")
                });
            }
            written.push((record, apart));
        }
        let stamps = written.iter().map(|(record, _)| record.stamp).collect();
        let mut told = Vec::new();
        for (record, apart) in written {
            let (collection, id, hash) =
                (record.collection, record.id, record.apart.map(|apart| apart.hash));
            self.take(known, record.clone(), answers);
            told.push(record);
            if let (Some(hash), Some(bytes)) = (hash, apart) {
                let key = RecordKey { id, owner: Some(key) };
                self.contents.hold(known, Name { space, collection, key }, (hash, bytes.into()));
            }
        }
        tell(known, space, told);
        Ok(stamps)
    }

    /// A client's records are refused before a set drops others for them, but for those of owners that have more than their fair
    /// share.
    fn check_bounds(
        &self,
        by: &Writing<'_>,
        answers: NodeId,
        unsigned: &[Unsigned],
    ) -> Result<(), Refused> {
        for set in self.spaces.get(&by.space).into_iter().flat_map(|sets| sets.iter()) {
            let kind = set.collection();
            let is_new = |Unsigned { draft, .. }: &&Unsigned| {
                draft.collection == kind.number && set.head(set.key(draft.id, by.key)).is_none()
            };
            let new = unsigned.iter().filter(is_new).count();
            if new == 0 || kind.forgets() {
                continue;
            }
            let (of_key, of_node) = (set.count_of(by.key), set.count_at(answers));
            let (whose, count, max) = if of_key + new > kind.owner_max {
                ("the key", of_key, kind.owner_max)
            } else if set.has_room_at(answers, by.key, new) {
                continue;
            } else {
                ("the node that minted the key", of_node, kind.node_max)
            };
            let text = format!(
                "{whose} has {count} records of {}, deleted ones included, and may have {max}",
                kind.name
            );
            return Err(Refused::Full(text));
        }
        Ok(())
    }
}

fn unsigned(drafts: Vec<Draft>) -> Vec<Unsigned> {
    drafts.into_iter().map(Unsigned::from).collect()
}

/// The place of the records of a room, if this key writes them: it has made the room, or the room is a direct or a shared one
/// of its own.
pub(super) fn place_for(known: &Known, key: KeyPrint, room: RoomId) -> Result<Shelf, Refused> {
    let at = place_in(known, room)?;
    let keys = known.directory.proofs().keys_of_room(room);
    if is_of(known, key, room) { Ok(Shelf { at, keys }) } else { Err(Refused::NotYours) }
}

/// The place of the records of a room that may have some.
pub(super) fn place_in(known: &Known, room: RoomId) -> Result<RoomPlace, Refused> {
    if room == RoomId::lobby(known.cx.mesh) {
        return Err(impossible(LOBBY));
    }
    let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
    state.replica.record.place_of_records(room).ok_or(impossible(EPHEMERAL))
}

/// Whether a room is a key's own: it has made it, or has come after the key that did, or the room is a direct or a shared one of its own.
pub(super) fn is_of(known: &Known, key: KeyPrint, room: RoomId) -> bool {
    // With a node that checks no keys nobody has one, and the signer is asked for next.
    let made = known.directory.room(room);
    let made = made.is_some_and(|made| known.directory.current(made.created.owner) == key);
    made || known.directory.proofs().keys_of_room(room).contains(&key)
}

/// Tells those who have the space of records, in messages of the size of gossip. Others that follow a key, and are not
/// connected, hear of them by comparing.
fn tell(known: &mut Known, space: Space, records: Vec<Record>) {
    match space {
        Space::Mesh => {
            for part in in_parts(records) {
                known.cx.broadcast(None, Message::Records(part));
            }
        }
        Space::Followers(group) => {
            let followers = known.cx.followers.of(group);
            let peers: Vec<NodeId> = followers.intersection(&known.cx.up).copied().collect();
            for part in in_parts(records) {
                for peer in &peers {
                    known.cx.send(*peer, Message::Records(part.clone()));
                }
            }
        }
        Space::Node => {}
    }
}

fn in_parts(records: Vec<Record>) -> Vec<Vec<Record>> {
    let mut parts: Vec<Vec<Record>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.size() + RECORD_OVERHEAD_BYTES;
        match parts.last_mut() {
            Some(part) if bytes + size <= RECORDS_BYTES_MAX => {
                bytes += size;
                part.push(record);
            }
            Some(_) | None => {
                bytes = size;
                parts.push(vec![record]);
            }
        }
    }
    parts
}

pub(super) fn impossible(text: &str) -> Refused {
    Refused::Impossible(text.to_owned())
}

static NOBODY: &BTreeSet<KeyPrint> = &BTreeSet::new();

const NO_KEY: &str = "this node checks no keys: nothing can be signed for you here";
const NOT_LISTED: &str = "your key is not in the mesh's directory, so other nodes could not check what it signs: the directory is full, or this node has no part in the mesh";
const NOT_OWNED: &str = "your key does not own your agent id, so nobody could check that the profile is yours: register with an id of your own";
const LOBBY: &str = "the lobby is no key's own: nobody can set anything of it";
const ALL_WRITE: &str = "`writers` and `files` are settings of public rooms: all keys that have this one write its files";
const EPHEMERAL: &str = "an ephemeral room ends with its members, and title, settings and files would not: make a permanent one";
