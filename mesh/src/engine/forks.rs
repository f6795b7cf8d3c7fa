//! Forks: proofs that a log forked, and passing them on.

use std::collections::BTreeSet;

use super::known::Known;
use crate::{
    api::{batch::Change, boundary::Alarm},
    limits::PROOFS_MAX,
    name::{
        group::Group,
        id::{LogId, NodeId, RoomId},
    },
    turn::happened::Proof,
    wire::{
        message::{Head, Message},
        run::{Certificate, Run},
    },
};

/// Proofs of forks in answer to one message: a small question has no large answer.
const PROOFS_AT_ONCE_MAX: usize = 4;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Forks {
    /// For peers that have not heard of them.
    pub(super) proofs: Vec<Message>,
}

/// A fork that was not known until now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    pub(super) room: RoomId,
    pub(super) log: LogId,
    /// From here on neither branch counts.
    pub(super) seq: u64,
    /// The group of the private rooms in which it counts. `None`: it counts in all.
    pub(super) group: Option<Group>,
    /// It counts in this room alone, which is memory only.
    pub(super) memory: bool,
}

impl Fork {
    /// Whether nothing of the author counts in a room.
    pub(super) fn counts_in(self, known: &Known, other: RoomId) -> bool {
        if self.memory {
            other == self.room
        } else {
            self.group.is_none() || self.group == known.sealed_for(other)
        }
    }
}

impl Forks {
    /// Proofs that the store kept.
    pub(super) fn restore(&mut self, proofs: &[(Certificate, Run)]) {
        let proofs = proofs.iter().take(PROOFS_MAX);
        self.proofs.extend(
            proofs.map(|(certificate, run)| Message::Fork(*certificate, Box::new(run.clone()))),
        );
    }

    /// An ephemeral room has ended.
    pub(super) fn forget(&mut self, room: RoomId) {
        self.proofs.retain(|certificate| !matches!(certificate, Message::Fork(certificate, _) if certificate.room == room));
    }

    /// Keeps a proof, tells it others, and takes nothing more from the author. `None`: it is known, or proves nothing.
    pub(super) fn take(&mut self, known: &mut Known, proof: &Proof) -> Option<Fork> {
        let Proof { certificate, run } = proof;
        let (room, log, seq) = (certificate.room, certificate.log, certificate.seq);
        let cut = known
            .rooms
            .get(&room)
            .and_then(|room| room.replica.logs.get(room.replica.logs.ix(log)?).fork);
        if cut.is_some_and(|cut| cut <= seq) {
            return None;
        }
        if !proof.holds()
            || !known.rooms.get(&room).is_some_and(|room| room.replica.logs.can_have(log))
        {
            known.cx.faults.stray += 1;
            return None;
        }
        known.cx.faults.forks += 1;
        known.cx.alarm(Alarm::Forked { author: log.author, room, seq });
        let run = Box::new(run.run().clone());
        known.cx.change(Change::Evidence { certificate: *certificate, run: run.clone() });
        let told = Message::Fork(*certificate, run);
        let group = known.sealed_for(room);
        if self.proofs.len() < PROOFS_MAX {
            self.proofs.push(told.clone());
        }
        // By gossip, to every peer, and later to each that comes up: it must not depend on one of them.
        let peers =
            known.rooms.get(&room).map(|room| room.replica.peers(&known.cx)).unwrap_or_default();
        for peer in peers {
            known.cx.send(peer, told.clone());
        }
        known.cx.broadcast(Some(room), told);
        let memory = known.is_memory(room);
        if !memory {
            distrust(known, group, log.author);
        }
        if let Some(room) = known.rooms.get_mut(&room) {
            if memory {
                room.shut_out(&mut known.cx, log.author);
            }
            room.quarantine(&mut known.cx, log, seq);
        }
        Some(Fork { room, log, seq, group, memory })
    }

    /// A peer still follows authors whose logs forked: it has not seen why not to. Or it lacks
    /// something: its runs may wait for entries that nobody gives any more. The proofs may have been
    /// lost, and those of a room that is memory only went with the memory of a node that restarted.
    pub(super) fn prove(&self, known: &mut Known, peer: NodeId, room: RoomId, heads: &[Head]) {
        let Some(state) = known.rooms.get(&room) else { return };
        let forked = |node: NodeId| state.replica.is_forked(&known.cx, node);
        let theirs: BTreeSet<NodeId> =
            heads.iter().map(|head| head.log.author).filter(|node| forked(*node)).collect();
        let any = known.is_memory(room)
            || known.cx.forked_in(state.replica.record.seal.as_ref()).next().is_some();
        let waits = any && state.replica.logs.are_ahead_of(heads);
        if theirs.is_empty() && !waits {
            return;
        }
        let sealed = known.sealed_for(room);
        let counts_here = |other: RoomId| {
            let group = known.sealed_for(other);
            other == room || !known.is_memory(other) && (group.is_none() || group == sealed)
        };
        let mut needed = self.within(counts_here);
        needed.retain(|proof| {
            let Message::Fork(certificate, _) = proof else { return false };
            waits || theirs.contains(&certificate.log.author)
        });
        if needed.is_empty() {
            return;
        }
        // Which of them are news to the peer is not known: others the next time.
        let from = usize::try_from(known.cx.now.mono.as_secs()).unwrap_or(0) % needed.len();
        needed.rotate_left(from);
        for proof in needed.into_iter().take(PROOFS_AT_ONCE_MAX) {
            known.cx.send(peer, proof);
        }
    }

    /// Proofs of forks in the rooms that everybody has, or in those of a group. Rooms that are memory only
    /// are left out: a fork there counts in that room alone.
    pub(super) fn of(&self, known: &Known, group: Option<Group>) -> Vec<Message> {
        self.within(|room| !known.is_memory(room) && known.sealed_for(room) == group)
    }

    /// Proofs of forks in these rooms.
    fn within(&self, which: impl Fn(RoomId) -> bool) -> Vec<Message> {
        let there = |certificate: &&Message| matches!(certificate, Message::Fork(certificate, _) if which(certificate.room));
        self.proofs.iter().filter(there).cloned().collect()
    }
}

/// Nothing more is taken from this author: in the private rooms of a group, if it forked its log in one
/// of these (a node without the secret cannot know of it, and would go on without the others), else
/// in all rooms.
pub(super) fn distrust(known: &mut Known, group: Option<Group>, author: NodeId) {
    match group {
        Some(group) => known.cx.forked_for.entry(group).or_default().insert(author),
        None => known.cx.forked.insert(author),
    };
    for room in known.rooms.values_mut() {
        let of_room = room.replica.record.seal.as_ref().map(|seal| seal.group);
        if group.is_none() || group == of_room {
            room.shut_out(&mut known.cx, author);
        }
    }
}
