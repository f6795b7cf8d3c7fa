//! This machine is in another network, or has slept: the clocks of before mean nothing.

use std::time::Instant;

use libp2p::swarm::ConnectionId;

use super::{Book, Redial, Target};
use crate::limits::{DEAD_AFTER, DOUBTED_FOR, OFFLINE_MAX};
use crate::trouble::{NoLink, Trouble};

impl Book {
    /// All that is not connected is to be dialled now, and directly what is reached through a relay.
    /// `dialled`: what a dial is under way to; lookups of names have been given up.
    pub(crate) fn moved(&mut self, dialled: &[&Target], now: Instant) {
        for seed in &mut self.seeds {
            let under_way = dialled.contains(&&Target::Seed(seed.address.clone()));
            seed.redial.hurry(under_way, now);
        }
        for (node, peer) in &mut self.peers {
            peer.redial.hurry(dialled.contains(&&Target::Peer(*node)), now);
            peer.direct.hurry(dialled.contains(&&Target::Direct(*node)), now);
            peer.seat_again = None;
        }
    }

    /// Whether this machine seems to have no network: nobody is connected, and the system knows no way.
    pub(super) fn is_offline(&self, why: &NoLink) -> bool {
        let no_way = matches!(why.trouble, Trouble::Unreachable | Trouble::NameNotFound);
        no_way && self.connected_count() == 0
    }

    /// The connections of which the other ends have not heard for longer than they wait.
    pub(crate) fn slept(&self) -> Vec<ConnectionId> {
        self.peers.values().flat_map(|peer| peer.connections.keys().copied()).collect()
    }

    /// Every connection has to show a sign of life soon.
    pub(crate) fn doubt_all(&mut self, now: Instant) {
        let Some(doubted) = now.checked_sub(DEAD_AFTER - DOUBTED_FOR) else { return };
        let connections = self.peers.values_mut().flat_map(|peer| peer.connections.values_mut());
        connections.for_each(|connection| connection.alive = connection.alive.min(doubted));
    }
}

impl Redial {
    /// Without a network a dial costs nothing, and nobody says when there is one again.
    pub(super) fn fail_here(&mut self, offline: bool, now: Instant) {
        self.fail(now);
        if offline {
            self.next = self.next.map(|next| next.min(now + OFFLINE_MAX));
        }
    }

    /// Now, and soon again if that fails. One failure is remembered: then a relay is dialled with it.
    fn hurry(&mut self, under_way: bool, now: Instant) {
        self.failures = self.failures.min(1);
        self.under_way = under_way;
        self.next = None;
        if self.lost.is_some() {
            self.lost = Some(now);
        }
    }
}
