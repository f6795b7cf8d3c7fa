//! Contents that travel apart from their records: which ones belong to the records that are kept, and getting those that are
//! not here yet, from one peer after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use minicbor::bytes::ByteVec;

use super::{
    shares,
    shelves::{Moved, Shelf, Shelved, Shelves},
};
use crate::{
    api::{batch::Change, boundary::Effect, status::RecordStatus},
    engine::known::Known,
    limits::{CONTENT_ASKED_AGAIN, CONTENT_WAIT_DOUBLES, CONTENTS_ASKED_MAX},
    name::id::{Hash, KeyPrint, NodeId},
    wire::{
        contents::{SentContents, WantedContents},
        message::Message,
        record::{Apart, CollectionNumber, RecordId, RecordKey, Space},
    },
};

/// A record, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) space: Space,
    pub(super) collection: CollectionNumber,
    pub(super) key: RecordKey,
}

/// A content that is not here.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// It is asked for then.
    next: Duration,
    /// Which of the peers is asked. Rises.
    turn: usize,
    /// How often all peers have said that they lack it.
    rounds: u32,
}

/// A question that a peer has not answered.
#[derive(Clone, Debug)]
struct Question {
    since: Duration,
    names: Vec<Name>,
}

/// A content, as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) apart: Apart,
    /// Its place, where a node need not keep all.
    pub(super) at: Option<Shelved>,
}

/// Whether a content is here, as the store has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) held: bool,
    /// See [`Contents::copied`].
    pub(super) copied: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    /// Of all records that are kept and have one.
    known: BTreeMap<Name, Told>,
    /// Those of them that are not here, and are to be.
    missing: BTreeMap<Name, Missing>,
    /// Those of them for which there is no room here.
    left: BTreeSet<Name>,
    /// Those of them that have a place on a shelf, and of which another node has said that it has all.
    copied: BTreeSet<Name>,
    shelves: Shelves,
    /// Bytes of all of one owner in one space, here or not.
    bytes: BTreeMap<(Space, KeyPrint), u64>,
    /// One at a time for each peer.
    asked: BTreeMap<NodeId, Question>,
    /// Something can be asked for before the next tick.
    hurry: bool,
    /// Of those that have a place on a shelf: [`Contents::status`] is asked for often, and there can be many.
    counts: Counts,
}

/// For operators: how many contents are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    missing: usize,
    own_bytes: u64,
    carried_bytes: u64,
    /// Here, and not known to be at another node.
    alone: usize,
}

impl Counts {
    fn add(&mut self, one: Counts) {
        self.missing += one.missing;
        self.own_bytes += one.own_bytes;
        self.carried_bytes += one.carried_bytes;
        self.alone += one.alone;
    }

    fn take(&mut self, one: Counts) {
        self.missing -= one.missing;
        self.own_bytes -= one.own_bytes;
        self.carried_bytes -= one.carried_bytes;
        self.alone -= one.alone;
    }
}

impl Contents {
    /// None yet. `carry`: bytes that are kept for others.
    pub(super) fn new(carry: u64) -> Contents {
        Contents {
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
            left: BTreeSet::new(),
            copied: BTreeSet::new(),
            shelves: Shelves::new(carry),
            bytes: BTreeMap::new(),
            asked: BTreeMap::new(),
            hurry: false,
            counts: Counts::default(),
        }
    }

    /// As the store has it.
    pub(super) fn restore(&mut self, known: &mut Known, name: Name, told: Told, here: Here) {
        self.replace(name, Some(told));
        if !here.held {
            self.lack(known, name);
        }
        if here.copied {
            self.counted(name, |contents| contents.copied.insert(name));
        }
        self.shelve(known, name, told);
    }

    /// A record is in another state, or (`None`) has no such content any more. The bytes of the state before are dropped.
    pub(super) fn change(&mut self, known: &mut Known, name: Name, told: Option<Told>) {
        let before = self.known.get(&name).copied();
        if before == told {
            return;
        }
        self.replace(name, told);
        if before.map(|before| before.apart) != told.map(|told| told.apart) {
            self.let_go(known, name, before.is_some());
            self.counted(name, |contents| contents.left.remove(&name));
            if told.is_some() {
                self.lack(known, name);
            }
        }
        if let Some(before) = before.and_then(|before| before.at) {
            let moved = self.shelves.take(name, before);
            self.follow(known, moved);
        }
        if let Some(told) = told {
            self.shelve(known, name, told);
        }
    }

    /// From now on so many bytes of others are kept.
    pub(super) fn set_carry(&mut self, known: &mut Known, carry: u64) {
        let moved = self.shelves.set_carry(carry);
        self.follow(known, moved);
    }

    /// A content belongs to another shelf.
    pub(super) fn move_to(&mut self, known: &mut Known, name: Name, at: Shelved) {
        if let Some(told) = self.known.get(&name).copied() {
            self.change(known, name, Some(Told { at: Some(at), ..told }));
        }
    }

    fn shelve(&mut self, known: &mut Known, name: Name, told: Told) {
        if let Some(at) = told.at {
            let moved = self.shelves.put(name, at, told.apart.length);
            self.follow(known, moved);
        }
    }

    fn follow(&mut self, known: &mut Known, moved: Moved) {
        for name in moved.left {
            self.let_go(known, name, !self.left.contains(&name));
            self.counted(name, |contents| contents.left.insert(name));
        }
        for name in moved.kept {
            if self.counted(name, |contents| contents.left.remove(&name)) {
                self.lack(known, name);
            }
        }
    }

    /// Bytes are not wanted any more. `was_known`: they may be here.
    fn let_go(&mut self, known: &mut Known, name: Name, was_known: bool) {
        let was_missing = self.counted(name, |contents| {
            contents.copied.remove(&name);
            contents.missing.remove(&name).is_some()
        });
        if !was_missing && was_known && !self.left.contains(&name) {
            keep(known, name, None);
        }
    }

    fn lack(&mut self, known: &Known, name: Name) {
        let missing = Missing { next: known.cx.now.mono, turn: 0, rounds: 0 };
        self.counted(name, |contents| contents.missing.insert(name, missing));
        self.hurry = true;
    }

    fn replace(&mut self, name: Name, told: Option<Told>) {
        let before = self.counted(name, |contents| match told {
            Some(told) => contents.known.insert(name, told),
            None => contents.known.remove(&name),
        });
        let Some(owner) = name.key.owner else { return };
        let length = |told: Option<Told>| told.map_or(0, |told| u64::from(told.apart.length));
        let bytes = self.bytes.entry((name.space, owner)).or_default();
        *bytes = (*bytes + length(told)).saturating_sub(length(before));
        if *bytes == 0 {
            self.bytes.remove(&(name.space, owner));
        }
    }

    /// Bytes with this hash are here. Whether they were missing.
    pub(super) fn hold(
        &mut self,
        known: &mut Known,
        name: Name,
        (hash, bytes): (Hash, ByteVec),
    ) -> bool {
        let fits = self.known.get(&name).is_some_and(|told| told.apart.hash == hash);
        let is_new =
            fits && self.counted(name, |contents| contents.missing.remove(&name).is_some());
        if is_new {
            keep(known, name, Some(Arc::new(bytes)));
        }
        is_new
    }

    // Copies.

    /// Another node has all of a content that is here.
    fn note_copy(&mut self, known: &mut Known, name: Name) {
        let is_shelved = self.known.get(&name).is_some_and(|told| told.at.is_some());
        let is_shelved = is_shelved && self.is_held(&name);
        if is_shelved && self.counted(name, |contents| contents.copied.insert(name)) {
            let (mesh, Name { space, collection, key }) = (known.cx.mesh, name);
            known.cx.change(Change::Copied { mesh, space, collection, key });
        }
    }

    /// Whether its bytes are here.
    pub(super) fn is_held(&self, name: &Name) -> bool {
        self.known.contains_key(name)
            && !self.missing.contains_key(name)
            && !self.left.contains(name)
    }

    /// A peer says that it has them.
    pub(super) fn on_have(&mut self, known: &mut Known, names: impl Iterator<Item = Name>) {
        for name in names {
            self.note_copy(known, name);
        }
    }

    /// For operators, of contents that have a place on a shelf.
    pub(super) fn status(&self, of_accounts: Vec<(&'static str, usize)>) -> RecordStatus {
        debug_assert_eq!(self.counts, self.counted_anew(), "each change was counted");
        let Counts { missing, own_bytes, carried_bytes, alone } = self.counts;
        RecordStatus {
            of_accounts,
            missing,
            own_bytes,
            carried_bytes,
            alone,
            ..RecordStatus::default()
        }
    }

    /// Changes the state of one content, and counts it.
    fn counted<T>(&mut self, name: Name, change: impl FnOnce(&mut Contents) -> T) -> T {
        self.counts.take(self.count(&name));
        let changed = change(self);
        self.counts.add(self.count(&name));
        changed
    }

    fn count(&self, name: &Name) -> Counts {
        let mut one = Counts::default();
        let Some(Told { apart, at: Some(at) }) = self.known.get(name) else { return one };
        if self.missing.contains_key(name) {
            one.missing = 1;
        } else if !self.left.contains(name) {
            let bytes = match at.shelf {
                Shelf::Sent(_) | Shelf::Received(_) => &mut one.own_bytes,
                Shelf::Carried => &mut one.carried_bytes,
            };
            *bytes = apart.length.into();
            one.alone = usize::from(!self.copied.contains(name));
        }
        one
    }

    fn counted_anew(&self) -> Counts {
        let mut all = Counts::default();
        self.known.keys().for_each(|name| all.add(self.count(name)));
        all
    }

    // Bounds of clients.

    /// Bytes of an owner's contents in a space.
    pub(super) fn bytes_of(&self, space: Space, owner: KeyPrint) -> u64 {
        self.bytes.get(&(space, owner)).copied().unwrap_or_default()
    }

    /// The same of those whose names begin so.
    pub(super) fn bytes_about(
        &self,
        (space, collection): (Space, CollectionNumber),
        first: [u8; RecordId::SUBJECT_BYTES],
        owner: KeyPrint,
    ) -> u64 {
        let mut id = [0; 16];
        id[..RecordId::SUBJECT_BYTES].copy_from_slice(&first);
        let key = RecordKey { id: RecordId(id), owner: None };
        let from = self.known.range(Name { space, collection, key }..);
        let is_about = |name: &Name| {
            (name.space, name.collection) == (space, collection)
                && name.key.id.0.starts_with(&first)
        };
        let of_room = from.take_while(|(name, _)| is_about(name));
        let own = of_room.filter(|(name, _)| name.key.owner == Some(owner));
        own.map(|(_, told)| u64::from(told.apart.length)).sum()
    }

    /// Of this one content.
    pub(super) fn length(&self, name: &Name) -> u64 {
        self.known.get(name).map_or(0, |told| told.apart.length.into())
    }

    // Asking.

    /// Asks before the next tick, if something can be asked for.
    pub(super) fn hurry(&mut self, known: &mut Known) {
        if std::mem::take(&mut self.hurry) {
            self.ask(known);
        }
    }

    /// Asks peers for contents that are due: first for those that not all peers have said to lack. A member can sign many
    /// contents of which there are no bytes, and nobody is to wait for those.
    pub(super) fn ask(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        self.asked.retain(|_, question| now < question.since + CONTENT_ASKED_AGAIN);
        let mut questions = BTreeMap::new();
        for lacked in [false, true] {
            self.choose(known, lacked, &mut questions);
        }
        for (peer, names) in questions {
            let Some(Name { space, collection, .. }) = names.first().copied() else { continue };
            let keys = names.iter().map(|name| name.key).collect();
            let wanted = WantedContents { space, collection, keys };
            known.cx.send(peer, Message::WantContents(wanted));
            self.asked.insert(peer, Question { since: now, names });
        }
    }

    /// Which peer is asked for which contents. `lacked`: of those that all peers have said to lack, or of the others.
    fn choose(&mut self, known: &Known, lacked: bool, questions: &mut BTreeMap<NodeId, Vec<Name>>) {
        let now = known.cx.now.mono;
        let mut peers: BTreeMap<Space, Vec<NodeId>> = BTreeMap::new();
        let is_due = |missing: &Missing| missing.next <= now && (missing.rounds > 0) == lacked;
        for (name, missing) in self.missing.iter_mut().filter(|(_, missing)| is_due(missing)) {
            let of_space = peers.entry(name.space).or_insert_with(|| {
                let up = known.cx.up.iter().copied();
                up.filter(|peer| shares(known, *peer, name.space)).collect()
            });
            let Some(nth) = missing.turn.checked_rem(of_space.len()) else { continue };
            let peer = of_space[nth];
            let names = questions.entry(peer).or_default();
            let is_alike =
                |first: &Name| (first.space, first.collection) == (name.space, name.collection);
            let fits = names.len() < CONTENTS_ASKED_MAX && names.first().is_none_or(is_alike);
            if fits && !self.asked.contains_key(&peer) {
                names.push(*name);
                missing.next = now + CONTENT_ASKED_AGAIN;
                missing.turn = missing.turn.wrapping_add(1);
            }
        }
    }

    /// A peer's answer.
    pub(super) fn on_sent(&mut self, known: &mut Known, from: NodeId, sent: SentContents) {
        let SentContents { space, collection, contents, lacking } = sent;
        // Bytes that nobody asked for are not looked at.
        let Some(Question { names, .. }) = self.asked.remove(&from) else { return };
        let mut had = Vec::new();
        for content in contents {
            let name = Name { space, collection, key: content.key };
            if names.contains(&name) && self.hold(known, name, (content.hash, content.bytes)) {
                self.note_copy(known, name);
                had.push(content.key);
            }
        }
        let some = !had.is_empty();
        had.retain(|key| self.copied.contains(&Name { space, collection, key: *key }));
        if !had.is_empty() {
            // The giver knows from now on that it is not alone with them. It is sent when they are durable here.
            let have = WantedContents { space, collection, keys: had };
            known.cx.send(from, Message::HaveContents(have));
        }
        let lacking: BTreeSet<RecordKey> = lacking.into_iter().collect();
        let (now, me) = (known.cx.now.mono, space);
        let peers = known.cx.up.iter().filter(|peer| shares(known, **peer, me)).count().max(1);
        for name in names {
            let Some(missing) = self.missing.get_mut(&name) else { continue };
            if some && !lacking.contains(&name.key) {
                // There was no more room in the message.
                (missing.next, missing.turn) = (now, missing.turn.wrapping_sub(1));
            } else if missing.turn % peers == 0 {
                let times = 1 << missing.rounds.min(CONTENT_WAIT_DOUBLES);
                (missing.next, missing.rounds) =
                    (now + CONTENT_ASKED_AGAIN * times, missing.rounds + 1);
            } else {
                missing.next = now;
            }
        }
        self.hurry = true;
    }

    /// A peer wants some.
    pub(super) fn on_want(&self, known: &mut Known, from: NodeId, wanted: WantedContents) {
        let WantedContents { space, collection, keys } = wanted;
        let is_held = |key: &RecordKey| self.is_held(&Name { space, collection, key: *key });
        let keys: BTreeSet<RecordKey> = keys.into_iter().collect();
        let (keys, lacking) = keys.into_iter().partition(is_held);
        known.cx.effects.push(Effect::SendContents { to: from, space, collection, keys, lacking });
    }

    /// A peer is there, which may have what the others lack.
    pub(super) fn on_peer_up(&mut self, known: &Known) {
        for missing in self.missing.values_mut() {
            (missing.next, missing.rounds) = (missing.next.min(known.cx.now.mono), 0);
        }
        self.hurry = !self.missing.is_empty();
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.asked.remove(&peer);
    }
}

fn keep(known: &mut Known, name: Name, bytes: Option<Arc<ByteVec>>) {
    let Name { space, collection, key } = name;
    let mesh = known.cx.mesh;
    known.cx.change(Change::Content { mesh, space, collection, key, bytes });
}
