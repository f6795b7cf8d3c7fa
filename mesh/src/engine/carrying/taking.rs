//! This node as one for which others carry: it says how far it is, and takes in what it is given.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    engine::known::Known,
    limits::CARRY_OFFERS_MAX,
    name::id::{LogId, NodeId, RoomId},
    wire::{
        carry::Carrying,
        message::{Head, Message},
        seal::Token,
    },
};

/// Rooms of one carrier that are remembered: it offers them again.
const ROOMS_MAX: usize = 16 * CARRY_OFFERS_MAX;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    /// Members that a follower has asked to carry, as they have shown, and the rooms: at most [`ROOMS_MAX`] of each.
    offered: BTreeMap<NodeId, BTreeSet<RoomId>>,
    /// Those that have given something in this turn, with the records among it that need not be given again.
    given: BTreeMap<(NodeId, RoomId), BTreeMap<LogId, u64>>,
}

impl Taking {
    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.offered.remove(&peer);
    }

    /// A member carries rooms for this node. One that no follower has asked learns nothing.
    pub(super) fn on_offers(
        &mut self,
        known: &mut Known,
        from: NodeId,
        rooms: Vec<(RoomId, Token)>,
    ) {
        if !known.cx.up.contains(&from) {
            return;
        }
        for (room, pass) in rooms {
            let seal = known.rooms.get(&room).and_then(|room| room.replica.record.seal.as_ref());
            let opener = seal.and_then(|seal| known.cx.followers.opener(seal.group));
            let (mesh, me) = (known.cx.mesh, known.cx.me);
            if opener.is_none_or(|opener| Token::carries(mesh, opener, from, me) != pass) {
                continue;
            }
            let of_peer = self.offered.entry(from).or_default();
            if of_peer.len() < ROOMS_MAX || of_peer.contains(&room) {
                of_peer.insert(room);
                self.given.entry((from, room)).or_default();
            }
        }
    }

    /// A member has given something that it has carried: these records among it need not be given again.
    pub(super) fn note(&mut self, (from, room): (NodeId, RoomId), settled: Vec<(LogId, u64)>) {
        if self.offered.get(&from).is_some_and(|rooms| rooms.contains(&room)) {
            self.given.entry((from, room)).or_default().extend(settled);
        }
    }

    /// At the end of a turn: it is said with it, so it is durable by then.
    pub(super) fn tell(&mut self, known: &mut Known) {
        for ((carrier, room), records) in std::mem::take(&mut self.given) {
            let Some(of_room) = known.rooms.get(&room) else { continue };
            let mut heads = of_room.replica.logs.heads();
            heads.extend(records.into_iter().map(|(log, seq)| Head { log, seq }));
            known.cx.send(carrier, Message::Carrying(Carrying::Has { room, heads }));
        }
    }
}
