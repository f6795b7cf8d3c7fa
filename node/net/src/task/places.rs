//! Places at relays, through which nodes reach this one that have no direct way; and the ways of
//! connections.

use std::fmt::Debug;
use std::time::Instant;

use libp2p::core::ConnectedPoint;
use libp2p::core::transport::ListenerId;
use libp2p::relay::client;
use libp2p::swarm::ConnectionId;

use super::Task;
use crate::book::{Place, Way};
use crate::circuit;
use crate::gate::is_same_machine;
use crate::identity::{NodeId, node_of, short};

impl Task {
    pub(super) fn ask_for_places(&mut self, now: Instant) {
        let relays = self.shared.book().places_to_ask(now);
        for relay in relays {
            let place = circuit::place_at(&relay).map(|place| self.swarm.listen_on(place));
            match place {
                Some(Ok(listener)) => {
                    self.places.insert(listener, relay);
                }
                Some(Err(_)) | None => self.shared.book().place_lost(&relay, now),
            }
        }
    }

    pub(super) fn on_circuits(&mut self, event: &client::Event) {
        match event {
            client::Event::ReservationReqAccepted { relay_peer_id, .. } => {
                if let Some(relay) = node_of(relay_peer_id) {
                    self.shared.book().place_held(&relay);
                    self.announce_soon();
                }
            }
            client::Event::OutboundCircuitEstablished { .. }
            | client::Event::InboundCircuitEstablished { .. } => {}
        }
    }

    pub(super) fn on_place_lost(&mut self, listener: ListenerId, reason: impl Debug) {
        let Some(relay) = self.places.remove(&listener) else { return };
        tracing::debug!(relay = short(&relay), ?reason, "no place at a relay any more");
        self.shared.book().place_lost(&relay, Instant::now());
        self.announce_soon();
    }

    /// `None`: it came through a relay that has gone since, and the circuit with it.
    pub(super) fn way_of(&self, endpoint: &ConnectedPoint) -> Option<Way> {
        let remote = endpoint.get_remote_address();
        if !endpoint.is_relayed() {
            let here = is_same_machine(remote);
            return Some(Way::Direct(if here { Place::SameMachine } else { Place::Elsewhere }));
        }
        let relay = match circuit::carrying(endpoint) {
            Some(carrying) => {
                self.relays.get(&carrying).copied().or_else(|| circuit::relay_in(&carrying))
            }
            None => circuit::relay_in(remote),
        };
        relay.map(Way::Relayed)
    }

    /// The connections to a node that are over now that there is another one.
    pub(super) fn given_up(&self, node: &NodeId, endpoint: &ConnectedPoint) -> Vec<ConnectionId> {
        let mut book = self.shared.book();
        let mut gone = Vec::new();
        if endpoint.is_listener() {
            gone.extend(book.dialled_again(node, Instant::now()));
        }
        // A link that is up goes over to it first ([`LinkEvent::Moved`]).
        if book.peer(node).is_some_and(|peer| peer.up_since.is_none()) {
            gone.extend(book.circuits_beside(node));
        }
        gone
    }
}
