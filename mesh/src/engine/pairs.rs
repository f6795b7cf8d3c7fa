//! Pairs of keys: which of them are followed here, and opening direct rooms (`docs/decisions/pairs.md`).
//!
//! A node to which a key was presented holds the key's mailbox. From a record of the mesh it hears that another key has
//! begun a pair with it, derives the pair's secret, and follows the pair's rooms as those of a key.

pub(super) mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{digests::Digests, known::Known, private::Private, records::Records};
use crate::{
    api::command::{CallId, Caller, Outcome, Refused},
    limits::{DIRECT_ROOMS_PER_PAIR_MAX, MAILBOXES_MAX, PAIRS_FOLLOWED_MAX},
    name::{
        agent::Belongs,
        group::{Group, Pair, Side, TaskSeed, direct_room},
        id::{AgentId, KeyPrint, RoomId, RoomKey},
        key::{KeyHalves, KeySecret, Mailbox, ShortKey},
    },
    records::pair,
    wire::{
        entry::{Body, DirectOpened},
        seal::{Inheritance, Seal},
    },
};

/// A mailbox that is held here.
#[derive(Clone, Debug)]
struct Held {
    secret: Mailbox,
    public: [u8; 32],
}

/// The parts that have to do with following a group.
#[derive(Debug)]
pub(super) struct Following<'e> {
    pub(super) private: &'e mut Private,
    pub(super) digests: &'e mut Digests,
}

/// A direct room that an agent wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) call: CallId,
    pub(super) caller: Caller,
    pub(super) signer: Option<Arc<KeySecret>>,
    pub(super) with: AgentId,
    /// The room is for a task.
    pub(super) task: Option<TaskSeed>,
}

/// An opened room, whose opener is answered when the turn's entries are folded.
#[derive(Clone, Debug)]
struct Opened {
    call: CallId,
    room: RoomId,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Mailboxes of keys that were presented here: at most [`MAILBOXES_MAX`].
    held: BTreeMap<KeyPrint, Held>,
    /// Keys of which it is to be looked whether others have begun pairs with them.
    new: BTreeSet<KeyPrint>,
    /// Keys that are held here since just now: rooms that were given to them before have not been tried yet. Each is tried once,
    /// as it costs work on the curve.
    fresh: BTreeSet<KeyPrint>,
    /// How many keys' public halves were known when it was looked last.
    halves: usize,
    opened: Vec<Opened>,
}

impl Pairs {
    // Mailboxes.

    /// A key is presented, or was before a restart.
    pub(super) fn hold(&mut self, key: KeyPrint, mailbox: &Mailbox) {
        if self.held.contains_key(&key) || self.held.len() >= MAILBOXES_MAX {
            return;
        }
        let held = Held { secret: mailbox.clone(), public: mailbox.public() };
        self.held.insert(key, held);
        self.new.insert(key);
        self.fresh.insert(key);
    }

    /// Holds the mailboxes that are kept with the sealed directories of their keys.
    pub(super) fn restore(&mut self, known: &Known) {
        let seals = known.rooms.values().filter_map(|room| room.replica.record.seal.as_ref());
        for seal in seals {
            if let (Group::Key(key), Some(mailbox)) = (seal.group, &seal.mailbox) {
                self.hold(key, mailbox);
            }
        }
    }

    // Pairs that others have begun.

    /// Follows the pairs of which a record tells, and whose mailbox is held here: as many as may be followed.
    pub(super) fn follow_told(
        &mut self,
        known: &mut Known,
        records: &mut Records,
        mut following: Following<'_>,
    ) {
        let mut begun = Vec::new();
        for (owner, id) in records.take_new_pairs() {
            // It may have said so at another node: the other half is one of all that are known.
            if self.held.contains_key(&owner) {
                self.new.insert(owner);
            }
            let Some(halves) = known.directory.halves(owner) else { continue };
            let own = self.held.iter();
            let own = own.filter(|(_, held)| pair::id(&held.public, &halves.mailbox) == id);
            begun.extend(own.map(|(key, _)| (*key, owner)));
        }
        let halves = known.directory.halves_count();
        if halves != std::mem::replace(&mut self.halves, halves) {
            // The other half may have been unknown when the record came.
            self.new.extend(self.held.keys().filter(|key| records.owns_pairs(**key)));
        }
        while let Some(key) = self.new.pop_first() {
            self.inherit(known, &mut following, key);
            let others = self.told(known, records, key);
            begun.extend(others.into_iter().map(|other| (key, other)));
        }
        for (key, other) in begun {
            self.follow(known, &mut following, key, other);
        }
        self.follow_given(known, records, &mut following);
    }

    /// A key that is held here may have replaced another one: what opened that one's rooms is sealed to it.
    pub(super) fn note_successor(&mut self, known: &Known, key: KeyPrint) {
        let successor = known.directory.keys().successor(key);
        self.new.extend(successor.filter(|successor| self.held.contains_key(successor)));
    }

    /// Follows the rooms of the keys that one which is held here has replaced, as far as they were sealed to it.
    fn inherit(&mut self, known: &mut Known, following: &mut Following<'_>, key: KeyPrint) {
        let before = known.directory.keys().predecessors(key);
        for old in before {
            let Some(secrets) = self.open(known, key, old) else { continue };
            let group = Group::Key(old);
            following.private.follow(known, following.digests, group, &secrets.opener);
            // It may have replaced others itself.
            self.hold(old, &secrets.mailbox);
            keep(known, old, &secrets.mailbox);
        }
    }

    fn open(&self, known: &Known, key: KeyPrint, old: KeyPrint) -> Option<Inheritance> {
        let (own, halves) = (self.held.get(&key)?, known.directory.halves(old)?);
        let keys = known.directory.keys();
        let sealed = keys.sealed(old).filter(|_| !self.held.contains_key(&old))?;
        Inheritance::open(known.cx.mesh, &own.secret, &halves.mailbox, sealed)
    }

    /// The keys of which a record says that they and one that is held here are a pair, whichever of the two has signed it.
    fn told(&self, known: &Known, records: &Records, key: KeyPrint) -> Vec<KeyPrint> {
        let Some(own) = self.held.get(&key) else { return Vec::new() };
        let others = if records.owns_pairs(key) {
            known.directory.all_halves()
        } else {
            let owners = records.pair_owners();
            owners.filter_map(|owner| Some((owner, known.directory.halves(owner)?))).collect()
        };
        let is_told = |(other, halves): &(KeyPrint, KeyHalves)| {
            let id = pair::id(&own.public, &halves.mailbox);
            records.has_pair(*other, id) || records.has_pair(key, id)
        };
        others.into_iter().filter(is_told).map(|(other, _)| other).collect()
    }

    fn follow(
        &self,
        known: &mut Known,
        following: &mut Following<'_>,
        key: KeyPrint,
        other: KeyPrint,
    ) {
        let group = Group::Pair(Pair::of(key, other));
        if known.cx.followers.token(group).is_some() {
            return;
        }
        let halves = known.directory.halves(other);
        let secret = self
            .held
            .get(&key)
            .zip(halves)
            .and_then(|(own, halves)| own.secret.pair_secret(known.cx.mesh, &halves.mailbox));
        if let Some(opener) = secret {
            following.private.follow(known, following.digests, group, &opener);
        }
    }

    // Opening.

    /// Makes the direct room of the caller and another agent, or finds it. The caller is answered at the end of the turn.
    pub(super) fn open_direct(
        &mut self,
        known: &mut Known,
        records: &mut Records,
        following: Following<'_>,
        wanted: Wanted,
    ) {
        let call = wanted.call;
        match make(known, records, following, wanted) {
            Ok(room) => self.opened.push(Opened { call, room }),
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    /// Answers those who have opened a room in this turn.
    pub(super) fn answer(&mut self, known: &mut Known) {
        for Opened { call, room } in std::mem::take(&mut self.opened) {
            let view = known.view(room).map(Outcome::Room).ok_or(Refused::NoRoom);
            known.cx.reply(call, view);
        }
    }
}

fn make(
    known: &mut Known,
    records: &mut Records,
    following: Following<'_>,
    wanted: Wanted,
) -> Result<RoomId, Refused> {
    let Wanted { call: _, caller, signer, with, task } = wanted;
    let opening = Opening { task, ..Opening::new(known, &caller, signer.as_deref(), &with)? };
    if let Some(none) = known.takes_none_of(&opening.by, &opening.with) {
        return Err(Refused::TakesNone(none));
    }
    let group = opening.group;
    if !known.cx.followers.has_room_for(group) && known.cx.followers.token(group).is_none() {
        let text = format!(
            "this node follows the direct rooms of {PAIRS_FOLLOWED_MAX} pairs of keys, which is the most"
        );
        return Err(Refused::Full(text));
    }
    let [own, other] = [&opening.by, &opening.with].map(|side| side.halves.mailbox);
    let id = pair::id(&own, &other);
    if !group.keys().any(|key| records.has_pair(key, id)) {
        let draft = pair::draft(&own, &other);
        records.write_open(known, (caller.key, signer.as_deref()), draft)?;
    }
    following.private.follow(known, following.digests, group, &opening.opener);
    opening.list(known)
}

/// A direct room that is to be opened.
struct Opening {
    group: Group,
    opener: RoomKey,
    by: Side,
    with: Side,
    task: Option<TaskSeed>,
}

impl Opening {
    fn new(
        known: &Known,
        caller: &Caller,
        signer: Option<&KeySecret>,
        with: &AgentId,
    ) -> Result<Opening, Refused> {
        known.caller(caller)?;
        let key = key_of(known, caller, with).ok_or_else(|| Refused::NoAgent(with.clone()))?;
        let signer = signer.filter(|signer| signer.print() == caller.key);
        let signer = signer.ok_or_else(|| Refused::NoMailbox(NO_KEY.to_owned()))?;
        let own = signer.mailbox().map_err(|ShortKey| Refused::NoMailbox(SHORT.to_owned()))?;
        let halves = known.directory.halves(key).ok_or_else(|| no_mailbox(with))?;
        let opener = own.pair_secret(known.cx.mesh, &halves.mailbox);
        let opener = opener.ok_or_else(|| no_mailbox(with))?;
        let by = Side { agent: caller.agent.clone(), halves: signer.halves() };
        let group = Group::Pair(Pair::of(caller.key, key));
        let with = Side { agent: with.clone(), halves };
        Ok(Opening { group, opener, by, with, task: None })
    }

    /// Says in the pair's directory that the room is open, unless that says so.
    fn list(self, known: &mut Known) -> Result<RoomId, Refused> {
        let Opening { group, opener: _, by, with, task } = self;
        let id = direct_room(known.cx.mesh, &by, &with, task);
        if known.directory.direct.get(id).is_some() {
            return Ok(id);
        }
        let directory = known.cx.followers.directory(group).ok_or(Refused::NoRoom)?;
        if !known.directory.direct.has_room_for(directory, id) {
            let max = DIRECT_ROOMS_PER_PAIR_MAX;
            let text = format!(
                "agents of these two keys have {max} direct rooms, or this node as many as it can hold"
            );
            return Err(Refused::Full(text));
        }
        let room = known.rooms.get_mut(&directory).ok_or(Refused::NoRoom)?;
        if !room.is_writable(&known.cx) {
            return Err(known.not_writable(directory));
        }
        let body = Body::DirectOpened(DirectOpened { by, with, task });
        room.append(&mut known.cx, &body).ok_or(Refused::Closed)?;
        Ok(id)
    }
}

/// Keeps the mailbox of a key whose sealed directory is here over restarts.
pub(super) fn keep(known: &mut Known, key: KeyPrint, mailbox: &Mailbox) {
    let directory = known.cx.followers.directory(Group::Key(key));
    let room = directory.and_then(|id| known.rooms.get_mut(&id));
    let Some(room) = room else { return };
    let lacks = |seal: &&mut Seal| seal.mailbox.is_none();
    if room.replica.record.seal.as_ref().is_none_or(|seal| seal.mailbox.is_some()) {
        return;
    }
    if let Some(seal) = room.replica.edit_record().seal.as_mut().filter(lacks) {
        seal.mailbox = Some(mailbox.clone());
        known.cx.to_advance.insert(room.replica.id);
    }
}

/// The key that an agent belongs to now, as far as is known here. `None`: nobody knows such an agent.
pub(super) fn key_of(known: &Known, caller: &Caller, agent: &AgentId) -> Option<KeyPrint> {
    if caller.agent == *agent {
        return Some(caller.key);
    }
    let claimed = known.directory.owner(agent).map(|(key, _)| key);
    let drawn = || {
        let (_, record) = known.rosters.latest(agent)?;
        let key = known.directory.current(record.key);
        (known.directory.belongs(agent, key) == Belongs::Drawn).then_some(key)
    };
    claimed.or_else(drawn)
}

fn no_mailbox(agent: &AgentId) -> Refused {
    let text = format!(
        "the key of {agent} has no mailbox that the mesh knows: it is too short, or was shown to no node that checks keys"
    );
    Refused::NoMailbox(text)
}

const NO_KEY: &str =
    "this node checks no keys, and without one there is no secret with another agent's key";
const SHORT: &str = "your key is too short: its public half cannot be shown to others, who could guess the key by it";
