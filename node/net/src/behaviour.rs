//! The libp2p stack: TCP or a circuit, pre-shared key, noise, yamux; gossipsub, frame streams,
//! identify, ping, circuits.
//! Where a setting differs from libp2p's default, the default was measured to fail: reasons here
//! and in `limits.rs`.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncWrite};
use libp2p::connection_limits::{self, ConnectionLimits};
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::OrTransport;
use libp2p::core::transport::timeout::{TransportTimeout, TransportTimeoutError};
use libp2p::core::upgrade::Version;
use libp2p::gossipsub::{
    self, IdentTopic, Message, MessageAuthenticity, MessageId, ValidationMode,
};
use libp2p::identity::Keypair;
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{PeerId, Swarm, Transport, identify, noise, ping, relay, swarm, tcp, yamux};
use sha2::{Digest, Sha256};

use crate::admission;
use crate::circuit;
use crate::door::{Door, Word};
use crate::gate::Gate;
use crate::identity::node_of;
use crate::keys::{Keys, Recognised};
use crate::limits::{
    CIRCUIT_TIMEOUT, CONNECT_TIMEOUT, CONNECTIONS_MAX, CONNECTIONS_PER_PEER_MAX, DIALS_MAX,
    GOSSIP_HISTORY, GOSSIP_QUEUE_MAX, GOSSIP_QUEUE_TIME, GOSSIP_TRANSMIT_MAX, HANDSHAKE_TIMEOUT,
    IDLE_TIMEOUT, INBOUND_MAX, MEET_TIMEOUT, PING_INTERVAL, PING_TIMEOUT, SUBSTREAMS_MAX,
};
use crate::machine::{Here, Rooted};
use crate::newest::Newest;
use crate::pace::Pace;
use crate::private::{self, Private};
use crate::settings::{Settings, StartError};
use crate::stall::Stalling;
use crate::topics::Gossip;
use crate::trouble::{self, Step};
use crate::twins::Twins;
use crate::web::WebTransport;

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    // First: nobody else sees a connection that it refuses.
    pub(crate) gate: Gate,
    limits: connection_limits::Behaviour,
    pub(crate) gossip: Newest<Gossip>,
    pub(crate) frames: Newest<libp2p_stream::Behaviour>,
    identify: identify::Behaviour,
    ping: ping::Behaviour,
    circuits: relay::client::Behaviour,
    pub(crate) carrier: Toggle<relay::Behaviour>,
}

/// The name of a topic on the wire.
pub(crate) fn topic(index: u16) -> IdentTopic {
    IdentTopic::new(format!("clawmesh/3/{index}"))
}

/// The protocol version that a node names to its peers.
pub(crate) const VERSION: &str = "clawmesh/3";

/// A swarm that is subscribed to all topics and does not listen yet. `version`: [`VERSION`].
pub(crate) fn swarm(
    settings: &Settings,
    keys: Arc<Keys>,
    twins: Arc<Twins>,
    here: &Here,
    version: &str,
) -> Result<Swarm<Behaviour>, StartError> {
    let keypair = Keypair::ed25519_from_bytes(*settings.secret_key.0).map_err(setup)?;
    let noise = noise::Config::new(&keypair).map_err(setup)?;
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(SUBSTREAMS_MAX);
    let (at_door, guests) = (keys.clone(), noise.clone());
    let (lets_in, knows) = (keys.clone(), twins.clone());
    let pace = Pace::new(settings.relay_rate);
    #[cfg(test)]
    let pace = pace.lying(settings.lie.clone());
    let pace = Arc::new(pace);
    let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
    let here = here.clone();
    let tcp = tcp.map(move |socket, _| Rooted::new(socket, &here));
    let tcp = TransportTimeout::new(tcp, CONNECT_TIMEOUT).map_err(unreached);
    let tcp = WebTransport::new(tcp, settings.web.tls.clone())?;
    let me = keypair.public().to_peer_id();
    let (circuits, circuits_behaviour) = relay::client::new(me);
    let circuits = TransportTimeout::new(circuits, CIRCUIT_TIMEOUT).map_err(not_carried);
    let transport = OrTransport::new(circuits, tcp)
        .map_err(|error| error.into_inner())
        .and_then(move |socket, endpoint| {
            under_key(Stalling::new(socket), endpoint, at_door.clone(), guests.clone())
        })
        .upgrade(Version::V1)
        .authenticate(noise)
        .multiplex_ext(move |peer, endpoint| Door {
            word: word(&lets_in, &knows, peer, endpoint),
            twins: knows.clone(),
            streams: yamux.clone(),
            place: pace.place(*peer),
        })
        .timeout(HANDSHAKE_TIMEOUT)
        .boxed();
    let behaviour = Behaviour {
        gate: Gate::new(keys),
        limits: connection_limits::Behaviour::new(limits()),
        gossip: Newest::new(gossip(settings)?),
        frames: Newest::new(libp2p_stream::Behaviour::new()),
        identify: identify::Behaviour::new(
            // Addresses are announced by us: we know which of them mean something to which peer.
            identify::Config::new(version.to_owned(), keypair.public())
                .with_agent_version(twins.agent())
                .with_hide_listen_addrs(true)
                .with_cache_size(0),
        ),
        ping: ping::Behaviour::new(
            ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_TIMEOUT),
        ),
        circuits: circuits_behaviour,
        carrier: circuit::carrier(me, settings.relaying),
    };
    let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(IDLE_TIMEOUT);
    let mut swarm = Swarm::new(transport, behaviour, me, config);
    swarm.add_external_address(circuit::own_address(&me));
    Ok(swarm)
}

/// The first handshake. A guest with an invitation is answered here, and gets no further.
async fn under_key<S>(
    mut socket: S,
    endpoint: ConnectedPoint,
    keys: Arc<Keys>,
    noise: noise::Config,
) -> io::Result<Private<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if endpoint.is_dialer() {
        let (key, noted) = keys.to_dial(&endpoint);
        let greeted = private::dial(socket, &key, Some(noted)).await;
        return greeted.map_err(|error| trouble::at(Step::Greeting, error));
    }
    let opening = tokio::time::timeout(MEET_TIMEOUT, private::meet(&mut socket)).await??;
    match keys.recognise(&endpoint, &opening.theirs, &opening.first()) {
        Some(Recognised::Mesh(key, noted)) => Ok(opening.with(socket, &key, Some(noted))),
        Some(Recognised::Guest(key, invitation)) => {
            let private = opening.with(socket, &key, None);
            Err(admission::answer(private, noise, &keys, invitation).await)
        }
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "no key of ours")),
    }
}

/// An error of TCP, or its silence.
fn unreached(error: TransportTimeoutError<io::Error>) -> io::Error {
    let error = match error {
        TransportTimeoutError::Timeout => io::ErrorKind::TimedOut.into(),
        TransportTimeoutError::TimerError(error) | TransportTimeoutError::Other(error) => error,
    };
    trouble::at(Step::Reaching, error)
}

/// A relay's no, or its silence.
fn not_carried(error: TransportTimeoutError<relay::client::transport::Error>) -> io::Error {
    let error = match error {
        TransportTimeoutError::Timeout => io::ErrorKind::TimedOut.into(),
        TransportTimeoutError::TimerError(error) => error,
        TransportTimeoutError::Other(error) => io::Error::other(error),
    };
    trouble::at(Step::Carrying, error)
}

/// Our word to the other end. The gate decides once more when the connection is there: the key may
/// change meanwhile.
fn word(keys: &Keys, twins: &Twins, peer: &PeerId, endpoint: &ConnectedPoint) -> Word {
    let Some(node) = node_of(peer) else { return Word::Welcome };
    let admitted = match endpoint {
        ConnectedPoint::Dialer { .. } => true,
        ConnectedPoint::Listener { local_addr, send_back_addr } => {
            keys.admits(&node, Some(local_addr), send_back_addr)
        }
    };
    if !admitted {
        Word::OldSecret
    } else if twins.run_twice(&node, Instant::now()) {
        Word::Twin
    } else {
        Word::Welcome
    }
}

fn setup(error: impl ToString) -> StartError {
    StartError::Setup(error.to_string())
}

fn limits() -> ConnectionLimits {
    ConnectionLimits::default()
        .with_max_pending_incoming(Some(INBOUND_MAX))
        .with_max_established_incoming(Some(INBOUND_MAX))
        .with_max_pending_outgoing(Some(2 * DIALS_MAX as u32))
        .with_max_established(Some(CONNECTIONS_MAX))
        .with_max_established_per_peer(Some(CONNECTIONS_PER_PEER_MAX))
}

fn gossip(settings: &Settings) -> Result<Gossip, StartError> {
    let config = gossipsub::ConfigBuilder::default()
        .validation_mode(ValidationMode::Anonymous)
        .validate_messages()
        .message_id_fn(message_id)
        .max_transmit_size(GOSSIP_TRANSMIT_MAX)
        .max_control_message_size(GOSSIP_TRANSMIT_MAX)
        .connection_handler_queue_len(GOSSIP_QUEUE_MAX)
        .publish_queue_duration(GOSSIP_QUEUE_TIME)
        .forward_queue_duration(GOSSIP_QUEUE_TIME)
        // The default is 5 s without a mesh.
        .heartbeat_initial_delay(Duration::from_millis(100))
        // To all subscribers at once: one hop in a full mesh, which is the usual case. There all
        // that is passed on is passed on for nothing, so it goes to few: in a larger mesh, or while
        // a link is cut, three ways out of each node reach everybody.
        .flood_publish(true)
        .mesh_n(3)
        .mesh_n_low(2)
        .mesh_n_high(3)
        .mesh_outbound_min(1)
        .history_length(GOSSIP_HISTORY)
        .build()
        .map_err(setup)?;
    let names: Vec<IdentTopic> = (0..settings.topics).map(topic).collect();
    let known: HashSet<_> = names.iter().map(IdentTopic::hash).collect();
    let authenticity = MessageAuthenticity::Anonymous;
    let mut gossip = Gossip::new(known, |filter| {
        gossipsub::Behaviour::new_with_subscription_filter(authenticity, config, filter)
    })
    .map_err(setup)?;
    let listens = |number: usize| match &settings.listens_to {
        Some(some) => some.iter().any(|topic| usize::from(*topic) == number),
        None => true,
    };
    for (_, name) in names.iter().enumerate().filter(|(number, _)| listens(*number)) {
        gossip.subscribe(name).map_err(setup)?;
    }
    Ok(gossip)
}

/// Messages have no author and no number: they are their content, per topic.
fn message_id(message: &Message) -> MessageId {
    let mut hash = Sha256::new();
    hash.update(message.topic.as_str());
    // No topic contains it, so that topic and content cannot run into each other.
    hash.update([0]);
    hash.update(&message.data);
    MessageId::new(&hash.finalize()[..20])
}
