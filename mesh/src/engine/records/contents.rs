//! Contents that travel apart from their records: which ones belong to the records that are kept, and getting those that are
//! not here yet, from one peer after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use minicbor::bytes::ByteVec;

use super::shares;
use crate::{
    api::{batch::Change, boundary::Effect},
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
#[derive(Debug)]
struct Question {
    since: Duration,
    names: Vec<Name>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Of all records that are kept and have one.
    known: BTreeMap<Name, Apart>,
    /// Those of them that are not here.
    missing: BTreeMap<Name, Missing>,
    /// Bytes of all of one owner in one space, here or not.
    bytes: BTreeMap<(Space, KeyPrint), u64>,
    /// One at a time for each peer.
    asked: BTreeMap<NodeId, Question>,
    /// Something can be asked for before the next tick.
    hurry: bool,
}

impl Contents {
    /// As the store has it.
    pub(super) fn restore(&mut self, known: &Known, name: Name, apart: Apart, held: bool) {
        self.replace(name, Some(apart));
        if !held {
            self.lack(known, name);
        }
    }

    /// A record is in another state, or (`None`) has no such content any more. The bytes of the state before are dropped.
    pub(super) fn change(&mut self, known: &mut Known, name: Name, apart: Option<Apart>) {
        let before = self.replace(name, apart);
        if before == apart {
            return;
        }
        if self.missing.remove(&name).is_none() && before.is_some() {
            keep(known, name, None);
        }
        if apart.is_some() {
            self.lack(known, name);
        }
    }

    fn lack(&mut self, known: &Known, name: Name) {
        self.missing.insert(name, Missing { next: known.cx.now.mono, turn: 0, rounds: 0 });
        self.hurry = true;
    }

    fn replace(&mut self, name: Name, apart: Option<Apart>) -> Option<Apart> {
        let before = match apart {
            Some(apart) => self.known.insert(name, apart),
            None => self.known.remove(&name),
        };
        let Some(owner) = name.key.owner else { return before };
        let length = |apart: Option<Apart>| apart.map_or(0, |apart| u64::from(apart.length));
        let bytes = self.bytes.entry((name.space, owner)).or_default();
        *bytes = (*bytes + length(apart)).saturating_sub(length(before));
        if *bytes == 0 {
            self.bytes.remove(&(name.space, owner));
        }
        before
    }

    /// Bytes with this hash are here. Whether they were missing.
    pub(super) fn hold(
        &mut self,
        known: &mut Known,
        name: Name,
        (hash, bytes): (Hash, ByteVec),
    ) -> bool {
        let fits = self.known.get(&name).is_some_and(|apart| apart.hash == hash);
        let is_new = fits && self.missing.remove(&name).is_some();
        if is_new {
            keep(known, name, Some(Arc::new(bytes)));
        }
        is_new
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
        own.map(|(_, apart)| u64::from(apart.length)).sum()
    }

    /// Of this one content.
    pub(super) fn length(&self, name: &Name) -> u64 {
        self.known.get(name).map_or(0, |apart| apart.length.into())
    }

    // Asking.

    /// Asks before the next tick, if something can be asked for.
    pub(super) fn hurry(&mut self, known: &mut Known) {
        if std::mem::take(&mut self.hurry) {
            self.ask(known);
        }
    }

    /// Asks peers for contents that are due.
    pub(super) fn ask(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        self.asked.retain(|_, question| now < question.since + CONTENT_ASKED_AGAIN);
        let mut peers: BTreeMap<Space, Vec<NodeId>> = BTreeMap::new();
        let mut questions: BTreeMap<NodeId, Vec<Name>> = BTreeMap::new();
        for (name, missing) in self.missing.iter_mut().filter(|(_, missing)| missing.next <= now) {
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
        for (peer, names) in questions {
            let Some(Name { space, collection, .. }) = names.first().copied() else { continue };
            let keys = names.iter().map(|name| name.key).collect();
            let wanted = WantedContents { space, collection, keys };
            known.cx.send(peer, Message::WantContents(wanted));
            self.asked.insert(peer, Question { since: now, names });
        }
    }

    /// A peer's answer.
    pub(super) fn on_sent(&mut self, known: &mut Known, from: NodeId, sent: SentContents) {
        let SentContents { space, collection, contents, lacking } = sent;
        // Bytes that nobody asked for are not looked at.
        let Some(Question { names, .. }) = self.asked.remove(&from) else { return };
        let mut some = false;
        for content in contents {
            let name = Name { space, collection, key: content.key };
            some |= names.contains(&name) && self.hold(known, name, (content.hash, content.bytes));
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
        let is_held = |key: &RecordKey| {
            let name = Name { space, collection, key: *key };
            self.known.contains_key(&name) && !self.missing.contains_key(&name)
        };
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
