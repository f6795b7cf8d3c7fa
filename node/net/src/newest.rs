//! One connection to a peer, for behaviours that count on it: the newest.
//!
//! A peer has several when both sides dial at once, and when one side has given a connection up and
//! dials again before the other has noticed. Gossipsub tells its subscriptions over the first one
//! only, and sends over any; the frame streams are opened on any. If that is the one that is dead,
//! its messages are lost, and nobody says them again. So a behaviour in this wrapper is told that a
//! connection has ended when another one comes: over that it greets the peer again like a new one,
//! and uses it alone. Messages that still come over the older one are taken.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::task::{Context, Poll};

use libp2p::core::transport::PortUse;
use libp2p::core::{ConnectedPoint, Endpoint};
use libp2p::swarm::behaviour::{AddressChange, ConnectionClosed, ConnectionEstablished};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};

/// See the module. Where it stands, nothing after it may deny a connection: the older one would
/// have been given up for it.
pub(crate) struct Newest<B> {
    inner: B,
    /// The connections that the behaviour knows of: one for each peer that is connected.
    known: HashMap<PeerId, (ConnectionId, ConnectedPoint)>,
}

impl<B> Newest<B> {
    pub(crate) fn new(inner: B) -> Newest<B> {
        Newest { inner, known: HashMap::new() }
    }
}

impl<B: NetworkBehaviour> Newest<B> {
    /// Another connection is about to come.
    fn give_up(&mut self, peer: PeerId) {
        if let Some((connection, endpoint)) = self.known.remove(&peer) {
            self.closed(peer, connection, &endpoint);
        }
    }

    fn closed(&mut self, peer_id: PeerId, connection_id: ConnectionId, endpoint: &ConnectedPoint) {
        self.inner.on_swarm_event(FromSwarm::ConnectionClosed(ConnectionClosed {
            peer_id,
            connection_id,
            endpoint,
            cause: None,
            remaining_established: 0,
        }));
    }

    fn is_known(&self, peer: &PeerId, connection: ConnectionId) -> bool {
        self.known.get(peer).is_some_and(|(known, _)| *known == connection)
    }
}

impl<B> Deref for Newest<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.inner
    }
}

impl<B> DerefMut for Newest<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.inner
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for Newest<B> {
    type ConnectionHandler = B::ConnectionHandler;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.inner.handle_pending_inbound_connection(connection, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.give_up(peer);
        self.inner.handle_established_inbound_connection(connection, peer, local, remote)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.inner.handle_pending_outbound_connection(connection, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.give_up(peer);
        self.inner.handle_established_outbound_connection(connection, peer, remote, role, port)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionEstablished(event) = event {
            self.known.insert(event.peer_id, (event.connection_id, event.endpoint.clone()));
            let first = ConnectionEstablished { other_established: 0, ..event };
            self.inner.on_swarm_event(FromSwarm::ConnectionEstablished(first));
        } else if let FromSwarm::ConnectionClosed(event) = event {
            if self.is_known(&event.peer_id, event.connection_id) {
                self.known.remove(&event.peer_id);
                self.closed(event.peer_id, event.connection_id, event.endpoint);
            }
        } else if let FromSwarm::AddressChange(AddressChange { peer_id, connection_id, .. }) = event
            && !self.is_known(&peer_id, connection_id)
        {
            // Of an older connection, which the behaviour does not know any more.
        } else {
            self.inner.on_swarm_event(event);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        // Also of an older one, which the peer may still take for its newest.
        if self.known.contains_key(&peer) {
            self.inner.on_connection_handler_event(peer, connection, event);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<B::ToSwarm, THandlerInEvent<Self>>> {
        self.inner.poll(cx)
    }
}
