//! The gate lets nodes connect that have an ed25519 id and are not being refused, from addresses
//! that do not hammer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};

use crate::circuit;
use crate::identity::node_of;
use crate::keys::Keys;
use crate::limits::{
    HANDSHAKE_TIMEOUT, INBOUND_ADDRESSES_MAX, INBOUND_BURST, INBOUND_REFILL, PEERS_MAX,
    PENDING_PER_ADDRESS_MAX,
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("connection refused: not an ed25519 node id")]
    Foreign,
    #[error("connection refused: the mesh's secret has changed, and this is no member")]
    OldKey,
    #[error("connection refused: the node misbehaved")]
    Misbehaved,
    #[error("connection refused: too many connections from this address")]
    TooOften,
    #[error("connection refused: there is a direct one")]
    Direct,
}

#[derive(Debug)]
pub(crate) struct Gate {
    keys: Arc<Keys>,
    refused: HashMap<PeerId, Instant>,
    arrivals: HashMap<IpAddr, Bucket>,
    /// Whose handshake is under way.
    pending: HashMap<ConnectionId, IpAddr>,
    /// Connections that go through no relay, and since when. As many as there may be connections.
    direct: HashMap<ConnectionId, (PeerId, Instant)>,
}

/// A token bucket.
#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Instant,
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let gained = (now - self.refilled).as_millis() / INBOUND_REFILL.as_millis();
        if gained > 0 {
            self.tokens = self.tokens.saturating_add(gained.min(u128::from(INBOUND_BURST)) as u32);
            self.tokens = self.tokens.min(INBOUND_BURST);
            self.refilled = now;
        }
    }
}

impl Gate {
    pub(crate) fn new(keys: Arc<Keys>) -> Gate {
        let (refused, arrivals, pending, direct) = Default::default();
        Gate { keys, refused, arrivals, pending, direct }
    }

    /// Refuses a peer until then. The caller disconnects it.
    pub(crate) fn refuse(&mut self, peer: PeerId, until: Instant) {
        let now = Instant::now();
        self.refused.retain(|_, until| *until > now);
        // Only peers of the book are refused, and of those there are not more.
        if self.refused.len() < PEERS_MAX {
            self.refused.insert(peer, until);
        }
    }

    fn may_arrive(&mut self, payer: Option<IpAddr>, now: Instant) -> Result<(), Refusal> {
        let Some(ip) = payer.filter(|ip| !ip.is_loopback()) else { return Ok(()) };
        if self.arrivals.len() >= INBOUND_ADDRESSES_MAX && !self.arrivals.contains_key(&ip) {
            self.arrivals.retain(|_, bucket| {
                bucket.refill(now);
                bucket.tokens < INBOUND_BURST
            });
            if self.arrivals.len() >= INBOUND_ADDRESSES_MAX {
                return Err(Refusal::TooOften);
            }
        }
        let full = Bucket { tokens: INBOUND_BURST, refilled: now };
        let bucket = self.arrivals.entry(ip).or_insert(full);
        bucket.refill(now);
        bucket.tokens = bucket.tokens.checked_sub(1).ok_or(Refusal::TooOften)?;
        Ok(())
    }

    /// Its handshake begins, if not too many from there are under way. [`Gate::ends`] when it has
    /// ended, or failed.
    fn may_begin(
        &mut self,
        connection: ConnectionId,
        payer: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let Some(ip) = payer.filter(|ip| !ip.is_loopback()) else { return Ok(()) };
        if self.pending.values().filter(|address| **address == ip).count()
            >= PENDING_PER_ADDRESS_MAX
        {
            return Err(Refusal::TooOften);
        }
        self.pending.insert(connection, ip);
        Ok(())
    }

    fn ends(&mut self, connection: ConnectionId) {
        self.pending.remove(&connection);
    }

    /// A circuit is not taken beside a direct connection that was made while the circuit was: both
    /// ends would have to agree which of the two counts. Beside an older one it is: the other end
    /// has lost that.
    fn may_be_relayed(&self, peer: &PeerId, now: Instant) -> Result<(), Refusal> {
        let made_meanwhile = |(to, since): &(PeerId, Instant)| {
            to == peer && now.saturating_duration_since(*since) <= HANDSHAKE_TIMEOUT
        };
        if self.direct.values().any(made_meanwhile) { Err(Refusal::Direct) } else { Ok(()) }
    }

    /// `local`: where it ends here, if it came from outside.
    fn may_connect(
        &self,
        peer: &PeerId,
        local: Option<&Multiaddr>,
        remote: &Multiaddr,
        now: Instant,
    ) -> Result<(), Refusal> {
        let node = node_of(peer).ok_or(Refusal::Foreign)?;
        if circuit::is_relayed(local.unwrap_or(remote)) {
            self.may_be_relayed(peer, now)?;
        }
        if !self.keys.admits(&node, local, remote) {
            return Err(Refusal::OldKey);
        }
        match self.refused.get(peer) {
            Some(until) if *until > now => Err(Refusal::Misbehaved),
            Some(_) | None => Ok(()),
        }
    }
}

/// The address that pays for a connection. A host with an IPv6 address has the /64 around it.
fn ip_of(remote: &Multiaddr) -> Option<IpAddr> {
    let first = remote.iter().next();
    if let Some(Protocol::Ip4(ip)) = first {
        Some(IpAddr::V4(ip))
    } else if let Some(Protocol::Ip6(ip)) = first {
        if ip.is_loopback() {
            return Some(IpAddr::V6(ip));
        }
        let net = u128::from(ip) & (u128::MAX << 64);
        Some(ip.to_ipv4_mapped().map_or(IpAddr::V6(net.into()), IpAddr::V4))
    } else {
        None
    }
}

/// The address that pays for a connection from outside: of a circuit that of its relay.
fn payer(local: &Multiaddr, remote: &Multiaddr) -> Option<IpAddr> {
    ip_of(if circuit::is_relayed(local) { local } else { remote })
}

/// Is the other end of a connection on this machine? A relay that is, or a proxy, says nothing of it.
pub(crate) fn is_same_machine(remote: &Multiaddr) -> bool {
    let is_proxied = remote.iter().any(|part| matches!(part, Protocol::Ws(_)));
    !circuit::is_relayed(remote) && !is_proxied && ip_of(remote).is_some_and(|ip| ip.is_loopback())
}

impl NetworkBehaviour for Gate {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let payer = payer(local, remote);
        self.may_arrive(payer, Instant::now()).map_err(ConnectionDenied::new)?;
        self.may_begin(connection, payer).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.ends(connection);
        self.may_connect(&peer, Some(local), remote, Instant::now())
            .map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.may_connect(&peer, None, remote, Instant::now()).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ListenFailure(failed) = event {
            self.ends(failed.connection_id);
        } else if let FromSwarm::ConnectionEstablished(made) = event
            && !made.endpoint.is_relayed()
        {
            self.direct.insert(made.connection_id, (made.peer_id, Instant::now()));
        } else if let FromSwarm::ConnectionClosed(closed) = event {
            self.direct.remove(&closed.connection_id);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate::new(Arc::new(Keys::new([1; 32].into(), Vec::new())))
    }

    #[test]
    fn addresses_that_hammer_are_refused_until_they_rest() {
        let (mut gate, now) = (gate(), Instant::now());
        let remote: Multiaddr = "/ip4/10.0.0.1/tcp/7".parse().unwrap();
        let other: Multiaddr = "/ip4/10.0.0.2/tcp/7".parse().unwrap();
        let local: Multiaddr = "/ip4/127.0.0.1/tcp/7".parse().unwrap();
        for _ in 0..INBOUND_BURST {
            gate.may_arrive(ip_of(&remote), now).unwrap();
        }
        gate.may_arrive(ip_of(&remote), now).unwrap_err();
        gate.may_arrive(ip_of(&other), now).unwrap();
        gate.may_arrive(ip_of(&remote), now + INBOUND_REFILL).unwrap();
        gate.may_arrive(ip_of(&remote), now + INBOUND_REFILL).unwrap_err();
        for _ in 0..10 * INBOUND_BURST {
            gate.may_arrive(ip_of(&local), now).unwrap();
        }
    }

    #[test]
    fn who_says_nothing_at_the_door_keeps_nobody_else_out() {
        let mut gate = gate();
        let at = |text: &str| text.parse::<Multiaddr>().unwrap();
        let (silent, other) = (at("/ip4/10.0.0.1/tcp/7"), at("/ip4/10.0.0.2/tcp/7"));
        let id = ConnectionId::new_unchecked;
        for n in 0..PENDING_PER_ADDRESS_MAX {
            gate.may_begin(id(n), ip_of(&silent)).unwrap();
        }
        gate.may_begin(id(100), ip_of(&silent)).unwrap_err();
        gate.may_begin(id(101), ip_of(&other)).unwrap();
        gate.ends(id(0));
        gate.may_begin(id(102), ip_of(&silent)).unwrap();
        for n in 0..100 {
            gate.may_begin(id(200 + n), ip_of(&at("/ip4/127.0.0.1/tcp/7"))).unwrap();
        }
    }

    #[test]
    fn foreign_and_refused_peers_stay_out() {
        let (mut gate, now) = (gate(), Instant::now());
        let remote: Multiaddr = "/ip4/10.0.0.1/tcp/7".parse().unwrap();
        assert!(matches!(
            gate.may_connect(&PeerId::random(), None, &remote, now),
            Err(Refusal::Foreign)
        ));
        let keypair = libp2p::identity::Keypair::generate_ed25519();
        let peer = keypair.public().to_peer_id();
        // Nothing is known of the key with which it came.
        assert!(matches!(gate.may_connect(&peer, None, &remote, now), Err(Refusal::OldKey)));
        gate.keys.know(node_of(&peer).unwrap());
        gate.may_connect(&peer, None, &remote, now).unwrap();
        gate.refuse(peer, now + INBOUND_REFILL);
        assert!(matches!(gate.may_connect(&peer, None, &remote, now), Err(Refusal::Misbehaved)));
        gate.may_connect(&peer, None, &remote, now + INBOUND_REFILL).unwrap();
    }
}
