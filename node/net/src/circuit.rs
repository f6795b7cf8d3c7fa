//! Circuits: connections to a node through a third one that both are connected to (libp2p's circuit
//! relay, version 2). Key and noise run from end to end inside of it, so that the relay reads nothing
//! and can say nothing in the name of another.
//!
//! Only members are connected, so only members ask and are carried. A relay carries nothing over
//! what is a circuit itself: there is one relay between two nodes at most.

use std::num::NonZeroU32;

use libp2p::core::ConnectedPoint;
use libp2p::multiaddr::Protocol;
use libp2p::relay::{self, HOP_PROTOCOL_NAME};
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{Multiaddr, PeerId, identify};

use crate::identity::{NodeId, node_of, peer_of};
use crate::limits::{
    CIRCUIT_BURST, CIRCUIT_LASTS, CIRCUIT_REFILL, CIRCUITS_MAX, CIRCUITS_PER_PEER_MAX,
    RESERVATION_LASTS, RESERVED_MAX, RESERVED_PER_PEER_MAX,
};
use crate::settings::Relaying;

/// Whether an address goes through a relay.
pub(crate) fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// Where to listen for circuits through this relay, which is connected. Of its address no use is
/// made then; libp2p wants one.
pub(crate) fn place_at(relay: &NodeId) -> Option<Multiaddr> {
    let relay = peer_of(relay)?;
    let nowhere = Multiaddr::from(Protocol::Memory(1));
    Some(nowhere.with(Protocol::P2p(relay)).with(Protocol::P2pCircuit))
}

/// How to dial a node through this relay, which is connected.
pub(crate) fn through(relay: &NodeId, node: &NodeId) -> Option<Multiaddr> {
    Some(place_at(relay)?.with(Protocol::P2p(peer_of(node)?)))
}

/// The relay that an address names.
pub(crate) fn relay_in(address: &Multiaddr) -> Option<NodeId> {
    let before = address.iter().take_while(|part| *part != Protocol::P2pCircuit);
    let named =
        before.filter_map(|part| if let Protocol::P2p(peer) = part { Some(peer) } else { None });
    named.last().as_ref().and_then(node_of)
}

/// The address of the relay's own connection, under which a circuit from outside comes in.
pub(crate) fn carrying(endpoint: &ConnectedPoint) -> Option<Multiaddr> {
    match endpoint {
        ConnectedPoint::Listener { local_addr, .. } => {
            let before = local_addr.iter().take_while(|part| *part != Protocol::P2pCircuit);
            Some(before.collect())
        }
        ConnectedPoint::Dialer { .. } => None,
    }
}

/// Whether a peer carries circuits of others.
pub(crate) fn is_offered(info: &identify::Info) -> bool {
    info.protocols.contains(&HOP_PROTOCOL_NAME)
}

/// An address that all nodes have for libp2p, which offers no circuits without one. It is told to
/// nobody who could use it: nodes announce where they are themselves.
pub(crate) fn own_address(me: &PeerId) -> Multiaddr {
    Protocol::P2p(*me).into()
}

/// The part of the stack that carries circuits of others.
pub(crate) fn carrier(me: PeerId, relaying: Relaying) -> Toggle<relay::Behaviour> {
    match relaying {
        Relaying::Off => None.into(),
        // Without a bound of bytes: traffic of a mesh has no end.
        Relaying::Members => carrier_of(me, 0),
    }
}

/// `bytes`: after so many a circuit ends; 0 is never.
pub(crate) fn carrier_of(me: PeerId, bytes: u64) -> Toggle<relay::Behaviour> {
    let mut carrier = relay::Behaviour::new(me, config(bytes));
    carrier.set_status(Some(relay::Status::Enable));
    Some(carrier).into()
}

/// One whose places last as long as this.
#[cfg(test)]
pub(crate) fn brief_carrier(me: PeerId, lasts: std::time::Duration) -> Toggle<relay::Behaviour> {
    let config = relay::Config { reservation_duration: lasts, ..config(0) };
    let mut carrier = relay::Behaviour::new(me, config);
    carrier.set_status(Some(relay::Status::Enable));
    Some(carrier).into()
}

fn config(bytes: u64) -> relay::Config {
    let config = relay::Config {
        max_reservations: RESERVED_MAX,
        max_reservations_per_peer: RESERVED_PER_PEER_MAX,
        reservation_duration: RESERVATION_LASTS,
        // A member that asks again and again has other bounds: of its connections, and of these.
        reservation_rate_limiters: Vec::new(),
        max_circuits: CIRCUITS_MAX,
        max_circuits_per_peer: CIRCUITS_PER_PEER_MAX,
        max_circuit_duration: CIRCUIT_LASTS,
        max_circuit_bytes: bytes,
        circuit_src_rate_limiters: Vec::new(),
    };
    config
        .reservation_rate_per_peer(at_once(CIRCUIT_BURST), CIRCUIT_REFILL)
        .circuit_src_per_peer(at_once(CIRCUIT_BURST), CIRCUIT_REFILL)
}

fn at_once(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use libp2p::identity::Keypair;

    use super::*;
    use crate::limits::FULL_MESH_PEERS;

    #[test]
    fn places_and_circuits_last_for_hours_and_have_no_bound_of_bytes() {
        let config = config(0);
        let day = Duration::from_secs(24 * 3600);
        assert!(config.max_circuit_duration >= 7 * day);
        assert_eq!(config.max_circuit_bytes, 0);
        // A client renews its place when three quarters have passed; and clocks may differ.
        assert!(config.reservation_duration >= day / 24);
        assert!(config.reservation_duration < config.max_circuit_duration);
        assert_eq!((config.max_reservations, config.max_reservations_per_peer), (256, 3));
        assert!(config.max_reservations / config.max_reservations_per_peer > FULL_MESH_PEERS);
    }

    #[test]
    fn an_address_names_its_relay_and_is_told_from_others() {
        let id = |seed: u8| {
            let key = Keypair::ed25519_from_bytes([seed; 32]).unwrap();
            node_of(&key.public().to_peer_id()).unwrap()
        };
        let (relay, node) = (id(1), id(2));
        let address = through(&relay, &node).unwrap();
        assert!(is_relayed(&address) && is_relayed(&place_at(&relay).unwrap()));
        assert_eq!(relay_in(&address), Some(relay));
        let direct: Multiaddr = "/ip4/10.0.0.1/tcp/7".parse().unwrap();
        assert!(!is_relayed(&direct));
        let endpoint = ConnectedPoint::Listener {
            local_addr: direct.clone().with(Protocol::P2pCircuit),
            send_back_addr: Protocol::P2p(peer_of(&node).unwrap()).into(),
        };
        assert_eq!(carrying(&endpoint), Some(direct));
    }
}
