//! What every part of the engine has at hand during a turn: the time, what the node knows of itself
//! and of lanes, and the turn that is being made.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::{
        batch::{Change, NumberRange},
        boundary::{Alarm, Effect},
        event::{Delivered, RoomEvent},
        status::Faults,
    },
    directory::removals::Removals,
    engine::noise::Noise,
    limits::BLAMED_MAX,
    name::{
        id::{KeyPrint, LocalRef, LogId, MeshId, NodeId, RoomId},
        number::{Era, Number},
        time::Now,
    },
    presence::followers::Followers,
    wire::{
        entry::{Body, Facts, Stored},
        message::Message,
        run::{Certificate, Run, Verified},
        seal::Seal,
    },
};

/// A directory entry that has just become known.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) room: RoomId,
    pub(crate) at: LocalRef,
    pub(crate) log: LogId,
    pub(crate) facts: Facts,
    pub(crate) body: Body,
}

/// A number that an entry of a directory got, beside those it had.
#[derive(Debug)]
pub(crate) struct Renumbered {
    pub(crate) room: RoomId,
    pub(crate) at: LocalRef,
    pub(crate) number: Number,
}

/// What became of a number, in the order of numbers within a room.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Its entry was delivered.
    Entry { room: RoomId, it: Delivered, numbers: NumberRange },
    /// It was passed over: its entry is here, and was delivered before.
    Again { room: RoomId, number: Number, at: LocalRef },
}

/// The proof that a log forked.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub(crate) certificate: Certificate,
    pub(crate) run: Verified,
}

impl Proof {
    /// Two histories of one log: a seal over a place, and a run that has another header there.
    pub(crate) fn holds(&self) -> bool {
        let (seal, run) = (&self.certificate, self.run.run());
        seal.seq > 0
            && (seal.room, seal.log) == (run.room, run.log)
            && self.run.hash_at(seal.seq).is_some_and(|hash| hash != seal.hash)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Now,
    pub(crate) me: NodeId,
    pub(crate) mesh: MeshId,
    /// Where this node's own keys and private rooms are listed.
    pub(crate) private_directory: RoomId,
    pub(crate) boot: u64,
    /// The numbers of an era that may be used: less than its capacity only in simulations.
    pub(crate) era_capacity: Option<u64>,
    /// What is younger is never taken without its body. Milliseconds.
    pub(crate) retention_min_ms: u64,
    /// Every lane that a node entered in the directory.
    pub(crate) lanes: BTreeMap<NodeId, BTreeSet<u32>>,
    /// The newest of this node's own.
    pub(crate) my_lane: Option<u32>,
    /// Connected peers.
    pub(crate) up: BTreeSet<NodeId>,
    /// Authors from whom nothing more is accepted.
    pub(crate) forked: BTreeSet<NodeId>,
    /// The same, in private rooms of these keys alone: who does not have the key cannot know of it.
    pub(crate) forked_for: BTreeMap<KeyPrint, BTreeSet<NodeId>>,
    /// Nodes that have no part any more, and how far their logs count.
    pub(crate) parted: Removals,
    /// This node itself has none: it writes nothing more.
    pub(crate) out: bool,
    /// Who has which private rooms.
    pub(crate) followers: Followers,
    /// Bytes of bodies kept warm, over all rooms.
    pub(crate) warm_bytes: usize,
    /// Bytes of pending runs, over all rooms.
    pub(crate) pending_bytes: usize,
    /// Content bytes of ephemeral rooms.
    pub(crate) ephemeral_bytes: usize,
    pub(crate) faults: Faults,
    /// Who wrote what is counted there: at most [`BLAMED_MAX`].
    pub(crate) blamed: BTreeMap<NodeId, Faults>,
    pub(crate) noise: Noise,

    pub(crate) batch: Vec<Change>,
    pub(crate) effects: Vec<Effect>,
    /// To be folded by the directory before the turn ends.
    pub(crate) facts: Vec<Fact>,
    /// Of directories: numbers from which on none of their eras counts, that did until now.
    pub(crate) lost: Vec<(RoomId, Number)>,
    pub(crate) renumbered: Vec<Renumbered>,
    pub(crate) arrived: Vec<Arrived>,
    pub(crate) proofs: Vec<Proof>,
    /// Eras this node claimed in ephemeral rooms.
    pub(crate) ephemeral_claims: Vec<(RoomId, Era)>,
    /// `HandedOver` entries that name this node's log: room, era, the log it came from.
    pub(crate) handed_to_me: Vec<(RoomId, Era, LogId)>,
    /// Rooms in which something may have become possible or due.
    pub(crate) active: BTreeSet<RoomId>,
}

impl Context {
    pub(crate) fn change(&mut self, change: Change) {
        self.batch.push(change);
    }

    pub(crate) fn send(&mut self, to: NodeId, message: Message) {
        self.effects.push(Effect::Send { to, message });
    }

    pub(crate) fn broadcast(&mut self, room: Option<RoomId>, message: Message) {
        debug_assert!(message.may_be_gossiped(), "nobody would take it: {message:?}");
        self.effects.push(Effect::Broadcast { room, message });
    }

    pub(crate) fn notify(&mut self, room: RoomId, event: RoomEvent) {
        self.effects.push(Effect::Notify { room, event });
    }

    pub(crate) fn alarm(&mut self, alarm: Alarm) {
        self.effects.push(Effect::Alarm(alarm));
    }

    /// Counts something against its author: what is signed, nobody else can have made up.
    pub(crate) fn blame(&mut self, author: NodeId, count: fn(&mut Faults) -> &mut u64) {
        *count(&mut self.faults) += 1;
        if self.blamed.len() >= BLAMED_MAX && !self.blamed.contains_key(&author) {
            // Authors can be made up: who did most is who is shown.
            let least = self.blamed.iter().min_by_key(|(_, it)| it.total()).map(|(node, _)| *node);
            least.and_then(|node| self.blamed.remove(&node));
        }
        *count(self.blamed.entry(author).or_default()) += 1;
        let known = Some(author).filter(|it| self.lanes.contains_key(it));
        if author != self.me && self.noise.add(known, self.now.mono) {
            self.effects.push(Effect::Noisy(known));
        }
    }

    /// The lane this node claims eras in, once it has one.
    pub(crate) fn lane(&self) -> Option<u32> {
        self.my_lane
    }

    /// Authors from whom nothing more is accepted in a room with this seal. What a room's folds have
    /// of it, they have from here: when it is made, and whenever one more is shut out of it.
    pub(crate) fn forked_in(&self, seal: Option<&Seal>) -> impl Iterator<Item = NodeId> + '_ {
        let here = seal.and_then(|seal| self.forked_for.get(&seal.owner));
        self.forked.iter().chain(here.into_iter().flatten()).copied()
    }

    /// Authors of whom nothing counts in the elections of such a room: others may know more of what they
    /// wrote, or less.
    pub(crate) fn unheard_in(&self, seal: Option<&Seal>) -> BTreeSet<NodeId> {
        self.forked_in(seal).chain(self.parted.nodes()).collect()
    }

    /// How many numbers of `era` may be given.
    pub(crate) fn capacity(&self, era: Era) -> u64 {
        self.era_capacity.map_or(era.capacity(), |less| less.min(era.capacity()))
    }
}

/// An entry as the store keeps it, before its run's ends are known.
pub(crate) fn stored(facts: Facts, body: &[u8]) -> Stored {
    Stored { facts, body: body.to_vec().into(), backlink: None, seal: None, gone: None }
}

/// What is sent of a verified run.
pub(crate) fn sent(run: &Verified) -> Run {
    run.run().clone()
}
