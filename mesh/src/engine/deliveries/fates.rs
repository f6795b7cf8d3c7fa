//! The fate of the requests of direct rooms, for readers on any thread. It is judged when it is looked at, as proofs are:
//! the words of nodes, by the keys that they were shown.

#![expect(
    clippy::disallowed_types,
    reason = "the engine alone writes; readers of history look at each message, and must not ask the engine for that"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    api::delivery::{Delivery, Stage},
    directory::proofs::Proofs,
    fold::deliveries::Words,
    name::{
        group::Sides,
        id::{AgentId, EntryRef, NodeId, RoomId},
    },
};

/// A handle to what is known; clones are of the same.
#[derive(Clone, Debug)]
pub struct Fates {
    rooms: Arc<RwLock<BTreeMap<RoomId, OfRoom>>>,
    proofs: Proofs,
}

#[derive(Clone, Debug)]
struct OfRoom {
    sides: Sides,
    requests: BTreeMap<EntryRef, OfRequest>,
}

#[derive(Clone, Debug, Default)]
struct OfRequest {
    words: Words,
    /// As each of the two sides is known to have been asked: how far the request had come when that was looked at last.
    noted: BTreeMap<AgentId, Stage>,
}

/// A request of which something has become known.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The agent that is asked.
    pub(super) to: AgentId,
    pub(super) before: Option<Stage>,
    pub(super) now: Delivery,
}

impl Fates {
    pub(super) fn new(proofs: Proofs) -> Fates {
        Fates { rooms: Arc::default(), proofs }
    }

    /// The same, judged by these proofs, and known to others from now on by itself.
    pub(in crate::engine) fn copied(&self, proofs: &Proofs) -> Fates {
        let rooms = Arc::new(RwLock::new(self.read().clone()));
        Fates { rooms, proofs: proofs.clone() }
    }

    /// The fate of a request of this agent. `None`: nothing is known, or it is none.
    #[must_use]
    pub fn of(&self, room: RoomId, request: EntryRef, by: &str) -> Option<Delivery> {
        let rooms = self.read();
        let known = rooms.get(&room)?;
        let words = &known.requests.get(&request)?.words;
        known.sides.iter().find(|(agent, _)| ***agent == *by)?;
        self.judged(words, request, known.sides.peer_of(by))
    }

    /// How many different words on requests of a room count or not that a node has said.
    #[must_use]
    pub fn said_by(&self, room: RoomId, node: NodeId) -> usize {
        let rooms = self.read();
        let requests = rooms.get(&room).into_iter().flat_map(|known| known.requests.values());
        requests.map(|of| of.words.count_of(node)).sum()
    }

    fn judged(&self, words: &Words, request: EntryRef, to: &AgentId) -> Option<Delivery> {
        let keys = self.proofs.keys();
        words.judged(request, to, |spoken| keys.speaks_for(spoken))
    }

    /// These are the words on a request now. Returns how far it has come since they were looked at last: for either side, for
    /// nothing but the request itself says which of the two is asked.
    pub(super) fn set(
        &self,
        (room, sides): (RoomId, &Sides),
        request: EntryRef,
        words: Option<&Words>,
    ) -> Vec<Step> {
        let mut rooms = self.write();
        let Some(words) = words else {
            if let Some(known) = rooms.get_mut(&room) {
                known.requests.remove(&request);
            }
            return Vec::new();
        };
        let known = rooms
            .entry(room)
            .or_insert_with(|| OfRoom { sides: sides.clone(), requests: BTreeMap::new() });
        let of = known.requests.entry(request).or_default();
        of.words = words.clone();
        let mut steps = Vec::new();
        for (to, _) in known.sides.iter() {
            let Some(now) = self.judged(words, request, to) else { continue };
            let before = of.noted.insert(to.clone(), now.stage);
            if before != Some(now.stage) {
                steps.push(Step { to: to.clone(), before, now });
            }
        }
        steps
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<RoomId, OfRoom>> {
        // No writer leaves it in between.
        self.rooms.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<RoomId, OfRoom>> {
        self.rooms.write().unwrap_or_else(PoisonError::into_inner)
    }
}
