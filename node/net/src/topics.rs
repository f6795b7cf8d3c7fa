//! Subscriptions of peers. Gossipsub keeps those to topics of the mesh; of others it says nothing,
//! not even which peer named them. So it is wrapped: such a peer is reported with the number of
//! them, and can be stopped.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::gossipsub::{self, IdentityTransform, TopicHash, TopicSubscriptionFilter};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};

type Inner = gossipsub::Behaviour<IdentityTransform, Filter>;

/// Keeps topics of the mesh, and counts all that are spoken of. Gossipsub's own filters do not say
/// whose they were, and the one that limits their number drops *all* of a message that has more.
#[derive(Debug)]
pub(crate) struct Filter {
    known: HashSet<TopicHash>,
    spoken_of: Arc<AtomicU32>,
}

impl TopicSubscriptionFilter for Filter {
    fn can_subscribe(&mut self, topic: &TopicHash) -> bool {
        self.spoken_of.fetch_add(1, Ordering::Relaxed);
        self.known.contains(topic)
    }
}

/// Events of gossipsub, and the subscriptions that it does not report.
#[derive(Debug)]
pub(crate) enum GossipEvent {
    /// As it is.
    Said(gossipsub::Event),
    /// A peer began or ceased to listen to so many topics, of the mesh or not.
    Topics { peer: PeerId, changes: u32 },
}

/// Gossipsub that listens to these topics and to no others.
pub(crate) struct Gossip {
    inner: Inner,
    spoken_of: Arc<AtomicU32>,
    /// Reports that are due: at most one for each peer that is connected.
    changed: BTreeMap<PeerId, u32>,
}

impl Gossip {
    /// `make`: with this filter.
    pub(crate) fn new<E>(
        known: HashSet<TopicHash>,
        make: impl FnOnce(Filter) -> Result<Inner, E>,
    ) -> Result<Gossip, E> {
        let spoken_of = Arc::new(AtomicU32::new(0));
        let inner = make(Filter { known, spoken_of: spoken_of.clone() })?;
        Ok(Gossip { inner, spoken_of, changed: BTreeMap::new() })
    }
}

impl Deref for Gossip {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Gossip {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl NetworkBehaviour for Gossip {
    type ConnectionHandler = <Inner as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = GossipEvent;

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
        self.inner.handle_established_outbound_connection(connection, peer, remote, role, port)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.inner.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.spoken_of.store(0, Ordering::Relaxed);
        self.inner.on_connection_handler_event(peer, connection, event);
        let changes = self.spoken_of.load(Ordering::Relaxed);
        if changes > 0 {
            let told = self.changed.entry(peer).or_default();
            *told = told.saturating_add(changes);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<GossipEvent, THandlerInEvent<Self>>> {
        if let Some((peer, changes)) = self.changed.pop_first() {
            return Poll::Ready(ToSwarm::GenerateEvent(GossipEvent::Topics { peer, changes }));
        }
        self.inner.poll(cx).map(|event| event.map_out(GossipEvent::Said))
    }
}
