//! Ways through others: the nodes that there are without a direct connection, the peers at which this
//! node keeps a place so that such nodes reach it, and the relays through which it reaches them.

use std::collections::BTreeSet;
use std::time::Instant;

use libp2p::swarm::ConnectionId;

use super::peer::{Peer, Seat, Way};
use super::{Book, Due, Target};
use crate::identity::NodeId;
use crate::limits::{
    CARRIERS_MAX, DIALS_MAX, FULL_MESH_PEERS, MOVE_WITHIN, PLACE_AGAIN, PLACES, PLACES_MAX,
};
use crate::settings::Discovery;

impl Book {
    /// A peer says whether it carries circuits.
    pub(crate) fn carries(&mut self, node: &NodeId, carries: bool) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.carries = carries;
        }
    }

    /// Peers that a place is to be asked of now. None while all that are known to be there are
    /// connected directly; one or two otherwise, those that the operator named, and then those that
    /// know most of the others; and more, if there are nodes that none of these knows.
    pub(crate) fn places_to_ask(&mut self, now: Instant) -> Vec<NodeId> {
        let mut asked = Vec::new();
        if self.discovery == Discovery::Configured || self.connected_count() >= FULL_MESH_PEERS {
            return asked;
        }
        let apart = self.apart();
        while let Some(relay) = self.next_place(&apart, now) {
            if let Some(peer) = self.peers.get_mut(&relay) {
                peer.seat = Seat::Asked;
            }
            asked.push(relay);
        }
        asked
    }

    fn next_place(&self, apart: &BTreeSet<NodeId>, now: Instant) -> Option<NodeId> {
        let seats = self.peers.values().filter(|peer| peer.seat != Seat::None);
        let (mut count, mut missing) = (0, apart.clone());
        for relay in seats {
            count += 1;
            missing.retain(|node| !relay.links.contains(node));
        }
        if count >= PLACES_MAX {
            return None;
        }
        // The first ones for all, the later ones for those that have no way yet.
        let wanted = if count < PLACES { apart } else { &missing };
        let free = self.peers.iter().filter(|(_, peer)| {
            peer.carries
                && peer.is_direct()
                && peer.seat == Seat::None
                && peer.seat_again.is_none_or(|again| again <= now)
        });
        let known = |peer: &Peer| wanted.intersection(&peer.links).count();
        let useful = free.map(|(node, peer)| (peer, known(peer), *node));
        let useful = useful.filter(|(_, known, _)| *known > 0);
        // Those that the operator named before all others: a peer can say that it knows everybody.
        let best = useful.max_by_key(|(peer, known, node)| (peer.is_configured(), *known, *node));
        best.map(|(_, _, node)| node)
    }

    /// Nodes of which peers say that they are connected to them, and that are not to this one.
    fn apart(&self) -> BTreeSet<NodeId> {
        let said = self.peers.values().filter(|peer| peer.is_direct()).flat_map(|peer| &peer.links);
        let direct = |node: &NodeId| self.peers.get(node).is_some_and(Peer::is_direct);
        said.filter(|node| **node != self.me && !direct(node) && !self.shut_out.contains(*node))
            .copied()
            .collect()
    }

    /// There is a place at this relay.
    pub(crate) fn place_held(&mut self, relay: &NodeId) {
        if let Some(peer) = self.peers.get_mut(relay) {
            peer.seat = Seat::Held;
        }
    }

    /// There is none any more, or it was refused.
    pub(crate) fn place_lost(&mut self, relay: &NodeId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(relay) {
            peer.seat = Seat::None;
            peer.seat_again = Some(now + PLACE_AGAIN);
        }
    }

    /// The relays through which this node is reached.
    pub(super) fn places(&self) -> Vec<NodeId> {
        let held = self.peers.iter().filter(|(_, peer)| peer.seat == Seat::Held);
        let mut held: Vec<NodeId> = held.map(|(node, _)| *node).collect();
        held.sort_unstable();
        held
    }

    /// The relay through which a peer is to be dialled next: they take turns, as one may carry
    /// nothing. A relay speaks for itself alone: so a liar has one turn, and takes none of others.
    pub(super) fn relay_to(&self, peer: &Peer) -> Option<NodeId> {
        let usable = |relay: &&NodeId| {
            **relay != self.me && self.peers.get(*relay).is_some_and(Peer::is_direct)
        };
        let said = peer.relays.iter().chain(&peer.carriers).filter(usable);
        let tried = |relay: &NodeId| peer.tried.iter().position(|tried| tried == relay);
        // Those that were not tried yet come first.
        said.min_by_key(|relay| tried(relay)).copied()
    }

    /// The nodes that are reached through `from`, as it says itself: these, and no others any more.
    pub(super) fn carries_to(&mut self, from: &NodeId, reached: &BTreeSet<NodeId>) {
        for (node, peer) in &mut self.peers {
            if !reached.contains(node) {
                peer.carriers.remove(from);
            } else if peer.carriers.len() < CARRIERS_MAX {
                peer.carriers.insert(*from);
            }
        }
    }

    /// Peers that are reached through a relay alone, and are to be dialled directly now.
    pub(super) fn due_directly(&mut self, room: usize, now: Instant) -> Vec<Due> {
        let shut_out = &self.shut_out;
        let due = self.peers.iter_mut().filter(|(node, peer)| {
            peer.wants_direct() && peer.direct.is_due(now) && !shut_out.contains(*node)
        });
        due.take(room.min(DIALS_MAX))
            .map(|(node, peer)| {
                peer.direct.under_way = true;
                let addresses = peer.places();
                Due { target: Target::Direct(*node), addresses, relay: None }
            })
            .collect()
    }

    /// Circuits that are there for long beside a direct connection.
    pub(crate) fn circuits_left(&self, now: Instant) -> Vec<ConnectionId> {
        let moved = |peer: &Peer| peer.newest().is_some_and(|it| now - it.since >= MOVE_WITHIN);
        let moved = self.peers.iter().filter(|(_, peer)| moved(peer));
        moved.flat_map(|(node, _)| self.circuits_beside(node)).collect()
    }

    /// Circuits to a peer that now has a direct connection: nothing new is to be said over them.
    pub(crate) fn circuits_beside(&self, node: &NodeId) -> Vec<ConnectionId> {
        let Some(peer) = self.peers.get(node) else { return Vec::new() };
        if !peer.newest().is_some_and(|newest| matches!(newest.way, Way::Direct(_))) {
            return Vec::new();
        }
        let relayed = peer.connections.iter().filter(|(_, it)| matches!(it.way, Way::Relayed(_)));
        relayed.map(|(id, _)| *id).collect()
    }
}
